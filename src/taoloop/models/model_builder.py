"""From an agent's settings to the model that answers: with a rate limit, retries and fallbacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from taoloop.errors import ConfigError
from taoloop.models.base import Model
from taoloop.models.function import FunctionModel, ModelFunction
from taoloop.models.rate_limit import RateLimited
from taoloop.models.real_call_switch import ForbiddenModel, is_set
from taoloop.models.registry import is_provider, resolve_model, translate
from taoloop.models.retry import SPEC_SEPARATOR, Fallback, Retrying
from taoloop.models.scripted import Reply, ScriptedModel
from taoloop.models.settings import Rate, Retry

ModelSource = str | Model | ModelFunction | Sequence[Reply] | None
"""A spec (or several, as in `openai:a | deepseek:b`), a model, a function of (task, trace), a list of scripted replies;
None: the environment's."""

FallbackModels = str | Model | Sequence[str | Model]
"""The models to fall back on: one, or several in their order."""

_NOT_WRAPPED = (ScriptedModel, FunctionModel, Retrying, Fallback)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltModel:
    """The model that answers, and what has to be closed after use."""

    model: Model
    """The model that answers."""

    owned: tuple[Model, ...]
    """The models in it that were made here; those of the caller stay open."""

    async def close(self) -> None:
        """Let go of the connections of the models that were made here."""
        for model in self.owned:
            await model.close()


def build_model(
    model: ModelSource,
    fallback: FallbackModels = (),
    *,
    retry: Retry,
    rate: Rate | None,
    env: Mapping[str, str] | None = None,
) -> BuiltModel:
    """The model that answers for `model`, with those of `fallback` after it.

    Models of providers and a caller's own are held to the `rate`, each on its own, and retried as `retry` says. A
    script, a replay or the offline model is not, because it can only fail for good. Neither is a model that the caller
    has put into a `Retrying` or a `Fallback`: whoever wraps it decides.

    Raises:
        ConfigError: a model cannot be made; says which and why.
    """
    owned: list[Model] = []
    chain: list[Model] = []
    entries = split_specs(model) if isinstance(model, str) else (model,)
    for entry in (*entries, *_fallback_models(fallback)):
        link = _base_model(entry, env)
        if link is not entry:
            owned.append(link)
        if is_provider(link.spec) if link is not entry else not isinstance(link, _NOT_WRAPPED):
            link = Retrying(link if rate is None else RateLimited(link, rate), retry)
        chain.append(link)
    return BuiltModel(model=chain[0] if len(chain) == 1 else Fallback(chain), owned=tuple(owned))


def join_specs(*specs: str) -> str:
    """The spec of several models in their order, as it is in a trace."""
    return SPEC_SEPARATOR.join(specs)


def split_specs(spec: str) -> tuple[str, ...]:
    """The specs in a spec that may name several models."""
    return tuple(part.strip() for part in spec.split(SPEC_SEPARATOR) if part.strip()) or (spec,)


def _fallback_models(fallback: FallbackModels) -> Iterator[str | Model]:
    entries = fallback if isinstance(fallback, list | tuple) else (fallback,)
    for entry in entries:
        if isinstance(entry, str) and entry.strip():
            yield from split_specs(entry)
        elif callable(getattr(entry, "complete", None)):
            yield entry
        else:
            hint = translate("Give a spec such as 'offline', or a Model.")
            raise ConfigError(translate("The fallback {entry!r} is no model.", entry=entry), hint=hint)


def _base_model(entry: ModelSource, env: Mapping[str, str] | None) -> Model:
    if entry is None or isinstance(entry, str):
        model = resolve_model(entry, env)
        return ForbiddenModel(model) if env is not None and is_set(env) and is_provider(model.spec) else model
    if isinstance(entry, list | tuple):
        return ScriptedModel(entry)
    if callable(getattr(entry, "complete", None)):
        return cast("Model", entry)
    if callable(entry) and not isinstance(entry, type):
        return FunctionModel(entry)
    hint = "Give a spec such as 'offline', a list of replies, a function of (task, trace), or a Model."
    raise ConfigError(f"{entry!r} is no model.", hint=hint)
