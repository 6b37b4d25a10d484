"""Results in a few sentences: verdicts with interval and p, what would decide, and what a reader must beware of."""

from __future__ import annotations

from dataclasses import replace

from tests.evals.trial_making import scored, trials

from taoloop.evals.report.headlines import headlines


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


def test_many_comparisons_are_one_sentence_for_each_verdict() -> None:
    lines = texts([False] * 30, [True] * 30, [True] * 30, [False] * 30)
    assert lines[1] == "Right more often than what they are compared with: b, c. Not decided: d."


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
        "The judge style is not calibrated: nobody has said how often it is wrong.",
    ]
