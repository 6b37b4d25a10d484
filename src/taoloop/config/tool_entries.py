"""The forms in which a file names tools, in an agent file and in a tool file alike."""

from __future__ import annotations

import dataclasses
import importlib
import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from taoloop.config.checks import LIST, MAPPING, NUMBER, PATH, TEXT, Kind, describe_value, error_location, expect_type
from taoloop.config.document import ConfigDocument
from taoloop.config.env_references import EnvValues
from taoloop.config.import_attribute import load_attribute
from taoloop.config.settings_loader import SettingsLoader, apply_defaults, fields_of, is_needed
from taoloop.core.search import suggest_names
from taoloop.errors import AgentFileError, ConfigError
from taoloop.runtime.tool_source import ToolSource
from taoloop.tools.builtin.catalog import UNDOING, builtin_tools
from taoloop.tools.builtin.lookup import lookup_tool
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.from_card import card_from_mapping, tool_from_card
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadProblem, LoadResult, Toolbox
from taoloop.tools.yaml12 import FieldPath

SUFFIXES = (".yaml", ".yml", ".json")

ENVIRONMENT: ContextVar[Mapping[str, str] | None] = ContextVar("ENVIRONMENT", default=None)
"""The variables for `${NAME}` while a file is read; None: those of the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """One kind of source: the class of its settings and the function that loads it, imported when one is named.

    `short` is the field that a plain text stands for; `paths` are fields annotated as texts that may be paths. `folder`
    is where a program of `command` starts: beside the file, unless it is given. `closer` is the function that closes
    what the tools hold open. `has_rules`: the settings themselves
    have the fields of `EgressRules`, and no secrets.
    """

    module: str
    settings: str
    loader: str
    short: str = ""
    paths: tuple[str, ...] = ()
    folder: str = ""
    closer: str = ""
    has_rules: bool = False

    def settings_class(self) -> type[Any]:
        """The class of the settings."""
        settings_class: type[Any] = getattr(importlib.import_module(self.module), self.settings)
        return settings_class

    def load(self, settings: Any) -> LoadResult:
        """Load the tools of one source."""
        loaded: LoadResult = getattr(importlib.import_module(self.module), self.loader)(settings)
        return loaded

    def let_go(self, settings: Any) -> None:
        """Close what the tools of one source hold open in this process."""
        getattr(importlib.import_module(self.module), self.closer)(settings)


SOURCE_KINDS: dict[str, SourceKind] = {
    "openapi": SourceKind(
        module="taoloop.tools.openapi",
        settings="OpenapiSource",
        loader="openapi_tools",
        short="document",
        paths=("document",),
    ),
    "mcp": SourceKind(
        module="taoloop.tools.mcp", settings="McpServer", loader="mcp_tools", folder="folder", closer="close_server"
    ),
    "sql": SourceKind(module="taoloop.tools.sql", settings="Database", loader="sql_tools", paths=("url",)),
    "documents": SourceKind(
        module="taoloop.tools.documents", settings="DocumentFolder", loader="document_tools", short="path"
    ),
    "fetch": SourceKind(module="taoloop.tools.web", settings="FetchSettings", loader="fetch_tools", has_rules=True),
}

_KEYS = ("lookup", "function", "card", "agent", "file", *SOURCE_KINDS)
_FORMS_HINT = (
    "A tool is a built-in name, `module:attribute`, `{lookup: {table: FILE}}`, "
    "`{function: module:attribute, card: {…}}`, "
    "`{agent: FILE, name: …, purpose: …}`, `{file: TOOLS.yaml}`, "
    f"or one of {', '.join(SOURCE_KINDS)} with its settings."
)
AGENT_FORM: dict[str, Kind] = {
    "agent": TEXT,
    "name": TEXT,
    "purpose": TEXT,
    "use_when": TEXT,
    "avoid_when": TEXT,
    "tier": TEXT,
    "timeout_s": NUMBER,
}


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """One entry of a list of tools: where it stands, and the tool, the name of a built-in one, or the source."""

    document: ConfigDocument
    field_path: FieldPath
    item: Tool | str | ToolSource

    @property
    def where(self) -> str:
        """The file and the line."""
        return f"{self.document.path.name}:{self.document.lines.get(self.field_path, 0)}"


class ToolReader:
    """Reads a list of tools in a document. `egress` are the rules for everything that it names.

    `spares_others`: code that cannot be loaded is a source without tools and with a problem, so that the other entries
    are there; else it is an error.
    """

    def __init__(
        self, document: ConfigDocument, *, egress: EgressRules | None = None, spares_others: bool = False
    ) -> None:
        self.document, self._egress, self._spares_others = document, egress, spares_others
        self._builtin = tuple(builtin_tools(None))

    def entries(self, field_path: FieldPath, value: Any) -> tuple[ToolEntry, ...]:
        """Every entry, checked, nothing loaded yet but code.

        Raises:
            AgentFileError: an entry is none; names the file, the line and the field.
        """
        expect_type(self.document, field_path, value, LIST)
        return tuple(entry for n, item in enumerate(value) for entry in self._read_entry((*field_path, n), item))

    def _read_entry(self, field_path: FieldPath, value: Any) -> Sequence[ToolEntry]:
        if isinstance(value, dict) and "file" in value:
            return self._file(field_path, value)
        return (ToolEntry(self.document, field_path, self._read_tool(field_path, value)),)

    def _read_tool(self, field_path: FieldPath, value: Any) -> Tool | str | ToolSource:
        if isinstance(value, str):
            return self._by_name(field_path, value)
        if not isinstance(value, dict):
            raise self.document.error(field_path, f"a tool is expected, not {describe_value(value)}.", hint=_FORMS_HINT)
        if "agent" in value:
            return self._agent(field_path, value)
        form = next((key for key in ("function", "card", "lookup", *SOURCE_KINDS) if key in value), "")
        allowed = ("function", "card") if form in ("function", "card") else (form,)
        for name in value:
            if name not in allowed:
                raise self._astray((*field_path, str(name)), form)
        if not form:
            raise self.document.error(field_path, "this names no tool.", hint=_FORMS_HINT)
        if form in SOURCE_KINDS:
            return self._source((*field_path, form), form, value[form])
        return (
            self._table((*field_path, "lookup"), value["lookup"])
            if form == "lookup"
            else self._function(field_path, value)
        )

    def _astray(self, field_path: FieldPath, form: str) -> AgentFileError:
        """The error for a key beside the one that names the `form`, which may belong beneath it or to another entry."""
        name = str(field_path[-1])
        if form in SOURCE_KINDS and name in fields_of(SOURCE_KINDS[form].settings_class()):
            hint = f"It is a setting of `{form}`: put `{form}:` on a line of its own, and its settings indented below."
        elif form and name in _KEYS:
            hint = f"One entry names one thing: begin another with `- {name}:`."
        else:
            return self.document.unknown(field_path, _KEYS)
        return self.document.error(field_path, f"there is no such field beside `{form}`.", hint=hint)

    def _source(self, field_path: FieldPath, key: str, value: Any) -> ToolSource:
        form = SOURCE_KINDS[key]
        kind = form.settings_class()
        if isinstance(value, str) and form.short:
            value = {form.short: value}
        value = {} if value is None else value
        if not isinstance(value, dict):
            needed = ", ".join(f"{field.name}: …" for field in dataclasses.fields(kind) if is_needed(field))
            hint = f"Write its settings: `{key}: {{{needed}}}`."
            raise self.document.error(field_path, f"a mapping is expected, not {describe_value(value)}.", hint=hint)
        env = self._variables()
        presets = () if self._egress is None else (self._egress,)
        plain = (EgressRules, kind) if form.has_rules else (EgressRules,)
        filler = SettingsLoader(self.document, env, plain=plain, presets=presets)
        try:
            settings = filler.filled(kind, field_path, value, paths=form.paths)
        except AgentFileError:
            if filler.broken is None or not self._spares_others:
                raise
            return self._gone(*filler.broken)
        if form.has_rules and self._egress is not None:
            settings = apply_defaults(self._egress, settings, value)
        if form.folder and "command" in value:
            settings = self._program_beside_file(form, settings, value)
        return ToolSource(
            self.document.location(field_path),
            partial(form.load, settings),
            secrets=env.secrets,
            settings=settings,
            let_go=partial(form.let_go, settings) if form.closer else None,
        )

    def _program_beside_file(self, form: SourceKind, settings: Any, fields: dict[str, Any]) -> Any:
        """The settings with a program that is started beside the file, and found there if a path names it."""
        folder = self.document.path.parent
        program = Path(settings.command).expanduser()
        command = str(folder / program) if len(program.parts) > 1 else settings.command
        own = {} if form.folder in fields else {form.folder: folder}
        return replace(settings, command=command, **own)

    def _file(self, field_path: FieldPath, fields: dict[str, Any]) -> Sequence[ToolEntry]:
        """The tools of a tool file, in the place of its name."""
        from taoloop.config.tool_file import entries_in  # noqa: PLC0415  # it imports this module

        for name in fields:
            if name != "file":
                raise self.document.unknown((*field_path, str(name)), ("file",))
        inner = (*field_path, "file")
        with error_location(self.document, inner):
            return entries_in(self.path(inner, fields["file"]))

    def _by_name(self, field_path: FieldPath, name: str) -> Tool | str | ToolSource:
        if ":" in name:
            head, _, rest = name.partition(":")
            if head in _KEYS and Path(rest).suffix.lower() in SUFFIXES:
                raise self.document.error(field_path, f"{name!r} is one text.", hint="Put a blank after the colon.")
            return self._code(field_path, name)
        if name in SOURCE_KINDS and name not in self._builtin:
            return self._source(field_path, name, {})
        if name not in self._builtin:
            offered = tuple(name_ for name_ in self._builtin if name_ not in UNDOING)
            hint = f"Built in: {', '.join(offered)}. A tool of your own is written module:attribute."
            if near := suggest_names(name, (*offered, *SOURCE_KINDS), at_most=1):
                hint = f"Did you mean {near[0]!r}? {hint}"
            if Path(name).suffix.lower() in SUFFIXES:
                hint = f"The tools of another tool file are written `file: {name}`."
            raise self.document.error(field_path, f"There is no tool called {name!r}.", hint=hint)
        return name

    def _code(self, field_path: FieldPath, source: str) -> Tool | ToolSource:
        with error_location(self.document, field_path):
            try:
                return next(iter(Toolbox([load_attribute(source, self.document.path.parent)])))
            except ConfigError as error:
                if not self._spares_others:
                    raise
                return self._gone(field_path, error)

    def _gone(self, field_path: FieldPath, error: ConfigError) -> ToolSource:
        """A source whose code cannot be loaded, so that it has no tools and one problem."""
        where, line = self.document.path.name, self.document.lines.get(field_path, 0)
        field = self.document.name_of(field_path)
        problem = LoadProblem(source=f"{where}:{line}", place=field, message=error.message, hint=error.hint)
        return ToolSource(self.document.location(field_path), lambda: LoadResult(problems=(problem,)), secrets={})

    def _function(self, field_path: FieldPath, fields: dict[str, Any]) -> Tool | ToolSource:
        if "function" not in fields:
            hint = "Write `function: module:attribute` beside the card."
            raise self.document.error(field_path, "the code is not named.", hint=hint)
        expect_type(self.document, (*field_path, "function"), fields["function"], TEXT)
        function = self._code((*field_path, "function"), fields["function"])
        if "card" not in fields or isinstance(function, ToolSource):
            return function
        expect_type(self.document, (*field_path, "card"), fields["card"], MAPPING)
        with error_location(self.document, (*field_path, "card")):
            return tool_from_card(card_from_mapping(fields["card"], "the card"), function.handler)

    def _table(self, field_path: FieldPath, options: Any) -> Tool:
        expect_type(self.document, field_path, options, MAPPING)
        for name in options:
            if name != "table":
                raise self.document.unknown((*field_path, str(name)), ("table",))
        inner = (*field_path, "table")
        with error_location(self.document, inner):
            return lookup_tool(self.path(inner, options.get("table")))

    def _agent(self, field_path: FieldPath, fields: dict[str, Any]) -> Tool:
        """Another agent as a tool: of a file beside this one, or of a module."""
        from taoloop.config.agent_file import load_agent  # noqa: PLC0415  # it imports this module

        for name, value in fields.items():
            if name not in AGENT_FORM:
                raise self.document.unknown((*field_path, str(name)), tuple(AGENT_FORM))
            expect_type(self.document, (*field_path, name), value, AGENT_FORM[name])
        if not fields.get("purpose", "").strip():
            raise self.document.error(field_path, "the purpose is missing: the model must know when this agent helps.")
        source = fields["agent"]
        if Path(source).suffix.lower() in SUFFIXES:
            source = str(self.path((*field_path, "agent"), source))
        with error_location(self.document, (*field_path, "agent")):
            agent = load_agent(source)
        with error_location(self.document, field_path):
            return agent.as_tool(**{name: value for name, value in fields.items() if name != "agent"})

    def path(self, field_path: FieldPath, value: Any) -> Path:
        """A path as the file names it: with variables, and beside the file.

        Raises:
            AgentFileError: it is none, or a variable is missing.
        """
        expect_type(self.document, field_path, value, PATH)
        filled = self._variables().text(field_path, value, is_plain=True)
        return self.document.path.parent / Path(filled).expanduser()

    def _variables(self) -> EnvValues:
        return EnvValues(self.document, variables())


def variables() -> Mapping[str, str]:
    """The variables that references in a file are filled in from."""
    environment = ENVIRONMENT.get()
    return os.environ if environment is None else environment


def egress_in(document: ConfigDocument, value: Any) -> EgressRules:
    """The rules under `egress` at the top of a file.

    Raises:
        AgentFileError: they are none; names the file, the line and the field.
    """
    filler = SettingsLoader(document, EnvValues(document, variables()), plain=(EgressRules,))
    return filler.filled(EgressRules, ("egress",), value)
