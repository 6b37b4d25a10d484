"""Outcomes of trials, and cases in the order of how hard they were."""

from __future__ import annotations

from hypothesis import given, strategies as st
from tests.evals.trial_making import scored, trial, trials
from tests.sizes import examples

from taoloop.evals.report.tallies import bin_cases, failed_trials, outcomes_by_configuration, reason_of, tally_cases
from taoloop.evals.trial_records import CheckOutcome


def test_each_trial_has_one_outcome_and_invalid_ones_are_apart() -> None:
    records = [
        trial("a"),
        trial("b", passed=False, fault="tool"),
        trial("c", passed=False),
        trial("d", passed=None, fault="environment"),
    ]
    results = scored(records)
    counts = outcomes_by_configuration(results)["main"]
    assert counts == {"right": 1, "tool": 1, "unassigned": 1, "invalid": 1}
    assert {name: [each.case_id for each in own] for name, own in failed_trials(results).items()} == {
        "tool": ["b"],
        "unassigned": ["c"],
        "invalid": ["d"],
    }


def test_the_hardest_cases_come_first() -> None:
    tallies = tally_cases([*trials("x", [True, False, True]), *trials("y", [True, False, False])])
    assert [(tally.case_id, tally.mean_share) for tally in tallies] == [("c1", 0), ("c2", 0.5), ("c0", 1)]


@examples(100)
@given(st.integers(0, 200), st.integers(1, 60))
def test_bins_have_every_case_once_and_nearly_the_same_size(cases: int, most: int) -> None:
    tallies = tally_cases(trials("x", [True] * cases))
    bins = bin_cases(tallies, most)
    assert [case for case_bin in bins for case in case_bin.cases] == tallies
    sizes = {len(case_bin.cases) for case_bin in bins}
    assert len(bins) <= most
    assert not sizes or (min(sizes) >= 1 and max(sizes) - min(sizes) <= 1)


def test_the_reason_is_the_first_check_that_does_not_hold() -> None:
    checks = (CheckOutcome(kind="exact", passed=True), CheckOutcome(kind="judge", passed=None, detail="no verdict"))
    assert reason_of(trial("a", passed=None, checks=checks)) == "judge: no verdict"
    assert reason_of(trial("a")) == ""
