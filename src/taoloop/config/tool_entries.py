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
from taoloop.tools.load_result import LoadProblem, LoadResult
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import Toolbox
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
        found: type[Any] = getattr(importlib.import_module(self.module), self.settings)
        return found

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
    place: FieldPath
    item: Tool | str | ToolSource

    @property
    def where(self) -> str:
        """The file and the line."""
        return f"{self.document.path.name}:{self.document.lines.get(self.place, 0)}"


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

    def entries(self, place: FieldPath, given: Any) -> tuple[ToolEntry, ...]:
        """Every entry, checked, nothing loaded yet but code.

        Raises:
            AgentFileError: an entry is none; names the file, the line and the field.
        """
        expect_type(self.document, place, given, LIST)
        return tuple(entry for n, one in enumerate(given) for entry in self._read((*place, n), one))

    def _read(self, place: FieldPath, given: Any) -> Sequence[ToolEntry]:
        if isinstance(given, dict) and "file" in given:
            return self._file(place, given)
        return (ToolEntry(self.document, place, self._one(place, given)),)

    def _one(self, place: FieldPath, given: Any) -> Tool | str | ToolSource:
        if isinstance(given, str):
            return self._by_name(place, given)
        if not isinstance(given, dict):
            raise self.document.error(place, f"a tool is expected, not {describe_value(given)}.", hint=_FORMS_HINT)
        if "agent" in given:
            return self._agent(place, given)
        form = next((key for key in ("function", "card", "lookup", *SOURCE_KINDS) if key in given), "")
        allowed = ("function", "card") if form in ("function", "card") else (form,)
        for name in given:
            if name not in allowed:
                raise self._astray((*place, str(name)), form)
        if not form:
            raise self.document.error(place, "this names no tool.", hint=_FORMS_HINT)
        if form in SOURCE_KINDS:
            return self._source((*place, form), form, given[form])
        return self._table((*place, "lookup"), given["lookup"]) if form == "lookup" else self._function(place, given)

    def _astray(self, place: FieldPath, form: str) -> AgentFileError:
        """The error for a key beside the one that names the `form`, which may belong beneath it or to another entry."""
        name = str(place[-1])
        if form in SOURCE_KINDS and name in fields_of(SOURCE_KINDS[form].settings_class()):
            hint = f"It is a setting of `{form}`: put `{form}:` on a line of its own, and its settings indented below."
        elif form and name in _KEYS:
            hint = f"One entry names one thing: begin another with `- {name}:`."
        else:
            return self.document.unknown(place, _KEYS)
        return self.document.error(place, f"there is no such field beside `{form}`.", hint=hint)

    def _source(self, place: FieldPath, key: str, given: Any) -> ToolSource:
        form = SOURCE_KINDS[key]
        kind = form.settings_class()
        if isinstance(given, str) and form.short:
            given = {form.short: given}
        given = {} if given is None else given
        if not isinstance(given, dict):
            needed = ", ".join(f"{one.name}: …" for one in dataclasses.fields(kind) if is_needed(one))
            hint = f"Write its settings: `{key}: {{{needed}}}`."
            raise self.document.error(place, f"a mapping is expected, not {describe_value(given)}.", hint=hint)
        env = self._variables()
        presets = () if self._egress is None else (self._egress,)
        plain = (EgressRules, kind) if form.has_rules else (EgressRules,)
        filler = SettingsLoader(self.document, env, plain=plain, presets=presets)
        try:
            settings = filler.filled(kind, place, given, paths=form.paths)
        except AgentFileError:
            if filler.broken is None or not self._spares_others:
                raise
            return self._gone(*filler.broken)
        if form.has_rules and self._egress is not None:
            settings = apply_defaults(self._egress, settings, given)
        if form.folder and "command" in given:
            settings = self._beside(form, settings, given)
        return ToolSource(
            self.document.location(place),
            partial(form.load, settings),
            secrets=env.secrets,
            settings=settings,
            let_go=partial(form.let_go, settings) if form.closer else None,
        )

    def _beside(self, form: SourceKind, settings: Any, given: dict[str, Any]) -> Any:
        """The settings with a program that is started beside the file, and found there if a path names it."""
        folder = self.document.path.parent
        program = Path(settings.command).expanduser()
        command = str(folder / program) if len(program.parts) > 1 else settings.command
        own = {} if form.folder in given else {form.folder: folder}
        return replace(settings, command=command, **own)

    def _file(self, place: FieldPath, given: dict[str, Any]) -> Sequence[ToolEntry]:
        """The tools of a tool file, in the place of its name."""
        from taoloop.config.tool_file import entries_in  # noqa: PLC0415  # it imports this module

        for name in given:
            if name != "file":
                raise self.document.unknown((*place, str(name)), ("file",))
        inner = (*place, "file")
        with error_location(self.document, inner):
            return entries_in(self.path(inner, given["file"]))

    def _by_name(self, place: FieldPath, name: str) -> Tool | str | ToolSource:
        if ":" in name:
            head, _, rest = name.partition(":")
            if head in _KEYS and Path(rest).suffix.lower() in SUFFIXES:
                raise self.document.error(place, f"{name!r} is one text.", hint="Put a blank after the colon.")
            return self._code(place, name)
        if name in SOURCE_KINDS and name not in self._builtin:
            return self._source(place, name, {})
        if name not in self._builtin:
            offered = tuple(one for one in self._builtin if one not in UNDOING)
            hint = f"Built in: {', '.join(offered)}. A tool of your own is written module:attribute."
            if near := suggest_names(name, (*offered, *SOURCE_KINDS), at_most=1):
                hint = f"Did you mean {near[0]!r}? {hint}"
            if Path(name).suffix.lower() in SUFFIXES:
                hint = f"The tools of another tool file are written `file: {name}`."
            raise self.document.error(place, f"There is no tool called {name!r}.", hint=hint)
        return name

    def _code(self, place: FieldPath, source: str) -> Tool | ToolSource:
        with error_location(self.document, place):
            try:
                return next(iter(Toolbox([load_attribute(source, self.document.path.parent)])))
            except ConfigError as error:
                if not self._spares_others:
                    raise
                return self._gone(place, error)

    def _gone(self, place: FieldPath, error: ConfigError) -> ToolSource:
        """A source whose code cannot be loaded, so that it has no tools and one problem."""
        where, line = self.document.path.name, self.document.lines.get(place, 0)
        field = self.document.name_of(place)
        problem = LoadProblem(source=f"{where}:{line}", place=field, message=error.message, hint=error.hint)
        return ToolSource(self.document.location(place), lambda: LoadResult(problems=(problem,)), secrets={})

    def _function(self, place: FieldPath, given: dict[str, Any]) -> Tool | ToolSource:
        if "function" not in given:
            hint = "Write `function: module:attribute` beside the card."
            raise self.document.error(place, "the code is not named.", hint=hint)
        expect_type(self.document, (*place, "function"), given["function"], TEXT)
        found = self._code((*place, "function"), given["function"])
        if "card" not in given or isinstance(found, ToolSource):
            return found
        expect_type(self.document, (*place, "card"), given["card"], MAPPING)
        with error_location(self.document, (*place, "card")):
            return tool_from_card(card_from_mapping(given["card"], "the card"), found.handler)

    def _table(self, place: FieldPath, options: Any) -> Tool:
        expect_type(self.document, place, options, MAPPING)
        for name in options:
            if name != "table":
                raise self.document.unknown((*place, str(name)), ("table",))
        inner = (*place, "table")
        with error_location(self.document, inner):
            return lookup_tool(self.path(inner, options.get("table")))

    def _agent(self, place: FieldPath, given: dict[str, Any]) -> Tool:
        """Another agent as a tool: of a file beside this one, or of a module."""
        from taoloop.config.agent_file import load_agent  # noqa: PLC0415  # it imports this module

        for name, value in given.items():
            if name not in AGENT_FORM:
                raise self.document.unknown((*place, str(name)), tuple(AGENT_FORM))
            expect_type(self.document, (*place, name), value, AGENT_FORM[name])
        if not given.get("purpose", "").strip():
            raise self.document.error(place, "the purpose is missing: the model must know when this agent helps.")
        source = given["agent"]
        if Path(source).suffix.lower() in SUFFIXES:
            source = str(self.path((*place, "agent"), source))
        with error_location(self.document, (*place, "agent")):
            agent = load_agent(source)
        with error_location(self.document, place):
            return agent.as_tool(**{name: value for name, value in given.items() if name != "agent"})

    def path(self, place: FieldPath, given: Any) -> Path:
        """A path as the file names it: with variables, and beside the file.

        Raises:
            AgentFileError: it is none, or a variable is missing.
        """
        expect_type(self.document, place, given, PATH)
        filled = self._variables().text(place, given, is_plain=True)
        return self.document.path.parent / Path(filled).expanduser()

    def _variables(self) -> EnvValues:
        return EnvValues(self.document, variables())


def variables() -> Mapping[str, str]:
    """The variables that references in a file are filled in from."""
    found = ENVIRONMENT.get()
    return os.environ if found is None else found


def egress_in(document: ConfigDocument, given: Any) -> EgressRules:
    """The rules under `egress` at the top of a file.

    Raises:
        AgentFileError: they are none; names the file, the line and the field.
    """
    filler = SettingsLoader(document, EnvValues(document, variables()), plain=(EgressRules,))
    return filler.filled(EgressRules, ("egress",), given)
