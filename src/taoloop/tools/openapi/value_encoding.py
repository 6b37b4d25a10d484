"""Values as texts of a request: JSON, and every `style` and `explode` of the specification.

In a path, a query, a header or a cookie values are percent-encoded once, in UTF-8; only letters, digits and `-._~` stay
as they are. Numbers are sent as they were written, or in plain digits, never with an exponent. Null is omitted inside
lists and objects. Values nested deeper than their style allows are sent as JSON text; only `deepObject` nests: objects
as `a[b][c]=1`, lists as `DeepLists` says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from taoloop.errors import InvalidArguments, ToolError
from taoloop.tools.openapi.operation import DeepLists, Parameter, Style
from taoloop.tools.openapi.texts import TEXTS

_RESERVED = ":/?@!$'()*,;="
"""The characters that `allowReserved` does not encode: all reserved ones except those that end a value or a pair."""

_CONTROLS = frozenset(map(chr, (*range(32), 127)))
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_FILENAME = re.compile(r'filename=(?:"([^"]*)"|([^\s;"]+))')
_SEPARATORS = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}
"""The separators of list items in the styles that do not use a comma."""

percent_encode: Callable[[str], str] = partial(quote, safe="")
"""Percent-encodes all characters of a text except the unreserved ones."""


def to_json(value: Any, *, ascii_only: bool = False) -> str:
    """A JSON value as one line of text.

    Numbers have plain digits: a Decimal as it was written, a float the fewest that represent it exactly.
    """
    if isinstance(value, Mapping):
        members = (f"{_quote(str(key), ascii_only)}:{to_json(value[key], ascii_only=ascii_only)}" for key in value)
        return f"{{{','.join(members)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(to_json(item, ascii_only=ascii_only) for item in value)}]"
    if isinstance(value, float | Decimal):
        return format(value if isinstance(value, Decimal) else Decimal(repr(value)), "f")
    return _quote(value, ascii_only)


def _quote(value: object, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only)


def text_of(value: Any) -> str:
    """A single value as text: `true`, `12.50`, or the text itself; lists and objects as JSON."""
    return value if isinstance(value, str) else to_json(value)


def apply_literals(value: Any, literals: Mapping[str, str], pointer: str = "") -> Any:
    """A JSON value in which each float with a literal in `literals` (by JSON pointer) becomes a Decimal.

    A literal that denotes a different number is ignored.
    """
    if isinstance(value, Mapping):
        steps = ((key, str(key).replace("~", "~0").replace("/", "~1")) for key in value)
        return {key: apply_literals(value[key], literals, f"{pointer}/{step}") for key, step in steps}
    if isinstance(value, list | tuple):
        return [apply_literals(item, literals, f"{pointer}/{index}") for index, item in enumerate(value)]
    if isinstance(value, float) and (text := literals.get(pointer)) is not None:
        try:
            written = Decimal(text)
        except InvalidOperation:
            return value
        return written if repr(float(written)) == repr(value) else value
    return value


def path_text(parameter: Parameter, value: Any) -> str:
    """The text that replaces `{name}` in a path.

    Raises:
        InvalidArguments: the value is empty, or would change the path.
    """
    check_path_value(parameter.arg, value)
    if parameter.content:
        return percent_encode(to_json(value))
    items = _items(value, parameter.explode, percent_encode)
    if parameter.style == "label":
        text = "." + ("." if parameter.explode else ",").join(items)
    elif parameter.style == "matrix":
        text = _matrix(percent_encode(parameter.name), value, items, parameter.explode)
    else:
        text = _encoded_separator(parameter.style).join(items)
    if not text:
        raise unsendable_argument(parameter.arg, "path_empty")
    return text


def _matrix(name: str, value: Any, items: list[str], explode: bool) -> str:
    if explode and isinstance(value, Mapping):
        return "".join(f";{item}" for item in items)
    if explode and isinstance(value, list | tuple):
        return "".join(f";{name}={item}" for item in items)
    text = ",".join(items)
    return f";{name}={text}" if text else f";{name}"


def query_pairs(parameter: Parameter, value: Any, deep_lists: DeepLists = "indices") -> list[str]:
    """The encoded `name=value` pairs of a query parameter; none for an empty list or object."""
    escape = partial(quote, safe=_RESERVED) if parameter.allow_reserved else percent_encode
    if parameter.content:
        return [f"{percent_encode(parameter.name)}={escape(to_json(value))}"]
    if parameter.style == "deepObject":
        return deep_pairs(parameter.name, value, deep_lists, escape)
    return styled_pairs(parameter.name, value, parameter.style, parameter.explode, escape)


def header_text(parameter: Parameter, value: Any, *, is_secret: bool = False) -> str:
    """The value of a header, without percent-encoding, which servers do not undo.

    Characters outside Latin-1 are only sent where there is a form that servers read: as escapes in JSON, and as the
    `filename*` of RFC 8187 in `Content-Disposition`.

    Raises:
        InvalidArguments: it contains characters that a header cannot carry.
    """
    items = [to_json(value, ascii_only=True)] if parameter.content else _items(value, parameter.explode, str)
    text = _SEPARATORS.get(parameter.style, ",").join(items)
    if not text.isascii() and text.lstrip()[:1] in ("{", "["):
        text = _FOREIGN.sub(lambda match: _quote(match[0], True)[1:-1], text)
    if parameter.name.lower() == "content-disposition":
        text = _FILENAME.sub(_extended_filename, text)
    return check_header(parameter.arg, text, is_secret=is_secret)


def _extended_filename(match: re.Match[str]) -> str:
    name = match[1] or match[2]
    return match[0] if name.isascii() else f"filename*=UTF-8''{percent_encode(name)}"


def cookie_pairs(parameter: Parameter, value: Any) -> list[str]:
    """The `name=value` pairs for the `Cookie` header."""
    return query_pairs(replace(parameter, style="form", allow_reserved=False), value)


def styled_pairs(
    name: str, value: Any, style: Style, explode: bool, escape: Callable[[str], str] = percent_encode
) -> list[str]:
    """A named value as encoded `name=value` pairs of a query or a form, in any style but `deepObject`."""
    if isinstance(value, Mapping) and explode and style == "form":
        members = [(str(key), inner) for key, inner in value.items() if inner is not None]
        return [f"{percent_encode(key)}={escape(text_of(inner))}" for key, inner in members]
    items = _items(value, False, escape)
    if items and (not explode or isinstance(value, Mapping)):
        items = [_encoded_separator(style).join(items)]
    return [f"{percent_encode(name)}={item}" for item in items]


def deep_pairs(
    name: str, value: Any, deep_lists: DeepLists = "indices", escape: Callable[[str], str] = percent_encode
) -> list[str]:
    """A named value as the pairs of `deepObject`, which nests to any depth: `a[b]=1`, and by default `a[0][b]=1`.

    The specification leaves lists open; stripe-python 16 always sends indices.
    """
    if isinstance(value, Mapping):
        members = [(f"{name}[{key}]", inner) for key, inner in value.items()]
    elif isinstance(value, list | tuple):
        has_scalars = not any(isinstance(item, Mapping | list | tuple) for item in value)
        keys = {"brackets": "[]", "repeat": ""} if has_scalars or deep_lists == "brackets" else {}
        members = [(name + keys.get(deep_lists, f"[{index}]"), item) for index, item in enumerate(value)]
    else:
        return [f"{percent_encode(name)}={escape(text_of(value))}"]
    pairs = (deep_pairs(key, inner, deep_lists, escape) for key, inner in members if inner is not None)
    return [pair for inner_pairs in pairs for pair in inner_pairs]


def _encoded_separator(style: Style) -> str:
    return percent_encode(_SEPARATORS[style]) if style in _SEPARATORS else ","


def join_items(value: list[Any], style: Style) -> str:
    """A list as one text outside a URL, such as a part of a multipart body."""
    return _SEPARATORS.get(style, ",").join(_items(value, False, str))


def _items(value: Any, explode: bool, escape: Callable[[str], str]) -> list[str]:
    """The encoded items of a scalar, a list, or an object (names and values; joined by `=` if exploded)."""
    if isinstance(value, Mapping):
        pairs = [(escape(str(key)), escape(text_of(inner))) for key, inner in value.items() if inner is not None]
        return [f"{key}={inner}" for key, inner in pairs] if explode else [text for pair in pairs for text in pair]
    if isinstance(value, list | tuple):
        return [escape(text_of(item)) for item in value if item is not None]
    return [escape(text_of(value))]


def check_path_value(arg: str, value: Any) -> None:
    """Refuse values that a server could read as another path, however often it decodes them.

    Raises:
        InvalidArguments: the value is empty, or contains `.` or `..` as a path segment or control characters.
    """
    if value is None or value in ("", [], {}):
        raise unsendable_argument(arg, "path_empty")
    for text in map(_fully_decoded, _texts(value)):
        for segment in text.replace("\\", "/").split("/"):
            if segment.strip() in (".", ".."):
                raise unsendable_argument(arg, "path_changed", segment=segment.strip())
        if not _CONTROLS.isdisjoint(text):
            raise unsendable_argument(arg, "control_characters")


def check_header(arg: str, text: str, *, is_secret: bool = False) -> str:
    """`text` without surrounding blanks, if a header can carry it. The error shows no character of a secret.

    Raises:
        InvalidArguments: it contains line breaks, control characters or characters outside Latin-1.
    """
    if not _CONTROLS.isdisjoint(text.replace("\t", " ")):
        raise unsendable_argument(arg, "control_characters")
    foreign = next((char for char in text if ord(char) > 255), "")
    if foreign and is_secret:
        raise unsendable_argument(arg, "header_charset_secret")
    if foreign:
        encoded = quote(foreign, safe="", errors="replace")
        raise unsendable_argument(arg, "header_charset", char=foreign, encoded=encoded)
    return text.strip()


def unsendable_argument(arg: str, reason: str, **values: str) -> ToolError:
    """The error for an argument that cannot be sent; `reason` is the name of a text, `values` fill it in."""
    reason = TEXTS.run_text(reason, **values)
    return TEXTS.error("unsendable", "invalid_argument", error_type=InvalidArguments, name=arg, reason=reason)


def _fully_decoded(text: str) -> str:
    """`text` with up to four layers of percent-encoding removed."""
    for _ in range(4):
        if "%" not in text or (plain := unquote(text)) == text:
            break
        text = plain
    return text


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for key, inner in value.items() for text in (str(key), *_texts(inner))]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []
