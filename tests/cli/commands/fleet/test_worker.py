"""`tao submit`, `tao worker` and `tao cancel`, with a worker in a process of its own."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest
from tests.shell import call, until_line

if TYPE_CHECKING:
    from tests.shell import Shell


def statuses(tao: Shell) -> dict[str, str]:
    return {row["run_id"]: row["status"] for row in tao("runs", "--json", code=0).events}


def test_a_submitted_task_is_run_by_a_worker_that_ends_at_sigterm(tao: Shell) -> None:
    script = tao.script(call("calculator", expression="2+3"), "Five.")
    run_id = tao("submit", "Add 2 and 3.", "--model", script, "--priority", "1", code=0).out.strip()
    assert "queued" in tao("runs", code=0).out
    assert tao("recover", code=0).out == ""  # it is no run that lost its process
    worker = tao.start("worker")
    until_line(worker, worker.stderr, f"run {run_id}: completed")
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate()
    assert worker.returncode == 0
    assert "1 ended" in err
    assert statuses(tao) == {run_id: "completed"}


def test_a_run_is_cancelled_and_handed_over_again(tao: Shell) -> None:
    submitted = json.loads(tao("submit", "What is 2+2?", "--model", "offline", "--json", code=0).out)
    run_id = submitted["run_id"]
    assert submitted == {"run_id": run_id, "status": "running", "queue": "default"}
    tao("cancel", "last", "--note", "not yet", code=0)
    assert statuses(tao) == {run_id: "stopped"}
    assert "not yet" in tao("show", run_id).out
    tao("submit", "--resume", run_id, code=0)
    assert statuses(tao) == {run_id: "running"}


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("submit", "Hi.", "--engine", "redis"), "names no engine"),
        (("submit", "Hi.", "--engine", "postgres"), "needs a PostgreSQL journal"),
        (("worker", "--engine", "temporal://"), "names no engine"),
        (("submit",), "Give a TASK"),
        (("worker", "--agents", "json"), "has no agents"),
    ],
)
def test_what_cannot_work_is_refused_and_nothing_is_stored(tao: Shell, args: tuple[str, ...], text: str) -> None:
    assert text in tao(*args, code=2).err
    database = tao.folder / "runs.db"
    assert not database.exists() or b"run_started" not in database.read_bytes()


def test_a_temporal_that_is_not_there_is_named(tao: Shell) -> None:
    error = tao("worker", "--engine", "temporal://127.0.0.1:1/default", code=11).err
    assert "Temporal cannot be reached at 127.0.0.1:1" in error
