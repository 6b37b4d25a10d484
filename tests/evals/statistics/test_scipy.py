"""The statistics agree with SciPy on data of many shapes. Every night: SciPy takes seconds to import."""

from __future__ import annotations

from importlib import import_module
from random import Random
from typing import Any

import numpy as np
import pytest

from taoloop.evals.statistics.intervals import Counted, bca, mean_interval, t_quantile, wilson
from taoloop.evals.statistics.paired_tests import mcnemar, sign_flip

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def stats() -> Any:
    return import_module("scipy.stats")


def test_wilson_student_and_mcnemar_agree(stats: Any) -> None:
    for n in (1, 2, 7, 40, 1_000):
        for successes in {0, 1, n // 3, n - 1, n}:
            expected = stats.binomtest(successes, n).proportion_ci(method="wilson")
            assert wilson(successes / n, n) == pytest.approx((expected.low, expected.high), abs=1e-12)
            assert mcnemar(successes, n - successes) == pytest.approx(stats.binomtest(successes, n).pvalue)
    for degrees in (*range(1, 60), 199, 200, 201, 1_000, 100_000):
        assert t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=5e-5)


def test_the_interval_of_a_mean_agrees(stats: Any) -> None:
    for count in (2, 5, 9, 101, 300):
        values = np.random.default_rng(count).normal(10, 1, count)
        expected = stats.ttest_1samp(values, 0).confidence_interval()
        interval = mean_interval([Counted(float(value), 1) for value in values])
        assert interval == pytest.approx((expected.low, expected.high), rel=1e-5)


def test_sign_flips_agree(stats: Any) -> None:
    for count in (3, 8, 12, 40, 200):
        differences = np.random.default_rng(count).normal(0.2, 1, count)
        expected = stats.permutation_test(
            (differences,),
            lambda values, axis: values.sum(axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=9_999,
            rng=np.random.default_rng(1),
        )
        tolerance = 1e-9 if count <= 12 else 0.02
        assert sign_flip([float(value) for value in differences]) == pytest.approx(expected.pvalue, abs=tolerance)


def test_the_bootstrap_agrees(stats: Any) -> None:
    random = Random(2)  # noqa: S311  # draws cases, no secret
    cases = [Counted(n * random.expovariate(1), n) for n in (random.randint(1, 5) for _ in range(30))]
    totals, counts = (np.array(column) for column in zip(*cases, strict=True))
    expected = stats.bootstrap(
        (totals, counts),
        lambda total, n, axis=-1: total.sum(axis) / n.sum(axis),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        method="BCa",
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert bca(cases, resamples=20_000) == pytest.approx((expected.low, expected.high), rel=0.03)
