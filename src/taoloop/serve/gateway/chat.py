"""`POST /v1/chat/completions`: one request, one run, one answer, whole or as it is written."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from taoloop.core.decision import UNSUPPORTED
from taoloop.core.events import Event
from taoloop.core.message import Usage
from taoloop.core.policy import lesser_authority
from taoloop.core.stored_events import event_record
from taoloop.core.trace import Trace
from taoloop.runtime.bound_agent import bind
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.gateway.repeats.matching import entered_request, match_request
from taoloop.serve.gateway.request_context import RequestContext
from taoloop.serve.gateway.request_schema import ChatRequest, read_chat
from taoloop.serve.gateway.response_ids import ResponseId
from taoloop.serve.gateway.run_answer import answer_request, sse
from taoloop.serve.gateway.run_request import chat_run_request
from taoloop.serve.gateway.run_response import RunResponse

HIDDEN_STEPS = ("run_started",)
"""Events that no client gets: they hold the whole description of the agent."""

_OPERATOR_FIELDS = ("reasons", "reason_codes", "rule", "policy", "new_policy", "cards", "texts", "hint", "evidence")
"""Fields of events that an end user does not get: what the operator's policy says, and how tools are described."""

_DONE = b"data: [DONE]\n\n"


async def chat_completions(context: RequestContext) -> web.StreamResponse:
    """Answer a chat request.

    Raises:
        ApiError: the request is invalid, or its run has no answer.
    """
    body = await context.read_body()
    request = read_chat(body)
    served = context.find_agent(request.model)
    run_request = await context.service.resolve_request(chat_run_request(request, served, context.key))
    context.report_ignored_fields(request.ignored)
    run_request = await match_request(context, run_request, body)
    before = await context.service.load_run_before(run_request)
    with context.admit_run(run_request, before) as run_id, entered_request(context, run_request, run_id):
        authority = lesser_authority(run_request.authority, bind(served.agent).policy.task_authority)
        response_id = ResponseId(run_id, before)
        encoder = ChatEncoder(
            request, run_id=run_id, response_id=response_id, model=served.name, for_user=authority != "full"
        )
        return await answer_request(context, run_request, run_id, encoder, stream=bool(request.stream))


def _for_user(record: Mapping[str, Any]) -> dict[str, Any]:
    """An event without what is the operator's."""
    shown = {name: value for name, value in record.items() if name not in _OPERATOR_FIELDS}
    error = shown.get("error")
    if isinstance(error, Mapping) and error.get("code") == "denied":
        shown["error"] = {**error, "message": "", "hint": ""}
    if shown.get("status") in ("blocked", "model_failed", UNSUPPORTED):  # the latter has what the model's server said
        shown["reason"] = ""
    if shown.get("status") == UNSUPPORTED:
        shown["answer"] = None
    if shown.get("kind") == "model_erred":
        shown["message"] = ""
    return shown


class ChatEncoder:
    """A run as a chat completion, whole or in chunks."""

    def __init__(
        self, request: ChatRequest, *, run_id: str, response_id: ResponseId, model: str, for_user: bool = False
    ) -> None:
        self._response_id, self._for_user = response_id, for_user
        options = request.stream_options
        self._with_steps = options is not None and bool(options.include_steps)
        self._with_usage = options is not None and bool(options.include_usage)
        self._run_id, self._created, self._model = run_id, int(time.time()), model
        self._has_started = False

    def whole(self, response: RunResponse) -> dict[str, Any]:
        """The completion."""
        content = response.content if not response.tool_calls or response.content else None
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if response.tool_calls:
            message["tool_calls"] = list(response.tool_calls)
        choice = {"index": 0, "message": message, "finish_reason": response.finish_reason, "logprobs": None}
        usage, agent = _usage_part(response.usage), dict(response.agent)
        return {
            **self._head("chat.completion", response.result.trace),
            "choices": [choice],
            "usage": usage,
            "agent": agent,
        }

    def piece(self, text: str) -> bytes:
        """A piece of the answer; the first one also names the role."""
        return self._chunk({"content": text})

    def thought(self, _text: str, /) -> bytes:
        """Nothing: this API has no field for it."""
        return b""

    def step(self, event: Event) -> bytes:
        """An event of the run, for a client that asked for them."""
        if not self._with_steps or event.fact.kind in HIDDEN_STEPS:
            return b""
        record = event_record(self._run_id, event)
        return self._chunk({}, agent={"event": _for_user(record) if self._for_user else record})

    def identify(self, response: RunResponse) -> None:
        """Fix the id, unless a chunk has it already."""
        self._response_id.of(response.result.trace)

    def end(self, response: RunResponse) -> bytes:
        """Calls of the client's tools, why the answer ends, and the tokens where the client asked for them."""
        if response.error is not None:
            return self.error(response.error)
        data = b""
        if response.tool_calls:
            calls = [{"index": index, **call} for index, call in enumerate(response.tool_calls)]
            data += self._chunk({"tool_calls": calls})
        data += self._chunk({}, finish_reason=response.finish_reason, agent=dict(response.agent))
        if self._with_usage:
            head = self._head("chat.completion.chunk")
            data += sse({**head, "choices": [], "usage": _usage_part(response.usage)})
        return data + _DONE

    def error(self, error: ApiError) -> bytes:
        """The error that ends the stream."""
        return sse(error.body) + _DONE

    def _chunk(self, delta: dict[str, Any], *, finish_reason: str | None = None, **more: Any) -> bytes:
        if not self._has_started:
            self._has_started = True
            delta = {"role": "assistant", "content": "", **delta}
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        chunk = {**self._head("chat.completion.chunk"), "choices": [choice], **more}
        if self._with_usage:
            chunk["usage"] = None
        return sse(chunk)

    def _head(self, kind: str, trace: Trace | None = None) -> dict[str, Any]:
        response_id = f"chatcmpl-{self._response_id.of(trace)}"
        return {"id": response_id, "object": kind, "created": self._created, "model": self._model}


def _usage_part(usage: Usage) -> Mapping[str, Any]:
    """The tokens of all calls of a run."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
