"""The body of a request: JSON, a form, multipart, text or bytes.

A model passes a file as text: the text itself is sent, in UTF-8, or the bytes of a `data:` URL.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from taoloop.tools.openapi.document.operation import Body, Encoding
from taoloop.tools.openapi.http.json_numbers import to_json
from taoloop.tools.openapi.http.parameter_styles import (
    check_header,
    join_items,
    styled_pairs,
    text_of,
    unsendable_argument,
)
from taoloop.tools.openapi.schema.flattening import flatten_object

_DATA_PREFIX = "data:"


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """An encoded request body."""

    data: bytes
    """The bytes to send."""
    content_type: str
    """The value of `Content-Type`."""


def encode_body(body: Body, args: Mapping[str, Any]) -> EncodedBody | None:
    """The body for the arguments of a call; None if there is none and none is required.

    Raises:
        InvalidArguments: a value cannot be sent in this media type.
    """
    if body.whole_arg:
        if args.get(body.whole_arg) is None and (body.whole_arg not in args or body.kind != "json"):
            return None
        value = args[body.whole_arg]
    else:
        value = {name: args[arg] for arg, name in body.args.items() if arg in args}
        if not value and not body.required:
            return None
    return _ENCODERS[body.kind](body, value)


def _encode_json(body: Body, value: Any) -> EncodedBody:
    return EncodedBody(to_json(value).encode(), body.media_type)


def _encode_form(body: Body, value: Any) -> EncodedBody:
    if isinstance(value, str):  # the schema of the whole body is a text: it is encoded already
        return EncodedBody(value.encode(), body.media_type)
    pairs: list[str] = []
    for name, inner in _form_fields(body, value):
        encoding = body.encodings.get(name)
        if encoding is None:
            pairs += styled_pairs(name, to_json(inner) if isinstance(inner, Mapping) else inner, "form", True)
        elif "json" in encoding.content_type:
            pairs += styled_pairs(name, to_json(inner), "form", True)
        else:
            pairs += styled_pairs(name, inner, encoding.style, encoding.explode)
    return EncodedBody("&".join(pairs).encode(), body.media_type)


def _encode_multipart(body: Body, value: Any) -> EncodedBody:
    parts: list[tuple[str, bytes]] = []
    for name, inner in _form_fields(body, value):
        rule = _property(body.schema, name)
        encoding = body.encodings.get(name, Encoding())
        if isinstance(inner, list) and "json" not in encoding.content_type:
            items = resolve_schema(rule.get("items", {}), body.schema)
            field_value = inner if encoding.explode else [join_items(inner, encoding.style)]
            parts += [_encode_part(name, item, items, encoding) for item in field_value]
        else:
            parts.append(_encode_part(name, inner, rule, encoding))
    digest = hashlib.sha256()
    for head, data in parts:
        digest.update(head.encode())
        digest.update(data)
    boundary = digest.hexdigest()[:32]
    joined = b"".join(b"--%b\r\n%b\r\n\r\n%b\r\n" % (boundary.encode(), head.encode(), data) for head, data in parts)
    media_type = body.media_type.partition(";")[0] if "*" not in body.media_type else "multipart/form-data"
    return EncodedBody(joined + f"--{boundary}--\r\n".encode(), f"{media_type}; boundary={boundary}")


def _encode_part(name: str, value: Any, rule: Mapping[str, Any], encoding: Encoding) -> tuple[str, bytes]:
    disposition = f'form-data; name="{_quote_parameter(name)}"'
    content_type = encoding.content_type.partition(",")[0].strip()
    is_file = _is_file(rule) or (isinstance(value, str) and content_type not in ("", "text/plain", "application/json"))
    if is_file and isinstance(value, str):
        data, data_type = decode_file(name, value)
        disposition += f'; filename="{_quote_parameter(name)}"'
        kind = data_type or content_type or "application/octet-stream"
    elif isinstance(value, Mapping | list) or "json" in content_type:
        data, kind = to_json(value).encode(), content_type or "application/json"
    else:
        data, kind = text_of(value).encode(), content_type
    lines = [f"Content-Disposition: {disposition}"]
    if kind and "*" not in kind:
        lines.append(f"Content-Type: {check_header(name, kind)}")
    lines += [f"{key}: {check_header(name, text)}" for key, text in encoding.headers.items()]
    return "\r\n".join(lines), data


def _encode_text(body: Body, value: Any) -> EncodedBody:
    media_type = body.media_type if "*" not in body.media_type else "text/plain"
    content_type = media_type if "charset=" in media_type.lower() else f"{media_type}; charset=utf-8"
    return EncodedBody(text_of(value).encode(), content_type if media_type.startswith("text/") else media_type)


def _encode_binary(body: Body, value: Any) -> EncodedBody:
    data, data_type = decode_file(body.whole_arg, text_of(value))
    return EncodedBody(data, body.media_type if "*" not in body.media_type else data_type or "application/octet-stream")


_ENCODERS = {
    "json": _encode_json,
    "form": _encode_form,
    "multipart": _encode_multipart,
    "text": _encode_text,
    "binary": _encode_binary,
}


def decode_file(arg: str, text: str) -> tuple[bytes, str]:
    """The bytes of a file argument, and its media type (may be empty).

    Raises:
        InvalidArguments: it begins like a `data:` URL but is not valid.
    """
    if not text.startswith(_DATA_PREFIX) or "," not in text[:200]:
        return text.encode(), ""
    head, _, payload = text[len(_DATA_PREFIX) :].partition(",")
    media_type, *attributes = head.split(";")
    media_type = check_header(arg, media_type)
    if "base64" not in [attribute.strip().lower() for attribute in attributes]:
        return unquote_to_bytes(payload), media_type
    try:
        return base64.b64decode("".join(payload.split()), validate=True), media_type
    except (binascii.Error, ValueError):
        raise unsendable_argument(arg, "data_url") from None


def _form_fields(body: Body, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise unsendable_argument(body.whole_arg or "body", "form_object")
    return [(str(name), inner) for name, inner in value.items() if inner is not None]


def _property(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    flat = flatten_object(schema)
    properties = flat.properties if flat is not None else resolve_schema(schema, schema).get("properties", {})
    return resolve_schema(properties.get(name, {}), schema)


def resolve_schema(rule: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with its references into the `$defs` of `root` resolved; empty if one leads nowhere."""
    for _ in range(16):
        ref = rule.get("$ref") if isinstance(rule, Mapping) else None
        if not isinstance(ref, str) or not ref.startswith("#/"):
            break
        node: Any = root
        for key in ref[2:].split("/"):
            node = node.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
        rule = node
    return rule if isinstance(rule, Mapping) else {}


def _is_file(rule: Mapping[str, Any]) -> bool:
    return rule.get("format") == "binary" or "contentMediaType" in rule or rule.get("type") == "file"


def _quote_parameter(name: str) -> str:
    """A name for use between quotes in a header, escaped as browsers do it."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
