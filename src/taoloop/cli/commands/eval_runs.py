"""`tao eval` over stored runs: suites made of them, and another model, prompt or policy tried on them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli.agent_loading import AgentOptions, with_mock_model
from taoloop.cli.database import database, load_environment, query_database
from taoloop.cli.options import split_repeated
from taoloop.cli.signals import SignalStopper, announce_stop
from taoloop.cli.translation import translate
from taoloop.cli.ui.counterfactual_view import print_counterfactual
from taoloop.cli.ui.stdio import capture_stdout, print_stderr
from taoloop.config.agent_file import load_agent
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError
from taoloop.evals.stored_runs.counterfactual import TriedChange, require_change, try_change
from taoloop.evals.stored_runs.divergences import Counterfactual
from taoloop.evals.stored_runs.run_cases import RunSuite, suite_of_runs
from taoloop.evals.stored_runs.run_selection import RunSelection, selected_runs
from taoloop.evals.suite import DEFAULT_CONCURRENCY
from taoloop.evals.trials.trial_agent import policy_named
from taoloop.journals.addresses import DatabaseAddress, journal_at
from taoloop.journals.base import Journal
from taoloop.models.model_builder import BuiltModel, build_model
from taoloop.models.settings import Retry
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.tools.settings_check import expand_home
from taoloop.translation import mark

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRunOptions:
    """The options of `tao eval` about stored runs."""

    from_runs: bool = False
    """`--from-runs`: make a suite of stored runs."""
    counterfactual: bool = False
    """`--counterfactual`: try a model, an agent or a policy on stored runs."""
    last: int = 50
    """`--last`: at most so many runs."""
    search: str | None = None
    """`--search`: words of the runs."""
    status: str | None = None
    """`--status`: their status."""
    marked: str | None = None
    """`--marked`: what people say of them."""

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> StoredRunOptions:
        """The options among the arguments of a command."""
        return cls(**{field.name: arguments[field.name] for field in fields(cls)})

    @property
    def selection(self) -> RunSelection:
        """The runs that they choose."""
        statuses = () if self.status is None else (self.status,)
        return RunSelection(last=self.last, search=self.search or "", statuses=statuses, marked=self.marked)

    def require_mode(self, suite: str | None) -> None:
        """Refuse options that say nothing without a mode, both modes at once, and a suite beside them.

        Raises:
            click.UsageError: says which option.
        """
        if self.from_runs and self.counterfactual:
            raise click.UsageError(translate("Give either --from-runs or --counterfactual."))
        if suite is not None and (self.from_runs or self.counterfactual):
            raise click.UsageError(translate("Name no SUITE with --from-runs and --counterfactual."))
        options = [name for name in ("search", "status", "marked") if getattr(self, name) is not None]
        if options and not (self.from_runs or self.counterfactual):
            text = mark("--{name} chooses stored runs: add --from-runs or --counterfactual.")
            raise click.UsageError(translate(text, name=options[0]))


def stored_run_options(command: F) -> F:
    """The options of `StoredRunOptions`."""
    for option in reversed(
        (
            click.option("--from-runs", is_flag=True, help="Make a suite of stored runs, and write it to --out."),
            click.option(
                "--counterfactual",
                is_flag=True,
                help="Try --model, --agent or --policy on stored runs, up to the first decision that differs.",
            ),
            click.option(
                "--last",
                metavar="N",
                type=click.IntRange(min=1),
                default=50,
                show_default=True,
                help="At most the newest N stored runs.",
            ),
            click.option("--search", metavar="TEXT", help="Only runs with these words, as in `tao runs`."),
            click.option("--status", type=click.Choice(list(exits.OF_STATUS)), help="Only runs of this status."),
            click.option("--marked", type=click.Choice(["right", "wrong"]), help="Only runs that people marked so."),
        )
    ):
        command = option(command)
    return command


def write_suite_of_runs(chosen: StoredRunOptions, arguments: Mapping[str, Any]) -> int:
    """`tao eval --from-runs`: make a suite of stored runs, and say what became of each.

    `arguments` are those of the command; `db`, `out` and `agents` count.

    Raises:
        ConfigError: no run fits, or the file is there or cannot be written.
        JournalError: the database cannot be read.
    """
    out, agents = arguments["out"], arguments["agents"]
    if out is None:
        raise click.UsageError(translate("Name the suite to write: --out FILE.yaml."))
    target = expand_home(out)
    if target.exists():
        hint = translate("Name another file, or remove it: a suite may hold what somebody wrote.")
        raise ConfigError(translate("{path} is there already.", path=out), hint=hint)
    path = database(arguments["db"], load_environment())

    async def make(journal: Journal) -> RunSuite:
        return await suite_of_runs(selected_runs(journal, chosen.selection), journal)

    suite = query_database(path, make)
    if not suite.cases and not suite.to_complete:
        raise _no_run(path, suite.left_out)
    if agents:
        suite.agents = Counter({str(expand_home(agents[0]).absolute()) if Path(agents[0]).exists() else agents[0]: 1})
    try:
        record = suite.write(target)
    except OSError as error:
        raise unwritable_file(out, error) from error
    with capture_stdout() as stream:
        text = mark(
            "{path}: {n} case; the tools answer from {record}|{path}: {n} cases; the tools answer from {record}"
        )
        stream.write(translate(text, path=out, n=len(suite.cases), record=record.name) + "\n")
    if count := len(suite.to_complete):
        text = mark(
            "{n} run was marked wrong: its case is a comment, to be completed."
            "|{n} runs were marked wrong: their cases are comments, to be completed."
        )
        print_stderr(translate(text, n=count))
    if len(suite.agents) > 1:
        print_stderr(translate("The runs are of several agents: name one with --agent when you run the suite."))
    _print_left_out(suite.left_out)
    return exits.OK


def _no_run(path: DatabaseAddress, reasons: Mapping[str, int]) -> ConfigError:
    _print_left_out(reasons)
    hint = translate("See which runs there are: {command}.", command="tao runs")
    return ConfigError(translate("{path}: no run fits.", path=path), hint=hint)


def _print_left_out(reasons: Mapping[str, int]) -> None:
    for reason, count in reasons.items():
        print_stderr(
            translate(mark("left out: {n} run ({reason})|left out: {n} runs ({reason})"), n=count, reason=reason)
        )


def try_on_stored_runs(chosen: StoredRunOptions, arguments: Mapping[str, Any]) -> int:
    """`tao eval --counterfactual`: go through stored runs with another model, agent or policy, and show what differs.

    `arguments` are those of the command; those that belong to suites alone do not count.

    Raises:
        ConfigError: nothing is to be tried, it cannot be used, or no run fits.
        JournalError: the database cannot be read.
    """
    env, out = load_environment(), arguments["out"]
    path, described = database(arguments["db"], env), _described(arguments)
    change, built = _change(described, env)

    async def work() -> Counterfactual:
        try:
            async with journal_at(path, read_only=True) as journal:
                return await try_change(
                    change,
                    _counted(selected_runs(journal, chosen.selection)),
                    journal,
                    described=described,
                    concurrency=arguments["concurrency"] or DEFAULT_CONCURRENCY,
                    max_cost_usd=arguments["max_cost_usd"],
                )
        finally:
            await _close(change.agent, built)

    with SignalStopper(announce_stop) as stopper:
        result = stopper.drive(work())
    if result is None:
        return stopper.code or exits.INTERRUPTED
    if not result.trials:
        raise _no_run(path, {})
    with capture_stdout() as stream:
        print_counterfactual(stream, result)
    if out is not None:
        _write_json(result, out)
    if not result.compared and any(trial.outcome == "failed" for trial in result.trials):
        return exits.OF_STATUS["model_failed"]
    return exits.FOUND if result.groups else exits.OK


def _described(arguments: Mapping[str, Any]) -> dict[str, str]:
    """What is to be tried, as the options name it.

    Raises:
        click.UsageError: an option is given twice, or one that only suites have.
    """
    described: dict[str, str] = {}
    for name, values in (
        ("agent", arguments["agents"]),
        ("model", split_repeated(arguments["models"]) or ()),
        ("policy", split_repeated(arguments["policies"]) or ()),
    ):
        if len(values) > 1:
            raise click.UsageError(translate("Give --{name} once with --counterfactual.", name=name))
        if values:
            described[name] = values[0]
    for option, name in _OF_SUITES.items():
        if arguments[name]:
            raise click.UsageError(translate("{option} is for suites, not for --counterfactual.", option=option))
    return described


_OF_SUITES = {
    "--strategy": "strategies",
    "--dialect": "dialects",
    "--seed": "seeds",
    "--trials": "trials",
    "--case": "case_ids",
    "--fresh": "fresh",
    "--remeasure": "remeasures",
    "--html": "html",
    "--baseline": "baseline",
}


def _change(described: Mapping[str, str], env: Mapping[str, str]) -> tuple[TriedChange, BuiltModel | None]:
    """What is tried, and the model that was made for it, where no agent has one.

    Raises:
        ConfigError: nothing is to be tried, or it cannot be used.
    """
    spec, policy = described.get("model"), described.get("policy")
    agent = load_agent(described["agent"], env=env) if "agent" in described else None
    built: BuiltModel | None = None
    if agent is not None:
        own = replace(agent, model=spec, fallback=()) if spec is not None else None
        agent = own or with_mock_model(agent, AgentOptions(), env)
    elif spec is not None:
        built = build_model(spec, retry=Retry(), rate=None, env=env)
    model = bind(agent).model if agent is not None else None if built is None else built.model
    change = TriedChange(agent=agent, model=model, policy=None if policy is None else policy_named(policy))
    require_change(change)
    return change, built


async def _counted(runs: AsyncIterator[Trace]) -> AsyncIterator[Trace]:
    """The runs; a terminal shows how many were begun."""
    count = 0
    async for trace in runs:
        count += 1
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{count}")
        yield trace
    if count and sys.stderr.isatty():
        sys.stderr.write("\r")


async def _close(agent: Agent | None, built: BuiltModel | None) -> None:
    if agent is not None:
        await agent.close()
    if built is not None:
        await built.close()


def _write_json(result: Counterfactual, out: str) -> None:
    try:
        text = json.dumps(result.to_json(), ensure_ascii=False, default=str)
        expand_home(out).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise unwritable_file(out, error) from error


def unwritable_file(path: str, error: OSError, hint: str = "") -> ConfigError:
    """The error about a file that an option names and that cannot be written."""
    return ConfigError(
        translate("{path} cannot be written: {reason}.", path=path, reason=error.strerror or error), hint=hint
    )
