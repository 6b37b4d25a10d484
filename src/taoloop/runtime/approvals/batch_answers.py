"""One answer to many questions, also of several runs: only where the same person looked at the same kind of call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import ConfigError, TaoError
from taoloop.journals.base import Journal
from taoloop.runtime.approvals.inbox import AnswerRecorded, answer_approval, is_one_question
from taoloop.runtime.approvals.inbox_items import InboxItem
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest
from taoloop.runtime.engine.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcome:
    """What came of one answer of a batch."""

    request: ApprovalRequest
    """The question."""

    recorded: AnswerRecorded | None = None
    """The run with the answer; None where it was not accepted."""

    error: TaoError | None = None
    """Why it was not accepted: somebody was faster, or the time is over."""


async def answer_batch(
    journal: Journal,
    items: Sequence[InboxItem],
    answer: ApprovalAnswer,
    *,
    digests: Mapping[tuple[str, str], str] | None = None,
    clock: Clock | None = None,
    redactor: Redactor | None = None,
) -> list[BatchOutcome]:
    """Give the same answer to several approvals, each of which is recorded in its own run.

    An answer that one run does not accept leaves the others as they are: its outcome has the error. `digests` are those
    of the calls that the person looked at, by `InboxItem.key`; by default those of the items.

    Raises:
        ConfigError: the items are not one question (`is_one_question`, and the same card), there are none, or the
            answer is one for a single call: edited arguments, or a scope.
    """
    requests = [item.calls[0].request for item in items if item.kind == "approval"]
    if not requests or len(requests) < len(items):
        raise ConfigError("Only approvals are answered together.", hint="Answer the others one by one.")
    if answer.args is not None or answer.scope != "call":
        raise ConfigError("Several calls take only a yes or a no.", hint="Answer one by one to say more.")
    first = requests[0]
    odd = [
        request
        for request in requests
        if request.card != first.card or not is_one_question(first, request, approved=answer.approved)
    ]
    if odd:
        names = ", ".join(f"{request.run_id} {request.call_id}" for request in odd[:3])
        raise ConfigError(
            f"These calls are not one question: {names}.",
            hint="Together go calls of one tool that one rule asks about, with targets of the same provenance, none of"
            " them high-risk.",
        )
    outcomes = []
    for request in requests:
        try:
            recorded = await answer_approval(
                journal,
                request.run_id,
                request.call_id,
                answer,
                digest=(digests or {}).get((request.run_id, request.call_id), request.digest),
                clock=clock,
                redactor=redactor,
            )
        except TaoError as error:
            outcomes.append(BatchOutcome(request=request, error=error))
        else:
            outcomes.append(BatchOutcome(request=request, recorded=recorded))
    return outcomes
