"""`find_tool`, `describe_tool` and `call_tool`: for tools that are too many for a prompt, or too large."""

from __future__ import annotations

import json
import logging
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import CALL_TOOL, DESCRIBE_TOOL, FIND_TOOL, CardIndex, card_text, summary_of
from taoloop.core.search import suggest_names
from taoloop.core.text import RUN_LANGUAGE, chinese_texts
from taoloop.errors import ToolError
from taoloop.tools.embedding import BATCH_SIZE, Embedder, cosine, embed_texts, reciprocal_rank_fusion
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import Tool

_LOG = logging.getLogger("taoloop")

_MAX_MERGED = 50  # cards of each ranking; more than `limit` can be
_MOST_FOUND_CHARS = 1_500  # of an answer of find_tool; describe_tool gives the rest
_MOST_CHARS_EACH = 300  # where more than five are asked for
_MOST_BRIEF_CHARS = 90
_MOST_SCHEMA_BYTES = 4_000  # of one card among several
_MOST_ALONE_BYTES = 12_000
_MOST_NAMES = 60
_MOST_STEPS = 40


def tool_search_tools(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """`find_tool`, `describe_tool` and `call_tool`, as far as they have to be offered with these tools.

    None of them is where the prompt lists all tools, and lists them whole.
    """
    unlisted = [tool for tool in tools if not tool.card.listed]
    handlers: list[tuple[ToolCard, Callable[..., Any]]] = []
    if unlisted or any(tool.whole_schema for tool in tools):
        handlers = [(DESCRIBE_TOOL, partial(_describe, {tool.name: tool for tool in tools}))]
    if unlisted:
        handlers = [(FIND_TOOL, _ToolSearch(unlisted).find), *handlers, (CALL_TOOL, _call)]
    return tuple(tool_from_card(card, handler, chinese=chinese_texts("core")) for card, handler in handlers)


class _ToolSearch:
    """The handler of `find_tool`. An index is built at the first search in a language."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools
        self._indexes: dict[str, CardIndex] = {}
        self._vectors: dict[str, list[_CardVectors]] = {}

    def find(self, query: str, limit: int = 5) -> Any:
        """The cards that match, as much of each as fits."""
        language = RUN_LANGUAGE.get()
        index = self._index(language)
        by_words = index.rank(query, _MAX_MERGED)
        similarities: dict[int, float] = {}
        for vectors in self._card_vectors(language):
            similarities |= vectors.compare(query)
        similar = (number for number in similarities if similarities[number] > 0)
        by_meaning = sorted(similar, key=lambda number: -similarities[number])[:_MAX_MERGED]
        cards = [index.cards[number] for number in [*reciprocal_rank_fusion((by_words, by_meaning))][:limit]]
        if not cards:
            return {"found": [], "hint": _hint_without_match([card.name for card in index.cards])}
        return _found(cards, max(_MOST_FOUND_CHARS, _MOST_CHARS_EACH * limit))

    def _index(self, language: str) -> CardIndex:
        if language not in self._indexes:
            keywords = {tool.name: tool.keywords for tool in self._tools if tool.keywords}
            self._indexes[language] = CardIndex([tool.card_in(language) for tool in self._tools], keywords)
        return self._indexes[language]

    def _card_vectors(self, language: str) -> list[_CardVectors]:
        """The vectors of each embedding model that a tool has."""
        if language not in self._vectors:
            models: dict[int, tuple[Embedder, dict[int, str]]] = {}
            for number, tool in enumerate(self._tools):
                if tool.embedder is not None:
                    _, texts = models.setdefault(id(tool.embedder), (tool.embedder, {}))
                    texts[number] = card_text(tool.card_in(language), tool.keywords)
            self._vectors[language] = [_CardVectors(*model) for model in models.values()]
        return self._vectors[language]


class _CardVectors:
    """What some cards are about, as vectors of one embedding model, which are computed at the first search."""

    def __init__(self, embedder: Embedder, texts: Mapping[int, str]) -> None:
        """`texts` are those of the cards by their numbers."""
        self._embedder, self._texts = embedder, texts
        self._vectors: dict[int, array[float]] = {}
        self._lock = threading.Lock()

    def compare(self, query: str) -> dict[int, float]:
        """How similar each card is to the query, -1 to 1, by its number; nothing if the model fails."""
        try:
            with self._lock:
                self._vectors = self._vectors or self._embed_cards()
            query_vector = embed_texts(self._embedder, [query])[0]
        except ToolError as error:
            _LOG.warning("%s Tools are found by words only.", error.message)
            return {}
        vectors = self._vectors.items()
        return {number: cosine(query_vector, vector) for number, vector in vectors if len(vector) == len(query_vector)}

    def _embed_cards(self) -> dict[int, array[float]]:
        numbers = list(self._texts)
        batches = [numbers[start : start + BATCH_SIZE] for start in range(0, len(numbers), BATCH_SIZE)]
        return {
            number: vector
            for batch in batches
            for number, vector in zip(
                batch, embed_texts(self._embedder, [self._texts[number] for number in batch]), strict=True
            )
        }


def _hint_without_match(names: Sequence[str]) -> str:
    lengths = accumulate(len(name) + 2 for name in names[:_MOST_NAMES])
    shown = sum(length <= _MOST_FOUND_CHARS - _MOST_CHARS_EACH for length in lengths)
    more = TEXTS.run_text("more_names", count=len(names) - shown) if len(names) > shown else ""
    return TEXTS.run_text("no_tool_found", names=", ".join(names[:shown]), more=more)


def _found(cards: Sequence[ToolCard], most_chars: int) -> dict[str, Any]:
    """The cards in brief, and of the first ones as much as fits into `most_chars` characters of JSON."""
    entries = [_brief(card) for card in cards]
    answer = {"found": entries, "hint": TEXTS.run_text("shown_in_brief")}
    free = most_chars - _json_chars(answer)
    for number, card in enumerate(cards):
        whole = summary_of(card, _cut(card.input_schema, _MOST_SCHEMA_BYTES))
        free -= _json_chars(whole) - _json_chars(entries[number])
        if free < 0:
            return answer
        entries[number] = whole
    return {"found": entries}


def _brief(card: ToolCard) -> dict[str, Any]:
    """A card in about 250 characters: what it does in a sentence, and the names of its arguments."""
    names = [*card.required, *(f"{name}?" for name in card.parameters if name not in card.required)]
    purpose = card.purpose.partition(" Returns {")[0]
    sentence = purpose.partition(". ")[0]
    tier = {"tier": card.tier} if card.tier else {}
    return {"name": card.name, "purpose": _clip(sentence), **tier, "arguments": _clip(", ".join(names))}


def _clip(text: str) -> str:
    return text if len(text) <= _MOST_BRIEF_CHARS else f"{text[: _MOST_BRIEF_CHARS - 1]}…"


def _json_chars(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _describe(tools: Mapping[str, Tool], name: str, argument: str = "") -> Any:
    tool = tools.get(name)
    if tool is None:
        near = ", ".join(suggest_names(name, tools))
        hint = TEXTS.run_text("near", names=near) if near else ""
        raise TEXTS.error("no_such_tool", "unknown_tool", hint=hint, name=name[:80])
    card = tool.card_in(RUN_LANGUAGE.get())
    whole = tool.whole_schema or card.input_schema
    if not argument.strip("."):
        return summary_of(card, _cut(whole, _MOST_ALONE_BYTES))
    rule = whole
    for step in argument.strip(".").split(".")[:_MOST_STEPS]:
        rule = _inner(rule, step, whole, argument)
    schema = _cut({"properties": {"it": rule}, "$defs": whole.get("$defs", {})}, _MOST_ALONE_BYTES)
    needed = _only_needed(schema["properties"]["it"], schema.get("$defs", {}))
    return {"name": name, "argument": argument, "schema": needed}


def _call(name: str, args: Mapping[str, Any]) -> Any:  # noqa: ARG001  # the card's own names
    raise TEXTS.error("not_so", "unknown_tool", name=name[:80])


def _cut(schema: Mapping[str, Any], most_bytes: int) -> Mapping[str, Any]:
    from taoloop.tools.openapi.truncation import truncate_schema  # noqa: PLC0415  # loads what reads documents

    return truncate_schema(schema, most_bytes).schema


def _inner(rule: Any, step: str, root: Mapping[str, Any], argument: str) -> Any:
    """The schema of one property, through lists, references and alternatives."""
    names: dict[str, Any] = {}
    waiting, visited = [rule], 0
    while waiting and visited < 500:
        rule_node, visited = waiting.pop(), visited + 1
        if not isinstance(rule_node, Mapping):
            continue
        for name, inner in rule_node.get("properties", {}).items():
            names.setdefault(name, inner)
        for key in ("allOf", "anyOf", "oneOf", "prefixItems"):
            waiting += rule_node.get(key, ())
        waiting += [rule_node[key] for key in ("items", "additionalProperties") if key in rule_node]
        if isinstance(rule_node.get("$ref"), str):
            waiting.append(root.get("$defs", {}).get(rule_node["$ref"].removeprefix("#/$defs/")))
    if step not in names:
        hint = TEXTS.run_text(
            "no_such_argument_hint", names=", ".join(list(names)[:_MOST_NAMES]) or TEXTS.run_text("nothing")
        )
        raise TEXTS.error("no_such_argument", "unknown_argument", hint=hint, argument=argument[:80], step=step[:40])
    return names[step]


def _only_needed(rule: Any, components: Mapping[str, Any]) -> Any:
    """A schema with those components that it uses."""
    needed: dict[str, Any] = {}
    waiting = [rule]
    while waiting:
        text = json.dumps(waiting.pop())
        for name, schema in components.items():
            if name not in needed and f'"#/$defs/{name}"' in text:
                needed[name] = schema
                waiting.append(schema)
    return {**rule, "$defs": needed} if needed and isinstance(rule, Mapping) else rule
