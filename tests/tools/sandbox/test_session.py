"""Python sessions: the variables of one call are there in the next, within one run and one name. Real processes."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from taoloop.errors import ToolError
from taoloop.tools.builtin.commands import sandbox_tools
from taoloop.tools.sandbox.confinement import SandboxLimits
from taoloop.tools.sandbox.sandbox import Sandbox
from taoloop.tools.sandbox.session import PythonSession, PythonSessions, SessionResult
from taoloop.tools.sandbox.session_driver import run_code
from taoloop.tools.tool import ToolContext

SANDBOXED = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

Run = Callable[..., Awaitable[SessionResult]]


def in_session(sandbox: Sandbox, *codes: str) -> list[SessionResult]:
    """The results of these pieces of code, run one after another in one session."""

    async def run() -> list[SessionResult]:
        return [await sandbox.run_in_session(code, run_id="r1", name="main") for code in codes]

    return asyncio.run(run())


@SANDBOXED
def test_variables_functions_and_imports_stay() -> None:
    first, second, third = in_session(
        Sandbox(), "import math\nx = 9", "def root(n):\n    return math.sqrt(n)", "root(x)"
    )
    assert (first.state, second.state, third.state) == ("started", "continued", "continued")
    assert (third.result.exit_code, third.result.stdout) == (0, "3.0\n")
    assert (first.result.stdout, second.result.stdout) == ("", "")


@SANDBOXED
def test_a_failed_call_leaves_the_session_as_it_is() -> None:
    _, failed, ended, after = in_session(Sandbox(), "x = 1", "x = 2\nmissing", "import sys\nsys.exit('no')", "print(x)")
    assert (failed.result.exit_code, failed.has_ended) == (1, False)
    assert 'File "<call 2>", line 2' in failed.result.stderr
    assert "missing\n" in failed.result.stderr  # the line itself
    assert "session.py" not in failed.result.stderr
    assert (ended.result.exit_code, ended.result.stderr) == (1, "no\n")
    assert after.result.stdout == "2\n"


@SANDBOXED
@pytest.mark.parametrize("code", ["import sys\nsys.stdout.close()", "import os\nos.close(1)"])
def test_a_stream_that_was_closed_is_open_for_the_next_call(code: str) -> None:
    closed, after = in_session(Sandbox(), f"x = 1\n{code}", "print(x)\nx + 1")
    assert not closed.has_ended
    assert (after.state, after.result.exit_code, after.result.stdout) == ("continued", 0, "1\n2\n")


@SANDBOXED
@pytest.mark.parametrize(
    ("code", "limit", "exit_code"),
    [("while True: pass", "time", None), ("import os\nos._exit(7)", None, 7), ("x = 'a' * 10**9", "memory", None)],
)
def test_what_ends_the_interpreter_ends_the_session(code: str, limit: str | None, exit_code: int | None) -> None:
    limits = SandboxLimits(wall_s=1 if limit == "time" else 20, memory_bytes=300_000_000)
    code = "import resource\n" + code if limit != "memory" else "x = []\nwhile True: x.append(bytearray(10**7))"
    results = in_session(Sandbox(limits=limits), "x = 1", code, "print('x' in globals())")
    if limit == "memory":  # the kernel may refuse before the watch sees it: an exception then, and the session stays
        assert results[1].result.limit == "memory" or "MemoryError" in results[1].result.stderr
        return
    assert (results[1].result.limit, results[1].result.exit_code) == (limit, exit_code)
    assert results[1].has_ended
    assert (results[2].state, results[2].result.stdout) == ("started", "False\n")


@SANDBOXED
def test_sessions_of_other_names_and_other_runs_are_apart() -> None:
    sandbox = Sandbox()

    async def run() -> list[str]:
        outputs = []
        for run_id, name in (("r1", "a"), ("r1", "b"), ("r2", "a"), ("r1", "a")):
            code = "print(globals().get('seen', 'nothing'))\nseen = 'seen'"
            outputs.append((await sandbox.run_in_session(code, run_id=run_id, name=name)).result.stdout)
        return outputs

    assert asyncio.run(run()) == ["nothing\n", "nothing\n", "nothing\n", "seen\n"]


@SANDBOXED
def test_calls_of_one_session_run_one_after_another() -> None:
    sandbox = Sandbox()

    async def run() -> list[SessionResult]:
        codes = ["n = 0", *["n += 1\nprint(n)"] * 5]
        return await asyncio.gather(*(sandbox.run_in_session(code, run_id="r", name="a") for code in codes))

    printed = sorted(result.result.stdout for result in asyncio.run(run()) if result.result.exit_code == 0)
    assert printed[1:] == [f"{number}\n" for number in range(1, len(printed))]


@SANDBOXED
def test_a_cancelled_call_ends_the_session(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)

    async def run() -> SessionResult:
        call = asyncio.create_task(
            sandbox.run_in_session("x = 1\nopen('begun', 'w')\nwhile True: pass", run_id="r", name="a")
        )
        while not (tmp_path / "begun").exists():  # noqa: ASYNC110  # the condition is of another process
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return await sandbox.run_in_session("print('x' in globals())", run_id="r", name="a")

    result = asyncio.run(run())
    assert (result.state, result.result.stdout) == ("started", "False\n")


@SANDBOXED
def test_processor_time_is_counted_for_each_call() -> None:
    burn = "import time\nbegan = time.process_time()\nwhile time.process_time() - began < 0.15: pass"
    results = in_session(Sandbox(limits=SandboxLimits(cpu_s=0.4)), *[burn] * 4)
    assert [result.result.limit for result in results] == [None] * 4


@SANDBOXED
def test_a_session_without_calls_ends_and_the_next_call_starts_another() -> None:
    sandbox = Sandbox()
    sessions: list[PythonSession] = []

    def start() -> PythonSession:
        sessions.append(PythonSession(sandbox._session_process, sandbox.limits, idle_s=0.3))
        return sessions[-1]

    sandbox._sessions = PythonSessions(start)
    (first,) = in_session(sandbox, "x = 1")
    sessions[0].join()
    (second,) = in_session(sandbox, "print('x' in globals())")
    assert (first.state, second.state, second.result.stdout) == ("started", "started", "False\n")


@SANDBOXED
def test_the_session_that_was_not_used_for_the_longest_time_makes_room() -> None:
    sandbox = Sandbox()
    sandbox._sessions = PythonSessions(lambda: PythonSession(sandbox._session_process, sandbox.limits), at_most=2)

    async def states() -> list[str]:
        names = ("a", "b", "a", "c", "a", "b")
        return [(await sandbox.run_in_session("1", run_id="r", name=name)).state for name in names]

    assert asyncio.run(states()) == ["started", "started", "continued", "started", "continued", "started"]


@SANDBOXED
def test_code_that_closes_its_channel_is_bounded_by_the_time_limit() -> None:
    code = "import os\nfor fd in range(3, 256):\n    try:\n        os.close(fd)\n    except OSError:\n        pass"
    (result,) = in_session(Sandbox(limits=SandboxLimits(wall_s=2)), code)
    assert result.has_ended


def test_without_bubblewrap_a_session_is_refused() -> None:
    with pytest.raises(ToolError) as caught:
        in_session(Sandbox(program="/nowhere/bwrap"), "1")
    assert caught.value.code == "no_sandbox"


@SANDBOXED
def test_the_tool_says_what_became_of_the_session(tmp_path: Path) -> None:
    tool = sandbox_tools(tmp_path, limits=SandboxLimits(wall_s=1))["run_python"]

    async def call(code: str) -> dict[str, object]:
        values = tool.prepare({"code": code, "session": "main"}).values
        result: dict[str, object] = await tool.invoke(values, ToolContext(run_id="r"))
        tool.render(result)
        return result

    async def run() -> list[dict[str, object]]:
        return [await call("x = 5"), await call("x + 1"), await call("while True: pass"), await call("x")]

    started, continued, limited, lost = asyncio.run(run())
    assert started["session"] == "started"
    assert (continued["session"], continued["stdout"]) == ("continued", "6\n")
    assert limited["session_ended"] is True
    assert (lost["session"], lost["exit_code"]) == ("started", 1)


@pytest.mark.parametrize(
    ("code", "exit_code", "printed"),
    [
        ("1 + 1", 0, "2\n"),
        ("x = 1", 0, ""),
        ("None", 0, ""),
        ("'你好'", 0, "'你好'\n"),
        ("import sys\nsys.exit()", 0, ""),
        ("import sys\nsys.exit(3)", 3, ""),
        ("", 0, ""),
    ],
)
def test_the_driver_shows_the_value_of_the_last_line(
    code: str, exit_code: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_code(code, "<call 1>", {}) == exit_code
    assert capsys.readouterr().out == printed


def test_the_driver_shows_no_line_of_its_own_in_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_code("a b", "<call 1>", {}) == 1
    error = capsys.readouterr().err
    assert 'File "<call 1>", line 1' in error
    assert "ast.py" not in error
    assert "session_driver" not in error
