"""Tools that a prompt does not list, because there are too many: how a model finds and calls them. Pure.

Their cards are in the run's description like all others, so a call of one is judged by its own name, arguments and
tier. `find_tool` returns the cards that match some words; `call_tool` stands for the call that it names, for providers
whose models can only call listed tools. What `find_tool` and `describe_tool` return is the operator's own choice of
cards, as it would be in the prompt: it is not an observation of the world.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard
from taoloop.core.decision import Call
from taoloop.core.text import chinese_texts, lazy_pattern
from taoloop.core.words import CJK, cjk_pairs, name_words, stem

FIND_TOOL = ToolCard(
    name="find_tool",
    purpose="Find tools that are not listed here, by what they do. Gives at most 20 cards with their arguments.",
    use_when="No listed tool does what is needed.",
    avoid_when="A listed tool, or one that was found before, does it.",
    input_schema={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": 500,
                "description": "A few words on what the tool must do, such as: send message to channel",
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5, "description": "How many at most"},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    examples=(ExampleCard(args={"query": "list open orders of a customer"}),),
    tier="read",
    egress=False,
    idempotent=True,
    max_preview_chars=16_000,
)

DESCRIBE_TOOL = ToolCard(
    name="describe_tool",
    purpose="Show the card of one tool, or one argument of it at any depth, where only a part of it was shown.",
    use_when="A schema says that only part of it is shown, and the rest is needed.",
    avoid_when="The arguments are clear already.",
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the tool"},
            "argument": {
                "type": "string",
                "default": "",
                "description": "A path of names from an argument inwards, such as filter.must.range; empty for all",
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    errors=(
        ErrorCard(code="unknown_tool", advice="Use a name that find_tool gave."),
        ErrorCard(code="unknown_argument", advice="Use a path that exists; the error lists the names there."),
    ),
    examples=(ExampleCard(args={"name": "create_order", "argument": "delivery.address"}),),
    tier="read",
    egress=False,
    idempotent=True,
    max_preview_chars=16_000,
)

CALL_TOOL = ToolCard(
    name="call_tool",
    purpose="Call a tool that find_tool gave, by its name; it cannot call anything else.",
    use_when="The tool was found and is not listed here itself.",
    avoid_when="The tool is listed here: call it directly.",
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name that find_tool gave"},
            "args": {"type": "object", "description": "The arguments of that tool, as its card says"},
        },
        "required": ["name", "args"],
        "additionalProperties": False,
    },
    examples=(ExampleCard(args={"name": "get_order", "args": {"order_id": 42}}),),
    tier="destructive",  # as strict as any call that it may wrap; that call is judged by its own card
)

_CJK_RUN = lazy_pattern(f"[{CJK}]+")
_STOP_WORDS = frozenset(
    re.findall(r"\w+", "a an and any at by for from in into is it its of on or the this that to with 的 了 和")
)
_NAME_WEIGHT, _USE_WEIGHT, _ARGUMENT_WEIGHT = 3.0, 1.0, 0.6
_MAX_TEXT_CHARS = 1_000


PAGING_TOOL = "read_observation"
"""The tool that accompanies every other: it reads the part that an observation had to omit."""


def listed_cards(cards: Sequence[ToolCard]) -> Sequence[ToolCard]:
    """The cards that a prompt lists; the same object if that is all of them."""
    return cards if all(card.listed for card in cards) else tuple(card for card in cards if card.listed)


def unwrap_call_tool(call: Call, cards: Sequence[ToolCard]) -> Call:
    """The call that is meant: for `call_tool` the one that it names, else the call itself."""
    args = call.args
    if call.tool != CALL_TOOL.name or not isinstance(args, Mapping):
        return call
    if CALL_TOOL not in cards and _chinese_cards()[CALL_TOOL.name] not in cards:
        return call
    name, inner = args.get("name"), args.get("args")
    if not isinstance(name, str) or not isinstance(inner, Mapping) or len(args) != 2 or name == CALL_TOOL.name:
        return call
    return Call(tool=name, args=inner, ref=call.ref)


def is_discovery_tool(card: ToolCard | None) -> bool:
    """Whether a tool only describes the run's own tools."""
    if card is None or card.name not in (FIND_TOOL.name, DESCRIBE_TOOL.name):
        return False
    return card in (FIND_TOOL, DESCRIBE_TOOL) or card == _chinese_cards()[card.name]


@cache
def _chinese_cards() -> Mapping[str, ToolCard]:
    """The cards of this module in Chinese, by name."""
    return {card.name: card.translated(chinese_texts("core")) for card in (FIND_TOOL, DESCRIBE_TOOL, CALL_TOOL)}


def rank_cards(query: str, cards: Iterable[ToolCard], at_most: int) -> tuple[ToolCard, ...]:
    """The cards that match the words of a query, the best first; a word counts more the fewer cards contain it."""
    index = [(card, _weights(card)) for card in cards]
    query_words = search_words(query)
    document_counts = Counter(word for _, weights in index for word in query_words if word in weights)
    rarity = {word: math.log(1 + len(index) / count) for word, count in document_counts.items()}
    scores = [sum(weights[word] * rarity[word] for word in query_words if word in weights) for _, weights in index]
    best = sorted(((score, -number) for number, score in enumerate(scores) if score > 0), reverse=True)[:at_most]
    return tuple(index[-number][0] for _, number in best)


def search_words(text: str) -> set[str]:
    """The words of a text for comparison: without plural endings, Chinese as characters and pairs of them."""
    terms = {stem(word) for word in name_words(text[:_MAX_TEXT_CHARS])}
    for run in _CJK_RUN.findall(text[:_MAX_TEXT_CHARS]):
        terms.update(run)
        terms.update(cjk_pairs(run))
    return terms - _STOP_WORDS


def _weights(card: ToolCard) -> dict[str, float]:
    weights: dict[str, float] = {}
    for weight, text in (
        (_ARGUMENT_WEIGHT, " ".join(card.parameters)),
        (_USE_WEIGHT, f"{card.purpose} {card.use_when}"),
        (_NAME_WEIGHT, card.name),
    ):
        for word in search_words(text):
            weights[word] = weights.get(word, 0.0) + weight
    return weights


def summary_of(card: ToolCard, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A card as a model reads it that has found it."""
    optional = {"use_when": card.use_when, "avoid_when": card.avoid_when, "tier": card.tier}
    details = {key: text for key, text in optional.items() if text}
    return {"name": card.name, "purpose": card.purpose, **details, "arguments": schema}
