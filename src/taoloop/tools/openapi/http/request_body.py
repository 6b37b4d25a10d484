"""The body of a request: JSON, a form, multipart, text or bytes.

A model has only text for a file: a text is sent as it is, in UTF-8, and a `data:` address as the bytes that it holds.
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
from taoloop.tools.openapi.http.parameter_styles import header_safe, joined_text, refused, styled_pairs, text_of
from taoloop.tools.openapi.schema.flattening import plain_object

_DATA_MARK = "data:"


@dataclass(frozen=True, slots=True)
class SentBody:
    """A body and its `Content-Type`."""

    data: bytes
    content_type: str


def write_body(body: Body, args: Mapping[str, Any]) -> SentBody | None:
    """The body that the arguments of a call make, or None where none is given and none is needed.

    Raises:
        InvalidArguments: a value cannot be sent in this form.
    """
    if body.whole:
        if args.get(body.whole) is None and (body.whole not in args or body.kind != "json"):
            return None
        value = args[body.whole]
    else:
        value = {name: args[arg] for arg, name in body.args.items() if arg in args}
        if not value and not body.required:
            return None
    return _WRITERS[body.kind](body, value)


def _json(body: Body, value: Any) -> SentBody:
    return SentBody(to_json(value).encode(), body.media_type)


def _form(body: Body, value: Any) -> SentBody:
    if isinstance(value, str):  # the document says that the whole body is a text: it is written as one already
        return SentBody(value.encode(), body.media_type)
    pairs: list[str] = []
    for name, inner in _members(body, value):
        encoding = body.encodings.get(name)
        if encoding is None:
            pairs += styled_pairs(name, to_json(inner) if isinstance(inner, Mapping) else inner, "form", True)
        elif "json" in encoding.content_type:
            pairs += styled_pairs(name, to_json(inner), "form", True)
        else:
            pairs += styled_pairs(name, inner, encoding.style, encoding.explode)
    return SentBody("&".join(pairs).encode(), body.media_type)


def _multipart(body: Body, value: Any) -> SentBody:
    parts: list[tuple[str, bytes]] = []
    for name, inner in _members(body, value):
        rule = _property(body.schema, name)
        encoding = body.encodings.get(name, Encoding())
        if isinstance(inner, list) and "json" not in encoding.content_type:
            items = resolved(rule.get("items", {}), body.schema)
            given = inner if encoding.explode else [joined_text(inner, encoding.style)]
            parts += [_part(name, item, items, encoding) for item in given]
        else:
            parts.append(_part(name, inner, rule, encoding))
    seen = hashlib.sha256()
    for head, data in parts:
        seen.update(head.encode())
        seen.update(data)
    boundary = seen.hexdigest()[:32]
    joined = b"".join(b"--%b\r\n%b\r\n\r\n%b\r\n" % (boundary.encode(), head.encode(), data) for head, data in parts)
    media_type = body.media_type.partition(";")[0] if "*" not in body.media_type else "multipart/form-data"
    return SentBody(joined + f"--{boundary}--\r\n".encode(), f"{media_type}; boundary={boundary}")


def _part(name: str, value: Any, rule: Mapping[str, Any], encoding: Encoding) -> tuple[str, bytes]:
    disposition = f'form-data; name="{_parameter(name)}"'
    content_type = encoding.content_type.partition(",")[0].strip()
    is_file = _is_file(rule) or (isinstance(value, str) and content_type not in ("", "text/plain", "application/json"))
    if is_file and isinstance(value, str):
        data, said = file_bytes(name, value)
        disposition += f'; filename="{_parameter(name)}"'
        kind = said or content_type or "application/octet-stream"
    elif isinstance(value, Mapping | list) or "json" in content_type:
        data, kind = to_json(value).encode(), content_type or "application/json"
    else:
        data, kind = text_of(value).encode(), content_type
    lines = [f"Content-Disposition: {disposition}"]
    if kind and "*" not in kind:
        lines.append(f"Content-Type: {header_safe(name, kind)}")
    lines += [f"{key}: {header_safe(name, text)}" for key, text in encoding.headers.items()]
    return "\r\n".join(lines), data


def _text(body: Body, value: Any) -> SentBody:
    media_type = body.media_type if "*" not in body.media_type else "text/plain"
    said = media_type if "charset=" in media_type.lower() else f"{media_type}; charset=utf-8"
    return SentBody(text_of(value).encode(), said if media_type.startswith("text/") else media_type)


def _binary(body: Body, value: Any) -> SentBody:
    data, said = file_bytes(body.whole, text_of(value))
    return SentBody(data, body.media_type if "*" not in body.media_type else said or "application/octet-stream")


_WRITERS = {"json": _json, "form": _form, "multipart": _multipart, "text": _text, "binary": _binary}


def file_bytes(arg: str, text: str) -> tuple[bytes, str]:
    """What a text stands for as a file, and the media type that it says it has (may be empty).

    Raises:
        InvalidArguments: it begins as a `data:` address and is none.
    """
    if not text.startswith(_DATA_MARK) or "," not in text[:200]:
        return text.encode(), ""
    said, _, payload = text[len(_DATA_MARK) :].partition(",")
    media_type, *marks = said.split(";")
    media_type = header_safe(arg, media_type)
    if "base64" not in [mark.strip().lower() for mark in marks]:
        return unquote_to_bytes(payload), media_type
    try:
        return base64.b64decode("".join(payload.split()), validate=True), media_type
    except (binascii.Error, ValueError):
        raise refused(arg, "its `data:` address holds no valid base64") from None


def _members(body: Body, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise refused(body.whole or "body", "a form needs an object of its fields")
    return [(str(name), inner) for name, inner in value.items() if inner is not None]


def _property(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    flat = plain_object(schema)
    properties = flat.properties if flat is not None else resolved(schema, schema).get("properties", {})
    return resolved(properties.get(name, {}), schema)


def resolved(rule: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema behind its references into the `$defs` of `root`; empty where there is none."""
    for _ in range(16):
        ref = rule.get("$ref") if isinstance(rule, Mapping) else None
        if not isinstance(ref, str) or not ref.startswith("#/"):
            break
        place: Any = root
        for step in ref[2:].split("/"):
            place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
        rule = place
    return rule if isinstance(rule, Mapping) else {}


def _is_file(rule: Mapping[str, Any]) -> bool:
    return rule.get("format") == "binary" or "contentMediaType" in rule or rule.get("type") == "file"


def _parameter(name: str) -> str:
    """A name in the quotes of a header, as browsers write it."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
