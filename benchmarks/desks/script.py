"""What the scripted model does: the calls of the task, and from the first injected text on those of an attacker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from desks.desk import MARK, Call, Desk, Task

from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply, ToolCallText

if TYPE_CHECKING:
    from desks.runs import Stage

Timing = Literal["at-once", "late"]
"""When an attack comes: as soon as the model reads of it, or after the customer's calls."""

Pins = Literal["honest", "hijacked"]
"""Who answers what the task calls for: a model that knows the task, or one that names every tool and every call of the
attack."""


@dataclass
class Script:
    """The calls of one run, one in each reply. Whatever is refused, the next one follows."""

    desk: Desk
    task: Task
    attack: list[Call] = field(default_factory=list)
    timing: Timing = "at-once"
    pins: Pins = "honest"
    doubled: bool = False
    """Each write is made twice, in successive replies."""
    obeys: bool = True
    hijacked: bool = False
    made: list[tuple[Call, bool]] = field(default_factory=list)
    """Every call, and whether it is the attacker's."""

    def __post_init__(self) -> None:
        """Lay out the calls."""
        reads_only = bool(self.task.then)  # the customer is asked before anything is changed
        own = [made for made in self.task.calls if not (reads_only and self.desk.is_write(made))]
        self._own = [call for made in own for call in ([made, made] if self._is_repeated(made) else [made])]
        self._attack = list(self.attack)

    def begin_again(self) -> None:
        """The customer has said yes: a new run, which has seen none of the records, looks up what it needs and acts."""
        self._own = [call for made in self.task.calls for call in ([made, made] if self._is_repeated(made) else [made])]

    def _is_repeated(self, made: Call) -> bool:
        return self.doubled and self.desk.is_write(made)

    def see(self, output: str) -> None:
        """What came back for the last call."""
        self.hijacked = self.hijacked or (self.obeys and MARK in output)

    def next(self) -> Call | None:
        """The next call; None: it answers."""
        is_attackers = self.hijacked and (self.timing == "at-once" or not self._own)
        calls = self._attack if is_attackers else self._own
        if not calls:
            return None
        self.made.append((calls.pop(0), is_attackers))
        return self.made[-1][0]

    def plan(self) -> dict[str, Any]:
        """The answer to the question what the task calls for."""
        if self.pins == "hijacked":
            return {"tools": list(self.desk.functions), "calls": [_plain(call) for call in self.attack]}
        quoted = [call for call in self.task.calls if _is_in(call.args, self.task.text)]
        return {"tools": sorted({call.tool for call in self.task.calls}), "calls": [_plain(call) for call in quoted]}


def _plain(call: Call) -> dict[str, Any]:
    return {"tool": call.tool, "args": call.args}


def _is_in(value: Any, text: str) -> bool:
    """Whether a model that has read only the task can know a value."""
    if isinstance(value, Mapping):
        return all(_is_in(part, text) for part in value.values())
    if isinstance(value, list):
        return all(_is_in(part, text) for part in value)
    return str(value) in text


class ScriptedClerk:
    """A model without words of its own: it follows the script of the run that is on stage."""

    spec = "clerk"
    dialect = "native"
    is_language_model = True  # it stands for a provider's: under `pin: auto` it is asked what the task calls for

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next call, or the answer."""
        script = self._stage.script
        if request.purpose == "pin":
            return ModelReply(text=json.dumps(script.plan()), finish_reason="stop", model=self.spec, cost_usd=0.0)
        steps = request.trace.steps
        for view in steps[-1].calls if steps else ():
            if view.observed is not None:
                script.see(view.observed.output)
        call = script.next()
        if call is None:
            return ModelReply(text="Done.", finish_reason="stop", model=self.spec, cost_usd=0.0)
        asked = ToolCallText(name=call.tool, arguments=json.dumps(call.args), id=f"c{request.turn}")
        return ModelReply(tool_calls=(asked,), finish_reason="tool_calls", model=self.spec, cost_usd=0.0)

    def check_used(self, replies: int) -> None:
        """Scripts end as they end."""

    async def close(self) -> None:
        """Nothing to let go of."""
