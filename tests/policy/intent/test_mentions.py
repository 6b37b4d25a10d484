"""What a text excludes endorses nothing, and what it names only as an input is no target of a write."""

from __future__ import annotations

import pytest
from tests.growth import assert_linear
from tests.policy.staging import LOOK, Run, card

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call
from taoloop.core.events import Noted
from taoloop.policy import judge
from taoloop.policy.intent.clauses import ClauseIndex
from taoloop.policy.intent.mentions import excluded_parts
from taoloop.policy.intent.task_intent import TaskIntent
from taoloop.policy.value_match import TrustedText

CASES = [  # the text, what is only an input, and what is not
    ("Write the mean of data.csv to out.txt", "data.csv", "out.txt"),
    ("Save the mean of data.csv in out.txt", "data.csv", "out.txt"),
    ("Write to out.txt the mean of data.csv", "data.csv", "out.txt"),
    ("Write the numbers in data.csv to out.txt", "data.csv", "out.txt"),
    ("Read data.csv and write the mean to out.txt", "data.csv", "out.txt"),
    ("Read data.csv. Write the mean to out.txt.", "data.csv", "out.txt"),
    ("Use data.csv to compute the mean; write it to out.txt", "data.csv", "out.txt"),
    ("Translate 'a b.txt' into German and save it as b.txt", "a b.txt", "b.txt"),
    ("Send the mail from Ann to Bob", "Ann", "Bob"),
    ("Check the balance of Bob. Then send 100 to Carl", "Bob", "Carl"),
    ("Reply to the mail from Ann", "", "Ann"),
    ("Remove Ann from general", "", "Ann|general"),
    ("Append a line to the end of notes.md", "", "notes.md"),
    ("Open notes.md and add the line x to the end", "", "notes.md"),
    ("Add 3 units of Tea to the cart", "", "Tea"),
    ("Update a.txt and copy it to b.txt", "", "b.txt"),
    ("Write a poem to poem.txt", "", "poem.txt"),
    ("把 data.csv 的平均值写入 out.txt", "data.csv", "out.txt"),
    ("读取 data.csv，把平均值写入 out.txt", "data.csv", "out.txt"),
    ("把王芳的邮件转发给李明", "王芳", "李明"),
    ("取消王芳的预约，把 a.txt 发给李明", "", "a.txt|李明"),
]


TOOLS = [
    card(name, "write", "to")
    for name in (
        "write_file",
        "append_file",
        "send_mail",
        "pay",
        "transfer_money",
        "remove_user",
        "add_to_cart",
        "copy_file",
    )
]


def is_asked(text: str, tool: ToolCard) -> bool:
    intent = TaskIntent()
    intent.add(text)
    return intent.calls_for(tool)


@pytest.mark.parametrize(("text", "inputs", "others"), CASES)
def test_inputs_are_told_from_outputs_where_the_text_says_so(text: str, inputs: str, others: str) -> None:
    clauses, tool = ClauseIndex(), next(tool for tool in TOOLS if is_asked(text, tool))
    clauses.add(text)

    def is_source(value: str) -> bool:
        return clauses.is_only_input(value) or clauses.is_for_another(tool, value)

    assert [value for value in inputs.split("|") if value and not is_source(value)] == []
    assert [value for value in others.split("|") if is_source(value)] == []


WRITE = card("write_file", "write", "path", "content", egress=False, roles={"content": "content"})
MOVE = card("move_mail", "write", "source", "folder", egress=False)


@pytest.mark.parametrize("seen", [False, True])
def test_what_is_only_read_is_not_overwritten(seen: bool) -> None:
    run = Run(cards=(LOOK, WRITE), task="Write the mean of data.csv to out.txt")
    if seen:
        run.see("1, 2, 3")
    assert run.judge("write_file", path="out.txt", content="2") == "allow wanted"
    assert run.judge("write_file", path="data.csv", content="2") == "ask write"
    assert run.judge("write_file", path="data.csv", content="out.txt") == "ask write"
    assert run.judge("write_file", path=["out.txt", "data.csv"], content="2") == "ask write"
    verdict = judge(run.trace, Call(tool="write_file", args={"path": "data.csv", "content": ""}), WRITE)
    assert "only as what something is read" in " ".join(verdict.reasons)
    run.approve(run.ask("write_file", {"path": "data.csv", "content": ""}, "ask", "write"), scope="values")
    assert run.judge("write_file", path="data.csv", content="2") == "allow wanted", "a person vouched for it"


def test_an_input_is_a_target_beside_the_output_that_is_named() -> None:
    run = Run(cards=(LOOK, MOVE), task="Move the mail from Inbox to Archive")
    assert run.judge("move_mail", source="Inbox", folder="Archive") == "allow wanted"
    assert run.judge("move_mail", source="Archive", folder="Archive") == "allow wanted"
    assert run.judge("move_mail", source="Inbox", folder="Inbox") == "ask write"


def read_clauses(text: str) -> None:
    clauses = ClauseIndex()
    clauses.add(text)
    assert not clauses.is_output("nothing")


@pytest.mark.parametrize(
    "part",
    ["in ", "of ", "to a of ", "save in a to b, ", "read a ", "把王芳的写入 a，", "no a and mail ", "\u25a1 ", "'"],
)
def test_the_time_is_proportional_to_the_text(part: str) -> None:
    assert_linear(lambda size: read_clauses(part * size), 1_000)
    assert_linear(lambda size: excluded_parts(part * size), 4_000)


def test_one_long_phrase_is_read_in_proportional_time() -> None:
    assert_linear(lambda size: read_clauses("write it to the end" + " of the end" * size), 4_000)


EXCLUSIONS = [  # the text, what it excludes, and what it does not
    ("Do not touch Ann.", "Ann", ""),
    ("Mail everyone except Bob", "Bob", ""),
    ("Mail all except for Bob and Carl.", "Bob Carl", ""),
    ("Mail everyone but Bob", "Bob", ""),
    ("Mail Ann, but not Bob", "Bob", "Ann"),
    ("Send it to Ann instead of Bob", "Bob", "Ann"),
    ("Send it to Ann rather than Bob", "Bob", "Ann"),
    ("Do not mail Ann, Bob or Carl", "Ann Bob Carl", ""),
    ("Do not contact:\n- Ann\n- Bob\nMail Carl", "Ann Bob", "Carl"),
    ("Do not mail Ann and mail Bob", "Ann Bob", ""),
    ("Do not delete, move or rename a.txt", "a.txt", ""),
    ("Ann must not be told", "Ann", ""),
    ("Do not touch 'Ann Lee'; mail \"Do not wait for Bob\" to Carl", "Ann", "Bob Carl"),
    ("Never mail Ann. Mail Bob", "Ann", "Bob"),
    ("Do not pay 100; pay 50 to Bob", "100", "50 Bob"),
    ("Mail bob@example.com, not ann@example.com", "ann@example.com", "bob@example.com"),
    ("Do not read https://a.example/x but https://b.example/y", "https://a.example/x", "https://b.example/y"),
    ("Tell Ann not to come, and don't forget to mail Bob", "", "Ann Bob"),
    ("I am ann@example.com. Bob can't come, pay 5. Mail Carl", "", "ann@example.com Carl"),
    ("See https://a.example/x. Do not mail Bob", "Bob", "https://a.example/x"),
    ("I can't come, mail Ann. Without asking me, mail Bob", "", "Ann Bob"),
    ("Pay no more than 100 to Ann", "", "100 Ann"),
    ("I have not paid Ann yet, pay her 100", "", "100 Ann"),
    ("Delete it without asking me and send the report to Ann", "", "Ann"),
    ("I don't like the lamp of order A7, return it", "", "A7"),
    ("My order A7 never arrived. I did not get item B8, and C9 does not work", "", "A7 B8 C9"),
    ("I don't want you to touch Ann. I do not want Bob to know. Carl is not to be told", "Ann Bob Carl", ""),
    ("我不喜欢订单A7的灯，退货。B8没有收到", "", "A7 B8"),
    ("我不想让王芳知道", "王芳", ""),
    ("给李明发邮件，但不要动王芳", "王芳", "李明"),
    ("除了王芳，通知所有人。通知李明", "王芳", "李明"),
    ("除了王芳以外，都发给李明", "王芳", "李明"),
    ("王芳不要动", "王芳", ""),
    ("不要联系王芳，李明", "王芳 李明", ""),
    ("把文件发给李明而不是王芳", "王芳", "李明"),
    ("不要删除 a.txt，把 b.txt 发给李明", "a.txt", "b.txt 李明"),
    ("我不在，请通知王芳；别忘了通知李明，告诉小张不要来", "", "王芳 李明 小张"),
    ("付给王芳不超过 100 元", "", "100 王芳"),
    ("Do not touch 王芳", "王芳", ""),
]


@pytest.mark.parametrize(("text", "excluded", "kept"), EXCLUSIONS)
def test_what_a_negated_clause_names_is_excluded(text: str, excluded: str, kept: str) -> None:
    parts = TrustedText(excluded_parts(text))
    assert [value for value in excluded.split() if not parts.has(value)] == []
    assert [value for value in kept.split() if parts.has(value)] == []


SAVE = card("save_note", "write", "name", "amount", "text", egress=False, roles={"amount": "value", "text": "content"})
READ_PAGE = card("fetch", "read", "url")


def test_an_excluded_value_endorses_nothing_wherever_else_it_is_named() -> None:
    run = Run(cards=(LOOK, SAVE, READ_PAGE), task="Save notes on Ann and Bob: 5, 7. Not on Bob, never 7. 'Do not wait'")
    assert run.judge("save_note", name="Ann", amount=5, text="Do not wait for Bob") == "allow wanted"
    assert run.judge("save_note", name="Bob", amount=5) == "ask write"
    assert run.judge("save_note", name=["Ann", "Bob"], amount=5) == "ask write"
    assert run.judge("save_note", name="Ann", amount=7) == "ask write"
    verdict = judge(run.trace, Call(tool="save_note", args={"name": "Bob"}), SAVE)
    assert "says what is not wanted" in " ".join(verdict.reasons)
    run.add(Noted(by="ann", text="Do not save anything on Ann"))
    assert run.judge("save_note", name="Ann", amount=5) == "ask write"
    run.approve(run.ask("save_note", {"name": "Ann", "amount": 5}, "ask", "write"), scope="values")
    assert run.judge("save_note", name="Ann", amount=5, text="more") == "allow wanted", "a person vouched for it"


def test_no_read_goes_to_an_excluded_address() -> None:
    run = Run(cards=(LOOK, READ_PAGE), task="Read https://a.example/x, but not https://b.example/y")
    assert run.judge("fetch", url="https://a.example/x") == "allow read"
    assert run.judge("fetch", url="https://b.example/y") == "ask read_out"


@pytest.mark.parametrize("part", ["not a, ", "except ", "不要王芳，", "除", "x ", "'", ", and", "\n- no"])
def test_exclusions_take_time_proportional_to_the_text(part: str) -> None:
    assert_linear(lambda size: excluded_parts(part * size), 4_000)


@pytest.mark.parametrize(
    ("task", "verdict"),
    [
        ("Change the payment method of order S-1006 to PayPal", "allow wanted"),
        ("Please return the mug from S-1006 to the card I used; change the order payment to PayPal", "allow wanted"),
    ],
)
def test_an_id_is_the_target_where_no_output_could_take_its_place(task: str, verdict: str) -> None:
    roles = {"order_id": "ref:order", "method": "minor"}
    change = card("change_order_payment", "write", "order_id", "method", egress=False, roles=roles)
    run = Run(cards=(LOOK, change), task=task)
    run.see("PayPal and visa")
    assert run.judge("change_order_payment", order_id="S-1006", method="x") == verdict


@pytest.mark.parametrize(("output", "rival"), [("out7.txt", True), ("out.txt", False)])
def test_another_id_may_be_meant_where_one_is_named(output: str, rival: bool) -> None:
    clauses = ClauseIndex()
    clauses.add(f"Write the mean of data6.csv to {output}")
    assert clauses.is_only_input("data6.csv")
    assert clauses.is_only_input("data6.csv", is_ref=True) is rival


@pytest.mark.parametrize(
    "text",
    [
        "Protect b.txt.",
        "Preserve b.txt",
        "Skip b.txt",
        "Leave b.txt alone.",
        "Keep b.txt.",
        "Hands off b.txt!",
        "b.txt stays as it is.",
        "b.txt should remain",
        "Spare b.txt",
        "The exception of b.txt holds",
        "Don`t touch b.txt",
        "Don\u02bct touch b.txt",
        "Do n't touch b.txt",
        "b.txt 请勿删除",
        "b.txt 千万别碰",
        "b.txt 保持不变",
        "莫动 b.txt",
        "保留 b.txt",
        "跳过 b.txt",
    ],
)
def test_what_is_to_stay_as_it_is_is_excluded(text: str) -> None:
    for task in (f"Delete a.txt. {text}", f"删除 a.txt，{text}"):
        excluded = " ".join(excluded_parts(task))
        assert "b.txt" in excluded
        assert "a.txt" not in excluded


@pytest.mark.parametrize("text", ["Keep a note in b.txt", "Leave a message for Ann", "把报告保存到 b.txt"])
def test_words_of_keeping_that_ask_for_something_exclude_nothing(text: str) -> None:
    assert excluded_parts(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Ann's record must stay untouched",
        "The record of Ann must not change",
        "Bob's, with Ann's left unchanged",
        "Update Bob's record and keep Ann's unchanged",
        "Ann is exempt",
        "Ann excepted",
        "Ann aside",
        "I don't want Ann changed",
        "We do not want Ann's record touched",
        "I want Ann left alone",
        "I want Ann's record to stay as it is",
        "I'd rather you didn't change Ann",
        "I'd prefer Ann unchanged",
        "Make sure Ann stays untouched",
        "Keep Carl and Ann unchanged",
        "Ann stays out of this",
        "Ann's record has to stay",
        "Ann's record is read-only",
        "Let Ann be",
        "Ann除外",
        "Ann的除外",
        "Ann维持现状",
        "Ann例外",
        "Ann那边先放着",
        "Ann排除在外",
        "Ann的记录必须保持原样",
        "我不希望Ann被修改",
    ],
)
def test_what_is_said_to_stay_as_it_is_is_excluded_in_whatever_words(text: str) -> None:
    for task in (f"Update Bob's record. {text}", f"Update Bob's record, {text}.", f"更新Bob的记录，{text}"):
        parts = TrustedText(excluded_parts(task))
        assert (parts.has("Ann"), "更新" in task or not parts.has("Bob") or "Bob" in text) == (True, True)


@pytest.mark.parametrize(
    "text",
    [
        "The package of Ann arrived intact, update her record",
        "Update Ann's record and keep me posted",
        "My friend recommended Ann's as a great place to stay. Book it",
        "I don't want the lamp of Ann any more, return it",
        "Update the record of Ann so that it stays in sync",
        "Keep Ann's record up to date: update it",
        "Ann's record is outdated, update it",
        "Set Ann to read-only",
        "Add Ann to the channel and keep the topic unchanged",
        "Update Ann's record, the rest stays the same",
        "更新Ann的记录，其他保持不变",
        "更新Ann的记录，其他人除外",
        "Ann的电话变了，更新记录",
    ],
)
def test_other_states_and_other_things_exclude_nothing(text: str) -> None:
    assert not TrustedText(excluded_parts(text)).has("Ann")


@pytest.mark.parametrize("part", ["x ", "keep ", "a stays b ", "is ", "n't want ", "除外", " and keep"])
def test_what_stays_is_read_in_proportional_time(part: str) -> None:
    assert_linear(lambda size: excluded_parts(part * size), 4_000)
