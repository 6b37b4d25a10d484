"""What all trials together may cost: the model call that reaches the limit is the last one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from taoloop.core.events import Event, ModelReplied
from taoloop.evals.trial_records import TrialRecord
from taoloop.runtime.runner import Listener
from taoloop.translation import Translator, mark

translate = Translator("evals")


class SuiteBudget:
    """Counts what trials cost, and says when no more may be spent.

    Trials that are running then are stopped; a later call with a higher limit resumes them. A reply whose price is
    unknown ends the evaluation, too: the limit could not be kept any more.

    Args:
        limit_usd: The limit; None: nothing ends the evaluation.
    """

    def __init__(self, limit_usd: float | None) -> None:
        self.limit_usd = limit_usd
        self.reason = ""
        """Why no more may be spent, in words; empty while more may be."""
        self.on_spent: Callable[[], object] = lambda: None
        """Called once the limit is reached."""
        self._ended_usd = 0.0
        self._running_usd: dict[str, float] = {}

    @property
    def spent_usd(self) -> float:
        """What trials that have ended and those that are running have cost, as far as prices are known."""
        return self._ended_usd + sum(self._running_usd.values())

    @property
    def is_spent(self) -> bool:
        """Whether no more may be spent."""
        return bool(self.reason)

    def add(self, record: TrialRecord) -> None:
        """Count a trial that has ended, in this call or an earlier one."""
        self._ended_usd += record.cost_usd or 0.0
        self._compare()

    @contextmanager
    def watched(self, run_id: str) -> Iterator[Listener]:
        """A listener that counts what the run costs while it runs."""

        def listen(event: Event) -> None:
            if not isinstance(event.fact, ModelReplied):
                return
            self._require_price(event.fact.cost_usd, event.fact.model)
            self._running_usd[run_id] = self._running_usd.get(run_id, 0.0) + (event.fact.cost_usd or 0.0)
            self._compare()

        try:
            yield listen
        finally:
            self._running_usd.pop(run_id, None)

    def add_judging(self, cost_usd: float | None, model: str) -> None:
        """Count what a judge's verdict cost; None: unknown."""
        self._require_price(cost_usd, model)
        self._ended_usd += cost_usd or 0.0
        self._compare()

    def _require_price(self, cost_usd: float | None, model: str) -> None:
        if cost_usd is None and self.limit_usd is not None:
            text = mark("The price of the model {model} is unknown, so that max_cost_usd cannot be kept.")
            self._end(translate(text, model=model))

    def _compare(self) -> None:
        if self.limit_usd is not None and self.spent_usd >= self.limit_usd:
            text = mark("The limit of {limit:.2f} USD (max_cost_usd) was reached.")
            self._end(translate(text, limit=self.limit_usd))

    def _end(self, reason: str) -> None:
        if not self.reason:
            self.reason = reason
            self.on_spent()
