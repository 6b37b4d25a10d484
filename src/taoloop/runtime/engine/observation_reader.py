"""One question about observations, put to a model without tools, for a planning model that must not read them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from taoloop.core.effects import CallModel, ModelRequest
from taoloop.core.events import Fact, Observed
from taoloop.core.handles import inline_text
from taoloop.core.preview import preview
from taoloop.core.trace import Trace
from taoloop.dialects.prompt.side_questions import answer_schema, parse_reader_answer, question_prompt
from taoloop.dialects.reply_events import reply_to_events
from taoloop.errors import ModelError, ToolError
from taoloop.models.base import Model

_MOST_CHARS, _CHARS_PER_TOKEN = 200_000, 2


class ObservationReader:
    """What a call of `ask_about` is lent. Its model call is a fact of the run (`purpose` read) before its observation.

    It stands where a call of an agent has its `Inside`.
    """

    def __init__(
        self,
        trace: Trace,
        model: Model,
        step: int,
        note: Callable[[Fact], None],
        tick: Callable[[], float],
        load: Callable[[Any], Awaitable[None]],
        value_of: Callable[[str], Any],
    ) -> None:
        self._trace, self._model, self._step = trace, model, step
        self._note, self._tick, self._load, self._value_of = note, tick, load, value_of

    async def answer(self, handles: list[str], question: str, wanted: Any) -> Any:
        """The answer in the form that is wanted.

        Raises:
            ToolError: there is none, or the model failed. The planning model sees the code alone.
        """
        await self._load(handles)  # after a resume nothing is loaded yet
        room = self._room() // len(handles)
        contents = {handle: self._content(handle, room) for handle in handles}
        agent, trace = self._trace.agent, self._trace
        nonce = trace.started.nonce if trace.started is not None else ""
        request = ModelRequest(
            task="",
            trace=trace,
            messages=question_prompt(agent.prompts, nonce, question, wanted, contents),
            dialect=agent.dialect,
            purpose="read",
            turn=trace.model_calls,
            temperature=0.0,
            max_output_tokens=agent.max_output_tokens,
            timeout_s=agent.model_timeout_s,
            reply_schema=answer_schema(wanted),
        )
        began = self._tick()
        try:
            reply = await self._model.complete(request)
            facts = reply_to_events(CallModel(request=request, step=self._step), reply, self._tick() - began)
        except ModelError as error:
            raise ToolError(str(error), code="reader_failed") from error
        for fact in facts:
            self._note(fact)
        found = parse_reader_answer(reply.text, wanted)
        if found is None:
            raise ToolError("The model that reads gave no answer in this form.", code="no_answer")
        return found

    def settled(self, observed: Observed) -> Observed:
        """The observation as it is: what was used stands in the reply before it."""
        return observed

    def _room(self) -> int:
        tokens = self._trace.agent.context_tokens
        return _MOST_CHARS if tokens is None else min(_MOST_CHARS, tokens * _CHARS_PER_TOKEN)

    def _content(self, handle: str, room: int) -> str:
        value = self._value_of(handle)
        return preview(inline_text(value), "text" if isinstance(value, str) else "json", room).text
