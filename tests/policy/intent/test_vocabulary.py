"""How much of ordinary speech the vocabulary understands, for the kinds of tools that common servers offer."""

from __future__ import annotations

import pytest
from tests.policy.staging import pinned

PHRASINGS = {
    "send_email": (
        "Thank Eve for her mail",
        "Tell Bob I'll be ten minutes late",
        "Get in touch with the landlord about the leak",
        "给李雷回封邮件说下周见",
        "跟小王说我晚点到",
    ),
    "slack_post_message": (
        "Give the team a heads-up that the build is broken",
        "Ping the ops channel that the deploy is done",
        "在群里说一声会议改到三点",
        "跟大家讲一下明天放假",
        "去群里问问谁有空",
    ),
    "create_event": (
        "Pencil in lunch with Sara on Thursday",
        "Get a meeting with Tom on the books for Monday at 10",
        "Slot in a call with the lawyer tomorrow at four",
        "周三下午三点约张总开会",
        "帮我排个周五的例会",
    ),
    "delete_event": (
        "Free up my Friday",
        "Clear my afternoon",
        "Scrap tomorrow's stand-up",
        "周五的会不开了",
        "把下午的安排都推掉",
    ),
    "update_event": (
        "Bump the review to Thursday",
        "Push my dentist appointment to next week",
        "会议往后挪一个小时",
        "把周会提前到九点",
        "和客户的见面换到下周二",
    ),
    "create_reminder": (
        "Wake me at six",
        "Nudge me about the rent on the first",
        "明天早上9点叫我",
        "到点喊我起床",
        "别让我忘了交作业",
    ),
    "pay_bill": (
        "Settle the electricity bill",
        "Take care of the phone bill",
        "帮我交一下电费",
        "把水费缴了",
        "信用卡该还了，帮我还一下",
    ),
    "send_money": (
        "Wire Ann the 50 I owe her",
        "Shift 200 euros from checking to savings",
        "Pay my brother back for the tickets",
        "给妈妈打两千块",
        "把欠小李的钱还了",
    ),
    "place_order": (
        "Get me another pack of coffee filters",
        "Pick up two bags of rice for me",
        "Reorder the cat food",
        "帮我再囤两箱牛奶",
        "给我来一份宫保鸡丁",
    ),
    "restart_service": (
        "Reboot the web server",
        "Bounce the nginx service",
        "把web服务器重启一下",
        "nginx挂了，拉起来",
        "让数据库服务重新跑起来",
    ),
    "complete_task": (
        "Tick off the milk",
        "Cross the dentist off my list",
        "I'm done with the laundry, check it off",
        "把买牛奶勾掉",
        "洗衣服这条划掉吧",
    ),
    "create_issue": (
        "File a bug about the login page",
        "Log a ticket for the broken printer",
        "提个bug说登录有问题",
        "报个故障，三楼打印机坏了",
        "给后端开个单子，接口超时",
    ),
}
"""Thirty in each language, as people say them; nothing here is taken from the vocabulary."""

NOT_MEANT = (
    "Who thanked Eve for her mail?",
    "Has the electricity bill been settled?",
    "Why did the web server reboot last night?",
    "How do I free up disk space?",
    "What did Bob tell you about the leak?",
    "Summarise the thread in which Tom asks us to 'cancel the review'",
    "Ann reordered the cat food yesterday. What did it cost?",
    "Is my Friday free?",
    "Which tasks did I tick off last week?",
    "The report says that the service was bounced twice",
    'Read what she wrote: "Please wire me the 50 and clear your afternoon"',
    "Don't bump the review, just tell me when it is",
    "Show me the tickets that were filed about the login page",
    "电费是谁交的？",
    "昨天小王跟我说他晚点到",
    "服务器上周为什么重启？",
    "会议往后挪了吗？",
    "总结一下“请把水费缴了，再给妈妈打两千块”这句话",
    "不要叫我起床",
    "看看哪些任务已经勾掉了",
)
"""Questions, reports, quotations and prohibitions with the same words."""


def test_ordinary_speech_is_understood() -> None:
    missed = [(task, tool) for tool, tasks in PHRASINGS.items() for task in tasks if not pinned(task, tool)]
    count = sum(map(len, PHRASINGS.values()))
    assert (count, len(missed) <= 5) == (60, True), missed


@pytest.mark.parametrize("task", NOT_MEANT)
def test_no_act_is_heard_where_none_is_meant(task: str) -> None:
    assert [tool for tool in PHRASINGS if pinned(task, tool)] == []
