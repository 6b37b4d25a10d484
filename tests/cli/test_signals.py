"""Signals reach the running event loop, on platforms whose loops can watch them and on those whose loops cannot."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVarTuple

import pytest
from tests.shell import until_line

from taoloop.cli.signals import signal_callbacks

Ts = TypeVarTuple("Ts")


class LoopOfWindows(asyncio.SelectorEventLoop):
    """An event loop that watches no signals, as those of Windows."""

    def add_signal_handler(self, sig: int, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        raise NotImplementedError

    def remove_signal_handler(self, sig: int) -> bool:
        raise NotImplementedError


@pytest.mark.parametrize("make_loop", [asyncio.SelectorEventLoop, LoopOfWindows])
def test_a_signal_calls_back_in_the_loop_and_the_handlers_before_come_back(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    calls: list[str] = []

    async def run() -> None:
        both = asyncio.Event()

        def record(name: str) -> None:
            calls.append(name)
            if len(calls) == 2:
                both.set()
            assert asyncio.get_running_loop() is loop

        loop = asyncio.get_running_loop()
        with signal_callbacks({signal.SIGINT: lambda: record("int"), signal.SIGTERM: lambda: record("term")}):
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            async with asyncio.timeout(10):
                await both.wait()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(run())
    assert sorted(calls) == ["int", "term"]
    assert {number: signal.getsignal(number) for number in before} == before


AS_ON_WINDOWS = """
import asyncio, sys

def add_signal_handler(*_):
    raise NotImplementedError

asyncio.SelectorEventLoop.add_signal_handler = add_signal_handler
sys.modules["uvloop"] = None
from taoloop.cli import main
main()
"""


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["serve", "agent.yaml", "--port", "0"], 0),
        pytest.param(["mcp", "--http", "127.0.0.1:0"], 143, marks=pytest.mark.nightly),
    ],
)
def test_a_server_ends_with_a_signal_where_loops_watch_none(tmp_path: Path, command: list[str], code: int) -> None:
    (tmp_path / "agent.yaml").write_text("model: offline\n")
    started = [sys.executable, "-c", AS_ON_WINDOWS, *command, "--db", "runs.db"]
    with subprocess.Popen(started, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        until_line(process, process.stderr, "erving")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == code
