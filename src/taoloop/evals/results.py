"""The results of a suite: metrics of each configuration with their intervals, faults, comparisons, and the trials.

This is what `tao eval --out FILE.json` writes, and what reports, `--baseline` and the panel read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import taoloop
from taoloop.errors import AgentFileError, ConfigError
from taoloop.evals.stored_fields import (
    AMOUNT,
    LIST,
    MAPPING,
    NUMBER,
    SHARE,
    TEXT,
    TEXTS,
    WHOLE,
    Kind,
    StoredProblem,
    at_path,
    check_fields,
    check_finite,
    check_kind,
    choice,
    line_of,
    path_text,
)
from taoloop.evals.trial_records import TrialRecord
from taoloop.translation import Translator, mark

translate = Translator("evals")

T = TypeVar("T")

FORMAT = 1
"""The version of the stored form."""

Verdict = Literal["better", "worse", "inconclusive"]

IntervalNote = Literal["nothing_counted", "one_case", "no_variation", "few_cases", "unbounded", "partly_unknown"]
"""What a reader must know of a figure's interval. `nothing_counted`: there is no figure. `one_case`: no interval, for
cases are the unit and there is only one. `no_variation`: the cases are all alike, so that the interval has no width.
`few_cases`: too few for an interval of this quantile. `unbounded`: the interval has no upper end. `partly_unknown`:
trials whose value is unknown are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    """A figure with its interval (95 %)."""

    value: float | None
    """The figure; None if nothing was counted: none is not zero."""
    low: float | None = None
    """The lower end of the interval; None if there is none."""
    high: float | None = None
    """The upper end of the interval."""
    n: int = 0
    """What it was counted over: trials, calls, actions, as the metric defines."""
    cases: int = 0
    """How many cases these are of: the number of independent observations."""
    notes: tuple[IntervalNote, ...] = ()
    """What a reader must know of the interval."""


NO_FIGURE = MetricValue(value=None)
"""What stands for a figure that there is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationResults:
    """What came of one configuration."""

    name: str
    """Its name, unique in the results."""
    settings: Mapping[str, Any]
    """Agent, model, strategy, dialect, policy and seed."""
    metrics: Mapping[str, MetricValue]
    """By the names of `taoloop.evals.metrics`."""
    k: int = 1
    """The k of pass@k and pass^k."""
    by_category: Mapping[str, MetricValue] = field(default_factory=dict)
    """Task success in each category."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """The number of trials that did not pass, by fault; invalid ones are among them."""
    invalid: int = 0
    """The number of trials that are invalid. They count in no metric, but for those that wait for a person whom the
    suite does not have (`TrialRecord.awaits_nobody`): these count in the metrics of the policy."""
    flaky: tuple[str, ...] = ()
    """Cases whose trials disagree although nothing of the configuration is random: they are in quarantine."""

    def figure(self, metric: str) -> MetricValue:
        """The figure of a metric; without a value if another version measured the results, and not by this metric."""
        return self.metrics.get(metric, NO_FIGURE)

    @property
    def is_frame(self) -> bool:
        """Whether it has no language model and only frames the others: `offline` from below, scripts from above."""
        return str(self.settings.get("model") or "").partition(":")[0] in ("offline", "oracle", "script")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """One metric of two configurations, compared in pairs."""

    metric: str
    """The name of the metric."""
    difference: MetricValue
    """Second minus first, with its interval (not corrected); `n` is the number of pairs."""
    p: float | None
    """The two-sided p value: how likely a difference at least this large is if the two are alike; None without a pair
    that differs."""
    p_corrected: float | None
    """The same, corrected over all that is compared in these results (Holm 1979)."""
    verdict: Verdict
    """What follows for the second configuration from `p_corrected`: better or worse at 0.05 or less."""
    test: str
    """The name of the test, such as `mcnemar` or `sign_flip`."""
    cases_needed: int | None = None
    """If inconclusive, how many cases would decide with a probability of 80 %, if the true difference is the measured
    one; None if no number can be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """Two configurations on the same cases."""

    first: str
    """The configuration compared with (the baseline)."""
    second: str
    """The configuration that is judged."""
    metrics: tuple[MetricComparison, ...]
    """In the order of the metrics."""
    only_first: tuple[str, ...] = ()
    """Cases that only the first has; they are not compared."""
    only_second: tuple[str, ...] = ()
    """Cases that only the second has."""
    changed: tuple[str, ...] = ()
    """Cases that are not the same in both, although they have the same id: they are not compared."""
    quarantined: tuple[str, ...] = ()
    """Cases that are flaky in one of them: they are not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The results of a suite."""

    suite: str
    """The name of the suite."""
    digest: str
    """The digest of the suite's cases (SHA-256, hexadecimal): only results of the same digest have the same cases."""
    created_at: float
    """When, in seconds since the epoch."""
    version: str
    """The version of taoloop."""
    configurations: tuple[ConfigurationResults, ...]
    """In the order in which they were asked for."""
    comparisons: tuple[PairedComparison, ...] = ()
    """Each further configuration with the first, and with `--baseline` each with the one of the same name there."""
    trials: tuple[TrialRecord, ...] = ()
    """All trials, invalid ones included."""
    judges: Mapping[str, Any] = field(default_factory=dict)
    """For each judge: whether it is calibrated, its sensitivity, specificity and corrected rate."""
    notes: tuple[str, ...] = ()
    """What a reader must know, such as a budget that ended the run."""
    database: str = ""
    """The path of the database with the runs of the trials."""

    def to_json(self) -> dict[str, Any]:
        """The results as JSON data; `metrics` is by configuration and name."""
        return {
            "format": FORMAT,
            **{name: value for name, value in _plain(self).items() if name not in ("configurations", "trials")},
            "metrics": {each.name: _plain(each.metrics) for each in self.configurations},
            "configurations": [
                {name: value for name, value in _plain(each).items() if name != "metrics"}
                for each in self.configurations
            ],
            "trials": [trial.to_json() for trial in self.trials],
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Results:
        """The results that `to_json` gave.

        Raises:
            StoredProblem: the data is no results; says where, and what is wrong.
        """
        check_fields(record, _RESULT_KINDS, _REQUIRED_FIELDS)
        check_finite({name: value for name, value in record.items() if name != "trials"})
        configurations = tuple(_configurations_from(record))
        fields = {name: value for name, value in record.items() if name not in ("format", "metrics")}
        return cls(
            **{
                **fields,
                "configurations": configurations,
                "comparisons": tuple(_each(record, "comparisons", _comparison_from)),
                "trials": tuple(_trials_from(record, {each.name for each in configurations})),
                "notes": tuple(record.get("notes", ())),
            }
        )


def write_results(results: Results, path: Path) -> None:
    """Write the results to a file, whole or not at all; each trial is a line of it.

    Raises:
        OSError: the file cannot be written.
    """
    record = results.to_json()
    trials = ",\n".join(json.dumps(trial, ensure_ascii=False) for trial in record.pop("trials"))
    head = json.dumps(record, ensure_ascii=False).removesuffix("}")
    write_whole(path, f'{head},\n"trials": [\n{trials}\n]}}\n')


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all; a part that could not be written is removed.

    Raises:
        OSError: the file cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def read_results(path: Path) -> Results:
    """The results in a file that `write_results` wrote.

    Raises:
        ConfigError: the file cannot be read, or is no results of this version.
        AgentFileError: something in it is none; names the line.
    """
    text, record = "", None
    try:
        text = path.read_text(encoding="utf-8")
        record = json.loads(text)
        return Results.from_json(record)
    except OSError as error:
        message = mark("The results {path!r} cannot be read: {reason}.")
        raise ConfigError(translate(message, path=str(path), reason=error.strerror or error)) from error
    except StoredProblem as problem:
        where = path_text(problem.path)
        reason = translate("{name}: {text}", name=where, text=problem.text) if where else problem.text
        raise _file_error(path, line_of(text, problem.path), reason, record) from problem
    except ValueError as error:  # no JSON, or no UTF-8
        raise _file_error(path, getattr(error, "lineno", 0), str(error), record) from error


def _file_error(path: Path, line: int, reason: str, record: Any) -> AgentFileError:
    version = record.get("version") if isinstance(record, dict) else None
    if version in (None, taoloop.__version__):
        message = translate("these are no results of `tao eval --out`: {reason}.", reason=reason)
        hint = translate("Write the file again with `tao eval SUITE --out FILE.json`.")
    else:
        text = mark("these are results of taoloop {version}, which this version, {own}, cannot read: {reason}.")
        message = translate(text, version=version, own=taoloop.__version__, reason=reason)
        hint = translate("Run the evaluation again with this version.")
    return AgentFileError(message, path=str(path), line=line, hint=hint)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__ if name != "trials"}
    return value


def _configurations_from(record: Mapping[str, Any]) -> Iterator[ConfigurationResults]:
    metrics, seen = record["metrics"], set[str]()
    for index, each in enumerate(record["configurations"]):
        with at_path("configurations", index):
            check_fields(each, _CONFIGURATION_KINDS, ("name", "settings"))
            name = each["name"]
            if name in seen:
                raise StoredProblem(translate("a configuration of this name is there already"), "name")
            if name not in metrics:
                raise StoredProblem(translate("`metrics` has none of this configuration"), "name")
            seen.add(name)
            by_category = dict(_figures_from(each, "by_category"))
        own = dict(_figures_from(metrics, name, at="metrics"))
        fields = {**each, "metrics": own, "by_category": by_category, "flaky": tuple(each.get("flaky", ()))}
        yield ConfigurationResults(**fields)


def _figures_from(record: Mapping[str, Any], name: str, at: str = "") -> Iterator[tuple[str, MetricValue]]:
    with at_path(*filter(None, (at, name))):
        figures = record.get(name, {})
        check_kind(figures, MAPPING)
        for metric, value in figures.items():
            with at_path(metric):
                yield metric, _metric_from(value, AMOUNT)


def _trials_from(record: Mapping[str, Any], configurations: Collection[str]) -> Iterator[TrialRecord]:
    """The trials, each of which is there once and of a configuration that is there."""
    seen: dict[tuple[str, str, int], int] = {}
    for index, each in enumerate(record.get("trials", ())):
        with at_path("trials", index):
            trial = TrialRecord.from_json(each)
            if trial.configuration not in configurations:
                text = translate("there is no configuration {name!r}", name=trial.configuration)
                raise StoredProblem(text, "configuration")
            first = seen.setdefault((trial.case_id, trial.configuration, trial.trial), index)
            if first != index:
                text = mark(
                    "trial {number} of case {case!r} and configuration {name!r} is there already: trials[{first}]"
                )
                values = {"number": trial.trial, "case": trial.case_id, "name": trial.configuration}
                raise StoredProblem(translate(text, **values, first=first))
        yield trial


def _each(record: Mapping[str, Any], name: str, read: Callable[[Any], T]) -> Iterator[T]:
    for index, each in enumerate(record.get(name, ())):
        with at_path(name, index):
            yield read(each)


def _comparison_from(record: Mapping[str, Any]) -> PairedComparison:
    check_fields(record, _COMPARISON_KINDS, ("first", "second", "metrics"))
    lists = {name: tuple(value) for name, value in record.items() if isinstance(value, list)}
    return PairedComparison(**{**record, **lists, "metrics": tuple(_each(record, "metrics", _metric_comparison_from))})


def _metric_comparison_from(record: Mapping[str, Any]) -> MetricComparison:
    check_fields(record, _METRIC_COMPARISON_KINDS, ("metric", "difference", "p", "p_corrected", "verdict", "test"))
    with at_path("difference"):
        return MetricComparison(**{**record, "difference": _metric_from(record["difference"], NUMBER)})


def _metric_from(record: Mapping[str, Any], kind: Kind) -> MetricValue:
    """A figure, whose value and ends are of a kind."""
    ends = dict.fromkeys(("value", "low", "high"), kind.or_null())
    check_fields(record, {**ends, "n": WHOLE, "cases": WHOLE, "notes": TEXTS}, ("value",))
    notes = tuple(record.get("notes", ()))
    if "few_cases" in notes:  # earlier versions gave the least and greatest value for ends, which reach less than 95 %
        record = {**record, "low": None, "high": None}
    return MetricValue(**{**record, "notes": notes})


_FORMAT_KIND = Kind(lambda value: value == FORMAT, mark("format {names} is expected"), str(FORMAT))
_RESULT_KINDS: Mapping[str, Kind] = {
    "format": _FORMAT_KIND,
    **dict.fromkeys(("suite", "digest", "version", "database"), TEXT),
    "created_at": AMOUNT,
    **dict.fromkeys(("metrics", "judges"), MAPPING),
    **dict.fromkeys(("configurations", "comparisons", "trials"), LIST),
    "notes": TEXTS,
}
_REQUIRED_FIELDS = ("format", "suite", "digest", "created_at", "version", "metrics", "configurations")
_CONFIGURATION_KINDS: Mapping[str, Kind] = {
    "name": TEXT,
    **dict.fromkeys(("settings", "by_category", "faults"), MAPPING),
    **dict.fromkeys(("k", "invalid"), WHOLE),
    "flaky": TEXTS,
}
_COMPARISON_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("first", "second"), TEXT),
    "metrics": LIST,
    **dict.fromkeys(("only_first", "only_second", "changed", "quarantined"), TEXTS),
}
_METRIC_COMPARISON_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("metric", "test"), TEXT),
    "difference": MAPPING,
    **dict.fromkeys(("p", "p_corrected"), SHARE.or_null()),
    "verdict": choice(get_args(Verdict)),
    "cases_needed": WHOLE.or_null(),
}
