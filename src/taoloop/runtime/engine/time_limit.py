"""A time limit that costs nothing where there is nothing to wait for, and that no coroutine can evade."""

from __future__ import annotations

import asyncio
import contextlib
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")

Late = Callable[[float | None], Exception]
"""Makes the error for a coroutine that was too slow, from its limit in seconds."""

GRACE_S = 2.0
"""How many seconds a cancelled coroutine may take to clean up."""


async def within(timeout_s: float | None, coroutine: Coroutine[Any, Any, T], late: Late) -> T:
    """The result of `coroutine`, or `late(timeout_s)` raised once it has waited `timeout_s` seconds (None: no limit).

    A coroutine that is cancelled, by the limit or from outside, may clean up for `GRACE_S` seconds; one that still
    has not ended is abandoned. It runs in the caller's task, up to its first wait without a timer: a call that
    answers at once leaves no cancelled timer behind in the loop (`benchmarks/overhead.py`).
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]  # what the coroutine returns
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit, asyncio.timeout(None) as grace:
            return await _resume(coroutine, awaited, grace)  # type: ignore[no-any-return]  # likewise
    except TimeoutError as error:
        if limit.expired():
            raise late(timeout_s) from error
        raise


@types.coroutine
def _resume(coroutine: Coroutine[Any, Any, Any], awaited: Any, grace: asyncio.Timeout) -> Generator[Any, Any, Any]:
    """Run a coroutine from its first wait to its end, or until `grace` is over, which begins with a cancellation.

    A cancellation that is taken back, as time limits and scopes inside the coroutine do, ends the grace time.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    cancellations = task.cancelling() if task else 0
    try:
        while True:
            try:
                sent = yield awaited
            except asyncio.CancelledError as error:
                if grace.expired():
                    raise
                if grace.when() is None:
                    grace.reschedule(loop.time() + GRACE_S)
                awaited = coroutine.throw(error)
            except Exception as error:  # noqa: BLE001  # a failed wait belongs to the coroutine
                awaited = coroutine.throw(error)
            else:
                awaited = coroutine.send(sent)
            if grace.when() is not None and task and task.cancelling() <= cancellations:
                grace.reschedule(None)
    except StopIteration as ended:
        return ended.value
    finally:
        with contextlib.suppress(BaseException):  # an abandoned coroutine: nobody waits for what it raises now
            coroutine.close()
