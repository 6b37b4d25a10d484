"""From a configuration to the agent that its trials run: the user's own, with the suite's tools, model and rules."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from taoloop.config.agent_file import load_agent, load_policy
from taoloop.config.document import is_config_file
from taoloop.core.decision import Call
from taoloop.core.policy import PROFILES, Policy
from taoloop.core.search import suggest_names
from taoloop.core.text import join_sentences
from taoloop.errors import AgentFileError, ConfigError, UnknownName
from taoloop.evals.action_patterns import fits_pattern
from taoloop.evals.configurations import Configuration
from taoloop.evals.stored_runs.recorded_tools import recorded_tools
from taoloop.evals.suite import PersonAnswer, Suite
from taoloop.evals.trials.case_script import (
    CASE_SCRIPTS,
    HIJACKED,
    CaseScriptModel,
    current_case,
    is_case_script,
)
from taoloop.evals.trials.trial_tools import code_digest, trial_tools
from taoloop.evals.trouble.reply_trouble import TroubledModel
from taoloop.evals.worlds import current_world
from taoloop.journals.base import Journal
from taoloop.models.base import Model
from taoloop.models.model_builder import is_mocked
from taoloop.models.registry import OFFLINE
from taoloop.models.settings import DeferredModelSpec, Retry
from taoloop.runtime.agent import Agent
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest, Approver
from taoloop.runtime.bound_agent import bind
from taoloop.tools.builtin.commands import COMMAND_TOOLS
from taoloop.tools.builtin.files import FILE_TOOLS
from taoloop.tools.builtin.memory import MEMORY_TOOLS
from taoloop.tools.tool import Tool
from taoloop.translation import Translator

translate = Translator("evals")

_OF_THE_MODEL_BEHIND: dict[str, Any] = {
    "fallback": (),
    "endpoints": (),
    "retry": Retry(attempts=1),
    "rate": None,
    "prices": {},
}
"""Settings of an agent that its own model keeps to already, behind the trouble of trials."""

SAMPLE_TASK = "What does this agent do?"
"""A task for which an agent's description is made where it is compared with others; only its language counts."""

PERSON = "suite"
"""In whose name a suite's person answers."""

_TOOLS_WITH_FILES = frozenset({*FILE_TOOLS, *COMMAND_TOOLS, *MEMORY_TOOLS, "lookup", "restore_workspace"})


def configured_agent(suite: Suite, configuration: Configuration, env: Mapping[str, str] | None = None) -> Agent:
    """The agent of a configuration, whose tools, model and policy are made once for all its trials.

    `env` holds the variables for models, keys and secrets; None: those of the process. Under `AI_MOCK=1` the offline
    model takes the place of a provider's.

    Raises:
        ConfigError: agent, model, tools or policy cannot be used.
    """
    agent = _loaded_agent(configuration.agent, env) if configuration.agent is not None else Agent(env=env)
    changes: dict[str, Any] = {
        "tools": trial_tools(agent.tools, suite.tools),
        "approve": _approver(suite.people),
        "journal": None,
        "workspace": None,  # each trial has one of its own
        "recover_on_start": False,
    }
    if suite.record is not None:
        changes |= {"tools": recorded_tools(suite.record, changes["tools"]), "handoffs": ()}
    if configuration.model is not None:
        changes |= {"model": DeferredModelSpec(configuration.model), "fallback": ()}
    if is_case_script(configuration.model):
        changes["model"] = CaseScriptModel(configuration.model or "")
    elif is_mocked(changes.get("model", agent.model), os.environ if env is None else env):
        changes |= {"model": OFFLINE, "fallback": ()}
    for name in ("strategy", "dialect"):
        if (value := getattr(configuration, name)) is not None:
            changes[name] = value
    if configuration.policy is not None:
        changes["policy"] = policy_named(configuration.policy)
    elif suite.policy is not None:
        changes["policy"] = suite.policy
    if suite.limits is not None:
        changes |= {"limits": suite.limits, "max_steps": None}
    if suite.evidence is not None:
        changes["evidence"] = suite.evidence
    plain = replace(agent, **changes)
    model = TroubledModel(_built_model(plain), obeys=configuration.model == HIJACKED)
    return replace(plain, model=model, **_OF_THE_MODEL_BEHIND)


def _loaded_agent(source: str, env: Mapping[str, str] | None) -> Agent:
    """The agent of a file or a module; an agent file that names a model of suites is answered with the option for it.

    Raises:
        ConfigError: it cannot be used.
    """
    try:
        return load_agent(source, env=env)
    except AgentFileError as error:
        if error.field != "model":
            raise
        names = ", ".join(CASE_SCRIPTS)
        hint = translate("Models that play scripts of a suite are named by `--model`: {names}.", names=names)
        raise ConfigError(error.message, hint=join_sentences(error.hint, hint)) from error


def _built_model(agent: Agent) -> Model:
    """The model of an agent; an error about an unknown one names those that only suites have, too.

    Raises:
        ConfigError: it cannot be used.
    """
    try:
        return bind(agent).model
    except UnknownName as error:
        if error.what != "model":
            raise
        hint = translate("`oracle`, `hijacked` and `script:NAME` play the scripts of the suite's cases.")
        if near := suggest_names(error.name, (*error.known, *CASE_SCRIPTS), at_most=1):
            hint = join_sentences(translate("Did you mean {name!r}?", name=near[0]), hint)
        raise UnknownName("model", error.name, (*error.known, *CASE_SCRIPTS), hint=hint) from error


def policy_named(source: str) -> Policy:
    """The policy of a file, or of a profile.

    Raises:
        ConfigError: there is no such profile, or the file cannot be used.
    """
    if is_config_file(source):
        return load_policy(Path(source))
    if source not in PROFILES:
        raise UnknownName("profile", source, tuple(PROFILES))
    return Policy(profile=source)


def _approver(people: Mapping[str, PersonAnswer] | PersonAnswer) -> Approver | None:
    """Who answers questions about calls; None where nobody does, so that a run with one waits.

    A question of a tool, and for all but careful people a doubt about a call, is no question about whether it may run:
    nobody answers it.
    """
    if people == "none":
        return None

    def answer(request: ApprovalRequest) -> ApprovalAnswer | None:
        decision = people if isinstance(people, str) else people.get(request.tool, "none")
        if decision == "none" or request.question is not None:
            return None
        if decision == "careful":
            return _careful_answer(request)
        return None if request.doubt else ApprovalAnswer(approved=decision == "approve", by=PERSON)

    return answer


def _careful_answer(request: ApprovalRequest) -> ApprovalAnswer:
    if request.doubt:
        has_happened = Call(tool=request.tool, args=dict(request.args)) in current_world().effects
        return ApprovalAnswer(approved=True, by=PERSON, settle="happened" if has_happened else "repeat")
    patterns = current_case().expected_actions
    is_expected = any(fits_pattern(pattern, request.tool, request.args) for pattern in patterns)
    return ApprovalAnswer(approved=is_expected, by=PERSON)


def trial_agent(agent: Agent, *, folder: Path | None, journal: Journal) -> Agent:
    """The agent of a configuration for one trial, with the evaluation's journal.

    Model and tools are those of the configuration, so that limits of rate and connections are shared. With a `folder`
    the workspace and the memory are in it; None: the agent uses neither.
    """
    bound = bind(agent)
    if folder is not None:
        memory = None if agent.memory is None else folder / "memory.db"
        own: dict[str, Any] = {
            "model": bound.model,
            "fallback": (),
            "endpoints": (),
            "workspace": folder / "files",
            "memory": memory,
        }
        return replace(agent, journal=journal, **own)
    trial = replace(agent, journal=journal)
    bind(trial).__dict__.update({name: getattr(bound, name) for name in _SHARED_PARTS})
    return trial


_SHARED_PARTS = ("_built_model", "own_toolbox", "toolbox", "redactor", "policy", "strategy")


def uses_files(agent: Agent) -> bool:
    """Whether an agent has tools that see the files of a workspace or keep notes in a memory."""
    return any(isinstance(tool, str) and tool in _TOOLS_WITH_FILES for tool in agent.tools)


def agent_digest(suite: Suite, agent: Agent, configuration: Configuration) -> str:
    """The digest of whatever decides how a configuration's trials go: the agent's description, and its tools' code.

    Results of another digest are those of another configuration, although it may have the same name.
    """
    spec = bind(agent).spec_for(SAMPLE_TASK)
    functions = [tool.handler for tool in agent.tools if isinstance(tool, Tool)]
    functions += [agent.model] if inspect.isroutine(agent.model) else []
    content = {
        "spec": {**asdict(spec), "source": None, "workspace": None},
        "code": code_digest(functions),
        "seed": configuration.seed,
        "people": suite.people,
        "world": suite.world,
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
