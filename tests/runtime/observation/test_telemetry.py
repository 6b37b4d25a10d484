"""Runs as OpenTelemetry spans and figures, by the conventions for generative AI."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics

from taoloop import Agent, MemoryJournal, instrument, tool
from taoloop.core.events import ActionRequested, Observed
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError
from taoloop.runtime.observation import telemetry as telemetry_module
from taoloop.runtime.observation.telemetry import RunSpans, Telemetry, model_attributes

PARENT = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
SCRIPT: list[Any] = [
    {
        "tool_calls": [{"name": "calculator", "args": {"expression": "17+25"}}],
        "usage": {"input_tokens": 100, "output_tokens": 10, "cached_tokens": 60},
        "cost_usd": 0.5,
    },
    {"tool_calls": [{"name": "calculator", "args": {"expression": "1/0"}}]},
    {"text": "It is 42.", "usage": {"input_tokens": 200, "output_tokens": 20}, "cost_usd": 0.25},
]


class Bench:
    """Telemetry that stays in memory."""

    def __init__(self, *, content: bool = False) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracer_provider = TracerProvider(shutdown_on_exit=False)
        tracer_provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        meter_provider = MeterProvider(metric_readers=[self.reader], shutdown_on_exit=False)
        self.telemetry = Telemetry(tracer_provider, meter_provider, content=content)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        return next(span for span in self.spans if span.name.startswith(name))

    @property
    def figures(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        assert data is not None
        metrics = [one for r in data.resource_metrics for scope in r.scope_metrics for one in scope.metrics]
        return {one.name: list(one.data.data_points) for one in metrics}

    def run(self, *script: Any, headers: dict[str, str] | None = None, task: str = "17+25?", **options: Any) -> Result:
        agent = Agent(model=list(script), tools=["calculator"], journal=MemoryJournal(), **options)
        spans = RunSpans(self.telemetry, "sums", run_id="r1", headers=headers)
        result = asyncio.run(agent.run(task, on_event=spans.on_event))
        spans.end(result.status, result.trace)
        return result


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_run_is_a_span_with_one_for_each_call_of_a_model_or_a_tool() -> None:
    bench = Bench()
    bench.run(*SCRIPT)
    top = bench.span("invoke_agent sums")
    names = [span.name.split()[0] for span in bench.spans]
    assert names == ["chat", "execute_tool", "chat", "execute_tool", "chat", "invoke_agent"]
    for span in bench.spans:
        assert span.context is not None
        assert top.context is not None
        assert span.context.trace_id == top.context.trace_id
        if span is not top:
            assert span.parent is not None
            assert span.parent.span_id == top.context.span_id
            assert (top.start_time or 0) <= (span.end_time or 0) <= (top.end_time or 0)
    said = attributes(top)
    assert said["gen_ai.operation.name"] == "invoke_agent"
    assert said["gen_ai.agent.name"] == "sums"
    assert said["gen_ai.usage.input_tokens"] == 300
    assert said["gen_ai.usage.output_tokens"] == 30
    assert said["taoloop.cost_usd"] == 0.75
    assert (said["taoloop.run.id"], said["taoloop.status"]) == ("r1", "completed")


def test_calls_say_what_the_conventions_ask_for() -> None:
    bench = Bench()
    bench.run(*SCRIPT)
    chat, tool = attributes(bench.span("chat")), attributes(bench.span("execute_tool calculator"))
    assert chat["gen_ai.operation.name"] == "chat"
    assert chat["gen_ai.provider.name"] == "scripted"
    assert chat["gen_ai.usage.input_tokens"] == 100
    assert chat["gen_ai.usage.cache_read.input_tokens"] == 60
    assert bench.span("chat").kind.name == "CLIENT"
    assert tool["gen_ai.operation.name"] == "execute_tool"
    assert tool["gen_ai.tool.name"] == "calculator"
    assert tool["gen_ai.tool.call.id"] == "call_1"
    failed = [span for span in bench.spans if span.name.startswith("execute_tool") and not span.status.is_ok]
    assert len(failed) == 1
    assert attributes(failed[0])["error.type"]


def test_every_name_is_one_of_the_conventions_or_ours() -> None:
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    bench = Bench(content=True)
    bench.run(*SCRIPT)
    used = {name for span in bench.spans for name in attributes(span)}
    assert {name for name in used if name.startswith("gen_ai.")} <= known
    assert {name for name in used if not name.startswith(("gen_ai.", "taoloop."))} == {"error.type"}
    assert set(bench.figures) == {
        gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE,
        gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION,
    }
    operations = {one.value for one in gen_ai_attributes.GenAiOperationNameValues}
    assert {attributes(span)["gen_ai.operation.name"] for span in bench.spans} <= operations


def test_providers_are_called_as_the_conventions_call_them() -> None:
    known = {one.value for one in gen_ai_attributes.GenAiProviderNameValues}
    specs = ("openai", "anthropic", "azure", "deepseek", "groq", "mistral", "xai", "gemini")
    assert {model_attributes(f"{name}:m")["gen_ai.provider.name"] for name in specs} <= known
    assert model_attributes("openai:ft:x") == {"gen_ai.provider.name": "openai", "gen_ai.request.model": "ft:x"}
    assert model_attributes("offline") == {"gen_ai.provider.name": "offline", "gen_ai.request.model": "offline"}
    assert model_attributes("") == {}


def test_tokens_and_seconds_are_measured() -> None:
    bench = Bench()
    bench.run(*SCRIPT)
    tokens = {point.attributes["gen_ai.token.type"]: point for point in bench.figures["gen_ai.client.token.usage"]}
    assert (tokens["input"].sum, tokens["output"].sum, tokens["input"].count) == (300, 30, 3)
    assert tuple(tokens["input"].explicit_bounds[:4]) == (1, 4, 16, 64)
    durations = bench.figures["gen_ai.client.operation.duration"]
    counts = {point.attributes["gen_ai.operation.name"]: point.count for point in durations}
    assert counts == {"chat": 3, "invoke_agent": 1}


def test_no_word_of_task_answer_or_tool_leaves_unless_it_is_asked_for() -> None:
    bench = Bench()
    bench.run(*SCRIPT, task="the word xylophone")
    said = " ".join(str(attributes(span)) for span in bench.spans)
    for word in ("xylophone", "17+25", "42"):
        assert word not in said
    open_bench = Bench(content=True)
    open_bench.run(*SCRIPT, task="the word xylophone")
    said = " ".join(str(attributes(span)) for span in open_bench.spans)
    for word in ("xylophone", "17+25", "It is 42."):
        assert word in said
    assert attributes(open_bench.span("execute_tool"))["gen_ai.tool.call.result"].endswith("42")


def test_a_span_of_the_client_is_the_parent() -> None:
    bench = Bench()
    bench.run(*SCRIPT, headers=PARENT)
    top = bench.span("invoke_agent")
    assert top.parent is not None
    assert f"{top.parent.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{top.parent.span_id:016x}" == "b7ad6b7169203331"


def test_a_broken_parent_is_no_parent() -> None:
    bench = Bench()
    bench.run(*SCRIPT, headers={"traceparent": "00-nonsense"})
    assert bench.span("invoke_agent").parent is None


def test_a_run_that_failed_is_a_failed_span() -> None:
    bench = Bench()
    result = bench.run({"tool_calls": [{"name": "calculator", "args": {"expression": "1"}}]})  # the script ends here
    assert result.status == "model_failed"
    top = bench.span("invoke_agent")
    assert not top.status.is_ok
    assert attributes(top)["error.type"]
    assert attributes(top)["taoloop.status"] == "model_failed"


def test_a_turn_that_no_event_ended_is_ended_by_hand_and_only_once() -> None:
    bench = Bench()
    spans = RunSpans(bench.telemetry, "sums")
    spans.end("failed")
    spans.end("failed")
    (top,) = bench.spans
    assert attributes(top)["error.type"] == "failed"


def test_a_call_that_an_earlier_turn_asked_for_has_the_name_of_its_tool() -> None:
    trace = Bench().run(*SCRIPT).trace
    bench = Bench()
    spans = RunSpans(bench.telemetry, "sums", model="openai:gpt-4o-mini")
    for event in trace.events:
        if isinstance(event.fact, Observed):
            spans.on_event(event)
    spans.end("completed", trace)
    assert len([span for span in bench.spans if span.name == "execute_tool calculator"]) == 2
    assert attributes(bench.span("invoke_agent"))["gen_ai.request.model"] == "gpt-4o-mini"
    assert any(isinstance(event.fact, ActionRequested) for event in trace.events)


@contextmanager
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A collector of OpenTelemetry over HTTP; its address, and what was sent to it."""
    taken: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_endpoint_in_the_environment_is_sent_spans_and_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as (url, taken):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
        telemetry = Telemetry.from_env()
        assert telemetry is not None
        turn = RunSpans(telemetry, "sums", headers=PARENT)
        turn.end("completed")
        telemetry.close()
        telemetry.close()
    bodies = dict(taken)
    assert set(bodies) == {"/v1/traces", "/v1/metrics"}
    traces = ExportTraceServiceRequest.FromString(bodies["/v1/traces"]).resource_spans[0]
    assert [span.name for span in traces.scope_spans[0].spans] == ["invoke_agent sums"]
    resource = {one.key: one.value.string_value for one in traces.resource.attributes}
    assert resource["service.name"] == "taoloop"
    assert resource["deployment.environment"] == "test"
    figures = ExportMetricsServiceRequest.FromString(bodies["/v1/metrics"]).resource_metrics[0]
    assert [one.name for one in figures.scope_metrics[0].metrics] == ["gen_ai.client.operation.duration"]


def test_without_an_endpoint_it_is_off() -> None:
    assert Telemetry.from_env({}) is None
    assert Telemetry.from_env({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}) is None
    assert Telemetry.from_env({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}) is None


def test_another_protocol_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match="OTEL_EXPORTER_OTLP_PROTOCOL has the protocol 'grpc'"):
        Telemetry.from_env({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})


_BARE = """
import sys
sys.modules["opentelemetry.sdk"] = None  # as where the extra is not installed
from taoloop.errors import MissingExtra
from taoloop.runtime.observation.telemetry import Telemetry
assert Telemetry.from_env({}) is None
try:
    Telemetry.from_env({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
except MissingExtra as error:
    print(error)
print([name for name in sys.modules if name.startswith(("opentelemetry.trace", "prometheus"))])
"""


def test_it_names_the_extra_where_it_is_not_installed_and_loads_nothing_before() -> None:
    done = subprocess.run([sys.executable, "-c", _BARE], capture_output=True, encoding="utf-8", check=True, timeout=60)
    told, loaded = done.stdout.splitlines()
    assert "pip install 'taoloop[otel]'" in told
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in told
    assert "prometheus" not in loaded


# From the library


def nested_agent(bench: Bench, **options: Any) -> Agent:
    """An agent that asks another one."""
    script: list[Any] = [{"tool_calls": [{"name": "adder", "args": {"task": "17+25?"}}]}, {"text": "42"}]
    inner = Agent(name="adder", model=list(SCRIPT), tools=["calculator"])
    tools = [inner.as_tool(purpose="Adds numbers.", tier="read")]
    return Agent(name="outer", model=script, tools=tools, telemetry=bench.telemetry, **options)


def test_an_agent_exports_its_runs_and_those_inside_them_below_the_current_span() -> None:
    bench = Bench()
    tracer = bench.telemetry.tracer
    with tracer.start_as_current_span("request") as request:
        result = nested_agent(bench).run_sync("Add.")
    assert result.status == "completed"
    outer, inner = bench.span("invoke_agent outer"), bench.span("invoke_agent adder")
    assert outer.parent is not None
    assert outer.parent.span_id == request.get_span_context().span_id
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id
    assert attributes(outer)["taoloop.run.id"] == result.run_id
    assert attributes(outer)["taoloop.status"] == "completed"


def test_a_span_of_a_tool_is_below_that_of_the_run() -> None:
    bench = Bench()

    @tool(tier="read")
    def look_up() -> str:
        """Look up."""
        with bench.telemetry.tracer.start_as_current_span("query"):
            return "3"

    script: list[Any] = [{"tool_calls": [{"name": "look_up", "args": {}}]}, {"text": "3"}]
    Agent(model=script, tools=[look_up], telemetry=bench.telemetry).run_sync("Look.")
    query, run = bench.span("query"), bench.span("invoke_agent")
    assert query.parent is not None
    assert run.context is not None
    assert query.parent.span_id == run.context.span_id


def test_a_run_that_waits_and_its_resume_are_two_spans() -> None:
    bench = Bench()

    @tool
    def pay() -> str:
        """Pay."""
        return "paid"

    script: list[Any] = [{"tool_calls": [{"name": "pay", "args": {}}]}, {"text": "Paid."}]
    agent = Agent(model=script, tools=[pay], journal=MemoryJournal(), telemetry=bench.telemetry)
    waiting = agent.run_sync("Pay.")
    asyncio.run(_resume_approved(agent, waiting.run_id))
    first, second = [span for span in bench.spans if span.name.startswith("invoke_agent")]
    assert [attributes(span)["taoloop.status"] for span in (first, second)] == ["waiting", "completed"]
    assert attributes(first)["taoloop.run.id"] == attributes(second)["taoloop.run.id"]


async def _resume_approved(agent: Agent, run_id: str) -> None:
    result = await agent.resume(run_id, approved_tiers=("destructive", "write"))
    assert result.status == "completed"


def test_a_run_that_is_cancelled_ends_its_span() -> None:
    bench = Bench()

    @tool(tier="read")
    async def wait() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return ""

    script: list[Any] = [{"tool_calls": [{"name": "wait", "args": {}}]}]
    agent = Agent(model=script, tools=[wait], telemetry=bench.telemetry)

    async def cancel() -> None:
        requested = asyncio.Event()
        running = asyncio.create_task(
            agent.run("Wait.", on_event=lambda event: requested.set() if event.kind == "action_requested" else None)
        )
        await requested.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancel())
    assert attributes(bench.span("invoke_agent"))["taoloop.status"] == "stopped"


@pytest.fixture
def no_instrumentation() -> Iterator[None]:
    """What a test instruments is not instrumented after it."""
    yield
    telemetry_module._process_telemetry = None


@pytest.mark.usefixtures("no_instrumentation")
def test_instrument_serves_every_agent_that_has_no_telemetry_of_its_own() -> None:
    bench, own = Bench(), Bench()
    assert instrument(bench.telemetry) is bench.telemetry
    Agent(name="first", model=[{"text": "1"}]).run_sync("One.")
    Agent(name="second", model=[{"text": "2"}], telemetry=False).run_sync("Two.")
    Agent(name="third", model=[{"text": "3"}], telemetry=own.telemetry).run_sync("Three.")
    assert [span.name for span in bench.spans if "invoke" in span.name] == ["invoke_agent first"]
    assert [span.name for span in own.spans if "invoke" in span.name] == ["invoke_agent third"]


@pytest.mark.usefixtures("no_instrumentation")
def test_without_providers_of_the_process_nothing_is_exported_and_nothing_fails() -> None:
    telemetry = instrument()
    assert not telemetry.content
    assert Agent(model=[{"text": "1"}]).run_sync("One.").status == "completed"
    assert Agent(model=[{"text": "1"}], telemetry=True).run_sync("One.").status == "completed"


def test_what_is_no_telemetry_is_refused_before_the_run() -> None:
    agent = Agent(model=[{"text": "1"}], journal=MemoryJournal(), telemetry="yes")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="telemetry is 'yes'"):
        agent.run_sync("One.")
    with pytest.raises(ConfigError, match="`telemetry` and `content`"):
        instrument(Bench().telemetry, content=True)
