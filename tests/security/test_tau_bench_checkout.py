"""`benchmarks/desks --tau-bench PATH` reads tools, data and tasks of a checkout by their layout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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


def run_desks(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "desks", "--json", "--tau-bench", str(path)]
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


def test_a_folder_that_is_no_checkout_is_named(tmp_path: Path) -> None:
    done = run_desks(tmp_path)
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr
    assert "retail" in done.stderr
