"""Evaluations: the list of results, one with its plots and comparisons, and its trials with links to their runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from aiohttp import web
from markupsafe import Markup

from taoloop.evals.fault_classes import rule_text
from taoloop.evals.report.figures import category_text, format_interval, format_value, outcome_text
from taoloop.evals.report.page import facts_of
from taoloop.evals.report.plots import outcome_patterns, outcome_swatch, share_axis, share_plot
from taoloop.evals.report.sections import ReportSections
from taoloop.evals.report.tallies import OUTCOMES, outcome_of, reason_of
from taoloop.evals.results import Results
from taoloop.evals.scoring import compare_results
from taoloop.evals.trial_records import TrialRecord
from taoloop.serve.panel.context import PanelContext, Route

PAGE_SIZE: Final = 50
"""How many trials a page shows."""

_MOST_LISTED = 6
_FILTERS = ("q", "configuration", "category", "outcome", "case")


async def evaluations_page(context: PanelContext) -> web.StreamResponse:
    """`GET /evals`: the list."""
    lines = await asyncio.to_thread(context.panel.evaluations.lines)
    suites = sorted({line.suite for line in lines if line.suite})
    suite = context.query("suite")
    return context.page(
        "evaluations.html",
        lines=[line for line in lines if not suite or line.suite == suite],
        most=_MOST_LISTED,
        suites=suites,
        suite=suite,
        share=lambda figure: format_value("task_success", figure.value, context.language),
        interval=lambda figure: format_interval("task_success", figure, context.language),
        plot=lambda figure: Markup(share_plot(figure)),  # noqa: S704  # numbers only
        axis=Markup(share_axis()),  # noqa: S704  # ours
    )


async def evaluation_page(context: PanelContext) -> web.StreamResponse:
    """`GET /evals/{name}`: one evaluation; `?baseline=` compares it with an earlier one of the same suite."""
    name, baseline = context.param("name"), context.query("baseline")
    results = await asyncio.to_thread(_compared, context, name, baseline)
    lines = await asyncio.to_thread(context.panel.evaluations.lines)
    sections = ReportSections(results, context.language, _RunLinks(context, results).link).sections()
    return context.page(
        "evaluation.html",
        name=name,
        results=results,
        facts=list(facts_of(results, context.language)),
        sections=[(section.id, section.title, Markup(section.body)) for section in sections],  # noqa: S704  # escaped
        others=[line for line in lines if line.suite == results.suite and line.name != name],
        baseline=baseline,
        has_runs=context.panel.evaluations.has_runs_of(results),
    )


async def trials_page(context: PanelContext) -> web.StreamResponse:
    """`GET /evals/{name}/trials`: the trials that fit the filter."""
    name = context.param("name")
    results = await asyncio.to_thread(context.panel.evaluations.load, name)
    trial_filter = TrialFilter.of(context)
    trials = [trial for trial in results.trials if trial_filter.fits(trial, context.language)]
    start = _start(context.query("from"))
    numbers = {each.name: number for number, each in enumerate(results.configurations, 1)}
    return context.page(
        "evaluation_trials.html",
        name=name,
        results=results,
        filter=trial_filter,
        choices=_choices(results, context.language),
        trials=trials[start : start + PAGE_SIZE],
        total=len(trials),
        start=start,
        following=start + PAGE_SIZE if start + PAGE_SIZE < len(trials) else None,
        previous=max(0, start - PAGE_SIZE) if start else None,
        numbers=numbers,
        link=_RunLinks(context, results).markup,
        outcome=outcome_of,
        outcome_text=lambda outcome: outcome_text(outcome, context.language),
        swatch=lambda outcome: Markup(outcome_swatch(outcome)),  # noqa: S704  # one of ours
        patterns=Markup(outcome_patterns()),  # noqa: S704  # ours
        reason=lambda trial: reason_of(trial, context.language),
        rule=lambda name: rule_text(name, context.language),
        figure=lambda metric, value: format_value(metric, value, context.language),
        has_runs=context.panel.evaluations.has_runs_of(results),
    )


async def results_file(context: PanelContext) -> web.StreamResponse:
    """`GET /evals/{name}.json`: the results as `tao eval --out` writes them."""
    name = context.param("name")
    results = await asyncio.to_thread(context.panel.evaluations.load, name)
    body = await asyncio.to_thread(_as_json_text, results)
    return context.text(body, "application/json", filename=f"{name}.json")


ROUTES: Final = (
    Route("GET", "/evals", evaluations_page),
    Route("GET", "/evals/{name}.json", results_file),
    Route("GET", "/evals/{name}", evaluation_page),
    Route("GET", "/evals/{name}/trials", trials_page),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFilter:
    """What the address says about the trials to show."""

    fields: Mapping[str, str]
    """The fields that are set."""

    @classmethod
    def of(cls, context: PanelContext) -> TrialFilter:
        """The filter in the address of a request."""
        fields = {name: context.query(name).strip() for name in _FILTERS}
        return cls(fields={name: value for name, value in fields.items() if value})

    def fits(self, trial: TrialRecord, language: str) -> bool:
        """Whether a trial is shown to a reader of `language`. `failed` is every outcome but `right`."""
        outcome = outcome_of(trial)
        values = {"configuration": trial.configuration, "category": trial.category, "case": trial.case_id}
        for name, value in self.fields.items():
            if name == "outcome" and value not in (outcome, "failed" if outcome != "right" else ""):
                return False
            if name in values and values[name] != value:
                return False
        text = self.fields.get("q", "").casefold()
        parts = (trial.case_id, trial.answer or "", reason_of(trial, language), trial.run_id)
        return not text or any(text in part.casefold() for part in parts)


class _RunLinks:
    """Links from trials to their runs, where the panel has them."""

    def __init__(self, context: PanelContext, results: Results) -> None:
        self._context = context
        self._has_runs = context.panel.evaluations.has_runs_of(results)

    def link(self, run_id: str) -> str:
        """The HTML of a link, or of the id alone."""
        return str(self.markup(run_id))

    def markup(self, run_id: str) -> Markup:
        """The same for a template."""
        if not self._has_runs:
            return Markup("<code>{}</code>").format(run_id)
        return Markup('<a href="{}"><code>{}</code></a>').format(self._context.run_path(run_id), run_id)


def _compared(context: PanelContext, name: str, baseline: str) -> Results:
    """The results of this name, compared with the baseline if there is one."""
    results = context.panel.evaluations.load(name)
    if not baseline:
        return results
    earlier = context.panel.evaluations.load(baseline)
    return replace(results, comparisons=compare_results(results.configurations, results.trials, earlier))


def _choices(results: Results, language: str) -> dict[str, Sequence[tuple[str, str]]]:
    """What the filters can be, with their texts."""
    outcomes = {outcome_of(trial) for trial in results.trials}
    categories = dict.fromkeys(trial.category for trial in results.trials)
    return {
        "configuration": [(each.name, each.name) for each in results.configurations],
        "category": [(category, category_text(category, language)) for category in categories],
        "outcome": [(outcome, outcome_text(outcome, language)) for outcome in OUTCOMES if outcome in outcomes],
    }


def _start(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _as_json_text(results: Results) -> str:
    return json.dumps(results.to_json(), ensure_ascii=False)
