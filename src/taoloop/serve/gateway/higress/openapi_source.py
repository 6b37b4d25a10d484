"""Entries of `apis` in a file of the Higress plugin `ai-agent`, as sources of tools.

Both forms are supported: `apiProvider` with an OpenAPI text, and the short form with `url` and `tools`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from taoloop.errors import ConfigError
from taoloop.tools.openapi.document.document import parse_values
from taoloop.tools.openapi.settings import OpenapiSource

DEFAULT_TIMEOUT_MS = 50_000
_KEY = "api_key"
_VARIABLE = re.compile(r"\{([^{}]*)\}")
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def api_source(
    entry: Mapping[str, Any], *, where: str = "apis[0]", base_urls: Mapping[str, str] | None = None
) -> OpenapiSource:
    """The source of tools that one entry describes. Errors start with `where`.

    `base_urls` redirects a `serviceName`: its calls go there, with the path of the document's server. The time limit of
    the entry (milliseconds, 50,000 by default) becomes that of each call.

    Raises:
        ConfigError: a field is missing or invalid; names it.
        ToolSourceError: the OpenAPI text cannot be parsed.
    """
    if "apiProvider" not in entry and "tools" in entry:
        entry = _long_form(entry, where)
    provider = _mapping(entry.get("apiProvider"), f"{where}.apiProvider")
    service = _text(provider, "serviceName", f"{where}.apiProvider")
    domain = _text(provider, "domain", f"{where}.apiProvider")
    port = provider.get("servicePort")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
        raise ConfigError(f"{where}.apiProvider.servicePort: a port from 1 to 65535 is needed, not {port!r}.")
    document = parse_values(_text(entry, "api", where).encode(), f"{where}.api")
    if not isinstance(document, dict):
        raise ConfigError(f"{where}.api: the OpenAPI text is no mapping.")
    limit = provider.get("maxExecutionTime") or DEFAULT_TIMEOUT_MS
    if isinstance(limit, bool) or not isinstance(limit, int | float) or limit < 0:
        raise ConfigError(f"{where}.apiProvider.maxExecutionTime: milliseconds are needed, not {limit!r}.")
    auth = _apply_key(document, provider.get("apiKey"), f"{where}.apiProvider.apiKey")
    return OpenapiSource(
        document=json.dumps(document, ensure_ascii=False),
        base_url=_base_url(document, service, domain, port, where, base_urls or {}),
        auth=auth,
        timeout_s=limit / 1000,
        cache=False,
    )


def _base_url(
    document: Mapping[str, Any], service: str, domain: str, port: int, where: str, base_urls: Mapping[str, str]
) -> str:
    url = server_url(document, where)
    if not url:
        raise ConfigError(
            f"{where}.api: the OpenAPI text has no servers[0].url.", hint="Write `servers: [{url: https://…}]`."
        )
    parts, own_port = _split_address(url, f"{where}.api: servers[0].url")
    if service in base_urls:
        return base_urls[service].rstrip("/") + parts.path.rstrip("/")
    if parts.scheme and parts.hostname:
        default_port, other_port = (443, 80) if parts.scheme == "https" else (80, 443)
        effective_port = own_port or (default_port if port == other_port else port)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        suffix = "" if effective_port == default_port else f":{effective_port}"
        return f"{parts.scheme}://{host}{suffix}{parts.path}".rstrip("/")
    scheme = "https" if port == 443 else "http"
    port_suffix = "" if port in (80, 443) else f":{port}"
    return f"{scheme}://{domain}{port_suffix}/{parts.path.strip('/')}".rstrip("/")


def server_url(document: Mapping[str, Any], where: str) -> str:
    """The first server of a document, with the defaults of its variables; empty where it has none.

    Raises:
        ConfigError: a variable has no default.
    """
    servers = document.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else None
    url = first.get("url") if isinstance(first, Mapping) else None
    return _substitute_variables(url, first, where) if isinstance(url, str) else ""


def _substitute_variables(url: str, server: Any, where: str) -> str:
    variables_field = server.get("variables")
    variables = variables_field if isinstance(variables_field, Mapping) else {}

    def value(match: re.Match[str]) -> str:
        variable = variables.get(match[1])
        default = variable.get("default") if isinstance(variable, Mapping) else None
        if default is None:
            message = f"{where}.api: the variable {match[1]!r} of servers[0].url has no default."
            raise ConfigError(message, hint="Write the address without it.")
        return str(default)

    return _VARIABLE.sub(value, url)


def _split_address(address: str, where: str) -> tuple[SplitResult, int | None]:
    """Split an address; returns its parts and its port.

    Raises:
        ConfigError: its brackets or its port are invalid.
    """
    try:
        parts = urlsplit(address)
        return parts, parts.port
    except ValueError:
        raise ConfigError(f"{where}: {address[:80]!r} is no http(s) address.") from None


def _apply_key(document: dict[str, Any], key_entry: Any, where: str) -> dict[str, str]:
    """Replace all security in a document by the key of its entry; returns the secret.

    A GET with a description loses its summary, as in the plugin.
    """
    key = _mapping(key_entry or {}, where)
    location, name, value = (str(key.get(field) or "") for field in ("in", "name", "value"))
    if location not in ("query", "header", "none", ""):
        raise ConfigError(f"{where}.in: {location!r} is none of query, header, none.")
    document.pop("security", None)
    paths = document.get("paths")
    for item in paths.values() if isinstance(paths, Mapping) else ():
        for method, operation in item.items() if isinstance(item, Mapping) else ():
            if isinstance(operation, dict) and str(method).lower() in _METHODS:
                operation.pop("security", None)
                if str(method).lower() == "get" and str(operation.get("description") or "").strip():
                    operation.pop("summary", None)
    if location not in ("query", "header") or not name or not value:
        return {}
    components = document.get("components")
    if not isinstance(components, dict):
        components = document["components"] = {}
    scheme = {"type": "apiKey", "in": location, "name": name if location == "query" else "Authorization"}
    components["securitySchemes"] = {_KEY: scheme}
    document["security"] = [{_KEY: []}]
    return {_KEY: value if location == "query" else f"{name} {value}"}


def _long_form(entry: Mapping[str, Any], entry_path: str) -> dict[str, Any]:
    """Convert the short form, with `url` and `tools`, to the form with an OpenAPI text."""
    url = _text(entry, "url", entry_path)
    parts, port = _split_address(url, f"{entry_path}.url")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{entry_path}.url: {url[:80]!r} is no http(s) address.")
    tools = entry["tools"]
    if not isinstance(tools, list) or not tools:
        raise ConfigError(f"{entry_path}.tools: a list of tools is needed.")
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {}
    for number, tool in enumerate(tools):
        tool_path, name = f"{entry_path}.tools[{number}]", f"tool{number}"
        schemas[name] = _rebase_references(
            _parameter_schema(_mapping(tool, tool_path), tool_path), f"#/components/schemas/{name}"
        )
        path, method, operation = _operation(tool, schemas[name], tool_path)
        if method in paths.setdefault(path, {}):
            raise ConfigError(
                f"{tool_path}: {method.upper()} {path} stands there twice.",
                hint="Put the second one into an entry of `apis` of its own.",
            )
        paths[path][method] = operation
    document = {
        "openapi": "3.1.0",
        "info": {"title": url, "version": "1"},
        "servers": [{"url": url}],
        "paths": paths,
        "components": {"schemas": schemas},
    }
    provider = {
        "serviceName": parts.hostname,
        "servicePort": port or (443 if parts.scheme == "https" else 80),
        "domain": parts.hostname,
        "maxExecutionTime": entry.get("maxExecutionTime"),
        "apiKey": entry.get("apiKey"),
    }
    return {"apiProvider": provider, "api": json.dumps(document)}


def _parameter_schema(tool: Mapping[str, Any], tool_path: str) -> dict[str, Any]:
    """The JSON Schema of a tool in short form; names in `paramName` that it does not define accept any value."""
    schema = tool.get("parameter") or {"type": "object", "properties": {}}
    if isinstance(schema, str):
        try:
            schema = json.loads(schema, parse_constant=_reject_constant)
        except ValueError as error:
            raise ConfigError(f"{tool_path}.parameter: the JSON Schema cannot be read: {error}.") from None
    parameter_path = f"{tool_path}.parameter"
    properties = dict(
        _mapping(_mapping(schema, parameter_path).get("properties") or {}, f"{parameter_path}.properties")
    )
    required = schema.get("required") or []
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise ConfigError(f"{parameter_path}.required: a list of names is needed, not {str(required)[:40]!r}.")
    names = tool.get("paramName") or []
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"{tool_path}.paramName: a list of names is needed, not {str(names)[:40]!r}.")
    return {**schema, "properties": {**properties, **{name: {} for name in names if name not in properties}}}


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _rebase_references(value: Any, root: str) -> Any:
    """A schema whose references, relative to itself, are relative to `root` instead."""
    if isinstance(value, list):
        return [_rebase_references(item, root) for item in value]
    if not isinstance(value, Mapping):
        return value
    schema = {name: _rebase_references(item, root) for name, item in value.items()}
    if isinstance(ref := schema.get("$ref"), str) and (ref == "#" or ref.startswith("#/")):
        schema["$ref"] = root + ref[1:]
    return schema


def _operation(tool: Mapping[str, Any], schema: Mapping[str, Any], tool_path: str) -> tuple[str, str, dict[str, Any]]:
    """Path, method and operation of a tool in short form: arguments not in its path go into query or body."""
    operation_id, path = _text(tool, "toolName", tool_path), _text(tool, "path", tool_path)
    method = str(tool.get("method") or "GET").lower()
    if method not in _METHODS:
        raise ConfigError(f"{tool_path}.method: {method!r} is no method of HTTP.")
    if "://" in path:
        raise ConfigError(f"{tool_path}.path: a path such as /weather is needed, not {path[:60]!r}.")
    properties, required = schema["properties"], schema.get("required") or []
    operation: dict[str, Any] = {"operationId": operation_id, "description": str(tool.get("description") or "")}
    operation |= {key: value for key, value in tool.items() if str(key).startswith("x-")}
    in_path = [name for name in properties if f"{{{name}}}" in path]
    rest = [name for name in properties if name not in in_path]
    has_body = method in ("post", "put", "patch")
    operation["parameters"] = [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in in_path or name in required,
            "schema": properties[name],
        }
        for name in (in_path if has_body else [*in_path, *rest])
    ]
    if has_body and rest:
        body = {**schema, "properties": {name: properties[name] for name in rest}}
        body["required"] = [name for name in required if name in rest]
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return path if path.startswith("/") else f"/{path}", method, operation


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: a mapping is needed, not {'nothing' if value is None else repr(value)[:40]}.")
    return value


def _text(mapping: Mapping[str, Any], name: str, where: str) -> str:
    value = mapping.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{where}.{name}: it is missing, or no text.")
    return value
