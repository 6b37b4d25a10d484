"""A rule that lets a call run because it was requested is met by requests for now, and by nothing else."""

from __future__ import annotations

import pytest
from tests.growth import assert_linear
from tests.policy.staging import LOOK, Run, card

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call
from taoloop.core.events import Pinned
from taoloop.core.policy import Policy, Rule
from taoloop.policy.request_terms import asks_now

REFUND = card("refund_order", "write", "order", "amount", egress=False, roles={"amount": "value"})
EVENT = card("cancel_event", "write", "event", egress=False)
PLAN = card("cancel_subscription", "write", "name", "date", "note", egress=False, roles={"note": "content"})
POLICY = Policy(profile="headless", rules=(Rule(verdict="allow", requested=True),))

NOT_NOW = """
Why did you refund order 1003?
Did you refund order 1003?
Have you refunded order 1003 yet
You refunded order 1003, right?
who told you to refund order 1003
Tell me why you refunded order 1003.
Can you tell me why you refunded order 1003?
Could you explain how to refund order 1003?
Why did you refund order 1003, could you explain?
Do not refund order 1003
Please don't refund order 1003.
Should I refund order 1003?
Should we refund order 1003
Refund order 1003 next month
Refund order 1003 tomorrow
Next month, refund order 1003.
Remind me tomorrow to refund order 1003
Remind me tomorrow morning at nine after breakfast to refund order 1003
Please remind me to refund order 1003
Is it possible to refund order 1003?
What happens if I refund order 1003?
What would happen if you refund order 1003?
I might refund order 1003
I'm thinking about refunding order 1003
Check whether order 1003 has shipped and if not refund it.
When it arrives, refund order 1003
Once it arrives, refund order 1003.
Wait until Friday, then refund order 1003 on Friday
Refund order 1003 in two weeks.
I want to know why you refunded order 1003
How do I refund order 1003?
Let me know when you refund order 1003
Maybe refund order 1003
你为什么退了款?
你为什么给订单1003退款?
为什么退款
请告诉我为什么给订单1003退款
订单1003退款了吗?
你给订单1003退款了?
不要给订单1003退款
要不要给订单1003退款?
明天给订单1003退款
下个月再退款
提醒我明天给订单1003退款
过两天给订单1003退款
等收到货后再给我退款
是不是应该退款
能退款吗?
我在考虑给订单1003退款
Can I get a refund for order 1003 if the item is broken?
Could we get a refund for order 1003 once it has shipped?
Can we refund orders?
Can we refund an order?
Can we refund order 1003 after it has shipped?
Can we refund order 1003 for free?
Why can't we refund order 1003?
Could we have refunded order 1003?
Would it be possible to refund order 1003 without a fee?
Bob asked why we refunded order 1003
Ann asked: can you refund order 1003?
Translate into German: Refund order 1003
能不能给订单1003退款，要收费吗？
什么情况下能给订单1003退款？
If it is broken, can I get a refund for order 1003?
If it is broken, can we refund order 1003?
Summarise the mail that says "refund order 1003"
如果坏了，能不能给订单1003退款？
客户问能不能给订单1003退款
"""

NOW = """
Refund order 1003
If it is sold out, refund order 1003
Refund order 1003 if it has not shipped
Unless it has shipped, refund order 1003.
如果没货,就给订单1003退款
Refund order 1003 to my card and am willing to pay the fee
Please refund order 1003.
Could you refund order 1003?
Can you please refund order 1003?
Would you mind refunding order 1003?
I'd like you to refund order 1003.
I want a refund for order 1003
I want to get a refund for order 1003
I'd like to receive my money back
Can I get a refund for order 1003?
If possible, refund order 1003
Please refund order 1003 if you can.
I was wondering if you could refund order 1003.
When I opened the box it was broken, please refund order 1003.
Refund order 1003 and let me know when it is done.
Refund order 1003, ok?
Hi, why is it late? Please refund order 1003.
The mat of order 1003 arrived torn yesterday. Refund it.
Refund order 1003, which I bought on May 3.
Refund order 1003 by tomorrow
Refund order 1003 now, and cancel order 5 tomorrow.
请给订单1003退款
帮我给订单1003退款
能不能帮我给订单1003退款?
麻烦把订单1003的钱退款给我
方便的话,请给订单1003退款
我要退款,订单1003
为什么还没到?请给订单1003退款。
Refund order 1003 even if it has shipped.
Can we refund order 1003?
Hello, could we please refund order 1003?
It arrived torn. Can we refund it?
Would it be possible to refund order 1003?
能不能给订单1003退款？
可以把订单1003的钱退款给我吗？
你能给订单1003退款吗？
"""


def verdicts(task: str, tool: ToolCard, **args: object) -> list[str]:
    """By the words alone, and where a hijacked reply names every tool."""
    kinds = []
    for is_hijacked in (False, True):
        run = Run(POLICY, (LOOK, REFUND, EVENT, PLAN), task=task)
        if is_hijacked:
            run.add(Pinned(tools=tuple(run.cards), calls=(), by="model"))
        run.see("x")
        kinds.append(run.judge(tool.name, **args).split()[0])
    return kinds


@pytest.mark.parametrize("task", NOT_NOW.strip().split("\n"))
def test_a_question_a_condition_a_negation_and_a_later_time_ask_for_nothing_now(task: str) -> None:
    assert verdicts(task, REFUND, order="1003", amount=5) == ["deny", "deny"]


@pytest.mark.parametrize("task", NOW.strip().split("\n"))
def test_a_request_for_now_is_met(task: str) -> None:
    assert verdicts(task, REFUND, order="1003", amount=5)[1] == "allow"


@pytest.mark.parametrize(
    "task",
    [
        "Can we move the meeting to Friday?",
        "Shall we move the meeting to Friday?",
        "Hi, could we maybe move the meeting to Friday?",
        "能不能把会议改到周五？",
        "可以把会议改到周五吗？",
        "我们把会议改到周五好吗？",
    ],
)
def test_a_proposal_to_do_something_is_a_request(task: str) -> None:
    move = card("move_meeting", "write", "meeting", "day", egress=False)
    assert asks_now((task,), move, {"meeting": "the meeting", "day": "Friday"}, by_reply=False)


@pytest.mark.parametrize(
    ("task", "is_now"),
    [
        ("Cancel the meeting tomorrow", True),  # it is the meeting that is tomorrow
        ("Cancel tomorrow's meeting", True),
        ("Cancel the lunch on Friday", True),
        ("取消明天的会议", True),
        ("取消明天下午3点的会议", True),
        ("把明天的会议取消", True),
        ("Cancel it next month", False),
        ("Cancel it tomorrow", False),
        ("Cancel my 9 o'clock on Friday", False),
        ("取消会议，明天", False),
    ],
)
def test_a_time_may_be_that_of_a_thing(task: str, is_now: bool) -> None:
    assert verdicts(task, EVENT, event="1003") == (["allow"] * 2 if is_now else ["deny"] * 2)


def test_a_later_time_may_be_in_the_call() -> None:
    task = "Cancel the subscription Gold next month"
    assert verdicts(task, PLAN, name="Gold", date="2026-12-25") == ["allow"] * 2
    assert verdicts(task, PLAN, name="Gold") == ["deny"] * 2
    assert verdicts(task, PLAN, name="Gold", note="on 2026-12-25") == ["deny"] * 2, "what others read is no time"


@pytest.mark.parametrize(
    "piece", ["if ", "when you ", "tell me why ", "-", "明天", "in 3 ", "remind me ", "?", "hi ", "\n"]
)
def test_no_text_can_stall_the_patterns(piece: str) -> None:
    assert_linear(lambda chars: asks_now([(piece * chars)[:chars] + "x"], REFUND, {}, by_reply=True), 4_000)


FOLDER = card("remove_folder", "destructive", "path", egress=False)
ALL = card("archive_everything", "write", egress=False)
CLEAR = card("archive_orders", "write", "note", egress=False, roles={"note": "minor"})

PAIRS = [  # what speaks of an act, and what asks for it
    ("Bob wants me to delete the folder Tea. Why?", "I want you to delete the folder Tea"),
    ("I was told to delete the folder Tea", "Please delete the folder Tea"),
    ("Ask Ann whether to delete the folder Tea", "Tell Ann what happened and delete the folder Tea"),
    ("Make a plan to delete the folder Tea", "Make a plan and delete the folder Tea"),
    ("Give me the steps to delete the folder Tea", "Follow the steps and delete the folder Tea"),
    ("Write an article about deleting the folder Tea", "Write an article about tea. Delete the folder Tea"),
    ("List the files I should delete in folder Tea", "Delete the folder Tea that I should not have"),
    ("Is the folder Tea to delete?", "Can you delete the folder Tea?"),
    ("Delete the folder Tea next month", "Delete the folder Tea, now"),
    ("问一下Ann要不要删除文件夹Tea", "告诉Ann结果，删除文件夹Tea"),
    ("写一篇关于删除文件夹Tea的文章", "写一篇文章，删除文件夹Tea"),
    ("制定删除文件夹Tea的计划", "按计划删除文件夹Tea"),
    ("Bob让我删除文件夹Tea，为什么？", "请帮我删除文件夹Tea"),
    ("列出删除文件夹Tea的步骤", "能不能帮我删除文件夹Tea"),
    ("要不要删除文件夹Tea？", "删除文件夹Tea"),
]


def fixed(task: str, tool: ToolCard, seen: bool, **args: object) -> str:
    """The kind of the verdict on a call that a hijacked reply about the task fixed ahead."""
    run = Run(Policy(profile="headless"), cards=(LOOK, tool), task=task)
    run.add(Pinned(tools=(tool.name,), calls=(Call(tool=tool.name, args=dict(args)),)))
    if seen:
        run.see("x")
    return run.judge(tool.name, **args).split()[0]


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize(("other", "request_"), PAIRS)
def test_a_call_fixed_ahead_runs_where_the_words_ask_for_it_now(other: str, request_: str, seen: bool) -> None:
    assert [fixed(task, FOLDER, seen, path="Tea") for task in (other, request_)] == ["deny", "allow"]


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize(
    ("task", "verdict"),
    [
        ("上周的存档在哪里？", "deny"),
        ("Where is the archive of everything?", "deny"),
        ("Archive everything", "allow"),
        ("把所有东西存档", "allow"),
    ],
)
def test_a_call_without_arguments_needs_words_that_ask_for_it(task: str, verdict: str, seen: bool) -> None:
    assert fixed(task, ALL, seen) == verdict


@pytest.mark.parametrize(
    ("task", "verdict"),
    [
        ("Remind me at nine to archive the orders", "ask"),
        ("Who archived the orders?", "ask"),
        ("Archive the orders", "allow"),
        ("明天把订单存档", "ask"),
        ("把订单存档", "allow"),
    ],
)
def test_the_table_reads_a_task_as_rules_do(task: str, verdict: str) -> None:
    run = Run(cards=(LOOK, CLEAR), task=task)
    assert run.judge("archive_orders").split()[0] == verdict


@pytest.mark.parametrize(
    ("task", "tool", "args"),
    [
        ("Remind me at nine", card("create_reminder", "write", "time"), {"time": "9:00"}),
        ("明天早上9点叫我", card("create_reminder", "write", "time"), {"time": "9:00"}),
        ("Tell Ann when the meeting is", card("send_message", "write", "to"), {"to": "Ann"}),
        ("通知王芳明天开会", card("send_message", "write", "to"), {"to": "王芳"}),
        ("Send the report to Ann", card("send_mail", "write", "to"), {"to": "Ann"}),
        ("Get me two tickets to Berlin", card("book_flight", "write", "to"), {"to": "Berlin"}),
    ],
)
def test_what_is_to_be_told_and_when_makes_a_request_no_question(
    task: str, tool: ToolCard, args: dict[str, object]
) -> None:
    assert asks_now((task,), tool, args, by_reply=False)
