"""`tao doctor` and `tao models`: whether everything a run needs is in order, and which models can be used."""

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
from taoloop.cli import exit_codes as exits, options
from taoloop.cli.database import database, query_database
from taoloop.cli.dotenv import ENV_FILE, load_environment
from taoloop.cli.translation import join_sentences, stable_texts, translate
from taoloop.cli.ui.event_view import console_for, write_rows
from taoloop.cli.ui.stdio import capture_stdout
from taoloop.errors import EnvFileError, TaoError, UnknownName
from taoloop.models.providers import (
    GENERAL_KEY_VAR,
    PROVIDERS,
    endpoint,
    extra_of,
    find_provider,
    missing,
    missing_packages,
    shown_address,
)
from taoloop.models.registry import OFFLINE, default_spec, mock_is_set, resolve_model
from taoloop.tools.sandbox.sandbox import INSTALL, probe_sandbox
from taoloop.translation import mark

_LITTLE_SPACE = 200 * 1024 * 1024
_WAL_SINCE = (3, 7, 0)
_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check of `tao doctor`."""

    name: str
    """What was checked."""
    state: Literal["ok", "warn", "fail"]
    """The outcome."""
    text: str
    """What was found."""
    hint: str = ""
    """What to do about it; empty if there is nothing to do."""


@click.command("doctor")
@options.db_option
@options.json_option("One JSON object per check and line.")
def doctor_command(db: str | None, as_json: bool) -> int:
    """Check that Python, packages, database, .env, time zones, terminal, sandbox and model are in order.

    Each line shows ok, warn or fail, and what to do about it. Exit code 1 if something fails.
    """
    with stable_texts(as_json):
        env, env_check = _env()
        checks = [env_check, *(check for look_at in _CHECKS for check in look_at()), *_database(database(db, env))]
        checks.append(_model(env))
    with capture_stdout() as stream:
        if as_json:
            stream.writelines(json.dumps(asdict(check), ensure_ascii=False) + "\n" for check in checks)
        else:
            rows = [(check.state, check.name, join_sentences(check.text, check.hint)) for check in checks]
            write_rows(console_for(stream), rows, [_STYLES[check.state] for check in checks])
    return exits.FOUND if any(check.state == "fail" for check in checks) else exits.OK


def _env() -> tuple[Mapping[str, str], Check]:
    try:
        env = load_environment()
    except EnvFileError as error:
        return os.environ, Check(name=ENV_FILE, state="fail", text=error.message, hint=error.hint)
    if Path(ENV_FILE).is_file():
        return env, Check(name=ENV_FILE, state="ok", text=translate("{path} is read", path=Path.cwd() / ENV_FILE))
    return env, Check(name=ENV_FILE, state="ok", text=translate("there is none in this folder"))


def _python() -> Iterator[Check]:
    text = f"{platform.python_version()} ({sys.executable}), taoloop {taoloop.__version__}"
    old = sys.version_info < (3, 11)
    yield Check(
        name="python", state="fail" if old else "ok", text=text, hint=translate("Python 3.11 is needed.") if old else ""
    )


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
            text=translate("missing: {names}.", names=", ".join(broken)),
            hint=translate("Install taoloop again."),
        )
    yield Check(name="packages", state="ok", text=", ".join(dict.fromkeys(present)))
    if optional := [name for name, optional in absent if optional]:
        yield Check(
            name="extras",
            state="warn",
            text=translate("not installed: {names}.", names=", ".join(dict.fromkeys(optional))),
            hint=translate("For models of providers and all kinds of tools: pip install 'taoloop[all]'."),
        )


def _zones() -> Iterator[Check]:
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415  # slow to list; only asked here

    try:
        ZoneInfo("Asia/Shanghai")
    except (KeyError, OSError, ValueError):
        yield Check(
            name="time zones",
            state="fail",
            text=translate("Asia/Shanghai is unknown."),
            hint=translate("Install them: pip install tzdata."),
        )
        return
    yield Check(name="time zones", state="ok", text=translate("{n} known", n=len(available_timezones())))


def _sqlite() -> Iterator[Check]:
    old = sqlite3.sqlite_version_info < _WAL_SINCE
    yield Check(
        name="sqlite",
        state="fail" if old else "ok",
        text=sqlite3.sqlite_version + (translate(" (no WAL)") if old else ""),
    )


def _terminal() -> Iterator[Check]:
    encoding = (sys.stdout.encoding or "unknown").lower()
    good = encoding.replace("-", "").startswith("utf8")
    yield Check(
        name="terminal",
        state="ok" if good else "warn",
        text=encoding
        + (translate(", a terminal") if sys.stdout.isatty() else translate(", not a terminal"))
        + (", NO_COLOR" if os.environ.get("NO_COLOR") else ""),
        hint="" if good else translate("Chinese may not be shown; set PYTHONUTF8=1 or a UTF-8 locale."),
    )


def _sandbox() -> Iterator[Check]:
    """Starts one; without it `run_python` and `run_command` are not offered, and all else works."""
    probe = probe_sandbox()
    if probe.program is None:
        text = translate("no run_python, no run_command: {reason}.", reason=probe.reason.rstrip("."))
        yield Check(name="sandbox", state="warn", text=text, hint=INSTALL)
    else:
        text = translate("{program}, a start takes {ms:.0f} ms", program=probe.program, ms=probe.start_s * 1000)
        yield Check(name="sandbox", state="ok", text=text)


def _database(path: Path) -> Iterator[Check]:
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        if path.exists():
            count = len(query_database(path, lambda journal: journal.runs(limit=1_000_000)))
            text = translate("{path}: {n} run|{path}: {n} runs", path=path, n=count)
        else:
            text = translate("{path}: the first run creates it", path=path)
        yield Check(name="database", state="ok", text=text)
        yield _writable(path if path.exists() else folder, folder)
        free = shutil.disk_usage(folder).free
    except TaoError as error:
        yield Check(name="database", state="fail", text=error.message, hint=error.hint)
        return
    except OSError as error:
        yield Check(
            name="database", state="fail", text=f"{path}: {error}.", hint=translate("Choose another path with --db.")
        )
        return
    hint = translate("Free some space; a full disk ends runs.") if free < _LITTLE_SPACE else ""
    yield Check(
        name="space", state="warn" if hint else "ok", text=translate("{n:.1f} GB free", n=free / 1024**3), hint=hint
    )


def _writable(target: Path, folder: Path) -> Check:
    """Tries it: permissions alone do not show that a file system is mounted read-only."""
    hint = translate("Correct the permissions, or choose another path with --db or TAOLOOP_DB.")
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
    text = translate("{model} ({reason})", model=spec, reason=default_reason(env))
    try:
        resolve_model(spec, env)
    except TaoError as error:
        return Check(name="model", state="fail", text=text + translate(": ") + error.message, hint=error.hint)
    if spec == "offline":
        hint = translate(
            "It is a small deterministic planner, not a language model; `tao models` shows how to set one up."
        )
        return Check(name="model", state="ok", text=text + translate("."), hint=hint)
    if lacking := missing_packages(spec):
        hint = translate("Install the extra: pip install 'taoloop[{extra}]'", extra=extra_of(spec))
        missing_text = translate("missing: {names}.", names=", ".join(lacking))
        return Check(name="model", state="fail", text=text + translate(": ") + missing_text, hint=hint)
    return Check(name="model", state="ok", text=text)


_CHECKS: tuple[Callable[[], Iterator[Check]], ...] = (_python, _packages, _zones, _sqlite, _terminal, _sandbox)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    """One kind of model."""

    spec: str
    """What `--model` takes, with NAME or FILE to fill in."""
    ready: bool
    """Whether it can be used now."""
    note: str
    """What is missing, or worth knowing."""
    default: bool = False
    """Whether it is the model of a run without `--model`."""


@click.command("models")
@options.json_option("One JSON object per kind and line.")
def models_command(as_json: bool) -> int:
    """List the models that can be used here, the variables that configure the others, and the default.

    Variables are read from the environment and from a .env file in the current folder. Keys are never shown.

      tao models
      OPENAI_BASE_URL=http://127.0.0.1:8000/v1 tao models     any OpenAI-compatible server
    """
    env = load_environment()
    with stable_texts(as_json):
        states = model_states(env)
    with capture_stdout() as stream:
        if as_json:
            for state in states:
                stream.write(json.dumps(asdict(state), ensure_ascii=False) + "\n")
            return exits.OK
        console = console_for(stream)
        rows = [
            (state.spec, translate("ready") if state.ready else translate("missing"), state.note) for state in states
        ]
        write_rows(console, rows, ["green" if state.ready else "dim" for state in states])
        text = translate("default: {model} ({reason})", model=default_spec(env), reason=default_reason(env))
        console.print(text, style="bold", soft_wrap=True)
    return exits.OK


def model_states(env: Mapping[str, str]) -> list[ModelState]:
    """Every kind of model, as the environment configures it."""
    default = default_spec(env)
    states = [
        ModelState(
            spec="offline",
            ready=True,
            note=translate("embedded: a small deterministic planner, not a language model; no key, no network"),
            default=default == "offline",
        ),
        ModelState(spec="scripted:FILE", ready=True, note=translate("answers from a YAML or JSON list of replies")),
        ModelState(
            spec="replay:FILE", ready=True, note=translate("answers with the replies of `tao show RUN_ID --json`")
        ),
    ]
    lacking = missing(env)
    return states + [_provider(name, env, lacking.get(name), default) for name in PROVIDERS]


def _provider(name: str, env: Mapping[str, str], variable: str | None, default: str) -> ModelState:
    provider = PROVIDERS[name]
    chosen = _provider_of(default) == name
    spec = default if chosen and ":" in default else f"{name}:NAME"
    try:
        target = endpoint(name, "" if provider.default_model else "NAME", env)
    except TaoError as error:
        note = translate("set {variable}", variable=variable) if variable else str(error)
        return ModelState(spec=spec, ready=False, note=note, default=chosen)
    if variable is not None and not provider.needs_key:
        text = mark("a local server at {address}; set {variable} to make it the default")
        note = translate(text, address=shown_address(target.base_url), variable=variable)
    else:
        note = translate("at {address}", address=shown_address(target.base_url))
    if lacking := missing_packages(name):
        names = ", ".join(lacking)
        note = translate("missing: {names}: pip install 'taoloop[{extra}]'", names=names, extra=provider.api)
        return ModelState(spec=spec, ready=False, note=note, default=chosen)
    return ModelState(spec=spec, ready=True, note=note, default=chosen)


def default_reason(env: Mapping[str, str]) -> str:
    """Why the default is what it is."""
    if mock_is_set(env) and default_spec(env) == OFFLINE:
        return translate("{variable} is set", variable="AI_MOCK")
    for variable in ("TAOLOOP_MODEL", "AI_PROVIDER"):
        if env.get(variable, "").strip():
            return translate("chosen by {variable}", variable=variable)
    spec = default_spec(env)
    provider = PROVIDERS.get(_provider_of(spec))
    if provider is None:
        return translate("nothing else is configured")
    variable = provider.key_var if provider.needs_key else provider.model_var
    variable = variable if env.get(variable, "").strip() else GENERAL_KEY_VAR
    return translate("{variable} is set", variable=variable)


def _provider_of(spec: str) -> str:
    """The name of the provider in a spec, by any of its names; an empty text if there is none."""
    try:
        return find_provider(spec.partition(":")[0]).name
    except UnknownName:
        return ""
