"""What was used, and how it went, by day, key, agent and model: a sum over events that is kept up to date.

The rows are read models: each event is added once, so a question costs the same at run 20 and at run 20,000, and what
was added stays when retention removes the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from taoloop.core.decision import NO_MODELS
from taoloop.core.events import (
    ApprovalGiven,
    ApprovalRefused,
    DoubtSettled,
    Event,
    Finished,
    ModelReplied,
    Noted,
    Observed,
    Resumed,
    RunStarted,
)
from taoloop.core.human_input import InputAnswered
from taoloop.core.message import STEP_PURPOSES

FORKED = "fork of run "
"""How the reason of the event begins after which a fork's events are its own."""

COUNTED_KINDS = tuple(
    fact.kind
    for fact in (
        *(RunStarted, ModelReplied, Observed, Finished),
        *(ApprovalGiven, ApprovalRefused, DoubtSettled, InputAnswered, Noted),
    )
)
"""The kinds of events that change a row."""


INTERVENTIONS = tuple(fact.kind for fact in (ApprovalGiven, ApprovalRefused, DoubtSettled, InputAnswered, Noted))
"""The kinds of events that come from people, unless they are `by` one of `NO_PERSON`."""

NO_PERSON = ("", "probe", "guard")
"""Who answers a question, settles a doubt or notes something without being a person; "": nobody answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """What one agent with one model used on one day for one key, and how it went. Each event counts on its own day."""

    day: str
    """The day in UTC: `2026-01-31`."""

    key: str
    """The name of the API key of the outermost run; "" where it has none."""

    agent: str
    """The name of the agent."""

    model: str
    """Of replies, the model that gave them; of all else, the one that the agent is described with."""

    runs: int = 0
    """The runs that began; a fork began when it was forked."""

    ended: int = 0
    """How often a run ended, whatever its status."""

    completed: int = 0
    """How many of these ends were `completed`."""

    steps: int = 0
    """Decisions that models were asked for, without turns of repair."""

    model_calls: int = 0
    """Replies of models."""

    input_tokens: int = 0
    """The tokens of the prompts."""

    cached_tokens: int = 0
    """Those of the input tokens that a cache served."""

    output_tokens: int = 0
    """The tokens of the replies."""

    cost_usd: float = 0.0
    """The cost of the calls whose price is known."""

    unpriced_calls: int = 0
    """How many calls are not in the cost."""

    tool_calls: int = 0
    """Outcomes of tool calls."""

    failed_calls: int = 0
    """How many of them were not ok, refused ones included."""

    interventions: int = 0
    """Answers, decisions about doubt, and notes of people."""

    @property
    def known_cost_usd(self) -> float | None:
        """The cost of the calls whose price is known; None where there are calls and no price is known: not 0."""
        return None if self.model_calls and self.unpriced_calls == self.model_calls else self.cost_usd

    @property
    def success_rate(self) -> float | None:
        """Which part of the ends was `completed`, from 0 to 1; None where no run ended."""
        return _ratio(self.completed, self.ended)

    @property
    def steps_per_run(self) -> float | None:
        """The steps for each run that began; None where none did."""
        return _ratio(self.steps, self.runs)

    @property
    def failure_rate(self) -> float | None:
        """Which part of the outcomes of tool calls was not ok, from 0 to 1; None where there is none."""
        return _ratio(self.failed_calls, self.tool_calls)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


GROUP = ("day", "key", "agent", "model")
"""What makes a row."""

COUNTS = tuple(field.name for field in fields(UsageRow) if field.name not in GROUP)

UsageKey = tuple[str, str, str, str]
"""Day, key, agent and model of a row."""


class RunOrigin(NamedTuple):
    """What the events of a run are counted for."""

    key: str
    """The API key of the outermost run."""
    agent: str
    """The name of the agent."""
    model: str
    """The model of its description."""
    own_from: int = 0
    """The seq from which on the events are its own; those before were copied from the run that it is a fork of."""
    own_at: float | None = None
    """When it was forked."""


class UsageLedger:
    """Adds events up, each by the method for its kind, or all of a run by `add`."""

    def __init__(self, rows: Iterable[UsageRow] = ()) -> None:
        """Begin with these rows."""
        self._sums: dict[UsageKey, dict[str, float]] = {}
        for row in rows:
            counts = {name: getattr(row, name) for name in COUNTS}
            self._sums[row.day, row.key, row.agent, row.model] = counts

    def add(self, origin: RunOrigin, events: Iterable[Event]) -> None:
        """Count events of a run, each once."""
        for seq, at, fact in events:
            if type(fact) is RunStarted:
                self.add_start(origin, at)
            elif seq < origin.own_from:
                continue
            elif type(fact) is ModelReplied:
                usage = fact.usage
                tokens = (usage.input_tokens, usage.cached_tokens, usage.output_tokens)
                self.add_reply(origin, at, fact.model, tokens, fact.cost_usd, is_step=fact.purpose in STEP_PURPOSES)
            elif type(fact) is Observed:
                self.add_outcome(origin, at, ok=fact.ok)
            elif type(fact) is Finished:
                self.add_end(origin, at, fact.status)
            elif fact.kind in INTERVENTIONS and getattr(fact, "by", "") not in NO_PERSON:
                self.add_intervention(origin, at)

    def add_start(self, origin: RunOrigin, at: float) -> None:
        """A run began; a fork when it was forked."""
        self._counts(origin, at if origin.own_at is None else origin.own_at)["runs"] += 1

    def add_reply(
        self,
        origin: RunOrigin,
        at: float,
        model: str,
        tokens: tuple[int, int, int],
        cost_usd: float | None,
        *,
        is_step: bool,
    ) -> None:
        """A model replied; `tokens` are those of the prompt, those of it that a cache had, and those of the reply.

        Decisions of an executor are steps, and no calls of a model.
        """
        is_decision_only = model in NO_MODELS
        counts = self._counts(origin, at, "" if is_decision_only else model)
        counts["model_calls"] += not is_decision_only
        counts["steps"] += is_step
        counts["input_tokens"] += tokens[0]
        counts["cached_tokens"] += tokens[1]
        counts["output_tokens"] += tokens[2]
        counts["cost_usd"] += cost_usd or 0.0
        counts["unpriced_calls"] += cost_usd is None

    def add_outcome(self, origin: RunOrigin, at: float, *, ok: bool) -> None:
        """A call has its outcome."""
        counts = self._counts(origin, at)
        counts["tool_calls"] += 1
        counts["failed_calls"] += not ok

    def add_end(self, origin: RunOrigin, at: float, status: str) -> None:
        """A run ended."""
        counts = self._counts(origin, at)
        counts["ended"] += 1
        counts["completed"] += status == "completed"

    def add_intervention(self, origin: RunOrigin, at: float) -> None:
        """A person answered, decided or noted something."""
        self._counts(origin, at)["interventions"] += 1

    def rows(self, since_day: str | None = None) -> list[UsageRow]:
        """The rows from a day on, sorted."""
        return [
            UsageRow(day=day, key=key, agent=agent, model=model, **counts)  # type: ignore[arg-type]  # whole or not as there
            for (day, key, agent, model), counts in sorted(self._sums.items())
            if since_day is None or day >= since_day
        ]

    def _counts(self, origin: RunOrigin, at: float, model: str = "") -> dict[str, float]:
        group = (day_of(at), origin.key, origin.agent, model or origin.model)
        if (counts := self._sums.get(group)) is None:
            counts = self._sums[group] = dict.fromkeys(COUNTS, 0)
        return counts


def own_start(events: Iterable[Event]) -> tuple[int, float | None]:
    """`own_from` and `own_at` of a fork, by its events."""
    for seq, at, fact in reversed(list(events)):
        if isinstance(fact, Resumed) and fact.reason.startswith(FORKED):
            return seq, at
    return 0, None


def day_of(at: float) -> str:
    """The day in UTC of a time in seconds since the epoch."""
    return _day(int(at // _DAY_S))


@lru_cache(maxsize=64)
def _day(number: int) -> str:
    return f"{datetime.fromtimestamp(number * _DAY_S, UTC):%Y-%m-%d}"


_DAY_S = 86_400
