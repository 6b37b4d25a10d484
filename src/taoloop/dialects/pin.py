"""What the task calls for, asked of the model before it has seen anything untrusted, and how its reply is read."""

from __future__ import annotations

from collections.abc import Sequence

from taoloop.core.cards import ToolCard
from taoloop.core.coerce import coerce_args
from taoloop.core.decision import Call
from taoloop.core.events import Pinned
from taoloop.core.message import Message
from taoloop.core.trace import Trace
from taoloop.dialects.clean import drop_thinking
from taoloop.dialects.loose import read_value
from taoloop.dialects.refusal import RefusedError
from taoloop.dialects.strict import NotJsonError
from taoloop.dialects.toolblock import tool_block

_MOST_CALLS = 50


def pin_prompt(trace: Trace) -> tuple[Message, ...]:
    """The question: the task and the tools, and no other text of the run."""
    prompts, agent = trace.agent.prompts, trace.agent
    told = tool_block(agent.tools, prompts)
    return (
        Message(role="system", content=prompts.fill("pin", tools=told)),
        Message(role="user", content=prompts.fill("task", task=trace.task)),
    )


def read_pin(text: str, cards: Sequence[ToolCard]) -> Pinned | None:
    """The tools and calls that a reply names, as far as there are such tools; None for a reply that says nothing."""
    try:
        text = drop_thinking(text)
        value = read_value(text, text.index("{")).value
    except (RefusedError, NotJsonError, ValueError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("tools"), list):
        return None
    known = {card.name: card for card in cards}
    tools = tuple(name for name in known if name in value["tools"])
    calls = value.get("calls")
    fixed = [
        Call(tool=one["tool"], args=coerce_args(one["args"], known[one["tool"]].input_schema))
        for one in (calls if isinstance(calls, list) else [])[:_MOST_CALLS]
        if isinstance(one, dict) and one.get("tool") in tools and isinstance(one.get("args"), dict)
    ]
    return Pinned(tools=tools, calls=tuple(fixed))
