"""What checks say is stored as data, and shown in the language of the reader."""

from __future__ import annotations

import json
from string import Formatter
from typing import Any

import pytest
from tests.evals.trial_making import trial

from taoloop.evals.cases import Case, Check, CheckKind
from taoloop.evals.checks.check_outcomes import TrialEnd, check_end, own_outcomes
from taoloop.evals.checks.outcome_texts import OUTCOME_TEXTS, outcome_detail
from taoloop.evals.report.tallies import reason_of
from taoloop.evals.trial_records import CheckOutcome, TrialRecord


def outcome(kind: CheckKind, expected: Any, answer: str | None, **end: Any) -> CheckOutcome:
    """What a check says of an end of a trial."""
    settings = end.pop("settings", {})
    case = Case(case_id="a", task="t")
    ended = TrialEnd(case=case, answer=answer, status=end.pop("status", "completed"), **end)
    return check_end(Check(kind=kind, expected=expected, settings=settings), ended)


WORLD = {"open": True, "owner": None, "total": 3}


@pytest.mark.parametrize(
    ("said", "english", "chinese"),
    [
        (
            outcome("exact", "It's 5", 'He said "6"'),
            'expected "It\'s 5", and the answer is "He said \\"6\\""',
            '期望 "It\'s 5"，回答是 "He said \\"6\\""',
        ),
        (
            outcome("json_path", None, '{"a": true}', settings={"path": "$.a"}),
            'expected null, and the answer is "{\\"a\\": true}"',
            '期望 null，回答是 "{\\"a\\": true}"',
        ),
        (
            outcome("em", ["yes", "是"], None),
            'expected ["yes", "是"], and there is no answer',
            '期望 ["yes", "是"]，但没有回答',
        ),
        (
            outcome("status", "completed", "a", status="waiting"),
            'expected the status "completed", and it is waiting',
            '期望状态为 "completed"，实际为 waiting',
        ),
        (
            outcome("world", {"open": False, "owner": "Li", "sum": 3}, "a", world=WORLD),
            "the world is not as expected at open: true; owner: null; sum: nothing",
            "世界状态与期望不符：open：true；owner：null；sum：无",
        ),
    ],
)
def test_values_are_json_and_words_those_of_the_reader(said: CheckOutcome, english: str, chinese: str) -> None:
    assert outcome_detail(said, "en") == english
    assert outcome_detail(said, "zh") == chinese
    assert said.detail == ""
    record = trial(passed=False, checks=(said,))
    stored = TrialRecord.from_json(json.loads(json.dumps(record.to_json(), allow_nan=False)))
    assert stored == record
    assert reason_of(stored, "zh") == f"{said.kind}：{chinese}"


def test_an_answer_where_none_is_right_is_told_from_a_run_that_did_not_end() -> None:
    case = Case(case_id="a", task="t", abstains=True)
    (answered,) = own_outcomes(TrialEnd(case=case, answer="42", status="completed"))
    (waits,) = own_outcomes(TrialEnd(case=case, answer=None, status="waiting"))
    assert outcome_detail(answered) == 'there is no right answer, and the run gave "42"'
    assert outcome_detail(waits) == "there is no right answer, and the run did not end by saying so"


def test_what_is_long_is_shortened_and_what_is_no_json_is_stored_as_text() -> None:
    long = outcome("exact", "no", "x" * 5_000)
    assert len(json.dumps(long.values)) < 300
    assert outcome_detail(long).endswith('x…"')
    deep = outcome("world", {"a": 1}, "x", world={"a": {"b": [{1, 2}] * 2_000}})
    assert len(json.dumps(deep.values)) < 300


def test_earlier_files_and_functions_of_suites_have_words_of_their_own() -> None:
    earlier = TrialRecord.from_json(
        trial(passed=False).to_json() | {"checks": [{"kind": "exact", "passed": False, "detail": "expected '42'"}]}
    )
    assert reason_of(earlier, "zh") == "exact：expected '42'"
    unknown = CheckOutcome(kind="exact", passed=False, code="of_the_future", detail="as it says")
    assert outcome_detail(unknown, "zh") == "as it says"
    partly = CheckOutcome(kind="exact", passed=False, code="not_expected", values={"expected": 1})
    assert outcome_detail(partly) == 'not_expected {"expected": 1}'


@pytest.mark.parametrize("code", OUTCOME_TEXTS)
def test_every_code_reads_as_chinese(code: str) -> None:
    values = {name: "x" for _, name, _, _ in Formatter().parse(OUTCOME_TEXTS[code]) if name}
    shown = outcome_detail(CheckOutcome(kind="k", passed=False, code=code, values=values), "zh")
    assert any("一" <= char <= "鿿" for char in shown)
