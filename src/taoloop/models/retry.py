"""Models that outlive a failure: one retries another after a failure that may pass, one falls back on the next."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Sequence
from dataclasses import replace

from taoloop.core.effects import ModelRequest
from taoloop.core.message import Delta, ModelReply
from taoloop.dialects import get_dialect
from taoloop.errors import (
    ConfigError,
    ModelContentRefused,
    ModelContextOverflow,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RealCallsForbidden,
    ReplayDiverged,
    ScriptExhausted,
)
from taoloop.models.base import (
    DeltaFanout,
    Model,
    WrappedModel,
    is_language_model,
    reads_pdf,
    reads_prompts,
    sees_images,
)
from taoloop.models.settings import REAL_PACE, Pace, Retry

_LOG = logging.getLogger("taoloop")


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


class RestartingStream:
    """Tells the listener of a streamed reply when the reply starts over."""

    def __init__(self, request: ModelRequest) -> None:
        self._listener, self._shown = request.on_delta, False
        self.request = request if request.on_delta is None else replace(request, on_delta=self._forward)

    def restart(self) -> None:
        """The pieces so far are void; nothing is sent if there were none."""
        if self._shown and self._listener is not None:
            self._shown = False
            DeltaFanout(self._listener)(Delta(kind="restart"))

    def _forward(self, delta: Delta) -> None:
        self._shown = True
        if self._listener is not None:
            self._listener(delta)


def with_message(error: ModelError, message: str) -> ModelError:
    """The same error (class, fields, hint) with another message."""
    copied = copy.copy(error)
    copied.message = message
    copied.args = (f"{message} {copied.hint}" if copied.hint else message,)
    return copied


class Retrying(WrappedModel):
    """Retries what failed with a `retryable` error; any other error is passed to the caller at once.

    Each attempt that failed and is followed by another is a warning of the logger `taoloop`, and the error in the end
    says how many there were. A reply that was being streamed starts over (`Delta(kind="restart")`).
    """

    def __init__(self, model: Model, retry: Retry | None = None, *, pace: Pace = REAL_PACE) -> None:
        super().__init__(model)
        self._retry, self._pace = retry or Retry(), pace

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The first reply that comes.

        Raises:
            ModelError: that of the last attempt, with their number. It comes at once where the next attempt would
                begin after the time of the request.
        """
        ends = None if request.timeout_s is None else self._pace.tick() + request.timeout_s
        streamed = RestartingStream(request)
        attempt, window_s, left_s = 1, min(self._retry.first_wait_s, self._retry.max_wait_s), request.timeout_s
        while True:
            try:
                return await self._attempt(streamed.request, left_s)
            except ModelError as error:
                left_s = None if ends is None else ends - self._pace.tick()
                wait_s = self._wait_s(error, window_s)
                if (last := self._final_error(error, attempt, wait_s, left_s)) is not None:
                    raise last from error.__cause__
                text = "%s failed (attempt %d of %d): %s Trying again in %.1f s."
                _LOG.warning(text, self.spec, attempt, self._retry.attempts, error.message, wait_s)
            await self._pace.sleep(wait_s)
            streamed.restart()
            attempt, window_s = attempt + 1, min(window_s * 2, self._retry.max_wait_s)
            left_s = None if ends is None else max(0.001, ends - self._pace.tick())

    async def _attempt(self, request: ModelRequest, left_s: float | None) -> ModelReply:
        """One call, within what is left of the time."""
        limit_s = self._retry.attempt_timeout_s
        if limit_s is None or (left_s is not None and left_s <= limit_s):  # our caller keeps the time
            return await self._model.complete(
                request if request.timeout_s == left_s else replace(request, timeout_s=left_s)
            )
        try:
            return await complete_within(self._model, request, limit_s)
        except ModelTimeout as error:  # of the attempt: the request has time left
            raise ModelUnavailable(error.message, hint=error.hint) from error

    def _wait_s(self, error: ModelError, window_s: float) -> float:
        part = self._pace.random()
        asked_s = error.retry_after_s
        return part * window_s if asked_s is None else asked_s + part * self._retry.first_wait_s

    def _final_error(self, error: ModelError, attempt: int, wait_s: float, left_s: float | None) -> ModelError | None:
        """The error to give up with; None if there is another attempt."""
        counted = f"After {attempt} attempts: {error.message}" if attempt > 1 else error.message
        if not error.retryable or attempt >= self._retry.attempts or (left_s is not None and left_s <= 0):
            return with_message(error, counted)
        if left_s is None or wait_s < left_s:
            return None
        who = "The provider asks for a wait" if error.retry_after_s is not None else "The next attempt is due after one"
        missing_time = f"{who} of {wait_s:.1f} s, and {left_s:.1f} s are left."
        return with_message(error, f"{counted} {missing_time}")


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

    @property
    def sees_images(self) -> bool:
        """Whether any model sees images; a request describes them to the others."""
        return any(map(sees_images, self._models))

    @property
    def reads_pdf(self) -> bool:
        """Whether any model reads PDFs; the others are told that there is one."""
        return any(map(reads_pdf, self._models))

    @property
    def reads_prompts(self) -> bool:
        """Whether the replies of any model follow from what it reads."""
        return any(map(reads_prompts, self._models))

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
        raise combine_errors(failures)

    def check_used(self, replies: int) -> None:
        """Nothing: which model gave how many of the replies is not known here."""

    async def close(self) -> None:
        """Close all models."""
        for model in self._models:
            await model.close()


def combine_errors(failures: list[tuple[str, ModelError]]) -> ModelError:
    """One error for those of several models, each with the spec of its model."""
    if len(failures) == 1:
        return failures[0][1]
    reasons = (error.message if spec in error.message else f"{spec}: {error.message}" for spec, error in failures)
    message = f"None of {len(failures)} models answered. {' '.join(reasons)}"
    last = failures[-1][1]
    if all(type(error) is type(last) for _, error in failures):
        return with_message(last, message)
    retryable = any(error.retryable for _, error in failures)
    return ModelUnavailable(message, hint=last.hint, retryable=retryable)
