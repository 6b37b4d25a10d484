"""Results that are kept beside their database, so that the panel has them, and later ones can be compared with them."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from taoloop.evals.results import Results, write_results

MOST_KEPT: Final = 50
"""How many results are kept beside a database; the oldest make way."""

EVALS_FOLDER: Final = "evals"
"""The folder beside the database of runs that has the databases of evaluations."""

_SUFFIX = ".results"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_CHARS = 60


def results_folder(database: Path) -> Path:
    """The folder of the results whose runs are in a database."""
    return database.with_name(database.name + _SUFFIX)


def keep_results(results: Results, database: Path) -> Path:
    """Keep results beside the database of their runs; returns their file.

    Raises:
        OSError: they cannot be written.
    """
    folder = results_folder(database)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    suite = _NOT_IN_NAMES.sub("-", results.suite)[:_NAME_CHARS].strip("-") or "suite"
    path = folder / f"{suite}-{datetime.fromtimestamp(results.created_at, UTC):%Y%m%dT%H%M%S}Z.json"
    write_results(results, path)
    for old in _newest_first(folder)[MOST_KEPT:]:
        with suppress(OSError):  # another process was faster, or it may not: then there is one more
            old.unlink()
    return path


def result_files(database: Path) -> dict[str, Path]:
    """The files of results by a name that is unique among them, the newest first.

    They are those of the database itself, and of the databases in the folder `evals` beside it.
    """
    folders = [results_folder(database), *sorted((database.parent / EVALS_FOLDER).glob(f"*{_SUFFIX}"))]
    files = [(path, folder) for folder in dict.fromkeys(folders) for path in _newest_first(folder)]
    files.sort(key=lambda file: _age_key(file[0]), reverse=True)
    return {f"{folder.name.removesuffix(_SUFFIX)}.{path.stem}": path for path, folder in files}


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"), key=_age_key, reverse=True)


def _age_key(path: Path) -> str:
    return path.stem.rpartition("-")[2]
