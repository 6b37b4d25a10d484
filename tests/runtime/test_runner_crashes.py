"""`kill -9` at the boundaries between two events: the short forms of `benchmarks/crash.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "crash.py"


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks")


def test_a_run_that_is_killed_reaches_the_same_end_with_every_effect_once() -> None:
    figures = sweep("--kinds")
    assert int(figures["processes killed"]) >= int(figures["kinds"]) > 15


@pytest.mark.nightly
def test_killed_at_any_boundary_it_reaches_the_same_end_with_every_effect_once() -> None:
    figures = sweep("--rounds", "1")
    assert int(figures["processes killed"]) >= int(figures["boundaries"]) > 100


def sweep(*options: str) -> dict[str, str]:
    """The figures of the script, in which nothing may be wrong."""
    command = [sys.executable, "-W", "ignore", str(SCRIPT), *options]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=600)
    figures = dict(line.split(": ") for line in done.stdout.splitlines())
    assert done.returncode == 0, done.stdout + done.stderr
    for wrong in ("runs with another end", "effects twice", "effects lost", "wrong 'it failed' told to the model"):
        assert figures[wrong] == "0"
    return figures
