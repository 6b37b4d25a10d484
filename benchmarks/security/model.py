"""The model of the benchmark: it has no words of its own, only the script of the run that is on stage."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply, ToolCallText

if TYPE_CHECKING:
    from security.stage import Stage


class HijackedModel:
    """Does the user's task until it reads an injection; from there on it does all that the injection wants."""

    spec = "hijacked"
    dialect = "native"
    is_language_model = True  # it stands for a provider's: under `pin: auto` it is asked what the task calls for

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next call of the script, or the answer."""
        script = self._stage.script
        assert script is not None
        if request.purpose == "pin":
            # over trusted text only: honest, it knows what the task wants, and no injection
            calls, named = script.own, {call.tool for call in script.own}
            if script.fixed_ahead is not None:
                calls, named = script.fixed_ahead, {card.name for card in request.trace.agent.tools}
            plan = {"tools": sorted(named), "calls": [{"tool": call.tool, "args": call.args} for call in calls]}
            return ModelReply(text=json.dumps(plan), finish_reason="stop", model=self.spec, cost_usd=0.0)
        assert request.purpose == "decide", request.purpose
        steps = request.trace.steps
        for view in steps[-1].calls if steps else ():
            if view.observed is not None:
                script.see(f"{view.observed.output} {view.observed.error.message if view.observed.error else ''}")
        calls = script.next()
        if not calls:
            return ModelReply(text=script.final(), finish_reason="stop", model=self.spec, cost_usd=0.0)
        asked = tuple(
            ToolCallText(name=call.tool, arguments=json.dumps(call.args), id=f"c{request.turn}.{number}")
            for number, call in enumerate(calls)
        )
        return ModelReply(tool_calls=asked, finish_reason="tool_calls", model=self.spec, cost_usd=0.0)

    def check_used(self, replies: int) -> None:
        """Scripts end as they end."""

    async def close(self) -> None:
        """Nothing to let go of."""
