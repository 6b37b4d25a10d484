"""`POST /v1/responses`: one request, one run, one response; the next request may go on from it by its id."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aiohttp import web

from taoloop.core.events import ActionRequested, Event
from taoloop.core.message import Delta, Message
from taoloop.runtime.engine.clock import new_run_id
from taoloop.runtime.result import Result
from taoloop.serve.gateway.answer_pieces import AnswerPieces
from taoloop.serve.gateway.chat_approval import parse_approval_reply, resume_count
from taoloop.serve.gateway.chat_messages import InvalidMessages, parse_messages
from taoloop.serve.gateway.client_tools import chosen, client_call_id, open_calls_of_client, parse_call_id
from taoloop.serve.gateway.errors import ApiErrorRaised, invalid, invalid_field
from taoloop.serve.gateway.routes.chat import stream_run
from taoloop.serve.gateway.run_request import (
    continue_message,
    labels_of,
    require_may_approve,
    results_of,
    with_tool_results,
)
from taoloop.serve.gateway.run_service import RunRequest, RunResponse
from taoloop.serve.gateway.schema.chat import ChatMessage
from taoloop.serve.gateway.schema.responses import (
    CALL_ITEM,
    TEXT_ITEM,
    ResponseParts,
    ResponsesRequest,
    read_responses,
    run_of,
)

if TYPE_CHECKING:
    from taoloop.core.trace import Trace
    from taoloop.serve.gateway.config.model import ServedAgent
    from taoloop.serve.gateway.request_context import RequestContext
    from taoloop.serve.gateway.run_service import Service


async def named_items(service: Service, owner: str, named: Sequence[tuple[int, str]]) -> dict[int, dict[str, Any]]:
    """The items as messages of a chat, by their places in the input.

    Raises:
        RequestRefused: one of them is none of this client's; names its place.
    """
    found: dict[int, dict[str, Any]] = {}
    traces: dict[str, Trace] = {}  # the last one: the items of a run stand together, and a trace may be long

    async def trace_of(run_id: str) -> Trace:
        if run_id not in traces:
            traces.clear()
            traces[run_id] = await service.load_owned_run(owner, run_id)
        return traces[run_id]

    for index, item in named:
        try:
            message = await _message(trace_of, item)
        except ApiErrorRaised:
            message = None
        if message is None:
            raise invalid_field(f"input[{index}].id", f"There is no item {item[:80]!r} of this client.")
        found[index] = message
    return found


async def _message(trace_of: Callable[[str], Awaitable[Trace]], item: str) -> dict[str, Any] | None:
    if item.startswith(TEXT_ITEM):
        result = Result.of(await trace_of(run_of(item.removeprefix(TEXT_ITEM))[0]))
        return {"role": "assistant", "content": result.answer or ""}
    if not item.startswith(CALL_ITEM) or (ids := parse_call_id(item.removeprefix(CALL_ITEM))) is None:
        return None
    run_id, call_id = ids
    for fact in (event.fact for event in (await trace_of(run_id)).events):
        if isinstance(fact, ActionRequested) and fact.call_id == call_id:
            function = {"name": fact.tool, "arguments": json.dumps(fact.args, ensure_ascii=False)}
            call = {"id": client_call_id(run_id, call_id), "type": "function", "function": function}
            return {"role": "assistant", "tool_calls": [call]}
    return None


_STATUS = {"stop": "completed", "tool_calls": "completed", "length": "incomplete", "content_filter": "incomplete"}
_WHY = {"length": "max_output_tokens", "content_filter": "content_filter"}


async def responses(visit: RequestContext) -> web.StreamResponse:
    """Answer a request for a response.

    Raises:
        RequestRefused: the request is of no use, or its run has no answer.
    """
    request = read_responses(await visit.body())
    served = visit.served(request.model)
    wish, turn = await _wish(visit, request, served)
    visit.ignored(request.ignored)
    with visit.enter(served):
        run_id = visit.begin(wish, new_run_id(time.time()))
        parts = ResponseParts(request, run_id=run_id, created=int(time.time()), model=served.name, turn=turn)
        if request.stream:
            return await _streamed(visit, wish, run_id, parts)
        answered = visit.finish(await visit.service.answer(wish, run_id, on_event=visit.on_event))
        if answered.refusal is not None:
            raise ApiErrorRaised(answered.refusal)
        body = parts.response(
            status=_STATUS[answered.finish_reason],
            text=answered.content,
            usage=answered.usage,
            agent=answered.agent,
            why=_WHY.get(answered.finish_reason, ""),
            calls=answered.tool_calls,
        )
        data = json.dumps(body, ensure_ascii=False).encode(errors="replace")
        return web.Response(body=data, content_type="application/json", headers=visit.headers)


async def _wish(visit: RequestContext, request: ResponsesRequest, served: ServedAgent) -> tuple[RunRequest, int]:
    """What is wanted, and which turn of its run that will be."""
    key = visit.key
    owner = key.name if key is not None else ""
    try:
        messages = request.messages(await named_items(visit.service, owner, request.references))
        going_on = results_of(
            [
                ChatMessage(role=m["role"], content=m.get("content"), tool_call_id=m.get("tool_call_id"))
                for m in messages
            ],
            ("input", "call_id", "output"),
        )
        found = parse_messages(messages if going_on is None else [*messages, continue_message(messages)])
    except InvalidMessages as error:
        raise invalid_field(error.param.replace("messages", "input", 1), str(error)) from None
    choice = chosen(request.tool_choice, request.offered)
    wish = RunRequest(
        served=served,
        task=found.question,
        history=found.history,
        system="\n\n".join(part for part in (request.instructions, found.system) if part),
        temperature=request.temperature,
        top_p=request.top_p,
        token_limit=request.max_output_tokens,
        schema=request.schema_wanted,
        schema_param="text.format.schema",
        tools=choice.offered,
        tool_param="tools[{}]",
        must_call=choice.must,
        one_call=request.parallel_tool_calls is False,
        owner=owner,
        labels=labels_of(served, owner, "responses", request.user),
    )
    if going_on is not None:
        trace = await visit.service.load_owned_run(owner, going_on[0])
        if request.previous_response_id is not None and trace.started is not None:  # the input has the results alone
            before = (*trace.started.history, Message(role="user", content=trace.task))
            wish = replace(wish, history=(*before, *wish.history))
        wish = await visit.service.resolve_request(with_tool_results(wish, *going_on))
        return wish, resume_count(trace) + (trace.paused is not None) if wish.run is not None else 0
    if request.previous_response_id is None:
        return wish, 0
    if found.history:
        message = "With `previous_response_id` it is the new message alone; the server knows the others."
        raise invalid_field("input", message)
    earlier, turn = run_of(request.previous_response_id)
    try:
        trace = await visit.service.load_owned_run(owner, earlier)
    except ApiErrorRaised as error:
        raise ApiErrorRaised(replace(error.refusal, param="previous_response_id")) from None
    if trace.paused is not None:
        if open_calls_of_client(trace):
            message = "That run waits for results of its client's tools: give a `function_call_output` for each call."
            raise invalid(message, "previous_response_id", "waits_for_tools")
        require_may_approve(key)
        now = resume_count(trace)  # an answer to an earlier question is told what waits now
        said = replace(parse_approval_reply(found.question), turn=turn)
        return replace(wish, run=earlier, said=said), now + 1 if turn == now else now
    return replace(wish, after=earlier), 0


async def _streamed(visit: RequestContext, wish: RunRequest, run_id: str, parts: ResponseParts) -> web.StreamResponse:
    agent = wish.served.agent
    pieces = AnswerPieces(
        dialect=agent.spec_for(wish.task).dialect,
        tools_offered=bool(agent.toolbox.cards) or bool(wish.tools),
        holds=wish.schema is not None or wish.served.reshape is not None or wish.must_call,
    )
    sent: list[str] = []

    def on_event(event: Event) -> bytes:
        visit.on_event(event)
        pieces.on_event(event)
        return b""

    def piece(text: str) -> bytes:
        if not text:
            return b""
        head = b"" if sent else parts.begun()
        sent.append(text)
        return head + parts.piece(text)

    def on_delta(delta: Delta) -> bytes:
        return piece(pieces.on_delta(delta))

    def at_end(answered: RunResponse) -> bytes:
        usage, agent_part = answered.usage, answered.agent
        if answered.refusal is not None:
            head = b"" if sent else parts.begun()
            return head + parts.ended(status="failed", text="", usage=usage, agent=agent_part, refusal=answered.refusal)
        calls = answered.tool_calls
        data = b"" if calls and pieces.has_sent else piece(pieces.finish(answered.content))
        if not sent:
            data += parts.begun()
        status, why = _STATUS[answered.finish_reason], _WHY.get(answered.finish_reason, "")
        text = "".join(sent)
        return data + parts.ended(status=status, text=text, usage=usage, agent=agent_part, why=why, calls=calls)

    return await stream_run(
        visit, wish, run_id, on_event=on_event, on_delta=on_delta, at_end=at_end, at_error=parts.failed
    )
