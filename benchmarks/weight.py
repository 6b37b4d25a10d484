"""What taoloop weighs: CPU seconds of importing it, and the distributions that it installs.

Run: python benchmarks/weight.py [--json]
Targets: `from taoloop import Agent, tool` takes at most 1.5 times the CPU of importing asyncio and pydantic; at most 16
distributions.
"""

from __future__ import annotations

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import distribution

YARDSTICK = "import asyncio and pydantic"
MAIN_NAMES = "from taoloop import Agent, tool"
REPEATS = 7

IMPORTS = {
    "python itself": "pass",
    YARDSTICK: "import asyncio\nfrom pydantic import BaseModel, TypeAdapter",
    "import taoloop": "import taoloop",
    MAIN_NAMES: MAIN_NAMES,
    "the first run of an agent": "from taoloop import Agent\nAgent(model=['done']).run_sync('x')",
    "tao --help": "import sys; sys.argv = ['tao', '--help']\nfrom taoloop.cli import main\nmain()",
}


def cpu_s(code: str, env: Mapping[str, str]) -> float:
    """CPU seconds of a fresh interpreter that runs `code`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure() -> dict[str, float]:
    """Median CPU seconds of each import, with its bytecode cached; taken in turn, so that they are comparable."""
    with tempfile.TemporaryDirectory() as cache:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPYCACHEPREFIX"] = cache
        rounds = [{name: cpu_s(code, env) for name, code in IMPORTS.items()} for _ in range(1 + REPEATS)][1:]
    return {name: statistics.median(costs[name] for costs in rounds) for name in IMPORTS}


def distributions(name: str, seen: set[str]) -> set[str]:
    """The distribution and everything that it requires without extras, on this machine."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in seen:
        return seen
    seen.add(key)
    for requirement in distribution(name).requires or ():
        if "extra ==" in requirement or 'sys_platform == "win32"' in requirement or "Windows" in requirement:
            continue
        found = re.match(r"[A-Za-z0-9._-]+", requirement)
        if found and ("python_version" not in requirement or "<" not in requirement.partition(";")[2]):
            distributions(found.group(), seen)
    return seen


def main() -> None:
    """Print the figures."""
    figures = measure()
    ratio = figures[MAIN_NAMES] / figures[YARDSTICK]
    installed = sorted(distributions("taoloop", set()))
    if "--json" in sys.argv:
        print(json.dumps({"cpu_s": figures, "ratio": ratio, "distributions": installed}))
        return
    for name, value in figures.items():
        print(f"{name:34} {value:.3f} s of CPU")
    print(f"{MAIN_NAMES!r} takes {ratio:.2f} times as much as {YARDSTICK!r}")
    print(f"{len(installed)} distributions: {', '.join(installed)}")


if __name__ == "__main__":
    main()
