"""A question to a person about calls of one kind, and the answer to it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import call_digest
from taoloop.core.events import ApprovalGiven, ApprovalRefused, ApprovalScope, Source
from taoloop.core.views.steps import TIMEOUT, CallView


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """The question: may this exact call run? `reasons` say why it is asked, `rule` which rule of the policy asks.

    `sources` tell for each argument where its value came from. `grave`: the call is hard to undo and nobody named its
    target, so nothing may be allowed by default, and nothing beyond this call. `digest` names tool and arguments
    exactly, `policy` the version of the policy. `since` is when the question was first left open (None: it is put for
    the first time), `expires_at` when it is refused for want of an answer (None: never).
    `batch` are the other calls of the same decision that the same rule asks about: an answer may be for them too.
    With a `doubt` it is another question: did this call, of which no outcome is known, happen? The text says what is
    known; `ApprovalAnswer.settle` answers it.
    """

    run_id: str
    call_id: str
    tool: str
    args: Mapping[str, Any]
    reasons: tuple[str, ...]
    card: ToolCard | None
    sources: tuple[Source, ...] = ()
    rule: str = ""
    grave: bool = False
    policy: str = ""
    digest: str = ""
    since: float | None = None
    expires_at: float | None = None
    batch: tuple[ApprovalRequest, ...] = ()
    doubt: str = ""
    reason_codes: tuple[str, ...] = ()
    """A stable code for each of the reasons; "" for one in the operator's own words."""

    @property
    def has_always(self) -> bool:
        """Whether an answer may allow further calls: not of a grave one, nor of a tool that needs a yes each time."""
        return not self.grave and not (self.card is not None and self.card.requires_approval)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """A person's answer. `note` goes to the model with a refusal; `args` replace the model's arguments.

    `batch`: the answer is for the other calls of the question too. Without it, it is for this call alone, and the
    others are asked about next; so who looks at one call only can never allow another one.
    `scope` says what else is allowed: `rule`, this tool whenever the same rule would ask in this run, from the other
    calls of this question on; `values`, the values of this call as if they stood in the task.
    `settle` answers a doubt: the call happened, is to be repeated, or stays open. Without it a yes means that it
    happened, a no that it stays open: nothing is repeated unless that is said.
    `digits`: decimals in `args` as the person wrote them, by JSON pointer (`{"/amount": "1.10"}`), where a float has
    other digits; tools that send numbers on send these. None: numbers that were not changed stay as the model wrote
    them.
    """

    approved: bool
    by: str = "user"
    note: str = ""
    args: Mapping[str, Any] | None = None
    scope: ApprovalScope = "call"
    batch: bool = False
    settle: Literal["happened", "repeat", "leave"] | None = None
    digits: Mapping[str, str] | None = None


_SETTLINGS = ("happened", "repeat", "leave")

RESERVED_NAMES = frozenset({"guard", "probe", TIMEOUT})
"""Who speaks where no person does: no answer may be signed like that."""

_LOG = logging.getLogger("taoloop")

EXPLICIT_YES_WORDS = frozenset(
    {"yes", "approve", "approved", "confirm", "confirmed", "是", "同意", "批准", "确认", "允许"}
)
"""The replies that approve a high-risk call, at a terminal and to the gateway: an explicit word, no `ok` in passing."""

_YES_EN = {"y", "allow", "ok", "okay", "go", "go_ahead", "do_it", "sure"}
YES_WORDS = EXPLICIT_YES_WORDS | _YES_EN | {"是的", "好", "好的", "可以", "行"}
"""The replies that approve a call, in lower case."""

_NO_EN = {"no", "n", "deny", "denied", "refuse", "reject", "rejected", "cancel", "stop", "don't", "dont"}
NO_WORDS = _NO_EN | {"不", "否", "不要", "不行", "拒绝", "取消", "不同意", "不可以"}
"""The replies that deny a call."""

Approver = Callable[[ApprovalRequest], ApprovalAnswer | bool | Awaitable[ApprovalAnswer | bool | None] | None]
"""Answers a question; None means "not now": the run then waits."""


class SerializedApprover:
    """An approver that is asked only while nobody else who shares the lock is: a person gets one question at a time."""

    def __init__(self, approver: Approver, asking: asyncio.Lock) -> None:
        self.approver, self.asking = approver, asking

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer | bool | None:
        """The answer of the approver, once those before it have theirs."""
        async with self.asking:
            answer = self.approver(request)
            return await answer if inspect.isawaitable(answer) else answer


async def ask(approver: Approver, request: ApprovalRequest, timeout_s: float | None = None) -> ApprovalAnswer | None:
    """The approver's answer to a question, or None if there is none now.

    An approver that raises or answers something else has not answered: that is logged, and the run waits.

    Raises:
        TimeoutError: there was no answer in time. Waiting for somebody else's question to be answered does not count.
    """
    if isinstance(approver, SerializedApprover):
        async with approver.asking:
            return await ask(approver.approver, request, timeout_s)
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(timeout_s) as bound:
            answer = approver(request)
            if inspect.isawaitable(answer):
                answer = await answer
    except Exception as error:  # whatever an approver raises is no answer
        if isinstance(error, TimeoutError) and bound.expired():
            raise
        _LOG.exception("the approver of run %s failed at %s", request.run_id, request.call_id)
        return None
    if timeout_s is not None and loop.time() - began > timeout_s:  # it blocked, so nothing could end it
        raise TimeoutError
    return normalise_answer(answer, request.run_id)


def normalise_answer(answer: object, run_id: str) -> ApprovalAnswer | None:
    """What an approver gave, if it is an answer; anything else is logged, for it could not be kept."""
    if isinstance(answer, bool):
        return ApprovalAnswer(approved=answer)
    if answer is None or (isinstance(answer, ApprovalAnswer) and _is_on_offer(answer)):
        return answer
    _LOG.error("the approver of run %s answered %r: no bool, None or ApprovalAnswer", run_id, answer)
    return None


def _is_on_offer(answer: ApprovalAnswer) -> bool:
    """Whether the fields are of their types: a fact with others could be written, and never read again."""
    by, note, scope, settle = (getattr(answer, name) for name in ("by", "note", "scope", "settle"))
    return (
        isinstance(by, str)
        and by not in RESERVED_NAMES
        and isinstance(note, str)
        and scope in get_args(ApprovalScope)
        and (settle is None or settle in _SETTLINGS)
    )


def answer_fact(call: CallView, answer: ApprovalAnswer) -> ApprovalGiven | ApprovalRefused:
    """The answer as a fact, bound to exactly the call that will run."""
    requested = call.requested
    if answer.approved is not True:
        return ApprovalRefused(call_id=requested.call_id, by=answer.by, note=answer.note)
    edited = answer.args is not None
    return ApprovalGiven(
        call_id=requested.call_id,
        digest=call_digest(requested.tool, answer.args) if edited else requested.digest,
        by=answer.by,
        args=answer.args,
        note=answer.note,
        scope=answer.scope,
        digits=answer.digits if edited else None,
    )
