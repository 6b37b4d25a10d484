"""How long a document of an API takes to become tools: CPU seconds of a fresh process, imports included.

    python benchmarks/openapi_load.py DOCUMENT     targets: 3 s cold, 0.3 s from the cache

Without a document the largest of the shared test data is taken, where it lies beside the checkout.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared" / "openapi" / "openai-3.1.yaml"
COLD_S, CACHED_S = 3.0, 0.3
ROUNDS = 5
CODE = """
import sys, time
from taoloop.tools.openapi import OpenapiSource, openapi_tools
loaded = openapi_tools(OpenapiSource(document=sys.argv[1], cache_folder=sys.argv[2]))
print(len(loaded.tools), time.process_time())
"""


def load(document: str, cache: str) -> tuple[int, float]:
    """Tools and CPU seconds of one process."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, document, cache], check=True, capture_output=True, text=True, timeout=60
    )
    tools, seconds = done.stdout.split()
    return int(tools), float(seconds)


def main(document: str) -> int:
    cold, cached, tools = [], [], 0
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            tools, seconds = load(document, cache)
            cold.append(seconds)
            cached.append(load(document, cache)[1])
    first, second = statistics.median(cold), statistics.median(cached)
    print(
        f"{tools} tools: {first:.2f} s cold (at most {COLD_S:g}), {second:.2f} s from the cache (at most {CACHED_S:g})"
    )
    return 0 if first <= COLD_S and second <= CACHED_S else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else str(SHARED)))
