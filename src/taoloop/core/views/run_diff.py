"""Two runs side by side: where they first part, and in what. Pure; what must differ between runs is left out.

Left out are ids, times, the nonce, latency, usage and cost. Thoughts are left out unless they are asked for: two
replies rarely have the same words, and it is the actions that count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from itertools import zip_longest
from typing import Any, Literal

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import Act, Answer
from taoloop.core.events import ApprovalGiven, ApprovalRefused
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView, Step
from taoloop.core.views.transcript import input_text, observation_text

Part = Literal["prompt", "reply", "thought", "decision", "verdict", "observation", "step", "end"]

_PROMPT = ("instructions", "language", "dialect", "strategy", "output_schema")
_ELSEWHERE = frozenset({*_PROMPT, "tools", "prompts", "name", "source", "workspace", "memory", "tools_from"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that differs, with both sides as plain data; None where a side has nothing.

    `step` is 0 before the first step and None at the end. `part` says what kind of thing it is, `what` which one.
    """

    step: int | None
    part: Part
    what: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPair:
    """The step of one number in both runs, in a line each; None where a run has no such step."""

    number: int
    a: str | None
    b: str | None
    same: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs compared: all differences in their order, every step, and what else was set differently.

    `settings` (model, limits …) differ without being a divergence: the same decisions may come of them.
    """

    differences: tuple[Difference, ...]
    steps: tuple[StepPair, ...]
    settings: tuple[Difference, ...]

    @property
    def first(self) -> Difference | None:
        """The first divergence; None where the runs are the same."""
        return self.differences[0] if self.differences else None

    @property
    def same(self) -> bool:
        """True where nothing differs that was to be compared."""
        return not self.differences


def compare(a: Trace, b: Trace, *, decisions_only: bool = False, thoughts: bool = False) -> Comparison:
    """Compare two runs step by step.

    `decisions_only` leaves out the prompt, replies that were not readable, verdicts, people's answers and
    observations; `thoughts` compares the reasons of decisions, too.
    """
    found = [] if decisions_only else list(_prompts(a, b))
    pairs = []
    for number, (left, right) in enumerate(zip_longest(a.steps, b.steps), 1):
        differing = list(_steps(number, left, right, decisions_only, thoughts))
        found += differing
        pairs.append(StepPair(number=number, a=_line(left), b=_line(right), same=not differing))
    found += _ends(a, b)
    return Comparison(differences=tuple(found), steps=tuple(pairs), settings=tuple(_settings(a.agent, b.agent)))


def _prompts(a: Trace, b: Trace) -> Iterator[Difference]:
    """What the models were told before the first step."""

    def differ(what: str, left: Any, right: Any) -> Iterator[Difference]:
        if left != right:
            yield Difference(step=0, part="prompt", what=what, a=left, b=right)

    yield from differ("task", a.task, b.task)
    for name in _PROMPT:
        yield from differ(name, getattr(a.agent, name), getattr(b.agent, name))
    histories = [run.started.history if run.started is not None else () for run in (a, b)]
    yield from differ("history", *([f"{one.role}: {one.content}" for one in history] for history in histories))
    cards = [{card.name: asdict(card) for card in run.agent.tools} for run in (a, b)]
    for name in dict.fromkeys([*cards[0], *cards[1]]):
        yield from differ(f"tool {name}", cards[0].get(name), cards[1].get(name))
    texts = a.agent.prompts.texts, b.agent.prompts.texts
    for name in sorted({*texts[0], *texts[1]}):
        yield from differ(f"prompt {name}", texts[0].get(name), texts[1].get(name))


def _settings(a: AgentSpec, b: AgentSpec) -> Iterator[Difference]:
    for name in (one.name for one in fields(AgentSpec) if one.name not in _ELSEWHERE):
        left, right = getattr(a, name), getattr(b, name)
        if left != right:
            yield Difference(step=0, part="prompt", what=name, a=left, b=right)


def _steps(number: int, a: Step | None, b: Step | None, decisions_only: bool, thoughts: bool) -> Iterator[Difference]:
    def differ(part: Part, what: str, left: Any, right: Any) -> Iterator[Difference]:
        if left != right:
            yield Difference(step=number, part=part, what=what, a=left, b=right)

    if a is None or b is None:
        yield Difference(step=number, part="step", what="step", a=_decided(a), b=_decided(b))
        return
    if not decisions_only:
        yield from differ("reply", "unreadable replies", _rejections(a), _rejections(b))
    if thoughts:
        yield from differ("thought", "thought", *(one.decision.reason if one.decision else "" for one in (a, b)))
    if not (isinstance(a.decision, Act) and isinstance(b.decision, Act)):
        if isinstance(a.decision, Answer) and isinstance(b.decision, Answer):
            yield from differ("decision", "answer", a.decision.text, b.decision.text)
        else:
            yield from differ("decision", "decision", _decided(a), _decided(b))
        return
    called = [*zip_longest(_calls(a), _calls(b))]
    for index, (left, right) in enumerate(called, 1):
        which = f" {index}" if len(called) > 1 else ""
        if left is not None and right is not None and left["tool"] == right["tool"]:
            yield from differ("decision", f"arguments of {left['tool']}{which}", left["args"], right["args"])
        else:
            yield from differ("decision", f"call{which}", left, right)
    if not decisions_only:
        yield from _answered(number, list(zip(a.calls, b.calls, strict=False)))


def _answered(number: int, calls: list[tuple[CallView, CallView]]) -> Iterator[Difference]:
    """What policy, people and the world said to the calls of a step, in this order."""
    for part, what, view in _VIEWS:
        for index, (left, right) in enumerate(calls, 1):
            name = left.requested.tool + (f" {index}" if len(calls) > 1 else "")
            told = view(left), view(right)
            if told[0] != told[1] or (view is _seen and _digest(left) != _digest(right)):
                yield Difference(step=number, part=part, what=f"{what} {name}", a=told[0], b=told[1])


def _ends(a: Trace, b: Trace) -> Iterator[Difference]:
    left, right = _end(a), _end(b)
    if left != right:
        yield Difference(step=None, part="end", what="end", a=left, b=right)


def _end(trace: Trace) -> dict[str, Any]:
    """How the run stands; its answer only where no step gave it."""
    finished = trace.finished
    if finished is None or finished.status == "completed":
        return {"status": trace.status}
    return {"status": finished.status, "limit": finished.limit, "answer": finished.answer}


def _rejections(step: Step) -> list[str]:
    return [rejected.code for rejected in step.rejected]


def _calls(step: Step) -> list[dict[str, Any]]:
    """What was asked for, with arguments as they were judged where they were."""
    if step.calls:
        return [{"tool": call.requested.tool, "args": call.requested.args} for call in step.calls]
    decision = step.decision
    return [{"tool": call.tool, "args": call.args} for call in decision.calls] if isinstance(decision, Act) else []


def _decided(step: Step | None) -> Any:
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


def _verdict(call: CallView) -> Any:
    return call.requested.verdict


def _approval(call: CallView) -> Any:
    match call.approval:
        case ApprovalGiven(args=args):
            return "allowed" if args is None else {"allowed with": dict(args)}
        case ApprovalRefused(note=note):
            return f"refused: {note}".rstrip(": ")
        case _:
            return None


def _seen(call: CallView) -> str | None:
    observed = call.observed
    return None if observed is None else f"{'ok' if observed.ok else 'failed'}: {observation_text(observed)}"


def _digest(call: CallView) -> str:
    """That of a long output: its preview may be the same where the whole is not."""
    return "" if call.observed is None else call.observed.output_digest


_VIEWS: tuple[tuple[Part, str, Callable[[CallView], Any]], ...] = (
    ("verdict", "verdict on", _verdict),
    ("verdict", "answer of a person to", _approval),
    ("observation", "observation of", _seen),
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
