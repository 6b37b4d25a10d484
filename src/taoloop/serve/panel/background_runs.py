"""Runs that the process of the panel drives: those that a person resumed, forked or stopped there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.runtime.agent import Agent

_LOG = logging.getLogger("taoloop.panel")

AgentSource = Callable[[AgentSpec], Agent]
"""Makes the agent that continues a run from the description in its trace; raises a `ConfigError` where it cannot."""

Release = Callable[[], Coroutine[Any, Any, None]]
"""Gives an agent back that is no longer needed."""


class BackgroundRuns:
    """Drives runs in tasks. A run that fails leaves its reason for the next page that asks."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._errors: dict[str, str] = {}

    async def start(self, run_id: str, driving: Coroutine[Any, Any, Any], release: Release) -> bool:
        """Drive a run, unless this process does so already. Returns whether it begins now.

        `release` is called once its agent is no longer needed here.
        """
        if run_id in self._tasks:
            driving.close()
            await release()
            return False
        self._errors.pop(run_id, None)
        # in a context of its own: the language of a request is not that of the run
        task = asyncio.get_running_loop().create_task(_drive(driving, release), context=Context())
        self._tasks[run_id] = task
        task.add_done_callback(lambda task: self._end(run_id, task))
        return True

    def drives(self, run_id: str) -> bool:
        """Whether this process is at work on the run."""
        return run_id in self._tasks

    def error_of(self, run_id: str) -> str:
        """Why the last attempt to drive the run failed; empty: it did not."""
        return self._errors.get(run_id, "")

    async def stop(self, run_id: str) -> bool:
        """End a run that this process drives, as `stopped`; returns whether it drives it."""
        if (task := self._tasks.get(run_id)) is None:
            return False
        task.cancel()
        await asyncio.wait((task,))
        return True

    async def close(self) -> None:
        """Stop all of them."""
        for run_id in list(self._tasks):
            await self.stop(run_id)

    def _end(self, run_id: str, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(run_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._errors[run_id] = str(error)
            _LOG.warning("run %s could not be continued: %s", run_id, error)


async def _drive(driving: Coroutine[Any, Any, Any], release: Release) -> None:
    try:
        await driving
    finally:
        await release()
