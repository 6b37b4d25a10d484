"""The parameters of an operation outside its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from taoloop.tools.openapi.document.operation import In, Parameter, Style
from taoloop.tools.openapi.document.plain_data import Notes, brief, mapping, text
from taoloop.tools.openapi.document.refs import Found
from taoloop.tools.openapi.document.swagger2 import parameter as converted
from taoloop.tools.openapi.names import argument_name, is_header_name
from taoloop.tools.openapi.schema.components import Components

_PLACES = ("path", "query", "header", "cookie")
_SEPARATED = ("spaceDelimited", "pipeDelimited", "tabDelimited")  # Swagger 2.0 has them outside the query, too
_STYLES: Mapping[str, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix", *_SEPARATED),
    "query": ("form", *_SEPARATED, "deepObject"),
    "header": ("simple", *_SEPARATED),
    "cookie": ("form",),
}
_SET_BY_US = frozenset({"accept", "content-type", "authorization"})  # the specification takes these out
_TEMPLATE = re.compile(r"\{([^{}/]*)\}")
_MOST_DESCRIPTION = 600


def parameters_of(
    given: list[Found], path: str, components: Components, notes: Notes, place: str
) -> tuple[Parameter, ...]:
    """The parameters of an operation in their order, with a name for the card each.

    Of two with the same place and name the later one counts, as an operation's own does over that of its path. What
    the path asks for is there in any case.
    """
    chosen: dict[tuple[str, str], Found] = {}
    for one in given:
        chosen[text(one.value.get("in")).lower(), text(one.value.get("name"))] = one
    wanted = list(dict.fromkeys(_TEMPLATE.findall(path)))
    made: dict[str, Parameter] = {}
    for (where, name), found in chosen.items():
        if where == "body" or where == "formdata" or (where == "header" and name.lower() in _SET_BY_US):
            continue
        if where not in _PLACES or not name or (where == "header" and not is_header_name(name)):
            told = f"The parameter {name[:60]!r} in {where[:40] or 'no place'!r} cannot be sent."
            notes.add(place, told, "Correct its `name` and `in`; calls go without it.")
            continue
        if where == "path" and name not in wanted:
            told = f"The path has no place for its parameter {name[:60]!r}."
            notes.add(place, told, "Write it into the path in braces; calls go without it.")
            continue
        arg = argument_name(name, where, made)
        made[arg] = _parameter(arg, found, cast("In", where), components)
    for name in wanted:
        if not any(one.place == "path" and one.name == name for one in made.values()):
            arg = argument_name(name, "path", made)
            made[arg] = Parameter(arg=arg, name=name, place="path", schema={"type": "string"}, required=True)
    return tuple(made.values())


def _parameter(arg: str, found: Found, place: In, components: Components) -> Parameter:
    node = found.value
    if "schema" not in node and "content" not in node:
        node = converted(node)
    style = text(node.get("style"))
    if style not in _STYLES[place]:
        style = _STYLES[place][0]
    explode = node.get("explode")
    schema, content = _schema(node)
    made = Parameter(
        arg=arg,
        name=text(node.get("name")),
        place=place,
        schema=components.read(schema, found.uri),
        required=node.get("required") is True or place == "path",
        description=brief(node.get("description"), _MOST_DESCRIPTION),
        style=cast("Style", style),
        explode=explode if isinstance(explode, bool) else style == "form",
        allow_reserved=node.get("allowReserved") is True,
        content=content,
        deprecated=node.get("deprecated") is True,
    )
    return replace(made, schema=_with_example(made.schema, node))


def _schema(node: Mapping[str, Any]) -> tuple[Any, str]:
    """The schema of a parameter, and its media type where it is given by `content`."""
    if "schema" in node:
        return node["schema"], ""
    for media_type, media in mapping(node.get("content")).items():
        return mapping(media).get("schema", {}), media_type
    return {}, ""


def _with_example(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with the example that stands at the parameter, where the schema itself shows none."""
    if schema.keys() & {"examples", "enum", "default", "const"}:
        return schema
    example = node.get("example")
    if example is None:
        example = next((mapping(one).get("value") for one in mapping(node.get("examples")).values()), None)
    fits = schema.get("type") == "string" if isinstance(example, str) else isinstance(example, int | float)
    is_short = not isinstance(example, str) or 0 < len(example) <= 60
    return {**schema, "examples": [example]} if fits and is_short and not isinstance(example, bool) else schema
