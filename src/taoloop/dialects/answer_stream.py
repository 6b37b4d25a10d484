"""The final answer out of a reply that is still being written, each piece as soon as it is certain to be in the answer.

The problem. A client wants the first words of an answer at once, but in a text dialect they come after a thought,
behind a label or in a string of an object, and what looks like an answer may turn out to be something else. A second
parser for incomplete replies would have to agree with the first in every case.

The idea. There is no second parser. Wherever an answer may begin, the dialect itself reads what has arrived so far with
a known sentence in place of the answer. If it reads that sentence as the answer, everything from there on is passed on
until a label or a tag ends it (`PendingText`). In doubt nothing is passed on, and the rest is sent once the whole reply
was read (`unsent_suffix`).

The invariants. What was passed on is the beginning of the answer that the dialect reads in the whole reply, or
`retracted` says that it is not. The number of probes is bounded, so the time is linear in the length of the reply.

Where it is tested: `tests/dialects/test_answer_stream.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from taoloop.core.decision import Answer
from taoloop.core.message import Delta, ModelReply
from taoloop.dialects import get_dialect
from taoloop.dialects.call_text import CallText
from taoloop.dialects.parsing.cleanup import EDGE_CHARS, clean_reply
from taoloop.dialects.parsing.json_decision import ROLES, plain_key
from taoloop.dialects.parsing.json_repair import looks_like_json
from taoloop.dialects.parsing.patterns import EVENT, LABEL, label_kind
from taoloop.dialects.parsing.strict_json import NotJsonError, decode_at
from taoloop.dialects.pending_text import (
    MAX_TAG_CHARS,
    JsonString,
    PendingText,
    closes_thinking,
    may_be_placeholder,
    normalise_line,
    opens_thinking,
)
from taoloop.dialects.texts import ReplyParseError

_PROSE = ("text", "json", "json_final", "fenced")
_PROBE = "It is what it is."
_MAX_PROBES = 20
_MAX_HEAD_CHARS = 200_000
_MAX_MEMBER_CHARS = 110
_MAX_LABEL_LINE = 400
_MAX_BLANKS = 2_000

_SURROGATE = re.compile("[\ud800-\udfff]")
_OPENING_TAG = re.compile(r"<[^<>\n]{1,120}>|\[THINK\]|◁think▷", re.IGNORECASE)
_CLOSING_TAG = re.compile(r"</[\w:]{1,40}>|<\|[\w/]{1,20}\|>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_STRING_MEMBER = re.compile(r'"([^"\\\n]{1,60})"\s{0,20}:\s{0,20}"')
_LABEL_CLOSERS = "*_`]】)）」>✿"
_OBJECT = re.compile(r"(?:```(?:json)?\s*)?\[?\s*\{", re.IGNORECASE)
_ROLE = re.compile(r"(?:assistant|ai|助手)\s{0,3}(?:[:：]|\n)", re.IGNORECASE)
_UNCLEAR_START = re.compile(r"(?:`{1,3}\w{0,20}\s*)?(?:\[\s*|`{0,3}\s*)")
_UNCLEAR_WORDS = ("assistant", "ai", "助手", "finish[")
_PERSON = re.compile(r"user|human|用户", re.IGNORECASE)


def truncated_answer(text: str, dialect: str, *, tools_offered: bool, tool_names: Sequence[str] = ()) -> str:
    """The part of an incomplete reply with which its final answer is certain to begin; "" if there is none.

    It is what a client that follows the reply has received of the answer by then.
    """
    stream = AnswerStream(dialect, tools_offered=tools_offered, has_schema=False, tool_names=tool_names)
    return stream.feed(Delta(kind="text", text=text))


def unsent_suffix(answer: str, sent: str) -> tuple[str, bool]:
    """What remains to be sent of a final answer after `sent`, and whether `sent` was its beginning.

    If it was not, the whole answer remains to be sent.
    """
    return (answer[len(sent) :], True) if answer.startswith(sent) else (answer, False)


class AnswerStream:
    """The text of the final answer in the deltas of one reply; a new one for each reply.

    In the dialect `native` only the call that follows shows that a text was a thought and not the answer, so text is
    passed on in either case. For a dialect that is not built in, nothing is passed on.

    Args:
        dialect: The name of the dialect.
        tools_offered: The model may call tools.
        tool_names: The names of these tools. In the dialect `native` text that begins like a call of one waits.
        has_schema: The answer is JSON that is rewritten after validation, so nothing is passed on before that.

    Attributes:
        started: Something was given.
        retracted: What was given is not the answer, or not all that the reply says: a call began behind it (then it
            was a thought), the reply began anew, or the model closed a block of thinking that it was in. Nothing is
            given after that.
    """

    def __init__(self, dialect: str, *, tools_offered: bool, has_schema: bool, tool_names: Sequence[str] = ()) -> None:
        self.started = self.retracted = False
        self._dialect, self._is_native, self._tools_offered = dialect, dialect == "native", tools_offered
        self._silent = has_schema or dialect not in (*_PROSE, "native")
        self._find_call = CallText(tool_names).find if tools_offered and self._is_native else None
        self._begin()

    def _begin(self) -> None:
        self._over = self._silent
        self._head = ""  # what came before the answer
        self._scanned = 0  # how much of it was searched
        self._waiting: int | None = None  # a label that may not be complete
        self._probes, self._probed = 0, 0  # how often the dialect was asked, and up to where
        self._input_start = 0  # where an input begins that is the answer if its action is the final one
        self._answer: PendingText | None = None
        self._string: JsonString | None = None  # where the answer is in an object
        self._return = ""  # a carriage return, which counts only without a line break behind it
        self._recent = ""  # the last characters, where a tag or a label may begin

    def feed(self, delta: Delta) -> str:
        """The next piece of the answer's text that is certain; empty for all else."""
        if delta.kind == "text":
            return self._feed_text(delta.text)
        if delta.kind == "restart":
            if not self._retract():
                self._begin()
        elif delta.kind == "call" and self._is_native:
            self._retract()
            self._over = True
        return ""

    def _retract(self) -> bool:
        """What was given is void; whether there was any."""
        self.retracted = self.retracted or self.started
        self._over = self._over or self.started
        return self.started

    def _feed_text(self, text: str) -> str:
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
        if self._answer is None:
            text = self._find_start(text)
        if self._answer is None or not text:
            return ""
        piece = self._answer.feed(text if self._string is None else self._string.feed(text))
        self.started = self.started or bool(piece)
        if self._answer.over or (self._string is not None and self._string.closed):
            self._over = True
            mark = self._answer.stopped_at
            if closes_thinking(mark) or (self._is_native and _is_decision(mark)):
                self._retract()
        self._watch(text)
        return piece

    def _find_start(self, text: str) -> str:
        """Look for the beginning of the answer; the text from there on, empty as long as it is not found."""
        self._head = head = (self._head + text).lstrip(EDGE_CHARS)
        if not head:
            return ""
        self._over = (
            len(head) > _MAX_HEAD_CHARS
            or self._probes > _MAX_PROBES
            or head[0] == ">"  # a quotation is read without its marks
            or (head[0] in "\"'“" and not self._is_native)  # perhaps a reply in a string
        )
        start = None if self._over else self._native_start(head) if self._is_native else self._prose_start(head)
        self._scanned = len(head) if self._waiting is None else self._waiting
        return "" if start is None else head[start:]

    def _native_start(self, head: str) -> int | None:
        """Where the text begins, behind a block of thinking if there is one."""
        start: int | None = 0
        tag = _OPENING_TAG.match(head)
        if tag is not None and opens_thinking(tag.group()):
            closers = _CLOSING_TAG.finditer(head, max(tag.end(), self._scanned - MAX_TAG_CHARS))
            start = next((closer.end() for closer in closers if self._is_cleaned_off(head[: closer.end()])), None)
        elif tag is None and _may_open(head):
            return None
        first = "" if start is None else head[start:].lstrip(EDGE_CHARS)[:1]
        if not first:
            return None
        self._over = first == ">"
        self._answer = PendingText(
            lines=True, in_line=False, is_clear=_is_clear_native, ends=self._ends_native, find_call=self._find_call
        )
        return start

    def _prose_start(self, head: str) -> int | None:
        """Where the answer begins behind a label, or in the string of an object."""
        self._waiting = None
        for match in self._candidates(head):
            start = self._string_start(head, match) if match.re is _STRING_MEMBER else self._label_start(head, match)
            if start is not None or self._over or self._waiting is not None:
                return start
        if self._input_start and head[-1] == "}":  # an input that came before its action
            text = JsonString().feed(head[self._input_start :])
            if self._reads_as(text, head, in_object=True):
                return self._begin_string(self._input_start)
        return None

    def _candidates(self, head: str) -> list[re.Match[str]]:
        """The labels of answers and the members of objects that were not probed yet, in their order."""
        line_start = head.rfind("\n", 0, self._scanned) + 1
        matches = list(_STRING_MEMBER.finditer(head, max(self._probed, self._scanned - _MAX_MEMBER_CHARS)))
        if len(head) - line_start < _MAX_LABEL_LINE or "\n" in head[self._scanned :]:
            labels = LABEL.finditer(f"{head}\0", line_start)
            matches += [label for label in labels if label_kind(label) in ("final", "input")]
        return sorted((match for match in matches if match.end() > self._probed), key=lambda match: match.start())

    def _label_start(self, head: str, label: re.Match[str]) -> int | None:
        end = label.end()
        body = head[end:].lstrip(EDGE_CHARS)
        if not body:
            self._waiting = label.start()  # the label may not be complete
            self._over = len(head) - end > _MAX_BLANKS
            return None
        self._probed = end
        if label["bold"] is not None and body[0] in _LABEL_CLOSERS:
            self._over = True  # marks that may belong to the label
        elif self._reads_as(_PROBE, head[: len(head) - len(body)] + _PROBE):
            quotes = "\"'“‘`~*[" if label_kind(label) == "input" else ""
            self._over = body[0] in f"{{｛<{quotes}" or "```" in head[:end] or "~~~" in head[:end]
            self._answer = PendingText(lines=True, is_clear=_is_clear)
        return None if self._over or self._answer is None else end

    def _string_start(self, head: str, member: re.Match[str]) -> int | None:
        self._probed = end = member.end()
        key = plain_key(member[1])
        if key not in ROLES["final"] and key not in ROLES["args"]:
            return None
        if self._reads_as(_PROBE, f'{head[:end]}{_PROBE}"}}', in_object=True):
            return self._begin_string(end)
        if key in ROLES["args"]:
            self._input_start = self._input_start or end
        return None

    def _begin_string(self, start: int) -> int:
        self._answer, self._string = PendingText(lines=False, is_clear=_is_clear), JsonString()
        return start

    def _is_cleaned_off(self, head: str) -> bool:
        """Whether nothing is left of the beginning of a reply once it is cleaned."""
        self._probes += 1
        try:
            return clean_reply(head + _PROBE) == _PROBE
        except ReplyParseError:
            return False

    def _reads_as(self, answer: str, text: str, *, in_object: bool = False) -> bool:
        """Whether the dialect reads a text as this answer; `in_object`: out of one object at its end, strict JSON."""
        self._probes += 1
        decision = get_dialect(self._dialect).read(ModelReply(text=text), ())
        is_answer = isinstance(decision, Answer) and decision.text == answer
        return is_answer and (not in_object or _ends_with_object(clean_reply(text)))

    def _watch(self, text: str) -> None:
        """See whether what was given turns out to be a draft in a block of thinking, or the text before an answer."""
        if not self.started or self.retracted or self._answer is None:
            return
        recent = self._recent + text
        self._recent = recent[-MAX_TAG_CHARS:]
        in_thinking = self._over and opens_thinking(self._answer.stopped_at)
        closes = not in_thinking and any(closes_thinking(tag.group()) for tag in _CLOSING_TAG.finditer(recent))
        may_label = self._over and self._is_native and _has_final_word(recent)
        labels = LABEL.finditer(f"\0{normalise_line(recent)}\0") if may_label else ()
        if closes or any(map(_is_final, labels)):
            self._retract()

    def _ends_native(self, label: re.Match[str]) -> bool:
        """Whether a label in a native reply may be more than a word of the answer."""
        match label_kind(label):
            case "action" | "input":
                return self._tools_offered or not self.started
            case "turn":
                return _PERSON.search(label.group()) is not None
            case "final":
                return _is_final(label)
            case kind:
                return kind == "observation" or not self.started


def _ends_with_object(text: str) -> bool:
    """Whether the first object of a text is strict JSON, is in no list, and ends the text."""
    brace = next((brace.start() for brace in re.finditer(r"\{", text) if looks_like_json(text, brace.start())), -1)
    try:
        return brace >= 0 and decode_at(text, brace)[1] == len(text) and text[:brace].rstrip()[-1:] != "["
    except NotJsonError:
        return False


def _may_open(head: str) -> bool:
    """Whether a reply that begins so may continue as a tag that opens a block of thinking."""
    if head[0] == "<":
        return len(head) < MAX_TAG_CHARS and ">" not in head and "\n" not in head
    return "[think]".startswith(head.casefold()) or "◁think▷".startswith(head)


def _is_clear(text: str) -> bool | None:
    """An answer that is an object may be read as the value in it; what trims an odd blank depends on what follows."""
    if text[0] in "{｛" or text[0].isspace():
        return False
    return None if may_be_placeholder(text) else True


def _is_clear_native(text: str) -> bool | None:
    """An object may be a call, and a role before the answer is taken off."""
    plain = text.casefold()
    if text[0].isspace() or _OBJECT.match(text) or _ROLE.match(text) or plain.startswith(("finish[", "```tool_code")):
        return False
    is_unclear = _UNCLEAR_START.fullmatch(text) or any(word.startswith(plain.rstrip()) for word in _UNCLEAR_WORDS)
    return None if is_unclear or may_be_placeholder(text) else True


def _is_decision(mark: str) -> bool:
    """Whether a mark in a native reply begins a call, or labels the answer: all before it is something else."""
    event = EVENT.match(mark)
    return event is not None and (event.lastgroup == "leak" or _is_final(event))


def _is_final(label: re.Match[str]) -> bool:
    return label["final"] is not None and _has_final_word(label["final"])


def _has_final_word(text: str) -> bool:
    return any(word in text.casefold() for word in ("final", "最终", "最終"))
