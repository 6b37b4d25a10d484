"""`tao costs`: what models cost, by API key, agent and day."""

from __future__ import annotations

import asyncio
import csv
import io
from datetime import UTC, datetime
from pathlib import Path

from tests.shell import Shell

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Event, Fact, Finished, ModelReplied, RunStarted
from taoloop.core.message import Usage
from taoloop.journals.sqlite.journal import SqliteJournal

DAY = 86_400.0
NOON = datetime(2027, 1, 15, 12, tzinfo=UTC).timestamp()


def fill(path: Path) -> None:
    """Three runs: two of the key `shop` on two days, one of nobody."""

    async def keep() -> None:
        async with SqliteJournal(path, synchronous="NORMAL") as journal:
            for number, (at, key, agent, cost) in enumerate(
                [
                    (NOON, "shop", "clerk", 0.25),
                    (NOON + DAY, "shop", "clerk", 0.5),
                    (NOON + DAY, "", "\x1b[31mred", None),
                ]
            ):
                labels = {"key": key} if key else {}
                facts: list[Fact] = [
                    RunStarted(task="t", agent=AgentSpec(name=agent), nonce="n", labels=labels),
                    ModelReplied(
                        step=1,
                        purpose="decide",
                        text="x",
                        decision=None,
                        usage=Usage(input_tokens=100, output_tokens=10),
                        cost_usd=cost,
                    ),
                    Finished(status="completed", answer="x", reason=""),
                ]
                lease = await journal.create(f"r{number}")
                await journal.append(lease, [Event(seq, at, fact) for seq, fact in enumerate(facts)])

    asyncio.run(keep())


def test_costs_stand_by_day_key_and_agent(tao: Shell) -> None:  # S3-47
    fill(tao.folder / "runs.db")
    ended = tao("costs", code=0)
    header, note = ended.err.splitlines()
    assert " ".join(header.split()) == "day key agent runs calls input cached output cost_usd unpriced"
    assert note == "tao: Calls without a known price, which are in no cost: offline (1)"
    assert [line.split() for line in ended.out.splitlines()] == [
        ["2027-01-15", "shop", "clerk", "1", "1", "100", "0", "10", "0.250000", "0"],
        ["2027-01-16", "-", "red", "1", "1", "100", "0", "10", "-", "1"],
        ["2027-01-16", "shop", "clerk", "1", "1", "100", "0", "10", "0.500000", "0"],
    ]


def test_costs_are_added_up_by_what_is_asked_for(tao: Shell) -> None:
    fill(tao.folder / "runs.db")
    rows = tao("costs", "--by", "key", "--json", code=0).events
    assert [(row["key"], row["runs"], row["cost_usd"], row["unpriced_calls"]) for row in rows] == [
        ("", 1, None, 1),
        ("shop", 2, 0.75, 0),
    ]
    assert "day" not in rows[0]
    assert "agent" not in rows[0]
    both = tao("costs", "--by", "day", "--by", "key", "--json", code=0).events
    assert [(row["day"], row["key"]) for row in both] == [
        ("2027-01-15", "shop"),
        ("2027-01-16", ""),
        ("2027-01-16", "shop"),
    ]


def test_how_the_runs_went_is_shown_and_what_is_not_known_is_left_open(tao: Shell) -> None:
    fill(tao.folder / "runs.db")
    ended = tao("costs", "--health", "--by", "agent", code=0)
    header = "agent runs ended success steps/run tool calls failed interventions"
    assert " ".join(ended.err.splitlines()[0].split()) == header
    assert [line.split() for line in ended.out.splitlines()] == [
        ["red", "1", "1", "100%", "1.0", "0", "-", "0"],
        ["clerk", "2", "2", "100%", "1.0", "0", "-", "0"],
    ]
    (row,) = tao("costs", "--by", "key", "--since", "2027-01-15", "--json", code=0).events[1:]
    assert (row["ended"], row["completed"], row["interventions"]) == (2, 2, 0)


def test_a_spreadsheet_gets_all_figures(tao: Shell) -> None:
    fill(tao.folder / "runs.db")
    first, second = csv.DictReader(io.StringIO(tao("costs", "--by", "key", "--csv", code=0).out))
    assert (first["key"], first["cost_usd"], first["unpriced_calls"]) == ("", "", "1")
    assert (second["key"], second["cost_usd"], second["success_rate"]) == ("shop", "0.75", "1")
    assert "--json" in tao("costs", "--csv", "--json", code=2).one_line


def test_costs_may_begin_at_a_day(tao: Shell) -> None:
    fill(tao.folder / "runs.db")
    rows = tao("costs", "--since", "2027-01-16", "--by", "day", "--json", code=0).events
    assert [(row["day"], row["runs"], row["cost_usd"]) for row in rows] == [("2027-01-16", 2, 0.5)]
    assert tao("costs", "--since", "2027-02-01", code=0).one_line.endswith("no run since 2027-02-01.")


def test_a_day_that_is_none_and_a_missing_database_are_told_in_one_line(tao: Shell) -> None:
    assert "--since" in tao("costs", "--since", "yesterday", code=2).one_line
    assert "runs.db" in tao("costs").one_line


def test_a_run_from_the_command_line_is_in_the_costs(tao: Shell) -> None:
    tao("run", "2+2?", "--model", tao.script({"text": "4", "cost_usd": 0.125}), code=0)
    (row,) = tao("costs", "--json", code=0).events
    assert (row["key"], row["runs"], row["cost_usd"]) == ("", 1, 0.125)
