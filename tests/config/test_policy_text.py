"""A policy as the text of a policy file, and back."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, strategies as st

from taoloop.config.agent_file import load_policy
from taoloop.config.policy_text import flow_text, policy_text, rule_text, unmet_texts
from taoloop.core.policy import Policy, Rule
from taoloop.policy.review.unmet_conditions import UnmetCondition, UnmetRule
from taoloop.tools.yaml12 import parse_yaml

POLICY = Policy(
    profile="headless",
    trusted_tools=("directory",),
    allowed_hosts=("*.example.com",),
    approval_timeout_s=60.0,
    rules=(
        Rule(name="no", tool="pay", verdict="deny", args={"to": {"matches": r"(?!.*@example\.com$).*"}}),
        Rule(tool="pay", verdict="allow", args={"amount": {"max": 20}, "note": "*: #yes"}, reason="small ones: fine"),
        Rule(name="五封", tool="send_mail", verdict="ask", calls_over=5),
    ),
)


def test_a_policy_is_read_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(policy_text(POLICY, {0: ["Never\noutside."], 2: ["每次运行五封。"]}), encoding="utf-8")
    assert load_policy(path) == POLICY
    assert '  # Never outside.\n  - name: "no"\n' in path.read_text("utf-8")


def test_a_rule_fits_on_one_line() -> None:
    assert rule_text(POLICY.rules[1]) == (
        '{tool: pay, args: {amount: {max: 20}, note: "*: #yes"}, reason: "small ones: fine", verdict: allow}'
    )


PLAIN_VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.recursive(PLAIN_VALUES, lambda part: st.lists(part) | st.dictionaries(st.text(), part), max_leaves=8))
def test_any_value_is_read_back(value: object) -> None:
    assert parse_yaml(f"value: {flow_text(value)}\n")["value"] == value


def test_why_a_rule_did_not_apply_is_said_per_condition() -> None:
    conditions = (
        UnmetCondition(name="args.amount.max", expected=20, value=500),
        UnmetCondition(name="after", expected="look", value=None),
        UnmetCondition(name="args.to", expected="bob", value=None),
    )
    rule = UnmetRule(index=2, rule=Rule(name="small", tool="pay", verdict="allow"), conditions=conditions)
    assert unmet_texts(rule, "en") == [
        "rules[2] small requires args.amount.max: 20; here: 500",
        "rules[2] small requires after: look; no such call came before",
        "rules[2] small requires args.to: bob; here: nothing",
    ]
    assert unmet_texts(rule, "zh")[0] == "rules[2] small 要求 args.amount.max：20；此处为 500"
