"""`kill -9` at every boundary of a 12-action run, on SQLite: every run must reach the same end, with every effect once.

    python benchmarks/crash.py              ten times over; from the second round on the resumed process is killed too
    python benchmarks/crash.py --rounds 1   once
    python benchmarks/crash.py --kinds      once at the first boundary of each kind, as in CI

The run has reads, writes with a probe, idempotent and transactional ones, writes that only a person can tell of,
approvals and parallel calls. Real processes die by SIGKILL: after each event that is noted, before and after each
commit, and before and after each effect, question, probe and model call. Effects are counted in a database of their
own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import taoloop.journals.sqlite.transaction  # noqa: F401  # everything is loaded before the forks
from taoloop import (
    Agent,
    ApprovalAnswer,
    ApprovalRequest,
    JournalConnection,
    RunContext,
    ScriptedModel,
    SqliteJournal,
    Trace,
    tool,
)
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Observed
from taoloop.core.message import ModelReply
from taoloop.errors import RunNotFound
from taoloop.journals.base import Lease
from taoloop.runtime import runner
from taoloop.runtime.after.replay import replay

RUN = "r"
ACTIONS = 12


class Fate:
    """Counts the places that the process comes by, and ends it at one of them."""

    def __init__(self) -> None:
        self.deadly = 0
        self.passed: list[str] = []
        self._lock = threading.Lock()

    def passes(self, kind: str) -> None:
        """Come by a place of this kind where the process may die."""
        with self._lock:
            self.passed.append(kind)
            if len(self.passed) == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)


FATE = Fate()


class World:
    """Where effects happen: kept apart from the journal, and every one of them is written down."""

    path = Path()

    @classmethod
    def change(cls, name: str, key: str, *, once: bool = False) -> None:
        """Have the effect. With `once` a second one under the same key is none, as with an idempotent service."""
        FATE.passes("before the effect")
        with closing(sqlite3.connect(cls.path)) as connection, connection:
            if not (once and connection.execute("SELECT 1 FROM effect WHERE key = ?", (key,)).fetchone()):
                connection.execute("INSERT INTO effect VALUES (?, ?)", (name, key))
        connection.close()
        FATE.passes("after the effect")

    @classmethod
    def has(cls, key: str) -> bool:
        """Whether the effect of this key happened."""
        FATE.passes("before the look into the world")
        connection = sqlite3.connect(cls.path)
        try:
            return connection.execute("SELECT 1 FROM effect WHERE key = ?", (key,)).fetchone() is not None
        finally:
            connection.close()


@tool(tier="read")
async def look(n: int) -> str:
    """Look something up."""
    FATE.passes("in a read")
    return f"saw {n}"


def find_transfer(n: int, call: RunContext) -> str | bool:
    return f"transferred {n}" if World.has(call.idempotency_key) else False


@tool(tier="write", probe=find_transfer, parallel=True)
def transfer(n: int, *, call: RunContext) -> str:
    """Transfer an amount; the bank can be asked whether it did."""
    World.change(f"transfer {n}", call.idempotency_key)
    return f"transferred {n}"


@tool(tier="write", idempotent=True, parallel=True)
async def put(n: int, *, call: RunContext) -> str:
    """Put a value; the service knows the key."""
    World.change(f"put {n}", call.idempotency_key, once=True)
    return f"put {n}"


@tool(tier="write", parallel=True)
def mail(n: int, *, call: RunContext) -> str:
    """Send a mail; nobody but a person can tell whether it went out."""
    World.change(f"mail {n}", call.idempotency_key)
    return f"mailed {n}"


@tool(tier="write")
def book(n: int, db: JournalConnection) -> str:
    """Write a booking in the journal's own transaction."""
    FATE.passes("before a booking")
    db.execute("CREATE TABLE IF NOT EXISTS booking (n INTEGER)")
    db.execute("INSERT INTO booking VALUES (?)", (n,))
    FATE.passes("after a booking")
    return f"booked {n}"


TOOLS = (look, transfer, put, mail, book)


def _calls(*named: tuple[str, int]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": {"n": n}} for name, n in named]}


SCRIPT: list[Any] = [
    _calls(("look", 1), ("look", 2)),
    _calls(("transfer", 1)),
    _calls(("put", 1)),
    _calls(("book", 1)),
    _calls(("mail", 1)),
    _calls(("put", 2), ("transfer", 2), ("mail", 2)),
    _calls(("look", 3)),
    _calls(("book", 2), ("transfer", 3)),
    "all done",
]
EFFECTS = Counter(["transfer 1", "put 1", "book 1", "mail 1", "put 2", "transfer 2", "mail 2", "book 2", "transfer 3"])


class Model(ScriptedModel):
    async def complete(self, request: ModelRequest) -> ModelReply:
        FATE.passes("before a call of the model")
        return await super().complete(request)


class Journal(SqliteJournal):
    async def append(self, lease: Lease, events: Any, artifacts: Any = ()) -> None:
        facts = ", ".join(dict.fromkeys(type(event.fact).__name__ for event in events))
        FATE.passes(f"before a commit of {facts}")
        await super().append(lease, events, artifacts)
        FATE.passes(f"after a commit of {facts}")


def person(request: ApprovalRequest) -> ApprovalAnswer:
    """Allows every call; asked whether one happened, looks into the world."""
    FATE.passes("before an answer")
    if not request.doubt:
        return ApprovalAnswer(approved=True, by="ann")
    happened = World.has(f"{request.run_id}:{request.call_id}")
    return ApprovalAnswer(approved=True, by="ann", settle="happened" if happened else "repeat")


_NOTE = runner.Runner.note


def _note(self: runner.Runner, fact: Any) -> None:
    """The process may die after each event that is noted, also where several of them are one commit."""
    _NOTE(self, fact)
    FATE.passes(type(fact).__name__)


async def _go_on(folder: Path) -> tuple[Trace, bool]:
    async with Journal(folder / "runs.db") as journal:
        agent = Agent(
            model=Model(SCRIPT, strict=False), tools=TOOLS, journal=journal, approve=person, max_steps=ACTIONS
        )
        try:
            trace = Trace(RUN, await journal.load(RUN))
        except RunNotFound:
            trace = Trace(RUN)
        if not trace.events:
            await agent.run("Do it all.", run_id=RUN)
        elif trace.status != "completed":
            await agent.resume(RUN)
        return Trace(RUN, await journal.load(RUN)), (await journal.verify(RUN)).whole


def _process(folder: Path, deadly: int) -> bool:
    """One process that begins the run or goes on with it; True if it came to its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            FATE.deadly, FATE.passed, World.path = deadly, [], folder / "world.db"
            trace, whole = asyncio.run(_go_on(folder))
            (folder / "end.json").write_text(json.dumps(_end(folder, trace, whole)))
            code = 0
        except Exception:  # noqa: BLE001  # a child must not go on in its parent's code
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    if status != 0:
        raise SystemExit(f"a process ended with {status} at boundary {deadly}: {folder}")
    return True


def _end(folder: Path, trace: Trace, whole: bool) -> dict[str, Any]:
    """What the run came to, and what is wrong with it."""
    effects: Counter[str] = Counter()
    for path, query in (
        (folder / "world.db", "SELECT name FROM effect"),
        (folder / "runs.db", "SELECT n FROM booking"),
    ):
        connection = sqlite3.connect(path)
        try:
            effects.update(f"book {row[0]}" if isinstance(row[0], int) else row[0] for row in connection.execute(query))
        finally:
            connection.close()
    observed = [event.fact for event in trace.events if isinstance(event.fact, Observed)]
    answer = trace.finished.answer if trace.finished is not None else None
    return {
        "same": trace.status == "completed"
        and answer == "all done"
        and len(observed) == ACTIONS
        and effects == EFFECTS,
        "twice": sum((effects - EFFECTS).values()),
        "lost": sum((EFFECTS - effects).values()),
        "failed": sum(not fact.ok for fact in observed),
        "replays": whole and all(one.same for one in replay(trace)),
        "passed": FATE.passed,
    }


def _life(where: Path, boundaries: list[int]) -> tuple[dict[str, Any], int]:
    """One run, killed at these boundaries of its processes one after the other; what it came to, and its deaths."""
    folder = Path(tempfile.mkdtemp(dir=where))
    with closing(sqlite3.connect(folder / "world.db")) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE effect (name TEXT, key TEXT)")
    connection.close()
    deaths = 0
    for deadly in [*boundaries, 0]:
        if _process(folder, deadly):
            break
        deaths += 1
    end: dict[str, Any] = json.loads((folder / "end.json").read_text())
    if end["same"] and not end["failed"] and end["replays"]:
        shutil.rmtree(folder)
    else:
        print(f"look at {folder}: {boundaries} {end}", file=sys.stderr)
    return end, deaths


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--kinds", action="store_true", help="only the first boundary of each kind, once")
    options = parser.parse_args()
    runner.Runner.note = _note  # type: ignore[method-assign]
    chance = random.Random(2026)  # noqa: S311  # the same every time
    where = Path(tempfile.mkdtemp(prefix="taoloop-crash-"))
    began = time.monotonic()
    whole, _ = _life(where, [])
    kinds: list[str] = whole["passed"]
    boundaries = len(kinds)
    chosen = [kinds.index(kind) + 1 for kind in dict.fromkeys(kinds)] if options.kinds else range(1, boundaries + 1)
    totals: Counter[str] = Counter()
    for number in range(1 if options.kinds else options.rounds):
        for boundary in chosen:
            later = [chance.randint(1, boundaries) for _ in range(min(number, 2))]
            end, deaths = _life(where, [boundary, *later])
            totals.update(runs=1, deaths=deaths, other=not end["same"], unlike=not end["replays"])
            totals.update({name: end[name] for name in ("twice", "lost", "failed")})
    print(f"actions: {ACTIONS}")
    print(f"boundaries: {boundaries}")
    print(f"kinds: {len(set(kinds))}")
    print(f"rounds: {1 if options.kinds else options.rounds}")
    print(f"runs: {totals['runs']}")
    print(f"processes killed: {totals['deaths']}")
    print(f"runs with another end: {totals['other']}")
    print(f"effects twice: {totals['twice']}")
    print(f"effects lost: {totals['lost']}")
    print(f"wrong 'it failed' told to the model: {totals['failed']}")
    print(f"runs that do not replay or verify: {totals['unlike']}")
    print(f"seconds: {time.monotonic() - began:.1f}")
    wrong = whole["failed"] or totals["other"] or totals["twice"] or totals["lost"] or totals["failed"]
    if not wrong and not totals["unlike"]:
        shutil.rmtree(where)
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
