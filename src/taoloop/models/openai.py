"""Any OpenAI-compatible chat endpoint, through the official SDK (extra `openai`), loaded at the first call."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from taoloop.core.cards import ToolCard
from taoloop.core.message import Message, ModelReply, ToolCallText, Usage
from taoloop.core.request import ModelRequest
from taoloop.dialects.toolblock import describe
from taoloop.errors import MissingExtra, ModelError, ModelTimeout, ModelUnavailable
from taoloop.models.openai_names import WireNames
from taoloop.models.providers import Endpoint, endpoint

_DROPPABLE = ("temperature", "top_p", "stop", "max_tokens")
_NAMED = {
    name: re.compile(rf"[\"'`]{name}[\"'`]" if name == "stop" else rf"\b{name}\b")  # a bare `stop` is a word of prose
    for name in _DROPPABLE
}
_UNSUPPORTED = re.compile(
    r"unsupported|not[ _]support|not allowed|not permitted|unknown|unrecogni[sz]ed|unexpected", re.IGNORECASE
)


class OpenAIModel:
    """A chat model behind an OpenAI-compatible address.

    The SDK's own client is made once per event loop, since its connections belong to the loop.
    A parameter that the model refuses as unsupported (temperature, top_p, stop, max_tokens) is left out from then
    on; instead of max_tokens it gets max_completion_tokens.
    """

    def __init__(self, target: Endpoint) -> None:
        self._target = target
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
        self._refused: frozenset[str] = frozenset()

    @classmethod
    def from_env(cls, provider: str, model: str, env: Mapping[str, str]) -> OpenAIModel:
        """The model as the environment configures its provider.

        Raises:
            MissingKey: a variable is not set; names it.
        """
        return cls(endpoint(provider, model, env))

    @property
    def spec(self) -> str:
        """`PROVIDER:MODEL`."""
        return f"{self._target.provider}:{self._target.model}"

    @property
    def dialect(self) -> str:
        """Native tool calls, which such endpoints have."""
        return "native"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One chat completion. A provider that reports no usage leaves the reply's `usage` at zero."""
        openai = _sdk()
        names = WireNames(card.name for card in (*request.trace.agent.tools, *request.tools))
        try:
            completion = await self._completion(openai, request, names)
        except openai.APITimeoutError as error:
            raise ModelTimeout(f"{self.spec} gave no reply in time.") from error
        except openai.APIConnectionError as error:
            address = self._target.base_url or "the provider"
            raise ModelUnavailable(
                f"{self.spec} cannot be reached at {address}: {error.__cause__ or error}.",
                hint="Check the address and the network.",
            ) from error
        except openai.APIStatusError as error:
            raise ModelUnavailable(f"{self.spec} answered {error.status_code}: {error.message[:500]}") from error
        except (openai.OpenAIError, ValueError, TypeError) as error:
            raise ModelError(f"{self.spec} answered something that cannot be read: {str(error)[:500]}") from error
        return self._reply(completion, names)

    def check_used(self, replies: int) -> None:
        """A provider has no script to check."""

    async def close(self) -> None:
        """Close the connections of the running loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def _client(self, openai: Any) -> Any:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = openai.AsyncOpenAI(
                api_key=self._target.api_key, base_url=self._target.base_url, max_retries=2, timeout=None
            )
            self._clients[loop] = client
        return client

    async def _completion(self, openai: Any, request: ModelRequest, names: WireNames) -> Any:
        """What the API answers, asked again without each parameter that it does not know."""
        create = self._client(openai).chat.completions.create
        while True:
            body = self._body(request, names)
            try:
                return await create(**body)
            except openai.BadRequestError as error:
                refused = _unsupported(error) & body.keys()  # each round leaves out one more, so it ends
                if not refused:
                    raise
                self._refused |= refused

    def _body(self, request: ModelRequest, names: WireNames) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._target.model,
            "messages": [_message(message, names) for message in request.messages],
        }
        tools = request.tools if request.native else ()
        closing = request.native and not tools and any(message.tool_calls for message in request.messages)
        if closing:  # some servers refuse messages with calls where no tools are told
            tools = request.trace.agent.tools
        optional = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_tokens": request.max_output_tokens,
            "stop": list(request.stop) or None,
            "tools": [_tool(card, names) for card in tools] or None,
            "tool_choice": "none" if closing and tools else None,
            "timeout": request.timeout_s,
        }
        if "max_tokens" in self._refused:
            optional["max_completion_tokens"] = request.max_output_tokens
        body.update(
            {name: value for name, value in optional.items() if value is not None and name not in self._refused}
        )
        return body

    def _reply(self, completion: Any, names: WireNames) -> ModelReply:
        choices = getattr(completion, "choices", None)
        if not choices:
            raise ModelError(f"{self.spec} answered without any choice.")
        message = choices[0].message
        usage = getattr(completion, "usage", None)
        return ModelReply(
            text=message.content or "",
            tool_calls=tuple(
                ToolCallText(
                    name=names.ours(call.function.name or ""), arguments=call.function.arguments or "", id=call.id
                )
                for call in message.tool_calls or ()
                if call.type == "function"
            ),
            finish_reason=choices[0].finish_reason,
            model=completion.model or self._target.model,
            usage=_usage(usage) if usage is not None else Usage(),
            thinking=getattr(message, "reasoning_content", None) or "",
        )


def _sdk() -> Any:
    try:
        import openai  # noqa: PLC0415  # heavy and optional
    except ImportError as error:
        raise MissingExtra(
            "The OpenAI SDK is not installed.", hint="Install the extra: pip install 'taoloop[openai]'."
        ) from error
    return openai


def _unsupported(error: Any) -> frozenset[str]:
    """The parameters that a refusal names as unsupported; none for a refusal of another kind."""
    if not _UNSUPPORTED.search(f"{error.code} {error.message}"):
        return frozenset()
    if error.param:
        return frozenset(name for name in _DROPPABLE if name == error.param)
    return frozenset(name for name, pattern in _NAMED.items() if pattern.search(error.message))


def _message(message: Message, names: WireNames) -> dict[str, Any]:
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


def _tool(card: ToolCard, names: WireNames) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": names.outgoing(card.name),
            "description": describe(card),
            "parameters": dict(card.input_schema),
        },
    }


def _usage(usage: Any) -> Usage:
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        input_tokens=getattr(usage, "prompt_tokens", None) or 0,
        output_tokens=getattr(usage, "completion_tokens", None) or 0,
        cached_tokens=getattr(details, "cached_tokens", None) or 0,
    )
