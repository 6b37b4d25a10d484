"""A recorded run as a test: today's code, cards and policy must come to the same decisions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pydantic_core

from taoloop.core import events as facts
from taoloop.core.decision import Act, Call, Voted
from taoloop.core.events import ActionRequested, Event, Fact, Observed
from taoloop.core.stored_events import event_record
from taoloop.core.trace import TOOL_CALL_LIMIT, Trace
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError, IllegalEvent, InvalidArguments, ReplayDiverged, TaoError
from taoloop.evals.stored_runs.described_runs import spec_of_now, with_spec
from taoloop.models.replay import not_an_event, read_records
from taoloop.policy import judge
from taoloop.runtime.after.replay import replay
from taoloop.runtime.agent import Agent
from taoloop.testing.trace_asserts import trace_of

_DECIDED: dict[type[Fact], tuple[str, ...]] = {
    facts.ModelReplied: ("step", "purpose", "decision"),
    facts.ReplyRejected: ("step", "code"),
    ActionRequested: ("call_id", "tool", "args", "verdict"),
    facts.JudgedAgain: ("call_id", "args", "verdict"),
    Observed: ("call_id", "ok"),
    facts.LimitReached: ("limit", "status"),
    facts.Compacted: ("through_step",),
    Voted: ("votes", "accepted"),
    facts.Noted: ("by", "about"),
    facts.Finished: ("status", "answer", "limit"),
}
"""The fields of each kind of fact that are decisions."""


def recorded_run(path: Path | str, run_id: str | None = None) -> Trace:
    """A recorded run: from a file of JSON lines (`tao show RUN --json > FILE`), or with `run_id` from a database.

    Raises:
        ConfigError: the file cannot be read, or a line of it is no event.
        JournalError: the database cannot be read, or has no such run.
    """
    if run_id is not None:
        return asyncio.run(_stored(Path(path), run_id))
    events: list[Event] = []
    recorded_id = ""
    for number, record, fact in read_records(path):
        try:
            events.append(Event(len(events), float(record["at"]), fact))
            recorded_id = recorded_id or str(record["run_id"])
        except (ValueError, KeyError, TypeError) as error:
            raise not_an_event(path, number, error) from error
    try:
        return Trace(recorded_id, events)
    except IllegalEvent as error:
        raise ConfigError(f"{path}: these events are no run: {error}") from error


def assert_same_decisions(recorded: Result | Trace | Path | str, agent: Agent | None = None) -> None:
    """Fail unless the recorded run comes to the same decisions today. No model, tool, clock or network is used.

    Replies, outcomes and people's answers are taken from the record; how replies are read, limits kept and runs ended
    is made again. With an `agent` that happens under its description of now, and calls are judged again, too: their
    arguments by its tools, and what they may do by its policy. Without one verdicts are those of the record. Wordings,
    ids and times may differ. A text or a path names a file of JSON lines (see `recorded_run`).

    Raises:
        AssertionError: it does not; names the step and shows what was recorded and what is decided now.
    """
    trace = recorded_run(recorded) if isinstance(recorded, Path | str) else trace_of(recorded)
    if trace.started is None:
        raise AssertionError(f"The run {trace.run_id} never began.")
    now = trace
    if agent is not None:
        now = with_spec(trace, spec_of_now(trace.agent, agent, trace.task, keeps_model=True))
    judging = None if agent is None else _Judging(trace, agent, Trace(trace.run_id))
    where = f"Run {trace.run_id}"
    try:
        for decided in replay(now):
            fact = decided.recorded.fact
            judged = judging.otherwise(fact) if judging is not None and isinstance(fact, ActionRequested) else None
            actual, expected = judged or _essence(decided.decided), _essence(fact)
            if judging is not None:
                judging.trace.append(decided.recorded)
            if actual != expected:
                raise AssertionError(_message(f"{where}, {_describe_event(decided.recorded)}", trace, expected, actual))
    except (ReplayDiverged, IllegalEvent) as error:
        raise AssertionError(f"{where} goes another way now: {error}") from error


@dataclass(frozen=True, slots=True)
class _Judging:
    """Judges recorded calls by the tools and the policy of now. `seen` is the run so far, as it would be now."""

    recorded: Trace
    agent: Agent
    trace: Trace

    def otherwise(self, fact: ActionRequested) -> Mapping[str, Any] | None:
        """What is decided now where it is not what was recorded; None where arguments are taken, or refused, alike."""
        call, view = self._requested_call(fact), self.recorded.calls[fact.call_id]
        fault = view.observed.error if view.observed is not None else None
        was_invalid = fact.verdict == "deny" and fault is not None and fault.code in InvalidArguments.codes
        if call is None or fact.tool not in self.agent.toolbox:
            return None  # the replay itself says what becomes of a tool that is not there
        try:
            args = self.agent.toolbox.get(fact.tool).prepare(call.args).args
        except TaoError as error:
            return None if was_invalid else {**_essence(fact), "verdict": "deny", "error": error.message}
        if was_invalid:
            return {**_essence(fact), "args": args, "verdict": "arguments are taken"}
        if args != fact.args and fact.verdict != "deny":
            return {**_essence(fact), "args": args}
        return self._verdict(fact) if fault is None or fault.code != TOOL_CALL_LIMIT else None

    def _verdict(self, fact: ActionRequested) -> Mapping[str, Any] | None:
        card = self.trace.card(fact.tool)
        if card is None:
            return None
        call, filled = Call(tool=fact.tool, args=fact.args), fact.written is not None
        verdict = judge(self.trace, call, card, rules=tuple(self.agent.rules), filled=filled)
        return None if verdict.kind == fact.verdict else {**_essence(fact), "verdict": verdict.kind}

    def _requested_call(self, fact: ActionRequested) -> Call | None:
        """The call as the model wrote it; None where that is not what was judged (it had handles)."""
        step = next((step_view for step_view in self.recorded.steps if step_view.number == fact.step), None)
        if step is None or not isinstance(step.decision, Act) or fact.written is not None:
            return None
        index = next(i for i, call in enumerate(step.calls) if call.requested is fact)
        return step.decision.calls[index]


async def _stored(path: Path, run_id: str) -> Trace:
    from taoloop.journals.sqlite.journal import SqliteJournal  # noqa: PLC0415  # only where a database is named

    async with SqliteJournal(path, read_only=True) as journal:
        return Trace(run_id, await journal.load(run_id))


def _essence(fact: Fact) -> dict[str, Any]:
    """What is decided in a fact, without its wording and what was measured."""
    decided = {name: _plain(getattr(fact, name)) for name in _DECIDED.get(type(fact), ())}
    if isinstance(fact, Observed):
        decided["error"] = fact.error.code if fact.error else None
    return {"kind": fact.kind, **decided}


def _plain(value: Any) -> Any:
    return pydantic_core.to_jsonable_python(value, fallback=str)


def _describe_event(event: Event) -> str:
    step = event_record("", event).get("step")
    return f"event {event.seq}" if step is None else f"step {step}, event {event.seq}"


def _message(where: str, trace: Trace, expected: Mapping[str, Any], actual: Mapping[str, Any]) -> str:
    lines = unified_diff(_lines(expected), _lines(actual), "recorded", "today", lineterm="", n=20)
    return "\n".join([f"{where} ({trace.task[:60]!r}): the decision is another one now.", *lines])


def _lines(value: Mapping[str, Any]) -> list[str]:
    return json.dumps(_plain(value), ensure_ascii=False, indent=2).splitlines()
