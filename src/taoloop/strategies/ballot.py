"""The answers of a run that are voted on, and when two of them are the same. Pure: a view of the trace.

Self-consistency takes the most frequent answer of several chains of thought (Wang et al., 2022, "Self-Consistency
Improves Chain of Thought Reasoning in Language Models", section 2). Among equally frequent ones the paper leaves the
choice open; here it is the one that came first, so that the same trace always has the same winner.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass, field

from taoloop.core.decision import Answer, Vote, Voted
from taoloop.core.events import Event, Finished, ModelErred, ModelReplied, Resumed
from taoloop.core.text import lazy_pattern

_CITATIONS = lazy_pattern(r"\[?doc:[0-9a-z]{12}\]?")
_THOUSANDS = lazy_pattern(r"(?<=\d),(?=\d{3}(?!\d))")
_MARKS = lazy_pattern(r"(?<![\d])[.,:/](?!\d)|(?<=\d)[.,:/](?!\d)|(?<!\d)[.,:/](?=\d)|(?<=\w)-(?!\d)|(?<!\w)-(?!\d)")
_NUMBER_MARKS = frozenset(".,:/-")  # part of a number, or else taken out above
_ARTICLE = lazy_pattern(r"^(?:the|an?) (?=\w\w)")


def normalise_answer(text: str) -> str:
    """The answer without what two notations of the same answer differ in; equal texts are one answer.

    JSON is compared as JSON. Otherwise case, width, punctuation, citations, an article at the beginning and the commas
    of thousands do not count. The decimal point, the sign and the unit of a number do: `-5`, `5`, `0.5` and `5%` are
    four answers.
    """
    if text[:1] in ("{", "["):
        try:
            return json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False)
        except (ValueError, RecursionError):
            pass  # a text that begins with a bracket
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = _THOUSANDS.sub("", _CITATIONS.sub(" ", folded))
    folded = _MARKS.sub(" ", folded)
    words = " ".join("".join(char if _counts(char) else " " for char in folded).split())
    return _ARTICLE.sub("", words) or " ".join(text.split())


def _counts(char: str) -> bool:
    return char.isalnum() or char in "%‰#&@" or char in _NUMBER_MARKS or unicodedata.category(char)[0] not in "PZC"


def count_votes(answers: list[tuple[int, str]]) -> tuple[Vote, ...]:
    """The answers with the steps that gave them, the most frequent first, among equals the one that came first."""
    first: dict[str, str] = {}
    steps: dict[str, list[int]] = {}
    for step, text in answers:
        form = normalise_answer(text)
        first.setdefault(form, text)
        steps.setdefault(form, []).append(step)
    ranked = sorted(first, key=lambda form: -len(steps[form]))  # stable: equals stay in the order of their first
    return tuple(Vote(answer=first[form], samples=tuple(steps[form])) for form in ranked)


@dataclass(slots=True)
class Ballot:
    """The samples of a run and what came of them.

    A resume of a run that had ended opens it again: where a limit had cut the sampling short, the samples there are
    stay; otherwise it begins anew, unless `keeps_undecided` and the vote had no majority.
    """

    size: int
    """How many samples are taken."""
    keeps_undecided: bool = False
    """A vote without a majority is never repeated: the run goes on in another way."""
    answers: list[tuple[int, str]] = field(default_factory=list)
    """The answers that could be read, with their steps."""
    count: int = 0
    """The samples so far, unreadable ones among them."""
    voted: Voted | None = None
    """The result of the count."""
    erred: ModelErred | None = None
    """The prompt was too long for the model."""
    _ended: bool = False

    def fold(self, event: Event) -> None:
        """Take the next event."""
        match event.fact:
            case ModelReplied(purpose="sample", step=step, decision=decision):
                self.count += 1
                self.erred = None
                if isinstance(decision, Answer):
                    self.answers.append((step, decision.text))
            case ModelErred(purpose="sample") as fact:
                self.erred = fact
            case Voted() as fact:
                self.voted = fact
            case Finished():
                self._ended = True
            case Resumed():
                self._reopen()
            case _:
                pass

    def _reopen(self) -> None:
        self.erred = None
        if self.voted is not None and self.voted.samples < self.size:
            self.voted = None
        elif self.voted is not None and self._ended and (self.voted.accepted or not self.keeps_undecided):
            self.answers, self.count, self.voted = [], 0, None
        self._ended = False

    def close(self, *, accepted: bool) -> Voted:
        """The count of the samples so far, as a fact."""
        votes = count_votes(self.answers)
        return Voted(votes=votes, samples=self.count, accepted=accepted and bool(votes))
