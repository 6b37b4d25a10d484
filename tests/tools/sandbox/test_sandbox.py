"""Programs in the sandbox, as an agent uses them. Real processes, in bubblewrap."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, ScriptedModel
from taoloop.tools.builtin.commands import COMMAND_TOOLS, sandbox_tools
from taoloop.tools.sandbox.confinement import SandboxLimits
from taoloop.tools.sandbox.process import ProcessResult
from taoloop.tools.sandbox.sandbox import Sandbox
from taoloop.tools.tool import ToolContext
from taoloop.tools.workspace.workspace import Workspace

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

HOLD = "import fcntl, time\nheld = open('held', 'w')\nfcntl.flock(held, fcntl.LOCK_EX)\n"


def done(running: Awaitable[ProcessResult]) -> ProcessResult:
    async def wait() -> ProcessResult:
        return await running

    return asyncio.run(wait())


def limits(**own: float) -> SandboxLimits:
    return SandboxLimits(**{"wall_s": 10.0, **own})  # type: ignore[arg-type]


def lock_is_free(path: Path) -> bool:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


async def until(condition: Callable[[], bool]) -> None:
    """Give the loop back until something is so; the test's own time is bounded by the sandbox's."""
    while not condition():  # noqa: ASYNC110  # the condition is of another process
        await asyncio.sleep(0)


def test_a_python_program_gives_its_output_and_exit_code(tmp_path: Path) -> None:
    code = "import sys\nprint('你好', 6 * 7)\nprint('oops', file=sys.stderr)\nsys.exit(3)"
    ended = done(Sandbox(tmp_path).run_python(code))
    assert (ended.exit_code, ended.stdout, ended.stderr) == (3, "你好 42\n", "oops\n")
    assert (ended.limit, ended.cut) == (None, ())


def test_a_traceback_names_the_line(tmp_path: Path) -> None:
    ended = done(Sandbox(tmp_path).run_python("x = 1\nprint(y)"))
    assert ended.exit_code == 1
    assert 'File "/sandbox/code.py", line 2' in ended.stderr
    assert "NameError" in ended.stderr


def test_a_script_of_the_shell_works_on_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("b\na\n")
    ended = done(
        Sandbox(tmp_path).run_command("pwd\nsort names.txt > sorted.txt\nmkdir -p deep/er && echo x > deep/er/f")
    )
    assert (ended.exit_code, ended.stdout) == (0, "/workspace\n")
    assert (tmp_path / "sorted.txt").read_text() == "a\nb\n"
    assert (tmp_path / "deep" / "er" / "f").read_text() == "x\n"


def test_modules_of_the_workspace_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("VALUE = 5")
    assert done(Sandbox(tmp_path).run_python("import mine; print(mine.VALUE)")).stdout == "5\n"
    assert not (tmp_path / "__pycache__").exists()


def test_without_a_workspace_each_program_has_an_empty_folder_of_its_own() -> None:
    sandbox = Sandbox()
    assert done(sandbox.run_command("echo x > a; ls")).stdout == "a\n"
    assert done(sandbox.run_command("ls; ls /tmp")).stdout == ""


def test_there_is_no_input_and_no_terminal() -> None:
    ended = done(Sandbox().run_python("try:\n    input()\nexcept EOFError:\n    print('none')\nopen('/dev/tty')"))
    assert ended.stdout == "none\n"
    assert "/dev/tty" in ended.stderr


def test_a_missing_program_is_an_exit_code_of_the_shell() -> None:
    ended = done(Sandbox().run_command("no-such-program"))
    assert ended.exit_code == 127
    assert "no-such-program" in ended.stderr


def test_processes_of_python_work() -> None:
    code = (
        "import multiprocessing as mp\n"
        "def double(x):\n    return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(2) as pool:\n        print(pool.map(double, [1, 2]))"
    )
    assert done(Sandbox(limits=limits()).run_python(code)).stdout == "[2, 4]\n"


def test_a_long_output_keeps_its_beginning_and_its_end() -> None:
    sandbox = Sandbox(limits=limits(output_bytes=100))
    ended = done(sandbox.run_python("print('first'); print('x' * 10_000); print('last')"))
    assert ended.exit_code == 0
    assert ended.cut == ("stdout",)
    assert ended.stdout.startswith("first\n")
    assert ended.stdout.endswith("last\n")
    assert "bytes left out" in ended.stdout
    assert len(ended.stdout) < 200


def test_programs_run_beside_each_other(tmp_path: Path) -> None:
    """Each waits for what the other writes."""
    sandbox = Sandbox(tmp_path, limits=limits())
    script = "echo x > {mine}; until [ -e {other} ]; do :; done; echo met"

    async def both() -> tuple[ProcessResult, ProcessResult]:
        return await asyncio.gather(
            sandbox.run_command(script.format(mine="a", other="b")),
            sandbox.run_command(script.format(mine="b", other="a")),
        )

    assert [ended.stdout for ended in asyncio.run(both())] == ["met\n", "met\n"]


def test_a_cancelled_call_ends_its_program_before_it_returns(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    held = tmp_path / "held"

    async def cancelled() -> None:
        call = asyncio.create_task(sandbox.run_python(HOLD + "open('begun', 'w')\ntime.sleep(60)"))
        await until(lambda: (tmp_path / "begun").exists() or call.done())
        assert not call.done()
        assert not lock_is_free(held)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert lock_is_free(held)

    asyncio.run(cancelled())


def test_a_call_that_is_cancelled_at_once_leaves_nothing_behind(tmp_path: Path) -> None:
    async def cancelled() -> None:
        call = asyncio.create_task(Sandbox(tmp_path).run_python(HOLD + "time.sleep(60)"))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancelled())
    assert lock_is_free(tmp_path / "held")


def test_a_killed_parent_takes_the_program_with_it(tmp_path: Path) -> None:
    code = (
        "import asyncio\nfrom taoloop.tools.sandbox.sandbox import Sandbox\n"
        f'program = {HOLD!r} + \'print(1)\\nopen("begun", "w")\\ntime.sleep(60)\'\n'
        f"asyncio.run(Sandbox({str(tmp_path)!r}).run_python(program))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])

    async def begun() -> None:
        await until(lambda: (tmp_path / "begun").exists() or parent.poll() is not None)

    asyncio.run(begun())
    parent.kill()
    assert parent.wait() < 0
    with (tmp_path / "held").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # waits for the end of who holds it


def test_nothing_stays_open_here_after_a_call(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, limits=limits(wall_s=0.3))
    done(sandbox.run_command("true"))
    before = sorted(Path("/proc/self/fd").iterdir())
    for script in ("true", "exit 5", "sleep 60"):
        done(sandbox.run_command(script))
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_more_folders_can_be_read_and_another_interpreter_taken(tmp_path: Path) -> None:
    data, work = tmp_path / "data", tmp_path / "work"
    data.mkdir()
    (data / "a.txt").write_text("read me")
    program = data / "python"
    program.write_text('#!/bin/sh\necho "other $1"\n')
    program.chmod(0o755)
    sandbox = Sandbox(work, readable=[data], python=program)
    ended = done(sandbox.run_command(f"cat {data}/a.txt; echo x > {data}/b.txt"))
    assert ended.stdout == "read me"
    assert not (data / "b.txt").exists()
    assert done(sandbox.run_python("print(1)")).stdout == "other /sandbox/code.py\n"


def test_the_tools_take_a_workspace_and_answer_as_their_cards_say(tmp_path: Path) -> None:
    tools = sandbox_tools(Workspace(tmp_path / "new", create=True), limits=limits(wall_s=0.3, output_bytes=10))
    for tool in (tools[name] for name in COMMAND_TOOLS):
        for example in tool.card.examples:
            values = tool.prepare(dict(example.args)).values
            result = asyncio.run(tool.invoke(values, ToolContext()))
            assert result.pop("backup")
            assert result == example.output
            tool.render(result)
    tool = tools["run_command"]
    result = asyncio.run(tool.invoke(tool.prepare({"command": "echo 0123456789abc; sleep 60"}).values, ToolContext()))
    assert (result["exit_code"], result["cut"]) == (None, ["stdout"])
    assert result["limit"] == "time: it was ended after 0.3 s"
    tool.render(result)


def test_an_agent_runs_a_program_in_its_workspace(tmp_path: Path) -> None:
    script: list[str | dict[str, Any]] = [
        {"tool_calls": [{"name": "run_python", "args": {"code": "open('out.txt', 'w').write('done'); print('ok')"}}]},
        "It is done.",
    ]
    agent = Agent(
        model=ScriptedModel(script),
        tools=["run_python", "read_file"],
        workspace=tmp_path,
        approved_tiers=("read", "draft", "write"),
    )
    assert agent.run_sync("write it").answer == "It is done."
    assert (tmp_path / "out.txt").read_text() == "done"
