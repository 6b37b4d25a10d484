"""`/v1/runs/{run_id}`: what became of a run, and a person's answer to what waits in it, for programs.

Not part of OpenAI's API. A run that was answered elsewhere (`tao approve`) goes on by itself; this shows how it ended.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from aiohttp import web

from taoloop.runtime.approvals.inbox import ApprovalStale, NotWaiting, answer_approval, pending_approvals
from taoloop.runtime.approvals.request import ApprovalAnswer
from taoloop.runtime.result import Result
from taoloop.serve.gateway.errors import ApiError, ApiErrorRaised
from taoloop.serve.gateway.run_request import require_may_approve
from taoloop.serve.gateway.schema.chat import ApiModel, checked

if TYPE_CHECKING:
    from taoloop.core.trace import Trace
    from taoloop.runtime.approvals.request import ApprovalRequest
    from taoloop.serve.gateway.request_context import RequestContext


class ApprovalWire(ApiModel):
    """An answer to one call that waits. An approval says to which: by `call_id`, by `digest`, or both.

    `run_id` is of use where runs inside a run have calls of the same `call_id`.
    """

    decision: Literal["approve", "deny"]
    call_id: str | None = None
    run_id: str | None = None
    digest: str | None = None
    note: str = ""


async def run(visit: RequestContext) -> web.Response:
    """`GET /v1/runs/{run_id}`.

    Raises:
        RequestRefused: this client has no such run.
    """
    trace = await visit.service.load_owned_run(_owner(visit), visit.request.match_info["run_id"])
    return await _shown(visit, trace)


async def approve(visit: RequestContext) -> web.Response:
    """`POST /v1/runs/{run_id}/approvals`: answers one call; the run goes on by itself once all have their answers.

    Raises:
        RequestRefused: the run is not there, the call waits for nothing, or this key may not answer, nor use the agent
            (any more).
    """
    given = checked(ApprovalWire, await visit.body())
    require_may_approve(visit.key)
    run_id, owner = visit.request.match_info["run_id"], _owner(visit)
    started = (await visit.service.load_owned_run(owner, run_id)).started
    visit.served(started.labels.get("agent", "") if started is not None else "")
    journal = visit.service.journal
    waiting = await pending_approvals(journal, run_id=run_id)
    meant = [one for one in waiting if _is_meant(given, one.request)]
    is_named = given.call_id is not None or given.digest is not None or given.decision == "deny"
    if len(meant) != 1 or not is_named:
        calls = ", ".join(one.request.call_id for one in waiting) or "none"
        message = f"Name one of the calls that wait, by `call_id` (and `run_id`) or `digest`: {calls}."
        raise ApiErrorRaised(ApiError(status=409, message=message, param="call_id", code="not_waiting"))
    request = meant[0].request
    said = ApprovalAnswer(approved=given.decision == "approve", by=owner or "client", note=given.note)
    try:
        await answer_approval(
            journal, request.run_id, request.call_id, said, digest=request.digest if said.approved else None
        )
    except (NotWaiting, ApprovalStale) as error:
        raise ApiErrorRaised(ApiError(status=409, message=error.message, code=error.code)) from None
    return await _shown(visit, await visit.service.load_owned_run(owner, run_id))


def _is_meant(given: ApprovalWire, request: ApprovalRequest) -> bool:
    named = [(given.call_id, request.call_id), (given.run_id, request.run_id), (given.digest, request.digest)]
    return all(wanted in (None, there) for wanted, there in named)


async def _shown(visit: RequestContext, trace: Trace) -> web.Response:
    waiting = await pending_approvals(visit.service.journal, run_id=trace.run_id) if trace.paused is not None else []
    answer_text = Result.of(trace).answer if trace.finished is not None else None
    body = {
        "id": trace.run_id,
        "object": "agent.run",
        "agent": trace.agent.name,
        "status": trace.status,
        "answer": answer_text,
        "reason": trace.finished.reason if trace.finished is not None else trace.paused.reason if trace.paused else "",
        "steps": trace.step_count,
        "usage": {"total_tokens": trace.usage.total_tokens},
        "waiting_for": [
            {
                "run_id": one.request.run_id,
                "call_id": one.request.call_id,
                "tool": one.request.tool,
                "arguments": dict(one.request.args),
                "reasons": list(one.request.reasons),
                "digest": one.request.digest,
            }
            for one in waiting
        ],
    }
    return web.Response(
        body=json.dumps(body, ensure_ascii=False, default=str).encode(errors="replace"),
        content_type="application/json",
        headers=visit.headers,
    )


def _owner(visit: RequestContext) -> str:
    return visit.key.name if visit.key is not None else ""
