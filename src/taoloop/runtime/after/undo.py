"""Undo: a run of its own carries out the plan, and each outcome is written into the run that is undone.

An undo is a run like any other: each compensation is judged, put before a person, recorded before it runs, and settled
after a crash. So `undo` may be called again at any time: it first finishes what was started, and then plans the rest.
Nothing is compensated twice.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import AnyEvent, Compensated, Event, Finished, Observed, RunStarted, Undo, Undoing, Verdict
from taoloop.core.policy import Policy, Rule, VerdictKind
from taoloop.core.prompts import PromptSet
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result, observation_text
from taoloop.errors import ConfigError, FenceLost, RunExists, RunHeld, RunNotFound
from taoloop.journals.base import Journal, Lease, locks_of
from taoloop.journals.queries import read_start
from taoloop.policy import CodeRule
from taoloop.runtime.after.undo_plan import (
    PlannedUndo,
    RunTree,
    UndoPlan,
    is_open,
    load_tree,
    make_plan,
    undo_id,
    undos_of,
)
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest, Approver
from taoloop.runtime.bound_agent import BoundAgent
from taoloop.runtime.engine.clock import new_nonce
from taoloop.runtime.engine.run_dependencies import check_deps
from taoloop.runtime.journal_access import acquire_run, require_unlocked, run_lock
from taoloop.runtime.runner import Listener
from taoloop.runtime.texts import TEXTS
from taoloop.runtime.tool_call_run import NO_LIMITS, bind_without_model, with_rule
from taoloop.strategies.planned_calls import PLAN, UNDO, number_of, plan_of
from taoloop.tools.tool import Tool

_ACQUIRE_ATTEMPTS, _ACQUIRE_PAUSE_S = 100, 0.05
"""How long an undo waits for another one of the same run to give way."""

UndoListener = Callable[[str, Undo | None, Event], None]
"""Called with the id of a run that undoes, the entry of its plan that an event is about, and the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult:
    """What came of an undo."""

    before: UndoPlan
    """The plan that was carried out."""

    now: UndoPlan
    """The plan as it would be now."""

    runs: tuple[Result, ...] = ()
    """The runs that carried it out."""

    @property
    def undone(self) -> tuple[PlannedUndo, ...]:
        """What was undone this time, in this order."""
        done = {item.name for item in self.now.of("undone")}
        return tuple(item for item in self.before.todo if item.name in done)

    @property
    def left(self) -> tuple[PlannedUndo, ...]:
        """What is not undone, with the reason."""
        return (*self.now.todo, *self.now.left)

    @property
    def complete(self) -> bool:
        """Whether nothing is left."""
        return not self.left

    @property
    def waits(self) -> bool:
        """Whether it waits for a person."""
        return bool(self.runs) and self.runs[-1].status == "waiting"


def approved_by(person: str, note: str = "the plan as a whole", *, authenticated: str = "") -> Approver:
    """An approver for a person who agreed to the whole plan: each call gets its own approval in that name.

    `authenticated` as in `ApprovalAnswer`.
    """
    answer = ApprovalAnswer(approved=True, by=person, note=note, authenticated=authenticated)
    return lambda _request: answer


async def plan_undo(
    agent: AgentSettings,
    journal: Journal,
    run_id: str,
    *,
    to_step: int = 0,
    skip: Collection[str] = (),
    again: Collection[str] = (),
    tools: Sequence[Tool] = (),
) -> UndoPlan:
    """What `undo` would do; nothing is changed.

    Raises:
        RunNotFound: the journal has no such run.
        ConfigError: there is no such step or call, or the run is itself an undo.
    """
    tree = await _tree(journal, agent, run_id, tools)
    return await make_plan(journal, tree, run_id, to_step, skip=skip, again=again)


async def undo(
    agent: AgentSettings,
    journal: Journal,
    run_id: str,
    *,
    to_step: int = 0,
    skip: Collection[str] = (),
    again: Collection[str] = (),
    tools: Sequence[Tool] = (),
    approver: Approver | None = None,
    agreed: UndoPlan | None = None,
    take_over: bool = False,
    kill_holder: bool = False,
    on_event: UndoListener | None = None,
    deps: Any = None,
) -> UndoResult:
    """Take back what a run did after the step `to_step`, the last effect first, until one cannot be taken back.

    Every compensation is put before `approver` (or the agent's own); without one the undo waits. `agreed` is a plan
    that a person has seen: if any other call would be made now, nothing is done. `tools` are compensations that are
    not among the agent's tools. `take_over` and `kill_holder` as in `Agent.resume`. `on_event` gets every event.
    `deps` is what the compensations are given, as in `Agent.run`.

    Raises:
        RunNotFound, ConfigError: as for `plan_undo`; or a run inside this one, or around it, is being undone; or `deps`
            do not fit.
        RunHeld: a process is at work on the run, on one inside or around it, or on an undo of it.
        JournalError: the journal cannot keep the trace.
    """
    check_deps(agent, deps)
    plan = await plan_undo(agent, journal, run_id, to_step=to_step, skip=skip, again=again, tools=tools)
    before = agreed or plan
    _require_agreed(before, plan)
    session = _UndoSession(agent, journal, run_id, tools, approver, on_event, take_over, kill_holder, deps)
    with session.locks:
        if plan.todo or any(map(is_open, await undos_of(journal, run_id))):
            await session.settle(await session.lock_runs(plan))
            tree = await session.load_current_tree()
            plan = await make_plan(journal, tree, run_id, to_step, skip=skip, again=again)
            _require_agreed(before, plan)
            has_failed = bool(session.results) and session.results[-1].status not in ("completed", "stopped")
            if plan.todo and not has_failed:  # what follows may depend on what was started before
                await session.carry_out(plan)
        tree = await session.load_current_tree()
        await session.note_outcomes(tree)
        now = await make_plan(journal, tree, run_id, to_step, skip=skip)
    return UndoResult(before=before, now=now, runs=tuple(session.results))


async def require_not_undone(journal: Journal, run_id: str) -> None:
    """Refuse a run that a process is at work on; a run that is over can only be undone.

    Raises:
        RunHeld: says which of the two it is.
    """
    try:
        await require_unlocked(journal, run_id)
    except RunHeld as error:
        if Trace(run_id, await journal.load(run_id)).finished is None:
            raise
        raise TEXTS.run_error(RunHeld, "run_held_undo", {"run_id": run_id}) from error


async def _tree(journal: Journal, agent: AgentSettings, run_id: str, tools: Sequence[Tool]) -> RunTree:
    trace = Trace(run_id, await journal.load(run_id))
    if trace.started is None:
        raise RunNotFound(f"The run {run_id} never began; there is nothing to undo.")
    if trace.started.undoes is not None:
        raise ConfigError(
            f"The run {run_id} undid another one, {trace.started.undoes.run_id}; an undo is not undone.",
            hint="Let an agent do the work again.",
        )
    return await load_tree(journal, agent, trace, tools)


def _require_agreed(agreed: UndoPlan, plan: UndoPlan) -> None:
    """Refuse calls that the person has not seen."""
    agreed_calls = [(item.name, item.call) for item in agreed.todo]
    if any((item.name, item.call) not in agreed_calls for item in plan.todo):
        raise ConfigError(
            f"The run {plan.run_id} is not what it was when the plan was made; nothing more was undone.",
            hint="Look at the plan again.",
        )


@dataclass(slots=True)
class _UndoSession:
    """What one process does to undo one run."""

    agent: AgentSettings
    journal: Journal
    run_id: str
    tools: Sequence[Tool]
    approver: Approver | None
    on_event: UndoListener | None
    take_over: bool
    kill_holder: bool
    deps: Any
    results: list[Result] = field(default_factory=list)
    locks: ExitStack = field(default_factory=ExitStack)  # once it is closed, other workers may resume the runs
    _acquired: dict[str, tuple[Trace, Lease]] = field(default_factory=dict)

    async def load_current_tree(self) -> RunTree:
        """The runs as they are in the journal now."""
        return await _tree(self.journal, self.agent, self.run_id, self.tools)

    async def lock_runs(self, plan: UndoPlan) -> RunTree:
        """Acquire every run that is to be undone: from here on no other worker can resume it."""
        await self._require_no_other_undo(await self.load_current_tree())
        for run_id in dict.fromkeys(item.run_id for item in plan.todo):
            await self._lock(run_id)
        tree = await self.load_current_tree()
        await self._require_no_other_undo(tree)
        return tree

    async def _lock(self, run_id: str) -> tuple[Trace, Lease]:
        if run_id not in self._acquired:
            lease, _ = await self._acquire(run_id)
            self.locks.enter_context(run_lock(self.journal, lease))  # nobody resumes it meanwhile
            self._acquired[run_id] = Trace(run_id, await self.journal.load(run_id)), lease
        return self._acquired[run_id]

    async def _acquire(self, run_id: str) -> tuple[Lease, str]:
        if not (self.take_over or self.kill_holder):
            await require_not_undone(self.journal, run_id)
        return await acquire_run(self.journal, run_id, at=None, take_over=self.take_over, kill_holder=self.kill_holder)

    async def _require_no_other_undo(self, tree: RunTree) -> None:
        """Refuse while another undo has a run in common: both could compensate one call."""
        undos = [trace for run_id, traces in tree.undos.items() if run_id != self.run_id for trace in traces]
        started = tree.nodes[self.run_id].trace.started
        while started is not None and started.parent is not None:
            if not (self.take_over or self.kill_holder):
                await require_unlocked(self.journal, started.parent)
            undos += await undos_of(self.journal, started.parent)
            started = Trace(started.parent, await read_start(self.journal, started.parent)).started
        for undo in undos:
            if is_open(undo) and undo.started is not None and undo.started.undoes is not None:
                first = undo.started.undoes.run_id
                raise ConfigError(
                    f"Run {undo.run_id} is undoing {first}, and is not over.",
                    hint=f"Finish that first: tao undo {first}",
                )

    async def settle(self, tree: RunTree) -> None:
        """Finish what an earlier undo has started; one that has nothing under way is closed."""
        for undo in tree.undos[self.run_id]:
            if not is_open(undo):
                continue
            if any(call.attempts for call in undo.pending.values()):
                driver = self._bound_agent(tree, self._tools_of(undo, tree))
                self.results.append(
                    await driver.continue_run(
                        self.journal,
                        undo,
                        limits=undo.limits,
                        listener=self._listener(undo.run_id, plan_of(undo)),
                        approver=self._approve,
                        take_over=self.take_over,
                        kill_holder=self.kill_holder,
                        deps=self.deps,
                    )
                )
                continue
            lease, _ = await self._acquire(undo.run_id)
            trace = Trace(undo.run_id, await self.journal.load(undo.run_id))
            if trace.finished is None:
                reason = TEXTS.text(trace.agent.language, "undo_replanned")
                ended = Finished(status="stopped", answer=None, reason=reason)
                await self.journal.append(lease, [Event(len(trace), self.agent.clock.now(), ended)])
        await self.note_outcomes(await self.load_current_tree())

    def _tools_of(self, undo: Trace, tree: RunTree) -> dict[str, Tool]:
        """The tools of an undo that an earlier process started."""
        tools: dict[str, Tool] = {}
        for entry in plan_of(undo):
            node = tree.nodes.get(entry.run_id)
            if node is not None and (tool := tree.tool(node, entry.call.tool.removeprefix(node.prefix))) is not None:
                tools[entry.call.tool] = tool.with_card(name=entry.call.tool)
        return tools

    async def carry_out(self, plan: UndoPlan) -> None:
        """Start the run that undoes, and drive it; the outcome of each call is noted at once."""
        tree = await self.load_current_tree()
        number = len(tree.undos[self.run_id]) + 1
        trace = Trace(undo_id(self.run_id, number))
        entries = tuple(
            Undo(run_id=item.run_id, call_id=item.call_id, call=item.call) for item in plan.todo if item.call
        )
        started = self._started(tree, plan, entries)
        report, outcomes = self._listener(trace.run_id, entries), asyncio.Queue[Observed | None]()

        def listen(event: AnyEvent) -> None:
            if isinstance(event.fact, Observed):
                outcomes.put_nowait(event.fact)
            if report is not None:
                report(event)

        async def note_outcomes() -> None:
            while (observed := await outcomes.get()) is not None:
                entry = entries[number_of(observed.call_id)]
                await self.note_outcome(entry, f"{trace.run_id}:{observed.call_id}", observed)

        noting = asyncio.create_task(note_outcomes())
        try:
            driver = self._bound_agent(tree, plan.tools)
            result = await driver.start(
                self.journal, trace, started, listener=listen, approver=self._approve, deps=self.deps
            )
        except RunExists as error:  # another process was faster; nothing was undone here
            raise TEXTS.run_error(RunHeld, "run_held_undo", {"run_id": self.run_id}) from error
        finally:
            outcomes.put_nowait(None)
            await noting
        self.results.append(result)

    def _started(self, tree: RunTree, plan: UndoPlan, entries: tuple[Undo, ...]) -> RunStarted:
        undone = tree.nodes[self.run_id].trace
        spec = undone.agent
        cards = tuple(tool.card for tool in plan.tools.values())
        return RunStarted(
            task=TEXTS.text(
                spec.language, "undo_to_step" if plan.to_step else "undo_all", run_id=self.run_id, step=plan.to_step
            ),
            agent=AgentSpec(
                name=spec.name,
                model=PLAN,
                dialect=spec.dialect,
                strategy=UNDO.name,
                language=spec.language,
                tools=cards,
                limits=NO_LIMITS,
                prompts=PromptSet(language=spec.language),
                policy=_asking_policy(tree),
                source=spec.source,
                workspace=spec.workspace,
                memory=spec.memory,
            ),
            nonce=new_nonce(),
            tainted=True,
            undoes=Undoing(run_id=self.run_id, to_step=plan.to_step, plan=entries),
            labels=undone.user_labels,
        )

    async def _approve(self, request: ApprovalRequest) -> ApprovalAnswer | bool | None:
        """The approver's answer; none where another worker has acquired one of the runs meanwhile."""
        approver = self.approver or self.agent.approve
        answer = None if approver is None else approver(request)
        if inspect.isawaitable(answer):
            answer = await answer
        for run_id in list(self._acquired):
            if not await self._still_holds(run_id):
                return None
        return answer

    async def _still_holds(self, run_id: str) -> bool:
        """Whether a run is still this undo's; acquires it again after another undo that began at the same moment.

        Both found it free, and the later one voided the lease of this one. Only one can start the run that undoes, so
        the other gives way, and has written nothing.
        """
        for _ in range(_ACQUIRE_ATTEMPTS):
            trace, lease = self._acquired[run_id]
            try:
                await self.journal.append(lease, [])  # refused where the lease is void
            except FenceLost:
                if locks_of(self.journal) is None:
                    return False
            else:
                return True
            try:
                lease, _ = await acquire_run(self.journal, run_id, at=len(trace), take_over=False)
            except RunHeld:
                await asyncio.sleep(_ACQUIRE_PAUSE_S)
            except FenceLost:  # it goes on, in the hands of another worker
                return False
            else:
                self.locks.enter_context(run_lock(self.journal, lease))
                self._acquired[run_id] = trace, lease
        return False

    def _bound_agent(self, tree: RunTree, tools: Any) -> BoundAgent:
        """The agent that drives the undo: no model, and no tools but those that undo."""
        rules = [
            _only_denials(rule)
            for node in tree.nodes.values()
            if node.agent is not None
            for rule in node.agent.settings.rules
        ]
        return bind_without_model(self.agent, PLAN, UNDO, tuple(tools.values()), rules)

    def _listener(self, run_id: str, plan: tuple[Undo, ...]) -> Listener | None:
        on_event = self.on_event
        if on_event is None:
            return None

        def listen(event: AnyEvent) -> None:
            call_id = getattr(event.fact, "call_id", None)
            on_event(run_id, None if call_id is None else plan[number_of(call_id)], event)

        return listen

    # Outcomes, in the runs that are undone

    async def note_outcomes(self, tree: RunTree) -> None:
        """Note the outcome of each compensation in the run that it undoes, unless it is noted there."""
        for by, entry, call in tree.compensations:
            node = tree.nodes.get(entry.run_id)
            if call.observed is not None and node is not None and not _is_noted(node.trace, by):
                await self.note_outcome(entry, by, call.observed)

    async def note_outcome(self, entry: Undo, by: str, observed: Observed) -> None:
        """Note the outcome of one compensation in the run that it undoes, unless it is noted there.

        What was undone is also noted in the runs around that one: their calls of agents rest on it.
        """
        note = "" if observed.ok else observation_text(observed)
        run_id: str | None = entry.run_id
        fact = Compensated(call_id=entry.call_id, by_call_id=by, ok=observed.ok, note=note)
        while run_id is not None:
            trace, lease = await self._lock(run_id)
            if not _is_noted(trace, by):
                event = Event(len(trace), self.agent.clock.now(), fact)
                await self.journal.append(lease, [event])
                trace.append(event)
            outer = trace.started.parent if trace.started is not None and fact.ok else None
            if outer is not None:
                fact = replace(fact, call_id=f"call_{run_id.removeprefix(f'{outer}.')}")
            run_id = outer


def _is_noted(trace: Trace, by: str) -> bool:
    """Whether the outcome of a compensation is noted in a run; such notes are at its end."""
    return any(isinstance(event.fact, Compensated) and event.fact.by_call_id == by for event in reversed(trace.events))


def _only_denials(rule: CodeRule) -> CodeRule:
    """A rule in Python reduced to its denials: calls that it allows are put before a person nevertheless."""

    def denying(trace: Trace, action: Any, card: Any) -> Verdict | None:
        verdict = rule(trace, action, card)
        return None if isinstance(verdict, Verdict) and verdict.kind != "deny" else verdict

    denying.__name__ = getattr(rule, "__name__", type(rule).__name__)
    return denying


def _asking_policy(tree: RunTree) -> Policy:
    """The policy of an undo: what the operator denies stays denied, and everything else is put before a person.

    The profile is one in which nobody is asked whether a call in doubt has happened: the next plan settles that.
    """
    policy = Policy(profile="headless")
    for node in tree.nodes.values():
        for rule in node.trace.agent.policy.rules:
            pattern = rule.tool if rule.tool == "*" else f"{node.prefix}{rule.tool}"
            verdict: VerdictKind = "deny" if rule.verdict == "deny" else "ask"
            policy = with_rule(policy, replace(rule, tool=pattern, verdict=verdict))
    return with_rule(policy, Rule(verdict="ask", name="undo"))
