"""From a file to what a gateway serves: the fields of a file show which form it has."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from taoloop.config.agent_file import AgentFields
from taoloop.config.document import ConfigDocument, read_document, track_files
from taoloop.config.settings_reader import SettingsReader, fields_of
from taoloop.serve.gateway.config.gateway_file import GatewayFields, read_agent_file, read_gateway_file
from taoloop.serve.gateway.config.host_overrides import HostOverrides
from taoloop.serve.gateway.config.model import ConfigForm, GatewayConfig
from taoloop.serve.gateway.config.origins import ANY, origins_of
from taoloop.serve.gateway.higress.file import is_ai_agent, is_short, read_higress

_FORMS_HINT = (
    "With `agents` it is a gateway's own form; with `model`, `tools` and other fields of an agent file it serves that "
    "agent; with `llm` and `apis` it is an ai-agent file of Higress."
)
_OTHERS = {
    "openapi": "This is an OpenAPI document: name it under `tools` of an agent, as `- openapi: FILE`.",
    "swagger": "This is a Swagger document: name it under `tools` of an agent, as `- openapi: FILE`.",
    "spec": "This is a resource of Kubernetes: serve the mapping under `defaultConfig` in it, as a separate file.",
    "mcpServers": "Name each server under `tools` of an agent, as `- mcp: {name: …, command: …}`.",
}
"""Fields of other kinds of files."""

_OPEN = (
    "allow_origins is '*' and there are no keys: every page that somebody opens in a browser on this machine may use "
    "the agents, and say yes to what waits. Name the origins, or put a key under `keys`."
)


def load_config(
    path: Path | str,
    *,
    env: Mapping[str, str] | None = None,
    resolve: Mapping[str, str] | None = None,
    host: str | None = None,
    port: int | None = None,
    db: Path | str | None = None,
    any_model: bool | None = None,
    allow_origins: Sequence[str] = (),
) -> GatewayConfig:
    """Everything that the file at `path` says, checked.

    `env` holds the variables for `${NAME}` and for models; None: those of the process. `resolve` sends the name of a
    service, or a host, of the file to another place: `HOST:PORT`, or a base URL. `host`, `port`, `db`, `any_model` and
    `allow_origins`, where it names any, go before what the file says of them.

    Raises:
        AgentFileError: the file cannot be used; names the path, the line and the field.
        ConfigError: an address in `resolve`, or an origin in `allow_origins`, is invalid.
    """
    path = Path(path).expanduser().absolute()
    services = resolve or {}
    HostOverrides.of(services)  # an invalid address is reported before anything in the file
    with track_files() as files:
        document = read_document(path, "a gateway's configuration", "agents: {assistant: agent.yaml}")
        config = _READERS[form_of(document)](document, env, services)
    config = replace(config, files=tuple(dict.fromkeys((*files, *config.files))))
    overrides: dict[str, Any] = {
        "host": host,
        "port": port,
        "db": None if db is None else Path(db),
        "any_model": any_model,
    }
    overrides["allow_origins"] = origins_of(allow_origins) or None
    config = replace(config, **{name: value for name, value in overrides.items() if value is not None})
    if ANY in config.allow_origins and not config.keys:
        return replace(config, warnings=(*config.warnings, _OPEN))
    return config


def form_of(document: ConfigDocument) -> ConfigForm:
    """Which form a file has.

    Raises:
        AgentFileError: none; says what would make it which.
    """
    data = document.data
    if "agents" in data:
        return "own"
    if is_ai_agent(data):
        return "flat" if is_short(data) else "higress"
    if any(name in fields_of(AgentFields) for name in data):
        return "agent"
    if own := [name for name in fields_of(GatewayFields) if name in data]:
        hint = "Write `agents: {NAME: FILE}`."
        raise document.error((own[0],), "the field `agents` is missing beside it.", hint=hint)
    hint = next((hint for name, hint in _OTHERS.items() if name in data), _FORMS_HINT)
    raise document.error((), "this is no configuration of a gateway.", hint=hint)


def _higress(document: ConfigDocument, env: Mapping[str, str] | None, resolve: Mapping[str, str]) -> GatewayConfig:
    reader, services = SettingsReader(document, os.environ if env is None else env), HostOverrides.of(resolve)
    served = read_higress(reader, services)
    for name in services.unused():
        reader.warnings.append(f"{document.path.name}: --resolve {name}: no service, domain or host has this name.")
    return GatewayConfig(
        path=document.path,
        form="flat" if is_short(document.data) else "higress",
        agents={served.name: served},
        any_model=True,
        warnings=tuple(reader.warnings),
        secrets=reader.secrets,
    )


_READERS: dict[ConfigForm, Callable[[ConfigDocument, Mapping[str, str] | None, Mapping[str, str]], GatewayConfig]] = {
    "own": read_gateway_file,
    "agent": read_agent_file,
    "higress": _higress,
    "flat": _higress,
}
