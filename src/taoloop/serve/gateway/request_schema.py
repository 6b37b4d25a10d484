"""The requests for a chat completion and for a response, validated by their types.

Source: OpenAI's API reference, "Create chat completion" and "Responses" (2026-08). A field that this server does not
support is an error where it would change the answer, and is named in a header where it would not. Texts, images and the
client's functions are supported, but no built-in tools, files, background responses or conversations on the server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taoloop.serve.gateway.errors import ApiError, invalid, invalid_field, missing

MAX_MESSAGES = 2_048
MAX_TOOLS = 128
MAX_TOKENS = 2**31 - 1
_NOTHING: Sequence[Any] = (None, False, 0, [])
T = TypeVar("T", bound=BaseModel)

NAME = r"^[a-zA-Z0-9_-]{1,64}$"
"""The names that tools and schemas may have."""


class ApiModel(BaseModel):
    """Base of all parts of a request: types are strict, and unknown fields are kept."""

    model_config = ConfigDict(extra="allow", strict=True)


class ImageUrl(ApiModel):
    """Where an image is: mostly a data URI, which is the image itself."""

    url: str


class FileData(ApiModel):
    """A file: mostly a data URI, which is the file itself."""

    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None


class MessagePart(ApiModel):
    """A part of a message's content: a text, or an image or a file of the user."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | str | None = None
    file: FileData | None = None


class CalledFunction(ApiModel):
    """The function of a tool call."""

    name: str
    arguments: str


class CalledCustom(ApiModel):
    """The custom tool of a tool call that another server's answer asked for; this one supports functions only."""

    name: str
    input: str


class ToolCall(ApiModel):
    """A tool call that an earlier answer asked for: of a function, or of a custom tool."""

    id: str
    type: Literal["function", "custom"] = "function"
    function: CalledFunction | None = None
    custom: CalledCustom | None = None

    @property
    def called(self) -> tuple[str, str]:
        """The name of the tool and its arguments, as the assistant wrote them."""
        if self.function is not None:
            return self.function.name, self.function.arguments
        return ("", "") if self.custom is None else (self.custom.name, self.custom.input)


class ChatMessage(ApiModel):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[MessagePart] | None = None
    refusal: str | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """Its text; empty where it has none, or none that can be read."""
        if isinstance(self.content, str):
            return self.content
        texts = ((part.refusal if part.type == "refusal" else part.text) or "" for part in self.content or ())
        return _join_parts(texts)


class OfferedFunction(ApiModel):
    """A function that the client performs itself."""

    name: Annotated[str, Field(pattern=NAME)]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ClientTool(ApiModel):
    """A tool of the client."""

    type: Literal["function"]
    function: OfferedFunction


class StreamOptions(ApiModel):
    """Options of a stream. `include_steps` is an extension: the run's steps as they happen, in `agent`."""

    include_usage: bool | None = None
    include_steps: bool | None = None


class SchemaFormat(ApiModel):
    """The JSON Schema that an answer must fit."""

    name: Annotated[str, Field(pattern=NAME)]
    description: str | None = None
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    strict: bool | None = None


class ResponseFormat(ApiModel):
    """The format of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaFormat | None = None


class AnswerRequest(ApiModel):
    """What requests of both APIs have in common."""

    via: ClassVar[str]
    """The API, as the label `via` of its runs has it."""

    message_names: ClassVar[tuple[str, str, str]]
    """What the API calls the list of messages, and in the result of a tool the id of the call and the result."""

    tool_param: ClassVar[str]
    """Where the request describes a tool; `{}` is its index."""

    schema_param: ClassVar[str]
    """Where the request has the schema that the answer must match."""

    unsupported: ClassVar[Mapping[str, tuple[Sequence[Any], str]]]
    """Unsupported fields: the values without effect, which they may have, and what to do instead of others."""

    model: Annotated[str, Field(min_length=1, max_length=512)]
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    user: str | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    metadata: dict[str, str] | None = None

    def refuse_unsupported(self) -> None:
        """Refuse unsupported fields that have a value with an effect.

        Raises:
            ApiError: there is one; names it.
        """
        sent = self.model_fields_set
        for name, (allowed, hint) in self.unsupported.items():
            if name in sent and getattr(self, name) not in allowed:
                message = f"`{name}` is not supported. {hint}".rstrip()
                raise invalid(message, name, "unsupported_value" if any(allowed) else "unsupported_parameter")

    def ignored_fields(self, *own: str) -> tuple[str, ...]:
        """Fields of the request that have no effect on the answer: `own` ones, and unknown ones."""
        values = {**(self.model_extra or {}), **{name: getattr(self, name) for name in own}}
        return tuple(sorted(name for name, value in values.items() if value is not None))


class ChatRequest(AnswerRequest):
    """A request for a chat completion."""

    via = "chat"
    message_names = ("messages", "tool_call_id", "content")
    tool_param = "tools[{}].function"
    schema_param = "response_format.json_schema.schema"
    unsupported = {
        "functions": (_NOTHING, "Use `tools`."),
        "function_call": (_NOTHING, "Use `tools` and `tool_choice`."),
        "audio": (_NOTHING, "Only text is served."),
        "web_search_options": (_NOTHING, "Give the agent a tool that searches."),
        "top_logprobs": (_NOTHING, "Log probabilities are not served."),
        "n": ((None, 1), "An agent gives one answer."),
        "logprobs": ((None, False), ""),
        "modalities": ((None, ["text"], []), "Only text is served."),
    }

    messages: Annotated[list[ChatMessage], Field(max_length=MAX_MESSAGES)]
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    stop: Annotated[str, Field(min_length=1)] | Annotated[list[str], Field(max_length=4)] | None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[ClientTool], Field(max_length=MAX_TOOLS)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    logprobs: bool | None = None
    seed: int | None = None

    @property
    def client_tools(self) -> list[ClientTool]:
        """The client's own tools."""
        return self.tools or []

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop sequences: the answer ends before them."""
        texts = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(text for text in texts if text)

    @property
    def token_limit(self) -> int | None:
        """The maximum length of one reply of the model, in tokens."""
        limits = [limit for limit in (self.max_tokens, self.max_completion_tokens) if limit is not None]
        return min(limits, default=None)

    @property
    def answer_schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema that the answer must match; None for a text."""
        if self.response_format is None:
            return None
        json_schema = self.response_format.json_schema
        return schema_for_format(self.response_format.type, None if json_schema is None else json_schema.schema_)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Fields of the request that have no effect on the answer."""
        unused = () if self.tools else ("parallel_tool_calls",)
        return self.ignored_fields("frequency_penalty", "presence_penalty", "seed", "metadata", *unused)


def read_chat(body: bytes) -> ChatRequest:
    """The request in a body.

    Raises:
        ApiError: it is not JSON, or a field has the wrong type or range; names the field.
    """
    request = parse_body(ChatRequest, body)
    for index, message in enumerate(request.messages):
        for number, call in enumerate(message.tool_calls or ()):
            if getattr(call, call.type) is None:
                raise missing(f"messages[{index}].tool_calls[{number}].{call.type}")
    request.refuse_unsupported()
    response_format = request.response_format
    if response_format is not None and response_format.type == "json_schema" and response_format.json_schema is None:
        raise missing("response_format.json_schema")
    if request.stream_options is not None and not request.stream:
        raise invalid("`stream_options` is only allowed with `stream`: true.", "stream_options")
    return request


def parse_body(model: type[T], body: bytes) -> T:
    """Parse a body as this model.

    Raises:
        ApiError: it is invalid; names the field.
    """
    try:
        if b"NaN" in body or b"Infinity" in body:  # not JSON, but pydantic accepts them
            json.loads(body, parse_constant=_reject_constant)
        return model.model_validate_json(body)
    except RecursionError:
        raise invalid("The body is not valid JSON: it is nested too deeply.", None, "invalid_json") from None
    except ValidationError as error:
        raise _request_error(error) from None


def _reject_constant(name: str) -> None:
    raise invalid(f"The body is not valid JSON: {name} is not a number.", None, "invalid_json")


def _request_error(error: ValidationError) -> ApiError:
    """The most specific finding, with its field as OpenAI writes it."""
    findings = error.errors(include_url=False, include_input=False, include_context=False)
    # deeper ones are more specific, and of the arms of a union the one whose type matched
    first = max(findings, key=lambda finding: (len(finding["loc"]), not finding["type"].endswith("_type")))
    if first["type"] == "json_invalid":
        message = f"The body is not valid JSON: {first['msg'].removeprefix('Invalid JSON: ')}."
        return invalid(message, None, "invalid_json")
    fields = [part for part in first["loc"] if not _is_type_name(part)]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fields).removeprefix(".")
    if not path:
        return invalid("The body must be a JSON object.", None, "invalid_type")
    if first["type"] == "missing":
        return missing(path)
    return invalid_field(path, f"{first['msg']}.")


def _is_type_name(part: str | int) -> bool:
    """Whether this is pydantic's name for an arm of a union, and not a field."""
    return isinstance(part, str) and (
        part in ("str", "int", "float", "bool", ImageUrl.__name__) or not part.isidentifier()
    )


def schema_for_format(kind: str, schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The JSON Schema that an answer in this format must match; None for a text."""
    if kind == "text":
        return None
    return {"type": "object"} if kind == "json_object" or schema is None else schema


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

    via = "responses"
    message_names = ("input", "call_id", "output")
    tool_param = "tools[{}]"
    schema_param = "text.format.schema"
    unsupported = {"background": ((None, False), ""), "conversation": ((None,), ""), "prompt": ((None,), "")}

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
            ApiError: an item is invalid; names its field.
        """
        if isinstance(self.input, str):
            return [ChatMessage(role="user", content=self.input)]
        return [referenced.get(index) or _message(f"input[{index}]", item) for index, item in enumerate(self.input)]


def read_responses(body: bytes) -> ResponsesRequest:
    """The request in a body.

    Raises:
        ApiError: it is not JSON, or a field has the wrong type or range; names the field.
    """
    request = parse_body(ResponsesRequest, body)
    for index, tool in enumerate(request.tools or ()):
        if tool.type != "function":
            message = f"`tools[{index}].type` is {tool.type[:80]!r}: only functions of the client are served."
            raise invalid(message, f"tools[{index}].type", "unsupported_value")
        if tool.name is None:
            raise missing(f"tools[{index}].name")
    request.refuse_unsupported()
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
    parts = item.content if item.role == "user" and isinstance(item.content, list) else []
    if any(part.type in ("input_image", "input_file") for part in parts):
        return ChatMessage(role="user", content=_parts(parts, f"{param}.content"))
    return ChatMessage(role=item.role, content=_joined_text(item.content or "", f"{param}.content"))


def _parts(content: Sequence[MessagePart], param: str) -> list[MessagePart]:
    """Texts, images and files in the form of chat completions."""
    parts: list[MessagePart] = []
    for number, part in enumerate(content):
        if part.type == "input_file":
            if (part.model_extra or {}).get("file_url") is not None:
                message = "This server fetches no files. Send the file itself, as `file_data`."
                raise invalid_field(f"{param}[{number}].file_url", message)
            parts.append(MessagePart(type="file", file=FileData.model_validate(part.model_extra or {})))
        elif part.type != "input_image":
            parts.append(MessagePart(type="text", text=_joined_text([part], param)))
        elif part.image_url is None:
            raise missing(f"{param}[{number}].image_url")
        else:
            parts.append(MessagePart(type="image_url", image_url=part.image_url))
    return parts


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
    return _join_parts(texts)


def _join_parts(texts: Iterable[str]) -> str:
    """The parts of a message as one text. A quote in a part of its own begins a line, and a block of code ends one.

    So what a client marks as somebody else's stays marked (`taoloop.policy.marked_text`).
    """
    parts: list[str] = []
    for text in filter(None, texts):
        before = parts[-1] if parts else "\n"
        if before[-1] != "\n" and (text.lstrip(" \t")[:1] == ">" or before.rstrip(" \t").endswith("```")):
            parts.append("\n")
        parts.append(text)
    return "".join(parts)
