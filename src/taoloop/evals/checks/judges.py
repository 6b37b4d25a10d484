"""The judges of a suite: for each model and question one, made when it is first needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from taoloop.core.text import language_of
from taoloop.evals.cases import Case, Check
from taoloop.evals.checks.check_outcomes import TrialEnd
from taoloop.evals.checks.check_settings import answers_of
from taoloop.evals.judge_model import JudgeModel
from taoloop.evals.trial_records import CheckOutcome
from taoloop.models.model_builder import BuiltModel, build_model, is_mocked
from taoloop.models.registry import OFFLINE
from taoloop.models.settings import Retry

OnCost = Callable[[float | None, str], None]
"""Called with what a verdict cost (None: unknown) and the spec of the judge's model."""


class Judges:
    """Asks the judges that checks name.

    Args:
        env: The variables for models and keys; None: those of the process.
        on_cost: Called with the cost of each verdict.
    """

    def __init__(self, env: Mapping[str, str] | None = None, on_cost: OnCost = lambda _cost_usd, _model: None) -> None:
        self._env, self._on_cost = env, on_cost
        self._models: dict[str | None, BuiltModel] = {}

    async def check(self, check: Check, end: TrialEnd) -> CheckOutcome:
        """What the judge of a check says of the end of a trial.

        The judge reads the task, the answer, and what another check of the case expects as an answer.

        Raises:
            ConfigError: its model cannot be made.
        """
        question, model = check.expected, self.model(check).model
        judge = JudgeModel(model, question, language=language_of(question))
        outcome = await judge.check(end.case.task, end.answer, _reference(end.case))
        self._on_cost(judge.cost_usd, model.spec)
        return outcome

    def model(self, check: Check) -> BuiltModel:
        """The model of a check's judge; without one in its settings, that of the environment.

        Under `AI_MOCK=1` the offline model takes the place of a provider's, and decides nothing.

        Raises:
            ConfigError: it cannot be made.
        """
        spec = check.settings.get("model")
        if is_mocked(spec, os.environ if self._env is None else self._env):
            spec = OFFLINE
        if spec not in self._models:
            self._models[spec] = build_model(spec, retry=Retry(), rate=None, env=self._env)
        return self._models[spec]

    async def close(self) -> None:
        """Let go of the connections of all models."""
        for model in self._models.values():
            await model.close()


def _reference(case: Case) -> str:
    """The answers that other checks of a case expect, one per line."""
    texts = [answer for check in case.checks if check.kind in ("exact", "em", "f1") for answer in answers_of(check)]
    return "\n".join(map(str, texts))
