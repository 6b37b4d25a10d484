"""A time limit that costs nothing where there is nothing to wait for, and that no coroutine can evade.

`asyncio.timeout` cannot abandon a coroutine that ignores its cancellation, and a task of its own for every call would
cost more than the rest of a short call. So the coroutine runs in the caller's task, and `_resume` can abandon it.
"""

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
    has not ended is abandoned.

    The timer is started only when the coroutine really has to wait: a call that answers at once leaves no cancelled
    timer behind in the loop, which would keep it (and its memory) until its time (`benchmarks/overhead.py`).
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]  # what the coroutine returns
    limit = None if timeout_s is None else _Timer(timeout_s)
    try:
        result: T = await _resume(coroutine, awaited)
    except BaseException as error:
        is_late = limit is not None and limit.stop()
        if is_late and isinstance(error, asyncio.CancelledError | TimeoutError):
            raise late(timeout_s) from error
        raise
    if limit is not None:
        limit.stop()
    return result


@types.coroutine
def _resume(coroutine: Coroutine[Any, Any, Any], awaited: Any) -> Generator[Any, Any, Any]:
    """Run a coroutine from its first wait to its end, or until the grace time after a cancellation is over.

    A cancellation that is taken back, as time limits and scopes inside the coroutine do, ends the grace time.
    """
    task, grace = _current_task(), None
    cancellations = task.cancelling()
    try:
        while True:
            try:
                sent = yield awaited
            except asyncio.CancelledError as error:
                if grace is None:
                    grace = _Timer(GRACE_S)
                elif grace.expired:
                    raise
                awaited = coroutine.throw(error)
            except Exception as error:  # noqa: BLE001  # a failed wait belongs to the coroutine
                awaited = coroutine.throw(error)
            else:
                awaited = coroutine.send(sent)
            if grace is not None and task.cancelling() <= cancellations:
                grace.stop()
                grace = None
    except StopIteration as ended:
        return ended.value
    finally:
        if grace is not None:
            grace.stop()
        with contextlib.suppress(BaseException):  # an abandoned coroutine: nobody waits for what it raises now
            coroutine.close()


class _Timer:
    """Cancels the current task after `delay_s` seconds, unless it is stopped before."""

    __slots__ = ("_cancellations", "_handle", "_task", "expired")

    def __init__(self, delay_s: float) -> None:
        self._task, self.expired = _current_task(), False
        self._cancellations = self._task.cancelling()
        self._handle = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self.expired = True
        self._task.cancel()

    def stop(self) -> bool:
        """Stop it, once, and take its cancellation back; True if there is no other since it was started."""
        self._handle.cancel()
        return self.expired and self._task.uncancel() <= self._cancellations


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("A time limit needs a task to cancel.")
    return task
