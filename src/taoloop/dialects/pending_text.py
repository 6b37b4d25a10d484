"""The text of an answer that is still being written, passed on once nothing that follows can change it.

Held back are the beginning of a line that may become a label, a tag that is not complete, what may be trimmed off the
end, and the beginning of an answer that may be a placeholder. At a label, or a tag that means something, it ends.
`StopCutter` does the same for the stop sequences of a request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence

from taoloop.dialects.parsing.cleanup import EDGE_CHARS, strip_end_tokens, strip_thinking
from taoloop.dialects.parsing.json_repair import INVISIBLE, match_end
from taoloop.dialects.parsing.patterns import EVENT, LABEL, LABEL_PATTERNS
from taoloop.dialects.parsing.placeholders import EXAMPLE_ANSWERS
from taoloop.dialects.texts import ReplyParseError

MAX_TAG_CHARS = 130
_MAX_BLANKS = 2_000
_MAX_LABEL_CHARS = 160
_MAX_PLACEHOLDER_CHARS = 80

_TAG = re.compile(
    rf"<[|｜][^<>\n]{{0,40}}|<[\w/][^<>\n]{{0,{MAX_TAG_CHARS}}}(?:>|(?P<open>\Z))|\[/?[a-z_]{{0,14}}(?:\]|(?P<open2>\Z))"
    r"|◁/?\w{0,8}(?:▷|(?P<open3>\Z))|<(?P<open4>\Z)",
    re.IGNORECASE,
)
_STUMP = re.compile(r"[\s>#*_`-]{0,60}(?:ob[a-z]{1,9}|[观觀][察测]?)\s{0,200}(?:\Z|(?P<tag>[<\[]))", re.IGNORECASE)
"""The beginning of an observation label at the end of a reply, or before the tokens there: the parser drops it."""
_MARKS = re.compile(
    r"[\s>#+•\-*_`\[【(（「<✿\d.)、\ufe0f\u2190-\u21ff\u25a0-\u27be\u2b00-\u2bff\U0001f300-\U0001faff]*"
)
"""Bullets, quotes, headings, numbers and brackets before the word of a label."""
_LABEL_GAP = re.compile(r"[ \t_\-'’#\d*`\]】)）」>✿]+")
_ASIDE = re.compile(r"(?:[(（][^()（）\n]{0,61}|\[[^\[\]\n]{0,61})(?:[)）\]]|\Z)|\bfrom\b[^\n:：]*")
"""What may be between the word of an observation label and its colon."""
_PATTERN_SYNTAX = re.compile(r"(?:\\.|\{[^}]*\}|[|()?:<>=!\[\]*+.^$\s-])+")
_PATTERN_WORDS = {word for pattern in LABEL_PATTERNS.values() for word in _PATTERN_SYNTAX.split(pattern) if word[1:]}
_LABEL_CHARS = "".join(sorted({char for word in _PATTERN_WORDS for char in word if "\u3400" <= char <= "\u9fff"}))
"""Every Han character of a label: a line that may become one is recognised by its characters."""
_NO_DOTS = str.maketrans("İı", "ii")  # a label is found whatever the case of its letters
_LABEL_WORDS = tuple({word.translate(_NO_DOTS).casefold() for word in _PATTERN_WORDS if word[0] not in _LABEL_CHARS})
"""Every other word of a label, out of the patterns, in lower case."""
_LABEL_PREFIXES = frozenset(word[:end] for word in _LABEL_WORDS for end in range(len(word) + 1))
_COLON = re.compile("[:：】>]")
_UNSEEN = re.compile(f"[{INVISIBLE}]")
_BLANK = re.compile(r"[^\S\n]")
_PLACE = re.compile(
    r"(?:<[^<>/=\"'\n]{0,60}>?|\{{1,2}[^{}\n\"':]{0,60}\}{0,2}|\$\{?[^{}\n ]{0,60}\}?|\[{1,2}[^\[\]\n]{0,60}\]{0,2}"
    r"|%(?:\((?:\w{0,40}(?:\)s?)?)?)?|[A-Z0-9_]{1,46}|\.+|…+)\s*"
)
_TEMPLATE_STARTS = re.findall(r"\S+", "the its your input final answer action string str none null n/a")
_TEMPLATE_WORDS = _TEMPLATE_STARTS + re.findall(
    r"\S+", "to for of tool argument arguments as one json object original question task here goes"
)
_TEMPLATE_CHARS = frozenset("行动作工具的输入对原始问题最终答案回你任务 .。")
_TRIMMED = EDGE_CHARS + "\x1c\x1d\x1e\x1f\x85\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_TRIMMED += "\u2028\u2029\u202f\u205f*"
_STRING_PART = re.compile(
    r'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*+"
)
_ESCAPE_START = re.compile(
    r"\\(?:u[0-9a-fA-F]{0,3}|u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?)?"
)


def normalise_line(line: str) -> str:
    """A line as the parser takes it when it looks for a label: nothing invisible, and every blank is a space."""
    return line if line.isascii() else _BLANK.sub(" ", _UNSEEN.sub("", line))


def may_be_label(line: str) -> bool:
    """Whether a line that continues may turn out to begin with a label: all its words are words of labels."""
    line = line.translate(_NO_DOTS).casefold()
    body = _ASIDE.sub("", line[match_end(_MARKS, line, 0) :])
    return len(line) <= _MAX_LABEL_CHARS and all(map(_continues_label, _LABEL_GAP.split(body)))


def _continues_label(word: str) -> bool:
    """Whether a word is the beginning of a word of a label, or several of them without a gap."""
    word = word.lstrip(_LABEL_CHARS)
    return (
        word in _LABEL_PREFIXES
        or (word.startswith("ob") and word.isalnum())
        or (
            word.startswith(_LABEL_WORDS)
            and any(_continues_label(word.removeprefix(known)) for known in _LABEL_WORDS if word.startswith(known))
        )
    )


def may_be_placeholder(text: str) -> bool:
    """Whether an answer that continues may turn out to be none: a placeholder, a phrase of the prompt, `None`."""
    if len(text) > _MAX_PLACEHOLDER_CHARS:
        return False
    plain = text.casefold().rstrip()
    first, *words = plain.rstrip(".。").split() or [""]
    return (
        _PLACE.fullmatch(text) is not None
        or "as one json object" in plain
        or any(answer.startswith(plain) for answer in EXAMPLE_ANSWERS)
        or _TEMPLATE_CHARS.issuperset(plain.removeprefix("the "))
        or (_begins_one(first, _TEMPLATE_STARTS) and all(_begins_one(word, _TEMPLATE_WORDS) for word in words))
    )


def _begins_one(word: str, words: Iterable[str]) -> bool:
    return any(known.startswith(word) for known in words)


class PendingText:
    """The answer in a text. `over`: nothing more is given; `stopped_at`: the tag or label that ended it.

    Args:
        lines: Labels end the answer.
        is_clear: Whether an answer that begins so can be passed on. True: yes; False: never; None: it is too early to
            say.
        in_line: The answer begins behind something else on its line, where no label can be.
        ends: Whether a label ends the answer; by default each does.
        find_call: Up to where a text is certain to be no call, and whether a call begins there, which ends the answer.
    """

    def __init__(
        self,
        *,
        lines: bool,
        is_clear: Callable[[str], bool | None],
        in_line: bool = True,
        ends: Callable[[re.Match[str]], bool] | None = None,
        find_call: Callable[[str], tuple[int, bool]] | None = None,
    ) -> None:
        self.over = False
        self.stopped_at = ""
        self._lines, self._is_clear, self._ends = lines, is_clear, ends
        self._in_line, self._find_call = in_line, find_call
        self._pending = ""  # may become a label or a tag
        self._has_begun = False
        self._edge = ""  # may be trimmed, or may be all of the answer and none

    def feed(self, text: str) -> str:
        """The next piece that is certain to be in the answer."""
        if self.over:
            return ""
        text = self._pending + text
        end, stop = _find_tag(text)
        if self._lines:
            end, stop = self._find_label(text, end, stop)
        if self._find_call is not None and (found := self._find_call(text))[0] < end:
            end, stop = found[0], "" if found[1] else None
        if stop is not None:
            self.over, self.stopped_at = True, stop
        self._pending = text[end:]
        if end:
            self._in_line = text[end - 1] != "\n"
        return self._trim(text[:end])

    def _find_label(self, text: str, end: int, stop: str | None) -> tuple[int, str | None]:
        """Where a line begins that is or may be a label, before the tag that was found; and the label if it is one."""
        start = text.find("\n") + 1 if self._in_line else 0
        while start <= end and (start or not self._in_line):
            line_end = text.find("\n", start)
            raw = text[start:] if line_end < 0 else text[start:line_end]
            is_held, label = self._judge_line(raw, text[start:], is_complete=line_end >= 0)
            if is_held or label is not None:
                return start, label
            if line_end < 0:
                break
            start = line_end + 1
        return end, stop

    def _judge_line(self, raw: str, rest: str, *, is_complete: bool) -> tuple[bool, str | None]:
        """Whether to hold a line back, and the label that ends the answer there."""
        if not raw and not is_complete:
            return False, None
        if stump := _STUMP.match(rest):
            return stump["tag"] is None, None if stump["tag"] is None else raw
        line = normalise_line(raw)
        label = LABEL.match(line if is_complete else f"{line}\0") if is_complete or _COLON.search(line) else None
        if label is None:
            return not is_complete and may_be_label(line), None
        if self._ends is None or self._ends(label):
            return False, label.group()
        if not is_complete and len(line) < _MAX_LABEL_CHARS:
            return True, None
        return False, None if line == raw else raw  # the parser cleans what is invisible in such a line

    def _trim(self, text: str) -> str:
        """The text without what may be trimmed, once its beginning is clear."""
        text = self._edge + text
        if not self._has_begun:
            text = text.lstrip(EDGE_CHARS)
            is_clear = self._is_clear(text) if text else None
            if not is_clear:
                self.over, self._edge = self.over or is_clear is False or len(text) > _MAX_BLANKS, text
                return ""
            self._has_begun = True
        answer = text.rstrip(_TRIMMED)
        self._edge = text[len(answer) :]
        self.over = self.over or len(self._edge) > _MAX_BLANKS
        return answer


def _find_tag(text: str) -> tuple[int, str | None]:
    """Where a tag begins that is not complete or means something to the parser, and that tag if it does."""
    for tag in _TAG.finditer(text):
        if tag.lastgroup is not None:
            return tag.start(), None
        if _is_mark(tag.group()):
            return tag.start(), tag.group()
    return len(text), None


def _is_mark(tag: str) -> bool:
    """Whether a tag means something to the parser: thinking, a turn, a call, the end of an answer."""
    return (
        tag.startswith(("<|", "<｜"))
        or strip_end_tokens(tag) != tag
        or EVENT.match(tag) is not None
        or tag.casefold().startswith(("<start_of_turn", "<s>", "<bos>"))
        or opens_thinking(tag)
        or closes_thinking(tag)
    )


def opens_thinking(tag: str) -> bool:
    """Whether a tag opens a block of thinking."""
    try:
        strip_thinking(tag)
    except ReplyParseError:
        return True
    return False


def closes_thinking(tag: str) -> bool:
    """Whether a tag closes a block of thinking."""
    try:
        return "x" not in strip_thinking(f"x\n{tag}\n")
    except ReplyParseError:
        return False


class JsonString:
    """A strict JSON string that is still being written. `closed`: it ended, or is no strict JSON any more."""

    def __init__(self) -> None:
        self.closed = False
        self._pending = ""  # an escape sequence that is not complete

    def feed(self, text: str) -> str:
        """The next piece, decoded."""
        if self.closed:
            return ""
        text = self._pending + text
        end = match_end(_STRING_PART, text, 0)
        self._pending = text[end:]
        self.closed = bool(self._pending) and _ESCAPE_START.fullmatch(self._pending) is None
        return str(json.loads(f'"{text[:end]}"'))


def cut_at(text: str, stops: Sequence[str]) -> str:
    """`text` up to the sequence that is complete first; where two end at the same character, up to the longer one."""
    starts = [(text.find(stop), stop) for stop in stops if stop]
    ends = [(start + len(stop), start) for start, stop in starts if start >= 0]
    return text[: min(ends)[1]] if ends else text


class StopCutter:
    """`cut_at` for a text that comes in pieces: what may be the beginning of a sequence waits until that is clear.

    Attributes:
        hit: A sequence was complete; every further piece is empty.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.hit = False
        self._stops = [stop for stop in stops if stop]
        self._pending = ""  # the longest end of the text that a sequence may begin with

    def feed(self, text: str) -> str:
        """The next piece that is before any sequence."""
        if self.hit:
            return ""
        text = self._pending + text
        before = cut_at(text, self._stops)
        self.hit = len(before) < len(text)
        certain = (
            len(text) if self.hit else min((_possible_start(text, stop) for stop in self._stops), default=len(text))
        )
        self._pending = text[certain:]
        return before[:certain]

    def flush(self) -> str:
        """What still waited, now that the text is at its end."""
        rest, self._pending = self._pending, ""
        return rest


def _possible_start(text: str, stop: str) -> int:
    """Where the end of a text begins that may continue as `stop`; the length of the text if nowhere."""
    starts = range(max(0, len(text) - len(stop) + 1), len(text))
    return next((start for start in starts if stop.startswith(text[start:])), len(text))
