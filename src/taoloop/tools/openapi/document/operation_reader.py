"""The operations of a document: read, named and chosen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taoloop.errors import ToolSourceError
from taoloop.tools.load_result import LoadProblem
from taoloop.tools.openapi.document import swagger2
from taoloop.tools.openapi.document.content import WRITTEN, NotSendableError, body_kind, body_of
from taoloop.tools.openapi.document.document import Document, document_of, fetch_document
from taoloop.tools.openapi.document.operation import Body, Operation, Parameter, Reply, Scheme
from taoloop.tools.openapi.document.parameters import parameters_of
from taoloop.tools.openapi.document.plain_data import Notes, brief, mapping, sequence, texts
from taoloop.tools.openapi.document.refs import CORRECT, BrokenReferenceError, Found, References
from taoloop.tools.openapi.document.security_schemes import schemes_of, security_of
from taoloop.tools.openapi.document.servers import listed_servers, server_addresses
from taoloop.tools.openapi.names import tool_name
from taoloop.tools.openapi.schema.components import Components
from taoloop.tools.openapi.selection import SeenNames, is_selected, matches, unused_settings
from taoloop.tools.openapi.settings import OpenapiSource

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
KEY_HEADER = "idempotency-key"
TAKES_KEY = "x-idempotency"
"""The extension of an operation that takes the header `Idempotency-Key`."""

MOST_OPERATIONS = 20_000
_NO_MAPPING, _CORRECT = "What stands there is no mapping.", "Correct the document there."
_FRAGMENT = re.compile(r"#(?![^{}]*\}).*", re.DOTALL)
"""What some documents write behind a path only to tell operations apart; it is never sent."""


def read_operations(source: OpenapiSource) -> tuple[tuple[Operation, ...], tuple[LoadProblem, ...]]:
    """The chosen operations of a document, in its order, and what in it could not be used.

    Raises:
        ToolSourceError: it is no OpenAPI document, or cannot be read.
    """
    reading = OperationReader(document_of(fetch_document(source)), source)
    operations = tuple(reading.operations())
    return operations, reading.notes.problems


class OperationReader:
    """One reading of one document."""

    def __init__(self, document: Document, source: OpenapiSource) -> None:
        self.document, self.source, self.root = document, source, document.root
        self.notes = Notes(document.said)
        self.references = References(document)
        self.is_2 = document.version == "2.0"
        self._place = ""
        siblings = document.version in ("3.1", "3.2")
        self.components = Components(self.references, self._tell, siblings_count=siblings)
        self.replies = Components(self.references, self._tell, siblings_count=siblings, request=False)
        self.schemes = schemes_of(self.root, self.references, document.uri, self.notes)
        self.servers = self._servers(listed_servers(self.root), "servers")
        self._named_there = SeenNames()
        self._names: set[str] = set()
        self._ids: set[str] = set()

    def operations(self) -> Iterator[Operation]:
        """The chosen operations, in the order of the document.

        Raises:
            ToolSourceError: its paths are no mapping.
        """
        paths = self.root.get("paths")
        if paths is not None and not isinstance(paths, Mapping):
            raise ToolSourceError(
                "It has no paths: what stands there is no mapping.", source=self.document.said, place="paths"
            )
        count = 0
        for place, method, path, item, node in self._listed(mapping(paths)):
            count += 1
            if count > MOST_OPERATIONS:
                told = f"It has more than {MOST_OPERATIONS:,} operations; the others are left out."
                self.notes.add("paths", told, "Split the document.")
                return
            operation = self._operation(place, method, path, item, node)
            if operation is not None and is_selected(operation, self.source):
                yield operation
        for setting, told, hint in unused_settings(self.source, self._named_there, self.schemes):
            self.notes.add(setting, told, hint)
        if not count:
            hooks = " It describes webhooks only, which are not called." if self.root.get("webhooks") else ""
            self.notes.add("paths", f"It describes no operation.{hooks}", "Give the document that has the paths.")

    def _listed(self, paths: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Found, Mapping[str, Any]]]:
        """Every operation with its place, method, path and the item that it stands in."""
        for path, told in paths.items():
            if path.startswith("x-"):
                continue
            place = f"paths.{path}"
            item = self._followed(told, self.document.uri, place)
            if item is None or not isinstance(item.value, Mapping):
                if item is not None and item.value is not None:
                    self.notes.add(place, _NO_MAPPING, _CORRECT)
                continue
            if not path.startswith("/"):
                self.notes.add(place, "A path begins with '/'; it is read as if it did.", _CORRECT)
            more = mapping(item.value.get("additionalOperations"))
            for method, node in [*item.value.items(), *more.items()]:
                if method.lower() not in METHODS and method not in more:
                    continue
                if isinstance(node, Mapping):
                    full = path if path.startswith("/") else f"/{path}"
                    yield f"{place}.{method}", method.lower(), full, item, node
                else:
                    self.notes.add(f"{place}.{method}", _NO_MAPPING, _CORRECT)

    def _operation(self, place: str, method: str, path: str, item: Found, node: Mapping[str, Any]) -> Operation | None:
        self._place = place
        name, operation_id = self._named(place, method, path, node)
        self._named_there.operations.append((name, operation_id))
        self._named_there.tags |= dict.fromkeys(texts(node.get("tags")))
        self._named_there.methods.add(method.upper())
        given = self._parameters(item, node, place)
        path = _FRAGMENT.sub("", path)
        parameters = parameters_of(given, path, self.components, self.notes, place)
        extensions = {key: value for key, value in node.items() if key.startswith("x-")}
        if any(one.place == "header" and one.name.lower() == KEY_HEADER for one in parameters):
            extensions[TAKES_KEY] = True
            parameters = tuple(one for one in parameters if one.name.lower() != KEY_HEADER)
        try:
            body = self._body(given, parameters, item, node, place)
        except (NotSendableError, BrokenReferenceError) as error:
            hint = CORRECT if isinstance(error, BrokenReferenceError) else WRITTEN
            self.notes.add(place, f"It is left out. {error}", hint)
            return None
        self._named_there.values |= {one.name for one in parameters} | set(body.args.values() if body else ())
        security = security_of(node, self.root)
        return Operation(
            name=name,
            operation_id=operation_id,
            method=method.upper(),
            path=path,
            place=place,
            servers=self._servers_of(item.value, node, place),
            summary=brief(node.get("summary") or item.value.get("summary"), 300),
            description=brief(node.get("description") or item.value.get("description"), 2_000),
            tags=texts(node.get("tags")),
            deprecated=node.get("deprecated") is True,
            parameters=parameters,
            body=body,
            replies=self._replies(item, node, place),
            security=security,
            schemes=self._schemes(security, place),
            extensions=extensions,
        )

    def _named(self, place: str, method: str, path: str, node: Mapping[str, Any]) -> tuple[str, str]:
        told = node.get("operationId")
        operation_id = str(told) if isinstance(told, str | int | float) and not isinstance(told, bool) else ""
        if operation_id and operation_id in self._ids:
            told = f"Another operation has the id {operation_id[:80]!r} already; this one is told apart."
            self.notes.add(place, told, "Give each operation an id of its own.")
        self._ids.add(operation_id)
        name = tool_name(operation_id, method, path, prefix=self.source.name, taken=self._names)
        self._names.add(name)
        return name, operation_id

    def _parameters(self, item: Found, node: Mapping[str, Any], place: str) -> list[Found]:
        """Those of the path and then the operation's own, behind their references."""
        found: list[Found] = []
        for owner in (item.value, node):
            told = owner.get("parameters")
            if told is not None and not isinstance(told, list):
                self.notes.add(place, "Its parameters are no list; they are left out.", _CORRECT)
            for index, one in enumerate(sequence(told)):
                parameter = self._followed(one, item.uri, f"{place}.parameters[{index}]")
                if parameter is not None and isinstance(parameter.value, Mapping):
                    found.append(parameter)
                elif parameter is not None:
                    self.notes.add(f"{place}.parameters[{index}]", _NO_MAPPING, _CORRECT)
        return found

    def _body(
        self,
        given: list[Found],
        parameters: Sequence[Parameter],
        item: Found,
        node: Mapping[str, Any],
        place: str,
    ) -> Body | None:
        if self.is_2:
            found = swagger2.request_body(given, swagger2.media_types(node, self.root, "consumes"))
        else:
            told = node.get("requestBody")
            found = self.references.follow(told, item.uri) if isinstance(told, Mapping) else None
        if found is None or not isinstance(found.value, Mapping):
            return None
        return body_of(found, {one.arg: None for one in parameters}, self.components, self.notes, place)

    def _replies(self, item: Found, node: Mapping[str, Any], place: str) -> tuple[Reply, ...]:
        made: list[Reply] = []
        for status, told in mapping(node.get("responses")).items():
            if status.startswith("x-"):
                continue
            found = self._followed(told, item.uri, f"{place}.responses.{status}")
            if found is None or not isinstance(found.value, Mapping):
                continue
            value: Mapping[str, Any] = found.value
            if self.is_2:
                value = swagger2.response(value, swagger2.media_types(node, self.root, "produces"))
            made.append(self._reply(status, value, found.uri))
        return tuple(made)

    def _reply(self, status: str, value: Mapping[str, Any], uri: str) -> Reply:
        description = brief(value.get("description"), 300)
        for media_type, media in mapping(value.get("content")).items():
            if body_kind(media_type) == "json" and "schema" in mapping(media):
                schema = self.replies.read(media["schema"], uri) if status[:1] == "2" else None
                return Reply(status=status, description=description, media_type=media_type, schema=schema)
        media_type = next(iter(mapping(value.get("content"))), "")
        return Reply(status=status, description=description, media_type=media_type)

    def _schemes(self, security: Sequence[Mapping[str, Any]], place: str) -> Mapping[str, Scheme]:
        wanted = dict.fromkeys(name for one in security for name in one)
        for name in wanted:
            if name not in self.schemes:
                told = f"It asks for the security scheme {name[:60]!r}, which is not defined."
                self.notes.add(place, told, "Define it in the document, or give its header in `headers`.")
        unknown = {name: Scheme(name=name, kind="unsupported", said="not defined") for name in wanted}
        return {name: self.schemes.get(name, unknown[name]) for name in wanted}

    def _servers_of(self, item: Mapping[str, Any], node: Mapping[str, Any], place: str) -> tuple[str, ...]:
        for owner in (node, item):
            if told := listed_servers(owner):
                return self._servers(told, f"{place}.servers")
        if self.is_2 and (schemes := texts(node.get("schemes"))):
            return self._servers(swagger2.servers(self.root, schemes), "host")
        return self.servers

    def _servers(self, told: Sequence[Any], place: str) -> tuple[str, ...]:
        if self.is_2 and place == "servers":
            told, place = swagger2.servers(self.root, texts(self.root.get("schemes"))), "host"
        if not told and self.document.address:
            told = [{"url": "/"}]
        found = server_addresses(told, self.document, self.source, self.notes, place)
        if not found and not told and place in ("servers", "host"):
            self.notes.add(
                place, "It does not say where the API lives.", "Give `base_url`; until then no call can be sent."
            )
        return found

    def _followed(self, node: Any, uri: str, place: str) -> Found | None:
        try:
            return self.references.follow(node, uri)
        except BrokenReferenceError as error:
            self.notes.add(place, str(error), CORRECT)
            return None

    def _tell(self, message: str) -> None:
        self.notes.add(self._place, message, _CORRECT)


def takes_key(operation: Operation, source: OpenapiSource) -> bool:
    """Whether calls carry `Idempotency-Key`: the document or the operator says that the API takes it."""
    told = operation.extensions.get(TAKES_KEY, operation.extensions.get("x-idempotent"))
    return told is True or matches(operation, source.idempotency)
