"""A model that obeys every injection, on AgentDojo, through the real executor: what does the policy alone hold?

Run: cd benchmarks && python -m security [--short] [--jobs N] [--policies supervised,strict] [--json]
Needs `agentdojo==0.1.35` beside taoloop; see README.md. One number per line.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time


def main() -> int:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m security", description=__doc__)
    parser.add_argument("--short", action="store_true", help="each goal once, three policies: a minute")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--policies", default="", help="names with commas between them; all by default")
    parser.add_argument("--json", action="store_true", help="with the runs behind the figures")
    options = parser.parse_args()
    if importlib.util.find_spec("agentdojo") is None:
        print("AgentDojo is not installed: pip install agentdojo==0.1.35", file=sys.stderr)
        return 2
    from security.figures import plan, run_all, short_plan  # noqa: PLC0415  # loads AgentDojo
    from security.policies import POLICIES  # noqa: PLC0415  # likewise

    began = time.perf_counter()
    names = tuple(options.policies.split(",")) if options.policies else tuple(POLICIES)
    data = {}
    jobs = [job for job in short_plan() if job.policy in names] if options.short else plan(names)
    for tally in run_all(jobs, short=options.short, processes=options.jobs):
        data[tally.job.name] = tally.as_data()
        if not options.json:
            for name, figure in tally.lines():
                print(f"{name} {figure}", flush=True)
    if options.json:
        print(json.dumps(data, indent=1))
    print(f"seconds {time.perf_counter() - began:.0f}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
