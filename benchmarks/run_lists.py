"""Lists, searches and overviews of a database with many runs, and how large a run is in it.

    python benchmarks/run_lists.py [--json] [--runs N] [--folder FOLDER] [--repeat N]

Makes N runs (100,000) with realistic traces of three steps through the journal itself (target: a minute), then asks it
what a page with the list of runs asks. Times are the worst of the repetitions of the median question of each kind.
Targets: a list in 100 ms, a search in 200 ms, and both at most twice as long with ten times the runs for what does not
count them; a run of three steps with one tool in 5 KB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

from taoloop import Agent
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import Act, Call
from taoloop.core.events import (
    ActionRequested,
    Event,
    Fact,
    Fault,
    Finished,
    ModelReplied,
    Observed,
    RunStarted,
)
from taoloop.core.message import ToolCallText, Usage
from taoloop.journals.queries import RunQuery
from taoloop.journals.sqlite.journal import SqliteJournal

DAY_S = 86_400.0
AT_ONCE = 200
LIMITS_MS = {"list": 100, "search": 200}

WORDS = [
    *("invoice", "order", "customer", "refund", "report", "weather", "stock", "ticket", "shipment", "contract"),
    *("meeting", "payroll", "budget", "route", "sensor", "library", "hotel", "flight", "museum", "recipe"),
    *("garden", "battery", "school", "doctor", "insurance", "harbour", "bridge", "forest", "river", "train"),
]
CHINESE = ["发票", "订单", "客户", "退款", "报告", "天气", "库存", "合同", "会议", "预算", "路线", "图书馆"]


async def describe() -> AgentSpec:
    """The description of an agent with one tool."""
    script = [{"text": "It is 2."}]
    result = await Agent(model=script, tools=["calculator"], name="desk").run("1+1?")
    return result.trace.agent


def trace(number: int, agents: list[AgentSpec], random: Random, calls: int = 2) -> list[Event]:
    """A run with a call in each step but the last; about each tenth is in Chinese, each twentieth fails."""
    at = 1_700_000_000.0 + number * 60
    what, other = random.choices(CHINESE if number % 10 == 0 else WORDS, k=2)
    task = f"查一下{what}和{other}，编号{number}" if number % 10 == 0 else f"Check the {what} of {other} {number}"
    labels = {"key": f"key{number % 5}"}
    facts: list[Fact] = [
        RunStarted(task=task, agent=agents[number % len(agents)], nonce=f"{number:016x}", labels=labels)
    ]
    is_failing = number % 20 == 7
    for step in range(1, calls + 1):
        args = {"expression": f"{number} + {step}"}
        call_id = f"call_{step}"
        thought = f"I compute the {what} first."
        act = Act(calls=(Call(tool="calculator", args=args),), reason=thought)
        texts = (ToolCallText(name="calculator", arguments=json.dumps(args), id=f"c{step}"),)
        usage = Usage(input_tokens=900, output_tokens=40)
        facts += [
            ModelReplied(
                step=step,
                purpose="decide",
                text=thought,
                decision=act,
                tool_calls=texts,
                model="m",
                usage=usage,
                cost_usd=0.001,
            ),
            ActionRequested(
                step=step,
                call_id=call_id,
                tool="calculator",
                args=args,
                tier="read",
                verdict="allow",
                digest=f"{number:064x}",
            ),
            Observed(
                call_id=call_id,
                ok=not is_failing,
                output=str(number + step),
                error=Fault(code="timeout", message="no answer in time") if is_failing else None,
            ),
        ]
    status = "too_many_errors" if is_failing else "completed"
    answer = f"The {what} is {number}, beside the {other}."
    facts.append(ModelReplied(step=calls + 1, purpose="decide", text=answer, decision=None, model="m", cost_usd=0.001))
    facts.append(Finished(status=status, answer=answer, reason="answered"))  # type: ignore[arg-type]  # one of them
    return [Event(seq, at + seq, fact) for seq, fact in enumerate(facts)]


async def make(path: Path, count: int) -> float:
    """Make a database; the seconds that it took."""
    began = time.monotonic()
    random, agents = Random(1), [await describe()]  # noqa: S311  # reproducible
    agents += [AgentSpec(name=f"agent{number}", tools=agents[0].tools) for number in range(3)]
    async with SqliteJournal(path, synchronous="NORMAL") as journal:
        for start in range(0, count, AT_ONCE):
            await asyncio.gather(
                *(
                    keep(journal, f"20270101-{number:06d}-{number:08x}", trace(number, agents, random))
                    for number in range(start, min(count, start + AT_ONCE))
                )
            )
    return time.monotonic() - began


async def keep(journal: SqliteJournal, run_id: str, events: list[Event]) -> None:
    """Add one run."""
    await journal.append(await journal.begin(run_id), events)


async def measure(path: Path, repeat: int) -> dict[str, float]:
    """Milliseconds for each question, and `index` and `sums` for what the first one does once."""
    times: dict[str, float] = {}
    async with SqliteJournal(path) as journal:

        async def timed(name: str, *questions: Callable[[], Awaitable[object]]) -> None:
            worst = []
            for ask in questions:
                taken = []
                for _ in range(repeat):
                    began = time.perf_counter()
                    await ask()
                    taken.append((time.perf_counter() - began) * 1000)
                worst.append(sorted(taken)[len(taken) // 2])
            times[name] = max(worst)

        def find(**fields: object) -> Callable[[], Awaitable[object]]:
            return lambda: journal.find(RunQuery(**fields))  # type: ignore[arg-type]  # fields of a query

        began = time.perf_counter()
        await journal.find(RunQuery(text="first"))
        times["index, once"] = (time.perf_counter() - began) * 1000
        began = time.perf_counter()
        await journal.usage()
        times["sums, once"] = (time.perf_counter() - began) * 1000
        cursor = (await journal.find(RunQuery(), limit=5_000)).cursor
        await timed("list: newest", find())
        await timed("list: from a cursor", lambda: journal.find(RunQuery(), cursor=cursor))
        await timed("list: filtered", find(statuses=("too_many_errors",)), find(agent="agent2"), find(key="key3"))
        await timed("list: nothing fits", find(agent="nobody"), find(until=0))
        await timed("list: counts", lambda: journal.count(RunQuery()), lambda: journal.count(RunQuery(key="key3")))
        await timed("list: usage", journal.usage)
        await timed("search: common words", find(text="check"), find(text="the invoice"), find(text="发票"))
        await timed("search: rare words", find(text="4711"), find(text="编号 4710"), find(text="no answer in time"))
        await timed("search: with a filter", find(text="check", statuses=("completed",), agent="agent1"))
        await timed("search: counts", lambda: journal.count(RunQuery(text="invoice")))
    return times


async def compare(folder: Path, count: int, repeat: int) -> dict[str, object]:
    """All figures."""
    path = folder / "runs.db"
    made_s = await make(path, count)
    size = path.stat().st_size / count
    return {"runs": count, "made_s": made_s, "bytes_per_run": size, "ms": await measure(path, repeat)}


def main(argv: list[str]) -> int:
    """Print the figures; 1 if one is beyond its limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        figures = asyncio.run(compare(Path(folder), options.runs, options.repeat))
        index = sum(file.stat().st_size for file in Path(folder).glob("*-search"))
    times: dict[str, float] = figures["ms"]  # type: ignore[assignment]  # as made above
    if options.json:
        print(json.dumps({**figures, "index_bytes": index}))
    else:
        print(f"{options.runs:,} runs in {figures['made_s']:.1f} s, {figures['bytes_per_run']:,.0f} bytes each")
        print(f"index of {index / options.runs:,.0f} bytes a run")
        for name, ms in times.items():
            print(f"  {name:24} {ms:8.1f} ms")
    limits = {name: LIMITS_MS.get(name.partition(":")[0]) for name in times}
    return int(any(limit is not None and times[name] > limit for name, limit in limits.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
