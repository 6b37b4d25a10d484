"""The file of finished trials beside a database: one line of JSON for each, written at once.

It makes an evaluation resumable, and is its cache: a trial is known by its key, which is made of the case, the
configuration and its number. Whatever crashes, only trials that were running are missing here, and their runs are in
the journal. One process at a time works on it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from taoloop.errors import ConfigError, JournalError, JournalFull, RunHeld
from taoloop.evals.trial_records import TrialRecord
from taoloop.translation import Translator, mark

try:
    import fcntl

    _HAS_LOCKS = True
except ImportError:  # Windows: two processes are not kept apart
    _HAS_LOCKS = False

translate = Translator("evals")

FORMAT = 1
"""The version of the file."""
SUFFIX = ".trials.jsonl"
_KEEP = ".earlier"


def record_path(database: Path) -> Path:
    """The file of trials of a database."""
    return database.with_name(database.name + SUFFIX)


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """A line of the file."""

    key: str
    """Which trial it is (`PlannedTrial.key`)."""
    measure: str
    """What it was measured by (`PlannedTrial.measure`)."""
    record: TrialRecord
    """Its record."""
    position: int
    """Where the line begins in the file."""


class RecordFile:
    """The finished trials of a suite, opened by `open_records`."""

    def __init__(
        self, path: Path, file: IO[str], evaluation: str, suite: str, known: dict[str, StoredTrial], *, is_new: bool
    ) -> None:
        self.path = path
        self.is_new = is_new
        """Whether no run can have been begun with these ids."""
        self.evaluation = evaluation
        """A text that the runs of these trials have in their ids; another one after `--fresh`."""
        self._file, self._suite, self._known = file, suite, known

    def find(self, key: str) -> StoredTrial | None:
        """A finished trial; None if it is not finished."""
        return self._known.get(key)

    def find_alike(self, case_id: str, configuration: str, number: int) -> StoredTrial | None:
        """The newest trial with this case, configuration and number, whatever has been changed in them since."""
        return self._newest.get((case_id, configuration, number))

    @cached_property
    def _newest(self) -> dict[tuple[str, str, int], StoredTrial]:
        stored = self._known.values()
        return {(each.record.case_id, each.record.configuration, each.record.trial): each for each in stored}

    def world(self, stored: StoredTrial) -> dict[str, Any]:
        """What the tools of a trial left (`World.snapshot`); only the file has it."""
        self._file.seek(stored.position)
        world: dict[str, Any] = json.loads(self._file.readline())["world"]
        return world

    def add(self, key: str, measure: str, record: TrialRecord, world: dict[str, Any]) -> None:
        """Write a finished trial; when this returns, it survives the death of the process.

        Raises:
            JournalFull: the disk is full; the line is not in the file.
            JournalError: the file was removed meanwhile, with whatever was in it.
        """
        if not self.path.exists():
            message = translate("{path}: the file of trials was removed while it was in use.", path=self.path)
            raise JournalError(message, hint=translate("Run the same command again: it begins anew."))
        end = self._file.seek(0, os.SEEK_END)
        try:
            content = {"suite": self._suite, "key": key, "measure": measure, "record": record.to_json(), "world": world}
            self._file.write(json.dumps(content, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(end)
            message = translate("{path}: a trial cannot be recorded: {reason}.", path=self.path, reason=error.strerror)
            hint = translate("Free some space, and run the same command again: finished trials are kept.")
            raise JournalFull(message, hint=hint) from error


@contextmanager
def open_records(path: Path, suite: str, evaluation: str, *, fresh: bool = False) -> Iterator[RecordFile]:
    """The finished trials of a suite in the file at `path`, held by this process while the block runs.

    `evaluation` is the text for ids of runs, if the file is new or `fresh`: then the trials of this suite are removed,
    and what was in the file is kept beside it.

    Raises:
        RunHeld: another process works on it.
        ConfigError: it has a line that is no record.
        JournalError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)  # as the database
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        message = translate("{path}: the file of trials cannot be written: {reason}.", path=path, reason=error.strerror)
        raise JournalError(message, hint=translate("Name another database with --db.")) from error
    with file:
        _lock(file, path)
        earlier, known = _read_trials(file, path, suite)
        is_new = earlier is None or fresh
        if is_new:
            _renew(file, path, suite, evaluation)
            earlier, known = evaluation, {}
        yield RecordFile(path, file, earlier or evaluation, suite, known, is_new=is_new)


def _lock(file: IO[str], path: Path) -> None:
    if not _HAS_LOCKS:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        message = translate("Another `tao eval` is at work on {path}.", path=path)
        raise RunHeld(
            message, hint=translate("Wait until it has ended, or name another database with --db.")
        ) from error


def _read_trials(file: IO[str], path: Path, suite: str) -> tuple[str | None, dict[str, StoredTrial]]:
    """What ids of runs begin with (None: the file is empty), and the trials of a suite by their keys.

    A last line that a crash cut off is taken away.
    """
    evaluation: str | None = None
    known: dict[str, StoredTrial] = {}
    file.seek(0)
    position = 0
    for number, line in enumerate(iter(file.readline, ""), 1):
        if not line.endswith("\n"):
            file.truncate(position)
            break
        try:
            data = json.loads(line)
            if evaluation is None:
                if data["format"] != FORMAT:
                    raise ValueError(f"format {data['format']}")
                evaluation = str(data["evaluation"])
            elif data["suite"] == suite:
                record = TrialRecord.from_json(data["record"])
                known[data["key"]] = StoredTrial(data["key"], data["measure"], record, position)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            text = mark("{path}:{line}: this is not the record of a trial: {reason}.")
            hint = translate("Delete the line, or move the file away.")
            raise ConfigError(translate(text, path=path, line=number, reason=error), hint=hint) from error
        position = file.tell()
    return evaluation, known


def _renew(file: IO[str], path: Path, suite: str, evaluation: str) -> None:
    """Write the file anew, without the trials of a suite; a copy of what was there is kept beside it."""
    file.seek(0)
    lines = file.readlines()[1:]
    if lines:
        path.with_name(path.name + _KEEP).write_bytes(path.read_bytes())
    remaining = [line for line in lines if json.loads(line)["suite"] != suite]
    file.truncate(0)
    file.write("".join([json.dumps({"format": FORMAT, "evaluation": evaluation}) + "\n", *remaining]))
    file.flush()
