"""`tao resume --check`: what is another on the agent than when the run was last driven, and what the run waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from taoloop.cli import exit_codes as exits
from taoloop.cli.agent_loading import AgentOptions, agent_of_run, database_of, replacement_policy, with_mock_model
from taoloop.cli.database import load_run, query_database
from taoloop.cli.translation import view_language
from taoloop.cli.ui.event_view import NEW_POLICY, RowWriter, console_for
from taoloop.cli.ui.stdio import capture_stdout, write_json_lines
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.errors import TaoError
from taoloop.runtime.approvals.in_doubt import stuck_requests
from taoloop.runtime.approvals.request import unanswered_calls
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.resume_facts import AgentChanges
from taoloop.translation import mark, translate_error

_POLICY_CHANGED = mark("the agent's policy is another one now; the run keeps the one that it began with")


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunState:
    """What a run is before it is resumed: how its agent differs, what is open, and whether it was edited."""

    changes: AgentChanges
    waiting: tuple[CallView, ...]
    in_doubt: tuple[CallView, ...]
    flaws: tuple[str, ...]

    @property
    def is_as_before(self) -> bool:
        return self.changes.are_none and not self.in_doubt and not self.flaws


def check_resume(
    chosen: AgentOptions, env: Mapping[str, str], run_prefix: str, db: str | None, *, as_json: bool
) -> int:
    """Print how the agent that would resume a run differs from the one that drove it. Nothing is run or written.

    Also what is open in the run: calls that wait for a person, calls whose outcome is unknown, and events that are not
    as they were written. The exit code is 0 if nothing differs (calls may wait), 1 if something does, and 2 if the run
    cannot be resumed.
    """
    path = database_of(chosen, env, db)
    trace, refusal = load_run(path, run_prefix), ""
    bound = bind(with_mock_model(agent_of_run(trace.agent, chosen, env), chosen, env))
    changes = bound.changes_since(trace, new_policy=replacement_policy(trace, chosen))
    report = query_database(path, lambda journal: journal.verify(trace.run_id))
    flaws = tuple(flaw.text for flaw in report.flaws if flaw.what != "unchained")
    state = _RunState(changes=changes, waiting=_waiting(trace), in_doubt=_in_doubt(trace, changes), flaws=flaws)
    try:
        bound.require_resumable(trace)
    except TaoError as error:
        refusal = translate_error(str(error))
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, [_record(trace, state, refusal)])
        else:
            pen = RowWriter(console_for(stream), view_language(trace.agent.language, stream))
            for label, text in _rows(state, pen):
                pen.row(label, text, style="yellow")
            if refusal:
                pen.row("Cannot be resumed", refusal, style="red", body="red")
            elif changes.are_none:
                pen.line(pen.text("nothing has changed since the run was last driven"), "green")
    if refusal:
        return exits.USAGE
    return exits.OK if state.is_as_before else exits.FOUND


def _waiting(trace: Trace) -> tuple[CallView, ...]:
    """The calls that wait for a person, or for a run inside them that does."""
    inside = [call for call in trace.pending.values() if _waits_inside(call)]
    return tuple(unanswered_calls(trace) + inside)


def _in_doubt(trace: Trace, changes: AgentChanges) -> tuple[CallView, ...]:
    """The calls that were started, and that a resume does not simply make again."""
    asked = {request.call_id for request in stuck_requests(trace)} | {
        call.requested.call_id for call in changes.judged_again if call.attempts
    }
    calls = trace.pending.items()
    return tuple(call for call_id, call in calls if call_id in asked and not _waits_inside(call))


def _waits_inside(call: CallView) -> bool:
    return call.attempts > 0 and call.attempts == call.waited


def _rows(state: _RunState, pen: RowWriter) -> Iterator[tuple[str, str]]:
    changes = state.changes
    yield from ((mark("Damaged"), flaw) for flaw in state.flaws)
    for name, fields in changes.changed.items():
        yield from (("Changed", f"{name}: {change}") for change in fields)
    for name, fields in changes.texts.items():
        note = pen.text("only a text: the model is told, and answers stay valid")
        yield from (("Changed", f"{name}: {change} ({note})") for change in fields)
    yield from ((mark("Removed"), name) for name in changes.removed)
    yield from ((mark("Added"), pen.text("{tool} (the run does not get it)", tool=name)) for name in changes.added)
    if changes.model:
        yield "Changed", pen.text("the model is now {model}", model=changes.model)
    if changes.policy:
        yield "Changed", pen.text(_POLICY_CHANGED)
    if changes.new_policy is not None:
        yield "Changed", pen.text(NEW_POLICY, profile=changes.new_policy.profile)
    yield from (("Judged again", _name(call)) for call in changes.judged_again if not call.attempts)
    yield from (("Waiting", _name(call)) for call in state.waiting)
    for call in state.in_doubt:
        yield "In doubt", pen.text("{call}: outcome unknown", call=_name(call))


def _name(call: CallView) -> str:
    return f"{call.requested.tool} ({call.requested.call_id})"


def _record(trace: Trace, state: _RunState, refusal: str) -> dict[str, Any]:
    changes = state.changes
    return {
        "run_id": trace.run_id,
        "resumable": not refusal,
        "reason": refusal,
        "changed": {name: [asdict(change) for change in fields] for name, fields in changes.changed.items()},
        "texts": {name: [asdict(change) for change in fields] for name, fields in changes.texts.items()},
        "removed": changes.removed,
        "added": changes.added,
        "model": changes.model or None,
        "policy_changed": bool(changes.policy),
        "new_policy": None if changes.new_policy is None else changes.new_policy.profile,
        "judged_again": [call.requested.call_id for call in changes.judged_again if not call.attempts],
        "waiting": [call.requested.call_id for call in state.waiting],
        "in_doubt": [call.requested.call_id for call in state.in_doubt],
        "damaged": list(state.flaws),
    }
