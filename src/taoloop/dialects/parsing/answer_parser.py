"""Reading a final answer: from its label to where something new begins."""

from __future__ import annotations

import re
from itertools import islice

from taoloop.dialects.parsing.json_decision import ParsedCall, parse_decision_object
from taoloop.dialects.parsing.json_repair import parse_value
from taoloop.dialects.parsing.labels import LABEL, label_kind
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.parse_state import ReplyCursor
from taoloop.dialects.parsing.patterns import EVENT, FENCE_LINE, LINE_BRACE, LINE_HEAD, MAX_OBJECTS, QUESTION_LABELS
from taoloop.dialects.parsing.strict_json import NotJsonError
from taoloop.dialects.parsing.tool_names import resolve_tool_name

_ANSWER_CLOSE = re.compile(r"</(?:final[ _]?answer|answer|final)>", re.IGNORECASE)
_IN_TAGS = re.compile(r"<(final[ _]?answer|answer|final)>(.*)</\1>", re.IGNORECASE | re.DOTALL)


class AnswerReader(ReplyCursor):
    """The part of the reader that takes answers."""

    def final(self, start: int) -> int:
        """The answer behind its label, up to the next label that is not in a code block."""
        end = self.answer_end(start)
        if self.text[start - 1 : start] == ">" and (close := _ANSWER_CLOSE.search(self.text, start, end)):
            self.answer(self.text[start : close.start()])
            return self.mark_decision_end(close.end())
        body = self.text[start:end].strip()
        if not body and self.text[end : end + 1] == "<" and LABEL.match(self.text, end):
            return end  # the answer stands in tags of its own behind the label
        if (tagged := _IN_TAGS.fullmatch(body)) is not None:
            body = tagged[2].strip()
        if len(FENCE_LINE.findall(body)) % 2 and LABEL.search(body):
            raise ReplyParseError("truncated", "The code block in the final answer is never closed.", body)
        body = _unmarked(body, self.opened)
        if body.casefold().rstrip(".") in ("none", "null", "n/a"):
            raise ReplyParseError(
                "bad_final", f"The final answer is {body!r}. Give the answer, or say what is missing."
            )
        if not self.json_answer and self._holds_call(body):
            raise ReplyParseError("two_decisions", "A call stands in the final answer; give one or the other.", body)
        self.answer(body if self.json_answer else _only_value(body))
        return self.mark_decision_end(end)

    def final_input(self, start: int) -> int:
        """The answer in the input of an action that is called Final Answer: text, or JSON that holds it."""
        position = self.skip_whitespace(start)
        sign = self.text[position : position + 1]
        if not sign or sign not in '"{“':
            return self.final(start)
        try:
            value = parse_value(self.text, position)
        except NotJsonError as error:
            if sign == "{":
                raise ReplyParseError("bad_json", f"The final answer is not valid JSON: {error}.") from None
            return self.final(start)
        end = self.answer_end(value.end)
        if self.text[value.end : end].strip("`*} \n"):
            return self.final(start)
        self.answer(value.value)
        return self.mark_decision_end(end)

    def answer_end(self, start: int) -> int:
        """Where an answer ends: at a label that no code block holds, or where another turn begins."""
        fenced = False
        for event in EVENT.finditer(self.text, start):
            if event.lastgroup == "fence":
                if self.opened and not fenced and self.text[event.start() : event.end()].strip(" `~>") == "":
                    return event.start()
                fenced = not fenced
            elif fenced or event.lastgroup == "brace" or event.start() < start:
                continue
            elif event["label"] is None or self.ends_answer(event):
                return event.start()
        return len(self.text)

    def ends_answer(self, event: re.Match[str]) -> bool:
        """Whether a label in an answer opens something new: words that anybody may write stay content."""
        kind, word = label_kind(event), event.group().strip(" \t>#*_`-+•:：0123456789.)、").casefold()
        if kind == "input" or (kind == "action" and word in ("tool", "function", "tool name", "工具", "操作")):
            body = self.text[event.end() : self.line_end(event.end())]
            head = LINE_HEAD.match(body)
            return head is not None and resolve_tool_name(head.group().strip(), self.cards) is not None
        if kind == "turn" and word not in QUESTION_LABELS and not self._new_turn(event.start(), event.end()):
            raise ReplyParseError("stray_text", f"It is not clear whether {event.group()!r} belongs to the answer.")
        return True

    def _new_turn(self, start: int, end: int) -> bool:
        """Whether a line that names a person is another turn, and no line of an answer such as `User: admin`."""
        return not self.text[self.text.rfind("\n", 0, max(start - 1, 0)) + 1 : start].strip() or self._decides(end)

    def _decides(self, position: int) -> bool:
        if self.last_decision == -1:
            labels = LABEL.finditer(self.text)
            starts = [label.start() for label in labels if label_kind(label) in ("action", "final")]
            self.last_decision = starts[-1] if starts else -2
        return self.last_decision >= position

    def _holds_call(self, body: str) -> bool:
        """Whether a line of an answer begins a call of a known tool, written as an object.

        In a code block that the answer goes on behind, it is content.
        """
        inside = _blocks(body)
        for brace in islice(LINE_BRACE.finditer(body), MAX_OBJECTS):
            if any(start < brace.start() < end for start, end in inside):
                continue
            try:
                found = parse_decision_object(parse_value(body, brace.end() - 1).value, self.cards)
            except (NotJsonError, ReplyParseError):
                continue
            if any(
                isinstance(one, ParsedCall) and resolve_tool_name(one.name, self.cards) is not None for one in found
            ):
                return True
        return False


def _blocks(body: str) -> list[tuple[int, int]]:
    """The code blocks in an answer behind which it goes on in words."""
    fences = [fence.start() for fence in islice(FENCE_LINE.finditer(body), MAX_OBJECTS)]
    last = FENCE_LINE.match(body, fences[-1]) if fences else None
    if last is None or len(fences) % 2 or not body[last.end() :].strip(" `~*.\n"):
        return []
    return list(zip(fences[::2], fences[1::2], strict=True))


def _unmarked(body: str, opened: bool) -> str:
    """An answer without the bold marks that were opened with its label, or the fence around the whole reply."""
    if opened and body.endswith("```"):
        body = body[:-3].rstrip()
    if body.endswith("**") and body.count("**") % 2:
        body = body[:-2].rstrip()
    return body


def _object_in(body: str) -> object:
    inner = body.strip("`").removeprefix("json").strip()
    try:
        return parse_value(inner).value if inner.startswith("{") else None
    except NotJsonError:
        return None


def _only_value(body: str) -> object:
    """The value of an answer that is an object with one key and a text; else the text as it is."""
    if body.startswith("{") and body.endswith("}"):
        value = _object_in(body)
        if isinstance(value, dict) and len(value) == 1 and all(isinstance(one, str) for one in value.values()):
            return value
    return body
