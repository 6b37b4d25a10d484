"""The loop of thought, action and observation, as a pure function of the trace.

ReAct and the paper's three baselines (Yao et al., 2023, "ReAct: Synergizing Reasoning and Acting in Language
Models", section 3) are the same loop with acting or reasoning left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from taoloop.core.action_requests import denied_observation, failed_observation
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.questions import answer_text, is_question
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import unwrap_call_tool
from taoloop.core.decision import Act, Answer, cited_ids
from taoloop.core.effects import (
    AskPerson,
    CallModel,
    Effect,
    Finish,
    JudgeAgain,
    ProbeCalls,
    Record,
    RequestCalls,
    RunTools,
    new_model_request,
)
from taoloop.core.events import (
    ApprovalGiven,
    ApprovalRefused,
    Compacted,
    Fault,
    LimitReached,
    ModelReplied,
    Noted,
    Observed,
)
from taoloop.core.message import SIDE_PURPOSES, Message, Purpose
from taoloop.core.texts import TEXTS, end_message, preapproval_note
from taoloop.core.trace import Trace
from taoloop.core.views.steps import TIMEOUT, CallView
from taoloop.dialects import get_dialect
from taoloop.dialects.conversation import Conversation
from taoloop.dialects.prompt import tool_block
from taoloop.dialects.side_questions import intent_prompt
from taoloop.dialects.text_dialect import reply_schema
from taoloop.errors import IllegalEvent, ModelContextOverflow
from taoloop.policy import needs_intent, sources_of
from taoloop.strategies.compaction import make_room
from taoloop.strategies.denied_calls import answered_finish
from taoloop.strategies.evidence_gate import held_back
from taoloop.strategies.in_doubt import Unresolved, plan_unresolved_calls
from taoloop.strategies.termination import (
    exceeded_limit,
    exceeded_step_limit,
    limit_finish,
    model_failed,
    remaining_s,
    taken_over_finish,
)

_WITHOUT_TOOLS = ("close", *SIDE_PURPOSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStrategy:
    """Think, act, observe, until there is an answer or a limit is reached."""

    name: str
    """The name that agents choose it by."""

    acts: bool
    """Whether tools are offered."""

    reasons: bool
    """Whether the prompt asks for a thought before each decision."""

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect. The trace's phase selects the method; each method reads the rest from the trace."""
        match trace.phase:
            case "thinking":
                return self._think(agent, trace)
            case "decided":
                return self._request(agent, trace)
            case "acting":
                return self._act(trace)
            case "answered":
                return self._answered(trace)
            case "closed":
                return self._closed(agent, trace)
        raise IllegalEvent(f"Run {trace.run_id} has no next effect in the phase {trace.phase!r}.")

    def _request(self, agent: AgentSpec, trace: Trace) -> Effect:
        reply = trace.last_reply
        if reply is None or not isinstance(reply.decision, Act):
            raise IllegalEvent(f"Run {trace.run_id}: no decision to act on.")
        if agent.policy.pin == "model" and not trace.pin_asked and _needs_intent_question(trace, reply.decision):
            return self.ask(agent, trace, "pin", reply.step, intent_prompt(trace))
        return RequestCalls(reply.decision, reply.step, self.acts)

    def _act(self, trace: Trace) -> Effect:
        pending = tuple(trace.pending.values())
        if len(pending) == 1 and pending[0].is_fresh and trace.paused is None:
            return RunTools(pending)
        if outdated := tuple(call for call in pending if call.is_outdated and not call.attempts):
            return JudgeAgain(outdated)
        if trace.paused is not None and (waiting := tuple(call for call in pending if call.needs_person)):
            return AskPerson(calls=waiting)  # until it is resumed, a run accepts only answers
        if trace.approved_tiers and (
            allowed := [_preapproval(trace, call) for call in pending if _is_preapproved(trace, call)]
        ):
            return Record(facts=tuple(allowed))
        if refusals := [fact for call in pending if (fact := _refusal(trace, call)) is not None]:
            return Record(facts=tuple(refusals))
        unresolved = (
            plan_unresolved_calls(trace, pending) if any(call.attempts for call in pending) else _NOTHING_UNRESOLVED
        )
        if unresolved.facts:
            return Record(facts=unresolved.facts)
        if unresolved.probe:
            return ProbeCalls(calls=unresolved.probe)
        ready = [call for call in pending if not call.needs_person and call not in unresolved.ask]
        if not ready:
            return AskPerson(calls=tuple(call for call in pending if call.needs_person), doubts=unresolved.ask)
        if len(ready) == 1:
            return RunTools(calls=(ready[0],))
        together = tuple(takewhile(lambda call: _runs_in_parallel(trace, call), ready))
        return RunTools(calls=together or (ready[0],))  # in the order of the decision: a read may follow a write

    def _think(self, agent: AgentSpec, trace: Trace) -> Effect:
        if trace.limit_reached is not None:
            return self._last_turn(agent, trace, trace.limit_reached)
        if (reached := exceeded_limit(trace)) is not None:
            return Record(facts=(reached,))
        if trace.changed_tools:
            return Record(facts=tuple(_change_notice(agent, name) for name in trace.changed_tools))
        if trace.repeat_notices:
            notices = [
                Noted(by="guard", text=agent.prompts.fill("repeated", tool=tool, count=count), about=tool)
                for tool, count in trace.repeat_notices
            ]
            return Record(facts=tuple(notices))
        reply = trace.last_reply
        if reply is not None and _needs_repair(agent, trace, reply):
            return self._call(agent, trace, "repair", reply.step)
        if (reached := self.step_limit(trace)) is not None:
            return Record(facts=(reached,))
        return self._call(agent, trace, "decide", trace.step_count + 1)

    def step_limit(self, trace: Trace) -> LimitReached | None:
        """The step limit, if no further step may begin."""
        return exceeded_step_limit(trace)

    def conversation(self, trace: Trace) -> Conversation:
        """The prompt of the loop, of no events yet."""
        return Conversation(self.name, trace.events, tools=self.acts, reasons=self.reasons)

    def _last_turn(self, agent: AgentSpec, trace: Trace, reached: LimitReached) -> Effect:
        """After a limit was reached: one more turn without tools, if the agent wants it and replies are readable."""
        if agent.closing_turn and reached.status != "unreadable":
            return self._call(agent, trace, "close", trace.step_count)
        return Finish(fact=limit_finish(trace, reached))

    def _closed(self, agent: AgentSpec, trace: Trace) -> Effect:
        reached = trace.limit_reached
        if reached is None:
            raise IllegalEvent(f"Run {trace.run_id}: a closing turn without a limit.")
        detail = "" if trace.answer else end_message(agent.language, "no_closing")
        return Finish(fact=limit_finish(trace, reached, failed=detail, with_tools=self.acts))

    def _answered(self, trace: Trace) -> Effect:
        if trace.taken_over is not None:
            return Finish(fact=taken_over_finish(trace))
        answer = trace.answer or Answer(text="")
        reason = answer.reason or end_message(trace.agent.language, "answered")
        if (rejected := held_back(trace, answer, with_tools=self.acts)) is not None:
            return Record(facts=(rejected,))
        citations = answer.citations or cited_ids(answer.text)
        return Finish(fact=answered_finish(trace, answer.text, reason, citations, with_tools=self.acts))

    def _call(self, agent: AgentSpec, trace: Trace, purpose: Purpose, step: int) -> Effect:
        """Ask the model, once the prompt fits into its window."""
        conversation = trace.view(f"conversation/{self.name}", lambda: self.conversation(trace))
        if agent.context_tokens is not None or trace.overflows:
            match make_room(trace, conversation, purpose):
                case Compacted() as fact:
                    return Record(facts=(fact,))
                case str() as problem:
                    return Finish(fact=model_failed(trace, problem, ModelContextOverflow.code))
                case tuple() as prompt:
                    return self.ask(agent, trace, "compact", trace.step_count, prompt, conversation.tools)
        return self.ask(agent, trace, purpose, step, tuple(conversation.messages), conversation.tools)

    def ask(
        self,
        agent: AgentSpec,
        trace: Trace,
        purpose: Purpose,
        step: int,
        messages: tuple[Message, ...],
        tools: tuple[ToolCard, ...] = (),
        *,
        temperature: float | None = None,
    ) -> CallModel:
        """The effect that asks the model. `temperature` None: the agent's, and 0 for a repair."""
        dialect = get_dialect(agent.dialect)
        if temperature is None:
            temperature = 0.0 if purpose == "repair" else agent.temperature
        offered = tools if purpose not in _WITHOUT_TOOLS else ()
        schema = None
        if purpose not in SIDE_PURPOSES:
            schema = reply_schema(dialect, offered, agent.output_schema, reasons=self.reasons, prompts=agent.prompts)
        request = new_model_request(
            task=trace.task,
            trace=trace,
            messages=messages,
            dialect=agent.dialect,
            tools=offered,
            earlier_tools=() if offered else tools,
            native=dialect.native,
            purpose=purpose,
            turn=trace.model_calls,
            temperature=temperature,
            top_p=None if purpose == "repair" else agent.top_p,
            max_output_tokens=agent.max_output_tokens,
            stop=dialect.stop if purpose not in SIDE_PURPOSES else (),
            timeout_s=agent.model_timeout_s if purpose == "close" else remaining_s(trace, agent.model_timeout_s),
            settings=agent.model_settings,
            reply_schema=schema,
        )
        return CallModel(request, step)


_NOTHING_UNRESOLVED = Unresolved()


def _needs_repair(agent: AgentSpec, trace: Trace, reply: ModelReplied) -> bool:
    """Whether the last reply is to be corrected in its own step: it is unreadable, or an answer that was held back."""
    if reply.decision is None:
        return trace.rejected_in_step <= agent.repair_turns
    return trace.held_back is reply.decision


def _needs_intent_question(trace: Trace, act: Act) -> bool:
    """Whether one of these calls depends on what the task asks for, and the task may be asked about.

    The question shows only what people wrote, so it may come after observations and in any turn of a conversation; but
    a task that a model wrote which had read something untrusted is untrusted itself.
    """
    cards = (trace.card(unwrap_call_tool(call, trace.agent.tools).tool) for call in act.calls)
    is_needed = any(card is not None and needs_intent(trace.agent.policy, card) for card in cards)
    if not is_needed or trace.started is None:
        return False
    provenance = sources_of(trace)
    return provenance.authority != "none" and not provenance.has_foreign_task


def _is_preapproved(trace: Trace, call: CallView) -> bool:
    """Whether a call waits for an answer that the operator has given for its whole tier, such as at a resume.

    Calls that a rule of the operator asks about are not among them, because a rule is more specific than a tier; nor
    are calls of a tool that requires a person's approval each time.
    """
    requested = call.requested
    card = trace.card(requested.tool)
    if card is not None and card.requires_approval:
        return False
    by_rule = requested.rule.startswith("rule:") or (not requested.rule and bool(requested.policy))
    return call.needs_person and not by_rule and (requested.tier or "destructive") in trace.approved_tiers


def _preapproval(trace: Trace, call: CallView) -> ApprovalGiven:
    requested = call.requested
    note = preapproval_note(trace.agent.language, requested.tier)
    return ApprovalGiven(call_id=requested.call_id, digest=requested.digest, by="operator", note=note)


def _change_notice(agent: AgentSpec, tool: str) -> Noted:
    """What the model is told of a tool that has changed since it was described to it."""
    cards = tuple(card for card in agent.tools if card.name == tool)
    text = TEXTS.text(agent.language, "tool_changed", tool=tool, card=tool_block(cards, agent.prompts))
    return Noted(by="guard", text=text, about=tool)


def _refusal(trace: Trace, call: CallView) -> Observed | None:
    """The observation of a call that a person refused, or answered, or that was denied when it was judged again."""
    approval, language = call.approval, trace.agent.language
    if call.requested.verdict == "deny":
        return denied_observation(language, call.requested.call_id, call.requested.reasons)
    is_asked = is_question(trace.card(call.requested.tool))
    if is_asked and isinstance(approval, ApprovalGiven) and approval.args is not None:
        return Observed(call_id=call.requested.call_id, ok=True, output=answer_text(approval.args))
    if not isinstance(approval, ApprovalRefused):
        return None
    note = approval.note.rstrip(".。") or TEXTS.text(language, "no_reason")
    name = "timed_out_approval" if approval.by == TIMEOUT else "declined" if is_asked else "refused"
    message = TEXTS.text(language, name, note=note)
    hint = TEXTS.text(language, "declined_hint" if is_asked else "refused_hint")
    return failed_observation(call.requested.call_id, Fault(code="refused", message=message, hint=hint))


def _runs_in_parallel(trace: Trace, call: CallView) -> bool:
    card = trace.card(call.requested.tool)
    return card is not None and card.runs_in_parallel and not card.transactional
