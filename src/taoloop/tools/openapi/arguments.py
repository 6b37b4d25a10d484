"""Reading the arguments of an operation: its parameters, and its body, which is sent in one of its media types."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from taoloop.core.handles import schema_signature
from taoloop.tools.openapi.document import ProblemLog, UnusablePartError, as_mapping, as_text, shorten
from taoloop.tools.openapi.names import append_note, argument_name, flatten_object, is_header_name, requires_members
from taoloop.tools.openapi.operation import Body, BodyKind, Encoding, Parameter, ParameterLocation, Style
from taoloop.tools.openapi.references import ResolvedNode
from taoloop.tools.openapi.schemas import Components
from taoloop.tools.openapi.swagger2 import convert_parameter

_SEPARATED = ("spaceDelimited", "pipeDelimited", "tabDelimited")  # Swagger 2.0 allows them outside the query, too
_STYLES: Mapping[str, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix", *_SEPARATED),
    "query": ("form", *_SEPARATED, "deepObject"),
    "header": ("simple", *_SEPARATED),
    "cookie": ("form",),
}
_CLIENT_HEADERS = frozenset({"accept", "content-type", "authorization"})  # the specification ignores these parameters
_TEMPLATE = re.compile(r"\{([^{}/]*)\}")

_KIND_ORDER: tuple[BodyKind, ...] = ("json", "form", "multipart", "text", "binary")
_TEXT_SUBTYPES = frozenset(
    (
        *("xml", "xml-dtd", "yaml", "x-yaml", "toml", "graphql", "sql", "sparql-query", "sparql-update", "sdp"),
        *("javascript", "x-javascript", "ecmascript", "typescript", "x-sh", "x-tex", "n-triples", "n-quads", "trig"),
        *("x-ndjson", "ndjson", "jsonl", "x-jsonl", "jsonlines", "json-seq", "pem-certificate-chain", "x-pem-file"),
    )
)
"""Subtypes of `application/`, or suffixes of any type behind a `+`, of text in UTF-8."""

_FORM_STYLES = ("form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject")
_MAX_DESCRIPTION, _MAX_FORM = 600, 400
_SENDABLE_FORMS = "Bodies can be sent as JSON, as a form, as multipart, as text and as bytes."
"""The hint for a body of another media type."""


def read_parameters(
    nodes: list[ResolvedNode], path: str, components: Components, problems: ProblemLog
) -> tuple[Parameter, ...]:
    """The parameters of an operation in their order, each with a name for its argument.

    Of two with the same location and name the later one counts: those of an operation override those of its path.
    A variable of the path template without a parameter gets one.
    """
    by_key = {(as_text(node.value.get("in")).lower(), as_text(node.value.get("name"))): node for node in nodes}
    template_names = list(dict.fromkeys(_TEMPLATE.findall(path)))
    parameters: dict[str, Parameter] = {}
    for (location, name), node in by_key.items():
        if location in ("body", "formdata") or (location == "header" and name.lower() in _CLIENT_HEADERS):
            continue
        if location not in _STYLES or not name or (location == "header" and not is_header_name(name)):
            problem = f"The parameter {name[:60]!r} cannot be sent: its `in` is {location[:40]!r}."
            problems.report(problem, "Correct its `name` and `in`; calls are sent without it.")
        elif location == "path" and name not in template_names:
            problem = f"The path does not contain its parameter {name[:60]!r}."
            problems.report(problem, "Add it to the path in braces; calls are sent without it.")
        else:
            arg = argument_name(name, location, parameters)
            parameters[arg] = _read_parameter(arg, node, cast("ParameterLocation", location), components)
    for name in template_names:
        if not any(known.location == "path" and known.name == name for known in parameters.values()):
            arg = argument_name(name, "path", parameters)
            parameters[arg] = Parameter(arg=arg, name=name, location="path", schema={"type": "string"}, required=True)
    return tuple(parameters.values())


def _read_parameter(arg: str, resolved: ResolvedNode, location: ParameterLocation, components: Components) -> Parameter:
    node = resolved.value
    if "schema" not in node and "content" not in node:
        node = convert_parameter(node)
    styles, style = _STYLES[location], as_text(node.get("style"))
    style = style if style in styles else styles[0]
    content, media = next(iter(as_mapping(node.get("content")).items()), ("", {}))
    schema = node["schema"] if "schema" in node else as_mapping(media).get("schema", {})
    return Parameter(
        arg=arg,
        name=as_text(node.get("name")),
        location=location,
        schema=_with_example(components.read(schema, resolved.uri), node),
        required=node.get("required") is True or location == "path",
        description=shorten(node.get("description"), _MAX_DESCRIPTION),
        style=cast("Style", style),
        explode=_is_exploded(node, style),
        allow_reserved=node.get("allowReserved") is True,
        content="" if "schema" in node else content,
        deprecated=node.get("deprecated") is True,
    )


def _is_exploded(node: Mapping[str, Any], style: str) -> bool:
    explode = node.get("explode")
    return explode if isinstance(explode, bool) else style == "form"


def _with_example(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with the example of the parameter, if the schema itself has none."""
    if schema.keys() & {"examples", "enum", "default", "const"}:
        return schema
    example = node.get("example")
    if example is None:
        example = next((as_mapping(item).get("value") for item in as_mapping(node.get("examples")).values()), None)
    fits = schema.get("type") == "string" if isinstance(example, str) else isinstance(example, int | float)
    is_short = not isinstance(example, str) or 0 < len(example) <= 60
    return {**schema, "examples": [example]} if fits and is_short and not isinstance(example, bool) else schema


def read_body(
    node: ResolvedNode, parameter_args: Collection[str], components: Components, problems: ProblemLog
) -> Body | None:
    """The body of an operation; None if it has none, or works without it.

    `parameter_args` are the names of its other arguments.

    Raises:
        UnusablePartError: it requires a media type that cannot be sent.
    """
    body = node.value
    content = as_mapping(body.get("content"))
    required = body.get("required") is True
    chosen = _choose_media_type(content)
    if chosen is None:
        if not content:
            return None
        problem = f"Its body is of the type {', '.join(map(str, list(content)[:3]))}, which cannot be sent."
        if required:
            raise UnusablePartError(problem, _SENDABLE_FORMS)
        problems.report(f"{problem} The operation is called without a body.", _SENDABLE_FORMS)
        return None
    kind, media_type, media = chosen
    schema = _read_schema(kind, media_type, media, node.uri, components)
    flat = flatten_object(schema) if kind in ("json", "form", "multipart") else None
    args: dict[str, str] = {}
    for name in flat.properties if flat else ():
        args[argument_name(name, "body", {*parameter_args, *args})] = name
    return Body(
        media_type=media_type,
        kind=kind,
        schema=schema,
        required=required or (not flat and requires_members(schema)),
        args=args,
        whole_arg="" if flat else argument_name("body", "request", parameter_args),
        encodings=_read_encodings(as_mapping(media.get("encoding"))) if kind in ("form", "multipart") else {},
        description=shorten(body.get("description"), _MAX_DESCRIPTION),
    )


def body_kind(media_type: str) -> BodyKind | None:
    """How a body of a media type is encoded; None if it cannot be sent."""
    name = media_type.partition(";")[0].strip().lower()
    if name in ("application/json", "text/json", "*/*", "application/*") or name.endswith("+json"):
        return "json"
    if name == "application/x-www-form-urlencoded":
        return "form"
    if name.startswith("multipart/"):
        return "multipart"
    if "protobuf" in name:
        return None
    subtype = name.partition("/")[2]
    if name.startswith("text/") or subtype.rpartition("+")[2] in _TEXT_SUBTYPES:
        return "text"
    return "binary"


def _choose_media_type(content: Mapping[str, Any]) -> tuple[BodyKind, str, Mapping[str, Any]] | None:
    """The media type to send: JSON is preferred to forms, multipart, text and bytes, in this order."""
    options = [
        (kind, "application/json" if kind == "json" and "*" in media_type else str(media_type), as_mapping(media))
        for media_type, media in content.items()
        if (kind := body_kind(str(media_type)))
    ]
    return min(options, key=lambda option: _KIND_ORDER.index(option[0]), default=None)


def _read_schema(
    kind: BodyKind, media_type: str, media: Mapping[str, Any], uri: str, components: Components
) -> dict[str, Any]:
    schema = media.get("schema", {})
    if kind == "binary":
        description = shorten(as_mapping(schema).get("description"), _MAX_DESCRIPTION)
        return {"type": "string", "format": "binary", **({"description": description} if description else {})}
    schema = components.read(schema, uri)
    if kind != "text":
        return schema
    name = media_type.partition(";")[0].strip()
    note = "" if name in ("text/plain", "text/*") else f"Text of the type {name}."
    if schema.get("type") == "string":
        return dict(append_note(schema, note))
    form = schema_signature(schema) if schema else ""
    if form not in ("", "any", "object", "…", "{…}", "[…]"):
        note = f"{note} Its content: {shorten(form, _MAX_FORM)}".strip()
    return dict(append_note({"type": "string"}, note))


def _read_encodings(nodes: Mapping[str, Any]) -> dict[str, Encoding]:
    encodings: dict[str, Encoding] = {}
    for name, node in nodes.items():
        style = as_text(as_mapping(node).get("style"))
        style = style if style in _FORM_STYLES else "form"
        if isinstance(node, Mapping):
            content_type, explode = as_text(node.get("contentType")), _is_exploded(node, style)
            encodings[str(name)] = Encoding(content_type=content_type, style=cast("Style", style), explode=explode)
    return encodings
