"""Runs are handed to workers: new ones, and those that a person releases; and they are cancelled.

Each of these is in the journal before the engine hears of it, so an engine that cannot be reached loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from taoloop.core.agent_spec import Submission
from taoloop.core.events import Fact, Finished, Resumed
from taoloop.core.text import replace_surrogates
from taoloop.core.texts import end_message
from taoloop.core.trace import Trace
from taoloop.core.views.steps import RELEASED
from taoloop.errors import ConfigError, FenceLost, RunNotResumable
from taoloop.journals.base import Artifact, Journal
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.approvals.inbox import AnswerRecorded, add_facts, person_name
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.conversations.run_input import RunInput, prepared_run
from taoloop.runtime.conversations.sessions import session_error
from taoloop.runtime.engine.clock import Clock, SystemClock
from taoloop.runtime.fleet.engine import Engine
from taoloop.runtime.fleet.engines import open_engine
from taoloop.runtime.fleet.wakes import submission_of, tell_engine, wake_run
from taoloop.runtime.journal_access import require_open

_ATTEMPTS = 20


async def submit_run(
    agent: AgentSettings[Any, Any],
    run_input: RunInput,
    submission: Submission,
    *,
    engine: Engine | str | None = None,
) -> str:
    """Store a new run of an agent for workers to drive, and tell the engine; returns its id.

    What the program would give the run as dependencies comes from the agent's `make_deps`, in the worker. `engine` is
    the engine or its address (`open_engine`); None: the configured one.

    Raises:
        ConfigError: something about the agent, the input or the address is wrong; nothing was stored.
        ImageError, FileError, RunNotFound, RunNotAnswered, RunExists, JournalError: as `Agent.run`.
    """
    bound = bind(agent)
    if agent.journal is None:
        raise ConfigError(
            f"The agent {agent.name!r} has no journal from which workers could take a run.",
            hint="Give it one: Agent(journal='runs.db').",
        )
    async with prepared_run(agent, run_input) as (journal, run):
        started = replace(run.started, submission=submission)
        facts, artifacts, _ = await bound.opening(
            journal, run.trace.run_id, started, run_input.lessons_from, run.attachments
        )
        if engine is None or isinstance(engine, str):
            async with open_engine(engine, journal) as opened:
                await _store(agent, journal, run.trace, facts, artifacts, run_input.session)
                await tell_engine(journal, run.trace.run_id, submission, opened)
        else:
            await _store(agent, journal, run.trace, facts, artifacts, run_input.session)
            await tell_engine(journal, run.trace.run_id, submission, engine)
        return run.trace.run_id


async def _store(
    agent: AgentSettings[Any, Any],
    journal: Journal,
    trace: Trace,
    facts: Sequence[Fact],
    artifacts: Sequence[Artifact],
    session: str,
) -> None:
    redactor, now = bind(agent).redactor, agent.clock.now()
    with session_error(session):
        lease = await getattr(journal, "begin", journal.create)(trace.run_id)
        events = [trace.add(fact if redactor is None else redactor.fact(fact), now) for fact in facts]
        await journal.append(lease, events, artifacts)


async def release_run(
    journal: Journal,
    run_id: str,
    *,
    by: str = "user",
    clock: Clock | None = None,
    engine: Engine | str | None = None,
) -> AnswerRecorded:
    """Have workers go on with a run that is parked, stopped or at a limit: a person has looked at it.

    A run that killed its workers is tried again as often as a new one; a waiting one is only looked at again. Limits
    stay as they are (`Agent.resume` changes them).

    Raises:
        RunNotFound: the journal has no such run.
        RunNotResumable: it is completed or abandoned.
        ConfigError: it was never submitted, so that no worker has it.
        RunHeld: a process is at work on it.
    """
    person = person_name(by)

    def decide(trace: Trace) -> list[Fact]:
        _require_submitted(trace)
        require_open(trace)
        return [Resumed(reason=RELEASED + person)]

    trace = Trace(run_id, await journal.load(run_id))
    if trace.paused is not None and trace.finished is None:
        _require_submitted(trace)
        await wake_run(journal, run_id, engine=engine)
        return AnswerRecorded(trace=trace, events=())

    recorded = await add_facts(journal, run_id, decide, clock, None)
    if engine is not None:  # the configured one was told by the answer
        await wake_run(journal, run_id, engine=engine)
    return recorded


async def cancel_run(
    journal: Journal,
    run_id: str,
    *,
    by: str = "user",
    note: str = "",
    authenticated: str = "",
    clock: Clock | None = None,
    engine: Engine | str | None = None,
) -> AnswerRecorded:
    """Stop a run of workers, wherever it is driven; it can be resumed (`abandon_run` ends one for good).

    The end is stored first, under a new fence: from that moment on whoever drives the run stores nothing any more. What
    a tool was doing is then in doubt. The engine hears of it after that, so that the worker lets go at once.

    Raises:
        RunNotFound: the journal has no such run.
        RunNotResumable: it has ended already.
        ConfigError: it was never submitted: whoever drives it stops it.
        FenceLost: it went on so quickly that its end could not be stored in 20 attempts.
    """
    clock = clock or SystemClock()
    for attempt in range(1, _ATTEMPTS + 1):
        trace = Trace(run_id, await journal.load(run_id))
        _require_submitted(trace)
        if trace.finished is not None:
            raise RunNotResumable(
                f"Run {run_id} has ended as {trace.finished.status}.", hint="Nothing is to be stopped."
            )
        reason = end_message(
            trace.agent.language, "cancelled", by=person_name(by), note=replace_surrogates(note.strip())
        )
        ended = Finished(status="stopped", answer=None, reason=reason.strip(), authenticated=authenticated)
        try:
            lease = await journal.acquire(run_id, at=len(trace))
            event = trace.add(ended, clock.now())
            await journal.append(lease, [event])
        except FenceLost:
            if attempt == _ATTEMPTS:
                raise
        else:
            break
    if engine is None or isinstance(engine, str):
        async with open_engine(engine, journal) as opened:
            await opened.cancel(run_id)
    else:
        await engine.cancel(run_id)
    return AnswerRecorded(trace=trace, events=(event,))


def _require_submitted(trace: Trace) -> None:
    if submission_of(trace) is None:
        raise ConfigError(
            f"Run {trace.run_id} was not submitted to workers.",
            hint=f"Resume it where it is driven: tao resume {trace.run_id}.",
        )
