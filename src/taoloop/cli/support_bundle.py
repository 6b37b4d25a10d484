"""The archive for a bug report: what helps to find a bug, without secrets, and nothing that was not listed."""

from __future__ import annotations

import json
import os
import platform
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import taoloop
from taoloop.cli.translation import translate
from taoloop.core.redaction.redactor import Redactor, encoded_forms, secrets_of
from taoloop.core.stored_events import event_record
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError
from taoloop.models.providers import shown_address, variables
from taoloop.translation import mark

_LAST_BYTES = 256 * 1024
"""How much of the end of a file goes into the archive: enough of a log."""

_OWN_VARIABLES = re.compile(r"TAOLOOP_\w+|AI_\w+|LANG|LC_\w+|TZ|PYTHON\w+|NO_COLOR|\w+_PROXY|\w+_proxy")
_SET = "[set]"
_README = """\
An archive of `tao doctor --bundle`, for a bug report about taoloop.
Known secrets and what looks like one are replaced by [redacted:NAME]; secret variables are shown as [set].
Tasks, answers and outputs of the run are in it as they were. Read it before you send it.
"""


@dataclass(frozen=True, slots=True)
class BundleFile:
    """One file of the archive."""

    name: str
    """Its name there."""
    about: str
    """What it is."""
    text: str
    """Its content, without secrets."""

    @property
    def bytes(self) -> int:
        """Its size."""
        return len(self.text.encode())


def bundle_files(
    env: Mapping[str, str], findings: Sequence[Mapping[str, Any]], run: Trace | None, included: Iterable[Path]
) -> list[BundleFile]:
    """What the archive is made of, redacted.

    Args:
        env: The variables of the process and of `.env`.
        findings: What `tao doctor` found, as data.
        run: A run whose events go in; None: none.
        included: Further files, such as an agent file or a log; of a long one its end.

    Raises:
        ConfigError: a file cannot be read, or a secret could not be removed.
    """
    redactor = Redactor(secrets_of(env))
    files = [
        BundleFile("README.txt", translate("what this archive is"), _README),
        BundleFile("versions.json", translate("versions of taoloop, Python, the system and packages"), _versions()),
        BundleFile(
            "environment.json", translate("variables that configure taoloop, secrets left out"), _variables(env)
        ),
        BundleFile("doctor.jsonl", translate("the findings of tao doctor"), _lines(map(redactor.value, findings))),
    ]
    if run is not None:
        records = (redactor.value(event_record(run.run_id, event)) for event in run.events)
        about = translate("the events of the run {run_id}, redacted", run_id=run.run_id)
        files.append(BundleFile("run.jsonl", about, _lines(records)))
    for number, path in enumerate(included, 1):
        about = translate("the file {path}, redacted", path=path)
        files.append(BundleFile(f"files/{number}-{path.name}", about, redactor.text(_end_of(path))))
    files = [
        BundleFile(redactor.text(file.name), redactor.text(file.about), _without_home(file.text)) for file in files
    ]
    _require_clean(files, secrets_of(env))
    return files


def write_bundle(path: Path, files: Sequence[BundleFile]) -> None:
    """Write the archive, readable by its owner only.

    Raises:
        ConfigError: there is such a file already, or it cannot be written; then there is none.
    """
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError as error:
        raise ConfigError(
            translate("{path} exists, and nothing is overwritten.", path=path), hint=translate("Choose another name.")
        ) from error
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.writestr(file.name, file.text)
    except OSError as error:
        with suppress(OSError):
            path.unlink()
        raise _unwritable(path, error) from error


def require_new(path: Path) -> None:
    """Refuse a path at which there is something, before the work is done.

    Raises:
        ConfigError: there is.
    """
    if os.path.lexists(path):
        raise ConfigError(
            translate("{path} exists, and nothing is overwritten.", path=path), hint=translate("Choose another name.")
        )


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(translate("{path} cannot be written: {reason}.", path=path, reason=error.strerror or error))


def _versions() -> str:
    packages = {}
    for line in requires("taoloop") or []:
        name = re.split(r"[<>=!~\[ ;]", line, maxsplit=1)[0]
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    record = {
        "taoloop": taoloop.__version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": packages,
    }
    return json.dumps(record, indent=2)


def _variables(env: Mapping[str, str]) -> str:
    """The variables that taoloop reads, and whether each secret is set."""
    redactor, secret, known = Redactor(secrets_of(env)), _secret_names(env), variables()
    record = {}
    for name in sorted(name for name in env if name in known or _OWN_VARIABLES.fullmatch(name)):
        value = env[name]
        shown = shown_address(value) if "://" in value else redactor.text(value)
        record[name] = _SET if name in secret else shown
    return json.dumps(record, indent=2, ensure_ascii=False)


def _secret_names(env: Mapping[str, str]) -> set[str]:
    """The variables whose names say that they are secret, whatever the length of their values."""
    return set(secrets_of({name: f"{value}{' ' * 8}" for name, value in env.items()}))


def _lines(records: Iterable[Any]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False, default=str) + "\n" for record in records)


def _end_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = max(0, size - _LAST_BYTES)
            file.seek(start)
            text = file.read().decode("utf-8", "replace")
    except OSError as error:
        text = mark("{path} cannot be read: {reason}.")
        raise ConfigError(translate(text, path=path, reason=error.strerror or error)) from error
    return text.partition("\n")[2] if start else text  # a line whose begin is cut off may hold the rest of a secret


def _without_home(text: str) -> str:
    home = str(Path.home())
    return text.replace(home, "~") if len(home) > 1 else text


def _require_clean(files: Sequence[BundleFile], secrets: Mapping[str, str]) -> None:
    """Refuse an archive in which a known secret is left, in any form: better none than one that gives it away."""
    for name, value in secrets.items():
        for file in files:
            if any(form in file.text or form in file.name or form in file.about for form in encoded_forms(value)):
                text = mark("The value of {name} could not be removed from {file}, so no archive was written.")
                raise ConfigError(
                    translate(text, name=name, file=file.name.partition("/")[0]),
                    hint=translate("Leave that file or run out, and report this as a bug."),
                )
