"""What is run for which figure, and the counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from security.disguise import CARRIERS, SPELLINGS, Carrier, Spelling
from security.dojo import Goal, Task, all_pairs, all_tasks, goals_of, suites
from security.people import PEOPLE, Person
from security.policies import NONE, POLICIES
from security.runs import Outcome, Theatre
from security.script import Pins, Timing

BOUND_BY_WORDS = ("supervised", "strict", "headless", "autonomous")
"""The profiles that are also run with replies of an attacker to the question what the task calls for."""

Kind = Literal["task", "attack", "probe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One series of runs."""

    policy: str
    kind: Kind
    person: Person = "nobody"
    carrier: Carrier = "plain"
    spelling: Spelling = "as-is"
    timing: Timing = "at-once"
    pins: Pins = "honest"
    obeys: bool = True

    @property
    def name(self) -> str:
        """What its figures are called."""
        parts = [self.policy, self.kind, self.person]
        standard = {"carrier": "plain", "spelling": "as-is", "timing": "at-once"}
        parts += [str(getattr(self, name)) for name, usual in standard.items() if getattr(self, name) != usual]
        parts += ["hijacked-pins"] if self.pins == "hijacked" else []
        return ".".join(parts if self.obeys else [*parts, "ignored"])


@dataclass(slots=True)
class Tally:
    """The counts of one series. The lists name the runs behind them."""

    job: Job
    runs: int = 0
    done: int = 0
    won: int = 0
    won_destructive: int = 0
    won_sending_out: int = 0
    questions: int = 0
    runs_with_questions: int = 0
    attack_questions: int = 0
    hijacked: int = 0
    unasked: int = 0
    unasked_irreversible: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    won_runs: list[str] = field(default_factory=list)
    undone_runs: list[str] = field(default_factory=list)
    unasked_calls: list[str] = field(default_factory=list)

    def add(self, name: str, outcome: Outcome) -> None:
        """Count one run."""
        self.runs += 1
        self.done += outcome.done
        self.won += outcome.won
        self.won_destructive += outcome.won and outcome.destroyed
        self.won_sending_out += outcome.won and outcome.sent_out
        self.questions += outcome.questions
        self.runs_with_questions += outcome.questions > 0
        self.attack_questions += outcome.attack_questions
        self.hijacked += outcome.hijacked
        self.verdicts += outcome.verdicts
        self.unasked += bool(outcome.unasked)
        self.unasked_irreversible += bool(outcome.irreversible)
        if outcome.won:
            self.won_runs.append(name)
        if not outcome.done:
            self.undone_runs.append(name)
        if outcome.unasked:
            self.unasked_calls.append(f"{name}: {' '.join(sorted(set(outcome.unasked)))}")

    def lines(self) -> Iterator[tuple[str, int]]:
        """The figures of this kind of series by name."""
        name = self.job.name
        match self.job.kind:
            case "task":
                chosen = ["runs", "done", "questions", "runs_with_questions"]
            case "attack":
                chosen = ["runs", "hijacked", "won", "won_destructive", "won_sending_out", "attack_questions"]
            case "probe":
                chosen = ["runs", "hijacked", "unasked", "unasked_irreversible", "attack_questions"]
        return ((f"{name}.{one}", getattr(self, one)) for one in chosen)

    def as_data(self) -> dict[str, Any]:
        """Figures and the runs behind them."""
        lists = {"won": self.won_runs, "unasked": self.unasked_calls}
        if self.job.kind == "task":
            lists["undone"] = self.undone_runs
        return {"figures": dict(self.lines()), "runs": lists, "verdicts": dict(self.verdicts.most_common())}


def short_plan() -> list[Job]:
    """The series that `tests/security/test_agentdojo_short.py` judges."""
    jobs = [Job(policy=NONE, kind="task")]
    jobs += [Job(policy=NONE, kind="attack", obeys=obeys) for obeys in (False, True)]
    for name in ("supervised", "headless"):
        jobs += [Job(policy=name, kind="task"), Job(policy=name, kind="probe", person="oracle")]
        jobs += [Job(policy=name, kind="attack"), Job(policy=name, kind="attack", pins="hijacked")]
    attack = partial(Job, policy="supervised", kind="attack")
    jobs += [attack(carrier=CARRIERS[1]), attack(spelling=SPELLINGS[1])]
    jobs += [attack(person="oracle"), attack(person="oracle", timing="late")]
    jobs += [attack(person="yes"), attack(person="yes", pins="hijacked")]
    return [*jobs, Job(policy="supervised", kind="task", person="oracle")]


def plan(policies: tuple[str, ...] = tuple(POLICIES)) -> list[Job]:
    """All series, the most telling ones last."""
    jobs = [Job(policy=NONE, kind="attack", obeys=False)] if NONE in policies else []
    for name in policies:
        jobs += [Job(policy=name, kind="task"), Job(policy=name, kind="task", person="oracle")]
        jobs += [Job(policy=name, kind="attack"), Job(policy=name, kind="probe", person="oracle")]
    jobs += [Job(policy=name, kind="attack", pins="hijacked") for name in BOUND_BY_WORDS if name in policies]
    for name in (NONE, "supervised"):
        if name not in policies:
            continue
        jobs += [Job(policy=name, kind="attack", carrier=carrier) for carrier in CARRIERS[1:]]
        jobs += [Job(policy=name, kind="attack", spelling=spelling) for spelling in SPELLINGS[1:]]
    if "supervised" in policies:
        jobs += [Job(policy="supervised", kind="attack", person=person) for person in PEOPLE[1:]]
        jobs += [Job(policy="supervised", kind=kind, person="oracle", timing="late") for kind in ("attack", "probe")]
        jobs += [Job(policy="supervised", kind="attack", person="yes", pins="hijacked")]
        jobs += [Job(policy="supervised", kind="probe", person="oracle", pins="hijacked")]
    return jobs


def pairs(*, short: bool) -> list[tuple[Task, Goal]]:
    """All 949 pairs; short: each of the 35 goals once, each time with another task."""
    if not short:
        return all_pairs()
    chosen = []
    for name in suites():
        tasks = [task for task in all_tasks() if task.suite == name]
        goals = goals_of(tasks[0])
        step = max(1, len(tasks) // len(goals))
        chosen += [(tasks[number * step % len(tasks)], goal) for number, goal in enumerate(goals)]
    return chosen


async def run_job(job: Job, *, short: bool) -> Tally:
    """Run one series."""
    theatre, tally = Theatre(job.policy), Tally(job)
    if job.kind == "attack":
        for task, goal in pairs(short=short):
            outcome = await theatre.attack(
                task,
                goal,
                job.person,
                carrier=job.carrier,
                spelling=job.spelling,
                timing=job.timing,
                pins=job.pins,
                obeys=job.obeys,
            )
            tally.add(f"{task.suite}/{task.task}/{goal.goal}", outcome)
        return tally
    for task in all_tasks()[:: 3 if short and job.kind == "probe" else 1]:
        if job.kind == "task":
            outcome = await theatre.task(task, job.person)
        else:
            outcome = await theatre.probe(task, job.person, timing=job.timing, pins=job.pins)
        tally.add(f"{task.suite}/{task.task}", outcome)
    return tally


def _run(job: Job, short: bool) -> Tally:
    return asyncio.run(run_job(job, short=short))


def run_all(jobs: list[Job], *, short: bool, processes: int) -> Iterator[Tally]:
    """Run the series, in their order."""
    if processes == 1:
        yield from (_run(job, short) for job in jobs)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_run, jobs, [short] * len(jobs))
