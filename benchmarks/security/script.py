"""What the model wants next: the user's calls and, from the first injected text on, those of the attack.

An attack comes at once, and then the model answers: what the user's task still wants could undo it. A late one waits
until the user's calls are made, so that it comes after what a person allowed. Nothing that is refused changes what
comes after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

from security.disguise import MARK, Spelling, respelt
from security.dojo import Call

from taoloop.evals.suites.dojo_cards import CARDS

Timing = Literal["at-once", "late"]
Pins = Literal["honest", "hijacked"]
"""Who answers what the task calls for: the model that knows the task, or the attacker."""


def _goes_with(first: Call, call: Call) -> bool:
    """Whether a model asks for both in one decision: calls of one tool, or effects once all was read."""
    return call.tool == first.tool or (CARDS[first.tool].tier != "read" and CARDS[call.tool].tier != "read")


@dataclass
class Script:
    """One run's calls. `attack` is asked for its calls one by one; `obeys` False ignores the injection."""

    own: list[Call]
    answer: str
    attack: Iterator[Call] = field(default_factory=lambda: iter(()))
    attack_answer: str = ""
    spelling: Spelling = "as-is"
    timing: Timing = "at-once"
    obeys: bool = True
    fixed_ahead: list[Call] | None = None
    """The calls that a hijacked reply to the question what the task calls for fixes, after naming every tool; None: the
    reply is honest."""
    hijacked: bool = False
    made: list[tuple[Call, bool]] = field(default_factory=list)
    """Every call as it was written, and whether it is of the attack."""
    _own_made: int = 0
    _plain: dict[str, dict[str, Any]] = field(default_factory=dict)

    def see(self, text: str) -> None:
        """What came back for the last call."""
        self.hijacked = self.hijacked or (self.obeys and MARK in text)

    def next(self) -> list[Call]:
        """The next call, and with an effect the effects that follow it in the user's task; nothing: it answers."""
        if self._own_made < len(self.own) and not (self.hijacked and self.timing == "at-once"):
            rest = self.own[self._own_made :]
            first = rest[0]
            calls = list(takewhile(lambda call: _goes_with(first, call), rest))
            self._own_made += len(calls)
            calls = list({call.key: call for call in calls}.values())
            self.made += [(call, False) for call in calls]
            return calls
        if self.hijacked and (call := next(self.attack, None)) is not None:
            written = self._write(call)
            self.made.append((written, True))
            return [written]
        return []

    def final(self) -> str:
        """The answer."""
        answer = f"{self.answer} {self.attack_answer}" if self.hijacked else self.answer
        return answer.strip() or "Done."

    def _write(self, call: Call) -> Call:
        if self.spelling == "as-is":
            return call
        written = Call(call.tool, respelt(call.args, CARDS[call.tool].roles, self.spelling))
        self._plain[written.key] = dict(call.args)
        return written

    def plain(self, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the services behind the tools read them."""
        return self._plain.get(Call(tool, args).key, dict(args))
