"""Where the tokens of a login stay: in the operating system's keyring, or in a file that only its owner can read."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from taoloop.errors import ConfigError, MissingExtra
from taoloop.tools.mcp.settings import McpServer

_SERVICE = "taoloop-mcp"
_VERSION = 1
_PRIVATE = 0o600


class TokenStore(Protocol):
    """Keeps one record for each server. A record is plain JSON."""

    async def load(self) -> dict[str, Any]:
        """The record; empty where there is none."""
        ...

    async def save(self, record: dict[str, Any]) -> None:
        """Put a record in the place of the one before; an empty one: forget it."""
        ...


def token_store(server: McpServer) -> TokenStore:
    """The store that the settings of a server name.

    Raises:
        MissingExtra: it is the keyring, and the package for it is not installed.
        ConfigError: it is the keyring, and this machine has none.
    """
    assert server.oauth is not None  # noqa: S101  # the caller looked
    entry = f"{server.name}-{server.identity}"
    if server.oauth.tokens is not None:
        return _FileStore(server.oauth.tokens, entry)
    return _KeyringStore(entry)


class _KeyringStore:
    """A password of the operating system's keyring. Its calls may wait for a person, so they run in threads."""

    def __init__(self, entry: str) -> None:
        self._entry, self._keyring = entry, _usable_keyring()

    async def load(self) -> dict[str, Any]:
        text = await self._call("get_password", _SERVICE, self._entry)
        return _parse(text or "", f"the keyring entry {self._entry!r}")

    async def save(self, record: dict[str, Any]) -> None:
        if record:
            await self._call("set_password", _SERVICE, self._entry, _dump(record))
        elif await self.load():
            await self._call("delete_password", _SERVICE, self._entry)

    async def _call(self, name: str, *args: str) -> Any:
        from keyring.errors import KeyringError  # noqa: PLC0415  # it is there: see `_usable_keyring`

        try:
            return await asyncio.to_thread(getattr(self._keyring, name), *args)
        except KeyringError as error:
            kind = type(error).__name__  # its text may hold what was to be stored
            raise ConfigError(f"oauth: the keyring of this machine cannot be used ({kind}).", hint=_FILE_HINT) from None


_FILE_HINT = "Unlock it, or name a file for the tokens that only you can read: `oauth: {tokens: FILE}`."


def _usable_keyring() -> Any:
    try:
        import keyring  # noqa: PLC0415  # optional
        from keyring.backends import fail, null  # noqa: PLC0415  # the same
    except ImportError:
        raise MissingExtra(
            "oauth: tokens are kept in the keyring, and the package keyring is not installed.",
            hint="pip install 'taoloop[keyring]', or name a file that only you can read: `oauth: {tokens: FILE}`.",
        ) from None
    backend = keyring.get_keyring()
    if isinstance(backend, fail.Keyring | null.Keyring):
        raise ConfigError("oauth: this machine has no keyring for the tokens.", hint=_FILE_HINT)
    return backend


class _FileStore:
    """A file with the records of several servers, which only its owner can read and write."""

    def __init__(self, path: Path, entry: str) -> None:
        self._path, self._entry = path.expanduser(), entry

    async def load(self) -> dict[str, Any]:
        return await asyncio.to_thread(self._load)

    async def save(self, record: dict[str, Any]) -> None:
        await asyncio.to_thread(self._save, record)

    def _load(self) -> dict[str, Any]:
        record = self._records().get(self._entry, {})
        return record if isinstance(record, dict) else {}

    def _save(self, record: dict[str, Any]) -> None:
        records = {name: other for name, other in self._records().items() if name != self._entry}
        if record:
            records[self._entry] = record
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=".tokens-")  # with 0600
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(_dump(records))
            Path(name).replace(self._path)
        except OSError as error:
            raise ConfigError(
                f"oauth: the tokens cannot be written to {str(self._path)!r}: {error.strerror}."
            ) from error

    def _records(self) -> dict[str, Any]:
        try:
            if os.name != "nt" and self._path.stat().st_mode & 0o777 & ~_PRIVATE:
                raise ConfigError(
                    f"oauth: others can read the tokens in {str(self._path)!r}.",
                    hint=f"chmod 600 {self._path}, and log in anew if somebody may have read them.",
                )
            return _parse(self._path.read_text("utf-8"), str(self._path))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(f"oauth: the tokens in {str(self._path)!r} cannot be read: {error.strerror}.") from error


def _dump(record: dict[str, Any]) -> str:
    return json.dumps({"version": _VERSION, "data": record}, ensure_ascii=False)


def _parse(text: str, source: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    with suppress(ValueError, KeyError, TypeError):
        parsed = json.loads(text)
        if parsed["version"] == _VERSION:
            return dict(parsed["data"])
    raise ConfigError(f"oauth: {source} holds no tokens of taoloop.", hint="Delete it, and log in anew.")
