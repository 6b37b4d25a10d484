"""OpenTelemetry: runs as spans and metrics, following its semantic conventions for generative AI (extra `otel`).

    taoloop.instrument()               # every agent of this process, through the providers of this process

Driven by the events of a run, so that nothing is exported that is not in the trace; prompts and answers are exported
only on request. Logfire, Langfuse, Phoenix and the like set the providers of the process; `Telemetry.from_env` makes
providers of its own, configured by the standard variables `OTEL_*`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from taoloop.core.decision import NO_MODELS
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    AnyEvent,
    Event,
    Finished,
    ModelErred,
    ModelReplied,
    Observed,
    Paused,
    RunStarted,
)
from taoloop.core.message import ToolCallText, Usage
from taoloop.errors import ConfigError, MissingExtra
from taoloop.lazy_exports import lazy_types

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from taoloop.core.agent_spec import AgentSpec
    from taoloop.core.trace import Trace
else:
    globals().update(lazy_types({"core.agent_spec": "AgentSpec", "core.trace": "Trace"}))

Listener = Callable[[AnyEvent], None]

__all__ = ["Telemetry", "instrument"]

Attributes = dict[str, str | int | float | bool | Sequence[str]]

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "bedrock": "aws.bedrock",
}
"""Names of providers in the conventions, where they differ from ours."""


def model_attributes(spec: str) -> Attributes:
    """Provider and model of a spec such as `openai:gpt-4o-mini`; nothing for an empty one."""
    if not spec:
        return {}
    provider, _, model = spec.partition(":")
    return {"gen_ai.provider.name": _PROVIDERS.get(provider, provider), "gen_ai.request.model": model or spec}


def _message_json(role: str, text: str, calls: Iterable[ToolCallText] = ()) -> str:
    """One message as the JSON text that the conventions require in an attribute."""
    parts: list[dict[str, object]] = [{"type": "text", "content": text}] if text else []
    parts += [{"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
    return json.dumps([{"role": role, "parts": parts}], ensure_ascii=False)


def _to_nanoseconds(at: float) -> int:
    """Seconds since the epoch in nanoseconds, as OpenTelemetry counts."""
    return int(at * 1_000_000_000)


ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
"""Telemetry is on where one of these is set."""

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Set to `true`: spans include tasks, answers, arguments and results, as redacted in the trace."""

_TOKEN_BOUNDS = tuple(4**power for power in range(14))
_SECOND_BOUNDS = tuple(0.01 * 2**power for power in range(14))
"""Both as the conventions define them."""

_FAILED = frozenset({"model_failed", "unreadable", "too_many_errors", "repeated_action", "unsupported"})


class Telemetry:
    """Exports runs to OpenTelemetry, through the providers that it is given. It sets nothing global.

    `Agent(telemetry=…)` takes one; `instrument` makes one that serves every agent of the process.

    Args:
        tracer_provider, meter_provider: Those of the SDK, or of a test.
        content: Whether spans include tasks, answers, arguments and results.

    Raises:
        MissingExtra: OpenTelemetry is not installed.
    """

    def __init__(
        self, tracer_provider: TracerProvider, meter_provider: MeterProvider, *, content: bool = False
    ) -> None:
        from opentelemetry import trace  # noqa: PLC0415  # an extra

        self.api = trace
        self._providers = (tracer_provider, meter_provider)
        meter = meter_provider.get_meter("taoloop", _version())
        self.content = content
        self.tracer = tracer_provider.get_tracer("taoloop", _version())
        self.tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKEN_BOUNDS,
        )
        self.seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=_SECOND_BOUNDS,
        )

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Telemetry | None:
        """Telemetry as the environment configures it; None where none of `ENDPOINTS` is set, or the SDK is disabled.

        The SDK itself reads all other settings from the environment of the process.

        Raises:
            MissingExtra: it is configured, but not installed.
            ConfigError: the protocol is not supported.
        """
        env = os.environ if env is None else env
        is_disabled = env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
        if is_disabled or not any(env.get(name, "").strip() for name in ENDPOINTS):
            return None
        for name in ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"):
            if env.get(name, "").strip() not in ("", "http/protobuf"):
                raise ConfigError(
                    f"{name} has the protocol {env[name]!r}.", hint="Only http/protobuf is spoken; unset it."
                )
        traces, figures = (env.get(f"OTEL_{what}_EXPORTER", "otlp").strip() != "none" for what in ("TRACES", "METRICS"))
        tracer_provider, meter_provider = _otlp_providers(traces=traces, figures=figures)
        return cls(tracer_provider, meter_provider, content=_captures_content(env))

    @classmethod
    def of_process(cls, *, content: bool | None = None) -> Telemetry:
        """Telemetry through the providers of this process: those that `logfire.configure()` and the like have set.

        Providers that are set later count too: until then nothing is exported. `content` says whether spans include
        tasks, answers, arguments and results; None goes by the variable of `CAPTURE`, which is off by default.

        Raises:
            MissingExtra: OpenTelemetry is not installed.
        """
        try:
            from opentelemetry import metrics, trace  # noqa: PLC0415  # an extra
        except ImportError as error:
            hint = "Install the extra: pip install 'taoloop[otel]'."
            raise MissingExtra("OpenTelemetry is not installed.", hint=hint) from error
        shows = _captures_content(os.environ) if content is None else content
        return cls(trace.get_tracer_provider(), metrics.get_meter_provider(), content=shows)

    @contextmanager
    def observe(self, trace: Trace, spec: AgentSpec, now: float, listener: Listener | None) -> Iterator[Listener]:
        """Export what a run does in this block; gives the listener for its events, which passes them on to `listener`.

        The span of the run is below the current one and is itself current in the block, so that spans of tools and
        HTTP clients, and of runs inside this one, are below it.
        """
        from opentelemetry import context  # noqa: PLC0415  # an extra

        spans = RunSpans(self, spec.name, spec.model, trace.run_id)
        outer = _CURRENT.set(self)
        attached = context.attach(spans.begin(now))

        def record_event(event: AnyEvent) -> None:
            spans.on_event(event)
            if listener is not None:
                listener(event)

        try:
            yield record_event
        except BaseException:
            spans.end("failed" if trace.finished is None else trace.status, trace)
            raise
        else:
            spans.end(trace.status, trace)
        finally:
            context.detach(attached)
            _CURRENT.reset(outer)

    def close(self) -> None:
        """Export what is queued, and end the threads. Blocks for a few seconds at most; call it in a thread."""
        for provider in self._providers:
            if callable(stop := getattr(provider, "shutdown", None)):
                stop()


@cache
def _version() -> str:
    return version("taoloop")


def _captures_content(env: Mapping[str, str]) -> bool:
    return env.get(CAPTURE, "").strip().lower() in ("true", "1")


_CURRENT: ContextVar[Telemetry | None] = ContextVar("taoloop_telemetry", default=None)
"""The telemetry of the run around, which the runs inside it share."""

_process_telemetry: Telemetry | None = None


def instrument(telemetry: Telemetry | None = None, *, content: bool | None = None) -> Telemetry:
    """Export the runs of every agent of this process that has no telemetry of its own, from now on.

    Args:
        telemetry: What exports them; None: `Telemetry.of_process`, whose providers a library such as Logfire sets.
        content: As for `Telemetry.of_process`; not together with `telemetry`, which knows it.

    Returns:
        What exports them. A later call replaces it; `Agent(telemetry=False)` leaves an agent out.

    Raises:
        MissingExtra: OpenTelemetry is not installed.
        ConfigError: both `telemetry` and `content` are given.
    """
    global _process_telemetry  # noqa: PLW0603  # it is the process that is instrumented
    if telemetry is not None and content is not None:
        raise ConfigError("instrument was given `telemetry` and `content`.", hint="Say it of the Telemetry instead.")
    _process_telemetry = Telemetry.of_process(content=content) if telemetry is None else telemetry
    return _process_telemetry


def run_telemetry(own: Telemetry | bool | None) -> Telemetry | None:
    """What exports a run of an agent with this setting; None: nothing does.

    Raises:
        MissingExtra: the setting is True, and OpenTelemetry is not installed.
        ConfigError: the setting is something else.
    """
    if own is None:
        return _CURRENT.get() or _process_telemetry
    if own is False:
        return None
    if own is True:
        return Telemetry.of_process()
    if isinstance(own, Telemetry):
        return own
    raise ConfigError(f"telemetry is {own!r}.", hint="Give a Telemetry, True (the providers of the process) or False.")


class RunSpans:
    """One turn of a run, which begins now: a span `invoke_agent` with a child span for each call of a model or a tool.

    It is below the span that `traceparent` in `headers` names, which finds names in lower case. `model` is the spec of
    the agent's model.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        agent: str,
        model: str = "",
        run_id: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._telemetry, self._agent, self._parent = telemetry, agent, _parent_context(headers or {})
        self._model: Attributes = model_attributes(model)
        self._span: Span | None = None
        self._began_at = self._ended_at = 0.0
        self._run_id, self._task = run_id, ""
        self._requested: dict[str, ActionRequested] = {}
        self._started_at: dict[str, float] = {}
        self._unmatched: list[tuple[float, Observed]] = []  # of calls of an earlier turn
        self._usage, self._cost_usd = Usage(), 0.0
        self._ended = False

    def begin(self, at: float) -> Context:
        """Begin the span of the turn; gives the context in which it is the current one."""
        context: Context = self._telemetry.api.set_span_in_context(self._run_span(at))
        return context

    def on_event(self, event: Event) -> None:
        """Record an event."""
        if self._ended:
            return
        at, self._ended_at = event.at, event.at
        match event.fact:
            case RunStarted() as started:
                self._model, self._task = model_attributes(started.agent.model), started.task
                self._run_span(at)
            case ModelReplied() as reply if reply.model not in NO_MODELS:
                self._record_model_call(at, reply)
            case ModelErred(code=code):
                self._add_child_span("chat", at, at, {**self._model, "gen_ai.operation.name": "chat"}, error=code)
            case ActionRequested() as requested:
                self._requested[requested.call_id] = requested
                self._run_span(at)
            case ActionStarted(call_id=call_id):
                self._started_at[call_id] = at
            case Observed() as observed:
                self._record_observation(at, observed)
            case Finished() as finished:
                error = (finished.error or finished.status) if finished.status in _FAILED else ""
                self._close(finished.status, finished.answer, error, at)
            case Paused(status=status):
                self._close(status, None, "", at)
            case _:
                self._run_span(at)

    def end(self, status: str = "stopped", trace: Trace | None = None) -> None:
        """The turn is over, if no event said so before. A second call does nothing.

        The `trace` names the tools of calls that an earlier turn requested.
        """
        if trace is not None and self._span is not None:
            for at, observed in self._unmatched:
                call = trace.calls.get(observed.call_id)
                self._record_tool_call(at, observed, call.requested.tool if call is not None else "", None)
        self._unmatched = []
        if not self._ended:
            self._close(status, None, status if status == "failed" else "", self._ended_at)

    def _run_span(self, at: float) -> Span:
        """The span of the turn, started with its first event."""
        if self._span is None:
            self._began_at = at
            self._span = self._telemetry.tracer.start_span(
                f"invoke_agent {self._agent}",
                context=self._parent,
                attributes={
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": self._agent,
                    **({"taoloop.run.id": self._run_id} if self._run_id else {}),
                    **self._model,
                },
                start_time=_to_nanoseconds(at),
            )
        return self._span

    def _add_child_span(self, name: str, begin: float, end: float, attributes: Attributes, *, error: str = "") -> None:
        api = self._telemetry.api
        span = self._telemetry.tracer.start_span(
            name,
            context=api.set_span_in_context(self._run_span(begin)),
            kind=api.SpanKind.CLIENT if name.startswith("chat") else api.SpanKind.INTERNAL,
            attributes=attributes,
            start_time=_to_nanoseconds(begin),
        )
        self._end_span(span, end, error)

    def _end_span(self, span: Span, at: float, error: str) -> None:
        if error:
            api = self._telemetry.api
            span.set_attribute("error.type", error)
            span.set_status(api.Status(api.StatusCode.ERROR, error))
        span.end(_to_nanoseconds(at))

    def _record_model_call(self, at: float, reply: ModelReplied) -> None:
        usage, model_name = reply.usage, str(self._model.get("gen_ai.request.model", ""))
        self._usage += usage
        self._cost_usd += reply.cost_usd or 0.0
        attributes: Attributes = {
            **self._model,
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "taoloop.purpose": reply.purpose,
            "taoloop.step": reply.step,
        }
        optional = {
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
            "gen_ai.response.model": reply.model or None,
            "gen_ai.response.finish_reasons": (reply.finish_reason,) if reply.finish_reason else None,
            "taoloop.cost_usd": reply.cost_usd,
        }
        attributes |= {name: value for name, value in optional.items() if value is not None}
        figures = {name: attributes[name] for name in _METRIC_LABELS if name in attributes}
        if self._telemetry.content:
            attributes["gen_ai.output.messages"] = _message_json("assistant", reply.text, reply.tool_calls)
        self._add_child_span(f"chat {model_name}".strip(), at - reply.latency_s, at, attributes)
        self._telemetry.seconds.record(reply.latency_s, figures)
        for kind, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._telemetry.tokens.record(count, {**figures, "gen_ai.token.type": kind})

    def _record_observation(self, at: float, observed: Observed) -> None:
        if observed.usage is not None:
            self._usage += observed.usage
            self._cost_usd += observed.cost_usd or 0.0
        requested = self._requested.pop(observed.call_id, None)
        if requested is None:
            self._run_span(at)
            self._unmatched.append((at, observed))
        else:
            self._record_tool_call(at, observed, requested.tool, requested)

    def _record_tool_call(self, at: float, observed: Observed, tool: str, requested: ActionRequested | None) -> None:
        begin = min(self._started_at.pop(observed.call_id, at), at - observed.latency_s)
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": observed.call_id,
            "gen_ai.tool.type": "function",
        }
        if observed.child is not None:
            attributes["taoloop.run.child"] = observed.child
        if requested is not None and self._telemetry.content:
            attributes["gen_ai.tool.call.arguments"] = json.dumps(requested.args, ensure_ascii=False, default=str)
            attributes["gen_ai.tool.call.result"] = observed.output
        error = observed.error.code if observed.error is not None else ""
        self._add_child_span(f"execute_tool {tool}".strip(), begin, at, attributes, error=error)

    def _close(self, status: str, answer: str | None, error: str, at: float) -> None:
        span = self._run_span(at)
        span.set_attribute("taoloop.status", status)
        span.set_attribute("gen_ai.usage.input_tokens", self._usage.input_tokens)
        span.set_attribute("gen_ai.usage.output_tokens", self._usage.output_tokens)
        span.set_attribute("taoloop.cost_usd", self._cost_usd)
        if self._telemetry.content:
            span.set_attribute("gen_ai.input.messages", _message_json("user", self._task))
            if answer is not None:
                span.set_attribute("gen_ai.output.messages", _message_json("assistant", answer))
        self._end_span(span, at, error)
        self._ended = True
        figures: Attributes = {"gen_ai.operation.name": "invoke_agent", **self._model}
        if error:
            figures["error.type"] = error
        self._telemetry.seconds.record(max(0.0, at - self._began_at), figures)


_METRIC_LABELS = tuple(
    f"gen_ai.{name}" for name in ("operation.name", "provider.name", "request.model", "response.model")
)


def _parent_context(headers: Mapping[str, str]) -> Context | None:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415  # an extra, and only where it is on

    carrier = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
    return TraceContextTextMapPropagator().extract(carrier) if carrier else None


def _otlp_providers(*, traces: bool, figures: bool) -> tuple[Any, Any]:
    """Providers that export by OTLP over HTTP, in batches, from threads of their own."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415  # an extra, and heavy
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # the same
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415  # the same
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415  # the same
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  # the same
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  # the same
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  # the same
    except ImportError as error:
        raise MissingExtra(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and OpenTelemetry is not installed.",
            hint="Install the extra: pip install 'taoloop[otel]', or unset the variable.",
        ) from error
    service_name = Resource.create().attributes.get("service.name", "")
    default_name = {} if not str(service_name).startswith("unknown_service") else {"service.name": "taoloop"}
    resource = Resource.create({**default_name, "service.version": _version()})
    tracer_provider = TracerProvider(resource=resource)
    if traces:
        tracer_provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if figures else []
    return tracer_provider, MeterProvider(resource=resource, metric_readers=readers)
