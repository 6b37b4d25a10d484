"""What an append becomes before it is stored: rows, and what the links of the hash chain cover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from taoloop.core.events import Event, Fact, RunStarted
from taoloop.core.stored_events import HEAD_KINDS, encode_fact, encode_stored, hashed_bytes
from taoloop.core.text import replace_surrogates
from taoloop.errors import IllegalEvent
from taoloop.journals.base import KEY, Artifact, Lease, status_after

FIRST_FENCE = 1
"""The fence of the first lease of a run."""


class Append(NamedTuple):
    """Add to a run, already as rows."""

    run_id: str
    """The run."""

    fence: int
    """The fence of the lease under which it is added."""

    first: int | None
    """The seq of the first event; None without events."""

    rows: list[tuple[Any, ...]]
    """The columns of each event but the last one, which is its link."""

    contents: list[bytes]
    """What the link of each event covers."""

    artifacts: list[tuple[str, str, str, str]]
    """The columns of each artifact."""

    marks: list[tuple[float, Fact]]
    """The facts that change the row of the run, with their times."""

    moves_head: bool
    """Whether the row of the run has to name the last link."""

    description: tuple[bytes, bytes]
    """The digest of the description of the agent, and the description, where the run begins so; else empty ones."""


def row_values(fact: RunStarted) -> tuple[str, str, str | None, str, str]:
    """What the row of a run says of how it began: task, agent, the run around it, API key and model."""
    parent = None if fact.parent is None else replace_surrogates(fact.parent)
    texts = (fact.task, fact.agent.name, fact.labels.get(KEY, ""), fact.agent.model)
    task, agent, key, model = map(replace_surrogates, texts)
    return task, agent, parent, key, model


def encode(lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact]) -> Append:
    """The append as rows.

    Raises:
        IllegalEvent: the events do not follow one another.
        ValueError: an event cannot be written as JSON.
    """
    run_id, fence = lease.run_id, lease.fence
    rows: list[tuple[Any, ...]] = []
    contents: list[bytes] = []
    marks: list[tuple[float, Fact]] = []
    moves_head, description = False, (b"", b"")
    first = events[0].seq if events else None
    for expected, (seq, at, fact) in enumerate(events, start=first or 0):
        if seq != expected:
            raise IllegalEvent(f"Run {run_id!r} expects event {expected}, not {seq}.")
        kind = fact.kind
        if type(fact) is RunStarted:
            body, own, digest = encode_stored(fact)
            description = digest, own
        else:  # nearly all
            body = encode_fact(fact)
        rows.append((run_id, seq, at, kind, fence, body.decode()))
        contents.append(hashed_bytes(seq, at, kind, body))
        moves_head = moves_head or kind in HEAD_KINDS
        if status_after(fact) is not None:
            marks.append((at, fact))
    artifact_rows = [(run_id, artifact.ref, artifact.form, replace_surrogates(artifact.body)) for artifact in artifacts]
    return Append(run_id, fence, first, rows, contents, artifact_rows, marks, moves_head, description)
