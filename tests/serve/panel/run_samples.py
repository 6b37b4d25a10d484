"""Runs for the tests of the page of a run: written event by event, so that each has what the test needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.decision import Act, Answer, Call, call_digest
from taoloop.core.events import ActionRequested, Event, Fact, Finished, ModelReplied, Observed, RunStarted
from taoloop.core.message import Usage
from taoloop.journals.base import Artifact, Journal, Lease
from taoloop.prompts import prompts_for

T0 = 1_800_000_000.0
PROMPTS = prompts_for("en", None, "native", "react", output=False)

HOSTILE = (
    "</pre></article><script>alert(1)</script><img src=x onerror=alert(2)><a href='javascript:alert(3)'>click</a>"
    "\u202eevil\u2066\u200b\x1b[31m{{ 7*7 }} <div hx-get='/logout' hx-trigger='load'>"
)
"""What a tool may return, and a page may never do."""


def started(task: str = "Count the mentions of tea.", **fields: object) -> RunStarted:
    agent = AgentSpec(name="archivist", model="small-1", limits=Limits(max_steps=20_000), prompts=PROMPTS)
    return RunStarted(task=task, agent=agent, nonce="n0", **fields)  # type: ignore[arg-type]  # a test's own fields


def steps(count: int, first: int = 1) -> Iterator[Fact]:
    """Steps of three events each: a reply, a call, what came of it."""
    for step in range(first, first + count):
        args = {"page": step}
        call = Call(tool="read_page", args=args)
        yield ModelReplied(
            step=step,
            purpose="decide",
            text=f"I read page {step}.",
            decision=Act(calls=(call,), reason=f"Page {step} comes next."),
            model="small-1",
            usage=Usage(input_tokens=800, output_tokens=40),
            cost_usd=0.0004,
            latency_s=1.0,
        )
        yield ActionRequested(
            step=step,
            call_id=f"call_{step}",
            tool="read_page",
            args=args,
            tier="read",
            verdict="allow",
            digest=call_digest("read_page", args),
        )
        output = f"Page {step} mentions tea. [doc:{step:012d}]"
        yield Observed(call_id=f"call_{step}", ok=True, output=output, latency_s=0.4)


def answered(step: int, text: str = "Tea is mentioned [doc:000000000002].") -> tuple[Fact, Fact]:
    citations = ("doc:000000000002",)
    return (
        ModelReplied(step=step, purpose="decide", text=text, decision=Answer(text=text, citations=citations)),
        Finished(status="completed", answer=text, reason="The model gave its final answer.", citations=citations),
    )


async def put(
    journal: Journal, run_id: str, facts: Iterable[Fact], artifacts: Sequence[Artifact] = (), *, apart_s: float = 0.5
) -> Lease:
    """Store a run; its lease goes on."""
    lease = await journal.create(run_id)
    await extend(journal, lease, 0, facts, artifacts, apart_s=apart_s)
    return lease


async def extend(
    journal: Journal,
    lease: Lease,
    seq: int,
    facts: Iterable[Fact],
    artifacts: Sequence[Artifact] = (),
    *,
    apart_s: float = 0.5,
) -> None:
    """Append facts to a run, from the event `seq` on."""
    events = [Event(number, T0 + apart_s * number, fact) for number, fact in enumerate(facts, seq)]
    await journal.append(lease, events, artifacts)
