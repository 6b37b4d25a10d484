"""How long two stored results of many cases take to be read, scored again and compared in pairs.

    python benchmarks/evaluation_comparison.py [--json] [--cases N] [--trials K]

The trials are drawn: each case has a difficulty of its own, and the second configuration is a little better. Target:
two results of 10,000 cases read and compared in 3 s of CPU. All metrics with their intervals are timed, too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from taoloop.evals.results import Results, read_results, write_results
from taoloop.evals.scoring import compare_results, score
from taoloop.evals.trial_records import TrialCounts, TrialRecord

LIMIT_S = 3.0


def trials(configuration: str, cases: int, per_case: int, advantage: float) -> Iterator[TrialRecord]:
    """Trials of five steps or so."""
    difficulties, random = Random(1), Random(configuration)  # noqa: S311  # drawn trials, no secret
    for index in range(cases):
        right = min(1.0, difficulties.betavariate(4, 2) + advantage)
        for number in range(per_case):
            calls = random.randint(2, 6)
            passed = random.random() < right
            yield TrialRecord(
                case_id=f"case-{index}",
                case_digest=f"{index:064x}",
                category=random.choice(("normal", "edge", "safety")),
                configuration=configuration,
                trial=number,
                run_id=f"{configuration}-{index}-{number}",
                status="completed",
                answer="391",
                passed=passed,
                fault=None if passed else "agent",
                counts=TrialCounts(
                    steps=calls + 1,
                    calls=calls,
                    calls_ended=calls,
                    calls_succeeded=random.randint(1, calls),
                    expected_actions=2,
                    tools_selected=random.randint(1, 2),
                    arguments_right=1,
                    repeated_calls=random.randint(0, 1),
                    citations=2,
                    citations_right=random.randint(0, 2),
                    high_risk_wanted=1,
                    high_risk_intercepted=random.randint(0, 1),
                    questions=random.randint(0, 1),
                    prompt_tokens=random.randint(500, 5_000),
                    completion_tokens=random.randint(50, 500),
                ),
                cost_usd=random.expovariate(100),
                latency_s=random.expovariate(0.5),
            )


def result(configuration: str, cases: int, per_case: int, advantage: float) -> Results:
    """The results of one configuration."""
    return score(
        trials(configuration, cases, per_case, advantage),
        {configuration: {"model": "drawn"}},
        suite="drawn",
        digest="drawn",
        created_at=0.0,
        version="0",
    )


def measure(cases: int, per_case: int) -> dict[str, float]:
    """The seconds of CPU of each part."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "first.json", Path(folder) / "second.json"]
        start = time.process_time()
        for path, advantage in zip(paths, (0.0, 0.02), strict=True):
            write_results(result("main", cases, per_case, advantage), path)
        written = time.process_time()
        first, second = map(read_results, paths)
        read = time.process_time()
        comparisons = compare_results(second.configurations, second.trials, first)
        compared = time.process_time()
    assert len(comparisons) == 1
    assert comparisons[0].metrics[0].difference.n == cases
    return {
        "draw_score_and_write_both_s": written - start,
        "read_both_s": read - written,
        "compare_s": compared - read,
    }


def main(argv: list[str]) -> int:
    """Print the figures; 1 if reading and comparing takes longer than its limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--trials", type=int, default=1)
    options = parser.parse_args(argv)
    figures = measure(options.cases, options.trials)
    if options.json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name:28} {seconds:6.2f}" for name, seconds in figures.items()))
    return int(figures["read_both_s"] + figures["compare_s"] > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
