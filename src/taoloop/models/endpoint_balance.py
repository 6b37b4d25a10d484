"""Several endpoints of one model: calls are shared by weight, and an endpoint that fails is left out for a while.

A circuit breaker for each endpoint: a failure opens it for a cool-down, which doubles with each failure in a row; after
that one call at a time tries it (half-open), and a reply closes it. A model call has no effects, so a call that failed
is made again on another endpoint.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply
from taoloop.errors import (
    ConfigError,
    ModelAuthError,
    ModelError,
    ModelNotFound,
    ModelRateLimited,
    ModelReplyUnreadable,
    ModelTimeout,
    ModelUnavailable,
)
from taoloop.models.base import Model, is_language_model, reads_pdf, sees_images
from taoloop.models.retry import RestartingStream, combine_errors, complete_within
from taoloop.models.settings import REAL_PACE, Pace

_LOG = logging.getLogger("taoloop")

_ENDPOINT_ERRORS = (
    *(ModelTimeout, ModelUnavailable, ModelRateLimited),
    *(ModelAuthError, ModelNotFound, ModelReplyUnreadable),
)
"""Errors of an endpoint, its key or its account. Any other is one of the request, which is the same everywhere."""

COOL_DOWN_S = 30.0
"""How long an endpoint is left out after its first failure, where the provider asks for no other time."""

MAX_COOL_DOWN_S = 600.0
"""The bound for the doubling of that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointHealth:
    """How an endpoint is now."""

    name: str
    """Its name for people."""

    weight: int
    """Its share of the calls."""

    is_healthy: bool
    """Whether it gets its share of the calls."""

    failures: int
    """How often in a row it has failed."""

    code: str
    """The code of the last error; "" if its last call succeeded."""


class _Breaker:
    """The state of one endpoint."""

    __slots__ = ("asked_until", "error", "failures", "is_tried", "model", "name", "opened_at", "out_until", "weight")

    def __init__(self, model: Model, name: str, weight: int) -> None:
        self.model, self.name, self.weight = model, name, weight
        self.failures, self.is_tried = 0, False
        self.out_until = self.asked_until = 0.0  # `asked_until`: the provider said so
        self.opened_at = -math.inf
        self.error: ModelError | None = None

    def takes_calls(self, now: float) -> bool:
        """Closed, or half-open and nobody tries it."""
        return not self.failures or (now >= self.out_until and not self.is_tried)


class Balanced:
    """Shares the calls of a model among several endpoints; one that fails is left out for a cool-down.

    `Retry-After` is obeyed, as long as the provider asks. Where all are left out, those that no provider asked to
    spare are tried all the same. Where time is limited, each endpoint that is tried gets an equal part of what is
    left. Failures and recoveries are warnings of the logger `taoloop`.

    Args:
        models: The same model at its endpoints.
        weights: Their shares; all the same without them.
        names: Their names for people; their numbers without them.
        pace: The source of time and chance.
    """

    def __init__(
        self,
        models: Sequence[Model],
        weights: Sequence[int] = (),
        *,
        names: Sequence[str] = (),
        pace: Pace = REAL_PACE,
    ) -> None:
        weights = weights or [1] * len(models)
        names = names or [f"#{number}" for number in range(1, len(models) + 1)]
        if not models or not len(models) == len(weights) == len(names) or min(weights) < 1:
            raise ConfigError(
                "Each endpoint needs a model, a weight above 0 and a name.",
                hint="Give at least one, and as many of each.",
            )
        self._breakers = [_Breaker(*parts) for parts in zip(models, names, weights, strict=True)]
        self._pace = pace

    @property
    def spec(self) -> str:
        """That of the first model."""
        return self._breakers[0].model.spec

    @property
    def dialect(self) -> str:
        """That of the first model."""
        return self._breakers[0].model.dialect

    @property
    def is_language_model(self) -> bool:
        """Whether the first model is one."""
        return is_language_model(self._breakers[0].model)

    @property
    def sees_images(self) -> bool:
        """Whether the first model sees images: all of them are the same."""
        return sees_images(self._breakers[0].model)

    @property
    def reads_pdf(self) -> bool:
        """Whether the first model reads PDFs: all of them are the same."""
        return reads_pdf(self._breakers[0].model)

    @property
    def health(self) -> tuple[EndpointHealth, ...]:
        """How the endpoints are now."""
        return tuple(
            EndpointHealth(
                name=breaker.name,
                weight=breaker.weight,
                is_healthy=not breaker.failures,
                failures=breaker.failures,
                code="" if breaker.error is None else breaker.error.code,
            )
            for breaker in self._breakers
        )

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the first endpoint that gives one.

        Raises:
            ModelError: none did; says why, for each of them. Or the request itself is refused.
        """
        ends = None if request.timeout_s is None else self._pace.tick() + request.timeout_s
        streamed = RestartingStream(request)
        breakers = self._draw()
        failures: list[tuple[str, ModelError]] = []
        for waiting, breaker in zip(range(len(breakers), 0, -1), breakers, strict=True):
            left_s = None if ends is None else max(0.001, ends - self._pace.tick())
            began_at, breaker.is_tried = self._pace.tick(), True
            try:
                if left_s is None:
                    reply = await breaker.model.complete(streamed.request)
                elif waiting == 1:
                    reply = await breaker.model.complete(replace(streamed.request, timeout_s=left_s))
                else:
                    reply = await complete_within(breaker.model, streamed.request, left_s / waiting)
            except _ENDPOINT_ERRORS as error:
                self._open(breaker, error, began_at)
                failures.append((f"{self.spec} at {breaker.name}", error))
                streamed.restart()
            else:
                self._close(breaker, began_at)
                return reply
            finally:
                breaker.is_tried = False
        raise combine_errors(failures) if failures else self._spared()

    def check_used(self, replies: int) -> None:
        """Nothing: which endpoint gave how many of the replies is not known here."""

    async def close(self) -> None:
        """Close all models."""
        for breaker in self._breakers:
            await breaker.model.close()

    def _draw(self) -> list[_Breaker]:
        """The endpoints in the order to try them: by chance and weight, then those that are left out."""
        now = self._pace.tick()
        ready = [breaker for breaker in self._breakers if breaker.takes_calls(now)]
        rest = [breaker for breaker in self._breakers if breaker not in ready and now >= breaker.asked_until]
        drawn: list[_Breaker] = []
        while len(ready) > 1:
            point = self._pace.random() * sum(breaker.weight for breaker in ready)
            ends = accumulate(breaker.weight for breaker in ready)
            drawn.append(ready.pop(next(index for index, end in enumerate(ends) if point < end)))
        drawn += ready
        return drawn or sorted(rest, key=lambda breaker: breaker.out_until)

    def _open(self, breaker: _Breaker, error: ModelError, began_at: float) -> None:
        if began_at < breaker.opened_at:  # one of many calls that were under way when the first one failed
            return
        breaker.error = error
        breaker.failures += 1
        now, asked_s = self._pace.tick(), error.retry_after_s
        out_s = min(COOL_DOWN_S * 2.0 ** min(breaker.failures - 1, 10), MAX_COOL_DOWN_S)
        if asked_s is not None:
            out_s, breaker.asked_until = asked_s, now + asked_s
        breaker.opened_at, breaker.out_until = now, now + out_s
        _LOG.warning("%s: endpoint %s is left out for %.0f s: %s", self.spec, breaker.name, out_s, error.message)

    def _close(self, breaker: _Breaker, began_at: float) -> None:
        if began_at < breaker.opened_at:
            return
        if breaker.failures:
            _LOG.warning("%s: endpoint %s answers again", self.spec, breaker.name)
        breaker.failures, breaker.error = 0, None
        breaker.out_until = breaker.asked_until = 0.0

    def _spared(self) -> ModelError:
        """The error where every provider asked to wait: how long until the first one takes calls."""
        soonest = min(self._breakers, key=lambda breaker: breaker.asked_until)
        wait_s = max(0.0, soonest.asked_until - self._pace.tick())
        message = f"No endpoint of {self.spec} takes calls before {wait_s:.0f} s have passed."
        return ModelRateLimited(message, retry_after_s=wait_s)
