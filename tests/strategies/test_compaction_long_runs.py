"""What holds for every run in a small window, whatever its model says, refuses or streams."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given, strategies as st
from tests.sizes import examples
from tests.strategies.speaking import page, pairs_are_whole, save

from taoloop import Agent, Limits, MemoryJournal, Trace, tool
from taoloop.core.decision import Act, Answer, Call
from taoloop.core.effects import CallModel, ModelRequest
from taoloop.core.events import Compacted, Finished, ModelErred, ModelReplied
from taoloop.core.message import Message, ModelReply, Usage, message_tokens
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.dialects import get_dialect
from taoloop.errors import ModelContextOverflow, ModelError
from taoloop.models.scripted import pieces
from taoloop.runtime.after.replay import replay
from taoloop.strategies import get_strategy


@tool(tier="write")
async def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}. " + "It went well. " * 40


def act(*calls: Call) -> Act:
    return Act(calls=calls, reason="so I go on")


PAGE = st.builds(lambda n: Call(tool="page", args={"n": n}), st.integers(0, 99))
SAVE = st.builds(lambda n: Call(tool="save", args={"name": f"f{n}"}), st.integers(0, 99))
PAY = st.builds(lambda n: Call(tool="pay", args={"amount": n}), st.integers(0, 99))
TURNS = st.lists(
    st.builds(act, PAGE)
    | st.builds(act, PAGE)
    | st.builds(act, PAGE, PAGE)
    | st.builds(act, SAVE | PAY)
    | st.sampled_from(["", "{broken", ModelError("gone"), Answer(text="done")]),
    min_size=3,
    max_size=25,
)


class Cramped:
    """Says what it was given, in its dialect; refuses prompts above `window`."""

    spec = "cramped"

    def __init__(self, turns: list[Any], dialect: str, window: int | None, summary: str) -> None:
        self.turns, self.dialect, self.window, self.summary = turns, dialect, window, summary
        self.seen: list[tuple[str, tuple[Message, ...]]] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        size = sum(map(message_tokens, request.messages))
        self.seen.append((request.purpose, request.messages))
        if self.window is not None and size > self.window:
            raise ModelContextOverflow("too long")
        reply = replace(self._said(request), usage=Usage(input_tokens=size, output_tokens=9), cost_usd=0.0)
        if request.on_delta is not None:
            for delta in pieces(reply):
                request.on_delta(delta)
        return reply

    def _said(self, request: ModelRequest) -> ModelReply:
        if request.purpose == "compact":
            return ModelReply(text=self.summary)
        replies = [e for e in request.trace.events if isinstance(e.fact, ModelReplied) and e.fact.purpose != "compact"]
        turn = self.turns[len(replies)] if len(replies) < len(self.turns) else Answer(text="the end")
        if isinstance(turn, ModelError):
            raise turn
        if isinstance(turn, str):
            return ModelReply(text=turn)
        if isinstance(turn, Act) and self.dialect != "native":
            turn = replace(turn, calls=turn.calls[:1])
        return get_dialect(self.dialect).write(turn)

    def check_used(self, replies: int) -> None:
        """Nothing to check."""

    async def close(self) -> None:
        """Nothing to let go of."""


@examples(120)
@given(
    TURNS,
    st.sampled_from(["native", "json", "text"]),
    st.sampled_from([None, 900, 1_500, 3_000]),
    st.sampled_from([None, 1_200, 2_000, 4_000]),
    st.sampled_from(["", "All went well (call_1).", "x" * 50_000, "<think>never closed"]),
    st.booleans(),
    st.integers(3, 30),
    st.sampled_from([None, lambda _question: True]),
)
def test_every_cramped_run_ends_and_stays_true_to_its_trace(
    turns: list[Any],
    dialect: str,
    window: int | None,
    known: int | None,
    summary: str,
    early: bool,
    max_steps: int,
    approve: Any,
) -> None:
    model = Cramped(turns, dialect, window, summary)
    agent = Agent(
        model=model,
        tools=[page, save, pay],
        dialect=dialect,
        context_tokens=known,
        early_reads=early,
        limits=Limits(max_steps=max_steps, max_consecutive_errors=4),
        approve=approve,
        journal=MemoryJournal(),
    )
    trace = asyncio.run(agent.run("Read and pay.")).trace
    facts = [event.fact for event in trace.events]
    assert sum(isinstance(fact, Finished) for fact in facts) == (trace.status != "waiting")
    assert all(decided.same for decided in replay(trace)), "a replay decides the same"
    for fact in facts:
        assert encode_fact(decode_fact(fact.kind, encode_fact(fact))) == encode_fact(fact)
    assert all(pairs_are_whole(messages) for _, messages in model.seen)
    asked = [messages for purpose, messages in model.seen if purpose != "compact"]
    breaks = sum(after[: len(before)] != before for before, after in pairwise(asked))
    assert breaks <= sum(isinstance(fact, Compacted) for fact in facts), "the prompt only grows"
    errors = sum(isinstance(fact, ModelErred) for fact in facts)
    assert len(model.seen) <= 2 * len(turns) + 2 * max_steps + errors + 5, "no circle"
    rebuilt = [prompt_at(trace, event.seq) for event in trace.events if event.kind in ("model_replied", "model_erred")]
    assert rebuilt == [messages for _, messages in model.seen][: len(rebuilt)], "the same bytes from the events alone"


def prompt_at(trace: Trace, seq: int) -> tuple[Message, ...]:
    effect = get_strategy(trace.agent.strategy).next(trace.agent, Trace(trace.run_id, trace.events[:seq]))
    assert isinstance(effect, CallModel)
    return effect.request.messages
