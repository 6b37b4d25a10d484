"""Tools from hand-written cards: the card's JSON Schema judges, a handler does the work."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pydantic_core

from taoloop.core.cards.tool_card import ToolCard
from taoloop.errors import ToolDefinitionError
from taoloop.tools.function import is_context, parameters, probe_of
from taoloop.tools.json_schema import compile_schema, findings, listed
from taoloop.tools.result_values import write_json
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import (
    Checker,
    OutputChecker,
    Tool,
    handler_is_async,
    misfit_arguments,
    misfit_result,
    require_name,
)


def tool_from_card(
    card: ToolCard,
    handler: Callable[..., Any],
    probe: Callable[..., Any] | None = None,
    chinese: Mapping[str, str] | None = None,
) -> Tool:
    """A tool of a hand-written card and a handler that takes the arguments by name.

    The handler gets the `RunContext` if it has a parameter of that type, which may be optional. Arguments and
    results are judged by the card's schemas (Draft 2020-12, formats too, no remote references). An argument that the
    handler has no parameter for is refused, whatever the schema leaves open. `probe` and `chinese` are as for `@tool`.

    Raises:
        ToolDefinitionError: a schema is invalid or not of an object, or the handler does not fit it.
    """
    require_name(card.name)
    if card.input_schema.get("type") != "object":
        raise ToolDefinitionError(
            f"The input schema of {card.name!r} does not describe an object.",
            hint='Its top needs "type": "object".',
        )
    context_parameter, accepted = _parameters(card, handler)
    if card.probes and probe is None:
        raise ToolDefinitionError(f"The card of {card.name!r} says that it has a probe.", hint="Give it: probe=….")
    if card.transactional:
        raise ToolDefinitionError(
            f"The card of {card.name!r} says that it is transactional.",
            hint="Only @tool makes such a tool, of a function with a parameter annotated JournalConnection.",
        )
    return Tool(
        card=card if probe is None else replace(card, probes=True),
        handler=handler,
        check=_checker(card, accepted),
        check_output=None if card.output_schema is None else _output_checker(card.name, card.output_schema),
        context_parameter=context_parameter,
        is_async=handler_is_async(handler),
        probe=None if probe is None else probe_of(probe, card.name, card.parameters),
        chinese=chinese or {},
    )


def _parameters(card: ToolCard, handler: Callable[..., Any]) -> tuple[str | None, frozenset[str] | None]:
    """The parameter for the context, and the arguments that the handler takes (None for any)."""
    try:
        declared = parameters(handler)
    except (TypeError, ValueError):
        return None, None
    context = None
    required: dict[str, bool] = {}
    takes_any = False
    for parameter in declared:
        if is_context(parameter.annotation):
            context = parameter.name
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_any = True
        elif parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            required[parameter.name] = parameter.default is inspect.Parameter.empty
    unfilled = [name for name, needed in required.items() if needed and name not in card.required]
    unknown = [] if takes_any else [name for name in card.parameters if name not in required]
    if unfilled or unknown or context in card.parameters:
        problem = (
            f"its parameter {unfilled[0]!r} is not required by the schema"
            if unfilled
            else f"it has no parameter {unknown[0] if unknown else context!r}"
        )
        raise ToolDefinitionError(
            f"The handler of {card.name!r} does not fit its input schema: {problem}.",
            hint="Give the handler one parameter per argument, with a default where it is optional.",
        )
    return context, None if takes_any else frozenset(required)


def _checker(card: ToolCard, accepted: frozenset[str] | None) -> Checker:
    validator = compile_schema(card.input_schema, f"The input schema of {card.name!r}", ToolDefinitionError)

    def check(raw: bytes) -> Mapping[str, Any]:
        args: dict[str, Any] = pydantic_core.from_json(raw)
        problems = findings(validator, args)
        if accepted is not None:
            problems += [TEXTS.run_text("unknown", name=name) for name in args if name not in accepted]
        if problems:
            raise misfit_arguments(card, listed(problems))
        return args

    return check


def _output_checker(name: str, schema: Mapping[str, Any]) -> OutputChecker:
    validator = compile_schema(schema, f"The output schema of {name!r}", ToolDefinitionError)

    def check_output(result: Any) -> None:
        try:
            plain = pydantic_core.from_json(write_json(result))
        except (pydantic_core.PydanticSerializationError, ValueError, RecursionError):
            return  # `render` says it better
        if problems := findings(validator, plain):
            raise misfit_result(name, listed(problems))

    return check_output
