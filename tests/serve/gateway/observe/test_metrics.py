"""What Prometheus is told, and that no client can make it tell more and more."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Counter
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from taoloop import Agent, MemoryJournal
from taoloop.core.events import Event, Fact, Observed
from taoloop.core.message import Usage
from taoloop.core.trace import Trace
from taoloop.serve.gateway.observe.metrics import Metrics, RunMetrics

OWN = ("calculator", "clock")


def samples(metrics: Metrics) -> dict[str, float]:
    """Every sample as `name{label=value,…}`."""
    page, _ = metrics.expose()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(page.decode()):
        for one in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(one.labels.items()))
            found[f"{one.name}{{{labels}}}" if labels else one.name] = one.value
    return found


def run(metrics: Metrics, *script: Any, journal: Any = None, **options: Any) -> Trace:
    """A real run, heard by the metrics as the gateway would."""
    agent = Agent(model=list(script), tools=["calculator"], journal=journal or MemoryJournal(), **options)
    turn = RunMetrics(metrics, "sums", OWN)
    result = asyncio.run(agent.run("2+2?", on_event=turn.on_event))
    turn.first_token(0.2)
    turn.end(result.status, 1.5, result.trace)
    return result.trace


def call(tool: str = "calculator", **args: Any) -> dict[str, Any]:
    return {
        "tool_calls": [{"name": tool, "args": args or {"expression": "2+2"}}],
        "usage": {"input_tokens": 100, "output_tokens": 10, "cached_tokens": 60},
        "cost_usd": 0.5,
    }


ANSWER = {"text": "4", "cost_usd": 0.25, "usage": {"input_tokens": 200, "output_tokens": 20}}


def test_a_run_is_counted_with_its_steps_tools_tokens_and_cost() -> None:
    metrics = Metrics()
    trace = run(metrics, call(), call(expression="1/0"), ANSWER)
    found = samples(metrics)
    code = next(e.fact.error.code for e in trace.events if isinstance(e.fact, Observed) and e.fact.error is not None)
    model = (
        next(name for name in found if name.startswith("taoloop_model_calls_total")).split("model=")[1].split(",")[0]
    )
    assert found["taoloop_steps_total{agent=sums}"] == 3
    assert found["taoloop_tool_calls_total{outcome=ok,tool=calculator}"] == 1
    assert found[f"taoloop_tool_calls_total{{outcome={code},tool=calculator}}"] == 1
    assert found[f"taoloop_model_calls_total{{agent=sums,model={model},outcome=ok}}"] == 3
    assert found[f"taoloop_tokens_total{{agent=sums,model={model},type=input}}"] == 400
    assert found[f"taoloop_tokens_total{{agent=sums,model={model},type=output}}"] == 40
    assert found[f"taoloop_tokens_total{{agent=sums,model={model},type=cached}}"] == 120
    assert found[f"taoloop_cost_usd_total{{agent=sums,model={model}}}"] == 1.25
    assert found["taoloop_run_seconds_count{agent=sums,status=completed}"] == 1
    assert found["taoloop_run_seconds_sum{agent=sums,status=completed}"] == 1.5
    assert found["taoloop_first_token_seconds_sum{agent=sums}"] == 0.2
    assert found["taoloop_runs_under_way"] == 0


def test_a_run_under_way_is_told() -> None:
    metrics = Metrics()
    turn = RunMetrics(metrics, "sums", OWN)
    assert samples(metrics)["taoloop_runs_under_way"] == 1
    turn.end("stopped", 0.1)
    assert samples(metrics)["taoloop_runs_under_way"] == 0


def test_a_price_that_nobody_knows_is_counted_apart() -> None:
    metrics = Metrics()
    run(metrics, ANSWER | {"cost_usd": None})
    found = samples(metrics)
    assert [value for name, value in found.items() if name.startswith("taoloop_unpriced_calls_total")] == [1]
    assert not [name for name in found if name.startswith("taoloop_cost_usd_total")]


def test_a_call_that_an_earlier_turn_asked_for_keeps_the_name_of_its_tool() -> None:
    metrics, trace = Metrics(), run(Metrics(), call(), ANSWER)
    turn = RunMetrics(metrics, "sums", OWN)
    for event in trace.events:
        if isinstance(event.fact, Observed):
            turn.on_event(event)
    turn.end("completed", 1.0, trace)
    assert samples(metrics)["taoloop_tool_calls_total{outcome=ok,tool=calculator}"] == 1


def test_what_runs_inside_a_run_counts_for_it() -> None:
    metrics = Metrics()
    turn = RunMetrics(metrics, "sums", OWN)
    fact: Fact = Observed(call_id="call_1", ok=True, output="", child="r.1", usage=Usage(input_tokens=7), cost_usd=0.5)
    turn.on_event(Event(0, 0.0, fact))
    turn.end("completed", 1.0)
    found = samples(metrics)
    assert found["taoloop_tokens_total{agent=sums,model=inside,type=input}"] == 7
    assert found["taoloop_cost_usd_total{agent=sums,model=inside}"] == 0.5


def test_requests_refusals_and_reloads_are_counted() -> None:
    metrics = Metrics()
    metrics.request("/v1/chat/completions", 200, 0.3)
    metrics.request("/v1/chat/completions", 429, 0.001)
    metrics.refused("budget")
    metrics.reloaded(ok=True)
    metrics.reloaded(ok=False)
    found = samples(metrics)
    assert found["taoloop_http_requests_total{route=/v1/chat/completions,status=200}"] == 1
    assert found["taoloop_http_requests_total{route=/v1/chat/completions,status=429}"] == 1
    assert found["taoloop_http_request_seconds_count{route=/v1/chat/completions}"] == 2
    assert found["taoloop_refusals_total{kind=budget}"] == 1
    assert found["taoloop_refusals_total{kind=runs}"] == 0
    assert found["taoloop_reloads_total{outcome=ok}"] == 1
    assert found["taoloop_reloads_total{outcome=failed}"] == 1
    assert found["process_open_fds"] > 0


def test_no_name_from_outside_makes_more_and_more_series() -> None:
    metrics = Metrics()
    run(metrics, call(), ANSWER)
    for number in range(200):
        metrics.request(f"/v1/{number}", 200 + number * 10, 0.1)
        if number % 4 == 0:
            run(metrics, call(f"made_up_{number}"), ANSWER, repair_turns=0)
        turn = RunMetrics(metrics, f"agent {number}", OWN, model=f"model {number}")
        turn.end("completed", 0.1)
    metrics.request("/v1/one-too-many", 200, 0.1)
    before = len(samples(metrics))
    for number in range(200, 300):
        metrics.request(f"/v1/{number}", 200, 0.1)
        if number % 4 == 0:
            run(metrics, call(f"made_up_{number}"), ANSWER, repair_turns=0)
    names = samples(metrics)
    assert len(names) == before
    assert not [name for name in names if "made_up" in name]
    assert [name for name in names if "tool=other" in name]


def test_two_gateways_in_one_process_share_nothing() -> None:
    one, other = Metrics(), Metrics()
    one.request("/healthz", 200, 0.1)
    assert not [name for name in samples(other) if "healthz" in name]


def test_the_page_comes_as_prometheus_asks_for_it() -> None:
    metrics = Metrics()
    page, content_type = metrics.expose()
    assert content_type.startswith("text/plain")
    assert b"taoloop_build_info" in page
    page, content_type = metrics.expose("application/openmetrics-text;version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert page.endswith(b"# EOF\n")


@pytest.mark.parametrize("page", ["gateway-operation.md", "gateway-operation.zh.md"])
def test_every_metric_stands_in_the_page_with_its_labels(page: str) -> None:
    text = (Path(__file__).resolve().parents[4] / "docs" / page).read_text(encoding="utf-8")
    told = {found[1]: found[2] for found in re.finditer(r"^\| `(taoloop_\w+)` \|([^|]*)\|", text, re.MULTILINE)}
    known: dict[str, list[str]] = {}
    for one in vars(Metrics().registry)["_collector_to_names"]:
        if isinstance(one, MetricWrapperBase):
            total = "_total" if isinstance(one, Counter) else ""
            known[f"{vars(one)['_name']}{total}"] = list(vars(one)["_labelnames"])
    assert {name: re.findall(r"`(\w+)`", labels) for name, labels in told.items()} == known


_BARE = """
import sys
sys.modules["prometheus_client"] = None  # as where the extra is not installed
from taoloop.errors import MissingExtra
from taoloop.serve.gateway.observe.metrics import Metrics
try:
    Metrics()
except MissingExtra as error:
    print(error)
"""


def test_what_is_not_installed_is_told_with_its_extra() -> None:
    done = subprocess.run([sys.executable, "-c", _BARE], capture_output=True, encoding="utf-8", check=True, timeout=60)
    assert "prometheus-client" in done.stdout
    assert "pip install 'taoloop[serve]'" in done.stdout
