"""Runs in the background: handles of this process, and those that attach by the journal alone."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from taoloop import Agent, MemoryJournal, RunHandle, ScriptedModel, SqliteJournal, attach, tool
from taoloop.errors import ConfigError, RunHeld, RunNotFound
from taoloop.journals.base import LockHolder

T = TypeVar("T")
CALL_SEND = {"tool_calls": [{"name": "send", "args": {"amount": 5}}]}
CALL = {"tool_calls": [{"name": "work", "args": {}}]}


class Gate:
    """A tool that waits until it is let go."""

    def __init__(self) -> None:
        self.entered, self.open = asyncio.Event(), asyncio.Event()

    def agent(self, journal: Any, *script: Any, **options: Any) -> Agent[Any, Any]:
        @tool(tier="read")
        async def work() -> str:
            """Work."""
            self.entered.set()
            await self.open.wait()
            return "done"

        return Agent(model=ScriptedModel([CALL, *script]), tools=[work], journal=journal, **options)


def drive(work: Callable[[], Awaitable[T]]) -> T:
    async def main() -> T:
        return await work()

    return asyncio.run(main())


def test_a_run_goes_on_in_the_background_and_gives_its_result() -> None:
    async def work() -> tuple[list[str], list[str], str | None]:
        gate = Gate()
        handle = gate.agent(MemoryJournal(), "All done.").start("Work.", run_id="r1")
        assert repr(handle) == "<RunHandle r1>"
        await gate.entered.wait()
        states: list[str] = [await handle.status()]
        gate.open.set()
        result = await handle.result()
        states.append(await handle.status())
        return states, [event.kind async for event in handle.events()], result.answer

    states, kinds, answer = drive(work)
    assert states == ["running", "completed"]
    assert (kinds[0], kinds[-1], answer) == ("run_started", "finished", "All done.")


def test_another_journal_on_the_same_file_follows_the_run_live(tmp_path: Path) -> None:
    async def work() -> tuple[list[int], Any]:
        gate, path = Gate(), tmp_path / "runs.db"
        own = gate.agent(path, '{"city": "Rome"}', output_type=dict[str, str])
        own.start("Work.", run_id="r1")
        await gate.entered.wait()
        other = SqliteJournal(path)
        await other.open()
        try:
            attached = await attach(other, "r1")
            seqs: list[int] = []
            async for event in attached.events():
                seqs.append(event.seq)
                gate.open.set()
            return seqs, (await attached.result()).output
        finally:
            await other.close()

    seqs, output = drive(work)
    assert seqs == list(range(len(seqs)))
    assert output == {"city": "Rome"}


ATTACHING = """
import asyncio, sys
from taoloop import SqliteJournal, attach

async def main():
    journal = SqliteJournal(sys.argv[1])
    await journal.open()
    attached = await attach(journal, "r1")
    print(await attached.status(), flush=True)
    async for event in attached.events():
        print(event.kind)
    print((await attached.result()).answer)
    await journal.close()

asyncio.run(main())
"""


def test_another_process_attaches_to_a_run_and_gets_its_answer(tmp_path: Path) -> None:
    async def work() -> list[str]:
        gate, path = Gate(), tmp_path / "runs.db"
        handle = gate.agent(path, "All done.").start("Work.", run_id="r1")
        await gate.entered.wait()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ATTACHING, str(path), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        lines = [(await process.stdout.readline()).decode().strip()]
        gate.open.set()  # the other process is attached, and the run still at work
        output, _ = await process.communicate()
        await handle.result()
        return [*lines, *output.decode().split("\n")]

    status, *kinds, answer, _ = drive(work)
    assert (status, kinds[0], kinds[-1], answer) == ("running", "run_started", "finished", "All done.")


def test_events_begin_after_a_seq_that_is_known() -> None:
    async def work() -> list[int]:
        gate = Gate()
        gate.open.set()
        own = gate.agent(MemoryJournal(), "Done.")
        run_id = (await own.run("Work.")).run_id
        return [event.seq async for event in (await own.attach(run_id)).events(after=2)]

    assert drive(work)[0] == 3


def test_a_handle_stops_its_run_which_can_be_resumed() -> None:
    async def work() -> tuple[bool, bool, str, str]:
        gate = Gate()
        own = gate.agent(MemoryJournal(), "Done.")
        handle = own.start("Work.", run_id="r1")
        await gate.entered.wait()
        stopped = await (await own.attach("r1")).stop()
        again = await handle.stop()
        result = await handle.result()
        gate.open.set()
        return stopped, again, result.status, (await own.resume("r1")).status

    assert drive(work) == (True, False, "stopped", "completed")


def test_the_run_of_another_process_is_not_stopped_from_here() -> None:
    async def work() -> RunHeld:
        gate, journal = Gate(), MemoryJournal()
        handle = gate.agent(journal, "Done.").start("Work.", run_id="r1")
        await gate.entered.wait()
        attached = await attach(Elsewhere(journal), "r1")
        with pytest.raises(RunHeld) as caught:
            await attached.stop()
        await handle.stop()
        return caught.value

    error = drive(work)
    assert "the process 4711" in error.message
    assert "end_process=True" in error.hint


class Elsewhere:
    """A journal whose runs another process drives."""

    def __init__(self, journal: MemoryJournal) -> None:
        self._journal, self.run_locks = journal, self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def holder(self, _run_id: str) -> LockHolder:
        return LockHolder(process=4711)


def test_a_run_without_a_process_is_no_reason_to_wait_for_ever() -> None:
    async def work() -> RunHeld:
        gate, journal = Gate(), MemoryJournal()
        gate.open.set()
        events = (await gate.agent(journal, "Done.").run("Work.", run_id="r1")).trace.events
        cut = MemoryJournal()
        lease = await cut.create("r1")
        await cut.append(lease, events[:2])
        with pytest.raises(RunHeld) as caught:
            await (await attach(cut, "r1")).result()
        return caught.value

    error = drive(work)
    assert "no process is at work on it" in error.message
    assert "tao resume r1" in error.hint


def test_a_run_that_waits_has_a_result_that_says_so() -> None:
    @tool(tier="write")
    def send(amount: int) -> str:
        """Send some."""
        return "sent"

    async def work() -> tuple[str, str]:
        script: list[Any] = [CALL_SEND, "unused"]
        own = Agent(model=ScriptedModel(script), tools=[send], journal=MemoryJournal())
        handle = own.start("Send it.", run_id="r1")
        first = await handle.result()
        return first.status, (await (await own.attach("r1")).result()).status

    assert drive(work) == ("waiting", "waiting")


def test_what_was_wrong_with_the_agent_is_raised_by_the_handle() -> None:
    async def work() -> None:
        handle: RunHandle[Any] = Agent(model=ScriptedModel(["a"])).start(" ")
        with pytest.raises(ConfigError, match="The task is"):
            await handle.result()
        with pytest.raises(ConfigError, match="The task is"):
            _ = [event async for event in handle.events()]

    drive(work)


def test_attaching_to_an_unknown_run_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        with pytest.raises(RunNotFound, match="none"):
            await Agent(model=ScriptedModel(["a"])).attach("none")
        with pytest.raises(RunNotFound, match="no database is at"):
            await attach(tmp_path / "none.db", "r1")

    drive(work)
    assert not list(tmp_path.iterdir()), "nothing was created"


def test_a_run_starts_only_in_a_loop() -> None:
    with pytest.raises(ConfigError, match="no asyncio event loop"):
        Agent(model=ScriptedModel(["a"])).start("Work.")
