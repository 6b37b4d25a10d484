"""What an agent is made of: its tools by name, its strategy, its limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.cards.tool_search import CALL_TOOL, DESCRIBE_TOOL, FIND_TOOL
from taoloop.errors import ConfigError
from taoloop.runtime.tool_source import resolve_sources
from taoloop.strategies import Strategy, get_strategy
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from taoloop.core.decision import AnswerCheck
    from taoloop.core.trace import Trace
    from taoloop.journals.base import Journal
    from taoloop.models.base import Model
    from taoloop.runtime.engine.handle_resolver import HandleResolver

SAMPLING = {"json": (0.2, 0.9)}
"""Temperature and top_p of a dialect where the agent sets neither. Elsewhere the provider's own count."""

FINDERS = (FIND_TOOL.name, DESCRIBE_TOOL.name, CALL_TOOL.name)
"""The tools that find, describe and call those that a prompt does not tell of."""

PAGING_TOOL = "read_observation"
"""The tool that goes with every other: it reads what an observation of the run had to leave out."""


def toolbox_of(
    given: Any, workspace: str | Path | None, memory: str | Path | None, *, handles: bool = False
) -> Toolbox:
    """The tools by name, built-in ones among them, with `read_observation` beside them for long outputs.

    `handles`: the model reads no observations; then `ask_about` takes its place.

    Raises:
        ConfigError: it is no list, this machine cannot serve one of them, or a source cannot be as its file says.
        UnknownName: there is no built-in tool of a name.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigError(f"The agent's tools are {given!r}.", hint="Give a list of tools.")
    builtin: Mapping[str, Tool] | None = None
    tools: list[Tool | Callable[..., Any]] = []
    for entry in resolve_sources(given):
        if not isinstance(entry, str):
            tools.append(entry)
            continue
        from taoloop.tools.builtin.catalog import offered_tool  # noqa: PLC0415  # only where a tool is named

        if builtin is None:
            builtin = _builtin(workspace, memory)
        tools.append(offered_tool(entry, builtin))
    box = _with_finders(Toolbox(tools))
    if handles:
        return _with_reader(box)
    if tools and PAGING_TOOL not in box:
        from taoloop.tools.builtin.observations import read_observation  # noqa: PLC0415  # loads the schema machinery

        box = Toolbox([*box, read_observation])
    return box


def handles_of(
    spec: AgentSpec, trace: Trace, journal: Journal, model: Model, check: AnswerCheck | None
) -> HandleResolver | None:
    """What fills in the values of a run whose model sees handles; None for any other run."""
    if spec.policy.observations != "handles":
        return None
    from taoloop.runtime.engine.handle_resolver import HandleResolver  # noqa: PLC0415  # only in this mode

    return HandleResolver(trace, journal, model, check)


def with_limits(spec: AgentSpec, limits: Limits | None, max_steps: int | None) -> AgentSpec:
    """The spec with other limits for one run."""
    if limits is not None:
        spec = replace(spec, limits=limits)
    return spec if max_steps is None else replace(spec, limits=replace(spec.limits, max_steps=max_steps))


def is_text(task: object) -> bool:
    """Whether a task says anything."""
    return isinstance(task, str) and bool(task.strip())


def as_tuple(tiers: Any) -> Any:
    """A list of tiers as a tuple; a bare text stays one, for the spec to refuse."""
    return tuple(tiers) if isinstance(tiers, list | set) else tiers


def _with_finders(box: Toolbox) -> Toolbox:
    """The tools with those beside them that find and describe what the prompt does not tell."""
    if all(one.card.listed and one.whole_schema is None for one in box):
        return box
    from taoloop.tools.discovery import tool_search_tools  # noqa: PLC0415  # only for many or large tools

    return Toolbox([*box, *tool_search_tools(tuple(box))])


def _with_reader(tools: Toolbox) -> Toolbox:
    from taoloop.tools.builtin.observations import ask_about  # noqa: PLC0415  # loads the schema machinery

    box = [one for one in tools if one.name != PAGING_TOOL]
    return Toolbox([*box, ask_about] if box else ())


def _builtin(workspace: str | Path | None, memory: str | Path | None) -> Mapping[str, Tool]:
    from taoloop.tools.builtin.catalog import builtin_tools  # noqa: PLC0415  # only where a tool is named
    from taoloop.tools.workspace.workspace import Workspace  # noqa: PLC0415  # likewise

    folder = Workspace(workspace, create=True).open() if workspace is not None else None
    return builtin_tools(folder, memory=memory)


def strategy_of(own: Strategy, trace: Trace) -> Strategy:
    """The strategy that a run began with; the agent's own may be one that is not registered."""
    return own if trace.started is None or trace.agent.strategy == own.name else get_strategy(trace.agent.strategy)
