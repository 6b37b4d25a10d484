"""The entries of `apis` as tools, with the place of everything that is wrong with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from taoloop.config.checks import LIST, MAPPING, expect_type
from taoloop.config.document import ConfigDocument
from taoloop.errors import AgentFileError, ConfigError
from taoloop.serve.gateway.config.host_overrides import HostOverrides
from taoloop.serve.gateway.config.section import ConfigReport, ConfigSection
from taoloop.serve.gateway.higress.openapi_source import DEFAULT_TIMEOUT_MS, api_source, server_url
from taoloop.tools.json_schema import compile_schema
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.document.operation_reader import METHODS
from taoloop.tools.openapi.http.operation_call import OperationCaller
from taoloop.tools.tool import Tool
from taoloop.tools.yaml12 import FieldPath

LONG = ("apiProvider", "api")
PROVIDER = ("serviceName", "servicePort", "domain", "maxExecutionTime", "apiKey")
SHORT = ("url", "apiKey", "maxExecutionTime", "tools")
TOOL = ("toolName", "description", "method", "path", "parameter", "paramName")
KEY = ("in", "name", "value")

_WHERE = re.compile(r"apis\[\d+\](?P<rest>[\w.\[\]]*): ?(?:line (?P<line>\d+): )?(?P<message>.*)", re.DOTALL)
_PART = re.compile(r"\.(\w+)|\[(\d+)\]")
_BLOCK_TEXT = re.compile(r":\s*[|>][0-9+-]*\s*(?:#.*)?$")
_NAMES = "a model takes names of 1 to 64 ASCII letters, digits, _ and -"
_USUAL = {"http": 80, "https": 443}


def is_short_entry(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of `apis` is written in the short form."""
    return "apiProvider" not in entry and ("tools" in entry or "url" in entry)


class ApiReader:
    """Reads `apis` of one document."""

    def __init__(self, document: ConfigDocument, notes: ConfigReport, services: HostOverrides) -> None:
        self.document, self._notes, self._services = document, notes, services
        self._names: dict[str, str] = {}

    def tools(self) -> tuple[Tool, ...]:
        """The tools of all entries, in the order of the file.

        Raises:
            AgentFileError: an entry cannot be used; names the file, the line and the field.
        """
        given = self.document.data.get("apis")
        if given is None or given == []:
            raise self.document.error(("apis",), "it is missing, or empty: an agent needs tools.")
        expect_type(self.document, ("apis",), given, LIST)
        return tuple(tool for number, entry in enumerate(given) for tool in self._entry(number, entry))

    def _entry(self, number: int, given: Any) -> tuple[Tool, ...]:
        place: FieldPath = ("apis", number)
        expect_type(self.document, place, given, MAPPING)
        block = ConfigSection(self.document, place, self._notes, given)
        described = (*place, "tools" if is_short_entry(given) else "api")
        entry = self._short(block) if is_short_entry(given) else self._long(block)
        try:
            source = api_source(entry, where=f"apis[{number}]")
            self._require_apart(described, json.loads(source.document))
            source = self._at_its_place(place, entry, source)
            loaded = openapi_tools(source)
        except AgentFileError:
            raise
        except ConfigError as error:
            raise self._placed(place, error) from error
        for problem in loaded.problems:
            where = f"{problem.place}: " if problem.place else ""
            self._notes.warn(described, f"{where}{problem.message} {problem.hint}".rstrip())
        if not loaded.tools:
            why = str(loaded.problems[0].message) if loaded.problems else ""
            raise self.document.error(described, "it gives no tool.", hint=why)
        for tool in loaded.tools:
            self._take(tool.name, described)
            given = tool.handler.operation.operation_id if isinstance(tool.handler, OperationCaller) else ""
            if given and given != tool.name:
                self._notes.warn(described, f"{given!r} is called {tool.name} here: {_NAMES}.")
        return loaded.tools

    def _long(self, block: ConfigSection) -> dict[str, Any]:
        """The entry with an OpenAPI text, its fields checked."""
        block.warn_unknown(LONG)
        provider = block.inner("apiProvider")
        provider.warn_unknown(PROVIDER)
        checked = {
            "serviceName": provider.text("serviceName"),
            "servicePort": provider.integer("servicePort", None, most=65535),
            "domain": provider.host("domain"),
            "maxExecutionTime": provider.integer("maxExecutionTime", DEFAULT_TIMEOUT_MS),
            "apiKey": _key(provider),
        }
        text = block.data.get("api")
        if not isinstance(text, str) or not text.strip():
            found = "it is missing, or empty." if not text else "a text is expected: `api: |` and the OpenAPI document."
            raise block.error("api", found)
        return {"apiProvider": checked, "api": text}

    def _short(self, block: ConfigSection) -> dict[str, Any]:
        """The entry with its tools written out, its fields checked."""
        block.warn_unknown(SHORT)
        tools = block.data.get("tools")
        if tools is None or tools == []:
            raise block.missing("tools")
        expect_type(self.document, (*block.place, "tools"), tools, LIST)
        for number, tool in enumerate(tools):
            place = (*block.place, "tools", number)
            expect_type(self.document, place, tool, MAPPING)
            one = ConfigSection(self.document, place, self._notes, tool)
            one.warn_unknown((*TOOL, *(str(key) for key in tool if str(key).startswith("x-"))))
            for name in ("toolName", "path"):
                one.text(name, is_prose=True)
            for name in ("description", "method"):
                one.text(name, "", is_prose=True)
            if not isinstance(tool.get("parameter") or {}, str | dict):
                raise one.error("parameter", "a JSON Schema is expected: a mapping, or a text in JSON.")
            _warn_of_schema(one)
        return {
            "url": block.text("url"),
            "apiKey": _key(block),
            "maxExecutionTime": block.integer("maxExecutionTime", DEFAULT_TIMEOUT_MS),
            "tools": tools,
        }

    def _at_its_place(self, place: FieldPath, entry: Mapping[str, Any], source: OpenapiSource) -> OpenapiSource:
        """The source where its calls go: at the service's own address if the operator gave one."""
        parts = urlsplit(source.base_url)
        provider = entry.get("apiProvider", {})
        named = [*(str(provider[name]) for name in ("serviceName", "domain") if name in provider), parts.hostname or ""]
        if base := self._services.base_of(*named):
            headers = {**source.headers, **self._services.host_header(source.base_url, *named)}
            return replace(source, base_url=base + parts.path, headers=headers)
        if source.auth and parts.scheme == "http":
            self._notes.warn((*place, *(("apiProvider",) if provider else ()), "apiKey"), _in_clear(source.base_url))
        if provider:
            address = server_url(json.loads(source.document), self.document.name_of(place))
            self._warn_of_address(place, int(provider["servicePort"]), address, source.base_url)
        return source

    def _warn_of_address(self, place: FieldPath, port: int, address: str, base: str) -> None:
        parts = urlsplit(address)
        if not parts.scheme and not address.startswith("/"):
            told = f"servers[0].url is {address[:80]!r}, which names no scheme, so it is a path: calls go to {base}."
            self._notes.warn((*place, "api"), told)
        usual = _USUAL.get(parts.scheme)
        if usual is not None and parts.port is None and port != usual and port in _USUAL.values():
            told = f"port {port} does not belong to {parts.scheme}, which {address} asks for; {usual} is used."
            self._notes.warn((*place, "apiProvider", "servicePort"), told)

    def _require_apart(self, described: FieldPath, api: Mapping[str, Any]) -> None:
        """Refuse an operation id that stands in the text a second time: one of the two would be lost."""
        seen: set[str] = set()
        for name in _operation_ids(api):
            if name in seen:
                line = self._line_of(described, f"operationId: {name}", 2)
                raise self._error(described, line, f"two operations are called {name!r}.", "Give each its own name.")
            seen.add(name)

    def _take(self, name: str, described: FieldPath) -> None:
        where = self.document.name_of(described)
        if name in self._names:
            message = f"a tool is called {name!r}, and so is one of {self._names[name]}."
            raise self.document.error(described, message, hint="Give each operation its own operationId.")
        self._names[name] = where

    def _placed(self, place: FieldPath, error: ConfigError) -> AgentFileError:
        """An error that begins with where it is, at that place; a line of the text becomes one of the file."""
        found = _WHERE.fullmatch(error.message)
        if found is None:
            return self.document.error(place, error.message, hint=error.hint)
        inner = tuple(int(number) if number else name for name, number in _PART.findall(found["rest"]))
        where: FieldPath = (*place, *inner)
        line = self._inside(where, int(found["line"])) if found["line"] else 0
        return self._error(where, line, found["message"], error.hint)

    def _error(self, place: FieldPath, line: int, message: str, hint: str) -> AgentFileError:
        told = self.document.error(place, message, hint=hint)
        if not line:
            return told
        return AgentFileError(
            f"{told.field}: {message}", path=str(self.document.path), line=line, field=told.field, hint=hint
        )

    def _inside(self, place: FieldPath, line: int) -> int:
        """The line of the file for one of the text at `place`; 0 where the text does not stand there as a block."""
        begin = self.document.lines.get(place, 0)
        lines = self._lines()
        return begin + line if 0 < begin <= len(lines) and _BLOCK_TEXT.search(lines[begin - 1]) else 0

    def _line_of(self, place: FieldPath, text: str, nth: int) -> int:
        """The line of the file on which `text` stands for the `nth` time in the block at `place`, 0 if not found."""
        begin = self.document.lines.get(place, 0)
        found = [n for n, line in enumerate(self._lines(), 1) if n > begin and line.strip(" -'\"").endswith(text)]
        return found[nth - 1] if len(found) >= nth and self._inside(place, 1) else 0

    def _lines(self) -> list[str]:
        try:
            return self.document.path.read_text(encoding="utf-8-sig").splitlines()
        except OSError:  # it was there a moment ago; only a line in a message is lost
            return []


def _key(block: ConfigSection) -> dict[str, str]:
    key = block.inner("apiKey", needed=False)
    key.warn_unknown(KEY)
    place = key.text("in", "none")
    if place not in ("query", "header", "none"):
        raise key.error("in", f"one of query, header, none is expected, not {place!r}.")
    name, value = key.text("name", ""), key.secret("value", "")
    if value and place != "none" and not name:
        key.warn("name", "it is missing, so no key is sent.")
    if value and place == "none":
        key.warn("in", "it is none, so no key is sent.")
    return {"in": place, "name": name, "value": value}


def _warn_of_schema(tool: ConfigSection) -> None:
    """Say what is wrong with the schema of a tool; what cannot be read at all is an error elsewhere."""
    given = tool.data.get("parameter")
    with suppress(ValueError):
        schema = json.loads(given) if isinstance(given, str) else given
        try:
            if isinstance(schema, dict):
                compile_schema(schema, "The schema")
        except ConfigError as error:
            tool.warn("parameter", f"{error.message} Anything is taken there.")


def _in_clear(address: str) -> str:
    return f"the key is sent to {urlsplit(address).hostname} without encryption."


def _operation_ids(api: Mapping[str, Any]) -> Iterator[str]:
    paths = api.get("paths")
    for item in paths.values() if isinstance(paths, Mapping) else ():
        for method, operation in item.items() if isinstance(item, Mapping) else ():
            if str(method).lower() in METHODS and isinstance(operation, Mapping) and operation.get("operationId"):
                yield str(operation["operationId"])
