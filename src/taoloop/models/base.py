"""The Protocol of a model: the only thing that a provider must implement."""

from __future__ import annotations

from typing import Protocol

from taoloop.core.message import ModelReply
from taoloop.core.model_request import ModelRequest


class Model(Protocol):
    """Answers requests. One model may serve many runs at once, so it keeps nothing about a run.

    `spec` is the text that names it in traces and on the command line (`openai:NAME`). `dialect` is the dialect
    that suits it when an agent chooses none.

    `is_language_model`, where a model has it and it is True, says that a language model answers which can be asked what
    a task calls for (`Policy(pin="auto")`); a script cannot.
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
        """Let go of connections. Closing twice is harmless."""
        ...


def is_language_model(model: object) -> bool:
    """Whether a model says of itself that it is a language model. One that says nothing of it is taken for none."""
    return getattr(model, "is_language_model", False) is True
