"""Tools that answer what stored runs recorded, so that cases made of runs change nothing in the world.

The record is a file of JSON beside the suite, which `tao eval --from-runs` writes: the cards of the runs' tools, and
for each case its calls with what came of them. A call with the same arguments gets what the run got, the n-th such call
the n-th result (the last one stays). Any other call fails with `not_recorded`: nobody knows what it would have given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from taoloop.core.cards.questions import ASK_USER
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import call_digest
from taoloop.core.views.todos import TODO_CARD
from taoloop.errors import AgentFileError, ToolError
from taoloop.evals.action_patterns import is_same_value
from taoloop.evals.cases import Case
from taoloop.evals.worlds import current_world
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.tool import Tool
from taoloop.translation import Translator, mark

translate = Translator("evals")

RECORDED = "recorded"
"""The part of a world that has the calls of its case, by tool."""

REAL_TOOLS = frozenset({"calculator", TODO_CARD.name, ASK_USER})
"""Built-in tools that are themselves also in such a suite: they change nothing outside the run."""

_COUNTS = "recorded_calls"  # the part of a world that has how often each call was made
_SHOWN_CALLS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What is in the file of a record."""

    cards: tuple[ToolCard, ...] = ()
    """The cards of the tools, each name once."""
    calls: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]] = field(default_factory=dict)
    """By case and tool the calls: `args`, and `output`, or `error` with `code` and `message`."""

    def case_with_calls(self, case: Case) -> Case:
        """The case with its recorded calls in its world."""
        return replace(case, world={**case.world, RECORDED: self.calls.get(case.case_id, {})})


_RECORD: TypeAdapter[RunRecord] = TypeAdapter(RunRecord)


def write_record(record: RunRecord, path: Path) -> None:
    """Write a record, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(_RECORD.dump_json(record))
    part.replace(path)


def read_record(path: Path) -> RunRecord:
    """The record in a file that `write_record` wrote.

    Raises:
        AgentFileError: the file cannot be read, or is none.
    """
    try:
        return _RECORD.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        message = translate(mark("the record of stored runs cannot be read: {reason}."), reason=reason)
        hint = translate(mark("Write it again with `tao eval --from-runs`."))
        raise AgentFileError(message, path=str(path), line=0, hint=hint) from error


def recorded_tools(record: RunRecord, agent_tools: Sequence[Tool | str]) -> tuple[Tool | str, ...]:
    """The tools of an agent, and those of the record, all of which answer from the record and call nothing.

    A tool of the agent keeps its card of now. Built-in tools that the record does not have are left out, unless they
    change nothing outside the run (`REAL_TOOLS`).
    """
    cards = {card.name: card for card in record.cards}
    cards |= {tool.name: tool.card for tool in agent_tools if isinstance(tool, Tool)}
    names = (tool for tool in agent_tools if isinstance(tool, str))
    real = [name for name in dict.fromkeys((*names, *cards)) if name in REAL_TOOLS]
    return (*real, *(_recorded_tool(card) for card in cards.values() if card.name not in REAL_TOOLS))


def _recorded_tool(card: ToolCard) -> Tool:
    def answer(**args: Any) -> Any:
        return _recorded_result(card.name, args)

    return tool_from_card(replace(card, transactional=False, probes=False, output_schema=None), answer)


def _recorded_result(tool: str, args: Mapping[str, Any]) -> Any:
    """What a call gave in the run of the case.

    Raises:
        ToolError: it failed there, or was never made.
    """
    world = current_world()
    calls = world.state.get(RECORDED, {}).get(tool, ())
    same = [call for call in calls if is_same_value(call["args"], args)]
    if not same:
        known = "; ".join(json.dumps(call["args"], ensure_ascii=False) for call in calls[:_SHOWN_CALLS])
        message = translate(mark("The recorded run made no such call of {tool}."), tool=tool)
        hint = translate(mark("It made these: {calls}."), calls=known) if known else ""
        raise ToolError(message, code="not_recorded", hint=hint)
    counts, key = world.state.setdefault(_COUNTS, {}), call_digest(tool, dict(args))
    number = counts.get(key, 0)
    counts[key] = number + 1
    world.save()
    call = same[min(number, len(same) - 1)]
    if (error := call.get("error")) is not None:
        raise ToolError(error["message"], code=error["code"])
    return call["output"]
