"""The forms in which a file names tools, in an agent file and in a tool file alike."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Required, TypedDict

from taoloop.config.document import (
    ConfigDocument,
    describe_value,
    error_location,
    is_config_file,
    read_document,
    refuse_recursion,
    translate,
)
from taoloop.config.import_attribute import definition_context, load_attribute
from taoloop.config.settings_reader import SettingsReader, fields_of
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.search import suggest_names
from taoloop.errors import AgentFileError, ConfigError
from taoloop.runtime.agent import Agent
from taoloop.runtime.tool_source import ToolSource
from taoloop.tools.builtin.catalog import BUILTIN_NAMES, UNDOING, builtin_tools, offered_tool
from taoloop.tools.builtin.lookup import lookup_tool
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.settings_check import expand_home
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import Toolbox
from taoloop.tools.yaml12 import FieldPath
from taoloop.translation import mark

AgentLoader = Callable[[str], Agent]
"""Loads the agent that a text names: an agent file, or `module:attribute`."""

_environment: ContextVar[Mapping[str, str] | None] = ContextVar("_environment", default=None)
"""The variables for `${NAME}` while a file is read; None: those of the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """One kind of source: the class of its settings and the function that loads it, imported when one is named."""

    module: str
    """The module of the settings and the functions."""

    settings: str
    """The name of the class of the settings."""

    loader: str
    """The name of the function that loads the tools."""

    short: str = ""
    """The field that a plain text sets."""

    paths: tuple[str, ...] = ()
    """The fields annotated as texts that may be paths."""

    folder: str = ""
    """The field with the folder where the program of `command` starts: beside the file, unless it is set."""

    closer: str = ""
    """The name of the function that closes what the tools hold open."""

    environment: str = ""
    """The name of the function that takes from the environment what the settings leave open."""

    has_rules: bool = False
    """Whether the settings themselves have the fields of `EgressRules`, and no secrets."""

    def settings_class(self) -> type[Any]:
        """The class of the settings."""
        settings_class: type[Any] = self.attribute(self.settings)
        return settings_class

    def attribute(self, name: str) -> Any:
        """What the module calls `name`."""
        return getattr(importlib.import_module(self.module), name)


SOURCE_KINDS: dict[str, SourceKind] = {
    "openapi": SourceKind(
        module="taoloop.tools.openapi",
        settings="OpenapiSource",
        loader="openapi_tools",
        short="document",
        paths=("document", "token_file"),
    ),
    "graphql": SourceKind(
        module="taoloop.tools.graphql",
        settings="GraphqlSource",
        loader="graphql_tools",
        short="endpoint",
        paths=("schema_file", "documents", "token_file"),
    ),
    "mcp": SourceKind(
        module="taoloop.tools.mcp", settings="McpServer", loader="mcp_tools", folder="folder", closer="close_server"
    ),
    "sql": SourceKind(module="taoloop.tools.sql", settings="Database", loader="sql_tools", paths=("url",)),
    "documents": SourceKind(
        module="taoloop.tools.documents", settings="DocumentFolder", loader="document_tools", short="path"
    ),
    "pages": SourceKind(module="taoloop.tools.documents", settings="PageFolder", loader="page_tools", short="path"),
    "skills": SourceKind(module="taoloop.tools.skills", settings="SkillFolder", loader="skill_tools", short="path"),
    "fetch": SourceKind(module="taoloop.tools.web", settings="FetchSettings", loader="fetch_tools", has_rules=True),
    "web_search": SourceKind(
        module="taoloop.tools.web_search.tool",
        settings="WebSearchSettings",
        loader="web_search_tools",
        short="provider",
        environment="configured",
    ),
}

_KEYS = ("lookup", "function", "card", "agent", "file", *SOURCE_KINDS)
_FORMS_HINT = mark(
    "A tool is a built-in name, `module:attribute`, `{{lookup: {{table: FILE}}}}`, "
    "`{{function: module:attribute, card: {{…}}}}`, "
    "`{{agent: FILE, name: …, purpose: …}}`, `{{file: TOOLS.yaml}}`, "
    "or one of {kinds} with its settings."
)
_OTHER_FILES = mark(
    {
        "openapi": "This is an OpenAPI document. Look at it with `tao tools --openapi FILE`; name it under `tools`.",
        "swagger": "This is a Swagger document. Look at it with `tao tools --openapi FILE`; name it under `tools`.",
        "mcpServers": "Name each server under `tools`, as `mcp: {name: …, command: …}`.",
        "model": "It is one of an agent file, which is given by --agent.",
    }
)
"""Fields of other kinds of files."""


class LookupOptions(TypedDict):
    """The table of a lookup tool."""

    table: Path
    """A file of keys and values, beside this one."""


class LookupForm(TypedDict):
    """A tool that looks keys up in a table."""

    lookup: LookupOptions
    """The table."""


class FunctionForm(TypedDict, total=False):
    """A function as a tool."""

    function: Required[str]
    """The code, as `module:attribute`."""

    card: ToolCard
    """The card that describes the function; without it, its signature and docstring do."""


class AgentForm(TypedDict, total=False):
    """Another agent as a tool."""

    agent: Required[str]
    """An agent file, beside this one, or `module:attribute`."""

    purpose: Required[str]
    """What the agent is good for."""

    name: str
    """The name of the tool; else that of the agent."""

    use_when: str
    """When the model should choose it."""

    avoid_when: str
    """When the model should not choose it."""

    tier: str
    """The tier of the tool; else the highest tier of its own tools."""

    timeout_s: float
    """How long a call may take, in seconds."""


class FileForm(TypedDict):
    """The tools of another tool file."""

    file: Path
    """Another tool file."""


class ToolFileFields(TypedDict, total=False):
    """The fields of a tool file."""

    tools: Required[tuple[Any, ...]]
    """The tools, in their order."""

    egress: EgressRules
    """Where calls may go, for everything here."""

    workspace: Path
    """For the built-in tools that need it; beside this file."""

    memory: Path
    """For the built-in tools that need it; beside this file."""


TOOL_FILE_FIELDS = tuple(fields_of(ToolFileFields))


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """One entry of a list of tools."""

    document: ConfigDocument
    """The file."""

    field_path: FieldPath
    """The place in the file."""

    item: Tool | str | ToolSource
    """The tool, the name of a built-in one, or the source."""

    @property
    def where(self) -> str:
        """The file and the line."""
        return f"{self.document.path.name}:{self.document.lines.get(self.field_path, 0)}"


class ToolReader:
    """Reads a list of tools in a document. `load_agent` loads an agent that is a tool, by its file or module.

    `egress` are the rules for everything that the list names. `spares_others`: code that cannot be loaded is a source
    without tools and with a problem, so that the other entries are there; else it is an error.
    """

    def __init__(
        self,
        document: ConfigDocument,
        load_agent: AgentLoader,
        *,
        egress: EgressRules | None = None,
        spares_others: bool = False,
    ) -> None:
        self.document, self._load_agent = document, load_agent
        self._egress, self._spares_others = egress, spares_others
        self._settings = SettingsReader(document, variables())

    def entries(self, field_path: FieldPath, value: Any) -> tuple[ToolEntry, ...]:
        """Every entry, checked, nothing loaded yet but code.

        Raises:
            AgentFileError: an entry is invalid; names the file, the line and the field.
        """
        items = self._settings.read(tuple[Any, ...], field_path, value)
        return tuple(entry for n, item in enumerate(items) for entry in self._read_entry((*field_path, n), item))

    def _read_entry(self, field_path: FieldPath, value: Any) -> Sequence[ToolEntry]:
        if isinstance(value, dict) and "file" in value:
            form = self._settings.read(FileForm, field_path, value)
            with error_location(self.document, (*field_path, "file")):
                return entries_in(form["file"], self._load_agent)
        return (ToolEntry(self.document, field_path, self._read_tool(field_path, value)),)

    def _read_tool(self, field_path: FieldPath, value: Any) -> Tool | str | ToolSource:
        if isinstance(value, str):
            return self._by_name(field_path, value)
        if not isinstance(value, dict):
            values = {"actual": describe_value(value), "kinds": ", ".join(SOURCE_KINDS)}
            raise self.document.problem(field_path, "a tool is expected, not {actual}.", _FORMS_HINT, **values)
        if "agent" in value:
            return self._agent(field_path, value)
        form = next((key for key in ("function", "card", "lookup", *SOURCE_KINDS) if key in value), "")
        allowed = ("function", "card") if form in ("function", "card") else (form,)
        for name in value:
            if name not in allowed:
                raise self._misplaced_key((*field_path, str(name)), form)
        if not form:
            kinds = ", ".join(SOURCE_KINDS)
            raise self.document.problem(field_path, "this names no tool.", _FORMS_HINT, kinds=kinds)
        if form in SOURCE_KINDS:
            return self._source((*field_path, form), form, value[form])
        if form == "lookup":
            table = self._settings.read(LookupForm, field_path, value)["lookup"]["table"]
            with error_location(self.document, (*field_path, "lookup", "table")):
                return lookup_tool(table)
        return self._function(field_path, value)

    def _misplaced_key(self, field_path: FieldPath, form: str) -> AgentFileError:
        """The error for a key beside the one that names the `form`, which may belong below it or to another entry."""
        name = str(field_path[-1])
        if form in SOURCE_KINDS and name in fields_of(SOURCE_KINDS[form].settings_class()):
            hint = mark("It is a setting of `{form}`: put `{form}:` on a line of its own, its settings indented below.")
        elif form and name in _KEYS:
            hint = mark("One entry names one thing: begin another with `- {name}:`.")
        else:
            return self.document.unknown(field_path, _KEYS)
        return self.document.problem(field_path, "there is no such field beside `{form}`.", hint, form=form, name=name)

    def _source(self, field_path: FieldPath, key: str, value: Any) -> ToolSource:
        form = SOURCE_KINDS[key]
        kind = form.settings_class()
        if isinstance(value, str) and form.short:
            value = {form.short: value}
        value = {} if value is None else value
        plain = (kind,) if form.has_rules else ()
        reader = SettingsReader(self.document, variables(), egress=self._egress, plain=plain, paths=form.paths)
        try:
            settings = reader.read(kind, field_path, value)
        except AgentFileError:
            if reader.broken is None or not self._spares_others:
                raise
            return self._broken_source(*reader.broken)
        if form.folder and "command" in value:
            settings = self._program_beside_file(form, settings, value)
        secrets = reader.secrets
        if form.environment:
            with error_location(self.document, field_path):
                settings = form.attribute(form.environment)(settings, variables())
            secrets = {**secrets, **settings.secrets}
        return ToolSource(
            self.document.location(field_path),
            lambda: form.attribute(form.loader)(settings),
            secrets=secrets,
            settings=settings,
            on_close=(lambda: form.attribute(form.closer)(settings)) if form.closer else None,
        )

    def _program_beside_file(self, form: SourceKind, settings: Any, fields: dict[str, Any]) -> Any:
        """The settings with a program that is started beside the file, and found there if a path names it."""
        folder = self.document.path.parent
        program = expand_home(settings.command)
        command = str(folder / program) if len(program.parts) > 1 else settings.command
        own = {} if form.folder in fields else {form.folder: folder}
        return replace(settings, command=command, **own)

    def _by_name(self, field_path: FieldPath, name: str) -> Tool | str | ToolSource:
        if ":" in name:
            head, _, rest = name.partition(":")
            if head in _KEYS and is_config_file(rest):
                hint = mark("Put a blank after the colon.")
                raise self.document.problem(field_path, "{name!r} is one text.", hint, name=name)
            return self._code(field_path, name)
        if name in SOURCE_KINDS and name not in BUILTIN_NAMES:
            return self._source(field_path, name, {})
        if name not in BUILTIN_NAMES:
            offered = tuple(name_ for name_ in BUILTIN_NAMES if name_ not in UNDOING)
            hint = mark("Built in: {names}. A tool of your own is written module:attribute.")
            if near := suggest_names(name, (*offered, *SOURCE_KINDS), at_most=1):
                hint = mark("Did you mean {near!r}? Built in: {names}. A tool of your own is written module:attribute.")
            if is_config_file(name):
                hint = mark("The tools of another tool file are written `file: {name}`.")
            values = {"name": name, "names": ", ".join(offered), "near": next(iter(near), "")}
            raise self.document.problem(field_path, "There is no tool called {name!r}.", hint, **values)
        return name

    def _code(self, field_path: FieldPath, source: str) -> Tool | ToolSource:
        with error_location(self.document, field_path):
            try:
                target = load_attribute(source, self.document.path.parent)
                with definition_context(target):
                    return next(iter(Toolbox([target])))
            except ConfigError as error:
                if not self._spares_others:
                    raise
                return self._broken_source(field_path, error)

    def _broken_source(self, field_path: FieldPath, error: ConfigError) -> ToolSource:
        """A source whose code cannot be loaded: it has no tools and one problem."""
        location = self.document.location(field_path)
        return ToolSource(location, lambda: location.without_tools(error.message, hint=error.hint), secrets={})

    def _function(self, field_path: FieldPath, value: dict[str, Any]) -> Tool | ToolSource:
        if "function" not in value:
            hint = mark("Write `function: module:attribute` beside the card.")
            raise self.document.problem(field_path, "the code is not named.", hint)
        form = self._settings.read(FunctionForm, field_path, value, mode="written")
        function = self._code((*field_path, "function"), form["function"])
        if "card" not in form or isinstance(function, ToolSource):
            return function
        with error_location(self.document, (*field_path, "card")):
            return tool_from_card(form["card"], function.handler)

    def _agent(self, field_path: FieldPath, value: dict[str, Any]) -> Tool:
        """Another agent as a tool: of a file beside this one, or of a module."""
        form = self._settings.read(AgentForm, field_path, {"purpose": "", **value}, mode="written")
        if not form["purpose"].strip():
            text = mark("the purpose is missing: the model must know when this agent helps.")
            raise self.document.problem(field_path, text)
        source, inner = form["agent"], (*field_path, "agent")
        if is_config_file(source):
            source = str(self._settings.read(Path, inner, source))
        with error_location(self.document, inner):
            agent = self._load_agent(source)
        options: dict[str, Any] = {name: option for name, option in form.items() if name != "agent"}
        with error_location(self.document, field_path):
            return agent.as_tool(**options)


@contextmanager
def use_environment(env: Mapping[str, str] | None) -> Iterator[None]:
    """Fill in references, in the block, from the variables in `env`; None: as before."""
    token = _environment.set(_environment.get() if env is None else env)
    try:
        yield
    finally:
        _environment.reset(token)


def variables() -> Mapping[str, str]:
    """The variables that references in a file are filled in from."""
    env = _environment.get()
    return os.environ if env is None else env


def entries_in(path: Path, load_agent: AgentLoader) -> tuple[ToolEntry, ...]:
    """The entries of the tool file at `path`; it may name other tool files, but not itself.

    Raises:
        AgentFileError: it cannot be used.
        ConfigError: it names itself.
    """
    message = translate("The tool file {file} names itself.", file=path.name)
    error = ConfigError(message, hint=translate("Take it out of the list of its tools."))
    with refuse_recursion(path, error):
        document = read_document(path, "a tool file")
        for name in document.data:
            if name in _OTHER_FILES:
                raise document.problem((name,), "there is no such field in a tool file.", _OTHER_FILES[name])
        fields = SettingsReader(document, variables()).read(ToolFileFields, (), document.data)
        reader = ToolReader(document, load_agent, egress=fields.get("egress"), spares_others=True)
        return _with_places(document, fields, reader.entries(("tools",), document.data["tools"]))


def _with_places(
    document: ConfigDocument, fields: ToolFileFields, entries: tuple[ToolEntry, ...]
) -> tuple[ToolEntry, ...]:
    """The built-in tools bound to the file's own workspace and memory, where it names them."""
    paths = {name: fields[name] for name in ("workspace", "memory") if name in fields}
    if not paths:
        return entries
    with error_location(document, (next(iter(paths)),)):
        builtin = builtin_tools(**paths, names=[entry.item for entry in entries if isinstance(entry.item, str)])
    bound = []
    for entry in entries:
        with error_location(document, entry.field_path):
            item = offered_tool(entry.item, builtin) if isinstance(entry.item, str) else entry.item
        bound.append(replace(entry, item=item))
    return tuple(bound)
