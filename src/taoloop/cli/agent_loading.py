"""From the options of a command, or from a stored run, to an agent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from taoloop.cli.database import database
from taoloop.cli.options import LIMIT_OPTIONS, split_repeated
from taoloop.cli.translation import translate
from taoloop.cli.ui.stdio import one_line, print_stderr
from taoloop.config.agent_file import load_agent, load_policy, read_schema
from taoloop.config.document import is_config_file
from taoloop.config.import_attribute import load_attribute
from taoloop.config.tool_file import named_as, tools_named
from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.cards.tool_card import TIERS, Tier
from taoloop.core.cards.tool_search import PAGING_TOOL
from taoloop.core.policy import EvidenceMode, Policy, Profile
from taoloop.core.text import lazy_pattern
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, MissingExtra, TaoError
from taoloop.journals.addresses import DatabaseAddress, stored_at
from taoloop.models.model_builder import join_specs, split_specs
from taoloop.models.providers import extra_of, missing_packages
from taoloop.models.registry import OFFLINE, default_spec, is_provider, mock_is_set
from taoloop.models.settings import DeferredModelSpec
from taoloop.runtime.agent import Agent
from taoloop.runtime.agent_settings import AgentSettings
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.subagent import with_inner_agents
from taoloop.runtime.tool_source import SourceLocation, ToolSource, sources_in
from taoloop.tools.builtin.catalog import BUILTIN_NAMES
from taoloop.tools.builtin.memory import MEMORY_TOOLS
from taoloop.tools.settings_check import expand_home
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import ToolFolder
from taoloop.translation import mark, translate_error

DEFAULT_TOOLS = ("calculator", "time_now")
WORKSPACE_TOOLS = ("read_file", "list_files", "search_files", "write_file", "edit_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """What the command line says about the agent; None if an option is absent."""

    agent: str | None = None
    """`--agent`: a file, or module:attribute."""
    model: str | None = None
    """`--model`: the spec of the model."""
    fallback: tuple[str, ...] | None = None
    """`--fallback`: the specs of the models to use when the first one fails."""
    vision: bool | None = None
    """`--vision` or `--no-vision`: whether the model sees images."""
    dialect: str | None = None
    """`--dialect`: how the model writes decisions."""
    strategy: str | None = None
    """`--strategy`: the strategy of reasoning."""
    language: str | None = None
    """`--lang`: the language of the prompts."""
    tools: tuple[str, ...] | None = None
    """`--tools`: built-in names, module:attribute, or tool files."""
    skills: tuple[str, ...] | None = None
    """`--skills`: folders of skills, each as `[NAME=]DIR`."""
    workspace: str | None = None
    """`--workspace`: the folder of the file tools."""
    memory: str | None = None
    """`--memory`: the file of notes."""
    evidence: EvidenceMode | None = None
    """`--evidence`: what becomes of an answer whose citations do not hold."""
    output_schema: str | None = None
    """`--output-schema`: the file with the JSON Schema of the answer."""
    prompts: str | None = None
    """`--prompts`: the folder of edited prompts."""
    closing_turn: bool | None = None
    """False for `--no-closing-turn`."""
    context_tokens: int | None = None
    """`--context-tokens`: the context window of the model."""
    approve: str | None = None
    """`--approve`: the highest tier that is approved in advance."""
    profile: str | None = None
    """`--profile`: what the agent may do without asking."""
    policy: str | None = None
    """`--policy`: the file with rules."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """The limits that the command line sets, by name."""

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> AgentOptions:
        """The options among the arguments of a command; one that the command does not have is None."""
        plain = {field.name: arguments[field.name] for field in fields(cls) if field.name in arguments}
        return cls(
            **plain
            | {
                "language": arguments.get("lang"),
                "fallback": arguments.get("fallback") or None,
                "tools": split_repeated(arguments.get("tools")),
                "skills": arguments.get("skills") or None,
                "closing_turn": False if arguments.get("no_closing_turn") else None,
                "limits": {name: arguments[name] for name in LIMIT_OPTIONS if arguments.get(name) is not None},
            }
        )

    @property
    def approved_tiers(self) -> tuple[Tier, ...] | None:
        """The tier of `--approve` and those below it."""
        if self.approve is None:
            return None
        return TIERS[: [str(tier) for tier in TIERS].index(self.approve) + 1]


def agent_from_options(chosen: AgentOptions, env: Mapping[str, str]) -> Agent:
    """The agent for a new run: that of `--agent` or a plain one, with the options applied."""
    agent = agent_from_options_unloaded(chosen, env)
    print_load_problems(agent)
    return agent


def agent_from_options_unloaded(chosen: AgentOptions, env: Mapping[str, str]) -> Agent:
    """The same, and none of the sources of its tools is loaded yet."""
    plain = Agent(tools=default_tools(chosen))
    return _with_options(plain if chosen.agent is None else _agent_at(chosen.agent, env), chosen, env)


def default_tools(chosen: AgentOptions) -> tuple[str, ...]:
    """The tools of an agent for which none are named."""
    with_files = WORKSPACE_TOOLS if chosen.workspace is not None else ()
    return DEFAULT_TOOLS + with_files + (MEMORY_TOOLS if chosen.memory is not None else ())


def agent_of_run(spec: AgentSpec, chosen: AgentOptions, env: Mapping[str, str]) -> Agent:
    """The agent to resume a stored run: from the source of the run's agent, with the options applied.

    Tools of the run that its source no longer has, but that are built in, are added.
    """
    source = chosen.agent or spec.source
    base = Agent(model=DeferredModelSpec(spec.model), policy=spec.policy) if source is None else _agent_at(source, env)
    folders = [name for name in spec.tools_from if name.startswith(_SKILLS)]
    if chosen.tools is None and (names := [name for name in spec.tools_from if name not in folders]):
        base = replace(base, tools=named_tools(names, env))  # in place of its own, as when the run began
    if chosen.skills is None and folders:
        base = replace(base, tools=(*base.tools, *named_tools(folders, env)))
    if base.workspace is None or source is None or chosen.agent is None:
        base = replace(base, workspace=spec.workspace)
    if base.memory is None:
        base = replace(base, memory=spec.memory)
    if spec.policy_from:
        base = replace(base, policy=_policy_as_begun(spec, base), policy_from=spec.policy_from)
    if spec.policy.observations == "handles":
        base = replace(base, policy=spec.policy)  # the run's own anyway; its tools are others in this mode
    agent = _with_options(base, chosen, env)
    print_load_problems(agent)
    if chosen.tools is None:
        present = agent.toolbox.names
        needed = [card.name for card in spec.tools if card.name not in present and card.name != PAGING_TOOL]
        lacking = [name for name in needed if name in BUILTIN_NAMES]
        agent = replace(agent, tools=(*agent.tools, *lacking))
    model_spec = chosen.model or chosen.fallback or chosen.agent
    if model_spec is None and _model_spec(agent, env) != spec.model:
        agent = replace(agent, model=DeferredModelSpec(spec.model), fallback=())
    return agent


def _agent_at(source: str, env: Mapping[str, str]) -> Agent:
    """The agent of a file or `module:attribute`, or that of a gateway under its name there (`gateway.yaml#NAME`)."""
    file, separator, _ = source.partition("#")
    if not (separator and is_config_file(file)):
        return load_agent(source, env=env)
    if find_spec("aiohttp") is None:
        raise missing_package(source, "aiohttp", extra="serve")
    from taoloop.serve.gateway.config.gateway_file import load_served_agent  # noqa: PLC0415  # needs the extra

    return load_served_agent(source, env)


def with_mock_model(agent: Agent, chosen: AgentOptions, env: Mapping[str, str]) -> Agent:
    """The agent with the offline model in place of a provider's, if AI_MOCK is set and `--model` is not."""
    if chosen.model is None and mock_is_set(env) and any(map(is_provider, split_specs(_model_spec(agent, env)))):
        return replace(agent, model=OFFLINE, fallback=())
    return agent


def model_notice(before: Agent, after: Agent, env: Mapping[str, str], language: str) -> str:
    """What is worth knowing about the model that answers; empty if it is the one that was requested."""
    if after is not before:
        text = mark("AI_MOCK is set: the offline planner answers in place of {spec}.")
        return translate(text, language, spec=_model_spec(before, env))
    if before.model is not None or default_spec(env) != OFFLINE:
        return ""
    if mock_is_set(env):
        return translate("AI_MOCK is set: the offline planner answers, not a language model.", language)
    if env.get("TAOLOOP_MODEL", "").strip():
        return ""
    text = mark("No model is configured: the offline planner answers, not a language model (see `tao models`).")
    return translate(text, language)


def _model_spec(agent: AgentSettings, env: Mapping[str, str]) -> str:
    """The spec of the agent's models, as far as it is known without creating them."""
    fallbacks = agent.fallback if isinstance(agent.fallback, list | tuple) else (agent.fallback,)
    first = default_spec(env) if agent.model is None else agent.model
    specs = [
        model if isinstance(model, str) else str(getattr(model, "spec", "scripted")) for model in (first, *fallbacks)
    ]
    return join_specs(*specs)


def require_extra(model: str) -> None:
    """Report before the run, not in the middle of it, that a package of a provider is not installed.

    Raises:
        MissingExtra: it is not.
    """
    for spec in split_specs(model):
        if lacking := missing_packages(spec):
            packages = translate(" and ").join(lacking)
            hint = mark("Install the extra: pip install 'taoloop[{extra}]', or use --model offline.")
            raise MissingExtra(
                translate("The model {model} needs {packages}, which is not installed.", model=spec, packages=packages),
                hint=translate(hint, extra=extra_of(spec)),
            )


def missing_package(command: str, package: str, *, extra: str) -> MissingExtra:
    """The error of a command that needs a package of an extra."""
    return MissingExtra(
        translate("`{command}` needs the package {package}, which is not installed.", command=command, package=package),
        hint=translate("Install the extra: pip install 'taoloop[{extra}]'", extra=extra),
    )


def merge_limits(limits: Limits, overrides: Mapping[str, float]) -> Limits:
    """`limits` with those of the command line in their place."""
    changes: dict[str, Any] = dict(overrides)
    return replace(limits, **changes)


def database_of(chosen: AgentOptions, env: Mapping[str, str], db: str | None) -> DatabaseAddress:
    """The database that holds a run that exists: that of `--db`, of the agent, or of the environment."""
    if db is None and chosen.agent is not None:
        journal = _agent_at(chosen.agent, env).journal
        if (stored := stored_at(journal)) is not None:
            return stored
    return database(db, env)


def _with_options(agent: Agent, chosen: AgentOptions, env: Mapping[str, str]) -> Agent:
    same = ("model", "vision", "dialect", "strategy", "language", "evidence", "closing_turn")
    changes: dict[str, Any] = {
        name: value
        for name in (*same, "context_tokens", "approved_tiers")
        if (value := getattr(chosen, name)) is not None
    }
    if chosen.model is not None or chosen.fallback:
        changes["fallback"] = chosen.fallback or ()  # --model alone means that model and no other
    if chosen.workspace is not None:
        changes["workspace"] = _folder("--workspace", chosen.workspace)
    if chosen.memory is not None:
        changes["memory"] = _path("--memory", chosen.memory)
    if chosen.output_schema is not None:
        changes["output_type"] = read_schema(_path("--output-schema", chosen.output_schema))
    if chosen.prompts is not None:
        changes["prompts"] = _folder("--prompts", chosen.prompts)
    if chosen.policy is not None or chosen.profile is not None:
        changes["policy"], changes["policy_from"] = policy_of(agent.policy, chosen), _policy_options(chosen)
    if chosen.tools is not None:
        changes["tools"] = named_tools(chosen.tools, env)
    elif isinstance(agent.tools, list | tuple) and any(isinstance(entry, ToolFolder) for entry in agent.tools):
        changes["tools"] = tuple(_loaded_once(entry) for entry in agent.tools)
    if chosen.skills is not None:
        changes["tools"] = (*changes.get("tools", agent.tools), *map(skills_source, chosen.skills))
    if chosen.limits:
        own = {} if agent.max_steps is None else {"max_steps": agent.max_steps}
        changes |= {"limits": merge_limits(agent.limits, own | dict(chosen.limits)), "max_steps": None}
    changed = _knowing_secrets(replace(agent, env=env, **changes))
    return with_inner_agents(changed, lambda inner: _inner(inner, env))


def replacement_policy(trace: Trace, chosen: AgentOptions) -> Policy | None:
    """The policy that `--policy` and `--profile` put in place of a stored run's; None without them."""
    return None if chosen.policy is None and chosen.profile is None else policy_of(trace.agent.policy, chosen)


def policy_of(own: Policy | Profile, chosen: AgentOptions) -> Policy:
    """The policy of `--policy`, else `own`, under the profile of `--profile`."""
    if chosen.policy is not None:
        policy = load_policy(_path("--policy", chosen.policy))
    else:
        policy = own if isinstance(own, Policy) else Policy(profile=own)
    return policy if chosen.profile is None else replace(policy, profile=chosen.profile)  # type: ignore[arg-type]  # a choice of the option


def _policy_options(chosen: AgentOptions) -> tuple[str, ...]:
    """The options that set a policy, as a run stores them: a file by its whole path."""
    file = () if chosen.policy is None else ("--policy", str(_path("--policy", chosen.policy)))
    return file if chosen.profile is None else (*file, "--profile", chosen.profile)


def _policy_as_begun(spec: AgentSpec, base: Agent) -> Policy:
    """What the options say now with which a run began; its own policy where their file cannot be used any more."""
    options = dict(zip(spec.policy_from[::2], spec.policy_from[1::2], strict=False))
    begun = AgentOptions(policy=options.get("--policy"), profile=options.get("--profile"))
    try:
        return policy_of(base.policy, begun)
    except TaoError as error:
        text = mark("The run keeps the policy that it began with; what it was read from cannot be used now: {why}")
        print_stderr(translate(text, why=one_line(translate_error(str(error)))))
        return spec.policy


def _inner(agent: AgentSettings, env: Mapping[str, str]) -> AgentSettings:
    """An agent that is a tool: in the environment of the command, and under AI_MOCK with no model of a provider."""
    if agent.env is None:
        agent = replace(agent, env=env)
    print_load_problems(agent)
    is_mocked = mock_is_set(env) and any(map(is_provider, split_specs(_model_spec(agent, env))))
    return replace(agent, model=OFFLINE, fallback=()) if is_mocked else agent


def named_tools(names: Sequence[str], env: Mapping[str, str]) -> tuple[Tool | Callable[..., Any] | str, ...]:
    """Tools as `--tools` names them: a built-in name, module:attribute, or a tool file.

    A run stores these names, and so can be resumed without them.
    """
    entries: list[Any] = []
    for name in dict.fromkeys(names):
        if name.startswith(_SKILLS):
            entries.append(skills_source(name.removeprefix(_SKILLS)))
        elif is_config_file(name):
            entries += tools_named(name, env=env)
        else:
            entries += [load_attribute(name, Path.cwd()), named_as(name, Path.cwd())] if ":" in name else [name]
    return tuple(entries)


_SKILLS = "--skills="
"""What stands before a folder of skills among the names of tools that a run stores."""
_NAMED_FOLDER = lazy_pattern(r"([A-Za-z0-9_-]{1,32})=(.+)", re.DOTALL)


def skills_source(option: str) -> ToolSource:
    """The folder of skills of a value of `--skills`: `DIR`, or `NAME=DIR` with a prefix for the names of its tools.

    Raises:
        ConfigError: no folder is named.
    """
    match = _NAMED_FOLDER.fullmatch(option)
    name, path = (match[1], match[2]) if match is not None else ("", option)
    folder = _path("--skills", path)
    from taoloop.tools.skills import SkillFolder  # noqa: PLC0415  # only where one is named

    settings = SkillFolder(folder, name=name)
    return ToolSource(
        SourceLocation(path=Path("--skills"), line=0, field=one_line(path)),
        settings.load_tools,
        secrets={},
        given_as=f"{_SKILLS}{name}={folder}" if name else f"{_SKILLS}{folder}",
        settings=settings,
    )


def _loaded_once(entry: Any) -> Any:
    """A folder of tools of an agent in Python as a source, whose problems a command reports once; else the entry."""
    if not isinstance(entry, ToolFolder):
        return entry
    location = SourceLocation(path=entry.folder, line=0, field="")
    return ToolSource(location, entry.load_tools, secrets={}, settings=entry)


def print_load_problems(agent: AgentSettings) -> None:
    """Report what is wrong with the sources of an agent's tools; the agent has the rest.

    Raises:
        ConfigError: there is no tool left.
    """
    problems = [problem for source in sources_in(agent.tools) for problem in source.take_problems()]
    for problem in problems:
        print_stderr(one_line(translate_error(str(problem))))
    if problems and not bind(agent).toolbox.names:
        raise no_tool_left()


def no_tool_left() -> ConfigError:
    """The error where no source of tools has given one; what is wrong with each was reported before."""
    return ConfigError(translate("There is no tool left."), hint=translate("The lines above say what is wrong."))


def _knowing_secrets(agent: Agent) -> Agent:
    """The agent with the values of the environment that its tool files use among its secrets."""
    used = {name: value for source in sources_in(agent.tools) for name, value in source.secrets.items()}
    if not used:
        return agent
    own = agent.secrets
    if not isinstance(own, Mapping):
        own = {f"secret_{number}": value for number, value in enumerate(own, 1)}
    return replace(agent, secrets={**own, **used})


def _path(option: str, value: str) -> Path:
    if not value.strip():
        hint = translate("Name a path, or omit the option.")
        raise ConfigError(translate("{option} is empty.", option=option), hint=hint)
    return expand_home(value).absolute()


def _folder(option: str, value: str) -> Path:
    path = _path(option, value)
    if path.exists() and not path.is_dir():
        hint = translate("Name a folder; the tools see its files.")
        raise ConfigError(translate("{option}: {path} is not a folder.", option=option, path=value), hint=hint)
    return path
