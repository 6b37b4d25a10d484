"""Anthropic's messages API: as the official SDK (extra `anthropic`) addresses it, loaded at the first call."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic_core import from_json, to_json

from taoloop.core.attachments.files import AttachmentInfo
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.effects import ModelRequest
from taoloop.core.images import ImageInfo
from taoloop.core.message import Message, ModelReply, ToolCallText, Usage
from taoloop.dialects.prompt import describe
from taoloop.errors import ModelContentRefused, ModelRequestRefused
from taoloop.models.base import DeltaListener
from taoloop.models.http.errors import make_error, read_error
from taoloop.models.http.provider_model import ProviderModel, ReplyStream, Sent, chosen_tool
from taoloop.models.http.reply_builder import ToolNameMap, parse_json, text_or_empty, token_count
from taoloop.models.http.transport import HttpTarget

_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
"""Anthropic's words and those that the dialects know; another word stays as it is."""

_WRITTEN = "cache_creation_input_tokens"
_CACHED = "cache_read_input_tokens"


class AnthropicStream(ReplyStream):
    """Reads the events of one streamed message, which is whole at `message_stop`, or a whole message."""

    _unit = "event of a message"

    def __init__(self, model: ProviderModel, names: ToolNameMap, on_delta: DeltaListener | None) -> None:
        super().__init__(model, names, on_delta)
        self._blocks: dict[int, tuple[int, Mapping[str, Any]]] = {}  # calls by the number of their block
        self._stop: Mapping[str, Any] = {}
        self._usage: dict[str, Any] = {}

    def read_whole(self, value: Mapping[str, Any]) -> ModelReply:
        """The reply in a whole message."""
        self._answered_by, self._stop = text_or_empty(value.get("model")), value
        self._add_usage(value.get("usage"))
        for index, block in enumerate(value["content"]):
            self._begin_block(index, block)
            self._end_block(index)
        return self._reply()

    def _reply(self) -> ModelReply:
        if self._stop.get("stop_reason") == "refusal":
            details = self._stop.get("stop_details")
            words = details.get("explanation") or details.get("category") if isinstance(details, Mapping) else None
            raise ModelContentRefused(
                f"{self._model.spec} refused to answer: {str(words or 'it gave no reason')[:500]}"
            )
        usage, written = _usage(self._usage)
        reason = text_or_empty(self._stop.get("stop_reason")) or None
        return self._finish(_FINISH_REASONS.get(reason or "", reason), usage, cache_write_tokens=written)

    def _take(self, data: bytes) -> None:
        event = parse_json(data)
        match event["type"]:
            case "message_start":
                self._answered_by = text_or_empty(event["message"].get("model"))
                self._add_usage(event["message"].get("usage"))
            case "content_block_start":
                self._begin_block(event["index"], event["content_block"])
            case "content_block_delta":
                self._add_delta(event["index"], event["delta"])
            case "content_block_stop":
                self._end_block(event["index"])
            case "message_delta":
                self._stop = event["delta"]
                self._add_usage(event.get("usage"))
            case "message_stop":
                self._done = True
            case "error":
                raise make_error(read_error(event, 200), self._model.endpoint)
            case _:  # ping, and what later versions add
                pass

    def _begin_block(self, index: int, block: Mapping[str, Any]) -> None:
        if block["type"] == "tool_use":
            self._blocks[index] = (
                self._assembly.begin_call(text_or_empty(block["name"]), text_or_empty(block.get("id")) or None),
                block,
            )
        elif block["type"] == "text" and block.get("text"):
            self._assembly.text(block["text"])
        elif block["type"] == "thinking" and block.get("thinking"):
            self._assembly.thinking(block["thinking"])

    def _add_delta(self, index: int, delta: Mapping[str, Any]) -> None:
        match delta["type"]:
            case "text_delta":
                self._assembly.text(delta["text"])
            case "thinking_delta":
                self._assembly.thinking(delta["thinking"])
            case "input_json_delta" if delta["partial_json"] and index in self._blocks:
                self._assembly.arguments(self._blocks[index][0], delta["partial_json"])
            case _:  # signatures, citations
                pass

    def _end_block(self, index: int) -> None:
        if index not in self._blocks:
            return
        number, block = self._blocks[index]
        if not self._assembly.arguments_of(number):  # a call without arguments sends no piece of them
            self._assembly.arguments(number, to_json(block.get("input") or {}).decode())
        self._assembly.end_call(number)

    def _add_usage(self, usage: object) -> None:
        if isinstance(usage, Mapping):  # the counts of later events are totals and replace the earlier ones
            self._usage |= {name: value for name, value in usage.items() if value is not None}


def _usage(usage: Mapping[str, Any]) -> tuple[Usage | None, int]:
    """The tokens of a message, and how many of its input were written to the cache.

    Anthropic counts the input that a cache served or took apart from the rest; here all of it is input.
    """
    written, cached = token_count(usage.get(_WRITTEN)), token_count(usage.get(_CACHED))
    tokens = Usage(
        input_tokens=token_count(usage.get("input_tokens")) + written + cached,
        output_tokens=token_count(usage.get("output_tokens")),
        cached_tokens=cached,
    )
    return (tokens if tokens.total_tokens else None), written


CACHE = {"type": "ephemeral"}
"""Marks the end of a part of the prompt that the next request will begin with again."""

_INVALID_ID_CHARS = re.compile(r"[^a-zA-Z0-9_-]")
_OPENING = "(The conversation begins.)"


SplitAttachments = Callable[[Message], tuple[list[Sent], str]]
"""The images and PDFs of a message that are sent, with their base64, and a text about the others."""


def convert_messages(
    messages: Sequence[Message], names: ToolNameMap, split: SplitAttachments = lambda _: ([], "")
) -> tuple[str, list[dict[str, Any]]]:
    """The system prompt, and the other messages as turns of user and assistant, the last block marked for caching.

    A system message further down becomes part of a user turn, so that what was sent before stays as it was.
    """
    system: list[str] = []
    converted: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system" and not converted:
            system.append(message.content)
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if not converted and role == "assistant":
            converted.append({"role": "user", "content": [_text(_OPENING)]})
        if message.images or message.files:
            attachments, note = split(message)
            noted = replace(message, content=f"{message.content}\n{note}") if note else message
            blocks = _blocks(noted, names, attachments)
        else:
            blocks = _blocks(message, names)
        if converted and converted[-1]["role"] == role:
            converted[-1]["content"].extend(blocks)
        elif blocks:
            converted.append({"role": role, "content": blocks})
    if converted:
        last = converted[-1]["content"]
        last[-1] = {**last[-1], "cache_control": CACHE}
    return "\n\n".join(system), converted


def _blocks(message: Message, names: ToolNameMap, attachments: Sequence[Sent] = ()) -> list[dict[str, Any]]:
    content = message.content
    attached = [_attachment(info, body) for info, body in attachments]
    if message.role == "tool":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": _id(message.tool_call_id)}
        if content.strip() or attached:
            result["content"] = [*([_text(content)] if content.strip() else []), *attached]
        return [result]
    if message.role == "assistant":
        content = content.rstrip()
    blocks = [*([_text(content)] if content.strip() else []), *attached]
    return blocks + [
        {"type": "tool_use", "id": _id(call.id), "name": names.outgoing(call.name), "input": _input(call)}
        for call in message.tool_calls
    ]


def _attachment(info: AttachmentInfo, body: str | None) -> dict[str, Any]:
    """An image or a PDF as a block."""
    if isinstance(info, ImageInfo) and info.url:
        return {"type": "image", "source": {"type": "url", "url": info.url}}
    source = {"type": "base64", "media_type": info.media_type, "data": body}
    if isinstance(info, ImageInfo):
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, "title": info.file_name}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _id(call_id: str | None) -> str:
    return _INVALID_ID_CHARS.sub("_", call_id or "") or "none"


def _input(call: ToolCallText) -> dict[str, Any]:
    """The arguments as an object; a value of another kind is put into the field `arguments`."""
    try:
        value = from_json(call.arguments or "{}")
    except ValueError:
        value = call.arguments
    return value if isinstance(value, dict) else {"arguments": value}


def _tool_choice(choice: str | None, names: ToolNameMap) -> dict[str, Any] | None:
    if choice is None:
        return None
    kinds = {"auto": "auto", "required": "any"}
    return {"type": kinds[choice]} if choice in kinds else {"type": "tool", "name": names.outgoing(choice)}


DEFAULT_MAX_TOKENS = 16_384
"""The API wants a bound; this is the most that every current model can be asked for in one answer without a stream."""

_SAMPLING = ("temperature", "top_p")
_SAMPLING_VERSION = {"anthropic-version": "2023-06-01"}
"""The version of the API that still takes sampling parameters; later ones refuse them for every model, and the SDK
asks for the latest. A model that refuses them under this version too is asked without them, under the SDK's own."""


class AnthropicModel(ProviderModel):
    """A Claude model.

    The prompt so far is marked for caching (system prompt with tools, and the last message), so that the next turn,
    which begins with the same messages, reads it from the cache.
    """

    _indispensable = frozenset({"max_tokens"})
    max_image_chars = 5 * 1024 * 1024
    max_image_side = 8_000

    @property
    def takes_pdf(self) -> bool:
        """Its API takes PDFs, for the models from Claude 3.5 on."""
        return re.search(r"claude-3-(?!5|7)", self.endpoint.model) is None

    def _target(self) -> HttpTarget:
        from taoloop.models.http.sdk_request import anthropic_target  # noqa: PLC0415  # only needed for a call

        return anthropic_target(self.endpoint)

    def _body(self, request: ModelRequest, names: ToolNameMap, *, streamed: bool) -> dict[str, Any]:
        tools, closing = self._tools(request, names)
        settings = request.settings or {}
        if missing := [name for name in ("reasoning_effort", "seed") if name in settings]:
            raise ModelRequestRefused(
                f"Anthropic has no setting {missing[0]!r}.",
                hint="Take it out of model_settings, or give what its API has as extra_body.",
            )
        system, messages = convert_messages(request.messages, names, partial(self.split_attachments, request))
        return {
            "model": self.endpoint.model,
            "max_tokens": request.max_output_tokens or DEFAULT_MAX_TOKENS,
            "messages": messages,
            "system": [{"type": "text", "text": system, "cache_control": CACHE}] if system.strip() else None,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "stop_sequences": [stop for stop in self._stops(request) if stop.strip()] or None,  # blank ones are refused
            "tools": tools or None,
            "tool_choice": {"type": "none"} if closing and tools else _tool_choice(chosen_tool(request), names),
            "output_config": self._output_config(request),
            "stream": True if streamed else None,
            **settings.get("extra_body", {}),
        }

    def _headers(self, body: Mapping[str, Any]) -> Mapping[str, str] | None:
        return _SAMPLING_VERSION if any(name in body for name in _SAMPLING) else None

    def _tool(self, card: ToolCard, names: ToolNameMap, language: str) -> dict[str, Any]:
        schema = dict(card.input_schema)
        return {
            "name": names.outgoing(card.name),
            "description": describe(card, language),
            "input_schema": schema if schema.get("type") == "object" else {"type": "object", **schema},
        }

    def _output_config(self, request: ModelRequest) -> dict[str, Any] | None:
        schema = self._reply_schema(request)
        if schema is None:
            return None
        from anthropic import transform_schema  # noqa: PLC0415  # loaded by now: it has prepared the target

        try:
            schema = transform_schema(dict(schema))  # the API takes a part of JSON Schema; the rest becomes description
        except (ValueError, TypeError, AssertionError):
            return None
        return {"format": {"type": "json_schema", "schema": schema}}

    def _reader(self, names: ToolNameMap, on_delta: DeltaListener | None) -> ReplyStream:
        return AnthropicStream(self, names, on_delta)
