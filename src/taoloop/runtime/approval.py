"""Asking a person about one call."""

from __future__ import annotations

import asyncio
import copy
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from taoloop.core.cards import ToolCard
from taoloop.core.events import ApprovalGiven, ApprovalRefused
from taoloop.core.requests import call_digest
from taoloop.core.steps import CallView


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """The question: may this exact call run? `reasons` say why it is asked."""

    run_id: str
    call_id: str
    tool: str
    args: Mapping[str, Any]
    reasons: tuple[str, ...]
    card: ToolCard | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """A person's answer. `note` goes to the model with a refusal; `args` replace the model's arguments."""

    approved: bool
    by: str = "user"
    note: str = ""
    args: Mapping[str, Any] | None = None


_LOG = logging.getLogger("taoloop")

Approver = Callable[[ApprovalRequest], ApprovalAnswer | bool | Awaitable[ApprovalAnswer | bool | None] | None]
"""Answers a question; None means "not now": the run then waits."""


class OneByOne:
    """An approver that is asked only while nobody else who shares the lock is: a person gets one question at a time."""

    def __init__(self, approver: Approver, asking: asyncio.Lock) -> None:
        self._approver, self._asking = approver, asking

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer | bool | None:
        """The answer of the approver, once those before it have theirs."""
        async with self._asking:
            answer = self._approver(request)
            return await answer if inspect.isawaitable(answer) else answer


async def ask(approver: Approver, run_id: str, call: CallView, card: ToolCard | None) -> ApprovalAnswer | None:
    """The approver's answer for one call, or None if there is none now.

    An approver that raises or answers something else has not answered: that is logged, and the run waits.
    """
    requested = call.requested
    question = ApprovalRequest(
        run_id=run_id,
        call_id=requested.call_id,
        tool=requested.tool,
        args=copy.deepcopy(requested.args),  # what the approver does to it must not change what was asked
        reasons=requested.reasons,
        card=card,
    )
    try:
        answer = approver(question)
        if inspect.isawaitable(answer):
            answer = await answer
    except Exception:  # noqa: BLE001  # whatever an approver raises is no answer
        _LOG.exception("the approver of run %s failed at %s", run_id, requested.call_id)
        return None
    return _understood(answer, run_id)


def _understood(answer: object, run_id: str) -> ApprovalAnswer | None:
    if isinstance(answer, bool):
        return ApprovalAnswer(approved=answer)
    if answer is None or isinstance(answer, ApprovalAnswer):
        return answer
    _LOG.error("the approver of run %s answered %r: no bool, None or ApprovalAnswer", run_id, answer)
    return None


def answer_fact(call: CallView, answer: ApprovalAnswer) -> ApprovalGiven | ApprovalRefused:
    """The answer as a fact, bound to exactly the call that will run."""
    requested = call.requested
    if not answer.approved:
        return ApprovalRefused(call_id=requested.call_id, by=answer.by, note=answer.note)
    args = requested.args if answer.args is None else answer.args
    return ApprovalGiven(
        call_id=requested.call_id,
        digest=call_digest(requested.tool, args),
        by=answer.by,
        args=answer.args,
        note=answer.note,
    )
