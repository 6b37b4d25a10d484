"""What dead processes left, told and taken up on start; what is alive is left alone. Real processes, kill -9.

A tool that waits for a file holds a run.
"""

from __future__ import annotations

import signal
import sys

import pytest
from tests.cli.commands.test_run_stopping import held
from tests.shell import Shell, call, until, until_true


def killed(tao: Shell, tool: str = "wait_for") -> str:
    """A run whose process was killed in the middle of a call."""
    process = tao.start(*held(tao, tool))
    run_id: str = until(process, "action_requested" if tool == "wait_for" else "action_started")[0]["run_id"]
    process.kill()
    process.communicate(timeout=30)
    return run_id


def statuses(tao: Shell) -> dict[str, str]:
    return {row["run_id"]: row["status"] for row in tao("runs", "--json", code=0).events}


def test_a_run_tells_what_was_left_and_leaves_it(tao: Shell) -> None:
    left = killed(tao)
    ran = tao("run", "x", "--model", tao.script("y", name="other.yaml"), "--json", code=0)
    assert ran.one_line.startswith("tao: 1 run was left unfinished by a process that died.")
    assert ran.one_line.endswith("tao recover")  # the database is the one of the environment
    assert {event["run_id"] for event in ran.events} == {ran.events[0]["run_id"]}
    assert statuses(tao)[left] == "running"
    other = str(tao.folder / "other.db")
    assert tao("run", "x", "--model", "scripted:other.yaml", "--db", other, code=0).err == ""
    elsewhere = tao("run", "x", "--model", "scripted:other.yaml", "--db", str(tao.folder / "runs.db"), TAOLOOP_DB=other)
    assert elsewhere.one_line.endswith(f"tao recover --db {tao.folder / 'runs.db'}")


def test_what_a_live_process_is_at_work_on_is_not_told(tao: Shell) -> None:
    process = tao.start(*held(tao, "wait_for"))
    until(process, "action_requested")
    assert tao("run", "x", "--model", tao.script("y", name="other.yaml"), code=0).err == ""
    assert tao("recover", "--after", "0", code=0).out == ""
    (tao.folder / "go").touch()
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_with_recover_the_runs_of_the_same_agent_go_on_first(tao: Shell) -> None:
    left = killed(tao)
    tao.write("plain.yaml", "model: scripted:other.yaml\n")
    tao.script("y", name="other.yaml")
    (tao.folder / "go").touch()
    foreign = tao("run", "x", "--agent", "plain.yaml", "--recover", "--json", code=0)
    assert foreign.one_line.endswith("tao recover")
    tao.script(call("wait_for", name="go"), "done")
    own = tao("run", "hold", "--agent", "agent.yaml", "--recover", "--json", code=0)
    assert own.one_line.startswith(f"tao: run {left}, left unfinished, is now completed")
    assert left not in {event["run_id"] for event in own.events}
    assert statuses(tao)[left] == "completed"


def test_an_agent_file_can_ask_for_it(tao: Shell) -> None:
    left = killed(tao)
    (tao.folder / "go").touch()
    with (tao.folder / "agent.yaml").open("a") as file:
        file.write("recover_on_start: true\n")
    own = tao("run", "hold", "--agent", "agent.yaml", "--json", code=0)
    assert "is now completed" in own.one_line
    assert statuses(tao)[left] == "completed"


@pytest.mark.skipif(sys.platform != "linux", reason="no other system identifies the process")
def test_a_run_that_a_live_process_drives_is_taken_over_once_that_is_ended(tao: Shell) -> None:
    process = tao.start(*held(tao, "wait_for"))
    run_id = until(process, "action_requested")[0]["run_id"]
    for command in (["resume", run_id], ["run", "--resume", run_id], ["resume", run_id, "--take-over"]):
        refused = tao(*command, code=14)
        assert f"the process {process.pid} is working on it" in refused.one_line
        assert "--kill-holder" in refused.one_line
        assert refused.out == ""
    second = tao.start("resume", run_id, "--kill-holder", "--json")
    until(second, "resumed")
    assert process.poll() is not None
    (tao.folder / "go").touch()
    out, _ = second.communicate(timeout=30)
    process.communicate(timeout=30)
    assert second.returncode == 0
    assert '"status":"completed"' in out
    assert tao("replay", run_id, code=0).err == ""


def test_take_over_and_recover_stand_where_they_mean_something(tao: Shell) -> None:
    assert "--resume" in tao("run", "x", "--take-over", code=2).err
    assert "tao recover" in tao("run", "--resume", "x", "--recover", code=2).err


@pytest.mark.skipif(sys.platform != "linux", reason="no other system identifies the process")
def test_a_process_that_is_only_stopped_keeps_its_run(tao: Shell) -> None:
    old = tao.start(*held(tao, "wait_for"))
    run_id = until(old, "action_requested")[0]["run_id"]
    old.send_signal(signal.SIGSTOP)
    assert f"the process {old.pid} is working on it" in tao("resume", run_id, "--take-over", code=14).one_line
    assert tao("recover", "--dry-run", code=0).out == ""
    old.kill()
    old.communicate(timeout=30)
    assert run_id in tao("recover", "--dry-run", code=0).out


def test_several_processes_that_start_at_once_go_on_with_it_once(tao: Shell) -> None:
    left = killed(tao)
    tao.script({"tool_calls": [{"name": "wait_for", "args": {"name": "go"}}]}, "done")
    (tao.folder / "go").touch()
    started = [tao.start("recover", "--json") for _ in range(4)]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in started]
    assert [code for _, _, code in ended] == [0, 0, 0, 0], ended
    assert sum('"completed"' in out for out, _, _ in ended) == 1
    events = tao("show", left, "--json", code=0).events
    assert sum(event["kind"] == "resumed" for event in events) == 1
    assert sum(event["kind"] == "observed" for event in events) == 1


def test_a_child_of_a_dead_process_does_not_keep_its_runs(tao: Shell) -> None:
    tao.write(
        "breeding.py",
        "import os, sys, time\nfrom taoloop import tool\n\n"
        "@tool(tier='read')\n"
        "def breed() -> str:\n"
        "    'Fork a child that lives on.'\n"
        "    if os.fork() == 0:\n"
        "        while not os.path.exists('go'):\n"
        "            time.sleep(0.02)\n"
        "        os._exit(0)\n"
        "    while True:\n"
        "        open('bred', 'w').close()\n"
        "        time.sleep(0.02)\n",
    )
    tao.script(call("breed"), "done")
    process = tao.start("run", "x", "--model", "scripted:script.yaml", "--tools", "breeding:breed", "--json")
    run_id = until(process, "action_requested")[0]["run_id"]
    try:
        until_true(process, "the child", (tao.folder / "bred").exists)
        assert tao("recover", "--dry-run", code=0).out == ""
        process.kill()
        process.wait(timeout=30)  # not for its output, which the child has open
        assert run_id in tao("recover", "--dry-run", code=0).out
    finally:
        process.kill()
        (tao.folder / "go").touch()
        process.communicate(timeout=30)


def test_the_file_of_locks_is_as_private_as_the_database(tao: Shell) -> None:
    tao("run", "x", "--model", tao.script("y"), code=0)
    modes = {name: (tao.folder / name).stat().st_mode & 0o777 for name in ("runs.db", "runs.db-held")}
    assert modes == {"runs.db": 0o600, "runs.db-held": 0o600}
    assert (tao.folder / "runs.db-held").read_bytes() == b""
