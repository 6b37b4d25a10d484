"""How long a suite of many cases takes with a scripted model, and whether the memory grows with the number of cases.

    python benchmarks/evaluation.py [--json] [--cases N]

Each case has five steps: four calls of a tool in Python, in a world of its own, and an answer that is checked. Traces
go to SQLite, records to their file, and metrics with intervals are computed. Targets for 1,000 cases: 15 s on two
cores, and at most 15 MB more than after the first 100.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from taoloop import tool
from taoloop.evals.cases import ActionPattern, Case, Check
from taoloop.evals.configurations import configurations_of
from taoloop.evals.scoring import score
from taoloop.evals.suite import Suite
from taoloop.evals.trial_records import TrialRecord
from taoloop.evals.trials.suite_run import SuiteProgress, SuiteRun
from taoloop.evals.worlds import current_world

LIMIT_S, LIMIT_MB = 15.0, 15.0
CALLS, FIRST = 4, 100


@tool(tier="read", inline=True)
def add(by: int) -> int:
    """Add to the sum.

    Args:
        by: how much
    """
    state = current_world().state
    state["sum"] += by
    return int(state["sum"])


def cases(number: int) -> Iterator[Case]:
    for index in range(number):
        calls = [{"tool_calls": [{"name": "add", "args": {"by": index + call}}]} for call in range(CALLS)]
        total = sum(index + call for call in range(CALLS))
        yield Case(
            case_id=f"case-{index}",
            task=f"Add up four numbers from {index} on.",
            world={"sum": 0},
            checks=(Check(kind="number", expected=total), Check(kind="world", expected={"sum": total})),
            expected_actions=(ActionPattern(tool="add", args={"by": index}),),
            script=(*calls, f"It is {total}."),
        )


def peak_mb() -> float:
    """The most memory that the process has had so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def measure(number: int, folder: Path) -> dict[str, float]:
    suite = Suite(name="large", cases=lambda: cases(number), tools=(add,), model="oracle")
    configurations = configurations_of(suite, {})
    first_mb: list[float] = []

    def watch(progress: SuiteProgress, _record: TrialRecord | None) -> None:
        if progress.ended == min(FIRST, number):
            first_mb.append(peak_mb())

    run = SuiteRun(suite=suite, configurations=configurations, database=folder / "e.db", env={}, on_progress=watch)
    began, cpu = time.perf_counter(), time.process_time()
    outcome = asyncio.run(run.run())
    settings = {each.name: each.settings for each in configurations}
    results = score(outcome.records, settings, suite="large", digest=outcome.digest, created_at=0.0, version="0")
    metrics = results.configurations[0].metrics
    assert metrics["task_success"].value == 1.0
    assert metrics["mean_steps"].value == CALLS + 1
    return {
        "cases": number,
        "seconds": time.perf_counter() - began,
        "cpu_s": time.process_time() - cpu,
        "peak_mb": peak_mb(),
        "growth_mb": peak_mb() - first_mb[0],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cases", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(options.cases, Path(folder))
    if options.json:
        print(json.dumps(figures))
    else:
        print(
            f"{options.cases} cases of {CALLS + 1} steps: {figures['seconds']:.1f} s, {figures['cpu_s']:.1f} s of CPU"
        )
        print(
            f"memory: at most {figures['peak_mb']:.0f} MB, {figures['growth_mb']:.1f} MB more than after {FIRST} cases"
        )
    return int(figures["seconds"] > LIMIT_S or figures["growth_mb"] > LIMIT_MB)


if __name__ == "__main__":
    sys.exit(main())
