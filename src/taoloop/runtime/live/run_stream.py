"""A run as a stream: its events, or the text of its answer, as they come, and its result at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Generic, Self, cast

from typing_extensions import TypeVar

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import AnyEvent, Event, RunStarted
from taoloop.core.message import Delta
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.dialects.answer_pieces import AnswerPieces
from taoloop.errors import ConfigError
from taoloop.journals.queries import read_start
from taoloop.models.base import DeltaListener
from taoloop.runtime.bound_agent import BoundAgent
from taoloop.runtime.runner import Listener
from taoloop.runtime.threads import require_asyncio
from taoloop.strategies import is_revised

RunDriver = Callable[[Listener, DeltaListener | None], Coroutine[Any, Any, Result[Any]]]
"""Drives a run with these listeners to its result."""

Output_co = TypeVar("Output_co", default=Any, covariant=True)
"""The value that an answer is."""

Item_co = TypeVar("Item_co", default=AnyEvent, covariant=True)
"""What the iteration gives: events, or events and deltas."""


class RunStream(Generic[Output_co, Item_co]):
    """A run that is read while it goes on. It begins when it is first read.

    Read it once, in one of two ways: `async for event in stream` gives its events, with `deltas=True` also the pieces
    of each reply between them; `async for piece in stream.text` gives the answer alone. `await stream.result()` is the
    result, with or without either. `async with stream` closes it: a run that has not ended is stopped then, and can be
    resumed. An iteration that nobody holds any more stops the run, too.

    Attributes:
        run_id: The id of the run, known before it begins. That of a turn of a session is empty until the turn begins.
    """

    def __init__(
        self,
        known_id: Callable[[], str],
        bound: BoundAgent,
        drive: RunDriver,
        *,
        deltas: bool = False,
        on_delta: DeltaListener | None = None,
    ) -> None:
        self._known_id = known_id
        self._bound = bound
        self._feed = _Feed(drive, deltas=deltas, on_delta=on_delta)
        self._read_as = ""
        self._items: AsyncGenerator[Any, None] | None = None

    @property
    def run_id(self) -> str:
        """The id of the run; of a turn of a session, empty until it begins."""
        return self._known_id()

    def __repr__(self) -> str:
        return f"<RunStream {self.run_id}: {self._feed.state}>"

    def __aiter__(self) -> Self:
        """The events, once.

        Raises:
            ConfigError: the stream was closed, was read to its end, or its text is read.
        """
        if self._items is None:
            self._begin_reading("events")
            self._items = _items(self._feed)
        elif self._feed.state in ("over", "closed"):
            raise self._closed() if self._feed.is_closed else self._read()
        return self

    async def __anext__(self) -> Item_co:
        """The next event, or a delta.

        Raises:
            ConfigError: something about the agent is wrong, or the stream is none to be read (`__aiter__`).
        """
        items = self._items
        if items is None:
            items = self.__aiter__()._items
        return cast("Item_co", await anext(cast("AsyncGenerator[Any, None]", items)))

    @property
    def text(self) -> AsyncIterator[str]:
        """The answer in pieces, while the model writes it where that is possible.

        What was given cannot be taken back: words that turn out to be none of the answer (before a call in the dialect
        `native`, or of a reply that began anew) are followed by an empty line. An answer with an output type, or one
        that is checked before it counts (`evidence`, votes, reviews), comes in one piece at the end. A run that ends
        without an answer, or waits, gives nothing more.

        Raises:
            ConfigError: the stream is read already, or was closed.
        """
        self._begin_reading("text")
        return _answer_text(self._feed, self._bound, self.run_id)

    async def result(self) -> Result[Output_co]:
        """The result, once the run has ended or waits for a person; starts the run if nobody has read the stream.

        The result of a run that was stopped has the status `stopped`. Cancelling this stops the run.

        Raises:
            ConfigError: something about the agent is wrong, or the stream was closed before the run began.
            TaoError: as `Agent.run`.
        """
        if self._feed.task is None and self._feed.is_closed:
            raise self._closed()
        task = self._feed.begin()
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            await self._feed.stop()
            raise
        return await self._stored_result() if task.cancelled() else task.result()

    async def aclose(self) -> None:
        """Stop the run if it has not ended. Closing twice is harmless."""
        self._feed.is_closed = True
        await self._feed.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _begin_reading(self, what: str) -> None:
        if self._feed.is_closed:
            raise self._closed()
        if self._read_as:
            raise self._read()
        self._read_as = what

    def _read(self) -> ConfigError:
        return ConfigError(
            f"The stream of run {self.run_id} is read already, or was read.",
            hint="A stream is read once, by its events or by its text. The trace of its result has every event.",
        )

    def _closed(self) -> ConfigError:
        began = self._feed.task is not None
        return ConfigError(
            f"The stream of run {self.run_id} was closed.",
            hint="Its result() says how far the run came." if began else "The run never began: make another stream.",
        )

    async def _stored_result(self) -> Result[Output_co]:
        async with self._bound.open_journal() as journal:
            return self._bound.result_of(Trace(self.run_id, await journal.load(self.run_id)))


class _Feed:
    """A run in a task of its own, and the queue of what it reports; None ends the queue."""

    def __init__(self, drive: RunDriver, *, deltas: bool, on_delta: DeltaListener | None) -> None:
        self.queue: asyncio.Queue[Event | Delta | None] = asyncio.Queue()
        self.task: asyncio.Task[Result[Any]] | None = None
        self.is_closed = False
        self._drive, self._deltas, self._on_delta = drive, deltas, on_delta

    @property
    def state(self) -> str:
        """In a word, how far it is."""
        if self.is_closed:
            return "closed"
        return "new" if self.task is None else "over" if self.task.done() and self.queue.empty() else "running"

    def begin(self, *, deltas: bool = False) -> asyncio.Task[Result[Any]]:
        """The task; started now if it is not yet, and then with `deltas` if somebody reads them."""
        if self.task is None:
            require_asyncio()
            put = self.queue.put_nowait
            takes_deltas = self._take_delta if deltas or self._deltas else self._on_delta
            self.task = asyncio.get_running_loop().create_task(self._drive(put, takes_deltas))
            self.task.add_done_callback(lambda _: put(None))
        return self.task

    def _take_delta(self, delta: Delta) -> None:
        self.queue.put_nowait(delta)
        if self._on_delta is not None:
            self._on_delta(delta)

    async def stop(self) -> None:
        """Stop the run, and wait until it has written that down."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait((self.task,))


async def _items(feed: _Feed) -> AsyncGenerator[Event | Delta, None]:
    """What a run reports. It does not know the stream, so that it ends with the last reference to that."""
    task = feed.begin()
    try:
        while (item := await feed.queue.get()) is not None:
            yield item
    finally:
        await feed.stop()
    if not feed.is_closed:
        task.result()


async def _answer_text(feed: _Feed, bound: BoundAgent, run_id: str) -> AsyncGenerator[str, None]:
    feed.begin(deltas=True)
    pieces: AnswerPieces | None = None
    async with aclosing(_items(feed)) as items:
        async for item in items:
            if isinstance(item, Event):
                if pieces is None:
                    fact = item.fact
                    spec = fact.agent if isinstance(fact, RunStarted) else await _read_spec(bound, run_id)
                    pieces = _pieces_of(spec, bound)
                pieces.on_event(item)
            elif pieces is not None and (piece := pieces.on_delta(item)):
                yield piece
    if pieces is not None and not feed.is_closed:
        answer = feed.begin().result().answer
        if answer is not None and (rest := pieces.finish(answer)):
            yield rest


def _pieces_of(spec: AgentSpec, bound: BoundAgent) -> AnswerPieces:
    own = bound.strategy
    is_checked = spec.evidence == "require" or is_revised(own if own.name == spec.strategy else spec.strategy)
    names = [card.name for card in spec.tools]
    return AnswerPieces(spec.dialect, names, is_held_back=spec.output_schema is not None or is_checked)


async def _read_spec(bound: BoundAgent, run_id: str) -> AgentSpec:
    """The agent of a run that began earlier, which may be another one than today's."""
    async with bound.open_journal() as journal:
        [event] = await read_start(journal, run_id)
    return cast("RunStarted", event.fact).agent
