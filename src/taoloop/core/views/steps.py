"""A run as steps and calls: a view of the trace for people, planners and transcripts.

The loop itself needs only counters and the calls that wait, which the trace keeps; this view is built on demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from taoloop.core.decision import Act, Answer
from taoloop.core.events import (
    ActionRequested,
    ApprovalGiven,
    ApprovalRefused,
    DoubtSettled,
    Event,
    InDoubt,
    ModelReplied,
    Observed,
    ReplyRejected,
)
from taoloop.core.human_input import InputAnswered
from taoloop.core.message import SIDE_PURPOSES

NO_OUTCOME, TIMED_OUT = "no_outcome", "timeout"
"""Why a call is in doubt: its process ended before the outcome was stored, or there was none in time."""

PROBE = "probe"
"""Who settled a doubt if it was the tool's own probe and not a person."""


UNDONE = "undone by tao undo"
"""What a note to a resumed run is about, and the code of calls that were dropped, if effects of the run were undone."""

NOTE = "note"
"""Why a run that had ended was reopened, if only to take a person's note; it ends again with that."""

RELEASED = "released by "
"""How the reason begins for which a person has a run tried again that killed its processes; their name follows."""

NEW_POLICY = "new policy"
"""What a note to a run is about that was resumed under another policy."""

CRITIQUE, REVISION, LESSON = "critique of a draft", "revision of a draft", "lesson of run "
"""What notes of the reflection are about: how a critique was judged, which no prompt shows; its findings, with which
the model decides again; and, before the id of an earlier run, the lesson that is read from there."""

EVALUATION, DROPPED_LESSON = "failed evaluation", "dropped lesson"
"""What notes of people to a run that has ended are about: why its answer is wrong; that its lesson no longer counts."""

TIMEOUT = "timeout"
"""Who refused a call that nobody answered in time."""


UNCLEAR = frozenset({"in_doubt", "timeout", "exception", "invalid_output"})
"""Errors of a call that may have had its effect all the same."""


class View(Protocol):
    """Anything that is built from a trace event by event."""

    def fold(self, event: Event) -> None:
        """Process the next event of the trace."""
        ...


@dataclass(slots=True, eq=False)
class CallView:
    """One action with all that happened to it."""

    requested: ActionRequested
    """What the model asked for, and the policy's verdict."""
    approval: ApprovalGiven | ApprovalRefused | None = None
    """A person's answer."""
    attempts: int = 0
    """How often the call was started."""
    timeouts: int = 0
    """How many attempts had no outcome in time."""
    waited: int = 0
    """How many attempts ended because a run inside the call waits, or took that run further."""
    progress: int = 0
    """How far the run inside the call had come before the last attempt."""
    started_at: float | None = None
    """When the last attempt began, in seconds since the epoch."""
    doubt: InDoubt | None = None
    """That the last attempt has no outcome."""
    settled: DoubtSettled | None = None
    """Whether the last attempt had happened after all."""
    observed: Observed | None = None
    """The outcome."""
    answers: tuple[InputAnswered, ...] = ()
    """What people answered to its own questions while it ran, in order."""
    is_outdated: bool = False
    """Whether its tool has changed since it was judged."""

    @property
    def args(self) -> Any:
        """The arguments that run: the model's, or those that a person put in their place."""
        if isinstance(self.approval, ApprovalGiven) and self.approval.args is not None:
            return dict(self.approval.args)
        return self.requested.args

    @property
    def is_fresh(self) -> bool:
        """True for a call that the policy allowed and that nothing has happened to since."""
        is_new = not self.attempts and self.approval is None and not self.waited
        return is_new and self.requested.verdict == "allow" and not self.is_outdated

    @property
    def needs_person(self) -> bool:
        """True while the policy's question about this call has no answer."""
        return self.requested.verdict == "ask" and self.approval is None


class Step:
    """One decision of the model (with the replies that led to it) and the calls that carry it out."""

    __slots__ = ("calls", "number", "rejected", "replies")

    def __init__(self, number: int) -> None:
        self.number = number
        self.replies: list[ModelReplied] = []
        self.rejected: list[ReplyRejected] = []
        self.calls: list[CallView] = []

    @property
    def decision(self) -> Act | Answer | None:
        """The decision that was read; None if no reply of this step was readable."""
        return self.replies[-1].decision if self.replies else None


class Steps:
    """All steps, with the calls of the trace. The closing turn is not a step, and neither is a summary."""

    __slots__ = ("_calls", "steps")

    def __init__(self, calls: Mapping[str, CallView]) -> None:
        self.steps: list[Step] = []
        self._calls = calls

    def fold(self, event: Event) -> None:
        """Process the next event."""
        match event.fact:
            case ModelReplied(purpose=purpose) if purpose == "close" or purpose in SIDE_PURPOSES:
                return
            case ModelReplied() as fact:
                if not self.steps or self.steps[-1].number != fact.step:
                    self.steps.append(Step(fact.step))
                self.steps[-1].replies.append(fact)
            case ReplyRejected() as fact if self.steps and self.steps[-1].number == fact.step:
                self.steps[-1].rejected.append(fact)
            case ActionRequested() as fact:
                self.steps[-1].calls.append(self._calls[fact.call_id])
            case _:
                pass
