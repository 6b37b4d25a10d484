"""The threads for blocking tools: nobody's call is begun late, none keeps the others waiting, a fork begins anew."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from taoloop import Agent, ToolError, tool
from taoloop.core.events import Observed
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.models.scripted import ScriptedModel
from taoloop.runtime.threads import WorkerThreads

GUARD_S = 30.0
"""Where a test would hang for ever without what it tests."""


class Held:
    """Calls that hold their threads until they are let go."""

    def __init__(self, pool: WorkerThreads) -> None:
        self._pool, self._tasks, self.go = pool, list[asyncio.Task[None]](), threading.Event()

    async def hold(self, count: int = 1) -> None:
        """Returns when so many more threads are held."""
        for _ in range(count):
            begun = threading.Event()
            self._tasks.append(asyncio.create_task(self._pool.run(partial(self._wait, begun))))
            await asyncio.sleep(0)
            begun.wait(GUARD_S)

    async def give_up(self) -> None:
        """The callers stop waiting; the threads go on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _wait(self, begun: threading.Event) -> None:
        begun.set()
        self.go.wait()


@contextmanager
def held(pool: WorkerThreads) -> Iterator[Held]:
    calls = Held(pool)
    try:
        yield calls
    finally:
        calls.go.set()


async def quick(pool: WorkerThreads) -> int:
    async with asyncio.timeout(GUARD_S):
        result = await pool.run(lambda: 5)
    assert isinstance(result, int)
    return result


async def refused(pool: WorkerThreads) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await quick(pool)
    return caught.value


def test_a_call_whose_caller_gave_up_before_it_began_never_begins() -> None:
    async def run() -> None:
        pool, begun = WorkerThreads(max_threads=1), list[str]()
        with held(pool) as busy:
            await busy.hold()
            waiting = asyncio.create_task(pool.run(partial(begun.append, "given up")))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await pool.run(partial(begun.append, "wanted"))
        assert begun == ["wanted"]

    asyncio.run(run())


def test_a_call_whose_loop_is_gone_before_it_began_never_begins() -> None:
    pool, begun = WorkerThreads(max_threads=1), list[str]()

    async def leave(busy: Held) -> None:
        await busy.hold()
        waiting = pool.run(partial(begun.append, "left"))
        waiting.send(None)  # queued; nobody will cancel it
        left.append(waiting)

    left: list[object] = []
    with held(pool) as busy:
        asyncio.run(leave(busy))
    asyncio.run(quick(pool))
    assert begun == []


def test_calls_that_hang_do_not_keep_others_from_a_thread() -> None:
    async def run() -> None:
        pool = WorkerThreads()
        with held(pool) as hung:
            await hung.hold(70)
            await hung.give_up()
            assert await quick(pool) == 5

    asyncio.run(run())


def test_calls_that_call_again_do_not_wait_for_one_another() -> None:
    """Each of 70 calls holds its thread until the inner call of all of them has returned."""
    pool, all_inside = WorkerThreads(), threading.Barrier(70)

    def outer() -> int:
        all_inside.wait(GUARD_S)
        return asyncio.run(quick(pool))

    async def run() -> None:
        assert await asyncio.gather(*(pool.run(outer) for _ in range(70))) == [5] * 70

    asyncio.run(run())


def test_without_a_free_thread_a_call_says_that_it_was_not_started() -> None:
    async def run() -> None:
        pool = WorkerThreads(max_threads=2, patience_s=0.0)
        with held(pool) as busy:
            await busy.hold(2)
            error = await refused(pool)
            assert (error.code, error.retryable) == ("no_free_thread", True)
            assert "not started" in error.message
            busy.go.set()
            await asyncio.gather(*busy._tasks)
            assert await quick(pool) == 5

    asyncio.run(run())


def test_a_call_that_was_refused_never_begins() -> None:
    async def run() -> None:
        pool, begun = WorkerThreads(max_threads=1, patience_s=0.0), list[str]()
        with held(pool) as busy:
            await busy.hold()
            with pytest.raises(ToolError):
                await pool.run(partial(begun.append, "refused"))
        await asyncio.gather(*busy._tasks)
        pool._patience_s = GUARD_S  # the thread is free only a moment after its call has ended
        await pool.run(partial(begun.append, "wanted"))
        assert begun == ["wanted"]

    asyncio.run(run())


def test_a_call_that_waited_for_a_thread_gets_one_when_it_is_free() -> None:
    async def run() -> None:
        pool = WorkerThreads(max_threads=2, patience_s=GUARD_S)
        with held(pool) as first, held(pool) as second:
            await first.hold()
            await second.hold()
            waiting = [asyncio.create_task(quick(pool)) for _ in range(3)]
            await asyncio.sleep(0)
            first.go.set()
            assert await asyncio.gather(*waiting) == [5, 5, 5]
            pool._patience_s = 0.0
            with held(pool) as third:
                await third.hold()  # in the thread of the first
                assert (await refused(pool)).code == "no_free_thread"  # no thread is thought to be free that is not

    asyncio.run(run())


def test_threads_are_used_again() -> None:
    async def run() -> None:
        pool, names = WorkerThreads(), set()
        for _ in range(50):
            names.add(await pool.run(lambda: threading.current_thread().name))
        assert len(names) == 1

    asyncio.run(run())


def test_where_the_system_has_no_more_threads_a_call_says_that_it_was_not_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def run() -> None:
        pool = WorkerThreads()
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", start)
            error = await refused(pool)
        assert (error.code, error.retryable) == ("no_free_thread", True)
        assert "can't start new thread" in error.message
        assert await quick(pool) == 5

    asyncio.run(run())


def test_a_run_sees_it_as_an_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = WorkerThreads(max_threads=0, patience_s=0.0)
    monkeypatch.setattr("taoloop.runtime.engine.tool_execution.POOL", pool)

    @tool(tier="read")
    def five() -> int:
        """Five."""
        return 5

    call = ModelReply(tool_calls=(ToolCallText(name="five", arguments="{}", id="c1"),))
    result = Agent(model=ScriptedModel([call, ModelReply(text="done")]), tools=[five]).run_sync("t")
    (observed,) = (event.fact for event in result.trace.events if isinstance(event.fact, Observed))
    assert observed.error is not None
    assert (observed.error.code, observed.error.retryable) == ("no_free_thread", True)


SCRIPT = """
import asyncio, os, signal
from taoloop.runtime.threads import POOL

async def call():
    return await POOL.run(lambda: "ran")

async def several():
    return await asyncio.gather(*(call() for _ in range(5)))

asyncio.run(several())
with POOL._lock:  # as when another thread is about to begin a call
    child = os.fork()
    if not child:
        signal.alarm(20)  # only where it would hang for ever
        print(asyncio.run(several()), flush=True)
        os._exit(0)
print(os.waitpid(child, 0)[1], asyncio.run(call()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [str(["ran"] * 5), "0 ran"]
