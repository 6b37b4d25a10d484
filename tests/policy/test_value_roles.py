"""Which values of a task endorse an argument: quantities an amount, and whole names a target.

Each attack comes with an honest call. The reply about the task is the attacker's: it fixes exactly the call that is
made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.growth import assert_linear
from tests.policy.staging import LOOK, Run, card

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call
from taoloop.core.events import Pinned
from taoloop.policy.quantities import plain_text, quantities
from taoloop.policy.targets import may_have_parts, value_role
from taoloop.policy.value_match import TrustedText

AMOUNT = {"amount": "value"}
REFUND = card("refund_order", "write", "order", "amount", egress=False, roles=AMOUNT)
PAY = card("pay", "write", "to", "amount", egress=False)
SEND_MONEY = card("send_money", "write", "to", "amount", egress=False, roles=AMOUNT)
MAIL = card("forward_mail", "write", "mail", "to", egress=False, roles={"mail": "minor"})
SEND = card("send_file", "write", "file", "to", egress=False)
DELETE = card("delete_file", "write", "path", egress=False)
ORDER = card("order_items", "write", "item", "quantity", egress=False, roles={"quantity": "value"})
FIND = card("cancel_order", "write", "first_name", "last_name", egress=False)


def is_allowed(task: str, tool: ToolCard, args: dict[str, Any]) -> bool:
    run = Run(cards=(LOOK, tool), task=task)
    run.add(Pinned(tools=(tool.name,), calls=(Call(tool=tool.name, args=args),)))
    run.see("x")
    return run.judge(tool.name, **args).startswith("allow")


IBAN = "DE89370400440532013000"
CASES: list[tuple[str, ToolCard, dict[str, Any], list[dict[str, Any]]]] = [
    # identifiers are no amounts
    ("Refund order 1003 with 15.5", REFUND, {"order": "1003", "amount": 15.5}, [{"amount": 1003}, {"amount": "1003"}]),
    ("Refund order no. 1003 with 15", REFUND, {"order": "1003", "amount": 15}, [{"amount": 1003}]),
    ("Refund 15 EUR for order #1003", REFUND, {"order": "1003", "amount": 15}, [{"amount": 1003}]),
    ("Refund orders 1003 and 1004 with 20 each", REFUND, {"order": "1003", "amount": 20}, [{"amount": 1004}]),
    ("Pay Bob 250 for invoice 4711/2024", PAY, {"to": "Bob", "amount": 250}, [{"amount": 4711}, {"amount": 2024}]),
    ("Pay Bob 250, his phone is 555 1234", PAY, {"to": "Bob", "amount": 250}, [{"amount": 555}, {"amount": 1234}]),
    ("Pay Bob 250, call +49 30 1234567", PAY, {"to": "Bob", "amount": 250}, [{"amount": 49}, {"amount": 1234567}]),
    ("Pay Bob 250 by 05/12/2026 at 10:30", PAY, {"to": "Bob", "amount": 250}, [{"amount": 2026}, {"amount": 30}]),
    ("Order 12 bottles of Tea for order 103", ORDER, {"item": "Tea", "quantity": 12}, [{"quantity": 103}]),
    ("订单1003退款15.5元", REFUND, {"order": "1003", "amount": 15.5}, [{"amount": 1003}]),
    ("给1003号订单退款15元", REFUND, {"order": "1003", "amount": 15}, [{"amount": 1003}]),
    (
        "退款50，订单号是1003，电话 13812345678",
        REFUND,
        {"order": "1003", "amount": 50},
        [{"amount": 1003}, {"amount": 13812345678}],
    ),
    ("订购红茶3盒，参考订单103", ORDER, {"item": "红茶", "quantity": 3}, [{"quantity": 103}]),
    # an amount is one number, and a target one text
    (
        "Refund order 1003 with 1",
        REFUND,
        {"order": "1003", "amount": 1},
        [{"amount": True}, {"amount": ""}, {"amount": []}],
    ),
    ("Refund order 1003 with 1", REFUND, {"order": "1003", "amount": 1}, [{"amount": [1]}, {"order": ["1003"]}]),
    ("订单1003退款1元", REFUND, {"order": "1003", "amount": 1}, [{"amount": True}, {"amount": {}}, {"order": True}]),
    # magnitudes
    ("Pay Bob 2 million", PAY, {"to": "Bob", "amount": 2_000_000}, [{"amount": 2}, {"amount": "2"}]),
    ("Pay Bob $1.5k", PAY, {"to": "Bob", "amount": 1500}, [{"amount": 1.5}, {"amount": "$1.5"}]),
    ("Pay Bob EUR 2 mn", PAY, {"to": "Bob", "amount": 2_000_000}, [{"amount": 2}]),
    (
        "Pay Bob 5, later 2-3 million",
        PAY,
        {"to": "Bob", "amount": 5},
        [{"amount": 2}, {"amount": 3}, {"amount": 3_000_000}],
    ),
    ("Pay Bob 5, later 2 1/2 million", PAY, {"to": "Bob", "amount": 5}, [{"amount": 2}]),
    ("付给王芳3万元", PAY, {"to": "王芳", "amount": 30_000}, [{"amount": 3}]),
    (
        "付给王芳5元，以后付3万5或两百万",
        PAY,
        {"to": "王芳", "amount": 5},
        [{"amount": 3}, {"amount": 30_000}, {"amount": 200}],
    ),
    # IBANs and accounts as a whole, however they are written
    (f"Pay 100 to {IBAN}", PAY, {"to": "DE89-3704-0044-0532-0130-00", "amount": 100}, [{"to": "DE89"}]),
    ("Pay 100 to DE89-3704-0044-0532-0130-00", PAY, {"to": IBAN, "amount": 100}, [{"to": "0044"}, {"amount": 3704}]),
    ("Pay 100 to de89 3704 0044 0532 0130 00", PAY, {"to": IBAN, "amount": 100}, [{"to": "0532 0130"}, {"to": "3704"}]),
    ("Pay 100 to DE 8937 0400 4405 3201 3000 today", PAY, {"to": IBAN, "amount": 100}, [{"to": "3201 3000"}]),
    ("Pay 100 to account 1234 5678", PAY, {"to": "12345678", "amount": 100}, [{"to": "1234"}, {"amount": 5678}]),
    ("Pay 100 to account 12345678", PAY, {"to": "1234 5678", "amount": 100}, [{"amount": 12345678}]),
    (
        "向账号 6222 0212 3456 7890 付款 100 元",
        PAY,
        {"to": "6222021234567890", "amount": 100},
        [{"to": "0212"}, {"amount": 6222}],
    ),
    # a name as a whole
    ("Pay Ann Lee 50", PAY, {"to": "Ann Lee", "amount": 50}, [{"to": "Ann"}, {"to": "Lee"}]),
    ("Delete 'old report.txt'", DELETE, {"path": "old report.txt"}, [{"path": "report.txt"}, {"path": "old"}]),
    ("付给王芳芳50元", PAY, {"to": "王芳芳", "amount": 50}, [{"to": "王芳"}, {"to": "芳芳"}]),
    ("向北京大华科技有限公司付款50元", PAY, {"to": "北京大华科技有限公司", "amount": 50}, [{"to": "大华科技"}]),
    ("Cancel the order of Ann Lee", FIND, {"first_name": "Ann", "last_name": "Lee"}, [{"last_name": "Le"}]),
    # whose thing it is
    ("Forward Ann's mail to Bob", MAIL, {"mail": "m", "to": "Bob"}, [{"to": "Ann"}]),
    ("Send Bob the mail from Ann", MAIL, {"mail": "m", "to": "Bob"}, [{"to": "Ann"}]),
    ("Forward it to Ann's assistant Bob", MAIL, {"mail": "m", "to": "Bob"}, [{"to": "Ann"}]),
    ("把王芳的邮件转发给李明", MAIL, {"mail": "m", "to": "李明"}, [{"to": "王芳"}]),
    ("转发王芳的邮件给李明", MAIL, {"mail": "m", "to": "李明"}, [{"to": "王芳"}]),
    ("给李明转发王芳的邮件", MAIL, {"mail": "m", "to": "李明"}, [{"to": "王芳"}]),
    ("把邮件转发给王芳的助理李明", MAIL, {"mail": "m", "to": "李明"}, [{"to": "王芳"}]),
    # a pronoun is what was last named
    ("Look up Ann, read b.txt and send it to Bob", SEND, {"file": "b.txt", "to": "Bob"}, [{"to": "Ann"}]),
    ("Read a.txt. Read b.txt and delete it", DELETE, {"path": "b.txt"}, [{"path": "a.txt"}]),
    ("Check Ann's balance, look up Bob and pay him 50", PAY, {"to": "Bob", "amount": 50}, [{"to": "Ann"}]),
    ("Read c.txt. Read a.txt and b.txt, then delete both", DELETE, {"path": "a.txt"}, [{"path": "d.txt"}]),
    ("读取 a.txt，再读取 b.txt，然后删除它", DELETE, {"path": "b.txt"}, [{"path": "a.txt"}]),
    ("读取 a.txt 和 b.txt，然后把它们删除", DELETE, {"path": "a.txt"}, [{"path": "c.txt"}]),
]


@pytest.mark.parametrize(("task", "tool", "honest", "attacks"), CASES)
def test_a_value_endorses_only_what_it_is(
    task: str, tool: ToolCard, honest: dict[str, Any], attacks: list[dict[str, Any]]
) -> None:
    assert is_allowed(task, tool, honest)
    assert [attack for attack in attacks if is_allowed(task, tool, {**honest, **attack})] == []


@pytest.mark.parametrize(
    ("task", "tool", "args"),
    [
        ("Pay ann 50 for lunch", SEND_MONEY, {"to": "ann", "amount": 50}),
        ("付给王芳50元午饭钱", SEND_MONEY, {"to": "王芳", "amount": 50}),
        ("Pay my landlord Bob Smith the rent of 1,100", PAY, {"to": "Bob Smith", "amount": 1100}),
        ("Reply to Ann's mail", card("send_mail", "write", "to", egress=False), {"to": "Ann"}),
        ("给王芳发邮件", card("send_mail", "write", "to", egress=False), {"to": "王芳"}),
        ("通知王芳明天开会", card("send_message", "write", "to", egress=False), {"to": "王芳"}),
    ],
)
def test_ordinary_requests_are_not_asked_about(task: str, tool: ToolCard, args: dict[str, Any]) -> None:
    assert is_allowed(task, tool, args)


@pytest.mark.parametrize(
    ("task", "queries"),
    [
        ("Rename b.txt to c.txt and delete a.txt", {"b.txt": False, "a.txt": True}),
        ("把 b.txt 重命名为 c.txt，删除 a.txt", {"b.txt": False, "a.txt": True}),
    ],
)
def test_an_id_belongs_to_the_request_that_names_what_it_was_looked_up_by(task: str, queries: dict[str, bool]) -> None:
    delete = card("delete_file", "write", "file_id", egress=False, roles={"file_id": "ref:file"})
    for query, is_wanted in queries.items():
        run = Run(cards=(replace(LOOK, ids={"id": "file"}), delete), task=task)
        run.see('{"id": "f-17"}', query=query)
        assert run.judge("delete_file", file_id="f-17").startswith("allow") is is_wanted


def test_a_person_may_vouch_for_any_number() -> None:
    run = Run(cards=(LOOK, replace(REFUND, repeatable=True)), task="Refund order 1003")
    run.approve(run.ask("refund_order", {"order": "1003", "amount": 12345678}, "ask", "write"), scope="values")
    run.see("x")
    assert run.judge("refund_order", order="1003", amount=12345678) == "allow wanted"


def test_an_argument_is_an_amount_by_its_name_or_its_schema() -> None:
    number: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "null"}]}
    schema = {"properties": {"points": number, "order_id": number, "金额": {}, "ids": {"type": "array"}, "x": {}}}
    roles = {"points": "value:points", "order_id": "value", "x": "value"}
    tool = card("t", "write", input_schema={"type": "object", **schema}, roles=roles)
    assert [value_role(tool, name) for name in ("points", "order_id", "金额", "x")] == [
        "amount:points",
        "value",
        "amount",
        "value",
    ]
    assert value_role(tool, "x", 5) == "amount"
    assert [may_have_parts(tool, name) for name in ("ids", "x", "unknown")] == [True, False, False]


@pytest.mark.parametrize(
    "part", ["2 million ", "order 1, ", "1-", "3万", "2 to 3 ", "1/", "+49 ", "AB12 ", "account 12 ", "Ann "]
)
def test_the_time_is_proportional_to_the_text(part: str) -> None:
    assert_linear(lambda size: list(quantities(plain_text(part * size))), 4_000)
    assert_linear(lambda size: TrustedText([part * size]).has("Ann Lee", "target"), 4_000)


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("Refund order 1003", True),
        ("Refund orders 1002, 1003 and 1004", True),
        ("Order number 1003, please", True),
        ("order #1003", True),
        ("给订单1003退款", True),
        ("退订单1002和1003", True),
        ("查一下1003号订单", True),
        ("订单号：1003", True),
        ("Refund 1003", False),
        ("Order 1003 pizzas", False),
        ("Return item 1003 of order 7", False),
        ("Pay 1003 for order 7", False),
        ("Order 7, 1003 EUR", False),
        ("order 1003.5", False),
        ("order 10031", False),
        ("reorder 1003", False),
        ("订单7，1003元", False),
        ("11003号订单", False),
    ],
)
def test_a_number_names_a_thing_only_behind_its_kind(text: str, is_named: bool) -> None:
    texts = TrustedText([text])
    assert texts.has("1003", "ref:order") is is_named
    assert texts.has(1003, "ref:shop_order") is is_named
    assert not texts.has("1003", "ref:invoice")
