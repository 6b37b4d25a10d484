"""What an agent closes with itself, because it was handed over to it (`AgentSettings.owns`)."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from taoloop.errors import ConfigError


async def close_owned(owned: Sequence[object]) -> None:
    """Close each of them with its `aclose()` or `close()`, the last one first; all of them, whatever one raises.

    Raises:
        ConfigError: one has neither; the others are closed.
    """
    async with AsyncExitStack() as stack:
        for resource in owned:
            stack.push_async_callback(_close, resource)


async def _close(resource: Any) -> None:
    close = getattr(resource, "aclose", None) or getattr(resource, "close", None)
    if not callable(close):
        raise ConfigError(
            f"The agent owns a {type(resource).__name__}, which cannot be closed.",
            hint="Give only what has close() or aclose(): a journal, a model, a client.",
        )
    outcome = close()
    if inspect.isawaitable(outcome):
        await outcome
