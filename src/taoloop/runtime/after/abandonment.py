"""The end of a run for good: a person abandons it, and no process resumes it any more."""

from __future__ import annotations

import time
from collections.abc import Sequence

from taoloop.core.events import Fact, Finished, InDoubt, Resumed
from taoloop.core.text import replace_surrogates
from taoloop.core.texts import end_message
from taoloop.core.trace import Trace
from taoloop.core.views.steps import NO_OUTCOME
from taoloop.errors import ConfigError, NotWaiting, RunHeld
from taoloop.journals.base import Journal, locks_of
from taoloop.journals.queries import runs_inside
from taoloop.runtime.after.recovery import max_silence_s
from taoloop.runtime.approvals.inbox import AnswerRecorded, add_facts, person_name
from taoloop.runtime.engine.clock import Clock
from taoloop.runtime.journal_access import require_open, require_unlocked

_ALL = 10_000_000


async def abandon_run(
    journal: Journal,
    run_id: str,
    *,
    by: str = "user",
    note: str = "",
    authenticated: str = "",
    clock: Clock | None = None,
) -> AnswerRecorded:
    """End a run that is not completed for good, with the runs inside it; nobody can resume it after that.

    Nothing is undone. Calls that were started and have no outcome stay in the trace as what they are: in doubt. `note`
    says why; `authenticated` as in `ApprovalAnswer`; `clock` is by default the machine's.

    Raises:
        RunNotFound: the journal has no such run.
        RunNotResumable: it is completed, or was abandoned before.
        RunHeld: a process is at work on it, or may be, as far as the journal can tell.
        FenceLost: a process resumed it at this moment.
        ConfigError: it is inside another run, which is the one to abandon.
    """
    person = person_name(by)

    def decide(trace: Trace) -> list[Fact]:
        _require_whole(trace)
        require_open(trace)
        return _ending(trace, person, replace_surrogates(note.strip()), authenticated)

    await _require_idle(journal, Trace(run_id, await journal.load(run_id)), clock)
    recorded = await add_facts(journal, run_id, decide, clock, None, attempts=1)
    for row in await runs_inside(journal, run_id):
        if row.status != "completed":
            await add_facts(
                journal, row.run_id, lambda trace: _ending(trace, person, "", authenticated), clock, None, attempts=1
            )
    return recorded


def _require_whole(trace: Trace) -> None:
    if trace.started is None:
        raise NotWaiting(f"Run {trace.run_id} never began.")
    if trace.started.parent is not None:
        raise ConfigError(
            f"The run {trace.run_id} is part of run {trace.started.parent}.", hint="Abandon the run around it."
        )


async def _require_idle(journal: Journal, trace: Trace, clock: Clock | None) -> None:
    """Refuse a run that a process is at work on; where the journal cannot tell, one that was active a moment ago."""
    await require_unlocked(journal, trace.run_id)
    if locks_of(journal) is None and trace.status == "running" and trace.events:
        now = time.time() if clock is None else clock.now()
        if now - trace.events[-1].at <= max_silence_s(trace):
            raise RunHeld(f"A process may be at work on run {trace.run_id}.", hint="Stop it, or wait.")


def _ending(trace: Trace, by: str, note: str, authenticated: str) -> list[Fact]:
    if trace.is_over:
        return []
    reason = end_message(trace.agent.language, "abandoned", by=by, note=note).strip()
    ended = Finished(status="stopped", answer=None, reason=reason, abandoned_by=by, authenticated=authenticated)
    reopened: Sequence[Fact] = () if trace.finished is None else (Resumed(limits=trace.limits, reason="abandoned"),)
    return [*reopened, *_unknown_calls(trace), ended]


def _unknown_calls(trace: Trace) -> list[Fact]:
    """The doubt about each call that was started and has no outcome, where nobody has recorded it yet."""
    open_calls = [call for call in trace.pending.values() if call.attempts > call.waited and call.doubt is None]
    return [InDoubt(call_id=call.requested.call_id, reason=NO_OUTCOME) for call in open_calls]
