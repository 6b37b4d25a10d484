"""`/v1/runs/{run_id}`: the state of a run, and approvals of its waiting calls, for programs.

Not part of OpenAI's API. A run that was answered elsewhere (`tao approve`) resumes by itself; this shows how it ended.
"""

from __future__ import annotations

from typing import Any, Literal

from aiohttp import web

from taoloop.core.trace import Trace
from taoloop.core.views.todos import todo_list
from taoloop.core.views.transcript import Result
from taoloop.errors import ApprovalStale, InvalidArguments, NotWaiting
from taoloop.policy import authority_of
from taoloop.runtime.approvals.inbox import pending_approvals
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest
from taoloop.runtime.approvals.user_questions import question_answer, question_warnings
from taoloop.serve.gateway.chat_approval import answer_all, user_reasons
from taoloop.serve.gateway.errors import ApiError, invalid
from taoloop.serve.gateway.request_context import RequestContext
from taoloop.serve.gateway.request_schema import ApiModel, parse_body
from taoloop.serve.gateway.response_ids import run_of
from taoloop.serve.gateway.run_request import approval_not_allowed, require_may_approve
from taoloop.serve.gateway.run_response import end_reason


class ApprovalWire(ApiModel):
    """An answer to one waiting call. An approval names the call: by `call_id`, by `digest`, or both.

    `run_id` is needed where inner runs have calls with the same `call_id`.
    """

    decision: Literal["approve", "deny"]
    call_id: str | None = None
    run_id: str | None = None
    digest: str | None = None
    note: str = ""
    answer: str | None = None
    """The answer to a question of the model (`ask_user`), with the decision `approve`."""


async def get_run(context: RequestContext) -> web.Response:
    """`GET /v1/runs/{run_id}`: the state of a run.

    Raises:
        ApiError: this client has no such run.
    """
    trace = await context.service.load_owned_run(context.owner, run_of(context.request.match_info["run_id"]))
    return await _run_response(context, trace)


async def answer_run(context: RequestContext) -> web.Response:
    """`POST /v1/runs/{run_id}/approvals`: answers one call; the run resumes by itself once all are answered.

    Raises:
        ApiError: there is no such run, the call does not wait, or this key may not approve, or no longer use
            the agent.
    """
    answer = parse_body(ApprovalWire, await context.read_body())
    run_id, owner = run_of(context.request.match_info["run_id"]), context.owner
    started = (await context.service.load_owned_run(owner, run_id)).started
    context.find_agent(started.labels.get("agent", "") if started is not None else "")
    journal = context.service.journal
    waiting = await pending_approvals(journal, run_id=run_id)
    matches = [approval for approval in waiting if _matches_request(answer, approval.request)]
    if not (matches and all(approval.request.question is not None for approval in matches)):
        require_may_approve(context.key)
        if any(approval.request.for_operator for approval in waiting):
            raise approval_not_allowed()
    names_call = answer.call_id is not None or answer.digest is not None or answer.decision == "deny"
    if len(matches) != 1 or not names_call:
        calls = ", ".join(approval.request.call_id for approval in waiting) or "none"
        message = f"Name one of the waiting calls, by `call_id` (and `run_id`) or `digest`: {calls}."
        raise ApiError(status=409, message=message, param="call_id", code="not_waiting")
    approval_answer = ApprovalAnswer(
        approved=answer.decision == "approve",
        by=owner or "client",
        authenticated="gateway_key" if owner else "",
        note=answer.note,
    )
    try:
        if answer.answer is not None and approval_answer.approved:
            approval_answer = question_answer(
                matches[0].request, answer.answer, by=approval_answer.by, authenticated=approval_answer.authenticated
            )
        await answer_all(journal, matches, approval_answer)
    except InvalidArguments as error:
        hint = f" {error.hint}" if error.hint else ""
        raise invalid(f"{error.message}{hint}", "answer", error.code) from None
    except (NotWaiting, ApprovalStale) as error:
        raise ApiError(status=409, message=error.message, code=error.code) from None
    return await _run_response(context, await context.service.load_owned_run(owner, run_id))


def _matches_request(answer: ApprovalWire, request: ApprovalRequest) -> bool:
    pairs = [(answer.call_id, request.call_id), (answer.run_id, request.run_id), (answer.digest, request.digest)]
    return all(expected in (None, actual) for expected, actual in pairs)


async def _run_response(context: RequestContext, trace: Trace) -> web.Response:
    waiting = await pending_approvals(context.service.journal, run_id=trace.run_id) if trace.paused is not None else []
    for_user = (context.key is not None and context.key.task_authority != "full") or authority_of(trace) != "full"
    reason = trace.paused.reason if trace.paused is not None else ""
    if trace.finished is not None:
        served = context.config.agents.get(trace.agent.name)
        reason = end_reason(trace, trace.finished.reason, served, for_user=for_user)
    answer_text = Result.of(trace).answer if trace.finished is not None else None
    body = {
        "id": trace.run_id,
        "object": "agent.run",
        "agent": trace.agent.name,
        "status": trace.status,
        "answer": answer_text,
        "reason": reason,
        "steps": trace.step_count,
        "todos": [{"text": todo.text, "state": todo.state} for todo in todo_list(trace).todos],
        "usage": {"total_tokens": trace.usage.total_tokens},
        "waiting_for": [
            {
                "run_id": approval.request.run_id,
                "call_id": approval.request.call_id,
                "tool": approval.request.tool,
                "arguments": dict(approval.request.args),
                "reasons": list(
                    user_reasons(trace.agent.language, approval.request.reason_codes)
                    if for_user or approval.request.for_operator
                    else approval.request.reasons
                ),
                "digest": approval.request.digest,
                "question": _question_body(approval.request),
            }
            for approval in waiting
        ],
    }
    return context.json_response(body)


def _question_body(request: ApprovalRequest) -> dict[str, Any] | None:
    """What the model asks, the form of the answer, and what the person should know; None where it is an approval."""
    question = request.question
    if question is None:
        return None
    warnings = question_warnings(question, request.language)
    return {"message": question.message, "form": question.fields, "warnings": list(warnings)}
