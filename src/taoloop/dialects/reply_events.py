"""From a model's reply to facts: what was said, the decision in it, or why it is not believed."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from taoloop.core.decision import Act, Answer, AnswerCheck, Decision, Problem
from taoloop.core.effects import CallModel, ModelRequest
from taoloop.core.events import Fact, Observed, ReplyRejected, new_model_replied
from taoloop.core.message import SIDE_PURPOSES, ModelReply, Usage
from taoloop.core.text import replace_surrogates
from taoloop.core.trace import Trace
from taoloop.dialects import get_dialect
from taoloop.dialects.base import takes_was_seen
from taoloop.dialects.parsing.cleanup import is_truncated
from taoloop.dialects.parsing.placeholders import unfilled_text
from taoloop.dialects.side_questions import parse_intent
from taoloop.dialects.texts import ReplyParseError, problem_message
from taoloop.errors import ModelError


def reply_to_events(
    effect: CallModel, reply: ModelReply, latency_s: float, check: AnswerCheck | None = None
) -> list[Fact]:
    """The reply as a fact, followed by its rejection if it cannot be read as one decision, or `check` refuses it.

    A reply of the purpose `compact` is a summary and one of `read` reports on observations: neither has a decision. One
    of `pin` says what the task asks for (`pinned`); if it is unreadable, it says nothing.

    Raises:
        ModelError: a field of the reply has a type that a trace could not restore.
    """
    request = effect.request
    _validate_reply(reply)
    text = replace_surrogates(reply.text)
    if text is not reply.text:
        reply = replace(reply, text=text)
    decision = None if request.purpose in SIDE_PURPOSES else _read_decision(request, reply, check)
    problem = decision if isinstance(decision, Problem) else None
    replied = new_model_replied(
        step=effect.step,
        purpose=request.purpose,
        text=text,
        decision=None if isinstance(decision, Problem) else decision,
        tool_calls=reply.tool_calls,
        finish_reason=reply.finish_reason,
        model=reply.model,
        usage=reply.usage,
        cost_usd=reply.cost_usd,
        latency_s=latency_s,
        thinking=replace_surrogates(reply.thinking) if reply.thinking and request.trace.agent.keep_thinking else "",
    )
    if request.purpose == "pin":
        pinned = parse_intent(text, request.trace.agent.tools)
        return [replied] if pinned is None else [replied, pinned]
    if problem is None:
        return [replied]
    rejected = ReplyRejected(
        step=effect.step,
        code=problem.code,
        message=problem_message(problem, request.trace.agent.language),
        excerpt=replace_surrogates(problem.excerpt),
    )
    return [replied, rejected]


def _read_decision(request: ModelRequest, reply: ModelReply, check: AnswerCheck | None) -> Decision | Problem:
    """What the reply decides, as its dialect and then `check` see it. A sample can only answer."""
    structured = check is not None and request.trace.agent.output_schema is not None
    dialect, cards = get_dialect(request.dialect), request.tools
    decision = dialect.read(reply, cards, json_answer=True) if structured else dialect.read(reply, cards)
    if (
        isinstance(decision, Problem)
        and (unfilled := unfilled_text(decision))
        and takes_was_seen(dialect)
        and _was_seen(request.trace, unfilled)
    ):
        was_seen = partial(_was_seen, request.trace)
        decision = dialect.read(reply, cards, json_answer=structured, was_seen=was_seen)
    if isinstance(decision, Problem) and request.trace.agent.takes_cut_answers and not structured:
        decision = _truncated_answer(reply, request) or decision
    if request.purpose == "sample" and isinstance(decision, Act):
        decision = ReplyParseError("bad_action", "sample_acts").problem
    if check is not None and isinstance(decision, Answer):
        decision = check(decision)
    return decision


def _was_seen(trace: Trace, text: str) -> bool:
    """Whether the conversation up to the task, or what came back for a call, has this very text."""
    history = trace.started.history if trace.started is not None else ()
    if text in trace.task or any(text in message.content for message in history):
        return True
    return any(text in event.fact.output for event in trace.events if isinstance(event.fact, Observed))


def _truncated_answer(reply: ModelReply, request: ModelRequest) -> Answer | None:
    """The answer in a reply that was cut; None where it was not, or was not cut in its answer."""
    if not is_truncated(reply) or reply.tool_calls:
        return None
    from taoloop.dialects.answer_stream import truncated_answer  # noqa: PLC0415  # few replies are cut

    names = [card.name for card in request.tools]
    text = truncated_answer(reply.text, request.dialect, tools_offered=bool(request.tools), tool_names=names)
    return Answer(text=text) if text.strip() else None


def _validate_reply(reply: Any) -> None:
    """Check the types of a reply: any caller may bring a model of its own."""
    if type(reply) is not ModelReply:
        raise ModelError(f"The model gave {type(reply).__name__!r} instead of a ModelReply.")
    usage, cost = reply.usage, reply.cost_usd
    sound = (
        type(reply.text) is str
        and type(reply.model) is str
        and type(reply.thinking) is str
        and (reply.finish_reason is None or type(reply.finish_reason) is str)
        and type(usage) is Usage
        and type(usage.input_tokens) is type(usage.output_tokens) is type(usage.cached_tokens) is int
        and (cost is None or (type(cost) in (int, float) and math.isfinite(cost)))
    )
    for call in reply.tool_calls:
        sound = sound and type(call.name) is str and type(call.arguments) is str
    if not sound:
        raise ModelError("A field of the model's reply has the wrong type.", hint="See ModelReply for what it takes.")
