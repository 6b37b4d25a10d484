"""From a model's reply to facts: what was said, the decision in it, or why it is not believed."""

from __future__ import annotations

from dataclasses import replace

from taoloop.core.decision import Problem
from taoloop.core.effects import CallModel
from taoloop.core.events import Fact, ModelReplied, ReplyRejected
from taoloop.core.message import ModelReply
from taoloop.core.text import well_formed
from taoloop.dialects import get_dialect


def reply_facts(effect: CallModel, reply: ModelReply, latency_s: float) -> list[Fact]:
    """The reply as a fact, followed by its rejection if it cannot be read as one decision."""
    request = effect.request
    text = well_formed(reply.text)
    if text is not reply.text:
        reply = replace(reply, text=text)
    read = get_dialect(request.dialect).read(reply, request.tools)
    problem = read if isinstance(read, Problem) else None
    replied = ModelReplied(
        step=effect.step,
        purpose=request.purpose,
        text=text,
        decision=None if isinstance(read, Problem) else read,
        tool_calls=reply.tool_calls,
        finish_reason=reply.finish_reason,
        model=reply.model,
        usage=reply.usage,
        cost_usd=reply.cost_usd,
        latency_s=latency_s,
    )
    if problem is None:
        return [replied]
    rejected = ReplyRejected(
        step=effect.step, code=problem.code, message=problem.message, excerpt=well_formed(problem.excerpt)
    )
    return [replied, rejected]
