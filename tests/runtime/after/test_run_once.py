"""`run_once`: a job with an id of its own is done once, however often it is asked for."""

from __future__ import annotations

import asyncio

import pytest

from taoloop import Agent, MemoryJournal, tool
from taoloop.errors import RunExists
from taoloop.journals import Journal
from taoloop.models import Reply
from taoloop.testing import Killed, KillingJournal, KillPoint

SCRIPT: list[Reply] = [{"tool_calls": [{"name": "pay", "args": {"to": "ann"}}]}, "Paid."]


def payer(journal: Journal, paid: list[str]) -> Agent:
    @tool(tier="write", egress=False, probe=lambda to: to in paid)
    def pay(to: str) -> str:
        """Pay somebody what is due."""
        paid.append(to)
        return "paid"

    return Agent(model=SCRIPT, tools=[pay], journal=journal, approved_tiers=("write",))


def test_a_run_that_is_asked_for_again_gives_the_same_result_and_no_second_payment() -> None:
    paid: list[str] = []
    agent = payer(MemoryJournal(), paid)

    async def main() -> None:
        first = await agent.run_once("Pay ann.", run_id="invoice-7")
        second = await agent.run_once("Pay ann.", run_id="invoice-7")
        assert (first.answer, len(first.trace)) == (second.answer, len(second.trace)) == ("Paid.", len(first.trace))

    asyncio.run(main())
    assert paid == ["ann"]


@pytest.mark.parametrize("append", range(1, 5))
def test_a_run_whose_process_died_is_resumed_by_the_next_call(append: int) -> None:
    paid: list[str] = []
    journal = KillingJournal(KillPoint(append=append, moment="after"))

    def run_once() -> str:
        return asyncio.run(payer(journal, paid).run_once("Pay ann.", run_id="invoice-7")).status

    with pytest.raises(Killed):
        run_once()
    journal.revive()
    assert run_once() == "completed"
    assert paid == ["ann"]


def test_an_id_that_belongs_to_another_task_is_refused_with_that_task() -> None:
    agent = payer(MemoryJournal(), [])

    async def main() -> None:
        await agent.run_once("Pay ann.", run_id="invoice-7")
        with pytest.raises(RunExists, match=r"another task: 'Pay ann\.'"):
            await agent.run_once("Pay bob.", run_id="invoice-7")

    asyncio.run(main())


def test_a_task_with_a_secret_is_recognised_although_its_secret_is_not_stored() -> None:
    agent = Agent(model=["Done."], secrets=["hunter2-hunter2"], journal=MemoryJournal())

    async def main() -> None:
        first, second = [await agent.run_once("Use hunter2-hunter2.", run_id="job") for _ in range(2)]
        assert first.run_id == second.run_id
        assert "hunter2" not in second.trace.task

    asyncio.run(main())


def test_a_run_that_waits_is_returned_as_waiting_and_keeps_its_question() -> None:
    paid: list[str] = []
    agent = payer(MemoryJournal(), paid)

    async def main() -> None:
        asking = Agent(model=SCRIPT, tools=agent.tools, journal=agent.journal)
        results = [await asking.run_once("Look after the bills.", run_id="bills") for _ in range(2)]
        assert [result.status for result in results] == ["waiting", "waiting"]

    asyncio.run(main())
    assert paid == []
