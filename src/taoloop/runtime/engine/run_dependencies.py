"""The dependencies of a run: given, made or inherited, and held to the agent's `deps_type`; instructions made of them.

All of it happens before a run is begun or acquired, so an error leaves nothing behind. The messages name types and
functions only, because those of a run inside another one are recorded there: no value of the dependencies is in them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pydantic_core

from taoloop.core.events import RunStarted
from taoloop.core.text import replace_surrogates
from taoloop.errors import ConfigError
from taoloop.runtime.agent_settings import AgentSettings, RunInfo
from taoloop.tools.tool import RunContext


async def resolve_deps(settings: AgentSettings, deps: Any, info: RunInfo) -> Any:
    """The dependencies of a run: those that were given, else those that the agent makes for it.

    Raises:
        ConfigError: they are missing or of another type than the agent's `deps_type`, or cannot be made.
    """
    if deps is None and settings.make_deps is not None:
        deps = await _call(settings, "make_deps", settings.make_deps, info)
        if not _is_accepted(settings, deps):
            raise ConfigError(
                f"The agent {settings.name!r} needs deps of the type {type_name(settings.deps_type)}, and the function"
                f" {_name(settings.make_deps)} (make_deps) made {_actual(deps)}.",
                hint="Return such an object, or change deps_type.",
            )
        return deps
    check_deps(settings, deps)
    return deps


def check_deps(settings: AgentSettings, deps: Any) -> None:
    """Refuse dependencies that do not fit, and none where the agent needs some and does not make them.

    Raises:
        ConfigError: names both types.
    """
    if (deps is None and settings.make_deps is not None) or _is_accepted(settings, deps):
        return
    raise ConfigError(
        f"The agent {settings.name!r} needs deps of the type {type_name(settings.deps_type)}, and the run was given"
        f" {_actual(deps)}.",
        hint="Give them with the run (deps=…), or set make_deps, which makes them for a run that is given none.",
    )


def inherited_deps(settings: AgentSettings, deps: Any) -> Any:
    """The dependencies of the run around a call of an agent, if it can take them; else None."""
    return deps if _is_accepted(settings, deps) else None


async def instructions_of(settings: AgentSettings, context: RunContext[Any]) -> str:
    """What the instructions of an agent are for one run.

    Raises:
        ConfigError: the function that gives them failed, or gave no text.
    """
    make = settings.instructions
    if isinstance(make, str):
        return make
    text: object = await _call(settings, "instructions", make, context)
    if not isinstance(text, str):
        raise ConfigError(
            f"The function {_name(make)} (instructions of the agent {settings.name!r}) gave {_actual(text)}, and no"
            " text.",
            hint="It must return a text.",
        )
    return replace_surrogates(text)


def declared_deps(settings: AgentSettings, deps: Any) -> dict[str, Any]:
    """What the agent declares of the dependencies, for the trace.

    Raises:
        ConfigError: `record_deps` failed, or gave no object of JSON.
    """
    if settings.record_deps is None:
        return {}
    try:
        declared = settings.record_deps(deps)
    except Exception as error:
        raise _failed(settings, "record_deps", settings.record_deps, error) from error
    try:
        if not isinstance(declared, Mapping):
            raise TypeError(type_name(type(declared)))
        plain: dict[str, Any] = pydantic_core.from_json(pydantic_core.to_json(dict(declared)))
    except (ValueError, TypeError, RecursionError) as error:
        raise ConfigError(
            f"The function {_name(settings.record_deps)} (record_deps of the agent {settings.name!r}) gave no JSON"
            " object.",
            hint="It must return a dict of texts, numbers, lists and dicts.",
        ) from error
    return plain


def type_name(kind: Any) -> str:
    """A type as it is called in messages."""
    return kind.__qualname__ if isinstance(kind, type) and get_origin(kind) is None else str(kind)


async def _call(settings: AgentSettings, setting: str, function: Callable[..., Any], argument: object) -> Any:
    try:
        result = function(argument)
        return await result if inspect.isawaitable(result) else result
    except Exception as error:
        raise _failed(settings, setting, function, error) from error


def _failed(settings: AgentSettings, setting: str, function: Callable[..., Any], error: Exception) -> ConfigError:
    """The cause has the text of the error, which may contain anything."""
    return ConfigError(
        f"The function {_name(function)} ({setting} of the agent {settings.name!r}) failed with {_actual(error)}.",
        hint="See the traceback of its cause.",
    )


def _actual(value: object) -> str:
    return "none" if value is None else type_name(type(value))


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def _checked_type(settings: AgentSettings) -> Any:
    """The agent's `deps_type`.

    Raises:
        ConfigError: it is no type.
    """
    kind: Any = settings.deps_type
    is_type = isinstance(kind, type) or get_origin(kind) is not None or kind is Any or hasattr(kind, "__supertype__")
    if not is_type:
        raise ConfigError(
            f"The deps_type of the agent {settings.name!r} is an object of {type_name(type(kind))}.",
            hint="Give the type itself; the object goes to each run (deps=…).",
        )
    return kind


def _is_accepted(settings: AgentSettings, deps: Any) -> bool:
    return settings.deps_type is None or _fits(deps, _checked_type(settings))


def _fits(deps: Any, kind: Any) -> bool:
    """Whether dependencies are of a type, as far as that can be told at run time."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin is Annotated:
        return _fits(deps, arguments[0])
    if origin in (Union, UnionType):
        return any(_fits(deps, argument) for argument in arguments)
    if origin is Literal:
        return deps in arguments
    kind = NoneType if kind is None else getattr(kind, "__supertype__", origin or kind)
    try:
        return isinstance(deps, kind)
    except TypeError:  # a Protocol or a TypedDict, which only a type checker can compare
        return deps is not None


async def with_deps(own: AgentSettings, run_id: str, started: RunStarted, deps: Any) -> tuple[RunStarted, Any]:
    """The first event of a run with what it owes to its dependencies, and these."""
    user = started.labels.get("user", "")
    deps = await resolve_deps(own, deps, RunInfo(run_id=run_id, user=user, task=started.task, agent=own.name))
    if callable(own.instructions):
        context = RunContext(deps=deps, run_id=run_id, task=started.task, user=user, call_id="")
        parts = (await instructions_of(own, context), started.agent.instructions)
        instructions = "\n\n".join(filter(None, parts))
        started = replace(started, agent=replace(started.agent, instructions=instructions))
    declared = declared_deps(own, deps)
    return replace(started, deps=declared) if declared else started, deps
