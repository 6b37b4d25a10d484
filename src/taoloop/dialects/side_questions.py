"""Questions to a model beside the conversation, and how their replies are read.

One is put to a model without tools that reads observations on behalf of a model that must not. The other asks over
trusted text alone which tools and calls the task asks for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from taoloop.core.cards.coercion import coerce_args
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import listed_cards, rank_cards
from taoloop.core.decision import Call
from taoloop.core.events import Noted, Pinned
from taoloop.core.message import Message
from taoloop.core.prompts import PromptSet
from taoloop.core.text import lazy_pattern
from taoloop.core.trace import Trace
from taoloop.dialects.parsing.cleanup import strip_thinking
from taoloop.dialects.parsing.json_repair import parse_value
from taoloop.dialects.parsing.strict_json import NotJsonError
from taoloop.dialects.prompt import defuse_markers, tool_block
from taoloop.dialects.texts import TEXTS, ReplyParseError
from taoloop.policy.provenance import GUARD
from taoloop.policy.value_match import date_of

AnswerKind = Literal["text", "number", "date", "email", "yes_no"]

_YES_NO = {"yes": True, "true": True, "是": True, "no": False, "false": False, "否": False}
_EMAIL = lazy_pattern(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")


def question_prompt(
    prompts: PromptSet, nonce: str, question: str, kind: AnswerKind | Sequence[str], contents: Mapping[str, str]
) -> tuple[Message, ...]:
    """The whole prompt: the rules of reading, and the question with the contents in the frame for untrusted data."""
    name = f"expected_{kind}" if isinstance(kind, str) else "expected_choice"
    parts = [f"[{handle}]\n{defuse_markers(text, nonce)}" for handle, text in contents.items()]
    filled = prompts.fill(
        "handles_question",
        question=question,
        answer=TEXTS.text(prompts.language, name, choices=" | ".join(kind)),
        nonce=nonce,
        content="\n\n".join(parts),
    )
    return (Message(role="system", content=prompts.fill("handles_read")), Message(role="user", content=filled))


def answer_schema(kind: AnswerKind | Sequence[str]) -> dict[str, Any]:
    """What the text of the reply must fit, for providers with structured output."""
    json_type = {"number": "number", "yes_no": "boolean"}.get(kind, "string") if isinstance(kind, str) else "string"
    value: dict[str, Any] = {"type": [json_type, "null"]}
    if not isinstance(kind, str):
        value["enum"] = [*kind, None]
    return {"type": "object", "properties": {"answer": value}, "required": ["answer"], "additionalProperties": False}


def parse_reader_answer(text: str, kind: AnswerKind | Sequence[str]) -> Any:
    """The answer in a reply if it is of the kind that was asked for; else None."""
    answer = _parse_object(text)
    value = answer["answer"] if isinstance(answer, dict) and "answer" in answer else None if answer else text
    value = value.strip() if isinstance(value, str) else value
    if kind == "number":
        return _parse_number(value)
    if kind == "yes_no" and isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    match kind:
        case "text":
            return value or None
        case "yes_no":
            return _YES_NO.get(value.rstrip(".。").casefold())
        case "email":
            return value if _EMAIL.fullmatch(value) else None
        case "date":
            day = date_of(value)
            return None if day is None else day.isoformat()
        case choices:
            return next((choice for choice in choices if choice.strip().casefold() == value.casefold()), None)


def _parse_object(text: str) -> Any:
    """The object in a reply, behind its thinking; None where there is none."""
    try:
        text = strip_thinking(text)
        return parse_value(text, text.index("{")).value
    except (ReplyParseError, NotJsonError, ValueError):
        return None


def _parse_number(value: Any) -> int | float | None:
    if isinstance(value, str):
        try:
            value = float(value.replace(",", ""))
        except ValueError:
            return None
        value = int(value) if math.isfinite(value) and value.is_integer() else value
    whole = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if whole else None


_MOST_CALLS = 50
_MOST_LIKELY = 20  # tools that the prompt does not list


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
    value = _parse_object(text)
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
