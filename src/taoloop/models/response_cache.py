"""A cache of replies for development: the same request to the same model is answered from a file, at no cost."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pydantic_core
from pydantic import TypeAdapter

from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply, Usage
from taoloop.errors import ModelError
from taoloop.models.base import DeltaFanout, Model, WrappedModel, reply_deltas

_FIELDS = (
    *("messages", "dialect", "tools", "earlier_tools", "native", "purpose", "turn", "temperature", "top_p"),
    *("max_output_tokens", "stop", "settings", "reply_schema", "image_data"),
)
"""What a reply may depend on; `turn` keeps the samples of a run apart. The nonce of the run counts as a label."""

_SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)"
_LABEL = "{nonce}"
_REPLY = TypeAdapter(ModelReply)


class CachedModel(WrappedModel):
    """A model whose replies are kept in an SQLite file. A reply from there has no tokens and costs nothing.

    The key covers the model and the whole request, so a changed prompt, tool or setting is asked anew. The file holds
    no prompts, only their digests, and is readable by its owner alone. Failures are not kept.

    Args:
        model: The model that answers what the file does not have.
        path: The file; it is made if it does not exist.
    """

    def __init__(self, model: Model, path: str | Path) -> None:
        super().__init__(model)
        self._path = Path(path)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the file, else of the model.

        Raises:
            ModelError: as the model, or the file cannot be used.
        """
        key, nonce = request_key(self.spec, request), _nonce(request)
        with self._database() as database:
            row = database.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        if row is not None:
            known = _REPLY.validate_json(row[0].replace(_LABEL, nonce) if nonce else row[0])
            reply = replace(known, usage=Usage(), cost_usd=0.0)
            if request.on_delta is not None:
                send = DeltaFanout(request.on_delta)
                for delta in reply_deltas(reply):
                    send(delta)
            return reply
        reply = await self._model.complete(request)
        body = pydantic_core.to_json(reply).decode()
        with self._database() as database:
            new_row = (key, body.replace(nonce, _LABEL) if nonce else body)
            database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", new_row)
        return reply

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(self._path)) as database, database:
                database.execute(_SCHEMA)
                yield database
        except (sqlite3.Error, OSError) as error:
            raise ModelError(
                f"The response cache {str(self._path)!r} cannot be used: {error}.",
                hint="Delete the file, or name another one as response_cache.",
            ) from error


def request_key(spec: str, request: ModelRequest) -> str:
    """The digest of a request to the model of this spec: the same for equal requests of different runs."""
    content: dict[str, Any] = {name: getattr(request, name) for name in _FIELDS}
    raw = pydantic_core.to_json({"model": spec, **content}, inf_nan_mode="strings").decode()
    nonce = _nonce(request)
    return hashlib.sha256((raw.replace(nonce, _LABEL) if nonce else raw).encode()).hexdigest()


def _nonce(request: ModelRequest) -> str:
    started = request.trace.started
    return "" if started is None else started.nonce
