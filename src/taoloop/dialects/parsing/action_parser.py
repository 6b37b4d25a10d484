"""Reading an action: its name, and its input in whatever notation it is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from taoloop.core.decision import Call, excerpt
from taoloop.dialects.parsing.answer_parser import AnswerReader
from taoloop.dialects.parsing.call_arguments import (
    build_call,
    is_program,
    parse_bare_input,
    parse_call_arguments,
    parse_key_lines,
    parse_keyword_arguments,
)
from taoloop.dialects.parsing.cleanup import END_TOKEN
from taoloop.dialects.parsing.json_decision import ParsedThought, parse_decision_object
from taoloop.dialects.parsing.json_repair import looks_like_json, match_end, parse_value, skip_extra_closers
from taoloop.dialects.parsing.labels import INLINE_INPUT, INLINE_LABEL, LABEL
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.patterns import ANNOUNCED, EVENT, FENCE_LINE, LINE_HEAD, OBJECT, WRAPPED_JSON
from taoloop.dialects.parsing.placeholders import is_placeholder
from taoloop.dialects.parsing.strict_json import NotJsonError
from taoloop.dialects.parsing.tool_names import is_final_name, is_placeholder_name, resolve_tool_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards.tool_card import ToolCard


_INPUT_CLOSE = re.compile(r"</(?:(?:tool|action)[ _]?input|input|args|arguments|parameters)>", re.IGNORECASE)


class ActionReader(AnswerReader):
    """The part of the reader that takes actions and their inputs."""

    def act(self, start: int) -> int:
        """Behind the label of an action: an object, or a name with or without its input."""
        position = self.skip_whitespace(start)
        self.opened = self.opened or "```" in self.text[start:position]
        if OBJECT.match(self.text, position):
            value = self.value(position, "action")
            found = parse_decision_object(value.value, self.cards)
            if not found or all(isinstance(one, ParsedThought) for one in found):
                raise ReplyParseError(
                    "bad_action", f"The action {excerpt(self.text[position : value.end])!r} names no tool."
                )
            for one in found:
                self.apply(one, doubtful=value.is_guess)
            return self.mark_decision_end(skip_extra_closers(self.text, value.end))
        leak = EVENT.match(self.text, position)
        if leak is not None and leak.lastgroup == "leak":
            return position
        if leak is not None or position >= len(self.text) or LABEL.match(self.text, position):
            raise ReplyParseError("bad_action", f"The action '' names no tool.{self.describe_readable()}")
        return self.action_name(position)

    def action_name(self, start: int) -> int:
        """A name on one line, with what stands behind it."""
        end = self.line_end(start)
        line = self.text[start:end].rstrip()
        if "</" in line and (inline := INLINE_INPUT.search(line)) is not None:
            self.action = line[: inline.start()]
            return self.input(start + inline.end())
        card = resolve_tool_name(line, self.cards) if line[-1:] not in "([{（｛:：" else None
        stop = END_TOKEN.search(self.text, start, end)
        if stop is not None and card is None:
            end = stop.start()
            line = self.text[start:end].rstrip()
        if card is not None or (is_final_name(line) and not is_placeholder_name(line)):
            return self.wait(card.name if card is not None else line, end)
        inline = INLINE_INPUT.search(line)
        if inline is not None and not any(sign in line[: inline.start()] for sign in "{(["):
            self.action = line[: inline.start()]
            return self.input(start + inline.end())
        return self.named_with_input(start, line, end)

    def named_with_input(self, start: int, line: str, end: int) -> int:
        """A name that is followed by its input in brackets or behind a colon."""
        head = line[: match_end(LINE_HEAD, line, 0)]
        name, sign = head.strip(" `*\"'"), line[len(head) : len(head) + 1]
        if is_placeholder_name(name) or is_placeholder(name):
            raise ReplyParseError("bad_action", f"The action {excerpt(line)!r} names no tool.", line)
        behind = start + len(head) + 1
        if resolve_tool_name(name, self.cards) is None and is_final_name(name):
            return self.finish(sign, behind)
        if sign == "":
            return self.wait(line, end)
        if sign in "(（":
            return self.function_call(name, behind, line)
        if sign in "{｛":
            return self.input_of(name, behind - 1)
        if sign == "[":
            return self.bracketed(name, behind, line)
        if not line[len(head) + 1 :].strip(" *`"):
            raise ReplyParseError("bad_action", f"The action {excerpt(line)!r} has an empty input.", line)
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
            raise ReplyParseError("bad_final", f"The final answer {excerpt(body)!r} does not end.", body)
        inner = body[:-1].strip()
        if sign != "[":
            try:
                value, last, doubtful = parse_call_arguments(inner + ")", 0, None)
            except NotJsonError as error:
                raise ReplyParseError("bad_final", f"The final answer cannot be read: {error}.", body) from None
            if last != len(inner) + 1 or doubtful:
                raise ReplyParseError("bad_final", "The final answer cannot be read.", body)
            self.answer(value)
        else:
            self.answer(inner)
        return self.mark_decision_end(end)

    def function_call(self, name: str, position: int, line: str) -> int:
        """`name(…)`."""
        card = resolve_tool_name(name, self.cards)
        try:
            value, end, doubtful = parse_call_arguments(self.text, position, card)
        except NotJsonError as error:
            raise ReplyParseError(
                "bad_json", f"The arguments in {excerpt(line)!r} cannot be read: {error}.", line
            ) from None
        if value == {} and self.text[position:end].strip(" )）\n") == "":
            return self.wait(name, end)  # `name()`: its input may still follow
        rest = self.text[end : self.line_end(end)].strip(" `*;")
        if (
            rest
            and rest != "."
            and (rest[0] in "([{.+-/|&<>=," or rest.split(" ")[0].casefold() in ("and", "or", "then", "if"))
        ):
            raise ReplyParseError("stray_text", f"The text {excerpt(rest)!r} follows the call of {name!r}.", rest)
        self.decide(build_call(name, value, self.cards, is_guess=doubtful))
        return self.mark_decision_end(end)

    def bracketed(self, name: str, position: int, line: str) -> int:
        """`name[value]` on one line, or with an object in it."""
        inside = self.skip_whitespace(position)
        if self.text[inside : inside + 1] == "{":
            value = self.value(inside, name)
            end = self.skip_whitespace(value.end)
            if not self.text.startswith("]", end):
                raise ReplyParseError("bad_json", f"The input of {name!r} is not closed.", line)
            self.decide(build_call(name, value.value, self.cards, is_guess=value.is_guess))
            return self.mark_decision_end(end + 1)
        body = self.text[position : self.line_end(position)].rstrip(" `*.")
        if not body.endswith("]"):
            raise ReplyParseError("bad_action", f"The action {excerpt(line)!r} is not closed.", line)
        body = body[:-1]
        if "]" in body.replace("[]", "") and body.count("[") != body.count("]"):
            raise ReplyParseError("bad_action", f"The action {excerpt(line)!r} has more than one reading.", line)
        self.text_input(name, body)
        return self.mark_decision_end(self.line_end(position))

    def input(self, start: int) -> int:
        """Behind the label of an input."""
        if self.action is None and isinstance(self.found, Call):
            return self.input_of(self.found.tool, start)  # the same once more, or another version
        if self.action is None:
            raise ReplyParseError(
                "bad_action",
                f"An input without an action: {excerpt(self.text[start:].strip())!r}.{self.describe_readable()}",
            )
        name, self.action = self.action, None
        if is_final_name(name) and resolve_tool_name(name, self.cards) is None:
            return self.final_input(start)
        return self.tagged_input(name, start) if self.text[start - 1 : start] == ">" else self.input_of(name, start)

    def input_of(self, name: str, start: int) -> int:
        """The input of an action: an object, or bare text for a tool with one parameter."""
        position = self.skip_whitespace(start)
        sign = self.text[position : position + 1]
        if sign and sign in "{｛":
            return self.json_input(name, position)
        if sign and sign in "\"'“" and self.text[position + 1 : position + 2] in ("{", "｛"):
            return self.json_input(name, position)
        event = EVENT.match(self.text, position)
        if event is not None and event.lastgroup == "leak" and position > start:
            self.action = name
            return position
        if sign and sign in "[［" and OBJECT.match(self.text, position):
            return self.json_input(name, position)
        if (inside := self.announced_object(name, position)) is not None:
            return self.json_input(name, inside)
        end = position if event is not None and event.lastgroup not in ("brace", "fence") else self.bare_end(position)
        fenced = "```" in self.text[start:position]
        body = self.text[position:end].strip()
        if fenced:
            fence = FENCE_LINE.search(self.text, position, end)
            body = self.text[position : fence.start()].strip() if fence else body.removesuffix("```").strip()
            end = fence.end() if fence else end
        card = resolve_tool_name(name, self.cards)
        if "\n" in body and (named := parse_key_lines(body, card, at_end=end >= len(self.text))) is not None:
            self.decide(build_call(name, named, self.cards))
            return self.mark_decision_end(end)
        if not fenced and "\n" in body:
            line = body.split("\n", 1)[1].strip().split("\n", 1)[0]
            if sign not in "\"'“[［":
                raise ReplyParseError(
                    "stray_text", f"The line {excerpt(line)!r} follows the input of {name!r} without a label.", line
                )
            return self.json_input(name, position)
        if not body and card is not None and not card.parameters:
            self.action = name
            self.finish_pending_action()
        else:
            self.text_input(name, body.rstrip("`") if "`" in self.text[start:position] else body)
        return self.mark_decision_end(end)

    def tagged_input(self, name: str, start: int) -> int:
        """An input in tags: an object, or bare text."""
        position = self.skip_whitespace(start)
        if self.text[position : position + 1] in ("{", "｛"):
            return self.json_input(name, position)
        close = _INPUT_CLOSE.search(self.text, start)
        if close is None:
            raise ReplyParseError("truncated", f"The input of {name!r} is never closed.", self.text[start:])
        body = self.text[start : close.start()].strip()
        if LABEL.search(body) or "<" in body or "\n" in body:
            raise ReplyParseError("stray_text", f"The input of {name!r} is not clear: {excerpt(body)!r}.", body)
        self.text_input(name, body)
        return self.mark_decision_end(close.end())

    def announced_object(self, name: str, position: int) -> int | None:
        """Where the object begins that a line of words announces, as in `Here is the JSON: {…}`; None if none is.

        Raises:
            ReplyParseError: the words and the object might be the text of the tool's only argument.
        """
        enclosed = WRAPPED_JSON.match(self.text, position)
        told = enclosed or ANNOUNCED.match(self.text, position)
        card = resolve_tool_name(name, self.cards)
        if told is None or card is None or (enclosed is None and told["word"] in card.parameters):
            return None
        inside = self.skip_whitespace(told.end())
        if not self.text.startswith(("{", "｛"), inside):
            return None
        value = self.value(inside, name).value
        if not isinstance(value, dict) or not all(key in card.parameters for key in value) or not value:
            return None
        if card.sole_parameter is not None and not card.reads_only and enclosed is None:
            raise ReplyParseError("bad_action", f"The input of {name!r} has more than one reading.", told.group())
        return inside

    def json_input(self, name: str, position: int) -> int:
        """An input that is a value of JSON."""
        value = self.value(position, name)
        end = skip_extra_closers(self.text, value.end)
        self.decide(build_call(name, value.value, self.cards, is_guess=value.is_guess))
        return self.mark_decision_end(end)

    def text_input(self, name: str, body: str) -> None:
        """An input that is no JSON."""
        card = resolve_tool_name(name, self.cards)
        if INLINE_LABEL.search(body):
            raise ReplyParseError(
                "stray_text", f"The input of {name!r} has a label inside it: {excerpt(body)!r}.", body
            )
        if card is not None and _holds_arguments(body, card):
            raise ReplyParseError(
                "bad_action", f"The input of {name!r} has more than one reading: {excerpt(body)!r}.", body
            )
        value, doubtful = _same_call(body, card, self.cards) or parse_bare_input(body, name, card)
        if (
            value is body
            and is_program(body)
            and resolve_tool_name(body.split("(", maxsplit=1)[0], self.cards) is not None
        ):
            raise ReplyParseError("bad_action", f"The input of {name!r} is another call: {excerpt(body)!r}.", body)
        self.decide(build_call(name, value, self.cards, is_guess=doubtful))

    def bare_end(self, start: int) -> int:
        for event in EVENT.finditer(self.text, start):
            if event.lastgroup not in ("brace", "fence") and event.start() > start:
                return event.start()
        return len(self.text)


def _holds_arguments(body: str, card: ToolCard) -> bool:
    """Whether an object with the tool's own arguments stands in a text that is more than that object."""
    brace = body.find("{")
    if brace <= 0 or body[0] in "[\"'“" or not looks_like_json(body, brace):
        return False
    try:
        value = parse_value(body, brace).value
    except NotJsonError:
        return False
    return isinstance(value, dict) and any(key in card.parameters for key in value)


def _same_call(body: str, card: ToolCard | None, cards: Sequence[ToolCard]) -> tuple[Any, bool] | None:
    """The named arguments in an input that calls its own tool once more: `search(q="a")`; None for anything else."""
    name, bracket, rest = body.partition("(")
    if card is None or not bracket or not body.endswith(")") or resolve_tool_name(name, cards) is not card:
        return None
    try:
        args, end, doubtful = parse_keyword_arguments(rest, 0)
    except NotJsonError:
        return None
    named = bool(args) and end == len(rest) and all(key in card.parameters for key in args)
    return (args, doubtful) if named else None
