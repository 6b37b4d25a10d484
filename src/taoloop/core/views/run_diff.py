"""Two or more runs side by side: where they first differ, and in what. Pure; what must differ is left out.

Steps are aligned by what they did, not by their number, so an additional step does not make all that follow different.
Left out are ids, times, the nonce, latency, usage and cost (`Comparison.runs` has their sums). Thoughts are left out
unless requested: two replies rarely use the same words, and the actions are what counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Literal

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import Act, Answer
from taoloop.core.events import ApprovalGiven, ApprovalRefused, Observed
from taoloop.core.texts import task_with_attachments
from taoloop.core.trace import Trace
from taoloop.core.views.action_alignment import StepAction, align_actions
from taoloop.core.views.run_figures import RunFigures, run_figures
from taoloop.core.views.steps import CallView, Step
from taoloop.core.views.transcript import input_text, observation_text

Part = Literal["prompt", "reply", "thought", "decision", "verdict", "observation", "step", "end"]

_PROMPT_FIELDS = ("instructions", "language", "dialect", "strategy", "output_schema")
_COMPARED_APART = frozenset(
    {*_PROMPT_FIELDS, "tools", "prompts", "name", "source", "workspace", "memory", "tools_from", "policy_from"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing in which a run differs from the first one, with both sides as plain data; None: a side has nothing."""

    run: int = 1
    """Which run differs: its index, where the first run has 0."""
    step: int | None
    """The number of the step in the first run: 0 before the first step; None where it has no such step, and at the
    end."""
    other_step: int | None
    """The number of the step in the run that differs, likewise."""
    part: Part
    """What kind of thing it is."""
    what: str
    """Which one."""
    a: Any
    """The first run's side."""
    b: Any
    """The side of the run that differs."""


@dataclass(frozen=True, slots=True)
class StepCell:
    """A step of one run in a row of the comparison. What it took is added up when it is asked for."""

    step: Step
    """The step."""
    differs_in: tuple[Part, ...] = ()
    """In what it differs from the first run's step of its row; `step`: the first run has none there."""

    @property
    def number(self) -> int:
        """The number of the step in its run, from 1."""
        return self.step.number

    @property
    def text(self) -> str:
        """What was decided, in one line."""
        return step_text(self.step)

    @property
    def tokens(self) -> int:
        """Tokens of its prompts and replies, and of the runs inside it."""
        usages = [reply.usage for reply in self.step.replies]
        usages += [outcome.usage for outcome in self._outcomes if outcome.usage is not None]
        return sum(usage.total_tokens for usage in usages)

    @property
    def cost_usd(self) -> float | None:
        """What its replies and the runs inside it cost, in US dollars; None if a price is unknown."""
        costs = [reply.cost_usd for reply in self.step.replies]
        costs += [outcome.cost_usd for outcome in self._outcomes if outcome.usage is not None]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    @property
    def working_s(self) -> float:
        """Seconds of its model and its calls, one after another."""
        return sum(reply.latency_s for reply in self.step.replies) + sum(seen.latency_s for seen in self._outcomes)

    @property
    def _outcomes(self) -> list[Observed]:
        return [call.observed for call in self.step.calls if call.observed is not None]

    def as_data(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "number": self.number,
            "text": self.text,
            "differs_in": list(self.differs_in),
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
            "working_s": self.working_s,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """Steps of the runs that correspond to each other."""

    cells: tuple[StepCell | None, ...]
    """The step of each run; None where a run has none that corresponds."""

    @property
    def same(self) -> bool:
        """Whether every run has the step, and nothing differs that was compared."""
        return all(cell is not None and not cell.differs_in for cell in self.cells)

    @property
    def decided_alike(self) -> bool:
        """Whether every run has the step, and decided the same in it."""
        return len({None if cell is None else cell.text for cell in self.cells}) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two or more runs compared, each with the first one."""

    runs: tuple[RunFigures, ...]
    """What each run took, in the order in which they were given."""
    differences: tuple[Difference, ...]
    """All differences: before the first step, row by row, and at the end."""
    rows: tuple[StepRow, ...]
    """Every step of the runs."""
    settings: tuple[Difference, ...]
    """What else was set differently (model, limits …), without being a divergence: the same decisions may follow."""
    is_aligned: bool
    """False where long stretches of the runs have nothing in common: their steps are paired in their order."""

    @property
    def first(self) -> Difference | None:
        """The first difference; None if the runs are the same."""
        return self.differences[0] if self.differences else None

    @property
    def same(self) -> bool:
        """True if nothing differs that was compared."""
        return not self.differences

    def as_data(self) -> dict[str, Any]:
        """All of it as plain data, but for values that are dataclasses."""
        return {
            "same": self.same,
            "first": None if self.first is None else asdict(self.first),
            "runs": [asdict(run) for run in self.runs],
            "differences": [asdict(difference) for difference in self.differences],
            "rows": [[None if cell is None else cell.as_data() for cell in row.cells] for row in self.rows],
            "settings": [asdict(setting) for setting in self.settings],
            "is_aligned": self.is_aligned,
        }

    def first_of(self, run: int) -> Difference | None:
        """The first difference of one run from the first; None if there is none."""
        return next((difference for difference in self.differences if difference.run == run), None)


def compare(a: Trace, b: Trace, *more: Trace, decisions_only: bool = False, thoughts: bool = False) -> Comparison:
    """Compare runs with the first one, step by step.

    `decisions_only` leaves out the prompt, unreadable replies, verdicts, people's answers and observations; `thoughts`
    compares the reasons of decisions, too.
    """
    others = (b, *more)
    differences = [] if decisions_only else list(_each_other(a, others, _prompt_differences))
    aligned, is_aligned = _align([a, *others])
    rows = []
    for steps in aligned:
        cells = [None if steps[0] is None else StepCell(steps[0])]
        for run, step in enumerate(steps[1:], 1):
            differing = list(_step_differences(run, steps[0], step, decisions_only, thoughts))
            differences += differing
            cells.append(None if step is None else StepCell(step, tuple(dict.fromkeys(one.part for one in differing))))
        rows.append(StepRow(cells=tuple(cells)))
    differences += _each_other(a, others, _end_differences)
    return Comparison(
        runs=tuple(map(run_figures, (a, *others))),
        differences=tuple(differences),
        rows=tuple(rows),
        settings=tuple(_each_other(a, others, _setting_differences)),
        is_aligned=is_aligned,
    )


def _each_other(
    a: Trace, others: Sequence[Trace], differ: Callable[[int, Trace, Trace], Iterator[Difference]]
) -> Iterator[Difference]:
    for run, other in enumerate(others, 1):
        yield from differ(run, a, other)


def _align(runs: Sequence[Trace]) -> tuple[list[list[Step | None]], bool]:
    """The steps of the runs in rows, one run after the other added to the rows of those before."""
    rows: list[list[Step | None]] = [[step] for step in runs[0].steps]
    actions = [_action(step) for step in runs[0].steps]
    is_complete = True
    for count, run in enumerate(runs[1:], 1):
        own_actions = [_action(step) for step in run.steps]
        alignment = align_actions(actions, own_actions)
        rows, actions = (
            [
                [*([None] * count if row is None else rows[row]), None if own is None else run.steps[own]]
                for row, own in alignment.pairs
            ],
            [own_actions[own or 0] if row is None else actions[row] for row, own in alignment.pairs],
        )
        is_complete &= alignment.is_complete
    return rows, is_complete


def _action(step: Step) -> StepAction:
    match step.decision:
        case Act():
            calls = _calls(step)
            texts = [f"{call['tool']} {json.dumps(call['args'], sort_keys=True, default=str)}" for call in calls]
            return StepAction("\n".join(texts), "\n".join(call["tool"] for call in calls))
        case Answer(text=text):
            return StepAction(f" answer {text}", " answer")  # no tool has a name that begins with a space
        case _:
            return StepAction(f" unreadable {_rejections(step)}", " unreadable")


def _differ(
    run: int,
    steps: tuple[int | None, int | None],
    part: Part,
    what: str,
    first: Any,
    second: Any,
    *,
    is_other: bool = False,
) -> Iterator[Difference]:
    """The difference of two values, if there is one; `is_other`: there is, where they do not show it."""
    if is_other or first != second:
        yield Difference(run=run, step=steps[0], other_step=steps[1], part=part, what=what, a=first, b=second)


def _prompt_differences(run: int, a: Trace, b: Trace) -> Iterator[Difference]:
    """What the models were given before the first step."""
    differ = partial(_differ, run, (0, 0), "prompt")
    tasks = ("" if run.started is None else task_with_attachments(run.started) for run in (a, b))
    yield from differ("task", *tasks)
    for name in _PROMPT_FIELDS:
        yield from differ(name, getattr(a.agent, name), getattr(b.agent, name))
    histories = [run.started.history if run.started is not None else () for run in (a, b)]
    texts = ([f"{message.role}: {message.content}" for message in history] for history in histories)
    yield from differ("history", *texts)
    cards = [{card.name: asdict(card) for card in run.agent.tools} for run in (a, b)]
    for name in dict.fromkeys([*cards[0], *cards[1]]):
        yield from differ(f"tool {name}", cards[0].get(name), cards[1].get(name))
    prompts = a.agent.prompts.texts, b.agent.prompts.texts
    for name in sorted({*prompts[0], *prompts[1]}):
        yield from differ(f"prompt {name}", prompts[0].get(name), prompts[1].get(name))


def _setting_differences(run: int, a: Trace, b: Trace) -> Iterator[Difference]:
    for name in (field.name for field in fields(AgentSpec) if field.name not in _COMPARED_APART):
        yield from _differ(run, (0, 0), "prompt", name, getattr(a.agent, name), getattr(b.agent, name))


def decision_differences(a: Step, b: Step) -> Iterator[Difference]:
    """In what the decisions of two steps differ, whatever policy, people and tools answered to them."""
    yield from _step_differences(1, a, b, decisions_only=True, thoughts=False)


def _end_differences(run: int, a: Trace, b: Trace) -> Iterator[Difference]:
    yield from _differ(run, (None, None), "end", "end", _end(a), _end(b))


def _step_differences(
    run: int, a: Step | None, b: Step | None, decisions_only: bool, thoughts: bool
) -> Iterator[Difference]:
    steps = None if a is None else a.number, None if b is None else b.number
    differ = partial(_differ, run, steps)
    if a is None or b is None:  # where neither has the step, a third run has
        yield from differ("step", "step", _decision_data(a), _decision_data(b))
        return
    if not decisions_only:
        yield from differ("reply", "unreadable replies", _rejections(a), _rejections(b))
    if thoughts:
        yield from differ("thought", "thought", *(step.decision.reason if step.decision else "" for step in (a, b)))
    if not (isinstance(a.decision, Act) and isinstance(b.decision, Act)):
        if isinstance(a.decision, Answer) and isinstance(b.decision, Answer):
            yield from differ("decision", "answer", a.decision.text, b.decision.text)
        else:
            yield from differ("decision", "decision", _decision_data(a), _decision_data(b))
        return
    called = [*zip_longest(_calls(a), _calls(b))]
    for index, (first, second) in enumerate(called, 1):
        which = f" {index}" if len(called) > 1 else ""
        if first is not None and second is not None and first["tool"] == second["tool"]:
            yield from differ("decision", f"arguments of {first['tool']}{which}", first["args"], second["args"])
        else:
            yield from differ("decision", f"call{which}", first, second)
    if not decisions_only:
        yield from _call_differences(differ, list(zip(a.calls, b.calls, strict=False)))


def _call_differences(
    differ: Callable[..., Iterator[Difference]], calls: list[tuple[CallView, CallView]]
) -> Iterator[Difference]:
    """What policy, people and tools answered to the calls of a step, in this order."""
    for part, what, view in _VIEWS:
        for index, (first, second) in enumerate(calls, 1):
            name = first.requested.tool + (f" {index}" if len(calls) > 1 else "")
            hidden = view is _observation and _digest(first) != _digest(second)
            yield from differ(part, f"{what} {name}", view(first), view(second), is_other=hidden)


def _end(trace: Trace) -> dict[str, Any]:
    """How the run ended; its answer only if no step gave it."""
    finished = trace.finished
    if finished is None or finished.status == "completed":
        return {"status": trace.status}
    return {"status": finished.status, "limit": finished.limit, "answer": finished.answer}


def _rejections(step: Step) -> list[str]:
    return [rejected.code for rejected in step.rejected]


def _calls(step: Step) -> list[dict[str, Any]]:
    """The calls of a step, with their arguments as judged if they were."""
    if step.calls:
        return [{"tool": call.requested.tool, "args": call.requested.args} for call in step.calls]
    decision = step.decision
    return [{"tool": call.tool, "args": call.args} for call in decision.calls] if isinstance(decision, Act) else []


def _decision_data(step: Step | None) -> Any:
    """The decision of a step as plain data; a text for an answer."""
    if step is None:
        return None
    match step.decision:
        case Act():
            return {"calls": _calls(step)}
        case Answer(text=text):
            return {"answer": text}
        case _:
            return {"unreadable": _rejections(step)}


def _approval(call: CallView) -> Any:
    match call.approval:
        case ApprovalGiven(args=args):
            return "allowed" if args is None else {"allowed with": dict(args)}
        case ApprovalRefused(note=note):
            return f"refused: {note}".rstrip(": ")
        case _:
            return None


def _observation(call: CallView) -> str | None:
    observed = call.observed
    return None if observed is None else f"{'ok' if observed.ok else 'failed'}: {observation_text(observed)}"


def _digest(call: CallView) -> str:
    """The digest of a long output: its preview may be the same while the whole is not."""
    return "" if call.observed is None else call.observed.output_digest


_VIEWS: tuple[tuple[Part, str, Callable[[CallView], Any]], ...] = (
    ("verdict", "verdict on", attrgetter("requested.verdict")),
    ("verdict", "answer of a person to", _approval),
    ("observation", "observation of", _observation),
)


def step_text(step: Step) -> str:
    """A step in one line: what was decided."""
    match step.decision:
        case Act():
            return "; ".join(f"{call['tool']} {input_text(call['args'])}" for call in _calls(step))
        case Answer(text=text):
            return f"answer {text}"
        case _:
            return f"unreadable ({', '.join(_rejections(step))})"
