"""A model that is called no more often than agreed: requests and tokens per minute, counted on the client's side.

The quotas of the gateway's keys count with the same `SlidingWindow`. Times are seconds of any clock that never goes
back; the caller passes them, so that only `RateLimited` waits and the rest needs no clock in tests.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from threading import Lock
from typing import Self

from taoloop.core.cards.tool_search import listed_cards
from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply, message_tokens
from taoloop.dialects.prompt import tool_tokens
from taoloop.errors import ModelAuthError, ModelContentRefused, ModelNotFound, ModelRateLimited, ModelRequestRefused
from taoloop.models.base import Model, WrappedModel
from taoloop.models.settings import REAL_PACE, Pace, Rate

MINUTE_S = 60.0


@dataclass(slots=True, eq=False)
class WindowEntry:
    """An amount that was used at one time, or in a short span of time."""

    first: float
    """When the first part of it was used."""

    last: float
    """When the last part of it was used. The entry leaves the window one span later."""

    amount: int
    """How much was used: requests, or tokens."""


class SlidingWindow:
    """Amounts of the last `span_s` seconds, oldest first. Not safe for several threads.

    Unlike a counter that starts afresh each minute, no span of this length ever holds more than `free_at` allows.

    Args:
        span_s: The length of the window.
        grain_s: Amounts that follow each other this closely share an entry, which leaves with its youngest part: the
            window then has at most `span_s / grain_s` entries, however often something is added. 0 keeps them apart,
            so that each can be corrected.
    """

    def __init__(self, span_s: float = MINUTE_S, *, grain_s: float = 0.0) -> None:
        self._span_s, self._grain_s = span_s, grain_s
        self._entries: deque[WindowEntry] = deque()
        self._total = 0

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._entries)

    def copy(self) -> Self:
        """A window with the same entries, to plan ahead in: what is added to it is not in this one."""
        copied = type(self)(self._span_s)  # without a grain, so that it changes none of the entries that both have
        copied._entries, copied._total = self._entries.copy(), self._total
        return copied

    def total(self, now: float) -> int:
        """How much was used in the span that ends now."""
        self._expire(now)
        return self._total

    def add(self, amount: int, now: float) -> WindowEntry:
        """Count an amount as used now, even if there is no room for it."""
        self._expire(now)
        self._total += amount
        if self._entries and now - self._entries[-1].first < self._grain_s:
            entry = self._entries[-1]
            entry.last = now
            entry.amount += amount
        else:
            entry = WindowEntry(now, now, amount)
            self._entries.append(entry)
        return entry

    def correct(self, entry: WindowEntry, amount: int, now: float) -> None:
        """Replace the estimate in an entry of its own by what was really used."""
        self._expire(now)
        if now < entry.last + self._span_s:
            self._total += amount - entry.amount
        entry.amount = amount

    def free_at(self, limit: float, now: float, amount: int = 1) -> float:
        """The earliest time, not before `now`, at which `amount` more keeps the window within `limit`.

        An amount larger than the limit itself fits once the window is empty: it waits, but not for ever.
        """
        self._expire(now)
        total, time = self._total, now
        for entry in self._entries:
            if total + amount <= limit:
                break
            total -= entry.amount
            time = entry.last + self._span_s
        return time

    def _expire(self, now: float) -> None:
        while self._entries and now >= self._entries[0].last + self._span_s:
            self._total -= self._entries.popleft().amount


@dataclass(slots=True, eq=False)
class Reservation:
    """The turn of one call in a `RateWindow`."""

    tokens: int
    """The tokens of the call: an estimate until they are known."""

    start: float = math.inf
    """When the call may start, as planned, or when it has started."""

    entry: WindowEntry | None = None
    """Its tokens in the window, once it has started."""


class RateWindow:
    """Plans calls within the requests and tokens of a minute. First come, first served.

    Times are seconds of any clock that never goes back. A call of more tokens than the rate allows in a minute starts
    once the window is empty. Planning looks at the calls of the last minute and those that wait.
    """

    def __init__(self, rate: Rate) -> None:
        self._request_limit = math.inf if rate.requests_per_minute is None else rate.requests_per_minute
        self._token_limit = math.inf if rate.tokens_per_minute is None else rate.tokens_per_minute
        self._requests, self._tokens = SlidingWindow(), SlidingWindow()
        self._waiting: list[Reservation] = []

    def reserve(self, tokens: int, now: float) -> Reservation:
        """The turn of a new call, after all others."""
        reservation = Reservation(tokens)
        self._waiting.append(reservation)
        self._plan(now)
        return reservation

    def start(self, reservation: Reservation, now: float) -> float:
        """0 if the call starts now; else the seconds until it may, as planned at this moment."""
        if reservation.start > now:
            return reservation.start - now
        self._waiting.remove(reservation)
        self._requests.add(1, now)
        reservation.start, reservation.entry = now, self._tokens.add(reservation.tokens, now)
        self._plan(now)  # the others were planned for a start that may be a little later now
        return 0.0

    def settle(self, reservation: Reservation, tokens: int, now: float) -> None:
        """The call used so many tokens; those that wait are planned again."""
        if reservation.entry is not None:
            self._tokens.correct(reservation.entry, tokens, now)
            self._plan(now)

    def cancel(self, reservation: Reservation, now: float) -> None:
        """The call that waits will not be made."""
        if reservation in self._waiting:
            self._waiting.remove(reservation)
            self._plan(now)

    def _plan(self, now: float) -> None:
        if not self._waiting:
            return
        requests, tokens, time = self._requests.copy(), self._tokens.copy(), now
        for reservation in self._waiting:
            time = max(
                requests.free_at(self._request_limit, time), tokens.free_at(self._token_limit, time, reservation.tokens)
            )
            requests.add(1, time)
            tokens.add(reservation.tokens, time)
            reservation.start = time


EXPECTED_OUTPUT_TOKENS = 300
"""How many tokens a reply is expected to need, where the request sets no `max_output_tokens`."""

_POLL_S = 1.0
"""How often a waiting call checks whether it may start earlier, because others used less than they had reserved."""

_REFUSED = (ModelRateLimited, ModelAuthError, ModelNotFound, ModelRequestRefused)
"""The provider did not take the request, so it used no tokens."""


class RateLimited(WrappedModel):
    """Holds calls back, in their order, so that no span of 60 seconds has more than `rate` allows.

    One instance counts for all runs, event loops and threads of the process that use it. Tokens are reserved by an
    estimate of the prompt and of the output that may come, and corrected by what the provider reports; a call that the
    provider refused used none. The wait is part of the request's time: agents that share a tight rate need a larger
    `model_timeout_s`.
    """

    def __init__(self, model: Model, rate: Rate, *, pace: Pace = REAL_PACE) -> None:
        super().__init__(model)
        self._rate, self._pace = rate, pace
        self._window, self._lock = RateWindow(rate), Lock()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the wrapped model, which is asked when there is room for the call.

        Raises:
            ModelRateLimited: there will be none within the time of the request; raised at once.
        """
        reservation, waited_s = await self._wait_for_turn(request)
        if request.timeout_s is not None and waited_s:
            request = replace(request, timeout_s=max(0.001, request.timeout_s - waited_s))
        try:
            reply = await self._model.complete(request)
        except _REFUSED as error:
            if not isinstance(error, ModelContentRefused):  # the model may have begun before it refused
                self._settle(reservation, 0)
            raise
        if reply.usage.total_tokens:
            self._settle(reservation, reply.usage.total_tokens)
        return reply

    async def _wait_for_turn(self, request: ModelRequest) -> tuple[Reservation, float]:
        """Wait until the call may start; its reservation, and the seconds waited."""
        tokens = 0 if self._rate.tokens_per_minute is None else estimated_tokens(request)
        began = self._pace.tick()
        with self._lock:
            reservation = self._window.reserve(tokens, began)
        try:
            while wait_s := self._start(reservation):
                left_s = math.inf if request.timeout_s is None else request.timeout_s - (self._pace.tick() - began)
                if wait_s >= left_s:
                    raise ModelRateLimited(
                        f"{self.spec} was not asked: the agent's own rate of {_rate_text(self._rate)} allows the "
                        f"next call in {wait_s:.0f} s, and {max(0.0, left_s):.0f} s are left.",
                        hint="Raise model_timeout_s or the rate, or run fewer agents at once.",
                        retry_after_s=wait_s,
                    )
                await self._pace.sleep(min(wait_s, _POLL_S))
        except BaseException:
            with self._lock:
                self._window.cancel(reservation, self._pace.tick())
            raise
        return reservation, self._pace.tick() - began

    def _settle(self, reservation: Reservation, tokens: int) -> None:
        if self._rate.tokens_per_minute is not None:
            with self._lock:
                self._window.settle(reservation, tokens, self._pace.tick())

    def _start(self, reservation: Reservation) -> float:
        with self._lock:
            return self._window.start(reservation, self._pace.tick())


def estimated_tokens(request: ModelRequest) -> int:
    """What a request may need, estimated: the prompt, the tools beside it, and the output that may come."""
    prompt = sum(message_tokens(message) for message in request.messages)
    if request.native:
        prompt += tool_tokens(listed_cards(request.tools), request.trace.agent.language)
    return prompt + (request.max_output_tokens or EXPECTED_OUTPUT_TOKENS)


def _rate_text(rate: Rate) -> str:
    requests, tokens = rate.requests_per_minute, rate.tokens_per_minute
    if tokens is None:
        return f"{requests} requests per minute"
    return f"{tokens} tokens per minute" if requests is None else f"{requests} requests and {tokens} tokens per minute"
