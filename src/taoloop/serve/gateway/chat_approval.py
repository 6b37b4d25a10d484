"""Runs that wait for a person: what their client is told, and what its next message means."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from taoloop.core.events import Resumed
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.runtime.approvals.inbox import answer_approval
from taoloop.runtime.approvals.request import ApprovalAnswer

if TYPE_CHECKING:
    from taoloop.core.redaction.redactor import Redactor
    from taoloop.journals.base import Journal
    from taoloop.runtime.approvals.inbox import PendingApproval

Verdict = Literal["yes", "no"]

_YES = frozenset(
    [
        "yes",
        "y",
        "approve",
        "approved",
        "confirm",
        "confirmed",
        "allow",
        "ok",
        "okay",
        "go",
        "go_ahead",
        "do_it",
        "sure",
        "是",
        "是的",
        "好",
        "好的",
        "同意",
        "批准",
        "可以",
        "确认",
        "允许",
        "行",
    ]
)
_NO = frozenset(
    [
        "no",
        "n",
        "deny",
        "denied",
        "refuse",
        "reject",
        "rejected",
        "cancel",
        "stop",
        "don't",
        "dont",
        "不",
        "否",
        "不要",
        "不行",
        "拒绝",
        "取消",
        "不同意",
        "不可以",
    ]
)
_EXPLICIT = frozenset(["yes", "approve", "approved", "confirm", "confirmed", "是", "同意", "批准", "确认"])
"""What allows a call that is hard to undo and that nobody named the target of: a whole word, no `ok` in passing."""

_SPLIT = re.compile(r"\s*[:：,，;；\n]\s*")
_RUN = re.compile(r"\((?:run|运行) (\d{8}-\d{6}-[0-9a-f]{8})(?:(?:, code |，代码 )([0-9a-f]{16}))?\)\s*\Z")
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_MARKUP = re.compile(r"[\[\]<>`]")

_TEXTS = {
    "en": {
        "head": "This needs your approval before it is done:",
        "doubt": "Nobody knows whether this happened. Whoever runs the server must look it up (`tao settle`):",
        "why": " (because: {reasons})",
        "and": "; ",
        "how": "Answer `yes` to allow it, or `no` and a reason to refuse it; anything else you write refuses it, "
        "and the agent reads what you wrote.",
        "run": "(run {run}, code {code})",
        "other": "Your answer was not used: it was for something else than what waits now, or too short for what is "
        "hard to undo (write the whole word `yes`).",
    },
    "zh": {
        "head": "执行以下操作之前需要你的批准：",
        "doubt": "以下操作是否已生效尚不清楚，须由服务器的运维者核实后告知（`tao settle`）：",
        "why": "（原因：{reasons}）",
        "and": "；",
        "how": "回复“同意”即允许执行；回复“拒绝”并说明理由即不执行；写别的内容也视为拒绝，智能体会读到你写的话。",
        "run": "(运行 {run}，代码 {code})",
        "other": "你的答复未予采用：它针对的不是现在等待的操作，或者对难以撤销的操作来说过于简短（请写“同意”）。",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalReply:
    """What a client's next message means for what waits, and which question it answers.

    `is_whole`: it was a whole word, which takes more thought than an `ok`. The question is the one with this `code`
    (`code_of`), or, where the client names it so, the one of this `turn` (`turn_of`).
    """

    verdict: Verdict
    note: str = ""
    is_explicit: bool = False
    code: str = ""
    turn: int | None = None


def question_code(waiting: Iterable[PendingApproval]) -> str:
    """Stands for exactly these calls, each asked about at its moment.

    So an answer reaches what its person was shown, and nothing that waits by now in its place. The moments, down to
    the microsecond, are told nobody: no model and no tool can write a question that leads an answer to these calls.
    """
    questions = [
        (approval.request.run_id, approval.request.call_id, approval.request.digest, approval.request.since)
        for approval in waiting
    ]
    return sha256(repr(sorted(questions)).encode()).hexdigest()[:16]


def resume_count(trace: Trace) -> int:
    """How often a run was gone on with; it asks other questions each time."""
    return sum(isinstance(event.fact, Resumed) for event in trace.events)


def matches_question(reply: ApprovalReply, trace: Trace, waiting: Sequence[PendingApproval]) -> bool:
    """Whether it is an answer to what waits now. `waiting` was read before `trace`."""
    if reply.verdict == "yes" and not reply.is_explicit and any(approval.request.grave for approval in waiting):
        return False
    return reply.turn == resume_count(trace) if reply.turn is not None else reply.code == question_code(waiting)


def unused_reply_text(language: str) -> str:
    """What a client is told whose answer was to another question."""
    return _TEXTS.get(language, _TEXTS["en"])["other"]


def waiting_text(run_id: str, waiting: Sequence[PendingApproval], doubts: Sequence[CallView], language: str) -> str:
    """What waits and where: the content of an answer. `meant_run` finds the run in it again.

    Values are shown whole, and as code: a chat window must not load a picture that a model put into one.
    """
    texts = _TEXTS.get(language, _TEXTS["en"])
    lines = []
    if waiting:
        lines += [texts["head"], *(_approval_line(approval, texts) for approval in waiting), "", texts["how"]]
    if doubts:
        lines += [texts["doubt"], *(f"- {_quoted_call(call.requested.tool, call.args)}" for call in doubts)]
    return "\n".join([*lines, "", texts["run"].format(run=run_id, code=question_code(waiting))])


def parse_waiting_run(content: str) -> tuple[str, str] | None:
    """The run that an earlier answer said to be waiting, and the code of what it waits for (empty: it has none)."""
    match = _RUN.search(content)
    return (match[1], match[2] or "") if match is not None else None


def parse_approval_reply(text: str) -> ApprovalReply:
    """What a person's words mean: yes, no with a reason, or words of their own, which refuse and are the reason."""
    head, *rest = _SPLIT.split(text.strip(), maxsplit=1)
    word = head.strip(" .!。！`'\"“”").casefold().replace(" ", "_")
    note = rest[0].strip() if rest else ""
    if word in _YES and not note:
        return ApprovalReply(verdict="yes", is_explicit=word in _EXPLICIT)
    if word in _NO:
        return ApprovalReply(verdict="no", note=note)
    return ApprovalReply(verdict="no", note=text.strip())


async def answer_all(
    journal: Journal,
    waiting: Sequence[PendingApproval],
    reply: ApprovalReply,
    *,
    by: str,
    redactor: Redactor | None = None,
) -> None:
    """Answer these calls. What is in doubt is not among them.

    Raises:
        NotWaiting, ApprovalStale: the question is not open any more.
    """
    for approval in waiting:
        answer = ApprovalAnswer(approved=reply.verdict == "yes", by=by, note=reply.note)
        request = approval.request
        digest = request.digest if answer.approved else None
        await answer_approval(journal, request.run_id, request.call_id, answer, digest=digest, redactor=redactor)


def _approval_line(approval: PendingApproval, texts: Mapping[str, str]) -> str:
    reasons, why = _MARKUP.sub(r"\\\g<0>", _escape_invisible(texts["and"].join(approval.request.reasons))), texts["why"]
    return f"- {_quoted_call(approval.request.tool, approval.request.args)}" + (
        why.format(reasons=reasons) if reasons else ""
    )


def _quoted_call(tool: str, args: Any) -> str:
    text = _escape_invisible(f"{tool}({json.dumps(args, ensure_ascii=False, default=str)})")
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    quote = "`" * (longest + 1)
    return f"{quote}{text}{quote}"


def _escape_invisible(text: str) -> str:
    """The text with all signs in it that nobody sees written out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{{{ord(char):x}}}" if unicodedata.category(char) in _HIDDEN else char for char in text)
