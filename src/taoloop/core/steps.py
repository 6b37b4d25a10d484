"""A run as steps and calls: a view of the trace for people, planners and transcripts.

The loop itself needs only counters and the calls that wait, which the trace keeps; this view is built on demand.
"""

from __future__ import annotations

from typing import Any, Protocol

from taoloop.core.decision import Act, Answer
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    ApprovalGiven,
    ApprovalRefused,
    Event,
    ModelReplied,
    Observed,
    ReplyRejected,
)


class View(Protocol):
    """Anything that is built from a trace event by event."""

    def fold(self, event: Event) -> None:
        """Take in the next event of the trace."""
        ...


class CallView:
    """One action with all that happened to it."""

    __slots__ = ("approval", "attempts", "observed", "requested")

    def __init__(self, requested: ActionRequested) -> None:
        self.requested = requested
        self.approval: ApprovalGiven | ApprovalRefused | None = None
        self.attempts = 0
        self.observed: Observed | None = None

    @property
    def args(self) -> Any:
        """The arguments that run: the model's, or those that a person put in their place."""
        if isinstance(self.approval, ApprovalGiven) and self.approval.args is not None:
            return dict(self.approval.args)
        return self.requested.args

    @property
    def needs_person(self) -> bool:
        """True while the policy's question about this call has no answer."""
        return self.requested.verdict == "ask" and self.approval is None


class Step:
    """One decision of the model (with the replies that led to it) and the calls that answer it."""

    __slots__ = ("calls", "number", "rejected", "replies")

    def __init__(self, number: int) -> None:
        self.number = number
        self.replies: list[ModelReplied] = []
        self.rejected: list[ReplyRejected] = []
        self.calls: list[CallView] = []

    @property
    def decision(self) -> Act | Answer | None:
        """The decision that was read, or None if no reply of this step could be."""
        return self.replies[-1].decision if self.replies else None


class Steps:
    """All steps, and all calls by id. The closing turn is no step, and neither is a summary."""

    __slots__ = ("calls", "steps")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.calls: dict[str, CallView] = {}

    def fold(self, event: Event) -> None:
        """Take in the next event."""
        match event.fact:
            case ModelReplied(purpose="close" | "compact"):
                return
            case ModelReplied() as fact:
                if not self.steps or self.steps[-1].number != fact.step:
                    self.steps.append(Step(fact.step))
                self.steps[-1].replies.append(fact)
            case ReplyRejected() as fact if self.steps and self.steps[-1].number == fact.step:
                self.steps[-1].rejected.append(fact)
            case ActionRequested() as fact:
                call = self.calls[fact.call_id] = CallView(fact)
                self.steps[-1].calls.append(call)
            case ApprovalGiven() | ApprovalRefused() as fact:
                self.calls[fact.call_id].approval = fact
            case ActionStarted() as fact:
                self.calls[fact.call_id].attempts = fact.attempt
            case Observed() as fact:
                self.calls[fact.call_id].observed = fact
            case _:
                pass
