"""From an agent's settings to the model that answers: with a rate limit, retries and fallbacks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from taoloop.errors import ConfigError, MissingKey
from taoloop.models.base import Model
from taoloop.models.endpoint_balance import Balanced
from taoloop.models.function import FunctionModel, ModelFunction
from taoloop.models.prices import Price, PricedModel
from taoloop.models.providers import Endpoint, endpoint, find_provider, shown_address
from taoloop.models.rate_limit import RateLimited
from taoloop.models.real_call_switch import ForbiddenModel, is_set
from taoloop.models.registry import default_spec, is_provider, mock_is_set, resolve_model, translate
from taoloop.models.retry import SPEC_SEPARATOR, Fallback, Retrying
from taoloop.models.scripted import Reply, ScriptedModel
from taoloop.models.settings import ModelEndpoint, Rate, Retry
from taoloop.translation import mark

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

    balanced: Balanced | None = None
    """What shares the calls of the first model among its endpoints, if it has several."""

    async def close(self) -> None:
        """Let go of the connections of the models that were made here."""
        for model in self.owned:
            await model.close()


def is_mocked(model: ModelSource, env: Mapping[str, str]) -> bool:
    """Whether the offline model takes the place of a model, because it is a provider's and `AI_MOCK` is set."""
    spec = default_spec(env) if model is None else model
    return mock_is_set(env) and isinstance(spec, str) and any(map(is_provider, split_specs(spec)))


def build_model(
    model: ModelSource,
    fallback: FallbackModels = (),
    *,
    retry: Retry,
    rate: Rate | None,
    prices: Mapping[str, Price] | None = None,
    endpoints: Sequence[ModelEndpoint] = (),
    env: Mapping[str, str] | None = None,
    vision: bool | None = None,
    response_cache: str | Path | None = None,
) -> BuiltModel:
    """The model that answers for `model`, with those of `fallback` after it.

    `prices` are by spec; `endpoints` and `vision` (whether it sees images; None: by its name) are those of the first
    model. `response_cache` is the file that keeps the replies of the models that are retried.

    Models of providers and a caller's own are held to the `rate`, each on its own, and retried as `retry` says. A
    script, a replay or the offline model is not, because it can only fail for good. Neither is a model that the caller
    has put into a `Retrying` or a `Fallback`: whoever wraps it decides.

    Raises:
        ConfigError: a model cannot be made; says which and why.
    """
    owned: list[Model] = []
    chain: list[Model] = []
    entries = split_specs(model) if isinstance(model, str) else (model,)
    balanced: Balanced | None = None
    for position, entry in enumerate((*entries, *_fallback_models(fallback))):
        link: Model
        is_mocked = entry is None and not is_provider(default_spec(os.environ if env is None else env))
        if endpoints and not position and not is_mocked:
            link = balanced = _balance(entry, endpoints, rate, env, vision)
        else:
            link = _base_model(entry, env)
            if vision is not None and not position:
                _set_vision(link, vision)
        if link is not entry:
            owned.append(link)
        is_wrapped = is_provider(link.spec) if link is not entry else not isinstance(link, _NOT_WRAPPED)
        if (price := (prices or {}).get(link.spec)) is not None:
            link = PricedModel(link, price)
        if is_wrapped:
            # Each endpoint is held to the rate on its own.
            link = Retrying(link if rate is None or link is balanced else RateLimited(link, rate), retry)
            if response_cache is not None:
                link = _cached(link, response_cache)
        chain.append(link)
    return BuiltModel(model=chain[0] if len(chain) == 1 else Fallback(chain), owned=tuple(owned), balanced=balanced)


def _cached(model: Model, path: str | Path) -> Model:
    from taoloop.models.response_cache import CachedModel  # noqa: PLC0415  # for development only

    return CachedModel(model, path)


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


def endpoint_targets(
    spec: str, endpoints: Sequence[ModelEndpoint], env: Mapping[str, str] | None = None
) -> Iterator[tuple[Endpoint, Mapping[str, str]]]:
    """Where the calls of a provider's model go by each of its endpoints, and the environment that says so.

    Raises:
        MissingKey: the variable of a key is not set; names it.
    """
    env = os.environ if env is None else env
    kind, _, name = spec.partition(":")
    provider = find_provider(kind)
    for entry in endpoints:
        own = dict(env)
        if entry.api_key_env:
            own[provider.key_var] = env.get(entry.api_key_env, "").strip()
            if not own[provider.key_var]:
                text = mark("No key for the endpoint {address}: the variable {variable} is not set.")
                message = translate(text, address=shown_address(entry.base_url), variable=entry.api_key_env)
                hint = translate("Set it in the environment or in a .env file, or take the endpoint out.")
                raise MissingKey(message, hint=hint)
        if entry.base_url:
            own[provider.base_url_var] = entry.base_url
        target = endpoint(kind, name, own)
        yield replace(target, key_var=entry.api_key_env or target.key_var), own


def endpoint_keys(endpoints: Sequence[ModelEndpoint], env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The keys of endpoints by the names of their variables, to be redacted."""
    env = os.environ if env is None else env
    return {entry.api_key_env: key for entry in endpoints if (key := env.get(entry.api_key_env, "").strip())}


def _balance(
    entry: ModelSource,
    endpoints: Sequence[ModelEndpoint],
    rate: Rate | None,
    env: Mapping[str, str] | None,
    vision: bool | None,
) -> Balanced:
    """The model at each of its endpoints."""
    from taoloop.models.http.provider_model import ProviderModel  # noqa: PLC0415  # for models of providers only

    spec = entry if isinstance(entry, str) else default_spec(os.environ if env is None else env)
    if not (entry is None or isinstance(entry, str)) or not is_provider(spec):
        hint = translate("Write `model: openai:NAME` or another provider, or take the endpoints out.")
        raise ConfigError(translate("Only the model of a provider has endpoints."), hint=hint)
    models: list[Model] = []
    names: list[str] = []
    for settings, (target, own) in zip(endpoints, endpoint_targets(spec, endpoints, env), strict=True):
        link = _base_model(spec, own)
        if isinstance(link, ProviderModel):  # else real calls are forbidden
            link.endpoint = target  # which names the variable of its own key in errors
            link.vision = vision
        models.append(link if rate is None else RateLimited(link, rate))
        key = f" ({settings.api_key_env})" if settings.api_key_env else ""
        names.append(f"{shown_address(target.address)}{key}")
    return Balanced(models, [settings.weight for settings in endpoints], names=names)


def _set_vision(model: Model, vision: bool) -> None:
    """Say of a model of a provider whether it sees images; any other one says so itself, or reads no prompt."""
    from taoloop.models.http.provider_model import ProviderModel  # noqa: PLC0415  # for models of providers only

    if isinstance(model, ProviderModel):
        model.vision = vision


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
