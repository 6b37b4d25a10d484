"""When the next call may begin, so that no span of 60 seconds holds more than a rate allows. Pure arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

from taoloop.models.settings import Rate

SPAN_S = 60.0


@dataclass(slots=True, eq=False)
class Place:
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
        self._places: list[Place] = []

    def take(self, tokens: int, now: float) -> Place:
        """The place of a new call, behind all others."""
        place = Place(tokens)
        self._places.append(place)
        self._plan(now)
        return place

    def begin(self, place: Place, now: float) -> float:
        """0 if the call begins now; else the seconds until it may, as things stand."""
        if place.start > now:
            return place.start - now
        place.start, place.begun = now, True
        if any(not other.begun for other in self._places):  # they were planned for a start that is a little later now
            self._plan(now)
        return 0.0

    def settle(self, place: Place, tokens: int, now: float) -> None:
        """The call used so many tokens; those that wait are planned anew."""
        place.tokens = tokens
        self._plan(now)

    def give_back(self, place: Place, now: float) -> None:
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
