"""Tools from function documents: `{"name", "description", "parameters"}`, as OpenAI's API and BFCL write them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from taoloop.core.cards.tool_card import Tier, ToolCard
from taoloop.errors import ToolDefinitionError
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.openapi.document import shorten
from taoloop.tools.openapi.names import RESERVED, rename_properties, restore_names, tool_name
from taoloop.tools.openapi.schemas import json_types, standalone_schema
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadProblem, LoadResult

_MOST_PURPOSE = 1_000

Handler = Callable[[str, dict[str, Any]], Any]
"""Takes the name of a function as its document writes it, and the arguments with the document's names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCards:
    """Cards of function documents."""

    cards: tuple[ToolCard, ...]
    """The cards, in the order of the documents."""
    names: Mapping[str, str]
    """For the name of each card that of its document."""
    renamed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For each card the names of arguments that were changed, with those of the document."""
    problems: tuple[LoadProblem, ...] = ()
    """What is wrong with documents that gave no card."""


def cards_from_functions(
    documents: Iterable[Any], *, tier: Tier | None = None, source: str = "functions"
) -> FunctionCards:
    """The cards of function documents; one that is none becomes a problem and not a card.

    Names that providers refuse (dots, blanks, other scripts) are changed, the same each time. Types may be written as
    in Python or Java (`dict`, `float`, `ArrayList`, `any`). `tier` None: nobody said what the functions do, so that
    they count as the strictest.
    """
    cards: list[ToolCard] = []
    names: dict[str, str] = {}
    renamed: dict[str, Mapping[str, str]] = {}
    problems: list[LoadProblem] = []
    for index, document in enumerate(documents):
        try:
            name, card, changed = _card(document, names)
        except ValueError as error:
            problems.append(LoadProblem(source=source, place=f"[{index}]", message=str(error)))
            continue
        cards.append(replace(card, tier=tier, egress=False if tier == "read" else None))
        names[card.name] = name
        if changed:
            renamed[card.name] = changed
    return FunctionCards(cards=tuple(cards), names=names, renamed=renamed, problems=tuple(problems))


def tools_from_functions(
    documents: Iterable[Any], handler: Handler, *, tier: Tier | None = None, source: str = "functions"
) -> LoadResult:
    """Function documents as tools, all served by one handler."""
    cards = cards_from_functions(documents, tier=tier, source=source)
    tools: list[Tool] = []
    problems = list(cards.problems)
    for card in cards.cards:
        name = cards.names[card.name]
        try:
            tools.append(tool_from_card(card, partial(_call, name, cards.renamed.get(card.name, {}), handler)))
        except ToolDefinitionError as error:
            problems.append(LoadProblem(source=source, place=name, message=error.message, hint=error.hint))
    return LoadResult(tools=tuple(tools), problems=tuple(problems))


def _call(name: str, renamed: Mapping[str, str], handler: Handler, /, **args: Any) -> Any:
    return handler(name, restore_names(args, renamed))


def _card(document: Any, names: Mapping[str, str]) -> tuple[str, ToolCard, Mapping[str, str]]:
    """The document's name, the card, and the changed names of its arguments.

    Raises:
        ValueError: it is no function document; says why.
    """
    function = document.get("function", document) if isinstance(document, Mapping) else None
    if not isinstance(function, Mapping):
        raise ValueError("It is no function document: it must be an object with `name`, `description`, `parameters`.")
    name = function.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ValueError("The function has no name.")
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    if not isinstance(parameters, Mapping):
        raise ValueError(f"The parameters of {name[:80]!r} are no schema.")
    if json_types(parameters.get("type", "object")) not in (["object"], []):
        raise ValueError(f"The parameters of {name[:80]!r} describe no object.")
    schema = standalone_schema(_without_optional(parameters))
    schema = {"properties": {}, **schema, "type": "object"}
    required = [parameter for parameter in schema.pop("required", ()) if parameter in schema["properties"]]
    schema = {"additionalProperties": False, **schema, **({"required": required} if required else {})}
    renamed, changed = rename_properties(schema)
    free = frozenset(names) | RESERVED
    path = name if name not in names.values() else f"{name}#{len(names)}"
    card = ToolCard(
        name=_free_name(name, path, free),
        purpose=shorten(function.get("description"), _MOST_PURPOSE) or f"Call {name}.",
        input_schema=renamed,
        described_by="third_party",
    )
    return name, card, changed


def _free_name(name: str, path: str, names: frozenset[str]) -> str:
    """The name for a card: of several that would be the same, by a digest over the document's own."""
    if any(char.isalnum() and not char.isascii() for char in name):
        name = f"function_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return tool_name(name, "call", path, prefix="", used=names)


def _without_optional(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters without those among the required that say of themselves that they are optional."""
    properties = parameters.get("properties")
    required = parameters.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return parameters
    optional = {name for name, rule in properties.items() if isinstance(rule, Mapping) and rule.get("optional") is True}
    return {**parameters, "required": [name for name in required if name not in optional]}
