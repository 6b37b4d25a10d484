"""The entries of `apis` as tools, with the place of everything that is wrong with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, urlsplit

import pydantic_core

from taoloop.config.settings_reader import LITERAL, SECRET, SettingsReader, Span, checked, expected
from taoloop.errors import AgentFileError, ConfigError
from taoloop.serve.gateway.config.host_overrides import HostOverrides
from taoloop.tools.egress.rules import DEFAULT_PORTS
from taoloop.tools.json_schema import compile_schema
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.document import as_list, as_mapping, as_text, parse_values
from taoloop.tools.openapi.operation_call import OperationCaller
from taoloop.tools.openapi.operation_reader import METHODS
from taoloop.tools.openapi.settings import is_http_url
from taoloop.tools.tool import Tool
from taoloop.tools.yaml12 import FieldPath

DEFAULT_TIMEOUT_MS = 50_000
TEXT = "the OpenAPI text"
_KEY = "api_key"
_VARIABLE = re.compile(r"\{([^{}]*)\}")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\]")
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def require_host(value: str, _reader: SettingsReader) -> str:
    """The name or address of a host."""
    if not _HOST.fullmatch(value):
        raise expected("a host such as api.example.com")
    return value


def _split_address(address: str, field_name: str = "") -> tuple[SplitResult, int | None]:
    """Split an address; returns its parts and its port.

    Raises:
        ConfigError: its brackets or its port are invalid.
    """
    try:
        parts = urlsplit(address)
        return parts, parts.port
    except ValueError:
        raise ConfigError(f"{field_name}{address[:80]!r} is no http(s) address.") from None


def _service_address(address: str, _reader: SettingsReader) -> str:
    if not is_http_url(address):
        raise ConfigError(f"{address[:80]!r} is no http(s) address.")
    return address


def _method(value: str, _reader: SettingsReader) -> str:
    if value.lower() not in _METHODS:
        raise expected("a method of HTTP")
    return value


def _path(value: str, _reader: SettingsReader) -> str:
    if "://" in value:
        raise expected("a path such as /weather")
    return value if value.startswith("/") else f"/{value}"


def _parameter_schema(value: Any, _reader: SettingsReader) -> dict[str, Any]:
    """The JSON Schema of a tool in short form, from a mapping or a text in JSON."""
    if isinstance(value, str):
        try:
            value = pydantic_core.from_json(value, allow_inf_nan=False)
        except ValueError as error:
            raise ConfigError(f"the JSON Schema cannot be parsed: {error}.") from None
    if not isinstance(value, dict):
        raise expected("a text with a mapping in JSON")
    if not isinstance(value.get("properties") or {}, dict):
        raise ConfigError("properties: a mapping is expected.")
    required = value.get("required") or []
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise ConfigError(f"required: a list of names is expected, not {str(required)[:40]!r}.")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKey:
    """`apiKey` of an entry: the key of the service, and where it goes in a request."""

    in_: Literal["query", "header", "none"] = "none"
    """Where the key goes; `none` sends none."""

    name: str = ""
    """The parameter of the query, or the word before the key in the header."""

    value: Annotated[str, SECRET] = field(default="", repr=False)
    """The key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiProvider:
    """`apiProvider` of an entry: where its calls go."""

    service_name: str
    """The name of the service; --resolve can send it elsewhere."""

    service_port: Annotated[int, Span(1, 65535)]
    """The port of the service."""

    domain: Annotated[str, checked(require_host)]
    """The host."""

    max_execution_time: Annotated[int, Span(0)] = DEFAULT_TIMEOUT_MS
    """How long one call may take, in ms."""

    api_key: ServiceKey = ServiceKey()
    """The key of the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongEntry:
    """An entry of `apis` with an OpenAPI text."""

    api_provider: ApiProvider
    """Where its calls go."""

    api: Annotated[str, LITERAL]
    """One OpenAPI document, YAML or JSON, as a block of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortEntry:
    """An entry of `apis` whose tools are written out."""

    url: Annotated[str, checked(_service_address)]
    """The address of the service."""

    tools: tuple[dict[str, Any], ...]
    """The tools; each has the fields of `ShortTool`, and those of an operation that begin with `x-`."""

    max_execution_time: Annotated[int, Span(0)] = DEFAULT_TIMEOUT_MS
    """How long one call may take, in ms."""

    api_key: ServiceKey = ServiceKey()
    """The key of the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTool:
    """A tool that is written out."""

    tool_name: Annotated[str, LITERAL]
    """The name of the tool."""

    path: Annotated[str, LITERAL, checked(_path)]
    """The path of its calls; `{name}` in it is a parameter."""

    description: Annotated[str, LITERAL] = ""
    """What the tool does, for the model."""

    method: Annotated[str, LITERAL, checked(_method)] = "GET"
    """The method of HTTP."""

    parameter: Annotated[dict[str, Any] | Annotated[str, LITERAL], checked(_parameter_schema, names_field=True)] = (
        field(default_factory=dict)
    )
    """The JSON Schema of the arguments: a mapping, or a text in JSON."""

    param_name: tuple[Annotated[str, LITERAL], ...] | Annotated[str, LITERAL] = ()
    """Names of parameters that may be anything."""


def _base_url(document: Mapping[str, Any], provider: ApiProvider) -> str:
    url, port = server_url(document), provider.service_port
    if not url:
        raise ConfigError(f"{TEXT} has no servers[0].url.", hint="Write `servers: [{url: https://…}]`.")
    parts, own_port = _split_address(url, "servers[0].url: ")
    if parts.scheme and parts.hostname:
        default_port, other_port = (443, 80) if parts.scheme == "https" else (80, 443)
        effective_port = own_port or (default_port if port == other_port else port)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        suffix = "" if effective_port == default_port else f":{effective_port}"
        return f"{parts.scheme}://{host}{suffix}{parts.path}".rstrip("/")
    return f"{service_origin(provider.domain, port)}/{parts.path.strip('/')}".rstrip("/")


def service_origin(domain: str, port: int) -> str:
    """Scheme, host and port by which a service is called: port 443 is https, any other http."""
    return f"{'https' if port == 443 else 'http'}://{domain}" + ("" if port in (80, 443) else f":{port}")


def server_url(document: Mapping[str, Any]) -> str:
    """The first server of a document, with the defaults of its variables; empty where it has none.

    Raises:
        ConfigError: a variable has no default.
    """
    server = as_mapping(next(iter(as_list(document.get("servers"))), None))
    variables = as_mapping(server.get("variables"))

    def default_of(match: re.Match[str]) -> str:
        default = as_mapping(variables.get(match[1])).get("default")
        if default is None:
            message = f"the variable {match[1]!r} of servers[0].url has no default."
            raise ConfigError(message, hint="Write the address without it.")
        return str(default)

    return _VARIABLE.sub(default_of, as_text(server.get("url")))


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each operation of a document with its method in lower case."""
    for item in as_mapping(document.get("paths")).values():
        for method, operation in as_mapping(item).items():
            if isinstance(operation, dict) and str(method).lower() in METHODS:
                yield str(method).lower(), operation


def _apply_key(document: dict[str, Any], key: ServiceKey) -> dict[str, str]:
    """Replace all security in a document by the key of its entry; returns the secret.

    A GET with a description loses its summary, as in the plugin.
    """
    document.pop("security", None)
    for method, operation in _operations(document):
        operation.pop("security", None)
        if method == "get" and str(operation.get("description") or "").strip():
            operation.pop("summary", None)
    if key.in_ == "none" or not key.name or not key.value:
        return {}
    is_query = key.in_ == "query"
    scheme = {"type": "apiKey", "in": key.in_, "name": key.name if is_query else "Authorization"}
    document["components"] = {**as_mapping(document.get("components")), "securitySchemes": {_KEY: scheme}}
    document["security"] = [{_KEY: []}]
    return {_KEY: key.value if is_query else f"{key.name} {key.value}"}


def short_api(entry: ShortEntry, tools: Sequence[ShortTool]) -> tuple[ApiProvider, dict[str, Any]]:
    """Where the calls of an entry in short form go, and its tools as an OpenAPI document.

    `tools` are those of the entry, checked; no two of them have the same method and path.
    """
    parts, port = _split_address(entry.url)
    host = parts.hostname or ""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {}
    for number, (tool, raw_tool) in enumerate(zip(tools, entry.tools, strict=True)):
        name = f"tool{number}"
        names = (tool.param_name,) if isinstance(tool.param_name, str) else tool.param_name
        schema: Any = tool.parameter or {"type": "object"}
        properties = {**(schema.get("properties") or {})}
        schema = {**schema, "properties": properties | {key: {} for key in names if key not in properties}}
        schemas[name] = _rebase_references(schema, f"#/components/schemas/{name}")
        extensions = {key: value for key, value in raw_tool.items() if key.startswith("x-")}
        paths.setdefault(tool.path, {})[tool.method.lower()] = _operation(tool, schemas[name]) | extensions
    document = {
        "openapi": "3.1.0",
        "info": {"title": entry.url, "version": "1"},
        "servers": [{"url": entry.url}],
        "paths": paths,
        "components": {"schemas": schemas},
    }
    provider = ApiProvider(
        service_name=host,
        service_port=port or (443 if parts.scheme == "https" else 80),
        domain=host,
        max_execution_time=entry.max_execution_time,
        api_key=entry.api_key,
    )
    return provider, document


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


def _operation(tool: ShortTool, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The operation of a tool in short form: arguments not in its path go into query or body."""
    properties, required = schema["properties"], schema.get("required") or []
    operation: dict[str, Any] = {"operationId": tool.tool_name, "description": tool.description}
    in_path = [name for name in properties if f"{{{name}}}" in tool.path]
    rest = [name for name in properties if name not in in_path]
    has_body = tool.method.lower() in ("post", "put", "patch")
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
    return operation


_TEXT_LINE = re.compile(rf"{TEXT}: line (?P<line>\d+): (?P<message>.*)", re.DOTALL)
_BLOCK_TEXT = re.compile(r":\s*[|>][0-9+-]*\s*(?:#.*)?$")
_NAMES = "a model takes names of 1 to 64 ASCII letters, digits, _ and -"


def is_short_entry(entry: Any) -> bool:
    """Whether an entry of `apis` is written in the short form."""
    return isinstance(entry, Mapping) and "apiProvider" not in entry and ("tools" in entry or "url" in entry)


class ApiReader:
    """Reads `apis` of one document."""

    def __init__(self, reader: SettingsReader, services: HostOverrides) -> None:
        self.document, self._reader, self._overrides = reader.document, reader, services
        self._names: dict[str, str] = {}

    def tools(self, entries: Sequence[Any]) -> tuple[Tool, ...]:
        """The tools of all entries, in the order of the file.

        Raises:
            AgentFileError: an entry cannot be used; names the file, the line and the field.
        """
        if not entries:
            raise self.document.error(("apis",), "it is missing, or empty: an agent needs tools.")
        return tuple(tool for number, entry in enumerate(entries) for tool in self._entry(("apis", number), entry))

    def _entry(self, path: FieldPath, data: Any) -> tuple[Tool, ...]:
        is_short = is_short_entry(data)
        described = (*path, "tools" if is_short else "api")
        key_path = (*path, "apiKey") if is_short else (*path, "apiProvider", "apiKey")
        try:
            provider, document = self._short(path, data) if is_short else self._long(path, data)
            self._keep_key(key_path, provider.api_key)
            auth = _apply_key(document, provider.api_key)
            source = OpenapiSource(
                document=json.dumps(document, ensure_ascii=False),
                base_url=_base_url(document, provider),
                auth=auth,
                timeout_s=provider.max_execution_time / 1000,  # that of each call
                headers={"Content-Type": "application/json"},  # with every call, as the plugin sends it
                hide_server=True,
                cache=False,
            )
            self._require_unique_ids(described, document)
            loaded = openapi_tools(self._with_address(path, key_path, provider, source, server_url(document)))
        except AgentFileError:
            raise
        except ConfigError as error:
            raise self._located_error((*path, "url" if is_short else "api"), error) from error
        for problem in loaded.problems:
            place = f"{problem.place}: " if problem.place else ""
            self._reader.warn(described, f"{place}{problem.message} {problem.hint}".rstrip())
        if not loaded.tools:
            why = str(loaded.problems[0].message) if loaded.problems else ""
            raise self.document.error(described, "it has no usable operation.", hint=why)
        for tool in loaded.tools:
            if tool.name in self._names:
                message = f"a tool is called {tool.name!r}, and so is one of {self._names[tool.name]}."
                raise self.document.error(described, message, hint="Give each operation its own operationId.")
            self._names[tool.name] = self.document.name_of(described)
            operation_id = tool.handler.operation.operation_id if isinstance(tool.handler, OperationCaller) else ""
            if operation_id and operation_id != tool.name:
                self._reader.warn(described, f"{operation_id!r} is called {tool.name} here: {_NAMES}.")
        return loaded.tools

    def _long(self, path: FieldPath, data: Any) -> tuple[ApiProvider, dict[str, Any]]:
        """Where the calls of an entry with an OpenAPI text go, and its document."""
        entry = self._reader.read(LongEntry, path, data, mode="lenient")
        document = parse_values(entry.api.encode(), TEXT)
        if not isinstance(document, dict):
            raise ConfigError(f"{TEXT} is no mapping.")
        return entry.api_provider, document

    def _short(self, path: FieldPath, data: Any) -> tuple[ApiProvider, dict[str, Any]]:
        """The same of an entry whose tools are written out."""
        entry = self._reader.read(ShortEntry, path, data, mode="lenient")
        if not entry.tools:
            raise self.document.error((*path, "tools"), "it is missing, or empty.")
        tools: list[ShortTool] = []
        for number, raw_tool in enumerate(entry.tools):
            tool_path = (*path, "tools", number)
            own = {key: value for key, value in raw_tool.items() if not key.startswith("x-")}
            tool = self._reader.read(ShortTool, tool_path, own, mode="lenient")
            if any((tool.method.lower(), tool.path) == (other.method.lower(), other.path) for other in tools):
                message = f"{tool.method.upper()} {tool.path} is there twice."
                hint = "Put the second one into a separate entry of `apis`."
                raise self.document.error(tool_path, message, hint=hint)
            try:
                compile_schema(tool.parameter, "The schema")  # type: ignore[arg-type]  # a text is parsed by its check
            except ConfigError as error:
                self._reader.warn((*tool_path, "parameter"), f"{error.message} Anything is accepted there.")
            tools.append(tool)
        return short_api(entry, tools)

    def _keep_key(self, path: FieldPath, key: ServiceKey) -> None:
        """Treat the key of an entry as a secret; warn if it is not sent."""
        self._reader.keep_secret((*path, "value"), key.value)
        if key.value and key.in_ != "none" and not key.name:
            self._reader.warn((*path, "name"), "it is missing, so no key is sent.")
        if key.value and key.name and key.in_ == "header":
            self._warn_of_scheme(path, key)
        if key.value and key.in_ == "none":
            self._reader.warn((*path, "in"), "it is `none`, so no key is sent.")

    def _warn_of_scheme(self, path: FieldPath, key: ServiceKey) -> None:
        """Warn of a key that a server will hardly understand: the header is always `Authorization: NAME VALUE`."""
        name, first_word = key.name.lower(), key.value.split(" ", 1)[0].lower()
        if name == "authorization" or name.startswith("x-"):
            message = (
                f"the header is always `Authorization`, and {key.name!r} is sent in it as the word before the key: "
                "write `Bearer` here, or the word that the API expects."
            )
            self._reader.warn((*path, "name"), message)
        elif first_word == name:
            self._reader.warn(
                (*path, "value"), f"it begins with {key.name!r}, which is sent before it as `name` anyway."
            )

    def _with_address(
        self, path: FieldPath, key_path: FieldPath, provider: ApiProvider, source: OpenapiSource, address: str
    ) -> OpenapiSource:
        """The source where its calls go: at the service's own address if the operator gave one.

        `address` is that of the document's server.
        """
        parts = urlsplit(source.base_url)
        names = (provider.service_name, provider.domain, parts.hostname or "")
        if base := self._overrides.base_of(*names):
            headers = {**source.headers, **self._overrides.host_header(source.base_url, *names)}
            return replace(source, base_url=base + parts.path, headers=headers)
        if source.auth and parts.scheme == "http":
            self._reader.warn(key_path, f"the key is sent to {parts.hostname} without encryption.")
        port, scheme = provider.service_port, urlsplit(address).scheme
        if not scheme and not address.startswith("/"):
            message = (
                f"servers[0].url is {address[:80]!r}, which names no scheme, so it is a path: "
                f"calls go to {source.base_url}."
            )
            self._reader.warn((*path, "api"), message)
        usual = DEFAULT_PORTS.get(scheme)
        if usual is not None and urlsplit(address).port is None and port != usual and port in DEFAULT_PORTS.values():
            message = f"port {port} does not belong to {scheme}, which {address} asks for; {usual} is used."
            self._reader.warn((*path, "apiProvider", "servicePort"), message)
        return source

    def _require_unique_ids(self, described: FieldPath, api: Mapping[str, Any]) -> None:
        """Refuse an operation id that is in the text twice: one of the two would be lost."""
        names: set[str] = set()
        for _, operation in _operations(api):
            name = str(operation.get("operationId") or "")
            if name and name in names:
                begin, lines = self._block(described)
                id_text = f"operationId: {name}"
                numbers = [n for n, text in enumerate(lines, begin + 1) if text.strip(" -'\"").endswith(id_text)]
                line = numbers[1] if len(numbers) > 1 else 0
                raise self._error(described, line, f"two operations are called {name!r}.", "Give each its own name.")
            names.add(name)

    def _located_error(self, path: FieldPath, error: ConfigError) -> AgentFileError:
        """An error about a text; a line of the text becomes one of the file."""
        match = _TEXT_LINE.fullmatch(error.message)
        if match is None:
            return self.document.error(path, error.message, hint=error.hint)
        begin, _ = self._block(path)
        return self._error(path, begin and begin + int(match["line"]), match["message"], error.hint)

    def _error(self, path: FieldPath, line: int, message: str, hint: str) -> AgentFileError:
        location = self.document.location(path)
        return replace(location, line=line or location.line).error(message, hint=hint)

    def _block(self, path: FieldPath) -> tuple[int, list[str]]:
        """The line of the file where the block at `path` begins, and the lines after it; 0 if it is no block."""
        begin = self.document.lines.get(path, 0)
        with suppress(OSError):  # it was there a moment ago; only a line in a message is lost
            lines = self.document.path.read_text(encoding="utf-8-sig").splitlines()
            if 0 < begin <= len(lines) and _BLOCK_TEXT.search(lines[begin - 1]):
                return begin, lines[begin:]
        return 0, []
