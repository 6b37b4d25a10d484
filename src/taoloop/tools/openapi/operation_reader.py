"""Reading the operations of a document: each is parsed, named and selected by the settings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from taoloop.errors import ToolSourceError
from taoloop.tools.openapi import swagger2
from taoloop.tools.openapi.arguments import body_kind, read_body, read_parameters
from taoloop.tools.openapi.credentials import secret_syntax, variable_name
from taoloop.tools.openapi.document import (
    CORRECT,
    OpenapiDocument,
    ProblemLog,
    UnusablePartError,
    as_list,
    as_mapping,
    as_text,
    as_texts,
    shorten,
)
from taoloop.tools.openapi.names import is_header_name, tool_name
from taoloop.tools.openapi.operation import Body, DocumentedResponse, Operation, ParameterLocation, Scheme, SchemeKind
from taoloop.tools.openapi.references import MergedNode, References, ResolvedNode
from taoloop.tools.openapi.schemas import Components
from taoloop.tools.openapi.settings import OpenapiSource, SeenNames, is_http_url, is_selected, matches, unused_settings

_VARIABLE = re.compile(r"\{([^{}]*)\}")

Security = tuple[Mapping[str, tuple[str, ...]], ...]


def _server_address(server: Mapping[str, Any], document_url: str, source: OpenapiSource) -> str:
    """The base URL of a server. A relative one is resolved against `document_url`; empty: it is not from a URL.

    Raises:
        UnusablePartError: it has none.
    """
    address = _fill_variables(server, source)
    try:
        url = urljoin(document_url, address or "/")
    except ValueError:  # unclosed brackets
        url = ""
    url = f"https:{url}" if url.startswith("//") else url
    if not is_http_url(url):
        problem = f"The server {address[:80] or '/'!r} is not an http(s) URL with a host."
        if address.startswith("/") and address.strip("/"):
            hint = f"Set `base_url` to the host (`https://api.example.com`): {address[:80]!r} is added."
            raise UnusablePartError(problem, hint)
        raise UnusablePartError(problem, "Set `base_url`.")
    return url


def _completed_base_url(servers: Sequence[Any], source: OpenapiSource) -> str:
    """The operator's `base_url`; if that is only a host, with the path of a server that is only a path."""
    base = source.base_url
    parts = urlsplit(base)
    if parts.path or parts.query or parts.fragment:
        return base
    for server in servers:
        with suppress(UnusablePartError, ValueError):
            address = _fill_variables(as_mapping(server), source)
            if address and not urlsplit(address).scheme and not urlsplit(address).netloc:
                return urljoin(f"{base}/", address)
    return base


def _listed_servers(node: Mapping[str, Any]) -> Sequence[Any]:
    """The servers of a document, a path or an operation; empty if it has none of its own."""
    return [server for server in as_list(node.get("servers")) if isinstance(as_mapping(server).get("url"), str)]


def _fill_variables(server: Mapping[str, Any], source: OpenapiSource) -> str:
    """The URL with its variables filled in.

    Raises:
        UnusablePartError: one has no value, or one that the document does not allow.
    """
    address = as_text(server.get("url")).strip()
    variables = as_mapping(server.get("variables"))
    for name in dict.fromkeys(_VARIABLE.findall(address)):
        variable = as_mapping(variables.get(name))
        value = source.server_variables.get(name, variable.get("default"))
        allowed_values = [str(value) for value in as_list(variable.get("enum"))]
        if value is None:
            raise UnusablePartError(f"The server's variable {name!r} has no value.", "Set it in `server_variables`.")
        if allowed_values and str(value) not in allowed_values:
            hint = f"Allowed: {', '.join(allowed_values[:10])}."
            raise UnusablePartError(f"The server's variable {name!r} cannot be {value!r}.", hint)
        address = address.replace(f"{{{name}}}", str(value))
    return address


def _read_security(node: Mapping[str, Any], root: Mapping[str, Any]) -> Security:
    """The security alternatives of an operation; those of the document if it has none of its own."""
    alternatives = node.get("security", root.get("security"))
    return tuple(
        {str(name): as_texts(scopes) for name, scopes in alternative.items()}
        for alternative in as_list(alternatives)
        if isinstance(alternative, Mapping)
    )


def _read_scheme(name: str, node: Mapping[str, Any]) -> Scheme:
    kind = as_text(node.get("type")).lower()
    unsupported = partial(Scheme, name=name, kind="unsupported")
    if kind == "apikey" and (key := as_text(node.get("name"))):
        location = as_text(node.get("in")).lower()
        if location == "header" and not is_header_name(key):
            return unsupported(description=f"an API key in a header {key[:40]!r}")
        if location in ("header", "query", "cookie"):
            return Scheme(name=name, kind="api_key", location=cast("ParameterLocation", location), key=key)
        return unsupported(description=f"an API key in {location[:40] or 'no location'!r}")
    if kind == "http":
        scheme = as_text(node.get("scheme"))
        if scheme.lower() in ("basic", "bearer"):
            return Scheme(name=name, kind=cast("SchemeKind", scheme.lower()), prefix=scheme.capitalize())
        return unsupported(description=f"HTTP {scheme[:40] or 'authentication'}")
    if kind == "oauth2":
        return _read_oauth2_scheme(name, as_mapping(node.get("flows")))
    if kind == "openidconnect":
        return Scheme(name=name, kind="bearer", prefix="Bearer", description="OpenID Connect")
    return unsupported(description=as_text(node.get("type"))[:60] or "a scheme without a type")


def _read_oauth2_scheme(name: str, flows: Mapping[str, Any]) -> Scheme:
    """Tokens for client credentials are requested, and those of people if the settings say so (`user_login.py`).

    The token of any other flow must be configured.
    """
    code_flow, flow = as_mapping(flows.get("authorizationCode")), as_mapping(flows.get("clientCredentials"))
    address = as_text(flow.get("tokenUrl"))
    urls: dict[str, Any] = {
        "authorization_url": as_text(code_flow.get("authorizationUrl")),
        "user_token_url": as_text(code_flow.get("tokenUrl")),
    }
    if address:
        scopes = tuple(str(scope) for scope in as_mapping(flow.get("scopes")))
        return Scheme(name=name, kind="oauth2_client", prefix="Bearer", token_url=address, scopes=scopes, **urls)
    description = f"OAuth2 ({', '.join(str(flow_name) for flow_name in list(flows)[:4])})" if flows else "OAuth2"
    return Scheme(name=name, kind="bearer", prefix="Bearer", description=description, **urls)


METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
IDEMPOTENCY_HEADER = "idempotency-key"
IDEMPOTENCY_EXTENSION = "x-idempotency"
"""The extension of an operation that accepts the header `Idempotency-Key`."""

MAX_OPERATIONS = 20_000
_NOT_A_MAPPING = "It is not a mapping."
_FRAGMENT = re.compile(r"#(?![^{}]*\}).*", re.DOTALL)
"""The suffix of a path by which some documents distinguish operations; it is never sent."""


class OperationReader:
    """Reads the operations of one document for one source."""

    def __init__(self, document: OpenapiDocument, source: OpenapiSource) -> None:
        self.document, self.source, self.root = document, source, document.root
        self.problem_log = ProblemLog(document.origin.label)
        self.references = References(document, source)
        self.is_swagger2 = document.version == "2.0"
        report, siblings = self.problem_log.report, document.version in ("3.1", "3.2")
        self.components = Components(self.references, report, siblings_count=siblings)
        self.response_components = Components(self.references, report, siblings_count=siblings, request=False)
        self.schemes = self._read_schemes()
        self.servers = self._read_servers(_listed_servers(self.root), "servers")
        self._seen = SeenNames()
        self._names: set[str] = set()
        self._ids: set[str] = set()
        self._undefined_schemes: set[str] = set()

    def operations(self) -> Iterator[Operation]:
        """The selected operations, in the order of the document.

        Raises:
            ToolSourceError: its paths are not a mapping.
        """
        paths = self.root.get("paths")
        if paths is not None and not isinstance(paths, Mapping):
            raise ToolSourceError("Its paths are not a mapping.", source=self.document.origin.label, place="paths")
        count = 0
        for count, (document_path, method, path, item, node) in enumerate(self._list_operations(as_mapping(paths)), 1):
            if count > MAX_OPERATIONS:
                problem = f"It has more than {MAX_OPERATIONS:,} operations; the rest is omitted."
                self.problem_log.add("paths", problem, "Split the document.")
                return
            self.problem_log.path = document_path
            operation = self._read_operation(method, path, item, node)
            if operation is not None and is_selected(operation, self.source):
                yield operation
        for setting, problem, hint in unused_settings(
            self.source, self._seen, [*self.schemes, *self._undefined_schemes]
        ):
            self.problem_log.add(setting, problem, hint)
        if not count:
            webhooks = " It only describes webhooks, which are not called." if self.root.get("webhooks") else ""
            hint = "Give the document that contains the paths."
            self.problem_log.add("paths", f"It describes no operation.{webhooks}", hint)

    def _list_operations(self, paths: Mapping[str, Any]) -> Iterator[tuple[str, str, str, MergedNode, MergedNode]]:
        """Every operation with its document path, method, path and path item."""
        for path, item in paths.items():
            if path.startswith("x-"):
                continue
            document_path = f"paths.{path}"
            path_item = self._merge(item, self.document.origin.uri, document_path)
            if path_item is None:
                continue
            if not path.startswith("/"):
                self.problem_log.add(document_path, "A path must begin with '/'; it is read as if it did.", CORRECT)
            keys = path_item.value
            additional = path_item.part("additionalOperations")
            nodes = [(method, path_item.part(method)) for method in keys if method.lower() in METHODS]
            nodes += [
                (method, ResolvedNode(node, additional.uri, ""))
                for method, node in as_mapping(additional.value).items()
            ]
            for method, node in nodes:
                operation_path = f"{document_path}.{method}"
                if (operation := self._merge(node.value, node.uri, operation_path, empty=False)) is not None:
                    full_path = path if path.startswith("/") else f"/{path}"
                    yield operation_path, method.lower(), full_path, path_item, operation

    def _merge(self, node: Any, uri: str, document_path: str, *, empty: bool = True) -> MergedNode | None:
        """A mapping with the targets of its references; None if it is none, which is reported. `empty`: not if null."""
        try:
            merged = self.references.merge(node, uri)
        except UnusablePartError as error:
            self.problem_log.add(document_path, str(error), error.hint)
            return None
        if merged is None and not (empty and node is None):
            self.problem_log.add(document_path, _NOT_A_MAPPING, CORRECT)
        return merged

    def _read_operation(self, method: str, path: str, path_item: MergedNode, merged: MergedNode) -> Operation | None:
        node = merged.value
        name, operation_id = self._name_operation(method, path, node)
        self._seen.operations.append((name, operation_id))
        self._seen.tags |= dict.fromkeys(as_texts(node.get("tags")))
        self._seen.methods.add(method.upper())
        parameter_nodes = self._resolve_parameters(path_item, merged)
        path = _FRAGMENT.sub("", path)
        parameters = read_parameters(parameter_nodes, path, self.components, self.problem_log)
        extensions = {key: value for key, value in node.items() if key.startswith("x-")}
        if any((item.location, item.name.lower()) == ("header", IDEMPOTENCY_HEADER) for item in parameters):
            extensions[IDEMPOTENCY_EXTENSION] = True
            parameters = tuple(item for item in parameters if item.name.lower() != IDEMPOTENCY_HEADER)
        try:
            body = self._read_body(parameter_nodes, {parameter.arg for parameter in parameters}, merged)
        except UnusablePartError as error:
            self.problem_log.report(f"It is omitted. {error}", error.hint)
            return None
        self._seen.values |= {parameter.name for parameter in parameters} | set(body.args.values() if body else ())
        security = _read_security(node, self.root)
        owner = path_item.value
        return Operation(
            name=name,
            operation_id=operation_id,
            method=method.upper(),
            path=path,
            document_path=self.problem_log.path,
            servers=self._servers_of(owner, node),
            summary=shorten(node.get("summary") or owner.get("summary"), 300),
            description=shorten(node.get("description") or owner.get("description"), 2_000),
            tags=as_texts(node.get("tags")),
            deprecated=node.get("deprecated") is True,
            parameters=parameters,
            body=body,
            responses=self._read_responses(merged),
            security=security,
            schemes=self._required_schemes(security),
            extensions=extensions,
        )

    def _name_operation(self, method: str, path: str, node: Mapping[str, Any]) -> tuple[str, str]:
        value = node.get("operationId")
        operation_id = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
        if operation_id and operation_id in self._ids:
            problem = f"Another operation already has the id {operation_id[:80]!r}; this one gets another name."
            self.problem_log.report(problem, "Give each operation an id of its own.")
        self._ids.add(operation_id)
        name = tool_name(operation_id, method, path, prefix=self.source.name, used=self._names)
        self._names.add(name)
        return name, operation_id

    def _resolve_parameters(self, path_item: MergedNode, operation: MergedNode) -> list[ResolvedNode]:
        """The parameters of the path, then those of the operation, with references resolved."""
        parameters: list[ResolvedNode] = []
        for nodes in (*path_item.parts("parameters"), *operation.parts("parameters")):
            if nodes.value is not None and not isinstance(nodes.value, list):
                self.problem_log.report("Its parameters are not a list; they are omitted.")
            for index, item in enumerate(as_list(nodes.value)):
                item_path = f"{self.problem_log.path}.parameters[{index}]"
                parameter = self._follow(item, nodes.uri, item_path)
                if parameter is not None and isinstance(parameter.value, Mapping):
                    parameters.append(parameter)
                elif parameter is not None:
                    self.problem_log.add(item_path, _NOT_A_MAPPING, CORRECT)
        return parameters

    def _read_body(
        self, parameter_nodes: list[ResolvedNode], args: Collection[str], operation: MergedNode
    ) -> Body | None:
        if self.is_swagger2:
            consumes = swagger2.media_types(operation.value, self.root, "consumes")
            body = swagger2.convert_request_body(parameter_nodes, consumes)
        else:
            node = operation.part("requestBody")
            body = self.references.follow(node.value, node.uri) if isinstance(node.value, Mapping) else None
        if body is None or not isinstance(body.value, Mapping):
            return None
        return read_body(body, args, self.components, self.problem_log)

    def _read_responses(self, operation: MergedNode) -> tuple[DocumentedResponse, ...]:
        responses: list[DocumentedResponse] = []
        nodes = operation.part("responses")
        for status, response in as_mapping(nodes.value).items():
            if status.startswith("x-"):
                continue
            resolved = self._follow(response, nodes.uri, f"{self.problem_log.path}.responses.{status}")
            if resolved is None or not isinstance(resolved.value, Mapping):
                continue
            value: Mapping[str, Any] = resolved.value
            if self.is_swagger2:
                value = swagger2.convert_response(value, swagger2.media_types(operation.value, self.root, "produces"))
            content = [(body_kind(name), as_mapping(media)) for name, media in as_mapping(value.get("content")).items()]
            json_media = next((media for kind, media in content if kind == "json" and "schema" in media), None)
            schema = None
            if json_media and status[:1] == "2":
                schema = self.response_components.read_lazily(json_media["schema"], resolved.uri)
            description = shorten(value.get("description"), 300)
            responses.append(DocumentedResponse(status=status, description=description, schema=schema))
        return tuple(responses)

    def _required_schemes(self, security: Sequence[Mapping[str, Any]]) -> Mapping[str, Scheme]:
        schemes: dict[str, Scheme] = {}
        for name in chain.from_iterable(security):
            schemes[name] = self.schemes.get(name) or Scheme(name=name, kind="undefined", description="not defined")
            if name not in self.schemes:
                self._undefined_schemes.add(name)
                if not self.source.auth.get(name):
                    syntax = secret_syntax(schemes[name], variable_name(self.source, name))
                    problem = f"It requires the security scheme {name[:60]!r}, which is not defined."
                    hint = f"Set `auth: {{{name}: {syntax}}}` with the header (or `query`, `cookie`) of the secret."
                    self.problem_log.report(problem, hint)
        return schemes

    def _servers_of(self, path_item: Mapping[str, Any], node: Mapping[str, Any]) -> tuple[str, ...]:
        for owner in (node, path_item):
            if servers := _listed_servers(owner):
                return self._read_servers(servers, f"{self.problem_log.path}.servers")
        if self.is_swagger2 and (schemes := as_texts(node.get("schemes"))):
            return self._read_servers(swagger2.server_nodes(self.root, schemes), "host")
        return self.servers

    def _read_servers(self, servers: Sequence[Any], document_path: str) -> tuple[str, ...]:
        if self.is_swagger2 and document_path == "servers":
            servers, document_path = swagger2.server_nodes(self.root, as_texts(self.root.get("schemes"))), "host"
        if self.source.base_url:
            return (_completed_base_url(servers, self.source),)
        document_url = self.document.origin.address
        if not servers and document_url:
            servers = [{"url": "/"}]
        addresses: dict[str, None] = {}
        for index, server in enumerate(servers):
            try:
                addresses[_server_address(as_mapping(server), document_url, self.source)] = None
            except UnusablePartError as error:
                self.problem_log.add(f"{document_path}[{index}]", str(error), error.hint)
        if not addresses and not servers and document_path in ("servers", "host"):
            hint = "Set `base_url`; no call can be sent without it."
            self.problem_log.add(document_path, "It names no server.", hint)
        return tuple(addresses)

    def _read_schemes(self) -> dict[str, Scheme]:
        """The security schemes that the document defines, by name."""
        nodes = as_mapping(self.root.get("securityDefinitions"))
        nodes = nodes or as_mapping(as_mapping(self.root.get("components")).get("securitySchemes"))
        section = "securityDefinitions" if "securityDefinitions" in self.root else "components.securitySchemes"
        schemes: dict[str, Scheme] = {}
        for name, node in nodes.items():
            if definition := self._follow(node, self.document.origin.uri, f"{section}.{name}"):
                schemes[name] = _read_scheme(name, swagger2.convert_security_scheme(as_mapping(definition.value)))
        return schemes

    def _follow(self, node: Any, uri: str, document_path: str) -> ResolvedNode | None:
        try:
            return self.references.follow(node, uri)
        except UnusablePartError as error:
            self.problem_log.add(document_path, str(error), error.hint)
            return None


def accepts_idempotency_key(operation: Operation, source: OpenapiSource) -> bool:
    """Whether calls carry `Idempotency-Key`: the document or the operator declares that the API accepts it."""
    declared = operation.extensions.get(IDEMPOTENCY_EXTENSION, operation.extensions.get("x-idempotent"))
    return declared is True or matches(operation, source.idempotency)
