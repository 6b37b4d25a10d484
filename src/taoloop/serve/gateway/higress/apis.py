"""The entries of `apis` as tools, with the place of everything that is wrong with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from taoloop.config.settings_reader import SettingsReader
from taoloop.errors import AgentFileError, ConfigError
from taoloop.serve.gateway.config.host_overrides import HostOverrides
from taoloop.serve.gateway.higress.openapi_source import (
    TEXT,
    ApiProvider,
    LongEntry,
    ShortEntry,
    ShortTool,
    api_source,
    long_form,
    server_url,
)
from taoloop.tools.json_schema import compile_schema
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.operation_call import OperationCaller
from taoloop.tools.openapi.operation_reader import METHODS
from taoloop.tools.tool import Tool
from taoloop.tools.yaml12 import FieldPath

_TEXT_LINE = re.compile(rf"{TEXT}: line (?P<line>\d+): (?P<message>.*)", re.DOTALL)
_BLOCK_TEXT = re.compile(r":\s*[|>][0-9+-]*\s*(?:#.*)?$")
_NAMES = "a model takes names of 1 to 64 ASCII letters, digits, _ and -"
_USUAL = {"http": 80, "https": 443}


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
        try:
            entry = self._short(path, data) if is_short else self._reader.read(LongEntry, path, data, mode="lenient")
            self._keep_key((*path, "apiKey") if is_short else (*path, "apiProvider", "apiKey"), entry)
            source = api_source(entry)
            self._require_unique_ids(described, json.loads(source.document))
            source = self._with_address(path, entry.api_provider, source, is_short=is_short)
            loaded = openapi_tools(source)
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
            self._claim_name(tool.name, described)
            operation_id = tool.handler.operation.operation_id if isinstance(tool.handler, OperationCaller) else ""
            if operation_id and operation_id != tool.name:
                self._reader.warn(described, f"{operation_id!r} is called {tool.name} here: {_NAMES}.")
        return loaded.tools

    def _short(self, path: FieldPath, data: Any) -> LongEntry:
        """The entry with its tools written out, in the other form."""
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
            self._warn_of_schema((*tool_path, "parameter"), tool)
            tools.append(tool)
        return long_form(entry, tools)

    def _warn_of_schema(self, path: FieldPath, tool: ShortTool) -> None:
        """Warn of a schema that is no valid JSON Schema."""
        schema: Any = tool.parameter
        try:
            compile_schema(schema, "The schema")
        except ConfigError as error:
            self._reader.warn(path, f"{error.message} Anything is accepted there.")

    def _keep_key(self, path: FieldPath, entry: LongEntry) -> None:
        """Treat the key of an entry as a secret; warn if it is not sent."""
        key = entry.api_provider.api_key
        self._reader.keep_secret((*path, "value"), key.value)
        if key.value and key.in_ != "none" and not key.name:
            self._reader.warn((*path, "name"), "it is missing, so no key is sent.")
        if key.value and key.in_ == "none":
            self._reader.warn((*path, "in"), "it is `none`, so no key is sent.")

    def _with_address(
        self, path: FieldPath, provider: ApiProvider, source: OpenapiSource, *, is_short: bool
    ) -> OpenapiSource:
        """The source where its calls go: at the service's own address if the operator gave one."""
        parts = urlsplit(source.base_url)
        names = (provider.service_name, provider.domain, parts.hostname or "")
        if base := self._overrides.base_of(*names):
            headers = {**source.headers, **self._overrides.host_header(source.base_url, *names)}
            return replace(source, base_url=base + parts.path, headers=headers)
        if source.auth and parts.scheme == "http":
            key_path = (*path, "apiKey") if is_short else (*path, "apiProvider", "apiKey")
            self._reader.warn(key_path, f"the key is sent to {parts.hostname} without encryption.")
        if not is_short:
            self._warn_of_address(path, provider.service_port, source)
        return source

    def _warn_of_address(self, path: FieldPath, port: int, source: OpenapiSource) -> None:
        address = server_url(json.loads(source.document))
        parts = urlsplit(address)
        if not parts.scheme and not address.startswith("/"):
            message = f"servers[0].url is {address[:80]!r}, which names no scheme, so it is a path: calls go to "
            self._reader.warn((*path, "api"), f"{message}{source.base_url}.")
        usual = _USUAL.get(parts.scheme)
        if usual is not None and parts.port is None and port != usual and port in _USUAL.values():
            message = f"port {port} does not belong to {parts.scheme}, which {address} asks for; {usual} is used."
            self._reader.warn((*path, "apiProvider", "servicePort"), message)

    def _require_unique_ids(self, described: FieldPath, api: Mapping[str, Any]) -> None:
        """Refuse an operation id that is in the text twice: one of the two would be lost."""
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
        """An error about a text; a line of the text becomes one of the file."""
        match = _TEXT_LINE.fullmatch(error.message)
        if match is None:
            return self.document.error(path, error.message, hint=error.hint)
        return self._error(path, self._line_in_file(path, int(match["line"])), match["message"], error.hint)

    def _error(self, path: FieldPath, line: int, message: str, hint: str) -> AgentFileError:
        error = self.document.error(path, message, hint=hint)
        if not line:
            return error
        return AgentFileError(
            f"{error.field}: {message}", path=str(self.document.path), line=line, field=error.field, hint=hint
        )

    def _line_in_file(self, path: FieldPath, line: int) -> int:
        """The line of the file for a line of the text at `path`; 0 where the text is not a block."""
        begin = self.document.lines.get(path, 0)
        lines = self._lines()
        return begin + line if 0 < begin <= len(lines) and _BLOCK_TEXT.search(lines[begin - 1]) else 0

    def _line_of(self, path: FieldPath, text: str, nth: int) -> int:
        """The line of the file with the `nth` occurrence of `text` in the block at `path`; 0 if there is none."""
        begin = self.document.lines.get(path, 0)
        numbers = [n for n, line in enumerate(self._lines(), 1) if n > begin and line.strip(" -'\"").endswith(text)]
        return numbers[nth - 1] if len(numbers) >= nth and self._line_in_file(path, 1) else 0

    def _lines(self) -> list[str]:
        try:
            return self.document.path.read_text(encoding="utf-8-sig").splitlines()
        except OSError:  # it was there a moment ago; only a line in a message is lost
            return []


def _operation_ids(api: Mapping[str, Any]) -> Iterator[str]:
    paths = api.get("paths")
    for item in paths.values() if isinstance(paths, Mapping) else ():
        for method, operation in item.items() if isinstance(item, Mapping) else ():
            if str(method).lower() in METHODS and isinstance(operation, Mapping) and operation.get("operationId"):
                yield str(operation["operationId"])
