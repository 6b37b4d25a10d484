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
        self.document, self._report, self._overrides = document, notes, services
        self._names: dict[str, str] = {}

    def tools(self) -> tuple[Tool, ...]:
        """The tools of all entries, in the order of the file.

        Raises:
            AgentFileError: an entry cannot be used; names the file, the line and the field.
        """
        entries = self.document.data.get("apis")
        if entries is None or entries == []:
            raise self.document.error(("apis",), "it is missing, or empty: an agent needs tools.")
        expect_type(self.document, ("apis",), entries, LIST)
        return tuple(tool for number, entry in enumerate(entries) for tool in self._entry(number, entry))

    def _entry(self, number: int, entry_data: Any) -> tuple[Tool, ...]:
        path: FieldPath = ("apis", number)
        expect_type(self.document, path, entry_data, MAPPING)
        section = ConfigSection(self.document, path, self._report, entry_data)
        described = (*path, "tools" if is_short_entry(entry_data) else "api")
        entry = self._short(section) if is_short_entry(entry_data) else self._long(section)
        try:
            source = api_source(entry, where=f"apis[{number}]")
            self._require_unique_ids(described, json.loads(source.document))
            source = self._with_address(path, entry, source)
            loaded = openapi_tools(source)
        except AgentFileError:
            raise
        except ConfigError as error:
            raise self._located_error(path, error) from error
        for problem in loaded.problems:
            where = f"{problem.place}: " if problem.place else ""
            self._report.warn(described, f"{where}{problem.message} {problem.hint}".rstrip())
        if not loaded.tools:
            why = str(loaded.problems[0].message) if loaded.problems else ""
            raise self.document.error(described, "it gives no tool.", hint=why)
        for tool in loaded.tools:
            self._claim_name(tool.name, described)
            operation_id = tool.handler.operation.operation_id if isinstance(tool.handler, OperationCaller) else ""
            if operation_id and operation_id != tool.name:
                self._report.warn(described, f"{operation_id!r} is called {tool.name} here: {_NAMES}.")
        return loaded.tools

    def _long(self, section: ConfigSection) -> dict[str, Any]:
        """The entry with an OpenAPI text, its fields checked."""
        section.warn_unknown(LONG)
        provider = section.inner("apiProvider")
        provider.warn_unknown(PROVIDER)
        checked = {
            "serviceName": provider.text("serviceName"),
            "servicePort": provider.integer("servicePort", None, most=65535),
            "domain": provider.host("domain"),
            "maxExecutionTime": provider.integer("maxExecutionTime", DEFAULT_TIMEOUT_MS),
            "apiKey": _key(provider),
        }
        text = section.data.get("api")
        if not isinstance(text, str) or not text.strip():
            message = (
                "it is missing, or empty." if not text else "a text is expected: `api: |` and the OpenAPI document."
            )
            raise section.error("api", message)
        return {"apiProvider": checked, "api": text}

    def _short(self, section: ConfigSection) -> dict[str, Any]:
        """The entry with its tools written out, its fields checked."""
        section.warn_unknown(SHORT)
        tools = section.data.get("tools")
        if tools is None or tools == []:
            raise section.missing("tools")
        expect_type(self.document, (*section.path, "tools"), tools, LIST)
        for number, tool in enumerate(tools):
            path = (*section.path, "tools", number)
            expect_type(self.document, path, tool, MAPPING)
            tool_section = ConfigSection(self.document, path, self._report, tool)
            tool_section.warn_unknown((*TOOL, *(str(key) for key in tool if str(key).startswith("x-"))))
            for name in ("toolName", "path"):
                tool_section.text(name, is_prose=True)
            for name in ("description", "method"):
                tool_section.text(name, "", is_prose=True)
            if not isinstance(tool.get("parameter") or {}, str | dict):
                raise tool_section.error("parameter", "a JSON Schema is expected: a mapping, or a text in JSON.")
            _warn_of_schema(tool_section)
        return {
            "url": section.text("url"),
            "apiKey": _key(section),
            "maxExecutionTime": section.integer("maxExecutionTime", DEFAULT_TIMEOUT_MS),
            "tools": tools,
        }

    def _with_address(self, path: FieldPath, entry: Mapping[str, Any], source: OpenapiSource) -> OpenapiSource:
        """The source where its calls go: at the service's own address if the operator gave one."""
        parts = urlsplit(source.base_url)
        provider = entry.get("apiProvider", {})
        names = [*(str(provider[name]) for name in ("serviceName", "domain") if name in provider), parts.hostname or ""]
        if base := self._overrides.base_of(*names):
            headers = {**source.headers, **self._overrides.host_header(source.base_url, *names)}
            return replace(source, base_url=base + parts.path, headers=headers)
        if source.auth and parts.scheme == "http":
            self._report.warn(
                (*path, *(("apiProvider",) if provider else ()), "apiKey"), _unencrypted_key_warning(source.base_url)
            )
        if provider:
            address = server_url(json.loads(source.document), self.document.name_of(path))
            self._warn_of_address(path, int(provider["servicePort"]), address, source.base_url)
        return source

    def _warn_of_address(self, path: FieldPath, port: int, address: str, base: str) -> None:
        parts = urlsplit(address)
        if not parts.scheme and not address.startswith("/"):
            message = f"servers[0].url is {address[:80]!r}, which names no scheme, so it is a path: calls go to {base}."
            self._report.warn((*path, "api"), message)
        usual = _USUAL.get(parts.scheme)
        if usual is not None and parts.port is None and port != usual and port in _USUAL.values():
            message = f"port {port} does not belong to {parts.scheme}, which {address} asks for; {usual} is used."
            self._report.warn((*path, "apiProvider", "servicePort"), message)

    def _require_unique_ids(self, described: FieldPath, api: Mapping[str, Any]) -> None:
        """Refuse an operation id that stands in the text a second time: one of the two would be lost."""
        names: set[str] = set()
        for name in _operation_ids(api):
            if name in names:
                line = self._line_of(described, f"operationId: {name}", 2)
                raise self._error(described, line, f"two operations are called {name!r}.", "Give each its own name.")
            names.add(name)

    def _claim_name(self, name: str, described: FieldPath) -> None:
        where = self.document.name_of(described)
        if name in self._names:
            message = f"a tool is called {name!r}, and so is one of {self._names[name]}."
            raise self.document.error(described, message, hint="Give each operation its own operationId.")
        self._names[name] = where

    def _located_error(self, path: FieldPath, error: ConfigError) -> AgentFileError:
        """An error that begins with where it is, at that place; a line of the text becomes one of the file."""
        match = _WHERE.fullmatch(error.message)
        if match is None:
            return self.document.error(path, error.message, hint=error.hint)
        inner_path = tuple(int(number) if number else name for name, number in _PART.findall(match["rest"]))
        full_path: FieldPath = (*path, *inner_path)
        line = self._line_in_file(full_path, int(match["line"])) if match["line"] else 0
        return self._error(full_path, line, match["message"], error.hint)

    def _error(self, path: FieldPath, line: int, message: str, hint: str) -> AgentFileError:
        error = self.document.error(path, message, hint=hint)
        if not line:
            return error
        return AgentFileError(
            f"{error.field}: {message}", path=str(self.document.path), line=line, field=error.field, hint=hint
        )

    def _line_in_file(self, path: FieldPath, line: int) -> int:
        """The line of the file for one of the text at `place`; 0 where the text does not stand there as a block."""
        begin = self.document.lines.get(path, 0)
        lines = self._lines()
        return begin + line if 0 < begin <= len(lines) and _BLOCK_TEXT.search(lines[begin - 1]) else 0

    def _line_of(self, path: FieldPath, text: str, nth: int) -> int:
        """The line of the file on which `text` stands for the `nth` time in the block at `place`, 0 if not found."""
        begin = self.document.lines.get(path, 0)
        numbers = [n for n, line in enumerate(self._lines(), 1) if n > begin and line.strip(" -'\"").endswith(text)]
        return numbers[nth - 1] if len(numbers) >= nth and self._line_in_file(path, 1) else 0

    def _lines(self) -> list[str]:
        try:
            return self.document.path.read_text(encoding="utf-8-sig").splitlines()
        except OSError:  # it was there a moment ago; only a line in a message is lost
            return []


def _key(section: ConfigSection) -> dict[str, str]:
    key = section.inner("apiKey", needed=False)
    key.warn_unknown(KEY)
    location = key.text("in", "none")
    if location not in ("query", "header", "none"):
        raise key.error("in", f"one of query, header, none is expected, not {location!r}.")
    name, value = key.text("name", ""), key.secret("value", "")
    if value and location != "none" and not name:
        key.warn("name", "it is missing, so no key is sent.")
    if value and location == "none":
        key.warn("in", "it is none, so no key is sent.")
    return {"in": location, "name": name, "value": value}


def _warn_of_schema(tool: ConfigSection) -> None:
    """Say what is wrong with the schema of a tool; what cannot be read at all is an error elsewhere."""
    parameter = tool.data.get("parameter")
    with suppress(ValueError):
        schema = json.loads(parameter) if isinstance(parameter, str) else parameter
        try:
            if isinstance(schema, dict):
                compile_schema(schema, "The schema")
        except ConfigError as error:
            tool.warn("parameter", f"{error.message} Anything is taken there.")


def _unencrypted_key_warning(address: str) -> str:
    return f"the key is sent to {urlsplit(address).hostname} without encryption."


def _operation_ids(api: Mapping[str, Any]) -> Iterator[str]:
    paths = api.get("paths")
    for item in paths.values() if isinstance(paths, Mapping) else ():
        for method, operation in item.items() if isinstance(item, Mapping) else ():
            if str(method).lower() in METHODS and isinstance(operation, Mapping) and operation.get("operationId"):
                yield str(operation["operationId"])
