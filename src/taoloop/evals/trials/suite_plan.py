"""What an evaluation will run, and everything that can be wrong with it, found before anything is run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from taoloop.errors import AgentFileError, ConfigError
from taoloop.evals.cases import Case, case_digest, run_digest
from taoloop.evals.checks.check_outcomes import load_check_function
from taoloop.evals.checks.wrong_answers import require_failing_checks
from taoloop.evals.configurations import Configuration
from taoloop.evals.suite import Suite
from taoloop.evals.trials.case_script import is_case_script, require_script
from taoloop.evals.trials.trial_agent import SAMPLE_TASK, agent_digest, configured_agent
from taoloop.evals.trials.trial_tools import code_digest, is_troubled
from taoloop.evals.trouble.entries import read_troubles
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.translation import Translator, mark

translate = Translator("evals")


class PlannedTrial(NamedTuple):
    """A trial of a plan."""

    case: Case
    """The case."""
    case_digest: str
    """The digest of the case."""
    configuration: str
    """The name of the configuration."""
    number: int
    """Counts from 0 within case and configuration."""
    key: str
    """The same for trials that go the same way, as far as suite and agent decide it."""
    measure: str
    """The digest of what it is measured by: the case, and the code of its checks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlan:
    """What an evaluation will run."""

    suite: Suite
    """The suite."""
    agents: Mapping[str, Agent]
    """The agent of each configuration, by its name."""
    agent_digests: Mapping[str, str]
    """What decides how its trials go, by the name of the configuration."""
    seeds: Mapping[str, int]
    """The seed of each configuration."""
    trials: int
    """Trials of each case in each configuration."""
    cases: int
    """The number of cases."""
    digest: str
    """The digest of the cases (SHA-256, hexadecimal)."""

    @property
    def total(self) -> int:
        """The number of trials."""
        return self.cases * len(self.agents) * self.trials

    def settings(self, configuration: Configuration) -> dict[str, Any]:
        """What a configuration is made of: what it sets, and what its agent, or the environment, says otherwise."""
        spec = bind(self.agents[configuration.name]).spec_for(SAMPLE_TASK)
        own = {"agent": spec.name, "model": spec.model, "strategy": spec.strategy, "dialect": spec.dialect}
        return {**own, "policy": spec.policy.profile, **configuration.settings, "model": spec.model}

    def planned_trials(self) -> Iterator[PlannedTrial]:
        """Each trial: all of one case, then those of the next; only one case is in memory."""
        for case in self.suite.cases():
            digest, how = case_digest(case), run_digest(case)
            measure = _measure_digest(case, digest)
            for number in range(self.trials):
                for name in self.agents:
                    text = "\0".join((self.suite.name, case.case_id, how, name, self.agent_digests[name], str(number)))
                    key = hashlib.sha256(text.encode()).hexdigest()[:20]
                    yield PlannedTrial(case, digest, name, number, key, measure)


def _measure_digest(case: Case, digest: str) -> str:
    functions = [load_check_function(check, case) for check in case.checks if check.kind == "function"]
    if not functions:
        return digest
    return hashlib.sha256(f"{digest}{code_digest(functions)}".encode()).hexdigest()[:16]


def plan_suite(
    suite: Suite,
    configurations: Sequence[Configuration],
    *,
    trials: int | None = None,
    env: Mapping[str, str] | None = None,
) -> SuitePlan:
    """The plan of an evaluation; `trials` replaces the number of the suite.

    Raises:
        ConfigError: suite, agents or cases cannot be used; names what, and where it can, file and line.
    """
    agents = {each.name: configured_agent(suite, each, env) for each in configurations}
    digests = {each.name: agent_digest(suite, agents[each.name], each) for each in configurations}
    locations: dict[str, str] = {}
    whole = hashlib.sha256()
    for case in suite.cases():
        if case.case_id in locations:
            text = mark("the case {case!r} appears a second time (first at {location}).")
            raise _case_error(case, translate(text, case=case.case_id, location=locations[case.case_id]))
        locations[case.case_id] = case.location()
        require_failing_checks(case)
        _require_known_tools(case, agents)
        _require_possible_trouble(suite, case, agents)
        for each in configurations:
            if is_case_script(each.model):
                require_script(case, each.model or "")
        whole.update(f"{case.case_id}\0{case_digest(case)}\n".encode())
    if not locations:
        raise ConfigError(translate("The suite {suite!r} has no cases.", suite=suite.name))
    return SuitePlan(
        suite=suite,
        agents=agents,
        agent_digests=digests,
        seeds={each.name: each.seed or 0 for each in configurations},
        trials=suite.trials if trials is None else trials,
        cases=len(locations),
        digest=whole.hexdigest(),
    )


def _require_known_tools(case: Case, agents: Mapping[str, Agent]) -> None:
    """Refuse a case with a tool that an agent lacks, or with an action whose tool no agent has."""
    toolboxes = [bind(agent).toolbox.names for agent in agents.values()]
    everywhere = frozenset.intersection(*map(frozenset, toolboxes))
    anywhere = frozenset[str]().union(*toolboxes)
    actions = (*case.expected_actions, *case.forbidden_actions)
    unknown = [name for name in case.tools or () if name not in everywhere]
    unknown += [action.tool for action in actions if action.tool not in anywhere]
    if unknown:
        message = translate("the agent has no tool {name!r}.", name=unknown[0])
        hint = translate("It has: {names}.", names=", ".join(sorted(everywhere)) or translate("nothing"))
        raise _case_error(case, message, hint)


def _require_possible_trouble(suite: Suite, case: Case, agents: Mapping[str, Agent]) -> None:
    """Refuse a case whose trouble cannot be made."""
    troubles = read_troubles(case.trouble)
    if troubles.kills and suite.path is None:
        hint = translate("Write the suite to a YAML file.")
        raise _case_error(case, translate("only a suite in a file can have processes killed."), hint)
    for name in filter(None, (trouble.tool for trouble in troubles.tools)):
        if not any(is_troubled(tool) and tool.name == name for agent in agents.values() for tool in agent.tools):
            message = translate("there is no tool {name!r} that trouble could be made with.", name=name)
            hint = translate(
                "Name a tool of the suite or the agent; trouble cannot be made with the built-in file tools."
            )
            raise _case_error(case, message, hint)


def _case_error(case: Case, message: str, hint: str = "") -> AgentFileError:
    return AgentFileError(message, path=case.file or case.case_id, line=case.line, hint=hint)
