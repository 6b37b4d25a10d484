"""From a file to what a gateway serves: the fields of a file show which form it has.

The gateway's own form has several agents, the keys of those who may use them, and the bounds of the server.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Required, TypedDict

from pydantic import BeforeValidator

from taoloop.config.agent_file import AgentFields, agent_in, load_agent
from taoloop.config.document import (
    ConfigDocument,
    Stamp,
    describe_value,
    error_location,
    file_stamp,
    is_config_file,
    read_document,
    track_files,
)
from taoloop.config.handoffs import require_linked
from taoloop.config.settings_reader import LITERAL, SettingsReader, Span, checked, fields_of, has_reference, invalid
from taoloop.errors import ConfigError, MissingKey
from taoloop.journals.addresses import database_address, stored_at
from taoloop.journals.retention import Retention
from taoloop.models.model_builder import endpoint_keys
from taoloop.models.prices import Price
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.handoff import link_team
from taoloop.runtime.tool_source import sources_in
from taoloop.serve.gateway.auth.keys import ApiKey, KeyRing, digest_of
from taoloop.serve.gateway.auth.origins import ANY, origin_of
from taoloop.serve.gateway.auth.tokens import ClaimNames, JwtSettings, TokenVerifier
from taoloop.serve.gateway.config.host_overrides import HostOverrides, apply_host_overrides, base_url
from taoloop.serve.gateway.config.model import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    ConfigForm,
    GatewayConfig,
    GatewayProtocol,
    ServedAgent,
    ServerLimits,
)
from taoloop.serve.gateway.config.notify_entry import NotifyEntry
from taoloop.serve.gateway.config.tls import TlsFiles, certificate_problem, server_context
from taoloop.serve.gateway.higress.file import is_ai_agent, is_short, read_higress
from taoloop.serve.gateway.higress.wasm_plugin import is_wasm_plugin
from taoloop.serve.hosts import host_name
from taoloop.tools.egress.rules import EgressRules
from taoloop.tools.graphql.settings import GraphqlSource
from taoloop.tools.openapi.settings import OpenapiSource, is_http_url
from taoloop.tools.settings_check import expand_home
from taoloop.tools.yaml12 import FieldPath

_FRAGMENT = "#"
_MAY_BE_EMPTY = ("auth", "keys", "server", "services")
_LONGEST_NAME = 200


def _host(host: str, _reader: SettingsReader) -> str:
    if not host.strip():
        raise ConfigError("it is empty.", hint="Write 127.0.0.1, or 0.0.0.0 for every address of this machine.")
    return host


def _allowed_host(text: str, _reader: SettingsReader) -> str:
    return host_name(text)


def _public_url(text: str, _reader: SettingsReader) -> str:
    if text and not is_http_url(text):
        raise ConfigError(f"{text[:80]!r} is not an address.", hint="Write it as https://agents.example.")
    return text.rstrip("/")


def _origin(text: str, _reader: SettingsReader) -> str:
    return origin_of(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry(ServerLimits):
    """What `server` says."""

    host: Annotated[str, checked(_host)] = DEFAULT_HOST
    """The address to listen on; on any that is not of this machine alone the server needs keys."""

    port: Annotated[int, Span(0, 65535)] = DEFAULT_PORT
    """The port to listen on; 0 takes a free one."""

    allow_origins: tuple[Annotated[str, checked(_origin)], ...] = ()
    """Origins of web pages that may call from a browser (CORS), such as `https://chat.example`; `"*"`: every page."""

    allow_hosts: tuple[Annotated[str, checked(_allowed_host)], ...] = ()
    """Host names by which clients reach a server without keys, besides those of this machine (`chat.example:8443`)."""

    image_urls: EgressRules | None = None
    """Egress rules for images that clients name by URL (`{allow: [images.example.com], only_allowed: true}`)."""

    public_url: Annotated[str, checked(_public_url)] = ""
    """The address of the server for browsers, to which logins come back, at `/oauth/callback`; empty: this machine."""

    recover: bool = True
    """Whether runs whose process died are resumed at the start; false: only of agents with `recover_on_start`."""

    notify: NotifyEntry | None = None
    """Who is told what waits for a person: a signed webhook, a command, or both."""

    protocols: tuple[GatewayProtocol, ...] = ()
    """Protocols to serve beside OpenAI's APIs: `agui` (AG-UI), `messages` (Anthropic's Messages API) and `a2a`."""

    a2a_push: EgressRules | None = None
    """Where states of A2A tasks may be pushed to, at the request of clients; `{}`: any public address."""

    db: Path | str | None = None
    """The file in which all runs are kept, beside this one, or `postgresql://…`; without it, the user's own."""


def _only_reference(value: Any) -> Any:
    """A key from the environment: a key that is written in a file is no longer a secret."""
    if isinstance(value, str) and not has_reference(value):
        hint = "Write its SHA-256 as `digest: sha256:…`, or `key: ${NAME}` for one from the environment."
        raise invalid(ConfigError("a key must not be written in a file.", hint=hint))
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEntry(ApiKey):
    """One entry of `keys`."""

    digest: str = field(default="", repr=False)
    """`sha256:` and the 64 hex digits of the key's SHA-256."""

    key: Annotated[str, BeforeValidator(_only_reference, json_schema_input_type=str)] = field(default="", repr=False)
    """The key itself, only as a value of the environment (`${NAME}`), in place of its digest."""

    def __post_init__(self) -> None:
        """Refuse a key that could not be kept or held to.

        Raises:
            ConfigError: names the field, and what it must be.
        """
        if self.key and self.digest:
            raise ConfigError("`key` is here, and so is `digest`.", hint="Write one of the two.")
        if not self.key and not self.digest:
            hint = "Write `digest: sha256:…`, or `key: ${NAME}` for one from the environment."
            raise ConfigError("it has neither `digest` nor `key`.", hint=hint)
        self.to_api_key()

    def to_api_key(self) -> ApiKey:
        """What is kept of the key."""
        values = {field.name: getattr(self, field.name) for field in fields(ApiKey)}
        return ApiKey(**{**values, "digest": digest_of(self.key) if self.key else self.digest})


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminKeyEntry:
    """One entry of `auth.admin_keys`."""

    name: str
    """What the audit log shows."""

    digest: str = field(default="", repr=False)
    """`sha256:` and the 64 hex digits of the key's SHA-256."""

    key: Annotated[str, BeforeValidator(_only_reference, json_schema_input_type=str)] = field(default="", repr=False)
    """The key itself, only as a value of the environment (`${NAME}`), in place of its digest."""

    expires: str = ""
    """From when on it is refused: an ISO date (its midnight in UTC) or time; empty: never."""

    blocked: bool = False
    """Whether it is refused, as one that may have leaked."""

    def __post_init__(self) -> None:
        """Refuse a key that could not be kept.

        Raises:
            ConfigError: names the field, and what it must be.
        """
        self.to_api_key()

    def to_api_key(self) -> ApiKey:
        """What is kept of the key."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return KeyEntry(**values).to_api_key()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthEntry:
    """What `auth` says."""

    admin_keys: tuple[AdminKeyEntry, ...] = ()
    """Who may manage keys over `/v1/admin`; without any there is no such API."""

    jwt: JwtSettings | None = None
    """Tokens of an identity provider that are accepted in place of a key."""


class AgentByFile(TypedDict, total=False):
    """An agent in a separate file."""

    file: Required[Annotated[str, LITERAL]]
    """An agent file, beside this one."""

    description: Annotated[str, LITERAL]
    """For people, and for /v1/models."""


class GatewayFields(TypedDict, total=False):
    """The fields of a gateway's own form."""

    agents: Required[dict[Any, Any]]
    """The agents by the names that clients write as `model`."""

    keys: tuple[KeyEntry, ...] | None
    """Who may use the server."""

    auth: AuthEntry | None
    """Who may manage keys, and whose tokens are accepted."""

    tls: TlsFiles | None
    """The certificate with which the server answers."""

    server: ServerEntry | None
    """Where the server listens, and its bounds."""

    keep: Retention | None
    """How long finished runs are kept; without it, for ever."""

    prices: dict[str, Price] | None
    """Own prices of models for all agents, by spec; those of an agent go before them."""

    services: dict[str, str] | None
    """Hosts whose calls go to another address: HOST:PORT, or a base URL."""

    default: Annotated[str | None, LITERAL]
    """The agent that answers where a request's `model` is the name of none."""


_FORMS_HINT = (
    "With `agents` it is a gateway's own form; with `model`, `tools` and other fields of an agent file it serves that "
    "agent; with `llm` and `apis` it is an ai-agent file of Higress."
)
_OTHERS = {
    "openapi": "This is an OpenAPI document: name it under `tools` of an agent, as `- openapi: FILE`.",
    "swagger": "This is a Swagger document: name it under `tools` of an agent, as `- openapi: FILE`.",
    "spec": "This is a resource of Kubernetes; of these only `kind: WasmPlugin` of the plugin ai-agent can be served.",
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
    allow_hosts: Sequence[str] = (),
    protocols: tuple[GatewayProtocol, ...] = (),
) -> GatewayConfig:
    """Everything that the file at `path` says, checked.

    `env` holds the variables for `${NAME}` and for models; None: those of the process. `resolve` sends the name of a
    service, or a host, of the file to another place: `HOST:PORT`, or a base URL. The others, where they name anything,
    go before what the file says.

    Raises:
        AgentFileError: the file cannot be used; names the path, the line and the field.
        ConfigError: an address in `resolve`, an origin in `allow_origins` or a name in `allow_hosts` is invalid.
    """
    path = expand_home(path).absolute()
    services = HostOverrides(resolve or {})  # an invalid address is reported before anything in the file
    with track_files() as files:
        document = read_document(path, "a gateway's configuration", "agents: {assistant: agent.yaml}")
        form = form_of(document)
        reader = _ConfigReader(document, form, env, services)
        if form == "own":
            config = reader.read_gateway(resolve or {})
        else:
            config = reader.read_agent() if form == "agent" else reader.read_higress()
    options: dict[str, Any] = {"host": host, "port": port, "db": None if db is None else database_address(db)}
    options |= {"any_model": any_model, "allow_origins": tuple(dict.fromkeys(map(origin_of, allow_origins))) or None}
    options["allow_hosts"] = tuple(dict.fromkeys(map(host_name, allow_hosts))) or None
    options["protocols"] = protocols or None
    config = replace(
        config,
        files={**files, **{path: stamp for path, stamp in config.files.items() if path not in files}},
        **{name: value for name, value in options.items() if value is not None},
    )
    if ANY in config.allow_origins and not config.needs_key:
        return replace(config, warnings=(*config.warnings, _OPEN))
    return config


def _source_in(path: Path, name: str) -> str:
    """The source of an agent that has no agent file of its own: the gateway's file, and the agent's name in it."""
    return f"{path}{_FRAGMENT}{name}"


def load_served_agent(source: str, env: Mapping[str, str] | None = None) -> Agent:
    """The agent of a source without an agent file, as its runs store it (`gateway.yaml#NAME`).

    Raises:
        AgentFileError: the file cannot be used.
        ConfigError: it has no such agent any more.
    """
    file, _, name = source.partition(_FRAGMENT)
    config = load_config(file, env=env)
    if (served := config.agents.get(name)) is None:
        known = ", ".join(config.agents)
        raise ConfigError(f"{file} has no agent {name!r} any more.", hint=f"It has {known}; --agent names another one.")
    return served.agent


def form_of(document: ConfigDocument) -> ConfigForm:
    """Which form a file has.

    Raises:
        AgentFileError: none; says what would make it which.
    """
    data = document.data
    if "agents" in data and "handoffs" not in data:  # with both it is an agent file with further agents
        return "own"
    if is_wasm_plugin(data):
        return "wasm_plugin"
    if is_ai_agent(data):
        return "flat" if is_short(data) else "higress"
    if any(name in fields_of(AgentFields) for name in data):
        return "agent"
    if own := [name for name in fields_of(GatewayFields) if name in data]:
        hint = "Write `agents: {NAME: FILE}`."
        raise document.error((own[0],), "the field `agents` is missing beside it.", hint=hint)
    hint = next((hint for name, hint in _OTHERS.items() if name in data), _FORMS_HINT)
    raise document.error((), "this is no configuration of a gateway.", hint=hint)


class _ConfigReader:
    """Reads the configuration in one file, whichever form it has.

    Every method raises AgentFileError where a field is unknown, missing, or invalid; it names the file, the line and
    the field.
    """

    def __init__(
        self, document: ConfigDocument, form: ConfigForm, env: Mapping[str, str] | None, services: HostOverrides
    ) -> None:
        self._document, self._form, self._env, self._services = document, form, env, services
        self._variables = os.environ if env is None else env
        self._prices: Mapping[str, Price] = {}
        self._settings = SettingsReader(
            document, self._variables, plain=(ServerEntry, GatewayFields, TlsFiles, JwtSettings, ClaimNames)
        )

    def read_gateway(self, resolve: Mapping[str, str]) -> GatewayConfig:
        """The gateway's own form; `resolve` goes before the services that the file names."""
        document = self._document
        data = {name: value for name, value in document.data.items() if value or name not in _MAY_BE_EMPTY}
        entries = self._settings.read(GatewayFields, (), data)
        server, addresses = entries.get("server") or ServerEntry(), entries.get("services") or {}
        for name, address in addresses.items():
            with error_location(document, ("services", name)):
                base_url(name, address)
        self._services = HostOverrides(addresses, resolve)
        self._prices = entries.get("prices") or {}
        agents = {str(name): self._agent(name, entry) for name, entry in entries["agents"].items()}
        if not agents:
            raise document.error(("agents",), "it names no agent.", hint="Write `agents: {NAME: FILE.yaml}`.")
        agents = self._linked(agents)
        default = entries.get("default")
        if default is not None:
            self._require_agent(("default",), default, agents)
            agents = {default: agents[default], **agents}
        auth, tls = entries.get("auth") or AuthEntry(), entries.get("tls")
        agents = {name: replace(served, image_urls=server.image_urls) for name, served in agents.items()}
        keys = self._keys(entries.get("keys") or (), agents)
        admin_keys = self._admin_keys(auth, keys)
        self._check_access(auth, tls, agents)
        return replace(
            self._config(agents),
            keys=keys,
            admin_keys=admin_keys,
            jwt=auth.jwt,
            tls=tls,
            limits=ServerLimits(**{limit.name: getattr(server, limit.name) for limit in fields(ServerLimits)}),
            host=server.host,
            port=server.port,
            db=None if server.db is None else database_address(server.db),
            public_url=server.public_url,
            notify=None if server.notify is None else server.notify.settings(),
            recover=server.recover,
            keep=entries.get("keep"),
            allow_origins=tuple(dict.fromkeys(server.allow_origins)),
            allow_hosts=tuple(dict.fromkeys(server.allow_hosts)),
            protocols=tuple(dict.fromkeys(server.protocols)),
            a2a_push=server.a2a_push,
            any_model=default is not None,
            files={**files_of(agents.values()), **_access_files(auth, tls)},
        )

    def read_agent(self) -> GatewayConfig:
        """A plain agent file: its agent under its own name, its journal as that of the server."""
        agent = apply_host_overrides(load_agent(str(self._document.path), env=self._env), self._services, self._env)
        if not agent.name.strip():
            raise self._document.error(("name",), "it is empty, and clients choose an agent by its name.")
        self._require_model(("model",), agent)
        served = ServedAgent(name=agent.name, agent=agent)
        self._require_price(("limits", "max_cost_usd"), served)
        return replace(self._config({served.name: served}), db=stored_at(agent.journal), files=files_of([served]))

    def read_higress(self) -> GatewayConfig:
        """An `ai-agent` file in either form."""
        content = read_higress(self._document, self._variables, self._services)
        self._settings.warnings += content.warnings
        path, agents = self._document.path, dict[str, ServedAgent]()
        for name, served in content.agents.items():
            agents[name] = replace(served, agent=replace(served.agent, source=_source_in(path, name)))
        return replace(self._config(agents), any_model=content.has_default)

    def _config(self, agents: Mapping[str, ServedAgent]) -> GatewayConfig:
        secrets: dict[str, str] = {}
        for served in agents.values():
            secrets |= served.agent.secrets if isinstance(served.agent.secrets, Mapping) else {}
            secrets |= endpoint_keys(served.agent.endpoints, served.agent.env)
        return GatewayConfig(
            path=self._document.path,
            form=self._form,
            agents=agents,
            warnings=tuple(self._settings.warnings),
            secrets={**secrets, **self._settings.secrets},
            services=self._services,
        )

    def _agent(self, name: Any, entry: Any) -> ServedAgent:
        """One agent under its name, with the server's journal instead of its own."""
        document, path = self._document, ("agents", str(name))
        if not (isinstance(name, str) and name.isprintable() and 0 < len(name.strip()) == len(name) <= _LONGEST_NAME):
            hint = f"It is what clients write as `model`: a text of 1 to {_LONGEST_NAME} characters on one line."
            raise document.error(path, f"{describe_value(name)} is no name of an agent.", hint=hint)
        served = self._read_entry(path, entry)
        if served.agent.journal is not None:
            where = [(*path, field) for field in ("db", "journal") if isinstance(entry, dict) and field in entry]
            message = "the agent's own journal is not used: the server keeps all runs in its `db`."
            self._settings.warn(where[0] if where else path, message)
        prices = {**self._prices, **served.agent.prices}
        source = served.agent.source or _source_in(document.path, name)
        agent = replace(served.agent, name=name, journal=None, prices=prices, source=source)
        agent = apply_host_overrides(agent, self._services, self._env)
        self._require_model((*path, "model"), agent)
        served = replace(served, name=name, agent=agent)
        in_place = isinstance(entry, dict) and "limits" in entry
        self._require_price((*path, "limits", "max_cost_usd") if in_place else path, served)
        return served

    def _linked(self, agents: Mapping[str, ServedAgent]) -> dict[str, ServedAgent]:
        """The agents with their hand-offs to each other. One in a separate file hands over within that file."""
        team = link_team({name: served.agent for name, served in agents.items()})
        for name, agent in team.items():
            require_linked(self._document, agent, ("agents", name))
        return {name: replace(served, agent=team[name]) for name, served in agents.items()}

    def _read_entry(self, path: FieldPath, entry: Any) -> ServedAgent:
        """One agent: by the path of its file, which may be one of `ai-agent`, or with the fields of an agent file."""
        document, settings = self._document, self._settings
        if isinstance(entry, str):
            with error_location(document, path):
                return self._read_file(settings.resolve_path(entry))
        if not isinstance(entry, dict):
            hint = "Write the path of an agent file, or the fields of one."
            raise document.error(path, f"an agent is expected, not {describe_value(entry)}.", hint=hint)
        if "file" in entry:
            by_file = settings.read(AgentByFile, path, entry)
            with error_location(document, (*path, "file")):
                served = self._read_file(settings.resolve_path(by_file["file"]))
            description = by_file.get("description", served.agent.description)
            return replace(served, description=description, agent=replace(served.agent, description=description))
        if "agents" in entry:
            raise document.error((*path, "agents"), "these agents belong beside this one.", hint="Write them there.")
        if "name" in entry:
            raise document.error((*path, "name"), "an agent has the name that is its key here.")
        description = settings.read(str, (*path, "description"), entry.get("description", ""), mode="written")
        inline = document.under(path)
        return ServedAgent(name=str(path[-1]), agent=agent_in(inline, env=self._env), description=description)

    def _read_file(self, path: Path) -> ServedAgent:
        if is_config_file(path.name) and is_ai_agent((document := read_document(path)).data):
            content = read_higress(document, self._variables, self._services)
            self._settings.warnings += content.warnings
            if len(content.agents) > 1:
                hint = "Serve the resource as a file of its own, or put each `config` into a separate file."
                raise document.error((), f"it holds {len(content.agents)} agents, and one is expected.", hint=hint)
            return next(iter(content.agents.values()))
        agent = load_agent(str(path), env=self._env)
        return ServedAgent(name=agent.name, agent=agent, description=agent.description)

    def _keys(self, entries: Sequence[KeyEntry], agents: Mapping[str, ServedAgent]) -> tuple[ApiKey, ...]:
        keys: list[ApiKey] = []
        ring = KeyRing()
        for number, entry in enumerate(entries):
            for index, name in enumerate(entry.agents):
                self._require_agent(("keys", number, "agents", index), name, agents)
            keys.append(entry.to_api_key())
            with error_location(self._document, ("keys", number)):
                ring.add(keys[-1])
        return tuple(keys)

    def _admin_keys(self, auth: AuthEntry, keys: Sequence[ApiKey]) -> tuple[ApiKey, ...]:
        """The admin keys, none of which is a client's key: one that leaks from a client must not open both."""
        ring = KeyRing()
        digests = {key.digest.lower() for key in keys}
        for number, entry in enumerate(auth.admin_keys):
            key = entry.to_api_key()
            with error_location(self._document, ("auth", "admin_keys", number)):
                ring.add(key)
                if key.digest.lower() in digests:
                    raise ConfigError("it is also one of `keys`.", hint="Make a key of its own for administrators.")
        return tuple(entry.to_api_key() for entry in auth.admin_keys)

    def _check_access(self, auth: AuthEntry, tls: TlsFiles | None, agents: Mapping[str, ServedAgent]) -> None:
        """Refuse files of `auth` and `tls` that cannot be used; a certificate out of its time is a warning."""
        if auth.jwt is not None:
            for index, name in enumerate(auth.jwt.agents):
                self._require_agent(("auth", "jwt", "agents", index), name, agents)
            with error_location(self._document, ("auth", "jwt")):
                TokenVerifier(auth.jwt)
        if tls is not None:
            with error_location(self._document, ("tls",)):
                server_context(tls)
                if problem := certificate_problem(tls):
                    self._settings.warn(("tls", "cert"), problem)

    def _require_agent(self, path: FieldPath, name: str, agents: Mapping[str, ServedAgent]) -> None:
        if name not in agents:
            raise self._document.error(path, f"no agent is called {name!r}.", hint=f"Known: {', '.join(agents)}.")

    def _require_model(self, path: FieldPath, agent: Agent) -> None:
        """Refuse a model that could not be called, such as one without its key."""
        with error_location(self._document, path):
            try:
                _ = bind(agent).model
            except MissingKey as error:
                hint = error.hint.replace(
                    " (with load_env=True in Python), or use offline", ", or write `model: offline`"
                )
                raise ConfigError(error.message, hint=hint) from error

    def _require_price(self, path: FieldPath, served: ServedAgent) -> None:
        """Refuse a budget that would end every run at its first reply, because nobody knows what that costs."""
        unpriced = served.unpriced_models()
        if served.agent.limits.max_cost_usd is None or not unpriced:
            return
        spec = unpriced[0]
        if spec == next(served.model_endpoints())[0]:
            raise self._document.error(
                path,
                f"the price of {spec} is not known, so `max_cost_usd` would end every run at its first reply.",
                hint="Write its price under `prices` (US dollars per million tokens), or remove `max_cost_usd`.",
            )
        self._settings.warn(
            path, f"the price of {spec} is not known, so `max_cost_usd` ends a run that falls back to it: see `prices`."
        )


def _access_files(auth: AuthEntry, tls: TlsFiles | None) -> dict[Path, Stamp]:
    """The files of `auth` and `tls`, which are watched like the configuration: a renewed certificate is used soon."""
    jwks = None if auth.jwt is None else auth.jwt.jwks_file
    paths = (*(() if tls is None else tls.paths), *(() if jwks is None else (jwks,)))
    return {path: file_stamp(path) for path in paths}


def files_of(served_agents: Iterable[ServedAgent]) -> dict[Path, Stamp]:
    """The files that agents are made from, beside those that are read for them as documents."""
    paths: list[Path] = []
    for served in served_agents:
        agent = served.agent
        if isinstance(agent.prompts, str | Path):
            paths += sorted(Path(agent.prompts).rglob("*.txt"))
        for source in sources_in(agent.tools):
            if isinstance(source.settings, OpenapiSource) and "\n" not in source.settings.document:
                paths.append(Path(source.settings.document))
            if isinstance(source.settings, GraphqlSource):
                named = (source.settings.schema_file, *source.settings.documents)
                paths += [Path(text) for text in named if text and "\n" not in text]
    return {path: file_stamp(path) for path in paths if path.is_file()}
