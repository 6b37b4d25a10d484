"""The official conformance suite of MCP, against taoloop as a server and as a client, in both eras of the protocol.

Not a part of `scripts/test`, since it needs Node.js and packages from npm: `scripts/check-mcp` runs it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SUITE = os.environ["MCP_CONFORMANCE"]  # the path of its command `conformance`; set by scripts/check-mcp
FULL = os.environ.get("MCP_CHECK_FULL") == "1"
FAILURES = HERE / "expected-failures.yaml"
CLIENT = HERE / "conformance_client.py"
REVISIONS = ("2026-07-28", "2025-11-25")
QUICK = (
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "request-metadata",
)
NIGHTLY = (
    "initialize",
    "http-standard-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of the fixture server."""
    command = [sys.executable, str(HERE / "server_fixture.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def suite(*args: str, folder: Path) -> None:
    """Run the suite; it must say that all is well."""
    done = subprocess.run([SUITE, *args, "-o", str(folder)], capture_output=True, text=True, timeout=300, check=False)
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    lines = [line for line in said.splitlines() if re.match(r"\s*(✗|Total|Unexpected|Stale|Error|.*failed)", line)]
    assert done.returncode == 0, "\n".join(lines) or said[-4000:]


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_server_passes(revision: str, url: str, tmp_path: Path) -> None:
    suite("server", "--url", url, "--requirements", revision, "--expected-failures", str(FAILURES), folder=tmp_path)


def client_scenarios() -> list[Any]:
    """The scenarios to run, each with the revision to speak (empty: the suite's choice). One after the other."""
    if not FULL:
        nightly = (pytest.param("", scenario, marks=pytest.mark.nightly) for scenario in NIGHTLY)
        return [*(("", scenario) for scenario in QUICK), *nightly]
    found: list[Any] = []
    for revision in REVISIONS:
        command = [SUITE, "list", "--client", "--requirements", revision]
        listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        required = listed.partition("Client scenarios")[2].partition("never scored")[0]  # the others are extensions
        found += [(revision, name) for name in re.findall(r"^\s*- ([\w/.-]+)", required, re.MULTILINE)]
    return found


@pytest.mark.parametrize(("revision", "scenario"), client_scenarios())
def test_the_client_passes(revision: str, scenario: str, tmp_path: Path) -> None:
    command = ("client", "--command", f"{sys.executable} {CLIENT}", "--scenario", scenario)
    speaking = ("--spec-version", revision) if revision else ()
    suite(*command, *speaking, "--expected-failures", str(FAILURES), folder=tmp_path)
