"""Values in a path, a query, a header and a cookie: every `style` and `explode` of the specification.

Escaped once, in UTF-8, with percent signs for everything but letters, digits and `-._~`. Numbers go out as they were
written, or in plain digits: never with an exponent. Inside lists and objects null is left out, and what is nested
deeper than a style knows is written as JSON text; `deepObject` alone nests (`a[b][c]=1`, and lists repeat their name).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import quote, unquote

from taoloop.errors import InvalidArguments
from taoloop.tools.openapi.document.operation import Parameter, Style
from taoloop.tools.openapi.http.json_numbers import number_text, to_json

_RESERVED = ":/?@!$'()*,;="
"""What `allowReserved` leaves as it is: all reserved characters but those that would end the value or its pair."""

_CONTROLS = frozenset(map(chr, (*range(32), 127)))


_SEPARATORS = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}
"""What stands between the items of a list, where it is no comma."""


def escaped(text: str) -> str:
    """`text` with percent signs for all but unreserved characters."""
    return quote(text, safe="")


def _escaped_but_reserved(text: str) -> str:
    return quote(text, safe=_RESERVED)


def _as_it_is(text: str) -> str:
    return text


def text_of(value: Any) -> str:
    """One value as text: `true`, `12.50`, the text itself; a list or an object as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return number_text(value)
    return "null" if value is None else to_json(value)


def path_text(parameter: Parameter, value: Any) -> str:
    """What stands in the path in place of `{name}`.

    Raises:
        InvalidArguments: the value is empty, or would lead to another path.
    """
    refuse_path_value(parameter.arg, value)
    if parameter.content:
        return escaped(to_json(value))
    if parameter.style in _SEPARATORS:
        text = escaped(_SEPARATORS[parameter.style]).join(_items(value, parameter.explode, escaped))
    else:
        text = _PATH_STYLES.get(parameter.style, _simple)(escaped(parameter.name), value, parameter.explode, escaped)
    if not text:
        raise refused(parameter.arg, "it is part of a path and cannot be empty")
    return text


def query_pairs(parameter: Parameter, value: Any) -> list[str]:
    """The pairs of the query, each `name=value` as it stands on the wire; none for an empty list or object."""
    escape = _escaped_but_reserved if parameter.allow_reserved else escaped
    if parameter.content:
        return [f"{escaped(parameter.name)}={escape(to_json(value))}"]
    return styled_pairs(parameter.name, value, parameter.style, parameter.explode, escape)


def header_text(parameter: Parameter, value: Any) -> str:
    """The value of a header: nothing is escaped there.

    Raises:
        InvalidArguments: it holds what no header can.
    """
    separator = _SEPARATORS.get(parameter.style, ",")
    items = [to_json(value, ascii_only=True)] if parameter.content else _items(value, parameter.explode, _as_it_is)
    text = separator.join(items)
    return header_safe(parameter.arg, text)


def cookie_pairs(parameter: Parameter, value: Any) -> list[str]:
    """The pairs of the header `Cookie`, each `name=value`."""
    if parameter.content:
        return [f"{escaped(parameter.name)}={escaped(to_json(value))}"]
    return styled_pairs(parameter.name, value, "form", parameter.explode, escaped)


def styled_pairs(
    name: str, value: Any, style: Style, explode: bool, escape: Callable[[str], str] = escaped
) -> list[str]:
    """A named value as pairs of a query or of a form, each `name=value` as it stands on the wire."""
    if isinstance(value, Mapping):
        members = {str(key): inner for key, inner in value.items() if inner is not None}
        if style == "deepObject":
            return _deep(name, members, escape)
        if explode and style == "form":
            return [f"{escaped(key)}={escape(text_of(inner))}" for key, inner in members.items()]
        items = [text for key, inner in members.items() for text in (key, text_of(inner))]
    elif isinstance(value, list | tuple):
        items = [text_of(item) for item in value if item is not None]
        if explode:
            return [f"{escaped(name)}={escape(item)}" for item in items]
    else:
        return [f"{escaped(name)}={escape(text_of(value))}"]
    separator = escaped(_SEPARATORS[style]) if style in _SEPARATORS else ","
    return [f"{escaped(name)}={separator.join(map(escape, items))}"] if items else []


def _deep(name: str, members: Mapping[str, Any], escape: Callable[[str], str]) -> list[str]:
    pairs: list[str] = []
    for key, value in members.items():
        inner = f"{name}[{key}]"
        if isinstance(value, Mapping):
            pairs += _deep(inner, {str(k): v for k, v in value.items() if v is not None}, escape)
        elif isinstance(value, list | tuple):
            pairs += [f"{escaped(inner)}={escape(text_of(item))}" for item in value if item is not None]
        else:
            pairs.append(f"{escaped(inner)}={escape(text_of(value))}")
    return pairs


def joined_text(value: list[Any], style: Style) -> str:
    """A list as one text that stands in no address, such as a part of a multipart body."""
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
    """The parts of a value: one, those of a list, or the names and values of an object (joined by `=` if exploded)."""
    if isinstance(value, Mapping):
        pairs = [(escape(str(key)), escape(text_of(inner))) for key, inner in value.items() if inner is not None]
        return [f"{key}={inner}" for key, inner in pairs] if explode else [text for pair in pairs for text in pair]
    if isinstance(value, list | tuple):
        return [escape(text_of(item)) for item in value if item is not None]
    return [escape(text_of(value))]


def refuse_path_value(arg: str, value: Any) -> None:
    """Nothing that a server may take for a way to another path, however often it decodes.

    Raises:
        InvalidArguments: the value is empty, holds `.` or `..` as a step, or control characters.
    """
    if value is None or value in ("", [], {}):
        raise refused(arg, "it is part of a path and cannot be empty")
    for text in _texts(value):
        for step in _decoded(text).replace("\\", "/").split("/"):
            if step.strip() in (".", ".."):
                raise refused(arg, f"{step.strip()!r} would lead to another path")
        if not _CONTROLS.isdisjoint(_decoded(text)):
            raise refused(arg, "it holds control characters")


def header_safe(arg: str, text: str) -> str:
    """`text` if it can stand in a header.

    Raises:
        InvalidArguments: it holds line breaks, control characters or signs beyond Latin-1.
    """
    if not _CONTROLS.isdisjoint(text.replace("\t", " ")):
        raise refused(arg, "a header cannot hold line breaks or control characters")
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        raise refused(arg, "a header can only hold Latin-1 characters") from None
    return text.strip()


def refused(arg: str, why: str) -> InvalidArguments:
    """The error of an argument that cannot be sent."""
    return InvalidArguments(f"The argument {arg!r} cannot be sent: {why}.", code="invalid_argument")


def _decoded(text: str) -> str:
    """`text` without percent signs, however often they were put in."""
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
