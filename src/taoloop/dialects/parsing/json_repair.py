"""JSON as models write it: the syntax is repaired, the values never are.

Repaired: quotes of every kind, bare keys, comments, trailing commas, Python literals, full-width punctuation and
invisible characters outside of strings, raw line breaks in strings, invalid escapes. What a caller must decide by the
tool's tier is reported instead of hidden: closing brackets that are missing at the end, and quotes inside of a string
that were not escaped. One pass, bounded nesting; every failure says why.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn

from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.strict_json import MAX_DEPTH, NotJsonError, decode_at, json_equal, parse_finite
from taoloop.dialects.texts import LocalizedText

INVISIBLE = "\u00ad\u061c\u180e\u200b-\u200f\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff"

SPACE = lazy_pattern(rf"[\s{INVISIBLE}]*+")
_GAP = lazy_pattern(rf"(?:[\s{INVISIBLE}]++|//[^\n]*+|#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_NUMBER = lazy_pattern(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![\w.+%*/^-])")
_WORD = lazy_pattern(r"[^\W\d][\w.-]*")
_KEY = lazy_pattern(r"[^\W\d](?:[\w-]|\\_)*")
_ESCAPE = lazy_pattern(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_STOP = lazy_pattern(r"```|~~~|</|<[|｜]|\[/")  # marks that can only follow a value
_LABELLED = lazy_pattern(rf"\n[\s{INVISIBLE}]*(?:[>#*_`+•-][^\S\n]*){{0,4}}[^\W\d][\w ]{{1,24}}[*_`]{{0,3}}[:：]")
_JSON_LIKE = lazy_pattern(
    rf"[{{｛][\s{INVISIBLE}]*+(?:[\"'“”‘’＂＇`}}｝]|\\\"|//|/\*|#|[^\W\d][\w\\-]{{0,40}}\s{{0,4}}[:：])"
)

_CLOSERS = {
    '"': '"',
    "'": "'",
    "`": "`",
    "＂": "＂",
    "＇": "＇",
    "“": "”“",
    "”": "”",
    "„": "“”",
    "‘": "’‘",
    "’": "’",
    "«": "»",
    "「": "」",
}
_WORDS = {"true": True, "false": False, "null": None, "none": None}
_LITERAL = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "_": "_"}
_LITERAL |= {char: char for char in "\"'`/\\“”‘’"}
_CHUNKS = {opener: lazy_pattern(rf"(?:[^\\{closers}]|\\.)*+", re.DOTALL) for opener, closers in _CLOSERS.items()}
_MAX_NUMBER_CHARS = 400
_MAX_BARE_QUOTES = 40  # not escaped, in one string


class RepairedJson(NamedTuple):
    """A value, where it ends, and what was repaired that a caller must decide on."""

    value: Any
    """The value, as `json.loads` gives it."""
    end: int
    """The position behind it."""
    missing_closers: int = 0
    """How many closing brackets the text lacks at its end."""
    has_bare_quotes: bool = False
    """Whether a string holds quotes that were not escaped."""

    @property
    def is_guess(self) -> bool:
        """Whether something was repaired that only a tool which reads may rest on."""
        return bool(self.missing_closers) or self.has_bare_quotes


def match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    """The end of a match at `position`, or `position` where there is none."""
    match = pattern.match(text, position)
    return position if match is None else match.end()


def looks_like_json(text: str, position: int) -> bool:
    """Whether the brace at `position` opens an object, and is not a brace in prose such as `{city}`."""
    return _JSON_LIKE.match(text, position) is not None


def parse_value(text: str, position: int = 0, *, call: bool = False) -> RepairedJson:
    """The value that begins at `position`; strict JSON is read as such. `call`: a `)` may follow it.

    Raises:
        NotJsonError: there is none, it is cut, or it has more than one reading.
    """
    if text[position : position + 1] in ("{", "["):
        try:
            value, end = decode_at(text, position)
        except NotJsonError as error:
            if error.unrepairable:
                raise
        else:
            return RepairedJson(value, end)
    reader = _LenientReader(text, position, ")）" if call else "")
    value = reader.parse_value(0)
    return RepairedJson(value, reader.position, reader.missing_closers, reader.has_bare_quotes)


def parse_whole(text: str) -> RepairedJson:
    """The value that all of `text` is, blanks and one closing bracket too many aside.

    Raises:
        NotJsonError: it is not exactly one value.
    """
    start = match_end(SPACE, text, 0)
    if text.startswith('{\\"', start):
        text = unescape_quotes(text[start:])
        start = 0
    repaired = parse_value(text, start)
    end = skip_extra_closers(text, repaired.end)
    if match_end(SPACE, text, end) != len(text):
        raise NotJsonError("json_text_follows", position=end + 1)
    return repaired._replace(end=len(text))


def unescape_quotes(text: str) -> str:
    """The text whose quotes were all escaped, as in a JSON string that lost its own quotes.

    Raises:
        NotJsonError: it is no such text.
    """
    inner, _ = decode_at(f'"{text.strip()}"')
    return str(inner)


def skip_extra_closers(text: str, position: int) -> int:
    """Behind one closing bracket too many, if there is one."""
    after = match_end(SPACE, text, position)
    return after + 1 if text[after : after + 1] in ("}", "]", "｝", "］") else position


class _LenientReader:
    def __init__(self, text: str, position: int, extra: str) -> None:
        self.text, self.position, self.extra = text, position, extra
        self.missing_closers = 0
        self.has_bare_quotes = False
        self.terminators = ",，、}｝]］:：" + extra

    def fail(self, name: str, /, **values: object) -> NoReturn:
        """Give up at this position: for the fault called `name`, or because the text ends here."""
        if not self.text[self.position :].strip():
            raise NotJsonError("json_truncated", truncated=True)
        raise NotJsonError.at(self.position, LocalizedText(name, values))

    def skip_gap(self) -> str:
        """Skip blanks and comments; the character that follows (empty at the end)."""
        self.position = match_end(_GAP, self.text, self.position)
        return self.text[self.position : self.position + 1]

    def parse_value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotJsonError("json_too_deep", unrepairable=True, levels=MAX_DEPTH)
        char = self.skip_gap()
        if char and char in "{｛":
            return self.parse_members(depth)
        if char and char in "[［":
            return self.parse_items(depth, "]］")
        if char and char in "(（":
            return self.parse_tuple(depth)
        if char in _CLOSERS:
            return self.parse_string()
        if char in "rRuU" and self.text[self.position + 1 : self.position + 2] in ("'", '"'):
            return self.parse_prefixed_string(char)
        number = _NUMBER.match(self.text, self.position)
        return self.parse_number(number) if number is not None else self.parse_word()

    def parse_members(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self.position += 1
        while (char := self.skip_gap()) not in ("}", "｝"):
            key = self.parse_string() if char in _CLOSERS else self.parse_bare_key()
            if self.skip_gap() not in (":", "："):
                self.fail("json_no_colon")
            self.position += 1
            value = self.parse_value(depth + 1)
            if key in members and not json_equal(members[key], value):
                raise NotJsonError("json_duplicate_key", unrepairable=True, key=key[:40])
            members[key] = value
            if self.end_member("}｝"):
                return members
        self.position += 1
        return members

    def parse_items(self, depth: int, closers: str) -> list[Any]:
        items: list[Any] = []
        self.position += 1
        while self.skip_gap() not in tuple(closers):
            items.append(self.parse_value(depth + 1))
            if self.end_member(closers):
                return items
        self.position += 1
        return items

    def parse_tuple(self, depth: int) -> list[Any]:
        """A tuple as Python writes it, with a comma in it: without one it is an expression."""
        start, terminators = self.position, self.terminators
        self.terminators += ")）"
        items = self.parse_items(depth, ")）")
        self.terminators = terminators
        if len(items) == 1 and self.text[start : self.position].rstrip(")） \t\n")[-1:] not in (",", "，"):
            self.position = start
            self.fail("json_no_value")
        return items

    def end_member(self, closers: str) -> bool:  # noqa: RET503  # `fail` never returns
        """Behind a comma (False: another member may follow), or behind the end of this value."""
        if self.missing_closers:  # an inner value was never closed, so this one cannot be either
            self.missing_closers += 1
            return True
        value_end = self.position
        char = self.skip_gap()
        if char and char in ",，、":
            self.position += 1
            return False
        if char and char in closers:
            self.position += 1
            return True
        if not char or _STOP.match(self.text, self.position) or _LABELLED.match(self.text, value_end):
            if not char and self.text[value_end - 1] not in "}｝]］" and self.text[value_end - 1] not in _ALL_CLOSERS:
                self.fail("json_no_comma")  # a number or a word that ends with the text may be cut itself
            self.position = value_end
            self.missing_closers = 1
            return True
        self.fail("json_no_comma")

    def parse_bare_key(self) -> str:
        key = _KEY.match(self.text, self.position)
        if key is None:
            self.fail("json_no_key")
        self.position = key.end()
        return key.group().replace("\\_", "_")

    def parse_number(self, match: re.Match[str]) -> int | float:
        self.position = match.end()
        if self.position == len(self.text):
            self.fail("json_cut_value")
        text = match.group()
        if len(text) > _MAX_NUMBER_CHARS:
            raise NotJsonError("json_number_too_large", unrepairable=True, number=text[:40])
        return int(text) if match[1] is None and match[2] is None else parse_finite(text)

    def parse_word(self) -> bool | None:
        match = _WORD.match(self.text, self.position)
        word = match.group() if match is not None else ""
        if word.casefold() not in _WORDS:
            self.fail("json_word" if word else "json_no_value", word=word[:40])
        self.position += len(word)
        if self.position == len(self.text):
            self.fail("json_cut_value")
        return _WORDS[word.casefold()]

    def parse_prefixed_string(self, prefix: str) -> str:
        """A text with a letter before its quotes, as Python writes it: in a raw one nothing is escaped."""
        self.position += 1
        if prefix in "uU":
            return self.parse_string()
        start = self.position
        self.parse_string()
        quotes = 3 if self.text.startswith(self.text[start] * 3, start) and self.position - start > 5 else 1
        return self.text[start + quotes : self.position - quotes]

    def parse_string(self) -> str:
        opener = self.text[self.position]
        if opener in "\"'" and self.text.startswith(opener * 3, self.position):
            return self.parse_triple_quoted(opener * 3)
        start = self.position + 1
        closers, chunk = _CLOSERS[opener], _CHUNKS[opener]
        end, inner = start, 0
        while True:
            end = match_end(chunk, self.text, end)
            if end >= len(self.text) or self.text[end] not in closers:
                raise NotJsonError("json_truncated", truncated=True)
            if self._closes_string(end + 1):
                break
            if not self._is_apostrophe(end):
                if not self._is_inner_quote(end, opens=not inner % 2):
                    raise NotJsonError("json_bare_quotes", unrepairable=True)
                inner += 1
                if inner > _MAX_BARE_QUOTES:
                    raise NotJsonError("json_bare_quotes", unrepairable=True)
            self.has_bare_quotes = True
            end += 1
        raw = self.text[start:end]
        if inner % 2 or (inner and "\n" in raw):
            raise NotJsonError("json_bare_quotes", unrepairable=True)
        self.position = end + 1
        return decode_escapes(raw)

    def parse_triple_quoted(self, quotes: str) -> str:
        """A text in three quotes, as Python writes it."""
        start = self.position + 3
        end = self.text.find(quotes, start)
        if end < 0:
            raise NotJsonError("json_truncated", truncated=True)
        self.position = end + 3
        return decode_escapes(self.text[start:end])

    def _closes_string(self, position: int) -> bool:
        """Whether a quote before `position` ends its string: a structural character or the end follows."""
        after = match_end(SPACE, self.text, position)
        char = self.text[after : after + 1]
        return (
            not char
            or char in self.terminators
            or self.text.startswith(("//", "/*", "#"), after)
            or _STOP.match(self.text, after) is not None
            or (char.isalpha() and _LABELLED.match(self.text, position) is not None)
        )

    def _is_inner_quote(self, position: int, *, opens: bool) -> bool:
        """Whether a quote inside of a string can open, or close, words that are quoted there."""
        preceding, following = self.text[position - 1], self.text[position + 1 : position + 2]
        return (
            not (preceding.isalnum() or following.isspace())
            if opens
            else not (preceding.isspace() or following.isalnum())
        )

    def _is_apostrophe(self, position: int) -> bool:
        neighbours = self.text[position - 1] + self.text[position + 1 : position + 2]
        return self.text[position] in "'’" and len(neighbours) == 2 and neighbours.isalpha()


_ALL_CLOSERS = frozenset("".join(_CLOSERS.values()))


def decode_escapes(raw: str) -> str:
    """The text of a string between its quotes.

    Raises:
        NotJsonError: an escape in it stands for no character.
    """
    if "\\" in raw:
        raw = _ESCAPE.sub(_decode_escape, raw)
        if any("\ud800" <= char <= "\udfff" for char in raw):
            raw = raw.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if "\ufffd" in raw:
                raise NotJsonError("json_half_surrogate", unrepairable=True)
    return raw


def _decode_escape(match: re.Match[str]) -> str:
    escape = match.group(1)
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    if len(escape) == 3 or escape == "u":
        raise NotJsonError("json_escape", unrepairable=True, escape=match.group())
    return _LITERAL.get(escape, match.group())
