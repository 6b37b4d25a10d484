"""Replies in the form of OpenAI's chat completions, whole or streamed, as the many servers that speak it write them."""

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

_THINKING = ("reasoning_content", "reasoning")  # DeepSeek, Qwen, llama.cpp · vLLM, Ollama, OpenRouter
_DONE = b"[DONE]"
_MOST_TOKENS = 10**12
_LONGEST_REFUSAL = 500  # characters of the model's own words


def read_completion(value: Mapping[str, Any], names: ToolNameMap, model: ProviderModel) -> ModelReply:
    """The reply in a whole chat completion.

    Raises:
        ModelReplyUnreadable: it has no choice.
        ModelContentRefused: the model refused to answer.
        KeyError, TypeError, AttributeError: it is no chat completion.
    """
    if not value.get("choices"):
        raise model.unreadable("an answer without any choice")
    choice = value["choices"][0]
    message = choice["message"]
    refuse(message.get("refusal"), model)
    text, thinking = _parts(message.get("content"))
    answered_by = word(value.get("model")) or model.model
    usage = read_usage(value.get("usage"))
    return ModelReply(
        text=text,
        tool_calls=tuple(
            ToolCallText(
                name=names.ours(word(call["function"].get("name"))),
                arguments=_arguments(call["function"].get("arguments")),
                id=word(call.get("id")) or None,
            )
            for call in message.get("tool_calls") or ()
            if call.get("type", "function") == "function"
        ),
        finish_reason=word(choice.get("finish_reason")) or None,
        model=answered_by,
        usage=usage or Usage(),
        cost_usd=model.cost(answered_by, usage),
        thinking=_thinking(message) or thinking,
    )


class OpenAIStream:
    """Reads the chunks of one streamed completion.

    It is whole at `[DONE]`, or where its finish reason came and the server ended the stream without that line.
    """

    def __init__(self, model: ProviderModel, names: ToolNameMap, on_delta: Callable[[Delta], None] | None) -> None:
        self._model = model
        self._assembly = Assembly(model.spec, names, on_delta)
        self._events = SseDecoder()
        self._numbers: dict[object, int] = {}  # the provider's number of a call, and ours
        self._ids: dict[int | None, str] = {}  # ids by our number
        self._refusal = ""
        self._answered_by = ""
        self._finish_reason: str | None = None
        self._usage: Usage | None = None
        self._done = False

    def feed(self, piece: bytes) -> bool:
        """Take a piece of the stream; True at its `[DONE]`."""
        for data in self._events.feed(piece):
            if data == _DONE:
                self._done = True
                return True
            try:
                self._take(parsed(data))
            except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
                raise self._model.unreadable("a piece of its stream is no chunk of a chat completion") from error
        self._assembly.bound(self._events.pending)
        return False

    @property
    def whole(self) -> bool:
        """Whether the reply has all of its parts."""
        return self._done or self._finish_reason is not None

    def reply(self) -> ModelReply:
        """The reply.

        Raises:
            ModelUnavailable: the stream ended before the reply was whole.
            ModelContentRefused: the model refused to answer.
        """
        if not self.whole:
            raise ModelUnavailable(f"{self._model.spec} ended its stream before the reply was whole.")
        refuse(self._refusal, self._model)
        self._assembly.end_calls()
        answered_by = self._answered_by or self._model.model
        return self._assembly.reply(
            finish_reason=self._finish_reason,
            model=answered_by,
            usage=self._usage or Usage(),
            cost_usd=self._model.cost(answered_by, self._usage),
        )

    def _take(self, chunk: Mapping[str, Any]) -> None:
        if chunk.get("error") or (chunk.get("object") == "error"):
            raise error_of(refusal_in(chunk, 200), self._model.endpoint)
        self._answered_by = word(chunk.get("model")) or self._answered_by
        self._usage = read_usage(chunk.get("usage")) or self._usage
        for choice in chunk.get("choices") or ():
            if not choice.get("index"):  # the first of several; some servers do not number their only one
                self._take_delta(choice.get("delta") or {})
                self._finish_reason = word(choice.get("finish_reason")) or self._finish_reason

    def _take_delta(self, delta: Mapping[str, Any]) -> None:
        text, thinking = _parts(delta.get("content"))
        thinking = _thinking(delta) or thinking
        if thinking:
            self._assembly.thinking(thinking)
        if text:
            self._assembly.text(text)
        self._refusal += word(delta.get("refusal"))[: _LONGEST_REFUSAL - len(self._refusal)]
        for call in delta.get("tool_calls") or ():
            self._take_call(call)

    def _take_call(self, call: Mapping[str, Any]) -> None:
        function = call.get("function") or {}
        name, call_id, key = word(function.get("name")), word(call.get("id")), call.get("index")
        if key is None:  # some servers number no calls: an id or a name begins one, and without them the last goes on
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


def refuse(refusal: object, model: ProviderModel) -> None:
    """Nothing where there is no refusal.

    Raises:
        ModelContentRefused: there is one; holds the model's own words.
    """
    if isinstance(refusal, str) and refusal.strip():
        raise ModelContentRefused(f"{model.spec} refused to answer: {refusal.strip()[:_LONGEST_REFUSAL]}")


def read_usage(usage: object) -> Usage | None:
    """The tokens that a provider reports; None where it reports none."""
    if not isinstance(usage, Mapping):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    if cached is None:
        cached = usage.get("prompt_cache_hit_tokens")  # DeepSeek
    tokens = Usage(
        input_tokens=count(usage.get("prompt_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        cached_tokens=count(cached),
    )
    return tokens if tokens.total_tokens else None


def count(value: object) -> int:
    """A number of tokens; anything else that a server may put there is 0."""
    return value if type(value) is int and 0 < value < _MOST_TOKENS else 0


def word(value: object) -> str:
    """A text; whatever else a server may put in its place is an empty one."""
    return value if isinstance(value, str) else ""


def _thinking(message: Mapping[str, Any]) -> str:
    return next((text for name in _THINKING if (text := word(message.get(name)))), "")


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
