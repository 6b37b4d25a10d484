"""The gateway's own form: several agents, the keys of those who may use them, and the bounds of the server."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from taoloop.config.agent_file import FIELDS as AGENT_FIELDS
from taoloop.config.agent_file import agent_in, load_agent
from taoloop.config.checks import LIST, MAPPING, TEXT, describe_value, error_location, expect_type
from taoloop.config.document import ConfigDocument, read_document
from taoloop.config.env_references import has_reference
from taoloop.config.settings_loader import SettingsLoader
from taoloop.config.tool_entries import SUFFIXES
from taoloop.errors import ConfigError, MissingKey
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.tool_source import sources_in
from taoloop.serve.gateway.agent_host_overrides import apply_host_overrides
from taoloop.serve.gateway.config.api_keys import KeyRing, check_key, digest_of
from taoloop.serve.gateway.config.host_overrides import HostOverrides, base_url
from taoloop.serve.gateway.config.model import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    ApiKey,
    GatewayConfig,
    ServedAgent,
    ServerLimits,
)
from taoloop.serve.gateway.config.origins import origin_of, origins_of
from taoloop.serve.gateway.config.section import ConfigReport
from taoloop.serve.gateway.higress.file import is_ai_agent, read_higress
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.yaml12 import FieldPath

TOP = ("agents", "keys", "server", "services", "default")
_BESIDE_FILE = ("file", "description")
_MOST_PORT = 65535
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry(ServerLimits):
    """What `server` says.

    `host`: the address to listen on; on any that is not of this machine alone the server needs keys. `port`: 0 takes a
    free one. `allow_origins`: the origins of web pages that may call the server from a browser (CORS), such as
    `https://chat.example`; `"*"` is every page of every site, and without any it is none. `db`: the file in which all
    runs are kept, beside this one; without it the user's own. `max_body_bytes`: the longest body of a request.
    `body_timeout_s`: how long a body may take to arrive. `max_runs`: how many runs may be under way at once; who wants
    one more is told to come again (429). `max_runs_per_key`: the same for each key; null is no limit. `run_timeout_s`:
    how long a whole run may take, its models and tools together. `heartbeat_s`: after so much silence a stream gets a
    comment. `shutdown_s`: how long runs have to finish when the server ends.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    allow_origins: tuple[str, ...] = ()
    db: Path | None = None

    def __post_init__(self) -> None:
        """Refuse what no server can keep to.

        Raises:
            ConfigError: names the field and what it must be.
        """
        ServerLimits.__post_init__(self)
        if not self.host.strip():
            raise ConfigError("host is empty.", hint="Write 127.0.0.1, or 0.0.0.0 for every address of this machine.")
        if not 0 <= self.port <= _MOST_PORT:
            raise ConfigError(f"port is {self.port}.", hint=f"It must be a whole number from 0 to {_MOST_PORT}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEntry:
    """One entry of `keys`.

    `name`: what its use is counted under. `digest`: `sha256:` and the 64 hex digits of the key's SHA-256. `key`: the
    key itself, only as a value of the environment (`${NAME}`), in place of its digest. `agents`: those that it may
    use; without it all of them. `requests_per_minute`: how many requests it may make. `tokens_per_minute`: how many
    tokens its runs may use. `usd_per_day`: what its runs may cost in a day (UTC). `may_approve`: its client may answer
    what waits for a person.
    """

    name: str
    digest: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    agents: tuple[str, ...] = ()
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    usd_per_day: float | None = None
    may_approve: bool = True


def read_gateway_file(
    document: ConfigDocument, env: Mapping[str, str] | None, resolve: Mapping[str, str]
) -> GatewayConfig:
    """Everything that such a file says.

    Raises:
        AgentFileError: a field is unknown, missing, or of no use; names the file, the line and the field.
    """
    for name in document.data:
        if name not in TOP:
            raise document.unknown((str(name),), TOP)
    notes = ConfigReport(document, os.environ if env is None else env)
    filler = SettingsLoader(document, notes.env, plain=(ServerEntry,))
    services = HostOverrides.of(_services(document, notes), resolve)
    server = filler.filled(ServerEntry, ("server",), document.data.get("server") or {})
    agents = _agents(document, notes, env, services)
    default = _default(document, agents)
    if default is not None:
        agents = {default: agents[default], **agents}
    secrets = {name: value for served in agents.values() for name, value in named_secrets(served.agent).items()}
    return GatewayConfig(
        path=document.path,
        form="own",
        agents=agents,
        keys=_keys(document, filler, agents),
        limits=ServerLimits(**{limit.name: getattr(server, limit.name) for limit in fields(ServerLimits)}),
        host=server.host,
        port=server.port,
        db=server.db,
        allow_origins=_origins(document, server.allow_origins),
        any_model=default is not None,
        files=files_of(agents.values()),
        warnings=tuple(notes.warnings),
        secrets={**secrets, **notes.secrets},
        services=services,
    )


def read_agent_file(
    document: ConfigDocument, env: Mapping[str, str] | None, resolve: Mapping[str, str]
) -> GatewayConfig:
    """A plain agent file: its agent under its own name, its journal as that of the server."""
    services = HostOverrides.of(resolve)
    agent = apply_host_overrides(_loaded(document.path, env), services, env)
    if not agent.name.strip():
        raise document.error(("name",), "it is empty, and clients choose an agent by its name.")
    _require_model(document, ("model",), agent)
    served = ServedAgent(name=agent.name, agent=agent)
    return GatewayConfig(
        path=document.path,
        form="agent",
        agents={served.name: served},
        db=Path(agent.journal) if isinstance(agent.journal, str | Path) else None,
        files=files_of([served]),
        secrets=named_secrets(agent),
        services=services,
    )


def _require_model(document: ConfigDocument, path: FieldPath, agent: Agent) -> None:
    """Refuse a model that could not be called, such as one without its key."""
    with error_location(document, path):
        try:
            _ = bind(agent).model
        except MissingKey as error:
            hint = error.hint.replace("use --model offline", "write `model: offline`")
            raise ConfigError(error.message, hint=hint) from error


def named_secrets(agent: Agent) -> dict[str, str]:
    """The secrets of an agent by their names."""
    return dict(agent.secrets) if isinstance(agent.secrets, Mapping) else {}


def files_of(served_agents: Iterable[ServedAgent]) -> tuple[Path, ...]:
    """The files that agents are made from, beside those that are read for them as documents; each once."""
    paths: list[Path] = []
    for served in served_agents:
        agent = served.agent
        if isinstance(agent.prompts, str | Path):
            paths += sorted(Path(agent.prompts).rglob("*.txt"))
        for source in sources_in(agent.tools):
            if isinstance(source.settings, OpenapiSource) and "\n" not in source.settings.document:
                paths.append(Path(source.settings.document))
    return tuple(dict.fromkeys(path for path in paths if path.is_file()))


def _loaded(path: Path, env: Mapping[str, str] | None) -> Agent:
    return load_agent(str(path), **({} if env is None else {"env": env}))


def _agents(
    document: ConfigDocument, notes: ConfigReport, env: Mapping[str, str] | None, services: HostOverrides
) -> dict[str, ServedAgent]:
    entries = document.data.get("agents")
    expect_type(document, ("agents",), entries, MAPPING)
    if not entries:
        raise document.error(("agents",), "it names no agent.", hint="Write `agents: {NAME: FILE.yaml}`.")
    agents = {}
    for name, entry in entries.items():
        path: FieldPath = ("agents", str(name))
        if not (isinstance(name, str) and name.isprintable() and 0 < len(name.strip()) == len(name) <= _LONGEST_NAME):
            hint = f"It is what clients write as `model`: a text of 1 to {_LONGEST_NAME} characters on one line."
            raise document.error(path, f"{describe_value(name)} is no name of an agent.", hint=hint)
        served = _agent(document, path, entry, env, notes, services)
        agent = served.agent
        if agent.journal is not None:
            inner = next(
                (field_name for field_name in ("db", "journal") if isinstance(entry, dict) and field_name in entry),
                None,
            )
            where = path if inner is None else (*path, inner)
            notes.warn(where, "the agent's own journal is not used: the server keeps all runs in its `db`.")
        agent = apply_host_overrides(replace(agent, name=name, journal=None), services, env)
        _require_model(document, (*path, "model"), agent)
        agents[name] = replace(served, name=name, agent=agent)
    return agents


def _agent(
    document: ConfigDocument,
    path: FieldPath,
    entry: Any,
    env: Mapping[str, str] | None,
    notes: ConfigReport,
    services: HostOverrides,
) -> ServedAgent:
    """One agent: by the path of its file, which may be one of `ai-agent`, or with the fields of an agent file."""
    if isinstance(entry, str):
        entry = {"file": entry}
        inner = path
    elif isinstance(entry, dict):
        inner = (*path, "file")
    else:
        hint = "Write the path of an agent file, or the fields of one."
        raise document.error(path, f"an agent is expected, not {describe_value(entry)}.", hint=hint)
    description = entry.get("description", "")
    expect_type(document, (*path, "description"), description, TEXT)
    if "file" in entry:
        for name in entry:
            if name not in _BESIDE_FILE:
                raise document.unknown((*path, str(name)), _BESIDE_FILE)
        expect_type(document, inner, entry["file"], TEXT)
        file_path = document.path.parent / Path(entry["file"]).expanduser()
        with error_location(document, inner):
            return replace(_in_file(file_path, env, notes, services), description=description)
    if "name" in entry:
        raise document.error((*path, "name"), "an agent has the name under which it stands here.")
    for name in entry:
        if name not in AGENT_FIELDS and name != "description":
            raise document.unknown((*path, str(name)), ("file", "description", *AGENT_FIELDS))
    inline = document.under(path)
    inline.data.pop("description", None)
    return ServedAgent(name=str(path[-1]), agent=agent_in(inline, env=env), description=description)


def _in_file(path: Path, env: Mapping[str, str] | None, notes: ConfigReport, services: HostOverrides) -> ServedAgent:
    if path.suffix.lower() in SUFFIXES:
        document = read_document(path)
        if is_ai_agent(document.data):
            own = ConfigReport(document, os.environ if env is None else env)
            served = read_higress(document, own, services)
            notes.warnings += own.warnings
            return served
    agent = _loaded(path, env)
    return ServedAgent(name=agent.name, agent=agent)


def _services(document: ConfigDocument, notes: ConfigReport) -> dict[str, str]:
    entries = document.data.get("services") or {}
    expect_type(document, ("services",), entries, MAPPING)
    addresses = {}
    for name, value in entries.items():
        path: FieldPath = ("services", str(name))
        expect_type(document, path, value, TEXT)
        addresses[str(name)] = notes.env.text(path, value, is_plain=True)
        with error_location(document, path):
            base_url(str(name), addresses[str(name)])
    return addresses


def _origins(document: ConfigDocument, origins: tuple[str, ...]) -> tuple[str, ...]:
    for number, origin in enumerate(origins):
        with error_location(document, ("server", "allow_origins", number)):
            origin_of(origin)
    return origins_of(origins)


def _default(document: ConfigDocument, agents: Mapping[str, ServedAgent]) -> str | None:
    default = document.data.get("default")
    if default is None:
        return None
    expect_type(document, ("default",), default, TEXT)
    if default not in agents:
        raise document.error(("default",), f"no agent is called {default!r}.", hint=f"Known: {', '.join(agents)}.")
    return str(default)


def _keys(document: ConfigDocument, filler: SettingsLoader, agents: Mapping[str, ServedAgent]) -> tuple[ApiKey, ...]:
    entries = document.data.get("keys") or []
    expect_type(document, ("keys",), entries, LIST)
    keys: list[ApiKey] = []
    for number, entry in enumerate(entries):
        path: FieldPath = ("keys", number)
        key = _api_key(document, path, entry, filler.filled(KeyEntry, path, entry))
        for index, name in enumerate(key.agents):
            if name not in agents:
                where = (*path, "agents", index)
                raise document.error(where, f"no agent is called {name!r}.", hint=f"Known: {', '.join(agents)}.")
        keys.append(key)
        with error_location(document, path):
            KeyRing(keys)  # which takes no name and no key twice
    return tuple(keys)


def _api_key(document: ConfigDocument, path: FieldPath, fields_in_file: Mapping[str, Any], entry: KeyEntry) -> ApiKey:
    if "key" in fields_in_file and "digest" in fields_in_file:
        raise document.error((*path, "key"), "`digest` stands here too.", hint="Write one of the two.")
    if "key" not in fields_in_file and "digest" not in fields_in_file:
        hint = "Write `digest: sha256:…`, or `key: ${NAME}` for one from the environment."
        raise document.error(path, "it has neither `digest` nor `key`.", hint=hint)
    if "key" in fields_in_file and not has_reference(fields_in_file["key"]):
        hint = "Write its SHA-256 as `digest: sha256:…`, or `key: ${NAME}` for one from the environment."
        raise document.error((*path, "key"), "a key itself does not stand in a file.", hint=hint)
    values = {field.name: getattr(entry, field.name) for field in fields(ApiKey) if field.name != "digest"}
    key = ApiKey(digest=digest_of(entry.key) if entry.key else entry.digest, **values)
    plain = ApiKey(name=key.name, digest=digest_of(""))
    for name in sorted(
        fields_in_file.keys() - {"key"}, key=lambda name: name != "name"
    ):  # the others' errors tell the name
        with error_location(document, (*path, name)):
            check_key(replace(plain, **{name: getattr(key, name)}))
    return key
