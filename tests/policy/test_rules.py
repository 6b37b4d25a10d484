"""The operator's rules: patterns, budgets, order, and that what denies cannot be slipped past."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.policy.staging import CARDS, DELETE, FETCH, LOOK, PAY, Run, card
from tests.sizes import examples

from taoloop.core.decision import Call
from taoloop.core.events import ApprovalGiven, ApprovalRefused
from taoloop.core.policy import Policy, Rule, VerdictKind, stricter
from taoloop.errors import PolicyError
from taoloop.policy import judge, reject_unmatchable_rules

SEND = card("send", "write", "to", "file", "url", "options", "outputPath")


def decides(rule: Rule, **args: Any) -> bool:
    run = Run(Policy(profile="locked", rules=(rule,)), (SEND,))
    return run.judge("send", **args).endswith(f"rule:{rule.title}")


EVIL = "*@evil.example"


@pytest.mark.parametrize(
    ("conditions", "args"),
    [
        ({"args": {"to": EVIL}}, {"to": "eve@evil.example"}),
        ({"args": {"to": EVIL}}, {"to": "eve@EVIL.example"}),
        ({"args": {"to": EVIL}}, {"to": "eve@evil\u200b.example"}),
        ({"args": {"to": EVIL}}, {"to": "eve@ｅvil.example"}),
        ({"args": {"to": EVIL}}, {"to": ["bob@good.example", "eve@evil.example"]}),
        ({"args": {"to": EVIL}}, {"to": [["eve@evil.example"]]}),
        ({"args": {"to": "12*"}}, {"to": 1234}),
        ({"args": {"to": {"in": ["eve", 7]}}}, {"to": "EVE"}),
        ({"args": {"to": {"in": ["eve", 7]}}}, {"to": "7"}),
        ({"args": {"to": 7}}, {"to": "7"}),
        ({"args": {"to": True}}, {"to": "true"}),
        ({"args": {"to": {"min": 1000}}}, {"to": 1000}),
        ({"args": {"to": {"min": 1000}}}, {"to": "5000"}),
        ({"args": {"to": {"min": 1000}}}, {"to": "5,000"}),
        ({"args": {"to": {"min": 1000}}}, {"to": float("nan")}),
        ({"args": {"to": {"min": 1000}}}, {"to": "nan"}),
        ({"args": {"to": {"min": 1000}}}, {"to": 10**400}),
        ({"args": {"to": {"matches": ".*secret.*"}}}, {"to": "a\nsecret\nb"}),
        ({"args": {"to": {"matches": ".*secret.*"}}}, {"to": "sec\u200bret"}),
        ({"args": {"to": {"matches": ".*secret.*"}}}, {"to": "x" * 5000 + "secret"}),
        ({"host": "*.evil.example"}, {"url": "https://a.evil.example/", "to": "https://good.example/"}),
        ({"host": "Evil.example"}, {"url": "https://EVIL.example./"}),
        ({"host": "evil.example"}, {"url": "https://good.example@evil.example/"}),
        ({"host": "evil.example"}, {"url": "https://a@good.example@evil.example/"}),
        ({"host": "evil.example"}, {"url": "https://%65vil.example/"}),
        ({"host": "evil.example"}, {"url": "https://evil\u3002example/"}),
        ({"host": "evil.example"}, {"url": "//evil.example/a"}),
        ({"host": "evil.example"}, {"url": "https:\\\\evil.example/a"}),
        ({"host": "internal"}, {"url": "internal:8080/x"}),
        ({"host": "bücher.example"}, {"url": "https://xn--bcher-kva.example/"}),
        ({"host": "xn--bcher-kva.example"}, {"url": "https://bücher.example/"}),
        ({"path": "secrets/*"}, {"file": "secrets/a"}),
        ({"path": "secrets/*"}, {"file": "./secrets//a"}),
        ({"path": "secrets/*"}, {"file": "Secrets/a"}),
        ({"path": "secrets/*"}, {"file": "a/../secrets/a"}),
        ({"path": "secrets/*"}, {"file": "a\\..\\secrets\\a"}),
        ({"path": "secrets/*"}, {"file": "ok.txt", "outputPath": "secrets/a"}),
        ({"path": "secrets/*"}, {"options": {"files": ["ok.txt", "secrets/a"]}}),
        ({"path": "secrets/*"}, {"file": "%73ecrets/a"}),
        ({"path": "secrets/*"}, {"file": "a/%252e%252e/secrets/a"}),
        ({"path": "secrets/*"}, {"file": "a/..;x/secrets/a"}),
        ({"args": {"to": EVIL}}, {"to": "eve@evil.example, ann@good.example"}),
        ({"args": {"to": {"matches": r"(?![\w.+-]+@example\.com\Z).*"}}}, {"to": "eve@evil.com,ann@example.com"}),
    ],
)
@pytest.mark.parametrize("verdict", ["ask", "deny"])
def test_what_asks_or_denies_takes_a_value_for_all_that_it_may_mean(
    conditions: dict[str, Any], args: dict[str, Any], verdict: VerdictKind
) -> None:
    assert decides(Rule(verdict=verdict, **conditions), **args)


@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
def test_null_means_that_an_argument_is_absent(verdict: VerdictKind) -> None:
    rule = Rule(args={"file": None}, verdict=verdict)
    assert decides(rule, to="bob")
    assert decides(rule, to="bob", file=None)
    assert not decides(rule, to="bob", file="a.txt")
    assert not decides(rule, to="bob", file=0)


@pytest.mark.parametrize(
    ("conditions", "args"),
    [
        ({"args": {"to": EVIL}}, {"to": "eve@good.example"}),
        ({"args": {"to": EVIL}}, {}),
        ({"args": {"to": EVIL}}, {"to": None}),
        ({"args": {"to": {"min": 1000}}}, {"to": 999}),
        ({"args": {"to": {"min": 1000}}}, {"to": "999"}),
        ({"args": {"to": {"matches": "a+"}}}, {"to": "aab"}),
        ({"args": {"to": {"matches": r"(?![\w.+-]+@example\.com\Z).*"}}}, {"to": "ann@example.com"}),
        ({"host": "evil.example"}, {"url": "https://good.example/evil.example"}),
        ({"host": "evil.example"}, {"url": "/about"}),
        ({"path": "secrets/*"}, {"file": "my/secrets.txt"}),
        ({"path": "secrets/*"}, {"to": "secrets/a"}),
        ({"path": "secrets/*"}, {"file": "notes/v1..2/50% off...md"}),
    ],
)
def test_but_not_for_what_it_cannot_mean(conditions: dict[str, Any], args: dict[str, Any]) -> None:
    assert not decides(Rule(verdict="deny", **conditions), **args)


@pytest.mark.parametrize(
    ("conditions", "good", "bad"),
    [
        ({"args": {"to": "*@ok.example"}}, "bob@ok.example", "bob@OK.example"),
        ({"args": {"to": "*@ok.example"}}, ["a@ok.example"], ["a@ok.example", "eve@evil.example"]),
        ({"args": {"to": "*@ok.example"}}, "bob@ok.example", []),
        ({"args": {"to": "*"}}, "bob", "bo\u200bb"),
        ({"args": {"to": "*"}}, "bob", "bo\x00b"),
        ({"args": {"to": {"in": [1, "a"]}}}, 1, True),
        ({"args": {"to": {"in": [1, "a"]}}}, "a", "1"),
        ({"args": {"to": {"max": 10}}}, 10, "10"),
        ({"args": {"to": {"max": 10}}}, -10, float("nan")),
        ({"args": {"to": {"matches": "[a-z]+"}}}, "abc", "abc\n"),
        ({"args": {"to": {"matches": "[a-z]+"}}}, "abc", "a" * 5000),
        ({"args": {"to": {"max": 10}}}, 10, [10]),
        ({"args": {"to": {"min": 1, "max": 10}}}, 10, [10, 10, 10]),
        ({"args": {"to": "*@ok.example"}}, "bob@ok.example", "eve@evil.example,bob@ok.example"),
        ({"args": {"to": "*@ok.example"}}, "bob@ok.example", "eve, bob@ok.example"),
        ({"args": {"to": "*@ok.example"}}, "bob@ok.example", "eve\nbob@ok.example"),
        ({"args": {"to": "*"}}, "bob@ok.example, one\ntwo", "bo\u200bb"),
    ],
)
def test_what_allows_takes_a_value_exactly(conditions: dict[str, Any], good: Any, bad: Any) -> None:
    rule = Rule(verdict="allow", **conditions)
    assert decides(rule, to=good)
    assert not decides(rule, to=bad)


@pytest.mark.parametrize(
    ("conditions", "args"),
    [
        ({"host": "*.ok.example"}, {"url": "https://a.ok.example/", "to": "https://evil.example/"}),
        ({"host": "*"}, {"url": "https://a.ok.example@evil.example/"}),
        ({"host": "*.ok.example"}, {"url": "https://evil-ok.example/"}),
        ({"host": "*.ok.example"}, {"url": "https://a.ok.example.evil.example/"}),
        ({"host": "*.ok.example"}, {"url": "https://evil.example\\@a.ok.example/"}),
        ({"path": "work/*"}, {"file": "work/../etc/passwd"}),
        ({"path": "work/*"}, {"file": "work\\..\\etc"}),
        ({"path": "work/*"}, {"file": "work/a", "outputPath": "/etc/passwd"}),
        ({"path": "work/*"}, {"file": "work/a", "options": {"dest": "/etc/passwd"}}),
        ({"path": "work/*"}, {"to": "work/a"}),
        *(
            ({"path": "work/*"}, {"file": f"work/{rest}"})
            for rest in (
                *("", " ", ".", "a/", "/a", "a\n", "a\r\nb", "a\u2028b", "%0aa", "a%00", "...", ".. /x", "..\u200b/x"),
                *("%2e%2e/x", "%2E./x", "%252e%252e%252fx", "..%2fx", "..%5cx", "..;/x", "..;a=b/x", "%c0%ae/x"),
                *("\uff0e\uff0e/x", "\u2025/x", "%u002e%u002e/x", "\uff052e\uff052e/x", "%25252525252e/x"),
            )
        ),
        ({"path": "work/*"}, {"file": "work/a", "undeclared": "x"}),
        ({"args": {"to": "bob"}}, {"to": "bob", "undeclared": "x"}),
        ({"args": {"to": "bob"}}, {"to": "bob", "options": {"undeclared": "x"}}),
    ],
)
def test_to_allow_all_addresses_and_paths_must_fit(conditions: dict[str, Any], args: dict[str, Any]) -> None:
    assert not decides(Rule(verdict="allow", **conditions), **args)


@pytest.mark.parametrize(
    "path", ["work/a", "work/a b/c..d.md", "work/50% off.md", "work/会议　记录.md", "work/a%20b", "work/.env"]
)
def test_a_plain_path_fits_its_pattern(path: str) -> None:
    assert decides(Rule(verdict="allow", path="work/*"), file=path)
    assert decides(Rule(verdict="allow", path=path), file=path)
    assert decides(Rule(verdict="allow", path="*"), file=".")


def test_a_tool_that_declares_no_arguments_may_take_any() -> None:
    rule = Rule(verdict="allow", args={"to": "bob"})
    for schema, verdict in (({"type": "object"}, "allow"), ({"type": "object", "properties": {}}, "deny")):
        run = Run(Policy(profile="locked", rules=(rule,)), (card("send", "write", input_schema=schema),))
        assert run.judge("send", to="bob").split()[0] == verdict


def paying(**rule: Any) -> Run:
    return Run(Policy(profile="autonomous", rules=(Rule(verdict="deny", tool="pay", name="limit", **rule),)))


def test_a_count_per_run() -> None:
    run = paying(calls_over=2)
    for _ in range(2):
        assert run.judge("pay", to="a", amount=1) != "deny rule:limit"
        run.ask("pay", {"to": "a", "amount": 1})
    assert run.judge("pay", to="a", amount=1) == "deny rule:limit"


def test_a_total_is_exact_and_no_sign_or_type_resets_it() -> None:
    run = paying(total_over={"amount": 0.3})
    for amount in (0.1, "-0.1"):
        run.ask("pay", {"to": "a", "amount": amount})
    assert run.judge("pay", to="a", amount=0.1) != "deny rule:limit", "three times 0.1 is 0.3"
    assert run.judge("pay", to="a", amount=0.11) == "deny rule:limit"
    assert run.judge("pay", to="a", amount=-100) == "deny rule:limit"


@pytest.mark.parametrize(
    "amount", ["nan", float("nan"), "inf", "-inf", float("inf"), 10**400, "1,0", "", True, [1], {}]
)
def test_an_amount_that_is_no_number_is_too_much_and_leaves_the_total_whole(amount: Any) -> None:
    run = paying(total_over={"amount": 100})
    run.ask("pay", {"amount": 99})
    assert run.judge("pay", to="a", amount=amount) == "deny rule:limit"
    call_id = run.ask("pay", {"amount": amount}, "ask")
    assert run.judge("pay", to="a", amount=1) == "deny rule:limit"
    run.add(ApprovalRefused(call_id=call_id, by="ann"))
    assert run.judge("pay", to="a", amount=1) != "deny rule:limit", "what was refused gives back what it took"
    assert run.judge("pay", to="a", amount=2) == "deny rule:limit"


def test_edited_calls_count_as_they_run_and_denied_ones_not_at_all() -> None:
    run = paying(total_over={"amount": 100})
    run.ask("pay", {"amount": 1000}, "deny")
    call_id = run.ask("pay", {"amount": 90}, "ask")
    assert run.judge("pay", amount=20) == "deny rule:limit"
    run.add(ApprovalGiven(call_id=call_id, digest="", by="ann", args={"amount": 50}))
    assert run.judge("pay", amount=20) != "deny rule:limit"
    assert run.judge("pay", amount=51) == "deny rule:limit"


def test_calls_of_one_decision_use_the_budget_one_after_the_other() -> None:
    run = paying(total_over={"amount": 100})
    said = []
    for _ in range(3):
        said.append(run.judge("pay", amount=60))
        run.ask("pay", {"amount": 60}, "deny" if said[-1].startswith("deny") else "allow")
    assert [one.split()[0] for one in said] == ["allow", "deny", "deny"]


def test_a_budget_is_kept_by_an_equal_policy_too() -> None:
    run = paying(calls_over=1)
    run.ask("pay", {"amount": 1})
    call = Call(tool="pay", args={"amount": 1})
    for _ in range(2):
        equal = Policy(profile="autonomous", rules=(Rule(verdict="deny", tool="pay", name="limit", calls_over=1),))
        assert judge(run.trace, call, PAY, equal).rule == "rule:limit"


@examples(100)
@given(st.lists(st.tuples(st.integers(-200, 200), st.sampled_from(["run", "refuse"])), max_size=12))
def test_no_order_of_calls_and_refusals_pays_more_than_the_total(calls: list[tuple[int, str]]) -> None:
    run, paid = paying(total_over={"amount": 300}), 0
    for amount, end in calls:
        if run.judge("pay", amount=amount).startswith("deny"):
            continue
        call_id = run.ask("pay", {"amount": amount}, "ask")
        if end == "refuse":
            run.add(ApprovalRefused(call_id=call_id, by="ann"))
        else:
            paid += abs(amount)
    assert paid <= 300


def test_the_first_rule_that_speaks_decides() -> None:
    rules = (Rule(verdict="allow", tool="pay", args={"to": "bob"}), Rule(verdict="deny", tool="p*"))
    run = Run(Policy(rules=rules))
    assert run.judge("pay", to="bob") == "allow rule:allow pay"
    assert run.judge("pay", to="eve") == "deny rule:deny p*"
    assert run.judge("look", query="x") == "allow read"


def test_a_rule_about_untrusted_text_speaks_only_after_it() -> None:
    run = Run(Policy(rules=(Rule(verdict="deny", tier="write", tainted=True),)))
    assert run.judge("pay", to="x", amount=1) == "ask write_out"
    run.see("x")
    assert run.judge("pay", to="x", amount=1) == "deny rule:deny *"


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({}, {"tool": "pay"}),
        ({"tool": "p*"}, {"tool": "pay"}),
        ({"tool": "mail_*"}, {"tool": "mail_s*"}),
        ({"tier": "write"}, {"tier": "write", "tool": "pay"}),
        ({"args": {"to": "a"}}, {"args": {"to": "a"}, "tool": "pay"}),
        ({"host": "a.example"}, {"host": "a.example", "calls_over": 3}),
    ],
)
def test_a_rule_that_another_hides_is_refused(first: dict[str, Any], later: dict[str, Any]) -> None:
    rules = Rule(verdict="deny", name="one", **first), Rule(verdict="allow", name="two", **later)
    with pytest.raises(PolicyError, match="'two' can never match: 'one'"):
        Policy(rules=rules)
    Policy(rules=rules[::-1]) if first != later else None


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"tool": "mail_?"}, {"tool": "mail_*"}),
        ({"tool": "[pq]ay"}, {"tool": "pay"}),
        ({"calls_over": 3}, {}),
        ({"args": {"to": "a"}}, {"args": {"to": "b"}}),
        ({"tainted": True}, {}),
    ],
)
def test_a_rule_that_still_has_something_to_say_is_kept(first: dict[str, Any], later: dict[str, Any]) -> None:
    kept = (Rule(verdict="deny", **first), Rule(verdict="allow", **later))
    assert Policy(rules=kept).rules == kept


def test_a_denial_after_an_allowance_takes_more_values_so_it_is_kept() -> None:
    kept = (Rule(verdict="allow", host="a.example"), Rule(verdict="deny", host="a.example"))
    assert Policy(rules=kept).rules == kept


@pytest.mark.parametrize(
    "wrong",
    [
        {"verdict": "maybe"},
        {"tier": "wrte"},
        {"tool": ""},
        {"tool": 5},
        {"egress": 1},
        {"tainted": "yes"},
        {"calls_over": -1},
        {"calls_over": True},
        {"calls_over": 1.5},
        {"total_over": {"amount": float("nan")}},
        {"total_over": {"amount": "5"}},
        {"total_over": {1: 5}},
        {"args": {1: "x"}},
        {"args": {"": "x"}},
        {"args": {"to": ["a"]}},
        {"args": {"to": {}}},
        {"args": {"to": {"equals": 1}}},
        {"args": {"to": {"min": 3, "max": 2}}},
        {"args": {"to": {"min": "3"}}},
        {"args": {"to": {"in": []}}},
        {"args": {"to": {"matches": "("}}},
        {"args": {"to": {"matches": 3}}},
        {"host": "https://a.example/"},
        {"host": "a.example:443"},
        {"path": "../*"},
    ],
)
def test_a_rule_that_says_nothing_or_never_matches_is_refused_with_its_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match="The rule 'mine' has") as caught:
        Rule(**{"verdict": "deny", "name": "mine", **wrong})
    assert caught.value.hint.startswith("It must be ")


@pytest.mark.parametrize(
    "rule",
    [
        {"tool": "sendmail"},
        {"tool": "pay", "tier": "destructive"},
        {"tool": "pay", "args": {"ammount": 5}},
        {"tool": "pay", "total_over": {"sum": 5}},
        {"tool": "save", "egress": True},
        {"tool": "pay", "path": "x/*"},
    ],
)
def test_a_rule_that_no_tool_of_the_agent_could_meet_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match="mine"):
        reject_unmatchable_rules(
            Policy(rules=(Rule(verdict="deny", name="mine", **rule),)), {one.name: one for one in CARDS}
        )


def test_a_rule_that_some_tool_could_meet_is_kept() -> None:
    rules = (
        Rule(verdict="deny", tool="delete_*", path="x/*"),
        Rule(verdict="deny", args={"to": "x"}, name="b"),
        Rule(verdict="deny", egress=True, calls_over=2),
    )
    reject_unmatchable_rules(Policy(rules=rules), {one.name: one for one in (LOOK, FETCH, PAY, DELETE)})


def test_an_inner_run_keeps_the_denials_of_the_outer_one_even_where_they_hide_its_own() -> None:
    outer = Policy(profile="strict", rules=(Rule(verdict="deny", tier="destructive"), Rule(verdict="ask", tool="x")))
    own = Policy(profile="autonomous", rules=(Rule(verdict="allow", tool="drop", tier="destructive", name="mine"),))
    both = stricter(own, outer)
    assert both.profile == "strict"
    assert both.rules == (outer.rules[0],)
    assert stricter(Policy(profile="headless"), Policy()).profile == "headless"
