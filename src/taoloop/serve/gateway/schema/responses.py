"""The Responses API on the wire: the request, validated by its types, and the parts of a response.

Source: OpenAI's API reference, "Responses" (2026-08). Texts and functions of the client are supported, but no built-in
tools, files, images, background responses or conversations on the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from taoloop.core.message import Usage
from taoloop.serve.gateway.errors import ApiError, invalid, invalid_field, missing
from taoloop.serve.gateway.schema.chat import (
    MAX_TOKENS,
    MAX_TOOLS,
    NAME,
    ApiModel,
    ClientTool,
    OfferedFunction,
    parse_body,
    schema_for_format,
    sse,
)

_TEXT_PARTS = ("input_text", "output_text", "text")
_MAX_ITEMS = 2_048


class InputPart(ApiModel):
    """A part of an item; only texts can be read."""

    type: str
    text: str | None = None
    refusal: str | None = None


class InputItem(ApiModel):
    """A message of the conversation, a tool call, its output, or the id of an item of an earlier response."""

    type: str | None = None
    id: str | None = None
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: str | list[InputPart] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | list[InputPart] | None = None

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


class ResponsesRequest(ApiModel):
    """A request for a response."""

    model: Annotated[str, Field(min_length=1, max_length=512)]
    input: str | Annotated[list[InputItem], Field(max_length=_MAX_ITEMS)]
    instructions: str | None = None
    stream: bool | None = None
    previous_response_id: str | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    user: str | None = None
    text: TextOptions | None = None
    tools: Annotated[list[FunctionTool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    metadata: dict[str, str] | None = None
    background: bool | None = None
    store: bool | None = None

    @property
    def answer_schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema that the answer must match; None for a text."""
        text_format = self.text.format if self.text is not None else None
        if text_format is None:
            return None
        return schema_for_format(text_format.type, text_format.schema_)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Fields of the request that have no effect on the answer."""
        own = ["store"] if self.store is False else []  # every run is kept
        if self.parallel_tool_calls is not None and not self.tools:
            own.append("parallel_tool_calls")
        return tuple(sorted([*own, *(name for name, value in (self.model_extra or {}).items() if value is not None)]))

    @property
    def client_tools(self) -> list[ClientTool]:
        """The client's tools in the form of chat completions."""
        return [
            ClientTool(
                type="function",
                function=OfferedFunction(
                    name=tool.name or "", description=tool.description, parameters=tool.parameters
                ),
            )
            for tool in self.tools or ()
        ]

    @property
    def references(self) -> list[tuple[int, str]]:
        """Referenced items: their index in the input, and their id."""
        items = [] if isinstance(self.input, str) else self.input
        return [(index, item.id or "") for index, item in enumerate(items) if item.kind == "item_reference"]

    def messages(self, known: Mapping[int, dict[str, Any]]) -> list[dict[str, Any]]:
        """The input as the messages of a chat, one for each item; `known` are the referenced ones.

        Raises:
            ApiErrorRaised: an item is invalid; names its field.
        """
        if isinstance(self.input, str):
            return [{"role": "user", "content": self.input}]
        return [known.get(index) or _message(index, item) for index, item in enumerate(self.input)]


TEXT_ITEM, CALL_ITEM = "msg_", "fc_"
"""Prefixes of the ids of items: before the run id for a text, before the call id for a call."""

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
    text_format = request.text.format if request.text is not None else None
    if text_format is not None and text_format.type == "json_schema" and text_format.schema_ is None:
        raise missing("text.format.schema")
    return request


def _message(index: int, item: InputItem) -> dict[str, Any]:
    where = f"input[{index}]"
    if item.kind == "reasoning":  # it belongs to models; an empty message has no effect
        return {"role": "assistant", "content": ""}
    if item.kind == "function_call":
        for name in ("call_id", "name", "arguments"):
            if getattr(item, name) is None:
                raise missing(f"{where}.{name}")
        function = {"name": item.name, "arguments": item.arguments}
        return {"role": "assistant", "tool_calls": [{"id": item.call_id, "type": "function", "function": function}]}
    if item.kind == "function_call_output":
        if item.call_id is None or item.output is None:
            raise missing(f"{where}.{'call_id' if item.call_id is None else 'output'}")
        return {"role": "tool", "tool_call_id": item.call_id, "content": _joined_text(item.output, f"{where}.output")}
    if item.kind != "message" or item.role is None:
        message = "It is not a message with a role; only messages, function calls and their outputs are supported."
        raise invalid_field(f"{where}.type", message)
    return {"role": item.role, "content": _joined_text(item.content or "", f"{where}.content")}


def _joined_text(content: str | Sequence[InputPart], where: str) -> str:
    if isinstance(content, str):
        return content
    texts = []
    for number, part in enumerate(content):
        param = f"{where}[{number}]"
        if part.type == "refusal":
            texts.append(part.refusal or "")
        elif part.type not in _TEXT_PARTS or part.text is None:
            raise invalid_field(f"{param}.type", f"It is {part.type[:80]!r}; only texts can be read.")
        else:
            texts.append(part.text)
    return "".join(texts)


# The parts of a response


def response_id(run_id: str, turn: int = 0) -> str:
    """The id of a response: the run and its turn, so that the next request continues exactly there."""
    return f"resp_{run_id}_{turn}" if turn else f"resp_{run_id}"


def parse_response_id(response: str) -> tuple[str, int]:
    """The run and the turn of a response id; an invalid id gives a run that does not exist."""
    run_id, _, turn = response.removeprefix("resp_").partition("_")
    return run_id, int(turn) if turn.isascii() and turn.isdecimal() and len(turn) < 10 else 0


class ResponseEvents:
    """One response, whole or as the events of a stream."""

    def __init__(self, request: ResponsesRequest, *, run_id: str, created: int, model: str, turn: int = 0) -> None:
        self._request, self._created, self._model = request, created, model
        self._id, self._item_id = response_id(run_id, turn), f"{TEXT_ITEM}{run_id}" + (f"_{turn}" if turn else "")
        self._number = 0
        self._has_item = False

    def response(
        self,
        *,
        status: str,
        text: str | None = None,
        usage: Usage | None = None,
        agent: Mapping[str, Any] | None = None,
        error: ApiError | None = None,
        incomplete_reason: str = "",
        calls: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, Any]:
        """The response object, with the reason why it is incomplete."""
        request = self._request
        error_part = None if error is None else {"code": "server_error", "message": error.message}
        body: dict[str, Any] = {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "background": False,
            "error": error_part,
            "incomplete_details": {"reason": incomplete_reason} if incomplete_reason else None,
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "metadata": request.metadata or {},
            "model": self._model,
            "output": self._output(text, status, calls),
            "parallel_tool_calls": request.parallel_tool_calls is not False,
            "previous_response_id": request.previous_response_id,
            "reasoning": {"effort": None, "summary": None},
            "store": True,
            "temperature": 1.0 if request.temperature is None else request.temperature,
            "text": {"format": self._format()},
            "tool_choice": request.tool_choice or "auto",
            "tools": [_tool_part(tool) for tool in request.tools or ()],
            "top_p": 1.0 if request.top_p is None else request.top_p,
            "truncation": "disabled",
        }
        if usage is not None:
            body["usage"] = _usage_part(usage)
        if request.user is not None:
            body["user"] = request.user
        if agent is not None:
            body["agent"] = dict(agent)
        return body

    def start(self) -> bytes:
        """The first events of a stream."""
        body = self.response(status="in_progress")
        return self._event("response.created", response=body) + self._event("response.in_progress", response=body)

    def piece(self, text: str) -> bytes:
        """A piece of the answer."""
        head = b"" if self._has_item else self._open_item()
        return head + self._text_event("response.output_text.delta", delta=text, logprobs=[])

    def end(
        self,
        *,
        status: str,
        text: str,
        usage: Usage,
        agent: Mapping[str, Any],
        error: ApiError | None = None,
        incomplete_reason: str = "",
        calls: Sequence[Mapping[str, Any]] = (),
    ) -> bytes:
        """The last events of a stream."""
        data = b""
        if error is None and (text or not calls):
            data += b"" if self._has_item else self._open_item()
            data += self._text_event("response.output_text.done", text=text, logprobs=[])
            data += self._text_event("response.content_part.done", part=_text_part(text))
            item = self._item(text, "completed" if status == "completed" else "incomplete")
            data += self._event("response.output_item.done", output_index=0, item=item)
        for index, call in enumerate(calls, start=int(self._has_item)):
            data += self._call_events(index, call)
        shown_text = text if error is None else None
        body = self.response(
            status=status,
            text=shown_text,
            usage=usage,
            agent=agent,
            error=error,
            incomplete_reason=incomplete_reason,
            calls=calls,
        )
        return data + self._event(f"response.{status}", response=body)

    def error_event(self, error: ApiError) -> bytes:
        """The event of an error that ends the stream."""
        return self._event("error", code=error.code, message=error.message, param=error.param)

    def _output(self, text: str | None, status: str, calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The items: the text, unless it is empty and there are calls; then the calls."""
        if text is None:
            return []
        words = [] if calls and not text else [self._item(text, "completed" if status == "completed" else "incomplete")]
        return [*words, *(_call_item(call) for call in calls)]

    def _call_events(self, index: int, call: Mapping[str, Any]) -> bytes:
        """A call of a client's tool, in one piece."""
        item, kind = _call_item(call), "response.function_call_arguments"
        started = {**item, "status": "in_progress", "arguments": ""}
        at = {"item_id": item["id"], "output_index": index}
        return (
            self._event("response.output_item.added", output_index=index, item=started)
            + self._event(f"{kind}.delta", **at, delta=item["arguments"])
            + self._event(f"{kind}.done", **at, name=item["name"], arguments=item["arguments"])
            + self._event("response.output_item.done", output_index=index, item=item)
        )

    def _open_item(self) -> bytes:
        self._has_item = True
        item = {**self._item("", "in_progress"), "content": []}
        added = self._event("response.output_item.added", output_index=0, item=item)
        return added + self._text_event("response.content_part.added", part=_text_part(""))

    def _text_event(self, kind: str, **fields: Any) -> bytes:
        return self._event(kind, item_id=self._item_id, output_index=0, content_index=0, **fields)

    def _event(self, kind: str, **fields: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        return sse({"type": kind, "sequence_number": number, **fields}, event=kind)

    def _item(self, text: str, status: str) -> dict[str, Any]:
        return {
            "id": self._item_id,
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": [_text_part(text)],
        }

    def _format(self) -> dict[str, Any]:
        text_format = self._request.text.format if self._request.text is not None else None
        if text_format is None:
            return {"type": "text"}
        return text_format.model_dump(by_alias=True, exclude_none=True)


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call_item(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a chat completion as an item."""
    return {
        "id": f"{CALL_ITEM}{call['id']}",
        "type": "function_call",
        "status": "completed",
        "call_id": call["id"],
        **call["function"],
    }


def _tool_part(tool: FunctionTool) -> dict[str, Any]:
    """A tool of the request, with fields that are optional there and required here."""
    return {**tool.model_dump(), "strict": tool.strict is not False}


def _usage_part(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens,
    }
