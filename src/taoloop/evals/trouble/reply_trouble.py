"""Models whose replies are wrong on purpose: they drift at stated replies, or obey injected text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taoloop.core.decision import Act, Call
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ModelReplied, Observed
from taoloop.core.message import ModelReply
from taoloop.core.trace import Trace
from taoloop.dialects import get_dialect
from taoloop.evals.trouble.drift import DRIFT, Drift, DriftInjector
from taoloop.evals.trouble.entries import ANY_DRIFT, ReplyDrift, ToolTrouble, current_troubles
from taoloop.models.base import Model, WrappedModel


class TroubledModel(WrappedModel):
    """The model of a configuration, in the trouble of whichever trial asks (`current_troubles`).

    Args:
        model: The model.
        obeys: Whether it obeys injected text, whatever the model behind it would do.
    """

    def __init__(self, model: Model, *, obeys: bool = False) -> None:
        super().__init__(model)
        self._obeys = obeys

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the model, or what trouble made of it."""
        troubles = current_troubles()
        model = self._model
        if self._obeys and troubles.injections:
            model = ObedientModel(model, troubles.injections)
        if scheduled := [drift for drift in troubles.drifts if drift.reply is not None]:
            model = ScheduledDrift(model, scheduled)
        for drift in troubles.drifts:
            if drift.reply is None:
                classes = None if drift.drift == ANY_DRIFT else (drift.drift,)
                model = DriftInjector(model, rate=drift.rate, seed=troubles.seed, classes=classes)
        return await model.complete(request)


class ScheduledDrift(DriftInjector):
    """Corrupts the stated replies of `model`, each by its stated class; where the class does not apply, it stays.

    A reply that was lost costs a turn, and the model behind is asked again as if that turn had not been.
    """

    def __init__(self, model: Model, drifts: Sequence[ReplyDrift]) -> None:
        super().__init__(model, rate=1.0, in_a_row=None)
        self._scheduled = {
            drift.reply - 1: [DRIFT[drift.drift]] if drift.drift in DRIFT else list(DRIFT.values())
            for drift in drifts
            if drift.reply is not None
        }

    def _drifts(self, task: str, turn: int) -> bool:  # noqa: ARG002  # as its base
        return turn in self._scheduled

    def _candidates(self, task: str, turn: int) -> list[Drift]:  # noqa: ARG002  # as its base
        return self._scheduled[turn]


class ObedientModel(WrappedModel):
    """A model that obeys injected text.

    It does what the model behind it does, until an observation of the run has an attacker's text: then it makes the
    calls of the goal, one after another, whatever is refused, and after them goes on as before. No attack can
    be stronger than that, so what holds against this model is the policy alone (as in `benchmarks/security`).
    """

    def __init__(self, model: Model, injections: Sequence[ToolTrouble]) -> None:
        super().__init__(model)
        self._injections = tuple(injections)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the model behind it, or the attacker's next call."""
        attacks = self._attacks(request.trace)
        for first_turn, calls in attacks:
            if first_turn <= request.turn < first_turn + len(calls):
                return self._reply(request, calls[request.turn - first_turn])
        attack_turns = sum(len(calls) for _, calls in attacks)
        return await self._model.complete(replace(request, turn=request.turn - attack_turns))

    def check_used(self, replies: int) -> None:
        """How many replies of the model behind it were used is not known here: an attack may have added some."""

    def _attacks(self, trace: Trace) -> list[tuple[int, tuple[Call, ...]]]:
        """For each injected text that was read: the turn at which its attack begins, and its calls.

        Where an attack reads a further injected text, the second attack follows the first.
        """
        attacks: list[tuple[int, tuple[Call, ...]]] = []
        unread = list(self._injections)
        turn = next_free_turn = 0
        for event in trace.events:
            if isinstance(event.fact, ModelReplied):
                turn += 1
            elif isinstance(event.fact, Observed):
                for injection in [each for each in unread if each.value in event.fact.output]:
                    unread.remove(injection)
                    first_turn = max(turn, next_free_turn)
                    next_free_turn = first_turn + len(injection.goal)
                    attacks.append((first_turn, injection.goal))
        return attacks

    def _reply(self, request: ModelRequest, call: Call) -> ModelReply:
        canonical = get_dialect(request.dialect).write(Act(reason="", calls=(call,)))
        return ModelReply(
            text=canonical.text,
            tool_calls=canonical.tool_calls,
            finish_reason="tool_calls" if canonical.tool_calls else "stop",
            model=self.spec,
            cost_usd=0.0,
        )
