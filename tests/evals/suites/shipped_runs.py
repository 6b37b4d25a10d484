"""Shipped suites, run in a small form, and what came of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taoloop.core.events import ActionRequested, Event
from taoloop.evals.configurations import Configuration, configurations_of
from taoloop.evals.results import ConfigurationResults, Results
from taoloop.evals.scoring import score
from taoloop.evals.suites.catalog import load_suite
from taoloop.evals.trial_records import TrialRecord
from taoloop.evals.trials.suite_run import SuiteRun
from taoloop.journals.sqlite.journal import SqliteJournal


@dataclass(frozen=True, slots=True)
class ShippedRun:
    """A suite that was run."""

    results: Results
    database: Path

    def of(self, configuration: str) -> ConfigurationResults:
        """The results of a configuration."""
        return next(each for each in self.results.configurations if each.name == configuration)

    def figures(self, configuration: str, *names: str) -> tuple[Any, ...]:
        """The values of metrics."""
        return tuple(self.of(configuration).metrics[name].value for name in names)

    def failed(self, configuration: str) -> list[str]:
        """The cases that did not pass."""
        return [trial.case_id for trial in self.trials(configuration) if not trial.passed]

    def trials(self, configuration: str) -> list[TrialRecord]:
        """The trials of a configuration."""
        return [trial for trial in self.results.trials if trial.configuration == configuration]

    def calls_by_tool(self, configuration: str) -> Counter[str]:
        """How often each tool was called, from the stored runs."""
        events = asyncio.run(self._load([trial.run_id for trial in self.trials(configuration)]))
        return Counter(event.fact.tool for event in events if isinstance(event.fact, ActionRequested))

    async def _load(self, run_ids: Sequence[str]) -> list[Event]:
        async with SqliteJournal(self.database) as journal:
            return [event for run_id in run_ids for event in await journal.load(run_id)]


def run_shipped(name: str, folder: Path, *, cases: Sequence[str] | None = None, **axes: Sequence[Any]) -> ShippedRun:
    """Run a suite, or only some of its cases, with other values on the axes."""
    suite = load_suite(name)
    if cases is not None:
        chosen = [case for case in suite.cases() if case.case_id in cases]
        assert len(chosen) == len(cases)
        suite = replace(suite, cases=lambda: chosen)
    configurations = configurations_of(suite, axes)  # type: ignore[arg-type]  # the axes by their names
    database = folder / f"{name}.db"
    run = SuiteRun(suite=suite, configurations=configurations, database=database, env={})
    outcome = asyncio.run(run.run())
    settings: Mapping[str, Mapping[str, Any]] = {each.name: _settings(each) for each in configurations}
    results = score(outcome.records, settings, suite=name, digest=outcome.digest, created_at=0.0, version="1")
    return ShippedRun(results, database)


def _settings(configuration: Configuration) -> Mapping[str, Any]:
    return configuration.settings
