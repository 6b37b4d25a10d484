"""Agents from a YAML or JSON file, or from an attribute of a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pydantic import AfterValidator, WithJsonSchema

from taoloop.config.document import (
    ConfigDocument,
    error_location,
    is_config_file,
    parse_document,
    read_document,
    refuse_recursion,
    translate,
)
from taoloop.config.handoffs import HandoffEntry, read_handoffs, require_linked, with_agents_of_file
from taoloop.config.import_attribute import error_context, load_attribute
from taoloop.config.settings_reader import SettingsReader, checked, expected
from taoloop.config.tool_entries import ToolReader, use_environment
from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.cards.tool_card import Tier
from taoloop.core.policy import PROFILES, EvidenceMode, Policy
from taoloop.dialects import get_dialect
from taoloop.errors import AgentFileError, ConfigError, UnknownName
from taoloop.models.model_builder import join_specs, split_specs
from taoloop.models.prices import Price
from taoloop.models.registry import model_kinds
from taoloop.models.settings import ModelEndpoint, Rate, Retry
from taoloop.prompts.load import LANGUAGES
from taoloop.runtime.agent import Agent
from taoloop.runtime.agent_settings import AUTO
from taoloop.runtime.output_type import OutputValidator
from taoloop.runtime.tool_source import sources_in
from taoloop.strategies import get_strategy
from taoloop.tools.settings_check import expand_home
from taoloop.tools.tool import Tool
from taoloop.tools.yaml12 import FieldPath
from taoloop.translation import mark

_FILE_MODELS = ("scripted", "replay")
_NAMES_IN_AGENT = {"db": "journal", "output_schema": "output_type"}
_SPEC_FIELDS = (
    "repair_turns",
    "temperature",
    "top_p",
    "max_output_tokens",
    "context_tokens",
    "model_timeout_s",
    "model_settings",
)
"""Fields that the spec of an agent checks."""


def load_policy(path: Path) -> Policy:
    """The policy in a YAML or JSON file.

    Raises:
        AgentFileError: it cannot be used; names the file, the line and the field.
    """
    document = read_document(path, "a policy", "profile: supervised")
    return SettingsReader(document, {}).read(Policy, (), document.data, mode="written")


def parse_policy(text: str, name: str = "policy.yaml") -> Policy:
    """The policy in a text, in YAML or (as part of that) JSON; errors call it `name`.

    Raises:
        AgentFileError: it cannot be used; names the line and the field.
    """
    document = parse_document(text, Path(name), "a policy", "profile: supervised")
    return SettingsReader(document, {}).read(Policy, (), document.data, mode="written")


# What the fields of an agent file mean; an error gets the place of the field


def _model(spec: str, reader: SettingsReader) -> str:
    return join_specs(*(_single_model(single, reader) for single in split_specs(spec)))


def _models(specs: str, reader: SettingsReader) -> tuple[str, ...]:
    return tuple(_single_model(spec, reader) for spec in split_specs(specs))


def _single_model(spec: str, reader: SettingsReader) -> str:
    kind, _, rest = spec.partition(":")
    if kind not in model_kinds():
        raise UnknownName("model", spec, tuple(model_kinds()))
    return f"{kind}:{reader.resolve_path(rest)}" if rest and kind in _FILE_MODELS else spec


def _known(get: Callable[[str], object]) -> AfterValidator:
    """A validator of names: `get` raises for one that it does not know."""

    def check(name: str, _reader: SettingsReader) -> str:
        get(name)
        return name

    return checked(check)


def _require_language(name: str) -> None:
    if name not in (AUTO, *LANGUAGES):
        raise UnknownName("prompt language", name, (AUTO, *LANGUAGES))


def _database(path: Path, _reader: SettingsReader) -> Path:
    if path.is_dir():
        raise ConfigError(translate("a file is expected, and this is a folder."))
    return path


def _output_schema(value: dict[str, Any] | Path, _reader: SettingsReader) -> dict[str, Any]:
    """A JSON Schema, in the agent file itself or in a separate one."""
    return read_schema(value) if isinstance(value, Path) else OutputValidator(value).schema


def _named_policy(value: Any, reader: SettingsReader) -> Policy:
    """The policy in a separate file, or that of a profile."""
    if isinstance(value, str) and is_config_file(value):
        return load_policy(reader.resolve_path(value))
    if value not in PROFILES:
        raise expected(translate("a policy file, or one of {names}", names=", ".join(PROFILES)))
    return Policy(profile=value)


class AgentFields(TypedDict, total=False):
    """The fields of an agent file; what is absent has the default of `Agent`."""

    name: str
    """What the agent is called; without it, the name of the file."""

    model: Annotated[str | None, checked(_model)]
    """The model, such as `openai:NAME` or `offline`; several are tried in their order."""

    fallback: Annotated[str, checked(_models)] | tuple[Annotated[str, checked(_single_model)], ...]
    """The models that answer where the first one fails, in their order."""

    retry: Retry
    """When a failed call of the model is tried again."""

    endpoints: tuple[ModelEndpoint, ...]
    """Several addresses or keys of the model; calls are shared by weight, and one that fails rests for a while."""

    prices: dict[str, Price]
    """Own prices by the spec of the model, in US dollars per million tokens; they go before the known ones."""

    rate: Rate
    """How many calls and tokens the model takes in a minute."""

    dialect: Annotated[str | None, _known(get_dialect)]
    """How the model writes its decisions: `native`, `text`, `json`, `json_final` or `fenced`; without it, as suits the
    model."""

    strategy: Annotated[str, _known(get_strategy)]
    """What decides the next step."""

    language: Annotated[str, _known(_require_language)]
    """The language of prompts and of texts for people: `en`, `zh`, or `auto`, which follows the task."""

    instructions: str
    """What the system prompt says about the agent's job."""

    description: str
    """What the agent is for, in a sentence or two: agents that may hand over to it go by it."""

    handoffs: tuple[HandoffEntry | str, ...]
    """The agents of the same file that may take the conversation over: a name, or a mapping with more."""

    agents: dict[Any, Any]
    """Further agents of this file, by their names, to which it can hand over: the path of an agent file, or its
    fields."""

    tools: tuple[Any, ...]
    """The tools, in their order."""

    workspace: Path
    """The folder of the tools that read and write files; beside this file."""

    memory: Annotated[Path, checked(_database)]
    """The file that keeps notes from run to run; beside this file."""

    output_schema: Annotated[dict[str, Any] | Path, checked(_output_schema)]
    """The JSON Schema of answers, or the file that holds it."""

    limits: Limits
    """What one run may use: steps, errors, tokens, money and time."""

    max_steps: int
    """Short for `limits: {max_steps: …}`."""

    policy: Policy | Annotated[Any, checked(_named_policy), WithJsonSchema({"type": "string"})]
    """What the agent may do: a policy, the name of a profile, or a policy file."""

    approved_tiers: tuple[Tier, ...]
    """The tiers whose calls the operator approves in advance."""

    closing_turn: bool
    """Whether a run that reaches a limit gets a last turn without tools, to answer from what it has."""

    evidence: EvidenceMode
    """Whether answers must cite observations that bear them out: `off`, `warn` or `require`."""

    repair_turns: int
    """How often in a row an unreadable reply is sent back before the run ends."""

    vision: bool | None
    """Whether the model sees images; null: by its name."""

    temperature: float | None
    """How much chance there is in the model's replies."""

    top_p: float | None
    """From which share of the likeliest words the model draws."""

    max_output_tokens: int | None
    """The longest reply of one call, in tokens."""

    context_tokens: int | None
    """The size of the model's context window, in tokens."""

    model_settings: dict[str, Any]
    """Settings that not every provider has: `reasoning_effort`, `seed`, `tool_choice`, `stop`, `extra_body`."""

    early_reads: bool
    """Whether calls that only read start while the model is still writing."""

    keep_thinking: bool
    """Whether the model's thinking is kept in the journal."""

    model_timeout_s: float | None
    """How long one call of the model may take, in seconds."""

    response_cache: Path
    """For development: a file that keeps the model's replies, so that an equal request costs nothing; beside this one.
    """

    prompts: Path
    """A folder of prompt texts that replace the built-in ones; beside this file."""

    db: Path | str
    """The database in which runs are kept: a file beside this one, or `postgresql://…`."""

    journal: Path | str
    """The same as `db`."""

    recover_on_start: bool
    """Whether runs that a crash interrupted are resumed at the start."""


def load_agent(source: str, **overrides: Any) -> Agent:
    """The agent that `source` names: `FILE.yaml` (`.yml`, `.json`), or `module:attribute`.

    A module is looked for in the current folder too; its attribute is an `Agent`, or a function without arguments
    that returns one. In a file, paths (workspace, prompts, db, tables, scripts of a model) are relative to the file.
    `overrides` replace fields of the `Agent`; `env` among them fills in `${NAME}` in the settings of tools. The agent's
    `source` says how to load it again.

    Raises:
        AgentFileError: the file or module cannot be used; names the path, the line and the field.
    """
    if is_config_file(source):
        path = expand_home(source).absolute()
        error = ConfigError(  # it gets its place from the file that names the agent
            translate("The agent {file} would be a tool of itself.", file=path.name),
            hint=translate("Take it out of the tools of an inner agent."),
        )
        with refuse_recursion(path, error), use_environment(overrides.get("env")):
            document = read_document(path)
            agent = replace(_agent_of(document), source=str(path))
            require_linked(document, agent)
    elif ":" in source:
        agent = replace(_agent_at(source), source=source)
    else:
        raise AgentFileError(
            translate("this names neither an agent file nor a module's attribute."),
            path=source,
            hint=translate("Write FILE.yaml, FILE.json, or module:attribute."),
        )
    return replace(agent, **overrides) if overrides else agent


def agent_in(document: ConfigDocument, *, env: Mapping[str, str] | None = None) -> Agent:
    """The agent that a mapping describes with the fields of an agent file; `env` fills in `${NAME}`.

    Raises:
        AgentFileError: it cannot be used; names the path, the line and the field.
    """
    with use_environment(env):
        agent = _agent_of(document)
    return agent if env is None else replace(agent, env=env)


def read_schema(path: Path) -> dict[str, Any]:
    """The output schema in a JSON or YAML file.

    Raises:
        AgentFileError: the file cannot be used, or holds no valid schema.
    """
    document = read_document(path, "a JSON Schema", "type: object")
    with error_location(document, ()):
        return OutputValidator(document.data).schema


def _agent_at(source: str) -> Agent:
    loaded = load_attribute(source, Path.cwd())
    if callable(loaded) and not isinstance(loaded, Agent | Tool | type):
        with error_context(source):
            loaded = loaded()
    if not isinstance(loaded, Agent):
        raise AgentFileError(
            translate("it is of the type {kind!r}, not an Agent.", kind=type(loaded).__name__),
            path=source,
            hint=translate("Name an Agent, or a function without arguments that returns one."),
        )
    return loaded


def _agent_of(document: ConfigDocument) -> Agent:
    reader = SettingsReader(document, {})
    fields = reader.read(AgentFields, (), document.data, mode="written")
    _require_consistent(document, fields)
    values = ((_NAMES_IN_AGENT.get(name, name), value) for name, value in fields.items())
    settings: dict[str, Any] = {name: value for name, value in values if value is not None}
    if "max_steps" in fields:
        with error_location(document, ("max_steps",)):
            settings["limits"] = replace(fields.get("limits", Limits()), max_steps=settings.pop("max_steps"))
    if "tools" in fields:
        entries = ToolReader(document, load_agent).entries(("tools",), document.data["tools"])
        settings["tools"] = tuple(entry.item for entry in entries)
    settings["handoffs"] = read_handoffs(document, settings.pop("handoffs", ()))
    entries = settings.pop("agents", {})
    sources = sources_in(settings.get("tools", ()))
    settings["secrets"] = {name: value for source in sources for name, value in source.secrets.items()}
    agent = Agent(**{"name": document.path.stem, **settings})
    if not entries:
        return agent

    def load(path: FieldPath, entry: Any) -> Agent:
        if isinstance(entry, str):
            with error_location(document, path):
                return load_agent(str(reader.resolve_path(entry)))
        return _agent_of(document.under(path))

    return with_agents_of_file(document, agent, entries, load)


def _require_consistent(document: ConfigDocument, fields: AgentFields) -> None:
    """Refuse what the fields cannot be one by one, or beside each other."""
    for name in _SPEC_FIELDS:
        with error_location(document, (name,)):
            AgentSpec(**({name: fields[name]} if name in fields else {}))  # type: ignore[literal-required]
    with error_location(document, ("context_tokens",)):  # which must have room for a reply
        AgentSpec(max_output_tokens=fields.get("max_output_tokens"), context_tokens=fields.get("context_tokens"))
    doubled = "max_steps" in (document.data.get("limits") or {})
    for name, other, is_double in (("db", "journal", "journal" in fields), ("max_steps", "limits.max_steps", doubled)):
        if name in fields and is_double:
            text = mark("`{other}` means the same, and is here too.")
            raise document.problem((name,), text, "Remove one of the two.", other=other)
    tools = fields.get("tools", ())
    for index, entry in enumerate(tools):
        if isinstance(entry, str) and entry in tools[:index]:
            field_path = ("tools", index)
            text = mark("{entry!r} is here a second time.")
            raise document.problem(field_path, text, "Remove one of the two.", entry=entry)
