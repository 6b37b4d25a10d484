"""Any OpenAI-compatible chat endpoint, through the official SDK (extra `openai`), loaded at the first call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from taoloop.core.cards import ToolCard
from taoloop.core.message import Message, ModelReply, ToolCallText, Usage
from taoloop.core.request import ModelRequest
from taoloop.dialects.toolblock import describe
from taoloop.errors import MissingExtra, ModelError, ModelTimeout, ModelUnavailable
from taoloop.models.providers import Endpoint, endpoint


class OpenAIModel:
    """A chat model behind an OpenAI-compatible address.

    The SDK's own client is made once per event loop, since its connections belong to the loop.
    """

    def __init__(self, target: Endpoint) -> None:
        self._target = target
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()

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
        """One chat completion."""
        openai = _sdk()
        try:
            completion = await self._client(openai).chat.completions.create(**self._body(request))
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
        return self._reply(completion)

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

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._target.model,
            "messages": [_message(message) for message in request.messages],
        }
        optional = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_tokens": request.max_output_tokens,
            "stop": list(request.stop) or None,
            "tools": [_tool(card) for card in request.tools] if request.native and request.tools else None,
            "timeout": request.timeout_s,
        }
        body.update({name: value for name, value in optional.items() if value is not None})
        return body

    def _reply(self, completion: Any) -> ModelReply:
        choices = getattr(completion, "choices", None)
        if not choices:
            raise ModelError(f"{self.spec} answered without any choice.")
        message = choices[0].message
        usage = getattr(completion, "usage", None)
        return ModelReply(
            text=message.content or "",
            tool_calls=tuple(
                ToolCallText(name=call.function.name, arguments=call.function.arguments or "", id=call.id)
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


def _message(message: Message) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        body["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        body["tool_call_id"] = message.tool_call_id
    return body


def _tool(card: ToolCard) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": card.name, "description": describe(card), "parameters": dict(card.input_schema)},
    }


def _usage(usage: Any) -> Usage:
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cached_tokens=getattr(details, "cached_tokens", None) or 0,
    )
