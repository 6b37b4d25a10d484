"""Ask for the weather in Beijing: one tool that calls a real HTTP service on this machine.

The service is a few lines of the standard library; the model is scripted. Run: python examples/weather.py
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, urlsplit

from taoloop import Agent, Result, ScriptedModel, ToolError, tool
from taoloop.tools import Tool

WEATHER = {"Beijing": {"sky": "sunny", "celsius": 21}, "北京": {"sky": "晴", "celsius": 21}}

SCRIPT = [
    '{"thought": "I need data.", "action": "get_weather", "action_input": {"city": "Beijing"}}',
    '{"thought": "The service answered.", "action": "final", "action_input": "Beijing is sunny at 21 degrees."}',
]


class WeatherService(BaseHTTPRequestHandler):
    """GET /weather?city=NAME answers with JSON, or 404 for a city that it does not know."""

    def do_GET(self) -> None:  # the name that the standard library calls
        """Answer one request."""
        city = parse_qs(urlsplit(self.path).query).get("city", [""])[0]
        known = WEATHER.get(city)
        body = json.dumps(known or {"error": f"unknown city {city}"}, ensure_ascii=False).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the standard library's name
        """Stay quiet."""


@contextmanager
def weather_service() -> Iterator[str]:
    """The service on a free port of this machine; gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), WeatherService)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def weather_tool(base_url: str) -> Tool:
    """The tool for a service at `base_url`."""

    @tool(tier="read", timeout_s=10, use_when="Somebody asks about today's weather in one city.")
    def get_weather(city: str) -> dict[str, str | int]:
        """Read today's weather of one city; no forecast.

        Args:
            city: name of the city, such as Beijing
        """
        try:
            with urllib.request.urlopen(f"{base_url}/weather?city={quote(city)}", timeout=10) as answer:  # noqa: S310  # a local address
                found: dict[str, str | int] = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise ToolError(f"The service answered {error.code}.", code="http_error", retryable=False) from error
        return found

    return get_weather


def run(script: list[str] | None = None, task: str = "What is the weather in Beijing today?") -> Result:
    """The demo against a service that lives as long as the run."""
    with weather_service() as base_url:
        agent = Agent(
            model=ScriptedModel(SCRIPT if script is None else script),
            tools=[weather_tool(base_url)],
            dialect="json",
        )
        return agent.run_sync(task)


if __name__ == "__main__":
    print(run().text)
