"""The card of an operation: what a model is told of it, from its summary, parameters, examples and error responses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from taoloop.core.cards.tool_card import TIERS, ErrorCard, ExampleCard, Tier, ToolCard
from taoloop.core.handles.opaque_observation import schema_signature
from taoloop.dialects.prompt.tool_listing import describe
from taoloop.tools.openapi.document.operation import Body, Operation, Parameter
from taoloop.tools.openapi.document.operation_reader import takes_key
from taoloop.tools.openapi.document.plain_data import brief, mapping, plain_text, sentences, sequence, text
from taoloop.tools.openapi.http.response import RETRIED, error_code
from taoloop.tools.openapi.names import own_name_told
from taoloop.tools.openapi.schema.flattening import plain_object
from taoloop.tools.openapi.schema.property_renames import with_word
from taoloop.tools.openapi.selection import best_match, matches
from taoloop.tools.openapi.settings import OpenapiSource

_TIERS: Mapping[str, Tier] = {
    **dict.fromkeys(("GET", "HEAD", "OPTIONS", "TRACE", "QUERY"), "read"),
    **dict.fromkeys(("POST", "PUT", "PATCH"), "write"),
    "DELETE": "destructive",
}
_MOST_PURPOSE, _MOST_WHEN, _MOST_ADVICE, _MOST_RETURNS = 600, 300, 120, 240
_MOST_ERRORS, _MOST_EXAMPLE = 8, 600
MOST_DESCRIBED = 1_024
"""Characters of the description of a tool that every provider takes."""
_USE = re.compile(r"(?:use (?:this|it|when|for)|call this|useful (?:for|when|if))\b", re.IGNORECASE)
_AVOID = re.compile(
    r"(?:do not|don't|never|avoid|not (?:for|to be)|please do not|this (?:endpoint|method|operation|api) "
    r"(?:is deprecated|does not|cannot|will be removed|must not|should not))\b|deprecated|不要|不用于|请勿|仅限",
    re.IGNORECASE,
)
_FILE = "A file: its text, or a data: address with its bytes in base64."


def card_of(operation: Operation, source: OpenapiSource) -> ToolCard:
    """The card of an operation with its whole input schema."""
    schema = input_schema(operation, source)
    purpose, use_when, avoid_when = _told(operation)
    given = mapping(operation.extensions.get("x-tool-card"))
    tier = tier_of(operation, source)
    card = ToolCard(
        name=operation.name,
        purpose=brief(given.get("purpose"), _MOST_PURPOSE) or purpose,
        use_when=brief(given.get("use_when"), _MOST_WHEN) or use_when,
        avoid_when=brief(given.get("avoid_when"), _MOST_WHEN) or avoid_when,
        input_schema=schema,
        errors=_errors(operation),
        examples=_examples(schema),
        tier=tier,
        approval="required" if needs_approval(operation, source) else None,
        timeout_s=source.timeout_s,
        idempotent=takes_key(operation, source),
        egress=False if tier == "read" else None,
    )
    return _within(card)


def _within(card: ToolCard) -> ToolCard:
    """The card with no more words than providers take for the description of a tool; the least needed go first."""
    shorter: tuple[Callable[[ToolCard], ToolCard], ...] = (
        lambda one: replace(one, examples=()),
        lambda one: replace(one, errors=tuple(replace(error, advice="") for error in one.errors)),
        lambda one: replace(one, use_when=brief(one.use_when, 150), avoid_when=brief(one.avoid_when, 150)),
        lambda one: replace(one, purpose=brief(one.purpose, 400)),
    )
    for shorten in shorter:
        if len(describe(card)) <= MOST_DESCRIBED:
            break
        card = shorten(card)
    return card


def tier_of(operation: Operation, source: OpenapiSource) -> Tier:
    """What a call can do: as the operator says, else as the document says, else by the method."""
    if (entry := best_match(operation, source.tiers)) is not None:
        return source.tiers[entry]
    told = operation.extensions.get("x-tier")
    for tier in TIERS:
        if told == tier:
            return tier
    return _TIERS.get(operation.method, "destructive")


def needs_approval(operation: Operation, source: OpenapiSource) -> bool:
    """Whether a person must allow each call: as the operator says, or the document."""
    return matches(operation, source.approval) or operation.extensions.get("x-approval") in ("required", True)


def input_schema(operation: Operation, source: OpenapiSource) -> dict[str, Any]:
    """The arguments of an operation, each once, whether they go into the path, the query, a header or the body."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    components: dict[str, Any] = {}
    for parameter in operation.parameters:
        if is_hidden(parameter, operation, source):
            continue
        properties[parameter.arg] = _of_parameter(parameter, components)
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


def is_hidden(parameter: Parameter, operation: Operation, source: OpenapiSource) -> bool:
    """Whether the operator fills a parameter: as a secret, as a header of every call, or by a security scheme."""
    if parameter.name in source.secrets:
        return True
    if parameter.place == "header" and parameter.name.lower() in {name.lower() for name in source.headers}:
        return True
    return any(
        scheme.kind == "api_key" and scheme.place == parameter.place and scheme.key == parameter.name
        for scheme in operation.schemes.values()
    )


def _add_body(
    body: Body, source: OpenapiSource, schema: dict[str, Any], required: list[str], components: dict[str, Any]
) -> None:
    properties: dict[str, Any] = schema["properties"]
    flat = plain_object(body.schema) if body.args else None
    components.update(body.schema.get("$defs", {}))
    if flat is None:
        rule = {key: value for key, value in body.schema.items() if key != "$defs"}
        properties[body.whole] = _described(_of_file(rule), body.description)
        if body.required:
            required.append(body.whole)
        return
    for arg, name in body.args.items():
        if name in source.secrets:  # the operator fills it
            continue
        properties[arg] = with_word(_of_file(flat.properties[name]), own_name_told(name, arg))
        if name in flat.required:  # also where the document forgot to say that the body itself is required
            required.append(arg)


def _of_parameter(parameter: Parameter, components: dict[str, Any]) -> Any:
    components.update(parameter.schema.get("$defs", {}))
    rule = {key: value for key, value in parameter.schema.items() if key != "$defs"}
    if parameter.deprecated:
        rule["deprecated"] = True
    return _described(rule, f"{parameter.description} {own_name_told(parameter.name, parameter.arg)}".strip())


def _described(rule: dict[str, Any], told: str) -> dict[str, Any]:
    own = rule.get("description", "")
    if told and told != own:
        rule = {**rule, "description": told if not own or own in told else f"{told} {own}"}
    return rule


def _of_file(rule: Any) -> Any:
    """A schema of bytes with a word on how a model gives them."""
    if isinstance(rule, Mapping) and rule.get("format") == "binary":
        return {**rule, "description": f"{text(rule.get('description'))} {_FILE}".strip()}
    return rule


def _told(operation: Operation) -> tuple[str, str, str]:
    """Purpose, when to use it, and when not to."""
    summary, description = plain_text(operation.summary), plain_text(operation.description)
    parts = [one for one in sentences(description) if one.rstrip(".") != summary.rstrip(".")]
    use = " ".join(one for one in parts if _USE.match(one))
    avoid = " ".join(one for one in parts if _AVOID.search(one) and not _USE.match(one))
    rest = " ".join(one for one in parts if not _USE.match(one) and not _AVOID.search(one))
    if not summary and not rest:
        rest, use, avoid = (description, "", "") if description else (f"{operation.method} {operation.path}", "", "")
    if summary and summary[-1] not in ".!?。！？…":
        summary += "."
    purpose = brief(f"{summary} {rest}".strip(), _MOST_PURPOSE)
    if returned := _returned(operation):
        purpose = f"{purpose} Returns {returned}"
    if operation.deprecated:
        avoid = f"It is deprecated. {avoid}".strip()
    return purpose, brief(use, _MOST_WHEN), brief(avoid, _MOST_WHEN)


def _returned(operation: Operation) -> str:
    """The form of the answer in one line; empty where the document does not say, or it is too long."""
    for reply in operation.replies:
        if reply.status[:1] == "2" and reply.schema is not None:
            form = schema_signature(reply.schema)
            if form in ("…", "{…}", "object", "[…]"):
                return ""
            return form if len(form) <= _MOST_RETURNS else ""
    return ""


def _errors(operation: Operation) -> tuple[ErrorCard, ...]:
    """The error responses by the codes that a call reports them with."""
    made: dict[str, ErrorCard] = {}
    for reply in operation.replies:
        if reply.status[:1] not in ("4", "5"):
            continue
        code = error_code(reply.status)
        retryable = reply.status.isdigit() and int(reply.status) in RETRIED
        made.setdefault(code, ErrorCard(code=code, retryable=retryable, advice=brief(reply.description, _MOST_ADVICE)))
    return tuple(made.values())[:_MOST_ERRORS]


def _examples(schema: Mapping[str, Any]) -> tuple[ExampleCard, ...]:
    """One call made of the document's own examples, if it has one for every argument that is needed, and they fit."""
    args: dict[str, Any] = {}
    for name, rule in schema["properties"].items():
        told = sequence(mapping(rule).get("examples"))
        if told:
            args[name] = told[0]
        elif name in schema.get("required", ()):
            options = sequence(mapping(rule).get("enum"))
            default = mapping(rule).get("default", options[0] if options else None)
            if default is None:
                return ()
            args[name] = default
    if not any("examples" in mapping(rule) for rule in schema["properties"].values()):
        return ()
    return (ExampleCard(args=args),) if args and len(str(args)) <= _MOST_EXAMPLE and _fits(args, schema) else ()


def _fits(args: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    from taoloop.errors import ConfigError  # noqa: PLC0415  # only where a document has examples
    from taoloop.tools.json_schema import compile_schema, findings  # noqa: PLC0415  # likewise

    try:
        return not findings(compile_schema(schema, "The schema"), args)
    except ConfigError:
        return False
