"""Comparison of answers."""

from __future__ import annotations

import pytest

from taoloop.evals.checks.text_match import (
    exact_match,
    f1_score,
    json_in,
    last_number,
    path_steps,
    plain_answer,
    state_differences,
    value_at,
)


@pytest.mark.parametrize(
    ("answer", "expected", "em", "f1"),
    [  # by hotpot_evaluate_v1.py of HotpotQA
        ("The Eiffel Tower.", "eiffel tower", True, 1.0),
        ("Eiffel Tower in Paris", "Eiffel Tower", False, 2 / 3),
        ("a cat a cat", "cat", False, 2 / 3),
        ("yes", "yes, it is", False, 0.0),
        ("no", "no", True, 1.0),
        ("", "Paris", False, 0.0),
        ("the", "a", True, 0.0),
    ],
)
def test_em_and_f1_are_those_of_hotpotqa(answer: str, expected: str, em: bool, f1: float) -> None:
    assert exact_match(answer, expected) is em
    assert f1_score(answer, expected) == pytest.approx(f1)


def test_chinese_is_scored_by_character_and_without_its_punctuation() -> None:
    assert exact_match("“北京”。", "北京")
    assert f1_score("北京大学", "北京") == pytest.approx(2 / 3)
    assert f1_score("答案是 Python 语言。", "Python") == pytest.approx(2 / 7)
    assert not exact_match("Paris’", "Paris"), "without Chinese it is as the papers have it"


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("391", 391),
        ("It is 1,234,567.5 in all.", 1234567.5),
        ("17 times 23 is 391.", 391),
        ("−5", -5),
        ("between 3-4", 4),
        ("1e3", 1000),
        ("none", None),
        ("结果是 150。", 150),
        ("version v2", None),
    ],
)
def test_the_number_of_an_answer_is_its_last(answer: str, number: float | None) -> None:
    assert last_number(answer) == number


def test_citations_are_no_part_of_an_answer() -> None:
    assert plain_answer("It is 5 [obs:call_12].\n Yes [doc:0123456789ab]") == "It is 5 . Yes"
    assert plain_answer('The result is 391. (calculator(expression="17 * 23"))') == "The result is 391."


def test_json_is_found_in_a_fence_and_by_its_path() -> None:
    value = json_in('Here:\n```json\n{"orders": [{"the id": 7}]}\n```')

    assert value_at(value, path_steps('$.orders[0]["the id"]') or ()) == 7
    with pytest.raises(LookupError):
        value_at(value, ("orders", 1))
    with pytest.raises(ValueError, match="Expecting value"):
        json_in("no JSON")
    assert path_steps("orders.id") is None
    assert path_steps("$.orders[") is None


def test_a_world_may_have_more_than_is_expected_and_no_less() -> None:
    world = {"orders": {"A1": {"state": "open", "n": 1}, "A2": {"state": "open"}}, "log": [1, 2]}

    assert list(state_differences({"orders": {"A1": {"state": "open"}}, "log": [1, 2]}, world)) == []
    assert list(state_differences({"orders": {"A1": {"state": "done", "n": True}, "A3": {}}}, world)) == [
        ("orders.A1.state", "open"),
        ("orders.A1.n", 1),
        ("orders.A3",),
    ]
