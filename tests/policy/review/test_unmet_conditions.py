"""Why a rule did not apply to a call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.policy.staging import Run, card

from taoloop.core.policy import Policy, Rule
from taoloop.policy.review.unmet_conditions import UNDECLARED, unmet_rules

GET_ORDER = card("get_order", "read", "order")
REFUND = card("refund", "write", "order", "amount", "url", "path")
ARGS = {"order": "A7", "amount": 20}


def run_of(*, looked_up: bool = True) -> Run:
    run = Run(Policy(), (GET_ORDER, REFUND), task="Something is wrong with order A7.", labels={"user": "bob"})
    if looked_up:
        run.see(json.dumps({"total": 15}), tool="get_order", order="A7")
    return run


def unmet(*rules: Rule, run: Run | None = None, args: Any = ARGS) -> list[tuple[int, list[tuple[str, Any, Any]]]]:
    trace = (run or run_of()).trace
    return [
        (each.index, [(condition.name, condition.expected, condition.value) for condition in each.conditions])
        for each in unmet_rules(trace, Policy(rules=rules), REFUND, args)
    ]


@pytest.mark.parametrize(
    ("fields", "condition"),
    [
        ({"tier": "destructive"}, ("tier", "destructive", "write")),
        ({"egress": False}, ("egress", False, True)),
        ({"tainted": False}, ("tainted", False, True)),
        ({"repeated": True}, ("repeated", True, False)),
        ({"requested": True}, ("requested", True, False)),
        ({"user": "ann*"}, ("user", "ann*", "bob")),
        ({"after": ("get_order(order)", "refund")}, ("after", "refund", None)),
        ({"args": {"order": "B*"}}, ("args.order", "B*", "A7")),
        ({"args": {"amount": {"min": 1, "max": 10}}}, ("args.amount.max", 10, 20)),
        ({"args": {"amount": {"in": [1, 2]}}}, ("args.amount.in", [1, 2], 20)),
        ({"args": {"order": {"matches": "B."}}}, ("args.order.matches", "B.", "A7")),
        ({"args": {"order": {"from": ["operator"]}}}, ("args.order.from", ["operator"], "A7")),
        (
            {"args": {"amount": {"max_of": "tool:get_order(order).total"}}},
            ("args.amount.max_of", "tool:get_order(order).total", {"value": 20, "bounds": [15]}),
        ),
        ({"args": {"note": "x"}}, ("args.note", "x", None)),
    ],
)
def test_the_condition_that_failed_is_named_with_what_was_there(fields: Any, condition: Any) -> None:
    assert unmet(Rule(tool="refund", verdict="allow", **fields)) == [(0, [condition])]


@pytest.mark.parametrize(
    ("fields", "args", "condition"),
    [
        ({"host": "*.shop.example"}, {"url": "https://evil.example/a"}, ("host", "*.shop.example", "evil.example")),
        ({"path": "out/*"}, {"path": "in/a"}, ("path", "out/*", "in/a")),
        ({"args": {"order": "A7"}}, {"order": "A7", "to": "eve"}, (UNDECLARED, list(REFUND.parameters), ["to"])),
    ],
)
def test_hosts_paths_and_undeclared_arguments_are_shown(fields: Any, args: Any, condition: Any) -> None:
    assert unmet(Rule(tool="refund", verdict="allow", **fields), args=args) == [(0, [condition])]


def test_a_budget_that_is_not_used_up_is_the_reason_if_all_else_holds() -> None:
    rule = Rule(tool="refund", verdict="ask", calls_over=3, total_over={"amount": 100})
    assert unmet(rule) == [(0, [("calls_over", 3, None), ("total_over.amount", 100, 20)])]


def test_only_rules_about_the_tool_that_were_asked_before_the_deciding_one_are_named() -> None:
    rules = (
        Rule(tool="get_*", verdict="allow"),
        Rule(tool="re*", verdict="deny", args={"amount": {"min": 100}}),
        Rule(tool="refund", verdict="ask", args={"order": "A7"}),
        Rule(tool="refund", verdict="allow", args={"order": "B8"}),
    )
    assert unmet(*rules) == [(1, [("args.amount.min", 100, 20)])]


def test_a_call_without_the_look_up_has_no_bound() -> None:
    rule = Rule(tool="refund", verdict="allow", args={"amount": {"max_of": "tool:get_order(order).total"}})
    [(_, [(_, _, value)])] = unmet(rule, run=run_of(looked_up=False))
    assert value == {"value": 20, "bounds": None}
