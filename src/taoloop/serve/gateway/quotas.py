"""Quotas of API keys (requests and tokens per minute, concurrent runs, money per day), and the records of each run.

There is no queue: a request beyond a quota gets an error.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from taoloop.core.cards.questions import is_question
from taoloop.core.events import Event, ModelReplied, Observed
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.core.views.transcript import Result
from taoloop.errors import Refused
from taoloop.journals.costs import CostRow
from taoloop.policy import authority_of
from taoloop.runtime.approvals.inbox import WaitingQuestions
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.engine.clock import Clock, SystemClock
from taoloop.runtime.observation.telemetry import RunSpans, Telemetry
from taoloop.serve.gateway.a2a.push_configs import PushConfigs
from taoloop.serve.gateway.auth.keys import ApiKey
from taoloop.serve.gateway.config.model import GatewayConfig, ServedAgent, ServerLimits
from taoloop.serve.gateway.observe.metrics import Metrics, RunMetrics
from taoloop.serve.gateway.observe.readiness import StorageProbe
from taoloop.serve.gateway.repeats.ledger import RequestLedger
from taoloop.serve.gateway.shared.conversations import Conversations
from taoloop.serve.gateway.shared.counters import DAY_S, Counters, LocalCounters, UsageKind
from taoloop.serve.gateway.shared.managed_keys import ManagedKeys
from taoloop.serve.texts import TEXTS

_LOG = logging.getLogger("taoloop.gateway")

_RETRY_S = 1.0
"""How long a client should wait where too many runs are active. When one of them ends is unknown."""


class Quotas:
    """Counts what keys use, and refuses runs of a key that has used up its quota.

    Windows slide: no span of 60 seconds has more requests than a key may make. Tokens are booked as they are known,
    after the model replied; a key that used too many is refused until its window has room again. The budget is for a
    day in UTC and covers known costs; a run that has started may finish. For one event loop.

    Args:
        limits: How many runs may be active, in this process in total, and per key. They may be replaced: what was used
            stays counted.
        spent: Earlier costs (`taoloop.journals.costs`); only those of today count.
        clock: The source of the time.
        counters: Where it is counted: `SharedCounters` for several processes; None: in memory.
    """

    def __init__(
        self,
        limits: ServerLimits,
        *,
        spent: Iterable[CostRow] = (),
        clock: Clock | None = None,
        counters: Counters | None = None,
    ) -> None:
        self.limits = limits
        self.clock = clock or SystemClock()
        self._counters = counters or LocalCounters(self.clock)
        self._active_runs = 0
        day = f"{datetime.fromtimestamp(self.clock.now(), UTC):%Y-%m-%d}"
        earlier: defaultdict[str, float] = defaultdict(float)  # a key has a row for each of its agents
        for row in spent:
            if row.day == day:
                earlier[row.key] += row.cost_usd
        for name, cost_usd in earlier.items():
            self._counters.spent_before(name, cost_usd)

    @property
    def active_runs(self) -> int:
        """How many runs are active in this process."""
        return self._active_runs

    def spent_today(self, name: str) -> float:
        """Known costs of the key with this name since midnight UTC, in US dollars."""
        return self._counters.spent(name)

    def enter(self, key: ApiKey | None) -> None:
        """Start a run for a key (None: there are no keys), which must `leave` in the end.

        Raises:
            Refused: the key has used up its quota, or there is no place; nothing was counted.
        """
        if self._active_runs >= self.limits.max_runs:
            message = f"The server is busy: {self.limits.max_runs} runs are active."
            raise Refused(message, why="runs", retry_after_s=_RETRY_S)
        if key is not None:
            with self._counters.transaction():
                self._check_key(key)
                if key.requests_per_minute is not None:
                    self._counters.use("requests", key.name, 1)
                self._counters.enter(key.name)
        self._active_runs += 1

    def leave(self, key: ApiKey | None) -> None:
        """End a run of a key: its place is free again."""
        self._active_runs -= 1
        if key is not None:
            self._counters.leave(key.name)

    def book(self, key: ApiKey | None, *, tokens: int = 0, cost_usd: float | None = 0.0) -> None:
        """Count what a run has used, as soon as it is known. `cost_usd` None: the price is unknown."""
        if key is None:
            return
        self._counters.spend(key.name, cost_usd or 0.0)
        if key.tokens_per_minute is not None:
            self._counters.use("tokens", key.name, tokens)

    def renew(self) -> None:
        """Keep the places of this process; to be called every few seconds."""
        self._counters.renew()

    def _check_key(self, key: ApiKey) -> None:
        own_runs = self.limits.max_runs_per_key
        if own_runs is not None and self._counters.active_runs(key.name) >= own_runs:
            message = f"This key has {own_runs} active runs, which is its limit."
            raise Refused(message, why="runs", retry_after_s=_RETRY_S)
        if key.usd_per_day is not None and self.spent_today(key.name) >= key.usd_per_day:
            message = f"The budget of this key for today, {key.usd_per_day:g} US dollars, is used up."
            raise Refused(message, why="budget", retry_after_s=DAY_S - self.clock.now() % DAY_S)
        rates: tuple[tuple[UsageKind, int | None], ...] = (
            ("tokens", key.tokens_per_minute),
            ("requests", key.requests_per_minute),
        )
        for kind, limit in rates:
            if limit is not None and (wait_s := self._counters.wait_s(kind, key.name, limit)) > 0:
                raise Refused(f"This key may use {limit} {kind} per minute.", why=kind, retry_after_s=wait_s)


def late_warnings(config: GatewayConfig, language: str = "en") -> Iterator[str]:
    """Warnings that need the tools and the models: a host override that nothing uses, and a model without a price.

    Such a model costs nothing of the budgets of the keys that may use it.
    """
    for name in config.services.unused():
        yield TEXTS.text(language, "unused_override", file=config.path.name, name=name)
    for name, served in config.agents.items():
        keys = [key.name for key in config.keys if key.usd_per_day is not None and key.may_use(name)]
        if keys:
            for spec in served.unpriced_models():
                yield TEXTS.text(language, "unknown_price", model=spec, agent=name, keys=", ".join(keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAccounts:
    """Where the runs of a gateway are recorded. They belong to the server: a changed configuration keeps them."""

    quotas: Quotas
    """What keys may use."""

    metrics: Metrics
    """The metrics for Prometheus."""

    ledger: RequestLedger
    """The requests whose runs may change something."""

    conversations: Conversations
    """The conversations that clients name."""

    push_configs: PushConfigs
    """Where the states of A2A tasks are pushed to."""

    storage: StorageProbe
    """Whether runs can be stored now."""

    telemetry: Telemetry | None = None
    """The spans and metrics for OpenTelemetry; None where it is off."""

    managed_keys: ManagedKeys | None = None
    """The keys that administrators manage; None: there are none."""

    questions: WaitingQuestions = field(default_factory=WaitingQuestions)
    """Counts the questions that wait."""

    @contextmanager
    def record_run(
        self, served: ServedAgent, key: ApiKey | None, run_id: str, headers: Mapping[str, str] | None = None
    ) -> Iterator[RunRecorder]:
        """Take a place for a turn of a run, which begins now, and record it until the end of the block.

        `headers` are those of the request: its spans continue the trace that `traceparent` names.

        Raises:
            Refused: there is no place, or the key has used up its quota; nothing was counted.
        """
        self.quotas.enter(key)
        try:
            with closing(RunRecorder(self, served, key, run_id, headers)) as recorder:
                yield recorder
        finally:
            self.quotas.leave(key)


class RunRecorder:
    """Takes every event of a turn, which begins now, and how the turn ended."""

    result: Result | None = None
    """The result of the turn; without one it counts as failed."""

    def __init__(
        self,
        accounts: RunAccounts,
        served: ServedAgent,
        key: ApiKey | None,
        run_id: str,
        headers: Mapping[str, str] | None,
    ) -> None:
        model = bind(served.agent).model.spec
        self._quotas, self._key = accounts.quotas, key
        self.metrics = RunMetrics(accounts.metrics, served.name, served.agent.toolbox, model)
        self._spans = None
        if accounts.telemetry is not None:
            self._spans = RunSpans(accounts.telemetry, served.name, model, run_id, headers)
        self._started_at = time.perf_counter()

    def on_event(self, event: Event) -> None:
        """Record an event.

        What it used counts as it happens, even if nobody waits for the end of the run; the usage of inner runs counts
        with the observation that they result in.
        """
        fact = event.fact
        if isinstance(fact, ModelReplied | Observed) and fact.usage is not None:
            self._quotas.book(self._key, tokens=fact.usage.total_tokens, cost_usd=fact.cost_usd)
        self.metrics.on_event(event)
        if self._spans is not None:
            self._spans.on_event(event)

    def close(self) -> None:
        """Record the end of the turn."""
        status, trace = ("failed", None) if self.result is None else (self.result.status, self.result.trace)
        if trace is not None and trace.status == "waiting":
            _report_operator_needed(trace)
        self.metrics.end(status, time.perf_counter() - self._started_at, trace)
        if self._spans is not None:
            self._spans.end(status, trace)


def _report_operator_needed(trace: Trace) -> None:
    """Log that a run waits for what its client may not answer: nobody else would tell the operator."""
    is_for_operator = authority_of(trace) != "full"
    calls = [
        f"{call.requested.tool} ({call.requested.call_id})"
        for call in trace.pending.values()
        if call.doubt is not None or (is_for_operator and _waits_for_person(trace, call))
    ]
    if calls:
        _LOG.warning(
            "run %s waits for the operator: %s; tao approvals %s", trace.run_id, ", ".join(calls), trace.run_id
        )


def _waits_for_person(trace: Trace, call: CallView) -> bool:
    """Whether a call waits for an approval, or a run inside it may have; not one that the client performs."""
    card = trace.card(call.requested.tool)
    waits_inside = call.attempts == call.waited > 0 and card is not None and card.performed_by == "agent"
    return waits_inside or (call.needs_person and not is_question(card))
