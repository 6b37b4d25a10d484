"""What goes to a model and comes back from it, independent of any provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from taoloop.core.attachments.files import FileInfo
from taoloop.core.fast_stdlib import fast_constructor
from taoloop.core.images import ImageInfo
from taoloop.core.text import MESSAGE_TOKENS, estimate_tokens

Role = Literal["system", "user", "assistant", "tool"]

Purpose = Literal["decide", "repair", "close", "sample", "compact", "pin", "read", "critique", "lesson"]
"""Why the model is asked: for a decision, to repair an unreadable reply, for a last answer without tools, for one of
several answers that are voted on, for a summary of what the prompt can no longer hold, for what the task calls for,
before anything untrusted is seen, to read observations on behalf of a model that must not, for what is wrong with the
draft of an answer, or for what the next attempt at a task should do otherwise."""

SIDE_PURPOSES: tuple[Purpose, ...] = ("compact", "pin", "read", "critique", "lesson")
"""The purposes of side questions: asked outside the conversation, and not for a decision."""

STEP_PURPOSES: tuple[Purpose, ...] = ("decide", "sample")
"""The purposes that begin a step."""

UNSTREAMED: tuple[Purpose, ...] = (*SIDE_PURPOSES, "sample")
"""The purposes whose replies are shown only when they are whole: what one sample says is not the answer of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallText:
    """A tool call as the provider delivered it."""

    name: str
    """The name of the tool."""
    arguments: str
    """JSON text, not yet trusted to be JSON."""
    id: str | None = None
    """The provider's id of the call."""


new_tool_call_text = fast_constructor(ToolCallText)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a chat."""

    role: Role
    """Who speaks."""
    content: str
    """The text."""
    tool_calls: tuple[ToolCallText, ...] = ()
    """The calls that an assistant message makes."""
    tool_call_id: str | None = None
    """The call that a tool message answers."""
    images: tuple[ImageInfo, ...] = ()
    """The images that belong to it. A model that sees gets their bytes (`ModelRequest.image_data`)."""
    files: tuple[FileInfo, ...] = ()
    """The files that belong to it. A model gets the bytes of texts, and of PDFs if it reads them, in the same way."""


new_message = fast_constructor(Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call or of a whole run."""

    input_tokens: int = 0
    """Tokens of the prompt."""
    output_tokens: int = 0
    """Tokens of the reply."""
    cached_tokens: int = 0
    """The part of the input that a cache served."""

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """The sum of both."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """What a model answered."""

    text: str = ""
    """The text of the reply."""
    tool_calls: tuple[ToolCallText, ...] = ()
    """The calls that came through the provider's API."""
    finish_reason: str | None = None
    """Why the reply ended (`stop`, `length`, `tool_calls` …); None: the provider did not say."""
    model: str = ""
    """The model that answered, as the provider names it."""
    usage: Usage = Usage()
    """The tokens of this reply."""
    cost_usd: float | None = None
    """What the reply cost. None: the price is unknown, which is not zero."""
    thinking: str = ""
    """A reasoning model's separate thinking; it stays out of the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of a reply that is still being written, for people to watch; a run believes only the whole reply."""

    kind: Literal["text", "thinking", "call", "restart", "progress"]
    """`text`: continues the reply's text. `thinking`: continues a reasoning model's separate thinking. `call`:
    continues the arguments of a tool call. `restart`: the provider failed in the middle and the reply starts over; what
    was shown of it is void. `progress` is no piece of a reply: a tool at work reports how far it is."""
    text: str = ""
    """The piece; for `progress` the report."""
    index: int = 0
    """The number of the tool call, from 0."""
    name: str = ""
    """The tool of the call, known from the call's first piece on; for `progress` the tool at work."""
    done: bool = False
    """The arguments of the call are complete."""


def message_tokens(message: Message) -> int:
    """The size of one message, with its calls, images and files."""
    calls = sum(
        estimate_tokens(call.name) + estimate_tokens(call.arguments) + MESSAGE_TOKENS for call in message.tool_calls
    )
    extra = sum(image.tokens for image in message.images) if message.images else 0
    extra += sum(file.tokens for file in message.files) if message.files else 0
    return MESSAGE_TOKENS + estimate_tokens(message.content) + calls + extra
