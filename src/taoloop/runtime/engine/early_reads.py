"""Calls that only read, started while the reply that asks for them is still being written (`Agent(early_reads=True)`).

An early read is a guess that the rest of the reply will not take the call back. Its outcome is used only if the
complete reply asks for exactly this call at this position; otherwise it is cancelled, nobody sees its result, and the
trace records that (`read_dropped`). A call above the tier `read` never starts early.
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
from taoloop.policy.destinations import FOLLOWED
from taoloop.runtime.engine.tool_execution import Outcome
from taoloop.tools.tool import Tool, ValidatedArgs
from taoloop.tools.toolbox import Toolbox

StartCall = Callable[[str, str, Tool, ValidatedArgs], Coroutine[Any, Any, Outcome]]
"""Runs a call: its id, its idempotency key, the tool and the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EarlyRead:
    call_id: str
    tool: str
    args: Any
    written: str  # the digest of the call as the reply has it
    digest: str  # the digest of the call as it runs, with its arguments corrected
    task: asyncio.Task[Outcome]

    def drop(self, step: int, reason: Any) -> ReadDropped:
        self.task.cancel()
        return ReadDropped(step=step, tool=self.tool, args=self.args, reason=reason)


class EarlyReads:
    """The reads of one run that have started and are not yet part of it.

    Only the first calls of a reply can start early, up to the first one that does more than read: calls after a write
    must see what the write did.
    """

    def __init__(self, trace: Trace, toolbox: Toolbox, start: StartCall, rules: tuple[CodeRule, ...] = ()) -> None:
        self._trace, self._toolbox, self._start, self._rules = trace, toolbox, start, rules
        self._effect: CallModel | None = None
        self._pieces: dict[int, list[str]] = {}
        self._reads: list[_EarlyRead] = []
        self._discarded: list[_EarlyRead] = []  # of a reply that started over
        self._open = False
        self._start_count = 0

    def expect(self, effect: CallModel) -> list[Fact]:
        """Prepare for the reply to `effect`. Returns the facts about reads that were never claimed."""
        dropped = self.cancel_all("not_asked")
        self._effect, self._pieces, self._open = effect, {}, effect.request.native
        return dropped

    def on_delta(self, delta: Delta) -> None:
        """Add a piece of the reply; start the call that it completes, if that only reads."""
        if delta.kind == "restart":
            self._discarded += self._reads
            for discarded in self._reads:
                discarded.task.cancel()
            self._reads, self._pieces = [], {}
            self._open = self._effect is not None and self._effect.request.native
        elif delta.kind == "call" and self._open:
            pieces = self._pieces.setdefault(delta.index, [])
            pieces.append(delta.text)
            if delta.done:
                in_order = delta.index == len(self._reads)
                early_read = self._start_read(delta.name.strip(), "".join(pieces)) if in_order else None
                self._open = early_read is not None
                if early_read is not None:
                    self._reads.append(early_read)

    def reconcile(self, facts: Sequence[Fact]) -> list[Fact]:
        """Compare with the decision in the complete reply: keep the reads that it asks for, and drop the others."""
        self._open = False
        replied = next((fact for fact in facts if isinstance(fact, ModelReplied)), None)
        if replied is None:
            return self.cancel_all("no_reply")
        calls: tuple[Call, ...] = replied.decision.calls if isinstance(replied.decision, Act) else ()
        count = 0
        for early_read, call in zip(self._reads, calls, strict=False):
            if call_digest(call.tool, call.args) != early_read.written:
                break
            count += 1
        dropped = self._reads[count:]
        del self._reads[count:]
        reason = "rejected" if replied.decision is None else "not_asked"
        return [*self._drop_discarded(), *(early_read.drop(replied.step, reason) for early_read in dropped)]

    def claim(self, requested: ActionRequested) -> asyncio.Task[Outcome] | None:
        """The running read that is exactly this call, if there is one."""
        for index, early_read in enumerate(self._reads):
            if early_read.call_id == requested.call_id and early_read.digest == requested.digest:
                return self._reads.pop(index).task
        return None

    def cancel_all(self, reason: str) -> list[Fact]:
        """Cancel all reads that were not claimed. Returns the facts about them."""
        self._open = False
        reads, self._reads = self._reads, []
        return [*self._drop_discarded(), *(early_read.drop(self._step, reason) for early_read in reads)]

    @property
    def _step(self) -> int:
        return self._effect.step if self._effect is not None else 0

    def _drop_discarded(self) -> list[Fact]:
        discarded, self._discarded = self._discarded, []
        return [early_read.drop(self._step, "no_reply") for early_read in discarded]

    def _start_read(self, name: str, text: str) -> _EarlyRead | None:
        """Start a call if it only reads, fits its card and is allowed; None if it waits for the complete reply."""
        trace, position = self._trace, len(self._reads)
        offered = self._effect.request.tools if self._effect is not None else ()
        card = next((card for card in offered if card.name == name), None)
        if card is None or name not in self._toolbox or not (card.reads_only and card.runs_in_parallel):
            return None
        tool = self._toolbox.get(name)
        if tool.runs_inside or not tool.card.reads_only:
            return None
        limit = trace.limits.max_tool_calls
        if limit is not None and trace.tool_calls + position + len(self._discarded) >= limit:
            return None
        try:
            args = loads(text) if text.strip() else {}
            if trace.agent.policy.observations == "handles" and (name == READER or contains_handle(args)):
                return None  # its values are filled in once the decision is there
            if tool.context_parameter is not None and decimal_literals(args, (text,)):
                return None  # a tool may need its digits, which are found in the complete reply
            written = call_digest(name, args)
            prepared = tool.prepare(args)
        except (NotJsonError, TaoError):
            return None
        call = Call(tool=name, args=prepared.args)
        verdict = judge(trace, call, card, rules=self._rules)
        if verdict.kind != "allow" or verdict.rule == FOLLOWED:  # links are counted as they are requested
            return None
        if any(early_read.written == written for early_read in self._reads):
            return None
        call_id = f"call_{trace.calls_requested + position + 1}"
        self._start_count += 1  # the id of a dropped read is used for another call, but its key never is
        key = f"{trace.run_id}:{call_id}:early-{trace.model_calls}.{self._start_count}"
        return _EarlyRead(
            call_id=call_id,
            tool=name,
            args=prepared.args,
            written=written,
            digest=call_digest(name, prepared.args),
            task=asyncio.create_task(self._start(call_id, key, tool, prepared)),
        )
