"""A model that acts for so many steps in any dialect, counts the tokens of its prompts and may have a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taoloop import tool
from taoloop.core.decision import Act, Answer, Call, Decision
from taoloop.core.effects import ModelRequest
from taoloop.core.message import Message, ModelReply, Usage, message_tokens
from taoloop.dialects import get_dialect
from taoloop.errors import ModelContextOverflow

PAGE_CHARS = 1_600


@tool(tier="read")
async def page(n: int) -> str:
    """Give the page with a number."""
    return f"page {n}: " + " ".join(f"word{n}_{i}" for i in range(300))[:PAGE_CHARS]


@tool(tier="draft")
async def save(name: str) -> str:
    """Save what was read under a name."""
    return f"saved as {name}"


class Speaking:
    """Reads page after page and saves every fifth time; then answers. A prompt above `window` is refused."""

    spec = "speaking"

    def __init__(
        self,
        steps: int,
        dialect: str = "native",
        *,
        window: int | None = None,
        summary: str | Exception = "The pages say little (call_1).",
        counts: bool = True,
    ) -> None:
        self.steps, self.dialect, self.window, self.summary, self.counts = steps, dialect, window, summary, counts
        self.asked: list[ModelRequest] = []
        self.seen: list[tuple[str, tuple[Message, ...]]] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        size = sum(map(message_tokens, request.messages))
        self.asked.append(request)
        self.seen.append((request.purpose, request.messages))
        if self.window is not None and size > self.window:
            raise ModelContextOverflow(f"{size} tokens are more than {self.window}.")
        if request.purpose == "compact":
            if isinstance(self.summary, Exception):
                raise self.summary
            reply = ModelReply(text=self.summary)
        else:
            reply = get_dialect(request.dialect).write(self.decision(request))
        usage = Usage(input_tokens=size if self.counts else 0, output_tokens=10)
        return replace(reply, usage=usage, cost_usd=0.0)

    def decision(self, request: ModelRequest) -> Decision:
        number = request.trace.step_count + 1
        if number > self.steps or request.purpose == "close":
            return Answer(text="done")
        call = Call(tool="save", args={"name": f"f{number}"}) if number % 5 == 0 else None
        return Act(calls=(call or Call(tool="page", args={"n": number}),), reason=f"on to {number}")

    def check_used(self, replies: int) -> None:
        """Nothing to check."""

    async def close(self) -> None:
        """Nothing to let go of."""


def pairs_are_whole(messages: Sequence[Message]) -> bool:
    """Every tool message answers a call of the assistant message before it, and every call is answered."""
    waiting: set[str | None] = set()
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                return False
            waiting.discard(message.tool_call_id)
        elif waiting:
            return False
        else:
            waiting = {call.id for call in message.tool_calls}
    return not waiting
