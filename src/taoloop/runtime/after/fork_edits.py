"""What a person changes in a run that is forked, and how it is written: as a mapping, or as `KIND=VALUE` texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taoloop.core.decision import Act, Answer, Call
from taoloop.dialects.parsing.strict_json import NotJsonError, dumps, loads
from taoloop.errors import ConfigError

ONLY_CALL = ""
"""Stands for the call of a step that has just one."""

KINDS = ("task", "instructions", "thought", "decision", "observation", "error")

_FORMS = (
    'task=TEXT, instructions=TEXT, thought=TEXT, decision={"tool": …, "args": {…}} or {"answer": …}, '
    "observation=[CALL=]TEXT, error=[CALL=][CODE: ]TEXT"
)
_CALL = re.compile(r"\s*(call_\d+)=")
_CODE = re.compile(r"([a-z][a-z0-9_]*): ")
_DECISIONS = ({"tool", "args"}, {"tool"}, {"calls"}, {"answer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedObservation:
    """What an observation is to say: an output, or with a `code` an error."""

    text: str
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What is different in the fork; None and nothing where it stays as it was.

    `decision` is the whole decision of the step, `thought` only its reason. `outcomes` are those of its calls, by call
    id or `ONLY_CALL`.
    """

    task: str | None = None
    instructions: str | None = None
    thought: str | None = None
    decision: Act | Answer | None = None
    outcomes: Mapping[str, EditedObservation] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any] | Edits | None) -> Edits:
        """The edits in a mapping: the kinds as keys; `observation` and `error` take a text, or texts by call id.

        Raises:
            ConfigError: a kind is unknown, or its value is none that it takes.
        """
        if isinstance(given, Edits):
            return given
        if not given:
            return cls()
        for kind, value in given.items():
            if kind not in KINDS:
                raise ConfigError(f"There is no edit called {kind!r}.", hint=f"Edits: {', '.join(KINDS)}.")
            texts = value.values() if kind in ("observation", "error") and isinstance(value, Mapping) else (value,)
            if kind != "decision" and not all(isinstance(text, str) for text in texts):
                raise ConfigError(f"The edit of the {kind} is {value!r}.", hint="Give a text.")
        if not str(given.get("task", "x")).strip():
            raise ConfigError("The edited task is empty.", hint="Say in a text what the agent should do.")
        decision = given.get("decision")
        outcomes = {call: EditedObservation(text=text) for call, text in _by_call(given.get("observation"))}
        for call, text in _by_call(given.get("error")):
            if call in outcomes:
                raise ConfigError(f"{_named(call)} was given an observation and an error.", hint="Give one of them.")
            coded = _CODE.match(text)
            code, message = (coded[1], text[coded.end() :]) if coded else ("tool_error", text)
            outcomes[call] = EditedObservation(text=message, code=code)
        return cls(
            task=given.get("task"),
            instructions=given.get("instructions"),
            thought=given.get("thought"),
            decision=None if decision is None else decision_of(decision),
            outcomes=outcomes,
        )

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Edits:
        """The edits in texts of the form `KIND=VALUE`.

        Raises:
            ConfigError: a text is none of them; the hint shows the forms.
        """
        given: dict[str, Any] = {}
        for text in texts:
            kind, sign, value = text.partition("=")
            kind = kind.strip()
            if not sign or kind not in KINDS:
                raise ConfigError(f"The edit {text[:80]!r} is none.", hint=f"Write one of {_FORMS}.")
            if kind in ("observation", "error"):
                named = _CALL.match(value)
                call, value = (named[1], value[named.end() :]) if named else (ONLY_CALL, value)
                kept = given.setdefault(kind, {})
                twice, kept[call] = call in kept, value
            else:
                twice, given[kind] = kind in given, value
            if twice:
                raise ConfigError(f"The edit {text[:80]!r} is the second of its kind.", hint="Give each one once.")
        if "decision" in given:
            try:
                given["decision"] = loads(given["decision"])
            except NotJsonError as error:
                raise ConfigError(
                    f"The edited decision is no JSON: {error}.", hint=f"Write one of {_FORMS}."
                ) from error
        return cls.of(given)

    @property
    def names(self) -> tuple[str, ...]:
        """What is edited, in words."""
        plain = ("task", "instructions", "decision", "thought")
        calls = (f"observation of {call}" if call else "observation" for call in self.outcomes)
        return (*(name for name in plain if getattr(self, name) is not None), *calls)

    @property
    def keeps_step(self) -> bool:
        """True where the decision of the step and what came of it stay, but for a thought or an observation."""
        return self.decision is None and (self.thought is not None or bool(self.outcomes))


def decision_of(given: Any) -> Act | Answer:
    """The decision that plain data says: `{"tool", "args"}`, `{"calls": […]}` or `{"answer"}`, each with a `thought`.

    Raises:
        ConfigError: it says none.
    """
    if isinstance(given, Act | Answer):
        return given
    if not isinstance(given, Mapping) or set(given) - {"thought"} not in _DECISIONS:
        raise ConfigError(
            f"The edited decision {str(given)[:200]!r} is none.",
            hint='Give {"tool": NAME, "args": {…}}, {"calls": […]} or {"answer": TEXT}; "thought" may stand beside it.',
        )
    thought = given.get("thought", "")
    if not isinstance(thought, str):
        raise ConfigError(f"The thought of the edited decision is {thought!r}.", hint="Give a text.")
    if "answer" in given:
        answer = given["answer"]
        return Answer(text=answer if isinstance(answer, str) else dumps(answer), reason=thought)
    calls = given.get("calls", [given])
    if not isinstance(calls, Sequence) or isinstance(calls, str) or not calls:
        raise ConfigError("The edited decision has no calls.", hint='Give "calls" as a list of {"tool", "args"}.')
    return Act(calls=tuple(_call(one) for one in calls), reason=thought)


def _call(given: Any) -> Call:
    if (
        isinstance(given, Mapping)
        and isinstance(given.get("tool"), str)
        and not set(given) - {"tool", "args", "thought"}
    ):
        return Call(tool=given["tool"], args=given.get("args", {}))
    raise ConfigError(f"The call {str(given)[:200]!r} is none.", hint='Write {"tool": NAME, "args": {…}}.')


def _by_call(given: str | Mapping[str, str] | None) -> list[tuple[str, str]]:
    if given is None:
        return []
    return [(ONLY_CALL, given)] if isinstance(given, str) else list(given.items())


def _named(call: str) -> str:
    return call or "The call"
