"""Sessions: conversations with an id, which any process finds again in the journal.

The turns of a session are runs with the label `session`; the `user` is part of it, so users never see each other's. The
id of a turn is made of the session, the user and its number. So a journal finds the last turn by the prefix of its id,
and two turns that begin at the same moment have the same id, of which the journal takes one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, cast

from taoloop.core.events import Finished
from taoloop.errors import ConfigError, RunExists, RunNotAnswered, RunNotFound, RunPruned
from taoloop.journals.base import Journal
from taoloop.journals.queries import RunQuery, queries_of
from taoloop.runtime.conversations.input_checks import check_id, check_person

SESSION: Final = "session"
"""The label of a run that names the session whose turn it is."""

_OPEN = ("running", "waiting", "stopped")
_PAGE = 20


class SessionState(NamedTuple):
    """Where a session is."""

    after: str | None
    """Its last run with an answer."""
    open: str | None
    """Its last run, if that is at work, waits for a person or was stopped."""
    next_id: str
    """The id of its next run."""


async def session_state(journal: Journal, session: str, user: str) -> SessionState:
    """Where the session of a user is in a journal.

    Raises:
        JournalError: the journal cannot look runs up.
    """
    prefix = _prefix(session, user)
    queries, query, cursor = queries_of(journal), RunQuery(prefix=prefix, only_outermost=True), None
    number, open_run = 0, None
    while True:
        page = await queries.find(query, cursor=cursor, limit=_PAGE)
        for row in page.rows:
            events = await queries.read(row.run_id, kinds={Finished.kind}, last=True, limit=1)
            ended = cast("Finished", events[0].fact) if events else None
            if not number:
                number = int(row.run_id.removeprefix(prefix))
                is_abandoned = ended is not None and bool(ended.abandoned_by)
                open_run = row.run_id if row.status in _OPEN and not is_abandoned else None
            if row.run_id != open_run and ended is not None and ended.answer is not None:
                return SessionState(row.run_id, open_run, _turn_id(prefix, number + 1))
        if (cursor := page.cursor) is None:
            return SessionState(None, open_run, await _first_free(journal, prefix, number + 1))


async def next_turn(journal: Journal, session: str, user: str, run_id: str | None) -> tuple[str | None, str]:
    """The run that the next turn of a session continues, and the id of the turn; `run_id` is that which is expected.

    Raises:
        ConfigError: `session` or `user` is no id or name, or another id is expected.
        RunNotAnswered: the last run of the session has no answer yet.
        JournalError: the journal cannot look runs up.
    """
    check_id("session", session)
    check_person("user", user)
    state = await session_state(journal, session, user)
    if state.open is not None:
        raise RunNotAnswered(
            f"The run {state.open} of the session {session!r} has no answer yet.",
            hint="Wait for it if it is at work; else resume it first.",
        )
    if run_id not in (None, state.next_id):
        raise ConfigError(
            f"A turn of the session {session!r} was given the id {run_id!r}.",
            hint="Leave `run_id` out: the session gives the ids of its turns.",
        )
    return state.after, state.next_id


@contextmanager
def session_error(session: str) -> Iterator[None]:
    """Says of a run that exists already that another turn of its session began first."""
    try:
        yield
    except RunExists as error:
        if not session:
            raise
        raise RunExists(
            f"Another turn of the session {session!r} began at this moment.",
            hint="Wait for its answer, and send this one again.",
        ) from error


def _prefix(session: str, user: str) -> str:
    digest = hashlib.sha256(f"{len(user)}:{user}{session}".encode()).hexdigest()
    return f"chat-{digest[:20]}-"


def _turn_id(prefix: str, number: int) -> str:
    return f"{prefix}{number:04d}"


async def _first_free(journal: Journal, prefix: str, number: int) -> str:
    """The id of the next turn after those that retention has removed."""
    while True:
        try:
            await queries_of(journal).read(_turn_id(prefix, number), limit=1)
        except RunPruned:
            number += 1
        except RunNotFound:
            return _turn_id(prefix, number)
        else:
            return _turn_id(prefix, number)  # has no event yet: whoever stores the first one has the turn
