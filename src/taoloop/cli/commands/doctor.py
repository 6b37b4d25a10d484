"""`tao doctor`: is everything in order that a run needs?"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

import click

import taoloop
from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.commands.models import default_reason
from taoloop.cli.database import database, query_database
from taoloop.cli.dotenv import ENV_FILE, load_environment
from taoloop.cli.ui.event_view import console_for, write_rows
from taoloop.cli.ui.stdio import capture_stdout
from taoloop.errors import EnvFileError, TaoError
from taoloop.models.providers import extra_of, missing_packages
from taoloop.models.registry import default_spec, resolve_model
from taoloop.tools.sandbox.sandbox import INSTALL, probe_sandbox

_HELP = """Check that Python, packages, database, .env, time zones, terminal, sandbox and model are in order.

Each line says ok, warn or fail, and what to do about it. Exit code 1 if something fails.
"""

_LITTLE_SPACE = 200 * 1024 * 1024
_WAL_SINCE = (3, 7, 0)
_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What was looked at, how it is, and what to do about it."""

    name: str
    state: Literal["ok", "warn", "fail"]
    text: str
    hint: str = ""


@click.command("doctor", help=_HELP)
@options.db_option
@options.json_option("One JSON object per check and line.")
def command(db: str | None, as_json: bool) -> int:
    """Run the checks and print them."""
    env, env_check = _env()
    checks = [
        env_check,
        *(check for look_at in _CHECKS for check in look_at()),
        *_database(database(db, env)),
    ]
    checks.append(_model(env))
    with capture_stdout() as stream:
        if as_json:
            stream.writelines(json.dumps(asdict(check), ensure_ascii=False) + "\n" for check in checks)
        else:
            rows = [(check.state, check.name, f"{check.text} {check.hint}") for check in checks]
            write_rows(console_for(stream), rows, [_STYLES[check.state] for check in checks])
    return exits.FOUND if any(check.state == "fail" for check in checks) else exits.OK


def _env() -> tuple[Mapping[str, str], Check]:
    try:
        env = load_environment()
    except EnvFileError as error:
        return os.environ, Check(name=ENV_FILE, state="fail", text=error.message, hint=error.hint)
    status = f"{Path.cwd() / ENV_FILE} is read" if Path(ENV_FILE).is_file() else "there is none in this folder"
    return env, Check(name=ENV_FILE, state="ok", text=status)


def _python() -> Iterator[Check]:
    text = f"{platform.python_version()} ({sys.executable}), taoloop {taoloop.__version__}"
    old = sys.version_info < (3, 11)
    yield Check(name="python", state="fail" if old else "ok", text=text, hint="Python 3.11 is needed." if old else "")


def _packages() -> Iterator[Check]:
    present, absent = [], []
    for line in requires("taoloop") or []:
        name = line.partition(";")[0]
        for separator in "<>=!~[ ":
            name = name.partition(separator)[0]
        if "extra ==" in line and name == "taoloop":
            continue
        try:
            present.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            absent.append((name, "extra ==" in line))
    broken = [name for name, optional in absent if not optional]
    if broken:
        yield Check(
            name="packages",
            state="fail",
            text=f"missing: {', '.join(broken)}.",
            hint="Install taoloop again.",
        )
    yield Check(name="packages", state="ok", text=", ".join(dict.fromkeys(present)))
    if optional := [name for name, optional in absent if optional]:
        yield Check(
            name="extras",
            state="warn",
            text=f"not installed: {', '.join(dict.fromkeys(optional))}.",
            hint="For models of providers and all kinds of tools: pip install 'taoloop[all]'.",
        )


def _zones() -> Iterator[Check]:
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415  # slow to list; only asked here

    try:
        ZoneInfo("Asia/Shanghai")
    except (KeyError, OSError, ValueError):
        yield Check(
            name="time zones",
            state="fail",
            text="Asia/Shanghai is unknown.",
            hint="Install them: pip install tzdata.",
        )
        return
    yield Check(name="time zones", state="ok", text=f"{len(available_timezones())} known")


def _sqlite() -> Iterator[Check]:
    old = sqlite3.sqlite_version_info < _WAL_SINCE
    yield Check(
        name="sqlite",
        state="fail" if old else "ok",
        text=sqlite3.sqlite_version + (" (no WAL)" if old else ""),
    )


def _terminal() -> Iterator[Check]:
    encoding = (sys.stdout.encoding or "unknown").lower()
    good = encoding.replace("-", "").startswith("utf8")
    yield Check(
        name="terminal",
        state="ok" if good else "warn",
        text=f"{encoding}, {'a terminal' if sys.stdout.isatty() else 'no terminal'}"
        + (", NO_COLOR" if os.environ.get("NO_COLOR") else ""),
        hint="" if good else "Chinese may not show; set PYTHONUTF8=1 or a UTF-8 locale.",
    )


def _sandbox() -> Iterator[Check]:
    """Starts one; without it `run_python` and `run_command` are not offered, and all else works."""
    probe = probe_sandbox()
    if probe.program is None:
        reason = probe.reason.rstrip(".")
        yield Check(name="sandbox", state="warn", text=f"no run_python, no run_command: {reason}.", hint=INSTALL)
    else:
        yield Check(name="sandbox", state="ok", text=f"{probe.program}, a start takes {probe.start_s * 1000:.0f} ms")


def _database(path: Path) -> Iterator[Check]:
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        if path.exists():
            count = len(query_database(path, lambda journal: journal.runs(limit=1_000_000)))
            yield Check(name="database", state="ok", text=f"{path}: {count} run{'' if count == 1 else 's'}")
        else:
            yield Check(name="database", state="ok", text=f"{path}: made by the first run")
        yield _writable(path if path.exists() else folder, folder)
        free = shutil.disk_usage(folder).free
    except TaoError as error:
        yield Check(name="database", state="fail", text=error.message, hint=error.hint)
        return
    except OSError as error:
        yield Check(name="database", state="fail", text=f"{path}: {error}.", hint="Choose another path with --db.")
        return
    hint = "Make room; a full disk ends runs." if free < _LITTLE_SPACE else ""
    yield Check(name="space", state="warn" if hint else "ok", text=f"{free / 1024**3:.1f} GB free", hint=hint)


def _writable(target: Path, folder: Path) -> Check:
    """Tries it: permissions alone do not tell of a file system that is mounted for reading only."""
    hint = "Correct the permissions, or choose another path with --db or TAOLOOP_DB."
    try:
        with (
            tempfile.TemporaryFile(dir=folder),
            target.open("ab") if target.is_file() else tempfile.TemporaryFile(),
        ):
            return Check(name="writable", state="ok", text=str(target))
    except OSError as error:
        return Check(name="writable", state="fail", text=f"{target}: {error.strerror or error}.", hint=hint)


def _model(env: Mapping[str, str]) -> Check:
    spec = default_spec(env)
    text = f"{spec} ({default_reason(env)})"
    try:
        resolve_model(spec, env)
    except TaoError as error:
        return Check(name="model", state="fail", text=f"{text}: {error.message}", hint=error.hint)
    if spec == "offline":
        hint = "It is a small deterministic planner, not a language model; `tao models` says how to set one up."
        return Check(name="model", state="ok", text=f"{text}.", hint=hint)
    if lacking := missing_packages(spec):
        hint = f"Install the extra: pip install 'taoloop[{extra_of(spec)}]'."
        return Check(name="model", state="fail", text=f"{text}: {' and '.join(lacking)} missing.", hint=hint)
    return Check(name="model", state="ok", text=text)


_CHECKS: tuple[Callable[[], Iterator[Check]], ...] = (_python, _packages, _zones, _sqlite, _terminal, _sandbox)
