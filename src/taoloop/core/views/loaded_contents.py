"""Which contents of the operator's machine, such as skills, a run has loaded, with their digests. A view of the trace.

A call of a tool whose card names contents (`ContentCard`) returns nothing unless the content still has the digest of
the card, so the card says exactly what the model has read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from taoloop.core.cards.tool_card import ContentCard, ToolCard
from taoloop.core.events import ActionRequested, ApprovalGiven, Event, Observed, Resumed, RunStarted
from taoloop.core.trace import Trace


class LoadedContent(NamedTuple):
    """A content that a call has loaded."""

    content: ContentCard
    """What the card said of it when the call ended."""
    tool: str
    """The tool of the call."""
    call_id: str
    """The call that loaded it."""
    step: int
    """The step of that call."""


class LoadedContents:
    """The contents that successful calls of a run have loaded. Nothing is ever unloaded: the model has read it."""

    def __init__(self) -> None:
        self.by_call: dict[str, LoadedContent] = {}
        """What each call has loaded, by its id."""
        self._cards: dict[str, ToolCard] = {}
        self._open: dict[str, tuple[ActionRequested, object]] = {}
        self._first: dict[tuple[str, str], LoadedContent] = {}

    @property
    def contents(self) -> tuple[LoadedContent, ...]:
        """Each content by the call that first loaded it, in that order; again where it had another digest."""
        return tuple(self._first.values())

    def only_before(self, step: int) -> Iterator[LoadedContent]:
        """What calls up to a step have loaded and no later call with the same tool; the newest first."""
        keys: set[tuple[str, str]] = set()
        for loaded in reversed(self.by_call.values()):
            key = loaded.tool, loaded.content.name
            if key not in keys and loaded.step <= step:
                yield loaded
            keys.add(key)

    def fold(self, event: Event) -> None:
        """Process the next event."""
        match event.fact:
            case RunStarted() as fact:
                self._note_cards(fact.agent.tools)
            case Resumed() as fact:
                self._note_cards(fact.cards)
            case ActionRequested() as fact if fact.tool in self._cards:
                self._open[fact.call_id] = fact, fact.args
            case ApprovalGiven(call_id=call_id, args=edited) if edited is not None and call_id in self._open:
                self._open[call_id] = self._open[call_id][0], edited
            case Observed() as fact if fact.call_id in self._open:
                self._fold_observation(fact)
            case _:
                pass

    def _note_cards(self, cards: Iterable[ToolCard]) -> None:
        self._cards |= {card.name: card for card in cards if card.contents}

    def _fold_observation(self, fact: Observed) -> None:
        requested, args = self._open.pop(fact.call_id)
        name = args.get("name") if isinstance(args, Mapping) else None
        if not fact.ok:
            return
        for content in self._cards[requested.tool].contents:
            if content.name == name:
                loaded = LoadedContent(content, requested.tool, fact.call_id, requested.step)
                self.by_call[fact.call_id] = loaded
                self._first.setdefault((content.name, content.digest), loaded)


def loaded_contents(trace: Trace) -> LoadedContents:
    """What a run has loaded."""
    return trace.view("loaded_contents", LoadedContents)
