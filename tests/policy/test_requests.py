"""What a text asks for: a verb is a request only where it is one, and of the thing that stands behind it."""

from __future__ import annotations

import pytest
from tests.growth import assert_linear

from .staging import Run, pinned


@pytest.mark.parametrize(
    ("task", "tool"),
    [
        ("Send Ann 50 euros", "send_money"),
        ("Find the largest file and delete it", "delete_file"),
        ("Could you delete all the old emails?", "delete_email"),
        ("The file should be deleted", "delete_file"),
        ("I want the meeting cancelled", "cancel_event"),
        ("Call off the meeting", "cancel_event"),
        ("I'd like to pay the bill", "pay_bill"),
        ("We have to cancel the meeting", "cancel_meeting"),
        ("Go ahead and make a reservation for two", "reserve_table"),
        ("Set up a recurring payment", "schedule_transaction"),
        ("Order 3 pizzas", "place_order"),
        ("Email Bob the notes", "send_email"),
        ("Add Charlie to the channel", "add_user_to_channel"),
        ("Save the summary as notes.md", "write_file"),
        ("Set the thermostat to 21", "set_temperature"),
        ("Merge the branch", "merge_branch"),
        ("Cancel order 17 and refund the customer", "refund_order"),
        ("帮我取消明天的会议", "cancel_calendar_event"),
        ("找到最大的文件，删掉它", "delete_file"),
        ("把会议改到周五", "reschedule_meeting"),
        ("能不能帮我删除旧文件", "delete_file"),
        ("在日历里创建一个会议", "create_calendar_event"),
        ("给客户退款", "issue_refund"),
        ("记住我喜欢茶", "remember"),
    ],
)
def test_what_is_asked_for(task: str, tool: str) -> None:
    assert pinned(task, tool)


@pytest.mark.parametrize(
    ("task", "tool"),
    [
        ("Send Bob an email", "send_money"),
        ("Send Ann 50 euros", "send_email"),
        ("Delete the file", "delete_email"),
        ("Update the password", "update_user_info"),
        ("Create an event with Sarah", "create_file"),
        ("Make a reservation at the hotel", "create_calendar_event"),
        ("Is the shop open on Sunday?", "create_calendar_event"),
        ("删除这封邮件", "delete_file"),
        ("预订一家酒店", "reserve_restaurant"),
    ],
)
def test_the_act_on_another_thing_is_not_asked_for(task: str, tool: str) -> None:
    assert not pinned(task, tool)


@pytest.mark.parametrize(
    ("task", "tool"),
    [
        ("Summarise my emails", "send_email"),
        ("Which files are shared with Bob?", "share_file"),
        ("Summarise the message that Ann sent to Bob", "send_message"),
        ("I am planning a trip", "plan_trip"),
        ("I'll book a room later", "reserve_hotel"),
        ("How do I delete a file?", "delete_file"),
        ("Remind me to delete the file", "delete_file"),
        ("Tell me the price", "send_message"),
        ("Post the question 'please delete my file'", "delete_file"),
        ("总结已删除的文件", "delete_file"),
        ("查看付款记录", "pay_bill"),
        ("告诉我邮件里写了什么", "send_email"),
        ("我昨天删除了一个文件，恢复它", "delete_file"),
        ("今天有什么安排", "create_calendar_event"),
        ("库存还有多少", "save_file"),
    ],
)
def test_what_is_told_of_is_not_asked_for(task: str, tool: str) -> None:
    assert not pinned(task, tool)


@pytest.mark.parametrize(
    ("task", "tool"),
    [
        ("Do not send anything", "send_email"),
        ("Don\u2019t delete the file", "delete_file"),
        ("Do not delete, move or rename any file", "delete_file"),
        ("Do not delete, move or rename any file", "rename_file"),
        ("Read it without deleting the file", "delete_file"),
        ("Never pay anything", "pay_bill"),
        ("No mails may be sent", "send_email"),
        ("You must not delete anything", "delete_file"),
        ("Draft a reply instead of sending it", "send_message"),
        ("Do not use delete_file", "delete_file"),
        ("Do not frobnicate the widgets", "frobnicate_widget"),
        ("不要发送任何邮件", "send_email"),
        ("请勿删除文件", "delete_file"),
        ("别删文件", "delete_file"),
        ("文件不能删", "delete_file"),
        ("禁止删除、移动或发送文件", "move_file"),
        ("不得使用 delete_file", "delete_file"),
        ("不要 delete 文件", "delete_file"),
    ],
)
def test_what_is_forbidden_is_not_asked_for(task: str, tool: str) -> None:
    assert not pinned(task, tool)


@pytest.mark.parametrize(
    ("task", "tool"),
    [
        ("Please don't forget to delete the file", "delete_file"),
        ("Delete a.txt. Do not delete b.txt.", "delete_file"),
        ("Don't send it, delete the file", "delete_file"),
        ("Why don't you send Bob an email?", "send_email"),
        ("别忘了发邮件给王五", "send_email"),
        ("不要发邮件，删除文件就行", "delete_file"),
    ],
)
def test_what_only_looks_forbidden_is_asked_for(task: str, tool: str) -> None:
    assert pinned(task, tool)


def test_what_is_forbidden_and_aimed_at_nothing_named_is_blocked_after_taint() -> None:
    run = Run(task="Do not delete anything.")
    run.see("x")
    assert run.judge("delete_file", path="x") == "deny foreign_destructive"


@pytest.mark.parametrize(
    "unit", ["don't delete ", "delete it and ", "删除文件", "不要删除", "'a ", "a@b ", ' "x', "it, "]
)
def test_a_long_task_takes_time_in_proportion(unit: str) -> None:
    assert_linear(lambda chars: pinned(unit * (chars // len(unit)), "zap_file"), 40_000)
