"""The world of a trial: the state that a suite's tools read and change, a folder for files, and a log of effects.

Each trial has its own; trials that run at the same time in one process do not see each other's. A tool in Python asks
for it: `current_world().state["orders"]`. What a tool changes is written to a file once the call ends, so that a trial
whose process is killed goes on in the world that it left.
"""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import deepcopy
from pathlib import Path
from typing import IO, Any, NamedTuple

from taoloop.core.decision import Call
from taoloop.errors import ConfigError, JournalError, JournalFull, ToolError
from taoloop.evals.cases import Case
from taoloop.translation import Translator

translate = Translator("evals")

_STATE_SUFFIX, _NOTES_SUFFIX, _FILES_FOLDER = ".world.jsonl", ".process", "files"


class OutsideWrite(NamedTuple):
    """A write outside the trial's folder, which was prevented."""

    path: str
    """What would have been written, removed or renamed."""
    location: str
    """The line of the tool's code, as `FILE:LINE`."""
    tool: str
    """The tool."""


class World:
    """The world of one trial.

    Args:
        folder: The trial's own folder. It is made once something is written in it; the state is in a file beside it.
        state: The state that the trial starts from; a state that an earlier process left there goes before it.
    """

    def __init__(self, folder: Path, state: Mapping[str, Any]) -> None:
        self.folder = folder
        self.state: dict[str, Any] = deepcopy(dict(state))
        """The state, JSON data; tools change it in place."""
        self.effects: list[Call] = []
        """Each call above tier `read` that ran to its end, in their order, as the world saw them: a call that the trace
        has once and that is here twice happened twice. A second attempt at an idempotent call that leaves the state as
        it is is no effect."""
        self.outside_writes: list[OutsideWrite] = []
        """Writes outside the folder, all of which were prevented."""
        self._stored = self._text()
        self._path = _state_path(folder)
        self._file: IO[str] | None = None
        self._restore_last()

    @property
    def files_path(self) -> Path:
        """Where the trial's files are, if it has any."""
        return self.folder / _FILES_FOLDER

    @property
    def files(self) -> Path:
        """The folder for the trial's files, which is also the workspace of the built-in file tools; it is made."""
        self.files_path.mkdir(parents=True, exist_ok=True)
        return self.files_path

    def write_files(self, files: Mapping[str, str]) -> None:
        """Write the files that the trial starts with, unless the folder is there already.

        Raises:
            JournalError: they cannot be written.
        """
        if self.files_path.exists():
            return
        part = self.folder / f"{_FILES_FOLDER}.part"
        with _storage_errors(part):
            part.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                path = part / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            part.rename(self.files_path)

    @property
    def has_changed(self) -> bool:
        """Whether the state is another one than when it was last saved."""
        return self._text() != self._stored

    def save(self) -> None:
        """Write state and effects if they have changed: they survive the death of the process from then on.

        Raises:
            ToolError: the state is no JSON any more.
            JournalError: it cannot be written.
        """
        text = self._text()
        if text == self._stored:
            return
        with _storage_errors(self._path):
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("a", encoding="utf-8")
            self._file.write(text + "\n")  # the last whole line counts
            self._file.flush()
        self._stored = text

    def close(self) -> None:
        """Close the file of the state."""
        if self._file is not None:
            with suppress(OSError):  # what could not be written was reported
                self._file.close()
            self._file = None

    def snapshot(self) -> dict[str, Any]:
        """State and effects as JSON data."""
        return {"state": self.state, "effects": [[effect.tool, effect.args] for effect in self.effects]}

    def saved_snapshot(self) -> dict[str, Any]:
        """State and effects as they were last saved, which is JSON data even if the state is none any more."""
        saved: dict[str, Any] = json.loads(self._stored)
        return saved

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Take over state and effects that `snapshot` gave."""
        self.state = snapshot["state"]
        self.effects = [Call(tool=tool, args=args) for tool, args in snapshot["effects"]]

    def _restore_last(self) -> None:
        """Take over the state that an earlier process left; a line that its death cut off is removed."""
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return
        *lines, rest = text.split("\n")
        if rest:
            part = self._path.with_name(f"{self._path.name}.part")
            part.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            part.replace(self._path)
        if lines:
            self.restore(json.loads(lines[-1]))
            self._stored = self._text()

    def _text(self) -> str:
        try:
            return json.dumps(self.snapshot(), ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise ToolError(
                translate("The world of the trial can no longer be stored as JSON: {reason}.", reason=error)
            ) from error


def remove_world(folder: Path) -> None:
    """Remove what there is of a world: its folder, the file of its state, and the notes of its processes."""
    with suppress(OSError):  # what is left there hurts nobody
        _state_path(folder).unlink(missing_ok=True)
        notes_path(folder).unlink(missing_ok=True)
        if folder.exists():
            shutil.rmtree(folder)


def _state_path(folder: Path) -> Path:
    return folder.with_name(folder.name + _STATE_SUFFIX)


def notes_path(folder: Path) -> Path:
    """Where the processes of a trial that die on purpose note it: beside the world, which a tool can change."""
    return folder.with_name(folder.name + _NOTES_SUFFIX)


@contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    """Report that the disk is full, or a folder cannot be written, as an error of the evaluation."""
    try:
        yield
    except OSError as error:
        kind = JournalFull if error.errno == errno.ENOSPC else JournalError
        message = translate(
            "{path}: the world of a trial cannot be written: {reason}.", path=path, reason=error.strerror
        )
        hint = translate("Free some space, and run the same command again: finished trials are kept.")
        raise kind(message, hint=hint) from error


_world: ContextVar[World] = ContextVar("taoloop_eval_world")


def current_world() -> World:
    """The world of the trial that calls the tool.

    Raises:
        ConfigError: no trial is running here.
    """
    try:
        return _world.get()
    except LookupError:
        hint = translate("Call it in a tool that `tao eval` runs.")
        raise ConfigError(translate("There is no world: no trial is running."), hint=hint) from None


@contextmanager
def entered_world(world: World) -> Iterator[None]:
    """Let tools in the block find this world."""
    token = _world.set(world)
    try:
        yield
    finally:
        _world.reset(token)
        world.close()


def first_state(suite_state: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The state that a trial starts from: the suite's, with the case's parts in their place."""
    return _merged(suite_state, case.world)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        is_both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _merged(merged[name], value) if is_both else value
    return merged
