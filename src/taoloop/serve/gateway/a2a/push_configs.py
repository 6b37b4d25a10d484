"""Where the states of A2A tasks are pushed to: what clients ask for, kept in the gateway's database.

A row is due when its run has grown since the last push, and after a pause when a push failed. Whoever sends claims it
for the time of an attempt, so of several processes one sends, and the row of a process that died is due again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from taoloop.runtime.engine.clock import Clock, random_hex
from taoloop.serve.gateway.a2a.wire import A2aModel, Version
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.gateway.shared.database import GatewayDatabase

KEEP_S = 30 * 86_400.0
"""How long after it was set a configuration is kept, in seconds."""

MAX_CONFIGS = 10
"""How many configurations a task may have."""

_HeaderText = Annotated[str, Field(max_length=4096, pattern=r"^[\x20-\x7e]*$")]
_COLUMNS = "owner, agent, run_id, id, settings, seq, attempts, due"


class PushAuthentication(A2aModel):
    """What the header `Authorization` of a push has: `scheme` in version 1.0, the first of `schemes` in 0.3."""

    scheme: _HeaderText = ""
    schemes: Annotated[list[_HeaderText], Field(max_length=8)] = Field(default_factory=list)
    credentials: _HeaderText = ""


class PushSettings(A2aModel):
    """Where to push, and what the receiver tells our messages by."""

    url: Annotated[str, Field(min_length=1, max_length=2048)]
    id: Annotated[str, Field(max_length=256)] | None = None
    token: _HeaderText | None = None
    authentication: PushAuthentication | None = None


class PushParams(A2aModel):
    """The parameters of a method about configurations, in both versions."""

    task_id: str | None = None
    id: str | None = None
    push_notification_config_id: str | None = None
    push_notification_config: PushSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushConfig:
    """One configuration of a task."""

    owner: str
    """The name of the client's key; empty where nobody needs one."""
    agent: str
    """The name of the served agent."""
    run_id: str
    """The task: its run."""
    id: str
    """The name of the configuration within the task."""
    version: Version
    """The version of A2A that its client speaks."""
    url: str
    """Where states are posted to."""
    token: str = ""
    """The header `X-A2A-Notification-Token`; empty: none."""
    authorization: str = ""
    """The header `Authorization`; empty: none."""
    seq: int = 0
    """How many events the run had when its state was pushed last."""
    attempts: int = 0
    """How often the push of the present state has failed."""
    due: float | None = None
    """When to try, in seconds since the epoch; while it is claimed, when the claim ends. None: at rest."""

    def public(self) -> dict[str, Any]:
        """The configuration as its client is shown it, without the credentials."""
        return {"id": self.id, "url": self.url, **({"token": self.token} if self.token else {})}


def push_config(
    settings: PushSettings, version: Version, *, owner: str, agent: str, run_id: str, seq: int
) -> PushConfig:
    """The configuration that a client asks for; without an id it gets a new one."""
    authentication = settings.authentication or PushAuthentication()
    scheme = authentication.scheme or next(iter(authentication.schemes), "")
    return PushConfig(
        owner=owner,
        agent=agent,
        run_id=run_id,
        id=settings.id or f"push_{random_hex(8)}",
        version=version,
        url=settings.url,
        token=settings.token or "",
        authorization=f"{scheme} {authentication.credentials}".strip() if scheme else "",
        seq=seq,
    )


class PushConfigs:
    """The configurations of all tasks.

    Args:
        database: Where they are kept, tokens and credentials among them: they must outlive a restart.
        clock: The source of the time.
    """

    def __init__(self, database: GatewayDatabase, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def enter(self, config: PushConfig) -> None:
        """Keep a configuration, in place of one of the same id; its run is looked at next.

        Raises:
            ApiError: the task has too many.
            JournalError: the database cannot be written now.
        """
        now = self._clock.now()
        settings = {name: getattr(config, name) for name in ("version", "url", "token", "authorization")}
        others = [other for other in self.of_task(config.owner, config.run_id) if other.id != config.id]
        if len(others) >= MAX_CONFIGS:
            raise ApiError(status=400, message=f"A task may have {MAX_CONFIGS} configurations.", param="id")
        with self._database.transaction():
            self._database.rows("DELETE FROM a2a_push WHERE at <= ?", (now - KEEP_S,))
            self._database.rows(
                f"INSERT OR REPLACE INTO a2a_push ({_COLUMNS}, at) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)",  # noqa: S608  # fixed names
                (config.owner, config.agent, config.run_id, config.id, json.dumps(settings), config.seq, now, now),
            )

    def of_task(self, owner: str, run_id: str) -> list[PushConfig]:
        """The configurations of a task of a client.

        Raises:
            JournalError: the database cannot be read now.
        """
        where = "owner = ? AND run_id = ? AND at > ? ORDER BY at, id"
        return self._select(where, (owner, run_id, self._clock.now() - KEEP_S))

    def remove(self, owner: str, run_id: str, config_id: str) -> None:
        """Forget a configuration; one that is not there is none.

        Raises:
            JournalError: the database cannot be written now.
        """
        with self._database.transaction():
            where = "owner = ? AND run_id = ? AND id = ?"
            self._database.rows(f"DELETE FROM a2a_push WHERE {where}", (owner, run_id, config_id))  # noqa: S608  # fixed

    def mark(self, run_ids: Iterable[str] | None = None) -> None:
        """Runs have grown (None: perhaps any), so that there may be something to push; failures begin anew.

        Raises:
            JournalError: the database cannot be written now.
        """
        now = self._clock.now()
        with self._database.transaction():
            if run_ids is None:
                self._database.rows("UPDATE a2a_push SET due = ? WHERE due IS NULL", (now,))
            for run_id in run_ids or ():
                self._database.rows("UPDATE a2a_push SET due = ?, attempts = 0 WHERE run_id = ?", (now, run_id))

    def claim(self, lease_s: float, limit: int) -> list[PushConfig]:
        """Take what is due, for `lease_s` seconds.

        Raises:
            JournalError: the database cannot be written now.
        """
        now = self._clock.now()
        if not self._database.rows("SELECT 1 FROM a2a_push WHERE due <= ? LIMIT 1", (now,)):
            return []
        with self._database.transaction():
            configs = self._select("due <= ? ORDER BY due LIMIT ?", (now, limit))
            for config in configs:
                key = (now + lease_s, config.owner, config.run_id, config.id)
                self._database.rows("UPDATE a2a_push SET due = ? WHERE owner = ? AND run_id = ? AND id = ?", key)
            claims = [(config.owner, config.run_id, config.id) for config in configs]
        return [config for claim in claims for config in self._select("owner = ? AND run_id = ? AND id = ?", claim)]

    def settle(self, config: PushConfig, *, seq: int, due: float | None, attempts: int = 0) -> None:
        """End a claim, unless its run has grown meanwhile, so that it is due again.

        Raises:
            JournalError: the database cannot be written now.
        """
        key = (config.owner, config.run_id, config.id)
        with self._database.transaction():
            where = "owner = ? AND run_id = ? AND id = ?"
            self._database.rows(f"UPDATE a2a_push SET seq = ? WHERE {where}", (seq, *key))  # noqa: S608  # fixed
            self._database.rows(
                f"UPDATE a2a_push SET due = ?, attempts = ? WHERE {where} AND due = ?",  # noqa: S608  # fixed
                (due, attempts, *key, config.due),
            )

    def _select(self, where: str, values: tuple[Any, ...]) -> list[PushConfig]:
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM a2a_push WHERE {where}", values)  # noqa: S608  # fixed
        return [_config_of(row) for row in rows]


def _config_of(row: tuple[Any, ...]) -> PushConfig:
    owner, agent, run_id, config_id, text, seq, attempts, due = row
    settings: Mapping[str, Any] = json.loads(text)
    return PushConfig(
        owner=owner, agent=agent, run_id=run_id, id=config_id, seq=seq, attempts=attempts, due=due, **settings
    )
