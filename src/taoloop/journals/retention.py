"""Retention: which runs a journal removes after a time, and what it keeps of them.

A run goes together with the runs inside it and those that undo it, all in one step, and only when all of them are
over: nothing waits, no call is in doubt, and nothing happened in them today. Of each run a record stays, in the same
hash chain as the log of runs where the journal has one, so that a removed run can be told from one that somebody
deleted.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from taoloop.core.events import ActionStarted, DoubtSettled, Fact, InDoubt, Observed
from taoloop.core.text import field_error
from taoloop.errors import ConfigError, RunPruned
from taoloop.translation import Translator, mark

translate = Translator("journals")

_DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long finished runs are kept. A run goes as soon as one of the two says so.

    Runs with events of the current day (UTC) always stay: the budgets of API keys are counted from them.
    """

    days: int | None = None
    """For how many days after its last event a run is kept; None: for any time."""

    runs: int | None = None
    """How many runs are kept, the newest by their last event, a run with those inside it counted as one; None: all."""

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing.

        Raises:
            ConfigError: names the field and what it must be.
        """
        for name, least, expected in (("days", 1, "a whole number above 0"), ("runs", 0, "a whole number, 0 or more")):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < least):
                raise field_error(ConfigError, "setting", expected, owner="Retention", name=name, value=value)
        if self.days is None and self.runs is None:
            raise ConfigError(
                translate("Retention has neither `days` nor `runs`."),
                hint=translate("Write at least one of them, such as `days: 90`."),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedRun:
    """What is kept of a run that was removed. Its task, its calls and its answer are not. Times are since the epoch."""

    run_id: str
    """The run; its id is not given again."""

    agent: str
    """The name of its agent."""

    status: str
    """How it ended."""

    started_at: float
    """When it was created."""

    ended_at: float
    """The time of its last event."""

    events: int
    """How many events it had."""

    head: str
    """The head of its hash chain in hex, to compare with one that was noted elsewhere, or with an export."""

    pruned_at: float
    """When it was removed."""

    rule: str
    """Why: `days=90` or `runs=1000`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneReport:
    """What one application of a retention did, or would do."""

    pruned: tuple[PrunedRun, ...] = ()
    """The runs that were removed, or would be."""

    damaged: tuple[str, ...] = ()
    """The runs that are due and were kept because they are not as they were written: removing them would hide it."""


class StoredRun(NamedTuple):
    """What decides whether a run is removed."""

    run_id: str
    """The run."""

    outer: str | None
    """The run around it, or the one that it undoes; None: it stands alone."""

    is_over: bool
    """Whether it is finished, rather than running or waiting."""

    updated_at: float
    """The time of its last event."""


def due_groups(rows: Sequence[StoredRun], keep: Retention, now: float) -> Iterator[tuple[list[StoredRun], str]]:
    """The groups of runs that are due at `now`, the oldest first, each with the rule that says so.

    Whether their calls have outcomes is not known here: see `has_open_calls`.
    """
    outer = {row.run_id: row.outer for row in rows}
    groups: defaultdict[str, list[StoredRun]] = defaultdict(list)
    for row in rows:
        groups[_root(row.run_id, outer)].append(row)
    oldest_first = sorted(groups.values(), key=_updated_at)  # of the same time: in the order of creation
    for group, newer in zip(oldest_first, range(len(groups) - 1, -1, -1), strict=True):
        updated_at = _updated_at(group)
        if updated_at >= now - now % _DAY_S or not all(row.is_over for row in group):
            continue
        if keep.days is not None and updated_at < now - keep.days * _DAY_S:
            yield group, f"days={keep.days}"
        elif keep.runs is not None and newer >= keep.runs:
            yield group, f"runs={keep.runs}"


def has_open_calls(facts: Iterable[Fact]) -> bool:
    """Whether a call of a run was started and nobody knows what came of it.

    The model may have read that the outcome is unknown; a person may still settle it.
    """
    open_calls: set[str] = set()
    for fact in facts:
        match fact:
            case ActionStarted() | InDoubt():
                open_calls.add(fact.call_id)
            case DoubtSettled():
                open_calls.discard(fact.call_id)
            case Observed() if fact.error is None or fact.error.code != "in_doubt":
                open_calls.discard(fact.call_id)
    return bool(open_calls)


def _updated_at(group: Sequence[StoredRun]) -> float:
    return max(row.updated_at for row in group)


def _root(run_id: str, outer: Mapping[str, str | None]) -> str:
    """The outermost run around a run, of those that are stored."""
    for _ in outer:  # bounded, in case somebody made the runs of a file each other's parents
        around = outer[run_id]
        if around is None or around not in outer:
            break
        run_id = around
    return run_id


def encode_record(run: PrunedRun) -> str:
    """The record as JSON, the same whenever it is written."""
    return json.dumps(asdict(run), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def decode_record(text: str) -> PrunedRun:
    """The record in a text of `encode_record`.

    Raises:
        ValueError, TypeError: it is none.
    """
    return PrunedRun(**json.loads(text))


def record_digest(text: str) -> bytes:
    """What the log of runs holds of a record."""
    return hashlib.sha256(b"taoloop pruned run 1\n" + text.encode("utf-8", "surrogatepass")).digest()


def pruned_error(journal: str, run: PrunedRun) -> RunPruned:
    """The answer to whoever asks for a run that was removed."""
    text = mark(
        "{journal}: run {run_id!r} was removed by retention ({rule}) on {day}. Its record: agent {agent}, {status}, "
        "{events} events from {first} to {last}, head {head}."
    )
    values = {"journal": journal, "run_id": run.run_id, "rule": run.rule, "agent": run.agent, "status": run.status}
    values |= {"day": _moment(run.pruned_at), "first": _moment(run.started_at), "last": _moment(run.ended_at)}
    hint = translate("Its events are gone; `tao verify --all` checks the record.")
    return RunPruned(translate(text, **values, events=run.events, head=run.head), hint=hint)


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
