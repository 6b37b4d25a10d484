"""A request as plain data that is the same in every run of the same test: the key under which a reply is recorded."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from taoloop.core.cards.tool_search import listed_cards
from taoloop.core.message import Message, ModelReply, ToolCallText
from taoloop.core.model_request import ModelRequest
from taoloop.core.text import replace_surrogates
from taoloop.dialects.prompt.tool_listing import describe

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_SECRET_CHARS = 8
_KEY_CHARS = 16


@dataclass(frozen=True, slots=True)
class RequestMasks:
    """Texts that differ from run to run or must not be kept, each with what stands in its place."""

    pairs: tuple[tuple[str, str], ...]
    secrets: tuple[tuple[str, str], ...]
    ignored: tuple[re.Pattern[str], ...]

    @classmethod
    def of(
        cls, request: ModelRequest, env: Mapping[str, str] | None, ignore: Sequence[re.Pattern[str]]
    ) -> RequestMasks:
        """The nonce and the ids of the run, the values of variables that are named like secrets, and `ignore`."""
        trace = request.trace
        started = trace.started
        pairs = [(started.nonce if started else "", "⟨nonce⟩"), (trace.run_id, "⟨run⟩")]
        pairs.append((started.parent or "" if started else "", "⟨parent⟩"))
        variables = os.environ if env is None else env
        secrets = [
            (value, f"⟨{name}⟩")
            for name, value in variables.items()
            if len(value) >= _SECRET_CHARS and _SECRET_NAME.search(name)
        ]
        longest_first = sorted(secrets, key=lambda pair: -len(pair[0]))
        long_enough = tuple(pair for pair in pairs if len(pair[0]) >= _SECRET_CHARS)
        return cls(long_enough, tuple(longest_first), tuple(ignore))

    def hide(self, text: str) -> str:
        """The text as it may be kept."""
        text = replace_surrogates(text)
        for value, mask in (*self.secrets, *self.pairs):
            text = text.replace(value, mask)
        for pattern in self.ignored:
            text = pattern.sub("⟨…⟩", text)
        return text

    def show(self, text: str) -> str:
        """A kept text as it would stand in this run; secrets stay hidden."""
        for value, mask in self.pairs:
            text = text.replace(mask, value)
        return text

    def hidden(self, reply: ModelReply) -> ModelReply:
        """The reply as it may be kept; a separate thinking is not."""
        calls = tuple(replace(call, arguments=self.hide(call.arguments)) for call in reply.tool_calls)
        return replace(reply, text=self.hide(reply.text), tool_calls=calls, thinking="")

    def mask_reply(self, reply: ModelReply) -> ModelReply:
        """A kept reply as it would stand in this run."""
        calls = tuple(replace(call, arguments=self.show(call.arguments)) for call in reply.tool_calls)
        return replace(reply, text=self.show(reply.text), tool_calls=calls)


@dataclass(frozen=True, slots=True)
class RequestKey:
    """One request: `about` is everything beside its messages and tools; `key` names the whole."""

    key: str
    about: Mapping[str, Any]
    tools: Sequence[Mapping[str, Any]]
    messages: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, request: ModelRequest, spec: str, masks: RequestMasks) -> RequestKey:
        """The request to the model `spec`. Time limits do not count: they do not change what is asked."""
        sampling = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_output_tokens": request.max_output_tokens,
            "stop": list(request.stop) or None,
            "reply_schema": _plain(request.reply_schema),
        }
        about = {"model": spec, "dialect": request.dialect, "purpose": request.purpose}
        about |= {name: value for name, value in sampling.items() if value is not None}
        cards = listed_cards(request.tools) if request.native else ()  # else the prompt describes them
        tools = [
            {"name": card.name, "description": describe(card), "parameters": _plain(card.input_schema)}
            for card in cards
        ]
        return cls.build(about, tools, [_message(message, masks) for message in request.messages])

    @classmethod
    def build(
        cls, about: Mapping[str, Any], tools: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]]
    ) -> RequestKey:
        """A request from its parts."""
        return cls(digest([about, tools, messages]), about, tools, messages)

    def lines(self) -> list[str]:
        """The request as lines of text, to be compared with another."""
        lines = [f"{name}: {value}" for name, value in self.about.items()]
        lines += [f"tool {tool['name']}: {json.dumps(tool, ensure_ascii=False)}" for tool in self.tools]
        for message in self.messages:
            body = [*str(message["content"]).splitlines(), *map(str, message.get("tool_calls", ()))]
            lines += [f"[{message['role']}] {line}" for line in body]
        return lines


def digest(value: Any) -> str:
    """A short name for data: the same for the same JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_CHARS]


def _message(message: Message, masks: RequestMasks) -> dict[str, Any]:
    masked: dict[str, Any] = {"role": message.role, "content": masks.hide(message.content)}
    if message.tool_calls:
        masked["tool_calls"] = [_call(call, masks) for call in message.tool_calls]
    if message.tool_call_id is not None:
        masked["tool_call_id"] = message.tool_call_id
    return masked


def _call(call: ToolCallText, masks: RequestMasks) -> dict[str, Any]:
    return {"name": call.name, "arguments": masks.hide(call.arguments)} | ({} if call.id is None else {"id": call.id})


def _plain(value: Any) -> Any:
    """Data as JSON gives it back."""
    return None if value is None else json.loads(json.dumps(value, default=_mapping))


def _mapping(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)
