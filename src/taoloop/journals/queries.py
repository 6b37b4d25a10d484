"""What lists, searches, live views and overviews ask of a journal: the second Protocol, beside `Journal`.

A journal that has only the first one runs agents; whoever needs these questions asks for them with `queries_of`, which
says what is missing. Implementations pass `taoloop.testing.journal_query_contract`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, cast

from taoloop.core.events import Event
from taoloop.errors import ConfigError, JournalError
from taoloop.journals.base import Journal, RunRow, translate
from taoloop.journals.usage import UsageRow
from taoloop.translation import mark

POLL_S = 0.05
"""How often `tail` looks for new events by default: so often that a page shows them within a tenth of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """Which runs: those that fit every field that is given."""

    text: str = ""
    """Words that must all be in the task, the answer, the calls or the errors of a run; Chinese without spaces."""

    statuses: tuple[str, ...] = ()
    """One of these; empty: any."""

    task: str | None = None
    """Exactly this task."""

    agent: str | None = None
    """The name of the agent."""

    model: str | None = None
    """The model of the agent, as its description has it."""

    key: str | None = None
    """The name of the API key; "" for runs without one."""

    since: float | None = None
    """Begun at this time or later, in seconds since the epoch."""

    until: float | None = None
    """Begun before this time."""

    prefix: str = ""
    """How the id begins; `RUN_ID.` for the runs inside a run."""

    only_outermost: bool = False
    """Not those inside another run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """A part of a list of runs."""

    rows: tuple[RunRow, ...]
    """The runs, newest first."""

    cursor: str | None
    """Asks for the next part; None: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What was added to a journal since a position."""

    position: str
    """Where to go on, also in another process and after a restart."""

    runs: Mapping[str, int] = field(default_factory=dict)
    """The runs that have new events, and the seq of the last one of each; empty: all may be others, see `tail`."""


class RunPart(NamedTuple):
    """What is read of a run; the fields are the arguments of `JournalQueries.read`."""

    run_id: str
    """The run."""
    after: int
    """The seq before the first event."""
    before: int | None
    """The seq after the last one; None: the end of the run."""
    limit: int
    """The most events."""
    last: bool
    """Whether these are the last of them."""
    kinds: Collection[str] | None
    """The kinds of events; None: all."""
    call_ids: Collection[str] | None
    """The calls that the events are about; None: events about anything."""


class JournalQueries(Protocol):
    """Questions to a journal, each of which costs what its answer needs, however much is stored."""

    async def read(
        self,
        run_id: str,
        *,
        after: int = -1,
        before: int | None = None,
        limit: int = 500,
        last: bool = False,
        kinds: Collection[str] | None = None,
        call_ids: Collection[str] | None = None,
    ) -> list[Event]:
        """At most `limit` events of a run whose seq is above `after` and below `before`, in their order.

        They are the first of these, or the `last`, to page backwards. With `kinds` only the events of these kinds are
        read, with `call_ids` only those about these calls.

        Raises:
            RunNotFound: there is no such run.
        """
        ...

    async def find(self, query: RunQuery, *, cursor: str | None = None, limit: int = 50) -> RunPage:
        """The newest runs first, at most `limit` of them, from `cursor` on (None: from the newest).

        New runs do not move what follows a cursor. A run without events is in no list.

        Raises:
            ConfigError: the cursor is none.
        """
        ...

    async def count(self, query: RunQuery) -> dict[str, int]:
        """How many runs there are, by status, whatever `query.statuses` says; without those of which there is none."""
        ...

    async def position(self) -> str:
        """The place after the newest event of all runs."""
        ...

    def tail(self, after: str | None = None, *, interval_s: float = POLL_S) -> AsyncGenerator[Growth, None]:
        """What is added from now on, or from `after` on; by any process. Never ends; cancel it, or leave the loop.

        Looks every `interval_s` seconds, and costs next to nothing while nothing happens. A growth without runs says
        that another journal has taken the place of this one, such as a backup that was restored.

        Raises:
            ConfigError: `after` is no position.
        """
        ...

    async def usage(self, since_day: str | None = None) -> list[UsageRow]:
        """What was used and how it went by day, key, agent and model, from the day `2026-01-31` on or ever.

        What retention removed is part of it.
        """
        ...


_METHODS = ("read", "find", "count", "position", "tail", "usage")


def queries_of(journal: Journal) -> JournalQueries:
    """The queries of a journal.

    Raises:
        JournalError: it has not all of them; names those that are missing.
    """
    if missing := [name for name in _METHODS if not callable(getattr(journal, name, None))]:
        text = mark("The journal {journal} can run agents, but not answer this: it has no {methods}.")
        methods = ", ".join(f"{name}()" for name in missing)
        hint = mark("Add what the Protocol taoloop.journals.JournalQueries describes, or use SqliteJournal.")
        raise JournalError(translate(text, journal=type(journal).__name__, methods=methods), hint=translate(hint))
    return cast("JournalQueries", journal)


def has_queries(journal: Journal) -> bool:
    """Whether `queries_of` gives them."""
    return all(callable(getattr(journal, name, None)) for name in _METHODS)


async def read_start(journal: Journal, run_id: str) -> list[Event]:
    """The first event of a run, if it has one; the rest is not read where the journal can do without.

    Raises:
        RunNotFound: there is no such run.
    """
    if has_queries(journal):
        return await queries_of(journal).read(run_id, limit=1)
    return (await journal.load(run_id))[:1]


async def runs_inside(journal: Journal, run_id: str) -> list[RunRow]:
    """The runs inside a run, and those that undo them, newest first; the others are not read where that is possible."""
    prefix = f"{run_id}."
    if not has_queries(journal):
        return [row for row in await journal.runs(limit=_ALL) if row.run_id.startswith(prefix)]
    return list((await queries_of(journal).find(RunQuery(prefix=prefix), limit=_ALL)).rows)


async def rows_with_status(
    journal: Journal,
    statuses: Sequence[str],
    *,
    run_id: str | None = None,
    model: str | None = None,
    only_outermost: bool = False,
) -> list[RunRow]:
    """The runs with one of these statuses, the oldest first; the others are not read where that is possible.

    With `run_id` only that run and those inside it; with `model` only those of an agent with this model.
    """
    if has_queries(journal):
        query = RunQuery(statuses=tuple(statuses), prefix=run_id or "", model=model, only_outermost=only_outermost)
        rows = list((await queries_of(journal).find(query, limit=_ALL)).rows)
    else:
        rows = [row for status in statuses for row in await journal.runs(limit=_ALL, status=status)]
        rows.sort(key=lambda row: row.started_at, reverse=True)
    inside = [row for row in rows if is_within(row.run_id, run_id) and not (only_outermost and row.parent)]
    return [row for row in inside[::-1] if model is None or row.model in ("", model)]


def is_within(run_id: str, outer: str | None) -> bool:
    """Whether a run is this one or inside it; with None any run is."""
    return outer is None or run_id == outer or run_id.startswith(f"{outer}.")


async def prepare_search(journal: Journal) -> None:
    """Bring the index of the search up to date, without haste; nothing where the journal has none to prepare.

    Raises:
        JournalError: there is no full-text search.
    """
    prepare: Callable[[], Awaitable[None]] | None = getattr(journal, "prepare_search", None)
    if prepare is not None:
        await prepare()


def parse_number(text: str, name: str) -> int:
    """The number in a cursor or a part of a position, which is called `name`.

    Raises:
        ConfigError: there is none.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise foreign_text(text, name)
    return int(text)


def foreign_text(text: str, name: str) -> ConfigError:
    """The text is no cursor or position of this journal, which is called `name`."""
    message = translate("{text!r} is no {name} of this journal.", text=text[:80], name=name)
    return ConfigError(message, hint=translate("Use one that it returned, or none, to start anew."))


_ALL = 10_000_000
_MOST_DIGITS = 18  # of a SQLite integer
