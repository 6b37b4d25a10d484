"""A summary of a configuration, as text for people: for `tao serve --check`. No key and no secret is in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from typing import Any

from taoloop.core.cards.tool_search import PAGING_TOOL, listed_cards
from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import ToolDefinitionError
from taoloop.models.providers import shown_address
from taoloop.runtime.agent_settings import AUTO
from taoloop.runtime.agent_toolbox import FINDERS
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.notifications.hooks import hooks_of
from taoloop.runtime.tool_source import sources_in
from taoloop.serve.gateway.auth.keys import ApiKey
from taoloop.serve.gateway.config.model import ANY_OBJECT, GatewayConfig, ServedAgent
from taoloop.serve.gateway.higress.file import FixedUrlModel
from taoloop.serve.gateway.quotas import late_warnings
from taoloop.serve.texts import TEXTS
from taoloop.tools.openapi.operation_call import OperationCaller
from taoloop.tools.openapi.request import server_of
from taoloop.tools.tool import Tool
from taoloop.translation import translate_error

_ADDED = (PAGING_TOOL, *FINDERS)
_LIMITS = ("max_steps", "max_tool_calls", "max_tokens", "max_cost_usd", "max_wall_s", "max_working_s")

Text = Callable[..., str]
"""Gives the text of a name, with its values filled in."""


def config_summary(config: GatewayConfig, language: str = "en") -> str:
    """The form, the agents with their models and tools, the limits, the names of the keys, and every warning.

    Tools are loaded for it, so it may connect to servers and databases. Names of fields and warnings of the file itself
    are the same in every language (`language` is "en" or "zh").

    Raises:
        ConfigError: an agent cannot be made, or the settings of one of its tool sources are wrong.
    """
    text = partial(TEXTS.text, language)
    problems = [*_problems(config, text)]
    lines = [f"{config.path}: {text(f'form_{config.form}')}", text("listens", address=f"{config.host}:{config.port}")]
    lines.append(text("database", path=text("default_database") if config.db is None else config.db))
    if config.keep is not None:
        lines.append(text("retention", limits=_settings(config.keep, "days", "runs")))
    if config.notify is not None:
        hooks = ", ".join(hook.name for hook in hooks_of(config.notify))
        lines.append(text("notify", hooks=hooks))
    if config.allow_origins:
        lines.append(text("pages", origins=", ".join(config.allow_origins)))
    if config.allow_hosts and not config.needs_key:
        lines.append(text("host_names", names=", ".join(config.allow_hosts)))
    if config.protocols:
        lines.append(text("protocols", names=", ".join(config.protocols)))
    names = (field.name for field in fields(config.limits))
    lines.append(text("server_limits", limits=_settings(config.limits, *names)))
    lines += _access(config, text)
    lines += _keys(config.keys, text) if config.needs_key else [text("no_keys")]
    for served in config.agents.values():
        lines += ["", *_agent(served, text)]
    if config.any_model:
        lines += ["", text("default_agent", agent=next(iter(config.agents)))]
    warnings = [
        *(translate_error(warning, language) for warning in (*config.warnings, *problems)),
        *_expired_keys(config, text),
        *late_warnings(config, language),
    ]
    lines += [
        "",
        text("warnings" if warnings else "no_warnings"),
        *(f"  {warning}" for warning in warnings),
    ]
    return Redactor(config.secrets, patterns=False).text("\n".join(lines)) + "\n"


def _access(config: GatewayConfig, text: Text) -> Iterator[str]:
    if config.tls is not None:
        yield text("tls", cert=config.tls.cert)
        if config.tls.client_ca is not None:
            yield text("client_ca", path=config.tls.client_ca)
    if config.admin_keys:
        yield text("admin_keys", names=", ".join(key.name for key in config.admin_keys))
    if config.jwt is not None:
        source = config.jwt.jwks_url or config.jwt.jwks_file
        yield text("jwt", issuer=config.jwt.issuer, audience=config.jwt.audience, source=source)


def _keys(keys: tuple[ApiKey, ...], text: Text) -> Iterator[str]:
    if not keys:
        return
    yield text("keys")
    for key in keys:
        limits = _settings(key, "requests_per_minute", "tokens_per_minute", "usd_per_day") or text("no_limits")
        line = text("key", name=key.name, agents=", ".join(key.agents) or text("every_agent"), limits=limits)
        line += "" if key.may_approve else text("may_not_approve")
        line += "" if key.panel is None else text("panel_role", role=key.panel)
        line += text("blocked") if key.blocked else ""
        line += text("expires", time=key.expires) if key.expires else ""
        yield f"{line}, task_authority {key.task_authority}"


def _expired_keys(config: GatewayConfig, text: Text) -> Iterator[str]:
    now = time.time()
    for key in (*config.keys, *config.admin_keys):
        if key.state_at(now) == "expired":
            yield text("expired_key", name=key.name, time=key.expires)


def _agent(served: ServedAgent, text: Text) -> Iterator[str]:
    agent = served.agent
    spec = agent.spec_for("")
    if served.description:
        yield text("agent_described", name=served.name, description=served.description)
    else:
        yield text("agent", name=served.name)
    yield from _models(served, text)
    language = text("task_language") if agent.language == AUTO else agent.language
    yield text("agent_settings", dialect=spec.dialect, language=language, policy=spec.policy.profile)
    limits: tuple[str, ...] = (
        _settings(spec.limits, *_LIMITS),
        _settings(spec, "model_timeout_s", "max_output_tokens"),
    )
    if served.file_limits:
        limits = tuple(f"{name} {value}" for name, value in served.file_limits.items())
    yield text("agent_limits", limits=", ".join(filter(None, limits)))
    if served.reshape is not None:
        fallback = "any_object" if served.reshape == ANY_OBJECT else "its_schema"
        yield text("json_answer", schema=served.reshape.get("title") or text(fallback))
    if bind(agent).output_validator is not None:
        yield text("schema_answer")
    listed = {card.name for card in listed_cards(agent.toolbox.cards)}
    tools = [tool for tool in agent.toolbox if tool.name not in _ADDED]
    yield text("tools" if tools else "no_tools")
    for tool in tools:
        tier = tool.card.tier or text("undeclared_tier")
        tier += text("asks_each_time") if tool.card.requires_approval else ""
        suffix = "" if tool.name in listed else text("found_by_search")
        yield f"    {tool.name} ({tier}){_server(tool, text)}{suffix}"


def _models(served: ServedAgent, text: Text) -> Iterator[str]:
    model: Any = served.agent.model
    if isinstance(model, FixedUrlModel):
        yield text("model", model=model.model) + text("at", address=shown_address(model.endpoint.url))
        return
    first = None
    for spec, target in served.model_endpoints():
        first = first or spec
        address = "" if target is None else text("at", address=shown_address(target.address))
        yield text("model" if spec == first else "fallback", model=spec) + address


def _server(tool: Tool, text: Text) -> str:
    """Method and address of a tool from an OpenAPI document; empty for any other."""
    caller = tool.handler
    if not isinstance(caller, OperationCaller):
        return ""
    operation = caller.operation
    try:
        server = shown_address(server_of(operation, caller.api.source))
    except ToolDefinitionError:
        return " " + text("unknown_server", method=operation.method, path=operation.path)
    return f" {operation.method} {server}{operation.path}"


def _problems(config: GatewayConfig, text: Text) -> Iterator[str]:
    for served in config.agents.values():
        for source in sources_in(served.agent.tools):
            source.take_problems()  # they are reported here, and not in the log too
            for problem in source.loaded().problems:
                yield text("problem", agent=served.name, problem=problem)


def _settings(owner: object, *names: str) -> str:
    """The values of these attributes with their names, where they have any."""
    values = ((name, getattr(owner, name)) for name in names)
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in values
        if value is not None
    )
