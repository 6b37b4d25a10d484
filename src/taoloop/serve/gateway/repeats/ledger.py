"""The ledger of requests whose runs may change something: which run each of them began, until it is answered.

It is in the gateway's database, so it survives `kill -9` and is shared by the processes of one gateway. A request is
entered before its run begins. Where the process ends in between, the run does not exist, and a repeat begins it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from taoloop.runtime.engine.clock import Clock
from taoloop.serve.gateway.errors import ApiError, invalid
from taoloop.serve.gateway.shared.database import GatewayDatabase

KEEP_S = 24 * 3600.0
"""How long a request and its `Idempotency-Key` are kept: no client repeats a request for longer."""

_MAX_KEY_CHARS = 255
_MAX_ATTEMPTS = 16
"""How many of the runs that equal requests began are looked at; all but the lost ones are closed anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestIdentity:
    """By what a repeated request is recognized."""

    owner: str
    """The name of the client's key. Requests of others are never repeats of it."""

    body: str
    """The digest of the path and the body, byte by byte."""

    key: str | None = None
    """The digest of its `Idempotency-Key`; None: it has none."""

    @classmethod
    def of(cls, owner: str, path: str, body: bytes, key: str | None) -> RequestIdentity:
        """The identity of a request with this body and `Idempotency-Key`.

        Raises:
            ApiError: the key is empty or too long.
        """
        if key is not None and not 0 < len(key.strip()) <= _MAX_KEY_CHARS:
            message = f"`Idempotency-Key` must have 1 to {_MAX_KEY_CHARS} characters."
            raise invalid(message, "Idempotency-Key", "invalid_idempotency_key")
        return cls(
            owner=owner,
            body=hashlib.sha256(path.encode() + b"\0" + body).hexdigest(),
            key=None if key is None else hashlib.sha256(key.strip().encode(errors="replace")).hexdigest(),
        )


class RequestLedger:
    """The requests that were not answered yet, and those with an `Idempotency-Key`, for `KEEP_S`.

    Args:
        database: Where they are kept.
        clock: The source of the time.
    """

    def __init__(self, database: GatewayDatabase, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self.active: set[str] = set()  # the runs that requests of this process drive

    def run_of_key(self, identity: RequestIdentity) -> str | None:
        """The run of an earlier request with the same `Idempotency-Key`; None: there was none.

        Raises:
            ApiError: that request had another body.
        """
        if identity.key is None:
            return None
        rows = self._database.rows(
            "SELECT run_id, body FROM request WHERE owner = ? AND key = ? AND at > ?",
            (identity.owner, identity.key, self._clock.now() - KEEP_S),
        )
        if rows and rows[0][1] != identity.body:
            message = "This `Idempotency-Key` was used with another body. Send a new key with a new request."
            raise ApiError(status=422, message=message, param="Idempotency-Key", code="idempotency_key_reused")
        return rows[0][0] if rows else None

    def unanswered_runs(self, identity: RequestIdentity) -> list[str]:
        """The runs of requests with the same body and without a key that were not answered, the newest first."""
        rows = self._database.rows(
            "SELECT run_id FROM request WHERE owner = ? AND body = ? AND key IS NULL AND at > ?"
            " ORDER BY at DESC LIMIT ?",
            (identity.owner, identity.body, self._clock.now() - KEEP_S, _MAX_ATTEMPTS),
        )
        return [row[0] for row in rows]

    def enter(self, identity: RequestIdentity, run_id: str) -> None:
        """Enter a request, whose run begins now.

        Raises:
            ApiError: another request with the same key was entered a moment ago.
        """
        now = self._clock.now()
        with self._database.transaction(durable=identity.key is not None):
            self._database.rows("DELETE FROM request WHERE at <= ?", (now - KEEP_S,))
            known_run = self.run_of_key(identity)
            if known_run is None:
                self._database.rows(
                    "INSERT INTO request (owner, key, body, run_id, at) VALUES (?, ?, ?, ?, ?)",
                    (identity.owner, identity.key, identity.body, run_id, now),
                )
        if known_run not in (None, run_id):
            raise request_in_progress()

    def close(self, run_id: str) -> None:
        """The client has the answer of a run: what it sends next with the same body, and no key, is a new request."""
        self._database.rows("DELETE FROM request WHERE run_id = ? AND key IS NULL", (run_id,))

    def forget(self, run_id: str) -> None:
        """The run exists no more, so nothing can be a repeat of its request."""
        self._database.rows("DELETE FROM request WHERE run_id = ?", (run_id,))


def request_in_progress() -> ApiError:
    """The error of a repeat that comes before the run of its request has begun; it may be sent again at once."""
    message = "A request with this `Idempotency-Key` is in progress. Send it again for its answer."
    return ApiError(status=409, message=message, code="request_in_progress", retry_after_s=1.0)
