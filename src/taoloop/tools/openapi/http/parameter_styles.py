"""Values in a path, a query, a header and a cookie: every `style` and `explode` of the specification.

Values are percent-encoded once, in UTF-8; only letters, digits and `-._~` stay as they are. Numbers are sent as they
were written, or in plain digits, never with an exponent. Null is omitted inside lists and objects. Values nested deeper
than their style allows are sent as JSON text; only `deepObject` nests (`a[b][c]=1`, and lists repeat their name).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import quote, unquote

from taoloop.errors import InvalidArguments
from taoloop.tools.openapi.document.operation import Parameter, Style
from taoloop.tools.openapi.http.json_numbers import number_text, to_json
from taoloop.tools.openapi.texts import TEXTS

_RESERVED = ":/?@!$'()*,;="
"""The characters that `allowReserved` does not encode: all reserved ones except those that end a value or a pair."""

_CONTROLS = frozenset(map(chr, (*range(32), 127)))
_SEPARATORS = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}
"""The separators of list items in the styles that do not use a comma."""


def percent_encode(text: str) -> str:
    """Percent-encode all characters of `text` except the unreserved ones."""
    return quote(text, safe="")


def _encode_unreserved(text: str) -> str:
    return quote(text, safe=_RESERVED)


def _unchanged(text: str) -> str:
    return text


def text_of(value: Any) -> str:
    """A single value as text: `true`, `12.50`, or the text itself; lists and objects as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return number_text(value)
    return "null" if value is None else to_json(value)


def path_text(parameter: Parameter, value: Any) -> str:
    """The text that replaces `{name}` in a path.

    Raises:
        InvalidArguments: the value is empty, or would change the path.
    """
    check_path_value(parameter.arg, value)
    if parameter.content:
        return percent_encode(to_json(value))
    if parameter.style in _SEPARATORS:
        text = percent_encode(_SEPARATORS[parameter.style]).join(_items(value, parameter.explode, percent_encode))
    else:
        text = _PATH_STYLES.get(parameter.style, _simple)(
            percent_encode(parameter.name), value, parameter.explode, percent_encode
        )
    if not text:
        raise unsendable_argument(parameter.arg, "path_empty")
    return text


def query_pairs(parameter: Parameter, value: Any) -> list[str]:
    """The encoded `name=value` pairs of a query parameter; none for an empty list or object."""
    escape = _encode_unreserved if parameter.allow_reserved else percent_encode
    if parameter.content:
        return [f"{percent_encode(parameter.name)}={escape(to_json(value))}"]
    return styled_pairs(parameter.name, value, parameter.style, parameter.explode, escape)


def header_text(parameter: Parameter, value: Any) -> str:
    """The value of a header, without percent-encoding.

    Raises:
        InvalidArguments: it contains characters that a header cannot carry.
    """
    separator = _SEPARATORS.get(parameter.style, ",")
    items = [to_json(value, ascii_only=True)] if parameter.content else _items(value, parameter.explode, _unchanged)
    text = separator.join(items)
    return check_header(parameter.arg, text)


def cookie_pairs(parameter: Parameter, value: Any) -> list[str]:
    """The `name=value` pairs for the `Cookie` header."""
    if parameter.content:
        return [f"{percent_encode(parameter.name)}={percent_encode(to_json(value))}"]
    return styled_pairs(parameter.name, value, "form", parameter.explode, percent_encode)


def styled_pairs(
    name: str, value: Any, style: Style, explode: bool, escape: Callable[[str], str] = percent_encode
) -> list[str]:
    """A named value as encoded `name=value` pairs of a query or a form."""
    if isinstance(value, Mapping):
        members = {str(key): inner for key, inner in value.items() if inner is not None}
        if style == "deepObject":
            return _deep(name, members, escape)
        if explode and style == "form":
            return [f"{percent_encode(key)}={escape(text_of(inner))}" for key, inner in members.items()]
        items = [text for key, inner in members.items() for text in (key, text_of(inner))]
    elif isinstance(value, list | tuple):
        items = [text_of(item) for item in value if item is not None]
        if explode:
            return [f"{percent_encode(name)}={escape(item)}" for item in items]
    else:
        return [f"{percent_encode(name)}={escape(text_of(value))}"]
    separator = percent_encode(_SEPARATORS[style]) if style in _SEPARATORS else ","
    return [f"{percent_encode(name)}={separator.join(map(escape, items))}"] if items else []


def _deep(name: str, members: Mapping[str, Any], escape: Callable[[str], str]) -> list[str]:
    pairs: list[str] = []
    for key, value in members.items():
        inner = f"{name}[{key}]"
        if isinstance(value, Mapping):
            pairs += _deep(inner, {str(k): v for k, v in value.items() if v is not None}, escape)
        elif isinstance(value, list | tuple):
            pairs += [f"{percent_encode(inner)}={escape(text_of(item))}" for item in value if item is not None]
        else:
            pairs.append(f"{percent_encode(inner)}={escape(text_of(value))}")
    return pairs


def join_items(value: list[Any], style: Style) -> str:
    """A list as one text outside a URL, such as a part of a multipart body."""
    return _SEPARATORS.get(style, ",").join(text_of(item) for item in value if item is not None)


def _simple(_name: str, value: Any, explode: bool, escape: Callable[[str], str]) -> str:
    return ",".join(_items(value, explode, escape))


def _label(_name: str, value: Any, explode: bool, escape: Callable[[str], str]) -> str:
    return "." + ("." if explode else ",").join(_items(value, explode, escape))


def _matrix(name: str, value: Any, explode: bool, escape: Callable[[str], str]) -> str:
    items = _items(value, explode, escape)
    if explode and isinstance(value, Mapping):
        return "".join(f";{item}" for item in items)
    if explode and isinstance(value, list | tuple):
        return "".join(f";{name}={item}" for item in items)
    text = ",".join(items)
    return f";{name}={text}" if text else f";{name}"


_PATH_STYLES = {"simple": _simple, "label": _label, "matrix": _matrix}


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
    for text in _texts(value):
        for segment in _fully_decoded(text).replace("\\", "/").split("/"):
            if segment.strip() in (".", ".."):
                raise unsendable_argument(arg, "path_changed", segment=segment.strip())
        if not _CONTROLS.isdisjoint(_fully_decoded(text)):
            raise unsendable_argument(arg, "control_characters")


def check_header(arg: str, text: str) -> str:
    """`text` without surrounding blanks, if a header can carry it.

    Raises:
        InvalidArguments: it contains line breaks, control characters or characters outside Latin-1.
    """
    if not _CONTROLS.isdisjoint(text.replace("\t", " ")):
        raise unsendable_argument(arg, "header_characters")
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        raise unsendable_argument(arg, "header_charset") from None
    return text.strip()


def unsendable_argument(arg: str, reason: str, **values: str) -> InvalidArguments:
    """The error for an argument that cannot be sent; `reason` is the name of a text, `values` fill it in."""
    text = TEXTS.run_text("unsendable", name=arg, reason=TEXTS.run_text(reason, **values))
    return InvalidArguments(text, code="invalid_argument")


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
