"""A chained trace as lines of JSON, and back: an export that can be checked without the database.

A line is what `event_line` makes of the event (`run_id`, `seq`, `at`, `kind`, then the fields of the fact), and
`hash`, its link in hex. The fields are byte for byte as they are stored, because the link covers those bytes, but that
`run_started` has the whole description of the agent in place of its digest; a file that another program reformatted is
still accepted if its numbers came through unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pydantic_core

from taoloop.core.events import RunStarted
from taoloop.core.stored_events import (
    ChainedEvent,
    StoredBody,
    event_hash,
    genesis_hash,
    hashed_bytes,
    separate_description,
    whole_body,
)
from taoloop.errors import JournalCorrupt

_HASH_FIELD = "hash"
_RAW_FIELD = "stored_body"
_RECORD_FIELDS = ("run_id", "seq", "at", "kind", _HASH_FIELD)


class ExportFile(NamedTuple):
    """What a file of lines contains."""

    run_id: str
    """The run."""
    rows: list[ChainedEvent]
    """Its events."""


def to_line(run_id: str, row: ChainedEvent) -> str:
    """One event as a line, without a line break. A body that is not a JSON object is in `stored_body`, as a string."""
    body = whole_body(row.body, row.description)
    fields = body.decode("utf-8", "replace")
    if not _is_object(body):
        fields = json.dumps({_RAW_FIELD: fields}, ensure_ascii=False)
    inner = fields.strip()[1:-1].strip()
    return f"{_before(run_id, row.seq, row.at, row.kind)}{',' if inner else ''}{inner}{_after(row.link.hex())}"


def from_lines(lines: Iterable[str]) -> ExportFile:
    """The events in the lines of an export; empty lines are skipped.

    Raises:
        JournalCorrupt: a line is no event with a hash, or of another run than the first; the message says which line.
    """
    rows: list[ChainedEvent] = []
    run_id: str | None = None
    before = b""
    for number, line in enumerate(lines, start=1):
        if not (text := line.strip()):
            continue
        record = _record(number, text)
        if run_id is None:
            run_id, before = record["run_id"], genesis_hash(record["run_id"])
        elif record["run_id"] != run_id:
            raise JournalCorrupt(f"line {number} is of run {record['run_id']!r}, those before it of {run_id!r}.")
        row = _row(before, text, record)
        rows.append(row)
        before = row.link
    if run_id is None:
        raise JournalCorrupt("there is no event in it.")
    return ExportFile(run_id, rows)


def _record(number: int, text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
        if isinstance(record, dict) and isinstance(record["run_id"], str) and bytes.fromhex(record[_HASH_FIELD]):
            int(record["seq"]), float(record["at"]), str(record["kind"])
            return record
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise JournalCorrupt(
        f"line {number} is no event with a hash.", hint="Make the file with: tao export RUN_ID --format jsonl"
    )


def _row(before: bytes, text: str, record: dict[str, Any]) -> ChainedEvent:
    """The event of a line, with its body as the link has it if it can be read that way."""
    seq, at, kind = int(record["seq"]), float(record["at"]), str(record["kind"])
    stored_link = bytes.fromhex(record[_HASH_FIELD])
    bodies: list[bytes] = []
    start, end = _before(record["run_id"], seq, at, kind), _after(record[_HASH_FIELD])
    if text.startswith(start) and text.endswith(end):
        bodies.append(b"{" + text[len(start) : -len(end)].removeprefix(",").encode("utf-8", "surrogatepass") + b"}")
    if isinstance(record.get(_RAW_FIELD), str):
        bodies.append(record[_RAW_FIELD].encode("utf-8", "surrogatepass"))
    fields = {name: value for name, value in record.items() if name not in _RECORD_FIELDS}
    try:
        bodies.append(pydantic_core.to_json(fields))
    except (pydantic_core.PydanticSerializationError, UnicodeEncodeError):
        bodies.append(json.dumps(fields).encode())
    stored = [StoredBody(body) for body in bodies]
    if kind == RunStarted.kind:
        stored += map(separate_description, bodies)
    fitting = (one for one in stored if event_hash(before, hashed_bytes(seq, at, kind, one.body)) == stored_link)
    body, description, _ = next(fitting, stored[0])
    return ChainedEvent(seq, at, kind, body, stored_link, description)


def _before(run_id: str, seq: int, at: float, kind: str) -> str:
    head = {"run_id": run_id, "seq": seq, "at": at, "kind": kind}
    return json.dumps(head, ensure_ascii=False, separators=(",", ":"))[:-1]


def _after(link_hex: str) -> str:
    return f',"{_HASH_FIELD}":"{link_hex}"}}'


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False
