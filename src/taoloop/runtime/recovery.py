"""After a process died: find the runs that it left behind, and go on with them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from taoloop.core.trace import Trace
from taoloop.errors import FenceLost, TaoError
from taoloop.journals.base import Journal, RunRow
from taoloop.runtime.agent import Agent
from taoloop.runtime.result import Result

MARGIN_S = 60.0
"""How long a process may be silent beyond what the call under way may take."""

PERSON_S = 24 * 3600.0
"""How long a process may be silent while a person at its terminal is asked."""

UNBOUNDED_S = 3600.0
"""How long a call without a time limit is believed to be under way."""

_ALL = 1_000_000

_LOG = logging.getLogger("taoloop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A run that was taken up again: how it stands now, or why it could not be."""

    run_id: str
    result: Result | None
    error: TaoError | None = None


def silence_s(trace: Trace) -> float:
    """How long nothing may be heard of a running run whose process is alive and well.

    It writes an event when a call of the model or of a tool has ended, so that is as long as these may take.
    """
    if trace.phase != "acting":
        limit_s = trace.agent.model_timeout_s
        return MARGIN_S + (UNBOUNDED_S if limit_s is None else limit_s)
    if any(call.needs_person or call.doubt is not None for call in trace.pending.values()):
        return PERSON_S
    cards = [trace.card(call.requested.tool) for call in trace.pending.values()]
    return MARGIN_S + max((card.timeout_s for card in cards if card is not None), default=0.0)


async def orphans(journal: Journal, *, silent_s: float | None = None, now: float | None = None) -> list[Trace]:
    """The runs that are `running` and have no process any more, as far as the journal can tell; the oldest first.

    A run of which nothing was heard for `silent_s` seconds (by default `silence_s` of the run) has lost its process.
    Runs inside other runs are not among them: those go on with the runs around them.
    """
    now = time.time() if now is None else now
    rows: Sequence[RunRow] = await journal.runs(limit=_ALL, status="running")
    found = []
    for row in reversed(rows):
        if silent_s is None and now - row.updated_at <= MARGIN_S:
            continue  # no run may be silent for less: its events need not be read
        trace = Trace(row.run_id, await journal.load(row.run_id))
        if trace.started is None or trace.started.parent is not None:
            continue
        if now - row.updated_at > (silence_s(trace) if silent_s is None else silent_s):
            found.append(trace)
    return found


async def recover(
    journal: Journal,
    agent_for: Callable[[Trace], Agent],
    *,
    silent_s: float | None = None,
    on_recovered: Callable[[Recovered], None] | None = None,
) -> list[Recovered]:
    """Go on with every run that a dead process left behind, one after the other.

    `agent_for` gives the agent of a run; its journal must be this one. What happens to calls that were under way
    follows the rules for calls in doubt; a run that needs a person waits. One that cannot be taken up is told and left
    alone.
    """
    done = []
    for trace in await orphans(journal, silent_s=silent_s):
        try:
            result = await agent_for(trace).resume(trace.run_id)
            recovered = Recovered(run_id=trace.run_id, result=result)
        except FenceLost as error:  # somebody else is at work on it after all
            recovered = Recovered(run_id=trace.run_id, result=None, error=error)
        except TaoError as error:
            _LOG.warning("run %s cannot be recovered: %s", trace.run_id, error.message)
            recovered = Recovered(run_id=trace.run_id, result=None, error=error)
        done.append(recovered)
        if on_recovered is not None:
            on_recovered(recovered)
    return done
