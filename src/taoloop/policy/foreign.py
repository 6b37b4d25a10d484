"""What untrusted outputs said, by word: to show a person where a value came from. A view of the trace.

It is read only for questions and denials; no verdict depends on it, for what stands in no untrusted output may still
come from one, decoded or reworded.
"""

from __future__ import annotations

from typing import Any

from taoloop.core.events import Event, Observed, Source
from taoloop.core.trace import Trace
from taoloop.policy.sources import Sources, leaves, sources_of
from taoloop.policy.values import atoms, hides_something, links_in, plain

SNIPPET_CHARS = 120
_MOST_PLACES = 4  # of one word: enough to find a phrase, and bounded


class Foreign:
    """An index from words to the outputs that have them; each output is read once."""

    def __init__(self) -> None:
        self._outputs: list[Observed] = []
        self._plain: dict[int, str] = {}  # of outputs that were looked into
        self._places: dict[str, list[int]] = {}

    def fold(self, event: Event) -> None:
        """Take in the next event."""
        fact = event.fact
        if not isinstance(fact, Observed):
            return
        number = len(self._outputs)
        self._outputs.append(fact)
        for atom in atoms(_said(fact)):
            places = self._places.setdefault(atom, [])
            if len(places) < _MOST_PLACES and (not places or places[-1] != number):
                places.append(number)

    def find(self, value: Any) -> tuple[str, str] | None:
        """The call whose output has this value, and the text around it; None where none has."""
        wanted = plain(value if isinstance(value, str) else f"{value:.15g}" if isinstance(value, float) else str(value))
        words = sorted(atoms(wanted), key=len, reverse=True)[:4]
        if not words:
            return None
        numbers = sorted({number for word in words for number in self._places.get(word, ())})
        for number in numbers:
            observed, text = self._outputs[number], self._text(number)
            at = text.find(wanted)
            if at >= 0:
                said = _said(observed)
                shown = said if len(said) == len(text) else text  # as it was written, where that is the same place
                begin = max(0, at - (SNIPPET_CHARS - min(len(wanted), SNIPPET_CHARS)) // 2)
                return observed.call_id, shown[begin : begin + SNIPPET_CHARS]
        return None

    def _text(self, number: int) -> str:
        if number not in self._plain:
            self._plain[number] = plain(_said(self._outputs[number]))
        return self._plain[number]


def _said(fact: Observed) -> str:
    return fact.output if fact.error is None else f"{fact.output} {fact.error.message}"


def argument_sources(trace: Trace, args: Any, roles: Any, *, filled: bool = False) -> tuple[Source, ...]:
    """Where each argument of a call came from. `roles` gives the role of an argument by its name.

    `filled`: values came in by handles, which the model itself has not seen.
    """
    labels = sources_of(trace)
    tainted = labels.tainted or filled
    index = trace.view("foreign", Foreign) if tainted else None  # else nothing untrusted was shown to the model
    found = []
    for path, value in leaves(args):
        if value is None or value == "":
            continue
        role = roles(path.partition(".")[0].partition("[")[0])
        found.append(_source(labels, index, path, role, value))
    return tuple(found)


def _source(labels: Sources, index: Foreign | None, path: str, role: str, value: Any) -> Source:
    if labels.words.has(value, role):
        return Source(arg=path, role=role, badge="YOURS")
    if labels.was_looked_up(value, role):
        return Source(arg=path, role=role, badge="LOOKED UP")
    if role == "content" and isinstance(value, str):
        strange = not links_in(value) <= labels.words.urls
        return Source(arg=path, role=role, badge="LINKS" if strange or hides_something(value) else "WRITTEN")
    place = index.find(value) if index is not None and not isinstance(value, bool) else None
    if place is not None:
        return Source(arg=path, role=role, badge="FOREIGN", call_id=place[0], snippet=place[1])
    return Source(arg=path, role=role, badge="UNKNOWN")
