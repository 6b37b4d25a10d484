"""The JSON dialect: one object per reply, in one of three forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.core.decision import Act, Decision
from taoloop.core.message import ModelReply
from taoloop.dialects.parsing.fast_path import canonical_act, canonical_answer
from taoloop.dialects.parsing.strict_json import NotJsonError, decode_at, dumps
from taoloop.dialects.prose_dialect import TextReplyDialect, only_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards.tool_card import ToolCard

_KEYS = frozenset({"thought", "action", "action_input"})


class JsonDialect(TextReplyDialect):
    """`{"thought", "action", "action_input"}`; the action `final` ends the run.

    Also read: `{"thought", "action", "args"}` or `{"thought", "final"}`, and `{"type", "tool", "args",
    "answer", "reason_summary"}` with the type `tool_call` or `final`.
    """

    name = "json"

    def parse_canonical(self, text: str, cards: Sequence[ToolCard]) -> Decision | None:
        """The decision in a reply that is exactly the object of the first form."""
        if not text.startswith("{") or "</" in text or "<|" in text:
            return None
        try:
            parsed, end = decode_at(text)
        except NotJsonError:
            return None
        if end != len(text) or parsed.keys() != _KEYS or type(parsed["thought"]) is not str:
            return None
        action, action_input, reason = parsed["action"], parsed["action_input"], parsed["thought"].strip()
        if action == "final":
            known = any(card.name == action for card in cards)
            return canonical_answer(action_input, reason) if type(action_input) is str and not known else None
        return canonical_act(action, action_input, reason, cards)

    def write(self, decision: Decision) -> ModelReply:
        """The canonical object on one line, not ASCII-escaped."""
        return ModelReply(text=dumps({"thought": decision.reason, **decision_object(decision, self.name)}))


def decision_object(decision: Decision, dialect: str) -> dict[str, object]:
    """The action and its input as an object has them."""
    if isinstance(decision, Act):
        call = only_call(decision, dialect)
        return {"action": call.tool, "action_input": call.args}
    return {"action": "final", "action_input": decision.text}
