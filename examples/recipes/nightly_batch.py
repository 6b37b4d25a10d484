"""A nightly batch: 500 tickets are sorted into a CSV file, a few at a time; started again, it does only what is left.

Each ticket is a run with an id of its own. `run_once` begins it, resumes it where a crash left it, or returns its
result, so that nothing is sorted, or paid for, twice. End it with Ctrl-C or `kill -9`, and call it again.
Run: python examples/recipes/nightly_batch.py [--count 500] [--model openai:gpt-4o-mini]
"""

from __future__ import annotations

import argparse
import asyncio
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from taoloop import Agent, Result, SqliteJournal, Trace
from taoloop.journals import Journal

AT_ONCE = 20


class Sorted(BaseModel):
    """Where a ticket belongs."""

    team: Literal["billing", "shipping", "other"]
    urgent: bool


@dataclass(frozen=True)
class Ticket:
    """A ticket of the day."""

    number: int
    text: str


def tickets_of_the_day(count: int) -> list[Ticket]:
    """The tickets; in practice a query or a file."""
    texts = ("The invoice is wrong.", "Where is my parcel? It is urgent!", "Do you have a shop in Oslo?")
    return [Ticket(number, f"Ticket {number}: {texts[number % len(texts)]}") for number in range(1, count + 1)]


def sort_by_words(task: str, _: Trace) -> str:
    """The model of the demonstration."""
    team = "billing" if "invoice" in task else "shipping" if "parcel" in task else "other"
    answer = Sorted.model_validate({"team": team, "urgent": "urgent" in task})
    return f"Final Answer: {answer.model_dump_json()}"


def sorter(journal: Journal, *, model: str | None = None) -> Agent[None, Sorted]:
    """The agent that sorts one ticket."""
    return Agent(
        name="sorter",
        model=model or sort_by_words,
        instructions="Say which team a ticket belongs to, and whether it is urgent.",
        output_type=Sorted,
        journal=journal,
    )


async def sort_all(agent: Agent[None, Sorted], night: str, tickets: Sequence[Ticket]) -> list[Result[Sorted]]:
    """Sort all tickets of a night, whatever an earlier call has already done."""
    free = asyncio.Semaphore(AT_ONCE)

    async def sort(ticket: Ticket) -> Result[Sorted]:
        async with free:
            return await agent.run_once(ticket.text, run_id=f"{night}-{ticket.number}")

    async with asyncio.TaskGroup() as group:
        sorting = [group.create_task(sort(ticket)) for ticket in tickets]
    return [task.result() for task in sorting]


def row_of(ticket: Ticket, result: Result[Sorted]) -> Mapping[str, object]:
    """The row of a ticket; one that could not be sorted says why."""
    return {
        "ticket": ticket.number,
        "team": result.output.team if result.output else "",
        "urgent": result.output.urgent if result.output else "",
        "problem": "" if result.status == "completed" else result.reason,
        "run": result.run_id,
    }


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write the CSV file as a whole: there is never half of one."""
    unfinished = path.with_suffix(".part")
    with unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=["ticket", "team", "urgent", "problem", "run"])
        writer.writeheader()
        writer.writerows(rows)
    unfinished.replace(path)


async def run_night(night: str, count: int, folder: Path, *, model: str | None = None) -> Path:
    """Sort the tickets of a night into `NIGHT.csv`; the runs are in `batch.db`."""
    tickets, path = tickets_of_the_day(count), folder / f"{night}.csv"
    async with SqliteJournal(folder / "batch.db") as journal, sorter(journal, model=model) as agent:
        results = await sort_all(agent, night, tickets)
    write_rows(path, [row_of(ticket, result) for ticket, result in zip(tickets, results, strict=True)])
    return path


def main() -> None:
    """Sort a night's tickets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--night", default="2026-11-27", help="names the runs and the file")
    parser.add_argument("--count", type=int, default=500, help="how many tickets there are")
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--model", help="a real model, such as openai:gpt-4o-mini; default: a function")
    options = parser.parse_args()
    path = asyncio.run(run_night(options.night, options.count, options.folder, model=options.model))
    print(f"{options.count} tickets are in {path}.")


if __name__ == "__main__":
    main()
