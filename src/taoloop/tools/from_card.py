"""Tools from hand-written cards: the card's JSON Schema judges, a handler does the work."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from typing import Any

import pydantic_core

from taoloop.core.cards.tool_card import TIERS, ErrorCard, ExampleCard, ToolCard
from taoloop.core.search import suggest_names
from taoloop.errors import ToolDefinitionError
from taoloop.tools.function import is_context, parameters, probe_of
from taoloop.tools.json_schema import compile_schema, findings, listed
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

    The handler gets the `ToolContext` if it has a parameter of that type, which may be optional. Arguments and
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
            plain = pydantic_core.to_jsonable_python(result)
        except (pydantic_core.PydanticSerializationError, ValueError, RecursionError):
            return  # `render` says it better
        if problems := findings(validator, plain):
            raise misfit_result(name, listed(problems))

    return check_output


def card_from_mapping(mapping: Mapping[str, Any], where: str) -> ToolCard:
    """The card that plain data (of YAML or JSON) describes by the fields of `ToolCard`; errors name `where`.

    A missing tier stays None.

    Raises:
        ToolDefinitionError: a field is unknown, missing or of the wrong type; names it.
    """
    fields = _record(ToolCard, mapping, where)
    for name, shape in (("errors", ErrorCard), ("examples", ExampleCard)):
        if name in fields:
            fields[name] = tuple(
                shape(**_record(shape, item, f"{where}: {name}[{index}]")) for index, item in enumerate(fields[name])
            )
    if fields.get("tier") is not None and fields["tier"] not in TIERS:
        raise _wrong(where, "tier", f"one of {', '.join(TIERS)}", fields["tier"])
    if fields.get("approval") not in (None, "required"):
        raise _wrong(where, "approval", "required", fields["approval"])
    for name in ("timeout_s", "max_input_bytes", "max_preview_chars"):
        if name in fields and not fields[name] > 0:
            raise _wrong(where, name, "more than 0", fields[name])
    if isinstance(fields.get("egress"), list | tuple):
        if not all(isinstance(name, str) for name in fields["egress"]):
            raise _wrong(where, "egress", _KINDS["egress"][1], fields["egress"])
        fields["egress"] = tuple(fields["egress"])
    require_name(fields["name"])
    return ToolCard(**fields)


_NOT_DECLARED = ("performed_by",)  # whoever asks for a run says it of tools of their own

_KINDS: dict[str, tuple[type[Any] | tuple[type[Any], ...], str]] = {
    "name": (str, "a text"),
    "purpose": (str, "a text"),
    "use_when": (str, "a text"),
    "avoid_when": (str, "a text"),
    "input_schema": (Mapping, "a mapping"),
    "output_schema": ((Mapping, type(None)), "a mapping"),
    "errors": ((list, tuple), "a list"),
    "examples": ((list, tuple), "a list"),
    "tier": ((str, type(None)), "a text"),
    "approval": ((str, type(None)), "required"),
    "timeout_s": ((int, float), "a number of seconds"),
    "max_input_bytes": (int, "a whole number"),
    "max_preview_chars": (int, "a whole number"),
    "idempotent": (bool, "true or false"),
    "probes": (bool, "true or false"),
    "transactional": (bool, "true or false"),
    "listed": (bool, "true or false"),
    "parallel": ((bool, type(None)), "true or false"),
    "compensation": ((str, type(None)), "a text"),
    "compensation_args": (Mapping, "a mapping"),
    "egress": ((bool, list, tuple, type(None)), "true, false, or a list of arguments"),
    "roles": (Mapping, "a mapping from arguments to roles"),
    "ids": (Mapping, "a mapping from fields of the output to kinds of ids"),
    "reversible": ((bool, type(None)), "true or false"),
    "code": (str, "a text"),
    "retryable": (bool, "true or false"),
    "advice": (str, "a text"),
    "args": (Mapping, "a mapping"),
    "note": (str, "a text"),
}


def _record(shape: type[Any], record: Any, where: str) -> dict[str, Any]:
    """The fields of a dataclass from plain data, each known and of its kind."""
    if not isinstance(record, Mapping):
        raise ToolDefinitionError(f"{where}: a mapping is expected, not {type(record).__name__}.")
    known = {field.name: field for field in fields(shape) if field.name not in _NOT_DECLARED}
    for name, value in record.items():
        if name not in known:
            near = suggest_names(str(name), known, at_most=1)
            raise ToolDefinitionError(
                f"{where}: there is no field {str(name)!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else f"The fields are {', '.join(known)}.",
            )
        kind, expected = _KINDS.get(name, (object, ""))
        if not isinstance(value, kind) or (isinstance(value, bool) and "number" in expected):
            raise _wrong(where, name, expected, value)
    for name, field in known.items():
        if field.default is MISSING and field.default_factory is MISSING and name not in record:
            raise ToolDefinitionError(f"{where}: the field {name!r} is missing.")
    return dict(record)


def _wrong(where: str, name: str, expected: str, value: Any) -> ToolDefinitionError:
    return ToolDefinitionError(f"{where}: the field {name!r} must be {expected}, not {repr(value)[:60]}.")
