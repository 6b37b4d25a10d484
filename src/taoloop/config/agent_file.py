"""Agents from a YAML or JSON file, or from an attribute of a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from taoloop.config.checks import COUNT, LIST, MAPPING, NUMBER, PATH, SWITCH, TEXT, Kind, error_location, expect_type
from taoloop.config.document import ConfigDocument, read_document
from taoloop.config.import_attribute import error_context, load_attribute
from taoloop.config.policy_file import load_policy, policy_in
from taoloop.config.tool_entries import ENVIRONMENT, SUFFIXES, ToolReader
from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.cards.tool_card import TIERS
from taoloop.core.policy import Policy
from taoloop.dialects import get_dialect
from taoloop.errors import AgentFileError, ConfigError
from taoloop.models.registry import model_kinds
from taoloop.models.settings import Rate, Retry
from taoloop.models.wrappers.build import join_specs, split_specs
from taoloop.prompts.load import LANGUAGES
from taoloop.runtime.agent import Agent
from taoloop.runtime.agent_settings import AUTO
from taoloop.runtime.output_type import OutputValidator
from taoloop.runtime.tool_source import sources_in
from taoloop.strategies import get_strategy
from taoloop.tools.tool import Tool
from taoloop.tools.yaml12 import FieldPath

_FILE_MODELS = ("scripted", "replay")

_TEXTS: Kind = ((str, list), "a text, or a list of texts")
_SCHEMA: Kind = ((dict, str), "a mapping or a path")

FIELDS: dict[str, Kind] = {
    "name": TEXT,
    "model": TEXT,
    "fallback": _TEXTS,
    "retry": MAPPING,
    "rate": MAPPING,
    "dialect": TEXT,
    "strategy": TEXT,
    "language": TEXT,
    "instructions": TEXT,
    "tools": LIST,
    "workspace": PATH,
    "memory": PATH,
    "output_schema": _SCHEMA,
    "limits": MAPPING,
    "max_steps": COUNT,
    "policy": ((dict, str), "a policy"),
    "approved_tiers": LIST,
    "closing_turn": SWITCH,
    "repair_turns": COUNT,
    "temperature": NUMBER,
    "top_p": NUMBER,
    "max_output_tokens": COUNT,
    "context_tokens": COUNT,
    "early_reads": SWITCH,
    "keep_thinking": SWITCH,
    "model_timeout_s": NUMBER,
    "prompts": PATH,
    "db": PATH,
    "journal": PATH,
    "recover_on_start": SWITCH,
}
"""What an agent file can say, and of which kind each value is."""

_OPTIONAL = ("model", "dialect", "temperature", "top_p", "max_output_tokens", "context_tokens", "model_timeout_s")
_JUDGED = ("repair_turns", "temperature", "top_p", "max_output_tokens", "context_tokens", "model_timeout_s")
_FRACTIONS = ("max_cost_usd", "max_wall_s", "max_working_s")
_FIELD_OF = {"db": "journal", "output_schema": "output_type"}
_reading: ContextVar[tuple[Path, ...]] = ContextVar("_reading", default=())


def load_agent(source: str, **overrides: Any) -> Agent:
    """The agent that `source` names: `FILE.yaml` (`.yml`, `.json`), or `module:attribute`.

    A module is looked for in the current folder too; its attribute is an `Agent`, or a function without arguments
    that gives one. In a file, paths (workspace, prompts, db, tables, scripts of a model) are relative to the file.
    `overrides` replace fields of the `Agent`; `env` among them fills in `${NAME}` in the settings of tools. The agent's
    `source` says how to load it again.

    Raises:
        AgentFileError: the file or module cannot be used; names the path, the line and the field.
    """
    if Path(source).suffix.lower() in SUFFIXES:
        path = Path(source).expanduser().absolute()
        env = overrides.get("env")
        token = ENVIRONMENT.set(ENVIRONMENT.get() if env is None else env)
        try:
            agent = replace(_agent_in(path), source=str(path))
        finally:
            ENVIRONMENT.reset(token)
    elif ":" in source:
        agent = replace(_agent_at(source), source=source)
    else:
        raise AgentFileError(
            "this names neither an agent file nor a module's attribute.",
            path=source,
            hint="Write FILE.yaml, FILE.json, or module:attribute.",
        )
    return replace(agent, **overrides) if overrides else agent


def agent_in(document: ConfigDocument, *, env: Mapping[str, str] | None = None) -> Agent:
    """The agent that a mapping describes with the fields of an agent file; `env` fills in `${NAME}`.

    Raises:
        AgentFileError: it cannot be used; names the path, the line and the field.
    """
    token = ENVIRONMENT.set(ENVIRONMENT.get() if env is None else env)
    try:
        agent = _agent_of(document)
    finally:
        ENVIRONMENT.reset(token)
    return agent if env is None else replace(agent, env=env)


def read_schema(path: Path) -> dict[str, Any]:
    """The output schema in a JSON or YAML file.

    Raises:
        AgentFileError: the file cannot be used, or holds no valid schema.
    """
    document = read_document(path, "a JSON Schema", "type: object")
    with error_location(document, ()):
        return OutputValidator(document.data).schema


def _agent_in(path: Path) -> Agent:
    """The agent in a file; its tools may be agents of other files, but not of one that is being read."""
    real = path.resolve()
    outer = _reading.get()
    if real in outer:
        raise ConfigError(  # it gets its place from the file that names the agent
            f"The agent {path.name} would be a tool of itself.", hint="Take it out of the tools of an inner agent."
        )
    token = _reading.set((*outer, real))
    try:
        return _agent_of(read_document(path))
    finally:
        _reading.reset(token)


def _agent_at(source: str) -> Agent:
    loaded = load_attribute(source, Path.cwd())
    if callable(loaded) and not isinstance(loaded, Agent | Tool | type):
        with error_context(source):
            loaded = loaded()
    if not isinstance(loaded, Agent):
        raise AgentFileError(
            f"it is of the type {type(loaded).__name__!r}, not an Agent.",
            path=source,
            hint="Name an Agent, or a function without arguments that returns one.",
        )
    return loaded


def _agent_of(document: ConfigDocument) -> Agent:
    settings: dict[str, Any] = {}
    for name, value in document.data.items():
        field_path = (name,)
        if name not in FIELDS:
            raise document.unknown(field_path, tuple(FIELDS))
        if value is None and name in _OPTIONAL:
            continue
        expect_type(document, field_path, value, FIELDS[name])
        settings[_FIELD_OF.get(name, name)] = _READERS.get(name, _as_it_is)(document, value)
    if "db" in document.data and "journal" in document.data:
        raise document.error(("db",), "`journal` stands here too and means the same.", hint="Remove one of the two.")
    with error_location(document, ("context_tokens",)):  # which must have room for a reply
        AgentSpec(**{name: settings[name] for name in ("max_output_tokens", "context_tokens") if name in settings})
    if "max_steps" in settings:
        settings["limits"] = _with_max_steps(document, settings.pop("max_steps"), settings.get("limits", Limits()))
    sources = sources_in(settings.get("tools", ()))
    settings["secrets"] = {name: value for source in sources for name, value in source.secrets.items()}
    return Agent(**{"name": document.path.stem, **settings})


def _with_max_steps(document: ConfigDocument, max_steps: int, limits: Limits) -> Limits:
    field_path = ("max_steps",)
    if "max_steps" in (document.data.get("limits") or {}):
        raise document.error(
            field_path, "`limits.max_steps` stands here too and means the same.", hint="Remove one of the two."
        )
    with error_location(document, field_path):
        return replace(limits, max_steps=max_steps)


def _as_it_is(_document: ConfigDocument, value: Any) -> Any:
    return value


def _path(document: ConfigDocument, value: str) -> Path:
    return document.path.parent / Path(value).expanduser()


def _memory(document: ConfigDocument, value: str) -> Path:
    path = _path(document, value)
    if path.is_dir():
        raise document.error(("memory",), f"a file is expected, and {value!r} is a folder.")
    return path


def _model(document: ConfigDocument, spec: str) -> str:
    return join_specs(*(_model_at(document, ("model",), single) for single in split_specs(spec)))


def _fallback(document: ConfigDocument, specs: str | list[Any]) -> tuple[str, ...]:
    if isinstance(specs, str):
        return tuple(_model_at(document, ("fallback",), spec) for spec in split_specs(specs))
    for index, entry in enumerate(specs):
        expect_type(document, ("fallback", index), entry, TEXT)
    return tuple(_model_at(document, ("fallback", index), spec) for index, spec in enumerate(specs))


def _model_at(document: ConfigDocument, field_path: FieldPath, spec: str) -> str:
    kind, _, rest = spec.partition(":")
    if kind not in model_kinds():
        raise document.error(
            field_path, f"There is no model called {spec!r}.", hint=f"Known: {', '.join(model_kinds())}."
        )
    return f"{kind}:{_path(document, rest)}" if rest and kind in _FILE_MODELS else spec


def _settings(name: str, kind: type[Retry] | type[Rate]) -> Callable[[ConfigDocument, Any], Any]:
    known = tuple(field.name for field in fields(kind))

    def read_field(document: ConfigDocument, settings: dict[str, Any]) -> Retry | Rate:
        for key, value in settings.items():
            if key not in known:
                raise document.unknown((name, key), known)
            with error_location(document, (name, key)):
                kind(**{key: value})
        return kind(**settings)

    return read_field


def _judged(name: str) -> Callable[[ConfigDocument, Any], Any]:
    """A field that the spec itself judges: told here with its line, and for an inner agent before any run."""

    def read_field(document: ConfigDocument, value: Any) -> Any:
        with error_location(document, (name,)):
            AgentSpec(**{name: value})
        return value

    return read_field


def _named_field(field: str, get: Callable[[str], object]) -> Callable[[ConfigDocument, Any], Any]:
    def read_field(document: ConfigDocument, value: str) -> str:
        with error_location(document, (field,)):
            get(value)
        return value

    return read_field


def _tiers(document: ConfigDocument, tiers: list[Any]) -> tuple[Any, ...]:
    for index, tier in enumerate(tiers):
        if tier not in TIERS:
            field_path = ("approved_tiers", index)
            raise document.error(field_path, f"one of {', '.join(TIERS)} is expected, not {tier!r}.")
    return tuple(tiers)


def _language(document: ConfigDocument, value: str) -> str:
    if value not in (AUTO, *LANGUAGES):
        known = ", ".join((AUTO, *LANGUAGES))
        raise document.error(("language",), f"There is no prompt language called {value!r}.", hint=f"Known: {known}.")
    return value


def _limits(document: ConfigDocument, settings: dict[str, Any]) -> Limits:
    known = tuple(field.name for field in fields(Limits))
    for name, value in settings.items():
        field_path = ("limits", name)
        if name not in known:
            raise document.unknown(field_path, known)
        if value is not None:
            expect_type(document, field_path, value, NUMBER if name in _FRACTIONS else COUNT)
            with error_location(document, field_path):
                Limits(**{name: value})
    return Limits(**settings)


def _tools(document: ConfigDocument, entries: list[Any]) -> tuple[Any, ...]:
    for index, entry in enumerate(entries):
        if isinstance(entry, str) and entry in entries[:index]:
            field_path = ("tools", index)
            raise document.error(field_path, f"{entry!r} stands here a second time.", hint="Remove one of the two.")
    return tuple(entry.item for entry in ToolReader(document).entries(("tools",), entries))


def _output_schema(document: ConfigDocument, value: dict[str, Any] | str) -> dict[str, Any]:
    """A JSON Schema in the file itself or in one of its own."""
    with error_location(document, ("output_schema",)):
        return read_schema(_path(document, value)) if isinstance(value, str) else OutputValidator(value).schema


def _policy(document: ConfigDocument, value: Any) -> Policy:
    """A policy in its own words, the name of a profile, or the path of a policy file."""
    if isinstance(value, str) and Path(value).suffix.lower() in SUFFIXES:
        return load_policy(_path(document, value))
    return policy_in(document, ("policy",), value)


_READERS: dict[str, Callable[[ConfigDocument, Any], Any]] = {
    "model": _model,
    "fallback": _fallback,
    "retry": _settings("retry", Retry),
    "rate": _settings("rate", Rate),
    "dialect": _named_field("dialect", get_dialect),
    "strategy": _named_field("strategy", get_strategy),
    "language": _language,
    "limits": _limits,
    **{name: _judged(name) for name in _JUDGED},
    "tools": _tools,
    "policy": _policy,
    "approved_tiers": _tiers,
    "workspace": _path,
    "memory": _memory,
    "output_schema": _output_schema,
    "prompts": _path,
    "journal": _path,
    "db": _path,
}
