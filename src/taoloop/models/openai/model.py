"""Any OpenAI-compatible chat endpoint: as the official SDK (extra `openai`) addresses it, loaded at the first call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.message import Message, ModelReply
from taoloop.core.model_request import ModelRequest
from taoloop.dialects.prompt.tool_listing import describe
from taoloop.models.http.provider_model import ProviderModel, StreamReader, is_strict
from taoloop.models.http.transport import HttpTarget
from taoloop.models.openai.names import ToolNameMap
from taoloop.models.openai.replies import OpenAIStream, read_completion


class OpenAIModel(ProviderModel):
    """A chat model behind an OpenAI-compatible address.

    Where `max_tokens` is refused as unsupported, the model gets `max_completion_tokens` instead.
    """

    def _target(self) -> HttpTarget:
        from taoloop.models.http.sdk_request import openai_target  # noqa: PLC0415  # only needed for a call

        return openai_target(self.endpoint)

    def _body(self, request: ModelRequest, names: ToolNameMap, *, streamed: bool) -> dict[str, Any]:
        tools, closing = self._tools(request, names)
        untaken = self._untaken.parameters
        optional = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_tokens": request.max_output_tokens,
            "stop": list(request.stop) or None,
            "tools": tools or None,
            "tool_choice": "none" if closing and tools else None,
            "response_format": _response_format(self._wanted_schema(request)),
        }
        if streamed:
            optional |= {"stream": True, "stream_options": {"include_usage": True}}
        if "max_tokens" in untaken:
            optional["max_completion_tokens"] = request.max_output_tokens
        body: dict[str, Any] = {
            "model": self.endpoint.model,
            "messages": [_message(message, names) for message in request.messages],
        }
        body.update({name: value for name, value in optional.items() if value is not None and name not in untaken})
        return body

    def _tool(self, card: ToolCard, names: ToolNameMap, language: str) -> dict[str, Any]:
        return {
            "type": "function",
            "function": {
                "name": names.outgoing(card.name),
                "description": describe(card, language),
                "parameters": dict(card.input_schema),
            },
        }

    def _parse_reply(self, value: Mapping[str, Any], names: ToolNameMap) -> ModelReply:
        return read_completion(value, names, self)

    def _reader(self, names: ToolNameMap, request: ModelRequest) -> StreamReader:
        return OpenAIStream(self, names, request.on_delta)


def _response_format(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if schema is None:
        return None
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": is_strict(schema)}}


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
