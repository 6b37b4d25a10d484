"""The retail and the airline domain of tau2-bench as desks: its tools, data and tasks, with an operator's cards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from desks.desk import Call, Database, Desk, Function, Task
from desks.tau_goals import FREE_TEXTS, goals_of, look_ups
from pydantic import TypeAdapter

from taoloop.core.cards.tool_card import ToolCard
from taoloop.evals.suites.tau_cards import DOMAINS, tau_card
from taoloop.evals.suites.tau_checkout import (
    TauTree,
    in_first_person,
    read_data,
    register_packages,
    tools_and_model,
)
from taoloop.evals.suites.tau_records import TauRecords

CHAT_YES = "Yes, please go ahead."


def load_tau2(tree: TauTree) -> tuple[Desk, ...]:
    """The desks of a copy. Each domain is four of them, which differ in what the model does and is told.

    `tau-NAME`: the calls of the task as they are in the file, for its instructions as they are. `tau-NAME-careful`:
    with the look-ups that the domain's own rules prescribe before a write. `tau-NAME-spoken`: the same for the
    instructions in the first person. `tau-NAME-chat`: the same in two turns; the second one is "yes".

    Raises:
        LookupError: it has another layout; names what is missing.
    """
    register_packages(tree)
    return tuple(desk for domain in DOMAINS for desk in _desks(tree, domain))


def _desks(tree: TauTree, domain: str) -> Iterator[Desk]:
    kind, model = tools_and_model(tree.tools_module(domain))
    names = [
        name for name, method in vars(kind).items() if callable(method) and name[0] != "_" and name != "initialize"
    ]
    data = tree.data / domain
    tables = {name: records for name, records in model.model_validate(read_data(data / "db.json")) if records}

    def new_database() -> Database:
        return {"db": model.model_construct(**{name: TauRecords(first) for name, first in tables.items()})}

    database = new_database()
    tasks = [_task(record, names, database) for record in read_data(data / "tasks.json")]
    given = Desk(
        name=f"tau-{domain}",
        cards=tuple(_card(kind, name) for name in names),
        functions={name: _function(kind, name) for name in names},
        new_database=new_database,
        tasks=tuple(tasks),
        policy_file=f"tau_{domain}",
        tasks_only=True,
    )
    looked_up = tuple(replace(task, calls=look_ups(domain, task, database)) for task in tasks)
    careful = replace(given, name=f"tau-{domain}-careful", tasks=looked_up, goals=goals_of(domain, given))
    said = tuple(replace(task, text=in_first_person(task.text)) for task in looked_up)
    yield given
    yield replace(careful, free_texts=FREE_TEXTS[domain](database), tasks_only=False)
    yield replace(careful, name=f"tau-{domain}-spoken", tasks=said)
    yield replace(careful, name=f"tau-{domain}-chat", tasks=tuple(replace(task, then=CHAT_YES) for task in said))


def _card(kind: Any, name: str) -> ToolCard:
    function = getattr(kind(None), name)
    purpose = str(function.__doc__ or name).strip().partition("\n\n")[0]
    return tau_card(name, purpose, TypeAdapter(function).json_schema())


def _function(kind: Any, name: str) -> Function:
    def invoke(database: Database, **args: Any) -> Any:
        try:
            output = getattr(kind(database["db"]), name)(**args)
        except Exception as error:
            raise LookupError(str(error)) from error
        return TypeAdapter(Any).dump_python(output, mode="json")

    return invoke


def _task(record: Mapping[str, Any], names: list[str], database: Database) -> Task:
    instructions = record["user_scenario"]["instructions"]
    if isinstance(instructions, Mapping):
        parts = (instructions.get(name) for name in ("known_info", "reason_for_call", "task_instructions"))
        instructions = "\n".join(part.strip() for part in parts if part and part.strip(" ."))
    actions = (record.get("evaluation_criteria") or {}).get("actions") or ()
    calls = tuple(Call(action["name"], dict(action["arguments"])) for action in actions if action["name"] in names)
    return Task(name=record["id"], text=instructions, customer=_customer(instructions, calls, database), calls=calls)


def _customer(text: str, calls: tuple[Call, ...], database: Database) -> str:
    """The user whom a task is about: named in it, or found by what it says."""
    users = database["db"].users
    named = [word for word in re.findall(r"\w+_\w+_\d+", text) if word in users]
    named += [str(call.args["user_id"]) for call in calls if call.args.get("user_id") in users]
    folded = text.casefold()
    for user_id, user in users.items():
        name = f"{user.name.first_name} {user.name.last_name}".casefold()
        if user.email in folded or (name in folded and user.address.zip in text):
            named.append(user_id)
    if not named:
        raise LookupError(f"no customer in: {text[:200]}")
    return str(named[0])
