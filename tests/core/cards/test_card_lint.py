from __future__ import annotations

from typing import Any

import pytest
from tests.core.cards import card_examples

from taoloop.core.cards.card_lint import lint
from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard

GOOD: dict[str, Any] = {
    "name": "get_weather",
    "purpose": "Get the weather of one city, at most three days ahead.",
    "avoid_when": "Past weather is asked for.",
    "tier": "read",
    "errors": (ErrorCard(code="no_city"),),
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "A city name."}},
        "required": ["city"],
    },
    "examples": (ExampleCard(args={"city": "上海"}),),
}
CHANGING: dict[str, Any] = {"tier": "destructive", "egress": False, "roles": {"city": "target"}, "reversible": False}
"""What a card says whose tool changes something."""


def codes(**changes: Any) -> set[str]:
    return {finding.code for finding in lint(ToolCard(**{**GOOD, **changes}))}


def test_a_good_card_has_no_findings() -> None:
    assert codes() == set()


@pytest.mark.parametrize(
    "purpose",
    [
        "Get the weather and send an email, only for Paris.",
        "Reads a user, deletes it, and notifies the owner.",
        "Create an order and pay it.",
        "查询天气并发送邮件，仅限中国。",
        "查询用户，然后删除记录",
    ],
)
def test_a_tool_that_does_more_than_one_thing_is_flagged(purpose: str) -> None:
    """S1-50."""
    assert "several_things" in codes(purpose=purpose, tier="destructive")


@pytest.mark.parametrize(
    "purpose",
    [
        "Search users by name and email, at most 10.",
        "Read a file and return its lines, never binary.",
        "Get and list the open orders only.",
        "Find a user's posts and orders, no drafts.",
        "查询用户的姓名和邮箱，最多 10 条。",
        "读取文件并返回内容，不支持二进制",
        "Return the sum of two integers, not floats.",
    ],
)
def test_one_thing_in_several_words_is_not_flagged(purpose: str) -> None:
    """S1-50: few false alarms."""
    assert codes(purpose=purpose) == set()


def test_a_name_that_joins_two_acts_is_flagged() -> None:
    """S1-50."""
    assert "several_things" in codes(name="get_and_delete_user", tier="destructive")


@pytest.mark.parametrize("name", ["api_v1", "tool1", "func", "do_it", "test", "myTool", "x", "handler", "a1", "run"])
def test_a_meaningless_name_is_flagged(name: str) -> None:
    """S1-51."""
    assert codes(name=name) == {"meaningless_name"}


@pytest.mark.parametrize("name", ["search_user", "add", "lookup", "run_tests", "getWeather", "post_count", "time_now"])
def test_a_telling_name_is_not_flagged(name: str) -> None:
    """S1-51."""
    assert codes(name=name) == set()


def test_a_description_without_limits_is_flagged() -> None:
    """S1-52."""
    assert codes(purpose="Get the weather of a city.", avoid_when="") == {"no_limits"}
    assert codes(purpose="查询天气", avoid_when="") == {"no_limits"}
    assert codes(purpose="查询天气，仅限中国", avoid_when="") == set()
    assert codes(purpose="Get the weather of a city; unknown names are rejected.", avoid_when="") == set()
    assert codes(purpose="") == {"no_purpose"}
    assert codes(purpose="TODO.") == {"no_purpose"}


def test_a_parameter_states_type_format_and_whether_it_is_required() -> None:
    """S1-53."""
    bare = {"type": "object", "properties": {"city": {}}}
    found = {"parameter_without_type", "parameter_without_description", "required_not_stated"}
    assert codes(input_schema=bare, examples=()) == found
    for empty in ("", "city", "TODO"):
        rule = {"type": "string", "description": empty}
        schema = {"type": "object", "properties": {"city": rule}, "required": ["city"]}
        assert codes(input_schema=schema) == {"parameter_without_description"}
    default = {"type": "object", "properties": {"n": {"type": "integer", "description": "x", "default": 1}}}
    assert codes(input_schema=default, examples=()) == set()


@pytest.mark.parametrize(
    ("name", "purpose"),
    [
        ("delete_user", "Handles one user only."),
        ("mail", "Send a mail, at most 1 MB."),
        ("user_x", "删除用户，不可恢复"),
    ],
)
def test_a_read_tier_that_contradicts_the_name_is_flagged(name: str, purpose: str) -> None:
    assert codes(name=name, purpose=purpose) == {"tier_contradicts_name"}
    assert codes(name=name, purpose=purpose, **CHANGING) == set()


def test_a_missing_tier_and_missing_errors_are_flagged() -> None:
    assert codes(tier=None, errors=()) == {"no_tier", "no_errors"}


def test_a_missing_tier_is_told_as_what_the_executor_makes_of_it() -> None:
    (finding,) = lint(ToolCard(**{**GOOD, "tier": None}))
    assert "counts as destructive and as sending data out: a person is asked" in finding.message


@pytest.mark.parametrize("tier", ["write", "destructive"])
@pytest.mark.parametrize(
    ("missing", "code", "field"),
    [
        ("egress", "no_egress", "egress"),
        ("roles", "no_role", "roles.city"),
        ("reversible", "no_rollback", "compensation"),
    ],
)
def test_what_a_tool_that_changes_something_leaves_open_is_flagged(
    tier: str, missing: str, code: str, field: str
) -> None:
    """S0-40: a tool with an effect names its rollback, or is marked as one that cannot be undone."""
    said = {name: value for name, value in CHANGING.items() if name != missing}
    (finding,) = lint(ToolCard(**{**GOOD, **said, "tier": tier}))
    assert (finding.code, finding.field) == (code, field)
    assert finding.message
    assert finding.advice


def test_a_tool_that_changes_something_is_good_with_a_compensation() -> None:
    """S0-40."""
    said = {name: value for name, value in CHANGING.items() if name != "reversible"}
    assert codes(**said, compensation="undo_it") == set()
    assert codes(**{**said, "egress": ("city",)}, reversible=True) == set()


def test_a_tool_that_changes_nothing_needs_to_say_none_of_it() -> None:
    assert codes(tier="draft") == set()


@pytest.mark.parametrize("args", [{}, {"city": "x", "day": 1}])
def test_an_example_that_does_not_fit_is_flagged(args: dict[str, Any]) -> None:
    assert codes(examples=(ExampleCard(args=args),)) == {"example_does_not_fit"}


def test_a_finding_names_field_and_way_out() -> None:
    (finding,) = lint(ToolCard(**{**GOOD, "tier": None}))
    assert finding.field == "tier"
    assert finding.message
    assert finding.advice


@pytest.mark.parametrize(
    ("name", "purpose", "tier"),
    [
        ("get_order", "Get one order.", "read"),
        ("listUsers", "", "read"),
        ("send_mail", "", "write"),
        ("issue_refund", "", "destructive"),
        ("get_and_delete", "", "destructive"),
        ("frob", "Deletes all rows.", "destructive"),
        ("查询订单", "", "read"),
        ("frob", "删除订单", "destructive"),
        ("frob", "Frobs.", None),
    ],
)
def test_for_a_tool_without_a_tier_one_is_proposed_from_its_words(name: str, purpose: str, tier: str | None) -> None:
    [finding] = [finding for finding in lint(ToolCard(name=name, purpose=purpose)) if finding.code == "no_tier"]
    assert (f"tier: {tier}" in finding.advice) == (tier is not None)


@pytest.mark.parametrize("card", card_examples.GOOD, ids=lambda card: card.name)
def test_a_good_card_raises_no_false_alarm(card: ToolCard) -> None:
    assert [(finding.code, finding.message) for finding in lint(card)] == []


@pytest.mark.parametrize(("code", "card"), card_examples.BAD)
def test_a_bad_card_is_caught(code: str, card: ToolCard) -> None:
    assert code in {finding.code for finding in lint(card)}


def test_there_are_36_of_both() -> None:
    assert (len(card_examples.GOOD), len(card_examples.BAD)) == (36, 36)


@pytest.mark.parametrize(
    "purpose",
    [
        "Upload a file and get its link, at most 10 MB.",
        "Create a ticket and return the new number, without attachments.",
        "Download a file and save it in the workspace, at most 10 MB.",
        "Get balances, transfers and fees of an account; at most 90 days.",
        "Get the order, transfer and payment status of a customer, nothing else.",
        "上传文件并获取链接，最多 10 MB。",
        "下载附件并保存到工作区，最多 10 MB。",
        "创建报销单，提交后获取单号，仅限本人。",
        "搜索、下载论文，最多 5 篇。",
    ],
)
def test_the_end_of_an_act_is_not_another_act(purpose: str) -> None:
    assert "several_things" not in codes(purpose=purpose)


@pytest.mark.parametrize(
    "purpose",
    [
        "Get users and delete inactive ones, at most 10.",
        "Search, update and delete records; no archives.",
        "Gets the order, transfers the money and notifies nobody else.",
        "Create an order and pay it, at most one.",
        "Get the weather and sends an email, only for Paris.",
        "Download a file and delete the original, at most 10 MB.",
        "获取链接并发送，最多 10 个。",
    ],
)
def test_another_act_is_one_in_every_form(purpose: str) -> None:
    assert "several_things" in codes(purpose=purpose, **CHANGING)
