"""How much of each prompt a provider's prefix cache can reuse, over a run of 30 steps.

Run: python benchmarks/prefix.py [--json]
Target: at least 95 % of all bytes sent, in every dialect.

A prefix cache serves what a prompt has in common with the one before it, from the first byte on. Some providers count
in whole messages; for a prompt that only grows that is the same. What is new in a step is sent for the first time, so
no loop reaches 100 %. Beside it two loops that build the prompt anew: one writes all steps into the user message and
the output rule below them, one keeps only the last 10 steps.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise

from taoloop import Agent, Limits, MemoryJournal, tool
from taoloop.core.decision import Act, Answer, Call
from taoloop.core.effects import ModelRequest
from taoloop.core.message import Message, ModelReply, Usage, message_tokens
from taoloop.dialects import describe, get_dialect

STEPS = 30
TARGET = 0.95
DIALECTS = ("native", "json", "text", "fenced")
TOOLS = ("calculator", "time_now", "read_file", "write_file", "list_files", "search_files")


@tool(tier="read")
async def stock(item: str) -> dict[str, object]:
    """Say how many pieces of one item are in the storeroom, and where they lie.

    Args:
        item: The name of the item in lower case, such as tea.
    """
    return {"item": item, "pieces": len(item) * 3, "shelf": "B12", "note": "counted this week, two boxes were opened"}


class Keeper:
    """Asks for 30 items, then answers, and keeps what it was shown."""

    spec = "keeper"

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        usage = Usage(input_tokens=sum(map(message_tokens, request.messages)), output_tokens=30)
        if request.purpose == "compact":
            return ModelReply(text="Counted so far: all items on shelf B12 (call_1 to call_20).", usage=usage)
        number = request.trace.step_count + 1
        decision: Act | Answer = Answer(text="All are counted.")
        if number <= STEPS:
            call = Call(tool="stock", args={"item": f"item number {number}"}, ref=f"c{number}")
            decision = Act(calls=(call,), reason=f"I have counted {number - 1} items and go on with the next one.")
        return replace(get_dialect(request.dialect).write(decision), usage=usage, cost_usd=0.0)

    def check_used(self, replies: int) -> None:
        """Nothing to check."""

    async def close(self) -> None:
        """Nothing to let go of."""


def run(dialect: str, context_tokens: int | None = None) -> list[ModelRequest]:
    """All requests of one run."""
    model = Keeper(dialect)
    agent = Agent(
        model=model,
        dialect=dialect,
        tools=[stock, *TOOLS],
        workspace="/tmp",  # noqa: S108  # nothing is read there
        limits=Limits(max_steps=None),
        context_tokens=context_tokens,
        journal=MemoryJournal(),
    )
    result = asyncio.run(agent.run("Count the stock of every item on the list and say what is missing."))
    assert result.status == "completed", result.reason
    return model.asked


def parts(request: ModelRequest) -> list[bytes]:
    """The prompt message by message, the tools of the API ahead of them."""
    cards = request.tools if request.native else ()
    tools = [json.dumps([card.name, describe(card), dict(card.input_schema)], ensure_ascii=False) for card in cards]
    return [*(one.encode() for one in tools), *(_bytes(message) for message in request.messages)]


def _bytes(message: Message) -> bytes:
    said = {name: value for name, value in asdict(message).items() if value}
    return json.dumps(said, ensure_ascii=False).encode()


def share(prompts: Sequence[Sequence[bytes]], *, whole_messages: bool = False) -> float:
    """The part of all bytes sent that stood at the beginning of the prompt before."""
    reused = sum(_common(before, after, whole_messages) for before, after in pairwise(prompts))
    return reused / sum(len(part) for prompt in prompts for part in prompt)


def _common(before: Sequence[bytes], after: Sequence[bytes], whole_messages: bool) -> int:
    same = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            if not whole_messages:
                same += next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
            break
        same += len(one)
    return same


def rebuilt(requests: Sequence[ModelRequest], *, last: int | None = None) -> list[list[bytes]]:
    """The same run in a loop that writes its steps into one user message, all of them or only the last ones."""
    system, task = requests[0].messages[0], requests[0].messages[1].content
    prompts = []
    for request in requests:
        steps = [message.content for message in request.messages[2:]]
        shown = steps if last is None else steps[-2 * last :]
        user = f"{task}\n\nSteps so far:\n{chr(10).join(shown) or '(none)'}\n\nReply with JSON only."
        prompts.append([_bytes(system), _bytes(Message(role="user", content=user))])
    return prompts


def measure() -> dict[str, float]:
    """All shares, between 0 and 1."""
    figures: dict[str, float] = {}
    for dialect in DIALECTS:
        requests = run(dialect)
        prompts = [parts(request) for request in requests]
        figures[dialect] = share(prompts)
        assert figures[dialect] == share(prompts, whole_messages=True), "a prompt that only grows"
    texts = run("text")
    compacted = run("text", int(sum(map(message_tokens, texts[STEPS * 2 // 3].messages)) / 0.85))
    assert sum(request.purpose == "compact" for request in compacted) == 1
    figures["text, one compaction"] = share([parts(request) for request in compacted])
    for name, prompts in (
        ("rebuilt each time", rebuilt(texts)),
        ("rebuilt, last 10 steps", rebuilt(texts, last=10)),
    ):
        figures[name] = share(prompts)
        figures[f"{name}, in whole messages"] = share(prompts, whole_messages=True)
    return figures


def main() -> None:
    """Print the figures; exit code 1 if a dialect misses the target."""
    figures = measure()
    if "--json" in sys.argv:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:42} {value:7.1%} of all bytes can be reused")
    if any(figures[dialect] < TARGET for dialect in DIALECTS):
        sys.exit(1)


if __name__ == "__main__":
    main()
