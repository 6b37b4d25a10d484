"""The two domains of a checkout of tau-bench as desks: its tools, data and tasks, with an operator's cards.

Read from the known layout: `tau_bench/envs/{retail,airline}/` with `tools` (`ALL_TOOLS`: classes with `get_info` and
`invoke(data, **arguments)`), `data` (`load_data`, or `data`) and `tasks_test` (`TASKS_TEST` or `TASKS`: `instruction`
and `actions` with `name` and `kwargs`). The packages' own `__init__` modules are not executed: they load clients of
language models. What comes from the checkout is untyped here. Its successor has another layout (`tau2`).
"""

from __future__ import annotations

import copy
import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from desks.desk import Call, Database, Desk, Function, Task
from desks.tau2 import load_tau2

from taoloop.evals.suites.tau_cards import DOMAINS, tau_card
from taoloop.evals.suites.tau_checkout import find_tau2


def load_desks(checkout: Path) -> tuple[Desk, ...]:
    """The domains of a checkout of tau-bench, or of a tree with those of tau2-bench.

    Raises:
        LookupError: there is neither, or it has another layout; names what is missing.
    """
    envs = checkout / "tau_bench" / "envs"
    missing = [name for name in DOMAINS if not (envs / name / "tasks_test.py").is_file()]
    if not missing:
        _register("tau_bench", checkout / "tau_bench")
        _register("tau_bench.envs", envs)
        return tuple(_desk(name, envs / name) for name in DOMAINS)
    if (tree := find_tau2(checkout)) is not None:
        return load_tau2(tree)
    raise LookupError(
        f"{checkout}: no tau2-bench, and in {envs} no {' and no '.join(missing)} with tasks_test.py in it"
    )


def _register(name: str, folder: Path) -> None:
    """Make a package known without executing its `__init__`."""
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


def _desk(name: str, folder: Path) -> Desk:
    package = f"tau_bench.envs.{name}"
    _register(package, folder)
    classes = _attribute(package + ".tools", "ALL_TOOLS")
    infos = {info["function"]["name"]: (kind, info["function"]) for kind in classes if (info := kind.get_info())}
    data = _attribute(package + ".data", "load_data", "data")
    first = data() if callable(data) else data
    tasks = tuple(_tasks(_attribute(package + ".tasks_test", "TASKS_TEST", "TASKS"), infos))
    schemas = {tool: {"type": "object", "properties": {}, **info["parameters"]} for tool, (_, info) in infos.items()}
    return Desk(
        name=f"tau-{name}",
        cards=tuple(tau_card(tool, info["description"], schemas[tool]) for tool, (_, info) in infos.items()),
        functions={tool: _function(kind) for tool, (kind, _) in infos.items()},
        new_database=lambda: copy.deepcopy(first),
        tasks=tasks,
    )


def _attribute(module: str, *names: str) -> Any:
    loaded = importlib.import_module(module)
    for name in names:
        if hasattr(loaded, name):
            return getattr(loaded, name)
    raise LookupError(f"{module} has no {' or '.join(names)}")


def _function(kind: Any) -> Function:
    def invoke(database: Database, **args: Any) -> Any:
        output = kind.invoke(database, **args)
        try:
            return json.loads(output)
        except ValueError:
            return output

    return invoke


def _tasks(tasks: Any, infos: Mapping[str, Any]) -> Iterator[Task]:
    for number, task in enumerate(tasks):
        calls = [(_field(action, "name"), _field(action, "kwargs", "arguments")) for action in _field(task, "actions")]
        yield Task(
            name=str(number),
            text=_field(task, "instruction"),
            customer=_field(task, "user_id"),
            calls=tuple(Call(tool, dict(args)) for tool, args in calls if tool in infos),
        )


def _field(record: Any, *names: str) -> Any:
    """A field of an object or a mapping."""
    for name in names:
        if isinstance(record, Mapping) and name in record:
            return record[name]
        if hasattr(record, name):
            return getattr(record, name)
    raise LookupError(f"{type(record).__name__} has no {' or '.join(names)}")
