"""A judge: a model that says whether an answer is right. What it says is an opinion, and is calibrated as one.

The answer is untrusted text: it stands in a frame with a fresh nonce, as observations do, and the only replies that
count are `right` and `wrong`. A reply that says anything else is asked for once more; then the check is undecided, and
the trial counts in no rate (`taoloop.evals.fault_classes`). How often a judge is mistaken is measured against marks of
people (`taoloop.evals.judge_calibration`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.effects import ModelRequest
from taoloop.core.events import RunStarted
from taoloop.core.trace import Trace
from taoloop.dialects.side_questions import answer_schema, parse_reader_answer, question_prompt
from taoloop.errors import ModelError, ModelTimeout
from taoloop.evals.checks.outcome_texts import stored_value
from taoloop.evals.trial_records import CheckOutcome
from taoloop.models.base import Model
from taoloop.prompts import load_prompts
from taoloop.runtime.engine.clock import new_nonce, within
from taoloop.runtime.texts import TEXTS

RIGHT: Final = "right"
WRONG: Final = "wrong"

_ATTEMPTS = 2


class JudgeModel:
    """Puts one question about answers to a model.

    Args:
        model: Who judges.
        question: What is asked of each answer, such as "Is the refund explained?". It says what `right` means.
        language: The language of the question's frame, `en` or `zh`.
        timeout_s: How long a reply may take, in seconds.

    Attributes:
        name: The model and the digest of the question: judges with the same name are the same judge.
        cost_usd: What its replies cost so far, in US dollars; None once a price is unknown.
    """

    def __init__(self, model: Model, question: str, *, language: str = "en", timeout_s: float = 120.0) -> None:
        self._model, self._question, self._timeout_s = model, question, timeout_s
        self._prompts = load_prompts(language)
        self.name = judge_name(model.spec, question)
        self.cost_usd: float | None = 0.0

    async def check(self, task: str, answer: str | None, reference: str = "") -> CheckOutcome:
        """Whether an answer to a task is right. `reference` is what is known to be right, if anything is.

        A model that fails or replies nonsense leaves the outcome undecided, and its code says why.
        """
        if answer is None or not answer.strip():
            return self._outcome(False, "nothing_to_judge")
        contents = {"task": task, **({"reference": reference} if reference else {}), "answer": answer}
        reply = ""
        for turn in range(_ATTEMPTS):
            try:
                reply = await self._ask(contents, turn)
            except ModelError as error:
                return self._outcome(None, "judge_failed", judge=self._model.spec, reason=error.message)
            verdict = parse_reader_answer(reply, (RIGHT, WRONG))
            if verdict is not None:
                return self._outcome(verdict == RIGHT, f"judged_{verdict}", judge=self._model.spec)
        return self._outcome(None, "judge_unreadable", judge=self._model.spec, reply=stored_value(reply))

    async def _ask(self, contents: Mapping[str, str], turn: int) -> str:
        nonce, choices = new_nonce(), (RIGHT, WRONG)
        agent = AgentSpec(name="judge", model=self._model.spec, prompts=self._prompts)
        trace = Trace(f"judge-{nonce}")
        trace.add(RunStarted(task=self._question, agent=agent, nonce=nonce), 0.0)
        request = ModelRequest(
            task=self._question,
            trace=trace,
            messages=question_prompt(self._prompts, nonce, self._question, choices, contents),
            dialect=self._model.dialect,
            purpose="read",
            turn=turn,
            temperature=0.0,
            timeout_s=self._timeout_s,
            reply_schema=answer_schema(choices),
        )
        reply = await within(self._timeout_s, self._model.complete(request), self._late)
        known = self.cost_usd is not None and reply.cost_usd is not None
        self.cost_usd = self.cost_usd + reply.cost_usd if known else None  # type: ignore[operator]  # both are known
        return reply.text

    def _late(self, timeout_s: float | None) -> ModelTimeout:
        return ModelTimeout(TEXTS.run_text("model_late", spec=self._model.spec, s=timeout_s))

    def _outcome(self, passed: bool | None, code: str, **values: Any) -> CheckOutcome:
        return CheckOutcome(kind="judge", passed=passed, code=code, values=values, judge=self.name)


def judge_name(model: str, question: str) -> str:
    """The name of a judge: the spec of its model and the beginning of the SHA-256 of its question."""
    return f"{model}#{hashlib.sha256(question.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
