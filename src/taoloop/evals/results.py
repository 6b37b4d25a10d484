"""The results of a suite: metrics of each configuration with their intervals, faults, comparisons, and the trials.

This is what `tao eval --out FILE.json` writes, and what reports, `--baseline` and the panel read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import taoloop
from taoloop.errors import ConfigError
from taoloop.evals.trial_records import TrialRecord
from taoloop.translation import Translator, mark

translate = Translator("evals")

FORMAT = 1
"""The version of the stored form."""

Verdict = Literal["better", "worse", "inconclusive"]

IntervalNote = Literal["nothing_counted", "one_case", "no_variation", "few_cases", "unbounded", "partly_unknown"]
"""What a reader must know of a figure's interval. `nothing_counted`: there is no figure. `one_case`: no interval, for
cases are the unit and there is only one. `no_variation`: the cases are all alike, so that the interval has no width.
`few_cases`: too few for this quantile; the interval ends at the least or greatest value seen. `unbounded`: the interval
has no upper end. `partly_unknown`: trials whose value is unknown are left out."""


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
    """The number of trials that are invalid: they count in no metric but in those of the policy, if they wait."""
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
            TypeError, KeyError, ValueError: the data is no results.
        """
        if record["format"] != FORMAT:
            raise ValueError(f"format {record['format']}")
        fields = {name: value for name, value in record.items() if name not in ("format", "metrics")}
        return cls(
            **{
                **fields,
                "configurations": tuple(
                    _configuration_from(each, record["metrics"][each["name"]]) for each in record["configurations"]
                ),
                "comparisons": tuple(_comparison_from(each) for each in record.get("comparisons", ())),
                "trials": tuple(map(TrialRecord.from_json, record.get("trials", ()))),
                "notes": tuple(record.get("notes", ())),
            }
        )


def write_results(results: Results, path: Path) -> None:
    """Write the results to a file, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    write_whole(path, json.dumps(results.to_json(), ensure_ascii=False) + "\n")


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
    """
    record: Any = None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return Results.from_json(record)
    except OSError as error:
        text = mark("The results {path!r} cannot be read: {reason}.")
        raise ConfigError(translate(text, path=str(path), reason=error.strerror or error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        version = record.get("version") if isinstance(record, dict) else None
        if version not in (None, taoloop.__version__):
            text = mark("The results {path!r} are of taoloop {version}, which this version, {own}, cannot read.")
            hint = translate("Run the evaluation again with this version.")
            own = taoloop.__version__
            raise ConfigError(translate(text, path=str(path), version=version, own=own), hint=hint) from error
        text = mark("The file {path!r} does not hold results of `tao eval --out`: {reason}.")
        hint = translate("Write it again with `tao eval SUITE --out FILE.json`.")
        raise ConfigError(translate(text, path=str(path), reason=error), hint=hint) from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__ if name != "trials"}
    return value


def _configuration_from(record: Mapping[str, Any], metrics: Mapping[str, Any]) -> ConfigurationResults:
    return ConfigurationResults(
        **{
            **record,
            "metrics": {name: _metric_from(value) for name, value in metrics.items()},
            "by_category": {name: _metric_from(value) for name, value in record.get("by_category", {}).items()},
            "flaky": tuple(record.get("flaky", ())),
        }
    )


def _comparison_from(record: Mapping[str, Any]) -> PairedComparison:
    metrics = tuple(
        MetricComparison(**{**each, "difference": _metric_from(each["difference"])}) for each in record["metrics"]
    )
    return PairedComparison(
        first=record["first"],
        second=record["second"],
        metrics=metrics,
        only_first=tuple(record.get("only_first", ())),
        only_second=tuple(record.get("only_second", ())),
        changed=tuple(record.get("changed", ())),
        quarantined=tuple(record.get("quarantined", ())),
    )


def _metric_from(record: Mapping[str, Any]) -> MetricValue:
    return MetricValue(**{**record, "notes": tuple(record.get("notes", ()))})
