"""Host overrides applied to an agent: its models, and its tools from OpenAPI documents, call other addresses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from taoloop.errors import ToolDefinitionError
from taoloop.runtime.agent import Agent
from taoloop.runtime.tool_source import ToolSource
from taoloop.serve.gateway.config.host_overrides import HostOverrides
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.http.operation_call import ApiClient, OperationCaller
from taoloop.tools.openapi.http.request import server_of
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadResult


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
    moved_settings = _redirect_document(settings, overrides) if isinstance(settings, OpenapiSource) else None

    def load() -> LoadResult:
        clients: dict[str, ApiClient] = {}
        result = entry.loaded() if moved_settings is None else openapi_tools(moved_settings)
        return LoadResult(
            tools=tuple(_redirect_tool(tool, overrides, clients) for tool in result.tools), problems=result.problems
        )

    return ToolSource(
        entry.location,
        load,
        secrets=entry.secrets,
        given_as=entry.given_as,
        settings=entry.settings,
        let_go=entry.close,
    )


def _redirect_document(source: OpenapiSource, overrides: HostOverrides) -> OpenapiSource | None:
    """The source with its document fetched from another address; None where that stays the same."""
    if "\n" in source.document or "://" not in source.document:
        return None
    moved = overrides.redirect(source.document)
    return None if moved == source.document else replace(source, document=moved)


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
        address, ApiClient(replace(source, base_url=moved, headers=headers), clock=caller.api.clock)
    )
    return replace(tool, handler=replace(caller, api=client))
