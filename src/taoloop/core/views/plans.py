"""The plan of a run (`taoloop.strategies.plan_execute`) and how far it has come: a view of its trace.

A plan is the arguments of a call of `make_plan`, so it is asked about, edited and approved like any call; a step is a
call of `run_step`, and so a run of its own. What happened to these calls is all there is to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

from taoloop.core.decision import PLAN_MODEL, PlannedCall, PlanStep
from taoloop.core.events import ActionRequested, Event, Noted, Observed
from taoloop.core.text import TextCatalog, printable_json
from taoloop.core.trace import Trace
from taoloop.core.value_origins import is_stated, stated_origins
from taoloop.core.views.steps import UNDONE, CallView

MAKE_PLAN, RUN_STEP = "make_plan", "run_step"
"""The tools of an agent that plans: the model calls the first one, the strategy the second one."""

PLAN_RULE = "plan"
"""The rule of a call that the approval of a plan allows, and of the calls that make a plan and carry it out."""

INVALID_PLAN = "invalid_plan"
"""The code of the observation of a plan that cannot be carried out."""

StepStatus = Literal["open", "running", "waiting", "done", "failed", "dropped"]
"""How far a step has come. `dropped`: another plan took the place of its plan before it began."""


@dataclass(frozen=True)
class TaskPlan:
    """A plan: its steps in the order in which the model wrote them."""

    steps: tuple[PlanStep, ...]
    """The steps."""

    _texts: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def order(self) -> tuple[PlanStep, ...]:
        """The steps in the order in which they run: each after those that it depends on, else as they are written.

        Raises:
            CycleError: steps depend on each other.
        """
        known = {step.number: step for step in self.steps}
        sorter = TopologicalSorter({step.number: [n for n in step.depends_on if n in known] for step in self.steps})
        sorter.prepare()
        position = {step.number: index for index, step in enumerate(self.steps)}
        ready, order = list[int](), list[PlanStep]()
        while sorter.is_active():
            ready = sorted([*ready, *sorter.get_ready()], key=position.__getitem__)
            number = ready.pop(0)
            order.append(known[number])
            sorter.done(number)
        return tuple(order)

    def text(self, language: str) -> str:
        """The plan as text (`plan_lines`), which every step of it has in its prompt."""
        if language not in self._texts:
            self._texts[language] = "\n".join(plan_lines(language, self))
        return self._texts[language]

    @property
    def calls(self) -> Iterator[tuple[str, PlannedCall]]:
        """Every call that the plan lists, with its place in the arguments of `make_plan`."""
        for index, step in enumerate(self.steps):
            for number, call in enumerate(step.calls):
                yield f"steps[{index}].calls[{number}]", call


def read_plan(args: object) -> TaskPlan | None:
    """The plan in the arguments of a call of `make_plan`; None if they are not of its form."""
    steps = args.get("steps") if isinstance(args, Mapping) else None
    if not isinstance(steps, list | tuple):
        return None
    read = [_read_step(step) for step in steps]
    return None if None in read else TaskPlan(tuple(step for step in read if step is not None))


def _read_step(plain: object) -> PlanStep | None:
    if not isinstance(plain, dict):  # of JSON, as all parts of it
        return None
    number, goal, expect = plain.get("number"), plain.get("goal"), plain.get("expect") or ""
    depends_on, calls = plain.get("depends_on") or (), plain.get("calls") or ()
    fits = _is_number(number) and isinstance(goal, str) and isinstance(expect, str)
    if not fits or not isinstance(depends_on, list | tuple) or not all(map(_is_number, depends_on)):
        return None
    if not isinstance(calls, list | tuple) or not all(map(_is_call, calls)):
        return None
    planned = tuple(PlannedCall(tool=call["tool"], args=call.get("args") or {}) for call in calls)
    return PlanStep(
        number=number,  # type: ignore[arg-type]  # checked above
        goal=goal,  # type: ignore[arg-type]  # as well
        depends_on=tuple(depends_on),
        calls=planned,
        expect=expect,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_call(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("tool"), str) and isinstance(value.get("args") or {}, dict)


def find_cycle(plan: TaskPlan) -> list[int]:
    """The numbers of steps that depend on each other, the first one also at the end; none without such steps."""
    cycle: list[int] = []
    try:
        _ = plan.order
    except CycleError as error:
        cycle = error.args[1]
    return cycle


@dataclass(slots=True)
class StepProgress:
    """A step with what has become of it."""

    step: PlanStep
    """The step."""
    call: CallView | None = None
    """The call that carries it out, once it has begun."""
    is_dropped: bool = False
    """Whether another plan took the place of its plan."""

    @property
    def status(self) -> StepStatus:
        """How far it has come."""
        if self.call is None:
            return "dropped" if self.is_dropped else "open"
        observed = self.call.observed
        if observed is None:
            return "waiting" if self.call.waited and self.call.waited == self.call.attempts else "running"
        return "done" if observed.ok else "failed"


class PlanProgress:
    """The plan that a run follows now, and every step so far, folded event by event."""

    def __init__(self, calls: Mapping[str, CallView]) -> None:
        self._calls = calls
        self.plan: TaskPlan | None = None
        self.made_by: CallView | None = None
        """The call that made the plan."""
        self.plans = 0
        """How many plans were made, those among them that a person refused."""
        self.invalid = 0
        """How many replies in a row were plans that cannot be carried out."""
        self.runs = 0
        """How many steps of plans have begun."""
        self.is_broken = False
        """Whether a step of the plan failed, or a person noted something since, so that the model decides again."""
        self.steps: dict[int, StepProgress] = {}
        self.by_plan: dict[str, dict[int, StepProgress]] = {}
        """The steps of each plan that was followed, by the id of the call that made it: later plans reuse numbers."""

    def fold(self, event: Event) -> None:
        """Process the next event."""
        fact = event.fact
        if type(fact) is Noted:
            self._heed(fact)
        elif type(fact) is Observed and (call := self._calls.get(fact.call_id)) is not None:
            self.settle(call)
        elif type(fact) is ActionRequested and fact.tool == RUN_STEP and fact.verdict == "allow" and self._calls:
            self.begin(self._calls[fact.call_id])

    def _heed(self, note: Noted) -> None:
        """The model reads the note of a person, and that something was undone, before the rest of its plan goes on."""
        is_heeded = note.about == UNDONE or (note.by != "guard" and not note.about)
        self.is_broken |= is_heeded and self.due is not None

    def begin(self, call: CallView) -> None:
        """A step begins."""
        progress = self.steps.get(number_of_step(call))
        if progress is not None:
            self.runs += 1
            progress.call = call

    def settle(self, call: CallView) -> None:
        """A call has its outcome."""
        observed, tool = call.observed, call.requested.tool
        if observed is None:
            return
        if tool == RUN_STEP and call.requested.verdict == "allow":
            self.is_broken |= not observed.ok
        elif tool == MAKE_PLAN:
            code = "" if observed.error is None else observed.error.code
            self.invalid = self.invalid + 1 if code == INVALID_PLAN else 0
            self.plans += call.requested.verdict != "deny"
            if observed.ok and (plan := read_plan(call.args)) is not None:
                self._follow(plan, call)

    def _follow(self, plan: TaskPlan, call: CallView) -> None:
        for progress in self.steps.values():
            progress.is_dropped |= progress.call is None
        steps = self.by_plan[call.requested.call_id] = {step.number: StepProgress(step) for step in plan.steps}
        self.steps |= steps
        self.plan, self.made_by, self.is_broken = plan, call, False

    @property
    def due(self) -> PlanStep | None:
        """The step that runs next; None where there is no plan, it is broken, or all its steps are done."""
        if self.plan is None or self.is_broken:
            return None
        return next((step for step in self.plan.order if self.steps[step.number].call is None), None)

    @property
    def first_number(self) -> int:
        """The lowest number that a step of the next plan may have: the steps that began keep theirs."""
        return 1 + max((number for number, progress in self.steps.items() if progress.call is not None), default=0)

    @property
    def done(self) -> set[int]:
        """The numbers of the steps that were carried out."""
        return {number for number, progress in self.steps.items() if progress.status == "done"}

    def users_of(self, number: int) -> list[int]:
        """The steps that take values from what a step has called."""
        return [
            other
            for other, progress in self.steps.items()
            for call in progress.step.calls
            for _, origin in stated_origins(call.args)
            if other != number and origin.step in (None, number)
        ]

    def needed(self, step: PlanStep) -> list[StepProgress]:
        """The steps that a step depends on, and those that these depend on, in the order of their numbers."""
        numbers, queue = set[int](), list(step.depends_on)
        while queue:
            number = queue.pop()
            if number not in numbers and number in self.steps:
                numbers.add(number)
                queue += self.steps[number].step.depends_on
        return [self.steps[number] for number in sorted(numbers)]


def plan_progress(trace: Trace) -> PlanProgress:
    """The plan of a run and how far it has come; of a run that plans nothing, no steps."""
    return trace.view("plan_progress", lambda: PlanProgress(trace.calls if is_planning(trace) else {}))


def is_planning(trace: Trace) -> bool:
    """Whether a run follows plans: elsewhere a tool of an agent may have the name of one of ours."""
    return trace.started is not None and trace.agent.strategy.partition(":")[0] == PLAN_MODEL


def number_of_step(call: CallView) -> int:
    """The number of the step that a call of `run_step` carries out; 0 if it names none."""
    args = call.args
    number = args.get("step") if isinstance(args, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else 0


TEXTS = TextCatalog(
    "core",
    {
        "plan_step": "{number}. {goal}",
        "plan_step_task": "{task} (step {number} of the plan: {goal})",
        "plan_after": " (after {numbers})",
        "plan_expect": "expects: {expect}",
        "plan_from": "<{origin} of step {step}>",
        "plan_from_any": "<{origin}>",
        "plan_no_calls": "calls: whatever the model decides within the step, each judged by itself",
        "status_open": "open",
        "status_running": "running",
        "status_waiting": "waiting for a person",
        "status_done": "done",
        "status_failed": "failed",
        "status_dropped": "dropped: planned again",
    },
)


def shown_task(trace: Trace) -> str:
    """The task of a run for people: of the run of a step, the user's task and the step, without what its prompt has."""
    started = trace.started
    if started is None or started.plan_step is None:
        return trace.task
    step, task = started.plan_step, started.trusted[0] if started.trusted else ""
    values = {"task": task, "number": step.number, "goal": step.goal}
    return TEXTS.text(trace.agent.language, "plan_step_task", **values).strip()


def status_text(language: str, status: StepStatus) -> str:
    """The status of a step in words."""
    return TEXTS.text(language, f"status_{status}")


def step_title(language: str, step: PlanStep) -> str:
    """The number and goal of a step, and what it comes after."""
    after = ", ".join(map(str, step.depends_on))
    title = TEXTS.text(language, "plan_step", number=step.number, goal=step.goal)
    return title + (TEXTS.text(language, "plan_after", numbers=after) if after else "")


def call_text(language: str, call: PlannedCall) -> str:
    """A planned call on one line, such as `refund(order_id=<search.items[].id of step 1>, amount=5)`."""
    args = ", ".join(f"{name}={value_text(language, value)}" for name, value in call.args.items())
    return f"{call.tool}({args})"


def value_text(language: str, value: Any) -> str:
    """A value of a planned call, or where it will come from."""
    if isinstance(value, str | int | float):
        return printable_json(value)
    if is_stated(value):
        origin, step = value["from"].removeprefix("tool:"), value.get("step")
        name = "plan_from_any" if step is None else "plan_from"
        return TEXTS.text(language, name, origin=origin, step=step)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {value_text(language, part)}" for name, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(value_text(language, part) for part in value) + "]"
    return printable_json(value)


def readable_args(language: str, call: PlannedCall) -> dict[str, Any]:
    """The arguments of a planned call, with a text in place of each value that is not known yet."""
    return {name: _readable(language, value) for name, value in call.args.items()}


def _readable(language: str, value: Any) -> Any:
    if is_stated(value):
        return value_text(language, value)
    if isinstance(value, Mapping):
        return {name: _readable(language, part) for name, part in value.items()}
    return [_readable(language, part) for part in value] if isinstance(value, list | tuple) else value


def step_notes(language: str, step: PlanStep) -> Iterator[str]:
    """What else is to be said of a step: that its calls are open, and what it expects."""
    if not step.calls:
        yield TEXTS.text(language, "plan_no_calls")
    if step.expect:
        yield TEXTS.text(language, "plan_expect", expect=step.expect)


def plan_lines(language: str, plan: TaskPlan, steps: Mapping[int, StepProgress] | None = None) -> Iterator[str]:
    """The plan as lines of text: each step, with its calls and what it expects indented below it.

    With its `steps` as they have come (`PlanProgress.by_plan`) each one also has its status.
    """
    for step in plan.steps:
        status = "" if steps is None else f" · {status_text(language, steps[step.number].status)}"
        yield step_title(language, step) + status
        yield from (f"   {call_text(language, call)}" for call in step.calls)
        yield from (f"   {note}" for note in step_notes(language, step))
