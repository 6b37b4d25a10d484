"""The settings of `web_search`, and what of them comes from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import Field

from taoloop.errors import ConfigError
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.settings_check import Seconds, check_fields

Provider = Literal["auto", "brave", "tavily", "searxng", "duckduckgo"]

VARIABLES: Mapping[Provider, str] = {
    "searxng": "SEARXNG_URL",
    "brave": "BRAVE_API_KEY",
    "tavily": "TAVILY_API_KEY",
}
"""The variable that configures a provider, in the order in which `auto` looks for them: your own instance first."""

MAX_COUNT = 20
"""The most results of one search: no provider gives more at once."""


@dataclass(frozen=True, kw_only=True)
class WebSearchSettings:
    """The settings of one `web_search` tool."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")] = "web_search"
    """The name of the tool."""
    provider: Provider = "auto"
    """The search service. `auto`: the first that the environment configures, of SearXNG, Brave and Tavily. DuckDuckGo
    needs no key and is used only if it is named."""
    api_key: str = field(default="", repr=False)
    """The key for Brave or Tavily; empty: that of BRAVE_API_KEY or TAVILY_API_KEY. It is never shown."""
    url: str = ""
    """The address of the service: needed for SearXNG (empty: that of SEARXNG_URL); for others the public one, unless a
    proxy of yours speaks for it. It may be private."""
    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 5
    """How many results a search gives that does not say how many."""
    timeout_s: Seconds = 15.0
    """Time limit of one search in seconds."""
    user_agent: Annotated[str, Field(pattern=r"^[ -~]*[!-~][ -~]*$")] = "taoloop"
    """The header `User-Agent` of the requests."""
    egress: EgressRules | None = None
    """Where requests may go; None: only to the service."""

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ConfigError: a field is not valid; the error names it.
        """
        check_fields(self, "The tool web_search")
        if self.url:
            _ = EgressRules().allowing(self.url)

    @property
    def secrets(self) -> dict[str, str]:
        """The key by the name of its variable."""
        return {VARIABLES.get(self.provider, "api_key"): self.api_key} if self.api_key else {}


def configured(settings: WebSearchSettings, env: Mapping[str, str]) -> WebSearchSettings:
    """The settings with provider, key and address from the environment, where they leave them open.

    Raises:
        ConfigError: no provider is configured, or it lacks its key or address; says what to set.
    """
    provider = settings.provider
    if provider == "auto":
        if settings.api_key or settings.url:
            raise ConfigError(
                "The tool web_search has a key or an address for a provider and does not name it.",
                hint="Name one: `provider: brave`.",
            )
        provider = next((name for name, variable in VARIABLES.items() if env.get(variable, "").strip()), "auto")
        if provider == "auto":
            raise ConfigError(
                "No provider for web_search is configured.",
                hint="Set SEARXNG_URL, BRAVE_API_KEY or TAVILY_API_KEY, or write `provider: duckduckgo`.",
            )
    settings = replace(settings, provider=provider)
    if provider == "searxng" and not settings.url:
        settings = replace(settings, url=_required(provider, env))
    if provider in ("brave", "tavily") and not settings.api_key:
        settings = replace(settings, api_key=_required(provider, env))
    return settings


def _required(provider: Provider, env: Mapping[str, str]) -> str:
    variable = VARIABLES[provider]
    if value := env.get(variable, "").strip():
        return value
    raise ConfigError(
        f"The provider {provider} of web_search needs {variable}.",
        hint="Set that variable, or name another provider.",
    )
