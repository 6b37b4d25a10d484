"""What goes to a model and comes back from it, independent of any provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from taoloop.core.fast_dataclass import fast_constructor

Role = Literal["system", "user", "assistant", "tool"]

Purpose = Literal["decide", "repair", "close", "compact", "pin", "read"]
"""Why the model is asked: for a decision, to repair an unreadable reply, for a last answer without tools, for a summary
of what the prompt can no longer hold, for what the task calls for, before anything untrusted is seen, or to read
observations on behalf of a model that must not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallText:
    """A tool call as the provider delivered it: `arguments` is JSON text, not yet trusted to be JSON."""

    name: str
    arguments: str
    id: str | None = None


new_tool_call_text = fast_constructor(ToolCallText)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a chat. `tool_call_id` ties a tool message to the call that it answers."""

    role: Role
    content: str
    tool_calls: tuple[ToolCallText, ...] = ()
    tool_call_id: str | None = None


new_message = fast_constructor(Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call or of a whole run. `cached_tokens` is the part of the input that a cache served."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """What a model answered. `cost_usd` None means that the price is unknown, which is not zero.

    `thinking` is a reasoning model's separate thinking; it stays off the prompt and off the trace.
    """

    text: str = ""
    tool_calls: tuple[ToolCallText, ...] = ()
    finish_reason: str | None = None
    model: str = ""
    usage: Usage = Usage()
    cost_usd: float | None = None
    thinking: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of a reply that is still being written, for people to watch; a run believes only the whole reply.

    `kind` text: `text` goes on with the reply's text. thinking: the same for a reasoning model's separate thinking.
    call: `text` goes on with the arguments of the tool call number `index` (from 0), `name` is its tool (known from
    the call's first piece on); `done` says that its arguments are complete. restart: the provider failed in the
    middle and the reply begins anew; what was shown of it is void.

    One kind is no piece of a reply. progress: `text` is what the tool `name`, which is at work, says of how far it is.
    """

    kind: Literal["text", "thinking", "call", "restart", "progress"]
    text: str = ""
    index: int = 0
    name: str = ""
    done: bool = False
