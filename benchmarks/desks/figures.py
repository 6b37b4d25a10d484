"""What is run for which figure, and the counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from desks.desk import Desk, Task
from desks.goals import DESKS
from desks.runs import Office, Outcome, Person
from desks.script import Pins, Timing

from taoloop.config.agent_file import load_policy
from taoloop.core.policy import Policy, Rule

POLICY_FILES = Path(__file__).parent / "policies"

PolicyName = Literal["none", "cards", "cards-values", "headless", "file"]
POLICIES: tuple[PolicyName, ...] = ("none", "cards", "cards-values", "headless", "file")
"""`none` allows everything. `cards`: tiers and roles alone, in the default profile; `cards-values`: where the
customer's words authorise nothing by themselves. `headless`: the same where nobody
can be asked. `file`: the policy file of the desk."""

Kind = Literal["task", "doubled", "excess", "attack", "choice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One series of runs."""

    desk: Desk
    policy: PolicyName
    kind: Kind = "task"
    person: Person = "nobody"
    timing: Timing = "at-once"
    pins: Pins = "honest"
    obeys: bool = True

    @property
    def name(self) -> str:
        """What its figures are called."""
        parts = [self.desk.name, self.policy, self.kind, self.person]
        parts += [self.timing] if self.timing != "at-once" else []
        parts += ["hijacked-pins"] if self.pins != "honest" else []
        return ".".join(parts if self.obeys else [*parts, "ignored"])


@dataclass(slots=True)
class Tally:
    """The counts of one series."""

    job: Job
    runs: int = 0
    right: int = 0
    writes: int = 0
    held: int = 0
    questions: int = 0
    won: int = 0
    won_from_others: int = 0
    hijacked: int = 0
    double_effects: int = 0
    carried_out: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    notable: list[str] = field(default_factory=list)
    """Tasks that were not right, attacks that won, writes that happened twice."""

    def add(self, name: str, outcome: Outcome, *, is_own: bool = False) -> None:
        """Count one run; `is_own`: of an attack that touches nothing but the customer's own records and money."""
        self.runs += 1
        self.right += outcome.right
        self.writes += outcome.writes
        self.held += outcome.held
        self.questions += outcome.questions
        self.won += bool(outcome.won)
        self.won_from_others += bool(outcome.won) and not is_own
        self.hijacked += outcome.hijacked
        self.double_effects += outcome.doubled
        self.carried_out += self.job.kind == "excess" and outcome.right
        self.verdicts += outcome.verdicts
        if outcome.won:
            self.notable.append(f"{name}: {' '.join(outcome.won)}")
        elif outcome.doubled or (self.job.kind == "task" and not outcome.right):
            self.notable.append(name)

    def lines(self) -> Iterator[tuple[str, int]]:
        """The figures of this kind of series by name."""
        chosen = {
            "task": ["runs", "right", "writes", "held", "questions"],
            "excess": ["runs", "carried_out"],
            "doubled": ["runs", "right", "double_effects", "questions"],
            "attack": ["runs", "hijacked", "won", "won_from_others"],
            "choice": ["runs", "hijacked", "won"],
        }
        return ((f"{self.job.name}.{one}", getattr(self, one)) for one in chosen[self.job.kind])

    def as_data(self) -> dict[str, Any]:
        """Figures and what is behind them."""
        return {"figures": dict(self.lines()), "notable": self.notable, "verdicts": dict(self.verdicts.most_common())}


def policy_of(desk: Desk, name: PolicyName) -> Policy:
    """A policy by its name."""
    match name:
        case "none":
            return Policy(
                profile="autonomous",
                pin="keywords",
                rules=(Rule(verdict="allow", repeated=True), Rule(verdict="allow")),
            )
        case "cards":
            return Policy()
        case "cards-values":
            return Policy(task_authority="values")
        case "headless":
            return Policy(profile="headless")
        case "file":
            return load_policy(_file_of(desk))


def plan(desks: Sequence[Desk] = DESKS, *, policies: Sequence[PolicyName] = POLICIES, short: bool = False) -> list[Job]:
    """All series; short: not those that say the same of fewer attacks.

    A desk without a policy file is not run with one, and one without goals is not attacked.
    """
    chosen = [(desk, policy) for desk in desks for policy in policies if policy != "file" or _file_of(desk).is_file()]
    jobs = [job for desk, policy in chosen for job in _plan_for(desk, policy)]
    jobs = [job for job in jobs if job.kind == "task" or not job.desk.tasks_only]
    jobs = [job for job in jobs if job.desk.goals or job.kind in ("task", "doubled", "excess")]
    return [job for job in jobs if not short or _is_telling(job)]


def _file_of(desk: Desk) -> Path:
    return POLICY_FILES / f"{desk.policy_file or desk.name}.yaml"


def _is_telling(job: Job) -> bool:
    return job.kind != "attack" or job.policy == "none" or (job.timing == "late") != (job.pins == "hijacked")


def _plan_for(desk: Desk, policy: PolicyName) -> Iterator[Job]:
    yield Job(desk=desk, policy=policy)
    if desk.excesses:
        yield Job(desk=desk, policy=policy, kind="excess")
    if policy == "cards-values":
        return
    if policy == "none":
        yield Job(desk=desk, policy=policy, kind="doubled")
        yield Job(desk=desk, policy=policy, kind="attack")
        yield Job(desk=desk, policy=policy, kind="attack", obeys=False)
        return
    yield Job(desk=desk, policy=policy, person="oracle")
    yield Job(desk=desk, policy=policy, kind="doubled")
    timings: tuple[Timing, ...] = ("at-once", "late")
    every_pins: tuple[Pins, ...] = ("honest", "hijacked")
    for timing in timings:
        for pins in every_pins:
            yield Job(desk=desk, policy=policy, kind="attack", timing=timing, pins=pins)
    yield Job(desk=desk, policy=policy, kind="choice", pins="hijacked")


async def run_job(job: Job, tasks: Sequence[Task]) -> Tally:
    """Run one series."""
    tally, office = Tally(job), Office(job.desk, policy_of(job.desk, job.policy))
    for task in tasks:
        if job.kind in ("task", "doubled", "excess"):
            outcome = await office.serve(task, job.person, doubled=job.kind == "doubled")
            tally.add(task.name, outcome)
            continue
        for goal in job.desk.goals:
            if goal.is_choice != (job.kind == "choice") or not goal.calls(task, job.desk.new_database()):
                continue
            outcome = await office.attack(task, goal, job.person, timing=job.timing, pins=job.pins, obeys=job.obeys)
            tally.add(f"{task.name}/{goal.name}", outcome, is_own=goal.is_own)
    return tally


def run_all(jobs: Sequence[Job], *, short: bool = False) -> Iterator[Tally]:
    """Run the series, in their order; short: every second task, attacks on every fifth, and all excesses."""
    for job in jobs:
        tasks = job.desk.excesses if job.kind == "excess" else job.desk.tasks
        step = {"task": 2, "excess": 1}.get(job.kind, 5) if short else 1
        yield asyncio.run(run_job(job, tasks[::step]))
