"""The results of evaluations as the panel reads them: a line of each, and the whole of those that people look at."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from taoloop.errors import ConfigError, TaoError
from taoloop.evals.result_files import result_files
from taoloop.evals.results import MetricValue, Results, read_results
from taoloop.journals.base import Journal
from taoloop.translation import error_texts

_MOST_LOADED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationLine:
    """A configuration in the list of evaluations."""

    name: str
    """Its name."""
    success: MetricValue
    """Its task success."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationLine:
    """An evaluation in the list."""

    name: str
    """The name in the address."""
    suite: str = ""
    """The suite."""
    created_at: float = 0.0
    """When, in seconds since the epoch."""
    cases: int = 0
    """The number of cases."""
    trials: int = 0
    """The number of trials."""
    configurations: Sequence[ConfigurationLine] = ()
    """The configurations, in their order."""
    problem: str = ""
    """Why the file cannot be read; empty if it can."""


class KnownEvaluations:
    """The results beside the database of a journal. A file is read again only when it has changed.

    Its methods read files, and belong into a thread.

    Args:
        journal: The journal of the panel; one that is no file has no results.
    """

    def __init__(self, journal: Journal) -> None:
        path = getattr(journal, "path", None)
        self.database = path.absolute() if isinstance(path, Path) else None
        self._lines: dict[tuple[Path, int], EvaluationLine] = {}
        self._loaded: OrderedDict[tuple[Path, int], Results] = OrderedDict()

    def lines(self) -> list[EvaluationLine]:
        """All evaluations, the newest first."""
        return [self._line(name, path) for name, path in self._files().items()]

    def load(self, name: str) -> Results:
        """The results of this name.

        Raises:
            ConfigError: there are none, or they cannot be read.
        """
        path = self._files().get(name)
        if path is None:
            raise ConfigError("There is no such evaluation.", hint="Choose one of the list of evaluations.")
        return self._load(path)

    def has_runs_of(self, results: Results) -> bool:
        """Whether the runs of these results are in the database of the panel."""
        return self.database is not None and Path(results.database).absolute() == self.database

    def _files(self) -> dict[str, Path]:
        return {} if self.database is None else result_files(self.database)

    def _load(self, path: Path) -> Results:
        key = _version(path)
        if key not in self._loaded:
            self._loaded[key] = read_results(path)
            while len(self._loaded) > _MOST_LOADED:
                self._loaded.popitem(last=False)
        self._loaded.move_to_end(key)
        return self._loaded[key]

    def _line(self, name: str, path: Path) -> EvaluationLine:
        key = _version(path)
        if key not in self._lines:
            try:
                self._lines[key] = _line_of(name, self._load(path))
            except TaoError as error:
                return EvaluationLine(name=name, problem=error_texts(error)[0])
        return self._lines[key]


def _version(path: Path) -> tuple[Path, int]:
    try:
        return path, path.stat().st_mtime_ns
    except OSError:  # gone: reading it says so
        return path, 0


def _line_of(name: str, results: Results) -> EvaluationLine:
    return EvaluationLine(
        name=name,
        suite=results.suite,
        created_at=results.created_at,
        cases=len({trial.case_id for trial in results.trials}),
        trials=len(results.trials),
        configurations=tuple(
            ConfigurationLine(name=each.name, success=each.figure("task_success")) for each in results.configurations
        ),
    )
