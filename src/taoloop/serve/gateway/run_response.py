"""What came of a run, in the terms of OpenAI's APIs: the answer, why it ends there, and what the run waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from taoloop.core.decision import UNSUPPORTED, number_citations
from taoloop.core.events import ActionRequested, ModelReplied, Resumed
from taoloop.core.message import Usage
from taoloop.core.policy import TaskAuthority
from taoloop.core.texts import gap_text
from taoloop.core.trace import Trace
from taoloop.core.views.handoff import answered_by
from taoloop.core.views.steps import CallView
from taoloop.core.views.transcript import Result
from taoloop.dialects.answer_stream import truncated_answer
from taoloop.journals.base import Journal
from taoloop.policy import authority_of
from taoloop.runtime.approvals.inbox import PendingApproval, pending_approvals
from taoloop.serve.gateway.chat_approval import asked_now, is_for_operator, user_reasons, waiting_text
from taoloop.serve.gateway.client_tools import open_client_calls, tool_call_parts
from taoloop.serve.gateway.config.model import ServedAgent
from taoloop.serve.gateway.errors import ApiError, error_for_failed_run, error_for_filtered_reply
from taoloop.serve.texts import TEXTS

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]
"""Why an answer ends, as OpenAI's chat completions name it."""

PARTIAL_STATUSES = ("blocked", "max_steps_exceeded", "budget_exceeded", "too_many_errors", "repeated_action")
"""How runs end with an answer and without having done the task: denied calls, or a bound, stopped them."""

ENDED_STATUSES = ("completed", "unsupported", *PARTIAL_STATUSES)
"""How runs end that answer a request for good, an answer that was withheld for want of evidence among them."""

_CUT_REPLIES: dict[str, FinishReason] = {
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_output_tokens"), "length"),
    **dict.fromkeys(("content_filter", "safety", "recitation"), "content_filter"),
}
"""Why a reply was cut, by the names that the APIs of providers have for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResponse:
    """What came of a request."""

    result: Result
    """The run that answered, or that waits."""

    content: str
    """The answer; where there is none, the reason, or the question to the client."""

    finish_reason: FinishReason
    """Why the answer ends there."""

    usage: Usage
    """The tokens of all model calls for this request."""

    agent: Mapping[str, Any]
    """The field `agent` of the response body: what OpenAI's APIs have no field for."""

    tool_calls: tuple[Mapping[str, Any], ...] = ()
    """Calls of the client's own tools, which it performs before its next request."""

    waiting: tuple[PendingApproval, ...] = ()
    """The calls and questions that a waiting run waits for."""

    by_operator: bool = False
    """Whether the operator answers them, and not the client."""

    error: ApiError | None = None
    """Set where the end of the run is an error for the client."""


async def build_response(
    journal: Journal,
    result: Result,
    served: ServedAgent,
    *,
    one_call: bool = False,
    authority: TaskAuthority = "full",
) -> RunResponse:
    """The end of a run of a served agent, or what it waits for.

    `one_call`: show one call of the client's tools at a time. `authority`: what the client's words may authorise.
    """
    for_user = authority != "full" or authority_of(result.trace) != "full"
    agent = _agent_part(result, served, for_user=for_user)
    response = RunResponse(
        result=result,
        content=result.answer or agent["reason"],
        finish_reason="stop",
        usage=result.usage,
        agent=agent,
    )
    if result.status == "waiting":
        if calls := open_client_calls(result.trace):
            return _with_tool_calls(response, calls[:1] if one_call else calls)  # the others wait for the next request
        return await _with_questions(journal, response, authority)
    if result.status == UNSUPPORTED:  # the answer is in the trace; what a client shows must not look like one
        return replace(response, content=agent["reason"], finish_reason="content_filter")
    if result.status in PARTIAL_STATUSES:
        return replace(response, finish_reason="length")
    return _finished_response(response)


def _finished_response(response: RunResponse) -> RunResponse:
    result, trace = response.result, response.result.trace
    if result.status == "unreadable" and (cut := _cut_reply(trace)) is not None:
        text, reason = cut
        if text:
            return replace(response, content=text, finish_reason=reason)
        if reason == "content_filter":
            return replace(response, error=error_for_filtered_reply(result.run_id))
    if result.status in ("model_failed", "unreadable") and trace.finished is not None:
        error = error_for_failed_run(trace.finished, result.run_id, trace.agent.model)
        return replace(response, error=error)
    if result.status == "stopped":
        message = f"The run was stopped before it had an answer (run {result.run_id})."
        return replace(response, error=ApiError(status=503, message=message, code="run_stopped"))
    cut_reason = None if trace.last_reply is None else _cut_reason(trace.last_reply)
    return response if cut_reason is None else replace(response, finish_reason=cut_reason)


def _with_tool_calls(response: RunResponse, calls: Sequence[CallView]) -> RunResponse:
    """The response that asks the client to perform these calls; what the model said with them is its content."""
    reply = response.result.trace.last_reply
    reason = reply.decision.reason if reply is not None and reply.decision is not None else ""
    parts = tuple(tool_call_parts(response.result.run_id, calls))
    return replace(response, content=reason, finish_reason="tool_calls", tool_calls=parts)


async def _with_questions(journal: Journal, response: RunResponse, authority: TaskAuthority) -> RunResponse:
    """The response that asks the client for approval, or says who else is asked, or what else the run waits for."""
    result = response.result
    waiting = await pending_approvals(journal, run_id=result.run_id)
    approvals = asked_now(waiting)
    in_doubt = [call for call in result.trace.pending.values() if call.doubt is not None]
    by_operator, language = is_for_operator(authority, approvals), result.trace.agent.language
    text = waiting_text(result.run_id, approvals, in_doubt, language, by_operator=by_operator)
    if not approvals and not in_doubt:  # it waits with an inner run, which waits for something else
        text = f"{result.reason}\n{text}"
    waiting_for = [
        {"run_id": approval.request.run_id, "call_id": approval.request.call_id, "tool": approval.request.tool}
        for approval in approvals
    ]
    agent = {**response.agent, "waiting_for": waiting_for}
    return replace(response, content=text, agent=agent, waiting=tuple(waiting), by_operator=by_operator)


def _cut_reason(reply: ModelReplied) -> FinishReason | None:
    """Why a reply is not whole, in OpenAI's words, whatever its provider calls it; None: it is whole."""
    return _CUT_REPLIES.get((reply.finish_reason or "").lower())


def _cut_reply(trace: Trace) -> tuple[str, FinishReason] | None:
    """What the model had written of its answer when its last reply was cut, and why it was; None: it was not cut."""
    reply = next((event.fact for event in reversed(trace.events) if isinstance(event.fact, ModelReplied)), None)
    reason = _cut_reason(reply) if reply is not None else None
    if reply is None or reason is None:
        return None
    names = [card.name for card in trace.agent.tools]
    return truncated_answer(reply.text, trace.agent.dialect, tools_offered=bool(names), tool_names=names), reason


def end_reason(trace: Trace, reason: str, served: ServedAgent | None, *, for_user: bool) -> str:
    """Why a run ended; for an end user without what is the operator's to know.

    `served` is the agent of the run, whose file has the names of settings; None: it is not served any more.
    """
    reason, finished = reason if served is None else served.with_setting_names(reason), trace.finished
    if not for_user or finished is None:
        return reason
    if finished.status == "model_failed":
        return error_for_failed_run(finished, trace.run_id).message
    name = {"blocked": "user_blocked", UNSUPPORTED: "user_unsupported"}.get(finished.status)
    return reason if name is None else TEXTS.text(trace.agent.language, name)


def _denied_reasons(call: ActionRequested, language: str, *, for_user: bool) -> list[str]:
    if not for_user:
        return list(call.reasons)
    return list(user_reasons(language, call.reason_codes)) or [TEXTS.text(language, "user_denied")]


def _agent_part(result: Result, served: ServedAgent, *, for_user: bool) -> dict[str, Any]:
    language, finished = result.trace.agent.language, result.trace.finished
    part: dict[str, Any] = {
        "run_id": result.run_id,
        "status": result.status,
        "reason": end_reason(result.trace, result.reason, served, for_user=for_user),
        "steps": result.trace.step_count,
        "tool_calls": result.trace.tool_calls,
    }
    resumed = next((event.fact for event in reversed(result.trace.events) if isinstance(event.fact, Resumed)), None)
    if resumed is not None and (resumed.cards or resumed.texts or resumed.model):
        changed = [card.name for card in (*resumed.cards, *resumed.texts)]
        part["changed"] = {"tools": changed, "model": resumed.model or None}
    if result.denied:
        part["denied"] = [
            {
                "call_id": call.call_id,
                "tool": call.tool,
                "reasons": _denied_reasons(call, language, for_user=for_user),
            }
            for call in result.denied
        ]
    if finished is not None and finished.unasked:
        part["unasked"] = [
            {"call_id": call_id, "tool": result.trace.calls[call_id].requested.tool} for call_id in finished.unasked
        ]
    if result.trace.taken_over is not None:
        part["answered_by"] = {"agent": answered_by(result.trace), "run_id": result.trace.taken_over.child}
    if result.todos:
        part["todos"] = [{"text": todo.text, "state": todo.state} for todo in result.todos]
    if result.cost_usd is not None:
        part["cost_usd"] = result.cost_usd
    if result.trace.finished is not None and result.trace.finished.citations:
        part["citations"] = list(result.trace.finished.citations)
    if finished is not None and finished.evidence and not for_user:
        part["evidence"] = [
            {"code": gap.code, "citation": gap.citation, "value": gap.value, "message": gap_text(language, gap)}
            for gap in finished.evidence
        ]
    cited = number_citations(result.answer or "")[1] if result.trace.agent.evidence != "off" else ()
    calls = [(number, result.trace.calls.get(name.removeprefix("obs:"))) for number, name in enumerate(cited, 1)]
    if sources := [(number, call) for number, call in calls if call is not None]:
        part["sources"] = [
            {"number": number, "call_id": call.requested.call_id, "tool": call.requested.tool}
            for number, call in sources
        ]
    return part
