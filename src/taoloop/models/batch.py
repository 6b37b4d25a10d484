"""A model whose requests are collected and sent as batches, which providers answer later, at half the price.

The problem: the runs of an evaluation ask one turn at a time, and a batch wants many requests at once; it takes
minutes to hours, and whoever waits may be killed meanwhile, after the provider has begun to count.

The idea: requests wait until `size` of them do, or until none has come for `window_s`; so the runs advance turn by
turn, together. Which request is in which batch is written to a file before the batch is asked about. A request of a
later process that is equal to one in the file waits for that batch, or takes its reply.

The invariant: a reply in the file is handed out once, so that trials of the same case stay independent of each other;
and what was submitted is not submitted again while its reply can still be had.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply
from taoloop.errors import ConfigError, ModelError, ModelUnavailable
from taoloop.models.base import Model, WrappedModel
from taoloop.models.real_call_switch import require_allowed
from taoloop.models.registry import resolve_model
from taoloop.models.response_cache import request_key

if TYPE_CHECKING:
    from taoloop.models.http.batch_api import Answers, BatchApi, BatchRequest
    from taoloop.models.http.transport import HttpResponse

DISCOUNT = 0.5
"""What a reply of a batch costs of the price of the list: the same at OpenAI and at Anthropic."""

_ATTEMPTS = 5
_SCHEMA = """
CREATE TABLE IF NOT EXISTS request (
  id TEXT PRIMARY KEY, key TEXT NOT NULL, nonce TEXT NOT NULL, batch TEXT NOT NULL, status INTEGER, answer BLOB
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Submitted:
    """A request in the file."""

    id: str
    batch: str
    nonce: str


class Batched(WrappedModel):
    """A model of OpenAI or Anthropic that is asked in batches. For one event loop, and one process at a time.

    A batch takes minutes to hours, so the runs need `model_timeout_s=None` and time limits that allow for it. A reply
    costs half of what the price list says.

    Args:
        model: `openai:NAME` or `anthropic:NAME`, or such a model.
        path: The SQLite file with what was submitted and not yet handed out; it is made if it does not exist. It holds
            replies, and of requests their digests; only its owner can read it.
        size: How many waiting requests are sent at once: as many as there are runs side by side. At most 10,000.
        window_s: After how many seconds without another request those that wait are sent; below `size`, the last runs
            of an evaluation would wait for ever.
        poll_s: How often a batch is asked about, in seconds.
        env: The environment with the provider's key; None: that of the process.
        sleep: Waits, in seconds; a test has its own time.

    Raises:
        ConfigError: the model has no batch API, or a number is out of its range.
    """

    def __init__(
        self,
        model: str | Model,
        path: str | Path,
        *,
        size: int = 1_000,
        window_s: float = 10.0,
        poll_s: float = 30.0,
        env: Mapping[str, str] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        from taoloop.models.http.provider_model import ProviderModel  # noqa: PLC0415  # only for providers

        inner = resolve_model(model, env) if isinstance(model, str) else model
        if not isinstance(inner, ProviderModel):
            raise ConfigError(
                f"{inner.spec} has no batch API.", hint="Batches need a model of openai:NAME or anthropic:NAME."
            )
        if not 1 <= size <= 10_000 or window_s < 0 or poll_s <= 0:
            raise ConfigError("A batch has 1 to 10,000 requests, `window_s` 0 or more, and `poll_s` above 0.")
        super().__init__(inner)
        self._provider, self._path, self._size = inner, Path(path), size
        self._window_s, self._poll_s, self._sleep = window_s, poll_s, sleep
        self._api: BatchApi | None = None
        self._unsent: dict[str, tuple[str, str, BatchRequest]] = {}  # by id: key, nonce, request
        self._waiting: dict[str, asyncio.Future[HttpResponse]] = {}
        self._window: asyncio.Task[None] | None = None
        self._followed: dict[str, asyncio.Task[None]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply, from the file or from a batch.

        Raises:
            ModelError: there is none. A batch that could not be asked about stays in the file, and the same request
                waits for it again.
            MissingExtra: the provider's SDK is not installed.
        """
        require_allowed(self.spec)
        for _ in range(_ATTEMPTS):
            body, headers = self._provider.batch_body(request)
            answer = await self._answer(request, body, headers)
            reply = self._provider.batch_reply(answer, body, request)
            if reply is not None:
                cost = reply.cost_usd
                return replace(reply, cost_usd=None if cost is None else cost * DISCOUNT)
        raise ModelUnavailable(f"{self.spec} takes the request in no form.", retryable=False)

    async def close(self) -> None:
        """Stop waiting, and close the connections. What was submitted stays in the file."""
        tasks = [*self._sending, *self._followed.values(), *([self._window] if self._window is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._api is not None:
            await self._api.close()
        await super().close()

    async def _answer(
        self, request: ModelRequest, body: Mapping[str, object], headers: Mapping[str, str]
    ) -> HttpResponse:
        from taoloop.models.http.batch_api import BatchRequest  # noqa: PLC0415  # only for a call
        from taoloop.models.http.transport import HttpResponse  # noqa: PLC0415  # as above

        key, started = request_key(self.spec, request), request.trace.started
        nonce = "" if started is None else started.nonce
        known = self._submitted(key)
        request_id = f"r-{uuid4().hex}" if known is None else known.id
        waiter = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        try:
            if known is not None:
                self._follow(known.batch)
            else:
                self._unsent[request_id] = (key, nonce, BatchRequest(id=request_id, body=body, headers=headers))
                self._collect()
            answer: HttpResponse = await waiter
        finally:
            self._waiting.pop(request_id, None)
            self._unsent.pop(request_id, None)
        with self._database() as database:
            database.execute("DELETE FROM request WHERE id = ?", (request_id,))
        if known is None or not (known.nonce and nonce):
            return answer
        return HttpResponse(status=answer.status, body=answer.body.replace(known.nonce.encode(), nonce.encode()))

    def _batches(self) -> BatchApi:
        from taoloop.models.http.batch_api import batch_api  # noqa: PLC0415  # only for a call

        if self._api is None:
            self._api = batch_api(self._provider)
        return self._api

    def _collect(self) -> None:
        """Send what waits, or wait for more of it."""
        if self._window is not None:
            self._window.cancel()
            self._window = None
        if len(self._unsent) >= self._size:
            self._send()
        else:
            self._window = asyncio.create_task(self._send_later())

    async def _send_later(self) -> None:
        await self._sleep(self._window_s)
        self._window = None
        self._send()

    def _send(self) -> None:
        entries, self._unsent = self._unsent, {}
        if entries:
            task = asyncio.create_task(self._submit(entries))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _submit(self, entries: Mapping[str, tuple[str, str, BatchRequest]]) -> None:
        """Begin a batch; its id is written before anything else is done."""
        try:
            batch = await self._batches().submit([request for _, _, request in entries.values()])
            with self._database() as database:
                rows = [(name, key, nonce, batch) for name, (key, nonce, _) in entries.items()]
                database.executemany("INSERT INTO request (id, key, nonce, batch) VALUES (?, ?, ?, ?)", rows)
        except Exception as error:  # noqa: BLE001  # whatever it is, nobody else would tell those who wait
            self._fail(entries, error)
            return
        self._follow(batch)

    def _follow(self, batch: str) -> None:
        if (task := self._followed.get(batch)) is None or task.done():
            self._followed[batch] = asyncio.create_task(self._poll(batch))

    async def _poll(self, batch: str) -> None:
        """Wait for a batch, and hand its answers out; they are written first. A failure leaves it in the file."""
        try:
            if not self._has_answers(batch):
                while (answers := await self._batches().results(batch)) is None:
                    await self._sleep(self._poll_s)
                self._write(batch, answers)
            self._hand_out(batch)
        except Exception as error:  # noqa: BLE001  # as above
            self._fail(self._names(batch), error)

    def _write(self, batch: str, answers: Answers) -> None:
        from taoloop.models.http.batch_api import expired_answer  # noqa: PLC0415  # only for a call

        names, missing = self._names(batch), expired_answer()
        of = {name: answers.get(name, missing) if isinstance(answers, Mapping) else answers for name in names}
        with self._database() as database:
            rows = [(answer.status, answer.body, name) for name, answer in of.items()]
            database.executemany("UPDATE request SET status = ?, answer = ? WHERE id = ?", rows)

    def _names(self, batch: str) -> list[str]:
        with self._database() as database:
            return [row[0] for row in database.execute("SELECT id FROM request WHERE batch = ?", (batch,))]

    def _hand_out(self, batch: str) -> None:
        from taoloop.models.http.transport import HttpResponse  # noqa: PLC0415  # only for a call

        with self._database() as database:
            statement = "SELECT id, status, answer FROM request WHERE batch = ?"
            answers = {row[0]: row[1:] for row in database.execute(statement, (batch,))}
        for request_id, (status, body) in answers.items():
            waiter = self._waiting.get(request_id)
            if waiter is not None and not waiter.done():
                waiter.set_result(HttpResponse(status=status, body=body))

    def _fail(self, names: Iterable[str], error: Exception) -> None:
        for name in names:
            waiter = self._waiting.get(name)
            if waiter is not None and not waiter.done():
                waiter.set_exception(error)

    def _submitted(self, key: str) -> _Submitted | None:
        """A request of this key in the file that nobody waits for; None: there is none."""
        with self._database() as database:
            rows = database.execute("SELECT id, batch, nonce FROM request WHERE key = ? ORDER BY rowid", (key,))
            free = next((row for row in rows if row[0] not in self._waiting), None)
        return None if free is None else _Submitted(id=free[0], batch=free[1], nonce=free[2])

    def _has_answers(self, batch: str) -> bool:
        with self._database() as database:
            statement = "SELECT 1 FROM request WHERE batch = ? AND answer IS NULL LIMIT 1"
            return database.execute(statement, (batch,)).fetchone() is None

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(self._path)) as database, database:
                database.execute(_SCHEMA)
                yield database
        except (sqlite3.Error, OSError) as error:
            raise ModelError(
                f"The file of batches {str(self._path)!r} cannot be used: {error}.", hint="Name another file."
            ) from error
