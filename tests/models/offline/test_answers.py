"""Numbers and texts taken out of observations, only where there is no doubt, and the sentences of answers."""

from __future__ import annotations

from typing import Any

import pytest

from taoloop.core.events import Observed
from taoloop.models.offline.answers import ObservedResult, Speech


def _finding(output: str, **fields: Any) -> ObservedResult:
    concepts = frozenset(fields.pop("concepts", ()))
    observed = Observed(call_id="c", ok=True, output=output, artifact=fields.pop("artifact", None))
    return ObservedResult(tool="t", args=fields.pop("args", {}), observed=observed, concepts=concepts, **fields)


@pytest.mark.parametrize(
    ("output", "fields", "number"),
    [
        ("12", {}, "12"),
        ("result=16.0", {}, "16"),
        (" -2.5\n", {}, "-2.5"),
        ("12 pieces", {}, None),
        ("nan", {}, None),
        ("true", {}, None),
        ('"12"', {}, None),
        ('{"stock": 12}', {"concepts": {"@stock"}}, "12"),
        ('{"status":200,"body":{"name":"tea","stock":12}}', {"concepts": {"@stock"}}, "12"),
        ('{"status":200,"body":12}', {}, "12"),
        ('{"stock": 12, "reserved_stock": 5}', {"concepts": {"@stock"}}, None),
        ('{"id": 12}', {"concepts": {"@stock"}}, None),
        ('{"value": 12, "id": 3}', {}, "12"),
        ('{"amount": 5, "result": 12}', {"args": {"amount": 5}}, "12"),
        ("[1, 2]", {}, None),
        ("2026-03-02T09:30:00+08:00", {"part": "@hour"}, "9"),
        ('{"time": "2026-03-02T09:05:00+08:00"}', {"part": "@minute"}, "5"),
        ("2026-03-02T09:30:00+08:00", {}, None),
        ("9 o'clock", {"part": "@hour"}, None),
        ("2026-03-02 09:30 and 2026-03-03 10:30", {"part": "@hour"}, None),
        ("12", {"artifact": "a"}, None),
        ("12", {"is_lost": True}, None),
        ("[" * 5_000, {}, None),
    ],
)
def test_the_one_number(output: str, fields: dict[str, Any], number: str | None) -> None:
    assert _finding(output, **fields).extract_number() == number


@pytest.mark.parametrize(
    ("output", "fields", "text"),
    [
        ("a b\n", {}, "a b\n"),
        ("result=12", {}, "12"),
        ('{"ok":true,"content":"a b\\n"}', {}, "a b\n"),
        ('{"content":"a","text":"b"}', {}, None),
        ('{"city":"Paris"}', {}, '{"city":"Paris"}'),
        ("a", {"artifact": "a"}, None),
        ("a", {"is_lost": True}, None),
    ],
)
def test_the_text(output: str, fields: dict[str, Any], text: str | None) -> None:
    assert _finding(output, **fields).extract_text() == text


@pytest.mark.parametrize(
    ("chinese", "answer"),
    [
        (False, 'The result is 12. (t(item="tea"))'),
        (True, '结果是 12。(t(item="tea"))'),
    ],
)
def test_an_answer_of_one_number(chinese: bool, answer: str) -> None:
    finding = _finding("12", args={"item": "tea"})
    assert Speech(chinese=chinese).compose_answer([finding], [finding]) == answer


def test_an_answer_of_several_results_names_each() -> None:
    findings = [_finding("12", args={"item": "tea"}), _finding("many", args={"item": "coffee"})]
    answer = Speech(chinese=False).compose_answer(findings, findings)
    assert answer.startswith("tea: 12; coffee: many. Based on: ")


def test_a_long_output_is_cut_and_said_to_be() -> None:
    finding = _finding("x" * 5_000, artifact="obs_c")
    answer = Speech(chinese=False).compose_answer([finding], [finding])
    assert len(answer) < 1_500
    assert answer.endswith("Only the first part of the output of t was seen.")
