"""Cases made of stored runs: what people asked, what a right run did and answered, and what its tools gave.

What a run did is right if a person marked it so, or if nobody marked it and it was completed: whoever reads the suite
decides. A run that was marked wrong becomes a case in comments, because nobody has said what is right.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import PAGING_TOOL
from taoloop.core.decision import PLAN_MODEL, Act, Answer
from taoloop.core.events import ApprovalGiven, ApprovalRefused, Observed
from taoloop.core.handles import READER
from taoloop.core.trace import Trace
from taoloop.core.views.marks import run_marks
from taoloop.core.views.plans import MAKE_PLAN, RUN_STEP
from taoloop.core.views.steps import CallView
from taoloop.evals.checks.text_match import normalise_for_scoring, plain_answer
from taoloop.evals.stored_runs.recorded_tools import REAL_TOOLS, RunRecord, write_record
from taoloop.journals.base import Journal
from taoloop.journals.queries import runs_inside
from taoloop.runtime.agent_toolbox import FINDERS
from taoloop.translation import Translator, mark

translate = Translator("evals")

_OWN_TOOLS = frozenset({PAGING_TOOL, READER, MAKE_PLAN, RUN_STEP, *FINDERS})
"""Tools that accompany others, and that an agent has by itself."""

_SHORT_WORDS = 6  # an answer with more is compared by the words that it shares
_NOT_RUN = ("denied", "unknown_tool", "invalid_arguments", "tool_call_limit")  # codes of calls that no tool saw

_HEAD = mark(
    "Made of stored runs. Each check was guessed from the answer: read them, and write what a right answer has.\n"
    "The tools answer what the runs recorded, and change nothing; any other call fails with `not_recorded`.\n"
    "`tao eval {path} --model oracle` repeats what the runs did."
)
_MARKED_WRONG = mark("Marked wrong{note}: write what is right under `expect`, and remove the comment signs.")


@dataclass(slots=True)
class RunSuite:
    """A suite that is being made of runs."""

    cases: list[dict[str, Any]] = field(default_factory=list)
    """The cases, as in a suite file."""
    to_complete: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    """Cases of runs that were marked wrong, each with what people said."""
    calls: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)
    """By case and tool the calls that were recorded."""
    cards: dict[str, ToolCard] = field(default_factory=dict)
    """The cards of the tools."""
    people: dict[str, str] = field(default_factory=dict)
    """What people answered to questions about calls, by tool."""
    agents: Counter[str] = field(default_factory=Counter)
    """The sources of the runs' agents, with how many runs each has; empty: not known."""
    strategies: Counter[str] = field(default_factory=Counter)
    """The strategies of the runs, with how many runs each has."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Why runs are no cases, with how many of them."""
    _tasks: set[str] = field(default_factory=set)

    async def add(self, trace: Trace, journal: Journal) -> None:
        """Make a case of a run, or note why it cannot be one."""
        if reason := self._reason_to_leave_out(trace):
            self.left_out[reason] += 1
            return
        self._tasks.add(trace.task)
        marks = run_marks(trace)
        case = case_of_run(trace)
        if marks.verdict == "wrong":
            notes = "; ".join(fact.note for fact in marks.by_person.values() if fact.note)
            self.to_complete.append(({**case, "expect": {}, "wrong_answer": case.pop("answer")}, notes))
        else:
            case.pop("answer")
            self.cases.append(case)
        self.agents[trace.agent.source or ""] += 1
        self.strategies[trace.agent.strategy] += 1
        inner = [row for row in await runs_inside(journal, trace.run_id) if ".undo-" not in row.run_id]
        traces = [trace, *[Trace(row.run_id, await journal.load(row.run_id)) for row in reversed(inner)]]
        self.calls[trace.run_id] = await _recorded_calls(traces, journal)
        self.cards |= {card.name: card for card in trace.agent.tools if card.name not in _OWN_TOOLS}
        self.people |= _answers(trace, self.people)

    def _reason_to_leave_out(self, trace: Trace) -> str:
        started = trace.started
        if started is None or trace.finished is None:
            return translate(mark("it has not ended"))
        if started.history or started.after is not None:
            return translate(mark("it continues a conversation"))
        if started.images or started.files:
            return translate(mark("its task has images or files"))
        if started.handed_over_by or trace.taken_over is not None:
            return translate(mark("another agent took it over"))
        if run_marks(trace).verdict == "disputed":
            return translate(mark("people disagree about it"))
        if trace.task in self._tasks:
            return translate(mark("a later run has the same task"))
        return ""

    def write(self, path: Path) -> Path:
        """Write the suite, and its record beside it; gives the path of the record.

        Raises:
            OSError: one of them cannot be written.
        """
        record = path.with_name(f"{path.stem}.recorded.json")
        write_record(RunRecord(cards=tuple(self.cards.values()), calls=self.calls), record)
        part = path.with_name(f"{path.name}.part")
        part.write_text(self._text(path, record), encoding="utf-8")
        part.replace(path)
        return record

    def _text(self, path: Path, record: Path) -> str:
        head: dict[str, Any] = {"suite": path.stem, "recorded": record.name}
        if len(self.agents) == 1 and (source := next(iter(self.agents))):
            head["agent"] = source
        elif len(self.strategies) == 1 and (strategy := next(iter(self.strategies))) != AgentSpec().strategy:
            head["compare"] = {"strategies": [strategy]}
        if self.people:
            head["people"] = dict(self.people)
        blocks = [_comment(translate(_HEAD, path=path.name)), _yaml(head), "cases:"]
        blocks += [_yaml([case]) for case in self.cases]
        if not self.cases:
            blocks[-1] = "cases: []"
        for case, notes in self.to_complete:
            note = f" ({notes})" if notes else ""
            blocks.append(_comment(f"{translate(_MARKED_WRONG, note=note)}\n{_yaml([case])}"))
        return "\n".join(blocks) + "\n"


async def suite_of_runs(runs: AsyncIterator[Trace], journal: Journal) -> RunSuite:
    """The suite that runs make, in their order; `journal` has the whole of their long outputs."""
    suite = RunSuite()
    async for trace in runs:
        await suite.add(trace, journal)
    return suite


def case_of_run(trace: Trace) -> dict[str, Any]:
    """A run as a case of a suite file, and its `answer`, which is none of the fields of a case."""
    finished = trace.finished
    answer = None if finished is None else finished.answer
    case: dict[str, Any] = {"id": trace.run_id, "task": trace.task, "category": "regression"}
    case["expect"] = {"status": trace.status} if answer is None or not answer.strip() else _check_of(answer)
    if actions := list(_actions(trace, is_refused=False)):
        case["actions"] = actions
    if forbidden := list(_actions(trace, is_refused=True)):
        case["forbidden"] = forbidden
    case["script"] = list(_script(trace))
    return {**case, "answer": answer or ""}


def _check_of(answer: str) -> dict[str, Any]:
    """A check that the answer passes, strict where the answer is short, and lenient where many words may say it."""
    text = plain_answer(answer)
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"number": value}
    if isinstance(value, dict | list) and value:
        return {"json_path": {"path": "$", "equals": value}}
    words = normalise_for_scoring(text).split()
    if not words:
        return {"exact": text}
    return {"em": text} if len(words) <= _SHORT_WORDS else {"f1": {"answers": [text], "at_least": 0.5}}


def _actions(trace: Trace, *, is_refused: bool) -> Iterator[dict[str, Any]]:
    """The calls that succeeded, or those that a person refused; each once."""
    digests: set[str] = set()
    for call in trace.calls.values():
        requested = call.requested
        refused = isinstance(call.approval, ApprovalRefused)
        succeeded = call.observed is not None and call.observed.ok
        if requested.tool in _OWN_TOOLS | REAL_TOOLS or requested.digest in digests:
            continue
        if refused if is_refused else succeeded:
            digests.add(requested.digest)
            yield {"tool": requested.tool, "args": _args(requested.args)}


def _args(args: Any) -> Any:
    return dict(args) if isinstance(args, Mapping) else args


def _script(trace: Trace) -> Iterator[Any]:
    """The decisions of the model, as the oracle repeats them."""
    for step in trace.steps:
        decision = step.decision
        if isinstance(decision, Act) and step.replies[0].model != PLAN_MODEL:
            yield {"tool_calls": [{"name": call.tool, "args": _args(call.args)} for call in decision.calls]}
        elif isinstance(decision, Answer):
            yield decision.text


def _answers(trace: Trace, known: Mapping[str, str]) -> dict[str, str]:
    """What people answered in a run about calls, by tool: `approve` where they allowed one at least once."""
    answers: dict[str, str] = {}
    for call in trace.calls.values():
        if isinstance(call.approval, ApprovalGiven):
            answers[call.requested.tool] = "approve"
        elif isinstance(call.approval, ApprovalRefused) and known.get(call.requested.tool) != "approve":
            answers.setdefault(call.requested.tool, "refuse")
    return answers


async def _recorded_calls(traces: Sequence[Trace], journal: Journal) -> dict[str, list[dict[str, Any]]]:
    """The calls of a run and of those inside it, such as the steps of its plan."""
    calls: dict[str, list[dict[str, Any]]] = {}
    for run_id, call in ((trace.run_id, call) for trace in traces for call in trace.calls.values()):
        name, observed = call.requested.tool, call.observed
        if name in _OWN_TOOLS | REAL_TOOLS or observed is None or not _has_run(call, observed):
            continue
        entry: dict[str, Any] = {"args": _args(call.requested.args)}
        if observed.error is not None:
            entry["error"] = {"code": observed.error.code, "message": observed.error.message}
        else:
            entry["output"] = await _whole_output(run_id, observed, journal)
        calls.setdefault(name, []).append(entry)
    return calls


def _has_run(call: CallView, observed: Observed) -> bool:
    return observed.ok or (observed.error is not None and observed.error.code not in _NOT_RUN and not call.approval)


async def _whole_output(run_id: str, observed: Observed, journal: Journal) -> Any:
    text = observed.output
    if observed.artifact is not None and (artifact := await journal.artifact(run_id, observed.artifact)) is not None:
        text = artifact.body
    try:
        return json.loads(text) if observed.form == "json" else text
    except ValueError:  # a preview whose whole output is not stored any more
        return text


def _yaml(value: Mapping[str, Any] | Sequence[Any]) -> str:
    return yaml.safe_dump(value, allow_unicode=True, sort_keys=False, width=120).rstrip()


def _comment(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())
