"""The card of an operation, from its summary, parameters, examples and error responses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from taoloop.core.cards.tool_card import TIERS, ErrorCard, ExampleCard, Tier, ToolCard
from taoloop.core.handles import schema_signature
from taoloop.dialects.prompt import describe
from taoloop.errors import ConfigError, ToolDefinitionError
from taoloop.tools.json_schema import compile_schema, findings
from taoloop.tools.openapi.document import (
    SourceBytes,
    as_list,
    as_mapping,
    parse_document,
    plain_text,
    sentences,
    shorten,
)
from taoloop.tools.openapi.names import (
    ComponentNames,
    append_note,
    flatten_object,
    original_name_note,
    rename_properties,
)
from taoloop.tools.openapi.operation import Body, Operation, Parameter, Plan, PlannedTool
from taoloop.tools.openapi.operation_call import RETRYABLE_STATUSES, error_code
from taoloop.tools.openapi.operation_reader import OperationReader, accepts_idempotency_key
from taoloop.tools.openapi.request import is_operator_supplied
from taoloop.tools.openapi.settings import OpenapiSource, best_match, matches
from taoloop.tools.openapi.truncation import truncate_schema

_CORRECT = "Correct the schemas of its parameters and body in the document."

_TIERS: Mapping[str, Tier] = {
    **dict.fromkeys(("GET", "HEAD", "OPTIONS", "TRACE", "QUERY"), "read"),
    **dict.fromkeys(("POST", "PUT", "PATCH"), "write"),
    "DELETE": "destructive",
}
_MAX_PURPOSE, _MAX_WHEN, _MAX_ADVICE, _MAX_RETURNS = 600, 300, 120, 240
_MAX_ERRORS, _MAX_EXAMPLE = 8, 600
MAX_TOOL_DESCRIPTION = 1_024
"""The length of a tool description that every provider accepts."""

_USE = re.compile(r"(?:use (?:this|it|when|for)|call this|useful (?:for|when|if))\b", re.IGNORECASE)
_AVOID = re.compile(
    r"(?:do not|don't|never|avoid|not (?:for|to be)|please do not|this (?:endpoint|method|operation|api) "
    r"(?:is deprecated|does not|cannot|will be removed|must not|should not))\b|deprecated|不要|不用于|请勿|仅限",
    re.IGNORECASE,
)
_FILE_NOTE = "A file: its text, or a data: URL with its bytes in base64."


def build_plan(source: OpenapiSource, document: SourceBytes) -> Plan:
    """The plan of a source for the bytes of its document.

    Raises:
        ToolSourceError: it is not an OpenAPI document.
    """
    reader = OperationReader(parse_document(document), source)
    operations = tuple(reader.operations())
    listed = len(operations) <= source.search_above
    tools: list[PlannedTool] = []
    names: ComponentNames = {}
    for operation in operations:
        try:
            tools.append(_plan_tool(operation, source, names, listed=listed))
        except ToolDefinitionError as error:
            reader.problem_log.add(operation.document_path, f"It is omitted. {error.message}", _CORRECT)
    return Plan(tools=tuple(tools), problems=reader.problem_log.problems, files=reader.references.files)


def _plan_tool(operation: Operation, source: OpenapiSource, names: ComponentNames, *, listed: bool) -> PlannedTool:
    card = card_of(operation, source)
    whole_schema, original_names = rename_properties(card.input_schema, names)
    compile_schema(whole_schema, f"The input schema of {operation.name!r}", ToolDefinitionError)
    shown_schema, widened = truncate_schema(whole_schema, source.max_card_bytes)
    if widened:  # nothing is required of them that is not shown
        shown_rules = {name: shown_schema["properties"][name] for name in widened}
        whole_schema = {**whole_schema, "properties": {**whole_schema["properties"], **shown_rules}}
    without_schemas = tuple(replace(response, schema=None) for response in operation.responses)
    return PlannedTool(
        operation=replace(operation, responses=without_schemas),
        card=replace(card, input_schema=shown_schema, listed=listed),
        whole_schema=whole_schema if shown_schema is not whole_schema else None,
        original_names=original_names,
    )


def card_of(operation: Operation, source: OpenapiSource) -> ToolCard:
    """The card of an operation with its whole input schema."""
    schema = input_schema(operation, source)
    purpose, use_when, avoid_when = _describe(operation)
    overrides = as_mapping(operation.extensions.get("x-tool-card"))
    tier = tier_of(operation, source)
    card = ToolCard(
        name=operation.name,
        purpose=shorten(overrides.get("purpose"), _MAX_PURPOSE) or purpose,
        use_when=shorten(overrides.get("use_when"), _MAX_WHEN) or use_when,
        avoid_when=shorten(overrides.get("avoid_when"), _MAX_WHEN) or avoid_when,
        input_schema=schema,
        errors=_error_cards(operation),
        examples=_example_cards(schema),
        tier=tier,
        approval="required" if needs_approval(operation, source) else None,
        timeout_s=source.timeout_s,
        idempotent=accepts_idempotency_key(operation, source),
        egress=False if tier == "read" else None,
        described_by="third_party",
    )
    return _fit_description(card)


def _fit_description(card: ToolCard) -> ToolCard:
    """The card, shortened until providers accept its description; the least important parts go first."""
    steps: tuple[Callable[[ToolCard], ToolCard], ...] = (
        lambda card: replace(card, examples=()),
        lambda card: replace(card, errors=tuple(replace(error, advice="") for error in card.errors)),
        lambda card: replace(card, use_when=shorten(card.use_when, 150), avoid_when=shorten(card.avoid_when, 150)),
        lambda card: replace(card, purpose=shorten(card.purpose, 400)),
    )
    for step in steps:
        if len(describe(card)) <= MAX_TOOL_DESCRIPTION:
            break
        card = step(card)
    return card


def tier_of(operation: Operation, source: OpenapiSource) -> Tier:
    """The tier of an operation: from the settings, else from the document, else from the method."""
    if (entry := best_match(operation, source.tiers)) is not None:
        return source.tiers[entry]
    declared = operation.extensions.get("x-tier")
    return next((tier for tier in TIERS if tier == declared), _TIERS.get(operation.method, "destructive"))


def needs_approval(operation: Operation, source: OpenapiSource) -> bool:
    """Whether each call needs approval, by the settings or by the document."""
    return matches(operation, source.approval) or operation.extensions.get("x-approval") in ("required", True)


def input_schema(operation: Operation, source: OpenapiSource) -> dict[str, Any]:
    """The schema of the arguments of an operation, for path, query, headers, cookies and body together."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    components: dict[str, Any] = {}
    for parameter in operation.parameters:
        if is_operator_supplied(parameter, operation, source):
            continue
        properties[parameter.arg] = _parameter_schema(parameter, components)
        if parameter.required:
            required.append(parameter.arg)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if operation.body is not None:
        _add_body(operation.body, source, schema, required, components)
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if components:
        schema["$defs"] = components
    return schema


def _add_body(
    body: Body, source: OpenapiSource, schema: dict[str, Any], required: list[str], components: dict[str, Any]
) -> None:
    properties: dict[str, Any] = schema["properties"]
    flat = flatten_object(body.schema) if body.args else None
    rule = _without_components(body.schema, components)
    if flat is None:
        properties[body.whole_arg] = _with_description(_note_file_format(rule), body.description)
        if body.required:
            required.append(body.whole_arg)
        return
    for arg, name in body.args.items():
        if name in source.secrets:  # supplied by the settings
            continue
        properties[arg] = append_note(_note_file_format(flat.properties[name]), original_name_note(name, arg))
        if name in flat.required:  # even if the document does not require the body itself
            required.append(arg)


def _parameter_schema(parameter: Parameter, components: dict[str, Any]) -> Any:
    rule = _without_components(parameter.schema, components)
    if parameter.deprecated:
        rule["deprecated"] = True
    note = original_name_note(parameter.name, parameter.arg)
    return _with_description(rule, f"{parameter.description} {note}".strip())


def _without_components(schema: Mapping[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """A schema without its `$defs`, which are added to `components`."""
    components.update(schema.get("$defs", {}))
    return {key: value for key, value in schema.items() if key != "$defs"}


def _with_description(rule: dict[str, Any], note: str) -> dict[str, Any]:
    own = rule.get("description", "")
    if note and note != own:
        rule = {**rule, "description": note if not own or own in note else f"{note} {own}"}
    return rule


def _note_file_format(rule: Any) -> Any:
    """A schema of bytes with a note on how a model passes them."""
    is_file = isinstance(rule, Mapping) and rule.get("format") == "binary"
    return append_note(rule, _FILE_NOTE) if is_file else rule


def _describe(operation: Operation) -> tuple[str, str, str]:
    """Purpose, when to use the operation, and when to avoid it."""
    summary, description = plain_text(operation.summary), plain_text(operation.description)
    parts = [sentence for sentence in sentences(description) if sentence.rstrip(".") != summary.rstrip(".")]
    use_when = " ".join(sentence for sentence in parts if _USE.match(sentence))
    avoid_when = " ".join(sentence for sentence in parts if _AVOID.search(sentence) and not _USE.match(sentence))
    rest = " ".join(sentence for sentence in parts if not _USE.match(sentence) and not _AVOID.search(sentence))
    if not summary and not rest:
        rest, use_when, avoid_when = description or f"{operation.method} {operation.path}", "", ""
    if summary and summary[-1] not in ".!?。！？…":
        summary += "."
    purpose = shorten(f"{summary} {rest}".strip(), _MAX_PURPOSE)
    if returned := _result_signature(operation):
        purpose = f"{purpose} Returns {returned}"
    if operation.deprecated:
        avoid_when = f"It is deprecated. {avoid_when}".strip()
    return purpose, shorten(use_when, _MAX_WHEN), shorten(avoid_when, _MAX_WHEN)


def _result_signature(operation: Operation) -> str:
    """The form of the response in one line; empty if the document does not define it, or if it is too long."""
    schemas = [reply.schema for reply in operation.responses if reply.status[:1] == "2" and reply.schema is not None]
    form = schema_signature(schemas[0]) if schemas else ""
    return "" if form in ("…", "{…}", "object", "[…]") or len(form) > _MAX_RETURNS else form


def _error_cards(operation: Operation) -> tuple[ErrorCard, ...]:
    """The documented error responses, with the codes that a call reports."""
    errors: dict[str, ErrorCard] = {}
    for reply in operation.responses:
        if reply.status[:1] not in ("4", "5"):
            continue
        code = error_code(reply.status)
        retryable = reply.status.isdigit() and int(reply.status) in RETRYABLE_STATUSES
        advice = shorten(reply.description, _MAX_ADVICE)
        errors.setdefault(code, ErrorCard(code=code, retryable=retryable, advice=advice))
    return tuple(errors.values())[:_MAX_ERRORS]


def _example_cards(schema: Mapping[str, Any]) -> tuple[ExampleCard, ...]:
    """One example call from the examples of the document, if every required argument has one and they are valid."""
    rules = {name: as_mapping(rule) for name, rule in schema["properties"].items()}
    args: dict[str, Any] = {}
    for name, rule in rules.items():
        if examples := as_list(rule.get("examples")):
            args[name] = examples[0]
        elif name in schema.get("required", ()):
            args[name] = rule.get("default", *as_list(rule.get("enum"))[:1])
            if args[name] is None:
                return ()
    if not any("examples" in rule for rule in rules.values()) or not args or len(str(args)) > _MAX_EXAMPLE:
        return ()
    try:
        return () if findings(compile_schema(schema, "The schema"), args) else (ExampleCard(args=args),)
    except ConfigError:
        return ()
