"""Values that were never filled in: `<email>`, `{{id}}`, `${name}`, and the phrases of a prompt's own template.

Whether such a text is one depends on what the model has seen: in "What does <email> mean?" it is a value. So a value
that is nothing else is refused once the decision is read, unless the task or an observation has that very text. Inside
a longer value it is content, and ordinary words (`string`, `答案`) are values anywhere.

The same holds for the facts of the examples in the packaged prompts: a model that copies one would give it for its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Call, Decision, Problem
from taoloop.core.handles import READER, is_handle
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.strict_json import NotJsonError, strings_in
from taoloop.dialects.texts import ReplyParseError, ReplyProblem

_PLACEHOLDER = lazy_pattern(
    r"\s*(?:<([^<>/=\"'\n]{1,60})>|\{\{?[^{}\n\"':]{1,60}\}\}?|\$\{?[^{}\n ]{0,60}\}|\[\[[^\[\]\n]{1,60}\]\]"
    r"|\[(?i:your|insert|enter|the|recipient|user|customer|placeholder)\b[^\[\]\n]{0,60}\]|%\(\w{1,40}\)s"
    r"|YOUR_[A-Z0-9_]{2,40}|[A-Z0-9_]{2,40}_HERE|\.{3,}|…+)\s*"
)
HTML_TAG = lazy_pattern(
    r"[abipsu]|em|kbd|small|strong|[bh]r|h[1-6]|[ou]l|li|t[dhr]|div|pre|nav|svg|img|code|form|head|html|body|main|span|link|meta|path"
    r"|video|audio|style|table|tbody|thead|title|label|input|button|script|footer|header|section",
    re.IGNORECASE,
)
_TEMPLATE = lazy_pattern(
    r"\s*(?:the )?(?:input (?:to|for|of) the (?:action|tool)|(?:its|the) arguments? as one json object.{0,40}"
    r"|(?:your |the )?final answer to the (?:original )?(?:input )?(?:question|task)"
    r"|(?:your|the) (?:final )?answer (?:here|to the task|goes here)|answer here"
    r"|(?:行动|动作|工具)的输入|对?原始(?:输入)?问题的最终答案|对任务的(?:最终)?(?:答案|回答))[.。]?\s*",
    re.IGNORECASE,
)
EXAMPLE_ANSWERS = ("high water in brest is at 14:32 today", "青岛今天 14:32 满潮")
"""The answers of the worked examples, in lower case."""

_EXAMPLE_FACT = "14:32"  # in each of these answers
_EXAMPLE_CALL, _EXAMPLE_ARGS = "get_tide", ({"port": "Brest"}, {"port": "青岛"})
_MAX_CHARS = 80  # a placeholder or a phrase of a template is short
_MAX_EXAMPLE_CHARS = 200  # of an answer that is little more than that of an example


_UNFILLED = frozenset({"placeholder", "placeholder_answer", "example_answer", "example_call"})


def is_placeholder(text: str) -> bool:
    """Whether a text is nothing but a placeholder: `<email>`, `{{id}}`, `${name}`, `...`. HTML tags are values."""
    if len(text) > _MAX_CHARS:
        return False
    match = _PLACEHOLDER.fullmatch(text) if "_" in text or not text[:1].isalpha() else None
    if match is not None:
        return not HTML_TAG.fullmatch((match.group(1) or "").split(" ")[0])
    return _TEMPLATE.fullmatch(text) is not None


def repeats_example(text: str) -> bool:
    """Whether an answer is that of a worked example, perhaps with some words around it; a longer text quotes it."""
    if len(text) > _MAX_EXAMPLE_CHARS or _EXAMPLE_FACT not in text:
        return False
    return any(answer in " ".join(text.casefold().split()) for answer in EXAMPLE_ANSWERS)


def is_example_call(tool: str, args: object) -> bool:
    """Whether a call is that of a worked example, for whose tool an agent may have one of the same name."""
    return tool == _EXAMPLE_CALL and args in _EXAMPLE_ARGS


def is_never_seen(text: str) -> bool:  # noqa: ARG001
    """For a reply that is read by itself: nothing is known of what the model was shown."""
    return False


def reject_placeholders(
    decision: Decision, cards: Sequence[ToolCard], was_seen: Callable[[str], bool], *, json_answer: bool
) -> None:
    """Refuse a decision in which a whole value is a placeholder, or one of an example, that `was_seen` does not know.

    A handle does not count as one in an answer, nor in arguments if `ask_about` is among the cards. `json_answer`: the
    answer is a JSON value, which its schema judges.

    Raises:
        ReplyParseError: it names the placeholder.
    """
    if isinstance(decision, Act):
        for call in decision.calls:
            _check_call(call, cards, was_seen)
    elif repeats_example(decision.text) and not was_seen(_EXAMPLE_FACT):
        raise ReplyParseError("bad_final", "example_answer", decision.text, text=_EXAMPLE_FACT)
    elif not json_answer:
        text = decision.text
        if is_placeholder(text) and not is_handle(text) and not was_seen(text.strip()):
            raise ReplyParseError("bad_final", "placeholder_answer", text, text=text)


def unfilled_text(problem: Problem) -> str:
    """The placeholder, or the value of an example, that a reply was refused for; empty if for anything else."""
    if isinstance(problem, ReplyProblem) and problem.text.name in _UNFILLED:
        return str(problem.text.values["text"]).strip()
    return ""


def _check_call(call: Call, cards: Sequence[ToolCard], was_seen: Callable[[str], bool]) -> None:
    if (
        is_example_call(call.tool, call.args)
        and any(card.name == call.tool for card in cards)
        and not was_seen(port := call.args["port"])
    ):
        raise ReplyParseError("bad_action", "example_call", port, tool=call.tool, text=port)
    names = call.args if isinstance(call.args, dict) else {}
    values = names.values() if names else (call.args,)
    texts = [value for value in values if isinstance(value, str)]
    if any(isinstance(value, dict | list) for value in values):
        try:
            texts = strings_in(call.args)
        except NotJsonError as error:
            raise ReplyParseError("bad_json", "input_not_json", tool=call.tool, error=error.text) from None
    for text in texts:
        if len(text) > _MAX_CHARS or not (is_placeholder(text) or (text[:1] == "<" and text.strip("<> ") in names)):
            continue
        if (is_handle(text) and any(card.name == READER for card in cards)) or was_seen(text.strip()):
            continue
        raise ReplyParseError("bad_action", "placeholder", text, tool=call.tool, text=text)
