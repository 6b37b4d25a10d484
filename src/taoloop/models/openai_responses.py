"""OpenAI's Responses API (`openai-responses:NAME`): the address and the key are those of `openai`, without a state.

The provider keeps nothing (`store` is false): the whole conversation is sent each time, as everywhere else, so that a
run can be resumed anywhere and its requests are all in its trace.
https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taoloop.core.attachments.files import AttachmentInfo
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.effects import ModelRequest
from taoloop.core.images import ImageInfo
from taoloop.core.message import Message, ModelReply, Usage
from taoloop.dialects.prompt import describe
from taoloop.errors import ModelContentRefused, ModelRequestRefused
from taoloop.models.base import DeltaListener
from taoloop.models.http.errors import make_error, read_error
from taoloop.models.http.provider_model import ProviderModel, ReplyStream, chosen_tool
from taoloop.models.http.reply_builder import ToolNameMap, parse_json, text_or_empty, token_count
from taoloop.models.http.transport import HttpTarget
from taoloop.models.openai import response_schema

SPEC_KIND = "openai-responses"

_THINKING = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ENDINGS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_MAX_REFUSAL_CHARS = 500  # characters of the model's own words


class ResponsesStream(ReplyStream):
    """Reads the events of one streamed response, which is whole at its last event, or a whole response."""

    _unit = "event of a response"

    def __init__(self, model: ProviderModel, names: ToolNameMap, on_delta: DeltaListener | None) -> None:
        super().__init__(model, names, on_delta)
        self._calls: dict[int, int] = {}  # numbers of calls by the index of their item
        self._refusal = ""
        self._response: Mapping[str, Any] = {}

    def read_whole(self, value: Mapping[str, Any]) -> ModelReply:
        """The reply in a whole response."""
        self._end(value)
        for index, item in enumerate(value["output"]):
            self._add_item(index, item)
        return self._reply()

    def _reply(self) -> ModelReply:
        if self._refusal.strip():
            raise ModelContentRefused(f"{self._model.spec} refused to answer: {self._refusal.strip()}")
        return self._finish(self._finish_reason(), read_usage(self._response.get("usage")))

    def _take(self, data: bytes) -> None:
        event = parse_json(data)
        kind = event["type"]
        if kind == "response.output_text.delta":
            self._assembly.text(event["delta"])
        elif kind in _THINKING:
            self._assembly.thinking(event["delta"])
        elif kind == "response.refusal.delta":
            self._refuse(event["delta"])
        elif kind == "response.output_item.added" and event["item"]["type"] == "function_call":
            self._begin_call(event["output_index"], event["item"])
        elif kind == "response.function_call_arguments.delta":
            self._assembly.arguments(self._calls[event["output_index"]], event["delta"])
        elif kind == "response.output_item.done" and event["item"]["type"] == "function_call":
            self._end_call(event["output_index"], event["item"])
        elif kind in _ENDINGS:
            self._end(event["response"])
            self._done = True
        elif kind == "error":
            raise make_error(read_error({"error": event}, 200), self._model.endpoint)

    def _add_item(self, index: int, item: Mapping[str, Any]) -> None:
        match item["type"]:
            case "message":
                for part in item["content"]:
                    if part["type"] == "output_text":
                        self._assembly.text(part["text"])
                    elif part["type"] == "refusal":
                        self._refuse(part["refusal"])
            case "reasoning":
                for part in [*(item.get("summary") or ()), *(item.get("content") or ())]:
                    self._assembly.thinking(text_or_empty(part.get("text")))
            case "function_call":
                self._begin_call(index, item)
                self._end_call(index, item)

    def _begin_call(self, index: int, item: Mapping[str, Any]) -> None:
        call_id = text_or_empty(item.get("call_id")) or None
        self._calls[index] = self._assembly.begin_call(text_or_empty(item["name"]), call_id)

    def _end_call(self, index: int, item: Mapping[str, Any]) -> None:
        number = self._calls[index]
        if not self._assembly.arguments_of(number):
            self._assembly.arguments(number, text_or_empty(item.get("arguments")))
        self._assembly.end_call(number)

    def _refuse(self, words: str) -> None:
        self._refusal += words[: _MAX_REFUSAL_CHARS - len(self._refusal)]

    def _end(self, response: Mapping[str, Any]) -> None:
        if response.get("error"):
            raise make_error(read_error(response, 200), self._model.endpoint)
        self._answered_by, self._response = text_or_empty(response.get("model")), response

    def _finish_reason(self) -> str:
        """In the words of chat completions, which the dialects know."""
        details = self._response.get("incomplete_details")
        reason = text_or_empty(details.get("reason")) if isinstance(details, Mapping) else ""
        if reason:
            return "length" if reason == "max_output_tokens" else reason
        return "tool_calls" if self._calls else "stop"


def read_usage(usage: object) -> Usage | None:
    """The tokens that a response reports; None where it reports none."""
    if not isinstance(usage, Mapping):
        return None
    details = usage.get("input_tokens_details")
    tokens = Usage(
        input_tokens=token_count(usage.get("input_tokens")),
        output_tokens=token_count(usage.get("output_tokens")),
        cached_tokens=token_count(details.get("cached_tokens") if isinstance(details, Mapping) else None),
    )
    return tokens if tokens.total_tokens else None


class OpenAIResponsesModel(ProviderModel):
    """A model behind OpenAI's Responses API, or a server that speaks it at `OPENAI_BASE_URL`.

    The API has neither `seed` nor `stop`: a request with them is refused before it is sent. What a dialect would have
    the provider stop at is cut off by its reader. Reasoning is not sent back, because the provider keeps none.
    """

    @property
    def spec(self) -> str:
        """`openai-responses:MODEL`."""
        return f"{SPEC_KIND}:{self.endpoint.model}"

    @property
    def takes_pdf(self) -> bool:
        """The API takes PDFs, as parts of messages and of results."""
        return True

    def _target(self) -> HttpTarget:
        from taoloop.models.http.sdk_request import openai_target  # noqa: PLC0415  # only needed for a call

        return openai_target(self.endpoint, "/responses")

    def _body(self, request: ModelRequest, names: ToolNameMap, *, streamed: bool) -> dict[str, Any]:
        tools, closing = self._tools(request, names)
        settings = request.settings or {}
        if missing := [name for name in ("seed", "stop") if name in settings]:
            raise ModelRequestRefused(
                f"OpenAI's Responses API has no setting {missing[0]!r}.",
                hint="Take it out of model_settings, or name the model as openai:NAME.",
            )
        effort = settings.get("reasoning_effort")
        return {
            "model": self.endpoint.model,
            "input": [item for message in request.messages for item in self._items(request, message, names)],
            "store": False,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_output_tokens": request.max_output_tokens,
            "reasoning": None if effort is None else {"effort": effort},
            "tools": tools or None,
            "tool_choice": "none" if closing and tools else _tool_choice(chosen_tool(request), names),
            "text": self._text_format(request),
            "stream": True if streamed else None,
            **settings.get("extra_body", {}),
        }

    def _items(self, request: ModelRequest, message: Message, names: ToolNameMap) -> list[dict[str, Any]]:
        """A message as items of the input: calls and results are items of their own."""
        content: str | list[dict[str, Any]] = message.content
        if message.images or message.files:
            sent, note = self.split_attachments(request, message)
            text = f"{message.content}\n{note}" if note else message.content
            content = [_text_part(text), *(_part(info, body) for info, body in sent)] if sent else text
        if message.role == "tool":
            return [{"type": "function_call_output", "call_id": message.tool_call_id or "", "output": content}]
        items = [{"role": message.role, "content": content}] if content or not message.tool_calls else []
        return items + [
            {
                "type": "function_call",
                "call_id": call.id or "",
                "name": names.outgoing(call.name),
                "arguments": call.arguments,
            }
            for call in message.tool_calls
        ]

    def _tool(self, card: ToolCard, names: ToolNameMap, language: str) -> dict[str, Any]:
        return {
            "type": "function",
            "name": names.outgoing(card.name),
            "description": describe(card, language),
            "parameters": dict(card.input_schema),
            "strict": False,  # the API's default would refuse schemas with optional parameters
        }

    def _text_format(self, request: ModelRequest) -> dict[str, Any] | None:
        schema = self._reply_schema(request)
        return None if schema is None else {"format": {"type": "json_schema", **response_schema(schema)}}

    def _reader(self, names: ToolNameMap, on_delta: DeltaListener | None) -> ReplyStream:
        return ResponsesStream(self, names, on_delta)


def _tool_choice(choice: str | None, names: ToolNameMap) -> Any:
    if choice is None or choice in ("auto", "required"):
        return choice
    return {"type": "function", "name": names.outgoing(choice)}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _part(info: AttachmentInfo, body: str | None) -> dict[str, Any]:
    """An image or a PDF as a part; each with its bytes as a data URI (RFC 2397), or an image by its address."""
    uri = f"data:{info.media_type};base64,{body}"
    if isinstance(info, ImageInfo):
        return {"type": "input_image", "image_url": info.url or uri, "detail": "auto"}
    return {"type": "input_file", "filename": info.file_name, "file_data": uri}
