"""Providers: where they are, which environment variables configure them, and what is special about each. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Literal
from urllib.parse import urlsplit

from taoloop.errors import MissingKey, UnknownName

Api = Literal["openai", "anthropic"]
"""Which API a provider speaks: OpenAI's chat completions, or Anthropic's messages."""

Structured = Literal["always", "without_tools", "never"]
"""When a provider can be held to a JSON Schema for the text of a reply.

Servers that force the schema with a grammar leave a model no way to call a tool, so there it is asked for only
where no tool is on offer.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider.

    `base_url` is its default address, "" if there is none. `key_var` names the variable of its key, which `needs_key`
    says is indispensable. `more_vars` are further variables that it reads. `free`: a server that its user runs, where
    nobody is paid per token.
    """

    name: str
    base_url: str
    key_var: str
    base_url_var: str
    model_var: str
    default_model: str = ""
    api: Api = "openai"
    needs_key: bool = True
    structured: Structured = "never"
    free: bool = False
    more_vars: tuple[str, ...] = ()


PROVIDERS: dict[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            name="openai",
            base_url="https://api.openai.com/v1",
            key_var="OPENAI_API_KEY",
            base_url_var="OPENAI_BASE_URL",
            model_var="OPENAI_MODEL",
            default_model="gpt-4o-mini",
            structured="always",
        ),
        Provider(
            name="anthropic",
            base_url="https://api.anthropic.com",
            key_var="ANTHROPIC_API_KEY",
            base_url_var="ANTHROPIC_BASE_URL",
            model_var="ANTHROPIC_MODEL",
            default_model="claude-haiku-5-5",
            api="anthropic",
            structured="always",
        ),
        Provider(
            name="azure",
            base_url="",
            key_var="AZURE_OPENAI_API_KEY",
            base_url_var="AZURE_OPENAI_BASE_URL",
            model_var="AZURE_OPENAI_MODEL",
            default_model="gpt-4o-mini",
            structured="always",
            more_vars=("AZURE_OPENAI_RESOURCE_NAME", "AZURE_OPENAI_API_VERSION"),
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
            structured="without_tools",
        ),
        Provider(
            name="ollama",
            base_url="http://127.0.0.1:11434/v1",
            key_var="OLLAMA_API_KEY",
            base_url_var="OLLAMA_BASE_URL",
            model_var="OLLAMA_MODEL",
            needs_key=False,
            structured="without_tools",
            free=True,
        ),
        Provider(
            name="vllm",
            base_url="http://127.0.0.1:8000/v1",
            key_var="VLLM_API_KEY",
            base_url_var="VLLM_BASE_URL",
            model_var="VLLM_MODEL",
            needs_key=False,
            structured="without_tools",
            free=True,
        ),
        Provider(
            name="llamacpp",
            base_url="http://127.0.0.1:8080/v1",
            key_var="LLAMACPP_API_KEY",
            base_url_var="LLAMACPP_BASE_URL",
            model_var="LLAMACPP_MODEL",
            needs_key=False,
            structured="without_tools",
            free=True,
        ),
    )
}

ALIASES = {"qwen": "dashscope"}
"""Other names under which a provider is known."""

GENERAL_KEY_VAR = "AI_PROVIDER_API_KEY"
GENERAL_PROVIDER_VAR = "AI_PROVIDER"
DEFAULT_PROVIDER = "openai"

AZURE_DEPLOYMENTS_VERSION = "2024-10-21"
"""The API version for an Azure address that ends in a deployment, where none is named: the last one made for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A provider as the environment configures it, ready to be called.

    `base_url` None stands for the provider's own. `key_var` is the variable that the key came from. `api_version` is
    for Azure: "" means its v1 API. `url` is the whole address of a chat endpoint of OpenAI's API, whatever its path:
    requests go exactly there, and neither an SDK nor the variables that it reads have a say in them.
    """

    provider: str
    model: str
    api_key: str = field(repr=False)
    base_url: str | None = None
    key_var: str = ""
    api_version: str = ""
    url: str = ""

    @property
    def kind(self) -> Provider:
        """What is known of the provider; one that is unknown is taken for OpenAI's API at another address."""
        return PROVIDERS.get(self.provider, PROVIDERS[DEFAULT_PROVIDER])

    @property
    def address(self) -> str:
        """Where it is called."""
        return self.url or self.base_url or self.kind.base_url


def find_provider(name: str) -> Provider:
    """The provider called `name`, or known under it.

    Raises:
        UnknownName: there is none.
    """
    provider = PROVIDERS.get(_own_name(name))
    if provider is None:
        raise UnknownName("provider", name, tuple(PROVIDERS))
    return provider


def missing_packages(spec: str) -> tuple[str, ...]:
    """What is not installed that a model of this spec needs; none for a spec of another kind."""
    provider = PROVIDERS.get(_own_name(spec.partition(":")[0]))
    needed = (provider.api, "aiohttp") if provider is not None else ()
    return tuple(package for package in needed if find_spec(package) is None)


def extra_of(spec: str) -> str:
    """The extra that brings what a model of this spec needs."""
    return find_provider(spec.partition(":")[0]).api


def endpoint(provider_name: str, model: str, env: Mapping[str, str]) -> Endpoint:
    """Where and as what to call `model` (the variable's or the default model if it is empty).

    Raises:
        UnknownName: no such provider.
        MissingKey: the key's variable, the address or the model's name is not set; names the variable.
    """
    provider = find_provider(provider_name)
    key, key_var = _key(provider, env)
    version = _value(env, "AZURE_OPENAI_API_VERSION") if provider.name == "azure" else ""
    base_url = _azure_address(env, version) if provider.name == "azure" else _value(env, provider.base_url_var)
    if provider.needs_key and not key:
        if provider.name == "azure" or not base_url or base_url == provider.base_url:
            raise MissingKey(
                f"No key for {provider.name}: the variable {provider.key_var} is not set.",
                hint=f"Set {provider.key_var} in the environment or in a .env file, or use --model offline.",
            )
        key = "none"  # a local server behind another address takes any key
    if not base_url and not provider.base_url:
        raise MissingKey(
            f"No address for {provider.name}: the variable {provider.base_url_var} is not set.",
            hint=f"Set {provider.base_url_var}, or AZURE_OPENAI_RESOURCE_NAME to the name of the resource.",
        )
    name = model or _model(provider, env)
    if not name:
        raise MissingKey(
            f"No model named for {provider.name}.",
            hint=f"Write {provider.name}:NAME, or set {provider.model_var}.",
        )
    if "/deployments/" in base_url and not version:
        version = AZURE_DEPLOYMENTS_VERSION if provider.name == "azure" else ""
    return Endpoint(
        provider=provider.name,
        model=name,
        api_key=key or "none",
        base_url=base_url or provider.base_url,
        key_var=key_var,
        api_version=version,
    )


def configured(env: Mapping[str, str]) -> list[str]:
    """The specs of the providers that the environment configures, the one to use first."""
    chosen = _value(env, GENERAL_PROVIDER_VAR)
    names = [chosen] if chosen else [p.name for p in PROVIDERS.values() if _is_configured(p, env)]
    specs = []
    for name in names:
        provider = PROVIDERS.get(_own_name(name))
        specs.append(f"{name}:{_model(provider, env) if provider else ''}".rstrip(":"))
    return specs


def missing(env: Mapping[str, str]) -> dict[str, str]:
    """For each provider that cannot be used: the variable that would configure it."""
    lacking = {}
    for provider in PROVIDERS.values():
        if _is_configured(provider, env):
            continue
        has_key = provider.needs_key and bool(_key(provider, env)[0])
        variable = provider.base_url_var if has_key else provider.key_var if provider.needs_key else provider.model_var
        lacking[provider.name] = variable
    return lacking


def variables() -> frozenset[str]:
    """Every variable that configures a provider."""
    names = {GENERAL_KEY_VAR, GENERAL_PROVIDER_VAR}
    for provider in PROVIDERS.values():
        names |= {provider.key_var, provider.base_url_var, provider.model_var, *provider.more_vars}
    return frozenset(names)


def shown_address(address: str | None) -> str:
    """An address without a user, a password or a query, as it may be shown."""
    try:
        parts = urlsplit(address or "")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the address given"
    if not parts.hostname:
        return "the address given" if address else "the provider's own address"
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"


def _azure_address(env: Mapping[str, str], version: str) -> str:
    """The address as the SDK wants it: `…/openai/v1`, or `…/openai` where an API version asks for deployments."""
    resource = _value(env, "AZURE_OPENAI_RESOURCE_NAME")
    address = _value(env, "AZURE_OPENAI_BASE_URL") or (resource and f"https://{resource}.openai.azure.com")
    address = address.rstrip("/")
    if not address or address.endswith("/v1") or "/deployments/" in address:
        return address
    if not urlsplit(address).path:
        address += "/openai"
    return address if version else f"{address}/v1"


def _is_configured(provider: Provider, env: Mapping[str, str]) -> bool:
    if not provider.needs_key:
        return bool(_value(env, provider.model_var))
    if provider.name == "azure":
        return bool(_value(env, provider.key_var)) and bool(_azure_address(env, ""))
    general = provider.name == DEFAULT_PROVIDER and not _value(env, GENERAL_PROVIDER_VAR)
    return bool(_value(env, provider.key_var) or (general and _value(env, GENERAL_KEY_VAR)))


def _key(provider: Provider, env: Mapping[str, str]) -> tuple[str, str]:
    """The key and the variable that it came from; the general one is only for the provider that it was set for."""
    own = _value(env, provider.key_var)
    if own or not provider.needs_key:
        return own, provider.key_var
    chosen = _value(env, GENERAL_PROVIDER_VAR)
    general = _value(env, GENERAL_KEY_VAR) if _own_name(chosen) in ("", provider.name) else ""
    return general, GENERAL_KEY_VAR if general else provider.key_var


def _model(provider: Provider, env: Mapping[str, str]) -> str:
    model = _value(env, provider.model_var)
    if not model and provider.name == "azure":
        model = _value(env, "OPENAI_MODEL")
    return model or provider.default_model


def _own_name(name: str) -> str:
    """The name in the table for any of a provider's names."""
    return ALIASES.get(name, name)


def _value(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip()
