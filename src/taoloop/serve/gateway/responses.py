"""`POST /v1/responses`: one request, one run, one response; the next request may continue from it by its id."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from aiohttp import web

from taoloop.core.events import Event
from taoloop.core.message import Message, Usage
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.serve.gateway.chat_approval import parse_approval_reply
from taoloop.serve.gateway.client_tools import client_call_id, open_client_calls, parse_call_id
from taoloop.serve.gateway.errors import ApiError, invalid, invalid_field
from taoloop.serve.gateway.repeats.matching import entered_request, match_request
from taoloop.serve.gateway.request_context import RequestContext
from taoloop.serve.gateway.request_schema import ChatMessage, ResponsesRequest, call_message, read_responses
from taoloop.serve.gateway.response_ids import ResponseId, parse_response_id, run_of
from taoloop.serve.gateway.run_answer import answer_request, sse
from taoloop.serve.gateway.run_request import RunRequest, new_run_request
from taoloop.serve.gateway.run_response import FinishReason, RunResponse
from taoloop.serve.gateway.run_service import Service

_TEXT_ITEM, _CALL_ITEM = "msg_", "fc_"
"""Prefixes of the ids of items: before the run id for a text, before the call id for a call."""

_INCOMPLETE_REASONS: dict[FinishReason, str] = {"length": "max_output_tokens", "content_filter": "content_filter"}


async def responses(context: RequestContext) -> web.StreamResponse:
    """Answer a request for a response.

    Raises:
        ApiError: the request is invalid, or its run has no answer.
    """
    body = await context.read_body()
    request = read_responses(body)
    served = context.find_agent(request.model)
    referenced = await load_referenced_items(context.service, context.owner, request.references)
    run_request = new_run_request(request, request.messages(referenced), served, context.key)
    if run_request.fallback is not None:
        run_request = await _resume_with_results(context.service, request, run_request)
    elif request.previous_response_id is not None:
        run_request = await _continue_response(context, request.previous_response_id, run_request)
    context.report_ignored_fields(request.ignored)
    run_request = await match_request(context, run_request, body)
    before = await context.service.load_run_before(run_request)
    with context.admit_run(run_request, before) as run_id, entered_request(context, run_request, run_id):
        encoder = ResponseEncoder(request, response_id=ResponseId(run_id, before, separator="_"), model=served.name)
        return await answer_request(context, run_request, run_id, encoder, stream=bool(request.stream))


async def _resume_with_results(service: Service, request: ResponsesRequest, run_request: RunRequest) -> RunRequest:
    """The request with results of the client's tools."""
    trace = await service.load_owned_run(run_request.owner, run_request.run or "")
    fallback = run_request.fallback
    if fallback is not None and request.previous_response_id is not None and trace.started is not None:
        before = (*trace.started.history, Message(role="user", content=trace.task))  # the input has only the results
        run_request = replace(run_request, fallback=replace(fallback, history=(*before, *fallback.history)))
    return await service.resolve_request(run_request)


async def _continue_response(context: RequestContext, response_id: str, run_request: RunRequest) -> RunRequest:
    """The request after the earlier response, or with the answer that its run waits for."""
    if run_request.history:
        message = "With `previous_response_id` it must be only the new message; the server has the others."
        raise invalid_field("input", message)
    earlier, turn = parse_response_id(response_id)
    try:
        trace = await context.service.load_owned_run(run_request.owner, earlier)
    except ApiError as error:
        raise replace(error, param="previous_response_id") from None
    if trace.paused is None:
        return replace(run_request, after=earlier)
    if open_client_calls(trace):
        message = "That run waits for results of its client's tools: give a `function_call_output` for each call."
        raise invalid(message, "previous_response_id", "waits_for_tools")
    approval = replace(parse_approval_reply(run_request.task), turn=turn)
    return replace(run_request, run=earlier, approval=approval)


async def load_referenced_items(
    service: Service, owner: str, references: Sequence[tuple[int, str]]
) -> dict[int, ChatMessage]:
    """The referenced items as messages of a chat, by their index in the input.

    Raises:
        ApiError: one of them is not of this client; names its field.
    """
    messages: dict[int, ChatMessage] = {}
    traces: dict[str, Trace] = {}  # the last one: the items of a run are in sequence, and a trace may be long
    for index, item in references:
        message = None
        if (ids := _parse_item_id(item)) is not None:
            run_id, call_id = ids
            with suppress(ApiError):
                if run_id not in traces:
                    traces = {run_id: await service.load_owned_run(owner, run_id)}
                message = _item_message(traces[run_id], call_id)
        if message is None:
            raise invalid_field(f"input[{index}].id", f"There is no item {item[:80]!r} of this client.")
        messages[index] = message
    return messages


def _parse_item_id(item: str) -> tuple[str, str | None] | None:
    """The run of an item, and its call (None: its answer); None if it is not an id of this server."""
    if item.startswith(_TEXT_ITEM):
        return run_of(item), None
    return parse_call_id(item.removeprefix(_CALL_ITEM)) if item.startswith(_CALL_ITEM) else None


def _item_message(trace: Trace, call_id: str | None) -> ChatMessage | None:
    if call_id is None:
        return ChatMessage(role="assistant", content=Result.of(trace).answer or "")
    if (call := trace.calls.get(call_id)) is None:
        return None
    arguments = json.dumps(call.requested.args, ensure_ascii=False)
    return call_message(client_call_id(trace.run_id, call_id), call.requested.tool, arguments)


class ResponseEncoder:
    """A run as a response, whole or as the events of a stream.

    The ids of the response and of its text are the run's with its turn, so that the next request continues there.
    """

    def __init__(self, request: ResponsesRequest, *, response_id: ResponseId, model: str) -> None:
        self._request, self._created, self._model = request, int(time.time()), model
        self._response_id = response_id
        self._number = 0
        self._pieces: list[str] = []

    def whole(self, response: RunResponse) -> dict[str, Any]:
        """The response object."""
        self.identify(response)
        return self._body(_status(response), response, response.content)

    def piece(self, text: str) -> bytes:
        """A piece of the answer."""
        head = b"" if self._pieces else self._start() + self._open_item()
        self._pieces.append(text)
        return head + self._text_event("response.output_text.delta", delta=text, logprobs=[])

    def thought(self, _text: str, /) -> bytes:
        """Nothing: this API has no field for it."""
        return b""

    def step(self, _event: Event, /) -> bytes:
        """Nothing: this API has no events for the steps of a run."""
        return b""

    def identify(self, response: RunResponse) -> None:
        """Fix the ids, unless an event has them already."""
        self._response_id.of(response.result.trace)

    def end(self, response: RunResponse) -> bytes:
        """The end of the text, the calls, and the response object."""
        text, status = "".join(self._pieces), _status(response)
        data = b"" if self._pieces else self._start()
        if response.error is not None:
            return data + self._event("response.failed", response=self._body(status, response, None))
        if text or not response.tool_calls:
            data += b"" if self._pieces else self._open_item()
            data += self._text_event("response.output_text.done", text=text, logprobs=[])
            data += self._text_event("response.content_part.done", part=_text_part(text))
            data += self._event("response.output_item.done", output_index=0, item=self._item(text, status))
        for index, call in enumerate(response.tool_calls, start=int(bool(self._pieces))):
            data += self._call_events(index, call)
        return data + self._event(f"response.{status}", response=self._body(status, response, text))

    def error(self, error: ApiError) -> bytes:
        """The event of an error that ends the stream."""
        return self._event("error", code=error.code, message=error.message, param=error.param)

    def _start(self) -> bytes:
        body = self._body("in_progress", None, None)
        return self._event("response.created", response=body) + self._event("response.in_progress", response=body)

    def _body(self, status: str, response: RunResponse | None, text: str | None) -> dict[str, Any]:
        """The response object with the output so far; `text` None: there is none."""
        request, text_format = self._request, self._request.text_format
        error = None if response is None else response.error
        incomplete_reason = _INCOMPLETE_REASONS.get(response.finish_reason) if response and error is None else None
        body: dict[str, Any] = {
            "id": f"resp_{self._response_id.of()}",
            "object": "response",
            "created_at": self._created,
            "status": status,
            "background": False,
            "error": None if error is None else {"code": "server_error", "message": error.message},
            "incomplete_details": {"reason": incomplete_reason} if incomplete_reason else None,
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "metadata": request.metadata or {},
            "model": self._model,
            "output": [] if response is None or text is None else self._output(text, status, response.tool_calls),
            "parallel_tool_calls": request.parallel_tool_calls is not False,
            "previous_response_id": request.previous_response_id,
            "reasoning": {"effort": None, "summary": None},
            "store": True,
            "temperature": 1.0 if request.temperature is None else request.temperature,
            "text": {
                "format": text_format.model_dump(by_alias=True, exclude_none=True) if text_format else {"type": "text"}
            },
            "tool_choice": request.tool_choice or "auto",
            "tools": [{**tool.model_dump(), "strict": tool.strict is not False} for tool in request.tools or ()],
            "top_p": 1.0 if request.top_p is None else request.top_p,
            "truncation": "disabled",
        }
        if request.user is not None:
            body["user"] = request.user
        if response is not None:
            body |= {"usage": _usage_part(response.usage), "agent": dict(response.agent)}
        return body

    def _output(self, text: str, status: str, calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The items: the text, unless it is empty and there are calls; then the calls."""
        words = [] if calls and not text else [self._item(text, status)]
        return [*words, *(_call_item(call) for call in calls)]

    def _call_events(self, index: int, call: Mapping[str, Any]) -> bytes:
        """A call of a client's tool, in one piece."""
        item, kind = _call_item(call), "response.function_call_arguments"
        started = {**item, "status": "in_progress", "arguments": ""}
        at = {"item_id": item["id"], "output_index": index}
        return (
            self._event("response.output_item.added", output_index=index, item=started)
            + self._event(f"{kind}.delta", **at, delta=item["arguments"])
            + self._event(f"{kind}.done", **at, name=item["name"], arguments=item["arguments"])
            + self._event("response.output_item.done", output_index=index, item=item)
        )

    def _open_item(self) -> bytes:
        item = {**self._item("", "in_progress"), "content": []}
        added = self._event("response.output_item.added", output_index=0, item=item)
        return added + self._text_event("response.content_part.added", part=_text_part(""))

    def _text_event(self, kind: str, **fields: Any) -> bytes:
        return self._event(kind, item_id=self._item_id(), output_index=0, content_index=0, **fields)

    def _event(self, kind: str, **fields: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        return sse({"type": kind, "sequence_number": number, **fields}, event=kind)

    def _item_id(self) -> str:
        return f"{_TEXT_ITEM}{self._response_id.of()}"

    def _item(self, text: str, status: str) -> dict[str, Any]:
        content = [_text_part(text)]
        return {"id": self._item_id(), "type": "message", "status": status, "role": "assistant", "content": content}


def _status(response: RunResponse) -> str:
    if response.error is not None:
        return "failed"
    return "incomplete" if response.finish_reason in _INCOMPLETE_REASONS else "completed"


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call_item(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a chat completion as an item."""
    ids = {"id": f"{_CALL_ITEM}{call['id']}", "type": "function_call", "status": "completed", "call_id": call["id"]}
    return {**ids, **call["function"]}


def _usage_part(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens,
    }
