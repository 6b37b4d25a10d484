"""A time limit that costs nothing where there is nothing to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar, cast

T = TypeVar("T")


async def within(timeout_s: float | None, coroutine: Coroutine[Any, Any, T], late: Callable[[], Exception]) -> T:
    """The result of `coroutine`, or `late()` raised once it has waited `timeout_s` seconds (None: no limit).

    The timer is armed only when the coroutine really has to wait: a call that answers at once leaves no cancelled
    timer behind in the loop, which would stay there (and keep its memory) until its time.
    """
    try:
        first = coroutine.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    try:
        async with asyncio.timeout(timeout_s) as deadline:
            return cast("T", await _Begun(coroutine, first))
    except TimeoutError as error:
        if deadline.expired():
            raise late() from error
        raise


class _Begun:
    """A coroutine that has run up to its first wait."""

    __slots__ = ("_coroutine", "_first")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], first: Any) -> None:
        self._coroutine, self._first = coroutine, first

    def __await__(self) -> Generator[Any, Any, Any]:
        coroutine, waits_for = self._coroutine, self._first
        while True:
            try:
                sent = yield waits_for
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001  # a cancellation or a failed wait belongs to the coroutine
                resume = partial(coroutine.throw, error)
            else:
                resume = partial(coroutine.send, sent)
            try:
                waits_for = resume()
            except StopIteration as done:
                return done.value
