"""A call in the text of a native reply: what is left once everything around it is taken off, and what belongs to it.

A model that should use the calls of the API writes one into the text instead: in a fence or back-ticks, in a list or a
string, with a semicolon, with words that announce it. `unwrap_call` takes off what encloses a text, `split_call` the
words before or behind one call. `find_loose_call` knows a call by its tool and arguments where no notation marks it.
Code in an answer is something else: `hide_code` covers the blocks that only show it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from taoloop.core.cards.coercion import schema_types
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.json_repair import parse_value
from taoloop.dialects.parsing.patterns import ANNOUNCES, BEGINS, FOREIGN_TURN, LABEL, MAX_OBJECTS, OPENER
from taoloop.dialects.parsing.strict_json import NotJsonError
from taoloop.dialects.parsing.tool_names import resolve_tool_name

_FENCE = lazy_pattern(r"```(?:[\w+-]{0,20}[ \t]*\n|(?:json|python|tool_code)\b)?(?P<code>(?:(?!```).)*)```", re.DOTALL)
_QUOTED = lazy_pattern(r"\[\s*(?P<quote>[\"'])(?P<call>[^\n]*)(?P=quote)\s*,?\s*\]")
_BLOCK = lazy_pattern(r"^```[\w+-]{0,20}[ \t]*\n(?P<code>.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_NAME = r"[^\W\d](?:[\w.]|\\_|-(?=\w)){0,120}"
_HEAD = lazy_pattern(rf"\[?\s*(?:\w{{1,60}}\s*=\s*)?(?:await\s+)?(?:print\()?(?P<name>{_NAME})(?:[(\[]|\s*\{{)")
_ESCAPED = lazy_pattern(r"\\_(?=(?:\w|\\_)*\s*[(={])")
_VERB = (
    r"(?:\b(?:call|use|invoke|run|execute|calling|using|invoking|running|executing)[ \t]+|(?:调用|使用|执行)[ \t]*)"
    r"(?:the[ \t]+)?(?:(?:tool|function)[ \t]+|工具[ \t]*)?"
)
_LAST_HEAD = lazy_pattern(
    rf"(?:^|[:：][*_]{{0,2}}[ \t]*|(?P<verb>{_VERB}))[`\[]*(?P<name>{_NAME})\(", re.MULTILINE | re.IGNORECASE
)
_NAME_LINE = lazy_pattern(
    rf"\A[`*]*(?P<name>{_NAME})[`*]*\s*(?:[:：]?\s*(?:```(?:json)?\s*)?(?=\{{)|(?=\(.*\)\Z))", re.DOTALL
)
_BULLET = lazy_pattern(r"(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_INLINE_MARK = lazy_pattern(r"(?<=\S)[ \t]`(?P<code><[^`\n]{1,200})`(?=[ \t]?[^\s`])")
_DEFINITION = lazy_pattern(
    r"^[ \t]*(?:async |export |public )*(?:def|class|function|fn|func|interface|import)\b", re.MULTILINE
)
_CALL_START = lazy_pattern(rf"\s*(?:[\[{{｛]|{BEGINS}(?:{OPENER}|{FOREIGN_TURN}))", re.IGNORECASE)
_PAIR = lazy_pattern(rf"[\[(\s]*(?P<quote>[\"'`]?)(?P<name>{_NAME})(?P=quote)\s*,\s*(?=\{{)")
_NAME_VALUE = lazy_pattern(
    rf"[`*]*(?P<name>{_NAME})[`*]*(?:[ \t]{{0,2}}:[`*]*[ \t]|[`*]*[ \t]{{0,2}}：)[ \t]*(?P<value>\S[^\n]*)"
)
_FIRST_MEMBER = lazy_pattern(r"[\"']?(?P<name>\w{1,60})[\"']?\s*[=:：]")
_NAME_LINES = lazy_pattern(rf"[`*]*(?P<name>{_NAME})[`*]*[ \t]{{0,2}}[:：]?[`*]*[ \t]*\n(?P<lines>.+)", re.DOTALL)
_OPEN_FENCE = lazy_pattern(r"`{1,3}(?:json)?\s*\Z", re.IGNORECASE)
_WORD = lazy_pattern(r"[^\W\d](?:[\w.-]{0,120}\w)?", re.ASCII)
_PARTS = lazy_pattern(r"[!?。！？\n]|\.(?=\s|\Z)")
_CALLING = lazy_pattern(
    r"\b(?:calling|using|invoking|running|executing|i (?:call|use|invoke|run|execute)"
    r"|i \w{2,15}(?: \w{1,15}){0,3} now)\b"
    r"|\A\W{0,4}(?:call|use|invoke|run|execute|tool|function)\W{1,4}(?:\w{1,20}\W{1,4}){0,2}[\w.-]{1,120}\W{0,4}\Z"
    r"|(?:我|现在|开始|下面|接着)(?:调用|使用|执行)(?!了|过)",
    re.IGNORECASE,
)
_CALL_VERB = lazy_pattern(r"\b(?:call|use|invoke|run|execute)\b|调用|使用", re.IGNORECASE)
_TELLS = lazy_pattern(
    r"\b(?:takes|needs|expects|requires|accepts|returns|returned|would|could|can be|means|looks like|never|not"
    r"|don['’]t|won['’]t)\b|返回了|不要|不会|不能",
    re.IGNORECASE,
)
_OTHERS = lazy_pattern(r"\b(?:you|your|users?|we|they|if|by|when|after)\b|你|您|用户|可以|如果", re.IGNORECASE)
_SHOWS = lazy_pattern(
    r"\b(?:examples?|e\.g|for instance|format|schema|explain|describe|document(?:ation)?|show you)\b"
    r"|例如|比如|示例|格式|说明|解释",
    re.IGNORECASE,
)
_MARKS = " \t\r\n`;,"
_MAX_WRAPPERS = 4


def strip_bullet(text: str) -> str:
    """`text` without the mark of a list at its beginning."""
    bullet = _BULLET.match(text)
    return text if bullet is None else text[bullet.end() :]


class CallInWords(NamedTuple):
    """One call, and the words before or behind it."""

    call: str
    """The text of the call."""
    words: str
    """The words; empty if there are none."""
    is_announced: bool = False
    """Whether the sentence that the call ends says that it is made now."""


def unwrap_call(text: str) -> str:
    """`text` without what may enclose a call: a fence, back-ticks, a list of one string, a semicolon or a comma.

    Blanks and marks between a name and its arguments are taken out as well.
    """
    for _ in range(_MAX_WRAPPERS):
        bare = text.strip(" \t\r\n;,")
        if (fence := _FENCE.fullmatch(bare)) is not None:
            bare = fence["code"]
        elif "```" not in bare:
            bare = bare.strip(_MARKS)
        if (quoted := _QUOTED.fullmatch(bare)) is not None:
            bare = quoted["call"]
        elif bare[:1] in ("'", '"') and bare[:1] == bare[-1:]:
            bare = bare[1:-1]
        if bare == text:
            break
        text = bare
    text = _ESCAPED.sub("_", text) if "\\_" in text else text
    return _NAME_LINE.sub(r"\g<name>", text, count=1)


def begins_call(text: str, cards: Sequence[ToolCard]) -> bool:
    """Whether a text begins with the name of a known tool and what opens its arguments."""
    head = _HEAD.match(text)
    return head is not None and resolve_tool_name(head["name"], cards) is not None


def split_call(text: str, cards: Sequence[ToolCard]) -> CallInWords | None:
    """The call of a known tool that ends the last line of a text; None if there is none.

    It is alone, behind a colon, or the object of a sentence such as `I will call name(…).`
    """
    text = text.rstrip(_MARKS + "]")
    for head in islice(_LAST_HEAD.finditer(text, text.rfind("\n") + 1), MAX_OBJECTS):
        if resolve_tool_name(head["name"], cards) is None:
            continue
        start = head.start("name")
        words = text[:start].rstrip(" \t\r\n`[:：")
        if head["verb"] is None:
            return CallInWords(text[start:], words)
        return CallInWords(text[start:].rstrip(_MARKS + ".。!！"), words, True) if _says_now(words) else None
    return None


def _says_now(words: str) -> bool:
    """Whether the last sentence of a text says that the model itself calls a tool now."""
    sentence = _PARTS.split(words)[-1]
    is_announcing = ANNOUNCES.search(sentence) is not None or _CALLING.search(sentence) is not None
    return is_announcing and not any(other.search(sentence) for other in (_TELLS, _SHOWS, _OTHERS))


def shows_call(words: str) -> bool:
    """Whether words around a call say that it is an example, and not that it is made."""
    return _SHOWS.search(words) is not None and ANNOUNCES.search(words) is None


def hide_code(text: str, cards: Sequence[ToolCard]) -> str:
    """`text` without the code blocks that an answer only shows.

    Such a block has words around it that announce no action, or defines something. If it is a call and nothing else,
    there must be words on both sides of it: the answer goes on. Inside a line, a tag in back-ticks is shown as well,
    unless it names a tool.
    """
    if "`<" in text:
        text = _INLINE_MARK.sub(lambda match: " " if not _named_cards([match["code"]], cards) else match.group(), text)
    blocks = list(islice(_BLOCK.finditer(text), MAX_OBJECTS)) if "```" in text else []
    if not blocks:
        return text
    words = _BLOCK.sub("", text)
    has_words, announces = bool(words.strip()), ANNOUNCES.search(words) is not None
    has_words_before = bool(text[: blocks[0].start()].strip())
    parts: list[str] = []
    position = 0
    for block in blocks:
        code = block["code"]
        is_marked = _CALL_START.match(code) is not None
        is_call = is_marked or LABEL.match(code) is not None or begins_call(code.lstrip(), cards)
        if is_call:
            is_content = not is_marked and not announces and has_words_before and block.end() < len(text)
        else:
            is_content = has_words and (not announces or _DEFINITION.search(code) is not None)
        if is_content:
            parts.append(text[position : block.start()])
            position = block.end()
    return "".join([*parts, text[position:]])


class LooseCall(NamedTuple):
    """A call that nothing but its tool and its arguments shows to be one."""

    card: ToolCard
    """The tool."""
    args: Any
    """What was written as its arguments; None where they cannot be told from the rest."""
    is_guess: bool = False
    """Whether brackets or quotes of the arguments had to be repaired."""
    words: str = ""
    """The words before it."""


def find_loose_call(text: str, cards: Sequence[ToolCard]) -> LooseCall | None:
    """The call of a known tool that a text is, or that ends it; None if the text is an answer.

    Its notations: the name and an object as a pair, `("read_file", {…})`; the name, a colon and the value of the only
    parameter, `read_file: /etc/hosts`; the name and a line for each argument; and the object of the arguments behind
    words that announce a call of the tool by its name.
    """
    bare = unwrap_call(text)
    pair = _PAIR.match(bare)
    if pair is not None and (card := resolve_tool_name(pair["name"], cards)) is not None:
        return _read_pair(bare, pair.end(), card, cards)
    line = _NAME_VALUE.fullmatch(bare)
    if line is not None and (card := _exact_card(line["name"], cards)) is not None:
        return _read_value(line["value"].rstrip("`* "), card)
    lines = _NAME_LINES.fullmatch(bare)
    if lines is not None and (card := _exact_card(lines["name"], cards)) is not None:
        return LooseCall(card, None) if _are_arguments(lines["lines"], card) else None
    return _read_announced(text, cards) if "{" in text else None


def _exact_card(name: str, cards: Sequence[ToolCard]) -> ToolCard | None:
    name = name.replace("\\_", "_")
    return next((card for card in cards if card.name == name), None)


def _are_arguments(lines: str, card: ToolCard) -> bool:
    """Whether each line gives a value to a parameter of the tool."""
    matches = [_FIRST_MEMBER.match(line.strip()) for line in lines.splitlines() if line.strip()]
    return all(match is not None and match["name"] in card.parameters for match in matches)


def _read_pair(text: str, position: int, card: ToolCard, cards: Sequence[ToolCard]) -> LooseCall | None:
    try:
        parsed = parse_value(text, position)
    except NotJsonError:
        return LooseCall(card, None)
    rest = text[parsed.end :].strip(" \t\r\n)],;`")
    if not rest:
        return LooseCall(card, parsed.value, parsed.is_guess)
    second = _PAIR.match(rest)  # else the text goes on about the pair
    return None if second is None or resolve_tool_name(second["name"], cards) is None else LooseCall(card, None)


def _read_value(value: str, card: ToolCard) -> LooseCall | None:
    """The call in `name: value`; a sentence behind the name of a tool is one about it."""
    first = _FIRST_MEMBER.match(value)
    if first is not None and first["name"] in card.parameters:
        return LooseCall(card, None)
    sole = card.sole_parameter
    has_blank = any(char.isspace() for char in value)
    is_sentence = value.endswith(("。", "！", "？")) or (has_blank and value.endswith((".", "!", "?")))
    if sole is None or is_sentence:
        return None
    types = schema_types(card.parameters[sole], card.input_schema)
    if "string" not in types:
        return LooseCall(card, None) if value.isdigit() and types & {"integer", "number"} else None
    is_value = not has_blank and value[0] not in "\"'“[({<"
    return LooseCall(card, {sole: value} if is_value else None)


def _read_announced(text: str, cards: Sequence[ToolCard]) -> LooseCall | None:
    """The call in words such as `Now I call read_file.` and the object of its arguments behind them."""
    start = text.find("{")
    words = _OPEN_FENCE.sub("", text[:start].rstrip()).strip()
    if not words or _SHOWS.search(words) is not None:
        return None
    named_cards = _announced_cards(words, cards)
    if len(named_cards) != 1:
        return None
    card = named_cards[0]
    try:
        parsed = parse_value(text, start)
    except NotJsonError:
        first = _FIRST_MEMBER.match(text[start + 1 :].lstrip())
        return None if first is None or first["name"] not in card.parameters else LooseCall(card, None)
    args = parsed.value
    if (
        not isinstance(args, dict)
        or text[parsed.end :].strip(_MARKS)
        or not any(key in card.parameters for key in args)
    ):
        return None
    fits = all(key in card.parameters for key in args) and all(key in args for key in card.required)
    return LooseCall(card, args if fits else None, parsed.is_guess, words)


def _announced_cards(words: str, cards: Sequence[ToolCard]) -> list[ToolCard]:
    """The tools named by the sentences that announce a call, or by any sentence where these say `it` or `the tool`."""
    sentences = [part for part in _PARTS.split(words) if _TELLS.search(part) is None]
    announcing = [part for part in sentences if ANNOUNCES.search(part) is not None or _CALLING.search(part) is not None]
    named_cards = _named_cards(announcing, cards)
    if named_cards or not any(_CALL_VERB.search(part) is not None for part in announcing):
        return named_cards
    return _named_cards(sentences, cards)


def _named_cards(sentences: Sequence[str], cards: Sequence[ToolCard]) -> list[ToolCard]:
    names = {name for sentence in sentences for name in _WORD.findall(sentence)}
    return [card for card in cards if card.name in names]
