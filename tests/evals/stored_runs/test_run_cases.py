"""Cases made of stored runs repeat what the runs did, on recorded observations, and call no tool."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.planning import TASK, Person, Shop, planner
from tests.scripting import call

from taoloop import Agent, MemoryJournal, ScriptedModel, ToolError, tool
from taoloop.errors import AgentFileError
from taoloop.evals.configurations import configurations_of
from taoloop.evals.stored_runs.run_cases import RunSuite, suite_of_runs
from taoloop.evals.stored_runs.run_selection import RunSelection, selected_runs
from taoloop.evals.suite_file import read_suite
from taoloop.evals.trials.suite_run import SuiteOutcome, SuiteRun
from taoloop.runtime import mark_run

CALLS: list[str] = []


@tool(tier="read")
def stock(item: str) -> dict[str, Any]:
    """How many there are."""
    CALLS.append(f"stock {item}")
    if item == "milk":
        raise ToolError("There is no milk.", code="unknown_item")
    return {"item": item, "left": 7 - len(CALLS)}


@tool(tier="write")
def order(item: str) -> str:
    """Order an item."""
    CALLS.append(f"order {item}")
    return "x" * 20_000


@pytest.fixture
def journal() -> MemoryJournal:
    CALLS.clear()
    journal = MemoryJournal()
    run(journal, "Order tea if there is some.", call("stock", item="tea"), call("stock", item="tea"), order_of("tea"))
    run(journal, "Is there milk?", call("stock", item="milk"), answer="There is no milk in stock, I am sorry to say.")
    assert len(CALLS) == 4
    return journal


def order_of(item: str) -> dict[str, Any]:
    return call("order", item=item)


def run(journal: MemoryJournal, task: str, *calls: Any, answer: str = "Done", **options: Any) -> str:
    model = ScriptedModel([*calls, answer])
    agent = Agent(model=model, tools=[stock, order], journal=journal, approve=lambda _: True, **options)
    return agent.run_sync(task).run_id


def suite_of(journal: MemoryJournal, **selection: Any) -> RunSuite:
    return asyncio.run(suite_of_runs(selected_runs(journal, RunSelection(**selection)), journal))


def evaluated(path: Path, model: str = "oracle") -> SuiteOutcome:
    suite = read_suite(path)
    configurations = configurations_of(suite, {"models": (model,)})
    return asyncio.run(
        SuiteRun(suite=suite, configurations=configurations, database=path.with_name("runs.db"), fresh=True).run()
    )


def test_the_oracle_repeats_the_runs_and_no_tool_is_called(journal: MemoryJournal, tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    suite_of(journal).write(path)
    outcome = evaluated(path)
    assert [record.passed for record in outcome.records] == [True, True]
    assert len(CALLS) == 4  # the tools of the runs would have added to it
    counts = [record.counts for record in outcome.records]
    assert [count.arguments_right for count in counts] == [0, 2]  # the newest run is first; it expects no call
    [milk, tea] = read_suite(path).cases()
    assert milk.world["recorded"]["stock"] == [
        {"args": {"item": "milk"}, "error": {"code": "unknown_item", "message": "There is no milk."}}
    ]
    assert [entry["output"]["left"] for entry in tea.world["recorded"]["stock"]] == [6, 5]
    assert tea.world["recorded"]["order"][0]["output"] == "x" * 20_000  # the whole of a long output


def test_another_call_than_the_recorded_ones_fails_and_says_so(journal: MemoryJournal, tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    suite = suite_of(journal, search="tea")
    suite.cases[0]["scripts"] = {"other": [order_of("coffee"), "I could not."]}
    suite.write(path)
    [record] = evaluated(path, "script:other").records
    assert record.passed is False
    assert record.counts.calls_succeeded == 0
    assert len(CALLS) == 4


def test_the_steps_of_a_plan_are_recorded_too(tmp_path: Path) -> None:
    shop = Shop()
    planned = planner(shop, approve=Person())
    planned.run_sync(TASK)
    shop.refunds.clear()
    suite = suite_of(planned.journal)  # type: ignore[arg-type]  # a journal in memory
    suite.write(tmp_path / "plans.yaml")
    [record] = evaluated(tmp_path / "plans.yaml").records
    assert (record.passed, record.answer) == (True, "Refunded 40 for S-1.")
    assert shop.refunds == {}  # no tool of the shop was called again


def test_checks_fit_the_form_of_the_answer(journal: MemoryJournal) -> None:
    for task, answer in (("a", "42"), ("b", '{"total": 3}'), ("c", "Paris")):
        run(journal, task, answer=answer, dialect="native")
    checks = [case["expect"] for case in suite_of(journal).cases]
    assert checks == [
        {"em": "Paris"},
        {"json_path": {"path": "$", "equals": {"total": 3}}},
        {"number": 42},
        {"f1": {"answers": ["There is no milk in stock, I am sorry to say."], "at_least": 0.5}},
        {"em": "Done"},
    ]


def test_a_run_that_was_marked_wrong_is_a_case_to_complete(journal: MemoryJournal, tmp_path: Path) -> None:
    run_id = run(journal, "Add it up.", answer="12")
    asyncio.run(mark_run(journal, run_id, "wrong", by="ann", note="without tax"))
    suite = suite_of(journal, marked="wrong")
    suite.write(tmp_path / "wrong.yaml")
    text = (tmp_path / "wrong.yaml").read_text(encoding="utf-8")
    assert "# Marked wrong (without tax): write what is right" in text
    assert f"# - id: {run_id}" in text
    assert "#   wrong_answer: '12'" in text
    assert list(read_suite(tmp_path / "wrong.yaml").cases()) == []


def test_runs_that_cannot_be_cases_are_counted_with_the_reason(journal: MemoryJournal) -> None:
    run(journal, "Is there milk?", answer="No.")
    suite = suite_of(journal)
    assert suite.left_out == {"a later run has the same task": 1}
    assert suite.people == {"order": "approve"}
    assert suite.cases[0]["expect"] == {"em": "No."}
    assert suite_of(journal, last=1).cases[0]["task"] == "Is there milk?"
    assert suite_of(journal, statuses=("stopped",)).cases == []


def test_a_record_that_is_none_is_reported_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("suite: s\nrecorded: r.json\ncases: []\n", encoding="utf-8")
    (tmp_path / "r.json").write_text("[]", encoding="utf-8")
    with pytest.raises(AgentFileError, match=r"r\.json.*cannot be read"):
        read_suite(tmp_path / "s.yaml")
