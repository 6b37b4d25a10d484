"""A shop and a booking desk, unattended, through the real executor: who is asked, what is right, what attackers get.

Run: cd benchmarks && python -m desks [--short] [--policies cards,file] [--json] [--tau-bench PATH]
One figure per line, the same on every run; see README.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import cast

from desks.figures import POLICIES, PolicyName, plan, run_all
from desks.goals import DESKS
from desks.tau_bench import load_desks


def main() -> int:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m desks", description=__doc__)
    parser.add_argument("--short", action="store_true", help="every second task, attacks on every fifth: some seconds")
    parser.add_argument("--policies", default=",".join(POLICIES), help="names with commas between them; all by default")
    parser.add_argument("--json", action="store_true", help="with what is behind the figures")
    parser.add_argument("--tau-bench", type=Path, metavar="PATH", help="measure a checkout of tau-bench instead")
    options = parser.parse_args()
    chosen = [cast("PolicyName", name) for name in options.policies.split(",")]
    if unknown := set(chosen) - set(POLICIES):
        parser.error(f"no such policy: {', '.join(sorted(unknown))}")
    try:
        desks = load_desks(options.tau_bench) if options.tau_bench else DESKS
    except LookupError as error:
        parser.error(str(error))
    data = {}
    for tally in run_all(plan(desks, policies=chosen, short=options.short), short=options.short):
        if options.json:
            data[tally.job.name] = tally.as_data()
        else:
            print(*(f"{name} {figure}" for name, figure in tally.lines()), sep="\n", flush=True)
    if options.json:
        print(json.dumps(data, indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
