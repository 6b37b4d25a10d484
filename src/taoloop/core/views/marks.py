"""What people say of the outcome of a run: of each person the last mark, and what follows from all of them."""

from __future__ import annotations

from typing import Literal

from taoloop.core.events import Event, Finished
from taoloop.core.human_input import Marked, MarkVerdict
from taoloop.core.trace import Trace


class RunMarks:
    """The marks that count. A mark is about the answer that it follows: it ends with another answer, or with none."""

    def __init__(self) -> None:
        self.by_person: dict[str, Marked] = {}
        """The last mark of each person, in the order in which they were set."""
        self._answer: str | None = None

    def fold(self, event: Event) -> None:
        """Take in the next event."""
        match event.fact:
            case Marked() as fact:
                self.by_person.pop(fact.by, None)
                self.by_person[fact.by] = fact
            case Finished(answer=answer):
                if answer is None or answer != self._answer:
                    self.by_person.clear()
                self._answer = answer

    @property
    def verdict(self) -> MarkVerdict | Literal["disputed"] | None:
        """What all people agree on, `disputed` where they do not; None without a mark."""
        verdicts = {fact.verdict for fact in self.by_person.values()}
        if len(verdicts) > 1:
            return "disputed"
        return next(iter(verdicts), None)


def run_marks(trace: Trace) -> RunMarks:
    """The marks of a run."""
    return trace.view("marks", RunMarks)
