"""Ctrl-C, SIGTERM, kill -9 and a reader that leaves, with real processes.

A tool that waits for a file holds the run.
"""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from tests.shell import ENTRY, Shell, call, until, until_line, until_true

TOOLS = '''
import asyncio, pathlib, time
from taoloop import tool

async def _wait(name):
    while not pathlib.Path(name).exists():
        await asyncio.sleep(0.02)
    return "there"

@tool(tier="read", name="wait_for")
async def wait_for(name: str) -> str:
    """Wait until a file is there."""
    return await _wait(name)

@tool(tier="read")
def block_for(name: str) -> str:
    """Wait for a file in a thread."""
    while not pathlib.Path(name).exists():
        time.sleep(0.02)
    return "there"

@tool(tier="draft")
async def stubborn(name: str) -> str:
    """Wait for a file, whatever anybody says."""
    while True:
        try:
            return await _wait(name)
        except asyncio.CancelledError:
            print("no")

@tool(tier="write")
async def write_once(name: str) -> str:
    """Write a line, then wait for a file."""
    with open("effects.txt", "a") as file:
        file.write(name + "\\n")
    return await _wait(name)
'''


def held(tao: Shell, tool: str) -> list[str]:
    """Arguments for a run that this tool holds until the file `go` is there."""
    tao.write("waiting.py", TOOLS)
    tao.script(call(tool, name="go"), "done")
    tools = '["waiting:wait_for", "waiting:block_for", "waiting:stubborn", "waiting:write_once"]'
    tao.write("agent.yaml", f"model: scripted:script.yaml\ntools: {tools}\napproved_tiers: [write]\n")
    return ["run", "hold", "--agent", "agent.yaml", "--json"]


@pytest.mark.parametrize("tool", ["wait_for", "block_for"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_run_cleanly_and_it_can_be_resumed(
    tao: Shell, tool: str, number: signal.Signals, code: int
) -> None:
    process = tao.start(*held(tao, tool))
    run_id = until(process, "action_requested")[0]["run_id"]
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert '"kind":"finished","status":"stopped"' in out.splitlines()[-1]
    assert "user" not in json.loads(out.splitlines()[-1])["reason"]
    assert f"tao run --resume {run_id}" in err
    (tao.folder / "go").touch()
    assert tao("run", "--resume", run_id, "--json", code=0).events[-1]["answer"] == "done"
    assert tao("replay", run_id, code=0).err == ""


def test_a_second_ctrl_c_ends_the_process_at_once(tao: Shell) -> None:
    process = tao.start(*held(tao, "stubborn"))
    until(process, "action_started")
    process.send_signal(signal.SIGINT)
    until_line(process, process.stderr, "stopping")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130


def test_ctrl_c_while_a_command_is_still_being_loaded_is_quiet(tao: Shell) -> None:
    tao.write(
        "sitecustomize.py",
        "import sys\n\nclass Finder:\n    def find_spec(self, name, *_):\n"
        "        if name == 'click':\n            raise KeyboardInterrupt\n\nsys.meta_path.insert(0, Finder())\n",
    )
    ended = tao.fresh_process("runs", code=130, PYTHONPATH=str(tao.folder))
    assert ended.out + ended.err == ""


def test_a_killed_run_goes_on_without_a_second_effect(tao: Shell) -> None:
    process = tao.start(*held(tao, "write_once"))
    run_id = until(process, "action_started")[0]["run_id"]
    effects = tao.folder / "effects.txt"
    until_true(process, "the effect", lambda: effects.exists() and effects.read_text())
    process.kill()
    process.communicate(timeout=30)
    assert tao("runs", "--status", "running").out.startswith(run_id)
    waiting = tao("run", "--resume", run_id, "--json", code=8)
    assert [event["kind"] for event in waiting.events][-2:] == ["in_doubt", "paused"]
    known = tao("settle", run_id, "call_1", code=8)
    assert "it may have happened or not" in known.one_line
    assert tao("settle", run_id, "call_2", "--repeat", code=2).err
    settled = tao("settle", run_id, "call_1", "--happened", "--by", "ann", code=0)
    assert f"--resume {run_id}" in settled.one_line
    resumed = tao("run", "--resume", run_id, "--json", code=0)
    [observed] = [event for event in resumed.events if event["kind"] == "observed"]
    assert (observed["ok"], "ann" in observed["output"]) == (True, True)
    assert effects.read_text() == "go\n"
    assert tao("replay", run_id, code=0).err == ""


def test_what_a_dead_process_left_is_recovered(tao: Shell) -> None:
    process = tao.start(*held(tao, "write_once"))
    run_id = until(process, "action_started")[0]["run_id"]
    process.kill()
    process.communicate(timeout=30)
    assert (
        "no run has lost its process" in tao("recover", "--after", "3600", code=0).err
    )  # it was heard of a moment ago
    assert run_id in tao("recover", "--dry-run", code=0).out
    assert [row["status"] for row in tao("recover", "--json", code=0).events] == ["waiting"]
    assert tao("recover", code=0).out == ""


def test_a_run_whose_process_died_is_shown_as_lost_and_taken_up_without_a_warning(tao: Shell) -> None:
    process = tao.start(*held(tao, "wait_for"))
    run_id = until(process, "action_requested")[0]["run_id"]
    listed = tao("runs", code=0)
    assert "  running  " in listed.out
    assert "lost" not in listed.out + listed.err
    process.kill()
    process.communicate(timeout=30)
    listed = tao("runs", code=0)
    assert "  lost  " in listed.out
    assert "tao recover" in listed.err.splitlines()[-1]
    assert [row["status"] for row in tao("runs", "--json", code=0).events] == ["running"]
    (tao.folder / "go").touch()
    assert tao("run", "--resume", run_id, "--json", code=0).err == ""


def test_a_reader_that_leaves_stops_the_run_quietly(tao: Shell) -> None:
    args = held(tao, "wait_for")
    tao.script(call("wait_for", name="go"), call("wait_for", name="never"), "done")
    process = tao.start(*args)
    run_id = until(process, "run_started")[0]["run_id"]
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    (tao.folder / "go").touch()
    assert process.wait(timeout=30) == 141
    assert process.stderr.read() == ""
    process.stderr.close()
    assert run_id in tao("runs", "--status", "stopped", code=0).out


def test_a_reader_of_the_plain_view_that_leaves_stops_the_run_too(tao: Shell) -> None:
    args = held(tao, "wait_for")
    tao.script(call("wait_for", name="go"), call("wait_for", name="never"), "done")
    process = tao.start(*args[:-1])
    assert process.stdout is not None
    assert process.stderr is not None
    until_line(process, process.stdout, "Action")
    process.stdout.close()
    (tao.folder / "go").touch()
    assert process.wait(timeout=30) == 141
    assert process.stderr.read() == ""
    process.stderr.close()
    assert [row["status"] for row in tao("runs", "--json", code=0).events] == ["stopped"]


def test_head_of_every_command_is_quiet(tao: Shell, tmp_path: Path) -> None:
    run_id = tao("run", "x", "--model", tao.script("y"), "--json", code=0).events[0]["run_id"]
    line = f"'{ENTRY[0]}' -c '{ENTRY[2]}' show {run_id} --json | head -c 1"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=tao.env, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"{", b"")
