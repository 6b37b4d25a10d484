"""The Protocol of a model, which is all that a provider must implement, and what every model can use.

`WrappedModel` is the base of a model in front of another one; `DeltaFanout` passes the pieces of a streamed reply on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from taoloop.core.effects import ModelRequest
from taoloop.core.message import Delta, ModelReply


class Model(Protocol):
    """Answers requests. One model may serve many runs at once, so it stores nothing about a run.

    `spec` is the text that names it in traces and on the command line (`openai:NAME`). `dialect` is the dialect
    that suits it when an agent chooses none.

    A model may have an attribute `is_language_model`. If it is True, a language model answers, which can be asked what
    a task calls for (`Policy(pin="auto")`); a script cannot. If its attribute `sees_images` is True, requests come with
    the bytes of their images (`ModelRequest.image_data`), and with those of PDFs if its attribute `reads_pdf` is True.
    If `reads_prompts` is False, its replies do not follow from what it reads, such as those of a script: then a run
    gives it images that it does not see.
    """

    @property
    def spec(self) -> str: ...
    @property
    def dialect(self) -> str: ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply to one request. The caller bounds the time by `request.timeout_s`.

        Raises:
            ModelError: there is no reply; the run ends as `model_failed` with the error's text.
        """
        ...

    def check_used(self, replies: int) -> None:
        """Called when a run completed after `replies` replies.

        Raises:
            ScriptUnused: a scripted model expected more turns. Other models have nothing to say here.
        """
        ...

    async def close(self) -> None:
        """Release connections. Closing twice is harmless."""
        ...


DeltaListener = Callable[[Delta], None]
"""Called with each piece of a reply, in the event loop, as soon as the model delivers it.

A listener that raises is logged and gets no more of that reply; the run continues.
"""

_LOG = logging.getLogger("taoloop")


class DeltaFanout:
    """Passes the pieces of one reply on to its listeners, without a queue.

    `close` is for a reply that is complete or given up: its model may still send pieces.
    """

    __slots__ = ("_listeners",)

    def __init__(self, *listeners: DeltaListener | None) -> None:
        self._listeners = [listener for listener in listeners if listener is not None]

    def __call__(self, delta: Delta) -> None:
        """Pass one piece on."""
        for listener in tuple(self._listeners):
            try:
                listener(delta)
            except Exception:  # noqa: BLE001  # a listener must not end the run
                _LOG.exception("a listener to a model's reply failed; it gets no more of this reply")
                self._listeners.remove(listener)

    def close(self) -> None:
        """Pass nothing on any more."""
        self._listeners.clear()


def reply_deltas(reply: ModelReply) -> Iterator[Delta]:
    """A whole reply as pieces for a listener: one for the thinking, one for the text, and one for each call."""
    if reply.thinking:
        yield Delta(kind="thinking", text=reply.thinking)
    if reply.text:
        yield Delta(kind="text", text=reply.text)
    for index, call in enumerate(reply.tool_calls):
        yield Delta(kind="call", text=call.arguments, index=index, name=call.name, done=True)


class WrappedModel:
    """A model in front of another one: it has its name and its dialect, and is closed with it.

    A subclass changes `complete`.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def spec(self) -> str:
        """That of the wrapped model."""
        return self._model.spec

    @property
    def dialect(self) -> str:
        """That of the wrapped model."""
        return self._model.dialect

    @property
    def is_language_model(self) -> bool:
        """Whether the wrapped model is one."""
        return is_language_model(self._model)

    @property
    def sees_images(self) -> bool:
        """Whether the wrapped model sees images."""
        return sees_images(self._model)

    @property
    def reads_pdf(self) -> bool:
        """Whether the wrapped model reads PDFs."""
        return reads_pdf(self._model)

    @property
    def reads_prompts(self) -> bool:
        """Whether the replies of the wrapped model follow from what it reads."""
        return reads_prompts(self._model)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the wrapped model.

        Raises:
            ModelError: it gives none.
        """
        return await self._model.complete(request)

    def check_used(self, replies: int) -> None:
        """Passed on to the wrapped model.

        Raises:
            ScriptUnused: it expected more turns.
        """
        self._model.check_used(replies)

    async def close(self) -> None:
        """Close the wrapped model."""
        await self._model.close()


def is_language_model(model: object) -> bool:
    """Whether a model declares itself a language model; by default it is none."""
    return getattr(model, "is_language_model", False) is True


def sees_images(model: object) -> bool:
    """Whether a model declares that it sees images; by default it sees none."""
    return getattr(model, "sees_images", False) is True


def reads_pdf(model: object) -> bool:
    """Whether a model declares that it reads PDF files; by default it reads none."""
    return getattr(model, "reads_pdf", False) is True


def reads_prompts(model: object) -> bool:
    """Whether the replies of a model follow from what it reads, as they do by default."""
    return getattr(model, "reads_prompts", True) is not False
