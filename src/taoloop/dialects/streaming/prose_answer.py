"""What stands before an answer in the text of a reply: thoughts, labels, a code fence; read line by line.

Only the forms that the prompts ask for, and their nearest kin, are followed. Where anything else stands before the
answer, what the reader will make of it is not clear yet, and nothing is given.
"""

from __future__ import annotations

import re

from taoloop.dialects.parsing.labels import LABEL, label_kind
from taoloop.dialects.parsing.tool_names import is_final_name
from taoloop.dialects.streaming.held_text import HeldBackText, may_be_label, may_be_placeholder, normalise_line
from taoloop.dialects.streaming.json_answer import ObjectText

_UNCLEAR = re.compile(
    r"[{｛✿◁]|<[|｜/\w]|\[/?(?:tool_|inst\]|observation\]|think\]|eos\])|functools\[|>>>\w", re.IGNORECASE
)
_LONGEST_SIGN = 16
_CLOSERS = "*_`]】)）」>✿"
_COLONS = re.compile("[:：】>]")
_FENCE = re.compile(r"(?:```|~~~)\w{0,20}[ \t]*")
_NAME = re.compile(r"[ \t`*]*([^\s:：({\[`*][^:：({\[`*\n]{0,40}?)[ \t`*]*")


class ProseAnswer:
    """The answer in a reply whose decisions are written in its text: behind a label, or in an object."""

    def __init__(self) -> None:
        self.over = False
        self.at = ""
        self._line = ""  # the line that is being read, as far as it matters
        self._passing = False  # it holds nothing that matters
        self._expects = "any"  # any line; the `object` of an action; the `input` of a final action
        self._object: ObjectText | None = None
        self._answer: HeldBackText | None = None

    def feed(self, text: str) -> str:
        """The next piece of the answer; empty for all else."""
        if self._answer is None:
            text = self._head(text)
        if self._answer is None or not text:
            return ""
        if self._object is not None:
            text = self._object.feed(text)
        given = self._answer.feed(text) if text else ""
        self.over = self._answer.over or (self._object is not None and self._object.over)
        self.at = self._answer.at
        return given

    def _head(self, text: str) -> str:
        """Read lines until the answer begins; the text from there on."""
        while text and not self.over and self._answer is None:
            line, end, text = text.partition("\n")
            if self._passing:
                self._pass(line)
            else:
                self._line += line
                text = self._look(self._line, text, ended=bool(end))
            if end and self._answer is None:
                self._line, self._passing = "", False
        return "" if self.over else text

    def _pass(self, line: str) -> None:
        """Go by a line of a thought; its last signs are kept, for what goes on in the next piece."""
        self._line = (self._line + line)[-(_LONGEST_SIGN + len(line)) :]
        self.over = _UNCLEAR.search(self._line) is not None
        self._line = self._line[-_LONGEST_SIGN:]
        self._passing = True

    def _look(self, raw: str, rest: str, *, ended: bool) -> str:
        """See what a line is, as far as it has come; `rest` is the text behind it, from the next line on."""
        line = raw.lstrip(" \t")
        behind = f"\n{rest}" if ended else rest
        if not line:
            return rest
        if line[0] == "{":
            return self._begin_object(line + behind)
        if line.startswith(("```"[: len(line)], "~~~"[: len(line)])):
            return self._fence(line, behind, rest, ended=ended)
        if self._expects == "object":
            self.over = True
            return ""
        shown = normalise_line(raw)
        label = None
        if ended:
            label = LABEL.match(shown)
        elif _COLONS.search(raw):
            label = LABEL.match(f"{shown}\0")  # the line is not at its end yet
        if label is not None:
            self.over = shown != raw  # a label with something invisible in it
            return self._labelled(label, raw, rest, ended=ended)
        if ended or not may_be_label(shown):
            self._plain(raw)
        return rest

    def _plain(self, line: str) -> None:
        if self._expects != "any":
            self.over = True
        self._line = ""
        self._pass(line)

    def _fence(self, line: str, behind: str, rest: str, *, ended: bool) -> str:
        """A code fence, which has to hold an object."""
        fence = _FENCE.match(line)
        if fence is None:
            self.over = ended or len(line) > 2
            return rest
        if line[fence.end() :].startswith("{"):
            return self._begin_object(line[fence.end() :] + behind)
        if ended and fence.end() == len(line) and self._expects != "input":
            self._expects = "object"
        elif ended or fence.end() < len(line):
            self.over = True
        return rest

    def _labelled(self, label: re.Match[str], raw: str, rest: str, *, ended: bool) -> str:
        if self.over:
            return ""
        kind, body = label_kind(label), raw[label.end() :]
        behind = f"\n{rest}" if ended else rest
        if raw[label.end() - 1 : label.end()] == ">":
            self.over = True
        elif kind == "thought" and self._expects == "any":
            self._plain(body)
        elif kind == "final" and self._expects == "any":
            first = body.lstrip()[:1]
            if label["bold"] is not None and first and first in _CLOSERS:
                self.over = True  # signs that may belong to the label
            elif first or ended or label["bold"] is None:
                return self._begin_text(body + behind)
        elif kind == "action" and self._expects == "any":
            return self._action(body, behind, rest, ended=ended)
        elif kind == "input" and self._expects == "input":
            first = body.lstrip()[:1]
            if first and (label["bold"] is None or len(body.lstrip()) > 1):
                self.over = first in "\"'“‘{｛`~*[<"
                return self._begin_text(body + behind)
            self.over = ended
        else:
            self.over = True
        return rest

    def _action(self, body: str, behind: str, rest: str, *, ended: bool) -> str:
        """Behind the label of an action: an object, or the name of the final one."""
        inner = body.lstrip(" \t*")
        if inner.startswith("{"):
            return self._begin_object(inner + behind)
        if not inner:
            self._expects = "object" if ended else self._expects
        elif inner.startswith("`"):
            fence = _FENCE.match(inner)
            if fence is None or inner[fence.end() :]:
                self.over = fence is not None or len(inner) > 2
                if fence is not None and inner[fence.end() :].startswith("{"):
                    self.over = False
                    return self._begin_object(inner[fence.end() :] + behind)
            elif ended:
                self._expects = "object"
        elif ended:
            name = _NAME.fullmatch(body)
            self.over = name is None or not is_final_name(name[1])
            self._expects = "input"
        return rest

    def _begin_object(self, text: str) -> str:
        self.over = self.over or self._expects == "input"
        self._object = ObjectText()
        self._answer = HeldBackText(lines=False, opening=_in_string)
        return text

    def _begin_text(self, text: str) -> str:
        self._answer = HeldBackText(lines=True, opening=_behind_label)
        return text


def _in_string(text: str) -> bool | None:
    return None if may_be_placeholder(text) else True


def _behind_label(text: str) -> bool | None:
    """An answer that is an object may be read as the value in it; what trims an odd blank depends on what follows."""
    if text[0] in "{｛" or text[0].isspace():
        return False
    return None if may_be_placeholder(text) else True
