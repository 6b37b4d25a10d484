"""An index of untrusted outputs by word: shows a person where a value came from. A view of the trace.

It is used only for questions and denials. No verdict depends on it: a value that appears in no untrusted output may
still come from one, decoded or reworded.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from taoloop.core.cards.questions import is_question
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import Event, Observed, RunStarted, Source
from taoloop.core.text import lazy_pattern
from taoloop.core.trace import Trace
from taoloop.policy.provenance import Provenance, sources_of
from taoloop.policy.targets import first_name, leaves, value_role
from taoloop.policy.value_match import atoms, has_invisible, links_in, normalise_text

SNIPPET_CHARS = 120
_MAX_OUTPUTS_PER_WORD = 4  # bounds the index; a phrase of words that are more common is searched for by its rarer ones
_SENTENCE_ENDS = lazy_pattern(r"[.?!:;](?:\s+|$)|[。？！：；\n]+")
_MIN_QUOTE = 4  # characters of a sentence that can be a quotation
_OUTSIDE = ""  # in place of the id of a call of this run
_LARGEST_AMOUNT = 10**15  # a float holds whole numbers and cents up to here
_MIN_PORTION, _PORTION_DIVISOR = 2, 64  # a question reads two outputs into the index, or one in 64 of what is left


class UntrustedIndex:
    """Where the words of untrusted outputs appear.

    Each output is added to the index once, in portions: a few with each question. Until its turn comes an output is
    searched as it is. So no question pays for everything that was read before it, and the answer is always that of the
    complete index.
    """

    def __init__(self) -> None:
        self._outputs: list[Observed] = []
        self._folded: dict[int, str] = {}  # of outputs that were searched and are not in the index yet
        self._plain: dict[int, str] = {}  # of outputs that were looked into
        self._atoms: dict[int, frozenset[str]] = {}  # of outputs that were looked into and are not in the index yet
        self._outputs_by_word: dict[str, list[int]] = {}
        self._indexed = 0

    def fold(self, event: Event) -> None:
        """Process the next event."""
        fact = event.fact
        if isinstance(fact, Observed):
            self._outputs.append(fact)
        elif isinstance(fact, RunStarted) and fact.tainted:
            self._outputs += [Observed(call_id=_OUTSIDE, ok=True, output=text) for text in _quoted_outputs(fact)]

    def find(self, value: Any) -> tuple[str | None, str] | None:
        """The call whose output contains this value, and the text around it; None if no output does.

        The call is None for an output of another run, which the task or the conversation quotes.
        """
        phrase = _phrase_of(value)
        if (location := self._find_phrase(phrase, re.compile(re.escape(phrase)))) is not None:
            return location
        for number in _spellings(value):
            pattern = re.compile(rf"(?<![\w.,]){re.escape(number)}(?!\w|[.,]\d)")
            if (location := self._find_phrase(number, pattern)) is not None:
                return location
        return None

    def _find_phrase(self, phrase: str, pattern: re.Pattern[str]) -> tuple[str | None, str] | None:
        words = sorted(atoms(phrase), key=len, reverse=True)[:4]
        if not words:
            return None
        for index in self._outputs_with_any(words):
            observed, text = self._outputs[index], self._text(index)
            if (match := pattern.search(text)) is not None:
                position = match.start()
                raw_text = _output_text(observed)
                # as it was written, where that is the same place
                excerpt_text = raw_text if len(raw_text) == len(text) else text
                start = max(0, position - (SNIPPET_CHARS - min(len(phrase), SNIPPET_CHARS)) // 2)
                return observed.call_id or None, excerpt_text[start : start + SNIPPET_CHARS]
        return None

    def read_portion(self) -> None:
        """Add the next portion of the outputs to the index; in the end all of them are in it."""
        remaining = len(self._outputs) - self._indexed
        portion = min(remaining, max(_MIN_PORTION, remaining // _PORTION_DIVISOR))
        for index in range(self._indexed, self._indexed + portion):
            for atom in self._atoms_of(index):
                indexes = self._outputs_by_word.setdefault(atom, [])
                if len(indexes) < _MAX_OUTPUTS_PER_WORD:
                    indexes.append(index)
            del self._atoms[index]
            self._folded.pop(index, None)
            self._indexed = index + 1

    def _outputs_with_any(self, words: Sequence[str]) -> Iterator[int]:
        """The outputs that contain one of these words, in order; for each word the first few."""
        counts = {word: len(self._outputs_by_word.get(word, ())) for word in words}
        yield from sorted({index for word in words for index in self._outputs_by_word.get(word, ())})
        for index in range(self._indexed, len(self._outputs)):
            if (folded := self._folded.get(index)) is None:
                folded = self._folded[index] = _folded(_output_text(self._outputs[index]))
            candidates = [word for word in counts if counts[word] < _MAX_OUTPUTS_PER_WORD and word in folded]
            if candidates and (matching := [word for word in candidates if word in self._atoms_of(index)]):
                counts |= {word: counts[word] + 1 for word in matching}
                yield index

    def _atoms_of(self, index: int) -> frozenset[str]:
        if index not in self._atoms:
            self._atoms[index] = frozenset(atoms(_output_text(self._outputs[index])))
        return self._atoms[index]

    def _text(self, index: int) -> str:
        if index not in self._plain:
            self._plain[index] = normalise_text(_output_text(self._outputs[index]))
        return self._plain[index]


class ValueSearch:
    """Which of some values an output has: for whoever looks through many outputs without keeping them.

    It may name a value that only stands there as a part of another one, and misses none that `UntrustedIndex` finds.
    """

    def __init__(self) -> None:
        self._forms: dict[str, tuple[str, list[str]]] = {}  # by phrase: its longest word, and its other spellings

    def add(self, value: Any) -> str | None:
        """Search for a plain value, too; returns the name for it, None where there is nothing to search for."""
        if value is None or value == "" or isinstance(value, bool):
            return None
        phrase = _phrase_of(value)
        if (word := max(atoms(phrase), key=len, default="")) == "":
            return None
        self._forms[phrase] = (word, _spellings(value))
        return phrase

    def values_in(self, observed: Observed) -> list[str]:
        """The names of the values that an output may have."""
        text = _output_text(observed)
        folded, plain, names = _folded(text), "", []
        for phrase, (word, spellings) in self._forms.items():
            is_there = any(spelling in folded for spelling in spellings)
            if not is_there and word in folded:
                plain = plain or normalise_text(text)
                is_there = phrase in plain
            if is_there:
                names.append(phrase)
        return names


def _phrase_of(value: Any) -> str:
    return normalise_text(f"{value:.15g}" if isinstance(value, float) else str(value))


def _quoted_outputs(started: RunStarted) -> list[str]:
    """What the task and the conversation of a run quote from outputs of other runs, each in a frame of this run."""
    begin, end = (re.escape(f"<{mark} {started.nonce}>") for mark in ("untrusted-data", "/untrusted-data"))
    frame = re.compile(f"{begin}(.*?){end}", re.DOTALL)
    texts = (started.task, *(message.content for message in started.history))
    return [quoted for text in texts for quoted in frame.findall(text)]


def _spellings(value: Any) -> list[str]:
    """How an amount may be written besides its plain form: with thousands set apart, and with cents."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) >= _LARGEST_AMOUNT:
        return []
    spellings = [f"{value:,}" if isinstance(value, int) else f"{value:,.15g}"]
    if round(value, 2) == value:
        spellings += [f"{value:.2f}", f"{value:,.2f}"]
    return spellings


def _folded(text: str) -> str:
    """The text in a form that contains every word of its normalised form."""
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold()


def _output_text(fact: Observed) -> str:
    return fact.output if fact.error is None else f"{fact.output} {fact.error.message}"


def argument_sources(trace: Trace, args: Any, card: ToolCard, *, filled: bool = False) -> tuple[Source, ...]:
    """Where each argument of a call of the tool of `card` came from.

    `filled`: values came in by handles, which the model itself has not seen.
    """
    labels = sources_of(trace)
    tainted = labels.tainted or filled
    index = trace.view("foreign", UntrustedIndex) if tainted else None  # else nothing untrusted was shown to the model
    sources = []
    for path, value in leaves(args):
        if value is None or value == "":
            continue
        sources.append(_source_of(labels, index, card, path, value))
    if index is not None:
        index.read_portion()
    return tuple(sources)


def _source_of(labels: Provenance, index: UntrustedIndex | None, card: ToolCard, path: str, value: Any) -> Source:
    name = first_name(path)
    role, compared_as = card.role(name), value_role(card, name, value)
    is_excluded = labels.is_excluded(value, role)
    if not is_excluded and labels.words.has(value, compared_as):
        return Source(arg=path, role=role, badge="YOURS")
    if not is_excluded and labels.was_looked_up(value, compared_as):
        return Source(arg=path, role=role, badge="LOOKED UP")
    if index is not None and is_question(card) and (quoted := _quoted_part(index, value)) is not None:
        return Source(arg=path, role=role, badge="FOREIGN", call_id=quoted[0], snippet=quoted[1])
    if role == "content" and isinstance(value, str):
        has_unknown_links = not links_in(value) <= labels.words.links
        return Source(arg=path, role=role, badge="LINKS" if has_unknown_links or has_invisible(value) else "WRITTEN")
    if not is_excluded and role.startswith("ref:") and labels.words.has(value, "target"):
        return Source(arg=path, role=role, badge="UNKNOWN")  # a bare number that the task has too: for what, is unknown
    location = index.find(value) if index is not None and not isinstance(value, bool) else None
    if location is not None:
        return Source(arg=path, role=role, badge="FOREIGN", call_id=location[0], snippet=location[1])
    return Source(arg=path, role=role, badge="UNKNOWN")


def _quoted_part(index: UntrustedIndex, value: Any) -> tuple[str | None, str] | None:
    """Where a question to a person has a sentence from, if an untrusted output has the same one."""
    sentences = (part.strip() for part in _SENTENCE_ENDS.split(str(value)))
    locations = (index.find(part) for part in sentences if len(part) >= _MIN_QUOTE)
    return next((location for location in locations if location is not None), None)
