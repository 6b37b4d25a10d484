"""Where suites have their data from: a small sample that comes with taoloop, or larger files of one's own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from taoloop.errors import AgentFileError, ConfigError
from taoloop.translation import Translator

translate = Translator("evals")

DATA_FOLDER = "TAOLOOP_EVAL_DATA"
"""The variable that names a folder with larger files."""

_SAMPLES = Path(__file__).parent / "data"


def read_records(sample: str, pattern: str) -> Iterator[dict[str, Any]]:
    """The records of a file of JSON lines.

    It is the file that fits the pattern in the folder of `TAOLOOP_EVAL_DATA`, and without that variable the sample.

    Raises:
        ConfigError: the folder has no such file, or several.
        AgentFileError: the file cannot be read, or a line is no JSON object; names the line.
    """
    path = _data_file(sample, pattern)
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _record(path, number, line)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        message = translate("the cases cannot be read: {reason}.", reason=reason)
        raise AgentFileError(message, path=str(path), hint=translate("Check the path.")) from error


def _data_file(sample: str, pattern: str) -> Path:
    folder = os.environ.get(DATA_FOLDER, "").strip()
    if not folder:
        return _SAMPLES / sample
    paths = sorted(Path(folder).expanduser().glob(pattern))
    if len(paths) != 1:
        message = translate("{folder} has {n} files {pattern}.", folder=folder, n=len(paths), pattern=pattern)
        hint = translate("Name a folder with one such file in {variable}, or unset it.", variable=DATA_FOLDER)
        raise ConfigError(message, hint=hint)
    return paths[0]


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        message = translate("this line is not JSON: {reason}.", reason=error)
        raise AgentFileError(message, path=str(path), line=number) from error
    if not isinstance(record, dict):
        raise AgentFileError(translate("this line is not a JSON object."), path=str(path), line=number)
    return record
