"""The request of Anthropic's Messages API, validated by its types, in the terms of a chat completion.

Source: Anthropic's API reference, "Create a Message" (2026-08). Texts, images, documents and the client's tools are
supported, no files that a server keeps, or tools that one performs. What would change the answer is refused; what would
not is ignored.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from taoloop.serve.gateway.errors import ApiError, invalid, invalid_field, missing
from taoloop.serve.gateway.request_schema import (
    MAX_MESSAGES,
    MAX_TOKENS,
    MAX_TOOLS,
    NAME,
    ApiModel,
    CalledFunction,
    ChatMessage,
    ChatRequest,
    ClientTool,
    FileData,
    ImageUrl,
    MessagePart,
    OfferedFunction,
    ResponseFormat,
    SchemaFormat,
    ToolCall,
    parse_body,
)

_MAX_STOPS = 64
_MODEL_ONLY = ("thinking", "redacted_thinking")
"""Blocks that belong to a model, and are not read."""

_CHAT_PATH = re.compile(r"messages\[(\d+)\](?:\.content\[(\d+)\](\.image_url(?:\.url)?|\.file(?:\.file_data)?)?)?")


class ImageSource(ApiModel):
    """Where an image or a document is: in the request, or at an address."""

    type: Literal["base64", "url", "file", "text", "content"]
    media_type: str | None = None
    data: str | None = None
    url: str | None = None


class ContentBlock(ApiModel):
    """A part of a message: a text, an image, a document, a call of a tool, or its result."""

    type: str
    text: str | None = None
    source: ImageSource | None = None
    title: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    tool_use_id: str | None = None
    content: str | list[ContentBlock] | None = None
    is_error: bool | None = None


class InputMessage(ApiModel):
    """One message of the conversation."""

    role: Literal["user", "assistant", "system"]
    content: str | list[ContentBlock]


class MessagesTool(ApiModel):
    """A tool of the client."""

    type: str | None = None
    name: Annotated[str, Field(pattern=NAME)]
    description: str | None = None
    input_schema: dict[str, Any] | None = None


class MessagesToolChoice(ApiModel):
    """Which of the client's tools may or must be called."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class AnswerFormat(ApiModel):
    """The JSON Schema that the answer must fit."""

    type: Literal["json_schema"]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]


class OutputConfig(ApiModel):
    """Settings of the answer."""

    format: AnswerFormat | None = None


class MessageMetadata(ApiModel):
    """What the client says about the request."""

    user_id: str | None = None


class CountedRequest(ApiModel):
    """What both routes have in common: the part of a request that a model reads."""

    model: Annotated[str, Field(min_length=1, max_length=512)]
    messages: Annotated[list[InputMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    system: str | list[ContentBlock] | None = None
    tools: Annotated[list[MessagesTool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: MessagesToolChoice | None = None


class MessagesRequest(CountedRequest):
    """A request for a message."""

    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)]
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    stop_sequences: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=_MAX_STOPS)] | None = None
    metadata: MessageMetadata | None = None
    output_config: OutputConfig | None = None
    container: Any = None
    mcp_servers: list[Any] | None = None

    @property
    def ignored(self) -> tuple[str, ...]:
        """Fields of the request that have no effect on the answer."""
        return tuple(sorted(name for name, value in (self.model_extra or {}).items() if value is not None))


class MessagesSettings(ChatRequest):
    """The request in the terms of a chat completion, with the names that its fields have."""

    via = "messages"
    message_names = ("messages", "tool_use_id", "content")
    tool_param = "tools[{}]"
    schema_param = "output_config.format.schema"

    stop: str | Annotated[list[str], Field(max_length=_MAX_STOPS)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockOrigin:
    """Where a message of the chat comes from."""

    message: int
    """The index of the message."""

    block: int | None = None
    """The index of its first block; None: the message is one text."""

    @property
    def path(self) -> str:
        """The field of the request."""
        return f"messages[{self.message}]" + ("" if self.block is None else f".content[{self.block}]")


def read_messages(body: bytes) -> MessagesRequest:
    """The request in a body.

    Raises:
        ApiError: it is not JSON, or a field has the wrong type or range, or is not supported; names the field.
    """
    request = parse_body(MessagesRequest, body)
    require_client_tools(request)
    for name in ("container", "mcp_servers"):
        if getattr(request, name):
            raise invalid(f"`{name}` is not supported. Give the agent tools of its own.", name, "unsupported_parameter")
    return request


def require_client_tools(request: CountedRequest) -> None:
    """Refuse tools that a server performs.

    Raises:
        ApiError: there is one; names it.
    """
    for index, tool in enumerate(request.tools or ()):
        if tool.type not in (None, "custom"):
            message = f"`tools[{index}].type` is {tool.type[:80]!r}: only tools of the client are served."
            raise invalid(message, f"tools[{index}].type", "unsupported_value")
        if tool.input_schema is None:
            raise missing(f"tools[{index}].input_schema")


def chat_settings(request: MessagesRequest) -> tuple[MessagesSettings, list[BlockOrigin]]:
    """The request in the terms of a chat completion, and where each of its messages comes from.

    Raises:
        ApiError: a block cannot be read; names it.
    """
    messages: list[ChatMessage] = []
    origins: list[BlockOrigin] = []
    if system := _system_text(request):
        messages.append(ChatMessage(role="system", content=system))
        origins.append(BlockOrigin(message=0))
    for index, message in enumerate(request.messages):
        for origin, chat_message in _chat_messages(index, message):
            messages.append(chat_message)
            origins.append(origin)
    choice = request.tool_choice
    tools = [
        ClientTool(
            type="function",
            function=OfferedFunction(name=tool.name, description=tool.description, parameters=tool.input_schema),
        )
        for tool in request.tools or ()
    ]
    settings = MessagesSettings(
        model=request.model,
        messages=messages,
        stream=request.stream,
        temperature=request.temperature,
        top_p=request.top_p,
        max_tokens=request.max_tokens,
        stop=request.stop_sequences,
        user=None if request.metadata is None else request.metadata.user_id,
        tools=tools or None,
        tool_choice=None if choice is None else _chat_choice(choice),
        parallel_tool_calls=False if choice is not None and choice.disable_parallel_tool_use else None,
        response_format=_response_format(request.output_config),
    )
    return settings, origins


@contextmanager
def named_as_sent(origins: Sequence[BlockOrigin]) -> Iterator[None]:
    """Give errors within the block the names that the fields have in the request."""

    def renamed(text: str) -> str:
        return _CHAT_PATH.sub(path, text).replace(".parameters", ".input_schema")

    def path(match: re.Match[str]) -> str:
        index = int(match[1])
        if index >= len(origins):
            return match[0]
        origin, block = origins[index], match[2]
        if block is None:
            return origin.path
        number = (origin.block or 0) + int(block)
        return f"messages[{origin.message}].content[{number}]" + (".source" if match[3] else "")

    try:
        yield
    except ApiError as error:
        param = None if error.param is None else renamed(error.param)
        raise replace(error, message=renamed(error.message), param=param) from None


def texts_of(request: CountedRequest) -> Iterator[str]:
    """The texts of a request that a model reads, the tools as their names, descriptions and schemas."""
    yield _system_text(request)
    for message in request.messages:
        blocks = (
            [ContentBlock(type="text", text=message.content)] if isinstance(message.content, str) else message.content
        )
        for block in blocks:
            yield block.text or ""
            yield "" if block.input is None else str(block.input)
            yield (
                block.content
                if isinstance(block.content, str)
                else "".join(part.text or "" for part in block.content or ())
            )
    for tool in request.tools or ():
        yield f"{tool.name} {tool.description or ''} {tool.input_schema}"


def _system_text(request: CountedRequest) -> str:
    if not isinstance(request.system, list):
        return request.system or ""
    texts = []
    for index, block in enumerate(request.system):
        if block.type != "text" or block.text is None:
            raise invalid_field(f"system[{index}].type", "Only texts can be read.")
        texts.append(block.text)
    return "\n\n".join(texts)


def _response_format(config: OutputConfig | None) -> ResponseFormat | None:
    if config is None or config.format is None:
        return None
    return ResponseFormat(
        type="json_schema", json_schema=SchemaFormat.model_validate({"name": "answer", "schema": config.format.schema_})
    )


def _chat_choice(choice: MessagesToolChoice) -> Any:
    if choice.type != "tool":
        return {"auto": "auto", "any": "required", "none": "none"}[choice.type]
    if choice.name is None:
        raise missing("tool_choice.name")
    return {"type": "function", "function": {"name": choice.name}}


def _chat_messages(index: int, message: InputMessage) -> Iterator[tuple[BlockOrigin, ChatMessage]]:
    """A message as those of a chat: results of tools each as a message, then the rest of it.

    Texts beside results of tools continue the last result: the run that waits for them takes nothing else.
    """
    if isinstance(message.content, str):
        yield BlockOrigin(message=index), ChatMessage(role=message.role, content=message.content)
        return
    results: list[tuple[BlockOrigin, ChatMessage]] = []
    parts: list[MessagePart] = []
    calls: list[ToolCall] = []
    first: int | None = None
    for number, block in enumerate(message.content):
        param = f"messages[{index}].content[{number}]"
        if block.type == "tool_result" and message.role == "user":
            results.append((BlockOrigin(message=index, block=number), _result(param, block)))
        elif block.type == "tool_use" and message.role == "assistant":
            calls.append(_call(param, block))
        elif block.type not in _MODEL_ONLY:
            first = number if first is None else first
            parts.append(_part(param, block, message.role))
    if results and parts and all(part.type == "text" for part in parts):
        origin, last = results.pop()
        texts = "\n\n".join(part.text or "" for part in parts)
        results.append((origin, last.model_copy(update={"content": f"{last.text}\n\n{texts}".strip()})))
        parts = []
    yield from results
    if parts or calls or not results:
        origin = BlockOrigin(message=index, block=first or 0)
        yield origin, ChatMessage(role=message.role, content=parts or "", tool_calls=calls or None)


def _part(param: str, block: ContentBlock, role: str) -> MessagePart:
    if block.type == "text":
        if block.text is None:
            raise missing(f"{param}.text")
        return MessagePart(type="text", text=block.text)
    if block.type not in ("image", "document") or role != "user":
        only = "texts, images, documents and results of tools" if role == "user" else "texts and calls of tools"
        raise invalid_field(f"{param}.type", f"It is {block.type[:80]!r}; of this role only {only} can be read.")
    source = block.source
    if source is None:
        raise missing(f"{param}.source")
    if source.type == "file":
        raise invalid_field(f"{param}.source.type", "This server keeps no files. Send the content as `base64`.")
    if block.type == "document":
        return _document(param, source, block.title)
    value = source.data if source.type == "base64" else source.url
    if value is None:
        raise missing(f"{param}.source.{'data' if source.type == 'base64' else 'url'}")
    url = f"data:{source.media_type or 'image/png'};base64,{value}" if source.type == "base64" else value
    return MessagePart(type="image_url", image_url=ImageUrl(url=url))


def _document(param: str, source: ImageSource, title: str | None) -> MessagePart:
    """A PDF or a text in the form of chat completions."""
    if source.type not in ("base64", "text"):
        message = f"It is {source.type!r}; this server reads documents as `base64` or `text`."
        raise invalid_field(f"{param}.source.type", message)
    if source.data is None:
        raise missing(f"{param}.source.data")
    data = source.data if source.type == "base64" else b64encode(source.data.encode("utf-8", "replace")).decode()
    file = FileData(filename=title, file_data=f"data:{source.media_type or ''};base64,{data}")
    return MessagePart(type="file", file=file)


def _call(param: str, block: ContentBlock) -> ToolCall:
    if block.id is None or block.name is None:
        raise missing(f"{param}.{'id' if block.id is None else 'name'}")
    arguments = json.dumps(block.input or {}, ensure_ascii=False)
    return ToolCall(id=block.id, function=CalledFunction(name=block.name, arguments=arguments))


def _result(param: str, block: ContentBlock) -> ChatMessage:
    if block.tool_use_id is None:
        raise missing(f"{param}.tool_use_id")
    texts = [block.content] if isinstance(block.content, str) else []
    for number, part in enumerate(block.content if isinstance(block.content, list) else ()):
        if part.type != "text" or part.text is None:
            raise invalid_field(f"{param}.content[{number}].type", "Only texts can be read.")
        texts.append(part.text)
    text = "\n".join(texts)
    content = f"Error: {text}" if block.is_error else text
    return ChatMessage(role="tool", tool_call_id=block.tool_use_id, content=content)
