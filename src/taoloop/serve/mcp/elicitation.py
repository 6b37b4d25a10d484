"""Elicitation: the questions of a run for the person at an MCP host, and the answers.

A host of the 2026 era gets them instead of the result and repeats the call with the answers; one of the handshake era
is asked while its call waits. What is shown is up to the host, which also answers for its person.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from taoloop.core.events import Source
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest
from taoloop.serve.texts import TEXTS

BY = "mcp"
"""Who answered, in the trace: the host, which claims that a person did."""

MAX_QUESTIONS = 16
"""How many questions one result may have; the others are asked in the next round."""

_MAX_NOTE_CHARS = 2_000
_ROLE_ORDER = {"target": 0, "value": 2, "content": 3, "minor": 4}


def form_schema(language: str = "en") -> dict[str, Any]:
    """What a person is asked to fill in. Nothing is approved by default."""
    text = partial(TEXTS.text, language)
    allow = {"type": "boolean", "title": text("form_allow"), "description": text("form_allow_help"), "default": False}
    note = {"type": "string", "title": text("form_note"), "description": text("form_note_help")}
    return {"type": "object", "properties": {"allow": allow, "note": note}, "required": ["allow"]}


def is_modern(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether a request is of the era in which questions are part of the result (2026-07-28 and later)."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def can_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the host declares that it can show a form to a person."""
    capabilities = ctx.session.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False  # none at all, or web pages only; an empty object means forms
    return is_modern(ctx) or ctx.session.can_send_request


def question_key(request: ApprovalRequest) -> str:
    """The key of a question: its run, which may be an inner run, and its call."""
    return f"{request.run_id}/{request.call_id}"


class ElicitationApprover:
    """An approver that gives the answers it has, and keeps the questions that it has none for."""

    def __init__(self, answers: Mapping[str, ApprovalAnswer] | None = None) -> None:
        self.answers = dict(answers or {})
        self.open: dict[str, ApprovalRequest] = {}

    def __call__(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """The answer to a question, which counts once; None for "not now". Hosts are not asked about calls in doubt."""
        if request.doubt:
            return None
        answer = self.answers.pop(question_key(request), None)
        if answer is None:
            self.open[question_key(request)] = request
        return answer


def refuse(
    request: ApprovalRequest, reason: Literal["no_forms", "too_many"] = "no_forms", language: str = "en"
) -> ApprovalAnswer | None:
    """The refusal where nobody can be asked, with the remedy: how such calls can be allowed."""
    if request.doubt:
        return None
    if request.card is not None and request.card.requires_approval:
        remedy = TEXTS.text(language, "remedy_rule")
    else:
        tier = (request.card.tier if request.card is not None else None) or "destructive"
        remedy = TEXTS.text(language, "remedy", tier=tier)
    why = TEXTS.text(language, reason)
    return refusal(TEXTS.text(language, "refused_unasked", reason=why, tool=request.tool, remedy=remedy))


def refusal(note: str) -> ApprovalAnswer:
    """A no to all calls of the question; the model reads the note."""
    return ApprovalAnswer(approved=False, by=BY, note=note[:_MAX_NOTE_CHARS], batch=True)


def question_form(request: ApprovalRequest, language: str = "en") -> types.ElicitRequestFormParams:
    """The question as a form."""
    message = question_text(request, language)
    return types.ElicitRequestFormParams(message=message, requested_schema=form_schema(language))


def parse_answer(response: object, language: str = "en") -> ApprovalAnswer:
    """Parse a host's answer: only a form that was submitted with `allow` true is a yes."""
    if not isinstance(response, types.ElicitResult):
        return refusal(TEXTS.text(language, "no_answer"))
    content = response.content or {}
    if response.action == "accept" and content.get("allow") is True:
        return ApprovalAnswer(approved=True, by=BY, batch=True)
    note = content.get("note")
    if isinstance(note, str) and note.strip():
        return refusal(note)
    if response.action == "accept":
        return refusal(TEXTS.text(language, "person_refused"))
    return refusal(TEXTS.text(language, "person_said", action=response.action))


def question_text(request: ApprovalRequest, language: str = "en") -> str:
    """The question for a person: each call with its target first, values whole and with their origin, and the reasons.

    No value can be mistaken for another line of the question: values are JSON, on one line each.
    """
    calls = (request, *request.batch)
    lines = [TEXTS.text(language, "question_one" if len(calls) == 1 else "question_many", n=len(calls))]
    if request.grave:
        lines.append(TEXTS.text(language, "question_grave"))
    for call in calls:
        lines += _call_lines(call, language)
    reasons = TEXTS.text(language, "separator").join(_one_line(reason) for reason in request.reasons)
    lines.append(TEXTS.text(language, "question_reasons", reasons=reasons))
    return "\n".join(lines)


def _call_lines(request: ApprovalRequest, language: str) -> list[str]:
    tier = (request.card.tier if request.card is not None else None) or TEXTS.text(language, "question_no_tier")
    lines = [f"{_one_line(request.tool)} [{tier}]"]
    for name in sorted(request.args, key=lambda name: _display_order(request, name)):
        sources = [source for source in request.sources if source.arg.partition(".")[0].partition("[")[0] == name]
        lines.append(f"  {_one_line(name)} = {_printable_json(request.args[name])}{_origin(sources, language)}")
    return lines


def _display_order(request: ApprovalRequest, name: str) -> int:
    role = "target" if request.card is None else request.card.role(name)
    return _ROLE_ORDER.get(role, 1)


def _origin(sources: list[Source], language: str) -> str:
    badges = dict.fromkeys(TEXTS.text(language, f"badge_{source.badge}") for source in sources)
    joined = TEXTS.text(language, "separator").join(badges)
    return TEXTS.text(language, "question_origin", badges=joined) if badges else ""


def _printable_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)  # escapes what is invisible or changes direction
    if any(ord(char) > 0x7F for char in str(value)):
        readable = json.dumps(value, ensure_ascii=False, default=str)
        text = readable if readable.isprintable() else text
    return text  # in full: nobody can approve what is not shown, and the arguments of a call are bounded


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
