"""The handles of one run (`Policy(observations="handles")`): filled in before tools are called and in the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pydantic_core

from taoloop.core.decision import Answer, AnswerCheck, Problem, excerpt
from taoloop.core.events import Fault, Finished
from taoloop.core.handles import (
    MAX_FILLED_CHARS,
    READER,
    TOO_LONG,
    UNKNOWN_HANDLE,
    BadHandleError,
    TooLongError,
    inline_text,
    numbers_in,
    substitute_handles,
    value_of,
)
from taoloop.core.trace import Trace
from taoloop.dialects.parsing.strict_json import answer_values, dumps
from taoloop.journals.base import Journal
from taoloop.models.base import Model
from taoloop.runtime.engine.observation_reader import ObservationReader
from taoloop.runtime.output_type import BAD_ANSWER

_TEXTS: dict[str, dict[str, str]] = {
    "en": {
        UNKNOWN_HANDLE: "{handle} names nothing that there is.",
        "hint": "$obs3 is what came back for call_3, from the next step on; a path such as $obs3.items[0].name must"
        " exist in it. Within a text write ${obs3.name}.",
        TOO_LONG: "What the handles stand for is longer than {most:,} characters together.",
        "misfit": "The final answer does not fit the output schema once its handles are filled in.",
    },
    "zh": {
        UNKNOWN_HANDLE: "{handle} 没有对应的内容。",
        "hint": "$obs3 是 call_3 的返回，从下一步起可用；路径（如 $obs3.items[0].name）必须存在。"
        "在文本中写 ${obs3.name}。",
        TOO_LONG: "这些名称所代表的内容合计超过 {most:,} 个字符。",
        "misfit": "填入名称所代表的值之后，最终答案不符合输出 schema。",
    },
}


class HandleResolver:
    """What the observations of one run hold, for the executor alone.

    `load` must have been called for a value before anything is filled into it: long outputs lie in the journal.
    `check_answer` is the judge of the run's answers where they must fit a schema.
    """

    def __init__(self, trace: Trace, journal: Journal, model: Model, check_answer: AnswerCheck | None = None) -> None:
        self._trace, self._journal, self._model, self._check_answer = trace, journal, model, check_answer
        self._values: dict[int, Any] = {}
        self._filled: set[str] = set()

    async def load(self, value: Any) -> None:
        """Fetch the whole outputs that the handles in a value are of."""
        for number in numbers_in(value) - self._values.keys():
            call = self._trace.calls.get(f"call_{number}")
            observed = call.observed if call is not None else None
            if observed is None or not observed.ok:
                continue
            text = observed.output
            if observed.artifact is not None:
                artifact = await self._journal.artifact(self._trace.run_id, observed.artifact)
                if artifact is None:
                    continue  # a preview is not the value
                text = artifact.body
            with suppress(ValueError):  # what is called JSON and is none has no value
                self._values[number] = pydantic_core.from_json(text) if observed.form == "json" else text

    def takes_values(self, call_id: str) -> bool:
        """Whether something was filled into the arguments of a call."""
        return call_id in self._filled

    def filled(self, call_id: str, tool: str, args: Any) -> Any:
        """The arguments with their values, the same object where there is no handle; or the fault that names one."""
        try:
            if tool == READER:  # it takes handles as they are
                for handle in args.get("handles", ()) if isinstance(args, Mapping) else ():
                    if isinstance(handle, str):
                        self._value_of(handle)
                return args
            filled = substitute_handles(args, self._find)
        except BadHandleError as error:
            return self._fault(UNKNOWN_HANDLE, handle=error.handle)
        except TooLongError:
            return self._fault(TOO_LONG)
        if filled is not args:
            self._filled.add(call_id)
        return filled

    def check(self, answer: Answer) -> Answer | Problem:
        """The answer as the model wrote it, or what is wrong with it; no word of what its handles stand for."""
        try:
            filled = self._filled_answer(answer)
        except BadHandleError as error:
            return self._problem(answer, UNKNOWN_HANDLE, handle=error.handle)
        except TooLongError:
            return self._problem(answer, TOO_LONG)
        if not numbers_in(answer.text):
            return filled
        return self._problem(answer, "misfit") if isinstance(filled, Problem) else answer

    async def finished(self, fact: Finished) -> Finished:
        """The end of the run with the values in its answer: for the person, and not for the model."""
        if fact.answer is None or not numbers_in(fact.answer):
            return fact
        await self.load(fact.answer)
        try:
            filled = self._filled_answer(Answer(text=fact.answer))
        except (BadHandleError, TooLongError):  # of a run that was begun in another mode, or an artifact that is gone
            return fact
        return fact if isinstance(filled, Problem) else replace(fact, answer=filled.text)

    def reading(self, step: int, note: Callable[[Any], None], tick: Callable[[], float]) -> ObservationReader:
        """What a call of the reader is lent: this run's model, and the values."""
        return ObservationReader(self._trace, self._model, step, note, tick, self.load, self._value_of)

    def _filled_answer(self, answer: Answer) -> Answer | Problem:
        if self._check_answer is None:
            return replace(answer, text=inline_text(substitute_handles(answer.text, self._find)))
        if not numbers_in(answer.text):
            return self._check_answer(answer)
        values, _, _ = answer_values(answer.text)
        if not values:
            return self._check_answer(answer)
        return self._check_answer(replace(answer, text=dumps(substitute_handles(values[0], self._find))))

    def _find(self, number: int) -> Any:
        return self._values[number]

    def _value_of(self, handle: str) -> Any:
        return value_of(handle, self._find)

    def _text(self, name: str, **values: object) -> str:
        texts = _TEXTS.get(self._trace.agent.language, _TEXTS["en"])
        return texts[name].format(most=MAX_FILLED_CHARS, **values)

    def _fault(self, code: str, **values: object) -> Fault:
        texts = _TEXTS.get(self._trace.agent.language, _TEXTS["en"])
        return Fault(code=code, message=self._text(code, **values), hint=texts["hint"] if values else "")

    def _problem(self, answer: Answer, name: str, **values: object) -> Problem:
        return Problem(code=BAD_ANSWER, message=self._text(name, **values), excerpt=excerpt(answer.text))
