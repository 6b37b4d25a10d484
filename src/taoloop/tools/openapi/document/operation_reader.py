"""Reading the operations of a document: each is parsed, named and selected by the settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taoloop.errors import ToolSourceError
from taoloop.tools.openapi.document import swagger2
from taoloop.tools.openapi.document.content import SENDABLE_FORMS, UnsupportedBodyError, body_kind, read_body
from taoloop.tools.openapi.document.document import OpenapiDocument, fetch_document, parse_document
from taoloop.tools.openapi.document.operation import Body, DocumentedResponse, Operation, Parameter, Scheme
from taoloop.tools.openapi.document.parameters import read_parameters
from taoloop.tools.openapi.document.plain_data import ProblemLog, as_list, as_mapping, as_texts, shorten
from taoloop.tools.openapi.document.refs import CORRECT_REFERENCE, BrokenReferenceError, References, ResolvedNode
from taoloop.tools.openapi.document.security_schemes import read_schemes, read_security
from taoloop.tools.openapi.document.servers import listed_servers, server_addresses
from taoloop.tools.openapi.names import tool_name
from taoloop.tools.openapi.schema.components import Components
from taoloop.tools.openapi.selection import SeenNames, is_selected, matches, unused_settings
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.toolbox import LoadProblem

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
IDEMPOTENCY_HEADER = "idempotency-key"
IDEMPOTENCY_EXTENSION = "x-idempotency"
"""The extension of an operation that accepts the header `Idempotency-Key`."""

MAX_OPERATIONS = 20_000
_NOT_A_MAPPING, _CORRECT = "It is not a mapping.", "Correct this part of the document."
_FRAGMENT = re.compile(r"#(?![^{}]*\}).*", re.DOTALL)
"""The suffix of a path by which some documents distinguish operations; it is never sent."""


def read_operations(source: OpenapiSource) -> tuple[tuple[Operation, ...], tuple[LoadProblem, ...]]:
    """The selected operations of a document, in its order, and what in it could not be used.

    Raises:
        ToolSourceError: it is not an OpenAPI document, or cannot be read.
    """
    reader = OperationReader(parse_document(fetch_document(source)), source)
    operations = tuple(reader.operations())
    return operations, reader.problem_log.problems


class OperationReader:
    """Reads the operations of one document for one source."""

    def __init__(self, document: OpenapiDocument, source: OpenapiSource) -> None:
        self.document, self.source, self.root = document, source, document.root
        self.problem_log = ProblemLog(document.label)
        self.references = References(document)
        self.is_swagger2 = document.version == "2.0"
        self._document_path = ""
        siblings = document.version in ("3.1", "3.2")
        self.components = Components(self.references, self._report, siblings_count=siblings)
        self.response_components = Components(self.references, self._report, siblings_count=siblings, request=False)
        self.schemes = read_schemes(self.root, self.references, document.uri, self.problem_log)
        self.servers = self._read_servers(listed_servers(self.root), "servers")
        self._seen = SeenNames()
        self._names: set[str] = set()
        self._ids: set[str] = set()

    def operations(self) -> Iterator[Operation]:
        """The selected operations, in the order of the document.

        Raises:
            ToolSourceError: its paths are not a mapping.
        """
        paths = self.root.get("paths")
        if paths is not None and not isinstance(paths, Mapping):
            raise ToolSourceError("Its paths are not a mapping.", source=self.document.label, place="paths")
        count = 0
        for document_path, method, path, item, node in self._list_operations(as_mapping(paths)):
            count += 1
            if count > MAX_OPERATIONS:
                problem = f"It has more than {MAX_OPERATIONS:,} operations; the rest is omitted."
                self.problem_log.add("paths", problem, "Split the document.")
                return
            operation = self._read_operation(document_path, method, path, item, node)
            if operation is not None and is_selected(operation, self.source):
                yield operation
        for setting, problem, hint in unused_settings(self.source, self._seen, self.schemes):
            self.problem_log.add(setting, problem, hint)
        if not count:
            webhooks = " It only describes webhooks, which are not called." if self.root.get("webhooks") else ""
            self.problem_log.add(
                "paths", f"It describes no operation.{webhooks}", "Give the document that contains the paths."
            )

    def _list_operations(
        self, paths: Mapping[str, Any]
    ) -> Iterator[tuple[str, str, str, ResolvedNode, Mapping[str, Any]]]:
        """Every operation with its document path, method, path and path item."""
        for path, item in paths.items():
            if path.startswith("x-"):
                continue
            document_path = f"paths.{path}"
            path_item = self._follow(item, self.document.uri, document_path)
            if path_item is None or not isinstance(path_item.value, Mapping):
                if path_item is not None and path_item.value is not None:
                    self.problem_log.add(document_path, _NOT_A_MAPPING, _CORRECT)
                continue
            if not path.startswith("/"):
                self.problem_log.add(document_path, "A path must begin with '/'; it is read as if it did.", _CORRECT)
            additional = as_mapping(path_item.value.get("additionalOperations"))
            for method, node in [*path_item.value.items(), *additional.items()]:
                if method.lower() not in METHODS and method not in additional:
                    continue
                if isinstance(node, Mapping):
                    full_path = path if path.startswith("/") else f"/{path}"
                    yield f"{document_path}.{method}", method.lower(), full_path, path_item, node
                else:
                    self.problem_log.add(f"{document_path}.{method}", _NOT_A_MAPPING, _CORRECT)

    def _read_operation(
        self, document_path: str, method: str, path: str, path_item: ResolvedNode, node: Mapping[str, Any]
    ) -> Operation | None:
        self._document_path = document_path
        name, operation_id = self._name_operation(document_path, method, path, node)
        self._seen.operations.append((name, operation_id))
        self._seen.tags |= dict.fromkeys(as_texts(node.get("tags")))
        self._seen.methods.add(method.upper())
        parameter_nodes = self._resolve_parameters(path_item, node, document_path)
        path = _FRAGMENT.sub("", path)
        parameters = read_parameters(parameter_nodes, path, self.components, self.problem_log, document_path)
        extensions = {key: value for key, value in node.items() if key.startswith("x-")}
        if any(
            parameter.location == "header" and parameter.name.lower() == IDEMPOTENCY_HEADER for parameter in parameters
        ):
            extensions[IDEMPOTENCY_EXTENSION] = True
            parameters = tuple(parameter for parameter in parameters if parameter.name.lower() != IDEMPOTENCY_HEADER)
        try:
            body = self._read_body(parameter_nodes, parameters, path_item, node, document_path)
        except (UnsupportedBodyError, BrokenReferenceError) as error:
            hint = CORRECT_REFERENCE if isinstance(error, BrokenReferenceError) else SENDABLE_FORMS
            self.problem_log.add(document_path, f"It is omitted. {error}", hint)
            return None
        self._seen.values |= {parameter.name for parameter in parameters} | set(body.args.values() if body else ())
        security = read_security(node, self.root)
        return Operation(
            name=name,
            operation_id=operation_id,
            method=method.upper(),
            path=path,
            document_path=document_path,
            servers=self._servers_of(path_item.value, node, document_path),
            summary=shorten(node.get("summary") or path_item.value.get("summary"), 300),
            description=shorten(node.get("description") or path_item.value.get("description"), 2_000),
            tags=as_texts(node.get("tags")),
            deprecated=node.get("deprecated") is True,
            parameters=parameters,
            body=body,
            responses=self._read_responses(path_item, node, document_path),
            security=security,
            schemes=self._required_schemes(security, document_path),
            extensions=extensions,
        )

    def _name_operation(self, document_path: str, method: str, path: str, node: Mapping[str, Any]) -> tuple[str, str]:
        value = node.get("operationId")
        operation_id = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
        if operation_id and operation_id in self._ids:
            problem = f"Another operation already has the id {operation_id[:80]!r}; this one gets another name."
            self.problem_log.add(document_path, problem, "Give each operation an id of its own.")
        self._ids.add(operation_id)
        name = tool_name(operation_id, method, path, prefix=self.source.name, used=self._names)
        self._names.add(name)
        return name, operation_id

    def _resolve_parameters(
        self, path_item: ResolvedNode, node: Mapping[str, Any], document_path: str
    ) -> list[ResolvedNode]:
        """The parameters of the path, then those of the operation, with references resolved."""
        parameters: list[ResolvedNode] = []
        for owner in (path_item.value, node):
            nodes = owner.get("parameters")
            if nodes is not None and not isinstance(nodes, list):
                self.problem_log.add(document_path, "Its parameters are not a list; they are omitted.", _CORRECT)
            for index, item in enumerate(as_list(nodes)):
                parameter = self._follow(item, path_item.uri, f"{document_path}.parameters[{index}]")
                if parameter is not None and isinstance(parameter.value, Mapping):
                    parameters.append(parameter)
                elif parameter is not None:
                    self.problem_log.add(f"{document_path}.parameters[{index}]", _NOT_A_MAPPING, _CORRECT)
        return parameters

    def _read_body(
        self,
        parameter_nodes: list[ResolvedNode],
        parameters: Sequence[Parameter],
        path_item: ResolvedNode,
        node: Mapping[str, Any],
        document_path: str,
    ) -> Body | None:
        if self.is_swagger2:
            body = swagger2.convert_request_body(parameter_nodes, swagger2.media_types(node, self.root, "consumes"))
        else:
            body_node = node.get("requestBody")
            body = self.references.follow(body_node, path_item.uri) if isinstance(body_node, Mapping) else None
        if body is None or not isinstance(body.value, Mapping):
            return None
        return read_body(
            body, {parameter.arg: None for parameter in parameters}, self.components, self.problem_log, document_path
        )

    def _read_responses(
        self, path_item: ResolvedNode, node: Mapping[str, Any], document_path: str
    ) -> tuple[DocumentedResponse, ...]:
        responses: list[DocumentedResponse] = []
        for status, response in as_mapping(node.get("responses")).items():
            if status.startswith("x-"):
                continue
            resolved = self._follow(response, path_item.uri, f"{document_path}.responses.{status}")
            if resolved is None or not isinstance(resolved.value, Mapping):
                continue
            value: Mapping[str, Any] = resolved.value
            if self.is_swagger2:
                value = swagger2.convert_response(value, swagger2.media_types(node, self.root, "produces"))
            responses.append(self._read_response(status, value, resolved.uri))
        return tuple(responses)

    def _read_response(self, status: str, value: Mapping[str, Any], uri: str) -> DocumentedResponse:
        description = shorten(value.get("description"), 300)
        for media_type, media in as_mapping(value.get("content")).items():
            if body_kind(media_type) == "json" and "schema" in as_mapping(media):
                schema = self.response_components.read(media["schema"], uri) if status[:1] == "2" else None
                return DocumentedResponse(status=status, description=description, media_type=media_type, schema=schema)
        media_type = next(iter(as_mapping(value.get("content"))), "")
        return DocumentedResponse(status=status, description=description, media_type=media_type)

    def _required_schemes(self, security: Sequence[Mapping[str, Any]], document_path: str) -> Mapping[str, Scheme]:
        names = dict.fromkeys(name for alternative in security for name in alternative)
        for name in names:
            if name not in self.schemes:
                problem = f"It requires the security scheme {name[:60]!r}, which is not defined."
                self.problem_log.add(
                    document_path, problem, "Define it in the document, or set its header in `headers`."
                )
        unknown = {name: Scheme(name=name, kind="unsupported", description="not defined") for name in names}
        return {name: self.schemes.get(name, unknown[name]) for name in names}

    def _servers_of(self, path_item: Mapping[str, Any], node: Mapping[str, Any], document_path: str) -> tuple[str, ...]:
        for owner in (node, path_item):
            if servers := listed_servers(owner):
                return self._read_servers(servers, f"{document_path}.servers")
        if self.is_swagger2 and (schemes := as_texts(node.get("schemes"))):
            return self._read_servers(swagger2.server_nodes(self.root, schemes), "host")
        return self.servers

    def _read_servers(self, servers: Sequence[Any], document_path: str) -> tuple[str, ...]:
        if self.is_swagger2 and document_path == "servers":
            servers, document_path = swagger2.server_nodes(self.root, as_texts(self.root.get("schemes"))), "host"
        if not servers and self.document.address:
            servers = [{"url": "/"}]
        addresses = server_addresses(servers, self.document, self.source, self.problem_log, document_path)
        if not addresses and not servers and document_path in ("servers", "host"):
            self.problem_log.add(
                document_path, "It names no server.", "Set `base_url`; no call can be sent without it."
            )
        return addresses

    def _follow(self, node: Any, uri: str, document_path: str) -> ResolvedNode | None:
        try:
            return self.references.follow(node, uri)
        except BrokenReferenceError as error:
            self.problem_log.add(document_path, str(error), CORRECT_REFERENCE)
            return None

    def _report(self, message: str) -> None:
        self.problem_log.add(self._document_path, message, _CORRECT)


def accepts_idempotency_key(operation: Operation, source: OpenapiSource) -> bool:
    """Whether calls carry `Idempotency-Key`: the document or the operator declares that the API accepts it."""
    declared = operation.extensions.get(IDEMPOTENCY_EXTENSION, operation.extensions.get("x-idempotent"))
    return declared is True or matches(operation, source.idempotency)
