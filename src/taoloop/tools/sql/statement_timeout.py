"""A statement in a thread of its own, which ends when its time is over or nobody waits for it any more."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from taoloop.tools.tool import run_in_thread

T = TypeVar("T")

PATIENCE_S = 1.5
"""How long a cancelled call waits for its statement to be undone; below what the runtime leaves for cleaning up."""

MARGIN_S = 1.0
"""How much later than its own limit a statement is interrupted from outside, in seconds."""


class StatementTimeout:
    """Says to a statement when it has to end, and interrupts it. The thread at work and the one that waits share it."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.deadline = time.monotonic() + timeout_s
        self.is_cancelled = False
        self._interrupt: Callable[[], object] | None = None
        self._lock = threading.Lock()

    @property
    def is_due(self) -> bool:
        """Whether the statement has to end."""
        return self.is_cancelled or time.monotonic() > self.deadline

    def fault_of(self, error: Exception, url: sa.URL, *, connecting: bool = False) -> TaoError:
        """What a driver raised meanwhile as an error of a tool."""
        return fault_of(
            error, url, timeout_s=self.timeout_s, is_cancelled=self.is_cancelled, connecting=connecting
        )

    def arm(self, interrupt: Callable[[], object] | None) -> None:
        """From now on `interrupt` ends what is under way; None: nothing is."""
        with self._lock:
            self._interrupt = interrupt
            missed = self.is_cancelled
        if missed and interrupt is not None:
            _quietly(interrupt)

    def now(self) -> None:
        """Time is over. Does not wait: an interrupt may have to ask the server first."""
        with self._lock:
            self.is_cancelled, interrupt = True, self._interrupt
        if interrupt is not None:
            threading.Thread(target=_quietly, args=(interrupt,), name="taoloop-sql-stop", daemon=True).start()


def _quietly(interrupt: Callable[[], object]) -> None:
    with contextlib.suppress(Exception):  # the statement may have ended, or the server: then nothing is left to stop
        interrupt()


async def run_statement(work: Callable[[StatementTimeout], T], timeout_s: float) -> T:
    """The result of `work(stop)`, run in a thread of its own.

    If the caller is cancelled, the statement is interrupted, and has `PATIENCE_S` seconds to be undone.

    Raises:
        ToolError: `no_free_thread`; the work was not begun.
    """
    stop = StatementTimeout(timeout_s)
    timer = asyncio.get_running_loop().call_later(timeout_s + MARGIN_S, stop.now)
    try:
        return await run_in_thread(partial(work, stop), stop.now, name="taoloop-sql", patience_s=PATIENCE_S)
    finally:
        timer.cancel()
