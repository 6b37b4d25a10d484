"""What taoloop weighs: CPU seconds of importing it, and the distributions that it installs.

Run: python benchmarks/weight.py [--json]
Targets: at most 0.15 s of CPU for `import taoloop` with its main names; at most 16 distributions.
"""

from __future__ import annotations

import json
import re
import resource
import statistics
import subprocess
import sys
from importlib.metadata import distribution

IMPORTS = {
    "python itself": "pass",
    "import taoloop": "import taoloop",
    "from taoloop import Agent, tool": "from taoloop import Agent, tool",
    "tao --help": "import sys; sys.argv = ['tao', '--help']\nfrom taoloop.cli import main\nmain()",
}


def cpu_s(code: str, repeats: int = 7) -> float:
    """Median CPU seconds of a fresh interpreter that runs `code`."""
    costs = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(costs)


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
    figures = {name: cpu_s(code) for name, code in IMPORTS.items()}
    installed = sorted(distributions("taoloop", set()))
    if "--json" in sys.argv:
        print(json.dumps({"cpu_s": figures, "distributions": installed}))
        return
    for name, value in figures.items():
        print(f"{name:34} {value:.3f} s of CPU")
    print(f"{len(installed)} distributions: {', '.join(installed)}")


if __name__ == "__main__":
    main()
