"""What a call of an agent passes to the run that it becomes: journal, approver, and its share of the budget.

All the progress of a run may be inside such runs: its own trace then shows nothing but one start of the same call after
another. `deaths_in_a_row` counts the deaths since any of them made progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from taoloop.core.agent_spec import Limits
from taoloop.core.cards.tool_card import TIERS, Tier
from taoloop.core.events import ActionStarted, DoubtSettled, InDoubt, Observed, Resumed, RunStarted
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.trace import Trace
from taoloop.core.views.steps import RELEASED
from taoloop.core.views.transcript import Result
from taoloop.errors import RunExists, RunNotFound, TaoError, ToolError
from taoloop.journals.base import Journal
from taoloop.policy import CodeRule
from taoloop.runtime.approvals.request import Approver, SerializedApprover
from taoloop.runtime.approvals.run_excerpt import read_excerpt
from taoloop.runtime.texts import TEXTS


@dataclass(frozen=True, slots=True)
class BudgetShare:
    """What a run had used when calls of several agents began together: each may use its share of the rest."""

    agents: int
    """How many agents share the rest."""

    tokens: int
    """The tokens that were used."""

    cost_usd: float
    """The cost so far, in US dollars."""


@dataclass(slots=True, kw_only=True)
class ParentRun:
    """The run around a call of an agent, and the child run that the call becomes."""

    parent: Trace
    """The run that makes the call."""

    journal: Journal
    """The journal of both runs."""

    approver: Approver | None
    """Who answers the questions of the parent."""

    share: BudgetShare
    """What the child may use."""

    question_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a question is asked: all children share it, so that a person gets one question at a time."""

    redactor: Redactor | None = None
    """Knows the secrets of the parent."""

    rules: tuple[CodeRule, ...] = ()
    """The rules in Python by which the calls of the parent are judged: also those of agents that handed over to it."""

    deps: Any = None
    """What the program gave the parent."""

    child: Trace | None = None
    """The child run, once it has begun."""

    def approver_for(self, own: Approver | None) -> Approver | None:
        """Who answers in the child: its agent's own approver, else the parent's; one question at a time."""
        approver = own or self.approver
        return None if approver is None else SerializedApprover(approver, self.question_lock)

    @property
    def waits_for(self) -> str | None:
        """What the child waits for, in words; None unless it waits for a person."""
        child = self.child
        if child is None or child.paused is None:
            return None
        waiting = (call.requested for call in child.pending.values() if call.needs_person)
        calls = ", ".join(f"{requested.tool} ({requested.call_id}, {requested.tier})" for requested in waiting)
        return f"{calls or child.paused.reason} in run {child.run_id}"

    @property
    def tiers(self) -> set[Tier]:
        """The tiers of the calls that wait for a person in the child and in its own children."""
        child = self.child
        if child is None or child.paused is None:
            return set()
        tiers = {call.requested.tier for call in child.pending.values() if call.needs_person}
        return {*child.paused.tiers, *(tier for tier in tiers if tier is not None)}

    def settled(self, observed: Observed) -> Observed:
        """The observation with its link to the child, and with what the child used."""
        child = self.child
        if child is None or child.started is None:
            return observed
        cost_usd = None if child.unpriced_calls else child.cost_usd
        return replace(observed, child=child.run_id, usage=child.usage, cost_usd=cost_usd)

    def limits(self, own: Limits) -> Limits:
        """The stricter of an agent's own limits and what is left of the parent's tokens, money and time.

        Raises:
            ToolError: nothing is left.
        """
        outer, parent, share = self.parent.limits, self.parent, self.share
        # the parent's wall time includes the child's; work and tokens count once the call has its outcome
        child_wall_s = self.child.wall_s if self.child is not None else 0.0
        tokens = _remaining(outer.max_tokens, share.tokens, share.agents)
        remaining = {
            "max_tokens": None if tokens is None else int(tokens),
            "max_cost_usd": _remaining(outer.max_cost_usd, share.cost_usd, share.agents),
            "max_wall_s": _remaining(outer.max_wall_s, parent.wall_s - child_wall_s),
            "max_working_s": _remaining(outer.max_working_s, parent.working_s),
        }
        stricter: dict[str, Any] = {}
        for name, amount in remaining.items():
            if amount is None:
                continue
            if amount <= 0:
                raise no_budget(name)
            limit = getattr(own, name)
            if limit is None or amount < limit:
                stricter[name] = amount
        return replace(own, **stricter)


def _remaining(allowed: float | None, used: float, share: int = 1) -> float | None:
    return None if allowed is None else (allowed - used) / share


class ChildAgent(Protocol):
    """What drives a child run: an agent that is bound to its parts."""

    async def start(
        self,
        journal: Journal,
        trace: Trace,
        started: RunStarted,
        *,
        approver: Approver | None = None,
        redactor: Redactor | None = None,
        rules: tuple[CodeRule, ...] = (),
        deps: Any = None,
    ) -> Result:
        """Start the run of an empty trace."""
        ...

    async def continue_run(
        self,
        journal: Journal,
        trace: Trace,
        *,
        limits: Limits,
        approved_tiers: tuple[Tier, ...] | None = None,
        approver: Approver | None = None,
        redactor: Redactor | None = None,
        rules: tuple[CodeRule, ...] = (),
        deps: Any = None,
    ) -> Result:
        """Resume the run."""
        ...

    def inherited_deps(self, deps: Any) -> Any:
        """The dependencies of the parent if it can take them, else None."""
        ...

    def require_resumable(self, trace: Trace) -> None:
        """Refuse a run that it cannot resume."""
        ...

    def result_of(self, trace: Trace) -> Result:
        """The result of a run."""
        ...


def joined_tiers(own: tuple[Tier, ...], parent: Trace) -> tuple[Tier, ...]:
    """The tiers that an agent or the run around it has approved in advance, from the mildest."""
    return tuple(tier for tier in TIERS if tier in own or tier in parent.approved_tiers)


async def drive_child(
    agent: ChildAgent,
    parent_run: ParentRun,
    started: RunStarted,
    call_id: str,
    *,
    approver: Approver | None = None,
    rules: tuple[CodeRule, ...] = (),
    approved_tiers: Callable[[tuple[Tier, ...], Trace], tuple[Tier, ...]] = joined_tiers,
) -> Result:
    """Start the run of a call, or resume it where an earlier attempt stopped.

    Its id follows from the call, so a call that is repeated after a crash finds the run that it started. `approver`
    answers its questions; None: the parent's. `rules` are asked before those of its agent. `approved_tiers` joins the
    tiers that it has approved with those of the parent when it is resumed.

    Raises:
        ToolError: another run has the id.
        TaoError: its tools have changed since it began.
    """
    parent, journal = parent_run.parent, parent_run.journal
    trace, approver = Trace(inner_run_id(parent.run_id, call_id)), parent_run.approver_for(approver)
    parent_run.child = trace
    redactor, deps = parent_run.redactor, agent.inherited_deps(parent_run.deps)
    try:
        return await agent.start(journal, trace, started, approver=approver, redactor=redactor, rules=rules, deps=deps)
    except RunExists:
        trace = Trace(trace.run_id, await journal.load(trace.run_id))
        if trace.started is None or trace.started.parent != parent.run_id:
            parent_run.child = None
            raise no_child("run_exists", run_id=trace.run_id) from None
        parent_run.child = trace
    if trace.finished is not None and trace.finished.status != "stopped":
        return agent.result_of(trace)
    try:
        agent.require_resumable(trace)  # its tools may have changed since it began
    except TaoError:
        parent_run.child = None
        raise
    return await agent.continue_run(
        journal,
        trace,
        limits=parent_run.limits(trace.agent.limits),
        approved_tiers=approved_tiers(trace.approved_tiers, parent),
        approver=approver,
        redactor=redactor,
        rules=rules,
        deps=deps,
    )


def no_child(code: str, **values: object) -> ToolError:
    """Why a call cannot become a run."""
    return ToolError(TEXTS.run_text(f"child_{code}", **values), code=code, hint=TEXTS.run_text("child_no_agent_hint"))


def no_budget(name: str) -> ToolError:
    """Why a call cannot become a run: nothing is left of this limit of the run that makes it."""
    hint = TEXTS.run_text("child_no_budget_hint")
    return ToolError(TEXTS.run_text("child_no_budget", name=name), code="child_budget_exceeded", hint=hint)


NO_PROGRESS = (ActionStarted, InDoubt, DoubtSettled, Resumed)
"""What a process writes before it does anything that its predecessor had not done."""


class Progress(NamedTuple):
    """How far runs have come."""

    events: int = 0
    """How many events they have that are progress; it never becomes less."""

    at: float = float("-inf")
    """When the last of these was written, in seconds since the epoch."""


def inner_run_id(run_id: str, call_id: str) -> str:
    """The id of the run that a call of an agent becomes."""
    return f"{run_id}.{call_id.removeprefix('call_')}"


async def load_trace(journal: Journal, run_id: str) -> Trace | None:
    """The trace of a run; None where there is none."""
    try:
        events = await journal.load(run_id)
    except RunNotFound:
        return None
    return Trace(run_id, events) if events else None


async def inner_progress(journal: Journal, trace: Trace, call_id: str) -> Progress:
    """The progress of the run that an open call became, with those inside it; none if it became no run."""
    inner = await load_trace(journal, inner_run_id(trace.run_id, call_id))
    if inner is None or inner.started is None or inner.started.parent != trace.run_id:
        return Progress()
    moved = [event for event in inner.events if not isinstance(event.fact, NO_PROGRESS)]
    progress = [Progress(len(moved), moved[-1].at)]
    progress += [await inner_progress(journal, inner, call_id) for call_id in inner.pending]
    return Progress(sum(part.events for part in progress), max(part.at for part in progress))


async def deaths_in_a_row(journal: Journal, trace: Trace) -> int:
    """How often a run was resumed since it, or a run inside it, made progress, or a person had it tried again.

    An excerpt of the run will do.
    """
    last_at, deaths = await _inner_progress_at(journal, trace), 0
    for event in reversed(trace.events):
        if event.at < last_at or not isinstance(event.fact, NO_PROGRESS):
            break
        if isinstance(event.fact, Resumed):
            if event.fact.reason.startswith(RELEASED):
                break
            deaths += 1
    return deaths


async def _inner_progress_at(journal: Journal, trace: Trace) -> float:
    """When a run inside the open calls of a run made progress last; the rest of these runs is not read."""
    last_at = Progress().at
    for call_id in trace.pending:
        try:
            inner = await read_excerpt(journal, inner_run_id(trace.run_id, call_id))
        except RunNotFound:
            continue
        if inner.started is None or inner.started.parent != trace.run_id:
            continue
        moved = (event.at for event in reversed(inner.events) if not isinstance(event.fact, NO_PROGRESS))
        last_at = max(last_at, next(moved), await _inner_progress_at(journal, inner))
    return last_at
