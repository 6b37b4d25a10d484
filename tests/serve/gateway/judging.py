"""Judges everything that a gateway of the tests answers, as it goes out, by OpenAI's document and by our own.

Hangs on the signal that aiohttp gives when a response begins; what is found is told when the gateway of the test ends.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
from aiohttp import web
from tests.serve.gateway.protocol_judging import OTHER_FORMS, PROTOCOL_STREAMS, ProtocolStream

from taoloop.serve.gateway.app import openapi_document

_DOCUMENT = Path(__file__).parents[2] / "data" / "openai" / "schemas.json"
_EVENT_STREAM = "text/event-stream"
_LAST = ("response.completed", "response.incomplete", "response.failed", "error")


@cache
def openai_schema(name: str) -> jsonschema_rs.Validator:
    """A schema of OpenAI's document."""
    known = json.loads(_DOCUMENT.read_text(encoding="utf-8"))["components"]
    return jsonschema_rs.validator_for({"$ref": f"#/components/schemas/{name}", "components": known})


@cache
def _event_names() -> dict[str, str]:
    """The schema of each kind of event of a response, by its `type`."""
    known = json.loads(_DOCUMENT.read_text(encoding="utf-8"))["components"]["schemas"]
    named = [one["$ref"].rsplit("/", 1)[1] for one in known["ResponseStreamEvent"]["anyOf"]]
    return {known[name]["properties"]["type"]["enum"][0]: name for name in named}


@cache
def own_schema(path: str, method: str, status: str, kind: str) -> jsonschema_rs.Validator | None:
    """What our own document says of an answer."""
    said = openapi_document()["paths"][path][method.lower()]["responses"]
    content = said.get(status, said["default"])["content"]
    if kind not in content:
        return None
    return jsonschema_rs.validator_for({**content[kind]["schema"], "components": openapi_document()["components"]})


class Judge:
    """What is wrong with the answers of one gateway; `judged` counts those that were looked at."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.judged = 0

    def attach(self, app: web.Application) -> None:
        """Judge all that this application answers."""
        app.on_response_prepare.append(self._begins)

    async def _begins(self, request: web.Request, response: web.StreamResponse) -> None:
        route = request.match_info.route.resource
        path = route.canonical if route is not None else request.path
        if path == "/panel" or path.startswith("/panel/"):  # pages for people
            return
        self.judged += 1
        if request.method == "OPTIONS" and response.status == 200:  # what a browser asks ahead: headers alone
            return
        if response.status < 400 and path not in openapi_document()["paths"]:
            self.wrong.append(f"{path}: not in /openapi.json")
        elif isinstance(response, web.Response):
            body = response.body
            self._whole(request.method, path, response, body if isinstance(body, bytes) else b"")
        elif response.content_type == _EVENT_STREAM and path in PROTOCOL_STREAMS:
            ProtocolStream(self.wrong, path, response)
        elif response.content_type == _EVENT_STREAM:
            _Stream(self, path, response)
        else:
            self.wrong.append(f"{path}: streams {response.content_type}")

    def _whole(self, method: str, path: str, response: web.Response, body: bytes) -> None:
        if response.content_type == "text/plain" and path == "/metrics":
            return
        if path.startswith("/oauth/") and (response.content_type == "text/html" or not body):
            return  # for browsers
        try:
            value = json.loads(body.decode("utf-8"), parse_constant=_no_number)
        except ValueError as error:
            self.wrong.append(f"{path}: {response.status} is no JSON ({error}): {body[:200]!r}")
            return
        if response.status == 429 and "Retry-After" not in response.headers:
            self.wrong.append(f"{path}: 429 without Retry-After")
        own = None
        if path in openapi_document()["paths"] and method.lower() in openapi_document()["paths"][path]:
            own = own_schema(path, method, str(response.status), response.content_type)
        names = {
            "/v1/chat/completions": "CreateChatCompletionResponse",
            "/v1/responses": "Response",
            "/v1/models": "ListModelsResponse",
            "/v1/models/{model}": "Model",
        }
        if response.status >= 400 and path != "/readyz" and not path.startswith(OTHER_FORMS):
            self.check(path, openai_schema("ErrorResponse"), value)
        elif path in names:
            self.check(path, openai_schema(names[path]), value)
        self.check(f"{path} by our own document", own, value)

    def check(self, where: str, schema: jsonschema_rs.Validator | None, value: Any) -> None:
        """Hold a value against a schema."""
        for error in schema.iter_errors(value) if schema is not None else ():
            place = ".".join(str(part) for part in error.instance_path)
            self.wrong.append(f"{where}: {place}: {error.message[:300]} in {json.dumps(value)[:600]}")


class _Stream:
    """One stream of events, judged line by line as it is written."""

    def __init__(self, judge: Judge, path: str, response: web.StreamResponse) -> None:
        self._judge, self._path = judge, path
        self._rest, self._values = b"", list[Any]()
        self._is_over = self._is_judged = False
        self._write, self._end = response.write, response.write_eof
        response.write = self._written  # type: ignore[method-assign, assignment]  # the one way to see a stream whole
        response.write_eof = self._ended  # type: ignore[method-assign]

    async def _written(self, data: bytes) -> None:
        *events, self._rest = (self._rest + data).split(b"\n\n")
        for event in events:
            self._event(event.decode("utf-8"))
        await self._write(data)

    async def _ended(self, data: bytes = b"") -> None:
        if self._is_judged:  # aiohttp ends a response once more when its handler returns
            await self._end(data)
            return
        self._is_judged = True
        if self._rest or data:
            self._wrong(f"ends in the middle of an event: {self._rest!r}")
        if self._path == "/v1/chat/completions":
            self._chat()
        else:
            self._response()
        await self._end(data)

    def _event(self, text: str) -> None:
        if text.startswith(":") and "\n" not in text:
            return
        if self._is_over:
            self._wrong(f"goes on after its end: {text!r}")
        *head, line = text.split("\n")
        if not line.startswith("data: ") or (self._path == "/v1/chat/completions" and head):
            self._wrong(f"no event: {text!r}")
        elif line == "data: [DONE]":
            self._is_over = True
        else:
            self._value(json.loads(line[6:], parse_constant=_no_number), head)

    def _value(self, value: dict[str, Any], head: list[str]) -> None:
        self._values.append(value)
        if "error" in value and "choices" not in value and "type" not in value:
            self._judge.check(self._path, openai_schema("ErrorResponse"), value)
            return
        if self._path == "/v1/chat/completions":
            name = "CreateChatCompletionStreamResponse"
        else:
            name = _event_names()[value["type"]]
            if head != [f"event: {value['type']}"] or value["sequence_number"] != len(self._values) - 1:
                self._wrong(f"{head} {value}")
            self._is_over = value["type"] in _LAST
        self._judge.check(self._path, openai_schema(name), value)
        self._judge.check(
            f"{self._path} by our own document", own_schema(self._path, "post", "200", _EVENT_STREAM), value
        )

    def _chat(self) -> None:
        if not self._is_over:
            self._wrong("does not end with [DONE]")
        *before, last = self._values or [{}]
        if "error" in last:
            self._values = before
        choices = [one for value in self._values for one in value["choices"]]
        if len({(value["id"], value["created"], value["model"]) for value in self._values}) > 1:
            self._wrong("changes its head")
        if any("role" in one["delta"] for one in choices[1:]) or (choices and "role" not in choices[0]["delta"]):
            self._wrong("names its role elsewhere than at the beginning")
        ends = [number for number, one in enumerate(choices) if one["finish_reason"] is not None]
        if "error" not in last and ends != [len(choices) - 1]:
            self._wrong(f"has its finish reason at {ends} of {len(choices)}")
        with_usage = [number for number, value in enumerate(self._values) if value.get("usage") is not None]
        if with_usage not in ([], [len(self._values) - 1]) or (with_usage and self._values[-1]["choices"]):
            self._wrong("has its usage elsewhere than at the end")

    def _response(self) -> None:
        if not self._is_over:
            self._wrong("has no last event")
        kinds = [value["type"] for value in self._values]
        added = [value["item"] for value in self._values if value["type"] == "response.output_item.added"]
        done = [value["item"] for value in self._values if value["type"] == "response.output_item.done"]
        texts, deltas = [one["type"] == "message" for one in added], kinds.count("response.output_text.delta")
        if kinds[:2] != ["response.created", "response.in_progress"] or any(texts[1:]) or (deltas and not any(texts)):
            self._wrong(f"has its events in another order: {kinds}")
        pieces = "".join(value["delta"] for value in self._values if value["type"] == "response.output_text.delta")
        if kinds[-1] in ("response.completed", "response.incomplete"):
            items = self._values[-1]["response"]["output"]
            if not items or items != done or [one["id"] for one in items] != [one["id"] for one in added]:
                self._wrong(f"ends with other items than it sent: {items}")
            if "".join(one["content"][0]["text"] for one in items if one["type"] == "message") != pieces:
                self._wrong("ends with another text than it sent")
            written = [value["delta"] for value in self._values if value["type"].endswith("arguments.delta")]
            if [one["arguments"] for one in items if one["type"] == "function_call"] != written:
                self._wrong("ends with other calls than it sent")

    def _wrong(self, text: str) -> None:
        self._judge.wrong.append(f"{self._path}: the stream {text}")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
