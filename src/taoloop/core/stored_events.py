"""Events as they are stored: facts as JSON, which `--json` has too, and the hash chain over them.

Each event carries the hash of the one before, so that an edit shows. The link of an event is
`SHA-256(link before it ‖ seq ‖ at ‖ kind ‖ newline ‖ body)`: `seq` as 8 bytes and `at` as an IEEE double, both
big-endian; `kind` in UTF-8; `body` the bytes that are stored (`encode_stored`). The link before event 0 is
`SHA-256("taoloop chain 1" ‖ newline ‖ run_id)`, so the events of one run cannot pass for those of another.

The description of an agent, which is the same in many runs and larger than the rest of a short one, is kept apart: the
body of `run_started` has `"agent":"sha256:DIGEST"`, and the chain covers the description by its digest. Events of
version 1 have the description itself there, and are read as before.

A chain has no key. Anyone who can write to the file can recompute it from the event that they changed to the end; that
shows only against a head (the last link) that was noted elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple, cast

import pydantic_core
from pydantic import TypeAdapter, ValidationError

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import (
    FACTS,
    ActionRequested,
    ActionStarted,
    ApprovalGiven,
    ApprovalRefused,
    DoubtSettled,
    Event,
    Fact,
    Finished,
    JudgedAgain,
    Noted,
    Observed,
    Resumed,
    RunStarted,
)
from taoloop.core.message import Message
from taoloop.core.policy import unused_fields
from taoloop.core.text import replace_surrogates
from taoloop.core.texts import TEXTS
from taoloop.errors import JournalCorrupt

_BY_KIND: dict[str, type[Fact]] = {fact.kind: fact for fact in FACTS}

LATER_FIELDS: dict[type[Fact], frozenset[str]] = {
    ApprovalGiven: frozenset({"authenticated"}),
    ApprovalRefused: frozenset({"authenticated"}),
    ActionStarted: frozenset({"progress", "after"}),
    ActionRequested: frozenset({"replaces"}),
    JudgedAgain: frozenset({"replaces"}),
    DoubtSettled: frozenset({"authenticated"}),
    Noted: frozenset({"authenticated"}),
    Observed: frozenset({"files"}),
    Finished: frozenset({"abandoned_by", "denied", "unasked", "authenticated", "evidence"}),
    Resumed: frozenset({"cards", "texts", "model", "policy", "new_policy", "earlier_holder"}),
    RunStarted: frozenset(
        {"user_instructions", "handed_over_by", "authority", "images", "files", "plan_step", "deps", "submission"}
    ),
}
"""Fields that are left out while they are empty: events are then as earlier versions wrote them."""

_NO_ATTACHMENTS = {"images": True, "files": True}
"""The same for an observation without any."""

_POLICY_DEFAULTS = {"followed_hosts": None, "task_authority": "full"}
"""The same for fields of a policy."""


def encode_fact(fact: Fact) -> bytes:
    """The fields of a fact as one JSON object in UTF-8; its kind is stored separately."""
    unused: Any = None
    if type(fact) is Observed:  # the most frequent fact
        unused = _unused_attachment_fields(fact) if fact.images or fact.files else _NO_ATTACHMENTS
    elif type(fact) is RunStarted:
        unused = {**_unused_start_fields(fact), "agent": _unused_agent_fields(fact.agent)}
    else:
        for name in LATER_FIELDS.get(type(fact), ()):
            if not getattr(fact, name):
                unused = {name: True} if unused is None else unused | {name: True}
    try:
        return pydantic_core.to_json(fact, inf_nan_mode="strings", exclude=unused)
    except (pydantic_core.PydanticSerializationError, UnicodeEncodeError):
        plain = asdict(fact)  # a text that UTF-8 cannot hold, or a value that JSON does not know: keep what can be kept
        return replace_surrogates(json.dumps(plain, ensure_ascii=False, default=repr)).encode()


def _unused_start_fields(fact: RunStarted) -> dict[str, Any]:
    """The later fields of the beginning of a run that say nothing, but those of its agent."""
    unused: dict[str, Any] = {name: True for name in LATER_FIELDS[RunStarted] if not getattr(fact, name)}
    unused |= _unused_attachment_fields(fact)
    if fact.history:
        unused["history"] = {number: _unused_attachment_fields(message) for number, message in enumerate(fact.history)}
    return unused


def _unused_attachment_fields(holder: RunStarted | Observed | Message) -> dict[str, Any]:
    """The fields about images and files that say nothing, in what may have some."""
    unused: dict[str, Any] = {name: True for name in ("images", "files") if not getattr(holder, name)}
    if holder.images:
        unused["images"] = {number: {"url"} for number, image in enumerate(holder.images) if not image.url}
    return unused


def _unused_agent_fields(agent: AgentSpec) -> Any:
    """The later fields of the cards and the policy of an agent that say nothing, as pydantic takes what to exclude."""
    cards = {
        number: unused_names
        for number, card in enumerate(agent.tools)
        if (unused_names := {name for name in ("repeatable", "hands_over_to", "contents") if not getattr(card, name)})
    }
    rules = {number: names for number, rule in enumerate(agent.policy.rules) if (names := unused_fields(rule))}
    policy: dict[str, Any] = {"rules": rules}
    policy |= {name: True for name, default in _POLICY_DEFAULTS.items() if getattr(agent.policy, name) == default}
    unused: dict[str, Any] = {"tools": cards, "policy": policy}
    unused |= {name: True for name in ("policy_from", "graph", "model_settings") if not getattr(agent, name)}
    return unused if agent.evidence != "off" else unused | {"evidence": True}


class StoredBody(NamedTuple):
    """The bytes of a fact as a journal keeps them."""

    body: bytes
    """What the link of the event covers."""
    description: bytes = b""
    """The description of the agent, where `body` has its digest; else empty."""
    digest: bytes = b""
    """The SHA-256 of the description; empty without one."""


DESCRIBED_VERSION = 2
"""From this version of events on, a description is kept apart from `run_started`."""

_TASK = rb'\{"task":"(?:[^"\\]|\\.)*+","agent":'  # how the body of each `run_started` begins that `encode_fact` writes


@cache
def _pattern(value: bytes) -> re.Pattern[bytes]:
    """The body of a `run_started` up to its agent, whose value is as the pattern says."""
    return re.compile(rb"(" + _TASK + rb")" + value, re.DOTALL)


_WHOLE, _APART = rb"(?=\{)", rb'"sha256:([0-9a-f]{64})"'


def encode_stored(fact: Fact) -> StoredBody:
    """The fact as a journal stores it, with the description of the agent apart."""
    if type(fact) is not RunStarted or fact.version < DESCRIBED_VERSION:
        return StoredBody(encode_fact(fact))
    unused = {**_unused_start_fields(fact), "agent": True}
    try:
        task = b'{"task":' + pydantic_core.to_json(fact.task)
        rest = pydantic_core.to_json(fact, inf_nan_mode="strings", exclude=unused)
        description = _described(_Same(fact.agent))
    except (pydantic_core.PydanticSerializationError, UnicodeEncodeError):  # as in `encode_fact`; it stays whole
        return StoredBody(encode_fact(fact))
    return _stored(task, description, rest[len(task) :])


class _Same:
    """An agent's description as a key: it is equal to itself alone, for it has parts that cannot be hashed."""

    __slots__ = ("agent",)

    def __init__(self, agent: AgentSpec) -> None:
        self.agent = agent

    def __hash__(self) -> int:
        return id(self.agent)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.agent is self.agent


@lru_cache(maxsize=32)
def _described(key: _Same) -> bytes:
    """The description in JSON. The runs of an agent begin with the same one, which is never changed."""
    unused = _unused_agent_fields(key.agent)
    return pydantic_core.to_json(key.agent, inf_nan_mode="strings", exclude=unused)


def _stored(task: bytes, description: bytes, rest: bytes) -> StoredBody:
    digest = hashlib.sha256(description).digest()
    return StoredBody(b'%s,"agent":"sha256:%s"%s' % (task, digest.hex().encode(), rest), description, digest)


def description_digest(body: bytes) -> str | None:
    """The SHA-256 in hex of the description that the body of a `run_started` names; None if it does not name one."""
    match = _pattern(_APART).match(body)
    return None if match is None else match[2].decode()


def whole_body(body: bytes, description: bytes) -> bytes:
    """The body as `encode_fact` writes it, with the description in the place of its digest."""
    match = _pattern(_APART).match(body)
    return body if match is None or not description else match[1] + description + body[match.end() :]


def separate_description(body: bytes) -> StoredBody:
    """What `whole_body` joined, apart again; a body without a description stays as it is."""
    match = _pattern(_WHOLE).match(body)
    if match is None:
        return StoredBody(body)
    text = body[match.end() :].decode("utf-8", "surrogatepass")
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return StoredBody(body)
    description = text[:end].encode("utf-8", "surrogatepass")
    task = body[: match.end()].removesuffix(b',"agent":')
    return _stored(task, description, body[match.end() + len(description) :])


def decode_fact(kind: str, body: bytes | str) -> Fact:
    """The fact that `encode_fact` wrote.

    Raises:
        JournalCorrupt: the kind is unknown or the body does not fit it.
    """
    if kind not in _BY_KIND:
        raise JournalCorrupt(
            f"There is no event of the kind {kind!r}.", hint="Was it written by a newer version of taoloop?"
        )
    try:
        return _adapter(kind).validate_json(body)
    except ValidationError as error:
        raise JournalCorrupt(f"An event of the kind {kind!r} cannot be read: {error}.") from error


def event_record(run_id: str, event: Event) -> dict[str, Any]:
    """The event as plain data: `run_id`, `seq`, `at`, `kind` and then the fields of its fact."""
    body = cast("dict[str, Any]", pydantic_core.from_json(encode_fact(event.fact)))
    return {"run_id": run_id, "seq": event.seq, "at": event.at, "kind": event.kind, **body}


def event_line(run_id: str, event: Event) -> str:
    """`event_record` as one line of JSON, not escaped to ASCII."""
    return pydantic_core.to_json(event_record(run_id, event)).decode()


def fact_of_record(record: dict[str, Any]) -> Fact:
    """The fact in what `event_record` made.

    Raises:
        JournalCorrupt: it is no such record.
    """
    body = {key: value for key, value in record.items() if key not in ("run_id", "seq", "at", "kind")}
    return decode_fact(str(record.get("kind")), pydantic_core.to_json(body))


@cache
def _adapter(kind: str) -> TypeAdapter[Fact]:
    return TypeAdapter(_BY_KIND[kind])


HEAD_KINDS = frozenset({"run_started", "action_started", "paused", "resumed", "finished", "marked"})
"""A journal that stores the head of a run apart from its events does so at these at the latest.

Then no effect on the world, no end, no pause and no mark can be removed from the end of a trace unnoticed. To write the
head with every event would cost a tenth of the time of an append.
"""

_POSITION = struct.Struct(">qd")


class ChainedEvent(NamedTuple):
    """An event as it is stored."""

    seq: int
    """Its place in the run, from 0."""
    at: float
    """Its time, in seconds since the epoch (UTC)."""
    kind: str
    """The name of its fact."""
    body: bytes
    """The bytes of its fact."""
    link: bytes = b""
    """Its stored link of the chain; b"" if none was stored."""
    description: bytes = b""
    """The stored description that the body of a `run_started` names; b"" if it names none, or there is none."""

    def decode(self) -> Fact:
        """The fact of the event.

        Raises:
            JournalCorrupt: it cannot be read, or its description is missing.
        """
        return decode_fact(self.kind, whole_body(self.body, self.description))


class ChainError(NamedTuple):
    """One thing that is not as it was written."""

    seq: int | None
    """The event that it concerns; None: the run as a whole."""
    what: str
    """Stable: `changed` (an event was edited, replaced or moved), `missing` (an event in the middle), `cut` (the end
    was removed or extended), `run_row` (the list of runs says something else), `artifact`, `description` (that of the
    agent), `head` (not the head that was noted elsewhere), `unreadable`."""
    text: str
    """The same for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainReport:
    """The result of checking the chain of one run."""

    run_id: str
    """The run."""
    events: int
    """How many events it has."""
    head: str
    """The last link in hex, to be noted elsewhere."""
    flaws: tuple[ChainError, ...] = ()
    """What is not as it was written."""
    sealed_later: int = 0
    """How many events, from the first, got their link only when an older database was upgraded: whether they were
    changed before that cannot be detected."""

    @property
    def whole(self) -> bool:
        """True if everything is as it was written."""
        return not self.flaws

    @property
    def first(self) -> ChainError | None:
        """The flaw to report: that of the earliest event, or else of the run."""
        return min(self.flaws, key=lambda flaw: math.inf if flaw.seq is None else flaw.seq, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReport:
    """The result of comparing the log of runs with the runs that are stored."""

    run_ids: tuple[str, ...]
    """The runs that are stored, in no order."""
    links: tuple[str, ...] = ()
    """The links of the log in hex, from the first."""
    flaws: tuple[ChainError, ...] = ()
    """What is not as it was written. `what` is `log` (an entry of the log was changed or removed), `run_missing`,
    `run_replaced` (its first event is another one), `run_unlogged`, `unlogged` (an older database without a log) or
    `head` (not the head that was noted elsewhere)."""
    sealed_later: int = 0
    """How many runs were entered only when an older database was upgraded: runs removed before that are unknown."""
    pruned: int = 0
    """How many entries are the records of runs that retention removed."""

    @property
    def head(self) -> str:
        """The last link in hex, to be noted elsewhere; "" without entries."""
        return self.links[-1] if self.links else ""


def genesis_hash(run_id: str) -> bytes:
    """The link before the first event of a run."""
    return hashlib.sha256(b"taoloop chain 1\n" + run_id.encode("utf-8", "surrogatepass")).digest()


LOG_ORIGIN = hashlib.sha256(b"taoloop run log 1\n").digest()
"""The link before the first entry of the log of runs."""

_LOG_POSITION = struct.Struct(">q?")


def log_hash(before: bytes, number: int, run_id: str, first: bytes, *, is_sealed_later: bool) -> bytes:
    """The link of an entry of the log of runs, which names a run and the link of its first event.

    Raises:
        struct.error, TypeError, AttributeError: the values are not of the kind that an entry has.
    """
    position = _LOG_POSITION.pack(number, is_sealed_later)
    return hashlib.sha256(before + position + first + run_id.encode("utf-8", "surrogatepass")).digest()


def hashed_bytes(seq: int, at: float, kind: str, body: bytes) -> bytes:
    """The bytes of an event that its link covers.

    Raises:
        struct.error, TypeError: the values are not of the kind that an event has.
    """
    return _POSITION.pack(seq, at) + kind.encode() + b"\n" + body


def event_hash(before: bytes, content: bytes) -> bytes:
    """The link of an event whose `hashed_bytes` are `content`."""
    return hashlib.sha256(before + content).digest()


def chained_events(run_id: str, events: Iterable[Event]) -> Iterator[ChainedEvent]:
    """The events of a trace as they are stored, with their links: the same wherever and whenever they are computed."""
    last = genesis_hash(run_id)
    for seq, at, fact in events:
        body, description, _ = encode_stored(fact)
        last = event_hash(last, hashed_bytes(seq, at, fact.kind, body))
        yield ChainedEvent(seq, at, fact.kind, body, last, description)


def head_of(run_id: str, events: Iterable[Event]) -> str:
    """The head of a trace, in hex."""
    last = genesis_hash(run_id)
    for row in chained_events(run_id, events):
        last = row.link
    return last.hex()


def check(run_id: str, rows: Sequence[ChainedEvent], head: bytes | None = None) -> list[ChainError]:
    """What is wrong with the stored events of a run (ordered by `seq`), compared with its stored `head`.

    Each event is compared with the link that is stored before it, so an edited event neither hides nor accuses the
    later ones.
    """
    flaws: list[ChainError] = []
    before, expected = genesis_hash(run_id), 0
    for row in rows:
        if row.seq != expected:
            flaws.append(ChainError(expected, "missing", _gap_text(expected, row.seq)))
        elif _link_of(before, row) != row.link:
            text = TEXTS.run_text("event_changed", seq=row.seq, kind=row.kind)
            flaws.append(ChainError(row.seq, "changed", text))
        elif not _has_its_description(row):
            what = "changed" if row.description else "missing"
            flaws.append(ChainError(row.seq, "description", TEXTS.run_text(f"description_{what}", seq=row.seq)))
        before, expected = row.link, row.seq + 1
    links = [genesis_hash(run_id), *(row.link for row in rows)]
    if head is not None and head not in links:
        flaws.append(ChainError(expected, "cut", TEXTS.run_text("end_missing", seq=expected)))
    elif head is not None:
        known = links.index(head)
        if any(row.kind in HEAD_KINDS for row in rows[known:]):
            flaws.append(ChainError(known, "cut", TEXTS.run_text("events_added", seq=known)))
    return flaws


def _has_its_description(row: ChainedEvent) -> bool:
    digest = description_digest(row.body) if row.kind == RunStarted.kind else None
    return digest is None or hashlib.sha256(row.description).hexdigest() == digest


def _link_of(before: bytes, row: ChainedEvent) -> bytes | None:
    try:
        return event_hash(before, hashed_bytes(row.seq, row.at, row.kind, row.body))
    except (struct.error, TypeError, ValueError):  # a number became a text, for example
        return None


def _gap_text(expected: int, actual: int) -> str:
    if actual < expected:
        return TEXTS.run_text("event_out_of_place", seq=actual, expected=expected)
    return TEXTS.run_text(
        "event_missing" if actual == expected + 1 else "events_missing", first=expected, last=actual - 1
    )
