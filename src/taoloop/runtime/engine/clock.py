"""The time of a run: clocks and ids as arguments, so that a run can be repeated exactly, and time limits.

A limit costs nothing where there is nothing to wait for, and no coroutine can evade it. `asyncio.timeout` cannot
abandon a coroutine that ignores its cancellation, and a task of its own for every call would cost more than the rest of
a short call. So the coroutine runs in the caller's task, and `_resume` can abandon it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
import types
import weakref
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar


class Clock(Protocol):
    """Where a runner gets its times from."""

    def now(self) -> float:
        """Seconds since the epoch (UTC), for the record."""
        ...

    def tick(self) -> float:
        """Seconds of a clock that never goes back, for durations."""
        ...


class SystemClock:
    """The machine's clocks."""

    now = staticmethod(time.time)
    tick = staticmethod(time.perf_counter)


def new_run_id(now: float) -> str:
    """A fresh run id: the time, for people and for sorting, and 32 random bits."""
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}-{random_hex(4)}"


def new_nonce() -> str:
    """A fresh nonce for the frames around untrusted text of one run."""
    return random_hex(6)


_DRAW_BYTES = 4096
_unused: list[bytes] = []  # what is left of the last draw; pop and append are atomic


def random_hex(size: int) -> str:
    """`size` random bytes of the operating system, in hex.

    They are drawn in advance. A draw is a system call that lets another thread take the interpreter's lock, so one for
    every id made a request of the gateway a twentieth dearer (`benchmarks/gateway.py`).
    """
    try:
        unused = _unused.pop()
    except IndexError:
        unused = b""
    if len(unused) < size:
        unused = os.urandom(max(size, _DRAW_BYTES))
    if len(unused) > size:
        _unused.append(unused[size:])
    return unused[:size].hex()


if hasattr(os, "register_at_fork"):  # a child would draw what its parent draws
    os.register_at_fork(after_in_child=_unused.clear)


T = TypeVar("T")

Late = Callable[[float | None], Exception]
"""Makes the error for a coroutine that was too slow, from its limit in seconds."""

GRACE_S = 2.0
"""How many seconds a cancelled coroutine may take to clean up."""


async def within(timeout_s: float | None, coroutine: Coroutine[Any, Any, T], late: Late) -> T:
    """The result of `coroutine`, or `late(timeout_s)` raised once it has waited `timeout_s` seconds (None: no limit).

    A coroutine that is cancelled, by the limit or from outside, may clean up for `GRACE_S` seconds; one that still
    has not ended is abandoned.

    The timer is started only when the coroutine really has to wait: a call that answers at once needs none
    (`benchmarks/overhead.py`).
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]  # what the coroutine returns
    limit = None if timeout_s is None else start_timer(timeout_s)
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
                    grace = start_timer(GRACE_S)
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


class WaitTimer:
    """Cancels the task that started it after some seconds, unless it is stopped before.

    A timer of the event loop costs more than the rest of a short wait. So one that is stopped is not cancelled: it
    stays in the loop for the next wait, and when its time comes it is set to the deadline that counts then
    (`benchmarks/many_agents.py`, `benchmarks/gateway.py`). What stays there refers to nothing of the run: a weak
    reference, and a context without variables.
    """

    __slots__ = ("__weakref__", "_cancellations", "_deadline", "_handle", "_loop", "_scheduled_at", "_task", "expired")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        self._handle: asyncio.Handle | None = None
        self._scheduled_at = 0.0  # of the handle; what `when()` of uvloop gives is rounded, or absent
        self.expired = False

    def start(self, delay_s: float) -> None:
        """Cancel the current task `delay_s` seconds from now."""
        self._task, self.expired = _current_task(), False
        self._cancellations = self._task.cancelling()
        self._deadline = self._loop.time() + delay_s
        if self._handle is not None and self._scheduled_at > self._deadline:
            self._handle.cancel()
            self._handle = None
        if self._handle is None:
            self._schedule()

    def _schedule(self) -> None:
        self._scheduled_at = self._deadline
        self._handle = self._loop.call_at(self._deadline, _expire, weakref.ref(self), context=Context())

    def expire(self) -> None:
        """The timer of the loop has come to its time: cancel the task, or wait for the deadline that counts now."""
        handle, self._handle = self._handle, None
        if self._task is None or handle is None:
            return
        if self._scheduled_at < self._deadline:
            self._schedule()
            return
        self.expired = True
        self._task.cancel()

    def stop(self) -> bool:
        """Stop it and take its cancellation back; True if the task has no other cancellation since the start."""
        task, self._task = self._task, None
        if task is None:
            return False
        if _idle.loop is self._loop:
            _idle.timers.append(self)
        return self.expired and task.uncancel() <= self._cancellations


class _IdleTimers(threading.local):
    """The timers of a thread's event loop that nobody waits with: as many as waited at the same time."""

    loop: asyncio.AbstractEventLoop | None = None
    timers: list[WaitTimer]


_idle = _IdleTimers()


def start_timer(delay_s: float) -> WaitTimer:
    """A timer that cancels the current task `delay_s` seconds from now; the caller stops it."""
    loop = asyncio.get_running_loop()
    if _idle.loop is not loop:
        _idle.loop, _idle.timers = loop, []
    timer = _idle.timers.pop() if _idle.timers else WaitTimer(loop)
    timer.start(delay_s)
    return timer


def _expire(timer: weakref.ref[WaitTimer]) -> None:
    if (waiting := timer()) is not None:
        waiting.expire()


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("A time limit needs a task to cancel.")
    return task
