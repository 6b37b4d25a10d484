"""A policy as a file: every mistake is told with file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from taoloop.config.agent_file import load_policy, parse_policy
from taoloop.core.policy import PROFILES, Policy, Rule
from taoloop.errors import AgentFileError

WHOLE = """
profile: strict
pin: model
trusted_tools: [clock]
trusted_fields: {search_files: {id: file}}
allowed_hosts: ["*.example.com"]
followed_hosts: 3
approval_timeout_s: 60
rules:
  - name: no more than 100
    verdict: deny
    tool: pay
    total_over: {amount: 100}
  - verdict: allow
    tool: fetch
    host: api.example.com
    args: {page: {min: 1, max: 9}}
"""


def written(folder: Path, text: str, name: str = "policy.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_says_the_same_as_python(tmp_path: Path) -> None:
    assert load_policy(written(tmp_path, WHOLE)) == Policy(
        profile="strict",
        pin="model",
        trusted_tools=("clock",),
        trusted_fields={"search_files": {"id": "file"}},
        allowed_hosts=("*.example.com",),
        followed_hosts=3,
        approval_timeout_s=60,
        rules=(
            Rule(verdict="deny", name="no more than 100", tool="pay", total_over={"amount": 100}),
            Rule(verdict="allow", tool="fetch", host="api.example.com", args={"page": {"min": 1, "max": 9}}),
        ),
    )


@pytest.mark.parametrize("profile", PROFILES)
def test_json_is_taken_too(profile: str, tmp_path: Path) -> None:
    assert load_policy(written(tmp_path, f'{{"profile": "{profile}"}}', "p.json")).profile == profile


@pytest.mark.parametrize(
    ("text", "line", "field", "says"),
    [
        ("profil: strict", 1, "profil", "Did you mean 'profile'"),
        ("profile: stict", 1, "profile", "supervised, strict"),
        ("pin: 5", 1, "pin", "one of auto, keywords, model"),
        ("rules: deny", 1, "rules", "a list is expected"),
        ("rules:\n  - deny", 2, "rules[0]", "Write its fields: `{verdict: …}`"),
        ("rules:\n  - tool: pay", 2, "rules[0]", "`verdict` is missing"),
        ("rules:\n  - verdict: deny\n    tools: pay", 3, "rules[0].tools", "Did you mean 'tool'"),
        ("rules:\n  - verdict: deny\n    1: pay", 3, "rules[0].1", "no such field"),
        ("rules:\n  - tool: pay\n    verdict: no", 3, "rules[0].verdict", "one of allow, ask, deny"),
        ("rules:\n  - verdict: deny\n    tier: big", 3, "rules[0].tier", "read, draft, write"),
        ("rules:\n  - verdict: deny\n    host: https://a.example/", 3, "rules[0].host", "without scheme"),
        ("rules:\n  - verdict: deny\n    args:\n      a: 1\n      b: {low: 3}", 5, "rules[0].args.b", "in, matches"),
        ("rules:\n  - verdict: deny\n    args:\n      a: {matches: '('}", 4, "rules[0].args.a", "regular expression"),
        ("rules:\n  - verdict: deny\n    args: {1: x}", 3, "rules[0].args", "names of arguments"),
        ("rules:\n  - verdict: deny\n    calls_over: -1", 3, "rules[0].calls_over", "whole number"),
        ("rules:\n  - verdict: deny\n  - verdict: allow\n    tool: pay", 3, "rules[1]", "can never match"),
        ("trusted_tools: mail", 1, "trusted_tools", "Put it in brackets."),
        ("trusted_tools: [5]", 1, "trusted_tools[0]", "Put it in quotes."),
        ("trusted_fields: [a]", 1, "trusted_fields", "a mapping"),
        ("trusted_fields: {a: {b: 5}}", 1, "trusted_fields.a.b", "Put it in quotes."),
        ("allowed_hosts: ['https://a.example']", 1, "allowed_hosts", "without scheme"),
        ("approval_timeout_s: 0", 1, "approval_timeout_s", "above 0"),
        ("[]", 1, "", "a policy is a mapping"),
        ("", 1, "", "empty"),
        ("profile: strict\nprofile: headless", 2, "", "profile"),
        ("profile: [", 1, "", "not YAML"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, line: int, field: str, says: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(AgentFileError) as caught:
        load_policy(path)
    error = caught.value
    assert str(path) in error.message
    assert says in f"{error.message} {error.hint}"
    if field:
        assert (error.line, error.field) == (line, field)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AgentFileError, match="no such file"):
        load_policy(tmp_path / "none.yaml")


def test_a_text_is_read_like_a_file() -> None:
    assert parse_policy("profile: strict").profile == "strict"
    assert parse_policy('{"profile": "strict"}').profile == "strict"
    with pytest.raises(AgentFileError, match="profle: there is no such field") as caught:
        parse_policy("profile: strict\nprofle: x")
    assert "profile" in caught.value.hint
    with pytest.raises(AgentFileError, match="larger than 1 MB"):
        parse_policy("#" * 1_048_577)
