"""Whether a plan can be carried out, checked before anybody is asked about it and before anything runs. Pure.

Each problem says which step it is in and what to write instead. What a value is judged by at the end is the tool's own
check when the call is made; here are the mistakes that can be seen from its card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from taoloop.core.cards.coercion import coerce_args
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import is_discovery_tool
from taoloop.core.decision import PlannedCall, PlanStep
from taoloop.core.text import lazy_pattern
from taoloop.core.value_origins import StatedOrigin, has_field, is_stated, stated_origins
from taoloop.core.views.plans import MAKE_PLAN, RUN_STEP, PlanProgress, TaskPlan, find_cycle, read_plan
from taoloop.errors import InvalidArguments
from taoloop.strategies.graph.expressions import ExpressionError, read_condition
from taoloop.strategies.graph.state_types import misfit
from taoloop.strategies.plan_execute.texts import TEXTS

Cards = Callable[[str], ToolCard | None]
"""The card of a tool by its name."""

MOST_STEPS = 100
"""How many steps a plan may have at the very most, whatever the settings say."""

RESULT = "result"
"""What a condition calls the output of the last call of its step."""

_NO_NAME = lazy_pattern(r"\W")


def name_in_conditions(tool: str) -> str:
    """What the condition of a step calls the output of a tool."""
    return _NO_NAME.sub("_", tool)


def is_plannable(card: ToolCard | None) -> bool:
    """Whether the step of a plan may call a tool: not those that make and carry out plans, hand over, or find tools."""
    if card is None or card.hands_over_to:
        return False
    return card.name not in (MAKE_PLAN, RUN_STEP) and not is_discovery_tool(card)


def normalised_plan(args: Mapping[str, Any], cards: Cards) -> dict[str, Any]:
    """The arguments of `make_plan` as they count: values corrected without loss, and each origin's step depended on."""
    if (card := cards(MAKE_PLAN)) is not None:
        args = coerce_args(args, card.input_schema)
    steps = args.get("steps")
    if not isinstance(steps, list):
        return dict(args)
    return {**args, "steps": [_normalised_step(step, cards) for step in steps]}


def _normalised_step(step: Any, cards: Cards) -> Any:
    calls = step.get("calls") if isinstance(step, Mapping) else None
    if not isinstance(calls, list):
        return step
    calls = [_normalised_call(call, cards) for call in calls]
    depends_on = step.get("depends_on") or []
    if isinstance(depends_on, list):
        named = {origin.get("step") for call in calls for origin in _stated_in(call)}
        numbers = (number for number in named if isinstance(number, int) and number != step.get("number"))
        depends_on = [*depends_on, *sorted(number for number in numbers if number not in depends_on)]
    return {**step, "calls": calls, **({"depends_on": depends_on} if depends_on else {})}


def _normalised_call(call: Any, cards: Cards) -> Any:
    args = call.get("args") if isinstance(call, Mapping) else None
    if not isinstance(args, Mapping):
        return call
    card = cards(str(call.get("tool")))
    return call if card is None else {**call, "args": coerce_args(args, card.input_schema)}


def _stated_in(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        if "from" in value and is_stated(value):
            yield value
            return
        value = value.values()
    elif not isinstance(value, list):
        return
    for part in value:
        if isinstance(part, dict | list):  # of JSON; most parts are plain values
            yield from _stated_in(part)


@dataclass(frozen=True, kw_only=True)
class _PlanCheck:
    plan: TaskPlan
    cards: Cards
    language: str
    done: Mapping[int, PlanStep] | None

    def text(self, name: str, /, **values: object) -> str:
        return TEXTS.text(self.language, f"plan_{name}", **values)

    def problems_of_step(self, step: PlanStep) -> Iterator[str]:
        if not step.goal.strip():
            yield self.text("no_goal", number=step.number)
        for other in step.depends_on:
            if not self._may_be_known(other):
                yield self.text("unknown_step", number=step.number, other=other)
        for call in step.calls:
            card = self.cards(call.tool)
            if card is None or not is_plannable(card):
                yield self.text("unknown_tool", number=step.number, tool=call.tool[:80])
            else:
                yield from self._problems_of_call(step, call, card)
        if step.calls and step.expect.strip():
            yield from self._problems_of_condition(step)

    def _problems_of_call(self, step: PlanStep, call: PlannedCall, card: ToolCard) -> Iterator[str]:
        values: dict[str, Any] = {"number": step.number, "tool": call.tool}
        is_closed = bool(card.parameters) and not card.input_schema.get("additionalProperties")
        for name in call.args:
            if is_closed and name not in card.parameters:
                yield self.text("unknown_arg", **values, name=name[:80], known=", ".join(card.parameters))
        for name in card.required:
            if name not in call.args:
                yield self.text("lacks_arg", **values, name=name)
        for name, value in call.args.items():
            if isinstance(value, dict | list) and any(True for _ in _stated_in(value)):
                yield from self._problems_of_origins(step, value)
            elif problem := misfit(value, card.parameters.get(name), card.input_schema, name):
                yield self.text("misfit", **values, problem=problem)

    def _problems_of_origins(self, step: PlanStep, value: Any) -> Iterator[str]:
        try:
            origins = [origin for _, origin in stated_origins(value)]
        except ValueError as error:
            yield self.text("origin_form", number=step.number, origin=str(error)[:120])
            return
        for origin in origins:
            yield from self._problems_of_origin(step, origin)

    def _problems_of_origin(self, step: PlanStep, origin: StatedOrigin) -> Iterator[str]:
        tool, text = origin.origin.tool, origin.origin.text
        values: dict[str, Any] = {"number": step.number, "tool": tool, "origin": text}
        card = self.cards(tool)
        if card is None:
            yield self.text("origin_tool", **values)
            return
        if card.output_schema is not None and not has_field(card.output_schema, origin.origin.path):
            yield self.text("origin_field", **values)
        if origin.step is not None:
            other = self._step(origin.step)
            if other is None and self._may_be_known(origin.step):
                return
            if other is None or (origin.step != step.number and origin.step not in self._before(step)):
                yield self.text("origin_step", **values, other=origin.step)
            elif other.calls and all(call.tool != tool for call in other.calls):
                yield self.text("origin_call", **values, other=origin.step)

    def _problems_of_condition(self, step: PlanStep) -> Iterator[str]:
        names = dict.fromkeys((*(name_in_conditions(call.tool) for call in step.calls), RESULT))
        values: dict[str, Any] = {"number": step.number, "expect": step.expect, "names": ", ".join(names)}
        try:
            unknown = read_condition(step.expect).fields - names.keys()
        except ExpressionError as error:
            yield self.text("expect", **values, problem=error)
            return
        if unknown:
            yield self.text("expect", **values, problem=", ".join(sorted(unknown)))

    def _step(self, number: int) -> PlanStep | None:
        return next((step for step in self.plan.steps if step.number == number), (self.done or {}).get(number))

    def _may_be_known(self, number: int) -> bool:
        """Whether a step exists, or may exist where nothing is known of the run."""
        if self._step(number) is not None:
            return True
        return self.done is None and 0 < number < min(step.number for step in self.plan.steps)

    def _before(self, step: PlanStep) -> set[int]:
        before, queue = set[int](), list(step.depends_on)
        while queue:
            number = queue.pop()
            other = self._step(number)
            if number not in before and other is not None:
                before.add(number)
                queue += other.depends_on
        return before


def require_plan(args: object, cards: Cards, progress: PlanProgress | None, language: str) -> None:
    """Refuse a plan that a person has edited into one that cannot be carried out.

    Raises:
        InvalidArguments: says what is wrong with it.
    """
    if problems := plan_problems(args, cards, progress, language, max_steps=MOST_STEPS):
        raise InvalidArguments(" ".join(problems))


def plan_problems(
    args: object, cards: Cards, progress: PlanProgress | None, language: str, *, max_steps: int
) -> tuple[str, ...]:
    """What is wrong with the arguments of a call of `make_plan`, in words; nothing if the plan can be carried out.

    `progress` is that of the run so far: steps that have begun keep their numbers, and those that are done may be
    depended on. None: nothing is known of the run. `max_steps` is how many steps a plan may have.
    """
    plan, card = read_plan(args), cards(MAKE_PLAN)
    if plan is not None and not plan.steps:
        return (TEXTS.text(language, "plan_empty"),)
    problem = "" if card is None else misfit(args, card.input_schema, card.input_schema)
    if plan is None or problem:
        return (TEXTS.text(language, "plan_form", problem=problem or "steps"),)
    done = None if progress is None else {number: progress.steps[number].step for number in progress.done}
    check = _PlanCheck(plan=plan, cards=cards, language=language, done=done)
    count, counts = len(plan.steps), Counter(step.number for step in plan.steps)
    first = 1 if progress is None else progress.first_number
    problems = [check.text("too_long", count=count, allowed=max_steps)] if count > max_steps else []
    problems += [check.text("number_twice", number=number) for number, times in counts.items() if times > 1]
    problems += [check.text("number_used", number=number, first=first) for number in counts if number < first]
    if problems:
        return tuple(problems)
    if cycle := find_cycle(plan):
        problems.append(check.text("cycle", numbers=" → ".join(map(str, cycle))))
    for step in plan.steps:
        problems += check.problems_of_step(step)
    return tuple(problems)
