"""All trials of a suite: checked before anything is run, then run at the same time, each recorded as it ends.

The same call again goes on where the last one ended: finished trials are taken from the file of records, those in the
middle are resumed. Only the cases that are being run are in memory.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from taoloop.errors import ConfigError, JournalError, TaoError
from taoloop.evals.checks.judges import Judges
from taoloop.evals.checks.outcome_texts import outcome_detail
from taoloop.evals.configurations import Configuration
from taoloop.evals.fault_classes import SANDBOX
from taoloop.evals.suite import Suite
from taoloop.evals.trial_records import TrialRecord
from taoloop.evals.trials.record_file import RecordFile, StoredTrial, open_records, record_path
from taoloop.evals.trials.suite_budget import SuiteBudget
from taoloop.evals.trials.suite_plan import PlannedTrial, SuitePlan, plan_suite
from taoloop.evals.trials.trial_run import (
    INVALID,
    SET_UP,
    Trial,
    entered_trial,
    invalid_record,
    remeasure_trial,
    remove_needless_world,
    run_trial,
)
from taoloop.evals.trouble.entries import read_troubles
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.engine.clock import new_run_id
from taoloop.runtime.runner import Listener
from taoloop.translation import Translator, mark

translate = Translator("evals")

_NAME_CHARS = 24
_NOTES = 10  # of trials; all of them are in the results
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(slots=True)
class SuiteProgress:
    """How far an evaluation is."""

    total: int
    """The number of trials."""
    reused: int = 0
    """Of these, those that an earlier call had finished."""
    ended: int = 0
    """Trials with a record, reused ones included."""
    passed: int = 0
    """Of these, those that passed."""
    failed: int = 0
    """Of these, those that did not pass."""
    invalid: int = 0
    """Of these, those that count in no rate."""
    cost_usd: float = 0.0
    """What these trials have cost, as far as prices are known."""

    def add(self, record: TrialRecord, *, is_reused: bool) -> None:
        """Count a trial that has ended."""
        self.ended += 1
        self.reused += is_reused
        self.passed += record.passed is True
        self.failed += record.passed is False
        self.invalid += record.passed is None


OnProgress = Callable[[SuiteProgress, TrialRecord | None], None]
"""Called once at the beginning with None, and with each trial that has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOutcome:
    """What came of a call: records, and why some are missing."""

    digest: str
    """The digest of the cases (SHA-256, hexadecimal)."""
    records: tuple[TrialRecord, ...]
    """The records, in the order of cases, configurations and trials."""
    notes: tuple[str, ...]
    """What a reader must know, in words."""
    progress: SuiteProgress
    """How far it came."""


@dataclass(slots=True)
class SuiteRun:
    """Runs the trials of a suite."""

    suite: Suite
    """The suite."""
    configurations: Sequence[Configuration]
    """What is compared, each with another name."""
    database: Path
    """The file that keeps the traces; the file of records and the folders of trials are beside it."""
    env: Mapping[str, str] | None = None
    """The variables for models, keys and secrets; None: those of the process."""
    fresh: bool = False
    """Whether trials that an earlier call finished are run again."""
    remeasures: bool = False
    """Whether finished trials are only checked and counted again, by what the suite says now."""
    trials: int | None = None
    """Trials of each case; None: those of the suite."""
    concurrency: int | None = None
    """Trials at the same time; None: those of the suite."""
    max_cost_usd: float | None = None
    """What all trials together may cost, in US dollars; None: as the suite says."""
    on_progress: OnProgress | None = None
    """Called with the progress; None: nobody is told."""
    records: dict[str, TrialRecord] = field(default_factory=dict, init=False)
    """The records so far by their keys, also after an error or a cancellation."""
    progress: SuiteProgress = field(default_factory=lambda: SuiteProgress(total=0), init=False)
    """How far it is."""
    digest: str = field(default="", init=False)
    """The digest of the cases, once they were read."""
    settings: dict[str, dict[str, Any]] = field(default_factory=dict, init=False)
    """By configuration, once prepared: agent, model, strategy, dialect, policy and seed as they are used."""
    _plan: SuitePlan | None = field(default=None, init=False)
    _keys: dict[str, int] = field(default_factory=dict, init=False)
    _worlds: Path = field(default=Path(), init=False)
    _budget: SuiteBudget = field(default_factory=lambda: SuiteBudget(None), init=False)
    _judges: Judges = field(default_factory=Judges, init=False)

    def prepare(self) -> SuitePlan:
        """Find whatever is wrong with suite, agents and cases, once; nothing is written and nothing is run.

        Raises:
            ConfigError: names what, and where it can, file and line; or there is nothing to measure again.
        """
        if self.remeasures and not record_path(self.database).exists():
            text = mark("There is nothing to measure again: no trial of {suite!r} was run with the database {path}.")
            hint = translate("Leave out --remeasure, or name the database of the trials with --db.")
            raise ConfigError(translate(text, suite=self.suite.name, path=self.database), hint=hint)
        if self._plan is None:
            self._plan = plan_suite(self.suite, self.configurations, trials=self.trials, env=self.env)
            self.digest, self.progress.total = self._plan.digest, self._plan.total
            self.settings = {each.name: self._plan.settings(each) for each in self.configurations}
        return self._plan

    async def run(self) -> SuiteOutcome:
        """Run what is not finished yet.

        A cancellation stops the runs, which the next call resumes; `outcome` has what there is.

        Raises:
            ConfigError: suite, agents or cases cannot be used; nothing was run.
            RunHeld: another process works on the same database.
            JournalError, OSError: the database or the disk is full; finished trials are kept.
        """
        plan = self.prepare()
        limit = self.max_cost_usd if self.max_cost_usd is not None else self.suite.max_cost_usd
        self._budget = SuiteBudget(limit)
        self._judges = Judges(self.env, self._budget.add_judging)
        path = record_path(self.database)
        self._worlds = self.database.resolve().with_name(f"{self.database.name}.worlds")
        evaluation = new_run_id(time.time()).rpartition("-")[2]
        with open_records(path, self.suite.name, evaluation, fresh=self.fresh) as file:
            self._report(None)
            self._make_worlds_folder()
            async with SqliteJournal(self.database, synchronous="NORMAL") as journal:
                try:
                    await self._run_all(plan, file, journal)
                finally:
                    for agent in plan.agents.values():
                        await bind(agent).model.close()  # the trouble of trials is in front of the model
                        await agent.close()
                    await self._judges.close()
            with suppress(OSError):  # worlds of trials that did not pass are kept there
                self._worlds.rmdir()
        return self.outcome()

    def _make_worlds_folder(self) -> None:
        try:
            self._worlds.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            text = mark("{path}: the folder for the worlds of trials cannot be made: {reason}.")
            hint = translate("Name another database with --db.")
            raise JournalError(translate(text, path=self._worlds, reason=error.strerror), hint=hint) from error

    def outcome(self) -> SuiteOutcome:
        """What there is now."""
        records = tuple(self.records[key] for key in sorted(self.records, key=self._keys.__getitem__))
        notes = tuple(self._notes(records))
        return SuiteOutcome(digest=self.digest, records=records, notes=notes, progress=self.progress)

    async def _run_all(self, plan: SuitePlan, file: RecordFile, journal: SqliteJournal) -> None:
        waiting = self._open_trials(plan, file)

        async def work() -> None:
            for planned, stored in waiting:
                if self._budget.is_spent:
                    return
                trial = self._trial(plan, planned, file)
                with self._budget.watched(trial.run_id) as listener:
                    measured = None
                    if stored is not None:
                        measured = await remeasure_trial(trial, stored.record, file.world(stored), journal)
                    is_reused = measured is not None
                    if measured is None and not self.remeasures:
                        measured = await self._run(trial, journal, listener)
                    if measured is None:
                        continue
                    record, world = measured
                    file.add(planned.key, planned.measure, record, world)
                remove_needless_world(trial, record)
                self._add(planned.key, record, is_reused=is_reused)

        concurrency = self.concurrency if self.concurrency is not None else self.suite.concurrency
        try:
            async with asyncio.TaskGroup() as group:
                workers = [group.create_task(work()) for _ in range(concurrency)]
                self._budget.on_spent = lambda: [worker.cancel() for worker in workers]
        except ExceptionGroup as errors:  # the others were stopped, and can be resumed
            raise errors.exceptions[0] from errors

    async def _run(
        self, trial: Trial, journal: SqliteJournal, listener: Listener
    ) -> tuple[TrialRecord, dict[str, Any]]:
        """Run a trial; one whose process ends otherwise than it should is invalid, and the others go on.

        Raises:
            JournalError: the journal cannot keep the trace.
        """
        try:
            trial = await self._after_kills(trial, journal)
        except JournalError:
            raise
        except TaoError as error:
            with entered_trial(trial) as world:
                return invalid_record(trial, error), world.snapshot()
        return await run_trial(trial, journal, listener)

    async def _after_kills(self, trial: Trial, journal: SqliteJournal) -> Trial:
        """The trial, once the processes have died that its trouble names."""
        kills = read_troubles(trial.case.trouble).kills
        if not kills or self.suite.path is None:
            return trial
        from taoloop.evals.trials.killed_process import DoomedTrial, killed_trial, start_process  # noqa: PLC0415  # rare

        doomed = DoomedTrial(
            suite_path=self.suite.path,
            configuration=next(each for each in self.configurations if each.name == trial.configuration),
            case_id=trial.case.case_id,
            number=trial.number,
            run_id=trial.run_id,
            folder=trial.folder,
            database=self.database,
            env=None if self.env is None else dict(self.env),
            kill=kills[0],
        )
        return await killed_trial(trial, kills, journal, doomed, start_process)

    def _open_trials(self, plan: SuitePlan, file: RecordFile) -> Iterator[tuple[PlannedTrial, StoredTrial | None]]:
        """The trials that are to be run, or only measured: those that are stored, and now have other checks.

        Those with a record that holds are counted on the way.
        """
        for planned in plan.planned_trials():
            self._keys[planned.key] = len(self._keys)
            stored = file.find(planned.key)
            if self.remeasures:
                stored = file.find_alike(planned.case.case_id, planned.configuration, planned.number)
            elif stored is not None and stored.record.status == INVALID:
                stored = None
            elif stored is not None and stored.measure == planned.measure:
                self._add(planned.key, stored.record, is_reused=True)
                continue
            yield planned, stored

    def _trial(self, plan: SuitePlan, planned: PlannedTrial, file: RecordFile) -> Trial:
        short = _NOT_IN_IDS.sub("-", planned.case.case_id).strip("-")[:_NAME_CHARS]
        run_id = "-".join(filter(None, (short, str(planned.number + 1), f"{file.evaluation}{planned.key[:8]}")))
        return Trial(
            case=planned.case,
            digest=planned.case_digest,
            configuration=planned.configuration,
            number=planned.number,
            run_id=run_id,
            agent=plan.agents[planned.configuration],
            state=self.suite.world,
            folder=self._worlds / run_id,
            judges=self._judges,
            may_exist=not file.is_new,
            seed=plan.seeds[planned.configuration],
        )

    def _add(self, key: str, record: TrialRecord, *, is_reused: bool) -> None:
        self.records[key] = record
        self.progress.add(record, is_reused=is_reused)
        self._budget.add(record)
        self.progress.cost_usd = self._budget.spent_usd
        self._report(record)

    def _report(self, record: TrialRecord | None) -> None:
        if self.on_progress is not None:
            self.on_progress(self.progress, record)

    def _notes(self, records: Sequence[TrialRecord]) -> Iterator[str]:
        if self._budget.reason:
            yield self._budget.reason
        if missing := self.progress.total - self.progress.ended:
            text = mark("{n} of {total} trials did not end; the same command goes on from there.")
            if self.remeasures:
                text = mark("{n} of {total} trials could not be measured again: they were not run with these tasks.")
            yield translate(text, n=missing, total=self.progress.total)
        if self.progress.reused and not self.remeasures:
            text = mark(
                "{n} trial was kept from an earlier call (--fresh runs it again)."
                "|{n} trials were kept from an earlier call (--fresh runs them again)."
            )
            yield translate(text, n=self.progress.reused)
        kinds = (SANDBOX, SET_UP)
        details = dict.fromkeys(
            (record.case_id, outcome_detail(outcome))
            for record in records
            for outcome in record.checks
            if outcome.kind in kinds
        )
        yield from (f"{case_id}: {detail}" for case_id, detail in islice(details, _NOTES))
        if len(details) > _NOTES:
            text = mark(
                "{n} further note of this kind is in the results (--out)."
                "|{n} further notes of this kind are in the results (--out)."
            )
            yield translate(text, n=len(details) - _NOTES)
