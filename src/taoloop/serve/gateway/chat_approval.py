"""Approvals in a chat: the question that a client gets for a waiting run, and its reply in the next message."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from taoloop.core.cards.questions import choices_of
from taoloop.core.events import Resumed
from taoloop.core.policy import TaskAuthority
from taoloop.core.trace import Trace
from taoloop.core.views.plans import plan_lines
from taoloop.core.views.steps import CallView
from taoloop.journals.base import Journal
from taoloop.policy.grants import target_provenance
from taoloop.policy.targets import leaves
from taoloop.runtime.approvals.inbox import PendingApproval, answer_approval
from taoloop.runtime.approvals.request import (
    EXPLICIT_YES_WORDS,
    NO_WORDS,
    YES_WORDS,
    ApprovalAnswer,
    ApprovalRequest,
)
from taoloop.runtime.approvals.user_questions import question_warnings
from taoloop.serve.texts import TEXTS

_SPLIT = re.compile(r"\s*[:：,，;；\n]\s*")
_RUN = re.compile(r"\((?:run|运行) (\d{8}-\d{6}-[0-9a-f]{8})(?:(?:, code |，代码 )([0-9a-f]{16}))?\)\s*\Z")
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_SCREEN_CHARS = 1_600  # of the calls in a question; above that, tool, targets and risk are repeated at its end
_MARKUP = re.compile(r"[\[\]<>`]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalReply:
    """A client's reply to the questions of a waiting run."""

    approved: bool
    """Whether the calls are approved, or refused."""

    note: str = ""
    """Why they are refused; the model reads it."""

    is_explicit: bool = False
    """Whether it was an explicit word, which takes more thought than an `ok`: a high-risk call needs one."""

    text: str = ""
    """What the person wrote, whole: the answer where the model asked something."""

    code: str = ""
    """The code of the question that is answered (`question_code`)."""

    turn: int | None = None
    """The turn of the run that asked (`resume_count`), where the client names that in place of a code."""


def question_code(waiting: Iterable[PendingApproval]) -> str:
    """A code for exactly these calls and the time at which each was asked about.

    So a reply reaches the calls that its person saw, and nothing that waits by now instead. The times, down to the
    microsecond, are never shown: no model and no tool can write a question that leads a reply to these calls.
    """
    requests = [approval.request for approval in waiting]
    questions = [(request.run_id, request.call_id, request.digest, request.since) for request in requests]
    return sha256(repr(sorted(questions)).encode()).hexdigest()[:16]


def resume_count(trace: Trace) -> int:
    """How often a run was resumed; it asks other questions each time."""
    return sum(isinstance(event.fact, Resumed) for event in trace.events)


def matches_question(reply: ApprovalReply, trace: Trace, waiting: Sequence[PendingApproval]) -> bool:
    """Whether a reply is to the questions that wait now. `waiting` was loaded before `trace`."""
    if reply.approved and not reply.is_explicit and not _is_one_kind(waiting):
        return False
    return reply.turn == resume_count(trace) if reply.turn is not None else reply.code == question_code(waiting)


def is_for_operator(authority: TaskAuthority, waiting: Sequence[PendingApproval]) -> bool:
    """Whether these questions are the operator's to answer, and not the client's, whose words have this authority."""
    requests = [approval.request for approval in waiting]
    has_calls = any(request.question is None for request in requests) or not requests
    return (has_calls and authority != "full") or any(request.for_operator for request in requests)


def asked_now(waiting: Sequence[PendingApproval]) -> Sequence[PendingApproval]:
    """Of what waits, what one message is about: the calls to be approved, or else the first question of the model."""
    calls = [approval for approval in waiting if approval.request.question is None]
    return calls or waiting[:1]


def has_question(waiting: Sequence[PendingApproval]) -> bool:
    """Whether a message would answer a question of the model, which any client may do for its runs."""
    return bool(waiting) and waiting[0].request.question is not None


def _is_one_kind(waiting: Sequence[PendingApproval]) -> bool:
    """Whether a passing `ok` may approve these calls: none is high-risk, and their targets have one provenance."""
    requests = [approval.request for approval in waiting]
    kinds = {target_provenance(list(leaves(request.args)), request.sources) for request in requests}
    return len(kinds) <= 1 and not any(request.grave for request in requests)


def waiting_text(
    run_id: str,
    waiting: Sequence[PendingApproval],
    in_doubt: Sequence[CallView],
    language: str,
    *,
    by_operator: bool = False,
) -> str:
    """What a run waits for: the content of an answer, in which `parse_waiting_run` finds the run again.

    `by_operator`: the client may not answer it.
    Values are shown whole, and as code: a chat client must not load a picture that a model put into one.
    """
    lines = []
    if has_question(waiting):
        lines += _question_lines(waiting[0].request, language)
    elif waiting:
        lines.append(TEXTS.text(language, "operator_head" if by_operator else "approval_head"))
        lines += [_approval_line(approval, language, for_user=by_operator) for approval in waiting]
        if sum(map(len, lines)) > _SCREEN_CHARS:
            lines += ["", TEXTS.text(language, "approval_again")]
            lines += [f"- {_quoted(approval.request.summary(language))}" for approval in waiting]
        lines += ["", TEXTS.text(language, "operator_how" if by_operator else "approval_how")]
    if in_doubt:
        lines.append(TEXTS.text(language, "approval_in_doubt"))
        lines += [f"- {_quoted_call(call.requested.tool, call.args)}" for call in in_doubt]
    return "\n".join([*lines, "", TEXTS.text(language, "approval_run", run=run_id, code=question_code(waiting))])


def question_text(approval: PendingApproval, language: str) -> str:
    """What is asked about one call, as `waiting_text` shows it, without how to answer in a chat."""
    if approval.request.question is not None:
        return "\n".join(_question_lines(approval.request, language)).strip()
    head = TEXTS.text(language, "approval_head")
    return f"{head}\n{_approval_line(approval, language, for_user=False)}"


def _question_lines(request: ApprovalRequest, language: str) -> list[str]:
    """A question of the model with its choices, each as code, and how to answer."""
    lines = [TEXTS.text(language, "question_head"), "", _quoted(str(request.args.get("question", "")))]
    choices = choices_of(request.args)
    lines += [f"{number}. {_quoted(choice)}" for number, choice in enumerate(choices, 1)]
    if request.question is not None:
        lines += ["", *question_warnings(request.question, language)]
    kind = "choice" if choices else str(request.args.get("format") or "text")
    return [*lines, "", TEXTS.text(language, f"question_how_{kind}")]


def parse_waiting_run(content: str) -> tuple[str, str] | None:
    """The waiting run that an earlier answer named, and the code of its questions (empty: it has none)."""
    match = _RUN.search(content)
    return (match[1], match[2] or "") if match is not None else None


def parse_approval_reply(text: str) -> ApprovalReply:
    """What a person wrote: a yes, a no with a reason, or other text, which refuses and is the reason."""
    return replace(_parse_decision(text), text=text.strip())


def _parse_decision(text: str) -> ApprovalReply:
    head, *rest = _SPLIT.split(text.strip(), maxsplit=1)
    word = head.strip(" .!。！`'\"“”").casefold().replace(" ", "_")
    note = rest[0].strip() if rest else ""
    if word in YES_WORDS and not note:
        return ApprovalReply(approved=True, is_explicit=word in EXPLICIT_YES_WORDS)
    if word in NO_WORDS:
        return ApprovalReply(approved=False, note=note)
    return ApprovalReply(approved=False, note=text.strip())


async def answer_all(journal: Journal, waiting: Sequence[PendingApproval], answer: ApprovalAnswer) -> None:
    """Answer these calls. Calls in doubt are not among them.

    Raises:
        NotWaiting, ApprovalStale: the question is no longer open.
    """
    for request in (approval.request for approval in waiting):
        digest = request.digest if answer.approved else None
        await answer_approval(journal, request.run_id, request.call_id, answer, digest=digest)


def user_reasons(language: str, codes: Iterable[str]) -> tuple[str, ...]:
    """Why a call is not simply made, for an end user: none of the operator's rules, profiles, tools or own words.

    `codes` are those of the verdict's reasons. Nothing for those that an end user can do nothing about.
    """
    names = dict.fromkeys(_USER_REASONS[code] for code in codes if code in _USER_REASONS)
    return tuple(TEXTS.text(language, name) for name in names)


_USER_REASONS = {
    **dict.fromkeys(("FOREIGN", "UNKNOWN", "LINKS", "filled", "read_out"), "user_own_words"),
    **dict.fromkeys(
        ("not_pinned", "no_target", "on_input", "foreign_destructive", "foreign_undeclared"), "user_not_asked"
    ),
    "excluded": "user_excluded",
    "repeated": "user_repeated",
}
"""The names of the texts for reasons that an end user can do something about."""


def _approval_line(approval: PendingApproval, language: str, *, for_user: bool) -> str:
    request = approval.request
    if (plan := request.plan) is not None:
        line = "\n".join(f"- {_quoted(text)}" for text in plan_lines(language, plan))
    else:
        line = f"- {_quoted_call(request.tool, request.args)}"
    if undo := approval.request.undo_text(language):
        line += TEXTS.text(language, "approval_undo", undo=_MARKUP.sub(r"\\\g<0>", _escape_invisible(undo)))
    reasons = user_reasons(language, approval.request.reason_codes) if for_user else approval.request.reasons
    joined = TEXTS.text(language, "separator").join(reasons)
    if not joined:
        return line
    reasons_text = _MARKUP.sub(r"\\g<0>", _escape_invisible(joined))
    return line + TEXTS.text(language, "approval_because", reasons=reasons_text)


def _quoted_call(tool: str, args: Any) -> str:
    return _quoted(f"{tool}({json.dumps(args, ensure_ascii=False, default=str)})")


def _quoted(code: str) -> str:
    text = _escape_invisible(code)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    quote = "`" * (longest + 1)
    return f"{quote}{text}{quote}"


def _escape_invisible(text: str) -> str:
    """The text with all invisible characters written as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{{{ord(char):x}}}" if unicodedata.category(char) in _HIDDEN else char for char in text)
