"""One real process per command: that each is reached through the entry point and leaves with its exit code.

Everything else about the commands is tested in this process (`tests/shell.py`).
"""

import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.shell import WAIT_S, Shell, call, until_line, waiting

from taoloop.cli.app import cli

# Calls on a database with one run that waits for a person; the code, and what stands in the output or the error.
CALLS: dict[str, tuple[list[str], int, str]] = {
    "run": (["say it", "--model", "scripted:answer.yaml"], 0, "Answer: it"),
    "resume": (["last"], 8, "tao approvals"),
    "approvals": ([], 0, "write_file"),
    "approve": (["last", "call_9"], 2, "call_9"),
    "answer": (["last", "call_1", "yes"], 2, "is no question of the model"),
    "deny": (["last", "call_1"], 0, "call_1"),
    "settle": (["last", "call_1", "--happened"], 2, "call_1"),
    "recover": ([], 0, "no run"),
    "abandon": (["last"], 0, "abandoned"),
    "note": (["last", "a word"], 0, "note added to run"),
    "runs": ([], 0, "waiting"),
    "show": (["last"], 0, "Task: write"),
    "replay": (["last"], 0, "Task: write"),
    "fork": (["last", "--at", "99"], 2, "99"),
    "lessons": ([], 0, "no lessons"),
    "diff": (["last", "last"], 0, ""),
    "undo": (["last"], 0, "nothing to undo"),
    "eval": (["smok"], 2, "Did you mean 'smoke'"),
    "mark": (["last", "maybe"], 2, "maybe"),
    "costs": ([], 0, "usd"),
    "verify": (["last"], 0, "events"),
    "export": (["last", "-o", "run.jsonl"], 0, ""),
    "policy": (["explain", "last", "call_1"], 0, "Verdict: ask"),
    "tools": (["hammer"], 2, "no tool called 'hammer'"),
    "call": (["calculator", "--args", '{"expression": "6*7"}'], 0, "42"),
    "serve": (["none.yaml"], 2, "none.yaml"),
    "panel": (["--user", "ann"], 2, "NAME=ROLE"),
    "mcp": (["none:agent"], 2, "none"),
    "login": (["none.yaml"], 2, "none.yaml"),
    "models": ([], 0, "offline"),
    "doctor": ([], 0, "database"),
    "db": (["prune", "--runs", "1000", "--dry-run"], 0, ""),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    tao = Shell(tmp_path_factory.mktemp("prepared"))
    model = tao.script(call("write_file", path="a.txt", content="a"), "done")
    tao("run", "write", "--model", model, "--workspace", ".", code=8)
    tao.script("it", name="answer.yaml")
    return tao


QUICK = ("run", "deny", "approve", "serve", "doctor")
"""Commands that always run: a success, a change, two errors and a server; the others differ in their imports alone."""


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=() if command in QUICK else pytest.mark.nightly)
        for command in cli.list_commands(click.Context(cli))
    ],
)
def test_a_command_is_a_process_with_its_exit_code(prepared: Shell, tmp_path: Path, command: str) -> None:
    args, code, text = CALLS[command]
    ended = prepared.fresh_process(command, *args, TAOLOOP_DB=str(copy_of(prepared, tmp_path)), code=code)
    assert text in ended.out + ended.err
    assert "Traceback" not in ended.err


def test_a_forked_process_is_like_a_fresh_one_and_says_how_it_ended(prepared: Shell) -> None:
    for args in (("show", "last"), ("runs", "--unknown")):
        assert prepared.process(*args) == prepared.fresh_process(*args)
    with prepared.start("run", "-", stdin=subprocess.PIPE) as process:
        assert process.poll() is None  # it waits for its task
        process.kill()
        assert process.wait(timeout=WAIT_S) == -signal.SIGKILL


def copy_of(prepared: Shell, folder: Path) -> Path:
    """The database of the fixture, so that no command meets what another one did."""
    for file in prepared.folder.glob("runs.db*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder / "runs.db"


def test_a_text_that_never_comes_ends_the_wait_of_a_test_with_what_there_was() -> None:
    command = [sys.executable, "-c", "input('Your name? ')"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        with (
            pytest.raises(AssertionError, match=r"'May it run\?' did not come within 0.2 s: nothing"),
            waiting(process, "'May it run?'", lambda: "nothing", 0.2),
        ):
            process.wait()
        with pytest.raises(AssertionError, match="ended before a line with 'May it run"):
            until_line(process, process.stdout, "May it run?")
