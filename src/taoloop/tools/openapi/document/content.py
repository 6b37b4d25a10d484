"""The bodies of requests and replies: which media type is taken, and which arguments make the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from taoloop.tools.openapi.document.operation import Body, BodyKind, Encoding, Style
from taoloop.tools.openapi.document.plain_data import Notes, brief, mapping, text
from taoloop.tools.openapi.document.refs import Found
from taoloop.tools.openapi.names import argument_name
from taoloop.tools.openapi.schema.components import Components
from taoloop.tools.openapi.schema.flattening import plain_object

_ORDER: tuple[BodyKind, ...] = ("json", "form", "multipart", "text", "binary")
_TEXTS = frozenset(
    {"application/sdp", "application/graphql", "application/x-ndjson", "application/jsonl", "application/yaml"}
)
_STYLES = ("form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject")
_MOST_DESCRIPTION = 600
WRITTEN = "Bodies are written as JSON, as a form, as multipart, as text and as bytes."
"""What to know about a body of another form."""


class NotSendableError(ValueError):
    """A request needs a body in a form that is not written here; the message says which."""


def body_of(found: Found, taken: Mapping[str, Any], components: Components, notes: Notes, place: str) -> Body | None:
    """The body of an operation; `taken` are the names of its other arguments. None where it can go without.

    Raises:
        NotSendableError: it needs one in a form that is not written here.
    """
    node = found.value
    content = mapping(node.get("content"))
    required = node.get("required") is True
    chosen = _chosen(content)
    if chosen is None:
        if not content:
            return None
        told = f"Its body is of the type {', '.join(map(str, list(content)[:3]))}, which is not written here."
        if required:
            raise NotSendableError(told)
        notes.add(place, f"{told} It is called without a body.", WRITTEN)
        return None
    kind, media_type, media = chosen
    schema = _schema(kind, media, found.uri, components)
    told = brief(node.get("description"), _MOST_DESCRIPTION)
    flat = plain_object(schema) if kind in ("json", "form", "multipart") else None
    args: dict[str, str] = {}
    if flat is not None:
        for name in flat.properties:
            args[argument_name(name, "body", {**taken, **args})] = name
    return Body(
        media_type=media_type,
        kind=kind,
        schema=schema,
        required=required,
        args=args,
        whole="" if flat is not None else argument_name("body", "request", taken),
        encodings=_encodings(mapping(media.get("encoding"))) if kind in ("form", "multipart") else {},
        description=told,
    )


def body_kind(media_type: str) -> BodyKind | None:
    """How a body of a media type is written; None for those that are not."""
    name = media_type.partition(";")[0].strip().lower()
    if name in ("application/json", "text/json", "*/*", "application/*") or name.endswith("+json"):
        return "json"
    if name == "application/x-www-form-urlencoded":
        return "form"
    if name.startswith("multipart/"):
        return "multipart"
    if "xml" in name or "protobuf" in name:
        return None
    if name.startswith("text/") or name in _TEXTS or name.endswith("+yaml"):
        return "text"
    return "binary"


def _chosen(content: Mapping[str, Any]) -> tuple[BodyKind, str, Mapping[str, Any]] | None:
    """The media type to send: JSON before forms before multipart before text before bytes."""
    found: dict[BodyKind, tuple[str, Mapping[str, Any]]] = {}
    for media_type, media in content.items():
        kind = body_kind(str(media_type))
        if kind is not None and kind not in found:
            found[kind] = (_plain_type(str(media_type), kind), mapping(media))
    for kind in _ORDER:
        if kind in found:
            return kind, *found[kind]
    return None


def _plain_type(media_type: str, kind: BodyKind) -> str:
    return "application/json" if kind == "json" and "*" in media_type else media_type


def _schema(kind: BodyKind, media: Mapping[str, Any], uri: str, components: Components) -> dict[str, Any]:
    told = media.get("schema", {})
    if kind == "binary":
        about = brief(mapping(told).get("description"), _MOST_DESCRIPTION)
        return {"type": "string", "format": "binary", **({"description": about} if about else {})}
    schema = components.read(told, uri)
    if kind == "text":
        return schema if schema.get("type") == "string" else {"type": "string"}
    return schema


def _encodings(told: Mapping[str, Any]) -> dict[str, Encoding]:
    made: dict[str, Encoding] = {}
    for name, node in told.items():
        if not isinstance(node, Mapping):
            continue
        style = text(node.get("style"))
        style = style if style in _STYLES else "form"
        explode = node.get("explode")
        made[str(name)] = Encoding(
            content_type=text(node.get("contentType")),
            style=cast("Style", style),
            explode=explode if isinstance(explode, bool) else style == "form",
        )
    return made
