"""A model whose replies drift: some of another model's replies arrive as real models really send them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

from taoloop.core.decision import Problem
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Fact, ModelReplied, Observed, ReplyRejected
from taoloop.core.message import ModelReply
from taoloop.core.trace import Trace
from taoloop.dialects import get_dialect
from taoloop.errors import ConfigError, InvalidArguments, UnknownName
from taoloop.models.base import Model, WrappedModel
from taoloop.testing.drift_classes import DRIFT, Drift, IntendedReply

_REFUSED_CALLS = frozenset({"unknown_tool", *InvalidArguments.codes})


class DriftInjector(WrappedModel):
    """Corrupts the replies of `model` at the given `rate` (a part of 1), each with one of the `classes` of `DRIFT`.

    Which replies drift, and how, follows from `seed`, the task and the turn: the same run drifts in the same way, and
    nothing about a run is kept. A reply in which no class finds anything to corrupt, or that is unreadable already,
    stays as it is. At most `in_a_row` errors in a row come from drift (None: no bound): with 2, the default, drift
    alone never uses up the 3 that an agent allows.

    A reply that was lost to drift costs a turn. The model behind is asked as if that turn had not been, so that a
    `ScriptedModel` gives the same reply once more.
    """

    def __init__(
        self,
        model: Model,
        *,
        rate: float = 0.2,
        seed: int = 0,
        classes: Iterable[str] | None = None,
        in_a_row: int | None = 2,
    ) -> None:
        if not 0 <= rate <= 1:
            raise ConfigError(f"The rate of drift is {rate!r}.", hint="It is a part of all replies, from 0 to 1.")
        names = tuple(DRIFT) if classes is None else tuple(classes)
        for name in names:
            if name not in DRIFT:
                raise UnknownName("class of drift", name, tuple(DRIFT))
        super().__init__(model)
        self._rate, self._seed, self._in_a_row = rate, seed, in_a_row
        self._classes = tuple(DRIFT[name] for name in names)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the model behind it, or what drift made of it."""
        reply = await self._model.complete(replace(request, turn=request.turn - self._lost(request.trace)))
        drifted = self.drift(request, reply)
        return reply if drifted is None else drifted[1]

    def drift(self, request: ModelRequest, reply: ModelReply) -> tuple[Drift, ModelReply] | None:
        """The class that a reply drifts by, and what becomes of it; None where it stays as it is."""
        chance = self._chance(request.task, request.turn)
        if chance.random() >= self._rate or self._enough(request.trace):
            return None
        decision = get_dialect(request.dialect).read(reply, request.tools)
        if isinstance(decision, Problem):
            return None
        canonical = get_dialect(request.dialect).write(decision)
        whole = replace(reply, text=canonical.text, tool_calls=canonical.tool_calls)
        sent = IntendedReply(decision=decision, dialect=request.dialect, cards=request.tools, reply=whole)
        for drift_class in chance.sample(self._classes, len(self._classes)):
            corrupted = drift_class.corrupt(sent)
            if corrupted is not None and corrupted != whole:
                return drift_class, corrupted
        return None

    def _chance(self, task: str, turn: int) -> random.Random:
        return random.Random(f"{self._seed}/{turn}/{task}")  # noqa: S311  # to be repeatable is the point

    def _enough(self, trace: Trace) -> bool:
        return self._in_a_row is not None and trace.consecutive_errors >= self._in_a_row

    def _lost(self, trace: Trace) -> int:
        """How many of the run's replies were lost to drift: those that drifted and came to nothing."""
        lost = turn = 0
        counts = False
        for event in trace.events:
            if isinstance(event.fact, ModelReplied):
                counts = self._chance(trace.task, turn).random() < self._rate
                turn += 1
            elif counts and _is_loss(event.fact):
                lost, counts = lost + 1, False
        return lost


def _is_loss(fact: Fact) -> bool:
    """Whether a reply came to nothing: it was not believed, or its call was refused before it ran."""
    if isinstance(fact, Observed):
        return fact.error is not None and fact.error.code in _REFUSED_CALLS
    return isinstance(fact, ReplyRejected)
