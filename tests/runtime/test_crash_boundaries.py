"""`kill -9` at every boundary between two events, once: the short form of `benchmarks/crash.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "crash.py"


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="the script forks")
def test_every_run_reaches_the_same_end_with_every_effect_once() -> None:
    command = [sys.executable, "-W", "ignore", str(SCRIPT), "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=240)
    figures = dict(line.split(": ") for line in done.stdout.splitlines())
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(figures["processes killed"]) >= int(figures["boundaries"]) > 100
    for wrong in ("runs with another end", "effects twice", "effects lost", "wrong 'it failed' told to the model"):
        assert figures[wrong] == "0"
