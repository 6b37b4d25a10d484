"""Crash recovery: find the runs that dead processes left behind, and resume them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.errors import FenceLost, RunHeld, RunNotFound, RunNotResumable, TaoError
from taoloop.journals.base import WAITING, Journal, RunRow, locks_of, starts_as_fork
from taoloop.journals.queries import rows_with_status
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.approvals.run_excerpt import read_excerpt
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.child_run import deaths_in_a_row, inner_run_id
from taoloop.runtime.fleet.waiting import read_waiting
from taoloop.runtime.journal_access import open_journal

MARGIN_S = 60.0
"""The seconds that a process may be silent beyond the time limit of the call under way."""

PERSON_S = 24 * 3600.0
"""The seconds that a process may be silent while a person at its terminal is asked."""

UNBOUNDED_S = 3600.0
"""The seconds after which a call without a time limit counts as lost."""

MAX_DEATHS = 5
"""How often in a row a run is resumed without progress; after that it is left to a person."""

_ALL = 1_000_000

_LOG = logging.getLogger("taoloop")

AgentFor = Callable[[Trace], AgentSettings | None]
"""Gives the agent of a run, or None for a run of another program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A run that was to be resumed, and what came of it."""

    run_id: str
    """The run."""

    result: Result | None
    """Its state now; None where it could not be resumed."""

    error: TaoError | None = None
    """Why it could not be resumed."""

    @property
    def elsewhere(self) -> bool:
        """Whether another process was faster and resumes it."""
        return isinstance(self.error, RunHeld | FenceLost)


def max_silence_s(trace: Trace) -> float:
    """The seconds without an event after which the process of a running run counts as dead.

    A process writes an event when a call of the model or of a tool has ended, so it may be silent for that long.
    """
    if trace.phase != "acting":
        limit_s = trace.agent.model_timeout_s
        return MARGIN_S + (UNBOUNDED_S if limit_s is None else limit_s)
    if any(call.needs_person or call.doubt is not None for call in trace.pending.values()):
        return PERSON_S
    cards = [trace.card(call.requested.tool) for call in trace.pending.values()]
    return MARGIN_S + max((card.timeout_s for card in cards if card is not None), default=0.0)


async def orphans(journal: Journal, *, silent_s: float | None = None, now: float | None = None) -> list[Trace]:
    """The runs that are `running` and have no process any more; the oldest first.

    With `silent_s` only those that have written no event for so many seconds. A journal that cannot tell who is at work
    on a run (`taoloop.journals.base`) goes by silence alone, by default `max_silence_s`. Child runs are not among
    them, because they are resumed with their parents, nor are forks that nobody has resumed yet, nor runs that were
    submitted: their workers see to them.
    """
    now = time.time() if now is None else now
    if (locks := locks_of(journal)) is not None:
        traces = [Trace(run_id, await journal.load(run_id)) for run_id in await locks.orphans()]
        traces = [trace for trace in traces if trace.started is not None and trace.started.submission is None]
        running = [trace for trace in traces if trace.status == "running"]  # none that ended elsewhere a moment ago
        return [trace for trace in running if silent_s is None or now - trace.events[-1].at > silent_s]
    rows: Sequence[RunRow] = await journal.runs(limit=_ALL, status="running")
    silent = []
    for row in reversed(rows):
        if silent_s is None and now - row.updated_at <= MARGIN_S:
            continue  # no run may be silent for less: its events need not be read
        trace = Trace(row.run_id, await journal.load(row.run_id))
        if trace.started is None or trace.started.parent is not None or starts_as_fork(trace.events):
            continue
        if trace.started.submission is not None:
            continue
        if now - row.updated_at > (max_silence_s(trace) if silent_s is None else silent_s):
            silent.append(trace)
    return silent


async def answered_runs(journal: Journal) -> list[Trace]:
    """The waiting runs to which something was added since they paused, such as an answer; the oldest first.

    Whoever gives an answer resumes the run, unless it only records the answer, or dies before that.
    """
    answered = []
    for row in await rows_with_status(journal, (WAITING,), only_outermost=True):
        excerpt = await read_excerpt(journal, row.run_id)
        if excerpt.paused is not None and (await read_waiting(journal, excerpt)).has_answers:
            answered.append(Trace(row.run_id, await journal.load(row.run_id)))
    return answered


async def stuck_runs(journal: Journal, *, now: float | None = None) -> list[Trace]:
    """The runs that lost their process and that no recovery resumes: a person has to decide. The oldest first.

    They died `MAX_DEATHS` times without progress, or are inside a run that did, or that went on without them.
    """
    return [Trace(stuck.run_id, await journal.load(stuck.run_id)) for stuck in await stuck_excerpts(journal, now=now)]


async def stuck_excerpts(journal: Journal, *, now: float | None = None) -> list[Trace]:
    """The `stuck_runs`, each with what its open calls need (`read_excerpt`), and the rest of it unread."""
    now = time.time() if now is None else now
    traces = [await lost_trace(journal, row, now=now) for row in await lost_rows(journal, now=now)]
    return [trace for trace in traces if trace is not None and await is_stuck(journal, trace)]


async def lost_rows(journal: Journal, *, now: float) -> list[RunRow]:
    """The `running` runs that may have lost their process; the oldest first. Nothing is read of them.

    A journal that cannot tell who is at work on a run gives those that were silent for `MARGIN_S`.
    """
    locks = locks_of(journal)
    rows = await rows_with_status(journal, ("running",))
    if locks is None:
        return [row for row in rows if now - row.updated_at > MARGIN_S]
    return [row for row in rows if await locks.holder(row.run_id) is None]


async def lost_trace(journal: Journal, row: RunRow, *, now: float) -> Trace | None:
    """A run of `lost_rows`, as an excerpt (`read_excerpt`) where it is long.

    None if it has not lost its process after all, or is a fork that nobody has resumed yet.
    """
    trace = await read_excerpt(journal, row.run_id)
    is_silent = locks_of(journal) is not None or now - row.updated_at > max_silence_s(trace)
    is_lost = trace.started is not None and trace.status == "running" and is_silent
    return trace if is_lost and not starts_as_fork(trace.events) else None


async def is_stuck(journal: Journal, trace: Trace) -> bool:
    """Whether neither the recovery of a run nor that of the run around it continues it."""
    if await deaths_in_a_row(journal, trace) >= MAX_DEATHS:
        return True
    if trace.started is None or (parent_id := trace.started.parent) is None:
        return False
    try:
        parent = await read_excerpt(journal, parent_id)
    except RunNotFound:
        return True
    if all(inner_run_id(parent_id, call_id) != trace.run_id for call_id in parent.pending):
        return True
    return parent.status == "running" and await is_stuck(journal, parent)


async def recover(
    journal: Journal | str | Path,
    agents: Sequence[AgentSettings] | AgentFor,
    *,
    silent_s: float | None = None,
    at_once: int = 1,
    on_recovered: Callable[[Recovered], None] | None = None,
) -> list[Recovered]:
    """Resume every run that a dead process left behind or that waits no longer; a program calls it when it starts.

    `agents` are those of this program, and each resumes the runs with its name and source; or a function that gives the
    agent of a run. The runs of other programs are left alone, and so are those that a live process is at work on:
    several programs may recover at the same time. `at_once` is how many runs are resumed concurrently. Calls that were
    under way follow the rules for calls in doubt; a run that needs a person waits, unless its agent has an approver. A
    run that cannot be resumed is reported and left as it is.

    Raises:
        JournalError: the journal cannot be read.
    """
    agent_for = agents if callable(agents) else _by_name(agents)
    turns = asyncio.Semaphore(max(1, at_once))

    async def resume(trace: Trace, opened: Journal) -> Recovered | None:
        async with turns:
            try:
                if (agent := agent_for(trace)) is None:
                    return None
                await require_alive(opened, trace)
                bound = bind(agent)
                bound.require_resumable(trace)
                result = await bound.continue_run(opened, trace, limits=trace.limits, at=len(trace), take_over=False)
                recovered = Recovered(run_id=trace.run_id, result=result)
            except TaoError as error:
                recovered = Recovered(run_id=trace.run_id, result=None, error=error)
                if not recovered.elsewhere:
                    _LOG.warning("run %s cannot be recovered: %s", trace.run_id, error.message)
            if on_recovered is not None:
                on_recovered(recovered)
            return recovered

    async with open_journal(journal) as opened:
        traces = [*await orphans(opened, silent_s=silent_s), *await answered_runs(opened)]
        tasks = [asyncio.create_task(resume(trace, opened)) for trace in traces]
        try:
            return [recovered for recovered in await asyncio.gather(*tasks) if recovered is not None]
        finally:  # `on_recovered` has failed, or the caller was cancelled
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def recover_on_start(agent: AgentSettings, journal: Journal) -> None:
    """Resume what dead processes left of an agent's runs, before its first run, if it has `recover_on_start`."""
    bound = bind(agent)
    if agent.recover_on_start and not bound.has_recovered:
        bound.has_recovered = True
        await recover(journal, [agent])


def belongs_to(trace: Trace, agent: AgentSettings) -> bool:
    """Whether a run is this agent's: started by an agent with its name and source."""
    return (trace.agent.name, trace.agent.source) == (agent.name, agent.source)


async def require_alive(journal: Journal, trace: Trace) -> None:
    """Refuse a run whose process died repeatedly at the same event, which may be what kills it.

    Raises:
        RunNotResumable: it was resumed `MAX_DEATHS` times without progress of its own or of a run inside it.
    """
    deaths = await deaths_in_a_row(journal, trace)
    if deaths >= MAX_DEATHS:
        raise RunNotResumable(
            f"Run {trace.run_id} lost its process {deaths + 1} times in a row at the same event.",
            hint=f"See what it does there (tao show {trace.run_id}); tao resume {trace.run_id} tries once more.",
        )


def _by_name(agents: Sequence[AgentSettings]) -> AgentFor:
    return lambda trace: next((agent for agent in agents if belongs_to(trace, agent)), None)
