"""The short way to a decision: for replies in canonical form, which most are.

It may only say what the tolerant reader would say as well, and leaves everything else to that one. Without it a step
costs 30 % more (`benchmarks/overhead.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taoloop.core.decision import Act, Answer, Call
from taoloop.dialects.parsing.placeholders import is_placeholder
from taoloop.dialects.parsing.strict_json import NotJsonError, decode_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taoloop.core.cards.tool_card import ToolCard

_MIN_ANSWER_CHARS = 8
_JSON_OPENERS = ("[", "{")  # JSON in a text, if the schema wants a list or an object


def canonical_call(tool: str, source: str, reason: str, cards: Sequence[ToolCard]) -> Act | None:
    """The call of a known tool with plain arguments in strict JSON; None for anything else."""
    args = canonical_args(tool, source, cards)
    return None if args is None else Act(calls=(Call(tool=tool, args=args),), reason=reason)


def canonical_args(tool: str, source: str, cards: Sequence[ToolCard]) -> Any:
    """The plain arguments of a known tool in strict JSON; None for anything else."""
    try:
        args, end = decode_at(source)
    except NotJsonError:
        return None
    if end == len(source):
        for card in cards:
            if card.name == tool:
                return args if _are_plain(args, card.parameters) else None
    return None


def canonical_act(tool: str, args: Any, reason: str, cards: Sequence[ToolCard]) -> Act | None:
    """The call of a known tool whose arguments are all its own, and plain texts and numbers."""
    for card in cards:
        if card.name == tool:
            return (
                Act(calls=(Call(tool=tool, args=args),), reason=reason) if _are_plain(args, card.parameters) else None
            )
    return None


def canonical_answer(text: str, reason: str) -> Answer | None:
    """An answer of one line that cannot be mistaken for a place to be filled."""
    text = text.strip(" ")
    if len(text) < _MIN_ANSWER_CHARS or not text.isprintable() or is_placeholder(text):
        return None
    return Answer(text=text, reason=reason)


def _are_plain(args: Any, parameters: Mapping[str, Any]) -> bool:
    if type(args) is not dict:
        return False
    for name, value in args.items():
        if name not in parameters:
            return False
        if type(value) is str:
            if value[:1] in _JSON_OPENERS or (len(value) <= 80 and is_placeholder(value)):
                return False
        elif type(value) not in (int, float, bool):
            return False
    return bool(args) or not parameters
