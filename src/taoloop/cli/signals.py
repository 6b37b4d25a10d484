"""Signals: they stop a run cleanly, and end or reload a server. A reader that left stops a run, too."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Any, Self, TypeVar

from taoloop.cli import exit_codes as exits
from taoloop.cli.translation import translate
from taoloop.cli.ui.stdio import OutputError, print_stderr
from taoloop.core.events import AnyEvent
from taoloop.runtime.runner import Listener

T = TypeVar("T")

_SHOW_CURSOR = "\x1b[?25h"


@contextmanager
def signal_callbacks(callbacks: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Call these in the running event loop when their signals arrive; the handlers from before come back at the end.

    For the main thread. The event loops of Windows do not watch signals: there a handler of the process passes each
    one on to the loop, which it also wakes.
    """
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        for number, callback in callbacks.items():
            stack.callback(_add_handler(loop, number, callback))
        yield


def _add_handler(
    loop: asyncio.AbstractEventLoop, number: signal.Signals, callback: Callable[[], None]
) -> Callable[[], object]:
    """Install one handler; gives what removes it."""
    try:
        loop.add_signal_handler(number, callback)
    except NotImplementedError:
        before = signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(callback))
        return lambda: signal.signal(number, before)
    return lambda: loop.remove_signal_handler(number)


@contextmanager
def _woken_by_signals() -> Iterator[None]:
    """Wake the running event loop at each signal.

    The system may give a signal to a thread that a tool blocks. Its handler runs in the main thread all the same, but
    only once that has something to do.
    """
    loop = asyncio.get_running_loop()
    receiver, sender = socket.socketpair()
    with receiver, sender:
        for end in (receiver, sender):
            end.setblocking(False)
        try:
            loop.add_reader(receiver, receiver.recv, 4096)
        except NotImplementedError:  # the loop of Windows, whose thread gets the signals
            yield
            return
        before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(receiver)


def announce_stop() -> None:
    """Say on standard error that the first signal was heard, and what the second does."""
    print_stderr(translate("stopping… (Ctrl-C again to quit at once)"))


class SignalStopper:
    """Turns the first Ctrl-C or SIGTERM into a cancellation of the run, and the second into the end of the process.

    `code` is the exit code that the stop calls for, None while nothing has stopped the run. `lost` says why the
    output could not be written, where that stopped it.
    """

    def __init__(self, on_stop: Callable[[], None] | None = None) -> None:
        self.code: int | None = None
        self.lost: OutputError | None = None
        self._on_stop = on_stop
        self._task: asyncio.Task[Any] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._signalled)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def guard(self, listener: Listener) -> Listener:
        """A listener that stops the run where the output cannot be written, and is called no more once nobody reads."""

        def guarded_listener(event: AnyEvent) -> None:
            if self.code == exits.BROKEN_PIPE:
                return
            try:
                listener(event)
            except BrokenPipeError:
                self.stop(exits.BROKEN_PIPE)
            except OutputError as error:
                self.lost = error
                self.stop(exits.FOUND)

        return guarded_listener

    def drive(self, run: Coroutine[Any, Any, T]) -> T | None:
        """The result of a run, or None if it was stopped."""

        async def work() -> T | None:
            self._task = asyncio.current_task()
            if self._is_stopped():  # before it began
                run.close()
                return None
            try:
                with _woken_by_signals():
                    return await run
            except asyncio.CancelledError:
                if not self._is_stopped():
                    raise
                return None

        return asyncio.run(work())

    def _is_stopped(self) -> bool:
        return self.code is not None

    def stop(self, code: int) -> None:
        """Cancel the run; it writes down that it was stopped."""
        self.code = code
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        code = exits.INTERRUPTED if number == signal.SIGINT else exits.TERMINATED
        if self.code is not None:
            with suppress(OSError, ValueError):
                if sys.stderr.isatty():
                    os.write(2, _SHOW_CURSOR.encode())
            os._exit(code)
        self.stop(code)
        if self._on_stop is not None:
            self._on_stop()
