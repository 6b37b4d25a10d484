"""One trial: an ordinary run of its agent in a world of its own, then the checks, then the record.

A trial that an earlier process began is resumed where it was, or only checked if its run had ended.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taoloop.core.decision import Call
from taoloop.core.trace import Trace
from taoloop.core.views.run_figures import run_figures
from taoloop.errors import JournalError, RunNotFound, TaoError, ToolError
from taoloop.evals.cases import Case
from taoloop.evals.checks.check_outcomes import TrialEnd, check_end, own_outcomes
from taoloop.evals.checks.judges import Judges
from taoloop.evals.fault_classes import SANDBOX, classify_trial
from taoloop.evals.trace_counts import count_trial
from taoloop.evals.trial_records import CheckOutcome, TrialRecord
from taoloop.evals.trials.case_script import played_case
from taoloop.evals.trials.trial_agent import trial_agent, uses_files
from taoloop.evals.trials.trial_tools import bound_names
from taoloop.evals.trouble.entries import entered_troubles, read_troubles
from taoloop.evals.worlds import World, entered_world, first_state, remove_world
from taoloop.journals.base import Journal
from taoloop.runtime.agent import Agent
from taoloop.runtime.runner import Listener

SET_UP = "set_up"
"""The kind of the outcome that says why a trial could not be run."""

_ERROR_CHARS = 200

INVALID = "invalid"
"""The status of a trial that could not be run."""

_STATUSES_TO_RESUME = ("running", "stopped")
"""How a run stands that was cut off: by a crash, or by Ctrl-C or the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One trial that is to be run."""

    case: Case
    """The case."""
    digest: str
    """The digest of the case."""
    configuration: str
    """The name of the configuration."""
    number: int
    """Counts from 0 within case and configuration."""
    run_id: str
    """The id of its run, always the same for this trial."""
    agent: Agent
    """The agent of the configuration (`configured_agent`)."""
    state: Mapping[str, Any]
    """The state of the suite that the world starts from, below that of the case."""
    folder: Path
    """The folder of the trial's world."""
    judges: Judges
    """The judges of the suite."""
    may_exist: bool = True
    """Whether an earlier process may have begun its run."""
    seed: int = 0
    """Where the chance in the case's trouble begins."""


async def run_trial(
    trial: Trial, journal: Journal, listener: Listener | None = None
) -> tuple[TrialRecord, dict[str, Any]]:
    """Run a trial to its end, and check it; gives its record, and the world that its tools left (`World.snapshot`).

    What goes wrong with the trial itself (its files cannot be written, its agent refuses to start, its tools leave a
    world that is no JSON) makes an invalid record.

    Raises:
        JournalError: the journal cannot keep the trace; nothing of this trial is lost that was in it before.
    """
    with entered_trial(trial) as world:
        try:
            trace = await drive_trial(trial, world, journal, listener)
        except JournalError:
            raise
        except TaoError as error:
            return invalid_record(trial, error), world.saved_snapshot()
        except Exception as error:  # noqa: BLE001  # whatever it is, the other trials go on
            return invalid_record(trial, unexpected_error(error)), world.saved_snapshot()
        record = await _record(trial, trace, world)
        try:
            world.save()
        except ToolError as error:
            return invalid_record(trial, error), world.saved_snapshot()
    return record, world.snapshot()


async def remeasure_trial(
    trial: Trial, earlier: TrialRecord, snapshot: dict[str, Any], journal: Journal
) -> tuple[TrialRecord, dict[str, Any]] | None:
    """Check and count a finished trial again, by the checks that its case has now; nothing is run but judges.

    `earlier` is its record, `snapshot` the world that its tools left. None: its run is not stored any more, or had
    another task.
    """
    try:
        trace = Trace(earlier.run_id, await journal.load(earlier.run_id))
    except RunNotFound:
        return None
    if trace.started is None or trace.task != trial.case.task:
        return None
    world = World(trial.folder.with_name(earlier.run_id), {})
    world.restore(snapshot)
    record = await _record(replace(trial, run_id=earlier.run_id), trace, world, earlier=earlier.checks)
    return record, world.snapshot()


def remove_needless_world(trial: Trial, record: TrialRecord) -> None:
    """Remove the world of a trial that passed, once its record is stored; others are kept to be looked at.

    A function may want to check the files again (`--remeasure`): then they are kept, too.
    """
    if record.passed and all(check.kind != "function" for check in trial.case.checks):
        remove_world(trial.folder)


@contextmanager
def entered_trial(trial: Trial) -> Iterator[World]:
    """Let models and tools in the block find the world, the script and the trouble of the trial; gives the world."""
    world = World(trial.folder, first_state(trial.state, trial.case))
    troubles = read_troubles(trial.case.trouble, seed=trial.seed, trial=f"{trial.case.case_id}/{trial.number}")
    with entered_world(world), played_case(trial.case), entered_troubles(troubles):
        yield world


async def drive_trial(trial: Trial, world: World, journal: Journal, listener: Listener | None = None) -> Trace:
    """Begin or resume the run of an entered trial, and drive it to its end; gives its trace.

    Raises:
        TaoError: the agent cannot begin or resume it.
    """
    case, needs_files = trial.case, bool(trial.case.files) or uses_files(trial.agent)
    if needs_files:
        world.write_files(case.files)
    agent = trial_agent(trial.agent, folder=trial.folder if needs_files else None, journal=journal)
    earlier = await earlier_trace(trial, journal)
    if not earlier.events:
        result = await agent.run(case.task, run_id=trial.run_id, allow=case.tools, on_event=listener)
        return result.trace
    if earlier.status in _STATUSES_TO_RESUME:
        return (await agent.resume(trial.run_id, on_event=listener)).trace
    return earlier


async def earlier_trace(trial: Trial, journal: Journal) -> Trace:
    """What an earlier process has of the run; empty if it did not begin."""
    try:
        return Trace(trial.run_id, await journal.load(trial.run_id) if trial.may_exist else ())
    except RunNotFound:
        return Trace(trial.run_id)


async def _record(trial: Trial, trace: Trace, world: World, earlier: Sequence[CheckOutcome] = ()) -> TrialRecord:
    """The record of a trial that has ended; `earlier` outcomes say what its tools wrote outside their folder."""
    case, answer = trial.case, trace.finished.answer if trace.finished is not None else None
    end = TrialEnd(
        case=case, answer=answer, status=trace.status, world=world.state, files=world.files_path, trace=trace
    )
    outside = [outcome for outcome in earlier if outcome.kind == SANDBOX] or _sandbox_outcomes(world)
    outcomes = (*(await _check(end, trial.judges)), *own_outcomes(end), *outside)
    finding = classify_trial(case, trace, outcomes)
    passed = finding.passed
    scores = [outcome.score for outcome in outcomes if outcome.score is not None]
    figures = run_figures(trace)
    return TrialRecord(
        case_id=case.case_id,
        case_digest=trial.digest,
        category=case.category,
        configuration=trial.configuration,
        trial=trial.number,
        run_id=trial.run_id,
        status=trace.status,
        answer=answer,
        reason=_reason(trace),
        passed=passed,
        score=sum(scores) / len(scores) if scores else None,
        checks=outcomes,
        fault=finding.fault,
        fault_rule=finding.rule,
        abstains=case.abstains,
        abstained=end.abstained,
        counts=count_trial(trace, case, passed=passed, effects=_effects(trial, trace, world)),
        cost_usd=figures.cost_usd,
        latency_s=figures.active_s,
    )


def _reason(trace: Trace) -> str:
    """Why a run did not complete, or waits; empty if it completed."""
    end = trace.finished or trace.paused
    return "" if end is None or end.status == "completed" else " ".join(end.reason.split())


async def _check(end: TrialEnd, judges: Judges) -> list[CheckOutcome]:
    return [
        await judges.check(check, end) if check.kind == "judge" else check_end(check, end) for check in end.case.checks
    ]


def _sandbox_outcomes(world: World) -> list[CheckOutcome]:
    writes = dict.fromkeys((write.tool, str(write.path), str(write.location)) for write in world.outside_writes)
    return [
        CheckOutcome(
            kind=SANDBOX,
            passed=None,
            code="outside_write",
            values={"tool": tool, "path": path, "folder": str(world.folder), "location": location},
        )
        for tool, path, location in writes
    ]


def _effects(trial: Trial, trace: Trace, world: World) -> list[Call]:
    """The effects that the world recorded; of tools that it does not record, those that the trace says happened."""
    recorded = bound_names(trial.agent.tools)
    unrecorded = [
        Call(tool=view.requested.tool, args=view.args)
        for view in trace.calls.values()
        if view.requested.tool not in recorded and view.attempts and view.observed is not None and view.observed.ok
    ]
    return [*world.effects, *unrecorded]


def unexpected_error(error: Exception) -> CheckOutcome:
    """An error that nobody foresaw, with the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    text = f"{type(error).__name__}: {error}"[:_ERROR_CHARS]
    line = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    values = {"error": text, "line": line}
    return CheckOutcome(kind=SET_UP, passed=None, code="unexpected_error", values=values)


def invalid_record(trial: Trial, reason: CheckOutcome | TaoError) -> TrialRecord:
    """The record of a trial that could not be run; `reason` says why."""
    if isinstance(reason, TaoError):
        reason = CheckOutcome(kind=SET_UP, passed=None, detail=str(reason))
    finding = classify_trial(trial.case, None, ())
    return TrialRecord(
        case_id=trial.case.case_id,
        case_digest=trial.digest,
        category=trial.case.category,
        configuration=trial.configuration,
        trial=trial.number,
        run_id=trial.run_id,
        status=INVALID,
        answer=None,
        passed=finding.passed,
        checks=(reason,),
        fault=finding.fault,
        fault_rule=finding.rule,
        abstains=trial.case.abstains,
    )
