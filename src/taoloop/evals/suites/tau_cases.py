"""tau2-bench (Barres et al. 2025) as a suite: the tools, data and tasks of a checkout that the user has.

The variable `TAU2_HOME` names the checkout. The task is what the customer writes; what the agent wants to know beyond
that it asks by `ask_customer` (`tau_customer`). Where the customer strays or gives no answer, it is the simulator's
fault, and the trial counts in no rate.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, ToolError
from taoloop.evals.fault_classes import SIMULATOR
from taoloop.evals.suites.tau_cards import DOMAINS, tau_card
from taoloop.evals.suites.tau_checkout import (
    TauTree,
    find_tau2,
    in_first_person,
    read_data,
    register_packages,
    tools_and_model,
)
from taoloop.evals.suites.tau_customer import ask_customer, first_customer_state, require_customer, stray_details
from taoloop.evals.suites.tau_records import TauRecords
from taoloop.evals.trial_records import CheckOutcome
from taoloop.evals.worlds import World, current_world
from taoloop.runtime.agent import Agent
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.tool import Tool
from taoloop.translation import Translator, mark

translate = Translator("evals")

HOME = "TAU2_HOME"
"""The variable with the folder of the checkout."""

_INSTRUCTIONS = "You serve the customers of a company. Look up who writes to you before you do anything for them."

_databases: WeakKeyDictionary[World, Any] = WeakKeyDictionary()


def __getattr__(name: str) -> Any:
    """`agent`, which is made when it is asked for: it needs the checkout."""
    if name == "agent":
        return Agent(name="tau2", instructions=_INSTRUCTIONS, tools=[*_tools(), ask_customer], redact=False)
    raise AttributeError(name)


def _home() -> str:
    return os.environ.get(HOME, "").strip()


@cache
def _tree(home: str) -> TauTree:
    tree = find_tau2(Path(home).expanduser()) if home else None
    if tree is None:
        text = mark("The suite tau2 needs a checkout of tau2-bench; {variable} is {home!r}.")
        hint = translate("Clone tau2-bench, and set {variable} to its folder.", variable=HOME)
        raise ConfigError(translate(text, variable=HOME, home=home), hint=hint)
    register_packages(tree)
    return tree


def _domain(name: str) -> tuple[Any, Any, Mapping[str, Any]]:
    """The class of tools of a domain, its class of data, and its tables."""
    return _domain_in(_home(), name)


@cache
def _domain_in(home: str, name: str) -> tuple[Any, Any, Mapping[str, Any]]:
    tree = _tree(home)
    tools_class, data_class = tools_and_model(tree.tools_module(name))
    data = data_class.model_validate(read_data(tree.data / name / "db.json"))
    return tools_class, data_class, {table: records for table, records in data if records}


def _names(tools_class: Any) -> list[str]:
    return [
        name
        for name, method in vars(tools_class).items()
        if callable(method) and name[0] != "_" and name != "initialize"
    ]


# The tools


def _tools() -> Iterator[Tool]:
    from pydantic import TypeAdapter  # noqa: PLC0415  # for this suite only

    offered = set[str]()
    for domain in DOMAINS:
        tools_class = _domain(domain)[0]
        for name in _names(tools_class):
            if name not in offered:
                offered.add(name)
                function = getattr(tools_class(None), name)
                purpose = str(function.__doc__ or name).strip().partition("\n\n")[0]
                yield tool_from_card(tau_card(name, purpose, TypeAdapter(function).json_schema()), _handler(name))


def _handler(name: str) -> Callable[..., str]:
    def call_function(**args: Any) -> str:
        world = current_world()
        if world not in _databases:
            _databases[world] = _database_after(world.state["domain"], world.state["calls"])
        try:
            result = _call(world.state["domain"], _databases[world], name, args)
        except Exception as error:
            raise ToolError(str(error)) from error
        world.state["calls"].append({"tool": name, "args": args})
        return result

    return call_function


def _call(domain: str, database: Any, name: str, args: Mapping[str, Any]) -> str:
    from pydantic import TypeAdapter  # noqa: PLC0415  # for this suite only

    output = getattr(_domain(domain)[0](database), name)(**args)
    plain = TypeAdapter(Any).dump_python(output, mode="json")
    return plain if isinstance(plain, str) else json.dumps(plain)


def _database_after(domain: str, calls: list[dict[str, Any]]) -> Any:
    """The data of a domain, after calls that succeed."""
    _, data_class, tables = _domain(domain)
    database = data_class.model_construct(**{name: TauRecords(first) for name, first in tables.items()})
    for call in calls:
        _call(domain, database, call["tool"], call["args"])
    return database


# The cases


_ASKING = {"tool_calls": [{"name": "ask_customer", "args": {"question": "Who are you?"}}]}
"""What the script `asking` does before it does what the oracle does."""


def tau_cases() -> Iterator[dict[str, Any]]:
    """A case for each task.

    Raises:
        ConfigError: there is no checkout, or the customer cannot be played by the model that is named for it.
    """
    require_customer()
    for domain in DOMAINS:
        names = _names(_domain(domain)[0])
        for record in read_data(_tree(_home()).data / domain / "tasks.json"):
            instructions = _instructions(record)
            actions = (record.get("evaluation_criteria") or {}).get("actions") or ()
            calls = [
                {"tool": action["name"], "args": dict(action["arguments"])}
                for action in actions
                if action["name"] in names
            ]
            script = [*({"tool_calls": [{"name": call["tool"], "args": call["args"]}]} for call in calls), "Done."]
            yield {
                "id": f"{domain}-{record['id']}",
                "task": in_first_person(instructions),
                "world": {
                    "domain": domain,
                    **first_customer_state(instructions),
                    "calls": [],
                    "expected": calls,
                },
                "tools": [*names, "ask_customer"],
                "expect": {"function": [f"{__name__}:is_done", f"{__name__}:keeps_to_part"]},
                "actions": calls,
                "script": script,
                "scripts": {"asking": [_ASKING, *script]},
            }


def _instructions(record: Mapping[str, Any]) -> str:
    instructions = record["user_scenario"]["instructions"]
    if not isinstance(instructions, Mapping):
        return str(instructions)
    parts = (instructions.get(name) for name in ("known_info", "reason_for_call", "task_instructions"))
    return "\n".join(part.strip() for part in parts if part and part.strip(" ."))


def is_done(answer: str | None, world: Mapping[str, Any], trace: Trace | None = None) -> bool:
    """Whether the customer has an answer and the data are as after the calls of the task, whatever was looked up."""
    if trace is None or answer is None:  # without a trace no trial was run
        return False
    after, expected = (_database_after(world["domain"], world[calls]) for calls in ("calls", "expected"))
    return bool(after == expected)


def keeps_to_part(_answer: str | None, world: Mapping[str, Any], trace: Trace | None = None) -> CheckOutcome:
    """Whether the customer answered every question, and named nothing that they could not know."""
    details = stray_details(world)
    return CheckOutcome(kind=SIMULATOR, passed=trace is not None and not details, detail="; ".join(details))
