"""Metrics for Prometheus: requests, runs, steps, tools, models, tokens and costs. No label comes from a client."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache, partial

import taoloop
from taoloop.core.decision import NO_MODELS
from taoloop.core.events import ActionRequested, Event, ModelErred, ModelReplied, Observed, RunStarted
from taoloop.core.message import Usage
from taoloop.core.trace import Trace
from taoloop.errors import MissingExtra, RefusedFor
from taoloop.models.endpoint_balance import EndpointHealth

OTHER_LABEL = "other"
"""The label of everything beyond a bound, or that no configuration names."""

INNER_RUNS = "inside"
"""The label `model` of the usage of inner runs: only their own traces name their models."""

_RUN_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320)
_REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_FIRST_SECONDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80)

_MAX_VALUES = {"model": 32, "code": 64, "route": 32, "agent": 256}
"""How many values of a label are distinguished."""


class Metrics:
    """The metrics of one gateway, in a registry of their own. `docs/gateway-operation.md` lists them.

    Labels are bounded: agents are those that are served, tools those of the agent (tools of clients, and names that a
    model makes up, are `other`), and of names from elsewhere (models in replies, error codes) only the first few are
    distinguished. Thread-safe.

    Raises:
        MissingExtra: prometheus-client is not installed.
    """

    def __init__(self) -> None:
        try:
            import prometheus_client as prometheus  # noqa: PLC0415  # optional, and only a server needs it
        except ImportError as error:
            raise MissingExtra(
                "The gateway needs the package prometheus-client, which is not installed.",
                hint="Install the extra: pip install 'taoloop[serve]'",
            ) from error
        self._prometheus = prometheus
        self.registry = registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=registry)

        # These return a cached look-up by labels: the library itself takes a lock and builds texts for each.
        def counter(name: str, text: str, *labels: str) -> Callable[..., prometheus.Counter]:
            return cache(prometheus.Counter(f"taoloop_{name}", text, labels, registry=registry).labels)

        def histogram(
            name: str, text: str, buckets: tuple[float, ...], *labels: str
        ) -> Callable[..., prometheus.Histogram]:
            metric = prometheus.Histogram(f"taoloop_{name}", text, labels, registry=registry, buckets=buckets)
            return cache(metric.labels)

        self._requests = counter("http_requests", "HTTP requests answered.", "route", "status")
        self._request_seconds = histogram(
            "http_request_seconds", "Seconds to the end of an answer.", _REQUEST_SECONDS, "route"
        )
        self._runs = prometheus.Gauge("taoloop_runs_under_way", "Active runs.", registry=registry)
        self._run_seconds = histogram("run_seconds", "Seconds of a turn of a run.", _RUN_SECONDS, "agent", "status")
        self._first = histogram(
            "first_token_seconds", "Seconds to the first piece of an answer.", _FIRST_SECONDS, "agent"
        )
        self._steps = counter("steps", "Steps: decisions of models.", "agent")
        self._tools = counter("tool_calls", "Tool calls by outcome: ok, or the code of the error.", "tool", "outcome")
        self._calls = counter(
            "model_calls", "Model calls by outcome: ok, or the code of the error.", "agent", "model", "outcome"
        )
        self._tokens = counter(
            "tokens", "Tokens: input, output, and the cached part of the input.", "agent", "model", "type"
        )
        self._cost = counter("cost_usd", "Known cost of model calls, in US dollars.", "agent", "model")
        self._unpriced = counter("unpriced_calls", "Model calls whose price is unknown.", "agent", "model")
        self._refusals = counter("refusals", "Requests refused: a quota is used up, or the server is full.", "kind")
        gauge = partial(prometheus.Gauge, registry=registry)
        text = "Questions of waiting runs, by who may answer them."
        self._waiting = cache(gauge("taoloop_waiting_questions", text, ["principal"]).labels)
        text = "Whether an endpoint of a model gets its share of the calls (1), or is left out after a failure (0)."
        self._endpoints = gauge("taoloop_endpoint_healthy", text, ["agent", "endpoint"])
        self._reloads = counter("reloads", "Reloads of the configuration by outcome.", "outcome")
        self._label_values: defaultdict[str, set[str]] = defaultdict(set)
        built = prometheus.Gauge("taoloop_build_info", "The version of taoloop.", ["version"], registry=registry)
        built.labels(taoloop.__version__).set(1)
        for outcome in ("ok", "failed"):
            self._reloads(outcome)
        for kind in ("requests", "tokens", "runs", "budget"):
            self._refusals(kind)

    def request(self, route: str, status: int, seconds: float) -> None:
        """A request was answered. `route` is the pattern that was matched, never the path as it came."""
        route = self._bound_label("route", route)
        self._requests(route, str(status) if 100 <= status <= 599 else OTHER_LABEL).inc()
        self._request_seconds(route).observe(seconds)

    def refused(self, why: RefusedFor) -> None:
        """A request was refused with status 429."""
        self._refusals(why).inc()

    def endpoints(self, agents: Mapping[str, Iterable[EndpointHealth]]) -> None:
        """So are the endpoints now that the models of these agents have."""
        self._endpoints.clear()  # a changed configuration may have others
        for agent, endpoints in agents.items():
            for endpoint in endpoints:
                self._endpoints.labels(agent, endpoint.name).set(endpoint.is_healthy)

    def waiting(self, counts: Mapping[str, int]) -> None:
        """So many questions wait now, by who may answer them: `user` or `operator`."""
        for principal, count in counts.items():
            self._waiting(principal).set(count)

    def reloaded(self, *, ok: bool) -> None:
        """A changed configuration was loaded, or could not be."""
        self._reloads("ok" if ok else "failed").inc()

    def expose(self, accept: str = "") -> tuple[bytes, str]:
        """The page and its content type. `accept` is the request's header: Prometheus may ask for OpenMetrics."""
        write, content_type = self._prometheus.exposition.choose_encoder(accept)
        return write(self.registry), content_type

    def _bound_label(self, label: str, value: str) -> str:
        """The value, if it is one of the first `_MAX_VALUES`; else `other`."""
        known = self._label_values[label]
        if value not in known and len(known) >= _MAX_VALUES[label]:
            return OTHER_LABEL
        known.add(value)
        return value

    def _count_usage(self, agent: str, model: str, usage: Usage, cost_usd: float | None) -> None:
        amounts = {"input": usage.input_tokens, "output": usage.output_tokens, "cached": usage.cached_tokens}
        for kind, amount in amounts.items():
            if amount > 0:
                self._tokens(agent, model, kind).inc(amount)
        if cost_usd is None:
            self._unpriced(agent, model).inc()
        elif cost_usd > 0:
            self._cost(agent, model).inc(cost_usd)


class RunMetrics:
    """One turn of a run, which begins now. Pass it every event (`on_event`), and its end.

    `agent` is the name by which it is served, `tools` are its own tools, `model` is the spec of its model.
    """

    def __init__(self, metrics: Metrics, agent: str, tools: Container[str], model: str = "") -> None:
        self._metrics, self._agent, self._own_tools = metrics, metrics._bound_label("agent", agent), tools
        self._model = metrics._bound_label("model", model)
        self._tool_labels: dict[str, str] = {}  # by call id
        self._unmatched: list[tuple[str, str]] = []  # calls of an earlier turn and their outcomes
        metrics._runs.inc()

    def on_event(self, event: Event) -> None:
        """Count an event."""
        metrics, fact = self._metrics, event.fact
        if isinstance(fact, RunStarted):
            self._model = metrics._bound_label("model", fact.agent.model)
        elif isinstance(fact, ModelReplied):
            model = metrics._bound_label("model", fact.model) if fact.model else self._model
            if fact.model not in NO_MODELS:  # which no model wrote
                metrics._calls(self._agent, model, "ok").inc()
                metrics._count_usage(self._agent, model, fact.usage, fact.cost_usd)
            if fact.purpose in ("decide", "sample", "close"):
                metrics._steps(self._agent).inc()
        elif isinstance(fact, ModelErred):
            metrics._calls(self._agent, self._model, metrics._bound_label("code", fact.code)).inc()
        elif isinstance(fact, ActionRequested):
            self._tool_labels[fact.call_id] = self._label(fact.tool)
        elif isinstance(fact, Observed):
            outcome = "ok" if fact.error is None else metrics._bound_label("code", fact.error.code)
            if (tool := self._tool_labels.pop(fact.call_id, None)) is None:
                self._unmatched.append((fact.call_id, outcome))
            else:
                metrics._tools(tool, outcome).inc()
            if fact.usage is not None:
                metrics._count_usage(self._agent, INNER_RUNS, fact.usage, fact.cost_usd)

    def first_token(self, seconds: float) -> None:
        """The first piece of the answer was sent, so many seconds after the request."""
        self._metrics._first(self._agent).observe(seconds)

    def end(self, status: str, seconds: float, trace: Trace | None = None) -> None:
        """The turn is over; `status` is the run's, or `failed` where it has none.

        The `trace` names the tools of calls that an earlier turn requested.
        """
        self._metrics._runs.dec()
        self._metrics._run_seconds(self._agent, status).observe(seconds)
        calls = {} if trace is None else trace.calls
        for call_id, outcome in self._unmatched:
            tool = self._label(calls[call_id].requested.tool) if call_id in calls else OTHER_LABEL
            self._metrics._tools(tool, outcome).inc()

    def _label(self, tool: str) -> str:
        return tool if tool in self._own_tools else OTHER_LABEL
