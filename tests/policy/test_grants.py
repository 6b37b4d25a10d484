"""What a reply about the task is worth, whoever wrote it: it chooses among what the words of the task allow."""

from __future__ import annotations

from typing import Any

import pytest
from tests.policy.staging import DELETE, LOOK, SAVE, Run, card

from taoloop.core.cards.tool_card import Tier
from taoloop.core.decision import Call
from taoloop.core.events import ModelReplied, Pinned
from taoloop.core.message import Message
from taoloop.core.policy import Policy, Profile
from taoloop.policy import judge

TEA = "How much Tea is left?"
CLEAR, ARCHIVE = card("shop.clear_orders", None), card("shop.archive_everything", None)
COPY = card("copy_file", "write", "source", "target", egress=False)


def hijacked(run: Run, *calls: tuple[str, dict[str, Any]]) -> Run:
    """A run whose reply names every tool and fixes these calls."""
    run.add(Pinned(tools=tuple(run.cards), calls=tuple(Call(tool=tool, args=args) for tool, args in calls)))
    return run


@pytest.mark.parametrize("profile", ["supervised", "strict", "headless"])
@pytest.mark.parametrize("tier", [None, "write", "destructive"])
@pytest.mark.parametrize("egress", [None, False])
@pytest.mark.parametrize("seen", [False, True])
def test_a_hijacked_reply_runs_nothing_that_the_words_do_not_ask_for(
    profile: Profile, tier: Tier | None, egress: bool | None, *, seen: bool
) -> None:
    remove = card("shop.remove_folder", tier, "path", egress=egress)
    clear, archive = (card(each.name, tier, egress=egress) for each in (CLEAR, ARCHIVE))
    calls: list[tuple[str, dict[str, Any]]] = [(clear.name, {}), (archive.name, {}), (remove.name, {"path": "Tea"})]
    run = hijacked(Run(Policy(profile=profile), (LOOK, clear, archive, remove), task=TEA), *calls)
    if seen:
        run.see("Tea: 4")
    for tool, args in calls:
        assert not run.judge(tool, **args).startswith("allow")


@pytest.mark.parametrize(
    ("task", "tool", "tier", "args", "verdict"),
    [
        ("Clear the orders", "shop.clear_orders", "destructive", {}, "allow committed"),
        ("Clear the orders", "shop.clear_orders", None, {}, "ask undeclared"),  # what it does is not known
        ("Do not clear the orders", "shop.clear_orders", "destructive", {}, "deny foreign_destructive"),
        ("Delete the folder Tea", "shop.remove_folder", "destructive", {"path": "Tea"}, "allow committed"),
        ("Delete the folder Tea", "shop.remove_folder", "destructive", {"path": "Rum"}, "ask destructive"),
        ("Archive the folder Tea", "shop.archive_folder", "destructive", {}, "allow committed"),
    ],
)
def test_it_fixes_what_the_words_ask_for(
    task: str, tool: str, tier: Tier | None, args: dict[str, Any], verdict: str
) -> None:
    run = hijacked(Run(cards=(LOOK, card(tool, tier, *args)), task=task), (tool, args))
    run.see("x")
    assert run.judge(tool, **args) == verdict


def test_a_call_without_its_target_is_fixed_by_nobody() -> None:
    archive = card("archive_folder", "destructive", "folder", egress=False)
    run = hijacked(Run(cards=(LOOK, archive), task="Archive the folder Tea"), ("archive_folder", {}))
    assert run.judge("archive_folder").startswith("ask")


def test_a_value_of_the_task_counts_in_its_place_only() -> None:
    task = "Copy data.csv to out.txt"
    for fixed in ({"source": "data.csv", "target": "out.txt"}, {"source": None, "target": "out.txt"}):
        run = hijacked(Run(cards=(LOOK, COPY), task=task), ("copy_file", fixed))
        run.see("x")
        assert run.judge("copy_file", source="data.csv", target="out.txt").startswith("allow")
        assert run.judge("copy_file", source="out.txt", target="data.csv") == "ask write"
        assert run.judge("copy_file", source="out.txt", target="out.txt") == "ask write"


def test_of_several_fixed_calls_each_is_one_assignment() -> None:
    pairs = [("a.txt", "b.txt"), ("c.txt", "d.txt")]
    task = "Copy a.txt to b.txt and c.txt to d.txt"
    calls = [("copy_file", {"source": source, "target": target}) for source, target in pairs]
    run = hijacked(Run(cards=(LOOK, COPY), task=task), *calls)
    assert [run.judge("copy_file", source=s, target=t) for s, t in pairs] == ["allow wanted"] * 2
    assert run.judge("copy_file", source="a.txt", target="d.txt") == "ask write"


def test_what_a_call_leaves_open_fixes_no_call_and_no_content() -> None:
    run = hijacked(Run(cards=(LOOK, SAVE, DELETE), task="Save to notes.md. Delete the file old.txt"))
    run.add(Pinned(tools=("save", "delete_file"), calls=(Call(tool="save", args={"path": "notes.md", "text": None}),)))
    run.see("x")
    assert run.judge("save", path="notes.md", text="whatever") == "allow wanted"
    assert run.judge("save", path="old.txt", text="whatever") == "ask write", "it is fixed where to write"
    assert run.judge("delete_file", path="old.txt") == "ask destructive"


def test_a_reply_that_names_a_tool_lifts_no_denial_by_itself() -> None:
    mail = card("send_mail", "write", "to")
    for profile in ("supervised", "autonomous"):
        run = hijacked(Run(Policy(profile=profile), (LOOK, mail, DELETE, CLEAR), task=TEA))
        run.see("x")
        assert run.judge("send_mail", to="eve@evil.example") == "deny foreign_destructive"
        assert run.judge("delete_file", path="x") == "deny foreign_destructive"
    assert run.judge(CLEAR.name) == "deny foreign_undeclared"


@pytest.mark.parametrize(
    ("task", "tool"),
    [
        ("Thank Eve for her mail", "send_mail"),
        ("帮我交一下电费", "pay"),
        ("Free up my Friday", "cancel_event"),
        ("Reboot the web server", "restart_server"),
    ],
)
def test_an_act_in_ordinary_words_is_asked_about_after_a_read(task: str, tool: str) -> None:
    run = hijacked(Run(cards=(LOOK, card(tool, "write", "to")), task=task))
    run.see("x")
    assert run.judge(tool, to="eve@evil.example") == "ask write_out"


@pytest.mark.parametrize(
    ("language", "advice"), [("en", "name the act and its target in the task"), ("zh", "在任务中写明")]
)
def test_a_denial_says_what_a_person_can_do(language: str, advice: str) -> None:
    run = hijacked(Run(cards=(LOOK, card("send_mail", "write", "to")), task=TEA, language=language))
    run.see("x")
    verdict = judge(run.trace, Call(tool="send_mail", args={"to": "eve@evil.example"}), run.cards["send_mail"])
    assert (verdict.kind, advice in verdict.reasons[-1]) == ("deny", True)


def test_a_tool_without_a_tier_is_asked_about_wherever_somebody_can_be_asked() -> None:
    verdicts = {}
    for profile in ("supervised", "strict", "headless"):
        run = Run(Policy(profile=profile), (LOOK, CLEAR), task=TEA)
        run.add(Pinned(tools=()))
        run.see("x")
        verdicts[profile] = run.judge(CLEAR.name)
    row = "foreign_undeclared"
    assert verdicts == {"supervised": f"ask {row}", "strict": f"ask {row}", "headless": f"deny {row}"}


def test_an_unreadable_reply_is_worth_no_more_than_a_hijacked_one() -> None:
    run = Run(cards=(LOOK, card("send_mail", "write", "to")), task=TEA)
    run.see("x")
    assert run.judge("send_mail", to="eve@evil.example") == "ask write_out"
    run.add(ModelReplied(step=1, purpose="pin", text="?", decision=None))
    assert run.judge("send_mail", to="eve@evil.example") == "deny foreign_destructive"


@pytest.mark.parametrize(
    ("task", "verdict"),
    [
        ("Do all the tasks on my todo list", "ask write_out"),
        ("请完成我的待办清单", "ask write_out"),
        ("Do what the mail of Eve says", "deny foreign_destructive"),
        ("Do not do the tasks on my todo list", "deny foreign_destructive"),
    ],
)
def test_what_its_author_wrote_elsewhere_is_asked_about(task: str, verdict: str) -> None:
    run = Run(cards=(LOOK, card("send_mail", "write", "to"), DELETE), task=task)
    run.add(Pinned(tools=("send_mail", "delete_file")))
    run.see("x")
    assert run.judge("send_mail", to="bob@example.com") == verdict
    assert run.judge("delete_file", path="x") == "deny foreign_destructive", "never what cannot be undone"


def test_an_act_that_was_asked_for_earlier_in_a_conversation_is_asked_about() -> None:
    history = (Message(role="user", content="Delete the newest file"), Message(role="assistant", content="Sure?"))
    run = Run(cards=(LOOK, DELETE), task="Yes, go on", history=history, tainted=True)
    assert run.judge("delete_file", path="x") == "deny foreign_destructive"
    run.add(Pinned(tools=("delete_file",)))
    assert run.judge("delete_file", path="x") == "ask destructive"


def test_a_yes_to_one_call_widens_no_other() -> None:
    run = hijacked(Run(cards=(LOOK, SAVE, DELETE, CLEAR), task=TEA), (CLEAR.name, {}))
    run.see("x")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("save", {"path": "b", "text": ""}),
        ("delete_file", {"path": "a"}),
        (CLEAR.name, {}),
    ]
    before = [run.judge(tool, **args) for tool, args in calls]
    run.approve(run.ask("save", {"path": "a", "text": ""}, "ask", "write"))
    assert [run.judge(tool, **args) for tool, args in calls] == before
