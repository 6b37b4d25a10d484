"""What a text excludes: the parts that say what is not to be touched, told, paid or used. Pure.

"Mail Ann, but not Bob" names Bob, and yet a mail to Bob is nothing that the text asks for. `excluded_parts` gives the
text of such clauses, from the negation to the end of its clause. In doubt a part is excluded: then a person is asked.
The time is proportional to the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from taoloop.core.text import lazy_pattern
from taoloop.policy.requests import (
    AFTER_NEGATION,
    BREAKS,
    CHINESE_ACT,
    CHINESE_CLAUSE_END,
    CHINESE_NEGATION,
    CLAUSE_STARTS,
    NEGATIONS,
    NO_CHINESE_NEGATION,
    QUOTED,
    continues_list,
)
from taoloop.policy.vocabulary import LIGHT_VERBS, VERBS, stem_and_ending, words_of

_TOKEN = lazy_pattern(
    r"[\w.+%-]{1,100}@[\w.-]{0,200}\w|https?://[^\s<>\"]*[^\s<>\".,;!?)]"  # an address is no sentence, nor its end
    r"|[a-z]+'[a-z]+|[\w]+(?:[./\\_-]\w+)*|\n\s*(?:[-*•]|\d{1,3}[.)])(?=\s)|[.;!?](?=\s|\Z)|\n|[,:()\u2013\u2014]| - ",
    re.IGNORECASE,
)
_SENTENCE_ENDS = frozenset(".;!?\n")
_COMMAS = frozenset({",", "(", ")", "\u2013", "\u2014", " - "})
_MORE_NEGATIONS = words_of("isn't aren't except excepting excluding exclude excludes excluded besides")
_PAIRS = {
    ("other", "than"),
    ("apart", "from"),
    ("aside", "from"),
    ("instead", "of"),
    ("rather", "than"),
    ("save", "for"),
}
_NO_LIMITS = words_of("more fewer earlier exceed sooner than")  # not more than 100: an upper bound excludes nothing
_FACTS = words_of("have has had did")  # I have not paid Ann: a fact
_VERB_NEGATIONS = words_of("never cannot avoid refrain dont")
_REMINDERS = words_of("forget hesitate fail")  # do not forget to
_AUTHORS = words_of("i we")
_AUXILIARIES = words_of("do does must should shall can could will would may might to")
_ALL_WORDS = words_of("all everyone everybody everything anyone anybody anything nobody nothing")
_FILLERS = words_of("and please just then instead also only rather kindly now")

_CHINESE_MASK = lazy_pattern(
    r"[\w.+%-]{1,100}@[\w.-]{1,200}|https?://[^\s<>\"，。；]+|[A-Za-z0-9_-]+(?:[.,:/\\][A-Za-z0-9_-]+)+"
)
_CHINESE_BOUNDS = lazy_pattern(r"不(?:晚于|早于|迟于|超过|少于|低于|高于|大于|小于|多于|止|仅|只|但是)")
_CHINESE_EXCEPT = lazy_pattern(r"除了|除开|除去|除(?=[^，。；]{1,40}外)|排除|而非")
_CHINESE_EXCEPT_END = lazy_pattern(r"以外|之外|外(?=[，,]|都|全|均|的)")


def excluded_parts(text: str) -> list[str]:
    """The parts of a text in which it says what is not to be done, or to whom not."""
    plain = unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u2018", "'")
    masked = QUOTED.sub(_blank, plain)
    if not any(map(str.isalnum, masked.replace("\u25a1", ""))):  # all of it in quotes: then it is the text
        masked = plain
    spans = [*_ClauseReader(masked).spans(), *_chinese_spans(masked)]
    return [part for start, end in spans if (part := plain[start:end].strip())]


def _blank(match: re.Match[str]) -> str:
    """Something of the same length that belongs to the clause around it and says nothing."""
    return "\u25a1" * len(match.group())


@dataclass(frozen=True, slots=True)
class _Word:
    """A token and where it is."""

    text: str
    start: int
    end: int


class _ClauseReader:
    """The English of one text while it is read."""

    def __init__(self, text: str) -> None:
        self._words = [_Word(match.group().lower(), *match.span()) for match in _TOKEN.finditer(text)]
        self._end = len(text)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where something is excluded."""
        start: int | None = None
        sentence = clause = 0
        governs_verb = joins_verbs = False
        for index, word in enumerate(self._words):
            is_end = self._ends_sentence(index)
            if start is not None and (
                is_end or self._ends_negation(index, sentence if joins_verbs else index, governs_verb=governs_verb)
            ):
                yield start, word.start
                start = None
            if is_end or word.text in _COMMAS or word.text in BREAKS:
                clause = index + 1
                sentence = index + 1 if is_end else sentence
            if start is None and self._negates(index):
                start, governs_verb = word.end, self._governs_verb(index)
                joins_verbs = _AUTHORS.isdisjoint((self._text(index - 1), self._text(index - 2)))  # I can't come
                if clause < index and not self._has_request(clause, index):  # Ann must not be told
                    yield self._words[clause].start, word.start
        if start is not None:
            yield start, self._end

    def _text(self, index: int) -> str:
        return self._words[index].text if 0 <= index < len(self._words) else ""

    def _ends_sentence(self, index: int) -> bool:
        text = self._text(index)
        if text[:1] == "\n":
            return text == "\n" and self._text(index - 1) not in (":", "\n")  # a list continues its sentence
        return text in _SENTENCE_ENDS

    def _negates(self, index: int) -> bool:
        text, following = self._text(index), self._text(index + 1)
        if (text, following) in _PAIRS:
            return True
        if text == "but" and self._text(index - 1) in _ALL_WORDS:
            return True
        if (text not in NEGATIONS and text not in _MORE_NEGATIONS) or text == "rather":
            return False
        if text == "not" and self._text(index - 1) in _FACTS:
            return False
        after = {following, self._text(index + 2)}
        return AFTER_NEGATION.isdisjoint(after) and following not in _NO_LIMITS

    def _governs_verb(self, index: int) -> bool:
        """Whether what is negated is an act, which may be one of several, and not a thing."""
        text = self._text(index)
        return text in _VERB_NEGATIONS or text.endswith("n't") or self._text(index - 1) in _AUXILIARIES

    def _ends_negation(self, index: int, first: int, *, governs_verb: bool) -> bool:
        """Whether a negation reaches no further; from `first` on, verbs may be in one list with the one it governs."""
        text = self._text(index)
        if text in BREAKS:
            return (text, self._text(index + 1)) not in _PAIRS
        if text in NEGATIONS and self._text(index + 1) in _REMINDERS:
            return True
        if text in _COMMAS:
            before = [word.text for word in self._words[max(first, index - 8) : index]]
            return self._begins_request(index + 1) and not continues_list(before)
        return text == "and" and not governs_verb and self._begins_request(index + 1)

    def _begins_request(self, index: int) -> bool:
        """Whether a verb in its base form begins here."""
        while self._text(index) in _FILLERS:
            index += 1
        return self._is_verb(index)

    def _is_verb(self, index: int) -> bool:
        word, ending = stem_and_ending(self._text(index))
        return not ending and (word in VERBS or word in LIGHT_VERBS)

    def _has_request(self, start: int, end: int) -> bool:
        """Whether an act is asked for between two positions: tell Ann not to come."""
        return any(
            self._is_verb(index)
            and (index == start or self._text(index - 1) in CLAUSE_STARTS or self._text(index - 1) == ",")
            for index in range(start, end)
        )


def _chinese_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the Chinese of a text excludes something."""
    if not re.search(r"[\u3400-\u9fff]", text):
        return
    for pattern in (_CHINESE_MASK, NO_CHINESE_NEGATION, _CHINESE_BOUNDS):
        text = pattern.sub(_blank, text)
    start, continues = 0, False
    for end in (*CHINESE_CLAUSE_END.finditer(text), None):
        stop = end.start() if end is not None else len(text)
        clause = text[start:stop]
        exception = _CHINESE_EXCEPT.search(clause)
        negation = CHINESE_NEGATION.search(clause)
        acts = list(CHINESE_ACT.finditer(clause))
        if exception is not None:
            close = _CHINESE_EXCEPT_END.search(clause, exception.end())
            yield start + exception.end(), start + (close.start() if close is not None else len(clause))
        if negation is not None:
            yield start + negation.end(), stop
            if not any(act.end() <= negation.start() for act in acts):  # 王芳不要动
                yield start, start + negation.start()
        elif continues and not acts and exception is None:  # 不要动王芳，李明
            yield start, stop
        is_comma = end is not None and end.group() in "，,"
        continues = is_comma and (negation is not None or (continues and not acts))
        start = end.end() if end is not None else stop
