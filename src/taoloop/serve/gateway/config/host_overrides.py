"""Host overrides: hosts whose calls the operator redirects, from an agent's models and from its OpenAPI tools."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from taoloop.errors import ConfigError, ToolDefinitionError
from taoloop.models.providers import PROVIDERS
from taoloop.runtime.agent import Agent
from taoloop.runtime.tool_source import ToolSource
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.operation_call import ApiClient, OperationCaller
from taoloop.tools.openapi.request import server_of
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadResult


class HostOverrides:
    """Base URLs by the name of a service, a domain or a host; remembers which of them were used.

    Of an address `HOST:PORT` only the connection is redirected, and the header `Host` stays, as with curl's
    `--resolve`.

    Args:
        mappings: Names with `HOST:PORT` or base URLs; later mappings take precedence.

    Raises:
        ConfigError: an address is neither.
    """

    def __init__(self, *mappings: Mapping[str, str]) -> None:
        addresses = {name.lower(): address for mapping in mappings for name, address in mapping.items()}
        self._bases = {name: base_url(name, address) for name, address in addresses.items()}
        self._bare = {name for name, address in addresses.items() if "://" not in address}
        self._used: set[str] = set()

    def host_header(self, address: str, *names: str) -> dict[str, str]:
        """The header `Host` for calls to `address`, where the override of the first of `names` is a bare address."""
        name = next((name.lower() for name in names if name.lower() in self._bases), "")
        return {"Host": urlsplit(address).netloc.rpartition("@")[2]} if name in self._bare else {}

    def base_of(self, *names: str) -> str:
        """The base URL of the first of `names` that has an override; empty where none has."""
        for name in names:
            if base := self._bases.get(name.lower(), ""):
                self._used.add(name.lower())
                return base
        return ""

    def unused(self) -> tuple[str, ...]:
        """The names that nothing in the configuration uses."""
        return tuple(name for name in self._bases if name not in self._used)

    def redirect(self, address: str) -> str:
        """`address` at the override of its host, with its own path and query; unchanged where there is none."""
        try:
            parts = urlsplit(address)
            host = parts.hostname or ""
        except ValueError:  # invalid addresses are reported elsewhere
            return address
        base = self.base_of(host) if host else ""
        return base + parts.path + (f"?{parts.query}" if parts.query else "") if base else address

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """`env` with the addresses of redirected model providers in their variables."""
        changed = {}
        for provider in PROVIDERS.values():
            address = env.get(provider.base_url_var, "").strip() or provider.base_url
            if (moved := self.redirect(address)) != address:
                changed[provider.base_url_var] = moved
        return {**env, **changed}

    def __bool__(self) -> bool:
        """Whether there is any override."""
        return bool(self._bases)


def base_url(name: str, address: str) -> str:
    """The base URL of an address, which is `HOST:PORT` or a URL.

    Raises:
        ConfigError: it is neither.
    """
    url = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_plain = not parts.query and not parts.fragment and not any(char.isspace() for char in url)
        has_port = "://" in address or parts.port is not None
    except ValueError:  # an invalid port, unbalanced brackets
        is_usable = is_plain = has_port = False
    if not (is_usable and is_plain and has_port):
        raise ConfigError(
            f"The service {name!r} cannot be at {address!r}.",
            hint="Write HOST:PORT, or an http(s) URL without a query.",
        )
    return url.rstrip("/")


def apply_host_overrides(agent: Agent, overrides: HostOverrides, env: Mapping[str, str] | None) -> Agent:
    """The agent with its calls to overridden hosts redirected.

    Models of providers are redirected by the variables of their addresses. Tools keep the path after the host.
    """
    if not overrides:
        return agent
    variables = overrides.environment(os.environ if env is None else env)
    return replace(agent, env=variables, tools=tuple(_redirect_entry(tool, overrides) for tool in agent.tools))


def _redirect_entry(entry: Any, overrides: HostOverrides) -> Any:
    if not isinstance(entry, ToolSource):
        return _redirect_tool(entry, overrides, {}) if isinstance(entry, Tool) else entry

    settings = entry.settings
    if isinstance(settings, OpenapiSource):  # a document that is a text or a path stays the same
        settings = replace(settings, document=overrides.redirect(settings.document))

    def load() -> LoadResult:
        clients: dict[str, ApiClient] = {}
        result = entry.loaded() if settings == entry.settings else openapi_tools(settings)
        return LoadResult(
            tools=tuple(_redirect_tool(tool, overrides, clients) for tool in result.tools), problems=result.problems
        )

    return ToolSource(
        entry.location,
        load,
        secrets=entry.secrets,
        given_as=entry.given_as,
        settings=entry.settings,
        on_close=entry.close,
    )


def _redirect_tool(tool: Tool, overrides: HostOverrides, clients: dict[str, ApiClient]) -> Tool:
    caller = tool.handler
    if not isinstance(caller, OperationCaller):
        return tool
    try:
        address = server_of(caller.operation, caller.api.source)
    except ToolDefinitionError:  # reported when it is called: the rest of its API can be used
        return tool
    moved = overrides.redirect(address)
    if moved == address:
        return tool
    source = caller.api.source
    headers = {**source.headers, **overrides.host_header(address, urlsplit(address).hostname or "")}
    client = clients.setdefault(
        address, ApiClient(replace(source, base_url=moved, headers=headers, hide_server=True), clock=caller.api.clock)
    )
    return replace(tool, handler=replace(caller, api=client))
