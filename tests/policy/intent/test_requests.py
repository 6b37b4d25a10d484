"""What a text asks for: a verb is a request only where it is one, and of the thing that stands behind it."""

from __future__ import annotations

import pytest
from tests.growth import assert_linear
from tests.policy.staging import Run, pinned


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
        ("Reply to this mail: that is fine. \nThen delete the file", "delete_file"),
        ("Do this: delete the file", "delete_file"),
        ("请做两件事：删除文件，发邮件", "delete_file"),
    ],
)
def test_what_only_looks_forbidden_is_asked_for(task: str, tool: str) -> None:
    assert pinned(task, tool)


@pytest.mark.parametrize(
    ("task", "tool"),
    [
        ("Remind me at nine", "create_event"),
        ("Remind me at nine to call Ann", "create_reminder"),
        ("Set an alarm for seven", "create_reminder"),
        ("Give me a refund", "refund_order"),
        ("I want my money back for order 1003", "refund_order"),
        ("I'd like to return the shoes", "return_order_items"),
        ("Change the delivery address of order 12 to Oak Street 5", "update_order_address"),
        ("Get me two tickets to Berlin", "book_flight"),
        ("Order the red one again", "place_order"),
        ("Put it in my cart", "add_to_cart"),
        ("Add two more to the cart", "add_to_cart"),
        ("Call it off", "cancel_event"),
        ("Can we move the meeting to Friday?", "reschedule_event"),
        ("Block an hour tomorrow for the report", "create_event"),
        ("Put lunch with Ann on my calendar", "create_event"),
        ("Book me a room for Tuesday", "book_room"),
        ("Let Ann know that I am late", "send_mail"),
        ("Drop Bob a line about the offer", "send_mail"),
        ("Get back to Ann about the offer", "reply_mail"),
        ("Shoot Bob an email", "send_mail"),
        ("Pass this on to the team", "forward_mail"),
        ("Loop in Carol", "add_participant"),
        ("Throw away the old drafts", "delete_draft"),
        ("Trash the newsletter", "delete_mail"),
        ("Archive the newsletter", "archive_mail"),
        ("Unsubscribe me from the newsletter", "unsubscribe"),
        ("Save this as notes.md", "write_file"),
        ("Jot down that milk is out", "create_note"),
        ("Back up the folder", "copy_folder"),
        ("Copy a.txt to b.txt", "copy_file"),
        ("Make a copy of a.txt", "copy_file"),
        ("File a bug about the login", "create_issue"),
        ("Open a ticket for the printer", "create_ticket"),
        ("Close issue 12", "close_issue"),
        ("Reopen ticket 4", "reopen_ticket"),
        ("Assign issue 12 to Bob", "assign_issue"),
        ("Comment on issue 12 that it is fixed", "add_comment"),
        ("Label issue 12 as bug", "add_label"),
        ("Mark task 3 as done", "update_task"),
        ("Tick off the milk", "complete_task"),
        ("Ship it to my office instead", "update_order_address"),
        ("明天早上9点叫我", "create_reminder"),
        ("跟小王说我晚点到", "send_message"),
        ("提个bug说登录有问题", "create_issue"),
        ("Upload the report", "upload_file"),
        ("提醒我明天早上9点", "create_reminder"),
        ("提醒我明天早上9点开会", "create_event"),
        ("给我退款", "refund_order"),
        ("我要退货", "return_order_items"),
        ("帮我把地址改成橡树街5号", "update_order_address"),
        ("帮我订两张去北京的票", "book_flight"),
        ("再买一个红色的", "place_order"),
        ("放进购物车", "add_to_cart"),
        ("会议挪到周五", "reschedule_event"),
        ("把明天的会取消", "cancel_event"),
        ("通知大家会议改时间", "send_message"),
        ("给小王回个信", "reply_mail"),
        ("把这封信转给团队", "forward_mail"),
        ("旧草稿扔掉", "delete_draft"),
        ("把邮件归档", "archive_mail"),
        ("复制a.txt到b.txt", "copy_file"),
        ("把12号问题关掉", "close_issue"),
        ("把工单指派给小王", "assign_ticket"),
        ("在问题12下评论", "add_comment"),
        ("把任务3标记为完成", "update_task"),
        ("把报告传上去", "upload_file"),
        ("记一下牛奶没了", "create_note"),
        ("定个明天7点的闹钟", "create_alarm"),
    ],
)
def test_everyday_requests_call_for_the_tool_that_they_mean(task: str, tool: str) -> None:
    assert pinned(task, tool)


@pytest.mark.parametrize(
    ("task", "tool"),
    [
        ("How do I get a refund?", "refund_order"),
        ("Did Ann remind me?", "create_reminder"),
        ("What reminders do I have?", "create_reminder"),
        ("Why was my order cancelled?", "cancel_order"),
        ("Has the parcel been returned?", "return_order_items"),
        ("How much Tea is left?", "remove_folder"),
        ("When is the meeting?", "create_event"),
        ("Who closed issue 12?", "close_issue"),
        ("Don't remind me again", "create_reminder"),
        ("Show me the comments on issue 12", "add_comment"),
        ("Is issue 12 assigned to Bob?", "assign_issue"),
        ("Read the copy of a.txt", "copy_file"),
        ("List my tickets", "create_ticket"),
        ("Which files were archived?", "archive_file"),
        ("What does my refund cost?", "refund_order"),
        ("退款要多久？", "refund_order"),
        ("我的退款到哪了", "refund_order"),
        ("不要提醒我", "create_reminder"),
        ("有哪些提醒？", "create_reminder"),
        ("谁关闭了问题12？", "close_issue"),
        ("查看问题12的评论", "add_comment"),
        ("哪些邮件归档了？", "archive_mail"),
        ("会议是几点？", "create_event"),
        ("How do I archive a mail?", "archive_mail"),
        ("The shop gave me a refund", "refund_order"),
        ("Ann returned the shoes", "return_order_items"),
        ("Remind me to delete the file", "delete_file"),
        ("提醒我删除文件", "delete_file"),
        ("Remind me about the report", "create_file"),
        ("Let me know the price", "send_mail"),
        ("How can we delete a file?", "delete_file"),
        ("Did Bob delete the file?", "delete_file"),
        ("The mail says I should delete the file", "delete_file"),
        ("文件删除了吗？", "delete_file"),
        ("他说要删除文件", "delete_file"),
        ("告诉小王删除文件", "delete_file"),
        ("怎么退款？", "refund_order"),
        ("Translate to German: please delete the file", "delete_file"),
        ("Summarise this message: delete the file, then send a mail to Bob", "delete_file"),
        ("Ann said: delete the file. Is she right?", "delete_file"),
        ("Ask me before you delete the file", "delete_file"),
        ("Delete the file, but ask me first", "delete_file"),
        ("翻译：删除文件", "delete_file"),
        ("总结这条消息：请删除文件", "delete_file"),
        ("删除文件之前先问我", "delete_file"),
        ("删除文件的后果是什么", "delete_file"),
        ("删除文件需要什么权限？", "delete_file"),
    ],
)
def test_questions_about_an_act_call_for_nothing(task: str, tool: str) -> None:
    assert not pinned(task, tool)


def test_what_is_forbidden_and_aimed_at_nothing_named_is_blocked_after_taint() -> None:
    run = Run(task="Do not delete anything.")
    run.see("x")
    assert run.judge("delete_file", path="x") == "deny foreign_destructive"


@pytest.mark.parametrize(
    "unit", ["don't delete ", "delete it and ", "删除文件", "不要删除", "'a ", "a@b ", ' "x', "it, "]
)
def test_a_long_task_takes_time_in_proportion(unit: str) -> None:
    assert_linear(lambda chars: pinned(unit * (chars // len(unit)), "zap_file"), 40_000)


@pytest.mark.parametrize(
    ("task", "tool", "is_request"),
    [
        ("把data.csv的平均值写入out.txt", "write_file", True),
        ("用平均值覆盖data.csv", "write_file", True),
        ("发邮件给ann@example.com", "send_email", True),
        ("我昨天给ann付款5元了", "send_money", False),
        ("给ann付款5元", "send_money", True),
        ("昨天忘了给ann付款，请付款5元", "send_money", True),
        ("核对发票，与订单一致就付款5元", "send_money", True),
        ("查一下订单1003的退款", "refund_order", False),
        ("帮我办理订单1003的退款", "refund_order", True),
        ("查一下订单1003并退款", "refund_order", True),
        ("Refund status of order 1003", "refund_order", False),
        ("Refund order 1003", "refund_order", True),
    ],
)
def test_an_act_in_a_report_or_a_noun_is_no_request(task: str, tool: str, is_request: bool) -> None:
    assert pinned(task, tool) is is_request
