"""`tao doctor` and `tao models`: whether everything a run needs is in order, and which models can be used."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

import click

import taoloop
from taoloop.cli import exit_codes as exits, options
from taoloop.cli.database import database, load_environment, load_run, query_database
from taoloop.cli.support_bundle import BundleFile, bundle_files, require_new, write_bundle
from taoloop.cli.translation import join_on_one_line, stable_texts, translate
from taoloop.cli.ui.event_view import console_for, write_rows
from taoloop.cli.ui.stdio import capture_stdout, print_stderr, write_json_lines
from taoloop.errors import EnvFileError, TaoError, UnknownName
from taoloop.journals.addresses import DatabaseAddress
from taoloop.journals.queries import RunQuery, queries_of
from taoloop.models.env_file import ENV_FILE
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
from taoloop.translation import error_texts, mark, translate_error

_LITTLE_SPACE = 200 * 1024 * 1024
_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@dataclass(frozen=True, slots=True)
class SetupCheck:
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
@click.option(
    "--bundle",
    metavar="FILE.zip",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write an archive for a bug report instead, redacted, and list what is in it. Nothing is overwritten.",
)
@click.option("--run", "run_id", metavar="RUN_ID", help="With --bundle: also the events of this run; last: the newest.")
@click.option(
    "--include",
    "included",
    metavar="FILE",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --bundle: also this text file, such as an agent file or a log (its last 256 KB). Repeatable.",
)
@options.json_option("One JSON object per check and line; with --bundle per file of the archive.")
def doctor_command(
    db: str | None, bundle: Path | None, run_id: str | None, included: tuple[Path, ...], as_json: bool
) -> int:
    """Check that Python, packages, database, .env, time zones, terminal, sandbox and model are in order.

    Each line shows ok, warn or fail, and what to do about it. Exit code 1 if something fails.

      tao doctor
      tao doctor --bundle bug.zip --run last --include agent.yaml     an archive for a bug report
    """
    if bundle is None and (run_id is not None or included):
        raise click.UsageError(translate("--run and --include are for --bundle FILE.zip."))
    if bundle is not None:
        require_new(bundle)
    with stable_texts(as_json or bundle is not None):
        env, env_check = _env()
        checks = [env_check, *(check for look_at in _CHECKS for check in look_at()), *_database(database(db, env))]
        checks.append(_model(env))
    if bundle is not None:
        run = None if run_id is None else load_run(database(db, env), run_id)
        files = bundle_files(env, [asdict(check) for check in checks], run, included)
        return _write_listed(bundle, files, as_json)
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, map(asdict, checks))
        else:
            rows = [(check.state, check.name, join_on_one_line(check.text, check.hint)) for check in checks]
            write_rows(console_for(stream), rows, [_STYLES[check.state] for check in checks])
    return exits.FOUND if any(check.state == "fail" for check in checks) else exits.OK


def _write_listed(path: Path, files: Sequence[BundleFile], as_json: bool) -> int:
    """List what the archive will hold, then write it."""
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, ({"name": file.name, "bytes": file.bytes, "about": file.about} for file in files))
        else:
            console = console_for(stream)
            write_rows(
                console, [(file.name, f"{file.bytes:,}", file.about) for file in files], ["default"] * len(files)
            )
        write_bundle(path, files)
    print_stderr(
        translate(
            "{path} is written. Read it before you send it: secrets are left out, your own words are not.", path=path
        )
    )
    return exits.OK


def _env() -> tuple[Mapping[str, str], SetupCheck]:
    try:
        env = load_environment()
    except EnvFileError as error:
        return os.environ, SetupCheck(ENV_FILE, "fail", *error_texts(error))
    if Path(ENV_FILE).is_file():
        return env, SetupCheck(ENV_FILE, "ok", translate("{path} is read", path=Path.cwd() / ENV_FILE))
    return env, SetupCheck(ENV_FILE, "ok", translate("there is none in this folder"))


def _python() -> Iterator[SetupCheck]:
    text = f"{platform.python_version()} ({sys.executable}), taoloop {taoloop.__version__}"
    yield SetupCheck("python", "ok", text)


def _packages() -> Iterator[SetupCheck]:
    present, absent = [], []
    for line in requires("taoloop") or []:
        name = re.split(r"[<>=!~\[ ;]", line, maxsplit=1)[0]
        if "extra ==" in line and name == "taoloop":
            continue
        try:
            present.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            absent.append((name, "extra ==" in line))
    if broken := [name for name, optional in absent if not optional]:
        text = translate("missing: {names}.", names=", ".join(broken))
        yield SetupCheck("packages", "fail", text, translate("Install taoloop again."))
    yield SetupCheck("packages", "ok", ", ".join(dict.fromkeys(present)))
    if optional := [name for name, optional in absent if optional]:
        text = translate("not installed: {names}.", names=", ".join(dict.fromkeys(optional)))
        hint = translate("For models of providers and all kinds of tools: pip install 'taoloop[all]'.")
        yield SetupCheck("extras", "warn", text, hint)


def _zones() -> Iterator[SetupCheck]:
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415  # slow to list; only asked here

    try:
        ZoneInfo("Asia/Shanghai")
    except (KeyError, OSError, ValueError):
        hint = translate("Install them: pip install tzdata.")
        yield SetupCheck("time zones", "fail", translate("Asia/Shanghai is unknown."), hint)
        return
    yield SetupCheck("time zones", "ok", translate("{n} known", n=len(available_timezones())))


def _sqlite() -> Iterator[SetupCheck]:
    yield SetupCheck("sqlite", "ok", sqlite3.sqlite_version)


def _terminal() -> Iterator[SetupCheck]:
    encoding = (sys.stdout.encoding or "unknown").lower()
    hint = translate("Chinese may not be shown; set PYTHONUTF8=1 or a UTF-8 locale.")
    good = encoding.replace("-", "").startswith("utf8")
    kind = translate(", a terminal") if sys.stdout.isatty() else translate(", not a terminal")
    colours = ", NO_COLOR" if os.environ.get("NO_COLOR") else ""
    yield SetupCheck("terminal", "ok" if good else "warn", encoding + kind + colours, "" if good else hint)


def _sandbox() -> Iterator[SetupCheck]:
    """Starts one; without it `run_python` and `run_command` are not offered, and all else works."""
    probe = probe_sandbox()
    if probe.program is None:
        text = translate("no run_python, no run_command: {reason}.", reason=probe.reason.rstrip("."))
        yield SetupCheck("sandbox", "warn", text, INSTALL)
    else:
        text = translate("{program}, a start takes {ms:.0f} ms", program=probe.program, ms=probe.start_s * 1000)
        yield SetupCheck("sandbox", "ok", text)


def _database(path: DatabaseAddress) -> Iterator[SetupCheck]:
    if not isinstance(path, Path):
        yield from _server(path)
        return
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        if path.exists():
            count = sum(query_database(path, lambda journal: queries_of(journal).count(RunQuery())).values())
            text = translate("{path}: {n} run|{path}: {n} runs", path=path, n=count)
        else:
            text = translate("{path}: the first run creates it", path=path)
        yield SetupCheck("database", "ok", text)
        yield _writable(path if path.exists() else folder, folder)
        free = shutil.disk_usage(folder).free
    except TaoError as error:
        yield SetupCheck("database", "fail", *error_texts(error))
        return
    except OSError as error:
        yield SetupCheck("database", "fail", f"{path}: {error}.", translate("Choose another path with --db."))
        return
    hint = translate("Free some space; a full disk ends runs.") if free < _LITTLE_SPACE else ""
    yield SetupCheck("space", "warn" if hint else "ok", translate("{n:.1f} GB free", n=free / 1024**3), hint)


def _server(path: DatabaseAddress) -> Iterator[SetupCheck]:
    try:
        count = sum(query_database(path, lambda journal: queries_of(journal).count(RunQuery())).values())
    except TaoError as error:
        yield SetupCheck("database", "fail", *error_texts(error))
    else:
        yield SetupCheck("database", "ok", translate("{path}: {n} run|{path}: {n} runs", path=path, n=count))


def _writable(target: Path, folder: Path) -> SetupCheck:
    """Tries it: permissions alone do not show that a file system is mounted read-only."""
    try:
        with tempfile.TemporaryFile(dir=folder), target.open("ab") if target.is_file() else tempfile.TemporaryFile():
            return SetupCheck("writable", "ok", str(target))
    except OSError as error:
        hint = translate("Correct the permissions, or choose another path with --db or TAOLOOP_DB.")
        return SetupCheck("writable", "fail", f"{target}: {error.strerror or error}.", hint)


def _model(env: Mapping[str, str]) -> SetupCheck:
    spec = default_spec(env)
    text = translate("{model} ({reason})", model=spec, reason=default_reason(env))
    try:
        resolve_model(spec, env)
    except TaoError as error:
        message, hint = error_texts(error)
        return SetupCheck("model", "fail", text + translate(": ") + message, hint)
    if spec == OFFLINE:
        hint = mark("It is a small deterministic planner, not a language model; `tao models` shows how to set one up.")
        return SetupCheck("model", "ok", text + translate("."), translate(hint))
    if lacking := missing_packages(spec):
        hint = translate("Install the extra: pip install 'taoloop[{extra}]'", extra=extra_of(spec))
        missing_text = translate("missing: {names}.", names=", ".join(lacking))
        return SetupCheck("model", "fail", text + translate(": ") + missing_text, hint)
    return SetupCheck("model", "ok", text)


_CHECKS: tuple[Callable[[], Iterator[SetupCheck]], ...] = (_python, _packages, _zones, _sqlite, _terminal, _sandbox)


@dataclass(frozen=True, slots=True)
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
            write_json_lines(stream, map(asdict, states))
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
    default, lacking = default_spec(env), missing(env)
    planner = translate("embedded: a small deterministic planner, not a language model; no key, no network")
    return [
        ModelState(OFFLINE, True, planner, default == OFFLINE),
        ModelState("scripted:FILE", True, translate("answers from a YAML or JSON list of replies")),
        ModelState("replay:FILE", True, translate("answers with the replies of `tao show RUN_ID --json`")),
        *(_provider(name, env, lacking.get(name), default) for name in PROVIDERS),
    ]


def _provider(name: str, env: Mapping[str, str], variable: str | None, default: str) -> ModelState:
    provider = PROVIDERS[name]
    chosen = _provider_of(default) == name
    spec = default if chosen and ":" in default else f"{name}:NAME"
    try:
        target = endpoint(name, "" if provider.default_model else "NAME", env)
    except TaoError as error:
        note = translate("set {variable}", variable=variable) if variable else translate_error(str(error))
        return ModelState(spec, False, note, chosen)
    if lacking := missing_packages(name):
        names = ", ".join(lacking)
        note = translate("missing: {names}: pip install 'taoloop[{extra}]'", names=names, extra=provider.api)
        return ModelState(spec, False, note, chosen)
    text = mark("at {address}")
    if variable is not None and not provider.needs_key:
        text = mark("a local server at {address}; set {variable} to make it the default")
    return ModelState(spec, True, translate(text, address=shown_address(target.base_url), variable=variable), chosen)


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
