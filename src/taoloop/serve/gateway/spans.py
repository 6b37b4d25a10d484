"""The attributes of OpenTelemetry's spans: names and values as its conventions for generative AI have them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from taoloop.core.events import ActionRequested, Observed
from taoloop.core.message import ToolCallText

Attributes = dict[str, str | int | float | bool | Sequence[str]]

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "bedrock": "aws.bedrock",
}
"""Where the conventions have another name for a provider than we have; else ours is taken."""


def provider_of(spec: str) -> str:
    """The provider in the spec of a model, as the conventions call it."""
    name = spec.partition(":")[0]
    return _PROVIDERS.get(name, name)


def of_model(spec: str) -> Attributes:
    """Provider and model of a spec such as `openai:gpt-4o-mini`; nothing of an empty one."""
    if not spec:
        return {}
    _, _, model = spec.partition(":")
    return {"gen_ai.provider.name": provider_of(spec), "gen_ai.request.model": model or spec}


def tool_attributes(tool: str, observed: Observed, requested: ActionRequested | None) -> Attributes:
    """Of a call of a tool. `requested` is given where arguments and results are to be told."""
    attributes: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": observed.call_id,
        "gen_ai.tool.type": "function",
    }
    if observed.child is not None:
        attributes["taoloop.run.child"] = observed.child
    if requested is not None:
        attributes["gen_ai.tool.call.arguments"] = json.dumps(requested.args, ensure_ascii=False, default=str)
        attributes["gen_ai.tool.call.result"] = observed.output
    return attributes


def messages(role: str, text: str, calls: Iterable[ToolCallText] = ()) -> str:
    """One message as the JSON text that the conventions want in an attribute."""
    parts: list[dict[str, object]] = [{"type": "text", "content": text}] if text else []
    parts += [{"type": "tool_call", "id": one.id, "name": one.name, "arguments": one.arguments} for one in calls]
    return json.dumps([{"role": role, "parts": parts}], ensure_ascii=False)


def as_ns(at: float) -> int:
    """Seconds since the epoch as OpenTelemetry counts them."""
    return int(at * 1_000_000_000)
