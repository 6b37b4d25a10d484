"""What people and the operator name as not wanted.

"Mail Ann, but not Bob" names Bob, and yet a mail to Bob is nothing that the text asks for. `excluded_parts` gives the
text of such clauses, from the negation to the end of its clause. In doubt a part is excluded: then a person is asked.
What else a text names a value for is in `targets`.

The time is proportional to the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from taoloop.core.text import lazy_pattern
from taoloop.policy.intent.requests import (
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
from taoloop.policy.intent.vocabulary import LIGHT_VERBS, VERBS, stem_and_ending, words_of
from taoloop.policy.value_match import TrustedText

Plain = str | int | float

_CLAUSE_TOKEN = lazy_pattern(
    r"[\w.+%-]{1,100}@[\w.-]{0,200}\w|https?://[^\s<>\"]*[^\s<>\".,;!?)]"  # an address is no sentence, nor its end
    r"|[a-z]+'[a-z]+|[\w]+(?:[./\\_-]\w+)*|\n\s*(?:[-*•]|\d{1,3}[.)])(?=\s)|[.;!?](?=\s|\Z)|\n|[,:()\u2013\u2014]| - ",
    re.IGNORECASE,
)
_SENTENCE_ENDS = frozenset(".;!?\n")
_COMMAS = frozenset({",", "(", ")", "\u2013", "\u2014", " - "})
_MORE_NEGATIONS = words_of(
    "isn't aren't except excepting excluding exclude excludes excluded besides spare protect preserve skip ignore"
)
_PAIRS = {
    ("other", "than"),
    ("apart", "from"),
    ("aside", "from"),
    ("instead", "of"),
    ("rather", "than"),
    ("save", "for"),
    ("exception", "of"),
}
_NO_LIMITS = words_of("more fewer earlier exceed sooner than")  # not more than 100: an upper bound excludes nothing
_FACTS = words_of("have has had did does")
_STATES = words_of("is are was were")
_WISHES = words_of("want wish need like")
_WISH_OBJECTS = words_of("to you any anyone anybody anything")
_PERMISSIONS = words_of(
    "to allow allowed authorise authorize permit permitted agree included invited supposed meant part"
)
_VERB_NEGATIONS = words_of("never cannot avoid refrain dont")
_REMINDERS = words_of("forget hesitate fail")  # do not forget to
_AUTHORS = words_of("i we")
_AUXILIARIES = words_of("do does must should shall can could will would may might to")
_ALL_WORDS = words_of("all everyone everybody everything anyone anybody anything nobody nothing")
_FILLERS = words_of("and please just then instead also only rather kindly now")

_SPARED = lazy_pattern(
    r"\bleave (?P<left>[^,.;!?\n]{1,80}?(?:\.[^\s,.;!?]{1,20})?)"
    r" (?:alone|out|untouched|unchanged|as (?:it is|they are|is))\b"
    r"|\bhands off (?P<off>[^,;!?\n]{1,80})"
    r"|\bkeep (?P<kept>[^\s,;!?]{1,80})(?=[.,;!?]?(?:\n|\Z)|[.,;!?]\s)"
    r"|(?P<staying>[^\s,;!?]{1,80}) (?:stays? as (?:it is|they are)|(?:has to|have to|must|should) (?:stay|remain)"
    r"|(?:is|are) (?:off limits|untouchable|read-only))\b"
    r"|(?P<spared>[^\s，。；！？!?,;]{0,79}[^\s，。；！？!?,;.]) ?(?:原样|留着|保持不变|跳过)"
    r"|(?:保留|保护|跳过|莫动|莫碰) ?(?P<saved>[^\s，。；！？!?,;]{1,80})",
    re.IGNORECASE,
)
"""What is to stay as it is, in words that are no negation."""
_PART_END = lazy_pattern(
    r"(?P<stop>[.;!?](?=\s|\Z)|[\n,:()。，；！？\u2013\u2014]| - |\b(?:but|while|whereas|with)\b|但是?|而)|\band\b",
    re.IGNORECASE,
)
_STAYING = lazy_pattern(  # of a part that says how something is to be: the state in which it already is
    r"\b(?:un(?:touched|changed|modified|altered|affected|touchable|edited|disturbed)|off[- ]limits"
    r"|exempt(?:ed)?|excepted"
    r"|excluded|out of (?:this|it|scope|bounds)|left (?:alone|out|as \w+|be)|taboo)\b"
    r"|\b(?:is|are|be)\b[^.]{0,200}\bread-only\b|\blet\b.{0,200}\bbe\W{0,5}\Z"
    r"|\b(?:stay|remain|keep|leave)s?\b(?:.{0,200}\b(?:intact|as[- ]is|as (?:it|they|she|he) (?:is|are"
    r"|was|were)|as before"
    r"|the same|alone|the way|in place|safe|out)\b|(?<!stay)(?<!stays)\W{0,5}\Z)"
    r"|\b(?:must|should|shall|ha(?:s|ve) to|needs? to|supposed to|let\b.{0,80}) stay\W{0,5}\Z"  # not: a place to stay
    r"|(?:n't|\bnot|\bnever) (?:want|wish|like)\b.{0,200}\b(?:[a-z]{2,}ed|sent|told|paid|known|seen"
    r"|written|gone|done|made"
    r"|put|lost|hurt|given|taken|thrown|overwritten|bought|sold|cut|hidden|to (?:be|get|have))\b"
    r"|\brather\b.{0,200}(?:n't|\bnot|\bnever)\b|\A\W{0,5}(?!(?:put|set|lay"
    r"|move)\b)\w\S{0,80}(?: \S{1,80}){0,2} aside\W{0,5}\Z"
    r"|除外|例外|不(?:包括)?在内\W{0,5}\Z|不算(?:在内)?\W{0,5}\Z|免动|豁免|维持(?:现状|原状|原样|不变)|排除在外|(?:先|就)?放着|不在(?:此列|范围)"
    r"|保持(?:现状|原状|原样|不变)|不[变动]\W{0,5}\Z",
    re.IGNORECASE,
)
_KEEPING_VERBS = words_of("keep leave let make ensure stay")
_FIRST_WORD = lazy_pattern(r"\W*(?:(?:please|just|also|then|now)\s+)*([a-z]+)(?!['\w])", re.IGNORECASE)
_APOSTROPHE = lazy_pattern("[\u2018\u2019\u02bc\u00b4]|(?<=[a-zA-Z])`(?=t\\b)")
_SPLIT_NEGATION = lazy_pattern(r"(?<=[a-z]) n['\u2019\u02bc]t\b", re.IGNORECASE)
_CHINESE_PUNCTUATION = lazy_pattern("[，；：！？](?=\\S)")

CHINESE_MASK = lazy_pattern(
    r"[\w.+%-]{1,100}@[\w.-]{1,200}|https?://[^\s<>\"，。；]+|[A-Za-z0-9_-]+(?:[.,:/\\][A-Za-z0-9_-]+)+"
)
_CHINESE_BOUNDS = lazy_pattern(r"不(?:晚于|早于|迟于|超过|少于|低于|高于|大于|小于|多于|止|仅|只|但是)")
_CHINESE_FACTS = ("没", "没有", "从未")
_CHINESE_AUTHOR = lazy_pattern(r"我们?[都也还又]?\Z")
_CHINESE_EXCEPT = lazy_pattern(r"除了|除开|除去|除(?=[^，。；]{1,40}外)|排除|而非")
_CHINESE_EXCEPT_END = lazy_pattern(r"以外|之外|外(?=[，,]|都|全|均|的)")


def excluded_parts(text: str) -> list[str]:
    """The parts of a text in which it says what is not to be done, or to whom not."""
    plain = plain_form(text)
    masked = QUOTED.sub(mask, plain)
    if not any(map(str.isalnum, masked.replace("\u25a1", ""))):  # all of it in quotes: then it is the text
        masked = plain
    spans = [*_ClauseReader(masked).spans(), *_chinese_exclusions(masked)]
    spans += _staying_parts(masked)
    spans += [
        match.span(name) for match in _SPARED.finditer(masked) for name, part in match.groupdict().items() if part
    ]
    return [part for start, end in spans if (part := plain[start:end].strip())]


def plain_form(text: str) -> str:
    """A text in its compatibility form, with one kind of apostrophe, and a space after Chinese punctuation.

    Without the space `a.txt，b.txt` would become `a.txt,b.txt`, which reads as one name.
    """
    spaced = _CHINESE_PUNCTUATION.sub(r"\g<0> ", _SPLIT_NEGATION.sub("n't", text))
    return unicodedata.normalize("NFKC", _APOSTROPHE.sub("'", spaced))


def mask(match: re.Match[str]) -> str:
    """Something of the same length that belongs to the clause around it and says nothing."""
    return "\u25a1" * len(match.group())


def _staying_parts(text: str) -> Iterator[tuple[int, int]]:
    """Where a text says of something that it is to stay as it is: "Ann's record must stay untouched", "Ann除外".

    That is the whole part between two stops; "keep Ann and Bob unchanged" is one.
    """
    start = first = 0
    for end in (*_PART_END.finditer(text), None):
        stop = end.start() if end is not None else len(text)
        part = text[start:stop]
        if _STAYING.search(part) is not None and not _asks_for_something(part):
            yield first if _begins_keeping(text[first:start]) else start, stop
        start = end.end() if end is not None else stop
        if end is not None and end["stop"]:
            first = start


def _asks_for_something(part: str) -> bool:
    """Whether a part of a text begins with a request, other than one to keep something: mark Ann as excluded."""
    word = _FIRST_WORD.match(part)
    stem, ending = stem_and_ending(word[1].lower()) if word is not None else ("", "")
    return not ending and stem not in _KEEPING_VERBS and (stem in VERBS or stem in LIGHT_VERBS)


def _begins_keeping(part: str) -> bool:
    word = _FIRST_WORD.match(part)
    return word is not None and word[1].lower() in _KEEPING_VERBS


@dataclass(frozen=True, slots=True)
class _Word:
    """A token and where it is."""

    text: str
    start: int
    end: int


class _ClauseReader:
    """The English of one text while it is read."""

    def __init__(self, text: str) -> None:
        self._words = [_Word(match.group().lower(), *match.span()) for match in _CLAUSE_TOKEN.finditer(text)]
        self._end = len(text)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where something is excluded."""
        start: int | None = None
        sentence = clause = 0
        governs_verb = False
        for index, word in enumerate(self._words):
            is_end = self._ends_sentence(index)
            if start is not None and (is_end or self._ends_negation(index, sentence, governs_verb=governs_verb)):
                yield start, word.start
                start, clause = None, index + 1
            if is_end or word.text in _COMMAS or word.text in BREAKS:
                clause = index + 1
                sentence = index + 1 if is_end else sentence
            if start is None and self._negates(index):
                start, governs_verb = word.end, self._governs_verb(index)
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
        if self._states_fact(index):
            return False
        if self._denies_wish(index):
            return True
        after = {following, self._text(index + 2)}
        return AFTER_NEGATION.isdisjoint(after) and following not in _NO_LIMITS

    def _states_fact(self, index: int) -> bool:
        """Whether a negation says how things are, not what is wanted: I never got it, it does not work."""
        text, before = self._text(index), (self._text(index - 1), self._text(index - 2))
        after = [self._text(index + distance) for distance in range(1, 6)]
        if not _AUTHORS.isdisjoint(before):  # unless I do not want Ann to be told, and I do not allow it
            return not self._denies_wish(index) and _PERMISSIONS.isdisjoint(after[:2])
        verb = before[0] if text == "not" else text.removesuffix("n't")
        if verb in _FACTS:
            return True
        if verb in _STATES:
            return _PERMISSIONS.isdisjoint(after[:2])
        return text == "never" and after[0].endswith("ed") and before[0] not in _AUXILIARIES

    def _denies_wish(self, index: int) -> bool:
        """Whether a negation says what its author does not want anybody to do."""
        is_wish = self._text(index + 1) in _WISHES
        return is_wish and any(self._text(index + distance) in _WISH_OBJECTS for distance in range(2, 6))

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


def _states_chinese_fact(clause: str, negation: re.Match[str]) -> bool:
    """Whether a negation says how things are: 没有收到, 我不喜欢."""
    if negation.group() in _CHINESE_FACTS:
        return True
    by_author = _CHINESE_AUTHOR.search(clause[max(0, negation.start() - 4) : negation.start()])
    return (
        negation.group() in ("不", "不能")
        and by_author is not None
        and clause[negation.end() :][:1] not in "想希要允同愿准让"
    )


def _chinese_exclusions(text: str) -> Iterator[tuple[int, int]]:
    """Where the Chinese of a text excludes something."""
    if not re.search(r"[\u3400-\u9fff]", text):
        return
    for pattern in (CHINESE_MASK, NO_CHINESE_NEGATION, _CHINESE_BOUNDS):
        text = pattern.sub(mask, text)
    start, continues = 0, False
    for end in (*CHINESE_CLAUSE_END.finditer(text), None):
        stop = end.start() if end is not None else len(text)
        clause = text[start:stop]
        exception = _CHINESE_EXCEPT.search(clause)
        negation = next(
            (one for one in CHINESE_NEGATION.finditer(clause) if not _states_chinese_fact(clause, one)), None
        )
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


class Exclusions:
    """What trusted texts name as not wanted. A text is read when the first value is looked up, and then once.

    What a person vouches for in an approval counts, whatever a text says of it.
    """

    def __init__(self) -> None:
        self._unread: list[str] = []
        self._vouched_for, self._excluded = TrustedText(), TrustedText()

    def add(self, text: str) -> None:
        """Add one more text of a person or the operator."""
        self._unread.append(text)

    def vouch_for(self, value: Plain) -> None:
        """Take in a value that a person vouched for."""
        self._vouched_for.add(str(value))

    def is_vouched_for(self, value: Plain) -> bool:
        """Whether a person vouched for a value."""
        return self._vouched_for.has(value, "target")

    def excludes(self, value: Plain) -> bool:
        """Whether a value is named where a text says what is not wanted, wherever else it is named."""
        self._read()
        return self._excluded.has(value) and not self._vouched_for.has(value)

    def excludes_address(self, address: Plain) -> bool:
        """Whether an address of a page is named so, exactly."""
        self._read()
        return self._excluded.has_address(address) and not self._vouched_for.has_address(address)

    def _read(self) -> None:
        while self._unread:
            for part in excluded_parts(self._unread.pop()):
                self._excluded.add(part)
