"""A loop that runs real tools for the offline model and keeps the trace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from taoloop.core.action_requests import call_digest
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import Act, Decision
from taoloop.core.events import ActionRequested, Event, Fact, Fault, ModelReplied, Observed, RunStarted
from taoloop.core.message import Purpose
from taoloop.core.model_request import ModelRequest
from taoloop.core.trace import Trace
from taoloop.dialects import get_dialect
from taoloop.errors import ToolError
from taoloop.models.offline import OfflineModel
from taoloop.tools.tool import Tool, ToolContext

Step = tuple[str, dict[str, Any]]


class World:
    """One run: `steps` are the calls made, `answer` the end. `shown`: outputs are cut to so many characters."""

    def __init__(
        self,
        task: str,
        tools: Sequence[Tool],
        *,
        dialect: str = "text",
        most: int = 12,
        strategy: str = "react",
        shown: int = 0,
    ) -> None:
        self.task, self.dialect, self.shown = task, dialect, shown
        self.tools = {each.name: each for each in tools}
        self.cards = tuple(each.card for each in tools)
        self.trace = Trace("run")
        self.add(
            RunStarted(task=task, agent=AgentSpec(dialect=dialect, strategy=strategy, tools=self.cards), nonce="n")
        )
        self.steps: list[Step] = []
        self.answer = ""
        for _ in range(most):
            if not self.turn():
                break

    def add(self, fact: Fact) -> None:
        self.trace.append(Event(len(self.trace.events), 0.0, fact))

    def ask(self, purpose: Purpose = "decide") -> Decision:
        tools = () if purpose == "close" else self.cards
        request = ModelRequest(
            task=self.task, trace=self.trace, messages=(), dialect=self.dialect, tools=tools, purpose=purpose
        )
        reply = asyncio.run(OfflineModel().complete(request))
        decision = get_dialect(self.dialect).read(reply, tools)
        assert isinstance(decision, Decision), decision
        return decision

    def turn(self) -> bool:
        decision = self.ask()
        step = len(self.trace.steps) + 1
        self.add(ModelReplied(step=step, purpose="decide", text="", decision=decision))
        if not isinstance(decision, Act):
            self.answer = decision.text
            return False
        for number, call in enumerate(decision.calls):
            self.steps.append((call.tool, dict(call.args)))
            self.run(step, f"call_{step}_{number}", call.tool, call.args)
        return True

    def run(self, step: int, call_id: str, name: str, args: Any) -> None:
        own = self.tools[name]
        digest = call_digest(name, args)
        self.add(
            ActionRequested(
                step=step, call_id=call_id, tool=name, args=args, tier=own.card.tier, verdict="allow", digest=digest
            )
        )
        try:
            output = own.render(own.invoke(own.prepare(args).values, ToolContext()))
        except ToolError as error:
            fault = Fault(code=error.code, message=error.message, retryable=error.retryable, hint=error.hint)
            self.add(Observed(call_id=call_id, ok=False, output="", error=fault))
        else:
            cut = 0 < self.shown < len(output.text)
            self.add(
                Observed(
                    call_id=call_id,
                    ok=True,
                    output=output.text[: self.shown] if cut else output.text,
                    form=output.form,
                    artifact=f"obs_{call_id}" if cut else None,
                    size_chars=len(output.text),
                )
            )

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.steps]


def first(task: str, tools: Sequence[Tool]) -> Step | str:
    """The first call, or the answer where there is none."""
    world = World(task, tools, most=1)
    return world.steps[0] if world.steps else world.answer
