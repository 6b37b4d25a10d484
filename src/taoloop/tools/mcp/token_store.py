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

    async def forget(self) -> bool:
        """Remove the record, even one that cannot be read. True: a broken file was removed whole, with all records."""
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
        else:
            await self.forget()

    async def forget(self) -> bool:
        if await self._call("get_password", _SERVICE, self._entry) is not None:
            await self._call("delete_password", _SERVICE, self._entry)
        return False

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

    async def forget(self) -> bool:
        return await asyncio.to_thread(self._forget)

    def _load(self) -> dict[str, Any]:
        record = self._records().get(self._entry, {})
        return record if isinstance(record, dict) else {}

    def _save(self, record: dict[str, Any]) -> None:
        records = {name: other for name, other in self._records().items() if name != self._entry}
        self._write(records | {self._entry: record} if record else records)

    def _forget(self) -> bool:
        try:
            text = self._read()  # whoever else can read it: forgetting is the remedy
            records = _parse(text, str(self._path))
        except FileNotFoundError:
            return False
        except ConfigError:
            if _is_of_another_program(text):
                raise
            self._path.unlink(missing_ok=True)
            return True
        self._write({name: other for name, other in records.items() if name != self._entry})
        return False

    def _write(self, records: dict[str, Any]) -> None:
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
            return _parse(self._read(), str(self._path))
        except FileNotFoundError:
            return {}

    def _read(self) -> str:
        try:
            return self._path.read_text("utf-8", "replace")  # what is no text is no record either
        except FileNotFoundError:
            raise
        except OSError as error:
            raise ConfigError(f"oauth: the tokens in {str(self._path)!r} cannot be read: {error.strerror}.") from error


def _dump(record: dict[str, Any]) -> str:
    return json.dumps({"version": _VERSION, "data": record}, ensure_ascii=False)


def _is_of_another_program(text: str) -> bool:
    """Whether a text that holds no tokens is sound JSON all the same: of a newer taoloop, or not of taoloop at all."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return not isinstance(parsed, dict) or parsed.get("version") != _VERSION


def _parse(text: str, source: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        parsed = json.loads(text)
        if parsed["version"] == _VERSION:
            return dict(parsed["data"])
    raise ConfigError(
        f"oauth: {source} holds no tokens of taoloop.",
        hint="Delete it, or let `tao login --forget` do so, and log in anew.",
    )
