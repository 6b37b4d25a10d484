"""The result of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taoloop.core.events import Status
from taoloop.core.message import Usage
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Entry, transcript, transcript_text
from taoloop.errors import IllegalEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a run ended, or that it waits for a person."""

    run_id: str
    """The id of the run."""

    status: Status
    """How it ended, or `waiting`."""

    answer: str | None
    """The model's answer, as JSON if the agent has an output type; None if there is none."""

    reason: str
    """Why the run ended or waits, in words for people."""

    trace: Trace
    """Everything that happened."""

    output: Any = None
    """The answer as a value of the agent's output type; plain JSON if that is a schema."""

    @classmethod
    def of(cls, trace: Trace) -> Result:
        """The result of a run that is finished or waits."""
        end = trace.finished or trace.paused
        if end is None:
            raise IllegalEvent(f"Run {trace.run_id} is still running.")
        answer = None if trace.finished is None else trace.finished.answer
        return cls(run_id=trace.run_id, status=end.status, answer=answer, reason=end.reason, trace=trace)

    @property
    def usage(self) -> Usage:
        """The tokens of all model calls."""
        return self.trace.usage

    @property
    def cost_usd(self) -> float | None:
        """The cost of all model calls; None if the price of any of them is unknown."""
        return None if self.trace.unpriced_calls else self.trace.cost_usd

    @property
    def entries(self) -> list[Entry]:
        """The run as Thought, Action, Observation and Final entries, numbered from 0."""
        return transcript(self.trace)

    @property
    def text(self) -> str:
        """The whole trajectory as text."""
        return transcript_text(self.trace)
