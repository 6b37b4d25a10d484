"""Models: what a provider must implement, the models that are built in, and what wraps them.

A model of your own needs `Model`, `ModelRequest` and `ModelReply`; pass it as `Agent(model=…)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.core.effects import ModelRequest
    from taoloop.core.message import Delta, Message, ModelReply, ToolCallText, Usage
    from taoloop.models.anthropic import AnthropicModel
    from taoloop.models.base import DeltaFanout, DeltaListener, Model, WrappedModel
    from taoloop.models.offline.planner import OfflineModel
    from taoloop.models.openai import OpenAIModel
    from taoloop.models.providers import Endpoint
    from taoloop.models.registry import model_kinds, resolve_model
    from taoloop.models.replay import ReplayModel
    from taoloop.models.scripted import Reply, ScriptedModel
    from taoloop.models.settings import Pace, Rate, Retry
    from taoloop.models.wrappers.fallback import Fallback
    from taoloop.models.wrappers.rate_limit import RateLimited
    from taoloop.models.wrappers.retry import Retrying


__all__ = [
    "AnthropicModel",
    "Delta",
    "DeltaFanout",
    "DeltaListener",
    "Endpoint",
    "Fallback",
    "Message",
    "Model",
    "ModelReply",
    "ModelRequest",
    "OfflineModel",
    "OpenAIModel",
    "Pace",
    "Rate",
    "RateLimited",
    "ReplayModel",
    "Reply",
    "Retry",
    "Retrying",
    "ScriptedModel",
    "ToolCallText",
    "Usage",
    "WrappedModel",
    "model_kinds",
    "resolve_model",
]

__getattr__, __dir__ = lazy_exports(
    globals(),
    {
        "taoloop.core.effects": "ModelRequest",
        "taoloop.core.message": "Delta Message ModelReply ToolCallText Usage",
        "taoloop.models.anthropic": "AnthropicModel",
        "taoloop.models.base": "DeltaFanout DeltaListener Model WrappedModel",
        "taoloop.models.offline.planner": "OfflineModel",
        "taoloop.models.openai": "OpenAIModel",
        "taoloop.models.providers": "Endpoint",
        "taoloop.models.registry": "model_kinds resolve_model",
        "taoloop.models.replay": "ReplayModel",
        "taoloop.models.scripted": "Reply ScriptedModel",
        "taoloop.models.settings": "Pace Rate Retry",
        "taoloop.models.wrappers.fallback": "Fallback",
        "taoloop.models.wrappers.rate_limit": "RateLimited",
        "taoloop.models.wrappers.retry": "Retrying",
    },
)
