"""Calls that failed for now, made again as often as the tool says, with a pause that doubles; attempts are recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from taoloop.core.events import ActionStarted
from taoloop.core.trace import Trace
from taoloop.runtime.engine.tool_execution import Outcome
from taoloop.strategies.termination import remaining_s
from taoloop.tools.tool import Tool


async def retried(
    tool: Tool,
    call_id: str,
    key: str,
    outcome: Outcome,
    trace: Trace,
    begin: Callable[[ActionStarted], Awaitable[None]],
    again: Callable[[int], Awaitable[Outcome]],
) -> Outcome:
    """The outcome of the last attempt at a call; `outcome` is that of the first one in this process.

    Another attempt follows an error that is retryable, as long as the run has calls and time left. `begin` records that
    it starts, and why, before `again` makes it. An effect that gave no result in time is not repeated here: whether it
    happened is in doubt.
    """
    attempt, limit = max(1, trace.calls[call_id].attempts), trace.limits.max_tool_calls
    for number in range(tool.retries):
        error = outcome.observed.error
        if error is None or not error.retryable or (outcome.is_lost and not tool.card.reads_only):
            break
        wait_s, left_s = tool.backoff_s * 2.0**number, remaining_s(trace, None)
        if (limit is not None and trace.tool_calls >= limit) or (left_s is not None and left_s <= wait_s):
            break
        if wait_s:
            await asyncio.sleep(wait_s)
        attempt += 1
        reason = f"{error.code}: {error.message}"
        await begin(ActionStarted(call_id=call_id, idempotency_key=key, attempt=attempt, after=reason))
        outcome = await again(attempt)
    return outcome
