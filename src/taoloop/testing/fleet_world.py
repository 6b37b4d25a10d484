"""The world of the engine contract: an agent whose every step can be held up, and a file that counts effects.

A task is words: a tool to call (`pay_keyed`, `pay_probed`, `pay_plain` or `pay_asked`), and where to stop: `model`
(in the model call), `before` (in the tool, its effect not done), `after` (in the tool, its effect done). Whoever
reaches such a checkpoint writes a file `at-CHECKPOINT` and waits while the file `hold` is there. `poison` ends the
process in the model call.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from taoloop.core.trace import Trace
from taoloop.models.function import FunctionModel
from taoloop.runtime.agent import Agent
from taoloop.tools.function import tool
from taoloop.tools.tool import RunContext, Tool

TOOLS = ("pay_keyed", "pay_probed", "pay_plain")


class FleetWorld:
    """The world in a folder, which all processes of a test share."""

    def __init__(self, folder: Path) -> None:
        self._hold, self._ledger, self._folder = folder / "hold", folder / "ledger", folder

    def hold(self) -> None:
        """Have everybody wait at the checkpoints that their tasks name."""
        self._hold.touch()

    def release(self) -> None:
        """Let everybody go on."""
        self._hold.unlink(missing_ok=True)

    def is_at(self, checkpoint: str) -> bool:
        """Whether somebody has come to a checkpoint."""
        return (self._folder / f"at-{checkpoint}").exists()

    def reach(self, checkpoint: str) -> None:
        """Somebody is at this checkpoint."""
        (self._folder / f"at-{checkpoint}").touch()

    def effects(self, run_id: str) -> int:
        """How often the payment of a run was made."""
        lines = self._ledger.read_text(encoding="utf-8").splitlines() if self._ledger.exists() else []
        return sum(line.startswith(f"{run_id}:") for line in lines)

    def agent(self, **settings: Any) -> Agent:
        """The agent of this world; a person is asked about what is in doubt."""
        defaults: dict[str, Any] = {
            "name": "fleet",
            "model": FunctionModel(self._reply),
            "tools": self._tools(),
            "policy": "supervised",
            "approved_tiers": ("read", "draft", "write"),
            "language": "en",
        }
        return Agent(**defaults | settings)

    async def _stop(self, checkpoint: str, task: str) -> None:
        if checkpoint not in task.split():
            return
        self.reach(checkpoint)
        while self._hold.exists():  # noqa: ASYNC110  # another process removes it
            await asyncio.sleep(0.01)

    async def _reply(self, task: str, trace: Trace) -> str:
        if "poison" in task.split():
            os.kill(os.getpid(), signal.SIGKILL)
        if trace.calls:
            return "Thought: It is done.\nFinal Answer: paid"
        await self._stop("model", task)
        return f"Thought: I pay.\nAction: {task.partition(' ')[0]}: {{}}"

    def _tools(self) -> list[Tool]:
        def find(call: RunContext) -> bool:
            """Whether the payment is in the ledger."""
            return self._is_made(call)

        @tool(tier="write", idempotent=True, purpose="Pay once per key.")
        async def pay_keyed(call: RunContext) -> str:
            return await self._pay(call, is_keyed=True)

        @tool(tier="write", probe=find, purpose="Pay; the ledger can be asked.")
        async def pay_probed(call: RunContext) -> str:
            return await self._pay(call)

        @tool(tier="write", purpose="Pay; nobody can tell afterwards.")
        async def pay_plain(call: RunContext) -> str:
            return await self._pay(call)

        @tool(tier="write", approval="required", purpose="Pay once somebody has approved it.")
        async def pay_asked(call: RunContext) -> str:
            return await self._pay(call)

        return [pay_keyed, pay_probed, pay_plain, pay_asked]

    async def _pay(self, call: RunContext, *, is_keyed: bool = False) -> str:
        await self._stop("before", call.task)
        if not (is_keyed and self._is_made(call)):
            with self._ledger.open("a", encoding="utf-8") as ledger:
                ledger.write(f"{call.run_id}:{call.idempotency_key}\n")
        await self._stop("after", call.task)
        return "paid"

    def _is_made(self, call: RunContext) -> bool:
        lines = self._ledger.read_text(encoding="utf-8").splitlines() if self._ledger.exists() else []
        return f"{call.run_id}:{call.idempotency_key}" in lines
