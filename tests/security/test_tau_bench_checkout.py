"""`benchmarks/desks --tau-bench PATH` reads tools, data and tasks of tau-bench and tau2-bench by their layout."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

TOOLS = """
import json


def info(name):
    parameters = {{"type": "object", "properties": {{"{key}": {{"type": "string"}}}}, "required": ["{key}"]}}
    return {{"type": "function", "function": {{"name": name, "description": "A tool.", "parameters": parameters}}}}


class {read}:
    @staticmethod
    def invoke(data, {key}):
        return json.dumps(data["records"][{key}])

    @staticmethod
    def get_info():
        return info("{read}")


class {write}:
    @staticmethod
    def invoke(data, {key}):
        if {key} not in data["records"]:
            return "Error: not found"
        data["records"][{key}]["cancelled"] += 1
        return json.dumps(data["records"][{key}])

    @staticmethod
    def get_info():
        return info("{write}")


ALL_TOOLS = [{read}, {write}]
"""
DATA = "def load_data():\n    return {'records': {'W1': {'cancelled': 0}}}\n"
PLAIN_DATA = "data = {'records': {'W1': {'cancelled': 0}}}\n"
TASKS = """
from tau_bench.types import Action, Task

{name} = [
    Task(
        user_id="ann_1",
        instruction="You are Ann and want to cancel W1.",
        actions=[Action(name="{read}", kwargs={{"{key}": "W1"}}), Action(name="{write}", kwargs={{"{key}": "W1"}})],
        outputs=[],
    )
]
"""
TYPES = """
from dataclasses import dataclass, field


@dataclass
class Action:
    name: str
    kwargs: dict


@dataclass
class Task:
    user_id: str
    instruction: str
    actions: list
    outputs: list = field(default_factory=list)
"""
RETAIL = {"read": "get_order_details", "write": "cancel_pending_order", "key": "order_id"}
AIRLINE = {"read": "get_reservation_details", "write": "cancel_reservation", "key": "reservation_id"}


def write_checkout(root: Path) -> None:
    """A checkout in miniature; the packages' own `__init__` need a client that is not installed."""
    package = root / "tau_bench"
    for domain, names, data, tasks in (
        ("retail", RETAIL, DATA, "TASKS_TEST"),
        ("airline", AIRLINE, PLAIN_DATA, "TASKS"),
    ):
        folder = package / "envs" / domain
        for part, text in (("tools", TOOLS.format(**names)), ("data", data)):
            (folder / part).mkdir(parents=True)
            (folder / part / "__init__.py").write_text(text)
        (folder / "tasks_test.py").write_text(TASKS.format(name=tasks, **names))
        (folder / "__init__.py").write_text("import a_client_that_is_not_installed\n")
    (package / "__init__.py").write_text("import a_client_that_is_not_installed\n")
    (package / "types.py").write_text(TYPES)


MODELS = """
from pydantic import BaseModel

from {package}.environment.db import DB


class Name(BaseModel):
    first_name: str
    last_name: str


class Address(BaseModel):
    address1: str
    zip: str


class Method(BaseModel):
    id: str


class User(BaseModel):
    user_id: str
    name: Name
    address: Address
    email: str
    dob: str
    payment_methods: dict[str, Method]
    {owns}: list[str]


class Item(BaseModel):
    item_id: str
    product_id: str
    name: str


class Record(BaseModel):
    {key}: str
    user_id: str
    items: list[Item]
    cancelled: int
    address: Address
    flights: list[str] = []
    cabin: str = "economy"
    passengers: list[Name] = []
    total_baggages: int = 0
    nonfree_baggages: int = 0


class Variant(BaseModel):
    item_id: str
    options: dict[str, str]
    available: bool


class Product(BaseModel):
    variants: dict[str, Variant]


class Day(BaseModel):
    status: str
    available_seats: dict[str, int]
    prices: dict[str, int]


class Flight(BaseModel):
    flight_number: str
    origin: str
    destination: str
    dates: dict[str, Day]


class AllData(DB):
    users: dict[str, User]
    {table}: dict[str, Record]
    products: dict[str, Product]
    flights: dict[str, Flight]
"""
TOOLS_OF_TAU2 = """
from {package}.{domain_package}data_model import AllData
{imports}


class AllTools({base}):
    db: AllData

    def _record(self, key):
        if key not in self.db.{table}:
            raise {error}("not found")
        return self.db.{table}[key]

    {decorator}
    def find_user_id_by_email(self, email: str) -> str:
        \"\"\"Find a user.\"\"\"
        return next(user.user_id for user in self.db.users.values() if user.email == email)

    {decorator}
    def get_user_details(self, user_id: str):
        \"\"\"Read a user.\"\"\"
        return self.db.users[user_id]

    {decorator}
    def {read}(self, {key}: str):
        \"\"\"Read a record.\"\"\"
        return self._record({key}){dump}

    {write_decorator}
    def {write}(self, {key}: str, reason: str = ""):
        \"\"\"Cancel a record.

        Args:
            {key}: which one
        \"\"\"
        self._record({key}).cancelled += 1
        return self._record({key}){dump}
"""
LAYOUTS: dict[str, dict[str, str]] = {
    "inspect_evals": {
        "package": "inspect_evals.tau2",
        "imports": "from inspect_ai.tool import ToolError\nfrom inspect_ai.util import StoreModel",
        "base": "StoreModel",
        "error": "ToolError",
        "decorator": "",
        "write_decorator": "",
        "dump": ".model_dump_json()",
    },
    "tau2-bench": {
        "package": "tau2",
        "imports": "from tau2.environment.toolkit import ToolKitBase, ToolType, is_tool",
        "base": "ToolKitBase",
        "error": "ValueError",
        "decorator": "@is_tool(ToolType.READ)",
        "write_decorator": "@is_tool(ToolType.WRITE)",
        "dump": "",
    },
}


def data_of(table: str, owns: str, key: str) -> dict[str, Any]:
    address = {"address1": "1 Elm Street", "zip": "10001"}
    item = {"item_id": "I1", "product_id": "P1", "name": "mug"}

    def user(number: int, name: str) -> dict[str, Any]:
        return {
            "user_id": f"{name.lower()}_lee_{number}",
            "name": {"first_name": name, "last_name": "Lee"},
            "address": address,
            "email": f"{name.lower()}@example.com",
            "dob": "1990-01-01",
            "payment_methods": {method: {"id": method} for method in (f"card_{number}", f"gift_{number}")},
            owns: [f"#W{number}"],
        }

    users = (user(1, "Ann"), user(2, "Bob"))
    records = ({key: one[owns][0], "user_id": one["user_id"], "items": [item], "cancelled": 0} for one in users)
    day = {"status": "available", "available_seats": {"economy": 3}, "prices": {"economy": 100}}
    return {
        "users": {one["user_id"]: one for one in users},
        table: {one[key]: {**one, "address": address} for one in records},
        "products": {"P1": {"variants": {"I2": {"item_id": "I2", "options": {"color": "blue"}, "available": True}}}},
        "flights": {
            "F1": {"flight_number": "F1", "origin": "LIS", "destination": "VIE", "dates": {"2026-05-20": day}},
        },
    }


def write_tau2(root: Path, layout: str) -> None:
    """A tree of tau2-bench in miniature; the packages' own `__init__` need a client that is not installed."""
    words = LAYOUTS[layout]
    for domain, table, names in (("retail", "orders", RETAIL), ("airline", "reservations", AIRLINE)):
        is_package = layout == "inspect_evals"
        code = root / ("inspect_evals/tau2" if is_package else "src/tau2/domains") / domain
        data = root / ("inspect_evals/tau2/data/domains" if is_package else "data/tau2/domains") / domain
        for folder in (code, data):
            folder.mkdir(parents=True)
        (code / "__init__.py").write_text("import a_client_that_is_not_installed\n")
        known = {**words, **names, "table": table, "owns": table}
        known["domain_package"] = f"{domain}." if is_package else f"domains.{domain}."
        (code / "data_model.py").write_text(MODELS.format(**known))
        (code / ("RetailAgentTools.py" if is_package else "tools.py")).write_text(TOOLS_OF_TAU2.format(**known))
        content = json.dumps(data_of(table, table, names["key"])).encode()
        (data / ("db.json.gz" if is_package else "db.json")).write_bytes(
            gzip.compress(content) if is_package else content
        )
        reason = {"known_info": "You are Ann Lee, ann@example.com.", "reason_for_call": "You want to cancel #W1."}
        actions = [{"name": names["write"], "arguments": {names["key"]: "#W1"}}]
        actions.append({"name": "transfer_to_human_agents", "arguments": {"summary": "done"}})
        task = {"id": "0", "user_scenario": {"instructions": {**reason, "task_instructions": "."}}}
        (data / "tasks.json").write_text(json.dumps([{**task, "evaluation_criteria": {"actions": actions}}]))


def run_desks(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "desks", "--json", "--tau-bench", str(path), *options]
    return subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, check=False)


def test_both_domains_of_a_checkout_are_measured(tmp_path: Path) -> None:
    write_checkout(tmp_path)
    done = run_desks(tmp_path)
    assert done.returncode == 0, done.stderr
    figures = {name: n for series in json.loads(done.stdout).values() for name, n in series["figures"].items()}
    for desk in ("tau-retail", "tau-airline"):
        assert figures[f"{desk}.none.task.nobody.right"] == 1
        assert figures[f"{desk}.none.task.nobody.writes"] == 1
        assert figures[f"{desk}.none.doubled.nobody.double_effects"] == 1
        assert figures[f"{desk}.cards.task.oracle.right"] == 1
        assert not any(".attack." in name for name in figures)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_both_domains_of_tau2_are_measured(layout: str, tmp_path: Path) -> None:
    write_tau2(tmp_path, layout)
    done = run_desks(tmp_path, "--policies", "none,cards")
    assert done.returncode == 0, done.stderr
    figures = {name: n for series in json.loads(done.stdout).values() for name, n in series["figures"].items()}
    for desk in ("tau-retail", "tau-airline"):
        for variant in ("", "-careful", "-spoken", "-chat"):
            assert figures[f"{desk}{variant}.none.task.nobody.right"] == 1
            assert figures[f"{desk}{variant}.cards.task.oracle.right"] == 1
            assert figures[f"{desk}{variant}.none.task.nobody.writes"] == 1
        assert figures[f"{desk}-careful.none.doubled.nobody.double_effects"] == 1
        assert figures[f"{desk}-careful.cards.doubled.nobody.double_effects"] == 0
        assert figures[f"{desk}-careful.none.attack.nobody.runs"] > 0
        assert figures[f"{desk}-careful.none.attack.nobody.won"] == figures[f"{desk}-careful.none.attack.nobody.runs"]
        assert figures[f"{desk}-careful.cards.attack.nobody.won"] == 0


def test_a_folder_that_is_no_checkout_is_named(tmp_path: Path) -> None:
    done = run_desks(tmp_path)
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr
    assert "retail" in done.stderr
