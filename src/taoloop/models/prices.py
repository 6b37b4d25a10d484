"""Own prices of models, for those that the installed price list does not know or has another price for."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply, Usage
from taoloop.core.text import field_error, is_number
from taoloop.errors import ConfigError
from taoloop.models.base import Model, WrappedModel

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model costs, in US dollars per million tokens."""

    input: float
    """The tokens of prompts."""

    output: float
    """The tokens of replies."""

    cached: float | None = None
    """The part of the input that a cache served; None: as the rest of the input."""

    def __post_init__(self) -> None:
        """Refuse prices that mean nothing.

        Raises:
            ConfigError: names the field and what it must be.
        """
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if not (is_number(value) and value >= 0) and (value is not None or name != "cached"):
                raise field_error(ConfigError, "setting", "a number, 0 or more", owner="Price", name=name, value=value)

    def cost_usd(self, usage: Usage) -> float | None:
        """US dollars for this usage; None where the provider reported none."""
        if not usage.total_tokens:
            return None
        cached = self.input if self.cached is None else self.cached
        uncached_tokens = usage.input_tokens - usage.cached_tokens
        return (
            uncached_tokens * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output
        ) / _MILLION


class PricedModel(WrappedModel):
    """A model whose replies cost what `price` says."""

    def __init__(self, model: Model, price: Price) -> None:
        super().__init__(model)
        self._price = price

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the wrapped model, with its cost.

        Raises:
            ModelError: it gives none.
        """
        reply = await self._model.complete(request)
        return replace(reply, cost_usd=self._price.cost_usd(reply.usage))
