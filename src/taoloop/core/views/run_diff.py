"""Two runs side by side: where they first differ, and in what. Pure; what must differ between runs is left out.

Left out are ids, times, the nonce, latency, usage and cost. Thoughts are left out unless requested: two replies rarely
use the same words, and the actions are what counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Literal

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import Act, Answer
from taoloop.core.events import ApprovalGiven, ApprovalRefused
from taoloop.core.texts import task_with_images
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView, Step
from taoloop.core.views.transcript import input_text, observation_text

Part = Literal["prompt", "reply", "thought", "decision", "verdict", "observation", "step", "end"]

_PROMPT_FIELDS = ("instructions", "language", "dialect", "strategy", "output_schema")
_COMPARED_APART = frozenset(
    {*_PROMPT_FIELDS, "tools", "prompts", "name", "source", "workspace", "memory", "tools_from", "policy_from"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that differs, with both sides as plain data; None where a side has nothing."""

    step: int | None
    """The number of the step: 0 before the first step, None at the end."""
    part: Part
    """What kind of thing it is."""
    what: str
    """Which one."""
    a: Any
    """The first run's side."""
    b: Any
    """The second run's side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPair:
    """The step of one number in both runs, in a line each."""

    number: int
    """The number of the step, from 1."""
    a: str | None
    """The first run's step; None where it has no such step."""
    b: str | None
    """The second run's step; None where it has no such step."""
    same: bool
    """Whether nothing differs that was compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs compared."""

    differences: tuple[Difference, ...]
    """All differences in order."""
    steps: tuple[StepPair, ...]
    """Every step of the two runs."""
    settings: tuple[Difference, ...]
    """What else was set differently (model, limits …), without being a divergence: the same decisions may follow."""

    @property
    def first(self) -> Difference | None:
        """The first difference; None if the runs are the same."""
        return self.differences[0] if self.differences else None

    @property
    def same(self) -> bool:
        """True if nothing differs that was compared."""
        return not self.differences


def compare(a: Trace, b: Trace, *, decisions_only: bool = False, thoughts: bool = False) -> Comparison:
    """Compare two runs step by step.

    `decisions_only` leaves out the prompt, unreadable replies, verdicts, people's answers and observations; `thoughts`
    compares the reasons of decisions, too.
    """
    differences = [] if decisions_only else list(_prompt_differences(a, b))
    pairs = []
    for number, (first, second) in enumerate(zip_longest(a.steps, b.steps), 1):
        differing = list(_step_differences(number, first, second, decisions_only, thoughts))
        differences += differing
        pairs.append(StepPair(number=number, a=_line(first), b=_line(second), same=not differing))
    differences += _differ(None, "end", "end", _end(a), _end(b))
    return Comparison(
        differences=tuple(differences), steps=tuple(pairs), settings=tuple(_setting_differences(a.agent, b.agent))
    )


def _differ(step: int | None, part: Part, what: str, first: Any, second: Any) -> Iterator[Difference]:
    if first != second:
        yield Difference(step=step, part=part, what=what, a=first, b=second)


def _prompt_differences(a: Trace, b: Trace) -> Iterator[Difference]:
    """What the models were given before the first step."""
    differ = partial(_differ, 0, "prompt")
    tasks = ("" if run.started is None else task_with_images(run.started) for run in (a, b))
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


def _setting_differences(a: AgentSpec, b: AgentSpec) -> Iterator[Difference]:
    for name in (field.name for field in fields(AgentSpec) if field.name not in _COMPARED_APART):
        yield from _differ(0, "prompt", name, getattr(a, name), getattr(b, name))


def _step_differences(
    number: int, a: Step | None, b: Step | None, decisions_only: bool, thoughts: bool
) -> Iterator[Difference]:
    differ = partial(_differ, number)
    if a is None or b is None:
        yield Difference(step=number, part="step", what="step", a=_decision_data(a), b=_decision_data(b))
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
        yield from _call_differences(number, list(zip(a.calls, b.calls, strict=False)))


def _call_differences(number: int, calls: list[tuple[CallView, CallView]]) -> Iterator[Difference]:
    """What policy, people and tools answered to the calls of a step, in this order."""
    for part, what, view in _VIEWS:
        for index, (first, second) in enumerate(calls, 1):
            name = first.requested.tool + (f" {index}" if len(calls) > 1 else "")
            values = view(first), view(second)
            if values[0] != values[1] or (view is _observation and _digest(first) != _digest(second)):
                yield Difference(step=number, part=part, what=f"{what} {name}", a=values[0], b=values[1])


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


def _line(step: Step | None) -> str | None:
    """A step in one line: what was decided."""
    if step is None:
        return None
    match step.decision:
        case Act():
            return "; ".join(f"{call['tool']} {input_text(call['args'])}" for call in _calls(step))
        case Answer(text=text):
            return f"answer {text}"
        case _:
            return f"unreadable ({', '.join(_rejections(step))})"
