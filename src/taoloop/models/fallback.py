"""Several models as one: the next one answers where the one before it failed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply
from taoloop.dialects import get_dialect
from taoloop.errors import (
    ConfigError,
    ModelContentRefused,
    ModelContextOverflow,
    ModelError,
    ModelUnavailable,
    RealCallsForbidden,
    ReplayDiverged,
    ScriptExhausted,
)
from taoloop.models.base import Model, is_language_model
from taoloop.models.retry import RestartingStream, complete_within, with_message
from taoloop.models.settings import REAL_PACE, Pace

SPEC_SEPARATOR = " | "
"""Separates the specs of the models in the spec of a `Fallback`: `openai:a | deepseek:b`."""

_FINAL_ERRORS = (ModelContentRefused, ModelContextOverflow, RealCallsForbidden, ReplayDiverged, ScriptExhausted)
"""After these no other model is asked: a refusal of the content is an answer, a prompt that is too long is shortened
by the run, and the others show a mistake in a test."""


class Fallback:
    """Asks the first model, and the next one if it fails. Every request starts with the first one again.

    A failure is any `ModelError` except a refusal of the content (which must not be circumvented), a prompt that is too
    long (which the run shortens) and errors that show a mistake in a test. A reply without a readable
    decision is no failure either: its repair is the loop's business. Where time is limited each model gets an equal
    share of what is left of it, so that a model that hangs leaves time for the next ones; unused time is theirs.

    `dialect` is the one that all models suggest, or else the first one that is written in plain text, which every
    model can do. The reply's `model` says who answered.
    """

    def __init__(self, models: Sequence[Model], *, pace: Pace = REAL_PACE) -> None:
        if not models:
            raise ConfigError("A fallback has no models.", hint="Give at least one.")
        self._models, self._pace = tuple(models), pace

    @property
    def spec(self) -> str:
        """The specs of all models in their order: `openai:a | deepseek:b`."""
        return SPEC_SEPARATOR.join(model.spec for model in self._models)

    @property
    def dialect(self) -> str:
        """One that suits all models."""
        names = [model.dialect for model in self._models]
        if len(set(names)) == 1:
            return names[0]
        return next((name for name in names if not get_dialect(name).native), names[0])

    @property
    def is_language_model(self) -> bool:
        """Whether the first model is one: the others answer only where it fails."""
        return is_language_model(self._models[0])

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the first model that gives one.

        Raises:
            ModelError: none did; says why, for each of them.
        """
        ends = None if request.timeout_s is None else self._pace.tick() + request.timeout_s
        streamed = RestartingStream(request)
        failures: list[tuple[str, ModelError]] = []
        for waiting, model in zip(range(len(self._models), 0, -1), self._models, strict=True):
            left_s = None if ends is None else max(0.001, ends - self._pace.tick())
            try:
                if left_s is not None and waiting > 1:
                    return await complete_within(model, streamed.request, left_s / waiting)
                return await model.complete(replace(streamed.request, timeout_s=left_s))
            except _FINAL_ERRORS:
                raise
            except ModelError as error:
                failures.append((model.spec, error))
                if waiting > 1:
                    _LOG.warning("%s failed: %s The next model is asked.", model.spec, error.message)
                    streamed.restart()
        raise _combine_errors(failures)

    def check_used(self, replies: int) -> None:
        """Nothing: which model gave how many of the replies is not known here."""

    async def close(self) -> None:
        """Close all models."""
        for model in self._models:
            await model.close()


def _combine_errors(failures: list[tuple[str, ModelError]]) -> ModelError:
    if len(failures) == 1:
        return failures[0][1]
    reasons = (error.message if spec in error.message else f"{spec}: {error.message}" for spec, error in failures)
    message = f"None of {len(failures)} models answered. {' '.join(reasons)}"
    last = failures[-1][1]
    if all(type(error) is type(last) for _, error in failures):
        return with_message(last, message)
    retryable = any(error.retryable for _, error in failures)
    return ModelUnavailable(message, hint=last.hint, retryable=retryable)
