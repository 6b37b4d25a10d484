"""Runs that were answered elsewhere go on by themselves: `tao approve` in another process, or the approvals route."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from taoloop.core.trace import Trace
from taoloop.errors import Refused, TaoError
from taoloop.runtime.approvals.questions import unanswered_calls
from taoloop.runtime.bound_agent import bind
from taoloop.serve.gateway.client_tools import open_calls_of_client
from taoloop.serve.gateway.run_service import RunRequest

if TYPE_CHECKING:
    from taoloop.core.events import Event
    from taoloop.journals.base import RunRow
    from taoloop.serve.gateway.snapshot import ConfigSnapshot

_LOG = logging.getLogger("taoloop.gateway")

EVERY_S = 1.0
"""How often the journal is asked for runs that wait."""

_MOST = 1_000


class AutoResumer:
    """Looks for waiting runs of this gateway that have all their answers, and drives them on.

    A run is loaded again only after something was added to it, or to a run inside it, or the configuration was changed.
    """

    def __init__(self, standing: Callable[[], ConfigSnapshot]) -> None:
        self._standing = standing
        self._under: ConfigSnapshot | None = None
        self._seen: dict[str, int] = {}  # how many events a run had, with those inside it, that still waited
        self._driving: dict[str, asyncio.Task[None]] = {}
        self._trouble = ""

    async def watch(self) -> None:
        """Look, again and again, until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001  # whatever it is: the next look may find the journal well again
                self._tell(f"Runs that wait could not be looked through: {error!r}")
            else:
                self._trouble = ""

    async def end(self, timeout_s: float) -> None:
        """Give what is being driven its time; what is left then is stopped, and can be resumed."""
        if tasks := list(self._driving.values()):
            await asyncio.wait(tasks, timeout=timeout_s)
        self.cut()
        await asyncio.gather(*tasks, return_exceptions=True)

    def cut(self) -> None:
        """Stop what is being driven now."""
        for task in self._driving.values():
            task.cancel()

    async def look(self) -> None:
        """Look once."""
        if (standing := self._standing()) is not self._under:  # what was left alone may go on with other keys or agents
            self._under = standing
            self._seen.clear()
        rows = await standing.journal.runs(limit=_MOST, status="waiting")
        counts: Counter[str] = Counter()
        for row in rows:
            counts[_outer(row)] += row.events
        self._seen = {run_id: count for run_id, count in self._seen.items() if run_id in counts}
        for row in rows:
            if row.run_id != _outer(row) or row.run_id in self._driving:  # a run inside goes on with the one around it
                continue
            if self._seen.get(row.run_id) != counts[row.run_id]:
                self._seen[row.run_id] = counts[row.run_id]
                try:
                    await self._take_up(row.run_id, [one.run_id for one in rows if _outer(one) == row.run_id])
                except TaoError as error:  # this one alone: the others must not wait for it
                    _LOG.warning("run %s waits and cannot be looked at: %s", row.run_id, error)

    async def _take_up(self, run_id: str, waiting: Iterable[str]) -> None:
        """Drive a run if nothing is open any more, in it and in the runs inside it that wait."""
        journal = self._standing().journal
        traces = [Trace(one, await journal.load(one)) for one in waiting]
        outer = next(one for one in traces if one.run_id == run_id)
        started = outer.started
        if started is None or started.parent is not None or "key" not in started.labels:
            return
        if any(map(_is_open, traces)) or outer.paused is None or open_calls_of_client(outer):
            return
        task = self._driving[run_id] = asyncio.create_task(self._drive(outer, dict(started.labels)))
        task.add_done_callback(lambda _: self._driving.pop(run_id, None))

    async def _drive(self, trace: Trace, labels: dict[str, str]) -> None:
        standing, run_id, began = self._standing(), trace.run_id, time.perf_counter()
        served = standing.config.agents.get(labels.get("agent", ""))
        key = next((one for one in standing.config.keys if one.name == labels["key"]), None)
        may = key is not None and (not key.agents or labels.get("agent") in key.agents)
        if served is None or (standing.config.keys and not may):
            _LOG.warning("run %s was answered; its key or agent is served no more, so it is left: tao resume", run_id)
            return
        wish = RunRequest(served=served, run=run_id, owner=labels["key"])
        try:
            turn = standing.allowances.enter(key)
        except Refused:  # there is no place now; it is tried again at the next look
            self._seen.pop(run_id, None)
            return
        standing.enter()
        model = bind(served.agent).model.spec
        run = standing.metrics.run(served.name, [one.name for one in served.agent.toolbox], model)
        telemetry = standing.telemetry
        spans = telemetry.run(served.name, model=model, run_id=run_id) if telemetry is not None else None
        status, ended = "failed", None

        def heard(event: Event) -> None:
            turn.on_event(event)
            run.on_event(event)
            if spans is not None:
                spans.on_event(event)

        try:
            with turn:
                answered = await standing.service.answer(wish, run_id, on_event=heard)
                status, ended = str(answered.agent["status"]), answered.trace
        except Exception as error:  # noqa: BLE001  # nobody waits for it: it is told here, and stays to be resumed
            _LOG.warning("run %s was answered and cannot go on: %s", run_id, error)
        finally:
            run.end(status, time.perf_counter() - began, ended)
            if spans is not None:
                spans.end(status, ended)
            await standing.leave()

    def _tell(self, trouble: str) -> None:
        """Say what is wrong, once as long as it lasts."""
        if trouble != self._trouble:
            self._trouble = trouble
            _LOG.warning("%s", trouble)


def _outer(row: RunRow) -> str:
    """The outermost run around one: a run inside is named after it."""
    return row.run_id.partition(".")[0]


def _is_open(trace: Trace) -> bool:
    """Whether a run still waits for somebody: for a word, or for what became of a call."""
    in_doubt = any(call.doubt is not None and call.settled is None for call in trace.pending.values())
    return bool(unanswered_calls(trace)) or in_doubt
