"""The last run of each conversation that a client names: a thread of AG-UI, or a context of A2A."""

from __future__ import annotations

import hashlib

from taoloop.runtime.engine.clock import Clock
from taoloop.serve.gateway.shared.database import GatewayDatabase

KEEP_S = 30 * 86_400.0
"""How long after its last run a conversation is kept; a later message begins a new one."""


class Conversations:
    """The conversations of all clients, each with the run that was begun in it last.

    Names are the clients' own, so they count only together with the name of the client's key and of the agent; what is
    kept of a name is its digest.

    Args:
        database: Where they are kept.
        clock: The source of the time.
    """

    def __init__(self, database: GatewayDatabase, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def last_run(self, owner: str, agent: str, name: str) -> str | None:
        """The run that was begun last in a conversation; None: there is none.

        Raises:
            JournalError: the database cannot be read now.
        """
        rows = self._database.rows(
            "SELECT run_id FROM conversation WHERE owner = ? AND agent = ? AND name = ? AND at > ?",
            (owner, agent, _digest(name), self._clock.now() - KEEP_S),
        )
        return rows[0][0] if rows else None

    def shown_question(self, owner: str, run_id: str) -> str:
        """The code of what a client was last shown that a run waits for; empty: nothing.

        Raises:
            JournalError: the database cannot be read now.
        """
        return self.last_run(owner, "", f"question:{run_id}") or ""

    def enter_question(self, owner: str, run_id: str, code: str) -> None:
        """A client is shown what a run waits for: `code` is that of the question.

        Raises:
            JournalError: the database cannot be written now.
        """
        self.enter(owner, "", f"question:{run_id}", code)

    def enter(self, owner: str, agent: str, name: str, run_id: str) -> None:
        """A run begins in a conversation.

        Raises:
            JournalError: the database cannot be written now.
        """
        now = self._clock.now()
        with self._database.transaction():
            self._database.rows("DELETE FROM conversation WHERE at <= ?", (now - KEEP_S,))
            self._database.rows(
                "INSERT OR REPLACE INTO conversation (owner, agent, name, run_id, at) VALUES (?, ?, ?, ?, ?)",
                (owner, agent, _digest(name), run_id, now),
            )


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()
