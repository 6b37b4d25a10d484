"""What the task calls for, asked of the model over trusted text alone, and how its reply is read."""

from __future__ import annotations

from collections.abc import Sequence

from taoloop.core.cards.coercion import coerce_args
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import listed_cards, rank_cards
from taoloop.core.decision import Call
from taoloop.core.events import Noted, Pinned
from taoloop.core.message import Message
from taoloop.core.trace import Trace
from taoloop.dialects.parsing.cleanup import strip_thinking
from taoloop.dialects.parsing.json_repair import parse_value
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.strict_json import NotJsonError
from taoloop.dialects.prompt.tool_listing import tool_block
from taoloop.policy.provenance import GUARD

_MOST_CALLS = 50
_MOST_LIKELY = 20  # of the tools that the prompt does not tell of


def intent_prompt(trace: Trace) -> tuple[Message, ...]:
    """The question: the task, with what people added to it since, and the tools. No other text of the run."""
    prompts, agent = trace.agent.prompts, trace.agent
    likely = rank_cards(trace.task, (card for card in agent.tools if not card.listed), _MOST_LIKELY)
    listed = tool_block((*listed_cards(agent.tools), *likely), prompts)
    added = [event.fact.text for event in trace.events if isinstance(event.fact, Noted) and event.fact.by != GUARD]
    task = "\n\n".join((trace.task, *added))
    return (
        Message(role="system", content=prompts.fill("pin", tools=listed)),
        Message(role="user", content=prompts.fill("task", task=task)),
    )


def parse_intent(text: str, cards: Sequence[ToolCard]) -> Pinned | None:
    """The tools and calls that a reply names, as far as there are such tools; None for a reply that says nothing."""
    try:
        text = strip_thinking(text)
        value = parse_value(text, text.index("{")).value
    except (ReplyParseError, NotJsonError, ValueError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("tools"), list):
        return None
    known = {card.name: card for card in cards}
    tools = tuple(name for name in known if name in value["tools"])
    if value["tools"] and not tools:
        return None
    calls = value.get("calls")
    pinned_calls = [
        Call(tool=call["tool"], args=coerce_args(call["args"], known[call["tool"]].input_schema))
        for call in (calls if isinstance(calls, list) else [])[:_MOST_CALLS]
        if isinstance(call, dict) and call.get("tool") in tools and isinstance(call.get("args"), dict)
    ]
    return Pinned(tools=tools, calls=tuple(pinned_calls))
