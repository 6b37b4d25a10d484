"""A run of 30 steps with drift injected into 20 % of the replies: does it finish, with the same side effects?

Run: python benchmarks/drift.py [--json]
Target: every run finishes, and the effects are exactly those of the run without drift.

Each run books 30 amounts in a ledger with a tool that writes. The replies drift in the classes of
`taoloop.testing.DRIFT`. Beside it a hand-written loop reads the same replies as many programs do: regular expressions
for the labels, or the object in the text.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taoloop import Agent, Limits, MemoryJournal, ScriptedModel, Trace, tool
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import Act, Answer, Call, Decision
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Event, RunStarted
from taoloop.core.message import ModelReply
from taoloop.core.views.transcript import Result
from taoloop.dialects import DIALECTS, get_dialect
from taoloop.evals.trouble.drift import Drift
from taoloop.testing import DriftInjector
from taoloop.tools.tool import Tool

STEPS, RATE, SEEDS = 30, 0.2, 25
TASK = "Book the thirty amounts."
UNLIMITED = Limits(max_steps=None)
NAMES = ("Ada", "Bob", "Cleo")

Entry = tuple[str, int, bool]


def decisions() -> list[Decision]:
    """The bookings, all different, and the answer."""
    calls = [Call(tool="book", args={"amount": n, "paid": n % 2 == 0, "to": NAMES[n % 3]}) for n in range(STEPS)]
    return [*(Act(calls=(call,), reason="The next amount is due.") for call in calls), Answer(text="All is booked.")]


def script(dialect: str) -> ScriptedModel:
    """A model that decides so, in canonical form."""
    return ScriptedModel([get_dialect(dialect).write(decision) for decision in decisions()], spec=f"scripted {dialect}")


def ledger_tool(ledger: list[Entry]) -> Tool:
    """A tool that writes into the ledger."""

    @tool(tier="write")
    async def book(to: str, amount: int, paid: bool) -> str:
        """Book an amount."""
        ledger.append((to, amount, paid))
        return "booked"

    return book


class Counting(DriftInjector):
    """Counts the replies that drifted."""

    drifted = 0

    def drift(self, request: ModelRequest, reply: ModelReply) -> tuple[Drift, ModelReply] | None:
        found = super().drift(request, reply)
        self.drifted += found is not None
        return found


async def drifting_run(
    dialect: str, seed: int, *, rate: float = RATE, **options: Any
) -> tuple[Result, list[Entry], int]:
    """One run, what it wrote, and how many of its replies drifted."""
    ledger: list[Entry] = []
    model = Counting(script(dialect), rate=rate, seed=seed, **options)
    agent = Agent(
        model=model,
        dialect=dialect,
        tools=[ledger_tool(ledger)],
        approved_tiers=("write",),
        limits=UNLIMITED,
        journal=MemoryJournal(),
    )
    return await agent.run(TASK), ledger, model.drifted


def bare_run(dialect: str, seed: int) -> tuple[bool, list[Entry]]:
    """The hand-written loop on the same replies; whether it came to an answer, and what it wrote."""
    ledger: list[Entry] = []
    one = ledger_tool([])
    spec = AgentSpec(tools=(one.card,), dialect=dialect)
    trace = Trace("bare", [Event(0, 0.0, RunStarted(task=TASK, agent=spec, nonce="n"))])
    injector = DriftInjector(script(dialect), rate=RATE, seed=seed)
    replies = [get_dialect(dialect).write(decision) for decision in decisions()]
    position = 0
    for turn in range(STEPS * 3):
        if position == len(replies):
            break
        request = ModelRequest(
            task=TASK, trace=trace, messages=(), dialect=dialect, tools=spec.tools, turn=turn
        )  # fmt: skip
        found = injector.drift(request, replies[position])
        read = bare_read(dialect, replies[position] if found is None else found[1])
        if read is None:
            continue  # asked again
        if isinstance(read, str):
            return True, ledger
        args = read
        ledger.append((args.get("to"), args.get("amount"), args.get("paid")))  # type: ignore[arg-type]  # as it came
        position += 1
    return False, ledger


def bare_read(dialect: str, reply: ModelReply) -> dict[str, Any] | str | None:
    """Arguments, an answer, or None for a reply that has to be asked for again."""
    text = reply.text
    try:
        if dialect == "native":
            return json.loads(reply.tool_calls[0].arguments) if reply.tool_calls else text
        if dialect == "text":
            if final := re.search(r"Final Answer:(.*)", text, re.DOTALL):
                return final.group(1).strip()
            found = re.search(r"Action Input:\s*(\{.*?\})", text, re.DOTALL)
            return None if found is None else dict(json.loads(found.group(1)))
        found = re.search(r"\{.*\}", text, re.DOTALL)
        made = {} if found is None else json.loads(found.group())
        return str(made["action_input"]) if "final" in made["action"].lower() else dict(made["action_input"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


@dataclass(frozen=True)
class Figure:
    """What came of the runs in one dialect."""

    runs: int
    finished: int
    same_effects: int
    replies: int
    drifted: int
    bare_finished: int
    bare_same_effects: int


async def figure(dialect: str, **options: Any) -> Figure:
    """Runs over all seeds, and the bare loop over the same."""
    _, expected, _ = await drifting_run(dialect, 0, rate=0.0)
    runs = [await drifting_run(dialect, seed, **options) for seed in range(SEEDS)]
    bare = [bare_run(dialect, seed) for seed in range(SEEDS)]
    return Figure(
        runs=SEEDS,
        finished=sum(result.status == "completed" for result, _, _ in runs),
        same_effects=sum(ledger == expected for _, ledger, _ in runs),
        replies=sum(result.trace.model_calls for result, _, _ in runs),
        drifted=sum(drifted for _, _, drifted in runs),
        bare_finished=sum(finished for finished, _ in bare),
        bare_same_effects=sum(ledger == expected for _, ledger in bare),
    )


def shown(name: str, one: Figure) -> str:
    """One line of the table."""
    return (
        f"{name:28} {one.finished}/{one.runs} finished, {one.same_effects}/{one.runs} with the same effects; "
        f"{one.drifted / one.replies:.0%} of the replies drifted, {one.replies / one.runs:.1f} for "
        f"{STEPS + 1}; bare loop {one.bare_finished}/{one.runs} and {one.bare_same_effects}/{one.runs}"
    )


async def measure(show: Callable[[str], None]) -> dict[str, Figure]:
    """All figures; each is shown as it comes."""
    figures = {}
    for dialect in sorted(DIALECTS):
        for name, options in ((dialect, {}), (f"{dialect}, any errors in a row", {"in_a_row": None})):
            figures[name] = await figure(dialect, **options)
            show(shown(name, figures[name]))
    return figures


def main() -> None:
    """Print the figures."""
    as_json = "--json" in sys.argv
    figures = asyncio.run(measure(lambda line: None if as_json else print(line)))
    if as_json:
        print(json.dumps({name: vars(one) for name, one in figures.items()}))


if __name__ == "__main__":
    main()
