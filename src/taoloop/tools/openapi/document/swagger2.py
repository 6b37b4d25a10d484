"""Swagger 2.0 in the words of OpenAPI 3: parameters, bodies, servers and security schemes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taoloop.tools.openapi.document.plain_data import mapping, text, texts
from taoloop.tools.openapi.document.refs import Found

FORM, MULTIPART, JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"

_OF_PARAMETER = frozenset({"name", "in", "required", "description", "collectionFormat", "allowEmptyValue"})
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "multi": {"style": "form", "explode": True},
    "csv": {"style": "form", "explode": False},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "tsv": {"style": "tabDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
}
_FLOWS = {
    "application": "clientCredentials",
    "accessCode": "authorizationCode",
    "implicit": "implicit",
    "password": "password",
}


def parameter(node: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter that is not of the body, whose type stands beside its name."""
    made = {key: node[key] for key in ("name", "in", "required", "description") if key in node}
    made["schema"] = {key: value for key, value in node.items() if key not in _OF_PARAMETER}
    if node.get("type") == "array":
        how = _STYLES.get(text(node.get("collectionFormat")), _STYLES["csv"])
        made.update(how if node.get("in") == "query" or how["style"] != "form" else {"explode": False})
    return made


def request_body(parameters: Sequence[Found], consumes: Sequence[str]) -> Found | None:
    """The body that parameters `in: body` or `in: formData` describe together; None without one."""
    for one in parameters:
        if one.value.get("in") == "body":
            media = {kind: {"schema": one.value.get("schema", {})} for kind in consumes or (JSON,)}
            told = {key: one.value[key] for key in ("required", "description") if key in one.value}
            return Found({**told, "content": media}, one.uri, one.pointer)
    fields = [one for one in parameters if one.value.get("in") == "formData" and text(one.value.get("name"))]
    return _form(fields, consumes) if fields else None


def _form(fields: Sequence[Found], consumes: Sequence[str]) -> Found:
    properties, required, encoding = {}, [], {}
    for one in fields:
        name = one.value["name"]
        made = parameter(one.value)
        properties[name] = {**made["schema"], "description": text(made.get("description"))}
        if one.value.get("required") is True:
            required.append(name)
        if one.value.get("type") == "array":
            encoding[name] = dict(_STYLES.get(text(one.value.get("collectionFormat")), _STYLES["csv"]))
    has_file = any(one.value.get("type") == "file" for one in fields)
    kinds = [kind for kind in consumes if kind.partition(";")[0].strip() in (FORM, MULTIPART)]
    media = MULTIPART if has_file else kinds[0] if kinds else FORM
    schema = {"type": "object", "properties": properties, "required": required}
    body = {"required": bool(required), "content": {media: {"schema": schema, "encoding": encoding}}}
    return Found(body, fields[0].uri, fields[0].pointer)


def response(node: Mapping[str, Any], produces: Sequence[str]) -> dict[str, Any]:
    """A response whose schema stands beside its description."""
    made: dict[str, Any] = {"description": text(node.get("description"))}
    if "schema" in node:
        made["content"] = {(produces or (JSON,))[0]: {"schema": node["schema"]}}
    return made


def servers(root: Mapping[str, Any], schemes: Sequence[str]) -> list[dict[str, str]]:
    """The addresses that host, base path and schemes make; the secure one first."""
    host, path = text(root.get("host")), text(root.get("basePath"))
    path = path if path.startswith("/") or not path else f"/{path}"
    if not host:
        return [{"url": path}] if path.strip("/") else []
    usable = [scheme for scheme in ("https", "http") if scheme in schemes] or ["https"]
    return [{"url": f"{scheme}://{host}{path}"} for scheme in usable]


def security_scheme(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """A security definition as a security scheme."""
    if node.get("type") == "basic":
        return {"type": "http", "scheme": "basic"}
    if node.get("type") == "oauth2" and "flows" not in node:
        flow = _FLOWS.get(text(node.get("flow")), "implicit")
        how = {"tokenUrl": text(node.get("tokenUrl")), "scopes": mapping(node.get("scopes"))}
        return {"type": "oauth2", "flows": {flow: how}}
    return node


def media_types(operation: Mapping[str, Any], root: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """What an operation, or else the document, `consumes` or `produces`."""
    return texts(operation.get(key)) or texts(root.get(key))
