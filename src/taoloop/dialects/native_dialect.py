"""The native dialect: tool calls of the provider's API; text without a call is the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import Any

from taoloop.core.cards.coercion import schema_types
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision, Problem, excerpt, new_act, new_call
from taoloop.core.events import ActionRequested, ModelReplied, Observed, ReplyRejected
from taoloop.core.message import Message, ModelReply, ToolCallText, new_message, new_tool_call_text
from taoloop.core.prompts import PromptSet
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.call_arguments import (
    answer_text,
    build_call,
    canonical_args,
    input_shape,
    is_program,
    parse_bare_input,
)
from taoloop.dialects.parsing.cleanup import clean_reply, reject_truncated, strip_end_tokens
from taoloop.dialects.parsing.json_decision import ROLES, is_record, plain_key
from taoloop.dialects.parsing.json_repair import match_end, parse_value, skip_extra_closers, unescape_quotes
from taoloop.dialects.parsing.leaked_calls import parse_leaked_calls
from taoloop.dialects.parsing.lone_calls import (
    CallInWords,
    begins_call,
    find_loose_call,
    hide_code,
    shows_call,
    split_call,
    strip_bullet,
    unwrap_call,
)
from taoloop.dialects.parsing.parse_state import ParseState
from taoloop.dialects.parsing.patterns import (
    ANNOUNCES,
    BEGINS,
    CALL,
    END_TOKENS,
    FOREIGN_TURN,
    INLINE_LABEL,
    LABEL,
    OPENER,
    label_kind,
)
from taoloop.dialects.parsing.placeholders import HTML_TAG, is_never_seen, reject_placeholders
from taoloop.dialects.parsing.reply_parser import parse_reply
from taoloop.dialects.parsing.strict_json import NotJsonError, canonical_json, dumps, json_equal
from taoloop.dialects.parsing.tool_names import resolve_tool_name
from taoloop.dialects.prompt import observation_text, with_written_args
from taoloop.dialects.text_dialect import correction_message, displayed_reply
from taoloop.dialects.texts import ReplyParseError

_LEAK = lazy_pattern(f"{BEGINS}(?:{OPENER}|{FOREIGN_TURN})", re.IGNORECASE)
_STRING_MEMBER = lazy_pattern(r"[\"'“]([^\"'“”\n]{1,40})[\"'”]\s{0,4}[:：]\s{0,4}[\"'“]([^\"'“”\n]{1,140})[\"'”]")
_INVENTED_RESULT = lazy_pattern(
    r"</(?:observation|tool_response|tool_result|tool_output|function_results?|function_response)>\s*[^\s<]"
)
_ONE_OBJECT = lazy_pattern(r"(?:```(?:json)?\s*)?\[?\s*\{.*\}\s*\]?(?:\s*```)?", re.DOTALL | re.IGNORECASE)
_CLOSERS = lazy_pattern(r"(?:\s*+(?:</[\w:]{1,30}>|```))++\s*+")
_NAMING_TAG = lazy_pattern(  # `<function name>`, `<funcname>name<parameter=…>`: no tag that encloses the name alone
    r"<(?:function|tool|call|invoke|action)[ \t]{1,4}([\w.:-]{1,120})[ \t]{0,3}/?>"
    r"|<([\w:-]{1,40})>\s{0,4}([\w.:-]{1,120})\s{0,4}<(?!/\2>)",
    re.IGNORECASE,
)
_IN_TAGS = lazy_pattern(r"<(final[ _]?answer|answer|final|output)>(.*)</\1>", re.IGNORECASE | re.DOTALL)
_STRUCTURE = lazy_pattern(r"[<\[:：(（“\"'「【✿{]|^[ \t]*[>#*+_`•-]", re.MULTILINE)
_CONTROL_MARK = lazy_pattern(r"<[|｜]|[|｜]>|✿")
_TAGS = lazy_pattern(
    r"</?([\w.:-]{1,120})[ \t/>]|=[\"']?([\w.-]{1,120})[\"']?[ \t/]{0,3}>|>\s{0,4}([\w.:-]{1,120})\s{0,4}<"
)
_OBJECT = lazy_pattern(r"\s{0,8}(?:```\w{0,20}\s{0,8})?\{")
_ACTION_RELATION = lazy_pattern(r"[=>–—-]|\bis\b")
_ACTION_PHRASE = lazy_pattern(
    r"^\W{0,8}(?:action|tool|function)(?:[ _]name)?\W{0,3}[ \t]{0,3}(?:[=–—>-]{1,3}|is\b)[ \t]{0,3}"
    r"[`*\"']{0,3}([\w.-]{1,120})",
    re.IGNORECASE | re.MULTILINE,
)
_USER_TURN = lazy_pattern(
    r"^[ \t]*[>*#\[]{0,4}[ \t]?(?:user|human|用户)[*\]]{0,4}[ \t]?[:：]", re.IGNORECASE | re.MULTILINE
)
_ASSISTANT_TURN = lazy_pattern(
    r"^[ \t]*[>*#\[]{0,4}[ \t]?(?:assistant|ai|助手)[*\]]{0,4}[ \t]?[:：]", re.IGNORECASE | re.MULTILINE
)
_NEXT_TURN = lazy_pattern(
    rf"(?:{END_TOKENS})\s{{0,8}}(?:<[|｜](?:im_start|start|start_header_id)[|｜]>|<start_of_turn>|assistant\s{{0,4}}\n)",
    re.IGNORECASE,
)
_TAGGED_END = lazy_pattern(r"(?:^|\s)<(final[ _]?answer|answer)>((?:(?!<\1>).)*)</\1>\Z", re.IGNORECASE | re.DOTALL)
_NO_CALL = lazy_pattern(
    r"\A(?:\[\s{0,8}\]\s{0,8}(?=\n|\Z)|<no_(?:tool|function)_calls?\s{0,4}/?>)|</no_(?:tool|function)_calls?>\Z",
    re.IGNORECASE,
)
_NAMED_LINE = lazy_pattern(r"[`*\"']{0,3}[^\W\d](?:[\w.\\-]){0,120}[`*\"']{0,3}(?:[ \t]{0,2}[:：]|[ \t]*\n)")
_BRACKETED = lazy_pattern(r"[\w.-]{1,120}\[")
_MAX_LABEL_WORDS = 4  # `Tool use: name(…)`
_MAX_TURNS = 50
_OBSERVATION_LINE = lazy_pattern(
    r"^[ \t]*[>*#`\[-]{0,4}[ \t]?(?:observation|观察(?:结果)?|(?:tool|function)[ _](?:result|response|output))"
    r"(?:[ \t]?\d{1,3})?[*`\]]{0,4}[ \t]?[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_IDENTIFIER = lazy_pattern(r"[^\W\d][\w.-]{0,120}")
_EMPTY_FENCE = lazy_pattern(r"```\w{0,20}\s*(?:```)?")
_FENCE = lazy_pattern(r"\A```[\w+-]{0,20}[ \t]*(?=[\s{])")
_LITERAL_WORDS = frozenset({"true", "false", "null", "none", "undefined", "nan", "infinity"})
_MAX_COPIES = 8  # of the same arguments, as a broken accumulator may glue them together
_MAX_RECORD_CHARS, _LEAST_RECORD_CHARS = 20_000, 200  # of an object that may be data, and what one counts for at least
_MAX_READ_CHARS = 200_000  # of all of them
_BEFORE_CALL = lazy_pattern(r"[^`({\[]*+")
_CALL_LINE = lazy_pattern(r"(?:\A|\n)[ \t]*(?:\[[ \t]*)?(?:print\()?([^\W\d][\w.]{0,120})\(")
_LABELLED_NAME = lazy_pattern(r"\s{0,8}[`*\"']*([^\s:：({\[`*\"']{1,120})")


class NativeDialect:
    """One reply may hold several calls; they are one decision."""

    name = "native"
    native = True
    stop: tuple[str, ...] = ()

    def read(
        self,
        reply: ModelReply,
        cards: Sequence[ToolCard],
        *,
        json_answer: bool = False,
        was_seen: Callable[[str], bool] = is_never_seen,
    ) -> Decision | Problem:
        """The calls of a reply, or its text as the answer; a call of a known tool in the text is a call."""
        try:
            decision = self._read(reply, cards, was_seen, json_answer=json_answer)
            if not reply.tool_calls:
                reject_placeholders(decision, cards, was_seen, json_answer=json_answer)
            return decision
        except ReplyParseError as refused:
            return refused.problem

    def _read(
        self, reply: ModelReply, cards: Sequence[ToolCard], was_seen: Callable[[str], bool], *, json_answer: bool
    ) -> Decision:
        reject_truncated(reply)
        text = clean_reply(reply.text) if reply.text else ""
        if reply.tool_calls:
            calls = _parse_calls(reply.tool_calls, cards, was_seen)
            _check_text_agrees(text, calls, cards)
            return new_act(calls=calls, reason=text)
        text = _strip_answer_marks(text, cards, json_answer=json_answer)
        if not text or _EMPTY_FENCE.fullmatch(text):
            raise ReplyParseError("empty", "empty")
        if text[0] != "<":
            has_bracket = "(" in text or "{" in text or "[" in text
            if has_bracket and (act := _parse_lone_call(text, cards)) is not None:
                return act
            if (has_bracket or _NAMED_LINE.match(text) is not None) and (
                act := _parse_loose_call(text, cards)
            ) is not None:
                return act
        if (turn := _find_next_turn(text)) and not _holds_decision(text[:turn], cards):
            text = text[:turn].rstrip()
        elif _holds_decision(hide_code(text, cards), cards, json_answer=json_answer):
            return _parse_text_call(text, cards, json_answer=json_answer)
        return Answer(text=answer_text(_without_next_turn(text), json_answer=json_answer))

    def write(self, decision: Decision) -> ModelReply:
        """Tool calls under the provider's ids, or the answer as text (its reason has no place there)."""
        if isinstance(decision, Answer):
            return ModelReply(text=decision.text)
        calls = tuple(ToolCallText(name=c.tool, arguments=dumps(c.args), id=c.ref) for c in decision.calls)
        return ModelReply(text=decision.reason, tool_calls=calls)

    def echo(self, replied: ModelReplied, requested: Sequence[ActionRequested]) -> Message:
        """The calls under our own ids, which the tool messages refer to; a reply without calls as text."""
        decision = replied.decision
        if isinstance(decision, Answer):
            return Message(role="assistant", content=decision.text)
        if decision is None or not requested:
            return Message(role="assistant", content=displayed_reply(_text_with_calls(replied)))
        calls = tuple(
            [
                new_tool_call_text(name=r.tool, arguments=dumps(with_written_args(r).args), id=r.call_id)
                for r in requested
            ]
        )
        return new_message(role="assistant", content=decision.reason, tool_calls=calls)

    def observation(self, requested: ActionRequested, observed: Observed, prompts: PromptSet, nonce: str) -> Message:
        """The framed observation as a tool message."""
        content = observation_text(requested, observed, prompts, nonce)
        return new_message(role="tool", content=content, tool_call_id=requested.call_id)

    def correction(self, rejected: ReplyRejected, prompts: PromptSet, *, tools: bool, reasons: bool) -> Message:
        """What was wrong, and what is expected."""
        return correction_message(self.name, rejected, prompts, tools=tools, reasons=reasons)


def _strip_answer_marks(text: str, cards: Sequence[ToolCard], *, json_answer: bool) -> str:
    """The answer without what says that it is one: tags around it, words before these, a mark for "no call"."""
    if text[:1] not in ("[", "<") and text[-1:] != ">":
        return text
    tagged = _IN_TAGS.fullmatch(text) or (_TAGGED_END.search(text) if text[-7:].casefold() == "answer>" else None)
    if (
        tagged is not None
        and not _holds_decision(text[: tagged.start()], cards)
        and "```" not in text[: tagged.start()]
    ):
        return tagged[2].strip()
    if (text[:1] == "[" or text[:4].casefold() == "<no_") and not json_answer:
        return _NO_CALL.sub("", text).strip()
    return text


def _parse_lone_call(text: str, cards: Sequence[ToolCard]) -> Act | None:
    """The call that is all of a text, or all but words that announce it; None if the text is something else.

    Raises:
        ReplyParseError: it is a call that cannot be used, or one of a tool that writes between words.
    """
    bare = unwrap_call(text)
    if begins_call(bare, cards):
        return _parse_call_text(CallInWords(bare, ""), cards)
    item = strip_bullet(bare)
    if item is not bare or (bare[:1] == "[" and bare[1:].lstrip()[:1] == "{"):
        try:
            return _parse_call_text(CallInWords(item, ""), cards)
        except ReplyParseError as refused:
            if refused.code == "two_decisions":
                raise
            return None
    split = split_call(hide_code(text, cards), cards) if "(" in text else None
    return None if split is None or split.call in text.split("\n") else _parse_call_text(split, cards)


def _parse_loose_call(text: str, cards: Sequence[ToolCard]) -> Act | None:
    """The call of a tool that reads in a notation that nothing marks as a call; None if there is none.

    Raises:
        ReplyParseError: it is one of a tool that writes, or its arguments are not clear.
    """
    loose_call = find_loose_call(text, cards)
    if loose_call is None:
        return None
    card, args, is_guess, words = loose_call
    if args is None or not card.reads_only:
        raise ReplyParseError("bad_action", "call_in_text", text, tool=card.name)
    return Act(calls=(build_call(card.name, args, cards, is_guess=is_guess),), reason=words)


def _parse_call_text(written: CallInWords, cards: Sequence[ToolCard]) -> Act | None:
    """The call that is written so, if it is one and the words around it leave no doubt."""
    words = written.words
    is_announced = written.is_announced or ANNOUNCES.search(words) is not None
    if words and not is_announced and len(words.split()) > _MAX_LABEL_WORDS:
        return None  # `name(path)` in an explanation
    if _BRACKETED.match(written.call):
        decision = parse_reply(f"Action: {written.call}", cards)
        return decision if isinstance(decision, Act) else None
    leaked_calls, end = parse_leaked_calls(written.call, 0, cards)
    rest = written.call[end:].strip(" \t\r\n`;,]")
    state = ParseState(cards)
    for leaked_call in leaked_calls:
        state.apply(leaked_call.item, is_guess=leaked_call.is_guess)
    if not isinstance(state.decision, Call) or (card := resolve_tool_name(state.decision.tool, cards)) is None:
        return None
    if (second := _called_name(rest, cards)) is not None:
        raise ReplyParseError("two_decisions", "two_actions", written.call, first=card.name, second=second)
    if rest and (not card.reads_only or "(" in rest or ANNOUNCES.search(rest) is None):
        return None
    if words and not (card.reads_only and is_announced):
        raise ReplyParseError("bad_action", "call_in_text", written.call, tool=card.name)
    if (first := _called_name(words, cards)) is not None:
        raise ReplyParseError("two_decisions", "two_actions", written.call, first=first, second=card.name)
    return Act(calls=(state.decision,), reason=words or rest)


def _called_name(text: str, cards: Sequence[ToolCard]) -> str | None:
    """The first name of a known tool in a text that what opens arguments follows."""
    return next((match[1] for match in CALL.finditer(text) if resolve_tool_name(match[1], cards) is not None), None)


def _parse_calls(
    tool_calls: Sequence[ToolCallText], cards: Sequence[ToolCard], was_seen: Callable[[str], bool]
) -> tuple[Call, ...]:
    """The different calls of a reply, each once."""
    if len(tool_calls) == 1:
        return (_parse_call(tool_calls[0], cards, was_seen),)
    calls: dict[tuple[str, str], Call] = {}
    for tool_call in tool_calls:
        call = _parse_call(tool_call, cards, was_seen)
        calls.setdefault((call.tool, canonical_json(call.args)), call)
    return tuple(calls.values())


def _parse_call(tool_call: ToolCallText, cards: Sequence[ToolCard], was_seen: Callable[[str], bool]) -> Call:
    source, name = tool_call.arguments, tool_call.name
    if source.startswith("{"):
        args = canonical_args(name, source, cards)
        if args is not None:
            return new_call(tool=name, args=args, ref=tool_call.id)
    source = strip_end_tokens(source.strip())
    value, is_guess = _parse_bare_argument(name, source, cards) or _parse_arguments(name, source)
    call = build_call(name, value, cards, is_guess=is_guess)
    if not isinstance(call.args, dict):
        raise ReplyParseError(
            "bad_json",
            "input_no_object",
            source,
            tool=name,
            text=excerpt(source),
            form=input_shape(resolve_tool_name(name, cards)),
        )
    call = Call(tool=call.tool, args=call.args, ref=tool_call.id)
    reject_placeholders(Act(calls=(call,)), cards, was_seen, json_answer=False)
    return call


def _parse_arguments(name: str, source: str) -> tuple[Any, bool]:
    """The value of the arguments; the same object several times in a row is one."""
    source = _FENCE.sub("", source, count=1).removesuffix("```").strip()
    if not source or source.casefold() in ("null", "none"):
        return None, False
    try:
        if source.startswith('{\\"'):
            source = unescape_quotes(source)
        parsed = parse_value(source)
        end = skip_extra_closers(source, parsed.end)
        for _ in range(_MAX_COPIES):
            if end >= len(source) or _CLOSERS.fullmatch(source, end):
                end = len(source)
                break
            copy = parse_value(source, end)
            if not isinstance(parsed.value, dict) or not json_equal(copy.value, parsed.value):
                break
            end = skip_extra_closers(source, copy.end)
        if end < len(source):
            raise NotJsonError("json_text_follows", position=end + 1)
    except NotJsonError as error:
        raise ReplyParseError("bad_json", "input_not_json", source, tool=name, error=error.text) from None
    return parsed.value, parsed.is_guess


def _parse_bare_argument(name: str, source: str, cards: Sequence[ToolCard]) -> tuple[Any, bool] | None:
    """Plain words in place of the arguments of a tool that has one text for its only parameter."""
    card = resolve_tool_name(name, cards)
    if card is None or card.sole_parameter is None or not source[:1].isalpha() or "\n" in source:
        return None
    types = schema_types(card.parameters[card.sole_parameter], card.input_schema)
    if (
        "string" not in types
        or source.casefold() in _LITERAL_WORDS
        or INLINE_LABEL.search(source)
        or is_program(source)
    ):
        return None
    return parse_bare_input(source, name, card)


def _check_text_agrees(text: str, calls: tuple[Call, ...], cards: Sequence[ToolCard]) -> None:
    """Refuse a text beside calls that says something else: another call, or a labelled answer.

    Raises:
        ReplyParseError: it does.
    """
    if not text or not _holds_decision(text, cards):
        return
    try:
        decision = parse_reply(text, cards)
    except ReplyParseError as refused:
        if refused.text.name == "no_input" and [refused.text.values["tool"]] == [call.tool for call in calls]:
            return  # a label that names the tool and leaves its arguments to the call
        raise
    if isinstance(decision, Act) and not decision.calls[0].args and decision.calls[0].tool == calls[0].tool:
        return
    if isinstance(decision, Answer) or len(calls) != 1 or not json_equal(decision.calls[0].args, calls[0].args):
        raise ReplyParseError("two_decisions", "text_beside_call", text)


def _parse_text_call(text: str, cards: Sequence[ToolCard], *, json_answer: bool) -> Decision:
    """The decision in a text that holds more than an answer.

    A call between words may be an example in an answer. One of a tool that reads is believed if it is marked as a call
    or ends the text; any other only if it ends the text and is marked, or is all of the text.

    Raises:
        ReplyParseError: no decision in it may be believed.
    """
    decision = parse_reply(text, cards, json_answer=json_answer)
    if isinstance(decision, Answer):
        return decision
    if (result := _INVENTED_RESULT.search(text)) is not None:
        raise ReplyParseError("invented_observation", "invented_result", text, text=result.group())
    card = resolve_tool_name(decision.calls[0].tool, cards)
    is_marked = _LEAK.search(text) is not None or any(label_kind(label) == "action" for label in LABEL.finditer(text))
    is_alone = (
        text.lstrip("`").startswith(("{", "[", "json", "JSON", "tool_code", "python"))
        or _CALL_LINE.match(text) is not None
    )
    ends_text = text.endswith(("}", "]", ")", "`", ">"))
    if not is_marked and not is_alone and shows_call(text[: match_end(_BEFORE_CALL, text, 0)]):
        raise ReplyParseError("bad_action", "call_in_text", text, tool=decision.calls[0].tool)
    if card is None or not ((card.reads_only and (is_marked or ends_text)) or (ends_text and (is_marked or is_alone))):
        raise ReplyParseError("bad_action", "call_in_text", text, tool=decision.calls[0].tool)
    return decision


def _holds_decision(text: str, cards: Sequence[ToolCard], *, json_answer: bool = False) -> bool:
    """Whether a text holds more than an answer: a label of a decision, or a call of a known tool."""
    if _STRUCTURE.search(text) is None:
        return False
    if ("<" in text or "[" in text or ">>>" in text) and _LEAK.search(text):
        return True
    if _has_marked_tool_name(text, cards):
        return True
    for label in LABEL.finditer(text):
        if _is_decision_label(label, cards):
            return True
    if ":" in text or "：" in text:
        for line in islice(_OBSERVATION_LINE.finditer(text), _MAX_TURNS):
            if not _in_fence(text, line.start()):
                return True
    return _names_known_tool(text, cards, json_answer=json_answer) or (
        "tool_code" in text[:40]
        or text[:7].casefold() == "finish["
        or ("{" in text and _ONE_OBJECT.fullmatch(text) is not None and _is_call_object(text, cards))
    )


def _names_known_tool(text: str, cards: Sequence[ToolCard], *, json_answer: bool) -> bool:
    """Whether a line calls a known tool, a phrase names it as the action, or a member of an object does."""
    matches = chain(
        _CALL_LINE.finditer(text) if "(" in text else (),
        _ACTION_PHRASE.finditer(text) if _ACTION_RELATION.search(text) else (),
    )
    for match in matches:
        if resolve_tool_name(match.group(1), cards) is not None:
            return True
    if '"' in text or "'" in text or "“" in text:
        records = _Records(text, json_answer=json_answer)
        for match in _STRING_MEMBER.finditer(text):
            if plain_key(match.group(1)) not in ROLES["tool"]:
                continue
            card = resolve_tool_name(match.group(2), cards)
            if card is not None and not records.has(match, card):
                return True
    return False


class _Records:
    """The objects of data in a text that name a tool and, like all of the text, give no arguments."""

    def __init__(self, text: str, *, json_answer: bool) -> None:
        self._text, self._json_answer = text, json_answer
        self._remaining = _MAX_READ_CHARS

    def has(self, member: re.Match[str], card: ToolCard) -> bool:
        """Whether the object with a member that names a tool is one; False as well if that takes too long to tell."""
        if any(f'"{parameter}"' in self._text for parameter in card.parameters):
            return False
        value = self._enclosing_object(member)
        return is_record(value, member.group(1), card, json_answer=self._json_answer)

    def _enclosing_object(self, member: re.Match[str]) -> Any:
        brace = member.start()
        while (brace := self._text.rfind("{", 0, brace)) >= 0 and self._remaining > 0:
            self._remaining -= max(member.end() - brace, _LEAST_RECORD_CHARS)
            try:
                parsed = parse_value(self._text[brace : brace + _MAX_RECORD_CHARS])
            except NotJsonError:
                break
            if brace + parsed.end > member.start():
                return parsed.value
        return None


def _is_decision_label(label: re.Match[str], cards: Sequence[ToolCard]) -> bool:
    """Whether a label can only be that of a decision, or begins a text as no answer does."""
    kind, text = label_kind(label), label.string
    if kind == "final":
        return any(word in label.group().casefold() for word in ("final", "最终", "最終"))
    if kind == "action":
        head = _LABELLED_NAME.match(text, label.end())
        return head is not None and resolve_tool_name(head.group(1), cards) is not None
    if kind == "input":
        return _OBJECT.match(text, label.end()) is not None
    if kind == "observation" and not label.group().rstrip("*_` ").endswith((":", "：", "】", ">")):
        return False  # the heading of a report
    return label.start() == 0 and (kind in ("observation", "thought") or _USER_TURN.match(text) is not None)


def _find_next_turn(text: str) -> int:
    """Where another party's turn begins after an answer; 0 if none does.

    Raises:
        ReplyParseError: it is not clear whether a line is such a turn, or one of the answer.
    """
    if ":" not in text and "：" not in text:
        return 0
    for turn in islice(_USER_TURN.finditer(text), _MAX_TURNS):
        start = turn.start()
        if not start or _in_fence(text, start) or text[:start].rstrip().endswith((":", "：")):
            continue  # a colon announces what belongs to the answer
        if text[:start].endswith("\n\n") or _ASSISTANT_TURN.search(text, turn.end()):
            return start
        if "human" in turn.group().casefold():
            raise ReplyParseError("stray_text", "unclear_turn", text, text=turn.group())
    return 0


def _without_next_turn(text: str) -> str:
    """An answer up to the token that ended its turn, if the model went on with another one."""
    token = _NEXT_TURN.search(text) if "<" in text else None
    if token is None or "<|" in text[: token.start()] or _in_fence(text, token.start()):
        return text  # none, or an answer about such tokens
    return text[: token.start()].rstrip() or text


def _in_fence(text: str, position: int) -> bool:
    """Whether a position is in a code block."""
    return text.count("```", 0, position) % 2 > 0


def _has_marked_tool_name(text: str, cards: Sequence[ToolCard]) -> bool:
    """Whether control tokens or tags enclose the name of a known tool: a call in an unknown notation."""
    if ("|" in text or "｜" in text or "✿" in text) and _CONTROL_MARK.search(text):
        names = {card.name.casefold() for card in cards}
        words = (word.group().casefold() for word in _IDENTIFIER.finditer(text))
        return "✿" in text or any(word in names or word.rpartition(".")[2] in names for word in words)
    if "<" not in text:
        return False
    naming_tags = (match for match in _NAMING_TAG.finditer(text) if not HTML_TAG.fullmatch(match[2] or ""))
    matches = chain(_TAGS.finditer(text), naming_tags)
    tagged_names = (match.group(match.lastindex or 0) for match in matches)
    return any(not HTML_TAG.fullmatch(name) and resolve_tool_name(name, cards) is not None for name in tagged_names)


def _is_call_object(text: str, cards: Sequence[ToolCard]) -> bool:
    """Whether a text that is one object has the shape of a call, be its tool known or not."""
    try:
        value = parse_value(text, text.index("{")).value
    except NotJsonError:
        return False
    for _ in range(2):
        if isinstance(value, dict) and len(value) == 1:
            ((key, value),) = value.items()
            if isinstance(value, dict) and resolve_tool_name(key, cards) is not None:
                return True
    roles = {plain_key(key) for key in value} if isinstance(value, dict) else set()
    return bool(roles & ROLES["tool"] and roles & ROLES["args"])


def _text_with_calls(replied: ModelReplied) -> str:
    lines = [replied.text] if replied.text else []
    lines += [f"[tool call] {call.name} {call.arguments}" for call in replied.tool_calls]
    return "\n".join(lines)
