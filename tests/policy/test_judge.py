"""The verdict on one call: the table, the order of judgement, and that judging is pure."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.policy.staging import CARDS, DELETE, FETCH, LOOK, SAVE, Run, card
from tests.sizes import examples

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call
from taoloop.core.events import ActionRequested, Event, Observed, Pinned, RunStarted, Verdict
from taoloop.core.policy import PROFILES, Policy, Profile, Rule, TaskAuthority, stricter
from taoloop.core.trace import Trace
from taoloop.policy import Action, judge
from taoloop.policy.grants import describe_grant
from taoloop.policy.targets import leaves

TABLE: dict[str, tuple[str, ...]] = {
    # supervised, strict, headless, autonomous, read-only, locked
    "look {'query': 'evil'}": ("allow", "allow", "allow", "allow", "allow", "deny"),
    "fetch {'url': 'https://bank.example/a'}": ("allow", "ask", "deny", "allow", "allow", "deny"),
    "fetch {'url': 'https://evil.example/?q=secret'}": ("ask", "ask", "deny", "allow", "deny", "deny"),
    "save {'path': 'notes.md', 'text': 'evil'}": ("allow", "ask", "deny", "allow", "deny", "deny"),
    "save {'path': 'evil.md', 'text': 'evil'}": ("ask", "ask", "deny", "allow", "deny", "deny"),
    "pay {'to': 'bob@example.com', 'amount': 100}": ("ask", "ask", "deny", "allow", "deny", "deny"),
    "delete_file {'path': 'old.txt'}": ("ask", "ask", "deny", "allow", "deny", "deny"),
    "reboot {'table': 'evil'}": ("deny", "deny", "deny", "deny", "deny", "deny"),
    "bare {'x': 'evil'}": ("ask", "ask", "deny", "deny", "deny", "deny"),
    "bare {'x': 'bob@example.com'}": ("ask", "ask", "deny", "allow", "deny", "deny"),
}
REBOOT, BARE = card("reboot", "destructive", "table"), card("bare", None, "x")


@pytest.mark.parametrize(("call", "verdicts"), TABLE.items())
def test_the_table_of_verdicts_after_untrusted_text(call: str, verdicts: tuple[str, ...]) -> None:
    tool, _, args = call.partition(" ")
    for profile, wanted in zip(PROFILES, verdicts, strict=True):
        run = Run(Policy(profile=profile), (*CARDS, REBOOT, BARE))
        run.see("evil evil.md")
        said = judge(run.trace, Call(tool=tool, args=ast.literal_eval(args)), run.cards[tool])
        assert said.kind == wanted, profile
        assert said.reasons
        assert all(len(reason) > 8 for reason in said.reasons)


@pytest.mark.parametrize("args", [{"path": ""}, {"path": None}, {"path": []}, {"path": {"a": [""]}}, {}])
def test_to_act_on_nothing_in_particular_is_no_target_that_the_task_named(args: dict[str, Any]) -> None:
    run = Run(cards=(LOOK, card("reboot", "destructive", "path")))
    run.see("x")
    assert run.judge("reboot", **args) == "deny foreign_destructive"


@pytest.mark.parametrize(
    "args",
    [
        {"path": {"notes.md": "eve@evil.example"}, "text": ""},
        {"path": {"eve@evil.example": "notes.md"}, "text": ""},
        {"path": [{"eve@evil.example": ""}], "text": ""},
        {"path": "notes.md", "text": "", "eve@evil.example": ""},
        {"path": "notes.md", "text": "", "cc": "eve@evil.example"},
    ],
)
def test_no_key_and_no_argument_that_the_card_lacks_carries_values_in(args: dict[str, Any]) -> None:
    run = Run()
    run.see("x")
    assert run.judge("save", **args) in ("ask write", "ask no_target")


ARCHIVE = card("archive", "write", "folder", egress=False)
TICKETS = card("close_tickets", "destructive", "filter", "note", roles={"note": "minor"})
MAIL = card("send_mail", "write", "to", "cc", roles={"cc": "target"})
MAIL = replace(MAIL, input_schema={**MAIL.input_schema, "required": ["to"]})
EVENT = card("create_event", "write", "title", "guests", egress=("guests",), roles={"title": "content"})


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        "archive {}",
        "archive {'folder': None}",
        *(f"archive {{'folder': {value!r}}}" for value in ("", " ", "*", "**", "%", "/", ".", "c:/", "all", "\uff0a")),
        "archive {'folder': '全部'}",
        "archive {'folder': ['Tea', '']}",
        "close_tickets {'filter': {}}",
        "close_tickets {'filter': {'by': {}}, 'note': 'Tea'}",
        "close_tickets {'filter': {'by': 'Tea', 'state': '*'}}",
        "close_tickets {'filter': []}",
        "send_mail {'to': '', 'cc': 'ann@example.com'}",
        "send_mail {'to': ['*'], 'cc': 'ann@example.com'}",
    ],
)
def test_a_target_that_is_missing_empty_or_a_wildcard_means_everything_and_is_asked_about(
    call: str, seen: bool
) -> None:
    task = "archive the folder Tea, and all; close the tickets of Tea; send mail to ann@example.com 全部"
    tool, _, args = call.partition(" ")
    for profile, kind in {"supervised": "ask", "strict": "ask", "headless": "deny"}.items():
        run = Run(Policy(profile=profile), (LOOK, ARCHIVE, TICKETS, MAIL), task=task)  # type: ignore[arg-type]
        run.add(Pinned(tools=(tool,), calls=(Call(tool=tool, args=ast.literal_eval(args)),)))
        if seen:
            run.see("x")
        verdict = judge(run.trace, Call(tool=tool, args=ast.literal_eval(args)), run.cards[tool])
        assert (verdict.kind, verdict.rule) == (kind, "no_target")
        assert "names nothing in particular" in verdict.reasons[0]


def test_a_tool_without_targets_lacks_none_and_who_is_not_invited_is_no_target() -> None:
    light = card("toggle_light", "write", egress=False)
    run = Run(cards=(ARCHIVE, EVENT, light), task="toggle the light, create the event Tea, archive the folder Tea")
    assert run.judge("toggle_light") == "allow wanted"
    assert run.judge("create_event", title="Tea", guests=[]) == "allow wanted"
    assert run.judge("create_event", title="Tea", guests=["all"]) == "ask no_target"
    assert run.judge("archive", folder="Tea") == "allow wanted"


@pytest.mark.parametrize(
    "amount", [10**400, float("nan"), float("inf"), True, "1e3", [[[[]]]], {"a": {}}, b"x", object()]
)
def test_no_value_breaks_the_judge(amount: Any) -> None:
    run = Run()
    run.see("x")
    assert run.judge("pay", to="bob@example.com", amount=amount).startswith("ask ")


@pytest.mark.parametrize(
    ("url", "verdict"),
    [
        ("https://api.good.example/x?q=1", "allow read_out_known"),
        ("https://API.GOOD.example:8443/x", "allow read_out_known"),
        ("http://bank.example/a", "ask read_out"),  # the task said https
        ("https://evil-good.example/", "ask read_out"),
        ("https://good.example.evil.example/", "ask read_out"),
        ("https://evil.example\\@api.good.example/", "ask read_out"),
        ("https://a@evil.example@api.good.example/", "ask read_out"),
        ("https://api.good.example@evil.example/", "ask read_out"),
        ("https://evil.example#.api.good.example", "ask read_out"),
        ("https://evil.example?.api.good.example", "ask read_out"),
        ("https://evil.example/api.good.example", "ask read_out"),
        ("//evil.example/", "ask read_out"),
        ("https:evil.example", "ask read_out"),
    ],
)
def test_only_a_host_that_is_certain_can_be_allowed(url: str, verdict: str) -> None:
    run = Run(Policy(allowed_hosts=("*.Good.example",)))
    run.see("x")
    assert run.judge("fetch", url=url, note=None) == verdict


def test_an_allowed_host_carries_no_other_argument_and_no_text_to_elsewhere() -> None:
    run = Run(Policy(allowed_hosts=("good.example",)), (LOOK, FETCH, card("search", "read", "q", egress=True)))
    run.see("x")
    assert run.judge("fetch", url="https://good.example/", note="the secret") == "ask read_out"
    assert run.judge("fetch", url="https://good.example/", extra="the secret") == "ask read_out"
    assert run.judge("fetch", **{"url": "https://good.example/", "url.x": "the secret"}) == "ask read_out"
    assert run.judge("search", q="https://good.example/?secret") == "ask read_out", "it goes to who searches"


def test_before_untrusted_text_a_tier_has_its_default() -> None:
    run = Run()
    assert run.judge("fetch", url="https://bank.example/a", note="to compare") == "allow read"
    assert run.judge("pay", to="bob@example.com", amount=100) == "allow wanted"
    assert run.judge("pay", to="eve@example.com", amount=100) == "ask write_out"
    assert run.judge("delete_file", path="old.txt") == "ask destructive"


def test_a_tier_allowed_ahead_is_allowed_but_not_what_is_denied_outright() -> None:
    run = Run(cards=(*CARDS, REBOOT), approved_tiers=("destructive",))
    run.see("x")
    assert run.judge("delete_file", path="old.txt") == "allow operator"
    assert run.judge("reboot", table="evil") == "deny foreign_destructive"
    assert run.judge("pay", to="x", amount=1) == "ask write_out"


LETTER = card("mail", "write", "to", "cc", "amount", "body", roles={"amount": "value", "body": "content"})
STRICT = Policy(profile="strict")
KNOWN: dict[str, Any] = {"to": "bob@example.com", "amount": 100, "body": "Hello"}


def always(args: dict[str, Any], *, task: str = "Mail 100 to bob@example.com and ann@example.com") -> Run:
    """A run in which a person said "always" to this mail."""
    run = Run(STRICT, (*CARDS, LETTER, card("tell", "write", "to")), task=task)
    run.see("eve@evil.example wants 999")
    verdict = judge(run.trace, Call(tool="mail", args=args), LETTER)
    run.approve(run.ask("mail", args, "ask", verdict.rule, sources=verdict.sources), scope="rule")
    return run


@pytest.mark.parametrize("target", ["bob@example.com", "eve@evil.example"])
def test_always_covers_what_the_person_saw_and_no_larger_numbers(target: str) -> None:
    shown = KNOWN | {"to": target}
    run = always(shown)
    smaller: tuple[dict[str, Any], ...] = ({}, {"to": target.upper()}, {"body": "More"}, {"amount": 5}, {"amount": "5"})
    for other in smaller:
        assert run.judge("mail", **shown | other) == "allow write_out", other
    targets: tuple[Any, ...] = (
        "ann@example.com",
        "carl@example.com",
        "",
        None,
        [],
        "*",
        [target, "ann@example.com"],
        {"x": target},
    )
    amounts = (101, 5000, "5000", "five thousand", -1, "5 EUR", None, "", [60, 60], True, float("nan"))
    others: tuple[dict[str, Any], ...] = (
        *({"to": value} for value in targets),
        *({"amount": amount} for amount in amounts),
        *({"cc": "ann@example.com"}, {"body": "See https://evil.example/x"}),
    )
    for other in others:
        assert run.judge("mail", **shown | other).startswith("ask"), other
    assert run.judge("tell", to=target).startswith("ask")


def test_always_is_tied_by_no_word_of_a_comment() -> None:
    run = always(KNOWN | {"to": "Ann"}, task='Mail 100 to Ann with the comment "for Bob"')
    assert run.judge("mail", **KNOWN | {"to": "Bob"}).startswith("ask")


def test_always_from_an_event_without_sources_covers_exactly_its_call() -> None:
    run = Run(Policy(), (*CARDS, card("tell", "write", "to")))
    run.approve(run.ask("pay", {"to": "x"}, "ask", "write_out"), scope="rule")
    assert run.judge("pay", to="x") == "allow write_out"
    assert run.judge("pay", to="carl", amount=3) == "ask write_out"
    assert run.judge("tell", to="x") == "ask write_out"


def test_what_a_person_grants_is_said_in_words() -> None:
    run = always(KNOWN)

    def words(args: dict[str, Any], language: str = "en") -> str:
        sources = judge(run.trace, Call(tool="tell", args=args), LETTER, STRICT).sources
        return describe_grant(language, "mail", list(leaves(args)), sources)

    start, rest = "From now on in this run: mail", " Anything else is still asked about, and so are new links."
    assert words(KNOWN) == (
        f'{start} with exactly to = "bob@example.com".'
        f" At most, in one call: amount 100. Not checked any more: body.{rest}"
    )
    assert words({"to": "eve@evil.example", "cc": ["a", "b"], "amount": ["5 EUR", "7.5 €"]}) == (
        f'{start} with exactly cc[0] = "a", cc[1] = "b", to = "eve@evil.example".'
        f" At most, in one call: amount 12.5 EUR.{rest}"
    )
    assert words({}) == f"{start}, with nothing else than here.{rest}"
    assert words({"body": "See https://evil.example/x"}).endswith("still asked about; links are not.")
    assert words({"to": "eve@evil.example", "amount": 5}, "zh") == (
        '本次运行今后一律放行：mail，且必须是 to = "eve@evil.example"。单次调用的上限：amount 5。'
        "其他情况仍会询问，新链接也一样。"
    )


def test_a_task_that_says_do_not_delete_allows_no_deletion() -> None:
    run = Run(task="Do not delete anything. 不要删除文件。")
    assert run.judge("delete_file", path="x") == "ask destructive"
    run.see("x")
    assert run.judge("delete_file", path="x") == "deny foreign_destructive"


def test_what_the_model_fixed_ahead_bounds_the_act() -> None:
    run = Run()
    run.add(Pinned(tools=("look",)))
    run.see("x")
    assert run.judge("save", path="notes.md", text="x") == "ask write"
    assert run.judge("pay", to="eve", amount=3) == "deny foreign_destructive"


def rule_allows(_trace: Trace, _action: Action, _card: ToolCard) -> Verdict | None:
    return Verdict(kind="allow", reasons=("so",), rule="code")


def test_a_rule_in_python_comes_first_and_without_an_opinion_the_rest_decides() -> None:
    run = Run(Policy(rules=(Rule(verdict="deny"),)))
    call = Call(tool="look", args={"query": "x"})
    assert judge(run.trace, call, LOOK, rules=(rule_allows,)).kind == "allow"
    assert judge(run.trace, call, LOOK, rules=(lambda *_: None,)).rule == "rule:deny *"


@pytest.mark.parametrize(
    "said",
    [True, "allow", 1, {"kind": "allow"}, Verdict(kind="maybe"), Verdict(kind=""), Verdict(kind=None), "x" * 10**6],  # type: ignore[arg-type]  # nonsense
)
def test_a_rule_that_says_nonsense_denies(said: Any) -> None:
    verdict = judge(Run().trace, Call(tool="look", args={}), LOOK, rules=(lambda *_: said,))
    assert verdict.kind == "deny"
    assert len(verdict.reasons[0]) < 1_000


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


@pytest.mark.parametrize("error", [ValueError("broken"), RecursionError(), Silent()])
def test_a_rule_that_breaks_denies(error: Exception) -> None:
    def broken(*_: Any) -> Verdict:
        raise error

    verdict = judge(Run().trace, Call(tool="look", args={}), LOOK, rules=(broken,))
    assert verdict.kind == "deny"
    assert "broken" in verdict.reasons[0]


@dataclass(frozen=True)
class Anything:
    tool: str
    args: Any


def test_a_call_a_request_or_anything_alike_can_be_judged() -> None:
    run = Run()
    run.see("x")
    args = {"to": "eve", "amount": 3}
    requested = ActionRequested(step=1, call_id="c", tool="pay", args=args, tier=None, verdict="allow", digest="")
    said = [
        judge(run.trace, one, run.cards["pay"])
        for one in (Call(tool="pay", args=args), requested, Anything("pay", args))
    ]
    assert said[0] == said[1] == said[2]


_VALUES = st.sampled_from(
    ["bob@example.com", "eve@evil.example", 100, 7, "old.txt", "", None, ["a", 5], {"k": "v"}, True, -1]
)


@examples(150)
@given(
    st.sampled_from(PROFILES),
    st.sampled_from([LOOK, FETCH, SAVE, DELETE]),
    st.lists(_VALUES, min_size=2, max_size=2),
    st.booleans(),
)
def test_judging_is_pure(profile: Profile, tool: ToolCard, values: list[Any], seen: bool) -> None:
    run = Run(Policy(profile=profile))
    if seen:
        run.see("eve@evil.example 7")
    args = dict(zip(tool.parameters, values, strict=False))
    events, before = list(run.trace.events), copy.deepcopy(args)
    call = Call(tool=tool.name, args=args)
    first = judge(run.trace, call, tool)
    assert judge(run.trace, call, tool) == first
    judge(run.trace, call, tool, Policy(profile="locked", trusted_tools=("*",)))
    assert judge(run.trace, call, tool) == first
    assert judge(Trace("other", run.trace.events), call, tool) == first, "the events say everything"
    assert run.trace.events == events
    assert args == before


VALUES = Policy(task_authority="values")


def test_a_user_whose_words_only_choose_values_gets_what_the_rules_allow() -> None:
    """A customer may ask for a refund within the operator's bounds, and for no other."""
    refund = card("refund", "write", "order", "amount", roles={"order": "ref:order", "amount": "value"})
    small = Rule(verdict="allow", tool="refund", args={"amount": {"max": 100}})
    for amount, expected in ((40, "allow rule:small"), (99999, "ask write_out")):
        task = f"Refund order 1003 with {amount}"
        run = Run(replace(VALUES, rules=(replace(small, name="small"),)), (LOOK, refund), task)
        assert run.judge("refund", order="1003", amount=amount) == expected
        unattended = Run(replace(run.policy, profile="headless"), (LOOK, refund), task)
        assert unattended.judge("refund", order="1003", amount=amount) == expected.replace("ask", "deny")


def test_what_rules_ask_of_the_task_heeds_what_its_user_may_authorise() -> None:
    refund = card("refund", "write", "order", "amount", roles={"order": "ref:order", "amount": "value"})
    named = Rule(verdict="allow", tool="refund", args={"order": {"from": ["task"]}})
    expected: dict[TaskAuthority, tuple[str, str]] = {
        "full": ("allow", "allow"),
        "values": ("allow", "ask"),
        "none": ("ask", "ask"),
    }
    for authority, verdicts in expected.items():
        run = Run(replace(VALUES, task_authority=authority, rules=(named,)), (refund,), "Refund order A-1003 twice")
        assert run.judge("refund", order="A-1003", amount=1).split()[0] == verdicts[0]
        run.see("done", "refund", order="A-1003", amount=1)
        assert run.judge("refund", order="A-1003", amount=1).split()[0] == verdicts[1]  # the second time


@pytest.mark.parametrize("seen", [False, True])
def test_below_full_authority_no_words_of_a_user_allow_an_effect(seen: bool) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("save", {"path": "notes.md", "text": "notes"}),
        ("pay", {"to": "bob@example.com", "amount": 100}),
        ("delete_file", {"path": "old.txt"}),
    ]
    authorities: tuple[TaskAuthority, ...] = ("values", "none")
    for authority in authorities:
        run = Run(replace(VALUES, task_authority=authority))
        run.add(Pinned(tools=("save", "pay"), calls=tuple(Call(tool=tool, args=args) for tool, args in calls)))
        if seen:
            run.see("Hello.")
        for tool, args in calls:
            assert not run.judge(tool, **args).startswith("allow"), (authority, tool)
        assert run.judge("look", query="x") == "allow read"
    autonomous = Policy(profile="autonomous", task_authority="values")
    for run in (Run(autonomous), Run(VALUES, approved_tiers=("write",))):
        assert run.judge("save", path="notes.md", text="notes").startswith("allow")  # the operator's own word


def test_below_full_authority_a_read_goes_only_where_the_operator_says() -> None:
    cases: tuple[tuple[TaskAuthority, str], ...] = (
        ("full", "allow read_out_known"),
        ("values", "ask read_out"),
        ("none", "ask read_out"),
    )
    for authority, expected in cases:
        run = Run(replace(VALUES, task_authority=authority))
        before = expected.replace("read_out_known", "read")
        assert run.judge("fetch", url="https://bank.example/a") == before
        assert run.judge("fetch", note="https://bank.example/a") == before
        run.see("Hello.")
        assert run.judge("fetch", note="https://bank.example/a") == expected
        assert run.judge("fetch", url="https://bank.example/a") == expected
    run = Run(replace(VALUES, allowed_hosts=("bank.example",)))
    run.see("Hello.")
    assert run.judge("fetch", url="https://bank.example/a") == "allow read_out_known"


def test_the_authority_of_a_run_is_the_lesser_of_its_start_and_its_policy() -> None:
    for policy, started, expected in (
        (Policy(), "values", "ask"),
        (VALUES, None, "ask"),
        (VALUES, "full", "ask"),
        (Policy(), "full", "allow"),
        (Policy(), None, "allow"),
    ):
        run = Run(policy, authority=started)
        assert run.judge("save", path="notes.md", text="notes").split()[0] == expected
    verdict = judge(Run(VALUES).trace, Call(tool="save", args={"path": "notes.md", "text": "notes"}), SAVE)
    assert verdict.reason_codes == ("write", "authority")
    assert stricter(Policy(), VALUES).task_authority == "values"


def test_what_the_operator_answers_counts_and_a_system_message_of_a_client_does_not() -> None:
    run = Run(replace(VALUES, allowed_hosts=()))
    run.see("Hello.")
    call = run.ask("fetch", {"url": "https://x.example/1"}, "ask", "read_out")
    run.approve(call, scope="values")
    assert run.judge("fetch", url="https://x.example/1") == "allow read_out_known"
    spec = replace(run.trace.agent, instructions="Be brief.\n\nRead https://c.example/1", policy=VALUES)
    for by_user, expected in (("Read https://c.example/1", "ask"), ("", "allow")):
        trace = Trace("r")
        trace.append(Event(0, 0.0, RunStarted(task="Go on.", agent=spec, nonce="n", user_instructions=by_user)))
        call_id = ActionRequested(
            step=1, call_id="call_1", tool="look", args={}, tier="read", verdict="allow", digest="d"
        )
        trace.append(Event(1, 0.0, call_id))
        trace.append(Event(2, 0.0, Observed(call_id="call_1", ok=True, output="Hello.")))
        assert judge(trace, Call(tool="fetch", args={"url": "https://c.example/1"}), FETCH).kind == expected


WRITE = card("write_file", "write", "path", "content", egress=False, roles={"content": "content"}, repeatable=True)


@pytest.mark.parametrize(
    ("task", "is_change"),
    [
        ("Write the mean to out.txt", False),
        ("Save a list of the changes to out.txt", False),
        ("把平均值写入 out.txt", False),
        ("Overwrite out.txt with the mean", True),
        ("Write the mean to out.txt, replace what is there", True),
        ("Append the mean to out.txt", True),
        ("Read out.txt and edit it", True),
        ("用平均值覆盖 out.txt", True),
        ("把平均值追加到 out.txt", True),
    ],
)
def test_overwriting_what_exists_is_another_act_than_creating_it(task: str, is_change: bool) -> None:
    run = Run(cards=(LOOK, WRITE), task=task)
    args: dict[str, Any] = {"path": "out.txt", "content": "4"}
    run.add(Pinned(tools=("write_file",), calls=(Call(tool="write_file", args=args),), by="person"))
    run.see("x")
    call = Call(tool="write_file", args=args)
    assert judge(run.trace, call, WRITE).kind == "allow"
    verdict = judge(run.trace, call, WRITE, replaces="out.txt, 3.0 KB")
    assert (verdict.kind, verdict.replaces) == ("allow" if is_change else "ask", "out.txt, 3.0 KB")
    assert ("overwrites" in verdict.reason_codes) is not is_change
    run.see("written", "write_file", **args)
    assert judge(run.trace, call, WRITE, replaces="out.txt, 1 B").kind == "allow", "the run wrote it itself"
