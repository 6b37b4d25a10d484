"""Where connections live: shared, closed, and not of another process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from taoloop.errors import ToolTimeout
from taoloop.tools.mcp import McpSandbox, close_all, close_server, loop_thread as module, mcp_tools
from taoloop.tools.mcp.listing import RateMeter
from taoloop.tools.sandbox.sandbox import probe_sandbox

from .calling import Make, only, told, until, use
from .conftest import FAKE


def starts(log: Path) -> list[int]:
    return [int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("started")]


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_two_lists_of_the_same_settings_share_one_process(fake: Make, log: Path) -> None:
    server = fake({"log": str(log)})
    first, second = mcp_tools(server), mcp_tools(fake({"log": str(log)}, tiers={"echo": "read"}))
    assert use(only(first, "fake.echo"), text="a") + use(only(second, "fake.echo"), text="b") == "ab"
    assert len(starts(log)) == 1


def test_each_list_keeps_its_own_time_limit_for_calls(fake: Make) -> None:
    hasty, patient = (mcp_tools(fake({"call": "slow"}, timeout_s=limit)) for limit in (0.1, 20.0))
    with pytest.raises(ToolTimeout, match=r"within 0.1 s"):
        use(only(hasty, "fake.echo"), text="a")
    assert use(only(patient, "fake.echo"), text="b") == "b"


def test_threads_without_and_with_event_loops_share_it(fake: Make, log: Path) -> None:
    echo = only(mcp_tools(fake({"log": str(log)})), "fake.echo")
    found: list[str] = []
    threads = [threading.Thread(target=lambda n=n: found.append(use(echo, text=str(n)))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [str(n) for n in range(8)]
    assert len(starts(log)) == 1


def test_what_was_closed_is_opened_again_by_the_next_call(fake: Make, log: Path) -> None:
    server = fake({"log": str(log)})
    echo = only(mcp_tools(server), "fake.echo")
    close_server(server)
    assert not is_there(starts(log)[0])
    assert use(echo, text="a") == "a"
    close_all()
    assert use(echo, text="b") == "b"
    close_all()
    close_all()
    close_server(server)
    assert [is_there(pid) for pid in starts(log)] == [False] * 3


def test_a_close_ends_a_start_that_is_under_way(fake: Make) -> None:
    server = fake({"start": "hang"})
    thread = threading.Thread(target=lambda: mcp_tools(server))
    thread.start()
    asyncio.run(until(lambda: bool(module._current and module._current[0].connections)))
    close_server(server)
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_begins_anew_and_leaves_the_servers_of_its_parent_alone(fake: Make, log: Path) -> None:
    echo = only(mcp_tools(fake({"log": str(log)})), "fake.echo")
    assert use(echo, text="a") == "a"
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(writing, use(echo, text="in the child").encode())
            close_all()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "in the child"
    os.waitpid(child, 0)
    assert use(echo, text="b") == "b"
    assert [is_there(pid) for pid in starts(log)] == [True, False]


PROGRAM = """
import sys
from pathlib import Path
from taoloop.tools.mcp import McpServer, mcp_tools
server = McpServer(name="s", command=sys.executable, args=("-I", *sys.argv[2:]), pins=Path(sys.argv[1]))
assert mcp_tools(server).tools
{end}
"""


@pytest.mark.parametrize(
    "end", ["", pytest.param("import os, signal; os.kill(os.getpid(), signal.SIGINT)", marks=pytest.mark.nightly)]
)
def test_servers_end_with_the_process(tmp_path: Path, log: Path, end: str) -> None:
    argv = [sys.executable, "-c", PROGRAM.format(end=end), str(tmp_path / "pins"), str(FAKE)]
    plan = json.dumps({"log": str(log), "stay": True})
    done = subprocess.run([*argv, plan], capture_output=True, timeout=60, check=False)
    assert not [line for line in done.stderr.splitlines() if b"Warning" in line], done.stderr
    assert [is_there(pid) for pid in starts(log)] == [False]


def test_a_program_has_the_variables_that_it_is_given_and_few_others(
    fake: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "s3cret")
    env = json.loads(use(only(mcp_tools(fake({"call": "env"}, env={"KEY": "value"})), "fake.echo"), text=""))
    assert env["KEY"] == "value"
    assert "MY_SECRET" not in env
    assert set(env) <= {"KEY", "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"}


def test_a_program_is_started_in_its_folder(fake: Make, tmp_path: Path) -> None:
    assert use(only(mcp_tools(fake({"call": "where"}, folder=tmp_path)), "fake.echo"), text="") == str(tmp_path)


@pytest.mark.skipif(probe_sandbox().program is None, reason="there is no sandbox on this machine")
def test_a_program_in_the_sandbox_sees_its_workspace_and_its_variables(fake: Make, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    box = McpSandbox(workspace=tmp_path / "work", readable=(FAKE.parent, Path(sys.prefix), Path(sys.base_prefix)))
    server = fake({"call": "env"}, sandbox=box, env={"KEY": "value"})
    loaded = mcp_tools(server)
    assert loaded.tools, told(loaded)
    env = json.loads(use(only(loaded, "fake.echo"), text=""))
    assert (env["KEY"], env["HOME"], env["PWD"]) == ("value", "/tmp", "/workspace")  # noqa: S108  # of the sandbox
    where = only(mcp_tools(fake({"call": "where"}, name="two", sandbox=box)), "two.echo")
    assert use(where, text="") == "/workspace"


@pytest.mark.skipif(probe_sandbox().program is None, reason="there is no sandbox on this machine")
def test_a_workspace_that_does_not_exist_is_a_problem(fake: Make, tmp_path: Path) -> None:
    loaded = mcp_tools(fake(sandbox=McpSandbox(workspace=tmp_path / "gone")))
    assert "cannot be started in the sandbox" in told(loaded)


def test_the_meter_lets_bursts_pass_and_fills_again() -> None:
    now = [0.0]
    meter = RateMeter(burst=3, per_s=1, clock=lambda: now[0])
    assert [meter.takes() for _ in range(4)] == [True, True, True, False]
    now[0] = 1.5
    assert [meter.takes() for _ in range(2)] == [True, False]
