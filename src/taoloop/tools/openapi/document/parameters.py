"""Reading the parameters of an operation outside its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from taoloop.tools.openapi.document.operation import Parameter, ParameterLocation, Style
from taoloop.tools.openapi.document.plain_data import ProblemLog, as_mapping, as_text, shorten
from taoloop.tools.openapi.document.refs import ResolvedNode
from taoloop.tools.openapi.document.swagger2 import convert_parameter
from taoloop.tools.openapi.names import argument_name, is_header_name
from taoloop.tools.openapi.schema.components import Components

_LOCATIONS = ("path", "query", "header", "cookie")
_SEPARATED = ("spaceDelimited", "pipeDelimited", "tabDelimited")  # Swagger 2.0 allows them outside the query, too
_STYLES: Mapping[str, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix", *_SEPARATED),
    "query": ("form", *_SEPARATED, "deepObject"),
    "header": ("simple", *_SEPARATED),
    "cookie": ("form",),
}
_CLIENT_HEADERS = frozenset({"accept", "content-type", "authorization"})  # the specification ignores these parameters
_TEMPLATE = re.compile(r"\{([^{}/]*)\}")
_MAX_DESCRIPTION = 600


def read_parameters(
    nodes: list[ResolvedNode], path: str, components: Components, problems: ProblemLog, document_path: str
) -> tuple[Parameter, ...]:
    """The parameters of an operation in their order, each with a name for its argument.

    Of two with the same location and name the later one counts: those of an operation override those of its path.
    A variable of the path template without a parameter gets one.
    """
    by_key: dict[tuple[str, str], ResolvedNode] = {}
    for node in nodes:
        by_key[as_text(node.value.get("in")).lower(), as_text(node.value.get("name"))] = node
    template_names = list(dict.fromkeys(_TEMPLATE.findall(path)))
    parameters: dict[str, Parameter] = {}
    for (location, name), node in by_key.items():
        if location == "body" or location == "formdata" or (location == "header" and name.lower() in _CLIENT_HEADERS):
            continue
        if location not in _LOCATIONS or not name or (location == "header" and not is_header_name(name)):
            problem = f"The parameter {name[:60]!r} in {location[:40] or 'no location'!r} cannot be sent."
            problems.add(document_path, problem, "Correct its `name` and `in`; calls are sent without it.")
            continue
        if location == "path" and name not in template_names:
            problem = f"The path does not contain its parameter {name[:60]!r}."
            problems.add(document_path, problem, "Add it to the path in braces; calls are sent without it.")
            continue
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
    style = as_text(node.get("style"))
    if style not in _STYLES[location]:
        style = _STYLES[location][0]
    explode = node.get("explode")
    schema, content = _schema_and_media_type(node)
    parameter = Parameter(
        arg=arg,
        name=as_text(node.get("name")),
        location=location,
        schema=components.read(schema, resolved.uri),
        required=node.get("required") is True or location == "path",
        description=shorten(node.get("description"), _MAX_DESCRIPTION),
        style=cast("Style", style),
        explode=explode if isinstance(explode, bool) else style == "form",
        allow_reserved=node.get("allowReserved") is True,
        content=content,
        deprecated=node.get("deprecated") is True,
    )
    return replace(parameter, schema=_with_example(parameter.schema, node))


def _schema_and_media_type(node: Mapping[str, Any]) -> tuple[Any, str]:
    """The schema of a parameter, and its media type if it has `content`."""
    if "schema" in node:
        return node["schema"], ""
    for media_type, media in as_mapping(node.get("content")).items():
        return as_mapping(media).get("schema", {}), media_type
    return {}, ""


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
