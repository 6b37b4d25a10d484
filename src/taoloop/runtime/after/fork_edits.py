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
"""The key for the call of a step that has only one."""

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
    """What an observation becomes."""

    text: str
    """The output, or the message of the error."""

    code: str | None = None
    """The code of an error; None for an output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What is different in the fork; None or empty where it stays the same."""

    task: str | None = None
    """The task of the fork."""

    instructions: str | None = None
    """The instructions of its agent."""

    thought: str | None = None
    """The reason of the step's decision."""

    decision: Act | Answer | None = None
    """The whole decision of the step."""

    outcomes: Mapping[str, EditedObservation] = field(default_factory=dict)
    """The outcomes of the step's calls, by call id or `ONLY_CALL`."""

    @classmethod
    def of(cls, edits: Mapping[str, Any] | Edits | None) -> Edits:
        """The edits in a mapping: the kinds as keys; `observation` and `error` take a text, or texts by call id.

        Raises:
            ConfigError: a kind is unknown, or its value does not fit.
        """
        if isinstance(edits, Edits):
            return edits
        if not edits:
            return cls()
        for kind, value in edits.items():
            if kind not in KINDS:
                raise ConfigError(f"There is no edit called {kind!r}.", hint=f"Edits: {', '.join(KINDS)}.")
            texts = value.values() if kind in ("observation", "error") and isinstance(value, Mapping) else (value,)
            if kind != "decision" and not all(isinstance(text, str) for text in texts):
                raise ConfigError(f"The edit of the {kind} is {value!r}.", hint="Give a text.")
        if not str(edits.get("task", "x")).strip():
            raise ConfigError("The edited task is empty.", hint="Say in a text what the agent should do.")
        decision = edits.get("decision")
        outcomes = {call: EditedObservation(text=text) for call, text in _by_call(edits.get("observation"))}
        for call, text in _by_call(edits.get("error")):
            if call in outcomes:
                raise ConfigError(f"{call or 'The call'} has an observation and an error.", hint="Give one of them.")
            coded = _CODE.match(text)
            code, message = (coded[1], text[coded.end() :]) if coded else ("tool_error", text)
            outcomes[call] = EditedObservation(text=message, code=code)
        return cls(
            task=edits.get("task"),
            instructions=edits.get("instructions"),
            thought=edits.get("thought"),
            decision=None if decision is None else decision_of(decision),
            outcomes=outcomes,
        )

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Edits:
        """The edits in texts of the form `KIND=VALUE`.

        Raises:
            ConfigError: a text has another form; the hint shows the forms.
        """
        edits: dict[str, Any] = {}
        for text in texts:
            kind, equals, value = text.partition("=")
            kind = kind.strip()
            if not equals or kind not in KINDS:
                raise ConfigError(f"The edit {text[:80]!r} has none of the forms.", hint=f"Write one of {_FORMS}.")
            if kind in ("observation", "error"):
                match = _CALL.match(value)
                call, value = (match[1], value[match.end() :]) if match else (ONLY_CALL, value)
                texts_by_call = edits.setdefault(kind, {})
                twice, texts_by_call[call] = call in texts_by_call, value
            else:
                twice, edits[kind] = kind in edits, value
            if twice:
                raise ConfigError(f"The edit {text[:80]!r} is the second of its kind.", hint="Give each edit once.")
        if "decision" in edits:
            try:
                edits["decision"] = loads(edits["decision"])
            except NotJsonError as error:
                raise ConfigError(
                    f"The edited decision is not JSON: {error}.", hint=f"Write one of {_FORMS}."
                ) from error
        return cls.of(edits)

    @property
    def names(self) -> tuple[str, ...]:
        """What is edited, in words."""
        plain = ("task", "instructions", "decision", "thought")
        calls = (f"observation of {call}" if call else "observation" for call in self.outcomes)
        return (*(name for name in plain if getattr(self, name) is not None), *calls)

    @property
    def keeps_step(self) -> bool:
        """Whether the decision of the step and its outcomes stay, except for a thought or an observation."""
        return self.decision is None and (self.thought is not None or bool(self.outcomes))


def decision_of(data: Any) -> Act | Answer:
    """The decision in plain data: `{"tool", "args"}`, `{"calls": […]}` or `{"answer"}`, each with a `thought`.

    Raises:
        ConfigError: the data holds none.
    """
    if isinstance(data, Act | Answer):
        return data
    if not isinstance(data, Mapping) or set(data) - {"thought"} not in _DECISIONS:
        raise ConfigError(
            f"The edited decision {str(data)[:200]!r} is not a decision.",
            hint='Give {"tool": NAME, "args": {…}}, {"calls": […]} or {"answer": TEXT}; "thought" may be added.',
        )
    thought = data.get("thought", "")
    if not isinstance(thought, str):
        raise ConfigError(f"The thought of the edited decision is {thought!r}.", hint="Give a text.")
    if "answer" in data:
        answer = data["answer"]
        return Answer(text=answer if isinstance(answer, str) else dumps(answer), reason=thought)
    calls = data.get("calls", [data])
    if not isinstance(calls, Sequence) or isinstance(calls, str) or not calls:
        raise ConfigError("The edited decision has no calls.", hint='Give "calls" as a list of {"tool", "args"}.')
    return Act(calls=tuple(_read_call(call) for call in calls), reason=thought)


def _read_call(data: Any) -> Call:
    if isinstance(data, Mapping) and isinstance(data.get("tool"), str) and not set(data) - {"tool", "args", "thought"}:
        return Call(tool=data["tool"], args=data.get("args", {}))
    raise ConfigError(f"{str(data)[:200]!r} is not a call.", hint='Write {"tool": NAME, "args": {…}}.')


def _by_call(texts: str | Mapping[str, str] | None) -> list[tuple[str, str]]:
    if texts is None:
        return []
    return [(ONLY_CALL, texts)] if isinstance(texts, str) else list(texts.items())
