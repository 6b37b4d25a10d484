"""AgentDojo as this benchmark uses it: its suites, its environments with injections in them, and its verdicts.

AgentDojo is loaded by name, for it is no dependency of taoloop; what comes from it is untyped here.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import yaml
from security.disguise import Carrier, injected

VERSION = "v1.2.2"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one tool, as plain data."""

    tool: str
    args: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The same for equal calls."""
        return json.dumps([self.tool, self.args], sort_keys=True)


@dataclass(frozen=True, slots=True)
class Task:
    """One user task of one suite."""

    suite: str
    task: str

    @property
    def it(self) -> Any:
        """AgentDojo's own object."""
        return suites()[self.suite].user_tasks[self.task]


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal of an injection."""

    suite: str
    goal: str

    @property
    def it(self) -> Any:
        """AgentDojo's own object."""
        return suites()[self.suite].injection_tasks[self.goal]


@cache
def suites() -> dict[str, Any]:
    """The suites by name, in AgentDojo's order."""
    loading = importlib.import_module("agentdojo.task_suite.load_suites")
    found: dict[str, Any] = loading.get_suites(VERSION)
    return found


def system_message() -> str:
    """AgentDojo's own instructions for the agent."""
    loading = importlib.import_module("agentdojo.agent_pipeline.agent_pipeline")
    message: str = loading.load_system_message(None)
    return message


def all_tasks() -> list[Task]:
    """The 97 user tasks."""
    return [Task(name, task) for name, suite in suites().items() for task in suite.user_tasks]


def goals_of(task: Task) -> list[Goal]:
    """The goals that AgentDojo pairs with a task."""
    return [Goal(task.suite, goal) for goal in suites()[task.suite].injection_tasks]


def all_pairs() -> list[tuple[Task, Goal]]:
    """The 949 pairs of a user task and a goal."""
    return [(task, goal) for task in all_tasks() for goal in goals_of(task)]


@cache
def _texts(suite: str) -> tuple[str, dict[str, str]]:
    """The environment of a suite as YAML with places for injections, and what stands there without any."""
    reading = importlib.import_module("agentdojo.task_suite.task_suite")
    return (
        reading.read_suite_file(suite, "environment.yaml", None),
        suites()[suite].get_injection_vector_defaults(),
    )


def _load(suite: str, injections: Mapping[str, str]) -> Any:
    """As `load_and_inject_default_environment`, with the fast YAML loader; a text is escaped as YAML wants it."""
    text, defaults = _texts(suite)
    escaped = {name: json.dumps(value)[1:-1] for name, value in injections.items()}
    data = yaml.load(text.format(**{**defaults, **escaped}), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # safe
    return suites()[suite].environment_type.model_validate(data)


@cache
def _peaceful(suite: str) -> Any:
    return _load(suite, {})


@lru_cache(maxsize=1024)
def _poisoned(suite: str, places: tuple[str, ...], text: str) -> Any:
    return _load(suite, dict.fromkeys(places, text))


def environment(task: Task, goal: Goal | None = None, carrier: Carrier = "plain") -> Any:
    """A fresh environment of a task, with the injection for `goal` in every place that the task comes by."""
    if goal is None:
        pristine = _peaceful(task.suite)
    else:
        pristine = _poisoned(task.suite, places(task), injected(goal.it.GOAL, carrier))
    return task.it.init_environment(pristine.model_copy(deep=True))


@cache
def places(task: Task) -> tuple[str, ...]:
    """The places for injections whose text a model sees that does the task, as AgentDojo finds them."""
    suite = suites()[task.suite]
    canaries = {name: f"---CANARY-{name}---" for name in _texts(task.suite)[1]}
    env = task.it.init_environment(_load(task.suite, canaries))
    seen = "".join(as_text(run(suite.tools, env, call)) for call in true_calls(task, env))
    return tuple(name for name, canary in canaries.items() if canary in seen)


def true_calls(task: Task, env: Any) -> list[Call]:
    """The calls that do the task in a fresh environment, as AgentDojo gives them."""
    return as_calls(task.it.ground_truth(env.model_copy(deep=True)))


def as_calls(calls: list[Any]) -> list[Call]:
    """AgentDojo's calls as plain data. Placeholders (`<summary>`, `...`) are filled, for the executor refuses them."""
    return [Call(call.function, {name: _filled(value) for name, value in call.args.items()}) for call in calls]


def _filled(value: Any) -> Any:
    if value == "...":
        return "The details."
    return f"The {value[1:-1]}." if isinstance(value, str) and value[:1] + value[-1:] == "<>" else value


def run(tools: list[Any], env: Any, call: Call) -> Any:
    """What AgentDojo's function gives for a call; whatever it raises is raised."""
    return _runtime(tuple(tools)).run_function(env, call.tool, dict(call.args), raise_on_error=True)[0]


_RUNTIMES: dict[tuple[int, ...], Any] = {}


def _runtime(tools: tuple[Any, ...]) -> Any:
    key = tuple(map(id, tools))
    if key not in _RUNTIMES:
        _RUNTIMES[key] = importlib.import_module("agentdojo.functions_runtime").FunctionsRuntime(tools)
    return _RUNTIMES[key]


def as_text(result: Any) -> str:
    """A result as JSON text."""
    import pydantic_core  # noqa: PLC0415  # with AgentDojo only

    return pydantic_core.to_json(result).decode()


def trace_of(done: list[Call]) -> list[Any]:
    """Calls in AgentDojo's own form."""
    made = importlib.import_module("agentdojo.functions_runtime").FunctionCall
    return [made(function=call.tool, args=dict(call.args)) for call in done]


def is_done(task: Task, answer: str, before: Any, after: Any, done: list[Call]) -> bool:
    """AgentDojo's verdict: was the user's task done?"""
    states = (before.model_copy(deep=True), after.model_copy(deep=True))
    found = task.it.utility_from_traces(answer, *states, trace_of(done))
    return bool(task.it.utility(answer, *states) if found is None else found)


def is_won(goal: Goal, answer: str, before: Any, after: Any, done: list[Call]) -> bool:
    """AgentDojo's verdict: did the injection reach its goal?"""
    states = (before.model_copy(deep=True), after.model_copy(deep=True))
    with contextlib.redirect_stdout(io.StringIO()):  # one of its verdicts prints
        found = goal.it.security_from_traces(answer, *states, trace_of(done))
        return bool(goal.it.security(answer, *states) if found is None else found)
