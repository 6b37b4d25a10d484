"""The hooks of an agent, made ready for a run; an agent without any pays nothing for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any

from taoloop.core.trace import Trace
from taoloop.errors import ConfigError
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.tools.tool import Tool

if TYPE_CHECKING:
    from taoloop.runtime.engine.hook_calls import HookCalls
    from taoloop.runtime.output_type import OutputValidator


def hooks_of(
    settings: AgentSettings, trace: Trace, validator: OutputValidator | None
) -> Callable[..., HookCalls] | None:
    """Makes what asks the hooks in a run; None where there are none."""
    if not settings.hooks and not settings.output_validators:
        return None
    from taoloop.runtime.engine.hook_calls import HookCalls  # noqa: PLC0415  # few agents have hooks

    return partial(HookCalls, trace, settings.hooks, settings.output_validators, validator=validator)


def require_hooks(settings: AgentSettings, tools: Iterable[Tool]) -> None:
    """Refuse hooks that no run could use, before a run is begun or acquired.

    Raises:
        ConfigError: one is no `Hooks` or no function, or would come between a transactional tool and its outcome.
    """
    if not settings.hooks and not settings.output_validators:
        return
    from taoloop.runtime.engine.hooks import Hooks, overrides  # noqa: PLC0415  # few agents have hooks

    lists: dict[str, Any] = {"hooks": settings.hooks, "output_validators": settings.output_validators}
    for name, items in lists.items():  # whatever a caller without types passes
        if not isinstance(items, Collection) or isinstance(items, str | bytes):
            raise ConfigError(f"The {name} of an agent are {short_repr(items)}.", hint="Give a list.")
    for hook in lists["hooks"]:
        if not isinstance(hook, Hooks):
            raise ConfigError(
                f"The hook {hook!r} is none.",
                hint="Give objects of a subclass of taoloop.Hooks, such as hooks=[Log()].",
            )
    for check in lists["output_validators"]:
        if not callable(check):
            raise ConfigError(
                f"The output validator {check!r} is no function.", hint="Give functions of (ctx, output)."
            )
    tool = next((tool for tool in tools if tool.connection_parameter is not None), None)
    after = [hook for hook in settings.hooks if overrides(hook, "after_tool")]
    if tool is not None and after:
        raise ConfigError(
            f"The hook {type(after[0]).__name__!r} has after_tool, and the tool {tool.name!r} is transactional: its"
            " outcome is stored together with its effect.",
            hint="Take after_tool out of the hook, or make the tool not transactional.",
        )
