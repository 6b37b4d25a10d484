"""Providers: their addresses, the environment variables that configure them, their peculiarities and their prices.

Prices come from the installed list `genai-prices` (extras `openai` and `anthropic`), never from the network. A price is
looked up by the address that was called, so that a model of the same name at another address does not get OpenAI's
price. What the list does not have is unknown: None, and not zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any, Literal
from urllib.parse import urlsplit

from taoloop.core.message import Usage
from taoloop.core.text import lazy_pattern
from taoloop.errors import MissingKey, UnknownName
from taoloop.translation import Translator, mark

translate = Translator("models")

Api = Literal["openai", "anthropic"]
"""Which API a provider speaks: OpenAI's chat completions, or Anthropic's messages."""

Structured = Literal["always", "without_tools", "never"]
"""When a provider can be held to a JSON Schema for the text of a reply.

Servers that force the schema with a grammar leave a model no way to call a tool, so there it is asked for only
where no tool is on offer.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider."""

    name: str
    """Its name in specs."""

    base_url: str = ""
    """Its default address; "" if there is none."""

    default_model: str = ""
    """The model that is called where none is named."""

    api: Api = "openai"
    """The API that it speaks."""

    needs_key: bool = True
    """Whether it cannot be called without a key."""

    structured: Structured = "never"
    """When it can be held to a JSON Schema."""

    free: bool = False
    """Whether its user runs it as a server, so that nobody is paid per token."""

    prefix: str = ""
    """What the names of its variables begin with; "" stands for its name in upper case."""

    more_vars: tuple[str, ...] = ()
    """Further variables that it reads."""

    @property
    def key_var(self) -> str:
        """The variable of its key."""
        return f"{self.prefix or self.name.upper()}_API_KEY"

    @property
    def base_url_var(self) -> str:
        """The variable of its address."""
        return f"{self.prefix or self.name.upper()}_BASE_URL"

    @property
    def model_var(self) -> str:
        """The variable of the model that is called where none is named."""
        return f"{self.prefix or self.name.upper()}_MODEL"


def _local_server(name: str, port: int) -> Provider:
    """A server that its user runs on this machine; it forces a schema with a grammar."""
    address = f"http://127.0.0.1:{port}/v1"
    return Provider(name=name, base_url=address, needs_key=False, structured="without_tools", free=True)


PROVIDERS: dict[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(name="openai", base_url="https://api.openai.com/v1", default_model="gpt-4o-mini", structured="always"),
        Provider(
            name="anthropic",
            base_url="https://api.anthropic.com",
            default_model="claude-haiku-5-5",
            api="anthropic",
            structured="always",
        ),
        Provider(
            name="azure",
            default_model="gpt-4o-mini",
            structured="always",
            prefix="AZURE_OPENAI",
            more_vars=("AZURE_OPENAI_RESOURCE_NAME", "AZURE_OPENAI_API_VERSION"),
        ),
        Provider(name="deepseek", base_url="https://api.deepseek.com", default_model="deepseek-chat"),
        Provider(
            name="dashscope",
            base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
            default_model="qwen-plus",
            structured="without_tools",
        ),
        _local_server("ollama", 11434),
        _local_server("vllm", 8000),
        _local_server("llamacpp", 8080),
    )
}

ALIASES = {"qwen": "dashscope", "openai-responses": "openai"}
"""Other names under which a provider is known."""

GENERAL_KEY_VAR = "AI_PROVIDER_API_KEY"
GENERAL_PROVIDER_VAR = "AI_PROVIDER"
DEFAULT_PROVIDER = "openai"

AZURE_DEPLOYMENTS_VERSION = "2024-10-21"
"""The API version for an Azure address that ends in a deployment, where none is named: the last one made for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A provider as the environment configures it, ready to be called."""

    provider: str
    """The provider's name."""

    model: str
    """The model's name at the provider."""

    api_key: str = field(repr=False)
    """The key that is sent."""

    base_url: str | None = None
    """The address of the API; None stands for the provider's own."""

    key_var: str = ""
    """The variable that the key came from."""

    api_version: str = ""
    """For Azure only: "" means its v1 API."""

    url: str = ""
    """The whole address of a chat endpoint of OpenAI's API, whatever its path. Requests go exactly there; neither an
    SDK nor the variables that it reads can change it. "" leaves the path to the SDK."""

    @property
    def kind(self) -> Provider:
        """What is known of the provider; one that is unknown is taken for OpenAI's API at another address."""
        return PROVIDERS.get(self.provider, PROVIDERS[DEFAULT_PROVIDER])

    @property
    def address(self) -> str:
        """Where it is called."""
        return self.url or self.base_url or self.kind.base_url

    @property
    def structured(self) -> Structured:
        """When it can be held to a JSON Schema. At another address than OpenAI's own, any server may speak its API."""
        own = self.kind.base_url
        is_other = self.kind.name == DEFAULT_PROVIDER and self.address.rstrip("/") != own
        return "without_tools" if is_other and self.kind.structured == "always" else self.kind.structured


def find_provider(name: str) -> Provider:
    """The provider called `name`, or known under it.

    Raises:
        UnknownName: there is none.
    """
    provider = PROVIDERS.get(_canonical_name(name))
    if provider is None:
        raise UnknownName("provider", name, tuple(PROVIDERS))
    return provider


def missing_packages(spec: str) -> tuple[str, ...]:
    """What is not installed that a model of this spec needs; none for a spec of another kind."""
    provider = PROVIDERS.get(_canonical_name(spec.partition(":")[0]))
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
            raise _missing(
                mark("No key for {provider}: the variable {variable} is not set."),
                mark(
                    "Set {variable} in the environment or a .env file (with load_env=True in Python), or use offline."
                ),
                provider.name,
                provider.key_var,
            )
        key = "none"  # a local server behind another address takes any key
    if not base_url and not provider.base_url:
        raise _missing(
            mark("No address for {provider}: the variable {variable} is not set."),
            mark("Set {variable}, or AZURE_OPENAI_RESOURCE_NAME to the name of the resource."),
            provider.name,
            provider.base_url_var,
        )
    name = model or _model(provider, env)
    if not name:
        raise _missing(
            mark("No model named for {provider}."),
            mark("Write {provider}:NAME, or set {variable}."),
            provider.name,
            provider.model_var,
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


def _missing(text: str, hint: str, provider: str, variable: str) -> MissingKey:
    values = {"provider": provider, "variable": variable}
    return MissingKey(translate(text, **values), hint=translate(hint, **values))


def configured(env: Mapping[str, str]) -> list[str]:
    """The specs of the providers that the environment configures, the one to use first."""
    chosen = _value(env, GENERAL_PROVIDER_VAR)
    names = [chosen] if chosen else [p.name for p in PROVIDERS.values() if _is_configured(p, env)]
    specs = []
    for name in names:
        provider = PROVIDERS.get(_canonical_name(name))
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
    general = _value(env, GENERAL_KEY_VAR) if _canonical_name(chosen) in ("", provider.name) else ""
    return general, GENERAL_KEY_VAR if general else provider.key_var


def _model(provider: Provider, env: Mapping[str, str]) -> str:
    model = _value(env, provider.model_var)
    if not model and provider.name == "azure":
        model = _value(env, "OPENAI_MODEL")
    return model or provider.default_model


def _canonical_name(name: str) -> str:
    """The name in the table for any of a provider's names."""
    return ALIASES.get(name, name)


def _value(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip()


def cost_usd(base_url: str, model: str, usage: Usage, *, cache_write_tokens: int = 0) -> float | None:
    """US dollars for one call of `model` at `base_url`; None where the price, or the whole list, is not known.

    `cache_write_tokens` is the part of the input that was written to a cache, which some providers price apart.
    """
    prices = _price_list()
    if prices is None or not usage.total_tokens or not _has_price(base_url, model):
        return None
    used = prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens or None,
        cache_write_tokens=cache_write_tokens or None,
    )
    try:
        return float(prices.calc_price(used, model, provider_api_url=base_url).total_price)
    except (LookupError, ValueError):  # counts that contradict each other
        return None


_SEES_IMAGES = lazy_pattern(
    r"gpt-4o(?!.*(?:audio|realtime|transcribe|tts|search))|gpt-4\.\d|gpt-4-turbo|gpt-(?:[5-9]|\d\d)|chatgpt-4o"
    r"|(?<![a-z])o(?:1(?!-(?:mini|preview))|3(?!-mini)|[4-9])(?![a-z\d])"
    r"|claude-(?!2|instant)|gemini|gemma-?[3-9](?!.*(?:270m|1b))|llama-?4|llama-?3\.2-(?:11b|90b)|mistral-(?:medium|small)-3"
    r"|qwen3\.\d|glm-\d(?:\.\d)?v|kimi-k2\.\d"
    r"|pixtral|llava|moondream|minicpm-v|internvl|phi-[34](?:\.5)?-(?:vision|multimodal)|qvq"
    r"|(?<![a-z])(?:vl|vision)(?![a-z])|[\dn]-?vl(?![a-z])"
)
"""Names of model families that see images, as their providers document them (2026-08); `genai-prices` does not say."""


def knows_vision(model: str) -> bool:
    """Whether a model of this name is known to see images; an unknown one counts as blind."""
    return _SEES_IMAGES.search(model.lower()) is not None


def is_priced(base_url: str, model: str) -> bool:
    """Whether calls of `model` at `base_url` have a known price."""
    return _price_list() is not None and _has_price(base_url, model)


@lru_cache(maxsize=1024)
def _has_price(base_url: str, model: str) -> bool:
    """Whether the list has the model; looking in vain costs more than a price."""
    prices = _price_list()
    try:
        prices.calc_price(prices.Usage(input_tokens=1), model, provider_api_url=base_url)
    except (LookupError, ValueError):
        return False
    return True


@cache
def _price_list() -> Any:
    try:
        import genai_prices  # noqa: PLC0415  # optional, and 0.1 s of CPU
    except ImportError:
        return None
    return genai_prices
