"""Models: what a provider must implement, the models that are built in, and what wraps them.

A model of your own needs `Model`, `ModelRequest` and `ModelReply`; pass it as `Agent(model=…)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from taoloop.core.attachments.files import File as File, FileInfo as FileInfo
    from taoloop.core.effects import ModelRequest as ModelRequest
    from taoloop.core.images import Image as Image, ImageInfo as ImageInfo
    from taoloop.core.message import (
        Delta as Delta,
        Message as Message,
        ModelReply as ModelReply,
        ToolCallText as ToolCallText,
        Usage as Usage,
    )
    from taoloop.models.anthropic import AnthropicModel as AnthropicModel
    from taoloop.models.base import (
        DeltaFanout as DeltaFanout,
        DeltaListener as DeltaListener,
        Model as Model,
        WrappedModel as WrappedModel,
    )
    from taoloop.models.batch import Batched as Batched
    from taoloop.models.endpoint_balance import Balanced as Balanced, EndpointHealth as EndpointHealth
    from taoloop.models.function import FunctionModel as FunctionModel, ModelFunction as ModelFunction
    from taoloop.models.offline.planner import OfflineModel as OfflineModel
    from taoloop.models.openai import OpenAIModel as OpenAIModel
    from taoloop.models.openai_responses import OpenAIResponsesModel as OpenAIResponsesModel
    from taoloop.models.prices import Price as Price
    from taoloop.models.providers import Endpoint as Endpoint
    from taoloop.models.rate_limit import RateLimited as RateLimited
    from taoloop.models.registry import model_kinds as model_kinds, resolve_model as resolve_model
    from taoloop.models.replay import ReplayModel as ReplayModel
    from taoloop.models.retry import Fallback as Fallback, Retrying as Retrying
    from taoloop.models.scripted import Reply as Reply, ScriptedModel as ScriptedModel
    from taoloop.models.settings import ModelEndpoint as ModelEndpoint, Pace as Pace, Rate as Rate, Retry as Retry


__getattr__, __dir__, __all__ = lazy_exports(
    globals(),
    {
        "taoloop.core.effects": "ModelRequest",
        "taoloop.core.attachments.files": "File FileInfo",
        "taoloop.core.images": "Image ImageInfo",
        "taoloop.core.message": "Delta Message ModelReply ToolCallText Usage",
        "taoloop.models.anthropic": "AnthropicModel",
        "taoloop.models.base": "DeltaFanout DeltaListener Model WrappedModel",
        "taoloop.models.batch": "Batched",
        "taoloop.models.endpoint_balance": "Balanced EndpointHealth",
        "taoloop.models.function": "FunctionModel ModelFunction",
        "taoloop.models.offline.planner": "OfflineModel",
        "taoloop.models.openai": "OpenAIModel",
        "taoloop.models.openai_responses": "OpenAIResponsesModel",
        "taoloop.models.prices": "Price",
        "taoloop.models.providers": "Endpoint",
        "taoloop.models.rate_limit": "RateLimited",
        "taoloop.models.registry": "model_kinds resolve_model",
        "taoloop.models.replay": "ReplayModel",
        "taoloop.models.retry": "Fallback Retrying",
        "taoloop.models.scripted": "Reply ScriptedModel",
        "taoloop.models.settings": "ModelEndpoint Pace Rate Retry",
    },
)
