"""Calls that only read, begun while the reply that asks for them is still being written (`Agent(early_reads=True)`).

Such a read is a guess that the rest of the reply will not take the call back. Its outcome is used only if the whole
reply, once it is read, asks for exactly this call in this place; else it is cancelled, nobody sees what it gave, and
the trace says so (`read_dropped`). Nothing above `read` ever begins early.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from taoloop.core.cards.decimals import decimal_literals
from taoloop.core.decision import Act, Call, call_digest
from taoloop.core.effects import CallModel
from taoloop.core.events import ActionRequested, Fact, ModelReplied, ReadDropped
from taoloop.core.handles import READER, contains_handle
from taoloop.core.message import Delta
from taoloop.core.trace import Trace
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.errors import TaoError
from taoloop.policy import CodeRule, judge
from taoloop.runtime.engine.tool_execution import Outcome
from taoloop.tools.tool import Tool, ValidatedArgs
from taoloop.tools.toolbox import Toolbox

Begin = Callable[[str, str, Tool, ValidatedArgs], Coroutine[Any, Any, Outcome]]
"""Runs a call: its id, its idempotency key, the tool and the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    call_id: str
    tool: str
    args: Any
    asked: str  # the digest of the call as the reply has it
    judged: str  # the digest of the call as it runs, its arguments corrected
    task: asyncio.Task[Outcome]

    def dropped(self, step: int, reason: Any) -> ReadDropped:
        self.task.cancel()
        return ReadDropped(step=step, tool=self.tool, args=self.args, reason=reason)


class EarlyReads:
    """The reads of one run that have begun and are not yet part of it.

    Only the first calls of a reply can begin early, up to the first that does more than read: what comes after a write
    must see what the write did.
    """

    def __init__(self, trace: Trace, toolbox: Toolbox, begin: Begin, rules: tuple[CodeRule, ...] = ()) -> None:
        self._trace, self._toolbox, self._begin, self._rules = trace, toolbox, begin, rules
        self._effect: CallModel | None = None
        self._pieces: dict[int, list[str]] = {}
        self._reads: list[_Read] = []
        self._void: list[_Read] = []  # of a reply that began anew
        self._open = False
        self._begun = 0

    def expect(self, effect: CallModel) -> list[Fact]:
        """A reply is about to be written. Gives what has to be said of reads that nobody took."""
        left = self.cancel_all("not_asked")
        self._effect, self._pieces, self._open = effect, {}, effect.request.native
        return left

    def on_delta(self, delta: Delta) -> None:
        """Take one piece of the reply; begin the call that it completes, if that only reads."""
        if delta.kind == "restart":
            self._void += self._reads
            for read in self._reads:
                read.task.cancel()
            self._reads, self._pieces = [], {}
            self._open = self._effect is not None and self._effect.request.native
        elif delta.kind == "call" and self._open:
            pieces = self._pieces.setdefault(delta.index, [])
            pieces.append(delta.text)
            if delta.done:
                in_order = delta.index == len(self._reads)
                begun = self._started(delta.name.strip(), "".join(pieces)) if in_order else None
                self._open = begun is not None
                if begun is not None:
                    self._reads.append(begun)

    def reconcile(self, facts: Sequence[Fact]) -> list[Fact]:
        """Compare with what was read in the whole reply: keep the reads that it asks for, drop the others."""
        self._open = False
        replied = next((fact for fact in facts if isinstance(fact, ModelReplied)), None)
        if replied is None:
            return self.cancel_all("no_reply")
        calls: tuple[Call, ...] = replied.decision.calls if isinstance(replied.decision, Act) else ()
        kept = 0
        for read, call in zip(self._reads, calls, strict=False):
            if call_digest(call.tool, call.args) != read.asked:
                break
            kept += 1
        dropped = self._reads[kept:]
        del self._reads[kept:]
        reason = "rejected" if replied.decision is None else "not_asked"
        return [*self._voided(), *(read.dropped(replied.step, reason) for read in dropped)]

    def claim(self, requested: ActionRequested) -> asyncio.Task[Outcome] | None:
        """The running read that does exactly this call, if there is one."""
        for number, read in enumerate(self._reads):
            if read.call_id == requested.call_id and read.judged == requested.digest:
                return self._reads.pop(number).task
        return None

    def cancel_all(self, reason: str) -> list[Fact]:
        """Cancel everything that was not taken, and give what the trace has to say of it."""
        self._open = False
        reads, self._reads = self._reads, []
        return [*self._voided(), *(read.dropped(self._step, reason) for read in reads)]

    @property
    def _step(self) -> int:
        return self._effect.step if self._effect is not None else 0

    def _voided(self) -> list[Fact]:
        void, self._void = self._void, []
        return [read.dropped(self._step, "no_reply") for read in void]

    def _started(self, name: str, text: str) -> _Read | None:
        """Begin a call if it only reads, fits its card and is allowed; None if it has to wait for the whole reply."""
        trace, number = self._trace, len(self._reads)
        offered = self._effect.request.tools if self._effect is not None else ()
        card = next((card for card in offered if card.name == name), None)
        if card is None or name not in self._toolbox or not (card.reads_only and card.runs_in_parallel):
            return None
        tool = self._toolbox.get(name)
        allowed = trace.limits.max_tool_calls
        if tool.runs_inside or not tool.card.reads_only:
            return None
        if allowed is not None and trace.tool_calls + number + len(self._void) >= allowed:
            return None
        try:
            args = loads(text) if text.strip() else {}
            if trace.agent.policy.observations == "handles" and (name == READER or contains_handle(args)):
                return None  # its values are filled in once the decision is there
            if tool.context_parameter is not None and decimal_literals(args, (text,)):
                return None  # a tool may need its digits, which are found in the whole reply
            asked = call_digest(name, args)
            prepared = tool.prepare(args)
        except (NotJsonError, TaoError):
            return None
        asked_for = Call(tool=name, args=prepared.args)
        if judge(trace, asked_for, card, rules=self._rules).kind != "allow" or any(
            read.asked == asked for read in self._reads
        ):
            return None
        call_id = f"call_{trace.calls_requested + number + 1}"
        self._begun += 1  # a dropped read's id goes to another call, but its key never does
        key = f"{trace.run_id}:{call_id}:early-{trace.model_calls}.{self._begun}"
        task = asyncio.create_task(self._begin(call_id, key, tool, prepared))
        judged = call_digest(name, prepared.args)
        return _Read(call_id=call_id, tool=name, args=prepared.args, asked=asked, judged=judged, task=task)
