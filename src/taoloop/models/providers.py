"""OpenAI-compatible providers: where they are, and which environment variables configure them. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from taoloop.errors import MissingKey, UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider. `base_url` is its default address, None for the SDK's own; `key_var` "" means no key needed."""

    name: str
    base_url: str | None
    key_var: str
    base_url_var: str
    model_var: str
    default_model: str = ""


PROVIDERS: dict[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            name="openai",
            base_url=None,
            key_var="OPENAI_API_KEY",
            base_url_var="OPENAI_BASE_URL",
            model_var="OPENAI_MODEL",
            default_model="gpt-4o-mini",
        ),
        Provider(
            name="deepseek",
            base_url="https://api.deepseek.com",
            key_var="DEEPSEEK_API_KEY",
            base_url_var="DEEPSEEK_BASE_URL",
            model_var="DEEPSEEK_MODEL",
            default_model="deepseek-chat",
        ),
        Provider(
            name="dashscope",
            base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
            key_var="DASHSCOPE_API_KEY",
            base_url_var="DASHSCOPE_BASE_URL",
            model_var="DASHSCOPE_MODEL",
            default_model="qwen-plus",
        ),
        Provider(
            name="ollama",
            base_url="http://127.0.0.1:11434/v1",
            key_var="",
            base_url_var="OLLAMA_BASE_URL",
            model_var="OLLAMA_MODEL",
        ),
    )
}

GENERAL_KEY_VAR = "AI_PROVIDER_API_KEY"
GENERAL_PROVIDER_VAR = "AI_PROVIDER"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A provider as the environment configures it, ready to be called."""

    provider: str
    model: str
    api_key: str
    base_url: str | None


def endpoint(provider_name: str, model: str, env: Mapping[str, str]) -> Endpoint:
    """Where and as what to call `model` (the variable's or the default model if it is empty).

    Raises:
        UnknownName: no such provider.
        MissingKey: the key's variable, or the model's name, is not set.
    """
    provider = PROVIDERS.get(provider_name)
    if provider is None:
        raise UnknownName("provider", provider_name, tuple(PROVIDERS))
    key = _key(provider, env)
    base_url = env.get(provider.base_url_var, "").strip() or provider.base_url
    if provider.key_var and not key:
        if not base_url or base_url == provider.base_url:
            raise MissingKey(
                f"No key for {provider.name}: the variable {provider.key_var} is not set.",
                hint=f"Set {provider.key_var} in the environment or in a .env file, or use --model offline.",
            )
        key = "none"  # a local server behind another address takes any key
    name = model or env.get(provider.model_var, "").strip() or provider.default_model
    if not name:
        raise MissingKey(
            f"No model named for {provider.name}.",
            hint=f"Write {provider.name}:NAME, or set {provider.model_var}.",
        )
    return Endpoint(provider=provider.name, model=name, api_key=key or "none", base_url=base_url)


def configured(env: Mapping[str, str]) -> list[str]:
    """The specs of the providers that the environment configures, the one to use first."""
    chosen = env.get(GENERAL_PROVIDER_VAR, "").strip()
    names = [chosen] if chosen else [p.name for p in PROVIDERS.values() if _is_configured(p, env)]
    return [f"{name}:{_model(name, env)}".rstrip(":") for name in names]


def missing(env: Mapping[str, str]) -> dict[str, str]:
    """For each provider that cannot be used: the variable that would configure it."""
    return {p.name: p.key_var or p.model_var for p in PROVIDERS.values() if not _is_configured(p, env)}


def _is_configured(provider: Provider, env: Mapping[str, str]) -> bool:
    if provider.key_var:
        return bool(env.get(provider.key_var, "").strip())
    return bool(env.get(provider.model_var, "").strip())


def _key(provider: Provider, env: Mapping[str, str]) -> str:
    if not provider.key_var:
        return ""
    own = env.get(provider.key_var, "").strip()
    general = env.get(GENERAL_KEY_VAR, "").strip()
    return own or (general if env.get(GENERAL_PROVIDER_VAR, "").strip() in ("", provider.name) else "")


def _model(name: str, env: Mapping[str, str]) -> str:
    provider = PROVIDERS.get(name)
    return "" if provider is None else env.get(provider.model_var, "").strip() or provider.default_model
