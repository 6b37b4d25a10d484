"""The sentences of an answer that cite something, and the values that they attribute to it: quotations, numbers, names.

What is left out cannot be checked, and is never counted as wrong: code blocks, ordinals, the numbers of a list, times
with am or pm, numbers up to 20 in words, the first word of a sentence, days, months and currencies as names, and names
in sentences of languages that capitalise all nouns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Literal, NamedTuple

from taoloop.core.decision import CitationMark, citation_marks
from taoloop.core.text import lazy_pattern
from taoloop.policy.evidence.dates import Day, dates_in
from taoloop.policy.evidence.names import is_identifier
from taoloop.policy.evidence.number_words import dates_in_digits, digits_for_words
from taoloop.policy.evidence.numbers import numbers_in, plain_characters
from taoloop.policy.evidence.units import Unit, unit_beside
from taoloop.policy.intent.vocabulary import words_of

MAX_ANSWER_CHARS = 200_000
"""The part of an answer that is checked."""

_QUOTES = lazy_pattern(
    "\u201c([^\u201c\u201d\n]{1,2000})\u201d|\u201e([^\u201e\u201c\u201d\n]{1,2000})[\u201c\u201d]|\u00ab([^\u00ab\u00bb\n]{1,2000})\u00bb"
    "|\u00bb([^\u00ab\u00bb\n]{1,2000})\u00ab|\u2039([^\u2039\u203a\n]{1,2000})\u203a|\u300c([^\u300c\u300d\n]{1,2000})\u300d"
    '|\u300e([^\u300e\u300f\n]{1,2000})\u300f|\u300a([^\u300a\u300b\n]{1,2000})\u300b|(?<!\\w)"([^"\n]{1,2000})"(?!\\w)'
    "|(?<!\\w)\u2018([^\u2018\n]{1,2000}?)\u2019(?!\\w)|(?<!\\w)'([^'\n]{2,200})'(?!\\w)|`([^`\n]{1,500})`"
)
_DENIES = lazy_pattern(r"(?i)\b(?:not|never|no|nor|neither|none|without|cannot)\b|n[’']t\b|[不未没無无非否]")
_FENCE = lazy_pattern(r"^ {0,3}(```|~~~)[^\n]*\n(?:.*\n)*? {0,3}\1[ \t]*$", 8)  # re.MULTILINE
_SENTENCE_END = lazy_pattern(r"\n+|[。！？；]+[”’」』）\"]*|[.!?]+[”’\"»)\]*_]*(?=\s+\S)")
_ABBREVIATION = lazy_pattern(
    r"(?i)(?:\b(?:e\.g|i\.e|no|nr|dr|mr|mrs|ms|st|vs|approx|ca|fig|mio|mrd|inc|ltd|co|jr|sr|u\.s|z\.b)|\b[A-Z])$"
)
_LIST_NUMBER = lazy_pattern(r"\s*(?:[-*•#>|]+\s*)*\(?[0-9]{1,3}[.)、](?=\s)")
_URL = lazy_pattern(r"https?://[^\s<>\"'”’」』）\])，。]{1,2000}")
_IDENTIFIER = lazy_pattern(r"(?<![\w$])(?:@|~?/|\.{1,2}/)?[A-Za-z0-9][A-Za-z0-9_./:@#+-]{0,200}")
_PATH = lazy_pattern(r"(?:~|\.{1,2})/\S+|/[^/\s]+/\S+|@\w{3,}")
_DOTTED = lazy_pattern(r"(?:[\w-]+/)*[\w-]{2,}(?:\.[\w-]{2,})*\.[a-z][a-z0-9]{1,9}")
_VERSION = lazy_pattern(r"(?<![\w.])[vV](?=[0-9]+(?:\.[0-9]+)+)")
_PHONE = lazy_pattern(r"(?<!\w)\+[0-9]{1,3}(?:[ \u00a0][0-9]{2,}){1,6}(?!\w)")
"""A telephone number with its country code; one without spaces is a number like any other."""
_HANDLE = lazy_pattern(r"\$\{?obs[0-9]+[^\s}]{0,200}\}?")
_NUMBER_WITH_UNIT = lazy_pattern(
    r"[0-9][0-9.,]*(?:[A-Za-z]{1,5}(?:/[A-Za-z]{1,4})?|[eE][-+]?[0-9]{1,3})?"
    r"|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
)
_ORDINAL = lazy_pattern(r"(?i)[0-9]+(?:st|nd|rd|th)|[0-9]+-[a-z]+|[0-9]{1,2}(?::[0-9]{2})?[ap]m")
_DATE = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.+Z-]*)?|[0-9.]+[-/][0-9.]+(?:[-/][0-9.]+)?")
_DECADE = lazy_pattern(r"(?:1[0-9]|20)[0-9]0s")
_HALF_DAY = lazy_pattern(r"(?i)(?::[0-9]{2})*\s?[ap]\.?m\b")
_COUNTED = lazy_pattern(
    r"[ \u00a0](?P<word>[A-Za-z][A-Za-z-]+)"
    r"|\s?(?P<measure>[个條条項项份位次种種家张張件篇封處处步名本台部][\u4e00-\u9fff]{0,2})"
)
_ABOUT = lazy_pattern(
    r"(?i)(?:\b(?:about|around|approximately|approx\.?|roughly|circa|ca\.|some|etwa|rund|environ)|[~≈]|大?约|大概|左右|将近)"
    r"[ \u00a0]?(?:[$€£¥]|US\$)?$"
)
_OVER = lazy_pattern(
    r"(?i)(?:\b(?:over|more than|at least|above|exceed(?:s|ing|ed)?)|[>≥]|超过|逾|多于|至少|高于|超)"
    r"[ \u00a0]?(?:[$€£¥]|US\$)?$"
)
_UNDER = lazy_pattern(
    r"(?i)(?:\b(?:under|less than|fewer than|below|almost|nearly|up to|at most)|[<≤]|不到|不足|低于|少于|至多|最多|近)"
    r"[ \u00a0]?(?:[$€£¥]|US\$)?$"
)
_ABOUT_AFTER = lazy_pattern(r"\s?(?:[%\w]{0,3}左右|多(?![于少])|余|or so\b)")
_HEDGE_CHARS = 24
_FRACTION = lazy_pattern(r"(?<![0-9A-Za-z_./])([0-9]{1,3})/([1-9][0-9]{0,2})(?![0-9A-Za-z_/])")
_HALF_DAY_BEFORE = lazy_pattern(r"(?:上午|下午|晚上|早上|凌晨|中午|傍晚|夜里)\s?$")
_MAX_COUNT = 20
_NAME = lazy_pattern(
    r"(?<!\w)[A-ZÀ-ÖØ-Þ][\w'’&-]*(?:[ \u00a0](?:(?:of|de|van|von|da|del|la|le|the)[ \u00a0])?[A-ZÀ-ÖØ-Þ][\w'’&-]*)*"
)
_BEGINS_PART = lazy_pattern(r"(?:^|[:：—–(\[（|>*_#•;]|^\s*-)[\s*_\"“'‘]*$")
_SPACE_BEFORE_MARK = lazy_pattern(r" +([.,;:!?。，；：！？])")
_ENDS_LABEL = lazy_pattern(r"[*_]*\s?[:：|]")
_OTHER_LANGUAGE = lazy_pattern(
    r"(?<!\w)(?:der|das|und|ist|nicht|eine[nrms]?|mit|für)(?!\w)"
)  # German: nouns are capitalised
_UNITS = words_of(
    "km m cm mm kg g mg t lb lbs oz l ml s ms min mins minute minutes h hr hrs hour hours sec second"
    " seconds day days week weeks month months year years eur usd gbp cny rmb jpy chf euro euros dollar"
    " dollars pound pounds yen yuan cent cents degree degrees celsius fahrenheit kelvin mph kmh knots kb"
    " mb gb tb kwh kw w mw v a hz khz mhz ghz mile miles feet ft inch inches meter meters metre metres"
    " kilometer kilometers kilometre kilometres litre litres liter liters gram grams kilogram kilograms"
    " percent point points mio mrd bn mn tn lakh crore"
)
_NO_NAMES = words_of(
    "i monday tuesday wednesday thursday friday saturday sunday january february march april may june july"
    " august september october november december jan feb mar apr jun jul aug sep sept oct nov dec mon tue"
    " wed thu fri sat sun eur usd gbp cny rmb jpy chf utc gmt cet am pm ok id url api celsius fahrenheit"
    " kelvin yes no the a an it this that these those he she we you they there here note dr mr mrs ms prof"
    " answer total result source sources i'm i've i'll pdf json csv html http https xml sql ai faq usd"
)

ValueKind = Literal["quote", "number", "count", "date", "name"]
Bound = Literal["", "about", "over", "under"]


class ClaimedValue(NamedTuple):
    """A value that a sentence attributes to what it cites."""

    kind: ValueKind
    """How it is compared: a quotation literally, a number by value, a name or identifier as words, a date by its parts.
    A count is a number up to 20 of something, which an observation may have only as so many entries."""
    text: str
    """As the answer has it."""
    readings: tuple[tuple[Decimal, ...], ...] = ()
    """What a number may be."""
    bound: Bound = ""
    """Whether a word says that a number is not exact: `about 40`, `over 30`, `nearly 40`."""
    counted: str = ""
    """What a count counts, or its Chinese measure word with what follows."""
    days: tuple[Day, ...] = ()
    """What a date may be."""
    unit: Unit | None = None
    """The unit of a number, if it is one of `units.py`."""
    amounts: tuple[Decimal, ...] = ()
    """What a number may be in its unit."""
    is_denied: bool = False
    """Whether the sentence has a negation before a quotation."""


class Claim(NamedTuple):
    """One sentence."""

    text: str
    """The sentence, without its citations."""
    citations: tuple[str, ...]
    """What it cites, each once; may be empty."""
    values: tuple[ClaimedValue, ...]
    """What can be checked of it."""


def claims_in(answer: str) -> list[Claim]:
    """The sentences of an answer with what each of them cites. A mark behind the end of a sentence belongs to it."""
    text = answer[:MAX_ANSWER_CHARS]
    marks = citation_marks(text)
    text = _blank(text, ((mark.start, mark.end) for mark in marks))
    text = _blank(text, (match.span() for match in _FENCE.finditer(text)))
    quotes = [match.span() for match in _QUOTES.finditer(text)]
    claims: list[Claim] = []
    index = 0
    for start, end in _sentences(text, quotes):
        own: list[CitationMark] = []
        while index < len(marks) and marks[index].start < end:
            own.append(marks[index])
            index += 1
        sentence = text[start:end]
        if not sentence.strip(" \t\n.。,;*_-"):
            if claims and own and "\n" not in sentence.lstrip():
                claims[-1] = _with_citations(claims[-1], own)
            elif own:
                claims.append(_with_citations(Claim("", (), ()), own))
            continue
        begin = start + len(sentence) - len(sentence.lstrip())
        leading = [mark for mark in own if mark.start < begin]
        if leading and claims and start and text[start - 1] != "\n" and "\n" not in text[start:begin]:
            claims[-1] = _with_citations(claims[-1], leading)
            own = own[len(leading) :]
        inside = [(first - start, last - start) for first, last in quotes if start <= first and last <= end]
        claims.append(_with_citations(Claim(_plain(sentence), (), tuple(_values(sentence, inside))), own))
    return claims


def number_value(number: int | Decimal, name: str) -> ClaimedValue:
    """A number of an answer that is data, in a field of this name; up to 20 it may count something."""
    value = Decimal(number)
    if value == value.to_integral_value() and 0 <= value <= _MAX_COUNT:
        return ClaimedValue("count", str(int(value)), ((value,),), counted=name.lower())
    return ClaimedValue("number", str(number), ((value,),))


def is_precise(value: ClaimedValue) -> bool:
    """Whether a value of a free text can only come from somewhere: no name that is a word, and no other quotation."""
    if value.kind == "name":
        return is_identifier(value.text)
    return value.kind != "quote" or value.text.startswith(("http://", "https://"))


def is_label_number(value: ClaimedValue) -> bool:
    """Whether a number may only name or count something, as in `step 2`, `3 items` or `100 %`."""
    if value.kind == "count" or (Decimal(1),) in value.readings:
        return True
    plain = value.readings[0][0] if value.kind == "number" and [*map(len, value.readings)] == [1] else None
    return plain is not None and plain == plain.to_integral_value() and 0 <= plain <= _MAX_COUNT


def _plain(sentence: str) -> str:
    return _SPACE_BEFORE_MARK.sub(r"\1", " ".join(sentence.split()))


def _with_citations(claim: Claim, marks: list[CitationMark]) -> Claim:
    cited = dict.fromkeys((*claim.citations, *(name for mark in marks for name in mark.ids)))
    return claim._replace(citations=tuple(cited))


def _blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with spaces in these places, so that all else stays where it is."""
    pieces, at = [], 0
    for start, end in spans:
        pieces += [text[at:start], " " * (end - start)]
        at = end
    return "".join((*pieces, text[at:]))


def _sentences(text: str, quotes: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Where the sentences begin and end. A quotation is never cut."""
    start, index = 0, 0
    for match in _SENTENCE_END.finditer(text):
        while index < len(quotes) and quotes[index][1] < match.end():
            index += 1
        if index < len(quotes) and quotes[index][0] < match.start() and match.end() < quotes[index][1]:
            continue
        before = text[max(start, match.start() - 12) : match.start()]
        if match[0][0] == "." and (_ABBREVIATION.search(before) or before.strip(" \t\n*-#>(").isdigit()):
            continue
        if match.end() > start:
            yield start, match.end()
            start = match.end()
    if start < len(text):
        yield start, len(text)


def _values(sentence: str, quotes: list[tuple[int, int]]) -> Iterator[ClaimedValue]:
    for start, end in quotes:
        quoted = sentence[start + 1 : end - 1].strip()
        if any(char.isalnum() for char in quoted):
            yield ClaimedValue("quote", quoted, is_denied=_DENIES.search(sentence[:start]) is not None)
    text = _blank(sentence, quotes)
    text = _blank(text, (match.span() for match in _HANDLE.finditer(text)))
    if (number := _LIST_NUMBER.match(text)) is not None:
        text = " " * number.end() + text[number.end() :]
    for match in _URL.finditer(text):
        yield ClaimedValue("quote", match[0].rstrip(".,;:!?"))
    text = plain_characters(_blank(text, (match.span() for match in _URL.finditer(text))))
    text = _VERSION.sub(" ", dates_in_digits(text))
    for match in _PHONE.finditer(text):
        yield ClaimedValue("quote", match[0])
    text = _blank(text, (match.span() for match in _PHONE.finditer(text)))
    identifiers = [match for match in _IDENTIFIER.finditer(text) if _is_identifier(match[0].rstrip(".:/-+#"))]
    for match in identifiers:
        yield ClaimedValue("name", match[0].rstrip(".:/-+#"))
    text = _blank(text, (match.span() for match in identifiers))
    dates = list(dates_in(text))
    for date in dates:
        yield ClaimedValue("date", text[date.start : date.end], days=date.readings)
    text = _blank(text, ((date.start, date.end + text.startswith(("-", "–"), date.end)) for date in dates))  # May 12–15
    yield from _numbers(text)
    if not _OTHER_LANGUAGE.search(text):
        yield from _names(text)


def _is_identifier(word: str) -> bool:
    """Whether a word is a name by its characters: digits with letters, an underscore, an address."""
    if _NUMBER_WITH_UNIT.fullmatch(word) or _ORDINAL.fullmatch(word) or _DATE.fullmatch(word):
        return False
    has_letter = any(char.isalpha() for char in word)
    if _PATH.fullmatch(word) or _DOTTED.fullmatch(word):
        return has_letter
    return has_letter and (any(char.isdigit() for char in word) or "_" in word.strip("_") or "@" in word.strip("@"))


def _numbers(text: str) -> Iterator[ClaimedValue]:
    text = digits_for_words(text, least=_MAX_COUNT + 1)
    blanked = _blank(text, (match.span() for match in _IDENTIFIER.finditer(text) if _ORDINAL.fullmatch(match[0])))
    for match in _FRACTION.finditer(blanked):
        parts = Decimal(match[1]), Decimal(match[2])
        quotient = (parts[0] / parts[1]).quantize(Decimal("0.01"))
        yield ClaimedValue("number", match[0], (parts, (quotient,)), "about")
    blanked = _blank(blanked, (match.span() for match in _FRACTION.finditer(blanked)))
    for number in numbers_in(blanked):
        if _HALF_DAY.match(blanked, number.end) or _HALF_DAY_BEFORE.search(
            blanked[max(0, number.start - 4) : number.start]
        ):
            continue
        written = text[number.start : number.end]
        counted = _COUNTED.match(blanked, number.end) if number.is_plain else None
        bound = _bound(blanked, number.start, number.end)
        if _DECADE.fullmatch(blanked, number.start, number.end + 1):
            years = tuple((Decimal(written) + year,) for year in range(10))
            yield ClaimedValue("number", written, years)
            continue
        if counted is not None and len(written) <= 2 and int(written) <= _MAX_COUNT:
            word = (counted["word"] or counted["measure"]).lower()
            if word not in _UNITS and word not in _NO_NAMES:  # a day of a month is no count
                yield ClaimedValue("count", written, number.readings, counted=word)
                continue
        unit = unit_beside(blanked, number.start, number.end)
        yield ClaimedValue("number", written, number.readings, bound, unit=unit, amounts=number.amounts)


def _bound(text: str, start: int, end: int) -> Bound:
    """Whether a word before a number, or behind it, says that it is not exact."""
    before = text[max(0, start - _HEDGE_CHARS) : start]
    if _ABOUT.search(before) or _ABOUT_AFTER.match(text, end):
        return "about"
    if _OVER.search(before):
        return "over"
    return "under" if _UNDER.search(before) else ""


def _names(text: str) -> Iterator[ClaimedValue]:
    for match in _NAME.finditer(text):
        if _ENDS_LABEL.match(text, match.end()):
            continue
        words = match[0].split()
        if _BEGINS_PART.search(text[max(0, match.start() - 40) : match.start()]):  # any word may be capitalised there
            words = words[1:]
        words = [word.removesuffix("'s").removesuffix("’s").strip("'’&-") for word in words]
        while words and (words[0].lower() in _NO_NAMES or not words[0][:1].isupper()):
            words = words[1:]
        words = [word for word in words if word and word.lower() not in _NO_NAMES and word.lower() not in _UNITS]
        if words and any(len(word) > 1 for word in words):
            yield ClaimedValue("name", " ".join(words))
