"""The first thing in which two runs differ, and nothing that must differ anyway."""

from __future__ import annotations

from typing import Any

from taoloop import Agent, Limits, ScriptedModel, Trace, tool
from taoloop.core.views.run_diff import Comparison, Difference, StepRow, compare
from taoloop.models.scripted import Reply

PRICES = {"tea": 3, "milk": 1, "salt": 2}


@tool(tier="read")
def price(item: str) -> int:
    """The price of an item."""
    return PRICES[item]


@tool(tier="write")
def buy(item: str) -> str:
    """Buy an item."""
    return f"bought {item}"


def call(name: str, /, thought: str = "", **args: Any) -> dict[str, Any]:
    return {"text": thought, "tool_calls": [{"name": name, "args": args}]}


def ran(*script: Reply, task: str = "Get tea.", **options: Any) -> Trace:
    tools = options.pop("tools", [price, buy])
    return Agent(model=ScriptedModel(script), tools=tools, **options).run_sync(task).trace


def numbers(row: StepRow) -> tuple[int | None, ...]:
    return tuple(None if cell is None else cell.number for cell in row.cells)


def parts(found: Comparison) -> list[tuple[int | None, str, str]]:
    return [(one.step, one.part, one.what) for one in found.differences]


def test_two_runs_of_the_same_decisions_are_the_same() -> None:
    script: list[Any] = [call("price", "How much?", item="tea"), "3"]
    found = compare(ran(*script), ran(*script))
    assert found.same
    assert found.first is None
    assert [(numbers(row), row.same) for row in found.rows] == [((1, 1), True), ((2, 2), True)]


def test_the_first_divergence_comes_first_and_the_others_follow() -> None:
    a = ran(call("price", item="tea"), call("buy", item="tea"), "done", approve=lambda _: True)
    b = ran(call("price", item="coffee"), "no coffee")
    found = compare(a, b)
    assert found.first == Difference(
        step=1, other_step=1, part="decision", what="arguments of price", a={"item": "tea"}, b={"item": "coffee"}
    )
    assert parts(found) == [
        (1, "decision", "arguments of price"),
        (1, "observation", "observation of price"),
        (2, "step", "step"),
        (3, "decision", "answer"),
    ]
    assert [numbers(row) for row in found.rows] == [(1, 1), (2, None), (3, 2)]


def test_another_tool_and_another_answer_are_told_whole() -> None:
    found = compare(ran(call("price", item="tea"), "3"), ran(call("buy", item="tea"), approve=None))
    assert found.first is not None
    assert (found.first.what, found.first.a) == ("call", {"tool": "price", "args": {"item": "tea"}})
    answers = compare(ran("3"), ran("4")).first
    assert answers == Difference(step=1, other_step=1, part="decision", what="answer", a="3", b="4")


def test_parallel_calls_are_compared_one_by_one() -> None:
    def two(*items: str) -> dict[str, Any]:
        return {"tool_calls": [{"name": "price", "args": {"item": item}} for item in items]}

    found = compare(ran(two("tea", "milk"), "x"), ran(two("tea", "salt", "milk"), "x"))
    assert parts(found)[:2] == [(1, "decision", "arguments of price 2"), (1, "decision", "call 3")]


def test_verdicts_and_answers_of_people_are_compared() -> None:
    script: list[Any] = [call("buy", item="tea"), "done"]
    asked = ran(*script, approve=lambda _: True)
    ahead = ran(*script, approved_tiers=("write",))
    assert parts(compare(asked, ahead)) == [
        (1, "verdict", "verdict on buy"),
        (1, "verdict", "answer of a person to buy"),
    ]
    assert compare(asked, ahead, decisions_only=True).same
    refused = compare(asked, ran(*script, approve=lambda _: False))
    assert refused.first is not None
    assert (refused.first.what, refused.first.a) == ("answer of a person to buy", "allowed")


def test_observations_are_compared_unless_only_decisions_count() -> None:
    script: list[Any] = [call("price", item="tea"), "3"]
    a = ran(*script)
    PRICES["tea"] = 4
    b = ran(*script)
    PRICES["tea"] = 3
    assert compare(a, b).first == Difference(
        step=1, other_step=1, part="observation", what="observation of price", a="ok: 3", b="ok: 4"
    )
    assert compare(a, b, decisions_only=True).same


def test_the_end_of_a_long_output_counts_although_it_is_not_shown() -> None:
    def told(last: str) -> Trace:
        @tool(tier="read")
        def tell() -> str:
            """Tell."""
            return "word " * 5000 + last

        return ran(call("tell"), "x", tools=[tell])

    found = compare(told("a"), told("b"))
    assert found.first is not None
    assert found.first.part == "observation"


def test_thoughts_count_only_where_they_are_asked_for() -> None:
    a, b = ran(call("price", "Hm.", item="tea"), "3"), ran(call("price", "Well.", item="tea"), "3")
    assert compare(a, b).same
    assert compare(a, b, thoughts=True).first == Difference(
        step=1, other_step=1, part="thought", what="thought", a="Hm.", b="Well."
    )


def test_the_prompt_is_before_the_first_step_and_settings_are_no_difference() -> None:
    a = ran("x")
    b = ran("x", task="Get milk.", instructions="Be quick.", tools=[price], limits=Limits(max_steps=9))
    assert parts(compare(a, b)) == [(0, "prompt", "task"), (0, "prompt", "instructions"), (0, "prompt", "tool buy")]
    assert compare(a, b, decisions_only=True).same
    assert [one.what for one in compare(a, b).settings] == ["limits"]


def test_unreadable_replies_and_the_end_are_compared() -> None:
    found = compare(ran("", "x"), ran("x"))
    assert parts(found) == [(1, "reply", "unreadable replies")]
    a = ran(call("price", item="tea"), "so far", max_steps=1)
    b = ran(call("price", item="tea"), "nothing yet", max_steps=1)
    ended = compare(a, b).first
    assert ended is not None
    assert (ended.step, ended.part, ended.a["answer"]) == (None, "end", "so far")


def test_an_additional_step_does_not_make_those_after_it_different() -> None:
    a = ran(call("price", item="tea"), call("price", item="milk"), "x")
    b = ran(call("price", item="tea"), call("price", item="salt"), call("price", item="milk"), "x")
    found = compare(a, b)
    assert [numbers(row) for row in found.rows] == [(1, 1), (None, 2), (2, 3), (3, 4)]
    assert found.differences == (
        Difference(
            step=None,
            other_step=2,
            part="step",
            what="step",
            a=None,
            b={"calls": [{"tool": "price", "args": {"item": "salt"}}]},
        ),
    )


def test_several_runs_are_each_compared_with_the_first_in_common_rows() -> None:
    tea, milk, salt = (call("price", item=item) for item in ("tea", "milk", "salt"))
    a, b, c = ran(tea, milk, "x"), ran(tea, salt, milk, "x"), ran(salt, milk, "y")
    found = compare(a, b, c)
    assert [numbers(row) for row in found.rows] == [(1, 1, None), (None, 2, 1), (2, 3, 2), (3, 4, 3)]
    assert [(one.run, one.step, one.other_step, one.what) for one in found.differences] == [
        (2, 1, None, "step"),
        (1, None, 2, "step"),
        (2, None, 1, "step"),
        (2, 3, 3, "answer"),
    ]
    first = found.first_of(1)
    assert first is not None
    assert first.other_step == 2
    assert compare(a, a, c).first_of(1) is None
    assert [row.same for row in found.rows] == [False, False, True, False]
    last = found.rows[-1].cells
    assert [cell and cell.differs_in for cell in last] == [(), (), ("decision",)]


def test_the_sums_of_each_run_are_beside_each_other() -> None:
    a, b = ran(call("price", item="tea"), "3"), ran("", "3")
    ours, theirs = compare(a, b).runs
    assert (ours.steps, ours.tool_calls, ours.errors) == (2, 1, 0)
    assert (theirs.steps, theirs.tool_calls, theirs.errors) == (1, 0, 1)
    assert ours.input_tokens == a.usage.input_tokens
