"""A set of tools by name, what a source of tools gave, and the tools that search a set too large for a prompt."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import CALL_TOOL, CHINESE, DESCRIBE_TOOL, FIND_TOOL, rank_cards, summary_of
from taoloop.core.search import suggest_names
from taoloop.core.text import RUN_LANGUAGE
from taoloop.errors import ToolDefinitionError, UnknownName
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import Tool


class Toolbox:
    """Tools by name, in the order in which they were registered. It does not change.

    Raises:
        ToolDefinitionError: two tools have the same name, a function cannot become a tool, or what is given is no
            list of tools.
    """

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for entry in _listed(tools):
            tool = entry if isinstance(entry, Tool) else _to_tool(entry)
            if tool.name in self._tools:
                raise ToolDefinitionError(
                    f"Two tools are called {tool.name!r}.",
                    hint="Rename one: `.with_card(name=…)` or `@tool(name=…)`.",
                )
            self._tools[tool.name] = tool

    def __iter__(self) -> Iterator[Tool]:
        """The tools in the order of registration."""
        return iter(self._tools.values())

    def __len__(self) -> int:
        """How many tools there are."""
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        """True if a tool has this name."""
        return name in self._tools

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the order of registration."""
        return tuple(self._tools)

    @property
    def cards(self) -> tuple[ToolCard, ...]:
        """The cards in the order of registration."""
        return tuple(tool.card for tool in self)

    def cards_in(self, language: str) -> tuple[ToolCard, ...]:
        """The cards for a run in `language`, in the order of registration."""
        return tuple(tool.card_in(language) for tool in self)

    def get(self, name: str) -> Tool:
        """The tool with this name.

        Raises:
            UnknownName: there is none; lists those that exist.
        """
        try:
            return self._tools[name]
        except KeyError:
            raise UnknownName("tool", name, self.names) from None

    def allow(self, names: Iterable[str]) -> Toolbox:
        """Only the tools with these names, still in the order of registration: the allow-list of a run.

        Raises:
            UnknownName: a name stands for no tool.
            ToolDefinitionError: one text was given instead of a list of names.
        """
        if isinstance(names, str):
            raise ToolDefinitionError(
                f"The names of tools must be a list, not the text {names[:80]!r}.", hint=f"Write [{names[:80]!r}]."
            )
        allowed = {self.get(name).name for name in names}
        return Toolbox(tool for tool in self if tool.name in allowed)


def _listed(tools: Any) -> Iterable[Any]:
    """What was given for a list of tools, if it is one."""
    if isinstance(tools, str | bytes):
        raise ToolDefinitionError(
            f"Tools must be given as a list, not as the text {tools[:80]!r}.",
            hint="Give functions or tools, such as `[my_function]`; `builtin_tools()` has the built-in ones by name.",
        )
    if isinstance(tools, Mapping):
        raise ToolDefinitionError("Tools must be given as a list, not by name.", hint="Give the mapping's `.values()`.")
    if isinstance(tools, Iterable):
        return tools
    raise ToolDefinitionError(
        f"Tools must be given as a list, not as one {type(tools).__name__}.",
        hint="Write `[…]` around it." if callable(tools) else "Give functions or tools, such as `[my_function]`.",
    )


def _to_tool(entry: Any) -> Tool:
    if not callable(entry):
        raise ToolDefinitionError(
            f"{str(entry)[:80]!r} is no tool: it is of the type {type(entry).__name__!r}.",
            hint="Give a typed function, or a tool made with @tool.",
        )
    from taoloop.tools.function import function_tool  # noqa: PLC0415  # loads the schema machinery; only for functions

    return function_tool(entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProblem:
    """One thing that a source of tools could not give. Its other tools can be used all the same."""

    source: str
    """The file, address or server."""
    place: str
    """The spot in it, such as `paths./pets.get` or `line 12`; may be empty."""
    message: str
    """What is wrong, as a sentence."""
    hint: str = ""
    """What to do, as a sentence."""

    def __str__(self) -> str:
        """One line."""
        where = f"{self.source}: {self.place}" if self.place else self.source
        return f"{where}: {self.message}" + (f" {self.hint}" if self.hint else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What loading gave: the tools of one source or several, and what was wrong with the others."""

    tools: tuple[Tool, ...] = ()
    """The tools, in their order."""
    problems: tuple[LoadProblem, ...] = ()
    """What could not be used."""

    @classmethod
    def joined(cls, parts: Iterable[LoadResult]) -> LoadResult:
        """Several as one."""
        parts = tuple(parts)
        return cls(
            tools=tuple(tool for part in parts for tool in part.tools),
            problems=tuple(problem for part in parts for problem in part.problems),
        )


_MOST_SCHEMA_BYTES = 4_000  # of one card among several
_MOST_ALONE_BYTES = 12_000
_MOST_NAMES = 60
_MOST_STEPS = 40


def tool_search_tools(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """`find_tool`, `describe_tool` and `call_tool`, as far as they have to be offered with these tools.

    None of them is where the prompt lists all tools, and lists them whole.
    """
    from taoloop.tools.from_card import tool_from_card  # noqa: PLC0415  # likewise; only for tools that are searched

    unlisted = [tool for tool in tools if not tool.card.listed]
    handlers: list[tuple[ToolCard, Callable[..., Any]]] = []
    if unlisted or any(tool.whole_schema for tool in tools):
        handlers = [(DESCRIBE_TOOL, partial(_describe, {tool.name: tool for tool in tools}))]
    if unlisted:
        handlers = [(FIND_TOOL, partial(_find, unlisted)), *handlers, (CALL_TOOL, _call)]
    return tuple(tool_from_card(card, handler, chinese=CHINESE) for card, handler in handlers)


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
