"""Results in a few sentences: verdicts with interval and p, what would decide, and what a reader must beware of."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.evals.trial_making import scored, trial, trials

from taoloop.core.human_input import MarkVerdict
from taoloop.evals.judge_calibration import judge_reports
from taoloop.evals.report.comparison_part import comparison_part
from taoloop.evals.report.figures import format_interval, metric_label
from taoloop.evals.report.headlines import figure_notes, headlines
from taoloop.evals.report.labels import ReportLabels
from taoloop.evals.trial_records import NOBODY_ANSWERED, CheckOutcome


def texts(*outcomes: list[bool]) -> list[str]:
    results = scored(*(trials(name, own) for name, own in zip("abcdef", outcomes, strict=False)))
    return [line.text for line in headlines(results)]


def test_a_verdict_has_its_difference_interval_and_p() -> None:
    success, verdict = texts([False] * 40, [True] * 40)
    assert success.startswith("b: 100% right (95% interval ")
    assert verdict.startswith("b is right more often than a: +100.0 points (95% interval +")
    assert "corrected p <0.001, 40 pairs." in verdict


def test_what_is_not_decided_says_how_many_cases_would_decide() -> None:
    verdict = texts([True, False] * 10, [True, False] * 9 + [True, True])[1]
    assert verdict.startswith("Whether b or a is right more often is not decided: +5.0 points")
    assert "cases would decide." in verdict


def test_who_is_right_equally_often_is_neither_most_nor_least() -> None:
    right, half = [True] * 4, [True, False] * 2
    interval = "(95% interval 51.0% to 100%)"
    assert texts(right, right, right)[0] == f"Equally often right: a, b, c: 100% right {interval}."
    lines = texts(half, right, right)[0]
    assert lines.startswith(f"Most often right: b, c: 100% right {interval}. Least often: a: 50.0% right (")
    uneven = scored(trials("a", [True] * 3), trials("b", [True] * 4), trials("c", [True] * 4))
    assert headlines(uneven, "zh")[0].text == "正确率相同：a、b、c：正确率 100%。"


def test_invalid_trials_that_wait_say_in_what_they_count() -> None:
    waits = trial("b", passed=None, status="waiting", fault="simulator", fault_rule=NOBODY_ANSWERED)
    results = scored([trial("a"), waits, trial("c", passed=None, fault="judge")])
    (warning,) = (line.text for line in headlines(results) if line.tone == "warn")
    assert warning == (
        "2 trials are invalid and count in no rate. 1 of them waits for a person whom the suite does not have, and "
        "shows what the policy did: it counts in high-risk interception, high-risk calls that slipped, false alarms, "
        "questions per task."
    )


def test_many_comparisons_are_one_sentence_for_each_verdict() -> None:
    lines = texts([False] * 30, [True] * 30, [True] * 30, [False] * 30)
    assert lines[1] == "Right more often than what they are compared with: b, c. Not decided: d."


def test_comparisons_with_a_baseline_are_told_apart_from_those_with_each_other() -> None:
    records = trials("a", [False] * 30), trials("b", [True] * 30)
    results = scored(*records, baseline=scored(trials("a", [True] * 30), trials("b", [True] * 30)))
    assert [line.text for line in headlines(results)][1:] == [
        "Right more often than what they are compared with: b.",
        "Compared with the baseline: Right less often: a. Not decided: b.",
    ]
    tables = comparison_part(results, ReportLabels(results, "en")).split('class="verdicts"')[1:]
    assert [re.findall(r'<th scope="col"[^>]*title="([^"]+)"', table) for table in tables] == [
        ["b compared with a"],
        ["a compared with baseline: a", "b compared with baseline: b"],
    ]


def test_configurations_without_a_language_model_only_frame_the_others() -> None:
    results = scored(trials("m", [True, False]), trials("o", [True, True]))
    configurations = tuple(
        replace(each, settings={"model": name})
        for each, name in zip(results.configurations, ("x:y", "oracle"), strict=True)
    )
    lines = headlines(replace(results, configurations=configurations))
    assert lines[0].text.startswith("m: 50.0% right")
    assert "o:" not in lines[0].text


def test_a_reader_is_warned_of_judges_that_nobody_calibrated_and_of_flaky_cases() -> None:
    results = replace(scored(trials("x", [[True, False]]), model="offline"), judges={"style": {"calibrated": False}})
    warnings = [line.text for line in headlines(results) if line.tone == "warn"]
    assert warnings == [
        "1 case is flaky and in quarantine: c0.",
        (
            "The judge style is not calibrated: how often it is wrong is unknown, "
            "and so is how far the figures that rest on it can be trusted. "
            "Mark some runs as right and some as wrong, with `tao mark` or in the panel."
        ),
    ]


def test_a_calibrated_judge_is_shown_with_the_rate_behind_its_own() -> None:
    records = [
        trial(f"c{index}", run_id=f"r{index}", checks=(CheckOutcome(kind="judge", passed=index > 2, judge="style"),))
        for index in range(20)
    ]
    marks: dict[str, MarkVerdict] = {f"r{index}": "right" if index > 4 else "wrong" for index in range(15)}
    results = replace(scored(records), judges=judge_reports(records, marks))
    texts = [line.text for line in headlines(results)]
    assert texts[1].startswith(
        "Judge style: agrees with people on 100% (72.2% to 100%) of what they marked right and on 60.0% ("
    )
    assert "the judge calls 85.0% (64.0% to 94.8%) right; corrected for its errors, 75.0% (" in texts[1]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_figure_has_an_interval_or_says_why_not(language: str) -> None:
    for records in (trials("x", [True]), trials("x", [[True, False]] * 3), trials("x", [True, False] * 9)):
        results = scored(records)
        for name, figure in results.configurations[0].metrics.items():
            assert format_interval(name, figure, language) or figure.value is None
    notes = list(figure_notes(scored(trials("x", [[True, True]] * 3)), language))
    assert any(metric_label("mean_steps", language) in note for note in notes)
    assert any("k = 2" in note for note in notes)
