"""Request bodies: which media type is sent, and which arguments become the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from taoloop.tools.openapi.document.operation import Body, BodyKind, Encoding, Style
from taoloop.tools.openapi.document.plain_data import ProblemLog, as_mapping, as_text, shorten
from taoloop.tools.openapi.document.refs import ResolvedNode
from taoloop.tools.openapi.names import argument_name
from taoloop.tools.openapi.schema.components import Components
from taoloop.tools.openapi.schema.flattening import flatten_object

_KIND_ORDER: tuple[BodyKind, ...] = ("json", "form", "multipart", "text", "binary")
_TEXT_TYPES = frozenset(
    {"application/sdp", "application/graphql", "application/x-ndjson", "application/jsonl", "application/yaml"}
)
_STYLES = ("form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject")
_MAX_DESCRIPTION = 600
SENDABLE_FORMS = "Bodies can be sent as JSON, as a form, as multipart, as text and as bytes."
"""The hint for a body of another media type."""


class UnsupportedBodyError(ValueError):
    """A request requires a body of a media type that cannot be sent; the message names it."""


def read_body(
    node: ResolvedNode,
    parameter_args: Mapping[str, Any],
    components: Components,
    problems: ProblemLog,
    document_path: str,
) -> Body | None:
    """The body of an operation; None if it has none, or works without it.

    `parameter_args` are the names of its other arguments.

    Raises:
        UnsupportedBodyError: it requires a media type that cannot be sent.
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
            raise UnsupportedBodyError(problem)
        problems.add(document_path, f"{problem} The operation is called without a body.", SENDABLE_FORMS)
        return None
    kind, media_type, media = chosen
    schema = _read_schema(kind, media, node.uri, components)
    description = shorten(body.get("description"), _MAX_DESCRIPTION)
    flat = flatten_object(schema) if kind in ("json", "form", "multipart") else None
    args: dict[str, str] = {}
    if flat is not None:
        for name in flat.properties:
            args[argument_name(name, "body", {**parameter_args, **args})] = name
    return Body(
        media_type=media_type,
        kind=kind,
        schema=schema,
        required=required,
        args=args,
        whole_arg="" if flat is not None else argument_name("body", "request", parameter_args),
        encodings=_read_encodings(as_mapping(media.get("encoding"))) if kind in ("form", "multipart") else {},
        description=description,
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
    if "xml" in name or "protobuf" in name:
        return None
    if name.startswith("text/") or name in _TEXT_TYPES or name.endswith("+yaml"):
        return "text"
    return "binary"


def _choose_media_type(content: Mapping[str, Any]) -> tuple[BodyKind, str, Mapping[str, Any]] | None:
    """The media type to send: JSON is preferred to forms, multipart, text and bytes, in this order."""
    by_kind: dict[BodyKind, tuple[str, Mapping[str, Any]]] = {}
    for media_type, media in content.items():
        kind = body_kind(str(media_type))
        if kind is not None and kind not in by_kind:
            by_kind[kind] = (_plain_type(str(media_type), kind), as_mapping(media))
    for kind in _KIND_ORDER:
        if kind in by_kind:
            return kind, *by_kind[kind]
    return None


def _plain_type(media_type: str, kind: BodyKind) -> str:
    return "application/json" if kind == "json" and "*" in media_type else media_type


def _read_schema(kind: BodyKind, media: Mapping[str, Any], uri: str, components: Components) -> dict[str, Any]:
    schema = media.get("schema", {})
    if kind == "binary":
        about = shorten(as_mapping(schema).get("description"), _MAX_DESCRIPTION)
        return {"type": "string", "format": "binary", **({"description": about} if about else {})}
    schema = components.read(schema, uri)
    if kind == "text":
        return schema if schema.get("type") == "string" else {"type": "string"}
    return schema


def _read_encodings(nodes: Mapping[str, Any]) -> dict[str, Encoding]:
    encodings: dict[str, Encoding] = {}
    for name, node in nodes.items():
        if not isinstance(node, Mapping):
            continue
        style = as_text(node.get("style"))
        style = style if style in _STYLES else "form"
        explode = node.get("explode")
        encodings[str(name)] = Encoding(
            content_type=as_text(node.get("contentType")),
            style=cast("Style", style),
            explode=explode if isinstance(explode, bool) else style == "form",
        )
    return encodings
