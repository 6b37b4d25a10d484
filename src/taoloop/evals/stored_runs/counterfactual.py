"""What stored runs would have become with another model, prompt or policy, as far as their record can tell.

A run is gone through step by step. The model (if another one or another prompt is tried) is asked what the run would
have asked it, on the recorded observations; the policy judges the recorded calls. Up to the first decision that
differs, the record is what would have happened; beyond it nobody knows, so the run ends there. No tool is called, no
person is asked and nothing is written: there is no effect on the world.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.coercion import coerce_args
from taoloop.core.cards.tool_search import unwrap_call_tool
from taoloop.core.decision import PLAN_MODEL, Act, Answer, Call, Decision
from taoloop.core.effects import CallModel, Effect, Finish, Record
from taoloop.core.events import ActionRequested, Fact, ModelReplied, ReplyRejected
from taoloop.core.message import SIDE_PURPOSES
from taoloop.core.policy import Policy, with_pin
from taoloop.core.trace import Trace
from taoloop.core.views.marks import run_marks
from taoloop.core.views.run_diff import Difference, decision_differences
from taoloop.core.views.steps import Step
from taoloop.dialects.reply_events import reply_to_events
from taoloop.errors import ConfigError, ModelError, ModelTimeout, TaoError
from taoloop.evals.checks.text_match import exact_match
from taoloop.evals.stored_runs.described_runs import spec_of_now, with_spec
from taoloop.evals.stored_runs.divergences import Counterfactual, Divergence, DivergenceKind, RunTrial
from taoloop.journals.base import Journal
from taoloop.models.base import Model
from taoloop.policy.review.verdict_changes import ReviewedCall, review_calls
from taoloop.runtime.agent import Agent
from taoloop.runtime.engine.clock import within
from taoloop.runtime.engine.redaction import redactor_for
from taoloop.runtime.engine.run_artifacts import RunArtifacts
from taoloop.runtime.engine.tool_execution import fault_of
from taoloop.runtime.output_type import validator_for
from taoloop.runtime.texts import TEXTS
from taoloop.strategies import get_strategy
from taoloop.translation import Translator, mark

translate = Translator("evals")

_SPENT = mark("The cost limit was reached before its end.")
_DERIVED = 8  # facts in a row that follow from the trace alone, before a model is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedChange:
    """What is tried in place of what the runs had. At least one of the three."""

    agent: Agent | None = None
    """An agent of now: its instructions, prompts, tools' cards, strategy and policy, and its model if it is asked."""
    model: Model | None = None
    """Who answers; None: the recorded replies stand, and only the policy is tried."""
    policy: Policy | None = None
    """The policy; None: that of the agent, or of the run."""

    def spec(self, recorded: Trace, agent: Agent | None) -> AgentSpec:
        """The description of a run under this change; `agent` is `self.agent` in the language of the run.

        Raises:
            ConfigError: the agent cannot be described.
        """
        spec = recorded.agent
        if agent is not None:
            spec = spec_of_now(spec, agent, recorded.task, keeps_model=self.model is None)
        if self.model is not None:
            spec = replace(spec, model=self.model.spec)
        policy = spec.policy if self.policy is None else self.policy
        return replace(spec, policy=with_pin(policy, recorded.agent.policy.pin))


async def try_change(
    change: TriedChange,
    runs: AsyncIterator[Trace],
    journal: Journal,
    *,
    described: dict[str, Any] | None = None,
    concurrency: int = 4,
    max_cost_usd: float | None = None,
) -> Counterfactual:
    """Try a change on stored runs.

    Args:
        change: What is tried.
        runs: The runs; see `selected_runs`.
        journal: Where their images are. It is only read.
        described: What was tried, in words for reports.
        concurrency: How many runs are gone through at once.
        max_cost_usd: Once the replies have cost this much, the other runs are left out; None: no limit.

    Raises:
        JournalError: a run cannot be read.
    """
    trial = _ChangeTrial(change, journal, max_cost_usd)
    room, trials = asyncio.Semaphore(concurrency), dict[int, RunTrial]()

    async def try_run(number: int, trace: Trace) -> None:
        try:
            trials[number] = await trial.run(trace)
        finally:
            room.release()

    try:
        async with asyncio.TaskGroup() as group:
            number = 0
            async for trace in runs:  # only those that are gone through are in memory
                await room.acquire()
                group.create_task(try_run(number, trace))
                number += 1
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    in_order = tuple(trials[number] for number in sorted(trials))
    return Counterfactual(change=described or {}, trials=in_order, cost_usd=trial.cost_usd)


class _ChangeTrial:
    """Tries one change on runs, and adds up what the model costs."""

    def __init__(self, change: TriedChange, journal: Journal, max_cost_usd: float | None) -> None:
        self.change, self.journal = change, journal
        self.cost_usd: float | None = 0.0
        self._max_cost_usd = max_cost_usd
        self._agents: dict[str, Agent] = {}
        self._redactor = redactor_for(None, ())

    async def run(self, recorded: Trace) -> RunTrial:
        """What the change makes of one run."""
        if reason := self._reason_to_leave_out(recorded):
            return _run_trial(recorded, "left_out", reason=reason)
        try:
            now = with_spec(recorded, self.change.spec(recorded, self._agent_for(recorded)))
            return await self._walk(recorded, now)
        except ModelError as error:
            return _run_trial(recorded, "failed", reason=error.message)
        except TaoError as error:  # a run of another version, a strategy that is not known here
            return _run_trial(recorded, "left_out", reason=error.message)

    def _reason_to_leave_out(self, recorded: Trace) -> str:
        agent = self.change.agent
        if recorded.started is None or not recorded.steps:
            return translate(mark("No model decided anything in it."))
        if agent is not None and agent.name != recorded.agent.name:
            return translate(mark("It is a run of the agent {name!r}."), name=recorded.agent.name)
        return ""

    @property
    def _is_spent(self) -> bool:
        limit = self._max_cost_usd
        return limit is not None and (self.cost_usd is None or self.cost_usd >= limit)

    def _agent_for(self, recorded: Trace) -> Agent | None:
        """The agent in the language of a run; one for each language, so that its tools are loaded once."""
        agent, language = self.change.agent, recorded.agent.language
        if agent is None:
            return None
        if language not in self._agents:
            self._agents[language] = replace(agent, language=language)
        return self._agents[language]

    async def _walk(self, recorded: Trace, whole: Trace) -> RunTrial:
        """Go through a run: `recorded` as it was, `whole` the same events under the description that is tried."""
        verdicts = self._changed_verdicts(whole)
        decisions = _decisions_by_reply(recorded)
        now, same = Trace(recorded.run_id), 0
        for event in whole.events:
            step = decisions.get(id(event.fact))
            if step is not None and self.change.model is not None:
                if self._is_spent:
                    return _run_trial(recorded, "left_out", steps=same, reason=translate(_SPENT))
                if (divergence := await self._ask(now, step)) is not None:
                    return _run_trial(recorded, "diverged", steps=same, divergence=divergence)
                same += 1
            if isinstance(event.fact, ActionRequested) and event.fact.call_id in verdicts:
                divergence = _verdict_divergence(verdicts[event.fact.call_id])
                return _run_trial(recorded, "diverged", steps=same, divergence=divergence)
            now.append(event)
        return _run_trial(recorded, "same", steps=len(decisions))

    def _changed_verdicts(self, whole: Trace) -> dict[str, ReviewedCall]:
        """The calls whose verdict is another one under the policy that is tried, by their ids."""
        agent = self.change.agent
        if agent is None and self.change.policy is None:
            return {}
        rules = () if agent is None else tuple(agent.rules)
        reviewed = review_calls(whole, whole.agent.policy, rules=rules)
        return {call.requested.call_id: call for call in reviewed if call.change != "same"}

    async def _ask(self, now: Trace, step: Step) -> Divergence | None:
        """Ask the model for the decision of a step; None if it is the recorded one.

        Raises:
            ModelError: there is no reply.
        """
        branch: Trace | None = None  # what followed here and is not in the record: repairs
        number, rejected = 0, ""
        for _ in range(_DERIVED + now.agent.repair_turns):
            trace = branch or now
            effect = get_strategy(now.agent.strategy).next(now.agent, trace)
            if isinstance(effect, CallModel) and effect.request.purpose not in SIDE_PURPOSES:
                number = number or effect.step
                if effect.step != number:
                    break  # it cannot be read, and is not repaired: the next step begins
                facts = await self._reply(trace, effect)
                last = facts[-1]
                if not isinstance(last, ReplyRejected):
                    return _decision_divergence(now, step, _decision_in(facts))
                rejected = last.code
            elif isinstance(effect, Record):
                facts = list(effect.facts)
            elif rejected:
                break  # it cannot be read, and the run ends
            else:
                return _course_divergence(step, effect)
            branch = branch or Trace(now.run_id, now.events)
            for fact in facts:
                branch.add(fact, now.events[-1].at)
        return _decision_divergence(now, step, None, rejected)

    async def _reply(self, trace: Trace, effect: CallModel) -> list[Fact]:
        model = self.change.model
        assert model is not None  # noqa: S101  # only then it is asked
        request = effect.request
        if trace.has_attachments:
            artifacts = RunArtifacts(trace, self.journal, model=model)
            request = replace(request, image_data=await artifacts.data_for(request.messages) or None)
        schema = trace.agent.output_schema
        check = None if schema is None else validator_for(schema).check
        began = time.perf_counter()
        try:
            reply = await within(request.timeout_s, model.complete(request), self._late)
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"{model.spec}: {fault_of(error).message}") from error
        known = self.cost_usd is not None and reply.cost_usd is not None
        self.cost_usd = self.cost_usd + reply.cost_usd if known else None  # type: ignore[operator]  # both are known
        facts = reply_to_events(replace(effect, request=request), reply, time.perf_counter() - began, check)
        return [self._redactor.fact(fact) for fact in facts]  # as those of the record are

    def _late(self, timeout_s: float | None) -> ModelTimeout:
        spec = "" if self.change.model is None else self.change.model.spec
        return ModelTimeout(TEXTS.run_text("model_late", spec=spec, s=timeout_s))


def _run_trial(recorded: Trace, outcome: Any, **fields: Any) -> RunTrial:
    task = "" if recorded.started is None else recorded.task
    return RunTrial(
        run_id=recorded.run_id, task=task, outcome=outcome, mark=run_marks(recorded).verdict or "", **fields
    )


def _decisions_by_reply(recorded: Trace) -> dict[int, Step]:
    """The decisions of a model in a run, by the identity of the first reply to each; the last turn included."""
    decisions = {id(step.replies[0]): step for step in recorded.steps if step.replies[0].model != PLAN_MODEL}
    for event in recorded.events:
        if isinstance(event.fact, ModelReplied) and event.fact.purpose == "close":
            decisions[id(event.fact)] = _bare_step(event.fact.step, event.fact)
    return decisions


def _bare_step(number: int, *replies: ModelReplied) -> Step:
    step = Step(number)
    step.replies.extend(replies)
    return step


def _decision_in(facts: Sequence[Fact]) -> Decision | None:
    return next((fact.decision for fact in facts if isinstance(fact, ModelReplied)), None)


def _decision_divergence(now: Trace, step: Step, decision: Decision | None, rejected: str = "") -> Divergence | None:
    """In what a decision differs from the recorded one of its step; None if it does not."""
    recorded = step.decision
    if isinstance(recorded, Answer) and isinstance(decision, Answer) and exact_match(decision.text, recorded.text):
        return None
    sides = [_comparable(now, step, side) for side in (recorded, decision)]
    if recorded is None and decision is None:
        return None
    difference = next(iter(decision_differences(*sides)), None)
    if difference is None:
        return None
    kind, what = _kind_of(now, recorded, decision, difference, rejected)
    return Divergence(step=step.number, kind=kind, what=what, difference=difference)


def _comparable(now: Trace, step: Step, decision: Decision | None) -> Step:
    """A step with a decision alone, whose arguments have the lossless corrections that both sides would get."""
    if isinstance(decision, Act):
        decision = replace(decision, calls=tuple(_corrected(now, call) for call in decision.calls))
    return _bare_step(step.number, replace(step.replies[0], decision=decision))


def _corrected(now: Trace, call: Call) -> Call:
    call = unwrap_call_tool(call, now.agent.tools)
    card = now.card(call.tool)
    if card is None or not isinstance(call.args, dict):
        return call
    return replace(call, args=coerce_args(call.args, card.input_schema))


def _kind_of(
    now: Trace, recorded: Decision | None, decision: Decision | None, difference: Difference, rejected: str
) -> tuple[DivergenceKind, str]:
    match recorded, decision:
        case _, None:
            return "unreadable", rejected
        case None, _:
            return "readable", ""
        case Act(), Act():
            if difference.what.startswith("arguments of"):
                tool = difference.what.removeprefix("arguments of ").split(" ")[0]
                return "arguments", f"{tool}({', '.join(_differing_names(difference))})"
            return "tool", f"{_tools(now, recorded)} → {_tools(now, decision)}"
        case Act(), _:
            return "early_answer", _tools(now, recorded)
        case _, Act():
            return "further_calls", _tools(now, decision)
        case _:
            return "answer", ""


def _tools(now: Trace, act: Act) -> str:
    return ", ".join(sorted(unwrap_call_tool(call, now.agent.tools).tool for call in act.calls))


def _differing_names(difference: Difference) -> list[str]:
    """The names of the arguments that differ."""
    a, b = difference.a, difference.b
    if not isinstance(a, dict) or not isinstance(b, dict):
        return []
    return sorted(name for name in {*a, *b} if name not in a or name not in b or a[name] != b[name])


def _verdict_divergence(call: ReviewedCall) -> Divergence:
    requested, verdict = call.requested, call.verdict
    sides = [
        f"{kind} ({'; '.join(reasons)})" if reasons else kind
        for kind, reasons in ((requested.verdict, requested.reasons), (verdict.kind, verdict.reasons))
    ]
    difference = Difference(
        step=requested.step,
        other_step=requested.step,
        part="verdict",
        what=f"verdict on {requested.tool}",
        a=sides[0],
        b=sides[1],
    )
    what = f"{requested.tool}: {requested.verdict} → {verdict.kind}"
    return Divergence(step=requested.step, kind="verdict", what=what, difference=difference)


def _course_divergence(step: Step, effect: Effect) -> Divergence:
    """What the strategy wants instead of the decision of a step: the end of the run, or something else."""
    what = effect.fact.status if isinstance(effect, Finish) else type(effect).__name__
    if isinstance(effect, CallModel):
        what = f"CallModel ({effect.request.purpose})"
    number = step.number
    difference = Difference(step=number, other_step=None, part="step", what="step", a=_step_name(step), b=what)
    return Divergence(step=number, kind="course", what=what, difference=difference)


def _step_name(step: Step) -> str:
    """What was asked for in a step."""
    return f"CallModel ({step.replies[0].purpose})"


def require_change(change: TriedChange) -> None:
    """Refuse a change that changes nothing.

    Raises:
        ConfigError: none of its fields is set.
    """
    if change.agent is None and change.model is None and change.policy is None:
        hint = translate(mark("Give --model, --agent or --policy."))
        raise ConfigError(translate(mark("There is nothing to try on the runs.")), hint=hint)
