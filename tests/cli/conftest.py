import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ENTRY = (sys.executable, "-c", "from taoloop.cli import main; main()")
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT")


@dataclass(frozen=True)
class Ended:
    """A `tao` process that has ended."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def one_line(self) -> str:
        """What the command complained about: exactly one line."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("tao: ")
        return lines[0]


class Shell:
    """A folder to call `tao` in, with a database of its own and none of the outer configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self.env |= {"TAOLOOP_DB": str(folder / "runs.db"), "PYTHONUTF8": "1"}

    def __call__(self, *args: str, code: int | None = None, stdin: str | None = None, **env: str) -> Ended:
        done = subprocess.run(
            [*ENTRY, *args],
            cwd=self.folder,
            env=self.env | env,
            capture_output=True,
            encoding="utf-8",
            input=stdin or "",
            timeout=60,
            check=False,
        )
        ended = Ended(done.returncode, done.stdout, done.stderr)
        assert code is None or ended.code == code, f"{ended.code}: {ended.out}{ended.err}"
        return ended

    def start(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*ENTRY, *args],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def write(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.write_text(content, encoding="utf-8")
        return path

    def script(self, *replies: Any, name: str = "script.yaml") -> str:
        """The spec of a scripted model with these replies."""
        self.write(name, yaml.safe_dump(list(replies), allow_unicode=True))
        return f"scripted:{name}"


def call(name: str, /, **args: Any) -> dict[str, Any]:
    """A reply that calls one tool."""
    return {"text": f"I use {name}.", "tool_calls": [{"name": name, "args": args}]}


def until(process: subprocess.Popen[str], kind: str) -> list[dict[str, Any]]:
    """The events that a process prints, up to the first of this kind."""
    assert process.stdout is not None
    events = []
    for line in process.stdout:
        events.append(json.loads(line))
        if events[-1]["kind"] == kind:
            return events
    raise AssertionError(f"it ended without {kind}: {process.stderr.read() if process.stderr else ''}")


Call = Callable[..., dict[str, Any]]


@pytest.fixture
def tao(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
