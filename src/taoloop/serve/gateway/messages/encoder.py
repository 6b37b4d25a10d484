"""A run as a message of Anthropic's API, whole or as the events of a stream; and errors in the form of that API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from taoloop.core.events import Event
from taoloop.core.message import Usage
from taoloop.core.trace import Trace
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.gateway.response_ids import ResponseId
from taoloop.serve.gateway.run_answer import sse
from taoloop.serve.gateway.run_response import FinishReason, RunResponse

_STOP_REASONS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_ERROR_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def error_body(error: ApiError) -> dict[str, Any]:
    """An error in the form of Anthropic's API, with the fields `code` and `param` that ours has."""
    kind = _ERROR_KINDS.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    fields: dict[str, Any] = {"type": kind, "message": error.message, "code": error.code, "param": error.param}
    if error.effects is not None:
        fields |= {"run_id": error.run_id, "effects": error.effects}
    return {"type": "error", "error": fields}


class MessageEncoder:
    """A run as a message.

    Args:
        model: The name of the agent.
        response_id: The id, after its prefix.
        stops: The stop sequences of the request.
    """

    def __init__(self, *, model: str, response_id: ResponseId, stops: Sequence[str]) -> None:
        self._model, self._response_id, self._stops = model, response_id, stops
        self._text = ""
        self._has_started = False

    def whole(self, response: RunResponse) -> dict[str, Any]:
        """The message."""
        words = [{"type": "text", "text": response.content}] if response.content or not response.tool_calls else []
        calls = [_tool_use(call, json.loads(call["function"]["arguments"])) for call in response.tool_calls]
        return {
            **self._head(response.result.trace),
            "content": [*words, *calls],
            **self._stop(response, response.content),
            "usage": _usage_part(response.usage),
            "agent": dict(response.agent),
        }

    def piece(self, text: str) -> bytes:
        """A piece of the answer."""
        data = self._start()
        if not self._text:
            data += _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        self._text += text
        return data + _event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    def thought(self, _text: str, /) -> bytes:
        """Nothing: thinking has the signature of its model in this API."""
        return b""

    def step(self, _event: Event, /) -> bytes:
        """Nothing: this API has no events for the steps of a run."""
        return b""

    def identify(self, response: RunResponse) -> None:
        """Fix the id, unless an event has it already."""
        self._response_id.of(response.result.trace)

    def end(self, response: RunResponse) -> bytes:
        """The end of the text, the calls, why the message ends, and the tokens."""
        if response.error is not None:
            return self.error(response.error)
        data, index = self._start(), 0
        if self._text:
            data += _event("content_block_stop", index=0)
            index = 1
        for number, call in enumerate(response.tool_calls, start=index):
            arguments = {"type": "input_json_delta", "partial_json": call["function"]["arguments"]}
            data += _event("content_block_start", index=number, content_block=_tool_use(call, {}))
            data += _event("content_block_delta", index=number, delta=arguments)
            data += _event("content_block_stop", index=number)
        delta, usage = self._stop(response, self._text), _usage_part(response.usage)
        data += _event("message_delta", delta=delta, usage=usage, agent=dict(response.agent))
        return data + _event("message_stop")

    def error(self, error: ApiError) -> bytes:
        """The error that ends the stream."""
        return sse(error_body(error), event="error")

    def _start(self) -> bytes:
        if self._has_started:
            return b""
        self._has_started = True
        message = {**self._head(None), "content": [], "stop_reason": None, "stop_sequence": None}
        return _event("message_start", message={**message, "usage": _usage_part(Usage())})

    def _head(self, trace: Trace | None) -> dict[str, Any]:
        message_id = f"msg_{self._response_id.of(trace)}"
        return {"id": message_id, "type": "message", "role": "assistant", "model": self._model}

    def _stop(self, response: RunResponse, sent: str) -> dict[str, str | None]:
        """Why the message ends; `sent` is its text, which a stop sequence may have cut."""
        rest = (response.result.answer or "").removeprefix(sent)
        stop = next((stop for stop in self._stops if rest.startswith(stop)), None) if rest and sent else None
        if stop is None or response.finish_reason != "stop":
            return {"stop_reason": _STOP_REASONS[response.finish_reason], "stop_sequence": None}
        return {"stop_reason": "stop_sequence", "stop_sequence": stop}


def _tool_use(call: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments}


def _usage_part(usage: Usage) -> dict[str, int]:
    """The tokens of all calls of a run; those that a cache served are apart from the others."""
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.output_tokens,
    }


def _event(kind: str, **fields: Any) -> bytes:
    return sse({"type": kind, **fields}, event=kind)
