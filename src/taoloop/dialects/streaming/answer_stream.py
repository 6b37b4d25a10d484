"""The final answer out of a reply that is still being written, as early as each piece is certain to be in it.

For every dialect: what is given is how the answer begins that the dialect reads in the whole reply. In doubt nothing is
given, and the rest is sent when the answer is known (`rest_of`).
"""

from __future__ import annotations

import re
from typing import Protocol

from taoloop.core.message import Delta
from taoloop.dialects.parsing.cleanup import EDGE_CHARS
from taoloop.dialects.parsing.labels import LABEL, label_kind
from taoloop.dialects.parsing.patterns import EVENT
from taoloop.dialects.streaming.held_text import (
    HeldBackText,
    closes_thinking,
    may_be_placeholder,
    normalise_line,
    opens_thinking,
)
from taoloop.dialects.streaming.prose_answer import ProseAnswer
from taoloop.dialects.streaming.stop_sequences import StopCutter, cut_at


def truncated_answer(text: str, dialect: str, *, tools_offered: bool) -> str:
    """The part of a reply of which it is certain that the final answer begins so; "" where there is none.

    It is what whoever hears the reply while it is written has of the answer by then.
    """
    stream = AnswerStream(dialect, tools_offered=tools_offered, has_schema=False)
    return stream.feed(Delta(kind="text", text=text))


__all__ = ["AnswerStream", "StopCutter", "cut_at", "unsent_suffix"]

_PROSE = ("text", "json", "fenced")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FIRST_TAG = re.compile(r"(?:<[^<>\n]{1,120}>|\[THINK\]|◁think▷)", re.IGNORECASE)
_LAST_TAG = re.compile(r"</[\w:]{1,40}>|<\|[\w/]{1,20}\|>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_LONGEST_TAG = 130
_OPEN_SIGNS = re.compile(r"[\"“”{}｛]")
_ROLE = re.compile(r"(?:assistant|ai|助手)\s{0,3}(?:[:：]|\n)", re.IGNORECASE)
_ROLE_BEGINS = re.compile(
    r"(?:a(?:s(?:s(?:i(?:s(?:t(?:a(?:nt?)?)?)?)?)?)?)?|assistant\s*|ai\s{0,3}|助手?\s{0,3})", re.IGNORECASE
)
_OBJECT = re.compile(r"(?:```(?:json)?\s*)?\[?\s*\{", re.IGNORECASE)
_OBJECT_BEGINS = re.compile(r"`{1,3}(?:j|js|jso|json)?\s*(?:\[\s*)?|\[\s*", re.IGNORECASE)
_EMPTY_FENCE = re.compile(r"`{1,3}\w{0,20}\s*`{0,3}\s*")
_PERSON = re.compile(r"user|human|用户", re.IGNORECASE)


def unsent_suffix(answer: str, given: str) -> tuple[str, bool]:
    """What is still to be sent of a final answer of which `given` was sent, and whether that was its beginning.

    Where it was not, all of the answer is still to be sent.
    """
    return (answer[len(given) :], True) if answer.startswith(given) else (answer, False)


class _Answer(Protocol):
    over: bool
    at: str

    def feed(self, text: str) -> str: ...


class AnswerStream:
    """The text of the final answer in the deltas of one reply; a new one for each reply.

    `tools_offered`: the model may call tools. `has_schema`: the answer is JSON that is written anew when it has been
    checked, so nothing is given before that. `started`: something was given. `retracted`: what was given is not the
    answer, or not all that the reply says: a call began behind it (then it was a thought), the reply began anew, or
    the model closed a block of thinking that it was in. Nothing is given after that.

    In the dialect `native` an answer is told from the thought before a call only by the call that comes, so text is
    given in either case. Of a dialect that is not built in, nothing is given.
    """

    def __init__(self, dialect: str, *, tools_offered: bool, has_schema: bool) -> None:
        self.started = self.retracted = False
        self._dialect, self._tools = dialect, tools_offered
        self._silent = has_schema or dialect not in (*_PROSE, "native")
        self._begin()

    def _begin(self) -> None:
        self._over = self._silent
        self._start: str | None = ""  # the first signs of the reply, until it is clear how it begins
        self._thinking: str | None = None  # the line of a block of thinking that is open
        self._return = ""  # a carriage return, which counts only without a line break behind it
        self._last = ""  # the last signs, where a tag of thinking may begin
        self._line: str | None = None  # the line at the end, once nothing more is given
        self._answer: _Answer = ProseAnswer()
        if self._dialect == "native":
            self._answer = HeldBackText(lines=True, in_line=False, opening=_plain, ends=self._ends)

    def feed(self, delta: Delta) -> str:
        """The next piece of the answer's text that is certain; empty for all else."""
        if delta.kind == "text":
            return self._text(delta.text)
        if delta.kind == "restart":
            if not self._void():
                self._begin()
        elif delta.kind == "call" and self._dialect == "native":
            self._void()
            self._over = True
        return ""

    def _void(self) -> bool:
        """What was given is void; whether there was any."""
        self.retracted = self.retracted or self.started
        self._over = self._over or self.started
        return self.started

    def _text(self, text: str) -> str:
        if self._over:
            self._watch(text)
            return ""
        if self._return or "\r" in text:
            text = self._return + text
            self._return = "\r" if text.endswith("\r") else ""
            text = text.removesuffix("\r").replace("\r\n", "\n")
        if not text.isascii() and _SURROGATE.search(text):
            self._over = True
            return ""
        if self._start is not None:
            text = self._first(text)
        if self._thinking is not None:
            text = self._thought(text)
        if not text:
            return ""
        given = self._answer.feed(text)
        self.started = self.started or bool(given)
        if self._answer.over:
            self._over = True
            if self._dialect == "native" and _is_decision(self._answer.at):
                self._void()
        self._watch(text)
        return given

    def _first(self, text: str) -> str:
        """How the reply begins: with a block of thinking, or as it is; empty as long as that is not clear."""
        self._start = start = f"{self._start}{text}".lstrip(EDGE_CHARS)
        if not start:
            return ""
        if start[0] in "<[◁":
            tag = _FIRST_TAG.match(start)
            if tag is None and len(start) < _LONGEST_TAG and "\n" not in start and _may_open(start):
                return ""
            if tag is not None and opens_thinking(tag.group()):
                self._start, self._thinking = None, ""
                return start[tag.end() :]
        self._start = None
        if start[0] == ">" or (start[0] in "\"'“" and self._dialect in _PROSE):
            self._over = True  # a quotation, or a reply in a string, is read as what is in it
            return ""
        return start

    def _thought(self, text: str) -> str:
        """Go by a block of thinking; the text behind it."""
        passed = f"{self._thinking}{text}"
        for tag in _LAST_TAG.finditer(passed):
            if not closes_thinking(tag.group()):
                continue
            line = passed[passed.rfind("\n", 0, tag.start()) + 1 : tag.start()]
            if _OPEN_SIGNS.search(line):
                self._over = True  # the tag may stand in a string
                return ""
            self._thinking, self._start = None, ""
            rest = passed[tag.end() :].lstrip(EDGE_CHARS)
            return self._first(rest) if rest else ""
        self._thinking = passed[max(passed.rfind("\n"), len(passed) - 4_000, 0) :]
        return ""

    def _watch(self, text: str) -> None:
        """See whether a block of thinking is closed, so that what was given was a draft in it."""
        if not self.started or self.retracted:
            return
        passed = self._last + text
        self._last = passed[-_LONGEST_TAG // 3 :]
        closing = (">" in text or "]" in text or "▷" in text) and not opens_thinking(self._answer.at)
        if closing and any(closes_thinking(tag.group()) for tag in _LAST_TAG.finditer(passed)):
            self._void()
        if self._over and self._dialect == "native":
            self._find_final(text)

    def _find_final(self, text: str) -> None:
        """See whether a native reply that goes on behind what is given labels another text as its answer."""
        lines = text.split("\n")
        if self._line is not None:
            lines[0] = self._line + lines[0][:_LONGEST_TAG]
        for number, line in enumerate(lines):
            label = LABEL.match(normalise_line(line)) if number or self._line is not None else None
            if label is not None and _is_decision(label.group()):
                self._void()
        if len(lines) > 1 or self._line is not None:
            self._line = lines[-1][: 2 * _LONGEST_TAG]

    def _ends(self, label: re.Match[str]) -> bool:
        """Whether a label in a native reply may be more than a word of the answer."""
        kind = label_kind(label)
        if kind in ("action", "input"):
            return self._tools or not self.started
        if kind == "turn":
            return _PERSON.search(label.group()) is not None
        if kind == "final":
            return _is_final(label.group())
        return kind == "observation" or not self.started


def _is_decision(at: str) -> bool:
    """Whether a sign in a native reply begins a call, or labels the answer: all before it is something else."""
    event = EVENT.match(at)
    return event is not None and (event.lastgroup == "leak" or (event["final"] is not None and _is_final(at)))


def _is_final(label: str) -> bool:
    return any(word in label.casefold() for word in ("final", "最终", "最終"))


def _may_open(start: str) -> bool:
    """Whether a reply that begins so may go on as a tag."""
    if start[0] == "[":
        return "[think]".startswith(start.casefold())
    return start[0] == "<" and ">" not in start


def _plain(text: str) -> bool | None:
    """What the beginning of a native reply says: an object may be a call, a role before the answer is taken off."""
    if (
        text[0].isspace()
        or _OBJECT.match(text)
        or _ROLE.match(text)
        or text.casefold().startswith(("finish[", "```tool_code"))
    ):
        return False
    if may_be_placeholder(text) or _OBJECT_BEGINS.fullmatch(text) or _EMPTY_FENCE.fullmatch(text):
        return None
    if _ROLE_BEGINS.fullmatch(text) or "finish[".startswith(text.casefold()):
        return None
    return True
