"""From a model's reply to facts: what was said, the decision in it, or why it is not believed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from taoloop.core.decision import Problem
from taoloop.core.effects import CallModel
from taoloop.core.events import Fact, ModelReplied, ReplyRejected
from taoloop.core.message import ModelReply, Usage
from taoloop.core.text import well_formed
from taoloop.dialects import get_dialect
from taoloop.errors import ModelError


def reply_facts(effect: CallModel, reply: ModelReply, latency_s: float) -> list[Fact]:
    """The reply as a fact, followed by its rejection if it cannot be read as one decision.

    Raises:
        ModelError: the reply is none: a field has a type that no trace could give back.
    """
    request = effect.request
    _require_sound(reply)
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


def _require_sound(reply: Any) -> None:
    """Models are written by anybody: what they hand over is checked before it is believed."""
    if not isinstance(reply, ModelReply):
        raise ModelError(f"The model gave {type(reply).__name__!r} instead of a ModelReply.")
    usage: object = reply.usage
    fields: list[tuple[object, tuple[type, ...]]] = [
        (reply.text, (str,)),
        (reply.model, (str,)),
        (reply.finish_reason, (str, type(None))),
        (reply.cost_usd, (int, float, type(None))),
        (usage, (Usage,)),
    ]
    if isinstance(usage, Usage):
        fields += [(count, (int,)) for count in (usage.input_tokens, usage.output_tokens, usage.cached_tokens)]
    for call in reply.tool_calls:
        fields += [(call.name, (str,)), (call.arguments, (str,))]
    cost: object = reply.cost_usd
    finite = not isinstance(cost, float) or math.isfinite(cost)
    if not finite or not all(isinstance(value, kinds) for value, kinds in fields):
        raise ModelError(
            "The model's reply has a field of the wrong type.", hint="See taoloop.core.message.ModelReply."
        )
