"""`find_tool`, `describe_tool` and `call_tool`: for tools that are too many for a prompt, or too large."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import CALL_TOOL, DESCRIBE_TOOL, FIND_TOOL, rank_cards, summary_of
from taoloop.core.search import suggest_names
from taoloop.core.text import RUN_LANGUAGE, chinese_texts
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import Tool

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
        handlers = [(FIND_TOOL, partial(_find, unlisted)), *handlers, (CALL_TOOL, _call)]
    return tuple(tool_from_card(card, handler, chinese=chinese_texts("core")) for card, handler in handlers)


def _find(tools: Sequence[Tool], query: str, limit: int = 5) -> Any:
    all_cards = [tool.card_in(RUN_LANGUAGE.get()) for tool in tools]
    cards = rank_cards(query, all_cards, limit)
    if not cards:
        names = [card.name for card in all_cards]
        more = TEXTS.run_text("more_names", count=len(names) - _MOST_NAMES) if len(names) > _MOST_NAMES else ""
        hint = TEXTS.run_text("no_tool_found", names=", ".join(names[:_MOST_NAMES]), more=more)
        return {"found": [], "hint": hint}
    return {"found": [summary_of(card, _cut(card.input_schema, _MOST_SCHEMA_BYTES)) for card in cards]}


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

    return truncate_schema(schema, most_bytes)


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
