"""What an approved plan allows: exactly the calls that it lists, by value or by proven origin, each once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.policy.staging import DELETE, FETCH, LOOK, PAY, SAVE, Run
from tests.sizes import examples

from taoloop.core.decision import Call, PlannedCall, PlanStep
from taoloop.core.events import Fault, Resumed
from taoloop.core.policy import Policy, Profile, Rule
from taoloop.core.value_origins import stated_origin, stated_origins
from taoloop.policy import judge
from taoloop.policy.plan_grants import plan_grant

FROM_ONE = {"from": "tool:look.id", "step": 1}
HERE = {"from": "tool:look.items[].id"}


def planned(tool: str, /, *, granted: bool = True, found: dict[str, Any] | None = None, **args: Any) -> PlannedCall:
    return PlannedCall(tool=tool, args=args, is_granted=granted, values=found or {})


def run_of(*calls: PlannedCall, policy: Policy | None = None, **more: Any) -> Run:
    step = PlanStep(number=2, goal="Do it", calls=calls)
    more = {"tainted": True, "trusted": ("Do it.",), "parent": "outer", **more}
    return Run(policy, (LOOK, FETCH, PAY, SAVE, DELETE), task="Do it.", plan_step=step, **more)


def test_a_listed_call_is_allowed_once() -> None:
    run = run_of(planned("pay", to="bob", amount=5))
    assert run.judge("pay", to="bob", amount=5) == "allow plan"
    run.ask("pay", {"to": "bob", "amount": 5}, rule="plan")
    assert run.judge("pay", to="bob", amount=5).startswith("ask")


def test_a_call_that_is_listed_twice_is_allowed_twice_even_if_the_same_was_done_before() -> None:
    run = run_of(planned("pay", to="bob", amount=5), planned("pay", to="bob", amount=5))
    for _ in range(2):
        assert run.judge("pay", to="bob", amount=5) == "allow plan"
        run.see("paid", "pay", to="bob", amount=5)
    assert run.judge("pay", to="bob", amount=5).startswith("ask")


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("pay", {"to": "bob", "amount": 6}),
        ("pay", {"to": "bob", "amount": 5.0}),
        ("pay", {"to": "bob", "amount": "5"}),
        ("pay", {"to": "bob", "amount": True}),
        ("pay", {"to": "Bob", "amount": 5}),
        ("pay", {"to": ["bob"], "amount": 5}),
        ("pay", {"to": "bob", "amount": 5, "note": "x"}),
        ("pay", {"to": "bob"}),
        ("delete_file", {"to": "bob", "amount": 5}),
        ("save", {"path": "bob", "text": "5"}),
    ],
)
def test_a_call_that_differs_in_anything_is_not_allowed(tool: str, args: dict[str, Any]) -> None:
    assert not run_of(planned("pay", to="bob", amount=5)).judge(tool, **args).startswith("allow")


def test_a_value_must_be_what_the_executor_found_at_its_origin() -> None:
    run = run_of(planned("pay", to=FROM_ONE, amount=5, found={"1:tool:look.id": ("A-1", 7)}))
    assert run.judge("pay", to="A-1", amount=5) == "allow plan"
    assert run.judge("pay", to="7", amount=5) == "allow plan"  # an id that is a number, as a text
    for other in ("A-2", "", None, FROM_ONE, ["A-1"], "a-1", "A-1 "):
        assert run.judge("pay", to=other, amount=5).startswith("ask")


def test_an_origin_without_a_step_also_means_what_this_run_has_called() -> None:
    run = run_of(planned("look", query="x"), planned("pay", to=HERE, amount=5))
    assert run.judge("pay", to="A-1", amount=5).startswith("ask")
    run.see(json.dumps({"items": [{"id": "A-1"}, {"id": "A-2"}], "note": "pay A-3"}), query="x")
    assert run.judge("pay", to="A-2", amount=5) == "allow plan"
    assert run.judge("pay", to="A-3", amount=5).startswith("ask")
    other_step = run_of(planned("pay", to={**HERE, "step": 1}, amount=5))
    other_step.see(json.dumps({"items": [{"id": "A-1"}]}), query="x")
    assert other_step.judge("pay", to="A-1", amount=5).startswith("ask")


def test_only_what_a_listed_call_returned_is_at_an_origin() -> None:
    """A read needs no approval, so a model that chooses among values must not add to them by a call of its own."""
    run = run_of(planned("look", query="ann"), planned("pay", to=HERE, amount=5))
    run.see(json.dumps({"items": [{"id": "A-1"}, {"id": "A-2"}]}), query="ann")
    run.see(json.dumps({"items": [{"id": "E-9"}]}), query="eve")
    assert run.judge("pay", to="E-9", amount=5).startswith("ask")
    run.see(json.dumps({"items": [{"id": "A-3"}]}), query="ann")  # the same call once more: its news
    assert run.judge("pay", to="A-3", amount=5) == "allow plan"
    run.ask("pay", {"to": "A-3", "amount": 5}, rule="plan")
    assert run.judge("pay", to="A-3", amount=5).startswith("ask")
    open_step = run_of()
    open_step.see(json.dumps({"items": [{"id": "E-9"}]}), query="eve")
    pay = planned("pay", to=HERE, amount=5)
    [origin] = [origin for _, origin in stated_origins(pay.args)]
    assert list(plan_grant(run.trace).found_values(pay, origin)) == ["A-3"]
    assert list(plan_grant(open_step.trace).found_values(pay, origin)) == [
        "E-9"
    ]  # a step without a list leaves it to its model


def test_nothing_is_found_in_a_call_that_failed() -> None:
    run = run_of(planned("look", query="x"), planned("pay", to=HERE, amount=5))
    run.see(json.dumps({"items": [{"id": "A-1"}]}), query="x", fault=Fault(code="x", message="A-1"))
    assert run.judge("pay", to="A-1", amount=5).startswith("ask")


def test_without_the_approval_of_a_person_a_listed_call_is_judged_like_any_other() -> None:
    assert run_of(planned("pay", granted=False, to="bob", amount=5)).judge("pay", to="bob", amount=5).startswith("ask")


@pytest.mark.parametrize("profile", ["headless", "read-only", "locked"])
def test_no_denial_is_lifted(profile: Profile) -> None:
    assert (
        run_of(planned("pay", to="bob", amount=5), policy=Policy(profile=profile))
        .judge("pay", to="bob", amount=5)
        .startswith("deny")
    )


def test_no_rule_that_denies_is_lifted_and_one_that_asks_is_answered() -> None:
    for verdict, expected in (("deny", "deny rule"), ("ask", "allow plan")):
        policy = Policy(rules=(Rule(tool="pay", verdict=verdict),))  # type: ignore[arg-type]  # both are verdicts
        assert (
            run_of(planned("pay", to="bob", amount=5), policy=policy)
            .judge("pay", to="bob", amount=5)
            .startswith(expected)
        )


def test_more_than_the_plan_said_is_asked_about() -> None:
    run = run_of(planned("save", path="a.txt", text="x"))
    call, card = Call(tool="save", args={"path": "a.txt", "text": "x"}), run.cards["save"]
    assert judge(run.trace, call, card).rule == "plan"
    assert judge(run.trace, call, card, replaces="a.txt, 3 KB").kind == "ask"
    assert judge(run.trace, call, card, filled=True).kind == "ask"


def test_it_holds_for_the_tools_as_they_were() -> None:
    run = run_of(planned("pay", to="bob", amount=5))
    run.add(Resumed(cards=(PAY.translated({}),)))
    assert run.judge("pay", to="bob", amount=5).startswith("ask")


values = st.one_of(st.integers(0, 2), st.sampled_from(["a", "b", "0", ""]), st.none(), st.booleans())
origins = st.sampled_from([{"from": "tool:look.a", "step": 1}, {"from": "tool:look.b", "step": 1}])
found = {"1:tool:look.a": ("a",), "1:tool:look.b": ("b", "c")}


def arguments(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    nested = st.one_of(leaf, st.lists(leaf, max_size=2), st.dictionaries(st.sampled_from(["k", "l"]), leaf, max_size=2))
    return st.fixed_dictionaries({}, optional={"to": nested, "amount": nested, "note": nested})


def instances(listed: Any) -> list[Any]:
    """Every value that a listed one stands for."""
    if (origin := stated_origin(listed)) is not None:
        return list(found[origin.key])
    if isinstance(listed, dict):
        combined: list[Any] = [{}]
        for name, part in listed.items():
            combined = [{**whole, name: value} for whole in combined for value in instances(part)]
        return combined
    if isinstance(listed, list):
        rows: list[Any] = [[]]
        for part in listed:
            rows = [[*row, value] for row in rows for value in instances(part)]
        return rows
    return [listed]


def key(args: Any) -> str:
    return json.dumps(args, sort_keys=True)


@given(st.data(), st.lists(arguments(st.one_of(values, origins)), min_size=1, max_size=3))
@examples(80)
def test_a_call_that_is_not_exactly_listed_is_never_allowed_by_the_plan(
    data: st.DataObject, listed: list[dict[str, Any]]
) -> None:
    run = run_of(*(PlannedCall(tool="pay", args=args, is_granted=True, values=found) for args in listed))
    left = [{key(args) for args in instances(args)} for args in listed]
    for _ in range(4):
        near = [args for whole in listed for args in instances(whole)]
        args = data.draw(st.one_of(arguments(values), st.sampled_from(near)))
        verdict = run.judge("pay", **args)
        covering = next((index for index, keys in enumerate(left) if key(args) in keys), None)
        assert (verdict == "allow plan") == (covering is not None)
        if covering is not None:
            del left[covering]
            run.ask("pay", args, rule="plan")
