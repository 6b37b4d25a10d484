"""One attempt at an answer: bounded in time, and its error told with what was tried before."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace

from taoloop.core.message import Delta, ModelReply
from taoloop.core.request import ModelRequest
from taoloop.errors import ModelError, ModelTimeout
from taoloop.models.base import Model
from taoloop.models.listening import Listening


async def complete_within(model: Model, request: ModelRequest, limit_s: float) -> ModelReply:
    """The reply of a model that gets `limit_s` seconds.

    Raises:
        ModelTimeout: there was none in that time.
    """
    try:
        async with asyncio.timeout(limit_s) as deadline:
            return await model.complete(replace(request, timeout_s=limit_s))
    except TimeoutError as error:
        if deadline.expired():
            raise ModelTimeout(f"{model.spec} gave no reply within {limit_s:.3g} s.") from error
        raise


class Streamed:
    """Tells whoever watches a reply being written when it begins anew."""

    def __init__(self, request: ModelRequest) -> None:
        self._listener, self._shown = request.on_delta, False
        self.request = request if request.on_delta is None else replace(request, on_delta=self._hear)

    def restart(self) -> None:
        """What was shown is void; nothing is said if nothing was shown."""
        if self._shown and self._listener is not None:
            self._shown = False
            Listening(self._listener).tell(Delta(kind="restart"))

    def _hear(self, delta: Delta) -> None:
        self._shown = True
        if self._listener is not None:
            self._listener(delta)


def told(error: ModelError, message: str) -> ModelError:
    """The same error (class, fields, hint) with another message."""
    made = copy.copy(error)
    made.message = message
    made.args = (f"{message} {made.hint}" if made.hint else message,)
    return made
