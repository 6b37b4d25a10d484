"""Whether what is stored of a run is as it was written: its row, its artifacts, and the log of all runs. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from taoloop.core.attachments.files import is_remote
from taoloop.core.events import Observed, RunStarted
from taoloop.core.stored_events import LOG_ORIGIN, ChainedEvent, ChainError, description_digest, log_hash
from taoloop.core.trace import attachments_of
from taoloop.errors import JournalCorrupt
from taoloop.journals.base import RUNNING, status_after, translate
from taoloop.journals.retention import record_digest
from taoloop.journals.stored_append import row_values
from taoloop.translation import mark

_STATUS_KINDS = frozenset({"run_started", "paused", "resumed", "finished"})
"""The kinds of events that the row of a run is made from."""


def stored_bytes(value: Any) -> bytes:
    """The value of a column, whatever type somebody gave it."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


class LogEntry(NamedTuple):
    """An entry of the log of runs as it is stored: a run began, or was removed by retention."""

    number: int
    """Its place, from 1."""

    run_id: str
    """The run."""

    first: bytes
    """The link of the run's first event; of a run that was removed, the digest of the record."""

    sealed_later: Any
    """Whether it was entered when the database was upgraded."""

    link: bytes
    """Its link in the chain of the log."""

    record: str | None
    """What is kept of a run that was removed; None: the run began."""


def log_flaws(rows: Sequence[LogEntry], end: int) -> Iterator[ChainError]:
    """Where the chain of the log is broken. Each entry is compared with the link stored before it."""
    before, expected = LOG_ORIGIN, 1
    for row in rows:
        if row.number != expected:
            yield _log_gap(expected, row.number - 1)
        elif _log_link(before, row) != row.link or (row.record is not None and record_digest(row.record) != row.first):
            text = mark("entry {number} of the log of runs (run {run_id}) was changed")
            yield ChainError(None, "log", translate(text, number=row.number, run_id=row.run_id))
        before, expected = row.link, row.number + 1
    if end >= expected:
        yield _log_gap(expected, end)


def _log_gap(first: int, last: int) -> ChainError:
    text = mark("the log of runs lacks the entries {first} to {last}")
    return ChainError(None, "log", translate(text, first=first, last=last))


def _log_link(before: bytes, row: LogEntry) -> bytes | None:
    if row.sealed_later not in (0, 1):
        return None
    try:
        return log_hash(before, row.number, row.run_id, row.first, is_sealed_later=bool(row.sealed_later))
    except struct.error:  # a number that no entry can have
        return None


def run_flaws(rows: Sequence[LogEntry], firsts: dict[str, bytes]) -> Iterator[ChainError]:
    """Runs that are logged but not stored, stored with another beginning, stored but not logged, or not removed."""
    last = {row.run_id: row for row in rows}  # a run that was removed may have been restored
    removed = {run_id for run_id, row in last.items() if row.record is not None}
    for number, run_id, first, _, _, record in rows:
        if record is not None:
            if run_id in firsts and run_id in removed:
                text = mark("run {run_id} is stored, but entry {number} of the log of runs says that it was removed")
                yield ChainError(None, "run_replaced", translate(text, run_id=run_id, number=number))
        elif run_id not in firsts and run_id not in removed:
            text = mark("run {run_id}, entry {number} of the log of runs, was removed")
            yield ChainError(None, "run_missing", translate(text, run_id=run_id, number=number))
        elif run_id not in removed and firsts[run_id] != first:
            text = mark("run {run_id} does not begin with the event that entry {number} of the log of runs names")
            yield ChainError(None, "run_replaced", translate(text, run_id=run_id, number=number))
    for run_id in sorted(firsts.keys() - {row.run_id for row in rows}):
        text = mark("the log of runs lacks run {run_id}")
        yield ChainError(None, "run_unlogged", translate(text, run_id=run_id))


def row_flaws(
    rows: Sequence[ChainedEvent], stored: tuple[Any, ...], as_stored: Callable[[str], str] = str
) -> Iterator[ChainError]:
    """Where the row of the run differs from its events. `as_stored` is what a column makes of a text."""
    first: dict[str, Any]
    status, first = RUNNING, {"task": "", "agent": "", "started_at": None}
    try:
        for row in rows:
            if row.kind not in _STATUS_KINDS:
                continue
            fact = row.decode()
            status = status_after(fact) or status
            if isinstance(fact, RunStarted):
                task, *texts = row_values(fact)
                agent, parent, key, model = (text if text is None else as_stored(text) for text in texts)
                first = {"task": task, "agent": agent, "started_at": row.at, "parent": parent, "key": key}
                first |= {"model": model, "description": (description_digest(row.body) or "").upper()}
    except JournalCorrupt as error:
        text = mark("event {seq} ({kind}) cannot be read: {problem}")
        values = {"seq": row.seq, "kind": row.kind, "problem": _line(error.message)}
        yield ChainError(row.seq, "unreadable", translate(text, **values))
        return
    derived = {"status": status, **first}
    for (name, expected), value in zip(derived.items(), stored, strict=False):  # an older file has fewer columns
        if value != expected and (name != "started_at" or expected is not None):
            text = mark("the list of runs gives another {name} than the events do ({value})")
            yield ChainError(None, "run_row", translate(text, name=name, value=f"{value!r:.80}"))


def artifact_flaws(rows: Sequence[ChainedEvent], artifacts: Iterable[tuple[str, str, Any]]) -> Iterator[ChainError]:
    """Artifacts that were edited, removed, or added without an event that names them.

    `artifacts` are those that are stored, as ref, form and body.
    """
    expected: dict[str, tuple[int, str, str]] = {}
    for row in rows:
        if b'"images":[{' in row.body or b'"files":[{' in row.body:
            expected |= _attachments_named(row)
        if row.kind != Observed.kind or b'"artifact":"' not in row.body:
            continue
        try:
            body = json.loads(row.body)
            expected[str(body["artifact"])] = (row.seq, str(body["output_digest"]), str(body["form"]))
        except (ValueError, KeyError, TypeError):  # the chain shows that it was edited
            continue
    for ref, form, body in artifacts:
        seq, digest, recorded_form = expected.pop(ref, (None, "", ""))
        if seq is None:
            yield ChainError(None, "artifact", translate("no event names the artifact {ref!r}: it was added", ref=ref))
        elif (digest and _digest(stored_bytes(body), form) != digest) or form != recorded_form:
            text = mark("the artifact {ref!r} is not the output that event {seq} names")
            yield ChainError(seq, "artifact", translate(text, ref=ref, seq=seq))
    for ref, (seq, _, _) in expected.items():
        text = mark("the artifact {ref!r} that event {seq} names is missing")
        yield ChainError(seq, "artifact", translate(text, ref=ref, seq=seq))


def _attachments_named(row: ChainedEvent) -> dict[str, tuple[int, str, str]]:
    """The images and files that an event names; none of one that the chain shows as edited."""
    try:
        fact = row.decode()
    except JournalCorrupt:
        return {}
    infos = (info for info in attachments_of(fact) if not is_remote(info))
    return {info.ref: (row.seq, info.digest, info.media_type) for info in infos}


def _digest(body: bytes, form: str) -> str:
    """The digest of what an artifact holds: of an image or a file, its bytes."""
    if "/" in form:
        try:
            body = base64.b64decode(body, validate=True)
        except ValueError:
            return ""
    return hashlib.sha256(body).hexdigest()


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
