"""`find_tool`, `describe_tool` and `call_tool`: for tools that are too many for a prompt, or too large."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import CALL_TOOL, DESCRIBE_TOOL, FIND_TOOL, rank_cards, summary_of
from taoloop.core.search import suggest_names
from taoloop.errors import ToolError
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.tool import Tool

_MOST_SCHEMA_BYTES = 4_000  # of one card among several
_MOST_ALONE_BYTES = 12_000
_MOST_NAMES = 60
_MOST_STEPS = 40


def tool_search_tools(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """The tools that must stand beside these: none where all of them are told, and told whole."""
    unlisted = [tool for tool in tools if not tool.card.listed]
    tools_for_search = (
        [tool_from_card(DESCRIBE_TOOL, _Describe(tools))] if unlisted or any(t.whole_schema for t in tools) else []
    )
    if unlisted:
        tools_for_search = [
            tool_from_card(FIND_TOOL, _Find(unlisted)),
            *tools_for_search,
            tool_from_card(CALL_TOOL, _call),
        ]
    return tuple(tools_for_search)


class _Find:
    def __init__(self, tools: Iterable[Tool]) -> None:
        self._cards = tuple(tool.card for tool in tools)

    def __call__(self, query: str, limit: int = 5) -> Any:
        cards = rank_cards(query, self._cards, limit)
        if not cards:
            names = [card.name for card in self._cards]
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            return {"found": [], "hint": f"No tool fits. There are: {', '.join(names[:_MOST_NAMES])}{more}."}
        return {"found": [summary_of(card, _card_view(card)) for card in cards]}


class _Describe:
    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def __call__(self, name: str, argument: str = "") -> Any:
        tool = self._tools.get(name)
        if tool is None:
            near = ", ".join(suggest_names(name, self._tools))
            raise ToolError(
                f"There is no tool called {name[:80]!r}.", code="unknown_tool", hint=f"Near: {near}." if near else ""
            )
        whole = tool.whole_schema or tool.card.input_schema
        if not argument.strip("."):
            return summary_of(tool.card, _cut(whole, _MOST_ALONE_BYTES))
        rule = whole
        for step in argument.strip(".").split(".")[:_MOST_STEPS]:
            rule = _inner(rule, step, whole, argument)
        schema = _cut({"properties": {"it": rule}, "$defs": whole.get("$defs", {})}, _MOST_ALONE_BYTES)
        needed = _only_needed(schema["properties"]["it"], schema.get("$defs", {}))
        return {"name": name, "argument": argument, "schema": needed}


def _call(name: str, args: Mapping[str, Any]) -> Any:  # noqa: ARG001  # the card's own names
    raise ToolError(
        f"{name[:80]!r} cannot be called so.", code="unknown_tool", hint="Give `name` and `args` of one tool."
    )


def _card_view(card: ToolCard) -> Mapping[str, Any]:
    return _cut(card.input_schema, _MOST_SCHEMA_BYTES)


def _cut(schema: Mapping[str, Any], most_bytes: int) -> Mapping[str, Any]:
    from taoloop.tools.openapi.schema.truncation import truncate_schema  # noqa: PLC0415  # loads what reads documents

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
        listed = ", ".join(list(names)[:_MOST_NAMES]) or "nothing"
        raise ToolError(
            f"{argument[:80]!r} leads nowhere at {step[:40]!r}.", code="unknown_argument", hint=f"There is: {listed}."
        )
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
