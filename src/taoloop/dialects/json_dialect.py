"""The dialects whose decision is a JSON object: alone (`json`), or in a code fence after a thought (`fenced`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Decision
from taoloop.core.message import ModelReply
from taoloop.core.text import lazy_pattern
from taoloop.dialects.base import Dialect
from taoloop.dialects.parsing.call_arguments import canonical_decision
from taoloop.dialects.parsing.strict_json import NotJsonError, decode_at, dumps
from taoloop.dialects.text_dialect import TextReplyDialect, only_call

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
        reason = parsed["thought"].strip()
        return canonical_decision(parsed["action"], parsed["action_input"], reason, cards, ("final",))

    def write(self, decision: Decision) -> ModelReply:
        """The canonical object on one line, not ASCII-escaped."""
        return ModelReply(text=dumps({"thought": decision.reason, **decision_object(decision, self.name)}))


def decision_object(decision: Decision, dialect: str) -> dict[str, object]:
    """The action and its input as members of an object."""
    if isinstance(decision, Act):
        call = only_call(decision, dialect)
        return {"action": call.tool, "action_input": call.args}
    return {"action": "final", "action_input": decision.text}


def reply_schema(
    dialect: Dialect, cards: Sequence[ToolCard], output_schema: Mapping[str, Any] | None, *, reasons: bool
) -> Mapping[str, Any] | None:
    """The JSON Schema of the next reply for providers with structured output; None: the text need not be JSON.

    In the json dialect it describes one decision and leaves arguments and answer open, because the cards and the
    output schema judge those. In a native dialect without `cards` the text is the answer. Other dialects have none.
    """
    if dialect.native:
        return None if cards else output_schema
    if isinstance(dialect, JsonDialect):
        return {
            "type": "object",
            "properties": {
                "thought": {"type": "string"},
                "action": {"type": "string", "enum": [*(card.name for card in cards), "final"]},
                "action_input": {},
            },
            "required": [*(("thought",) if reasons else ()), "action", "action_input"],
            "additionalProperties": False,
        }
    return None


_HEAD = lazy_pattern(r"(?:Thought: (?P<thought>[^\s<`{｛][^\n<`{｛]*)\n)?Action:\n```json\n(?=\{)")
_FENCED_KEYS = frozenset({"action", "action_input"})


class FencedDialect(TextReplyDialect):
    """`Thought: …`, then `{"action", "action_input"}` in a code fence; the action `final` ends the run."""

    name = "fenced"
    stop = ("\nObservation:", "\n观察：", "\n观察:")

    def parse_canonical(self, text: str, cards: Sequence[ToolCard]) -> Decision | None:
        """The decision in a reply of at most one line of thought and one fence."""
        head = _HEAD.match(text)
        if head is None or "</" in text or "<|" in text:
            return None
        try:
            parsed, end = decode_at(text, head.end())
        except NotJsonError:
            return None
        if text[end:].rstrip() != "\n```" or parsed.keys() != _FENCED_KEYS:
            return None
        reason = (head["thought"] or "").strip()
        if not reason.isprintable():
            return None
        return canonical_decision(parsed["action"], parsed["action_input"], reason, cards, ("final", "Final Answer"))

    def write(self, decision: Decision) -> ModelReply:
        """The thought, if there is one, and the object on one line in its fence.

        In a thought that could not be read back, lines are joined and label words quoted.
        """
        return self.with_thought(f"Action:\n```json\n{dumps(decision_object(decision, self.name))}\n```", decision)
