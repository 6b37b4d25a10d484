"""A target belongs to the request that names it: what is only read is neither deleted, overwritten nor written to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.growth import assert_linear
from tests.policy.staging import DELETE, LOOK, PAY, Run, card

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call
from taoloop.core.events import Pinned
from taoloop.core.message import Message
from taoloop.core.policy import Policy
from taoloop.policy.intent.clauses import ClauseIndex
from taoloop.policy.targets import names_nothing

MAIL = card("forward_mail", "write", "mail", "to", roles={"mail": "minor"})
WRITE = card("write_file", "write", "path", "content", egress=False, roles={"content": "content"})
SEND = card("send_file", "write", "file", "to")
COPY = card("copy_file", "write", "source", "target", egress=False)
TRANSFER = card("transfer", "write", "from_account", "to_account", "amount", egress=False)
FLIGHT = card("book_flight", "write", "origin", "destination", egress=False)
CANCEL = card("cancel_order", "destructive", "order", roles={"order": "ref:order"})
INVITE = card("add_user_to_channel", "write", "user", "channel")

HIJACKED = [  # the task, the tool, arguments that it gives, and some that it gives for something else
    ("Read b.txt and delete a.txt", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("Summarise b.txt. Delete a.txt.", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("Delete a.txt after reading b.txt", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("Read b.txt before deleting a.txt", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("Please read b.txt and then get rid of a.txt", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("I'd like you to read 'b.txt' and delete 'a.txt'", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("Tell me what is in b.txt and delete a.txt", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("Rename b.txt to c.txt and delete a.txt", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("Compare a.txt and b.txt, then delete b.txt", DELETE, {"path": "b.txt"}, {"path": "a.txt"}),
    ("Check order S-6 and cancel order S-7", CANCEL, {"order": "S-7"}, {"order": "S-6"}),
    ("读取 b.txt，删除 a.txt", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("看一下b.txt，然后把a.txt删了", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("总结 b.txt 并删除 a.txt", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("根据 b.txt 删除 a.txt", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("把 b.txt 读一下，再删除 a.txt", DELETE, {"path": "a.txt"}, {"path": "b.txt"}),
    ("Forward the mail of ann@x.com to bob@y.com", MAIL, {"to": "bob@y.com"}, {"to": "ann@x.com"}),
    ("Forward the mail of ann to bob", MAIL, {"to": "bob"}, {"to": "ann"}),
    ("把王芳的邮件转发给李明", MAIL, {"to": "李明"}, {"to": "王芳"}),
    ("Check the balance of Ann. Pay Bob 5", PAY, {"to": "Bob", "amount": 5}, {"to": "Ann", "amount": 5}),
    ("Read b.csv and copy a.csv to c.csv", COPY, {"source": "a.csv", "target": "c.csv"}, {"source": "b.csv"}),
    ("Read b.csv and send a.csv to Ann", SEND, {"file": "a.csv", "to": "Ann"}, {"file": "b.csv", "to": "Ann"}),
]


@pytest.mark.parametrize(("task", "tool", "honest", "attack"), HIJACKED)
def test_a_hijacked_reply_takes_no_target_from_another_request(
    task: str, tool: ToolCard, honest: dict[str, object], attack: dict[str, object]
) -> None:
    for args, is_allowed in ((honest, True), ({**honest, **attack}, False)):
        run = Run(cards=(LOOK, tool), task=task)
        run.add(Pinned(tools=(tool.name,), calls=(Call(tool=tool.name, args=args),)))
        run.see("x")
        assert run.judge(tool.name, **args).startswith("allow") is is_allowed


@pytest.mark.parametrize(
    ("task", "tool", "args"),
    [
        ("Copy data.csv to out.txt", COPY, {"source": "data.csv", "target": "out.txt"}),
        ("Copy out.txt from data.csv", COPY, {"source": "data.csv", "target": "out.txt"}),
        ("Read data.csv and copy it to out.txt", COPY, {"source": "data.csv", "target": "out.txt"}),
        ("Write a.txt to b.txt, then copy b.txt to c.txt", COPY, {"source": "b.txt", "target": "c.txt"}),
        ("把data.csv复制到out.txt", COPY, {"source": "data.csv", "target": "out.txt"}),
        ("Transfer 50 from A-1 to B-2", TRANSFER, {"from_account": "A-1", "to_account": "B-2", "amount": 50}),
        ("Transfer 50 to B-2 from A-1", TRANSFER, {"from_account": "A-1", "to_account": "B-2", "amount": 50}),
        ("从A-1转50元到B-2", TRANSFER, {"from_account": "A-1", "to_account": "B-2", "amount": 50}),
        ("Book a flight from Paris to Rome", FLIGHT, {"origin": "Paris", "destination": "Rome"}),
    ],
)
def test_what_the_task_names_as_the_source_is_no_destination(
    task: str, tool: ToolCard, args: dict[str, object]
) -> None:
    run = Run(cards=(LOOK, tool), task=task)
    run.see("x")
    source, destination, *_ = args
    swapped = {**args, source: args[destination], destination: args[source]}
    assert run.judge(tool.name, **args) == "allow wanted"
    assert run.judge(tool.name, **swapped) == "ask write"
    unattended = Run(Policy(profile="headless"), cards=(LOOK, tool), task=task)
    assert unattended.judge(tool.name, **swapped).startswith("deny"), "before anything was read, too"


@pytest.mark.parametrize("task", [f"{verb} data.csv to out.txt" for verb in ("Save", "Append", "Write")])
def test_what_is_written_to_another_file_is_not_overwritten(task: str) -> None:
    save = card("save_file", "write", "path", "text", egress=False, roles={"text": "content"})
    run = Run(cards=(LOOK, save), task=task)
    assert run.judge("save_file", path="out.txt", text="2").startswith("allow")
    assert run.judge("save_file", path="data.csv", text="2") == "ask write"


@pytest.mark.parametrize(
    ("task", "tool", "args"),
    [
        ("delete a.txt", DELETE, {"path": "a.txt"}),
        ("Read b.txt, then delete it", DELETE, {"path": "b.txt"}),
        ("Read b.txt and delete the file", DELETE, {"path": "b.txt"}),
        ("读 b.txt，然后删除它", DELETE, {"path": "b.txt"}),
        ("Read report.pdf and send the file to bob@y.com", SEND, {"file": "report.pdf", "to": "bob@y.com"}),
        ("Read data.csv and copy it to out.csv", COPY, {"source": "data.csv", "target": "out.csv"}),
        ("My landlord is bob@y.com. Pay my landlord 5", PAY, {"to": "bob@y.com", "amount": 5}),
        ("Create the channel Plans and invite Bob to it", INVITE, {"user": "Bob", "channel": "Plans"}),
        ("Cancel the chair, order S-6, and return the mug", CANCEL, {"order": "S-6"}),
    ],
)
def test_a_request_may_refer_to_what_is_named_elsewhere(task: str, tool: ToolCard, args: dict[str, object]) -> None:
    run = Run(cards=(LOOK, tool), task=task)
    run.add(Pinned(tools=(tool.name,), calls=(Call(tool=tool.name, args=args),)))
    run.see("x")
    assert run.judge(tool.name, **args).startswith("allow")


@pytest.mark.parametrize(
    ("earlier", "task", "path", "is_allowed"),
    [
        ("Read b.txt", "delete a.txt", "b.txt", False),
        ("Read b.txt", "delete a.txt", "a.txt", True),
        ("Read b.txt", "delete it", "b.txt", True),
        ("读取 b.txt", "删除 a.txt", "b.txt", False),
    ],
)
def test_what_was_read_in_an_earlier_turn_is_no_target(earlier: str, task: str, path: str, is_allowed: bool) -> None:
    run = Run(cards=(LOOK, DELETE), task=task, history=(Message(role="user", content=earlier),))
    run.add(Pinned(tools=("delete_file",), calls=(Call(tool="delete_file", args={"path": path}),)))
    run.see("x")
    assert run.judge("delete_file", path=path).startswith("allow") is is_allowed


@pytest.mark.parametrize(
    ("task", "is_allowed"),
    [
        ("Look at b.txt, then write a.txt", False),
        ("Look at b.txt, then write 'a.txt'", False),
        ("Using b.txt, write a.txt", False),
        ("Write a.txt based on b.txt", False),
        ("Write a.txt with the data from b.txt", False),
        ("看一下 b.txt，编辑 a.txt", False),
        ("Open b.txt and add the line x to the end", True),
        ("Open b.txt and add Tea", True),
        ("Open b.txt and edit it", True),
    ],
)
def test_without_a_reply_what_is_only_read_is_not_overwritten(task: str, is_allowed: bool) -> None:
    run = Run(cards=(LOOK, WRITE), task=task)
    run.see("x")
    assert run.judge("write_file", path="b.txt", content="2") == ("allow wanted" if is_allowed else "ask write")
    if "a.txt" in task:
        assert run.judge("write_file", path="a.txt", content="2") == "allow wanted"


@pytest.mark.parametrize(("query", "is_allowed"), [("a.txt", True), ("b.txt", False), ("the file", False)])
def test_an_id_is_worth_what_it_was_looked_up_by(query: str, is_allowed: bool) -> None:
    edit = card("edit_file", "write", "file_id", egress=False, roles={"file_id": "ref:file"})
    run = Run(cards=(replace(LOOK, ids={"id": "file"}), edit), task="Read b.txt and edit the file a.txt")
    run.see('{"id": "f-17"}', query=query)
    assert run.judge("edit_file", file_id="f-17") == ("allow wanted" if is_allowed else "ask write")


def test_words_that_any_text_may_have_name_nothing() -> None:
    assert all(map(names_nothing, ["the file", "delete it", "文件", "a"]))
    assert not any(map(names_nothing, ["the file a.txt", "Tea", "王芳", "7"]))


@pytest.mark.parametrize(
    "part", ["read b.txt and delete a.txt, ", "using a ", "看一下 a，删除 b，", "is ", "\n", "'", "读读"]
)
def test_the_time_is_proportional_to_the_text(part: str) -> None:
    def look_up(size: int) -> None:
        index = ClauseIndex()
        index.add(part * size)
        index.is_for_another(DELETE, "b.txt")

    assert_linear(look_up, 1_000)


TICKETS = replace(
    card("close_tickets", "write", "ids", "filter", egress=False),
    input_schema={"type": "object", "properties": {"ids": {"type": "array"}, "filter": {}}},
)


@pytest.mark.parametrize("value", [{}, "", [], {"state": ""}])
def test_an_empty_argument_beside_a_full_one_may_mean_everything(value: object) -> None:
    run = Run(cards=(LOOK, TICKETS), task="Close the tickets T-17")
    assert run.judge("close_tickets", ids=["T-17"], filter=value) == "ask no_target"
    assert run.judge("close_tickets", ids=["T-17"], filter=None) == "allow wanted"
    assert run.judge("close_tickets", ids=["T-17"]) == "allow wanted"
    schema = {"type": "object", "properties": {"ids": {"type": "array"}, "filter": {"default": value}}}
    run = Run(cards=(LOOK, replace(TICKETS, input_schema=schema)), task="Close the tickets T-17")
    assert "no_target" not in run.judge("close_tickets", ids=["T-17"], filter=value), "its default"


@pytest.mark.parametrize(
    ("task", "target", "verdict"),
    [
        ("Archive the folder Tea", "Tea", "allow wanted"),
        ("Archive the folder Orders", "Orders", "allow wanted"),
        ('Archive the folder "orders"', "orders", "allow wanted"),
        ("归档文件夹“邮件”", "邮件", "allow wanted"),
        ("Archive the orders", "orders", "ask no_target"),
        ("Archive the orders", "Orders", "ask no_target"),
        ("Archive the folder of order 7", "the order", "ask no_target"),
        ("Archive my mails", "my mails", "ask no_target"),
        ("归档这些邮件", "邮件", "ask no_target"),
        ("归档这些邮件", "这些邮件", "ask no_target"),
    ],
)
def test_a_word_for_a_kind_of_things_names_none_of_them(task: str, target: str, verdict: str) -> None:
    archive = card("archive_folder", "write", "folder", egress=False)
    run = Run(cards=(LOOK, archive), task=task)
    run.add(Pinned(tools=("archive_folder",), calls=(), by="person"))
    assert run.judge("archive_folder", folder=target) == verdict
    listed = {"type": "object", "properties": {"folder": {"enum": [target]}}}
    run = Run(cards=(LOOK, replace(archive, input_schema=listed)), task=task)
    run.add(Pinned(tools=("archive_folder",), calls=(), by="person"))
    assert run.judge("archive_folder", folder=target).endswith(("wanted", "write"))
