"""Whether a waiting run can go on now, by what was added since it paused, and until when it waits otherwise."""

from __future__ import annotations

from typing import NamedTuple

from taoloop.core.events import Paused
from taoloop.core.trace import Trace
from taoloop.core.views.deadlines import wake_time
from taoloop.journals.base import Journal
from taoloop.runtime.approvals.in_doubt import doubt_requests
from taoloop.runtime.approvals.request import unanswered_calls
from taoloop.runtime.child_run import inner_run_id, load_trace


class Waiting(NamedTuple):
    """What a waiting run waits for, with the runs inside it."""

    has_answers: bool
    """Whether something was added to one of them since it paused."""

    questions: int
    """How many questions are open."""

    wake_at: float | None
    """When the first of them counts as refused, in seconds since the epoch; None: none ever does."""

    def can_go_on(self, now: float) -> bool:
        """Whether the run is to be driven: something was answered, is overdue, or it waits for nothing that is asked.

        The last is a result that comes from outside: only a wake tells that it is there.
        """
        return self.has_answers or not self.questions or (self.wake_at is not None and self.wake_at <= now)


async def read_waiting(journal: Journal, trace: Trace) -> Waiting:
    """What a run waits for that is paused.

    Raises:
        JournalError: a run inside it cannot be read.
    """
    own = Waiting(
        has_answers=not isinstance(trace.events[-1].fact, Paused),
        questions=len(unanswered_calls(trace)) + len(doubt_requests(trace)),
        wake_at=wake_time(trace),
    )
    parts = [own]
    for call_id in trace.pending:
        inner = await load_trace(journal, inner_run_id(trace.run_id, call_id))
        if inner is None or inner.started is None or inner.started.parent != trace.run_id:
            continue
        is_paused = inner.finished is None and inner.paused is not None
        parts.append(await read_waiting(journal, inner) if is_paused else Waiting(True, 0, None))
    deadlines = [part.wake_at for part in parts if part.wake_at is not None]
    return Waiting(
        has_answers=any(part.has_answers for part in parts),
        questions=sum(part.questions for part in parts),
        wake_at=min(deadlines, default=None),
    )
