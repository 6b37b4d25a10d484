"""The two tools of an agent that plans: `make_plan`, which its model calls, and `run_step`, which its strategy calls.

A step is a run of its own, inside the run that planned it: with the same agent, the user's task and the plan in view,
what is left of the budget, and the results of the steps that it depends on as untrusted observations. What a person
allowed by approving the plan goes into the beginning of that run, with the values that the executor has found so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call, PlannedCall, PlanStep
from taoloop.core.events import ActionRequested, ApprovalGiven, ApprovalRefused, Resumed, RunStarted
from taoloop.core.text import chinese_texts, replace_surrogates
from taoloop.core.trace import Trace
from taoloop.core.value_origins import stated_origins
from taoloop.core.views.plans import (
    MAKE_PLAN,
    RUN_STEP,
    StepProgress,
    call_text,
    plan_progress,
)
from taoloop.core.views.steps import CallView
from taoloop.core.views.transcript import Result
from taoloop.dialects.prompt import observation_text
from taoloop.errors import ToolError
from taoloop.journals.base import Journal
from taoloop.policy import tainted, trusted_texts
from taoloop.policy.plan_grants import plan_grant
from taoloop.runtime.approvals.request import Approver
from taoloop.runtime.child_run import ChildAgent, ParentRun, drive_child, joined_tiers, load_trace, no_budget, no_child
from taoloop.runtime.engine.clock import new_nonce
from taoloop.runtime.texts import TEXTS
from taoloop.strategies.plan_execute.texts import TEXTS as PLAN_TEXTS
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.tool import RunContext, Tool
from taoloop.tools.toolbox import Toolbox

MAX_DEPTH = 3
"""How many runs a run may be inside, as for agents that are tools."""

STEP_TIMEOUT_S = 3600.0
"""The seconds that one step may take; its own limits usually end it."""

RESULT_CHARS = 8_000
"""What the planning model, and later steps, see of the result of a step; the whole is kept."""


class StepAgent(ChildAgent, Protocol):
    """The agent that carries out steps."""

    @property
    def toolbox(self) -> Toolbox:
        """Its tools."""
        ...

    def spec_for(self, task: str) -> AgentSpec:
        """The agent as plain data, in the language of a task."""
        ...


class StepTool:
    """The handler of `run_step`."""

    def __init__(self, agent: Callable[[], StepAgent], approver: Approver | None) -> None:
        self._agent, self._approver = agent, approver

    async def __call__(self, step: int, *, call: RunContext) -> str:
        """Carry out a step of the run's plan; returns its result.

        Raises:
            ToolError: the step failed, or what the plan expects of it does not hold.
        """
        parent_run = call.parent_run
        if not isinstance(parent_run, ParentRun):
            raise no_child("no_plan", step=step)
        progress = plan_progress(parent_run.parent).steps.get(step)
        if progress is None or progress.call is None or progress.call.requested.call_id != call.call_id:
            raise no_child("no_plan", step=step)
        started = await self._started(parent_run, progress.step)
        result = await drive_child(
            self._agent(), parent_run, started, call.call_id, approver=self._approver, rules=parent_run.rules
        )
        return _answer(step, result)

    async def _started(self, parent_run: ParentRun, step: PlanStep) -> RunStarted:
        """The beginning of the run of a step."""
        agent, parent = self._agent(), parent_run.parent
        outer = parent.started
        assert outer is not None  # noqa: S101  # it runs
        if outer.depth >= MAX_DEPTH:
            raise no_child("too_deep", depth=outer.depth)
        spec, nonce = agent.spec_for(parent.task), new_nonce()
        names, earlier = {card.name for card in parent.agent.tools}, await _earlier_calls(parent_run)
        spec = replace(
            spec,
            instructions=parent.agent.instructions,
            tools=tuple(card for card in spec.tools if card.name in names),
            limits=_remaining_calls(parent_run.limits(parent.limits), earlier),
            approved_tiers=joined_tiers(spec.approved_tiers, parent),
            policy=parent.agent.policy,
            evidence="off",  # the answer of the whole is held to it
            closing_turn=spec.closing_turn and not step.calls,  # no model is at work in a step that lists its calls
        )
        known = replace(await _with_values(parent_run, step), earlier=earlier)
        return RunStarted(
            task=replace_surrogates(_task(parent, known, nonce)),
            agent=spec,
            nonce=nonce,
            parent=parent.run_id,
            depth=outer.depth + 1,
            tainted=tainted(parent),
            trusted=trusted_texts(parent),
            user_instructions=outer.user_instructions,
            authority=outer.authority,
            labels=parent.user_labels,
            plan_step=known,
        )


def _answer(step: int, result: Result) -> str:
    """The result of a step.

    Raises:
        ToolError: it failed; says why, and what it has found all the same.
    """
    if result.status == "completed" and result.answer is not None:
        return result.answer
    kind = "step_failed" if result.status == "too_many_errors" else "step_ended"
    values = {"status": result.status, "reason": result.reason.rstrip(".。"), "answer": result.answer}
    message = TEXTS.run_text(f"{kind}_partly" if result.answer else kind, step=step, run_id=result.run_id, **values)
    code = "step_failed" if kind == "step_failed" else f"step_{result.status}"
    raise ToolError(message, code=code, hint=TEXTS.run_text("plan_broken_hint"))


async def _earlier_calls(parent_run: ParentRun) -> tuple[Call, ...]:
    """The calls of the steps before that matter to this one: those with an effect; all where calls are counted."""
    parent = parent_run.parent
    rules, cards = parent.agent.policy.rules, {card.name: card for card in parent.agent.tools}
    counts = parent.limits.max_tool_calls is not None or any(
        rule.calls_over is not None or rule.total_over for rule in rules
    )
    counted = {name for name, card in cards.items() if counts or card.tier not in ("read", "draft")}
    if not counted:
        return ()
    calls: list[Call] = []
    for call in parent.calls.values():
        if call.requested.tool != RUN_STEP or call.observed is None or call.observed.child is None:
            continue
        trace = await load_trace(parent_run.journal, call.observed.child)
        made = () if trace is None else trace.calls.values()
        calls += (
            Call(tool=inner.requested.tool, args=inner.args)
            for inner in made
            if inner.requested.tool in counted and _was_made(inner)
        )
    return tuple(calls)


async def last_step(journal: Journal, trace: Trace) -> Trace | None:
    """The run of the last step that a run had carried out, which counts the calls of those before it; None: no step."""
    for call in reversed(trace.calls.values()):
        if call.requested.tool == RUN_STEP and call.observed is not None and call.observed.child is not None:
            return await load_trace(journal, call.observed.child)
    return None


def _was_made(call: CallView) -> bool:
    """Whether a call was allowed, so that it has happened or may have."""
    return call.requested.verdict != "deny" and not isinstance(call.approval, ApprovalRefused)


def _remaining_calls(limits: Limits, earlier: tuple[Call, ...]) -> Limits:
    """The limits of a step after these calls of the steps before it.

    Raises:
        ToolError: no call is left.
    """
    if limits.max_tool_calls is None:
        return limits
    remaining = limits.max_tool_calls - len(earlier)
    if remaining <= 0:
        raise no_budget("max_tool_calls")
    return replace(limits, max_tool_calls=remaining)


async def _with_values(parent_run: ParentRun, step: PlanStep) -> PlanStep:
    """The step with what is known when it begins: the calls that are approved, the values at origins in other steps."""
    parent, progress = parent_run.parent, plan_progress(parent_run.parent)
    granted = _granted_tools(parent, progress.made_by, step)
    traces = {
        needed.step.number: trace
        for needed in progress.needed(step)
        if (trace := await _trace_of(parent_run, needed)) is not None
    }
    calls = tuple(
        replace(planned, is_granted=planned.tool in granted, values=_values(planned, traces)) for planned in step.calls
    )
    return replace(step, calls=calls)


def _values(planned: PlannedCall, traces: Mapping[int, Trace]) -> dict[str, tuple[Any, ...]]:
    """What is found at the origins that a call states, in the runs of other steps."""
    return {
        origin.key: tuple(
            value
            for number, trace in traces.items()
            if origin.step in (None, number)
            for value in plan_grant(trace).found_values(planned, origin)
        )
        for _, origin in stated_origins(planned.args)
    }


async def _trace_of(parent_run: ParentRun, progress: StepProgress) -> Trace | None:
    """The run that carried out a step; None unless that is done."""
    observed = progress.call.observed if progress.call is not None else None
    if observed is None or not observed.ok or observed.child is None:
        return None
    return await load_trace(parent_run.journal, observed.child)


def _granted_tools(parent: Trace, made_by: CallView | None, step: PlanStep) -> set[str]:
    """The tools of a step whose calls a person approved with the plan, for the tools as they were then.

    What a fork copied from another run was approved for that one, which may have made the calls.
    """
    if made_by is None or not isinstance(made_by.approval, ApprovalGiven) or parent.started is None:
        return set()
    if parent.started.forked_at is not None and made_by.requested.step < parent.started.forked_at:
        return set()
    tools = {planned.tool for planned in step.calls}
    for event in reversed(parent.events):
        fact = event.fact
        if isinstance(fact, Resumed):
            tools -= {card.name for card in fact.cards}
        elif isinstance(fact, ActionRequested) and fact.call_id == made_by.requested.call_id:
            break
    return tools


def _task(parent: Trace, step: PlanStep, nonce: str) -> str:
    """What the run of a step is asked to do, with the goal of the whole in view."""
    prompts, language, progress = parent.agent.prompts, parent.agent.language, plan_progress(parent)
    plan = "" if progress.plan is None else progress.plan.text(language)
    results = [
        observation_text(needed.call.requested, needed.call.observed, prompts, nonce)
        for needed in progress.needed(step)
        if needed.call is not None and needed.call.observed is not None
    ]
    if parent.agent.policy.observations == "handles":  # no model of the run may read them
        results = [TEXTS.text(language, "plan_step_hidden")] if results else []
    calls = "\n".join(f"- {call_text(language, planned)}" for planned in step.calls)
    parts = {
        "calls": TEXTS.text(language, "plan_step_calls", calls=calls) if calls else "",
        "expect": TEXTS.text(language, "plan_step_expect", expect=step.expect) if step.expect else "",
        "results": "\n\n".join(results) or TEXTS.text(language, "plan_step_no_results"),
    }
    filled = prompts.fill("plan_step", number=step.number, goal=step.goal, task=parent.task, plan=plan, **parts)
    return filled.rstrip()


_CALL_SCHEMA = {
    "type": "object",
    "properties": {
        "tool": {"type": "string", "description": TEXTS.english["plan_arg_tool"]},
        "args": {"type": "object", "description": TEXTS.english["plan_arg_args"]},
    },
    "required": ["tool"],
    "additionalProperties": False,
}
_STEP_SCHEMA = {
    "type": "object",
    "properties": {
        "number": {"type": "integer", "minimum": 1, "description": TEXTS.english["plan_arg_number"]},
        "goal": {"type": "string", "minLength": 1, "description": TEXTS.english["plan_arg_goal"]},
        "depends_on": {
            "type": "array",
            "items": {"type": "integer"},
            "description": TEXTS.english["plan_arg_depends_on"],
        },
        "calls": {"type": "array", "items": _CALL_SCHEMA, "description": TEXTS.english["plan_arg_calls"]},
        "expect": {"type": "string", "description": TEXTS.english["plan_arg_expect"]},
    },
    "required": ["number", "goal"],
    "additionalProperties": False,
}
_PLAN_CARD = ToolCard(
    name=MAKE_PLAN,
    purpose=TEXTS.english["plan_purpose"],
    use_when=TEXTS.english["plan_use_when"],
    input_schema={
        "type": "object",
        "properties": {"steps": {"type": "array", "items": _STEP_SCHEMA, "minItems": 1}},
        "required": ["steps"],
        "additionalProperties": False,
    },
    tier="read",
    egress=False,
    approval="required",
    parallel=False,
    roles={"steps": "value"},
)
_STEP_CARD = ToolCard(
    name=RUN_STEP,
    purpose=TEXTS.english["plan_step_purpose"],
    input_schema={
        "type": "object",
        "properties": {"step": {"type": "integer", "minimum": 1}},
        "required": ["step"],
        "additionalProperties": False,
    },
    tier="draft",
    timeout_s=STEP_TIMEOUT_S,
    max_preview_chars=RESULT_CHARS,
    idempotent=True,  # a repeated call resumes the run that the first one started
    egress=False,
    roles={"step": "value"},
    reversible=False,  # the calls of its run are undone there
)


def with_plan_tools(toolbox: Toolbox, agent: Callable[[], StepAgent], approver: Approver | None) -> Toolbox:
    """The tools of an agent with `make_plan` and `run_step`; they stay as they are if they have them.

    Raises:
        ToolDefinitionError: a tool of the agent has one of these names.
    """
    if RUN_STEP in toolbox and isinstance(toolbox.get(RUN_STEP).handler, StepTool):
        return toolbox
    return Toolbox([*toolbox, *_plan_tools(agent, approver)])


def _plan_tools(agent: Callable[[], StepAgent], approver: Approver | None) -> Iterator[Tool]:
    """`make_plan` and `run_step`; `agent` gives the one that carries out steps, `approver` answers its questions."""
    chinese = chinese_texts("runtime")
    yield replace(tool_from_card(_PLAN_CARD, _make_plan, chinese=chinese), inline=True)
    yield replace(tool_from_card(_STEP_CARD, StepTool(agent, approver), chinese=chinese), runs_inside=True)


def _make_plan(steps: list[Any]) -> str:
    """Accept a plan: the strategy has checked it, and whoever takes the answer of a person what they made of it."""
    return PLAN_TEXTS.run_text("plan_made", count=len(steps))
