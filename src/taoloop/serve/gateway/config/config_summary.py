"""What a configuration was understood to say, as text: for `tao serve --check`. No key and no secret is in it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from taoloop.core.cards.tool_search import listed_cards
from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import ConfigError, ToolDefinitionError
from taoloop.models.providers import PROVIDERS, endpoint, shown_address
from taoloop.models.registry import is_provider
from taoloop.models.wrappers.build import split_specs
from taoloop.runtime.agent import Agent
from taoloop.runtime.agent_settings import AUTO
from taoloop.runtime.agent_setup import FINDERS, PAGING_TOOL
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.tool_source import sources_in
from taoloop.serve.gateway.config.model import ApiKey, GatewayConfig, ServedAgent
from taoloop.serve.gateway.higress.endpoint import FixedUrlModel
from taoloop.serve.gateway.unpriced_budgets import unenforceable_budgets
from taoloop.tools.openapi.http.operation_call import OperationCaller
from taoloop.tools.openapi.http.request import server_of
from taoloop.tools.tool import Tool

_USUAL_DB = "the user's own database (`tao doctor` names it)"
_FORMS = {
    "own": "the gateway's own form",
    "agent": "an agent file",
    "higress": "an ai-agent file",
    "flat": "an ai-agent file in its short form",
}
_ADDED = (PAGING_TOOL, *FINDERS)
_LIMITS = ("max_steps", "max_tool_calls", "max_tokens", "max_cost_usd", "max_wall_s", "max_working_s")


def config_summary(config: GatewayConfig) -> str:
    """The form, the agents with their models and tools, the bounds, the names of the keys, and every warning.

    Tools are loaded for it, so it may connect to servers and databases.

    Raises:
        ConfigError: an agent cannot be made, or a source of its tools cannot be as its file says.
    """
    problems = [*_problems(config)]
    lines = [f"{config.path}: {_FORMS[config.form]}", f"listens on: {config.host}:{config.port}"]
    lines.append(f"runs are kept in: {config.db if config.db is not None else _USUAL_DB}")
    if config.allow_origins:
        lines.append(f"pages that may call it from a browser: {', '.join(config.allow_origins)}")
    lines += _bounds(config)
    lines += _keys(config.keys)
    for served in config.agents.values():
        lines += ["", *_agent(served)]
    if config.any_model:
        first = next(iter(config.agents))
        lines += ["", f"A request whose `model` is no agent's name is answered by {first}."]
    warnings = [*config.warnings, *problems, *unused_overrides(config), *unenforceable_budgets(config)]
    lines += ["", "warnings:", *(f"  {warning}" for warning in warnings)] if warnings else ["", "warnings: none"]
    return Redactor(config.secrets, patterns=False).text("\n".join(lines)) + "\n"


def _bounds(config: GatewayConfig) -> Iterator[str]:
    bounds = ((field.name, getattr(config.limits, field.name)) for field in fields(config.limits))
    yield "limits of the server: " + _pairs(bounds)


def _keys(keys: tuple[ApiKey, ...]) -> Iterator[str]:
    if not keys:
        yield "keys: none; the server only starts on an address of this machine"
        return
    yield "keys:"
    for key in keys:
        bounds = ("requests_per_minute", "tokens_per_minute", "usd_per_day")
        limits = _pairs((name, getattr(key, name)) for name in bounds)
        approves = "" if key.may_approve else ", may not approve"
        yield f"  {key.name}: {', '.join(key.agents) or 'every agent'}, {limits or 'no limits'}{approves}"


def _agent(served: ServedAgent) -> Iterator[str]:
    agent = served.agent
    spec = agent.spec_for("")
    yield f"agent {served.name}" + (f": {served.description}" if served.description else "")
    yield from (f"  {line}" for line in _models(agent, spec.model))
    language = "that of the task" if agent.language == AUTO else agent.language
    yield f"  dialect: {spec.dialect}, language: {language}, policy: {spec.policy.profile}"
    limits = _pairs((name, getattr(spec.limits, name)) for name in _LIMITS)
    calls = _pairs((name, getattr(spec, name)) for name in ("model_timeout_s", "max_output_tokens"))
    yield "  limits: " + ", ".join(part for part in (limits, calls) if part)
    if served.reshape is not None:
        title = (served.reshape.schema or {}).get("title", "its schema") if served.reshape.schema else "any JSON object"
        yield f"  answers are turned into JSON: {title}"
    if bind(agent).output_validator is not None:
        yield "  answers fit a JSON Schema"
    listed = {card.name for card in listed_cards(agent.toolbox.cards)}
    own = [tool for tool in agent.toolbox if tool.name not in _ADDED]
    yield "  tools:" if own else "  tools: none"
    for tool in own:
        yield f"    {tool.name} ({_tier(tool)}){_goes_to(tool)}" + (
            "" if tool.name in listed else ", found by a search"
        )


def _models(agent: Agent, spec: str) -> Iterator[str]:
    model: Any = agent.model
    if isinstance(model, FixedUrlModel):
        yield f"model: {model.model} at {shown_address(model.endpoint.url)}"
        return
    env = os.environ if agent.env is None else agent.env
    for number, model_spec in enumerate(split_specs(spec)):
        yield ("model: " if number == 0 else "else: ") + model_spec + _address(model_spec, env)


def _address(spec: str, env: Mapping[str, str]) -> str:
    kind, _, name = spec.partition(":")
    if not is_provider(spec) or kind not in PROVIDERS:
        return ""
    try:
        return f" at {shown_address(endpoint(kind, name, env).address)}"
    except ConfigError:  # a model that its user made, under the name of a provider
        return ""


def _tier(tool: Tool) -> str:
    asks = ", asks each time" if tool.card.requires_approval else ""
    return f"{tool.card.tier or 'tier not declared'}{asks}"


def _goes_to(tool: Tool) -> str:
    caller = tool.handler
    if not isinstance(caller, OperationCaller):
        return ""
    operation = caller.operation
    try:
        server = shown_address(server_of(operation, caller.api.source))
    except ToolDefinitionError:
        return f" {operation.method} {operation.path}, which is on no known server"
    return f" {operation.method} {server}{operation.path}"


def unused_overrides(config: GatewayConfig) -> Iterator[str]:
    """The names that are sent elsewhere and stand for nothing, once the tools are loaded."""
    for name in config.services.unused():
        yield f"{config.path.name}: {name}: no model and no OpenAPI tool is at this host, so nothing is sent elsewhere."


def _problems(config: GatewayConfig) -> Iterator[str]:
    for served in config.agents.values():
        for source in sources_in(served.agent.tools):
            source.untold()  # they are told here, and not in the log too
            for problem in source.loaded().problems:
                yield f"agent {served.name}: {problem}"


def _pairs(pairs: Any) -> str:
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in pairs
        if value is not None
    )
