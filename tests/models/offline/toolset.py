"""Tools of `tools.yaml`, which give recorded outputs, and runs of the offline model with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from taoloop import Agent, Result, ToolError, Trace
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Event, RunStarted
from taoloop.errors import ModelRequestRefused
from taoloop.models.offline.planner import decision_for
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.tool import Tool

FOLDER = Path(__file__).parent

Step = tuple[str, dict[str, Any]]
"""A call: the name of its tool, and its arguments."""


@cache
def card(name: str) -> ToolCard:
    """The card of a tool of the file. What follows a `/` in the name tells twins apart."""
    row = _rows()[name]
    args = {arg.removesuffix("?"): schema for arg, schema in row.get("args", {}).items()}
    required = [arg for arg in row.get("args", {}) if not arg.endswith("?")]
    return ToolCard(
        name=name.partition("/")[0],
        purpose=row["purpose"],
        use_when=row.get("use_when", ""),
        tier=row.get("tier"),
        input_schema={"type": "object", "properties": args, "required": required},
    )


def tool(name: str, give: Callable[[dict[str, Any]], Any] = str) -> Tool:
    """A tool of the file; `give` makes an output of the arguments."""
    return tool_from_card(card(name), lambda **given: give(given))


def recorded(names: Sequence[str], calls: Sequence[tuple[str, Mapping[str, Any], str]]) -> list[Tool]:
    """Tools that give what these calls gave, and an error for any other call."""
    outputs = {(name, json.dumps(args, sort_keys=True)): output for name, args, output in calls}

    def giving(name: str) -> Callable[[dict[str, Any]], Any]:
        def give(args: dict[str, Any]) -> Any:
            output = outputs.get((name, json.dumps(args, sort_keys=True)))
            if output is None:
                raise ToolError("Not recorded.", code="not_recorded")
            return json.loads(output) if output.startswith(("{", "[")) else output

        return give

    return [tool(name, giving(name.partition("/")[0])) for name in names]


def refusal(task: str, cards: Iterable[ToolCard]) -> str:
    """Why the model with these tools refuses a task before its first call; empty if it begins."""
    cards = tuple(cards)
    started = RunStarted(task=task, agent=AgentSpec(dialect="text", tools=cards), nonce="n")
    trace = Trace("r", [Event(0, 0.0, started)])
    try:
        decision_for(ModelRequest(task=task, trace=trace, messages=(), dialect="text", tools=cards))
    except ModelRequestRefused as error:
        return error.message
    return ""


def run(task: str, tools: Sequence[Tool | str], **options: Any) -> Result:
    """A whole run, in which nobody is asked."""
    given = {"policy": "autonomous", "max_steps": 12, **options}
    return Agent(model="offline", tools=list(tools), **given).run_sync(task)


def steps_of(result: Result) -> list[Step]:
    """The calls of a run."""
    return [(call.requested.tool, dict(call.requested.args)) for call in result.trace.calls.values()]


def changes_of(result: Result) -> list[str]:
    """The tools among the calls of a run that may change something."""
    cards = [result.trace.card(name) for name, _ in steps_of(result)]
    return [card.name for card in cards if card is not None and not card.reads_only]


def read_yaml(name: str) -> Any:
    """A file of this folder."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((FOLDER / name).read_text(encoding="utf-8"), Loader=loader)  # noqa: S506  # both are safe


@cache
def _rows() -> dict[str, Any]:
    rows: dict[str, Any] = read_yaml("tools.yaml")
    return rows
