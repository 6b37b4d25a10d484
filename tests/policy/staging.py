"""Traces and cards for trying a policy without a runner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import Tier, ToolCard
from taoloop.core.decision import Call, call_digest
from taoloop.core.events import ActionRequested, ApprovalGiven, Event, Fact, Fault, Observed, RunStarted
from taoloop.core.policy import Policy, VerdictKind
from taoloop.core.trace import Trace
from taoloop.policy import judge
from taoloop.policy.intent.task_intent import TaskIntent

TASK = "Pay 100 to bob@example.com, delete old.txt and read https://bank.example/a; save notes to notes.md"


def card(name: str, tier: Tier | None, *args: str, **more: Any) -> ToolCard:
    schema = {"type": "object", "properties": {one: {} for one in args}}
    return ToolCard(name=name, purpose="", tier=tier, **{"input_schema": schema, **more})


LOOK = card("look", "read", "query")
FETCH = card("fetch", "read", "url", "note")
PAY = card("pay", "write", "to", "amount")
SAVE = card("save", "write", "path", "text", egress=False, roles={"text": "content"})
DELETE = card("delete_file", "destructive", "path")
CARDS = (LOOK, FETCH, PAY, SAVE, DELETE)


def pinned(task: str, tool: str) -> bool:
    """Whether a task calls for a tool of this name."""
    pins = TaskIntent()
    pins.add(task)
    return pins.calls_for(card(tool, "write"))


class Run:
    """A run that grows by one fact at a time."""

    def __init__(
        self, policy: Policy | None = None, cards: Sequence[ToolCard] = CARDS, task: str = TASK, **more: Any
    ) -> None:
        self.policy = policy or Policy()
        spec = AgentSpec(
            tools=tuple(cards),
            policy=self.policy,
            approved_tiers=more.pop("approved_tiers", ()),
            language=more.pop("language", "en"),
        )
        self.cards = {one.name: one for one in cards}
        self.trace = Trace("r")
        self.add(RunStarted(task=task, agent=spec, nonce="n", **more))

    def add(self, fact: Fact) -> None:
        self.trace.append(Event(len(self.trace), 0.0, fact))

    def judge(self, tool: str, **args: Any) -> str:
        """The kind of the verdict, and what decided."""
        said = judge(self.trace, Call(tool=tool, args=args), self.cards[tool])
        return f"{said.kind} {said.rule}"

    def ask(
        self, tool: str, args: Mapping[str, Any], verdict: VerdictKind = "allow", rule: str = "", **more: Any
    ) -> str:
        call_id = f"call_{self.trace.calls_requested + 1}"
        self.add(
            ActionRequested(
                step=1,
                call_id=call_id,
                tool=tool,
                args=args,
                tier=self.cards[tool].tier,
                verdict=verdict,
                digest=call_digest(tool, args),
                rule=rule,
                **more,
            )
        )
        return call_id

    def see(self, output: str, tool: str = "look", fault: Fault | None = None, **args: Any) -> None:
        call_id = self.ask(tool, args)
        self.add(Observed(call_id=call_id, ok=fault is None, output=output, error=fault))

    def approve(self, call_id: str, **more: Any) -> None:
        digest = next(call.requested.digest for call in self.trace.pending.values())
        self.add(ApprovalGiven(call_id=call_id, digest=digest, by="ann", **more))
