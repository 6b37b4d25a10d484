"""The loop of thought, action and observation, as a pure function of the trace.

ReAct and the paper's three baselines (Yao et al., 2023, "ReAct: Synergizing Reasoning and Acting in Language
Models", section 3) are the same loop with acting or reasoning left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from taoloop.core.decision import Act, Answer
from taoloop.core.effects import AskPerson, CallModel, Effect, Finish, Record, RequestCalls, RunTools
from taoloop.core.events import (
    ApprovalGiven,
    ApprovalRefused,
    Compacted,
    Fault,
    Finished,
    LimitReached,
    Noted,
    Observed,
)
from taoloop.core.guards import reached_limit, reached_steps, remaining_s
from taoloop.core.message import Message, Purpose
from taoloop.core.request import ModelRequest
from taoloop.core.requests import refusal
from taoloop.core.spec import AgentSpec
from taoloop.core.steps import CallView
from taoloop.core.trace import Trace
from taoloop.core.wording import wording
from taoloop.dialects import get_dialect
from taoloop.dialects.conversation import Conversation
from taoloop.dialects.reply_schema import reply_schema
from taoloop.errors import IllegalEvent
from taoloop.strategies.compaction import make_room
from taoloop.strategies.ends import limit_finish, model_failed

IN_DOUBT = Fault(
    code="in_doubt",
    message="The process stopped while this call ran: its effect may or may not have happened. It was not repeated.",
    hint="Find out with a tool that only reads whether it happened before you try again.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStrategy:
    """Think, act, observe, until there is an answer or a limit is reached.

    `acts`: tools are on offer. `reasons`: the prompt asks for a thought before each decision.
    """

    name: str
    acts: bool
    reasons: bool

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect. Every branch is decided by the trace's phase alone."""
        match trace.phase:
            case "decided":
                return self._request(trace)
            case "acting":
                return self._act(trace)
            case "answered":
                return self._answered(trace)
            case "closed":
                return self._closed(agent, trace)
            case "thinking":
                return self._think(agent, trace)
        raise IllegalEvent(f"Run {trace.run_id} has no next effect in the phase {trace.phase!r}.")

    def _request(self, trace: Trace) -> Effect:
        reply = trace.last_reply
        if reply is None or not isinstance(reply.decision, Act):
            raise IllegalEvent(f"Run {trace.run_id}: no decision to act on.")
        return RequestCalls(act=reply.decision, step=reply.step, offered=self.acts)

    def _act(self, trace: Trace) -> Effect:
        pending = list(trace.pending.values())
        if allowed := [_allowed_ahead(call) for call in pending if _is_allowed_ahead(trace, call)]:
            return Record(facts=tuple(allowed))
        if settled := [fact for call in pending if (fact := _settled(trace, call))]:
            return Record(facts=tuple(settled))
        ready = [call for call in pending if not call.needs_person]
        if not ready:
            return AskPerson(calls=tuple(pending))
        together = tuple(takewhile(lambda call: _runs_beside_others(trace, call), ready))
        return RunTools(calls=together or (ready[0],))  # in the order of the decision: a read may follow a write

    def _think(self, agent: AgentSpec, trace: Trace) -> Effect:
        if trace.limit_reached is not None:
            return self._last_turn(agent, trace, trace.limit_reached)
        if (reached := reached_limit(trace)) is not None:
            return Record(facts=(reached,))
        if trace.repeat_notices:
            told = [
                Noted(by="guard", text=agent.prompts.fill("repeated", tool=tool, count=count), about=tool)
                for tool, count in trace.repeat_notices
            ]
            return Record(facts=tuple(told))
        reply = trace.last_reply
        if reply is not None and reply.decision is None and trace.rejected_in_step <= agent.repair_turns:
            return self._call(agent, trace, "repair", reply.step)
        if (reached := reached_steps(trace)) is not None:
            return Record(facts=(reached,))
        return self._call(agent, trace, "decide", trace.step_count + 1)

    def _last_turn(self, agent: AgentSpec, trace: Trace, reached: LimitReached) -> Effect:
        """A limit was reached: one more turn without tools, if the agent wants it and the model can be read."""
        if agent.closing_turn and reached.status != "unreadable":
            return self._call(agent, trace, "close", trace.step_count)
        return Finish(fact=limit_finish(trace, reached))

    def _closed(self, agent: AgentSpec, trace: Trace) -> Effect:
        reached = trace.limit_reached
        if reached is None:
            raise IllegalEvent(f"Run {trace.run_id}: a closing turn without a limit.")
        detail = "" if trace.answer else wording(agent.language, "no_closing")
        return Finish(fact=limit_finish(trace, reached, failed=detail))

    def _answered(self, trace: Trace) -> Effect:
        answer = trace.answer or Answer(text="")
        return Finish(
            fact=Finished(
                status="completed",
                answer=answer.text,
                reason=answer.reason or wording(trace.agent.language, "answered"),
                citations=answer.citations,
            )
        )

    def _call(self, agent: AgentSpec, trace: Trace, purpose: Purpose, step: int) -> Effect:
        """Ask the model, once the prompt fits into its window."""
        conversation = trace.view(
            f"conversation/{self.name}",
            lambda: Conversation(self.name, trace.events, tools=self.acts, reasons=self.reasons),
        )
        if agent.context_tokens is not None or trace.overflows:
            match make_room(trace, conversation, purpose):
                case Compacted() as fact:
                    return Record(facts=(fact,))
                case str() as problem:
                    return Finish(fact=model_failed(trace, problem))
                case tuple() as prompt:
                    return self._ask(agent, trace, "compact", trace.step_count, prompt)
        return self._ask(agent, trace, purpose, step, tuple(conversation.messages))

    def _ask(
        self, agent: AgentSpec, trace: Trace, purpose: Purpose, step: int, messages: tuple[Message, ...]
    ) -> CallModel:
        dialect = get_dialect(agent.dialect)
        offered = agent.tools if self.acts and purpose not in ("close", "compact") else ()
        schema = None
        if purpose != "compact":
            schema = reply_schema(dialect, offered, agent.output_schema, reasons=self.reasons)
        request = ModelRequest(
            task=trace.task,
            trace=trace,
            messages=messages,
            dialect=agent.dialect,
            tools=offered,
            native=dialect.native,
            purpose=purpose,
            turn=trace.model_calls,
            temperature=0.0 if purpose == "repair" else agent.temperature,
            top_p=None if purpose == "repair" else agent.top_p,
            max_output_tokens=agent.max_output_tokens,
            stop=dialect.stop if purpose != "compact" else (),
            timeout_s=agent.model_timeout_s if purpose == "close" else remaining_s(trace, agent.model_timeout_s),
            reply_schema=schema,
        )
        return CallModel(request=request, step=step)


def _is_allowed_ahead(trace: Trace, call: CallView) -> bool:
    """True for a call that waits for an answer which the operator has given for its tier, as at a resume."""
    return call.needs_person and call.requested.tier in trace.approved_tiers


def _allowed_ahead(call: CallView) -> ApprovalGiven:
    requested = call.requested
    note = f"tier {requested.tier} was allowed ahead of time"
    return ApprovalGiven(call_id=requested.call_id, digest=requested.digest, by="operator", note=note)


def _settled(trace: Trace, call: CallView) -> Observed | None:
    """The observation of a call that needs no run: refused by a person, or in doubt after a crash."""
    requested = call.requested
    if isinstance(call.approval, ApprovalRefused):
        text = call.approval.note or "no reason was given"
        fault = Fault(code="refused", message=f"A person refused this action: {text}.", hint="Do not ask again for it.")
        return refusal(requested.call_id, fault)
    card = trace.card(requested.tool)
    if call.attempts and not (card and (card.idempotent or card.reads_only)):
        return refusal(requested.call_id, IN_DOUBT)
    return None


def _runs_beside_others(trace: Trace, call: CallView) -> bool:
    card = trace.card(call.requested.tool)
    return card is not None and card.runs_beside_others
