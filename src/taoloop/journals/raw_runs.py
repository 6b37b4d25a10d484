"""Runs as they are stored, byte for byte: what archives hold, and what moves from one database to another.

Bodies and links are not read and written anew, so the hash chain of a run is the same wherever it lies.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from taoloop.core.stored_events import ChainedEvent, check
from taoloop.errors import ConfigError, JournalCorrupt
from taoloop.journals.base import translate
from taoloop.translation import mark

_FORMAT = "taoloop archive 1"


class RawEvent(NamedTuple):
    """An event as it is stored."""

    seq: int
    """Its place in the run."""
    at: float
    """Its time, in seconds since the epoch."""
    kind: str
    """The name of its fact."""
    fence: int
    """The fence under which it was stored."""
    body: str
    """Its fact."""
    link: str
    """Its link of the chain, in hex."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRun:
    """A run as it is stored."""

    run_id: str
    """The run."""

    status: str
    """Its status."""

    fence: int
    """The fence of its newest lease."""

    sealed_later: int
    """How many events, from the first, were there before the chain was."""

    started_at: float
    """When it was created."""

    updated_at: float
    """The time of its last event."""

    task: str
    """Its task."""

    agent: str
    """The name of its agent."""

    parent: str | None
    """The run around it."""

    key: str
    """The name of its API key."""

    model: str
    """The model of its agent."""

    description: str
    """The description of its agent; empty where the first event has it."""

    events: tuple[RawEvent, ...]
    """Its events, in their order."""

    artifacts: tuple[tuple[str, str, str], ...] = ()
    """Its artifacts, as ref, form and body."""

    @property
    def head(self) -> str:
        """The last link, in hex."""
        return self.events[-1].link if self.events else ""

    def require_whole(self) -> None:
        """Refuse a run whose events are not as they were written.

        Raises:
            JournalCorrupt: names the first flaw.
        """
        description = self.description.encode("utf-8", "surrogatepass")
        rows = [
            ChainedEvent(seq, at, kind, body.encode("utf-8", "surrogatepass"), bytes.fromhex(link), description)
            for seq, at, kind, _, body, link in self.events
        ]
        if flaws := check(self.run_id, rows, bytes.fromhex(self.head) if self.events else None):
            text = mark("run {run_id!r} was changed after it was written: {flaw}.")
            raise JournalCorrupt(translate(text, run_id=self.run_id, flaw=flaws[0].text))


class HasRawRuns(Protocol):
    """A journal whose runs can be taken out and put in as they are stored."""

    async def raw_run(self, run_id: str) -> RawRun:
        """A run as it is stored; RunNotFound."""
        ...

    async def add_raw_runs(self, runs: Sequence[RawRun]) -> list[str]:
        """Store runs that are not there, all of them or none; returns the ids of those that were added.

        The log of runs names them anew; what they used is not counted again.
        """
        ...


class Manifest(NamedTuple):
    """What an archive holds; stored beside it as `NAME.manifest.json`."""

    file: str
    """The name of the archive."""
    sha256: str
    """The SHA-256 of its bytes, in hex."""
    runs: dict[str, str]
    """The head of each run in it, by its id."""
    events: int
    """How many events it holds."""


def manifest_path(archive: Path) -> Path:
    """The path of the manifest of an archive."""
    return archive.with_name(f"{archive.name}.manifest.json")


class ArchiveWriter:
    """Writes an archive: gzip of one JSON object per line and run. It exists once `finish` has returned.

    Raises:
        ConfigError: there is such a file already.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() or manifest_path(path).exists():
            raise ConfigError(translate("{path} exists already.", path=path), hint=translate("Name another file."))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path, self._part = path, path.with_name(f"{path.name}.part")
        self._runs: dict[str, str] = {}
        self._events = 0
        self._raw = os.fdopen(os.open(self._part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb")
        self._file = gzip.GzipFile(fileobj=self._raw, mode="wb", mtime=0)
        self._file.write(json.dumps({"format": _FORMAT}).encode() + b"\n")

    def add(self, run: RawRun) -> None:
        """Add a run; refuse one that is not as it was written.

        Raises:
            JournalCorrupt: it is not.
        """
        run.require_whole()
        self._file.write(json.dumps(asdict(run), ensure_ascii=True).encode() + b"\n")
        self._runs[run.run_id] = run.head
        self._events += len(run.events)

    def finish(self) -> Manifest:
        """Bring it to the disk with its manifest, and read it once more to see that it is whole."""
        self._file.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self._raw.close()
        self._part.replace(self.path)
        manifest = Manifest(self.path.name, _sha256(self.path), self._runs, self._events)
        text = json.dumps(manifest._asdict(), ensure_ascii=False, indent=2) + "\n"
        with os.fdopen(os.open(manifest_path(self.path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if {run.run_id: run.head for run in read_archive(self.path)} != self._runs:
            raise JournalCorrupt(translate("{path}: the archive is not what was written.", path=self.path))
        return manifest

    def abandon(self) -> None:
        """Remove what was written so far."""
        self._file.close()
        self._raw.close()
        self._part.unlink(missing_ok=True)


def read_archive(path: Path) -> Iterator[RawRun]:
    """The runs of an archive, one at a time, each of them whole.

    Raises:
        JournalCorrupt: it is no archive, is not the file that its manifest names, or a run in it was changed.
        OSError: it cannot be read.
    """
    manifest = manifest_path(path)
    if manifest.exists():
        expected = json.loads(manifest.read_text(encoding="utf-8"))["sha256"]
        if _sha256(path) != expected:
            raise JournalCorrupt(translate("{path}: the file is not the one that its manifest names.", path=path))
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            if json.loads(file.readline()) != {"format": _FORMAT}:
                raise ValueError("format")
            for line in file:
                run = _run(json.loads(line))
                run.require_whole()
                yield run
    except (ValueError, TypeError, KeyError, EOFError, gzip.BadGzipFile) as error:
        raise JournalCorrupt(translate("{path}: this is no whole archive of runs.", path=path)) from error


def _run(fields: dict[str, Any]) -> RawRun:
    events = tuple(RawEvent(*event) for event in fields.pop("events"))
    artifacts = tuple((ref, form, body) for ref, form, body in fields.pop("artifacts"))
    return RawRun(**fields, events=events, artifacts=artifacts)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
