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
from taoloop.core.cards.tool_search import is_discovery_tool, rank_cards, unwrap_call_tool
from taoloop.core.decision import Act, Call
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
from taoloop.policy.marked_text import split_marked
from taoloop.policy.profiles import needs_intent
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
_MOST_ARGUMENTS = 40  # of a tool that somebody else describes
_MOST_EARLIER = 20  # messages of the conversation
_IDENTIFIER = lazy_pattern(r"[^\W\d][\w.-]{0,63}")
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object"})


def intent_prompt(trace: Trace) -> tuple[Message, ...]:
    """The question: what people wrote in this conversation, and the tools that their words may call for.

    No text of anybody else: nothing that was read, nothing that a message marks as somebody else's, and no description
    by a third party.
    """
    prompts, started = trace.agent.prompts, trace.started
    notes = [event.fact.text for event in trace.events if isinstance(event.fact, Noted) and event.fact.by != GUARD]
    turns = () if started is None or started.trusted else started.history
    earlier = [_own_words(turn.content) for turn in turns if turn.role == "user"][-_MOST_EARLIER:]
    task = prompts.fill("task", task="\n\n".join(map(_own_words, (trace.task, *notes))))
    if earlier:
        before = TEXTS.text(prompts.language, "earlier_messages", messages="\n\n".join(earlier))
        task = f"{before}\n\n{task}"
    tools = tool_block([_asked_card(card, prompts.language) for card in _candidates(trace)], prompts)
    return (
        Message(role="system", content=prompts.fill("pin", tools=tools)),
        Message(role="user", content=task),
    )


def _own_words(text: str) -> str:
    return split_marked(text).own


def _candidates(trace: Trace) -> list[ToolCard]:
    """The tools that the task may call for and whose verdict depends on it: those listed, called, or likely."""
    agent, reply = trace.agent, trace.last_reply
    calls = reply.decision.calls if reply is not None and isinstance(reply.decision, Act) else ()
    called = {unwrap_call_tool(call, agent.tools).tool for call in calls}
    cards = [card for card in agent.tools if needs_intent(agent.policy, card) and not is_discovery_tool(card)]
    unlisted = [card for card in cards if not card.listed and card.name not in called]
    likely = {card.name for card in rank_cards(trace.task, unlisted, _MOST_LIKELY)}
    return [card for card in cards if card.listed or card.name in called or card.name in likely]


def _asked_card(card: ToolCard, language: str) -> ToolCard:
    """A card as the question shows it: of one that a third party describes only names, types and the tier."""
    if card.described_by == "operator":
        return card
    names = [name for name in card.parameters if _IDENTIFIER.fullmatch(name)][:_MOST_ARGUMENTS]
    schema = {
        "type": "object",
        "properties": {name: _type_only(card.parameters[name]) for name in names},
        "required": [name for name in card.required if name in names],
    }
    purpose = TEXTS.text(language, "third_party_card", tier=card.tier or TEXTS.text(language, "no_tier"))
    return ToolCard(name=card.name, purpose=purpose, input_schema=schema)


def _type_only(rule: Any) -> dict[str, Any]:
    kind = rule.get("type") if isinstance(rule, Mapping) else None
    return {"type": kind} if isinstance(kind, str) and kind in _TYPES else {}


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
        Call(tool=call["tool"], args=_fixed_args(call["args"], known[call["tool"]]))
        for call in (calls if isinstance(calls, list) else [])[:_MOST_CALLS]
        if isinstance(call, dict) and call.get("tool") in tools and isinstance(call.get("args"), dict)
    ]
    return Pinned(tools=tools, calls=tuple(pinned_calls))


def _fixed_args(args: Mapping[str, Any], card: ToolCard) -> dict[str, Any]:
    """The arguments that a reply gives a call; None for those that it leaves open."""
    given_args = coerce_args({name: value for name, value in args.items() if value is not None}, card.input_schema)
    return {**given_args, **{name: None for name, value in args.items() if value is None}}
