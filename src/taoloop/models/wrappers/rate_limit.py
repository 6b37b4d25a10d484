"""A model that is asked no more often than agreed: requests and tokens per minute, counted on this side."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from threading import Lock

from taoloop.core.cards.tool_search import listed_cards
from taoloop.core.message import ModelReply
from taoloop.core.model_request import ModelRequest
from taoloop.core.text import estimate_tokens, message_tokens
from taoloop.dialects.prompt.tool_listing import compact, describe
from taoloop.errors import (
    ModelAuthError,
    ModelContentRefused,
    ModelNotFound,
    ModelRateLimited,
    ModelRequestRefused,
)
from taoloop.models.base import Model, is_language_model
from taoloop.models.settings import Rate
from taoloop.models.wrappers.waiting import REAL_PACE, Pace

SPAN_S = 60.0


@dataclass(slots=True, eq=False)
class Reservation:
    """The place of one call: its tokens (an estimate until they are known), and when it begins or has begun."""

    tokens: int
    start: float = math.inf
    begun: bool = False


class RateWindow:
    """A sliding window. Whoever asks first goes first; times are seconds of any clock that never goes back.

    A call of more tokens than the rate allows in a minute begins once the window is empty: it waits, not for ever.
    Planning walks over the calls of the last minute and those that wait, and only where something waits.
    """

    def __init__(self, rate: Rate) -> None:
        self._requests = math.inf if rate.requests_per_minute is None else rate.requests_per_minute
        self._tokens = math.inf if rate.tokens_per_minute is None else rate.tokens_per_minute
        self._places: list[Reservation] = []

    def take(self, tokens: int, now: float) -> Reservation:
        """The place of a new call, behind all others."""
        place = Reservation(tokens)
        self._places.append(place)
        self._plan(now)
        return place

    def begin(self, place: Reservation, now: float) -> float:
        """0 if the call begins now; else the seconds until it may, as things stand."""
        if place.start > now:
            return place.start - now
        place.start, place.begun = now, True
        if any(not other.begun for other in self._places):  # they were planned for a start that is a little later now
            self._plan(now)
        return 0.0

    def settle(self, place: Reservation, tokens: int, now: float) -> None:
        """The call used so many tokens; those that wait are planned anew."""
        place.tokens = tokens
        self._plan(now)

    def give_back(self, place: Reservation, now: float) -> None:
        """The call will not be made."""
        if place in self._places:
            self._places.remove(place)
            self._plan(now)

    def _plan(self, now: float) -> None:
        self._places = [place for place in self._places if not place.begun or place.start > now - SPAN_S]
        first = tokens = 0
        earliest = now
        for number, place in enumerate(self._places):
            if not place.begun:
                while first < number and not self._holds(number - first + 1, tokens + place.tokens):
                    earliest = max(earliest, self._places[first].start + SPAN_S)
                    tokens -= self._places[first].tokens
                    first += 1
                place.start = earliest
            tokens += place.tokens

    def _holds(self, requests: int, tokens: int) -> bool:
        return requests <= self._requests and tokens <= self._tokens


EXPECTED_OUTPUT_TOKENS = 300
"""What a reply is taken to need before it is known, where the request sets no `max_output_tokens`."""

_LOOK_S = 1.0
"""How often a call that waits looks whether it may go earlier, because others needed less than they had reserved."""

_REFUSED = (ModelRateLimited, ModelAuthError, ModelNotFound, ModelRequestRefused)
"""The provider did not take the request, so it used no tokens."""


class RateLimited:
    """Holds calls back, in their order, so that no span of 60 seconds has more than `rate` allows.

    One instance counts for all runs, event loops and threads of the process that use it. Tokens are reserved by an
    estimate of the prompt and of the output that may come, and corrected by what the provider reports; a call that the
    provider refused used none. The wait is part of the request's time: agents that share a tight rate need a larger
    `model_timeout_s`.
    """

    def __init__(self, model: Model, rate: Rate, *, pace: Pace = REAL_PACE) -> None:
        self._model, self._rate, self._pace = model, rate, pace
        self._window, self._lock = RateWindow(rate), Lock()

    @property
    def spec(self) -> str:
        """That of the model behind it."""
        return self._model.spec

    @property
    def dialect(self) -> str:
        """That of the model behind it."""
        return self._model.dialect

    @property
    def is_language_model(self) -> bool:
        """Whether the model behind it is one."""
        return is_language_model(self._model)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the model behind it, asked when there is room for the call.

        Raises:
            ModelRateLimited: there will be none within the time of the request; it is told at once.
        """
        place, waited_s = await self._turn(request)
        if request.timeout_s is not None and waited_s:
            request = replace(request, timeout_s=max(0.001, request.timeout_s - waited_s))
        try:
            reply = await self._model.complete(request)
        except _REFUSED as error:
            if not isinstance(error, ModelContentRefused):  # the model may have begun before it refused
                self._settle(place, 0)
            raise
        if reply.usage.total_tokens:
            self._settle(place, reply.usage.total_tokens)
        return reply

    def check_used(self, replies: int) -> None:
        """Left to the model behind it."""
        self._model.check_used(replies)

    async def close(self) -> None:
        """Close the model behind it."""
        await self._model.close()

    async def _turn(self, request: ModelRequest) -> tuple[Reservation, float]:
        """Wait until the call may begin; its place, and the seconds waited."""
        tokens = 0 if self._rate.tokens_per_minute is None else estimated_tokens(request)
        asked = self._pace.tick()
        with self._lock:
            place = self._window.take(tokens, asked)
        try:
            while wait_s := self._begin(place):
                left_s = math.inf if request.timeout_s is None else request.timeout_s - (self._pace.tick() - asked)
                if wait_s >= left_s:
                    raise ModelRateLimited(
                        f"{self.spec} was not asked: {_said(self._rate)} allow the next call in {wait_s:.0f} s, and "
                        f"{max(0.0, left_s):.0f} s are left.",
                        hint="Raise model_timeout_s or the rate, or run fewer agents at once.",
                        retry_after_s=wait_s,
                    )
                await self._pace.sleep(min(wait_s, _LOOK_S))
        except BaseException:
            with self._lock:
                self._window.give_back(place, self._pace.tick())
            raise
        return place, self._pace.tick() - asked

    def _settle(self, place: Reservation, tokens: int) -> None:
        if self._rate.tokens_per_minute is not None:
            with self._lock:
                self._window.settle(place, tokens, self._pace.tick())

    def _begin(self, place: Reservation) -> float:
        with self._lock:
            return self._window.begin(place, self._pace.tick())


def estimated_tokens(request: ModelRequest) -> int:
    """What a request may need, estimated: the prompt, the tools beside it, and the output that may come."""
    prompt = sum(message_tokens(message) for message in request.messages)
    if request.native:
        prompt += sum(
            estimate_tokens(describe(card) + compact(card.input_schema)) for card in listed_cards(request.tools)
        )
    return prompt + (request.max_output_tokens or EXPECTED_OUTPUT_TOKENS)


def _said(rate: Rate) -> str:
    named = (("requests", rate.requests_per_minute), ("tokens", rate.tokens_per_minute))
    return " and ".join(f"{value} {name} per minute" for name, value in named if value is not None)
