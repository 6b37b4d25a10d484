"""The restart harness: kill a run at an event, resume it with a fresh agent, and count what happened to the world.

A run is made once undisturbed. Then, for each event that it stored, it is made again, killed just before or just after
that event is stored, and resumed by a new agent that knows only the journal. What a crash may break shows between those
two: an effect that happened and was not stored yet, or was stored as begun and did not happen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from taoloop.core.events import DoubtSettled, InDoubt
from taoloop.core.trace import Trace
from taoloop.core.views.steps import PROBE
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError
from taoloop.evals.wrapped_tools import wrapped_tool
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.agent import Agent
from taoloop.runtime.run_options import NewRunOptions
from taoloop.testing.killed_journal import Killed, KillingJournal, KillPoint, Moment
from taoloop.testing.restart_processes import DATABASE, RUN_ID, ProcessPlan, run_process
from taoloop.testing.trace_asserts import story
from taoloop.tools.tool import Tool

MakeAgent = Callable[[], Agent[Any, Any]]
"""Makes the agent as a new process does. Its journal is replaced by that of the harness."""

Effects = Callable[[], Sequence[Any]]
"""Lists what has happened to the world, an item for each effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A run that was killed and resumed."""

    point: KillPoint
    """Where it was killed."""
    result: Result[Any]
    """How it ended, or that it waits."""
    effects: Sequence[Any]
    """What has happened to the world by then."""
    expected: Sequence[Any]
    """What the undisturbed run did to it."""

    @property
    def in_doubt(self) -> tuple[str, ...]:
        """The tools of the calls of which no probe could tell whether they happened: a person says so, or nobody."""
        trace = self.result.trace
        facts = [event.fact for event in trace.events]
        settled = {fact.call_id for fact in facts if isinstance(fact, DoubtSettled) and fact.by == PROBE}
        doubted = [fact.call_id for fact in facts if isinstance(fact, InDoubt) and fact.call_id not in settled]
        return tuple(trace.calls[call_id].requested.tool for call_id in dict.fromkeys(doubted))


def restarts(
    make_agent: MakeAgent,
    task: str,
    *,
    effects: Effects | str,
    reset: Callable[[], object] | None = None,
    at: str = "",
    moments: Sequence[Moment] = ("before", "after"),
    **options: Unpack[NewRunOptions],
) -> Iterator[Restart]:
    """Kill a run at its events, one after the other, within this process; yields each one once it was resumed.

    The agent must come to the same events each time (a scripted model does). A run of which nothing was stored is
    started again, as its caller would do.

    Args:
        make_agent: Makes a fresh agent, for the run and for its resumption.
        task: The task.
        effects: Lists what has happened to the world; or the name of one of the agent's tools, each of whose successful
            calls then counts (for a tool that is called again under the same key, list what it did instead).
        reset: Called before each run, to make the world as it was, such as `ledger.clear`.
        at: The kind of event at which the run is killed, such as `action_started` or `observed`; empty: all.
        moments: Whether it is killed before the event is stored, after it, or (by default) first one, then the other.
        options: As for `Agent.run`.

    Raises:
        ConfigError: the run has no event of the kind `at`, or the agent no tool of the name `effects`.
    """
    counted: list[str] = []
    names = effects if isinstance(effects, str) else ""
    list_effects: Effects = (lambda: counted) if isinstance(effects, str) else effects
    options["run_id"] = RUN_ID

    def agent_on(journal: KillingJournal) -> Agent[Any, Any]:
        agent = replace(make_agent(), journal=journal)
        return replace(agent, tools=_counting_tools(agent, names, counted)) if names else agent

    def begin() -> None:
        counted.clear()
        if reset is not None:
            reset()

    begin()
    undisturbed = KillingJournal()
    agent_on(undisturbed).run_sync(task, **options)
    expected = list(list_effects())
    for point in _points(undisturbed.fate.appends, at, moments):
        begin()
        journal = KillingJournal(point)
        try:
            agent_on(journal).run_sync(task, **options)
        except Killed:
            journal.revive()
            trace = asyncio.run(_stored(journal))
            result = _go_on(agent_on(journal), trace, task, options)
            yield Restart(point=point, result=result, effects=list(list_effects()), expected=expected)


def restarts_of_processes(
    make_agent: MakeAgent,
    task: str,
    *,
    effects: Effects,
    folder: Path,
    at: str = "",
    moments: Sequence[Moment] = ("before", "after"),
    **options: Unpack[NewRunOptions],
) -> Iterator[Restart]:
    """As `restarts`, with processes of their own that SIGKILL ends: slower, and nothing is simulated.

    `make_agent` and `effects` are functions of a module that another process can import, and options are pickled. Each
    run has an own folder in `folder`, which is the working directory of its processes: a world of files (a ledger, a
    database) lies there, and needs no reset.

    Raises:
        ConfigError: as `restarts`; or a process failed otherwise: the message has its traceback.
    """
    options["run_id"] = RUN_ID
    plan = ProcessPlan(
        make_agent=make_agent, task=task, effects=effects, options=options, folder=folder / "undisturbed"
    )
    undisturbed = run_process(plan)
    for point in _points(undisturbed.appends, at, moments):
        doomed = replace(plan, folder=folder / f"{point.append}-{point.moment}", point=point)
        if run_process(doomed).is_killed:
            ended = run_process(replace(doomed, point=None))
            trace = asyncio.run(_read(doomed.folder))
            yield Restart(point=point, result=Result.of(trace), effects=ended.effects, expected=undisturbed.effects)


def assert_effect_once(restart: Restart, *, or_in_doubt: bool = False) -> None:
    """Assert that each effect of the undisturbed run happened once, and none beside them.

    Args:
        restart: The run that was killed and resumed.
        or_in_doubt: Whether an effect may be missing where no probe could tell and the run says that it is in doubt.

    Raises:
        AssertionError: says where the run was killed, what happened how often, and what happened in the run; also if
            the undisturbed run had no effect at all.
    """
    if not restart.expected:
        raise AssertionError("The undisturbed run had no effect, so this test shows nothing: check `effects`.")
    missing, extra = _left_over(restart.expected, restart.effects), _left_over(restart.effects, restart.expected)
    in_doubt = restart.in_doubt
    if not extra and (not missing or (or_in_doubt and in_doubt)):
        return
    lines = [f"Killed {restart.point} and resumed:"]
    lines += [f"- happened once more than without the kill: {effect!r}" for effect in extra]
    lines += [f"- did not happen: {effect!r}" for effect in missing]
    lines += [f"Undisturbed: {list(restart.expected)!r}", f"After the restart: {list(restart.effects)!r}"]
    if extra:
        lines.append("Give the tool a probe, or have it act once per `idempotency_key` and say `idempotent=True`.")
    elif in_doubt:
        lines.append(
            f"In doubt, for a person to decide: {', '.join(in_doubt)}. Give the tool a probe, or `or_in_doubt=True`."
        )
    raise AssertionError("\n".join([*lines, story(restart.result)]))


def _points(appends: Sequence[tuple[str, ...]], at: str, moments: Sequence[Moment]) -> list[KillPoint]:
    points = [
        KillPoint(append=number, moment=moment, events=kinds)
        for number, kinds in enumerate(appends, start=1)
        for moment in moments
        if not at or at in kinds
    ]
    if not points:
        known = ", ".join(dict.fromkeys(kind for kinds in appends for kind in kinds))
        raise ConfigError(f"The run has no event {at!r} at which it could be killed.", hint=f"It has: {known}.")
    return points


def _counting_tools(agent: Agent[Any, Any], name: str, counted: list[str]) -> list[Any]:
    def note(context: Any, result: Any) -> Any:
        counted.append(f"{name} {context.call_id}")
        return result

    tools = list(agent.tools)
    names = [tool.name for tool in tools if isinstance(tool, Tool)]
    if name not in names:
        hint = f"It has: {', '.join(names)}. Effects of other agents are listed by a function."
        raise ConfigError(f"The agent has no tool {name!r} whose calls could be counted.", hint=hint)
    return [wrapped_tool(tool, after=note) if isinstance(tool, Tool) and tool.name == name else tool for tool in tools]


async def _stored(journal: KillingJournal) -> Trace | None:
    """The run as the dead process left it; None: nothing of it was stored."""
    is_known = any(row.run_id == RUN_ID for row in await journal.runs())
    return Trace(RUN_ID, await journal.load(RUN_ID)) if is_known else None


async def _read(folder: Path) -> Trace:
    async with SqliteJournal(folder / DATABASE) as journal:
        return Trace(RUN_ID, await journal.load(RUN_ID))


def _go_on(agent: Agent[Any, Any], trace: Trace | None, task: str, options: NewRunOptions) -> Result[Any]:
    if trace is None:
        return agent.run_sync(task, **options)
    return Result.of(trace) if trace.is_over else agent.resume_sync(RUN_ID)


def _left_over(effects: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The effects that `others` do not have, as often as they lack them; effects need not be hashable."""
    remaining = list(others)
    left = []
    for effect in effects:
        if effect in remaining:
            remaining.remove(effect)
        else:
            left.append(effect)
    return left
