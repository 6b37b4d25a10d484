"""Resumes runs without a client: those that were answered elsewhere, and those whose process died.

Answers come from `tao approve`, or through the approvals route. Lost runs are searched for at the start, and again when
the configuration changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from taoloop.core.trace import Trace
from taoloop.errors import Refused, RunNotResumable, TaoError
from taoloop.journals.base import RunRow
from taoloop.runtime.after.recovery import orphans, require_alive
from taoloop.runtime.approvals.request import unanswered_calls
from taoloop.serve.gateway.auth.keys import ApiKey
from taoloop.serve.gateway.client_tools import open_client_calls
from taoloop.serve.gateway.run_request import RunRequest
from taoloop.serve.gateway.run_service import ConfigSnapshot

_LOG = logging.getLogger("taoloop.gateway")

_MAX_ROWS = 1_000


class AutoResumer:
    """Finds runs of this gateway that lost their process, or wait and have all their answers, and resumes them.

    A waiting run is loaded again only after an event was added to it or to one of its inner runs, or after the
    configuration changed.
    """

    def __init__(self, snapshot: Callable[[], ConfigSnapshot]) -> None:
        self._snapshot = snapshot
        self._last_snapshot: ConfigSnapshot | None = None
        self._event_counts: dict[str, int] = {}  # events of each waiting run, with its inner runs, at the last scan
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._last_warning = ""
        self._has_recovered = False  # whether all lost runs that may be resumed are

    async def poll(self, interval_s: float) -> None:
        """Scan again and again, until cancelled."""
        while True:
            await asyncio.sleep(interval_s)
            try:
                await self.scan()
            except Exception as error:  # noqa: BLE001  # whatever it is: the journal may work again at the next scan
                warning = f"Waiting runs could not be scanned: {error!r}"
                if warning != self._last_warning:  # once as long as it lasts
                    _LOG.warning("%s", warning)
                self._last_warning = warning
            else:
                self._last_warning = ""

    async def shut_down(self, timeout_s: float) -> None:
        """Let active runs finish in time; the others are stopped, and can be resumed."""
        if tasks := list(self._tasks.values()):
            await asyncio.wait(tasks, timeout=timeout_s)
        self.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def cancel(self) -> None:
        """Stop the active runs now."""
        for task in self._tasks.values():
            task.cancel()

    async def scan(self) -> None:
        """Search the journal once."""
        snapshot = self._snapshot()
        if snapshot is not self._last_snapshot:  # with other keys or agents, runs may be resumed that could not before
            self._last_snapshot = snapshot
            self._event_counts.clear()
            self._has_recovered = False
        if not self._has_recovered:
            self._has_recovered = True
            await self._recover(snapshot)
        families: dict[str, list[RunRow]] = {}  # an inner run is resumed with its outer run
        for row in await snapshot.journal.runs(limit=_MAX_ROWS, status="waiting"):
            families.setdefault(row.run_id.partition(".")[0], []).append(row)
        self._event_counts = {run_id: count for run_id, count in self._event_counts.items() if run_id in families}
        for run_id, rows in families.items():
            run_ids, count = [row.run_id for row in rows], sum(row.events for row in rows)
            if run_id not in run_ids or run_id in self._tasks or self._event_counts.get(run_id) == count:
                continue
            self._event_counts[run_id] = count
            try:
                await self._resume_if_answered(run_id, run_ids)
            except TaoError as error:  # the others must not wait for it
                _LOG.warning("run %s waits and cannot be loaded: %s", run_id, error)

    async def _recover(self, snapshot: ConfigSnapshot) -> None:
        """Resume the runs of this gateway whose process died: all, or only those of agents that say so."""
        for trace in await orphans(snapshot.journal):
            labels = trace.started.labels if trace.started is not None else {}
            if "key" not in labels or trace.run_id in self._tasks:
                continue
            served = snapshot.config.agents.get(labels.get("agent", ""))
            if not (snapshot.config.recover or (served is not None and served.agent.recover_on_start)):
                _LOG.warning("run %s lost its process; tao recover resumes it", trace.run_id)
                continue
            try:
                await require_alive(snapshot.journal, trace)
            except RunNotResumable as error:
                _LOG.warning("run %s lost its process and needs a decision: %s", trace.run_id, error)
                continue
            _LOG.warning("run %s lost its process, and is resumed", trace.run_id)
            self._start(trace.run_id, labels, is_lost=True)

    def _start(self, run_id: str, labels: Mapping[str, str], *, is_lost: bool = False) -> None:
        task = self._tasks[run_id] = asyncio.create_task(self._drive(run_id, labels, is_lost=is_lost))
        task.add_done_callback(lambda _: self._tasks.pop(run_id, None))

    async def _resume_if_answered(self, run_id: str, run_ids: Iterable[str]) -> None:
        """Resume a run if nothing is open any more, in it and in its waiting inner runs."""
        journal = self._snapshot().journal
        traces = [Trace(inner_id, await journal.load(inner_id)) for inner_id in run_ids]
        outer = next(trace for trace in traces if trace.run_id == run_id)
        started = outer.started
        if started is None or started.parent is not None or "key" not in started.labels:
            return
        if any(map(_is_open, traces)) or outer.paused is None or open_client_calls(outer):
            return
        self._start(run_id, started.labels)

    async def _drive(self, run_id: str, labels: Mapping[str, str], *, is_lost: bool) -> None:
        what, state = ("lost its process", "lost") if is_lost else ("was answered", "waiting")
        snapshot = self._snapshot()
        served = snapshot.config.agents.get(labels.get("agent", ""))
        key = snapshot.owner_key(labels["key"])
        if served is None or (snapshot.config.needs_key and not _may_go_on(key, served.name, snapshot)):
            _LOG.warning(
                "run %s %s; its key or agent is no longer served, so it stays %s: tao resume", run_id, what, state
            )
            return
        run_request = RunRequest(served=served, run=run_id, owner=labels["key"])
        snapshot.enter()
        try:
            with snapshot.accounts.record_run(served, key, run_id) as recorder:
                response = await snapshot.service.answer(run_request, run_id, on_event=recorder.on_event)
                recorder.result = response.result
            if is_lost:
                _LOG.warning("run %s was recovered: %s", run_id, response.result.status)
        except Refused:  # there is no place now; the next scan tries again
            self._event_counts.pop(run_id, None)
            self._has_recovered = self._has_recovered and not is_lost
        except Exception as error:  # noqa: BLE001  # no client waits for it: it is logged, and can still be resumed
            _LOG.warning("run %s %s and cannot be resumed: %s", run_id, what, error)
        finally:
            await snapshot.leave()


def _may_go_on(key: ApiKey | None, agent: str, snapshot: ConfigSnapshot) -> bool:
    """Whether the owner of a run may still use its agent."""
    now = snapshot.accounts.quotas.clock.now()
    return key is not None and key.may_use(agent) and key.state_at(now) == "active"


def _is_open(trace: Trace) -> bool:
    """Whether a run still waits for somebody: for an approval, or for the outcome of a call in doubt."""
    in_doubt = any(call.doubt is not None and call.settled is None for call in trace.pending.values())
    return bool(unanswered_calls(trace)) or in_doubt
