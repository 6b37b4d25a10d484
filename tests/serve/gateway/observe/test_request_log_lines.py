"""The lines of real requests to a gateway: what came of them, and nothing of what was said."""

from __future__ import annotations

import http.client
import json
from typing import Any

from tests.serve.gateway.conftest import Running, config_of, gateway
from tests.serve.gateway.observe.test_request_log import AT, Bench

from taoloop import Agent
from taoloop.serve.gateway.auth.keys import new_key
from taoloop.serve.gateway.observe.request_log import LogFormat

PATH = "/v1/chat/completions"
FORMS: tuple[LogFormat, ...] = ("json", "text")


def post(running: Running, body: Any, **headers: str) -> int:
    connection = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=20)
    try:
        connection.request("POST", PATH, json.dumps(body), {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def health(running: Running) -> None:
    connection = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=20)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    connection.close()


def ask(word: str, model: str = "sums") -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": word}]}


def logged(bench: Bench, *requests: tuple[Any, dict[str, str]]) -> list[dict[str, Any]]:
    """The lines of requests to a real gateway with one key."""
    secret, key = new_key("shop")
    agent = Agent(name="sums", model=[{"text": "the word xylophone", "cost_usd": 0.25}])
    with gateway(config_of(agent, keys=(key,))) as running:
        for body, headers in requests:
            post(running, body, **({"Authorization": f"Bearer {secret}"} | headers))
        health(running)
    for record in running.logged:
        bench.log.request(record)
    assert secret not in bench.text
    return bench.lines if bench.text.startswith("{") else []


def test_a_request_is_one_line_with_what_came_of_it() -> None:
    bench = Bench()
    (line,) = logged(bench, (ask("a zebra"), {"X-Request-Id": "r-1"}))
    assert line.pop("seconds") > 0
    run_id = line.pop("run_id")
    assert len(run_id) > 10
    assert line | {"tokens": 0} == {
        "time": AT,
        "level": "info",
        "event": "request",
        "request_id": "r-1",
        "method": "POST",
        "route": "/v1/chat/completions",
        "status": 200,
        "key": "shop",
        "agent": "sums",
        "run_status": "completed",
        "steps": 1,
        "tokens": 0,
        "cost_usd": 0.25,
    }


def test_a_path_that_nothing_has_is_a_line_and_counted_without_the_path() -> None:
    bench = Bench()
    with gateway(config_of(Agent(name="sums", model=["x"]))) as running:
        connection = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=20)
        for method, path in (("POST", "/chat/completions/s3cret"), ("DELETE", "/v1/models")):
            connection.request(method, path, headers={"X-Request-Id": "r-1"})
            answer = connection.getresponse()
            answer.read()
            assert answer.headers["x-request-id"] == "r-1"
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
    for record in running.logged:
        bench.log.request(record)
    assert "s3cret" not in bench.text + page
    shown = [(line["request_id"], line["route"], line["status"], line["error"]) for line in bench.lines]
    assert shown == [("r-1", "other", 404, "unknown_url"), ("r-1", "other", 405, "method_not_allowed")]
    for status in (404, 405):
        assert f'taoloop_http_requests_total{{route="other",status="{status}"}} 1.0' in page


def test_nothing_of_bodies_and_headers_is_in_a_line() -> None:
    for form in FORMS:
        bench = Bench(form)
        logged(bench, (ask("a zebra"), {"X-Custom": "giraffe"}), ({"model": "lion"}, {}), ("zebra", {}))
        for word in ("zebra", "xylophone", "giraffe", "lion"):
            assert word not in bench.text
        assert len(bench.text.splitlines()) == 3


def test_a_refused_request_is_a_warning_that_says_why() -> None:
    bench = Bench()
    unknown, refused = logged(
        bench, (ask("x"), {"Authorization": "Bearer wrong-secret"}), (ask("x", model="no-such"), {})
    )
    assert (unknown["level"], unknown["status"], unknown["error"]) == ("warning", 401, "invalid_api_key")
    assert "key" not in unknown
    assert "wrong-secret" not in bench.text
    assert (refused["status"], refused["error"], refused["key"]) == (404, "model_not_found", "shop")


def test_routes_that_machines_ask_all_day_are_no_lines() -> None:
    assert logged(Bench()) == []
