"""Tools that a prompt does not list, because there are too many: how a model finds and calls them. Pure.

Their cards are in the run's description like all others, so a call of one is judged by its own name, arguments and
tier. `find_tool` returns the cards that match some words; `call_tool` stands for the call that it names, for providers
whose models can only call listed tools. What `find_tool` and `describe_tool` return is the operator's own choice of
cards, as it would be in the prompt: it is not an observation of the world.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard
from taoloop.core.decision import Call
from taoloop.core.ranking.bm25 import Bm25Index, RankedField
from taoloop.core.ranking.query import query_words
from taoloop.core.text import chinese_texts
from taoloop.core.words import name_words

FIND_TOOL = ToolCard(
    name="find_tool",
    purpose="Find tools that are not listed here, by what they do. Gives at most 20 in brief, the first ones whole.",
    use_when="No listed tool does what is needed.",
    avoid_when="A listed tool, or one that was found before, does it.",
    input_schema={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": 500,
                "description": "What the tool must do, with other words for the same thing and always with English "
                "keywords, such as: kick, remove, delete member of guild",
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

_FIELDS = (
    RankedField(3.0),  # the name
    RankedField(1.5),  # the first sentence of the purpose
    RankedField(0.5),  # the rest of it, and when to use the tool
    RankedField(1.5),  # further keywords
    RankedField(0.4),  # the names of the arguments
    RankedField(0.2),  # what is said about the arguments
)
_MAX_TEXT_CHARS = 2_000
_MAX_ARGUMENT_CHARS = 200
_MAX_ABOUT_CHARS = 1_000


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


class CardIndex:
    """Cards that are found by the words of a query: of the name, the texts, the arguments, and further keywords."""

    def __init__(self, cards: Iterable[ToolCard], keywords: Mapping[str, str] | None = None) -> None:
        """`keywords` are further words of a card, by its name."""
        self.cards = tuple(cards)
        further = keywords or {}
        self._index = Bm25Index(_FIELDS, (_card_texts(card, further.get(card.name, "")) for card in self.cards))

    def search(self, query: str, at_most: int) -> tuple[ToolCard, ...]:
        """The cards that match the query best, the best first."""
        return tuple(self.cards[number] for number in self.rank(query, at_most))

    def rank(self, query: str, at_most: int) -> list[int]:
        """The positions in `cards` of those that match the query best, the best first."""
        return [number for number, _ in self._index.rank(query_words(query), at_most)]


def rank_cards(query: str, cards: Iterable[ToolCard], at_most: int) -> tuple[ToolCard, ...]:
    """The cards that match the words of a query, the best first. The last few indexes are kept."""
    return _index_of(_SameCards(tuple(cards))).search(query, at_most)


@dataclass(frozen=True, slots=True, eq=False)
class _SameCards:
    """Cards that equal others if they are the same objects: comparing them by value takes as long as indexing them."""

    cards: tuple[ToolCard, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameCards) and [*map(id, self.cards)] == [*map(id, other.cards)]

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.cards)))


@lru_cache(maxsize=4)
def _index_of(same: _SameCards) -> CardIndex:
    return CardIndex(same.cards)


def card_text(card: ToolCard, keywords: str = "") -> str:
    """What a card is about, in at most 1,000 characters: its name, its purpose, and further keywords."""
    name, summary, details, further, *_ = _card_texts(card, keywords)
    return "\n".join((" ".join(name_words(name)), summary, further, details))[:_MAX_ABOUT_CHARS]


def _card_texts(card: ToolCard, keywords: str) -> tuple[str, ...]:
    """The fields of a card in the order of `_FIELDS`."""
    purpose = card.purpose[:_MAX_TEXT_CHARS].partition(" Returns {")[0]
    summary, _, details = purpose.partition(". ")
    described = " ".join(_description(rule) for rule in card.parameters.values())
    parameters = " ".join(card.parameters)
    return card.name, summary, f"{details} {card.use_when}", keywords, parameters, described[:_MAX_TEXT_CHARS]


def _description(rule: Any) -> str:
    description = rule.get("description", "") if isinstance(rule, Mapping) else ""
    return description[:_MAX_ARGUMENT_CHARS] if isinstance(description, str) else ""


def summary_of(card: ToolCard, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A card as a model reads it that has found it."""
    optional = {"use_when": card.use_when, "avoid_when": card.avoid_when, "tier": card.tier}
    details = {key: text for key, text in optional.items() if text}
    return {"name": card.name, "purpose": card.purpose, **details, "arguments": schema}
