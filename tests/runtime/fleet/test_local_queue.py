"""The table of the local engine: what is due, who has claimed it, and what a void claim may do (nothing)."""

from __future__ import annotations

from pathlib import Path

import pytest

from taoloop.errors import JournalError
from taoloop.runtime.fleet.engine import Advanced
from taoloop.runtime.fleet.local_queue import LocalQueue, QueueCount, RunClaim

QUEUES = ("default",)


@pytest.fixture
def queue(tmp_path: Path) -> LocalQueue:
    return LocalQueue(tmp_path / "runs.db-queue")


def submit(queue: LocalQueue, *run_ids: str, at: float = 100.0, name: str = "default", priority: int = 3) -> None:
    for run_id in run_ids:
        queue.submit(run_id, at, name, priority, "")


def claim(queue: LocalQueue, now: float = 100.0, *, limit: int = 10, queues: tuple[str, ...] = QUEUES) -> list[str]:
    return [claim.run_id for claim in queue.claim(queues, limit, now, 10.0, ())]


def claim_one(queue: LocalQueue, now: float = 100.0) -> RunClaim:
    return queue.claim(QUEUES, 1, now, 10.0, ())[0]


def test_runs_are_claimed_once_by_priority_and_time_when_they_are_due(queue: LocalQueue) -> None:
    submit(queue, "late", at=90)
    submit(queue, "early", at=80)
    submit(queue, "urgent", at=99, priority=1)
    submit(queue, "future", at=101)
    submit(queue, "elsewhere", name="other")
    assert claim(queue, limit=2) == ["urgent", "early"]
    assert claim(queue) == ["late"]
    assert claim(queue, 101) == ["future"]
    assert claim(queue, queues=("other", "third")) == ["elsewhere"]


def test_a_run_that_is_known_stays_as_it_is(queue: LocalQueue) -> None:
    submit(queue, "r1", at=500)
    submit(queue, "r1", at=1)
    assert claim(queue) == []


def test_a_wake_during_a_turn_is_not_lost(queue: LocalQueue) -> None:
    submit(queue, "r1")
    first = claim_one(queue)
    queue.wake("r1", 100)
    assert claim(queue) == []  # it is being advanced
    queue.end(first, Advanced("waiting"), 100)
    second = claim_one(queue)
    queue.end(second, Advanced("waiting"), 100)
    assert claim(queue) == []
    queue.wake("r1", 100)
    queue.wake("r1", 100)
    assert claim(queue) == ["r1"]


def test_a_run_that_ended_is_forgotten_unless_it_was_woken_meanwhile(queue: LocalQueue) -> None:
    submit(queue, "r1")
    first = claim_one(queue)
    queue.wake("r1", 100)
    queue.end(first, Advanced("stopped"), 100)
    second = claim_one(queue)
    queue.end(second, Advanced("completed"), 100)
    assert queue.counts(100) == {}


def test_a_waiting_run_is_due_at_its_time(queue: LocalQueue) -> None:
    submit(queue, "r1")
    queue.end(claim_one(queue), Advanced("waiting", 150.0), 100)
    assert queue.next_at(QUEUES, ()) == 150
    assert claim(queue, 149) == []
    assert claim(queue, 150) == ["r1"]


def test_a_claim_that_is_over_changes_nothing(queue: LocalQueue) -> None:
    submit(queue, "r1")
    first = claim_one(queue)
    second = claim_one(queue, 111)  # the lease of the first is over
    assert queue.renew([first, second], 111, 10.0) == {second}
    queue.end(first, Advanced("completed"), 112)
    assert queue.standing([first, second]) == {second}
    queue.cancel("r1", 112)
    assert queue.standing([second]) == set()
    queue.end(second, Advanced("waiting"), 112)
    assert claim(queue, 112) == ["r1"]  # the cancel is looked at


def test_a_run_that_was_left_is_due_for_others_at_once(queue: LocalQueue) -> None:
    submit(queue, "r1")
    queue.end(claim_one(queue), Advanced("running"), 100)
    assert queue.claim(QUEUES, 1, 100, 10.0, ("r1",)) == []
    assert claim(queue) == ["r1"]


def test_it_counts_by_queue(queue: LocalQueue) -> None:
    submit(queue, "r1", "r2", priority=1)
    submit(queue, "r3", at=200)
    submit(queue, "r4", name="other")
    claim_one(queue)
    assert queue.counts(100) == {"default": QueueCount(1, 1, 1), "other": QueueCount(1, 0, 0)}


def test_another_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, and more than the header of a database is long" * 10)
    with pytest.raises(JournalError, match=r"notes\.txt"):
        LocalQueue(path)
    assert path.read_text().startswith("these are notes")
