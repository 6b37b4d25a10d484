"""Approvals and questions of a waiting run as interrupts of AG-UI, and the answers that resume it.

An interrupt names its run and its call, with the code of exactly this question: an answer reaches what its person saw,
and nothing that waits by now instead. The same answer may be sent again; another one counts for nothing. An approval
may have other arguments (`editedArgs`), checked as those of every person who edits a call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from taoloop.core.decision import call_digest
from taoloop.core.events import ApprovalGiven, ApprovalRefused
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.errors import ApprovalStale, InvalidArguments, NotWaiting, RunNotFound
from taoloop.journals.base import Journal
from taoloop.runtime.approvals.inbox import PendingApproval, pending_approvals, validate_edited_args
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest
from taoloop.runtime.approvals.user_questions import checked_answer, question_warnings
from taoloop.serve.gateway.agui.run_input import ResumeEntry
from taoloop.serve.gateway.chat_approval import answer_all, question_code, question_text
from taoloop.serve.gateway.client_tools import client_call_id
from taoloop.serve.gateway.errors import ApiError, invalid
from taoloop.serve.gateway.run_response import RunResponse

OPERATOR_REASON = "taoloop:operator"
"""The reason of an interrupt that the operator of the server resolves; the client can only ask what became of it."""

_RUN = r"\d{8}-\d{6}-[0-9a-f]{8}"
_ID = re.compile(rf"int_(?P<outer>{_RUN})_(?P<inner>{_RUN}[\w.-]*)_(?P<call>call_\d+)_(?P<code>[0-9a-f]{{16}})")
_OPERATOR_ID = re.compile(rf"int_(?P<outer>{_RUN})_operator")
_EDITED = "editedArgs"
_APPROVAL_FIELDS = ("approved", "note", _EDITED)
_APPROVAL_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "note": {"type": "string"}},
    "required": ["approved"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptAnswers:
    """The answers of a request, read and fit to be stored."""

    run_id: str
    """The run that they resume."""

    answers: tuple[tuple[PendingApproval, ApprovalAnswer], ...] = ()
    """Each open question with its answer."""

    is_replay: bool = False
    """Whether all of them were given before, so that nothing is left to be stored."""

    by_operator: bool = False
    """Whether the operator answers, and the request only asks what became of it."""


def interrupts_of(response: RunResponse) -> list[dict[str, Any]]:
    """What a waiting run waits for; for the operator's part one interrupt that shows it."""
    run_id = response.result.run_id
    if response.by_operator or not response.waiting:
        message = response.content
        return [{"id": f"int_{run_id}_operator", "reason": OPERATOR_REASON, "message": message}]
    language = response.result.trace.agent.language
    return [_interrupt(run_id, approval, language) for approval in response.waiting]


def resumed_run(entries: Sequence[ResumeEntry]) -> str:
    """The run that the entries answer.

    Raises:
        ApiError: an id is none of this server, is there twice, or they are of more than one run.
    """
    runs: set[str] = set()
    for index, entry in enumerate(entries):
        param = f"resume[{index}].interruptId"
        match = _ID.fullmatch(entry.interrupt_id) or _OPERATOR_ID.fullmatch(entry.interrupt_id)
        if match is None:
            raise invalid(f"`{param}` is the id of no interrupt that this server gave.", param, "unknown_interrupt")
        if any(entry.interrupt_id == other.interrupt_id for other in entries[:index]):
            raise invalid(f"`{param}` is there twice. Answer each interrupt once.", param)
        runs.add(match["outer"])
    if len(runs) != 1:
        raise invalid("The entries answer interrupts of more than one run.", "resume")
    return runs.pop()


async def read_answers(
    journal: Journal, trace: Trace, entries: Sequence[ResumeEntry], *, owner: str, note: str = ""
) -> InterruptAnswers:
    """The answers to the questions of a run; `note` is what the person wrote in place of an answer.

    Raises:
        ApiError: an interrupt is not open and was not answered in this way, an open one is missing, or a payload does
            not fit. Names the entry.
    """
    if all(_OPERATOR_ID.fullmatch(entry.interrupt_id) for entry in entries):
        return InterruptAnswers(run_id=trace.run_id, by_operator=True)
    waiting = {
        interrupt_id(trace.run_id, approval): approval
        for approval in await pending_approvals(journal, run_id=trace.run_id)
    }
    answers = []
    for index, entry in enumerate(entries):
        approval = waiting.get(entry.interrupt_id)
        if approval is None:
            await _require_replay(journal, entry, f"resume[{index}]")
        else:
            answers.append((approval, _answer(approval.request, entry, f"resume[{index}]", owner=owner, note=note)))
    answered = {entry.interrupt_id for entry in entries}
    if answers and (open_ids := [name for name in waiting if name not in answered]):
        raise ApiError(
            status=409,
            message=f"Answer every interrupt of the run together; these are missing: {', '.join(open_ids)}.",
            param="resume",
            code="open_interrupts",
        )
    return InterruptAnswers(run_id=trace.run_id, answers=tuple(answers), is_replay=not answers)


async def store_answers(journal: Journal, answers: InterruptAnswers) -> None:
    """Store the answers; the run can be resumed then.

    Raises:
        ApiError: somebody else answered one of the questions meanwhile, its time is over, or a rule of the operator
            denies the edited arguments. The answers before it are stored; they may be sent again with the others.
    """
    try:
        for approval, answer in answers.answers:
            await answer_all(journal, [approval], answer)
    except (NotWaiting, ApprovalStale) as error:
        raise ApiError(status=409, message=error.message, code=error.code, param="resume") from None
    except InvalidArguments as error:
        raise invalid(f"{error.message} {error.hint or ''}".rstrip(), "resume", error.code) from None


def interrupt_id(run_id: str, approval: PendingApproval) -> str:
    """The id of the interrupt for one question of a run, or of a run inside it."""
    request = approval.request
    return f"int_{run_id}_{request.run_id}_{request.call_id}_{question_code([approval])}"


def _interrupt(run_id: str, approval: PendingApproval, language: str) -> dict[str, Any]:
    request, question = approval.request, approval.request.question
    schema = _approval_schema(request) if question is None else question.fields or {"type": "object", "properties": {}}
    details: dict[str, Any] = {"run_id": request.run_id, "call_id": request.call_id, "tool": request.tool}
    details |= {"arguments": dict(request.args), "digest": request.digest}
    if question is None:
        details |= {"reasons": list(request.reasons), "high_risk": request.high_risk}
    else:
        details["warnings"] = list(question_warnings(question, request.language))
    interrupt: dict[str, Any] = {
        "id": interrupt_id(run_id, approval),
        "reason": "tool_call" if question is None else "input_required",
        "message": question_text(approval, language),
        "responseSchema": dict(schema),
        "metadata": {"taoloop": details},
    }
    if request.run_id == run_id:
        interrupt["toolCallId"] = client_call_id(run_id, request.call_id)
    if request.expires_at is not None:
        interrupt["expiresAt"] = datetime.fromtimestamp(request.expires_at, UTC).isoformat()
    return interrupt


def _approval_schema(request: ApprovalRequest) -> Mapping[str, Any]:
    """The form of an answer to a call: yes or no, and for a known tool other arguments as its schema takes them."""
    if request.card is None:
        return _APPROVAL_SCHEMA
    edited = dict(request.card.input_schema)
    definitions: dict[str, Any] = {
        name: edited.pop(name) for name in ("$defs", "definitions") if name in edited
    }  # refer to the root
    return {**_APPROVAL_SCHEMA, "properties": {**_APPROVAL_SCHEMA["properties"], _EDITED: edited}, **definitions}


def _answer(request: ApprovalRequest, entry: ResumeEntry, param: str, *, owner: str, note: str) -> ApprovalAnswer:
    by, authenticated = owner or "client", "gateway_key" if owner else ""
    if entry.status == "cancelled":
        return ApprovalAnswer(approved=False, by=by, note=note, authenticated=authenticated)
    payload = entry.payload
    if not isinstance(payload, Mapping):
        raise invalid(f"`{param}.payload` must be an object that fits `responseSchema`.", f"{param}.payload")
    if request.question is not None:
        answer = ApprovalAnswer(approved=True, args=dict(payload), by=by, authenticated=authenticated)
        try:
            return checked_answer(request, answer)
        except InvalidArguments as error:
            message = f"`{param}.payload` does not fit: {error.message} {error.hint or ''}".rstrip()
            raise invalid(message, f"{param}.payload", error.code) from None
    approved, reason = payload.get("approved"), payload.get("note", "")
    unknown = [name for name in payload if name not in _APPROVAL_FIELDS]
    if not isinstance(approved, bool) or not isinstance(reason, str) or unknown:
        what = f" It has {unknown[0]!r}, and nothing but these can be sent." if unknown else ""
        message = (
            f"`{param}.payload` must have `approved`, true or false, and may have `note`, a text, and `{_EDITED}`, "
            f"the arguments to call the tool with.{what}"
        )
        raise invalid(message, f"{param}.payload")
    args = _edited_args(request, payload.get(_EDITED), f"{param}.payload.{_EDITED}") if approved else None
    note = reason or ("" if approved else note)
    return ApprovalAnswer(approved=approved, by=by, note=note, args=args, authenticated=authenticated)


def _edited_args(request: ApprovalRequest, edited: object, param: str) -> Mapping[str, Any] | None:
    """The arguments that replace those of a call, before anything is stored; None: it keeps its own.

    Raises:
        ApiError: they do not fit the tool.
    """
    if edited is None:
        return None
    if not isinstance(edited, Mapping) or request.card is None:
        raise invalid(f"`{param}` must be an object with all arguments of the call.", param)
    try:
        return validate_edited_args(request.card, edited, request.language, tools=request.tools)
    except InvalidArguments as error:
        raise invalid(
            f"`{param}` does not fit: {error.message} {error.hint or ''}".rstrip(), param, error.code
        ) from None


async def _require_replay(journal: Journal, entry: ResumeEntry, param: str) -> None:
    """Refuse an entry for a question that is not open, unless it was answered in this way before."""
    match = _ID.fullmatch(entry.interrupt_id)
    if match is not None and f"{match['inner']}.".startswith(f"{match['outer']}."):
        with suppress(RunNotFound):
            trace = Trace(match["inner"], await journal.load(match["inner"]))
            if (call := trace.calls.get(match["call"])) is not None and _is_answered(trace, call, entry):
                return
    raise ApiError(
        status=409,
        message=f"`{param}.interruptId` names an interrupt that is not open any more, or was answered otherwise.",
        param=f"{param}.interruptId",
        code="not_waiting",
    )


def _is_answered(trace: Trace, call: CallView, entry: ResumeEntry) -> bool:
    """Whether a call was answered as the entry answers it."""
    payload = entry.payload if isinstance(entry.payload, Mapping) else {}
    if entry.status == "cancelled" or payload.get("approved") is False:
        return isinstance(call.approval, ApprovalRefused)
    if not isinstance(call.approval, ApprovalGiven):
        return False
    if "approved" not in payload:  # a form of a question
        return call.approval.args == payload
    if (edited := payload.get(_EDITED)) is None:
        return call.approval.args is None
    tool, card = call.requested.tool, trace.card(call.requested.tool)
    if card is None or not isinstance(edited, Mapping):
        return False
    try:
        args = validate_edited_args(card, edited, trace.agent.language)
    except InvalidArguments:
        return False
    return call_digest(tool, args) == call_digest(tool, call.args)
