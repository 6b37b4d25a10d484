"""What the dialects share whose decisions are written in the text of a reply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from taoloop.core.message import Message, ModelReply
from taoloop.dialects.parsing.cleanup import clean_reply, reject_truncated
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.reply_parser import parse_reply
from taoloop.dialects.prompt.system_prompt import output_format_prompt
from taoloop.dialects.prompt.untrusted_frame import defuse_markers, observation_text, quote_labels
from taoloop.dialects.texts import TEXTS
from taoloop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards.tool_card import ToolCard
    from taoloop.core.decision import Act, Call, Decision, Problem
    from taoloop.core.events import ActionRequested, ModelReplied, Observed, ReplyRejected
    from taoloop.core.prompts import PromptSet

MAX_ECHO_CHARS = 4_000
EMPTY_REPLY = TEXTS.text("en", "empty_reply")
"""What is in later prompts for a reply without a text; `Conversation` puts it into the language of the run."""

_HARMLESS = str.maketrans("<[{｛`", "‹((('")


class TextReplyDialect(ABC):
    """Observations are user messages, and an echo is the decision in its canonical form."""

    name: str
    native = False
    stop: tuple[str, ...] = ()

    def read(self, reply: ModelReply, cards: Sequence[ToolCard], *, json_answer: bool = False) -> Decision | Problem:
        """The one decision in a reply, or why there is none: the short way, or by the tolerant reader."""
        try:
            reject_truncated(reply)
            quick = self.parse_canonical(reply.text, cards)
            return parse_reply(clean_reply(reply.text), cards, json_answer=json_answer) if quick is None else quick
        except ReplyParseError as refused:
            return refused.problem

    @abstractmethod
    def parse_canonical(self, text: str, cards: Sequence[ToolCard]) -> Decision | None:
        """The decision in a reply of canonical form; None for every other reply."""

    @abstractmethod
    def write(self, decision: Decision) -> ModelReply:
        """The decision in canonical form."""

    def echo(self, replied: ModelReplied, requested: Sequence[ActionRequested]) -> Message:  # noqa: ARG002
        """The decision as it was believed: thinking and invented observations are left out."""
        if replied.decision is None:
            return Message(role="assistant", content=displayed_reply(replied.text))
        return Message(role="assistant", content=self.write(replied.decision).text)

    def observation(self, requested: ActionRequested, observed: Observed, prompts: PromptSet, nonce: str) -> Message:
        """The framed observation as a user message."""
        return Message(role="user", content=observation_text(requested, observed, prompts, nonce))

    def correction(self, rejected: ReplyRejected, prompts: PromptSet, *, tools: bool, reasons: bool) -> Message:
        """What was wrong, and the form that is expected."""
        return correction_message(self.name, rejected, prompts, tools=tools, reasons=reasons)


def correction_message(
    dialect: str, rejected: ReplyRejected, prompts: PromptSet, *, tools: bool, reasons: bool
) -> Message:
    """The message after an unreadable reply."""
    expected = output_format_prompt(prompts, dialect, tools=tools, reasons=reasons)
    return Message(
        role="user", content=prompts.fill("correction", problem=defuse_markers(rejected.message), form=expected)
    )


def displayed_reply(text: str) -> str:
    """A rejected reply as it stands in later prompts: never empty, and bounded."""
    if not text.strip():
        return EMPTY_REPLY
    return text if len(text) <= MAX_ECHO_CHARS else text[: MAX_ECHO_CHARS - 1] + "…"


def plain_reason(reason: str) -> str:
    """A reason on one line in which nothing can pass for more than words."""
    return quote_labels(" ".join(reason.translate(_HARMLESS).split()))


def only_call(decision: Act, dialect: str) -> Call:
    """The call of a decision that has one.

    Raises:
        ConfigError: it has several, which this dialect cannot write.
    """
    if len(decision.calls) != 1:
        raise ConfigError(
            f"The dialect {dialect!r} writes one call per reply; this decision has {len(decision.calls)}.",
            hint="Give one call per turn, or use the dialect 'native'.",
        )
    return decision.calls[0]
