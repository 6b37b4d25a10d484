"""A suite: cases, and how they are run. Pure data; `taoloop.evals.suite_file` reads it from YAML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from taoloop.core.agent_spec import Limits
from taoloop.core.policy import EvidenceMode, Policy
from taoloop.evals.cases import Case
from taoloop.evals.stored_runs.recorded_tools import RunRecord

DEFAULT_CONCURRENCY = 4
"""Trials at the same time: enough to hide the latency of a model, few enough for most rate limits."""

PersonAnswer = Literal["approve", "refuse", "careful", "none"]
"""What the person of a suite answers to a question about a call. `approve`: always yes. `careful`: yes to exactly the
calls that the case expects; asked whether a call happened, they look into the world. `none`: nobody is there, and the
run waits."""
PERSON_ANSWERS: tuple[PersonAnswer, ...] = get_args(PersonAnswer)

Axis = Literal["agents", "models", "strategies", "dialects", "policies", "seeds"]
AXES: tuple[Axis, ...] = get_args(Axis)
"""What configurations may differ in, in the order of their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Cases, and how they are run unless the command says otherwise."""

    name: str
    """The name, unique in a database."""
    cases: Callable[[], Iterable[Case]]
    """Gives the cases from the first on, each time it is called; they need not all be in memory at once."""
    description: str = ""
    """What the suite measures, in a line."""
    path: Path | None = None
    """Its file, which errors name; None if it is no file."""
    agent: str | None = None
    """An agent file or `module:attribute`; None: an agent with the suite's tools and nothing else."""
    tools: tuple[Any, ...] = ()
    """Tools that every agent gets; one takes the place of a tool of the agent with the same name."""
    record: RunRecord | None = None
    """What the tools of every agent answer in place of being called (`tao eval --from-runs`); None: they are called."""
    model: str | None = None
    """The model, as in agent files; `oracle` and `script:NAME` play a script of the case. None: the agent's."""
    compare: Mapping[Axis, tuple[Any, ...]] = field(default_factory=dict)
    """The values of each axis; their product is what is compared."""
    trials: int = 1
    """Trials of each case in each configuration."""
    concurrency: int = DEFAULT_CONCURRENCY
    """Trials at the same time."""
    max_cost_usd: float | None = None
    """What all trials together may cost; None: no limit."""
    limits: Limits | None = None
    """The limits of each run; None: the agent's."""
    policy: Policy | None = None
    """The policy of each run; None: the agent's."""
    evidence: EvidenceMode | None = None
    """Whether answers must cite observations; None: as the agent says."""
    world: Mapping[str, Any] = field(default_factory=dict)
    """The state that each trial starts from, below that of its case."""
    people: Mapping[str, PersonAnswer] | PersonAnswer = "none"
    """Who answers questions about calls: one answer for all, or by tool (`none` for the others)."""
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By metric: what it must be for exit code 0 (`taoloop.evals.thresholds`)."""
