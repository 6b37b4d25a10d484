"""`tao eval`: run a suite and say how good its agents are."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

import taoloop
from taoloop.cli import exit_codes as exits
from taoloop.cli.agent_loading import require_extra
from taoloop.cli.commands.eval_runs import (
    StoredRunOptions,
    stored_run_options,
    try_on_stored_runs,
    unwritable_file,
    write_suite_of_runs,
)
from taoloop.cli.database import load_environment, make_private, query_database
from taoloop.cli.options import split_repeated
from taoloop.cli.signals import SignalStopper, announce_stop
from taoloop.cli.translation import interface_language, translate
from taoloop.cli.ui.eval_view import EvalProgressView, print_results, print_suites
from taoloop.cli.ui.stdio import capture_stdout, print_stderr
from taoloop.errors import ConfigError, TaoError
from taoloop.evals.configurations import Configuration, configurations_of
from taoloop.evals.judge_calibration import judge_reports, marked_runs
from taoloop.evals.report.page import write_page
from taoloop.evals.result_files import EVALS_FOLDER, keep_results
from taoloop.evals.results import Results, read_results, write_results
from taoloop.evals.scoring import BASELINE, score
from taoloop.evals.suite import Axis, Suite
from taoloop.evals.suites.catalog import load_suite, shipped_suites
from taoloop.evals.thresholds import ThresholdOutcome, threshold_outcomes, worse_metrics
from taoloop.evals.trials.record_file import record_path
from taoloop.evals.trials.suite_run import SuiteRun
from taoloop.journals.sqlite.file import default_path
from taoloop.models.registry import OFFLINE, default_spec, is_provider, mock_is_set
from taoloop.tools.settings_check import expand_home
from taoloop.translation import mark


@click.command("eval")
@click.argument("suite", required=False)
@click.option("--list", "lists", is_flag=True, help="List the suites that come with taoloop.")
@click.option("--agent", "agents", metavar="AGENT", multiple=True, help="An agent to evaluate; repeatable.")
@click.option("--strategy", "strategies", metavar="NAME,…", multiple=True, help="Strategies to compare.")
@click.option(
    "--model", "models", metavar="SPEC,…", multiple=True, help="Models to compare; `oracle` plays the suite's scripts."
)
@click.option("--dialect", "dialects", metavar="NAME,…", multiple=True, help="Dialects to compare.")
@click.option("--policy", "policies", metavar="FILE,…", multiple=True, help="Policies to compare: files or profiles.")
@click.option("--seed", "seeds", metavar="N,…", multiple=True, help="Seeds of the suite's trouble to compare.")
@click.option("--trials", type=click.IntRange(min=1), metavar="K", help="Trials of each case (default: the suite's).")
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Trials at the same time.")
@click.option(
    "--max-cost",
    "max_cost_usd",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="What all trials together may cost.",
)
@click.option("--case", "case_ids", metavar="ID,…", multiple=True, help="Only these cases.")
@click.option("--remeasure", "remeasures", is_flag=True, help="Check and count finished trials again; run nothing.")
@click.option("--fresh", is_flag=True, help="Run every trial again, including finished ones.")
@click.option("--out", metavar="FILE", type=click.Path(dir_okay=False), help="Write the results as JSON.")
@click.option("--html", metavar="FILE", type=click.Path(dir_okay=False), help="Write the results as an HTML page.")
@click.option("--baseline", metavar="FILE", type=click.Path(dir_okay=False), help="Compare with the results in FILE.")
@click.option(
    "--db",
    metavar="PATH",
    type=click.Path(dir_okay=False),
    help="The database of the trials' runs. Default: evals/SUITE.db in your data folder. With --from-runs and "
    "--counterfactual: the database of the stored runs, as for `tao runs`.",
)
@stored_run_options
def eval_command(suite: str | None, lists: bool, **arguments: Any) -> int:
    """Run SUITE, a suite file or the name of one that comes with taoloop, and print its metrics with intervals.

    Each trial is a run that `tao show` and `tao panel` open. The same command again goes on where the last one ended:
    trials that are finished are not run again.

      tao eval smoke
      tao eval suite.yaml --agent agent.yaml --trials 5 --out results.json
      tao eval suite.yaml --strategy react,reflect --model oracle --html results.html
      tao eval suite.yaml --agent agent.yaml --baseline results.json
      tao eval --list

    Stored runs can become cases, and another model, agent or policy can be tried on them. No tool is called for that.

      tao eval --from-runs --last 50 --status completed --out suite.yaml
      tao eval --counterfactual --model openai:NEW --last 200
      tao eval --counterfactual --agent agent.yaml --marked right
      tao eval --counterfactual --policy policy.yaml --search refund --out divergences.json
    """
    if lists:
        return list_suites()
    stored = StoredRunOptions.from_arguments(arguments)
    stored.require_mode(suite)
    if stored.from_runs:
        return write_suite_of_runs(stored, arguments)
    if stored.counterfactual:
        return try_on_stored_runs(stored, arguments)
    if suite is None:
        raise click.UsageError(translate("Name a SUITE, or give --list."))
    return evaluate(suite, **arguments)


def list_suites() -> int:
    """Print the suites that come with taoloop."""
    with capture_stdout() as stream:
        print_suites(stream, tuple(shipped_suites(interface_language())))
    return exits.OK


def evaluate(
    name: str,
    *,
    trials: int | None,
    concurrency: int | None,
    max_cost_usd: float | None,
    case_ids: tuple[str, ...],
    fresh: bool,
    remeasures: bool,
    out: str | None,
    html: str | None,
    baseline: str | None,
    db: str | None,
    **axes: Any,
) -> int:
    """Run a suite, print its results and write them where they are wanted; gives the exit code.

    Raises:
        TaoError: the suite, an agent or a file cannot be used, or the database cannot be written.
    """
    if fresh and remeasures:
        raise click.UsageError(translate("Give either --fresh or --remeasure."))
    require_other_files(name, out=out, html=html, baseline=baseline, db=db, agents=axes["agents"])
    with capture_stdout() as stream:
        env = load_environment()
        chosen = only_cases(load_suite(name), split_repeated(case_ids))
        earlier = None if baseline is None else baseline_results(expand_home(baseline), chosen)
        configurations = configurations_of(chosen, compared_axes(axes))
        require_comparable(configurations, earlier)
        path = database_of(chosen, db, env)
        run = SuiteRun(
            suite=chosen,
            configurations=configurations,
            database=path,
            env=env,
            fresh=fresh,
            remeasures=remeasures,
            trials=trials,
            concurrency=concurrency,
            max_cost_usd=max_cost_usd,
            on_progress=(view := EvalProgressView(sys.stderr)),
        )
        run.prepare()
        check_models(run, env)
        make_private(path, expected=db is None)
        with view:
            stopper = drive(run)
        results = scored(run, path, earlier)
        outcomes = threshold_outcomes(results, chosen.thresholds)
        print_results(stream, results, outcomes)
        write_files(results, out, html)
        keep_for_panel(results, path)
        return stopper.code if stopper.code is not None else exit_code_for_results(results, chosen, outcomes)


def require_other_files(suite: str, *, out: str | None, html: str | None, agents: Sequence[str], **read: Any) -> None:
    """Report that what is written would replace a file that the evaluation reads, or that the other option writes."""
    inputs = {expand_home(name).resolve() for name in (suite, *agents, *read.values()) if name is not None}
    for option, name in (("--out", out), ("--html", html)):
        if name is None:
            continue
        path = expand_home(name).resolve()
        if path in inputs:
            text = mark("{option} would replace {path}, which is read or written otherwise; name another file.")
            raise click.UsageError(translate(text, option=option, path=name))
        inputs.add(path)


def baseline_results(path: Path, suite: Suite) -> Results:
    """The results of `--baseline`.

    Raises:
        ConfigError: the file cannot be read, or has results of another suite.
    """
    results = read_results(path)
    if results.suite != suite.name:
        text = mark("The baseline {path!r} has results of the suite {other!r}, not of {suite!r}.")
        hint = translate("Name results of this suite: there is nothing to compare.")
        raise ConfigError(translate(text, path=str(path), other=results.suite, suite=suite.name), hint=hint)
    return results


def require_comparable(configurations: Sequence[Configuration], baseline: Results | None) -> None:
    """Report a baseline that has none of the configurations: with nothing compared, nothing could be worse.

    A single configuration is compared with a single one, whatever their names.

    Raises:
        ConfigError: nothing can be compared.
    """
    known = [] if baseline is None else [each.name for each in baseline.configurations]
    names = [each.name for each in configurations]
    if baseline is None or not set(known).isdisjoint(names) or len(known) == len(names) == 1:
        return
    text = mark("The baseline has none of the configurations {names}. It has: {known}.")
    hint = translate("Name results of the same configurations, or leave --baseline out.")
    raise ConfigError(translate(text, names=", ".join(names), known=", ".join(known)), hint=hint)


def check_models(run: SuiteRun, env: Mapping[str, str]) -> None:
    """Report before the trials what a model lacks, and where no language model answers though none was chosen.

    Raises:
        MissingExtra: a package of a provider is not installed.
    """
    for settings in run.settings.values():
        require_extra(settings["model"])
    wants_provider = any(each.model is not None and is_provider(each.model) for each in run.configurations)
    is_open = any(each.model is None and each.agent is None for each in run.configurations)
    if mock_is_set(env) and (wants_provider or is_open):
        print_stderr(translate("AI_MOCK is set: the offline planner answers, not a language model."))
    elif is_open and default_spec(env) == OFFLINE:
        text = mark(
            "No model is configured: the offline planner answers, not a language model (see `tao models`). "
            "`--model oracle` plays the suite's scripts."
        )
        print_stderr(translate(text))


def keep_for_panel(results: Results, database: Path) -> None:
    """Keep the results beside the database, and say how the panel shows them, or why it cannot."""
    try:
        keep_results(results, database)
    except OSError as error:
        text = mark("The panel will not show these results: they cannot be saved beside {path}: {reason}.")
        print_stderr(translate(text, path=database, reason=error.strerror or error))
        return
    print_stderr(
        translate("The panel shows the results and their runs: {command}", command=f"tao panel --db {database}")
    )


def write_files(results: Results, out: str | None, html: str | None) -> None:
    """Write what `--out` and `--html` ask for.

    Raises:
        ConfigError: a file cannot be written.
    """
    for name, write in ((out, write_results), (html, partial(write_page, language=interface_language()))):
        if name is None:
            continue
        try:
            write(results, expand_home(name))
        except OSError as error:
            hint = translate("The trials are kept: the same command with another path writes the results at once.")
            raise unwritable_file(name, error, hint) from error


def exit_code_for_results(results: Results, suite: Suite, outcomes: Sequence[ThresholdOutcome]) -> int:
    """The exit code that the thresholds and the comparisons with a baseline give."""
    if not all(outcome.is_met for outcome in outcomes):
        return exits.THRESHOLD
    if all(trial.passed is None for trial in results.trials):
        return exits.FOUND
    earlier = (comparison for comparison in results.comparisons if comparison.first.startswith(f"{BASELINE}: "))
    return exits.WORSE if any(worse_metrics(comparison, suite.thresholds) for comparison in earlier) else exits.OK


def drive(run: SuiteRun) -> SignalStopper:
    """Run the trials until they have ended, or a signal stops them.

    Raises:
        TaoError: says what went wrong, after how much was kept.
    """
    with SignalStopper(announce_stop) as stopper:
        try:
            stopper.drive(run.run())
        except TaoError:
            if (ended := run.progress.ended) and record_path(run.database).exists():
                text = mark(
                    "{n} trial is finished and kept; the same command goes on from there."
                    "|{n} trials are finished and kept; the same command goes on from there."
                )
                print_stderr(translate(text, n=ended))
            raise
    return stopper


def scored(run: SuiteRun, database: Path, baseline: Results | None) -> Results:
    """The results of the trials that have ended; their judges are calibrated by what people marked."""
    outcome = run.outcome()
    judged = [record.run_id for record in outcome.records if any(each.judge for each in record.checks)]
    marks = query_database(database, lambda journal: marked_runs(journal, judged)) if judged else {}
    return score(
        outcome.records,
        run.settings,
        suite=run.suite.name,
        digest=outcome.digest,
        created_at=time.time(),
        version=taoloop.__version__,
        baseline=baseline,
        judges=judge_reports(outcome.records, marks),
        notes=(*outcome.notes, *baseline_notes(run, baseline)),
        database=str(database),
    )


def baseline_notes(run: SuiteRun, baseline: Results | None) -> Iterator[str]:
    """Which configurations are not compared with the baseline, because it has none of their name."""
    known = [] if baseline is None else [each.name for each in baseline.configurations]
    lacking = [each.name for each in run.configurations if each.name not in known]
    if baseline is not None and lacking and not len(known) == len(run.configurations) == 1:
        text = mark("Not compared with the baseline, which has none of this name: {names}. It has: {known}.")
        yield translate(text, names=", ".join(lacking), known=", ".join(known))


def database_of(suite: Suite, db: str | None, env: Mapping[str, str]) -> Path:
    """The database of a suite's runs: that of `--db`, else a file of the suite's own in the user's data folder.

    Raises:
        ConfigError: `--db` is empty.
    """
    if db is None:
        return default_path(env).absolute().parent / EVALS_FOLDER / f"{suite.name}.db"
    if not db.strip():
        raise ConfigError(translate("--db is empty."), hint=translate("Name a path, or omit the option."))
    return expand_home(db).absolute()


def only_cases(suite: Suite, case_ids: tuple[str, ...] | None) -> Suite:
    """The suite with only these cases; None: all.

    Raises:
        ConfigError: it lacks one of them.
    """
    if case_ids is None:
        return suite
    known = {case.case_id for case in suite.cases()}
    for case_id in case_ids:
        if case_id not in known:
            message = translate("The suite {suite!r} has no case {case!r}.", suite=suite.name, case=case_id)
            raise ConfigError(message, hint=translate("It has: {names}.", names=", ".join(sorted(known)[:20])))
    return replace(suite, cases=lambda: (case for case in suite.cases() if case.case_id in case_ids))


def compared_axes(values: Mapping[str, tuple[str, ...]]) -> dict[Axis, tuple[Any, ...]]:
    """What the command line says of the axes of a comparison.

    Raises:
        ConfigError: a seed is no number.
    """
    axes: dict[Axis, tuple[Any, ...]] = {}
    for axis in ("models", "dialects", "policies"):
        axes[axis] = split_repeated(values[axis]) or ()
    axes["agents"] = values["agents"]
    axes["strategies"] = _split_strategies(split_repeated(values["strategies"]) or ())
    try:
        axes["seeds"] = tuple(map(int, seeds := split_repeated(values["seeds"]) or ()))
    except ValueError as error:
        names = ", ".join(seeds)
        raise ConfigError(translate("--seed takes whole numbers, not {seeds!r}.", seeds=names)) from error
    return axes


def _split_strategies(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Names of strategies: a setting (`key=value`) after a comma belongs to the strategy before it."""
    names: list[str] = []
    for part in parts:
        if names and ":" not in part and "=" in part:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return tuple(names)
