"""The one reader behind every dialect: from the text of a reply to its one decision, or to why there is none.

The text is walked once. Labels, JSON objects, code fences and calls that leaked are taken where they stand; values are
consumed whole, so that words inside of them are never seen. From the first observation or turn that the model wrote
itself nothing is believed; what is found before it must be one decision.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from taoloop.core.decision import Act, Answer, Call, Decision, excerpt
from taoloop.dialects.calls import input_value, is_program, make_call, read_in_brackets
from taoloop.dialects.clean import END_TOKEN
from taoloop.dialects.labels import BARE_RESULT, FINAL_AHEAD, INLINE_INPUT, INLINE_LABEL, LABEL, RESULT, drop_stump, label_kind
from taoloop.dialects.leaks import CALLED, OPENER, read_leaks
from taoloop.dialects.loose import INVISIBLE, Loose, looks_like_json, read_value, skip_surplus, unescaped
from taoloop.dialects.names import bare_name, find_card, is_final_name, is_nothing
from taoloop.dialects.objects import Asked, Meant, Mused, is_observation, meant
from taoloop.dialects.refusal import RefusedError
from taoloop.dialects.strict import NotJsonError, same
from taoloop.dialects.values import answer_text, is_placeholder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards import ToolCard

TOLD = (  # a tag or a token that opens the turn of somebody else
    r"<(?:observation|observe|tool_response|tool_result|tool_output|function_results?|function_response|result|output)\b[^<>\n]{0,80}>"
    r"|<[|｜](?:observation|tool▁outputs?▁begin|tool_response|tool_output|user|ipython|tool_result)[^<>|｜\n]{0,20}[|｜]>"
    r"|<[|｜]im_start[|｜]>\s{0,2}(?:user|tool|system)|<\|start_header_id\|>(?:user|tool|ipython)|<start_of_turn>(?:user|tool)"
    r"|<\|start\|>(?:functions|user|tool)|\[(?:INST|TOOL_RESULTS?|OBSERVATION)\]|<｜User｜>"
)
MAX_PARTS = 5_000
"""Labels, objects, fences and braces of a reply that are looked at, which bounds the time for any reply."""

MAX_PROSE = 4_000
"""Characters of prose that may stand behind a decision."""

MAX_OBJECTS = 100
"""Objects in an answer that are looked at."""

EVENT = re.compile(
    rf"(?P<label>{LABEL.pattern})"
    rf"|(?=[<\[f][\w|｜/])(?:(?P<told>{TOLD}|{END_TOKEN.pattern})|(?P<leak>{OPENER}))"
    rf"|(?P<fence>^[ \t]*+(?:>[ \t]?)?(?:```|~~~)[^\n`]*$)|(?P<brace>[{{｛])",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = re.compile(r"(?:```|~~~)[\w+.-]*[ \t]*\n?")
_FENCE_LINE = re.compile(r"^[ \t>]*+(?:```|~~~)", re.MULTILINE)
_GAP = re.compile(rf"[\s{INVISIBLE}]*+(?:[*_]{{2}}[\s{INVISIBLE}]*+)?(?:(?:~~~|`{{1,5}})(?:\w[\w+.-]{{0,20}}(?=[\s{{\[]))?[\s{INVISIBLE}]*+(?:json\s++)?)?")
_OBJECT = re.compile(rf"[\"'“]?[\[［]?[\s{INVISIBLE}]*+[{{｛]")
_CLOSE = re.compile(rf"[\s{INVISIBLE}`~*;；。.]*+")
_ASKED = frozenset({"question", "next question", "new question", "follow up question", "follow-up question", "问题", "新问题", "下一个问题"})
_LINE_BRACE = re.compile(r"^[ \t>]*+\[?[ \t]*+\{", re.MULTILINE)
_HEAD = re.compile(r"[^:：(（\[{｛\n]*")
_CALL = re.compile(r"(?<![\w.])([^\W\d][\w.]{0,120})[ \t]{0,2}[(\[{]")
_SECOND_THOUGHT = re.compile(
    r"\b(?:actually|instead|correction|scratch that|sorry|oops|on second thoughts?|hold on|hmm+|my mistake|never ?mind"
    r"|i meant|i mean|should (?:be|have been)|do not|don't|rather|ignore (?:that|this|the)|forget (?:that|it)|revised?"
    r"|but first|unless|please confirm|if you (?:confirm|agree|approve)|(?:once|after|until|when) you|before i|not yet)\b"
    r"|\bwait\b[ \t]*(?:[,.!:;…—-]|$)|\bno[,.]"
    r"|等等|等一下|不对|更正|应该是|抱歉|改成|改为|而不是|错了|稍等|不要|取消|修正|确认后",
    re.IGNORECASE,
)


def read_text(text: str, cards: Sequence[ToolCard], *, json_answer: bool = False) -> Decision:
    """The one decision in a text that was cleaned. `json_answer`: answers that are JSON values stay whole.

    Raises:
        RefusedError: there is none, or none that may be believed.
    """
    if not text:
        raise RefusedError("empty", "The reply is empty.")
    text = drop_stump(text)
    if text.startswith('{\\"'):
        text = _without_escapes(text)
    if text[0] in "\"'“" and text[-1] in "\"'”":
        text = _in_a_string(text)
    return _Scan(text, cards, json_answer=json_answer).decision()


def _without_escapes(text: str) -> str:
    try:
        return unescaped(text)
    except NotJsonError:
        return text


def _in_a_string(text: str) -> str:
    """The text in a reply that is one JSON string with an object in it."""
    try:
        found = read_value(text)
    except NotJsonError:
        return text
    whole = isinstance(found.value, str) and found.end == len(text) and found.value.lstrip()[:1] in ("{", "[")
    return found.value if whole and not found.doubtful else text


class _Scan:
    def __init__(self, text: str, cards: Sequence[ToolCard], *, json_answer: bool) -> None:
        self.text, self.cards, self.json_answer = text, cards, json_answer
        self.thoughts: list[str] = []
        self.found: Call | str | None = None
        self.action: str | None = None  # an action whose input has not come yet
        self.afterthought = ""  # a thought behind the decision
        self.kind = "preamble"  # what the text before the next event belongs to
        self.begin = 0  # where that text begins
        self.opened = False  # inside of a code fence whose content is read
        self.parts = 0
        self.result = (-1, -1)  # where a line behind the decision gives a result; -2: there is none
        self.last_decision = -1  # where the last label of an action or a final stands

    def decision(self) -> Decision:
        position = self.calls(0, len(self.text)) or 0
        while position >= 0 and (event := EVENT.search(self.text, position)) is not None:
            position = self.cut() if 0 <= self.result[0] <= event.start() else self.take(event)
        if 0 <= self.result[0] and position >= 0:
            position = self.cut()
        if position >= 0:
            self.close(len(self.text))
            self.settle()
        if self.afterthought:
            line = _first_line(self.afterthought)
            raise RefusedError("stray_text", f"The thought {excerpt(line)!r} follows the decision.{self.usable()}", line)
        reason = "\n".join(self.thoughts)
        if isinstance(self.found, Call):
            return Act(calls=(self.found,), reason=reason)
        if self.found is not None:
            return Answer(text=self.found, reason=reason)
        code = "no_decision" if self.kind != "preamble" or self.thoughts or "{" in self.text else "stray_text"
        raise RefusedError(
            code, f"The reply has neither an action nor a final answer: {excerpt(self.text)!r}.{self.usable()}", self.text
        )

    def take(self, event: re.Match[str]) -> int:
        """Take one event; the position to go on from, or -1 when nothing further may be believed."""
        self.parts += 1
        if self.parts > MAX_PARTS:
            raise RefusedError("stray_text", f"The reply has more than {MAX_PARTS:,} parts; give one decision.")
        what = event.lastgroup or ""
        start = event.start()
        if event["label"] is not None:
            return self.label(event)
        if what == "told":
            return self.told(start, event.end())
        if what == "fence":
            return self.fence(event)
        if what == "brace":
            return self.brace(start)
        self.close(start)
        leaked, end = read_leaks(self.text, start, self.cards)
        for call in leaked:
            self.means(call.meant, doubtful=call.doubtful)
        return self.after(end)

    # labels

    def label(self, event: re.Match[str]) -> int:
        kind = label_kind(event)
        start, end = event.span()
        if kind == "observation" or (kind == "turn" and (self.found is not None or self.action or self.thoughts)):
            return self.told(start, end)
        self.close(start)
        if kind == "input":
            return self.input(end)
        self.settle()
        if kind == "action":
            return self.act(end)
        if kind == "final":
            return self.final(end)
        self.kind, self.begin = ("turn" if kind == "turn" else "thought"), end
        return end

    def close(self, end: int) -> None:
        """The text up to `end` belongs to what came before it."""
        text = self.text[self.begin : end].strip()
        self.begin = end
        if not text:
            return
        if self.kind == "thought" and (result := BARE_RESULT.search(text)) is not None:
            raise RefusedError(
                "invented_observation", f"The line {excerpt(result.group())!r} gives a result that you wrote yourself.", text
            )
        if self.kind == "thought" and self.found is None:
            self.thoughts.append(text.strip("`*\n "))
        elif self.kind == "thought":
            self.afterthought = text.strip("`*_ \n")
        elif self.kind == "after":
            self.behind(text)
        elif self.kind == "action" and text.strip("`*~ \n") not in ("", "PAUSE"):
            raise RefusedError(
                "stray_text",
                f"The line {excerpt(_first_line(text))!r} follows the action {self.action!r} without a label.",
                text,
            )

    def behind(self, text: str) -> None:
        """Prose behind a decision is let pass, unless it takes the decision back or goes on with it."""
        bare = text.strip("`*~_ \n")
        if len(text) > MAX_PROSE or _SECOND_THOUGHT.search(text) or bare.startswith((",", "，", '"', "+", "|", "&&")) or INLINE_LABEL.search(text) or self._calls_in(text):
            raise RefusedError(
                "stray_text",
                f"The text {excerpt(_first_line(text))!r} follows the decision without a label.{self.usable()}",
                text,
            )

    def _calls_in(self, text: str) -> bool:
        return any(find_card(call.group(1), self.cards) is not None for call in _CALL.finditer(text))

    def told(self, start: int, end: int) -> int:
        """An observation or a turn that the model wrote itself: nothing from here on is believed."""
        filled = self._filled(end)
        self.close(start)
        if not filled:
            self.kind, self.begin = "after" if self.found is not None else "preamble", end
            return end
        self.settle()
        if self.found is None:
            raise RefusedError(
                "invented_observation",
                f"The reply goes on with an observation or a turn that you wrote yourself.{self.usable()} "
                "Only the runtime writes observations: stop after the action.",
                self.text[start:],
            )
        if isinstance(self.found, Call) and self._finishes(end):
            raise RefusedError(
                "invented_observation",
                "You wrote the observation yourself and then a final answer on it; nothing was run. "
                "Stop after the action and wait for the real observation.",
                self.text[start:],
            )
        return -1

    def _filled(self, position: int) -> bool:
        """Whether anything stands in the slot of an observation before the next label."""
        behind = _CLOSE.match(self.text, position).end()  # type: ignore[union-attr]  # it matches everywhere
        if behind >= len(self.text):
            return False
        label = LABEL.match(self.text, self.text.rfind("\n", 0, behind) + 1)
        return label is None or label.start() < position or label["observation"] is not None

    def _finishes(self, position: int) -> bool:
        if FINAL_AHEAD.search(self.text, position):
            return True
        for label in LABEL.finditer(self.text, position):
            named = _HEAD.match(self.text, label.end()).group()  # type: ignore[union-attr]  # it matches everywhere
            if label["final"] is not None or (label["action"] is not None and is_final_name(named)):
                return True
        return False

    # decisions

    def act(self, start: int) -> int:
        """Behind the label of an action: an object, or a name with or without its input."""
        position = self.gap(start)
        self.opened = self.opened or "```" in self.text[start:position]
        if _OBJECT.match(self.text, position):
            value = self.value(position, "action")
            found = meant(value.value, self.cards)
            if not found or all(isinstance(one, Mused) for one in found):
                raise RefusedError("bad_action", f"The action {excerpt(self.text[position:value.end])!r} names no tool.")
            for one in found:
                self.means(one, doubtful=value.doubtful)
            return self.after(skip_surplus(self.text, value.end))
        leak = EVENT.match(self.text, position)
        if leak is not None and leak.lastgroup == "leak":
            return position
        if leak is not None or position >= len(self.text) or LABEL.match(self.text, position):
            raise RefusedError("bad_action", f"The action '' names no tool.{self.usable()}")
        return self.named(position)

    def named(self, start: int) -> int:
        """A name on one line, with what stands behind it."""
        end = self.line_end(start)
        line = self.text[start:end].rstrip()
        card = find_card(line, self.cards) if line[-1:] not in "([{（｛:：" else None
        stop = END_TOKEN.search(self.text, start, end)
        if stop is not None and card is None:
            end = stop.start()
            line = self.text[start:end].rstrip()
        if card is not None or (is_final_name(line) and not is_nothing(line)):
            return self.wait(card.name if card is not None else line, end)
        inline = INLINE_INPUT.search(line)
        if inline is not None and not any(sign in line[: inline.start()] for sign in "{(["):
            self.action = line[: inline.start()]
            return self.input(start + inline.end())
        head = _HEAD.match(line).group()  # type: ignore[union-attr]  # it matches everywhere
        name, sign = head.strip(" `*\"'"), line[len(head) : len(head) + 1]
        if is_nothing(name) or is_placeholder(name):
            raise RefusedError("bad_action", f"The action {excerpt(line)!r} names no tool.", line)
        behind = start + len(head) + 1
        if find_card(name, self.cards) is None and is_final_name(name):
            return self.finish(sign, behind)
        if sign == "":
            if (tail := find_card(bare_name(line), self.cards)) is not None:
                return self.wait(tail.name, end)
            return self.wait(line, end)
        if sign in "(（":
            return self.called(name, behind, line)
        if sign in "{｛":
            return self.input_of(name, behind - 1)
        if sign == "[":
            return self.bracketed(name, behind, line)
        if not line[len(head) + 1 :].strip() and find_card(name, self.cards) is None:
            raise RefusedError("bad_action", f"The action {excerpt(line)!r} has an empty input.", line)
        if not line[len(head) + 1 :].strip(" *`"):
            raise RefusedError("bad_action", f"The action {excerpt(line)!r} has an empty input.", line)
        return self.input_of(name, behind)

    def wait(self, name: str, position: int) -> int:
        """An action whose input comes with the next label, or right behind as an object."""
        self.action = name
        self.kind, self.begin = "action", position
        return position

    def finish(self, sign: str, position: int) -> int:
        """`Finish[…]`, `Finish("…")`, or `Final Answer: …` behind the label of an action."""
        if sign == "" or sign in ":：":
            return self.final(position) if sign else self.wait("final", position - 1)
        closer = {"[": "]", "(": ")", "（": "）"}.get(sign, "}")
        end = self.answer_end(position)
        body = self.text[position:end].rstrip("`*. \n")
        if sign in "{｛" or not body.endswith(closer):
            raise RefusedError("bad_final", f"The final answer {excerpt(body)!r} does not end.", body)
        inner = body[:-1].strip()
        if sign != "[":
            try:
                value, last, doubtful = read_in_brackets(inner + ")", 0, None)
            except NotJsonError as error:
                raise RefusedError("bad_final", f"The final answer cannot be read: {error}.", body) from None
            if last != len(inner) + 1 or doubtful:
                raise RefusedError("bad_final", "The final answer cannot be read.", body)
            self.answer(value)
        else:
            self.answer(inner)
        return self.after(end)

    def called(self, name: str, position: int, line: str) -> int:
        """`name(…)`."""
        card = find_card(name, self.cards)
        try:
            value, end, doubtful = read_in_brackets(self.text, position, card)
        except NotJsonError as error:
            raise RefusedError(
                "bad_json", f"The arguments in {excerpt(line)!r} cannot be read: {error}.", line
            ) from None
        if value == {} and self.text[position:end].strip(" )）\n") == "":
            return self.wait(name, end)  # `name()`: its input may still follow
        rest = self.text[end : self.line_end(end)].strip(" `*;")
        if rest and rest != "." and (rest[0] in "([{.+-/|&<>=," or rest.split(" ")[0].casefold() in ("and", "or", "then", "if")):
            raise RefusedError("stray_text", f"The text {excerpt(rest)!r} follows the call of {name!r}.", rest)
        self.decide(make_call(name, value, self.cards, doubtful=doubtful))
        return self.after(end)

    def bracketed(self, name: str, position: int, line: str) -> int:
        """`name[value]` on one line, or with an object in it."""
        inside = self.gap(position)
        if self.text[inside : inside + 1] == "{":
            value = self.value(inside, name)
            end = self.gap(value.end)
            if not self.text.startswith("]", end):
                raise RefusedError("bad_json", f"The input of {name!r} is not closed.", line)
            self.decide(make_call(name, value.value, self.cards, doubtful=value.doubtful))
            return self.after(end + 1)
        body = self.text[position : self.line_end(position)].rstrip(" `*.")
        if not body.endswith("]"):
            raise RefusedError("bad_action", f"The action {excerpt(line)!r} is not closed.", line)
        body = body[:-1]
        if "]" in body.replace("[]", "") and body.count("[") != body.count("]"):
            raise RefusedError("bad_action", f"The action {excerpt(line)!r} has more than one reading.", line)
        self.bare(name, body)
        return self.after(self.line_end(position))

    def input(self, start: int) -> int:
        """Behind the label of an input."""
        if self.action is None and isinstance(self.found, Call):
            return self.input_of(self.found.tool, start)  # the same once more, or another version
        if self.action is None:
            raise RefusedError(
                "bad_action", f"An input without an action: {excerpt(self.text[start:].strip())!r}.{self.usable()}"
            )
        name, self.action = self.action, None
        if is_final_name(name) and find_card(name, self.cards) is None:
            return self.final_input(start)
        return self.input_of(name, start)

    def input_of(self, name: str, start: int) -> int:
        """The input of an action: an object, or bare text for a tool with one parameter."""
        position = self.gap(start)
        sign = self.text[position : position + 1]
        if sign and sign in "{｛":
            return self.given(name, position)
        if sign and sign in "\"'“" and self.text[position + 1 : position + 2] in ("{", "｛"):
            return self.given(name, position)
        event = EVENT.match(self.text, position)
        if event is not None and event.lastgroup == "leak" and position > start:
            self.action = name
            return position
        end = self.bare_end(position)
        fenced = "```" in self.text[start:position]
        body = self.text[position:end].strip()
        if fenced:
            fence = _FENCE_LINE.search(self.text, position, end)
            body = self.text[position : fence.start()].strip() if fence else body.removesuffix("```").strip()
            end = fence.end() if fence else end
        elif "\n" in body:
            line = body.split("\n", 1)[1].strip().split("\n", 1)[0]
            if sign not in "\"'“[［":
                raise RefusedError(
                    "stray_text", f"The line {excerpt(line)!r} follows the input of {name!r} without a label.", line
                )
            return self.given(name, position)
        card = find_card(name, self.cards)
        if not body and card is not None and not card.parameters:
            self.action = name
            self.settle()
        else:
            self.bare(name, body.rstrip("`") if "`" in self.text[start:position] else body)
        return self.after(end)

    def given(self, name: str, position: int) -> int:
        """An input that is a value of JSON."""
        value = self.value(position, name)
        end = skip_surplus(self.text, value.end)
        self.decide(make_call(name, value.value, self.cards, doubtful=value.doubtful))
        return self.after(end)

    def bare(self, name: str, body: str) -> None:
        """An input that is no JSON."""
        card = find_card(name, self.cards)
        if INLINE_LABEL.search(body):
            raise RefusedError("stray_text", f"The input of {name!r} has a label inside it: {excerpt(body)!r}.", body)
        value, doubtful = input_value(body, name, card)
        if value is body and is_program(body) and find_card(body.split("(")[0], self.cards) is not None:
            raise RefusedError("bad_action", f"The input of {name!r} is another call: {excerpt(body)!r}.", body)
        self.decide(make_call(name, value, self.cards, doubtful=doubtful))

    def final_input(self, start: int) -> int:
        """The answer in the input of an action that is called Final Answer: text, or JSON that holds it."""
        position = self.gap(start)
        sign = self.text[position : position + 1]
        if not sign or sign not in '"{“':
            return self.final(start)
        try:
            value = read_value(self.text, position)
        except NotJsonError as error:
            if sign == "{":
                raise RefusedError("bad_json", f"The final answer is not valid JSON: {error}.") from None
            return self.final(start)
        end = self.answer_end(value.end)
        if self.text[value.end : end].strip("`*} \n"):
            return self.final(start)
        self.answer(value.value)
        return self.after(end)

    def final(self, start: int) -> int:
        """The answer behind its label, up to the next label that is not in a code block."""
        end = self.answer_end(start)
        body = self.text[start:end].strip()
        if len(_FENCE_LINE.findall(body)) % 2 and LABEL.search(body):
            raise RefusedError("truncated", "The code block in the final answer is never closed.", body)
        body = _unmarked(body, self.opened)
        if body.casefold().rstrip(".") in ("none", "null", "n/a"):
            raise RefusedError("bad_final", f"The final answer is {body!r}. Give the answer, or say what is missing.")
        if not self.json_answer and self._holds_call(body):
            raise RefusedError("two_decisions", "A call stands in the final answer; give one or the other.", body)
        self.answer(body if self.json_answer else _only_value(body))
        return self.after(end)

    def _holds_call(self, body: str) -> bool:
        """Whether a line of an answer begins a call of a known tool, written as an object."""
        for brace in islice(_LINE_BRACE.finditer(body), MAX_OBJECTS):
            try:
                found = meant(read_value(body, brace.end() - 1).value, self.cards)
            except (NotJsonError, RefusedError):
                continue
            if any(isinstance(one, Asked) and find_card(one.name, self.cards) is not None for one in found):
                return True
        return False

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
            elif event["label"] is None:
                return event.start()
            elif self.ends_answer(event):
                return event.start()
        return len(self.text)

    def ends_answer(self, event: re.Match[str]) -> bool:
        """Whether a label in an answer opens something new: words that anybody may write stay content."""
        kind, word = label_kind(event), event.group().strip(" \t>#*_`-+•:：0123456789.)、").casefold()
        if kind == "input" or (kind == "action" and word in ("tool", "function", "tool name", "工具", "操作")):
            body = self.text[event.end() : self.line_end(event.end())]
            head = _HEAD.match(body)
            return head is not None and find_card(head.group().strip(), self.cards) is not None
        if kind == "turn" and word not in _ASKED and not self._new_turn(event.start(), event.end()):
            raise RefusedError("stray_text", f"It is not clear whether {event.group()!r} belongs to the answer.")
        return True

    def _new_turn(self, start: int, end: int) -> bool:
        """Whether a line that names a person is another turn, and no line of an answer such as `User: admin`."""
        return not self.text[self.text.rfind("\n", 0, max(start - 1, 0)) + 1 : start].strip() or self._decides(end)

    def bare_end(self, start: int) -> int:
        for event in EVENT.finditer(self.text, start):
            if event.lastgroup not in ("brace", "fence") and event.start() > start:
                return event.start()
        return len(self.text)

    # what stands in the open

    def fence(self, event: re.Match[str]) -> int:
        """A code fence: its content is a decision, labelled lines, or code that is none of our business."""
        if self.kind == "after" or self.opened:
            self.opened = False
            return event.end()
        start = self.gap(event.end())
        close = _FENCE_LINE.search(self.text, start)
        end = close.start() if close is not None else len(self.text)
        if self.text[start : start + 1] in ("{", "[", "｛"):
            return start if looks_like_json(self.text, self.text.find("{", start)) else end
        if self.action is None and CALLED.match(self.text, start):
            self.close(event.start())
            self.begin = start
            if (called := self.calls(start, end)) is not None:
                return called
        if self.action is None and self._reads_on(start, end):
            if close is not None and self._decides(close.end()):
                raise RefusedError("two_decisions", "Labels in a code block, and others behind it.", self.text[start:end])
            self.close(event.start())
            self.begin = event.end()
            self.opened = True
            return event.end()
        return close.end() if close is not None else event.end()

    def calls(self, start: int, end: int) -> int | None:
        """Behind `name(…)` where that, or a list of such, is all that stands there; None if no tool is called."""
        call = CALLED.match(self.text, start)
        if call is None or find_card(call.group("name").removesuffix(".call"), self.cards) is None:
            return None
        leaked, last = read_leaks(self.text, start, self.cards)
        behind = _CLOSE.match(self.text, last).end()  # type: ignore[union-attr]  # it matches everywhere
        if behind < end and not self._reads_on(behind, end):
            raise RefusedError("bad_action", "A program is no call of a tool; nothing was run.", self.text[start:end])
        for one in leaked:
            self.means(one.meant, doubtful=one.doubtful)
        return self.after(last)

    def _reads_on(self, start: int, end: int) -> bool:
        event = EVENT.search(self.text, start, end)
        return event is not None and event.lastgroup not in ("brace", "fence")

    def _decides(self, position: int) -> bool:
        if self.last_decision == -1:
            labels = LABEL.finditer(self.text)
            starts = [label.start() for label in labels if label_kind(label) in ("action", "final")]
            self.last_decision = starts[-1] if starts else -2
        return self.last_decision >= position

    def brace(self, start: int) -> int:
        """A brace in the open: a decision, the input of an action that waits for it, or prose."""
        if not looks_like_json(self.text, start):
            return start + 1
        if self.action is not None and not self.text[self.begin : start].strip(" `*\n\tjson"):
            name, self.action = self.action, None
            if is_final_name(name) and find_card(name, self.cards) is None:
                self.action = name
                return self.input(start)
            return self.given(name, start)
        value = self.value(start, "")
        found = meant(value.value, self.cards)
        if not found and is_observation(value.value) and (self.found is not None or not self.thoughts):
            return self.told(start, start)
        decided = [one for one in found if not isinstance(one, Mused)]
        if self.kind == "after" and not decided:
            self.repeated(value)
            return value.end
        if decided:
            self.close(start)
            self.settle()
        for one in found:
            self.means(one, doubtful=value.doubtful)
        return self.after(skip_surplus(self.text, value.end)) if decided else value.end

    def repeated(self, value: Loose) -> None:
        """An object behind a call is its arguments once more, or a second version of them."""
        if isinstance(self.found, Call) and not same(self.found.args, value.value):
            raise RefusedError(
                "two_decisions", f"A second object follows the call of {self.found.tool!r}; nothing was run."
            )

    # the one decision

    def value(self, position: int, name: str) -> Loose:
        try:
            return read_value(self.text, position)
        except NotJsonError as error:
            whose = f"The input of {name!r}" if name else "The JSON object"
            code = "truncated" if error.ended and not name else "bad_json"
            code = "bad_json"
            raise RefusedError(code, f"{whose} is not valid JSON: {error}.{self.usable()}", self.text[position:]) from None

    def answer(self, value: object) -> None:
        """Take an answer, which is a text or a value of JSON."""
        self.decide(answer_text(value, json_answer=self.json_answer))

    def means(self, one: Meant, *, doubtful: bool) -> None:
        """Take what an object or a leaked call says."""
        if one.reason and self.found is None and one.reason not in self.thoughts[-1:]:
            self.thoughts.append(one.reason)
        if isinstance(one, Mused):
            return
        if not isinstance(one, Asked):
            self.answer(one.value)
        elif is_final_name(one.name) and find_card(one.name, self.cards) is None:
            self.answer(one.args)
        else:
            self.decide(make_call(one.name, one.args, self.cards, given=one.given, doubtful=doubtful))

    def settle(self) -> None:
        """An action that got no input of its own is complete here."""
        if self.action is not None:
            name, self.action = self.action, None
            if is_final_name(name) and find_card(name, self.cards) is None:
                raise RefusedError("bad_final", "The final answer is empty. Give the answer, or say what is missing.")
            self.decide(make_call(name, None, self.cards, given=False))

    def decide(self, new: Call | str) -> None:
        """Keep the decision; the same one again is nothing new."""
        self.afterthought = ""
        old = self.found
        if old is None:
            self.found = new
            return
        if isinstance(old, Call) and isinstance(new, Call):
            if old.tool == new.tool and same(old.args, new.args):
                return
            message = f"Two different actions in one reply, {old.tool!r} and {new.tool!r}; nothing was run."
        elif old == new:
            return
        elif isinstance(old, str) and isinstance(new, str):
            message = "Two different final answers in one reply."
        else:
            message = "An action and a final answer in one reply, before the observation was seen; nothing was run."
        raise RefusedError("two_decisions", f"{message} Give exactly one decision.")

    def usable(self) -> str:
        """Which part of the reply was readable."""
        parts = ["the thought"] if self.thoughts else []
        if isinstance(self.found, Call):
            parts.append(f"the call of {self.found.tool!r}")
        elif self.found is not None:
            parts.append("the final answer")
        elif self.action:
            parts.append(f"the action {excerpt(self.action)!r}")
        return f" Usable before it: {' and '.join(parts)}." if parts else ""

    # places in the text

    def after(self, position: int) -> int:
        """Behind a decision; a line there that gives the result of an action can only be invented."""
        self.kind, self.begin = "after", position
        inline = LABEL.match(self.text[position : position + 80].lstrip(" \t.,;"))
        if inline is not None and inline["observation"] is not None:
            found = self.text.find(inline.group(), position)
            self.result = (found, found + len(inline.group()))
        elif self.result[0] == -1 and isinstance(self.found, Call):
            result = RESULT.search(self.text, position)
            self.result = result.span() if result is not None else (-2, -2)
        return position

    def cut(self) -> int:
        """Nothing from an invented result on is believed."""
        start, end = self.result
        self.result = (-2, -2)
        return self.told(start, end)

    def gap(self, position: int) -> int:
        """Behind blanks and an opening fence."""
        return _GAP.match(self.text, position).end()  # type: ignore[union-attr]  # it matches everywhere

    def line_end(self, position: int) -> int:
        end = self.text.find("\n", position)
        return end if end >= 0 else len(self.text)


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0]


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
        return read_value(inner).value if inner.startswith("{") else None
    except NotJsonError:
        return None


def _only_value(body: str) -> object:
    """The value of an answer that is an object with one key and a text; else the text as it is."""
    if body.startswith("{") and body.endswith("}"):
        value = _object_in(body)
        if isinstance(value, dict) and len(value) == 1 and all(isinstance(one, str) for one in value.values()):
            return value
    return body



