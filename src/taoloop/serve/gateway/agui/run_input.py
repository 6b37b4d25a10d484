"""The request of AG-UI (`RunAgentInput`), validated by its types.

Source: the Agent User Interaction Protocol 1.0, "Run input" and "Messages". Fields that have no effect here are named
in a header; audio, video, documents and files of a provider are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from taoloop.serve.gateway.errors import invalid_field, missing
from taoloop.serve.gateway.request_schema import (
    MAX_MESSAGES,
    MAX_TOOLS,
    NAME,
    ApiModel,
    ChatMessage,
    ChatRequest,
    ClientTool,
    FileData,
    ImageUrl,
    MessagePart,
    OfferedFunction,
    ToolCall,
    parse_body,
)

_MAX_INTERRUPTS = 256
_SHOWN_ONLY = ("activity", "reasoning")
"""Roles of messages that a front end shows, and no agent reads."""


class AguiModel(ApiModel):
    """Base of all parts of the request: names are in camel case."""

    model_config = ConfigDict(alias_generator=to_camel)


class AguiSource(AguiModel):
    """Where the bytes of a part are: in the request, at an address, or at a provider."""

    type: Literal["data", "url", "file"]
    value: str
    mime_type: str | None = None


class AguiPart(AguiModel):
    """A part of a message: a text, an image, a document, or what is refused."""

    type: str
    text: str | None = None
    source: AguiSource | None = None


class AguiMessage(AguiModel):
    """One message of the thread."""

    id: str
    role: Literal["developer", "system", "assistant", "user", "tool", "activity", "reasoning"]
    content: str | list[AguiPart] | dict[str, Any] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    error: str | None = None


class AguiTool(AguiModel):
    """A tool of the front end, which performs its calls."""

    name: Annotated[str, Field(pattern=NAME)]
    description: str
    parameters: dict[str, Any] | None = None


class AguiContext(AguiModel):
    """What the application adds to the conversation, such as what its page shows."""

    description: str
    value: str


class ResumeEntry(AguiModel):
    """The answer to one interrupt."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class RunAgentInput(AguiModel):
    """A request for a run of an agent, or to continue one that was interrupted."""

    thread_id: Annotated[str, Field(min_length=1, max_length=512)]
    run_id: Annotated[str, Field(min_length=1, max_length=512)]
    parent_run_id: str | None = None
    protocol_version: str | None = None
    state: Any = None
    messages: Annotated[list[AguiMessage], Field(max_length=MAX_MESSAGES)]
    tools: Annotated[list[AguiTool], Field(max_length=MAX_TOOLS)] | None = None
    context: Annotated[list[AguiContext], Field(max_length=MAX_MESSAGES)] | None = None
    forwarded_props: Any = None
    resume: Annotated[list[ResumeEntry], Field(max_length=_MAX_INTERRUPTS)] | None = None

    @property
    def ignored(self) -> tuple[str, ...]:
        """Fields that have no effect: unknown ones, and what this server has no use for."""
        extra = [name for name, value in (self.model_extra or {}).items() if value is not None]
        return tuple(sorted([*extra, *(["forwardedProps"] if self.forwarded_props else [])]))


class AguiSettings(ChatRequest):
    """The request in the terms of a chat completion, with the names that the fields have in AG-UI."""

    via = "agui"
    message_names = ("messages", "toolCallId", "content")
    tool_param = "tools[{}]"


def read_run_input(body: bytes) -> RunAgentInput:
    """The request in a body.

    Raises:
        ApiError: it is not JSON, or a field has the wrong type; names the field.
    """
    return parse_body(RunAgentInput, body)


def chat_settings(request: RunAgentInput, model: str) -> AguiSettings:
    """The request in the terms of a chat completion; its messages have the same indices.

    Raises:
        ApiError: a message cannot be read; names the field.
    """
    tools = [
        ClientTool(
            type="function",
            function=OfferedFunction(name=tool.name, description=tool.description, parameters=tool.parameters),
        )
        for tool in request.tools or ()
    ]
    messages = [_chat_message(f"messages[{index}]", message) for index, message in enumerate(request.messages)]
    while messages and request.messages[len(messages) - 1].role in _SHOWN_ONLY:
        messages.pop()
    return AguiSettings(model=model, messages=messages, tools=tools or None)


def context_text(request: RunAgentInput) -> str:
    """What the application adds to the conversation, as one text; empty: nothing."""
    return "\n".join(f"{entry.description}: {entry.value}" for entry in request.context or ())


def raw_messages(request: RunAgentInput) -> list[Mapping[str, Any]]:
    """The messages as the client sent them."""
    return [message.model_dump(by_alias=True, exclude_unset=True) for message in request.messages]


def _chat_message(param: str, message: AguiMessage) -> ChatMessage:
    if message.role == "activity" or message.role == "reasoning":  # shown only; an empty message has no effect
        return ChatMessage(role="assistant", content="")
    if isinstance(message.content, dict):
        raise invalid_field(f"{param}.content", "It must be a text, or a list of parts.")
    if message.role == "tool":
        if message.tool_call_id is None:
            raise missing(f"{param}.toolCallId")
        content = _chat_content(param, message)
        if message.error and isinstance(content, str):
            content = f"{content}\nError: {message.error}".strip()
        return ChatMessage(role="tool", tool_call_id=message.tool_call_id, content=content)
    return ChatMessage(role=message.role, content=_chat_content(param, message), tool_calls=message.tool_calls)


def _chat_content(param: str, message: AguiMessage) -> str | list[MessagePart] | None:
    if not isinstance(message.content, list):
        return message.content if isinstance(message.content, str) else None
    return [_chat_part(f"{param}.content[{number}]", part) for number, part in enumerate(message.content)]


def _chat_part(param: str, part: AguiPart) -> MessagePart:
    if part.type == "text":
        if part.text is None:
            raise missing(f"{param}.text")
        return MessagePart(type="text", text=part.text)
    if part.type not in ("image", "document"):
        only = "only texts, images and documents can be read"
        raise invalid_field(param, f"`{param}` is of the type {part.type[:80]!r}; {only}.")
    if part.source is None:
        raise missing(f"{param}.source")
    if part.source.type == "file":
        message = "This server cannot read a file at a provider. Send the content itself, as `data`."
        raise invalid_field(f"{param}.source.type", message)
    if part.type == "document":
        if part.source.type == "url":
            raise invalid_field(f"{param}.source.type", "This server fetches no files. Send the content as `data`.")
        return MessagePart(type="file", file=FileData(file_data=f"data:;base64,{part.source.value}"))
    if part.source.type == "url":
        return MessagePart(type="image_url", image_url=ImageUrl(url=part.source.value))
    kind = part.source.mime_type or "application/octet-stream"
    return MessagePart(type="image_url", image_url=ImageUrl(url=f"data:{kind};base64,{part.source.value}"))
