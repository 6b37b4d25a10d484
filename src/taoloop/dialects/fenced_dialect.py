"""The fenced dialect: a thought in plain words, then one object in a code fence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.core.message import ModelReply
from taoloop.core.text import lazy_pattern
from taoloop.dialects.json_dialect import decision_object
from taoloop.dialects.parsing.fast_path import canonical_act, canonical_answer
from taoloop.dialects.parsing.strict_json import NotJsonError, decode_at, dumps
from taoloop.dialects.prose_dialect import TextReplyDialect, plain_reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards.tool_card import ToolCard
    from taoloop.core.decision import Decision

_HEAD = lazy_pattern(r"(?:Thought: (?P<thought>[^\s<`{｛][^\n<`{｛]*)\n)?Action:\n```json\n(?=\{)")
_KEYS = frozenset({"action", "action_input"})
_FINAL = ("final", "Final Answer")


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
        if text[end:].rstrip() != "\n```" or parsed.keys() != _KEYS:
            return None
        action, action_input, reason = parsed["action"], parsed["action_input"], (head["thought"] or "").strip()
        if not reason.isprintable():
            return None
        if action in _FINAL:
            known = any(card.name in _FINAL for card in cards)
            return canonical_answer(action_input, reason) if type(action_input) is str and not known else None
        return canonical_act(action, action_input, reason, cards)

    def write(self, decision: Decision) -> ModelReply:
        """The thought, if there is one, and the object on one line in its fence.

        In a thought that could not be read back, lines are joined and label words quoted.
        """
        body = f"Action:\n```json\n{dumps(decision_object(decision, self.name))}\n```"
        reason = decision.reason
        if not reason:
            return ModelReply(text=body)
        text = f"Thought: {reason}\n{body}"
        if self.read(ModelReply(text=text), ()) != decision:
            text = f"Thought: {plain_reason(reason)}\n{body}"
        return ModelReply(text=text)
