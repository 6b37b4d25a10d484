"""The request for a response, validated by its types, and as the messages of a chat.

Source: OpenAI's API reference, "Responses" (2026-08). Texts and functions of the client are supported, but no built-in
tools, files, images, background responses or conversations on the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from taoloop.serve.gateway.chat_schema import (
    MAX_TOKENS,
    MAX_TOOLS,
    NAME,
    AnswerRequest,
    ApiModel,
    CalledFunction,
    ChatMessage,
    ClientTool,
    MessagePart,
    OfferedFunction,
    ToolCall,
    parse_body,
    schema_for_format,
)
from taoloop.serve.gateway.errors import invalid, invalid_field, missing

_TEXT_PARTS = ("input_text", "output_text", "text")
_CALL_FIELDS = ("call_id", "name", "arguments")
_MAX_ITEMS = 2_048


class InputItem(ApiModel):
    """A message of the conversation, a tool call, its output, or the id of an item of an earlier response."""

    type: str | None = None
    id: str | None = None
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: str | list[MessagePart] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | list[MessagePart] | None = None

    @property
    def kind(self) -> str:
        """The type of the item; one that has only an id is a reference."""
        return self.type or ("item_reference" if self.role is None and self.id is not None else "message")


class FunctionTool(ApiModel):
    """A function that the client performs itself."""

    type: str
    name: Annotated[str, Field(pattern=NAME)] | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class TextFormat(ApiModel):
    """The format of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    name: Annotated[str, Field(pattern=NAME)] | None = None
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None


class TextOptions(ApiModel):
    """Settings of the answer's text."""

    format: TextFormat | None = None


class ResponsesRequest(AnswerRequest):
    """A request for a response."""

    message_names = ("input", "call_id", "output")
    tool_param = "tools[{}]"
    schema_param = "text.format.schema"

    input: str | Annotated[list[InputItem], Field(max_length=_MAX_ITEMS)]
    instructions: str | None = None
    previous_response_id: str | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = None
    text: TextOptions | None = None
    tools: Annotated[list[FunctionTool], Field(max_length=MAX_TOOLS)] | None = None
    background: bool | None = None
    store: bool | None = None

    @property
    def token_limit(self) -> int | None:
        """The maximum length of one reply of the model, in tokens."""
        return self.max_output_tokens

    @property
    def text_format(self) -> TextFormat | None:
        """The format of the answer; None: not named, so a text."""
        return None if self.text is None else self.text.format

    @property
    def answer_schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema that the answer must match; None for a text."""
        text_format = self.text_format
        return None if text_format is None else schema_for_format(text_format.type, text_format.schema_)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Fields of the request that have no effect on the answer."""
        unused = () if self.tools else ("parallel_tool_calls",)
        return self.ignored_fields(*(("store",) if self.store is False else ()), *unused)  # every run is stored

    @property
    def client_tools(self) -> list[ClientTool]:
        """The client's tools in the form of chat completions."""
        functions = [
            OfferedFunction(name=tool.name or "", description=tool.description, parameters=tool.parameters)
            for tool in self.tools or ()
        ]
        return [ClientTool(type="function", function=function) for function in functions]

    @property
    def references(self) -> list[tuple[int, str]]:
        """Referenced items: their index in the input, and their id."""
        items = [] if isinstance(self.input, str) else self.input
        return [(index, item.id or "") for index, item in enumerate(items) if item.kind == "item_reference"]

    def messages(self, referenced: Mapping[int, ChatMessage]) -> list[ChatMessage]:
        """The input as the messages of a chat, one for each item; `referenced` are those of references, by index.

        Raises:
            ApiErrorRaised: an item is invalid; names its field.
        """
        if isinstance(self.input, str):
            return [ChatMessage(role="user", content=self.input)]
        return [referenced.get(index) or _message(f"input[{index}]", item) for index, item in enumerate(self.input)]


UNSUPPORTED_FIELDS = ("conversation", "prompt")


def read_responses(body: bytes) -> ResponsesRequest:
    """The request in a body.

    Raises:
        ApiErrorRaised: it is not JSON, or a field has the wrong type or range; names the field.
    """
    request = parse_body(ResponsesRequest, body)
    for index, tool in enumerate(request.tools or ()):
        if tool.type != "function":
            message = f"`tools[{index}].type` is {tool.type[:80]!r}: only functions of the client are served."
            raise invalid(message, f"tools[{index}].type", "unsupported_value")
        if tool.name is None:
            raise missing(f"tools[{index}].name")
    if request.background:
        raise invalid("`background` is not supported.", "background", "unsupported_parameter")
    for name in UNSUPPORTED_FIELDS:
        if (request.model_extra or {}).get(name) is not None:
            raise invalid(f"`{name}` is not supported.", name, "unsupported_parameter")
    text_format = request.text_format
    if text_format is not None and text_format.type == "json_schema" and text_format.schema_ is None:
        raise missing("text.format.schema")
    return request


def call_message(call_id: str, name: str, arguments: str) -> ChatMessage:
    """A tool call as a message of the assistant."""
    call = ToolCall(id=call_id, function=CalledFunction(name=name, arguments=arguments))
    return ChatMessage(role="assistant", tool_calls=[call])


def _message(param: str, item: InputItem) -> ChatMessage:
    if item.kind == "reasoning":  # it belongs to models; an empty message has no effect
        return ChatMessage(role="assistant", content="")
    if item.kind == "function_call":
        if item.call_id is None or item.name is None or item.arguments is None:
            raise missing(next(f"{param}.{name}" for name in _CALL_FIELDS if getattr(item, name) is None))
        return call_message(item.call_id, item.name, item.arguments)
    if item.kind == "function_call_output":
        if item.call_id is None or item.output is None:
            raise missing(f"{param}.{'call_id' if item.call_id is None else 'output'}")
        output = _joined_text(item.output, f"{param}.output")
        return ChatMessage(role="tool", tool_call_id=item.call_id, content=output)
    if item.kind != "message" or item.role is None:
        message = "It is not a message with a role; only messages, function calls and their outputs are supported."
        raise invalid_field(f"{param}.type", message)
    return ChatMessage(role=item.role, content=_joined_text(item.content or "", f"{param}.content"))


def _joined_text(content: str | Sequence[MessagePart], param: str) -> str:
    if isinstance(content, str):
        return content
    texts = []
    for number, part in enumerate(content):
        if part.type == "refusal":
            texts.append(part.refusal or "")
        elif part.type not in _TEXT_PARTS or part.text is None:
            raise invalid_field(f"{param}[{number}].type", f"It is {part.type[:80]!r}; only texts can be read.")
        else:
            texts.append(part.text)
    return "".join(texts)
