"""A time limit that costs nothing where there is nothing to wait for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from taoloop.runtime.deadlines import Deadline

T = TypeVar("T")

Late = Callable[[float | None], Exception]
"""Makes the error of what was late, of its limit in seconds."""

GRACE_S = 2.0
"""How long a coroutine that was told to stop may take for cleaning up."""


async def within(timeout_s: float | None, coroutine: Coroutine[Any, Any, T], late: Late) -> T:
    """The result of `coroutine`, or `late(timeout_s)` raised once it has waited `timeout_s` seconds (None: no limit).

    A coroutine that is told to stop may clean up for `GRACE_S` seconds; one that goes on all the same is abandoned.

    The timer is armed only when the coroutine really has to wait: a call that answers at once leaves no cancelled
    timer behind in the loop, which would stay there (and keep its memory) until its time.
    """
    try:
        first = coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # what the coroutine returns
    deadline = Deadline(timeout_s)
    try:
        with deadline:
            return await _Begun(coroutine, first)  # type: ignore[no-any-return]  # likewise
    except TimeoutError as error:
        if deadline.expired:
            raise late(timeout_s) from error
        raise


class _Begun:
    """A coroutine that has run up to its first wait."""

    __slots__ = ("_coroutine", "_first")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], first: Any) -> None:
        self._coroutine, self._first = coroutine, first

    def __await__(self) -> Generator[Any, Any, Any]:
        coroutine, waits_for = self._coroutine, self._first
        last_call: _LastCall | None = None
        try:
            while True:
                try:
                    sent = yield waits_for
                except GeneratorExit:
                    coroutine.close()
                    raise
                except asyncio.CancelledError as error:
                    if last_call is not None and last_call.was_made:
                        last_call.withdraw()
                        _abandon(coroutine)
                        raise
                    last_call = last_call or _LastCall()
                    waits_for = coroutine.throw(error)
                except BaseException as error:  # noqa: BLE001  # a failed wait belongs to the coroutine
                    waits_for = coroutine.throw(error)
                else:
                    waits_for = coroutine.send(sent)
                if last_call is not None and last_call.is_void():
                    last_call.timer.cancel()
                    last_call = None
        except StopIteration as done:
            return done.value
        finally:
            if last_call is not None:
                last_call.timer.cancel()


class _LastCall:
    """The second and last cancellation of the task, due when the time for cleaning up is over."""

    __slots__ = ("_task", "timer", "was_made")

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self.was_made = False
        self.timer = asyncio.get_running_loop().call_later(GRACE_S, self._make)

    def _make(self) -> None:
        if self._task is not None:
            self.was_made = True
            self._task.cancel()

    def is_void(self) -> bool:
        """True once the cancellation was taken back: the coroutine's own, as time limits and scopes inside it do."""
        return self._task is None or not self._task.cancelling()

    def withdraw(self) -> None:
        """Take our own cancellation back, so that only the one that came from outside counts."""
        if self.was_made and self._task is not None:
            self._task.uncancel()


def _abandon(coroutine: Coroutine[Any, Any, Any]) -> None:
    with contextlib.suppress(BaseException):  # it has had its chance; what it says now concerns nobody
        coroutine.close()
