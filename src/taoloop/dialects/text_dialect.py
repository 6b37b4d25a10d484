"""The text dialect: Thought, Action, Action Input, Final Answer, line by line as in the ReAct paper."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from taoloop.core.decision import Act, Answer, Decision
from taoloop.core.message import ModelReply
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.cleanup import clean_reply
from taoloop.dialects.parsing.fast_path import canonical_answer, canonical_call
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.reply_parser import parse_reply
from taoloop.dialects.parsing.strict_json import dumps
from taoloop.dialects.prose_dialect import TextReplyDialect, only_call, plain_reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards.tool_card import ToolCard

_CANONICAL = lazy_pattern(
    r"(?:Thought: (?P<thought>[^\s<`{｛][^\n<`{｛]*)\n)?"
    r"(?:Action: (?P<tool>[\w.-]+)\nAction Input: (?P<args>\{[^\n]*\})|Final Answer: (?P<answer>[^\s<`{][^\n<`{]*))\n?",
    re.ASCII,
)


class TextDialect(TextReplyDialect):
    """Labelled lines. Other accepted forms: `Action: tool: input` and `Action: tool(key="value")`."""

    name = "text"
    stop = ("\nObservation:", "\n观察：", "\n观察:")

    def parse_canonical(self, text: str, cards: Sequence[ToolCard]) -> Decision | None:
        """The decision in one line per label."""
        match = _CANONICAL.fullmatch(text)
        if match is None:
            return None
        reason = (match["thought"] or "").strip()
        if not reason.isprintable():
            return None
        if match["answer"] is not None:
            return canonical_answer(match["answer"], reason)
        return canonical_call(match["tool"], match["args"], reason, cards)

    def write(self, decision: Decision) -> ModelReply:
        """Thought, Action and Action Input (JSON, not ASCII-escaped), or Thought and Final Answer.

        An answer that could not be read back behind its label is written as a JSON string; in a reason that
        could not, lines are joined and label words quoted.
        """
        body = _body(decision)
        reason = decision.reason
        if reason and not _is_plain_line(reason):
            written = f"Thought: {reason}\n{body}"
            if self.read(ModelReply(text=written), ()) == decision:
                return ModelReply(text=written)
            reason = plain_reason(reason)
        return ModelReply(text=f"Thought: {reason}\n{body}" if reason else body)


def _body(decision: Decision) -> str:
    if isinstance(decision, Act):
        call = only_call(decision, "text")
        return f"Action: {call.tool}\nAction Input: {dumps(call.args)}"
    plain = f"Final Answer: {decision.text}"
    if _is_plain_line(decision.text) and canonical_answer(decision.text, "") is not None:
        return plain
    try:
        decision_read_back = parse_reply(clean_reply(plain), ())
    except ReplyParseError:
        decision_read_back = None
    if decision_read_back == Answer(text=decision.text):
        return plain
    return f"Action: Final Answer\nAction Input: {dumps(decision.text)}"


def _is_plain_line(text: str) -> bool:
    return not any(char in text for char in "\n\r<[`{$｛") and text == text.strip() and text.isprintable()
