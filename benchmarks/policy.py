"""What judging a call costs: with 100 untrusted observations of 2 KB in the run, without any, and as a run grows.

Run: python benchmarks/policy.py [--json]
Targets: at most 500 µs per judged call of any kind, next to nothing where the run is not tainted, and a total that
grows no faster than the trace: the ratio per event of 1,000 calls to 100 is about 1. In `growth` every output is
untrusted, in `growth_trusted` every output trusted; their calls name ever other values. `asked_first` is the first
question after 100 observations that nobody asked about: they are searched as they are, and read a few with each
question. What comes first in a process (`wanted_first`) also compiles patterns.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import Tier, ToolCard
from taoloop.core.decision import Call, call_digest
from taoloop.core.events import ActionRequested, Event, Fact, Observed, RunStarted, Verdict
from taoloop.core.policy import Policy
from taoloop.core.trace import Trace
from taoloop.policy import judge

TASK = "Save the summary to notes.md, pay 100 to bob@example.com, and look for what is new. " * 5
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def card(name: str, tier: Tier, *args: str, **more: Any) -> ToolCard:
    """A tool with these arguments."""
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in args}}
    return ToolCard(name=name, purpose="", tier=tier, input_schema=schema, **more)


LOOK = card("look", "read", "query")
SAVE = card("save", "write", "path", "text", egress=False, roles={"text": "content"})
PAY = card("pay", "write", "to", "amount")
REBOOT = card("reboot", "destructive", "host")
FOREIGN = "mallory50@evil.example"
CALLS: dict[str, tuple[ToolCard, dict[str, Any], str]] = {
    "read": (LOOK, {"query": "alpha"}, "allow"),
    "wanted": (SAVE, {"path": "notes.md", "text": "alpha beta " * 50}, "allow"),
    "asked": (PAY, {"to": FOREIGN, "amount": "4711"}, "ask"),
    "denied": (REBOOT, {"host": "epsilon50 zeta50"}, "deny"),
}


def observation(number: int) -> str:
    """About 2 KB of text that no other observation has."""
    text = " ".join(f"{word}{number}" for word in WORDS * 22)
    return f"{text} mallory{number}@evil.example 4711"[:2048]


class Run:
    """A trace that grows."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.trace = Trace("bench")
        spec = AgentSpec(tools=(LOOK, SAVE, PAY, REBOOT), policy=policy or Policy())
        self.add(RunStarted(task=TASK, agent=spec, nonce="n"))

    def add(self, fact: Fact) -> None:
        self.trace.append(Event(len(self.trace), 0.0, fact))

    def call(self, tool: ToolCard, args: dict[str, Any], output: str) -> Verdict:
        """Judge one call, and let it have been made."""
        said = judge(self.trace, Call(tool=tool.name, args=args), tool)
        number = self.trace.calls_requested + 1
        self.add(
            ActionRequested(
                step=1,
                call_id=f"call_{number}",
                tool=tool.name,
                args=args,
                tier=tool.tier,
                verdict="allow",
                digest=call_digest(tool.name, args),
            )
        )
        self.add(Observed(call_id=f"call_{number}", ok=True, output=output))
        return said


def microseconds(judged: Callable[[], Verdict], times: int = 300) -> float:
    """The median of single calls."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        judged()
        took.append(time.perf_counter() - began)
    return sorted(took)[times // 2] * 1e6


def per_kind() -> dict[str, float]:
    """µs for each kind of call; the first question of a run also reads its observations, once."""
    figures = {}
    clean = Run()
    figures["untainted_read_us"] = microseconds(
        lambda: judge(clean.trace, Call(tool="look", args={"query": "x"}), LOOK)
    )
    run = Run()
    for number in range(100):
        run.call(LOOK, {"query": "alpha"}, observation(number))
    for name, (tool, args, wanted) in CALLS.items():
        call = Call(tool=tool.name, args=args)
        began = time.perf_counter()
        assert judge(run.trace, call, tool).kind == wanted, name
        figures[f"{name}_first_us"] = (time.perf_counter() - began) * 1e6
        figures[f"{name}_us"] = microseconds(lambda call=call, tool=tool: judge(run.trace, call, tool))  # type: ignore[misc]
    return figures


def of_its_own(args: dict[str, Any], number: int) -> dict[str, Any]:
    """These arguments, about another observation than those of the calls before."""
    return {name: value.replace("50", str(number)).replace("4711", str(number)) for name, value in args.items()}


def total_s(calls: int, policy: Policy | None = None) -> float:
    """Seconds of CPU for a run in which every kind of call is judged in turn, each with an observation of 2 KB."""
    texts, kinds = [observation(number) for number in range(calls)], list(CALLS.values())
    steps = [(kinds[n % 4][0], of_its_own(kinds[n % 4][1], n // 2), text) for n, text in enumerate(texts)]
    best = float("inf")
    for _ in range(3):
        run, began = Run(policy), time.process_time()
        for tool, args, text in steps:
            run.call(tool, args, text)
        best = min(best, time.process_time() - began)
    return best


def main() -> None:
    """Print the figures."""
    figures = per_kind()
    for name, policy in (("growth", Policy()), ("growth_trusted", Policy(trusted_tools=("*",)))):
        small, large = total_s(100, policy) / 100, total_s(1_000, policy) / 1_000
        figures |= {f"{name}_us_per_call_100": small * 1e6, f"{name}_us_per_call_1000": large * 1e6}
        figures[f"{name}_ratio"] = large / small
    if "--json" in sys.argv:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:32} {figure:10.2f}")


if __name__ == "__main__":
    main()
