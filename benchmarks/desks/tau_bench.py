"""The two domains of a checkout of tau-bench as desks: its tools, data and tasks, with an operator's cards.

Read from the known layout: `tau_bench/envs/{retail,airline}/` with `tools` (`ALL_TOOLS`: classes with `get_info` and
`invoke(data, **arguments)`), `data` (`load_data`, or `data`) and `tasks_test` (`TASKS_TEST` or `TASKS`: `instruction`
and `actions` with `name` and `kwargs`). The packages' own `__init__` modules are not executed: they load clients of
language models. What comes from the checkout is untyped here.
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

from desks.desk import PREVIEW_CHARS, Call, Database, Desk, Function, Task

from taoloop.core.cards.tool_card import Tier, ToolCard

DOMAINS = ("retail", "airline")

_ADDRESS = dict.fromkeys(("address1", "address2", "city", "state", "country", "zip"), "value")
_ITEMS = {
    "order_id": "ref:order",
    "item_ids": "ref:item",
    "new_item_ids": "ref:variant",
    "payment_method_id": "ref:payment",
}
_FLIGHTS = {"cabin": "value", "flights": "value"}

WRITES: Mapping[str, tuple[Tier, Mapping[str, str]]] = {
    "cancel_pending_order": ("destructive", {"order_id": "ref:order", "reason": "minor"}),
    "exchange_delivered_order_items": ("write", _ITEMS),
    "modify_pending_order_items": ("write", _ITEMS),
    "return_delivered_order_items": ("write", {name: role for name, role in _ITEMS.items() if name != "new_item_ids"}),
    "modify_pending_order_address": ("write", {"order_id": "ref:order", **_ADDRESS}),
    "modify_pending_order_payment": ("write", {"order_id": "ref:order", "payment_method_id": "ref:payment"}),
    "modify_user_address": ("write", {"user_id": "ref:user", **_ADDRESS}),
    "book_reservation": (
        "write",
        {
            "user_id": "ref:user",
            "origin": "value",
            "destination": "value",
            "flight_type": "minor",
            **_FLIGHTS,
            "passengers": "value",
            "payment_methods": "value",
            "total_baggages": "value",
            "nonfree_baggages": "value",
            "insurance": "value",
        },
    ),
    "cancel_reservation": ("destructive", {"reservation_id": "ref:reservation"}),
    "send_certificate": ("destructive", {"user_id": "ref:user", "amount": "value"}),
    "update_reservation_baggages": (
        "write",
        {
            "reservation_id": "ref:reservation",
            "total_baggages": "value",
            "nonfree_baggages": "value",
            "payment_id": "ref:payment",
        },
    ),
    "update_reservation_flights": (
        "write",
        {"reservation_id": "ref:reservation", **_FLIGHTS, "payment_id": "ref:payment"},
    ),
    "update_reservation_passengers": ("write", {"reservation_id": "ref:reservation", "passengers": "value"}),
}
"""Tier and roles of each tool that changes the database. Any other tool only reads, thinks or hands over."""

_IDS: Mapping[str, Mapping[str, str]] = {
    "get_user_details": {"id": "payment", "payment_id": "payment", "orders": "order", "reservations": "reservation"},
    "get_order_details": {
        "item_id": "item",
        "product_id": "product",
        "payment_method_id": "payment",
        "user_id": "user",
    },
    "get_product_details": {"item_id": "variant"},
    "get_reservation_details": {"payment_id": "payment"},
}
_READ_ROLES = {
    "user_id": "ref:user",
    "order_id": "ref:order",
    "product_id": "ref:product",
    "reservation_id": "ref:reservation",
}


def load_desks(checkout: Path) -> tuple[Desk, ...]:
    """The domains of a checkout.

    Raises:
        LookupError: there is no tau-bench, or it has another layout; names what is missing.
    """
    envs = checkout / "tau_bench" / "envs"
    missing = [name for name in DOMAINS if not (envs / name / "tasks_test.py").is_file()]
    if missing:
        raise LookupError(f"{envs}: no {' and no '.join(missing)} with tasks_test.py in it")
    _register("tau_bench", checkout / "tau_bench")
    _register("tau_bench.envs", envs)
    return tuple(_desk(name, envs / name) for name in DOMAINS)


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
    return Desk(
        name=f"tau-{name}",
        cards=tuple(_card(tool, function) for tool, (_, function) in infos.items()),
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


def _card(name: str, function: Mapping[str, Any]) -> ToolCard:
    schema = {"type": "object", "properties": {}, **function["parameters"]}
    tier, roles = WRITES.get(name, ("read", _READ_ROLES))
    ids = dict(_IDS.get(name, {"user_id": "user"} if name.startswith("find_user") else {}))
    return ToolCard(
        name=name,
        purpose=function["description"],
        input_schema=schema,
        tier=tier,
        egress=False,
        roles={arg: role for arg, role in roles.items() if arg in schema["properties"]},
        ids=ids,
        max_preview_chars=PREVIEW_CHARS,
        max_input_bytes=PREVIEW_CHARS,
    )
