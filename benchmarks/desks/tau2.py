"""The retail and the airline domain of tau2-bench as desks: its tools, data and tasks, with an operator's cards.

Two layouts are known, with the same data: the repository (`src/tau2/domains/{retail,airline}/` with `tools.py`, and
`data/tau2/domains/{retail,airline}/` with `db.json` and `tasks.json`), and the package `inspect_evals`
(`inspect_evals/tau2/{retail,airline}/*AgentTools.py`, and `data/domains/{retail,airline}/` beside them). Only the tools
and the data models are executed; of what they import, small stand-ins take the place of whatever is not theirs.
"""

from __future__ import annotations

import gzip
import importlib
import json
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from desks.desk import Call, Database, Desk, Function, Task
from desks.records import Records
from desks.tau_cards import DOMAINS, tau_card
from desks.tau_goals import FREE_TEXTS, goals_of, look_ups
from pydantic import BaseModel, TypeAdapter

from taoloop.core.cards.tool_card import ToolCard

CHAT_YES = "Yes, please go ahead."


@dataclass(frozen=True, slots=True)
class Tree:
    """Where the parts of a copy are."""

    package: str
    """The name of the package with the domains."""
    code: Path
    """Its folder."""
    domains: str
    """The package of a domain, within that package, before its name."""
    data: Path
    """The folder with a folder of each domain."""

    def tools_module(self, domain: str) -> str:
        """The module with the class of tools."""
        folder = self.code.joinpath(*filter(None, self.domains.split(".")), domain)
        names = [path.stem for path in sorted(folder.glob("*AgentTools.py"))] or ["tools"]
        return f"{self.package}.{self.domains}{'.' if self.domains else ''}{domain}.{names[0]}"


def find_tau2(root: Path) -> Tree | None:
    """The parts of a copy at or below a folder, if there is one."""
    for code in (root / "src" / "tau2", root / "tau2", root / "inspect_evals" / "tau2", root):
        for data in (root / "data" / "tau2" / "domains", code / "data" / "domains"):
            if not all((data / domain / "tasks.json").is_file() for domain in DOMAINS):
                continue
            if all((code / "domains" / domain / "tools.py").is_file() for domain in DOMAINS):
                return Tree("tau2", code, "domains", data)
            if all(any((code / domain).glob("*AgentTools.py")) for domain in DOMAINS):
                return Tree("inspect_evals.tau2", code, "", data)
    return None


def load_tau2(tree: Tree) -> tuple[Desk, ...]:
    """The desks of a copy. Each domain is four of them, which differ in what the model does and is told.

    `tau-NAME`: the calls of the task as they are in the file, for its instructions as they are. `tau-NAME-careful`:
    with the look-ups that the domain's own rules prescribe before a write. `tau-NAME-spoken`: the same for the
    instructions in the first person. `tau-NAME-chat`: the same in two turns; the second one is "yes".

    Raises:
        LookupError: it has another layout; names what is missing.
    """
    _register_packages(tree)
    return tuple(desk for domain in DOMAINS for desk in _desks(tree, domain))


def _desks(tree: Tree, domain: str) -> Iterator[Desk]:
    kind, model = _tools_and_model(tree.tools_module(domain))
    names = [
        name for name, method in vars(kind).items() if callable(method) and name[0] != "_" and name != "initialize"
    ]
    data = tree.data / domain
    tables = {name: records for name, records in model.model_validate(_read(data / "db.json")) if records}

    def new_database() -> Database:
        return {"db": model.model_construct(**{name: Records(first) for name, first in tables.items()})}

    database = new_database()
    tasks = [_task(record, names, database) for record in _read(data / "tasks.json")]
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
    said = tuple(replace(task, text=_in_first_person(task.text)) for task in looked_up)
    yield given
    yield replace(careful, free_texts=FREE_TEXTS[domain](database), tasks_only=False)
    yield replace(careful, name=f"tau-{domain}-spoken", tasks=said)
    yield replace(careful, name=f"tau-{domain}-chat", tasks=tuple(replace(task, then=CHAT_YES) for task in said))


def _read(path: Path) -> Any:
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    packed = path.with_name(path.name + ".gz")
    if not packed.is_file():
        raise LookupError(f"no {path} and no {packed}")
    return json.loads(gzip.decompress(packed.read_bytes()))


def _tools_and_model(name: str) -> tuple[Any, Any]:
    """The class of tools in a module, and that of its database."""
    module = importlib.import_module(name)
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == name and kind.__name__.endswith("Tools"):
            return kind, typing.get_type_hints(kind)["db"]
    raise LookupError(f"{name} has no class of tools")


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


_FIRST_PERSON = (
    (r"\byou are\b", "I am"),
    (r"\band are\b", "and am"),
    (r"\byou're\b", "I'm"),
    (r"\byou were\b", "I was"),
    (r"\byou've\b", "I've"),
    (r"\byou'd\b", "I'd"),
    (r"\byourself\b", "myself"),
    (r"\byours\b", "mine"),
    (r"\byour\b", "my"),
    (r"\b(to|for|of|with|from|give|gives|tell|tells|help|helps|ask|asks|charge|compensate) you\b", r"\1 me"),
    (r"\byou\b", "I"),
)


def _in_first_person(text: str) -> str:
    """Instructions to somebody who plays a customer, as that customer would write them."""
    for pattern, words in _FIRST_PERSON:
        text = re.sub(pattern, words, text, flags=re.IGNORECASE)
    return text


class _Tools:
    """In place of the base class of tools."""

    def __init__(self, db: Any = None) -> None:
        self.db = db


def _as_it_is(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """In place of a decorator with arguments."""
    return lambda function: function


class _StandIn(ModuleType):
    """A module that is not there: bases of models and tools, an exception, decorators, and names for anything else."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.endswith("Error"):
            return type(name, (ValueError,), {})
        bases: dict[str, Any] = {"StoreModel": _Tools, "ToolKitBase": _Tools, "DB": BaseModel}
        return bases.get(name) or _Anything()


class _Anything:
    """Any name of a module that is not there: an enumeration, a decorator, a logger, a path."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _as_it_is(*args, **options)


def _register_packages(tree: Tree) -> None:
    """Make the packages known without executing their `__init__`, and stand-ins for what the tools do not need."""
    for name in [name for name in sys.modules if name == "tau2" or name.startswith(("tau2.", tree.package))]:
        del sys.modules[name]
    _register("inspect_evals", tree.code.parent)
    for name in (tree.package, *([f"{tree.package}.{tree.domains}"] if tree.domains else [])):
        _register(name, tree.code if name == tree.package else tree.code / tree.domains)
    folder = tree.code / tree.domains
    for domain in DOMAINS:
        package = tree.tools_module(domain).rpartition(".")[0]
        _register(package, folder / domain)
        sys.modules[f"{package}.utils"] = _StandIn(f"{package}.utils")
    for name in ("environment", "environment.db", "environment.toolkit"):
        sys.modules[f"{tree.package}.{name}"] = _StandIn(f"{tree.package}.{name}")
    utils = _StandIn(f"{tree.package}.utils")
    utils.__path__ = [str(tree.code / "utils")]
    sys.modules[utils.__name__] = utils
    for name in ("inspect_ai", "inspect_ai.tool", "inspect_ai.util", "loguru"):
        sys.modules[name] = _StandIn(name)


def _register(name: str, folder: Path) -> None:
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package
