"""Anthropic's messages API: as the official SDK (extra `anthropic`) addresses it, loaded at the first call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.message import ModelReply
from taoloop.core.model_request import ModelRequest
from taoloop.dialects.prompt.tool_listing import describe
from taoloop.models.anthropic.messages import CACHE, turns
from taoloop.models.anthropic.replies import AnthropicStream, read_message
from taoloop.models.http.provider_model import ProviderModel, StreamReader
from taoloop.models.http.transport import HttpTarget
from taoloop.models.openai.names import ToolNameMap

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

    def _target(self) -> HttpTarget:
        from taoloop.models.http.sdk_request import anthropic_target  # noqa: PLC0415  # only needed for a call

        return anthropic_target(self.endpoint)

    def _body(self, request: ModelRequest, names: ToolNameMap, *, streamed: bool) -> dict[str, Any]:
        tools, closing = self._tools(request, names)
        untaken = self._untaken.parameters
        system, messages = turns(request.messages, names)
        optional = {
            "system": [{"type": "text", "text": system, "cache_control": CACHE}] if system.strip() else None,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "stop_sequences": [stop for stop in request.stop if stop.strip()] or None,  # blank ones are refused
            "tools": tools or None,
            "tool_choice": {"type": "none"} if closing and tools else None,
            "output_config": self._output_config(request),
            "stream": True if streamed else None,
        }
        body: dict[str, Any] = {
            "model": self.endpoint.model,
            "max_tokens": request.max_output_tokens or DEFAULT_MAX_TOKENS,
            "messages": messages,
        }
        body.update({name: value for name, value in optional.items() if value is not None and name not in untaken})
        return body

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
        schema = self._wanted_schema(request)
        if schema is None:
            return None
        from anthropic import transform_schema  # noqa: PLC0415  # loaded by now: it has prepared the target

        try:
            schema = transform_schema(dict(schema))  # the API takes a part of JSON Schema; the rest becomes description
        except (ValueError, TypeError, AssertionError):
            return None
        return {"format": {"type": "json_schema", "schema": schema}}

    def _parse_reply(self, value: Mapping[str, Any], names: ToolNameMap) -> ModelReply:
        return read_message(value, names, self)

    def _reader(self, names: ToolNameMap, request: ModelRequest) -> StreamReader:
        return AnthropicStream(self, names, request.on_delta)
