"""The handles of one run (`Policy(observations="handles")`): replaced by values in tool calls and in the answer.

The planning model sees handles in place of observations. It may ask a question about them, which a model without tools
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pydantic_core

from taoloop.core.decision import Answer, AnswerCheck, Problem, excerpt
from taoloop.core.effects import CallModel, ModelRequest
from taoloop.core.events import Fact, Fault, Finished, Observed
from taoloop.core.handles import (
    MAX_FILLED_CHARS,
    READER,
    UNKNOWN_HANDLE,
    HandleError,
    inline_text,
    numbers_in,
    substitute_handles,
    value_of,
)
from taoloop.core.preview import preview
from taoloop.core.trace import Trace
from taoloop.dialects.parsing.strict_json import answer_values, dumps
from taoloop.dialects.reply_events import reply_to_events
from taoloop.dialects.side_questions import answer_schema, parse_reader_answer, question_prompt
from taoloop.errors import ModelError, ToolError
from taoloop.journals.base import Journal
from taoloop.models.base import Model
from taoloop.runtime.output_type import BAD_ANSWER
from taoloop.runtime.texts import TEXTS

_MAX_CHARS, _CHARS_PER_TOKEN = 200_000, 2


class ObservationReader:
    """Answers a question about observations, for a call of `ask_about`: the counterpart of `ParentRun` for an agent.

    Its model call is a fact of the run (`purpose` read), recorded before the observation of the call.
    """

    def __init__(
        self, resolver: HandleResolver, step: int, note: Callable[[Fact], None], tick: Callable[[], float]
    ) -> None:
        self._resolver, self._step, self._note, self._tick = resolver, step, note, tick

    async def answer(self, handles: list[str], question: str, answer_form: Any) -> Any:
        """The answer to a question about the values of handles, in the form `answer_form`.

        Raises:
            ToolError: there is none, or the model failed. The planning model sees only the code.
        """
        resolver, trace, agent = self._resolver, self._resolver.trace, self._resolver.trace.agent
        await resolver.load(handles)  # after a resume nothing is loaded yet
        tokens = agent.context_tokens
        chars = _MAX_CHARS if tokens is None else min(_MAX_CHARS, tokens * _CHARS_PER_TOKEN)
        contents = {handle: _preview_of(resolver.value_of(handle), chars // len(handles)) for handle in handles}
        nonce = trace.started.nonce if trace.started is not None else ""
        request = ModelRequest(
            task="",
            trace=trace,
            messages=question_prompt(agent.prompts, nonce, question, answer_form, contents),
            dialect=agent.dialect,
            purpose="read",
            turn=trace.model_calls,
            temperature=0.0,
            max_output_tokens=agent.max_output_tokens,
            timeout_s=agent.model_timeout_s,
            reply_schema=answer_schema(answer_form),
        )
        began = self._tick()
        try:
            reply = await resolver.model.complete(request)
            facts = reply_to_events(CallModel(request=request, step=self._step), reply, self._tick() - began)
        except ModelError as error:
            raise ToolError(str(error), code="reader_failed") from error
        for fact in facts:
            self._note(fact)
        answer = parse_reader_answer(reply.text, answer_form)
        if answer is None:
            raise ToolError(TEXTS.text(agent.language, "reader_no_answer"), code="no_answer")
        return answer

    def settled(self, observed: Observed) -> Observed:
        """The observation as it is: the reply before it has the tokens that were used."""
        return observed


def _preview_of(value: Any, chars: int) -> str:
    return preview(inline_text(value), "text" if isinstance(value, str) else "json", chars)


class HandleResolver:
    """The values behind the handles of one run, for the executor alone.

    `load` must have been called for a value before its handles are replaced: long outputs are in the journal.
    `check_answer` checks the run's answers if they must fit a schema.
    """

    def __init__(self, trace: Trace, journal: Journal, model: Model, check_answer: AnswerCheck | None = None) -> None:
        self.trace, self.model = trace, model
        self._journal, self._check_answer = journal, check_answer
        self._values: dict[int, Any] = {}
        self._filled: set[str] = set()

    async def load(self, value: Any) -> None:
        """Fetch the complete outputs that the handles in a value refer to."""
        for number in numbers_in(value) - self._values.keys():
            call = self.trace.calls.get(f"call_{number}")
            observed = call.observed if call is not None else None
            if observed is None or not observed.ok:
                continue
            text = observed.output
            if observed.artifact is not None:
                artifact = await self._journal.artifact(self.trace.run_id, observed.artifact)
                if artifact is None:
                    continue  # a preview is not the value
                text = artifact.body
            with suppress(ValueError):  # output that is marked as JSON and cannot be parsed has no value
                self._values[number] = pydantic_core.from_json(text) if observed.form == "json" else text

    def has_filled(self, call_id: str) -> bool:
        """Whether handles in the arguments of a call were replaced."""
        return call_id in self._filled

    def fill(self, call_id: str, tool: str, args: Any) -> Any:
        """The arguments with values for handles, the same object if there are none; or the fault of an unknown one."""
        try:
            if tool == READER:  # it takes handles as they are
                for handle in args.get("handles", ()) if isinstance(args, Mapping) else ():
                    if isinstance(handle, str):
                        self.value_of(handle)
                return args
            filled = substitute_handles(args, self._find)
        except HandleError as error:
            hint = self._text("handle_hint") if error.code == UNKNOWN_HANDLE else ""
            return Fault(code=error.code, message=self._text(error.code, handle=error.handle), hint=hint)
        if filled is not args:
            self._filled.add(call_id)
        return filled

    def check(self, answer: Answer) -> Answer | Problem:
        """The answer as the model wrote it, or what is wrong with it; never the values of its handles."""
        try:
            filled = self._filled_answer(answer)
        except HandleError as error:
            return self._problem(answer, error.code, handle=error.handle)
        if not numbers_in(answer.text):
            return filled
        return self._problem(answer, "handle_misfit") if isinstance(filled, Problem) else answer

    async def fill_answer(self, fact: Finished) -> Finished:
        """The end of the run with the values in its answer, for the person and not for the model."""
        is_own = self.trace.taken_over is None  # the handles of another run were filled in there
        if fact.answer is None or not is_own or not numbers_in(fact.answer):
            return fact
        await self.load(fact.answer)
        try:
            filled = self._filled_answer(Answer(text=fact.answer))
        except HandleError:  # the run began in another mode, or an artifact is gone
            return fact
        return fact if isinstance(filled, Problem) else replace(fact, answer=filled.text)

    def reader(self, step: int, note: Callable[[Any], None], tick: Callable[[], float]) -> ObservationReader:
        """What answers the question of one call."""
        return ObservationReader(self, step, note, tick)

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

    def value_of(self, handle: str) -> Any:
        """The value of a handle, such as `$obs3.items[0]`.

        Raises:
            HandleError: it refers to nothing.
        """
        return value_of(handle, self._find)

    def _text(self, name: str, **values: object) -> str:
        return TEXTS.text(self.trace.agent.language, name, most=MAX_FILLED_CHARS, **values)

    def _problem(self, answer: Answer, name: str, **values: object) -> Problem:
        return Problem(code=BAD_ANSWER, message=self._text(name, **values), excerpt=excerpt(answer.text))
