"""`tao resume --check`: what is another on the agent than when the run was last driven."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from taoloop.cli import exit_codes as exits
from taoloop.cli.agent_loading import AgentOptions, agent_of_run, database_of, with_mock_model
from taoloop.cli.database import load_run
from taoloop.cli.translation import view_language
from taoloop.cli.ui.event_view import RowWriter, console_for
from taoloop.cli.ui.stdio import capture_stdout, write_json_lines
from taoloop.core.trace import Trace
from taoloop.errors import TaoError
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.resume_facts import AgentChanges
from taoloop.translation import mark, translate_error

_POLICY_CHANGED = mark("the agent's policy is another one now; the run keeps the one that it began with")


def check_resume(
    chosen: AgentOptions, env: Mapping[str, str], run_prefix: str, db: str | None, *, as_json: bool
) -> int:
    """Print how the agent that would resume a run differs from the one that drove it. Nothing is run or written.

    The exit code is 0 if nothing differs, 1 if something does, and 2 if the run cannot be resumed.
    """
    trace = load_run(database_of(chosen, env, db), run_prefix)
    bound = bind(with_mock_model(agent_of_run(trace.agent, chosen, env), chosen, env))
    changes, refusal = bound.changes_since(trace), ""
    try:
        bound.require_resumable(trace)
    except TaoError as error:
        refusal = translate_error(str(error))
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, [_record(trace, changes, refusal)])
        else:
            pen = RowWriter(console_for(stream), view_language(trace.agent.language, stream))
            for label, text in _rows(changes, pen):
                pen.row(label, text, style="yellow")
            if refusal:
                pen.row("Cannot be resumed", refusal, style="red", body="red")
            elif changes.are_none:
                pen.line(pen.text("nothing has changed since the run was last driven"), "green")
    if refusal:
        return exits.USAGE
    return exits.OK if changes.are_none else exits.FOUND


def _rows(changes: AgentChanges, pen: RowWriter) -> Iterator[tuple[str, str]]:
    for name, fields in changes.changed.items():
        yield from (("Changed", f"{name}: {change}") for change in fields)
    yield from ((mark("Removed"), name) for name in changes.removed)
    yield from ((mark("Added"), pen.text("{tool} (the run does not get it)", tool=name)) for name in changes.added)
    if changes.model:
        yield "Changed", pen.text("the model is now {model}", model=changes.model)
    if changes.policy:
        yield "Changed", pen.text(_POLICY_CHANGED)
    for call in changes.judged_again:
        label = "In doubt" if call.attempts else "Judged again"
        yield label, f"{call.requested.tool} ({call.requested.call_id})"


def _record(trace: Trace, changes: AgentChanges, refusal: str) -> dict[str, Any]:
    return {
        "run_id": trace.run_id,
        "resumable": not refusal,
        "reason": refusal,
        "changed": {name: [asdict(change) for change in fields] for name, fields in changes.changed.items()},
        "removed": changes.removed,
        "added": changes.added,
        "model": changes.model or None,
        "policy_changed": bool(changes.policy),
        "judged_again": [call.requested.call_id for call in changes.judged_again if not call.attempts],
        "in_doubt": [call.requested.call_id for call in changes.judged_again if call.attempts],
    }
