"""Plan-and-Execute as a pure function of the trace: plan, carry out, watch, and plan again where that breaks the plan.

The model is asked for a plan, and at the end for the answer; between the two the executor runs one step after another,
each as a run of its own, without asking. A plan is a call of `make_plan` and a step is a call of `run_step`: so it is
recorded, put before a person, edited, refused, resumed and replayed as any call is, and needs no event. The idea is
that of Plan-and-Solve (Wang et al., 2023) and of the planner-executor agents built on it; its known risk is an
outdated plan, which the monitoring of each step bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import ClassVar

from taoloop.core.action_requests import failed_observation
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.questions import is_question
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import PAGING_TOOL, is_discovery_tool, listed_cards
from taoloop.core.decision import PLAN_MODEL, Act, Call, PlanStep, call_digest
from taoloop.core.effects import Effect, Finish, Record, RequestCalls
from taoloop.core.events import Fact, Fault, Finished, LimitReached, new_action_requested
from taoloop.core.text import field_error
from taoloop.core.trace import Trace
from taoloop.core.views.plans import (
    INVALID_PLAN,
    MAKE_PLAN,
    PLAN_RULE,
    RUN_STEP,
    PlanProgress,
    plan_progress,
    read_plan,
)
from taoloop.dialects.conversation import Conversation
from taoloop.errors import ConfigError, IllegalEvent
from taoloop.policy.texts import reason_text
from taoloop.strategies.plan_execute.checks import MOST_STEPS, is_plannable, normalised_plan, plan_problems
from taoloop.strategies.plan_execute.question import APPROVALS, Approve, plan_verdict
from taoloop.strategies.plan_execute.step_strategy import executor_decision
from taoloop.strategies.plan_execute.texts import TEXTS
from taoloop.strategies.react import LoopStrategy
from taoloop.strategies.settings import write_name
from taoloop.strategies.termination import exceeded_limit

NOT_IN_PLAN = "not_in_plan"
"""The code of the observation of a call that the planning model made instead of planning it."""


class _Planner(LoopStrategy):
    """The loop in which the model plans and answers. The executor's steps are not among those that are limited."""

    def step_limit(self, trace: Trace) -> LimitReached | None:
        """The limit of plans; otherwise the step limit, for the decisions of the model alone."""
        allowed, used = trace.limits.max_steps, trace.step_count - plan_progress(trace).runs
        if allowed is None or used < allowed:
            return None
        return LimitReached(limit="max_steps", status="max_steps_exceeded", allowed=allowed, used=used)

    def conversation(self, trace: Trace) -> Conversation:
        """The conversation, in which only the plan can be called, and the tools of its steps are described."""
        return Conversation(self.name, trace.events, tools=True, reasons=True, offers=is_offered)


_PLANNER = _Planner(name="plan_execute", acts=True, reasons=True)


def is_offered(card: ToolCard) -> bool:
    """Whether the model that plans may call a tool itself: to plan, to read what it needs for that, or to hand over.

    It may ask the user and load a skill, on which a plan can depend. All other reads are for steps: what they return
    cannot steer the first plan.
    """
    if card.name in (MAKE_PLAN, PAGING_TOOL) or is_discovery_tool(card) or card.hands_over_to:
        return True
    return is_question(card) or (bool(card.contents) and card.tier == "read")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanExecute:
    """Plan first, carry out each step as a run of its own, and plan again where a step breaks the plan.

    Raises:
        ConfigError: a setting has no possible value.
    """

    max_replans: int = 2
    """How often another plan may be made, 0 to 100; 2 by default. Plans that a person refused count as well."""

    max_plan_steps: int = 12
    """How many steps a plan may have, 1 to 100; 12 by default: a longer plan is outdated before it ends."""

    approve: str = "writes"
    """When a plan is put before a person: `writes`, where it lists a call that may change something or send data out
    (the default); `always`; `never`. Where the policy's profile has nobody to ask, no plan is asked about."""

    kind: ClassVar[str] = "plan_execute"
    """The name without settings."""

    rules: ClassVar[tuple[str, ...]] = ("plan_execute", "react")
    """Whose rules and texts are in the prompts."""

    def __post_init__(self) -> None:
        """Reject settings under which no plan could be followed."""
        for name, least in (("max_replans", 0), ("max_plan_steps", 1)):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_STEPS:
                expected = f"a whole number from {least} to {MOST_STEPS}"
                raise field_error(ConfigError, "setting", expected, owner=self.kind, name=name, value=value)
        if self.approve not in APPROVALS:
            expected = ", ".join(APPROVALS)
            raise field_error(ConfigError, "setting", expected, owner=self.kind, name="approve", value=self.approve)

    @property
    def name(self) -> str:
        """The name with all settings, as a trace stores it."""
        return write_name(self.kind, self)

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect."""
        if trace.phase == "decided":
            return self._request(agent, trace)
        if trace.phase != "thinking" or trace.limit_reached is not None:
            return _PLANNER.next(agent, trace)
        progress = plan_progress(trace)
        if progress.invalid > 1:
            detail = "" if (last := _last_error(trace)) is None else last.message
            reason = TEXTS.text(agent.language, "plan_refused_twice", detail=detail)
            return Finish(fact=Finished(status="unreadable", answer=None, reason=reason))
        step = progress.due
        if step is None:
            return self._ask(agent, trace, progress)
        if (reached := exceeded_limit(trace)) is not None:
            return Record(facts=(reached,))
        reason = TEXTS.text(agent.language, "plan_step_reason", number=step.number, goal=step.goal)
        call = _step_call(step)
        allowed = _allowed(agent, trace, call, trace.card(RUN_STEP))
        return Record(facts=(executor_decision(trace, call, reason), allowed))

    def _ask(self, agent: AgentSpec, trace: Trace, progress: PlanProgress) -> Effect:
        """Ask the model: for the first plan, for another one, or for the answer."""
        used = progress.plans - 1
        if used >= self.max_replans and (progress.is_broken or _is_refused(progress)):
            fact = LimitReached(
                limit="max_replans", status="max_steps_exceeded", allowed=self.max_replans, used=max(used, 0)
            )
            return Record(facts=(fact,))
        return _PLANNER.next(agent, trace)

    def _request(self, agent: AgentSpec, trace: Trace) -> Effect:
        """Take a decision of the model: a plan is checked and perhaps asked about, other calls are refused."""
        reply = trace.last_reply
        if reply is None or not isinstance(reply.decision, Act):
            raise IllegalEvent(f"Run {trace.run_id}: no decision to act on.")
        calls = reply.decision.calls
        due = plan_progress(trace).due
        if (
            reply.model == PLAN_MODEL and due is not None and calls == (_step_call(due),)
        ):  # its call was not recorded yet
            return Record(facts=(_allowed(agent, trace, calls[0], trace.card(RUN_STEP)),))
        if len(calls) == 1 and calls[0].tool == MAKE_PLAN:
            return Record(facts=self._planned(agent, trace, calls[0]))
        cards = [trace.card(call.tool) for call in calls]
        if all(card is not None and is_offered(card) and card.name != MAKE_PLAN for card in cards):
            return RequestCalls(reply.decision, reply.step)
        text = "plan_alone" if any(call.tool == MAKE_PLAN for call in calls) else "plan_only"
        fault = Fault(code=NOT_IN_PLAN, message=TEXTS.text(agent.language, text))
        return Record(facts=_refused(trace, calls, fault))

    def _planned(self, agent: AgentSpec, trace: Trace, call: Call) -> tuple[Fact, ...]:
        """What follows from a plan of the model: it is refused with what is wrong, or requested."""
        args = normalised_plan(call.args, trace.card) if isinstance(call.args, Mapping) else call.args
        progress = plan_progress(trace)
        if progress.plans > self.max_replans:  # a broken one ends the run before the model is asked (`_ask`)
            text = TEXTS.text(agent.language, "plan_no_other", allowed=self.max_replans)
            return _refused(trace, (call,), Fault(code=INVALID_PLAN, message=text))
        problems = plan_problems(args, trace.card, progress, agent.language, max_steps=self.max_plan_steps)
        if problems:
            return _refused(trace, (call,), invalid_plan(problems, agent.tools, agent.language))
        plan = read_plan(args)
        assert plan is not None  # noqa: S101  # else there is a problem
        approve: Approve = self.approve  # type: ignore[assignment]  # checked when it was made
        tier, verdict = plan_verdict(trace, plan, approve)
        requested = new_action_requested(
            step=trace.step_count,
            call_id=f"call_{trace.calls_requested + 1}",
            tool=MAKE_PLAN,
            args=args,
            tier=tier,
            verdict=verdict.kind,
            digest=call_digest(MAKE_PLAN, args),
            reasons=verdict.reasons,
            ref=call.ref,
            rule=verdict.rule,
            policy="" if verdict.kind == "allow" else agent.policy.version,
            sources=verdict.sources,
            reason_codes=verdict.reason_codes,
        )
        return (requested,)


def _step_call(step: PlanStep) -> Call:
    return Call(tool=RUN_STEP, args={"step": step.number})


def invalid_plan(problems: tuple[str, ...], tools: tuple[ToolCard, ...], language: str) -> Fault:
    """Why a plan is refused, with the tools that its steps may call."""
    names = [card.name for card in listed_cards(tools) if is_plannable(card)]
    hint = TEXTS.text(language, "plan_invalid_hint", tools=", ".join(names[:20]) + (" …" if len(names) > 20 else ""))
    text = TEXTS.text(language, "plan_invalid", problems=" ".join(problems[:10]))
    return Fault(code=INVALID_PLAN, message=text, hint=hint)


def _is_refused(progress: PlanProgress) -> bool:
    """Whether the last plan was refused by a person, so that there is none to follow."""
    return progress.plan is None and progress.plans > 0


def _last_error(trace: Trace) -> Fault | None:
    call = next(reversed(trace.calls.values()), None)
    return None if call is None or call.observed is None else call.observed.error


def _allowed(agent: AgentSpec, trace: Trace, call: Call, card: ToolCard | None) -> Fact:
    """The executor's own call, which is not judged: what happens inside it is, call by call."""
    return new_action_requested(
        step=trace.step_count + (trace.phase != "decided"),
        call_id=f"call_{trace.calls_requested + 1}",
        tool=call.tool,
        args=call.args,
        tier=card.tier if card is not None else None,
        verdict="allow",
        digest=_step_digest(call.args["step"]),
        reasons=_step_reasons(agent.language),
        rule=PLAN_RULE,
        reason_codes=("plan",),
    )


@cache
def _step_reasons(language: str) -> tuple[str, ...]:
    return (reason_text(language, "plan"),)


@lru_cache(maxsize=256)
def _step_digest(number: int) -> str:
    return call_digest(RUN_STEP, {"step": number})


def _refused(trace: Trace, calls: tuple[Call, ...], fault: Fault) -> tuple[Fact, ...]:
    """The calls of a decision, none of which is made."""
    requested = [
        new_action_requested(
            step=trace.step_count,
            call_id=f"call_{number}",
            tool=call.tool,
            args=call.args,
            tier=card.tier if (card := trace.card(call.tool)) is not None else None,
            verdict="deny",
            digest=call_digest(call.tool, call.args),
            reasons=(fault.message,),
            ref=call.ref,
        )
        for number, call in enumerate(calls, trace.calls_requested + 1)
    ]
    return (*requested, *(failed_observation(fact.call_id, fault) for fact in requested))
