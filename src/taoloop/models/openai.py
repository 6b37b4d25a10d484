"""Any OpenAI-compatible chat endpoint: as the official SDK (extra `openai`) addresses it, loaded at the first call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from taoloop.core.attachments.files import AttachmentInfo
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.effects import ModelRequest
from taoloop.core.images import ImageInfo
from taoloop.core.message import Message, ModelReply, Usage
from taoloop.core.text import lazy_pattern
from taoloop.dialects.prompt import describe
from taoloop.dialects.texts import TEXTS
from taoloop.errors import ModelContentRefused
from taoloop.models.base import DeltaListener
from taoloop.models.http.errors import make_error, read_error
from taoloop.models.http.provider_model import ProviderModel, ReplyStream, Sent, chosen_tool
from taoloop.models.http.reply_builder import ToolNameMap, parse_json, text_or_empty, token_count
from taoloop.models.http.transport import HttpTarget

_THINKING = ("reasoning_content", "reasoning")  # DeepSeek, Qwen, llama.cpp · vLLM, Ollama, OpenRouter
_DONE = b"[DONE]"
_MAX_REFUSAL_CHARS = 500  # characters of the model's own words


class OpenAIStream(ReplyStream):
    """Reads the chunks of one streamed completion, or a whole one.

    It is whole at `[DONE]`, or where its finish reason came and the server ended the stream without that line.
    """

    _unit = "chunk of a chat completion"

    def __init__(self, model: ProviderModel, names: ToolNameMap, on_delta: DeltaListener | None) -> None:
        super().__init__(model, names, on_delta)
        self._numbers: dict[object, int] = {}  # the provider's number of a call, and ours
        self._ids: dict[int | None, str] = {}  # ids by our number
        self._refusal = ""
        self._finish_reason: str | None = None
        self._usage: Usage | None = None

    @property
    def whole(self) -> bool:
        """Whether the reply has all of its parts."""
        return self._done or self._finish_reason is not None

    def read_whole(self, value: Mapping[str, Any]) -> ModelReply:
        """The reply in a whole chat completion: that of a stream with one chunk."""
        if not value.get("choices"):
            raise self._model.unreadable("an answer without any choice")
        choice, message = value["choices"][0], value["choices"][0]["message"]
        calls = [call for call in message.get("tool_calls") or () if call.get("type", "function") == "function"]
        numbered = [{**call, "index": index, "function": call["function"]} for index, call in enumerate(calls)]
        delta = {**message, "tool_calls": numbered}
        self._take_chunk({**value, "choices": [{**choice, "index": 0, "delta": delta}]})
        return self._reply()

    def _reply(self) -> ModelReply:
        if self._refusal.strip():
            raise ModelContentRefused(f"{self._model.spec} refused to answer: {self._refusal.strip()}")
        self._assembly.end_calls()
        return self._finish(self._finish_reason, self._usage)

    def _take(self, data: bytes) -> None:
        if data == _DONE:
            self._done = True
            return
        chunk = parse_json(data)
        if chunk.get("error") or (chunk.get("object") == "error"):
            raise make_error(read_error(chunk, 200), self._model.endpoint)
        self._take_chunk(chunk)

    def _take_chunk(self, chunk: Mapping[str, Any]) -> None:
        self._answered_by = text_or_empty(chunk.get("model")) or self._answered_by
        self._usage = read_usage(chunk.get("usage")) or self._usage
        for choice in chunk.get("choices") or ():
            if not choice.get("index"):  # the first of several; some servers do not number their only one
                self._take_delta(choice.get("delta") or {})
                self._finish_reason = text_or_empty(choice.get("finish_reason")) or self._finish_reason

    def _take_delta(self, delta: Mapping[str, Any]) -> None:
        text, thinking = _parts(delta.get("content"))
        own_fields = (text_or_empty(delta.get(name)) for name in _THINKING)
        if thinking := next(filter(None, own_fields), thinking):
            self._assembly.thinking(thinking)
        if text:
            self._assembly.text(text)
        self._refusal += text_or_empty(delta.get("refusal"))[: _MAX_REFUSAL_CHARS - len(self._refusal)]
        for call in delta.get("tool_calls") or ():
            self._take_call(call)

    def _take_call(self, call: Mapping[str, Any]) -> None:
        function = call.get("function") or {}
        name, call_id, key = text_or_empty(function.get("name")), text_or_empty(call.get("id")), call.get("index")
        if (
            key is None
        ):  # some servers number no calls: an id or a name begins one, and without them the last one continues
            key = call_id or (name and ("unnumbered", len(self._numbers))) or next(reversed(self._numbers), 0)
        number = self._numbers.get(key)
        known_id = self._ids.get(number, "")
        other = bool(name and call_id and known_id and call_id != known_id)  # some servers number every call 0
        if number is None or other:
            number = self._numbers[key] = self._assembly.begin_call(name, call_id or None)
            self._ids[number] = call_id
        elif name:
            self._assembly.name(number, name)
        arguments = _arguments(function.get("arguments"))
        if arguments:
            self._assembly.arguments(number, arguments)


def read_usage(usage: object) -> Usage | None:
    """The tokens that a provider reports; None where it reports none."""
    if not isinstance(usage, Mapping):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    if cached is None:
        cached = usage.get("prompt_cache_hit_tokens")  # DeepSeek
    tokens = Usage(
        input_tokens=token_count(usage.get("prompt_tokens")),
        output_tokens=token_count(usage.get("completion_tokens")),
        cached_tokens=token_count(cached),
    )
    return tokens if tokens.total_tokens else None


def _parts(content: object) -> tuple[str, str]:
    """Text and thinking of a content: a text, or a list of parts as Mistral's reasoning models write it."""
    if content is None or isinstance(content, str):
        return content or "", ""
    text, thinking = [], []
    for part in content if isinstance(content, list) else ():
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            thinking.append(_parts(inner)[0])
        elif isinstance(part.get("text"), str):
            text.append(part["text"])
    return "".join(text), "".join(thinking)


def _arguments(arguments: object) -> str:
    """The arguments as JSON text; some servers give the object itself."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else to_json(arguments).decode()


_OF_OPENAI = lazy_pattern(r"(?:gpt|chatgpt|ft:gpt|o\d)\b", re.IGNORECASE)


class OpenAIModel(ProviderModel):
    """A chat model behind an OpenAI-compatible address.

    Where `max_tokens` is refused as unsupported, the model gets `max_completion_tokens` instead.
    """

    def _target(self) -> HttpTarget:
        from taoloop.models.http.sdk_request import openai_target  # noqa: PLC0415  # only needed for a call

        return openai_target(self.endpoint)

    @property
    def takes_pdf(self) -> bool:
        """OpenAI's models take PDFs as `file` parts; other servers with such an address rarely do."""
        return self.endpoint.provider == "openai" and _OF_OPENAI.match(self.endpoint.model) is not None

    def _body(self, request: ModelRequest, names: ToolNameMap, *, streamed: bool) -> dict[str, Any]:
        tools, closing = self._tools(request, names)
        renamed, settings = "max_tokens" in self._unsupported.parameters, request.settings or {}
        return {
            "model": self.endpoint.model,
            "messages": self._messages(request, names),
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_tokens": request.max_output_tokens,
            "max_completion_tokens": request.max_output_tokens if renamed else None,
            "stop": self._stops(request) or None,
            "reasoning_effort": settings.get("reasoning_effort"),
            "seed": settings.get("seed"),
            "tools": tools or None,
            "tool_choice": "none" if closing and tools else _tool_choice(chosen_tool(request), names),
            "response_format": _response_format(self._reply_schema(request)),
            "stream": True if streamed else None,
            "stream_options": {"include_usage": True} if streamed else None,
            **settings.get("extra_body", {}),
        }

    def _messages(self, request: ModelRequest, names: ToolNameMap) -> list[dict[str, Any]]:
        """The messages. Tool messages hold texts only, so images and PDFs of results follow in a message of the user.

        It comes behind the last result of a turn, because nothing may stand between them.
        """
        bodies: list[dict[str, Any]] = []
        of_tools: list[Sent] = []
        for message in request.messages:
            if of_tools and message.role != "tool":
                bodies.append(_tool_attachments(of_tools, request))
                of_tools = []
            body = _message(message, names)
            if message.images or message.files:
                sent, note = self.split_attachments(request, message)
                content = f"{message.content}\n{note}" if note else message.content
                is_result = message.role == "tool"
                body["content"] = content if is_result or not sent else _parts_with(content, sent)
                of_tools += sent if is_result else []
            bodies.append(body)
        return [*bodies, _tool_attachments(of_tools, request)] if of_tools else bodies

    def _tool(self, card: ToolCard, names: ToolNameMap, language: str) -> dict[str, Any]:
        return {
            "type": "function",
            "function": {
                "name": names.outgoing(card.name),
                "description": describe(card, language),
                "parameters": dict(card.input_schema),
            },
        }

    def _reader(self, names: ToolNameMap, on_delta: DeltaListener | None) -> ReplyStream:
        return OpenAIStream(self, names, on_delta)


def _is_strict(schema: Any) -> bool:
    """Whether every object in the schema is closed and has all of its properties required.

    OpenAI guarantees a schema only in this form (`strict`); another one it takes as a wish.
    https://platform.openai.com/docs/guides/structured-outputs
    """
    if isinstance(schema, list):
        return all(_is_strict(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    if "default" in schema or (schema.get("type") == "object" and not _is_closed(schema)):
        return False
    return all(_is_strict(part) for name, part in schema.items() if name not in ("enum", "const", "examples"))


def _is_closed(schema: Mapping[str, Any]) -> bool:
    properties = schema.get("properties", {})
    return schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(properties)


def _tool_choice(choice: str | None, names: ToolNameMap) -> Any:
    if choice is None or choice in ("auto", "required"):
        return choice
    return {"type": "function", "function": {"name": names.outgoing(choice)}}


def _closed(schema: Any) -> Any:
    """The schema with every object closed that requires all of its properties and does not say whether it is open.

    A reply that fits it fits the schema too, and the provider may guarantee it; pydantic leaves objects open.
    """
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    closed = {name: part if name in ("enum", "const", "examples") else _closed(part) for name, part in schema.items()}
    properties = schema.get("properties")
    if schema.get("type") == "object" and properties and set(schema.get("required", ())) == set(properties):
        closed.setdefault("additionalProperties", False)
    return closed


def response_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema for replies as OpenAI's APIs take it: with a name, and strict where it can be."""
    closed = _closed(schema)
    if _is_strict(closed):
        schema = closed
    return {"name": "reply", "schema": schema, "strict": _is_strict(schema)}


def _response_format(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if schema is None else {"type": "json_schema", "json_schema": response_schema(schema)}


def _tool_attachments(attachments: Sequence[Sent], request: ModelRequest) -> dict[str, Any]:
    """The message with the images and PDFs of the tool results before it."""
    refs = ", ".join(info.ref for info, _ in attachments)
    text = TEXTS.text(request.trace.agent.language, "tool_images", refs=refs)
    return {"role": "user", "content": _parts_with(text, attachments)}


def _parts_with(text: str, attachments: Sequence[Sent]) -> list[dict[str, Any]]:
    """A content of parts: the text, each image by its URL or as a data URI (RFC 2397), and each PDF as a file."""
    return [{"type": "text", "text": text}, *(_part(info, body) for info, body in attachments)]


def _part(info: AttachmentInfo, body: str | None) -> dict[str, Any]:
    if isinstance(info, ImageInfo):
        url = info.url or f"data:{info.media_type};base64,{body}"
        return {"type": "image_url", "image_url": {"url": url}}
    data = f"data:{info.media_type};base64,{body}"
    return {"type": "file", "file": {"filename": info.file_name, "file_data": data}}


def _message(message: Message, names: ToolNameMap) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": names.outgoing(call.name), "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        body["tool_call_id"] = message.tool_call_id
    return body
