"""Replies in the form of Anthropic's messages API, whole or streamed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import to_json

from taoloop.core.message import Delta, ModelReply, ToolCallText, Usage
from taoloop.errors import ModelContentRefused, ModelUnavailable
from taoloop.models.http.errors import error_of, refusal_in
from taoloop.models.http.lenient_json import parsed
from taoloop.models.http.provider_model import ProviderModel
from taoloop.models.http.reply_builder import Assembly
from taoloop.models.http.sse import SseDecoder
from taoloop.models.openai.names import ToolNameMap
from taoloop.models.openai.replies import count, word

_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
"""Anthropic's words and those that the dialects know; another word stays as it is."""

_WRITTEN = "cache_creation_input_tokens"
_READ = "cache_read_input_tokens"


def read_message(value: Mapping[str, Any], names: ToolNameMap, model: ProviderModel) -> ModelReply:
    """The reply in a whole message.

    Raises:
        ModelContentRefused: the model refused to answer.
        KeyError, TypeError, AttributeError: it is no message.
    """
    _refuse(value.get("stop_reason"), value.get("stop_details"), model)
    blocks = value["content"]
    answered_by = word(value.get("model")) or model.model
    usage, written = _usage(value.get("usage") or {})
    return ModelReply(
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        tool_calls=tuple(
            ToolCallText(
                name=names.ours(word(block["name"])), arguments=_arguments(block), id=word(block.get("id")) or None
            )
            for block in blocks
            if block["type"] == "tool_use"
        ),
        finish_reason=_finish_reason(value.get("stop_reason")),
        model=answered_by,
        usage=usage or Usage(),
        cost_usd=model.cost(answered_by, usage, cache_write_tokens=written),
        thinking="".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
    )


class AnthropicStream:
    """Reads the events of one streamed message. It is whole at `message_stop`."""

    def __init__(self, model: ProviderModel, names: ToolNameMap, on_delta: Callable[[Delta], None] | None) -> None:
        self._model = model
        self._assembly = Assembly(model.spec, names, on_delta)
        self._events = SseDecoder()
        self._blocks: dict[int, tuple[int, Mapping[str, Any]]] = {}  # calls by the number of their block
        self._answered_by = ""
        self._stop: Mapping[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._done = False

    def feed(self, piece: bytes) -> bool:
        """Take a piece of the stream; True at its `message_stop`."""
        for data in self._events.feed(piece):
            try:
                self._take(parsed(data))
            except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
                raise self._model.unreadable("a piece of its stream is no event of a message") from error
            if self._done:
                return True
        self._assembly.bound(self._events.pending)
        return False

    @property
    def whole(self) -> bool:
        """Whether the reply has all of its parts."""
        return self._done

    def reply(self) -> ModelReply:
        """The reply.

        Raises:
            ModelUnavailable: the stream ended before the message did.
            ModelContentRefused: the model refused to answer.
        """
        if not self.whole:
            raise ModelUnavailable(f"{self._model.spec} ended its stream before the reply was whole.")
        _refuse(self._stop.get("stop_reason"), self._stop.get("stop_details"), self._model)
        answered_by = self._answered_by or self._model.model
        usage, written = _usage(self._usage)
        return self._assembly.reply(
            finish_reason=_finish_reason(self._stop.get("stop_reason")),
            model=answered_by,
            usage=usage or Usage(),
            cost_usd=self._model.cost(answered_by, usage, cache_write_tokens=written),
        )

    def _take(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "message_start":
                self._answered_by = word(event["message"].get("model"))
                self._count(event["message"].get("usage"))
            case "content_block_start":
                self._begin(event["index"], event["content_block"])
            case "content_block_delta":
                self._go_on(event["index"], event["delta"])
            case "content_block_stop":
                self._end(event["index"])
            case "message_delta":
                self._stop = event["delta"]
                self._count(event.get("usage"))
            case "message_stop":
                self._done = True
            case "error":
                raise error_of(refusal_in(event, 200), self._model.endpoint)
            case _:  # ping, and what later versions add
                pass

    def _begin(self, index: int, block: Mapping[str, Any]) -> None:
        if block["type"] == "tool_use":
            self._blocks[index] = (self._assembly.begin_call(word(block["name"]), word(block.get("id")) or None), block)
        elif block["type"] == "text" and block.get("text"):
            self._assembly.text(block["text"])

    def _go_on(self, index: int, delta: Mapping[str, Any]) -> None:
        match delta["type"]:
            case "text_delta":
                self._assembly.text(delta["text"])
            case "thinking_delta":
                self._assembly.thinking(delta["thinking"])
            case "input_json_delta" if delta["partial_json"] and index in self._blocks:
                self._assembly.arguments(self._blocks[index][0], delta["partial_json"])
            case _:  # signatures, citations
                pass

    def _end(self, index: int) -> None:
        if index not in self._blocks:
            return
        number, block = self._blocks[index]
        if not self._assembly.arguments_of(number):  # a call without arguments sends no piece of them
            self._assembly.arguments(number, _arguments(block))
        self._assembly.end_call(number)

    def _count(self, usage: object) -> None:
        if isinstance(usage, Mapping):  # the counts of later events are totals and replace the earlier ones
            self._usage |= {name: value for name, value in usage.items() if value is not None}


def _usage(usage: Mapping[str, Any]) -> tuple[Usage | None, int]:
    """The tokens of a message, and how many of its input were written to the cache.

    Anthropic counts the input that a cache served or took apart from the rest; here all of it is input.
    """
    written, cached = count(usage.get(_WRITTEN)), count(usage.get(_READ))
    tokens = Usage(
        input_tokens=count(usage.get("input_tokens")) + written + cached,
        output_tokens=count(usage.get("output_tokens")),
        cached_tokens=cached,
    )
    return (tokens if tokens.total_tokens else None), written


def _finish_reason(stop_reason: object) -> str | None:
    return _FINISH_REASONS.get(stop_reason, stop_reason) if isinstance(stop_reason, str) else None


def _refuse(stop_reason: object, details: object, model: ProviderModel) -> None:
    if stop_reason == "refusal":
        explanation = details.get("explanation") or details.get("category") if isinstance(details, Mapping) else None
        raise ModelContentRefused(f"{model.spec} refused to answer: {str(explanation or 'it gave no reason')[:500]}")


def _arguments(block: Mapping[str, Any]) -> str:
    return to_json(block.get("input") or {}).decode()
