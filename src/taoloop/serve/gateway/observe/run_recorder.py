"""Records a turn of a run in all accounts: the quota of its key, the metrics, and OpenTelemetry."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taoloop.runtime.bound_agent import bind

if TYPE_CHECKING:
    from taoloop.core.events import Event
    from taoloop.core.trace import Trace
    from taoloop.serve.gateway.config.model import ApiKey, ServedAgent
    from taoloop.serve.gateway.observe.metrics import Metrics, RunMetrics
    from taoloop.serve.gateway.observe.otel import RunSpans, Telemetry
    from taoloop.serve.gateway.quotas import Quotas, QuotaUse


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAccounts:
    """Where the runs of a gateway are recorded. They belong to the server: a changed configuration keeps them."""

    quotas: Quotas
    """What keys may use."""

    metrics: Metrics
    """The metrics for Prometheus."""

    telemetry: Telemetry | None = None
    """The spans and metrics for OpenTelemetry; None where it is off."""

    @contextmanager
    def record_run(
        self, served: ServedAgent, key: ApiKey | None, run_id: str, headers: Mapping[str, str] | None = None
    ) -> Iterator[RunRecorder]:
        """Take a place for a turn of a run, which begins now, and record it until the end of the block.

        `headers` are those of the request: its spans continue the trace that `traceparent` names.

        Raises:
            Refused: there is no place, or the key has used up its quota; nothing was counted.
        """
        with self.quotas.enter(key) as quota_use:
            model = bind(served.agent).model.spec
            run_metrics = self.metrics.run(served.name, [tool.name for tool in served.agent.toolbox], model)
            spans = None
            if self.telemetry is not None:
                spans = self.telemetry.run(served.name, model=model, run_id=run_id, headers=headers)
            recorder = RunRecorder(quota_use, run_metrics, spans)
            try:
                yield recorder
            finally:
                recorder.close()


class RunRecorder:
    """Takes every event of the turn, and how the turn ended."""

    def __init__(self, quota_use: QuotaUse, run_metrics: RunMetrics, spans: RunSpans | None) -> None:
        self._quota_use, self._metrics, self._spans = quota_use, run_metrics, spans
        self._started_at = time.perf_counter()
        self._status = "failed"
        self._trace: Trace | None = None

    def on_event(self, event: Event) -> None:
        """Record an event."""
        self._quota_use.on_event(event)
        self._metrics.on_event(event)
        if self._spans is not None:
            self._spans.on_event(event)

    def record_first_piece(self, seconds: float) -> None:
        """The first piece of the answer went out, so many seconds after the request."""
        self._metrics.first_token(seconds)

    def record_end(self, status: str, trace: Trace) -> None:
        """The turn ended with this status; without this call it counts as failed."""
        self._status, self._trace = status, trace

    def close(self) -> None:
        """Record the end of the turn."""
        self._metrics.end(self._status, time.perf_counter() - self._started_at, self._trace)
        if self._spans is not None:
            self._spans.end(self._status, self._trace)
