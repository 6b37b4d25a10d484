"""What a run has used so far, for pages that watch it: folded one event at a time, without keeping the events.

The counts are those of `Trace`, which limits are judged by; this view is for a run of which only the totals are needed.
"""

from __future__ import annotations

from taoloop.core.decision import NO_MODELS
from taoloop.core.events import (
    ActionRequested,
    Event,
    Finished,
    ModelReplied,
    Observed,
    Paused,
    ReadDropped,
    ReplyRejected,
    Resumed,
    RunStarted,
)
from taoloop.core.message import SIDE_PURPOSES, Usage


class RunTotals:
    """The totals of a run, or of the part of it that was folded.

    Attributes:
        last_seq: The last event that was folded; -1 for none.
        started_at: The time of the first event, in seconds since the epoch; 0 for none.
        updated_at: The time of the last one.
        status: A finished status, `waiting` or `running`.
        steps: Decisions of the model.
        model_calls: Replies of the model, those to side questions included.
        tool_calls: Calls that were not denied at once.
        repairs: Replies that were not accepted.
        failures: Calls that failed, or were denied.
        usage: The tokens of all replies, and of the runs inside.
        cost_usd: What they cost, as far as it is known.
        unpriced_calls: How many of them have no known price.
    """

    __slots__ = (
        "_has_price",
        "_last_step",
        "cost_usd",
        "failures",
        "last_seq",
        "model_calls",
        "repairs",
        "started_at",
        "status",
        "steps",
        "tool_calls",
        "unpriced_calls",
        "updated_at",
        "usage",
    )

    def __init__(self) -> None:
        self.last_seq, self.started_at, self.updated_at, self.status = -1, 0.0, 0.0, "running"
        self.steps = self.model_calls = self.tool_calls = self.repairs = self.failures = 0
        self.usage, self.cost_usd, self.unpriced_calls = Usage(), 0.0, 0
        self._last_step: int | None = None
        self._has_price = False

    def fold(self, event: Event) -> None:
        """Process the next event."""
        if self.last_seq < 0:
            self.started_at = event.at
        self.last_seq, self.updated_at = event.seq, event.at
        match event.fact:
            case ModelReplied() as fact:
                self._replied(fact)
            case ActionRequested(verdict=verdict):
                self.tool_calls += verdict != "deny"
            case ReadDropped():
                self.tool_calls += 1
            case Observed() as fact:
                self.failures += not fact.ok
                if fact.usage is not None:
                    self._spend(fact.usage, fact.cost_usd)
            case ReplyRejected():
                self.repairs += 1
            case RunStarted() | Resumed():
                self.status = "running"
            case Paused(status=status) | Finished(status=status):
                self.status = status
            case _:
                pass

    def _replied(self, fact: ModelReplied) -> None:
        self.model_calls += fact.model not in NO_MODELS
        self._spend(fact.usage, fact.cost_usd)
        if fact.purpose != "close" and fact.purpose not in SIDE_PURPOSES and fact.step != self._last_step:
            self.steps += 1
            self._last_step = fact.step

    def _spend(self, usage: Usage, cost_usd: float | None) -> None:
        self.usage += usage
        if cost_usd is None:
            self.unpriced_calls += 1
        else:
            self.cost_usd, self._has_price = self.cost_usd + cost_usd, True

    @property
    def known_cost_usd(self) -> float | None:
        """What the replies with a known price cost; None where there are others only: not 0."""
        return self.cost_usd if self._has_price or not self.unpriced_calls else None
