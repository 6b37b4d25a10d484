"""What every dialect asks of a reply before it looks for a decision in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from taoloop.core.decision import Problem, excerpt
from taoloop.dialects.strict import NotJsonError, dumps, strings_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards import ToolCard
    from taoloop.core.message import ModelReply

_CUT = frozenset({"length", "content_filter", "max_tokens", "model_length", "safety"})
_EDGE = " \t\r\n\ufeff\u200b\u2060"
_FINAL_NAMES = frozenset({"final", "finalanswer", "finish", "最终答案", "最终回答"})
_NOTHING = frozenset({"", "none", "null", "nil", "n/a", "na", "无", "没有"})

_TAG = re.compile(r"<(/?)(?:think|thinking|thought|reasoning|reflection|scratchpad)>", re.IGNORECASE)
_CONTROL_TAIL = re.compile(r"(?:\s*(?:<[|｜][^<>|｜\s]{1,40}[|｜]>|</?s>|<(?:eos|end_of_turn|eot_id)>))+\s*$")
_PLACEHOLDER = re.compile(r"\s*(?:<([^<>/=\"'\n]{1,60})>|\{\{[^{}\n]{1,60}\}\}|\$\{[^{}\n]{1,60}\})\s*")
_MARKUP = re.compile(
    r"[abipsu]|[bh]r|h[1-6]|[ou]l|li|t[dhr]|div|pre|nav|svg|img|code|form|head|html|body|main|span|link|meta|path"
    r"|video|audio|style|table|tbody|thead|title|label|input|button|script|footer|header|section",
    re.IGNORECASE,
)


class RefusedError(Exception):  # a signal between the readers, never seen outside of `read`
    """A reader gives up; `problem` is what `read` returns."""

    def __init__(self, code: str, message: str, part: str = "") -> None:
        self.problem = Problem(code=code, message=message, excerpt=excerpt(part))
        super().__init__(message)


def usable_text(reply: ModelReply) -> str:
    """The text of a reply that was not cut, without thinking blocks and control tokens; may be empty.

    Raises:
        RefusedError: the provider cut the reply, or a thinking block was never closed.
    """
    check_whole(reply)
    text = reply.text.strip(_EDGE)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise RefusedError("stray_text", "The reply holds characters that are no text.") from None
    if "<" in text:
        text = drop_thinking(text)
        text = _CONTROL_TAIL.sub("", text[-200:]).join((text[:-200], "")) if text.endswith(">") else text
    return text


def check_whole(reply: ModelReply) -> None:
    """Refuse a reply that the provider says it cut.

    Raises:
        RefusedError: it was cut.
    """
    if reply.finish_reason is not None and reply.finish_reason.lower() in _CUT:
        raise RefusedError(
            "truncated",
            f"The reply was cut ({reply.finish_reason!r}); none of it was used. Answer shorter.",
            reply.text[-100:],
        )


def drop_thinking(text: str) -> str:
    """`text` without `<think>…</think>` blocks; a lone closing tag closes what a template had opened.

    A tag counts at the beginning or the end of a line only: there it cannot stand inside a JSON string.

    Raises:
        RefusedError: a block is never closed.
    """
    kept: list[str] = []
    position, opened = 0, False
    for tag in _TAG.finditer(text):
        if not _at_line_edge(text, tag.start(), tag.end()):
            continue
        if tag.group(1):
            if not opened:
                kept.clear()
            position, opened = tag.end(), False
        elif not opened:
            kept.append(text[position : tag.start()])
            opened = True
    if opened:
        raise RefusedError("truncated", "The thinking block was never closed, so there is no decision.", text[-100:])
    if not position:
        return text
    kept.append(text[position:])
    return "".join(kept).strip(_EDGE)


def _at_line_edge(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - 20) : start].rstrip(" \t")
    after = text[end : end + 20].lstrip(" \t")
    return (not before and start <= 20) or before.endswith("\n") or not after or after[0] in "\r\n"


def find_card(name: str, cards: Sequence[ToolCard]) -> ToolCard | None:
    """The card called exactly `name`."""
    for card in cards:
        if card.name == name:
            return card
    return None


def is_final_name(name: str) -> bool:
    """Whether an action of this name means "I am done" (where no tool is called so)."""
    return name.casefold().replace(" ", "").replace("_", "") in _FINAL_NAMES


def is_nothing(text: str) -> bool:
    """Whether a text only says that nothing is there: empty, none, null, n/a."""
    return text.strip().casefold() in _NOTHING


def is_placeholder(text: str) -> bool:
    """Whether a text is a place to be filled: `<email>`, `{{id}}`, `${name}`. HTML tags are values."""
    match = _PLACEHOLDER.fullmatch(text)
    return match is not None and not _MARKUP.fullmatch((match.group(1) or "").split(" ")[0])


def refuse_placeholders(args: Any, tool: str) -> None:
    """Refuse arguments in which a place was left unfilled.

    Raises:
        RefusedError: it names the tool and the placeholder.
    """
    try:
        for text in strings_in(args):
            if len(text) < 70 and text[:1] in "<{$ " and is_placeholder(text):
                raise RefusedError(
                    "bad_action",
                    f"The call of {tool!r} has the placeholder {text!r} where a value must be.",
                    text,
                )
    except NotJsonError as error:
        raise RefusedError("bad_json", f"The arguments of {tool!r} cannot be used: {error}.") from None


def check_tool_name(name: str) -> None:
    """Refuse what cannot be a tool's name. An unknown name is not refused: the executor answers it.

    Raises:
        RefusedError: the name is empty, a word for nothing, or longer than any name.
    """
    if is_nothing(name):
        raise RefusedError("bad_action", f"The action {name!r} names no tool.", name)
    if len(name) > 128 or "\n" in name:
        raise RefusedError("bad_action", f"This is no tool name: {excerpt(name)!r}.", name)


def answer_text(value: Any) -> str:
    """The answer in the value of a final: a text, the value of an object with one key, or JSON as it is.

    Raises:
        RefusedError: the answer is empty or an unfilled place.
    """
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    text = "" if value is None else value.strip(_EDGE) if isinstance(value, str) else dumps(value)
    if not text or value in ({}, []):
        raise RefusedError("bad_final", "The final answer is empty. Give the answer, or say what is missing.")
    if is_placeholder(text):
        raise RefusedError("bad_final", f"The final answer is only the placeholder {text!r}.", text)
    return text
