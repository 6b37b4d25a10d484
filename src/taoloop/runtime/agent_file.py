"""Agents from a YAML or JSON file, or from an attribute of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from taoloop.core.cards import TIERS
from taoloop.core.limits import Limits
from taoloop.dialects import get_dialect
from taoloop.errors import AgentFileError, ConfigError
from taoloop.models.resolve import model_kinds
from taoloop.runtime.agent import Agent
from taoloop.runtime.agent_nodes import Document, Place, kind_name, read_document
from taoloop.runtime.attribute import load_attribute, speaking_for
from taoloop.strategies import get_strategy
from taoloop.tools.base import Tool
from taoloop.tools.builtin import builtin_tools
from taoloop.tools.declared import card_from_mapping, tool_from_card
from taoloop.tools.registry import Toolbox
from taoloop.tools.table import lookup_tool

SUFFIXES = (".yaml", ".yml", ".json")
_FILE_MODELS = ("scripted", "replay")

_TEXT: tuple[tuple[type, ...], str] = ((str,), "a text")
_PATH: tuple[tuple[type, ...], str] = ((str,), "a path")
_SWITCH: tuple[tuple[type, ...], str] = ((bool,), "true or false")
_NUMBER: tuple[tuple[type, ...], str] = ((int, float), "a number")
_COUNT: tuple[tuple[type, ...], str] = ((int,), "a whole number")
_LIST: tuple[tuple[type, ...], str] = ((list,), "a list")
_MAPPING: tuple[tuple[type, ...], str] = ((dict,), "a mapping")

_FIELDS: dict[str, tuple[tuple[type, ...], str]] = {
    "name": _TEXT,
    "model": _TEXT,
    "dialect": _TEXT,
    "strategy": _TEXT,
    "language": _TEXT,
    "instructions": _TEXT,
    "tools": _LIST,
    "workspace": _PATH,
    "limits": _MAPPING,
    "max_steps": _COUNT,
    "approved_tiers": _LIST,
    "closing_turn": _SWITCH,
    "repair_turns": _COUNT,
    "temperature": _NUMBER,
    "top_p": _NUMBER,
    "max_output_tokens": _COUNT,
    "model_timeout_s": _NUMBER,
    "prompts": _PATH,
    "db": _PATH,
    "journal": _PATH,
}
_OPTIONAL = ("model", "dialect", "temperature", "top_p", "max_output_tokens", "model_timeout_s")
_FRACTIONS = ("max_cost_usd", "max_wall_s", "max_working_s")
_TOOL_FORMS = (
    "a built-in name, `module:attribute`, `{lookup: {table: FILE}}`, or `{function: module:attribute, card: {…}}`"
)


def load_agent(source: str, **overrides: Any) -> Agent:
    """The agent that `source` names: `FILE.yaml` (`.yml`, `.json`), or `module:attribute`.

    A module is looked for in the current folder too; its attribute is an `Agent`, or a function without arguments
    that gives one. In a file, paths (workspace, prompts, db, tables, scripts of a model) are relative to the file.
    `overrides` replace fields of the `Agent`. The agent's `source` says how to load it again.

    Raises:
        AgentFileError: the file or module cannot be used; names the path, the line and the field.
    """
    if Path(source).suffix.lower() in SUFFIXES:
        path = Path(source).expanduser().absolute()
        agent = replace(_agent_of(read_document(path)), source=str(path))
    elif ":" in source:
        agent = replace(_agent_at(source), source=source)
    else:
        raise AgentFileError(
            "this names neither an agent file nor a module's attribute.",
            path=source,
            hint="Write FILE.yaml, FILE.json, or module:attribute.",
        )
    return replace(agent, **overrides) if overrides else agent


def _agent_at(source: str) -> Agent:
    found = load_attribute(source, Path.cwd())
    if callable(found) and not isinstance(found, Agent | Tool | type):
        with speaking_for(source):
            found = found()
    if not isinstance(found, Agent):
        raise AgentFileError(
            f"it is of the type {type(found).__name__!r}, not an Agent.",
            path=source,
            hint="Name an Agent, or a function without arguments that returns one.",
        )
    return found


def _agent_of(document: Document) -> Agent:
    given: dict[str, Any] = {}
    for name, value in document.data.items():
        place = (name,)
        if name not in _FIELDS:
            raise document.unknown(place, tuple(_FIELDS))
        if value is None and name in _OPTIONAL:
            continue
        _require(document, place, value, _FIELDS[name])
        given["journal" if name == "db" else name] = _READERS.get(name, _as_it_is)(document, value)
    if "db" in document.data and "journal" in document.data:
        raise document.error(("db",), "`journal` stands here too and means the same.", hint="Remove one of the two.")
    if "max_steps" in given:
        given["limits"] = _with_max_steps(document, given.pop("max_steps"), given.get("limits", Limits()))
    return Agent(**{"name": document.path.stem, **given})


def _with_max_steps(document: Document, max_steps: int, limits: Limits) -> Limits:
    place = ("max_steps",)
    if "max_steps" in (document.data.get("limits") or {}):
        raise document.error(
            place, "`limits.max_steps` stands here too and means the same.", hint="Remove one of the two."
        )
    with _placed(document, place):
        return replace(limits, max_steps=max_steps)


def _require(document: Document, place: Place, value: Any, kind: tuple[tuple[type, ...], str]) -> None:
    types, expected = kind
    if isinstance(value, types) and not (isinstance(value, bool) and bool not in types):
        return
    shown = repr(value)
    found = "nothing" if value is None else kind_name(value) if isinstance(value, bool) or len(shown) > 60 else shown
    raise document.error(place, f"{expected} is expected, not {found}.")


def _as_it_is(_document: Document, value: Any) -> Any:
    return value


def _path(document: Document, value: str) -> Path:
    return document.path.parent / Path(value).expanduser()


def _model(document: Document, spec: str) -> str:
    kind, _, rest = spec.partition(":")
    if kind not in model_kinds():
        raise document.error(
            ("model",), f"There is no model called {spec!r}.", hint=f"Known: {', '.join(model_kinds())}."
        )
    return f"{kind}:{_path(document, rest)}" if rest and kind in _FILE_MODELS else spec


def _named(field: str, get: Callable[[str], object]) -> Callable[[Document, Any], Any]:
    def read(document: Document, value: str) -> str:
        with _placed(document, (field,)):
            get(value)
        return value

    return read


@contextmanager
def _placed(document: Document, place: Place) -> Iterator[None]:
    """Give an error that knows no place the line of `place`."""
    try:
        yield
    except AgentFileError as error:
        if error.path == str(document.path):
            raise
        raise document.error(place, str(error.args[0])) from error
    except ConfigError as error:
        raise document.error(place, error.message, hint=error.hint) from error


def _tiers(document: Document, tiers: list[Any]) -> tuple[Any, ...]:
    for index, tier in enumerate(tiers):
        if tier not in TIERS:
            place = ("approved_tiers", index)
            raise document.error(place, f"one of {', '.join(TIERS)} is expected, not {tier!r}.")
    return tuple(tiers)


def _limits(document: Document, given: dict[str, Any]) -> Limits:
    known = tuple(field.name for field in fields(Limits))
    for name, value in given.items():
        place = ("limits", name)
        if name not in known:
            raise document.unknown(place, known)
        if value is not None:
            _require(document, place, value, _NUMBER if name in _FRACTIONS else _COUNT)
            with _placed(document, place):
                Limits(**{name: value})
    return Limits(**given)


def _tools(document: Document, entries: list[Any]) -> tuple[Any, ...]:
    known = tuple(builtin_tools(None))
    return tuple(_tool(document, ("tools", index), entry, known) for index, entry in enumerate(entries))


def _tool(document: Document, place: Place, entry: Any, known: tuple[str, ...]) -> Any:
    if isinstance(entry, str):
        return _tool_by_name(document, place, entry, known)
    if not isinstance(entry, dict):
        raise document.error(place, f"a tool is {_TOOL_FORMS}, not {entry!r}.")
    forms: tuple[str, ...] = ("function", "card") if "function" in entry or "card" in entry else ("lookup",)
    for name in entry:
        if name not in forms:
            raise document.unknown((*place, name), ("lookup", "function", "card"))
    if "lookup" in entry:
        return _table(document, (*place, "lookup"), entry["lookup"])
    if "function" not in entry:
        raise document.error(place, f"the code is not named; a tool is {_TOOL_FORMS}.")
    _require(document, (*place, "function"), entry["function"], _TEXT)
    found = _code(document, (*place, "function"), entry["function"])
    if "card" not in entry:
        return found
    _require(document, (*place, "card"), entry["card"], _MAPPING)
    with _placed(document, (*place, "card")):
        return tool_from_card(card_from_mapping(entry["card"], "the card"), found.handler)


def _tool_by_name(document: Document, place: Place, name: str, known: tuple[str, ...]) -> Any:
    if ":" in name:
        return _code(document, place, name)
    if name not in known:
        hint = f"Built in: {', '.join(known)}. A tool of your own is written module:attribute."
        raise document.error(place, f"There is no tool called {name!r}.", hint=hint)
    return name


def _code(document: Document, place: Place, source: str) -> Tool:
    with _placed(document, place):
        found = load_attribute(source, document.path.parent)
    with _placed(document, place):
        return next(iter(Toolbox([found])))


def _table(document: Document, place: Place, options: Any) -> Tool:
    _require(document, place, options, _MAPPING)
    for name in options:
        if name != "table":
            raise document.unknown((*place, name), ("table",))
    _require(document, (*place, "table"), options.get("table"), _PATH)
    with _placed(document, (*place, "table")):
        return lookup_tool(_path(document, options["table"]))


_READERS: dict[str, Callable[[Document, Any], Any]] = {
    "model": _model,
    "dialect": _named("dialect", get_dialect),
    "strategy": _named("strategy", get_strategy),
    "limits": _limits,
    "tools": _tools,
    "approved_tiers": _tiers,
    "workspace": _path,
    "prompts": _path,
    "journal": _path,
    "db": _path,
}
