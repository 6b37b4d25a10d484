"""Undoing a run: a run of its own carries out the plan, and what came of it is written into the run that is undone.

The undo goes the way of every run: each compensation is judged, put before a person, written down before it runs, and
settled after a crash. So `undo` may be called again at any time: it first brings to its end what was begun, and then
plans what is left. Nothing is compensated twice.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Compensated, Event, Finished, Observed, RunStarted, Undo, Undoing, Verdict
from taoloop.core.policy import Policy, Rule, VerdictKind
from taoloop.core.prompts import PromptSet
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import observation_text
from taoloop.errors import ConfigError, FenceLost, RunNotFound
from taoloop.journals.base import Journal, Lease
from taoloop.journals.run_locks import locks_of
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
from taoloop.runtime.planned_run import NO_LIMITS, bind_without_model, with_rule
from taoloop.runtime.result import Result
from taoloop.runtime.run_lock import acquire_run, require_unlocked
from taoloop.strategies.undo import PLAN, UNDO, call_of, number_of
from taoloop.tools.tool import Tool

if TYPE_CHECKING:
    from taoloop.runtime.runner import Listener

_EN = {
    "task": "Undo run {run_id} back to the end of step {step}.",
    "all": "Undo run {run_id}.",
    "replan": "Nothing was under way; what is left is planned anew.",
}
_ZH = {
    "task": "撤销运行 {run_id}，回到第 {step} 步结束时。",
    "all": "撤销运行 {run_id}。",
    "replan": "没有正在进行的调用；其余部分重新计划。",
}


UndoListener = Callable[[str, Undo | None, Event], None]
"""Called with the id of a run that undoes, the entry of its plan that an event is about, and the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult:
    """What an undo came to: the plan that was carried out, the plan as it is now, and the runs that did it."""

    before: UndoPlan
    now: UndoPlan
    runs: tuple[Result, ...] = ()

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


def approved_by(person: str, note: str = "the plan as a whole") -> Approver:
    """An approver for who has seen the plan and agreed to it: each call gets its own approval in that name."""

    def approve(_request: ApprovalRequest) -> ApprovalAnswer:
        return ApprovalAnswer(approved=True, by=person, note=note)

    return approve


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
    on_event: UndoListener | None = None,
) -> UndoResult:
    """Take back what a run did after the step `to_step`, the last effect first, until one cannot be taken back.

    Every compensation is put before `approver` (or the agent's own); without one the undo waits. `agreed` is a plan
    that a person has seen: where another call would be made now, nothing is done. `tools` are compensations that are
    not among the agent's tools. `take_over` takes the run from a process that is at work on it, which loses it at its
    next event. `on_event` hears what happens.

    Raises:
        RunNotFound, ConfigError: as for `plan_undo`; or a run inside this one, or around it, is being undone.
        RunHeld: a process is at work on the run, on one inside or around it, or on an undo of it.
        JournalError: the journal cannot keep the trace.
    """
    work = _UndoSession(agent, journal, run_id, tools, approver, on_event, take_over)
    try:
        return await _undo(work, to_step, skip, again, agreed)
    finally:
        work.let_go()


async def _undo(
    work: _UndoSession, to_step: int, skip: Collection[str], again: Collection[str], agreed: UndoPlan | None
) -> UndoResult:
    agent, journal, run_id, tools = work.agent, work.journal, work.run_id, work.tools
    plan = await plan_undo(agent, journal, run_id, to_step=to_step, skip=skip, again=again, tools=tools)
    before = agreed or plan
    _require_agreed(before, plan)
    if plan.todo or await work.has_begun():
        await work.settle(await work.take(plan))
        tree = await work.look()
        plan = await make_plan(journal, tree, run_id, to_step, skip=skip, again=again)
        _require_agreed(before, plan)
        if plan.todo and work.goes_on:
            await work.carry_out(plan)
    tree = await work.look()
    await work.note_outcomes(tree)
    now = await make_plan(journal, tree, run_id, to_step, skip=skip)
    return UndoResult(before=before, now=now, runs=tuple(work.results))


async def _tree(journal: Journal, agent: AgentSettings, run_id: str, tools: Sequence[Tool]) -> RunTree:
    trace = Trace(run_id, await journal.load(run_id))
    if trace.started is None:
        raise RunNotFound(f"The run {run_id} never began; there is nothing to undo.")
    if trace.started.undoes is not None:
        raise ConfigError(
            f"The run {run_id} undid another one, {trace.started.undoes.run_id}; an undo is not undone.",
            hint="Let an agent do the work anew.",
        )
    return await load_tree(journal, agent, trace, tools)


def _require_agreed(agreed: UndoPlan, plan: UndoPlan) -> None:
    """Refuse calls that the person has not seen."""
    seen = [(item.name, item.call) for item in agreed.todo]
    if any((item.name, item.call) not in seen for item in plan.todo):
        raise ConfigError(
            f"The run {plan.run_id} is not what it was when the plan was made; nothing more was undone.",
            hint="Look at the plan again.",
        )


@dataclass(slots=True)
class _UndoSession:
    """One process's work on undoing one run."""

    agent: AgentSettings
    journal: Journal
    run_id: str
    tools: Sequence[Tool]
    approver: Approver | None
    on_event: UndoListener | None
    take_over: bool
    results: list[Result] = field(default_factory=list)
    _held: dict[str, tuple[Trace, Lease]] = field(default_factory=dict)

    async def look(self) -> RunTree:
        """Everything as it is in the journal now."""
        return await _tree(self.journal, self.agent, self.run_id, self.tools)

    @property
    def goes_on(self) -> bool:
        """Whether nothing that was begun before failed: what comes after it may rest on it."""
        return not self.results or self.results[-1].status in ("completed", "stopped")

    async def has_begun(self) -> bool:
        """Whether an earlier undo of this run is not over."""
        return any(map(is_open, await undos_of(self.journal, self.run_id)))

    async def take(self, plan: UndoPlan) -> RunTree:
        """Take every run that is to be undone: from here on no other worker can go on with it."""
        await self._require_alone(await self.look())
        for run_id in dict.fromkeys(item.run_id for item in plan.todo):
            await self._hold(run_id)
        tree = await self.look()
        await self._require_alone(tree)
        return tree

    async def _hold(self, run_id: str) -> tuple[Trace, Lease]:
        if run_id not in self._held:
            lease = await acquire_run(self.journal, run_id, at=None, take_over=self.take_over)
            if (holds := locks_of(self.journal)) is not None:
                holds.hold(lease)  # nobody resumes it meanwhile
            self._held[run_id] = Trace(run_id, await self.journal.load(run_id)), lease
        return self._held[run_id]

    def let_go(self) -> None:
        """Let others go on with the runs."""
        if (holds := locks_of(self.journal)) is not None:
            for _, lease in self._held.values():
                holds.let_go(lease)

    async def _require_alone(self, tree: RunTree) -> None:
        """Two undos with a run in common could compensate one call twice."""
        others = [trace for run_id, found in tree.undos.items() if run_id != self.run_id for trace in found]
        started = tree.places[self.run_id].trace.started
        while started is not None and started.parent is not None:
            if not self.take_over:
                await require_unlocked(self.journal, started.parent)
            others += await undos_of(self.journal, started.parent)
            started = Trace(started.parent, await self.journal.load(started.parent)).started
        for other in others:
            if is_open(other) and other.started is not None and other.started.undoes is not None:
                first = other.started.undoes.run_id
                raise ConfigError(
                    f"Run {other.run_id} is undoing {first}, and is not over.", hint=f"End that first: tao undo {first}"
                )

    async def settle(self, tree: RunTree) -> None:
        """Bring to its end what an earlier undo has begun; one that has nothing under way is closed."""
        for old in tree.undos[self.run_id]:
            if not is_open(old):
                continue
            if any(call.attempts for call in old.pending.values()):
                driver = self._driver(tree, self._tools_of(old, tree))
                listener = self._listener(old.run_id, old.started.undoes if old.started is not None else None)
                self.results.append(
                    await driver.continue_run(
                        self.journal,
                        old,
                        limits=old.limits,
                        listener=listener,
                        approver=self._surely,
                        take_over=self.take_over,
                    )
                )
                continue
            lease = await acquire_run(self.journal, old.run_id, at=None, take_over=self.take_over)
            trace = Trace(old.run_id, await self.journal.load(old.run_id))
            if trace.finished is None:
                texts = _ZH if trace.agent.language == "zh" else _EN
                ended = Finished(status="stopped", answer=None, reason=texts["replan"])
                await self.journal.append(lease, [Event(len(trace), self.agent.clock.now(), ended)])
        await self.note_outcomes(await self.look())

    def _tools_of(self, old: Trace, tree: RunTree) -> dict[str, Tool]:
        """The tools of a run that was begun by an earlier process, found as they were then."""
        plan = old.started.undoes if old.started is not None else None
        found: dict[str, Tool] = {}
        for entry in plan.plan if plan is not None else ():
            place = tree.places.get(entry.run_id)
            if place is not None and (tool := tree.tool(place, entry.call.tool.removeprefix(place.prefix))) is not None:
                found[entry.call.tool] = tool.with_card(name=entry.call.tool)
        return found

    async def carry_out(self, plan: UndoPlan) -> None:
        """Start the run that undoes, and drive it; what came of each call is noted while it goes on."""
        tree = await self.look()
        number = len(tree.undos[self.run_id]) + 1
        trace = Trace(undo_id(self.run_id, number))
        started = self._started(tree, plan)
        listener = _Noting(self, started.undoes, self._listener(trace.run_id, started.undoes), trace.run_id)
        driver = self._driver(tree, plan.tools)
        async with listener:
            result = await driver.start(self.journal, trace, started, listener=listener, approver=self._surely)
        self.results.append(result)

    def _started(self, tree: RunTree, plan: UndoPlan) -> RunStarted:
        undone = tree.places[self.run_id].trace
        spec, texts = undone.agent, _ZH if undone.agent.language == "zh" else _EN
        cards = tuple(tool.card for tool in plan.tools.values())
        todo = tuple(Undo(run_id=one.run_id, call_id=one.call_id, call=one.call) for one in plan.todo if one.call)
        return RunStarted(
            task=texts["task" if plan.to_step else "all"].format(run_id=self.run_id, step=plan.to_step),
            agent=AgentSpec(
                name=spec.name,
                model=PLAN,
                dialect=spec.dialect,
                strategy=UNDO.name,
                language=spec.language,
                tools=cards,
                limits=NO_LIMITS,
                prompts=PromptSet(language=spec.language),
                policy=_asking(tree),
                source=spec.source,
                workspace=spec.workspace,
                memory=spec.memory,
            ),
            nonce=new_nonce(),
            tainted=True,
            undoes=Undoing(run_id=self.run_id, to_step=plan.to_step, plan=todo),
        )

    async def _surely(self, request: ApprovalRequest) -> ApprovalAnswer | bool | None:
        """The approver's answer; none where somebody has taken an undone run away meanwhile, and goes on with it."""
        approver = self.approver or self.agent.approve
        answer = None if approver is None else approver(request)
        if inspect.isawaitable(answer):
            answer = await answer
        try:
            for _, lease in self._held.values():
                await self.journal.append(lease, [])  # refused where the lease is void
        except FenceLost:
            return None
        return answer

    def _driver(self, tree: RunTree, tools: Any) -> BoundAgent:
        """The agent that drives the undo: no model, and no tools but those that undo."""
        rules = [
            _denying(rule)
            for place in tree.places.values()
            if place.agent is not None
            for rule in place.agent.settings.rules
        ]
        return bind_without_model(self.agent, PLAN, UNDO, tuple(tools.values()), rules)

    def _listener(self, run_id: str, plan: Undoing | None) -> Listener | None:
        heard = self.on_event
        if heard is None or plan is None:
            return None

        def listen(event: Event) -> None:
            call_id = getattr(event.fact, "call_id", None)
            heard(run_id, None if call_id is None else plan.plan[number_of(call_id)], event)

        return listen

    # What came of it, in the runs that were undone

    async def note_outcomes(self, tree: RunTree) -> None:
        """Write down in the undone runs what came of each compensation, as far as it does not stand there."""
        for old in tree.all_undos:
            plan = old.started.undoes if old.started is not None else None
            for number, entry in enumerate(plan.plan if plan is not None else ()):
                call, by = old.calls.get(call_of(number)), f"{old.run_id}:{call_of(number)}"
                place = tree.places.get(entry.run_id)
                if (
                    call is not None
                    and call.observed is not None
                    and place is not None
                    and not _stands(place.trace, by)
                ):
                    await self.note_outcome(entry, by, call.observed)

    async def note_outcome(self, entry: Undo, by: str, seen: Observed) -> None:
        """Write down in the undone run what came of one compensation, unless it stands there."""
        trace, lease = await self._hold(entry.run_id)
        if _stands(trace, by):
            return
        note = "" if seen.ok else observation_text(seen)
        fact = Compensated(call_id=entry.call_id, by_call_id=by, ok=seen.ok, note=note)
        event = Event(len(trace), self.agent.clock.now(), fact)
        await self.journal.append(lease, [event])
        trace.append(event)


class _Compensations:
    """The compensations of which a run says what came of them. A view."""

    def __init__(self) -> None:
        self.by: set[str] = set()

    def fold(self, event: Event) -> None:
        """Take in the next event."""
        if isinstance(event.fact, Compensated):
            self.by.add(event.fact.by_call_id)


def _stands(trace: Trace, by: str) -> bool:
    """Whether a run says what came of a compensation of its calls."""
    return by in trace.view("compensations", _Compensations).by


class _Noting:
    """Hears the events of a run that undoes, and notes each outcome where it belongs while the run goes on."""

    def __init__(self, work: _UndoSession, plan: Undoing | None, listener: Listener | None, run_id: str) -> None:
        self._work, self._plan, self._listener, self._run_id = work, plan, listener, run_id
        self._queue: asyncio.Queue[Observed | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def __call__(self, event: Event) -> None:
        """Take in an event that the journal has."""
        if isinstance(event.fact, Observed):
            self._queue.put_nowait(event.fact)
        if self._listener is not None:
            self._listener(event)

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._note())

    async def __aexit__(self, *_: object) -> None:
        self._queue.put_nowait(None)
        if self._task is not None:
            await self._task

    async def _note(self) -> None:
        while (seen := await self._queue.get()) is not None:
            if self._plan is not None:
                entry = self._plan.plan[number_of(seen.call_id)]
                await self._work.note_outcome(entry, f"{self._run_id}:{seen.call_id}", seen)


def _denying(rule: CodeRule) -> CodeRule:
    """A rule in Python of which only the denials count: what it lets pass is asked all the same."""

    def denying(trace: Trace, action: Any, card: Any) -> Verdict | None:
        said = rule(trace, action, card)
        return None if isinstance(said, Verdict) and said.kind != "deny" else said

    denying.__name__ = getattr(rule, "__name__", type(rule).__name__)
    return denying


def _asking(tree: RunTree) -> Policy:
    """The policy of an undo: what the operator denies stays denied, and everything else is put before a person.

    The profile is one in which nobody is asked whether a call in doubt has happened: that is for who plans anew.
    """
    asking = Policy(profile="headless")
    for place in tree.places.values():
        for rule in place.trace.agent.policy.rules:
            pattern = rule.tool if rule.tool == "*" else f"{place.prefix}{rule.tool}"
            verdict: VerdictKind = "deny" if rule.verdict == "deny" else "ask"
            asking = with_rule(asking, replace(rule, tool=pattern, verdict=verdict))
    return with_rule(asking, Rule(verdict="ask", name="undo"))
