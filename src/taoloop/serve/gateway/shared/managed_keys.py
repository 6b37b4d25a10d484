"""Keys that administrators manage while the server runs, and the log of what they did.

Of a key only a salted hash is stored. It has 256 random bits, which nobody guesses, so the hash need not be slow: a
request is not the place for one that is.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from taoloop.errors import ConfigError
from taoloop.runtime.engine.clock import Clock
from taoloop.serve.gateway.auth.keys import KEY_PREFIX, ApiKey, refuse_token_owner
from taoloop.serve.gateway.shared.database import GatewayDatabase

AdminAction = Literal["create", "change", "block", "unblock", "expire", "rotate", "delete"]

_ID_BYTES, _SALT_BYTES, _SECRET_BYTES = 8, 16, 32
_WRITTEN = re.compile(rf"{KEY_PREFIX}([0-9a-f]{{{2 * _ID_BYTES}}})\.([\w-]{{40,50}})", re.ASCII)
_NO_ROW = (b"", b"", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedKey:
    """A key that an administrator made."""

    key: ApiKey
    """Its name and settings."""

    created_at: float
    """When it was made, in seconds since the epoch."""

    rotated_at: float
    """When its current secret was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminAct:
    """Something that an administrator did."""

    number: int
    """Counts from 1 without a gap."""

    at: float
    """When, in seconds since the epoch."""

    admin: str
    """The name of the admin key."""

    action: AdminAction
    """What was done."""

    key: str
    """The name of the key that it was done to."""

    changes: Mapping[str, Any]
    """The settings as they are from then on, of a change only those that it names. Never a key or a hash."""

    request_id: str
    """The request, as in the request log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """Who acts, for the log."""

    name: str
    """The name of the admin key."""

    request_id: str
    """The request that does it."""


class ManagedKeys:
    """The managed keys of a gateway, in its database: a change holds for the next request to any of its processes.

    The name of a deleted key is not given again: the runs of its owner are stored under it.
    """

    def __init__(self, database: GatewayDatabase, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def find(self, presented: str | None) -> ApiKey | None:
        """The entry of a presented key; None: it is unknown."""
        match = _WRITTEN.fullmatch(presented or "")
        if match is None:
            return None
        rows = self._database.rows("SELECT salt, hash, settings FROM managed_key WHERE id = ?", (match[1],))
        salt, stored, settings = rows[0] if rows else _NO_ROW
        same = hmac.compare_digest(_hash(salt, match[0]), stored)
        return _key(settings) if same and rows else None

    def entries(self) -> list[ManagedKey]:
        """All keys that are not deleted, by name."""
        rows = self._database.rows(
            "SELECT settings, created_at, rotated_at FROM managed_key WHERE deleted_at IS NULL ORDER BY name"
        )
        return [ManagedKey(key=_key(text), created_at=created, rotated_at=rotated) for text, created, rotated in rows]

    def entry(self, name: str) -> ManagedKey | None:
        """The key with this name; None: there is none."""
        return next((managed for managed in self.entries() if managed.key.name == name), None)

    def was_used(self, name: str) -> bool:
        """Whether a key has this name, or had it before it was deleted."""
        return bool(self._database.rows("SELECT 1 FROM managed_key WHERE name = ?", (name,)))

    def create(self, settings: Mapping[str, Any], admin: Admin) -> str:
        """Make a key with these settings, `name` among them; gives its secret, which is stored nowhere.

        Raises:
            ConfigError: a setting is invalid, or the name is or was that of another key.
        """
        key = ApiKey(**settings, digest=_NO_DIGEST)
        refuse_token_owner(key.name)
        secret, identity, salt = _new_secret()
        now = self._clock.now()
        with self._database.transaction(durable=True):
            if self.was_used(key.name):
                raise ConfigError(
                    f"A key is or was called {key.name!r}.", hint="Its runs are stored under this name: choose another."
                )
            self._database.rows(
                "INSERT INTO managed_key VALUES (?, ?, ?, ?, ?, ?, ?, NULL)",
                (key.name, identity, salt, _hash(salt, secret), _settings_text(key), now, now),
            )
            self._record("create", key.name, _settings(key), admin)
        return secret

    def change(self, name: str, changes: Mapping[str, Any], admin: Admin) -> ManagedKey | None:
        """Change these settings of a key; None: there is none.

        Raises:
            ConfigError: a setting is invalid.
        """
        with self._database.transaction(durable=True):
            managed = self.entry(name)
            if managed is None:
                return None
            key = replace(managed.key, **changes)
            self._database.rows("UPDATE managed_key SET settings = ? WHERE name = ?", (_settings_text(key), name))
            self._record(_action_of(changes), name, changes, admin)
        return replace(managed, key=key)

    def rotate(self, name: str, admin: Admin) -> str | None:
        """Give a key another secret, and refuse the old one from now on; gives the new one. None: there is no key."""
        secret, identity, salt = _new_secret()
        with self._database.transaction(durable=True):
            if self.entry(name) is None:
                return None
            self._database.rows(
                "UPDATE managed_key SET id = ?, salt = ?, hash = ?, rotated_at = ? WHERE name = ?",
                (identity, salt, _hash(salt, secret), self._clock.now(), name),
            )
            self._record("rotate", name, {}, admin)
        return secret

    def delete(self, name: str, admin: Admin) -> bool:
        """Delete a key: only its name stays, so that nobody else gets it. False: there is none."""
        with self._database.transaction(durable=True):
            if self.entry(name) is None:
                return False
            self._database.rows(
                "UPDATE managed_key SET id = NULL, salt = x'', hash = x'', deleted_at = ? WHERE name = ?",
                (self._clock.now(), name),
            )
            self._record("delete", name, {}, admin)
        return True

    def acts(self, *, before: int | None = None, limit: int = 100) -> list[AdminAct]:
        """What administrators did, the newest first; only what came before the act with this number."""
        rows = self._database.rows(
            "SELECT number, at, admin, action, key, changes, request_id FROM admin_act "
            "WHERE number < ? ORDER BY number DESC LIMIT ?",
            (2**62 if before is None else before, limit),
        )
        names = AdminAct.__dataclass_fields__
        return [AdminAct(**{**dict(zip(names, row, strict=True)), "changes": json.loads(row[5])}) for row in rows]

    def _record(self, action: AdminAction, name: str, changes: Mapping[str, Any], admin: Admin) -> None:
        self._database.rows(
            "INSERT INTO admin_act (at, admin, action, key, changes, request_id) VALUES (?, ?, ?, ?, ?, ?)",
            (self._clock.now(), admin.name, action, name, json.dumps(changes), admin.request_id),
        )


_NO_DIGEST = "sha256:" + "0" * 64
"""In the entry of a managed key, which is found by its own hash."""


def _new_secret() -> tuple[str, str, bytes]:
    """A key, the part of it by which it is found, and a salt."""
    identity = secrets.token_hex(_ID_BYTES)
    return f"{KEY_PREFIX}{identity}.{secrets.token_urlsafe(_SECRET_BYTES)}", identity, secrets.token_bytes(_SALT_BYTES)


def _hash(salt: bytes, secret: str) -> bytes:
    return hmac.digest(salt, secret.encode(), "sha256")


def _settings(key: ApiKey) -> dict[str, Any]:
    return {name: value for name, value in asdict(key).items() if name != "digest"}


def _settings_text(key: ApiKey) -> str:
    return json.dumps(_settings(key))


def _key(settings: str) -> ApiKey:
    values = json.loads(settings)
    return ApiKey(**{**values, "agents": tuple(values["agents"])}, digest=_NO_DIGEST)


def _action_of(changes: Mapping[str, Any]) -> AdminAction:
    if [*changes] == ["blocked"]:
        return "block" if changes["blocked"] else "unblock"
    return "expire" if [*changes] == ["expires"] else "change"
