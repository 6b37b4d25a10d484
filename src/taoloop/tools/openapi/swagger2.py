"""Conversion of Swagger 2.0 to OpenAPI 3: parameters, bodies, responses, servers and security schemes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taoloop.tools.openapi.document import as_mapping, as_text, as_texts
from taoloop.tools.openapi.references import ResolvedNode

FORM, MULTIPART, JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"

_PARAMETER_KEYS = frozenset({"name", "in", "required", "description", "collectionFormat", "allowEmptyValue"})
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "multi": {"style": "form", "explode": True},
    "csv": {"style": "form", "explode": False},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "tsv": {"style": "tabDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
}
_FLOWS = {"application": "clientCredentials", "accessCode": "authorizationCode", "password": "password"}


def convert_parameter(node: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter outside the body, whose schema is inline."""
    converted = {key: node[key] for key in ("name", "in", "required", "description") if key in node}
    converted["schema"] = {key: value for key, value in node.items() if key not in _PARAMETER_KEYS}
    if node.get("type") == "array":
        style = _STYLES.get(as_text(node.get("collectionFormat")), _STYLES["csv"])
        converted.update(style if node.get("in") == "query" or style["style"] != "form" else {"explode": False})
    return converted


def convert_request_body(parameters: Sequence[ResolvedNode], consumes: Sequence[str]) -> ResolvedNode | None:
    """The body that the parameters `in: body` or `in: formData` describe together; None if there are none."""
    for node in parameters:
        if node.value.get("in") == "body":
            media = {kind: {"schema": node.value.get("schema", {})} for kind in consumes or (JSON,)}
            attributes = {key: node.value[key] for key in ("required", "description") if key in node.value}
            return ResolvedNode({**attributes, "content": media}, node.uri, node.pointer)
    fields = [node for node in parameters if node.value.get("in") == "formData" and as_text(node.value.get("name"))]
    return _form_body(fields, consumes) if fields else None


def _form_body(fields: Sequence[ResolvedNode], consumes: Sequence[str]) -> ResolvedNode:
    properties, required, encoding = {}, [], {}
    for node in fields:
        name = node.value["name"]
        converted = convert_parameter(node.value)
        properties[name] = {**converted["schema"], "description": as_text(converted.get("description"))}
        if node.value.get("required") is True:
            required.append(name)
        if node.value.get("type") == "array":
            encoding[name] = dict(_STYLES.get(as_text(node.value.get("collectionFormat")), _STYLES["csv"]))
    has_file = any(node.value.get("type") == "file" for node in fields)
    kinds = [kind for kind in consumes if kind.partition(";")[0].strip() in (FORM, MULTIPART)]
    media = MULTIPART if has_file else kinds[0] if kinds else FORM
    schema = {"type": "object", "properties": properties, "required": required}
    body = {"required": bool(required), "content": {media: {"schema": schema, "encoding": encoding}}}
    return ResolvedNode(body, fields[0].uri, fields[0].pointer)


def convert_response(node: Mapping[str, Any], produces: Sequence[str]) -> dict[str, Any]:
    """A response, whose schema is beside its description."""
    converted: dict[str, Any] = {"description": as_text(node.get("description"))}
    if "schema" in node:
        converted["content"] = {(produces or (JSON,))[0]: {"schema": node["schema"]}}
    return converted


def server_nodes(root: Mapping[str, Any], schemes: Sequence[str]) -> list[dict[str, str]]:
    """The servers that host, base path and schemes define; https first."""
    host, path = as_text(root.get("host")), as_text(root.get("basePath"))
    path = path if path.startswith("/") or not path else f"/{path}"
    if not host:
        return [{"url": path}] if path.strip("/") else []
    usable = [scheme for scheme in ("https", "http") if scheme in schemes] or ["https"]
    return [{"url": f"{scheme}://{host}{path}"} for scheme in usable]


def convert_security_scheme(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """A security definition as a security scheme."""
    if node.get("type") == "basic":
        return {"type": "http", "scheme": "basic"}
    if node.get("type") == "oauth2" and "flows" not in node:
        flow = _FLOWS.get(as_text(node.get("flow")), "implicit")
        flow_node = {"tokenUrl": as_text(node.get("tokenUrl")), "scopes": as_mapping(node.get("scopes"))}
        return {"type": "oauth2", "flows": {flow: flow_node}}
    return node


def media_types(operation: Mapping[str, Any], root: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The media types that an operation, or else the document, `consumes` or `produces` (`key`)."""
    return as_texts(operation.get(key)) or as_texts(root.get(key))
