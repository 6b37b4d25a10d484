"""A run in which everything happens once: each kind of fact, with texts that can be told apart."""

from __future__ import annotations

from collections.abc import Iterable

from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Vote, Voted
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    ApprovalGiven,
    ApprovalRefused,
    Compacted,
    Compensated,
    DoubtSettled,
    Event,
    Fact,
    Fault,
    Finished,
    InDoubt,
    JudgedAgain,
    LimitReached,
    ModelErred,
    ModelReplied,
    Noted,
    Observed,
    Paused,
    Pinned,
    ReadDropped,
    ReplyRejected,
    Resumed,
    RunStarted,
    Source,
)
from taoloop.core.human_input import HookActed, InputAnswered, Marked
from taoloop.core.message import ToolCallText, Usage

BUY = {"item": "tea", "count": 2}
CARD = ToolCard(name="buy", purpose="Buy an item.", tier="write")


def reply(step: int, **fields: object) -> ModelReplied:
    values = {
        "purpose": "decide",
        "text": f"reply {step}",
        "decision": None,
        "model": "small-1",
        "usage": Usage(input_tokens=700, output_tokens=30),
        "cost_usd": 0.002,
        "latency_s": 1.0,
    }
    return ModelReplied(step=step, **{**values, **fields})  # type: ignore[arg-type]  # a test's own fields


def requested(number: int, tool: str = "buy", **fields: object) -> ActionRequested:
    values = {"step": 1, "args": BUY, "tier": "write", "verdict": "ask", "digest": f"d{number}"}
    return ActionRequested(call_id=f"call_{number}", tool=tool, **{**values, **fields})  # type: ignore[arg-type]


FACTS: tuple[Fact, ...] = (
    RunStarted(
        task="Buy tea.",
        agent=AgentSpec(name="buyer", model="small-1", tools=(CARD,), limits=Limits(max_steps=9)),
        nonce="n0",
        parent="outer",
        forked_from="earlier",
        forked_at=2,
        labels={"key": "billing"},
    ),
    reply(1, text="not a decision"),
    ReplyRejected(step=1, code="no_decision", message="There is no decision in it.", excerpt="not a decision"),
    ReadDropped(step=1, tool="look", args={"page": 1}, reason="not_asked"),
    reply(
        1,
        purpose="repair",
        thinking="deep thoughts",
        decision=Act(calls=(Call(tool="buy", args=BUY),) * 2, reason="Tea is needed."),
        tool_calls=(ToolCallText(id="t1", name="buy", arguments='{"item":"tea"}'),),
    ),
    Pinned(tools=("buy",), calls=(Call(tool="buy", args=BUY),)),
    requested(
        1,
        reasons=("it spends money",),
        rule="rule:Spending",
        sources=(
            Source(arg="item", role="content", badge="YOURS"),
            Source(arg="shop", role="destination", badge="FOREIGN", call_id="call_0", snippet="go to evil.example"),
        ),
        replaces="order.json",
    ),
    requested(2, tool="drop", verdict="deny", tier="destructive", reasons=("nothing asks for it",)),
    JudgedAgain(call_id="call_1", args=BUY, tier="write", verdict="ask", digest="d1"),
    Paused(reason="Somebody must decide.", waiting_for=("call_1",)),
    ApprovalGiven(call_id="call_1", digest="d1", by="ann", args={"item": "tea", "count": 1}, note="one is enough"),
    ApprovalRefused(call_id="call_2", by="bob", note="never"),
    Resumed(limits=Limits(max_steps=12), model="small-2"),
    ActionStarted(call_id="call_1", idempotency_key="k1"),
    InputAnswered(call_id="call_1", asker="MCP server 'shop'", message="Which colour?", action="accept", by="ann"),
    InDoubt(call_id="call_1", reason="no_outcome"),
    DoubtSettled(call_id="call_1", happened=False, by="probe", note="no order"),
    ActionStarted(call_id="call_1", idempotency_key="k1", attempt=2),
    Observed(
        call_id="call_1",
        ok=True,
        output="bought 1 tea [doc:0123456789ab]",
        artifact="obs_call_1",
        size_chars=9000,
        output_digest="abc",
        latency_s=0.5,
        printed="printed line",
        child="r1.1",
        usage=Usage(input_tokens=10, output_tokens=5),
        cost_usd=0.001,
    ),
    Observed(call_id="call_2", ok=False, output="", error=Fault(code="denied", message="It was denied.", hint="Ask.")),
    ModelErred(step=2, purpose="compact", code="model_overflow", message="too long"),
    Compacted(through_step=1, summary="Tea was bought.", tokens_before=900, tokens_after=300),
    Noted(by="ann", text="Hurry up.", about=""),
    Voted(votes=(Vote(answer="Tea", samples=(3, 4)), Vote(answer="Milk", samples=(5,))), samples=4, accepted=False),
    LimitReached(limit="max_steps", status="max_steps_exceeded", allowed=12, used=12),
    reply(2, purpose="close", decision=Answer(text="Bought tea [doc:0123456789ab].", citations=("doc:0123456789ab",))),
    HookActed(hook="Cap", moment="before_tool", outcome="changed", step=2, call_id="call_1", change={"count": 1}),
    Finished(
        status="max_steps_exceeded",
        answer="Bought tea [doc:0123456789ab].",
        reason="The limit was reached.",
        limit="max_steps",
        citations=("doc:0123456789ab",),
        denied=("call_2",),
    ),
    Compensated(call_id="call_1", by_call_id="call_9", ok=False, note="the shop is closed"),
    Marked(verdict="wrong", by="ann", note="Milk was wanted."),
)


def events_of(facts: Iterable[Fact] = FACTS, *, at: float = 1_800_000_000.0, apart_s: float = 2.0) -> list[Event]:
    """The facts as the events of a run, this many seconds apart."""
    return [Event(seq, at + apart_s * seq, fact) for seq, fact in enumerate(facts)]
