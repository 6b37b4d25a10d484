"""The questions of a run, put to the person at an MCP host (elicitation), and what the person said.

A host of the 2026 era gets them in place of the result and asks again with the answers; one of the handshake era is
asked while its call waits. What the host shows is up to the host: whoever answers for its person answers here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from taoloop.core.events import Source
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest

BY = "mcp"
"""Who answers, in the trace: the host, which says that a person did."""

MAX_QUESTIONS = 16
"""How many questions one result may carry; the rest is asked in the next round."""

_MAX_NOTE_CHARS = 2_000
_BADGES = {
    "YOURS": "quoted from the task",
    "LOOKED UP": "from a trusted tool",
    "WRITTEN": "written by the model",
    "LINKS": "holds links that stand in no trusted text",
    "UNKNOWN": "no known source",
    "FOREIGN": "only in untrusted output",
}
_RANK = {"target": 0, "value": 2, "content": 3, "minor": 4}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "allow": {"type": "boolean", "title": "Allow", "description": "Whether this may be done.", "default": False},
        "note": {"type": "string", "title": "Note", "description": "If not: why, for the model to read."},
    },
    "required": ["allow"],
}
"""What a person is asked to fill in. Nothing is allowed by default."""


def is_modern(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether a request is of the era in which questions go with the result (2026-07-28 and later)."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def can_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the host says that it can show a form to a person."""
    capabilities = ctx.session.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False  # none at all, or web pages only; an empty object means forms
    return is_modern(ctx) or ctx.session.can_send_request


def question_key(request: ApprovalRequest) -> str:
    """A name for a question: its run, which may be one inside the run that was called for, and its call."""
    return f"{request.run_id}/{request.call_id}"


class ElicitationApprover:
    """An approver that gives the answers it has, and keeps the questions that it has none for."""

    def __init__(self, answers: Mapping[str, ApprovalAnswer] | None = None) -> None:
        self.answers = dict(answers or {})
        self.open: dict[str, ApprovalRequest] = {}

    def __call__(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """The answer to a question, which counts once; None for "not now". What is in doubt is not for a host."""
        if request.doubt:
            return None
        answer = self.answers.pop(question_key(request), None)
        if answer is None:
            self.open[question_key(request)] = request
        return answer


NO_FORMS = "this MCP client shows no questions (elicitation)"
TOO_MANY = "too many other calls wait for an answer; it can be made again when some of them are answered"


def refuse(request: ApprovalRequest, why: str = NO_FORMS) -> ApprovalAnswer | None:
    """The answer where nobody can be asked, with what has to be done so that such a call is made."""
    if request.doubt:
        return None
    tier = (request.card.tier if request.card is not None else None) or "destructive"
    remedy = f"--approve {tier}, or a rule in --policy FILE"
    if request.card is not None and request.card.requires_approval:
        remedy = "a rule in --policy FILE that allows exactly this tool"
    note = f"nobody could be asked, for {why}. Who runs `tao mcp` can allow calls of {request.tool!r}: {remedy}"
    return ApprovalAnswer(approved=False, by=BY, note=note, batch=True)


def question_form(request: ApprovalRequest) -> types.ElicitRequestFormParams:
    """The question as a form."""
    return types.ElicitRequestFormParams(message=question_text(request), requested_schema=SCHEMA)


def parse_answer(response: object) -> ApprovalAnswer:
    """What a host sent back: only a form that was submitted with `allow` true is a yes."""
    if not isinstance(response, types.ElicitResult):
        return ApprovalAnswer(approved=False, by=BY, note="the client sent something else than an answer", batch=True)
    content = response.content or {}
    if response.action == "accept" and content.get("allow") is True:
        return ApprovalAnswer(approved=True, by=BY, batch=True)
    note = content.get("note")
    reason = note if isinstance(note, str) and note.strip() else f"the person said {response.action}"
    if response.action == "accept" and reason != note:
        reason = "the person did not allow it"
    return ApprovalAnswer(approved=False, by=BY, note=reason[:_MAX_NOTE_CHARS], batch=True)


def question_text(request: ApprovalRequest) -> str:
    """The question for a person: what it does to whom first, each value whole and with its origin, and why it is asked.

    Nothing in a value can pass for a line of ours: values are JSON, and so on one line each.
    """
    calls = (request, *request.batch)
    lines = ["Allow this call?" if len(calls) == 1 else f"Allow these {len(calls)} calls?"]
    if request.grave:
        lines.append("It is hard to undo, and nobody named what it acts on.")
    for call in calls:
        lines += _call_lines(call)
    lines.append("Asked because: " + "; ".join(_one_line(reason) for reason in request.reasons))
    return "\n".join(lines)


def _call_lines(request: ApprovalRequest) -> list[str]:
    tier = (request.card.tier if request.card is not None else None) or "no tier: counts as destructive"
    lines = [f"{_one_line(request.tool)} [{tier}]"]
    for name in sorted(request.args, key=lambda name: _rank(request, name)):
        sources = [source for source in request.sources if source.arg.partition(".")[0].partition("[")[0] == name]
        lines.append(f"  {_one_line(name)} = {_printable_json(request.args[name])}{_origin(sources)}")
    return lines


def _rank(request: ApprovalRequest, name: str) -> int:
    role = "target" if request.card is None else request.card.role(name)
    return _RANK.get(role, 1)


def _origin(sources: list[Source]) -> str:
    badges = dict.fromkeys(source.badge for source in sources)
    return f"   ({'; '.join(_BADGES[badge] for badge in badges)})" if badges else ""


def _printable_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)  # escapes what is invisible or changes direction
    if any(ord(char) > 0x7F for char in str(value)):
        readable = json.dumps(value, ensure_ascii=False, default=str)
        text = readable if readable.isprintable() else text
    return text  # whole: nobody can allow what is not shown, and a call takes no more than some ten thousand bytes


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
