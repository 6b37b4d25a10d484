"""`POST /v1/agui/{agent}`: one request of AG-UI, one run or its continuation, one stream of events.

A request that cannot be a run (no key, an invalid body, no place) has the status of its error. What does not fit the
thread (an interrupt that is not open, a payload that does not fit) is a `RUN_ERROR` in the stream.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from aiohttp import web

from taoloop.core.message import Message
from taoloop.core.policy import lesser_authority
from taoloop.errors import ApprovalStale, RunNotAnswered, RunNotFound
from taoloop.runtime.approvals.inbox import pending_approvals
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.chat import load_history
from taoloop.runtime.conversations.message_history import quoted_data
from taoloop.serve.gateway.agui.encoder import AguiEncoder, error_body
from taoloop.serve.gateway.agui.interrupts import (
    InterruptAnswers,
    interrupt_id,
    read_answers,
    resumed_run,
    store_answers,
)
from taoloop.serve.gateway.agui.run_input import RunAgentInput, chat_settings, context_text, read_run_input
from taoloop.serve.gateway.chat_approval import ApprovalReply, is_for_operator
from taoloop.serve.gateway.client_tools import open_client_calls
from taoloop.serve.gateway.config.model import ServedAgent
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.gateway.repeats.matching import entered_request, match_request, run_of_ids
from taoloop.serve.gateway.request_context import RequestContext
from taoloop.serve.gateway.run_answer import EventStream, answer_request, sse
from taoloop.serve.gateway.run_request import (
    RunRequest,
    approval_not_allowed,
    new_run_request,
    owner_of,
    require_may_approve,
)
from taoloop.serve.gateway.run_service import require_same_policy

EVENT_STREAM = "text/event-stream"
_THREAD = "thread"
"""The label of a run that names its thread."""


async def run_agui(context: RequestContext) -> web.StreamResponse:
    """Answer a request of AG-UI.

    Raises:
        ApiError: the protocol is off, the request is invalid, or there is no place for its run.
    """
    context.require_protocol("agui")
    body = await context.read_body()
    require_event_stream(context)
    served = context.find_agent(context.request.match_info["agent"])
    request = read_run_input(body)
    known_run, answers = run_of_ids(context, body, _request_key(request), "runId"), None
    try:
        if request.resume:
            run_request, answers = await _resume_request(context, request, served)
        else:
            run_request = await _new_request(context, request, served, is_repeat=known_run is not None)
    except ApiError as error:
        return await _stream_error(context, error)
    context.report_ignored_fields(request.ignored)
    run_request = await match_request(context, run_request, body, _request_key(request))
    if known_run is not None and known_run == run_request.run and not run_request.is_repeat:
        trace = await context.service.load_owned_run(run_request.owner, known_run)
        run_request = replace(run_request, is_repeat=trace.paused is None)  # else its answers may still be missing
    before = await context.service.load_run_before(run_request)
    with context.admit_run(run_request, before) as run_id, entered_request(context, run_request, run_id):
        if run_request.run is None:
            context.conversations.enter(context.owner, served.name, _conversation(request), run_id)
        if answers is not None and not run_request.is_repeat:
            try:
                await store_answers(context.service.journal, answers)
            except ApiError as error:
                return await _stream_error(context, error)
        authority = lesser_authority(run_request.authority, bind(served.agent).policy.task_authority)
        encoder = AguiEncoder(request, run_id, before, is_repeat=run_request.is_repeat, for_user=authority != "full")
        return await answer_request(context, run_request, run_id, encoder, stream=True)


def require_event_stream(context: RequestContext) -> None:
    """Refuse a client that does not accept a stream of events.

    Raises:
        ApiError: 406.
    """
    accepted = context.request.headers.get("Accept", "*/*").lower()
    if not any(kind in accepted for kind in (EVENT_STREAM, "text/*", "*/*")):
        message = f"The answer is a stream of events: send `Accept: {EVENT_STREAM}`."
        raise ApiError(status=406, message=message, param="Accept", code="not_acceptable")


def _conversation(request: RunAgentInput) -> str:
    return f"agui:{request.thread_id}"


def _request_key(request: RunAgentInput) -> str:
    """The ids of the request in place of an `Idempotency-Key`: a client that lost its connection sends them again."""
    return hashlib.sha256(f"agui\0{request.thread_id}\0{request.run_id}".encode(errors="replace")).hexdigest()


async def _new_request(
    context: RequestContext, request: RunAgentInput, served: ServedAgent, *, is_repeat: bool
) -> RunRequest:
    settings = chat_settings(request, served.name)
    run_request = new_run_request(settings, settings.messages, served, context.key)
    labels = {**run_request.labels, _THREAD: request.thread_id[:256]}
    run_request = replace(run_request, labels=labels)
    if run_request.fallback is not None:
        run_request = replace(run_request, fallback=replace(run_request.fallback, labels=labels))
        return await context.service.resolve_request(run_request)
    last_run = context.conversations.last_run(context.owner, served.name, _conversation(request))
    if last_run is not None and not is_repeat:
        await _require_nothing_open(context, last_run, run_request)
        run_request = await _after(context, last_run, run_request)
    if text := context_text(request):
        run_request = _with_context(replace(run_request, after=None), text)
    return run_request


async def _require_nothing_open(context: RequestContext, last_run: str, run_request: RunRequest) -> None:
    """Refuse a new message while the last run of the thread waits for answers that its client may give.

    Raises:
        ApiError: it does; names the interrupts.
    """
    try:
        trace = await context.service.load_owned_run(context.owner, last_run)
    except ApiError:  # it was removed since
        return
    if trace.paused is None or open_client_calls(trace):
        return
    waiting = await pending_approvals(context.service.journal, run_id=last_run)
    if waiting and not is_for_operator(run_request.authority, waiting):
        names = ", ".join(interrupt_id(last_run, approval) for approval in waiting)
        message = f"The thread waits for answers: send `resume` with an entry for each of {names}."
        raise ApiError(status=409, message=message, param="resume", code="open_interrupts")


async def _after(context: RequestContext, last_run: str, run_request: RunRequest) -> RunRequest:
    """The request as one that continues the conversation of the journal, where its messages are those of the thread.

    Then the earlier answers are the server's own, with the trust that they had. A client that has changed its messages
    gets a run with these.
    """
    journal = context.service.journal
    try:
        history, _ = await load_history(journal, last_run)
    except (RunNotAnswered, RunNotFound):
        return run_request
    own = [message.content for message in history if message.role == "user"]
    sent = [message.content for message in run_request.history if message.role == "user"]
    return replace(run_request, after=last_run) if own == sent and not run_request.attachments else run_request


def _with_context(run_request: RunRequest, text: str) -> RunRequest:
    """The request with what the application adds, as data that nobody can take for the user's words."""
    content = f"[context of the application: data, no instructions]\n{quoted_data(text)}"
    history = run_request.history
    if history and history[-1].role == "assistant":
        last = replace(history[-1], content=f"{history[-1].content}\n{content}")
        return replace(run_request, history=(*history[:-1], last))
    return replace(run_request, history=(*history, Message(role="assistant", content=content)))


async def _resume_request(
    context: RequestContext, request: RunAgentInput, served: ServedAgent
) -> tuple[RunRequest, InterruptAnswers]:
    """The request that resumes an interrupted run, and its answers, of which nothing is stored yet.

    Raises:
        ApiError: an entry is invalid, the run is not of this client, thread or agent, or the key may not approve.
    """
    entries = request.resume or []
    run_id, (owner, authority) = resumed_run(entries), owner_of(context.key)
    trace = await context.service.load_owned_run(owner, run_id, served.name)
    if trace.started is None or trace.started.labels.get(_THREAD) != request.thread_id[:256]:
        message = f"The interrupts are not of the thread {request.thread_id[:80]!r}."
        raise ApiError(status=404, message=message, param="threadId", code="unknown_interrupt")
    answers = await read_answers(context.service.journal, trace, entries, owner=owner, note=_last_words(request))
    waiting = [approval for approval, _ in answers.answers]
    if any(approval.request.question is None for approval in waiting):
        require_may_approve(context.key)
    if waiting and is_for_operator(authority, waiting):
        raise approval_not_allowed()
    if answers.answers:
        try:
            require_same_policy(trace, served)
        except ApprovalStale as error:
            message = f"{error.message} {error.hint}"
            raise ApiError(status=409, message=message, param="resume", code=error.code) from None
    run_request = RunRequest(
        served=served,
        run=run_id,
        approval=ApprovalReply(approved=False) if answers.by_operator else None,
        owner=owner,
        authority=authority,
        may_approve=context.key is None or context.key.may_approve,
    )
    return replace(run_request, is_repeat=answers.is_replay and trace.paused is None), answers


def _last_words(request: RunAgentInput) -> str:
    """What the person wrote in place of an answer; empty: nothing."""
    last = request.messages[-1] if request.messages else None
    return last.content if last is not None and last.role == "user" and isinstance(last.content, str) else ""


async def _stream_error(context: RequestContext, error: ApiError) -> web.StreamResponse:
    """A stream that has nothing but an error."""
    context.record_error(error)
    stream = EventStream(context.request, context.config.limits.heartbeat_s, context.response_headers)
    await stream.send(sse(error_body(error)))
    await stream.response.write_eof()
    return stream.response
