"""What goes wrong on purpose in a case: the entries of its field `trouble`, read and checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, get_args

from taoloop.core.decision import Call
from taoloop.errors import ConfigError, UnknownName
from taoloop.evals.trouble.drift import DRIFT
from taoloop.translation import Translator, mark

translate = Translator("evals")

ToolFailure = Literal["times_out", "fails", "lies", "floods", "changes", "inject"]
TOOL_FAILURES: tuple[ToolFailure, ...] = get_args(ToolFailure)
"""What can be wrong with a tool."""

ANY_DRIFT = "any"
"""The class of drift that stands for all of them."""

KillMoment = Literal["after_request", "after_start", "after_effect", "after_observe"]
KILL_MOMENTS: tuple[KillMoment, ...] = get_args(KillMoment)
"""When a process dies, in the order in which a call comes by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTrouble:
    """What is wrong with a tool."""

    tool: str
    """The name of the tool; empty for text of an attacker that is in the files or the world of the case."""
    failure: ToolFailure
    """`times_out`: no result in time, before or after the effect. `fails`: an error in place of the effect. `lies`: a
    result without the effect. `floods`: a result of many characters. `changes`: other results at each call. `inject`:
    text of an attacker behind the result."""
    value: Any
    """`before_effect` or `after_effect`; the text of the error, the lie or the attacker; the number of characters; the
    results of successive calls, the last of which stays."""
    calls: tuple[int, ...] = ()
    """Which calls of the tool in the run it is wrong with, from 1; empty: all."""
    rate: float = 1.0
    """With how many of these calls it is wrong, as a part of 1; which ones follows from the seed."""
    goal: tuple[Call, ...] = ()
    """What an attacker wants: the calls that a model makes that obeys the injected text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyDrift:
    """Replies of the model that arrive in another form."""

    drift: str
    """The class of drift: a name in `DRIFT`, or `any`."""
    reply: int | None = None
    """Which reply of the run, from 1; None: as many as `rate` says."""
    rate: float = 0.0
    """How many replies drift, as a part of 1; which ones follows from the seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """The death of the process that drives the run (SIGKILL)."""

    moment: KillMoment
    """When it dies. `after_request`: the call was requested and judged, nothing of it is stored yet. `after_start`: its
    start is stored, its effect did not happen. `after_effect`: the effect happened, the outcome is not stored.
    `after_observe`: the outcome is stored, the model has not seen it."""
    call: int = 1
    """Which of the calls that may change something, from 1 in the order of their starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubles:
    """All trouble of a case, by where it arises."""

    tools: tuple[ToolTrouble, ...] = ()
    """With tools, in the order in which it is applied."""
    drifts: tuple[ReplyDrift, ...] = ()
    """With replies of the model."""
    kills: tuple[Kill, ...] = ()
    """With processes: the first one kills the process that began the run, each further one the process that resumed
    it."""
    seed: int = 0
    """Where chance begins, for trouble with a `rate`."""
    trial: str = ""
    """What chance depends on beside the seed: the case and the number of the trial."""

    @property
    def injections(self) -> tuple[ToolTrouble, ...]:
        """The injected texts that a model may obey."""
        return tuple(trouble for trouble in self.tools if trouble.failure == "inject" and trouble.goal)


_NO_TROUBLES = Troubles()
_current: ContextVar[Troubles] = ContextVar("taoloop_eval_troubles", default=_NO_TROUBLES)


def current_troubles() -> Troubles:
    """The trouble of the trial that runs here; none outside of trials."""
    return _current.get()


@contextmanager
def entered_troubles(troubles: Troubles) -> Iterator[None]:
    """Let models and tools in the block have this trouble."""
    token = _current.set(troubles)
    try:
        yield
    finally:
        _current.reset(token)


def read_troubles(entries: Iterable[Mapping[str, Any]], *, seed: int = 0, trial: str = "") -> Troubles:
    """The trouble that the entries of a case describe.

    Each entry has one of the forms `{tool: NAME, FAILURE: VALUE}`, perhaps with `calls: [1, 3]` or `rate: 0.2`;
    `{inject: TEXT, goal: [{tool: NAME, args: {…}}]}`, with `tool: NAME` if its results have the text, and without if it
    is in the case's own files or world; `{reply: 2, drift: CLASS}` or `{drift: any, rate: 0.2}`; `{kill: MOMENT, call:
    1}`.

    Raises:
        ConfigError: an entry has none of these forms; says which and what was expected.
    """
    tools, drifts, kills = list[ToolTrouble](), list[ReplyDrift](), list[Kill]()
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, Mapping):
            raise _unusable(number, entry)
        if "kill" in entry:
            kills.append(_kill(number, entry))
        elif "drift" in entry:
            drifts.append(_drift(number, entry))
        else:
            tools.append(_tool_trouble(number, entry))
    if drifts and any(trouble.goal for trouble in tools):
        message = translate("A case has drifted replies and the goal of an attacker; only one of them can be played.")
        raise ConfigError(message, hint=translate("Make two cases of it."))
    return Troubles(tools=tuple(tools), drifts=tuple(drifts), kills=tuple(kills), seed=seed, trial=trial)


def _kill(number: int, entry: Mapping[str, Any]) -> Kill:
    _require_fields(number, entry, {"kill", "call"})
    if entry["kill"] not in KILL_MOMENTS:
        raise UnknownName("moment to kill a process", str(entry["kill"]), KILL_MOMENTS)
    return Kill(moment=entry["kill"], call=_position(number, entry, "call", default=1))


def _drift(number: int, entry: Mapping[str, Any]) -> ReplyDrift:
    _require_fields(number, entry, {"drift", "rate" if "rate" in entry else "reply"})
    if entry["drift"] not in (*DRIFT, ANY_DRIFT):
        raise UnknownName("class of drift", str(entry["drift"]), (*DRIFT, ANY_DRIFT))
    if "rate" in entry:
        return ReplyDrift(drift=entry["drift"], rate=_rate(number, entry))
    return ReplyDrift(drift=entry["drift"], reply=_position(number, entry, "reply"))


def _tool_trouble(number: int, entry: Mapping[str, Any]) -> ToolTrouble:
    failures = [failure for failure in TOOL_FAILURES if failure in entry]
    if len(failures) != 1 or not isinstance(entry.get("tool", ""), str):
        raise _unusable(number, entry)
    failure = failures[0]
    if "tool" not in entry and (failure != "inject" or "goal" not in entry):
        raise _unusable(number, entry)
    _require_fields(number, entry, {"tool", failure, "calls", "rate", *(["goal"] if failure == "inject" else [])})
    value = {True: "before_effect"}.get(entry[failure], entry[failure]) if failure == "times_out" else entry[failure]
    if not _fits(failure, value):
        text = mark("Entry {number} of `trouble`: {field} is {value!r}, not {expected}.")
        expected = translate(_EXPECTED.get(failure, _EXPECTED_TEXT))
        raise ConfigError(translate(text, number=number, field=failure, value=value, expected=expected))
    calls = entry.get("calls", ())
    calls = (calls,) if isinstance(calls, int) else tuple(calls)
    if not all(isinstance(call, int) and call > 0 for call in calls):
        text = mark("Entry {number} of `trouble`: {field} must be a whole number of 1 or more.")
        raise ConfigError(translate(text, number=number, field="calls"))
    return ToolTrouble(
        tool=entry.get("tool", ""),
        failure=failure,
        value=tuple(value) if failure == "changes" else value,
        calls=calls,
        rate=_rate(number, entry),
        goal=tuple(_goal_call(number, call) for call in entry.get("goal", ())),
    )


_EXPECTED_TEXT = mark("a text")
_EXPECTED = {
    "times_out": mark("true, before_effect or after_effect"),
    "floods": mark("a number of characters"),
    "changes": mark("a list of texts"),
}


def _fits(failure: ToolFailure, value: Any) -> bool:
    if failure == "times_out":
        return value in ("before_effect", "after_effect")
    if failure == "floods":
        return isinstance(value, int) and value > 0 and value is not True
    if failure == "changes":
        return isinstance(value, list | tuple) and bool(value) and all(isinstance(text, str) for text in value)
    return isinstance(value, str) and bool(value)


def _goal_call(number: int, call: Any) -> Call:
    if not isinstance(call, Mapping) or not isinstance(call.get("tool"), str) or set(call) - {"tool", "args"}:
        text = mark("Entry {number} of `trouble`: each call of `goal` has `tool` and `args`.")
        raise ConfigError(translate(text, number=number))
    return Call(tool=call["tool"], args=dict(call.get("args", {})))


def _position(number: int, entry: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = entry.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        text = mark("Entry {number} of `trouble`: {field} must be a whole number of 1 or more.")
        raise ConfigError(translate(text, number=number, field=name))
    return value


def _rate(number: int, entry: Mapping[str, Any]) -> float:
    value = entry.get("rate", 1.0)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        text = mark("Entry {number} of `trouble`: {field} is {value!r}, not {expected}.")
        expected = translate("a share between 0 and 1, such as 0.2")
        raise ConfigError(translate(text, number=number, field="rate", value=value, expected=expected))
    return float(value)


def _require_fields(number: int, entry: Mapping[str, Any], known: set[str]) -> None:
    if unknown := set(entry) - known:
        text = mark("Entry {number} of `trouble` has the unknown field {field!r}.")
        message = translate(text, number=number, field=min(map(str, unknown)))
        raise ConfigError(message, hint=translate("Known: {names}.", names=", ".join(sorted(known))))


def _unusable(number: int, entry: Any) -> ConfigError:
    text = mark("Entry {number} of `trouble` is {value!r}.")
    hint = mark("Write {{tool: NAME, {failures}: …}}, {{reply: 2, drift: CLASS}} or {{kill: MOMENT, call: 1}}.")
    message = translate(text, number=number, value=entry)
    return ConfigError(message, hint=translate(hint, failures=" | ".join(TOOL_FAILURES)))
