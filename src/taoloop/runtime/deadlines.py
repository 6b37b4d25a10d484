"""Time limits of many calls at once: those that are due at about the same time share one timer of the event loop.

A timer of its own for every call costs more than all the rest of a short wait, and a loop keeps timers that were
cancelled for a while. Here the times are rounded up, by at most a thirtieth of the limit.
"""

from __future__ import annotations

import asyncio
import math
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

_FINENESS = 6  # a limit has 2**5 to 2**6 of the spans that its end is rounded up to
_FINEST = -20  # the shortest span, as a power of two: a microsecond


class Deadline:
    """Cancels the current task if the block takes longer than `timeout_s` seconds, and raises TimeoutError instead.

    As `asyncio.timeout`, but for the rounding, and that it is entered without waiting. None or infinite: no limit.
    """

    __slots__ = ("_cancelling", "_due_together", "_task", "_timeout_s", "expired")

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self.expired = False  # once it is: also after the block

    def __enter__(self) -> Deadline:
        """Begin to count."""
        self._due_together: set[Deadline] | None = None
        if self._timeout_s is not None and self._timeout_s < math.inf:
            task = asyncio.current_task()
            if task is None:
                raise RuntimeError("A deadline needs a task to cancel.")
            self._task, self._cancelling = task, task.cancelling()
            self._due_together = _due_after(self._timeout_s)
            self._due_together.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """End the count; the cancellation of a task that was late becomes a TimeoutError, unless others cancelled it.

        Raises:
            TimeoutError: it was late.
        """
        if self._due_together is None:
            return
        if not self.expired:
            self._due_together.discard(self)
        elif self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """The time is over."""
        self.expired = True
        self._task.cancel()


class _Here(threading.local):
    """The loop that runs in this thread, and what is due in it, by time."""

    loop: asyncio.AbstractEventLoop | None = None
    due: dict[float, set[Deadline]]


_HERE = _Here()


def _due_after(timeout_s: float) -> set[Deadline]:
    """All that is due together with what begins now and may take `timeout_s`."""
    loop = asyncio.get_running_loop()
    if _HERE.loop is not loop:
        _HERE.loop, _HERE.due = loop, {}
    span = math.ldexp(1.0, max(math.frexp(timeout_s)[1] - _FINENESS, _FINEST))
    when = math.ceil((loop.time() + timeout_s) / span) * span  # exact: a span is a power of two
    together = _HERE.due.get(when)
    if together is None:
        together = _HERE.due[when] = set()
        loop.call_at(when, _expire, _HERE.due, when)
    return together


def _expire(due: dict[float, set[Deadline]], when: float) -> None:
    for deadline in due.pop(when):
        deadline.expire()
