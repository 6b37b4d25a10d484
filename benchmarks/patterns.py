"""CPU per step of each pattern above plain ReAct, in memory, with a model and a tool that cost next to nothing.

Run: python benchmarks/patterns.py [--json]
Target: at most 20 µs per step above ReAct, for every pattern; a folder of 200 skills is read and listed in 50 ms. Both
were set on a machine on which a step of ReAct takes 56 µs. So that a machine of any speed can be judged, they are held
as shares of a step of ReAct in the same run: above it at most 20/56 = 0.36 of a step, and the folder at most 893 steps.
The microseconds of this machine are printed beside.

A step is a reply of the model with what answers it. Each pattern is measured in turn with ReAct, at the same number of
steps, and the least of the rounds counts for each, because other load of the machine only ever adds to one. A sample
has no tool call, so it costs less than a step of ReAct, and its figure is negative.

A step of plan_execute is a run of its own, with no reply of a model. Its row has the CPU of the decisions of the
strategy for one step, above those of ReAct for one (`above`); the check of its plan, once for each step (`check`); and
the whole of a step above a call of an agent by ReAct, which is a run of its own as well (`run_above`).

The evidence gate is ReAct with `evidence="require"`: what it adds to each step, the check at the end included. What
that check costs by itself is measured on an answer of six sentences with citations, over observations of 4,000
characters each.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from taoloop import Agent, Limits, ScriptedModel, tool
from taoloop.core.decision import PLAN_MODEL
from taoloop.core.events import ActionStarted
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.core.trace import Trace
from taoloop.policy.evidence.check import evidence_gaps
from taoloop.strategies import get_strategy
from taoloop.tools.skills import SkillFolder, skill_tools

STEPS = 100
PLAN_STEPS = 12
ROUNDS = 30
SKILLS = 200
TARGET_US, SKILLS_MS, REACT_US = 20.0, 50.0, 56.0
"""The targets, and what a step of ReAct takes on the machine on which they were set."""

MOST_SHARE, MOST_SKILLS_STEPS = TARGET_US / REACT_US, SKILLS_MS * 1e3 / REACT_US
"""The same for a machine of any speed: in steps of ReAct."""

UNLIMITED = Limits(max_steps=None, repeat_tell=None, repeat_stop=None)


@tool(tier="read")
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool(name="add", tier="read")
async def look(a: int, b: int) -> str:
    """Look everything up."""
    return OBSERVATION if a + b else ""


def acts(steps: int) -> list[ModelReply]:
    """Calls with different arguments."""
    return [
        ModelReply(tool_calls=(ToolCallText(name="add", arguments=json.dumps({"a": n, "b": 2}), id=f"c{n}"),))
        for n in range(steps)
    ]


def answers(count: int, *, differ: bool = False) -> list[ModelReply]:
    """Answers as samples give them."""
    return [ModelReply(text=f"It is {n if differ else 4}.") for n in range(count)]


def lists(steps: int, name: str, every: int = 5) -> list[ModelReply]:
    """The same with a list of six items, for the tool of this name, in place of every fifth call."""
    replies = acts(steps)
    for n in range(0, steps, every):
        todos = [{"text": f"item {n} {item}", "state": "in_progress" if item == 3 else "open"} for item in range(6)]
        call = ToolCallText(name=name, arguments=json.dumps({"todos": todos}), id=f"t{n}")
        replies[n] = ModelReply(tool_calls=(call,))
    return replies


def reviewed(rounds: int) -> list[ModelReply]:
    """Drafts with findings about each, and the last draft, about which there is none."""
    finding = ModelReply(text="- The sum is another one [obs:call_1]\n- I would write it otherwise")
    drafts = answers(rounds + 1, differ=True)
    return [*(reply for draft in drafts[:-1] for reply in (draft, finding)), drafts[-1], ModelReply(text="NONE")]


PATTERNS: dict[str, Callable[[], list[ModelReply]]] = {
    f"cot_sc:n={STEPS}": lambda: answers(STEPS),
    "react_then_cot_sc": lambda: [*acts(STEPS - 1), *answers(1)],
    "cot_sc_then_react:n=3": lambda: [*answers(3, differ=True), *acts(STEPS - 4), *answers(1)],
    "reflect": lambda: [*acts(STEPS - 6), *reviewed(2)],
    "reflect:rounds=10": lambda: [*acts(STEPS - 22), *reviewed(10)],
}
"""The patterns by the names of their strategies, each with replies for as many steps as ReAct is measured with."""

EVIDENCE = "evidence=require"
"""The evidence gate, beside the patterns."""

OBSERVATION = " ".join(
    f"INV-{number}: {number * 37} pieces at {number}.25 EUR since 2024-05-12." for number in range(80)
)
SENTENCES = " ".join(
    f"There are {number * 37:,} pieces of INV-{number} at {number}.25 EUR since May 12, 2024 [obs:call_{number}]."
    for number in range(1, 7)
)
"""What the check reads, and an answer that cites six such observations."""


@tool(tier="read", name="note_items")
async def note_items(todos: list[dict[str, str]]) -> str:
    """Take a list of items."""
    return f"Saved: {len(todos)}."


def lists_for(name: str) -> Callable[[], list[ModelReply]]:
    """The replies with lists for a tool of this name."""
    return lambda: [*lists(STEPS - 1, name), *answers(1)]


ADDITIONS: dict[str, tuple[Callable[[], list[ModelReply]], dict[str, Any], Callable[[], list[ModelReply]], Any]] = {
    "todo list": (
        lists_for("track_todos"),
        {"tools": [add, "track_todos"]},
        lists_for("note_items"),
        [add, note_items],
    ),
    "a hand-off declared": (
        lambda: plain(),  # noqa: PLW0108  # it is defined below
        {"handoffs": [Agent(name="other", description="Subtracts.", tools=[add])]},
        lambda: plain(),  # noqa: PLW0108  # the same
        [add],
    ),
}
"""What ReAct can have beside its tools, with replies for as many steps, and the replies and tools it is compared to:
for the todo list a tool that gets the same arguments and does nothing."""


def plain() -> list[ModelReply]:
    """The replies of ReAct."""
    return [*acts(STEPS - 1), *answers(1)]


def cited() -> list[ModelReply]:
    """The replies of ReAct, with an answer that cites its first call."""
    return [*acts(STEPS - 1), ModelReply(text="0 and 2 make 2 [obs:call_1].")]


def prepare(strategy: str, replies: Sequence[ModelReply], **options: Any) -> Agent:
    """The agent that answers with these replies."""
    options = {"tools": [add], "strategy": strategy, "limits": UNLIMITED, **options}
    return Agent(model=ScriptedModel(replies), **options)


async def measure_check() -> float:
    """CPU of one check of an answer with six citations, in microseconds, each with its observations read anew."""
    replies = [*acts(6), ModelReply(text=SENTENCES)]
    agent = Agent(model=ScriptedModel(replies), tools=[look], limits=UNLIMITED, evidence="warn")
    trace = (await agent.run("Look.")).trace
    assert evidence_gaps(trace, SENTENCES) == ()
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        evidence_gaps(trace, SENTENCES)
        rounds.append((time.process_time() - began) * 1e6)
    return min(rounds)


async def cpu_us(agent: Agent) -> float:
    """CPU of a run per step, in microseconds."""
    began = time.process_time()
    result = await agent.run("Add.")
    took = time.process_time() - began
    assert result.status == "completed", result.reason
    assert result.trace.model_calls == STEPS
    return took / STEPS * 1e6


async def measure() -> dict[str, dict[str, float]]:
    """For each pattern its CPU per step, and how much that is above ReAct."""
    figures: dict[str, dict[str, float]] = {}
    pairs_of_agents = {name: (prepare(name, script()), prepare("react", plain())) for name, script in PATTERNS.items()}
    pairs_of_agents[EVIDENCE] = prepare("react", cited(), evidence="require"), prepare("react", plain())
    for name, (script, options, plain_script, tools) in ADDITIONS.items():
        pairs_of_agents[name] = prepare("react", script(), **options), prepare("react", plain_script(), tools=tools)
    for name, (own, react) in pairs_of_agents.items():
        await cpu_us(react), await cpu_us(own)  # the first run of an agent makes its parts
        pairs = [(await cpu_us(react), await cpu_us(own)) for _ in range(ROUNDS)]
        react_us, own_us = min(plain_us for plain_us, _ in pairs), min(own_us for _, own_us in pairs)
        figures[name] = {"react_us": react_us, "us": own_us, "above_us": own_us - react_us}
    return figures


def plan() -> list[ModelReply]:
    """A plan, each step with one call, and the answer."""
    calls = [{"tool": "add", "args": {"a": n, "b": 2}} for n in range(PLAN_STEPS)]
    steps = [{"number": number, "goal": "Add.", "calls": [call]} for number, call in enumerate(calls, 1)]
    return [
        ModelReply(tool_calls=(ToolCallText(name="make_plan", arguments=json.dumps({"steps": steps}), id="plan"),)),
        ModelReply(text="It is 4."),
    ]


def agents_of_steps() -> tuple[Agent, Agent]:
    """ReAct that calls an agent for each step, and the agent that plans the same steps."""
    inner = Agent(model=ScriptedModel([*acts(1), *answers(1)]), tools=[add], name="adder", limits=UNLIMITED)
    calls = [
        ModelReply(tool_calls=(ToolCallText(name="adder", arguments=json.dumps({"task": f"Add {n}."}), id=f"c{n}"),))
        for n in range(PLAN_STEPS)
    ]
    outer = ScriptedModel([*calls, *answers(1)])
    react = Agent(model=outer, tools=[inner.as_tool(name="adder", purpose="Add.")], limits=UNLIMITED)
    return react, prepare(f"plan_execute:max_plan_steps={PLAN_STEPS}", plan())


def decisions_us(trace: Trace, first: int) -> float:
    """CPU of the strategy's decisions from event `first` on, per step, in microseconds."""
    strategy, replayed, took = get_strategy(trace.agent.strategy), Trace(trace.run_id), 0
    for event in trace.events[:-1]:
        replayed.append(event)
        if isinstance(event.fact, ActionStarted) or getattr(event.fact, "model", "") == PLAN_MODEL:
            continue  # the runner asks for nothing there: the next event is of the same effect
        began = time.process_time_ns()
        strategy.next(replayed.agent, replayed)
        took += time.process_time_ns() - began if event.seq >= first else 0
    return took / replayed.step_count / 1e3


async def measure_plan() -> dict[str, float]:
    """What a step of a plan costs above one of ReAct: its decisions, the check of its plan, and the whole."""
    react, plans = agents_of_steps()
    flat_agent = prepare("react", plain())
    flat = (await flat_agent.run("Add.")).trace
    rounds = []
    for _ in range(ROUNDS):
        result = await plans.run("Add.")
        made = next(event.seq for event in result.trace.events if event.kind == "observed")
        decided_us = decisions_us(result.trace, made), decisions_us(result.trace, 0), decisions_us(flat, 0)
        rounds.append((await cpu_us(flat_agent), *decided_us, await run_us(plans), await run_us(react)))
    react_us, own_us, whole_us, flat_us, run_of_plan_us, run_of_react_us = map(min, zip(*rounds, strict=True))
    return {
        "react_us": react_us,
        "above_us": own_us - flat_us,
        "check_us": whole_us - own_us,
        "run_above_us": run_of_plan_us - run_of_react_us,
    }


async def run_us(agent: Agent) -> float:
    """CPU of a run per step of a plan, in microseconds."""
    began = time.process_time()
    result = await agent.run("Add.")
    assert result.status == "completed", result.reason
    return (time.process_time() - began) / PLAN_STEPS * 1e6


async def everything() -> dict[str, dict[str, float]]:
    """The figures of all patterns, each with its share of a step of ReAct."""
    figures = {**await measure(), "plan_execute": await measure_plan()}
    return {name: {**row, "share": row["above_us"] / row["react_us"]} for name, row in figures.items()}


def write_skills(folder: Path) -> None:
    """Skills of three files each."""
    for number in range(SKILLS):
        name = f"skill-{number:03}"
        skill = folder / name
        header = f'name: {name}\ndescription: "Does thing {number}. Use when asked: {number}."\nlicense: MIT\n'
        texts = {
            "SKILL.md": f"---\n{header}metadata:\n  author: ann\n---\n" + "Follow the steps of the form.\n" * 60,
            "scripts/run.py": "print('done')\n" * 50,
            "references/FORM.md": "One line of the form.\n" * 200,
        }
        for path, text in texts.items():
            file = skill / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


def skills_ms() -> float:
    """CPU that it takes to read a folder of skills and make the tools that list them, in milliseconds."""
    with TemporaryDirectory() as folder:
        write_skills(Path(folder, "skills"))
        settings = SkillFolder(Path(folder, "skills"), pins=folder)
        times = []
        for _ in range(ROUNDS + 1):  # the first one also imports
            began = time.process_time()
            loaded = skill_tools(settings)
            times.append((time.process_time() - began) * 1e3)
            assert len(loaded.tools[0].card.contents) == SKILLS, loaded.problems
    return min(times[1:])


if __name__ == "__main__":
    figures = asyncio.run(everything())
    check_us, skills = asyncio.run(measure_check()), skills_ms()
    skills_steps = skills * 1e3 / min(row["react_us"] for row in figures.values())
    if "--json" in sys.argv:
        rows = {**figures, EVIDENCE: {**figures[EVIDENCE], "check_us": check_us}}
        print(json.dumps({**rows, "skills_ms": skills, "skills_steps": skills_steps}))
    else:
        print(f"CPU per step, {STEPS} steps, least of {ROUNDS} rounds; limit {MOST_SHARE:.2f} of a step of ReAct")
        for name, row in figures.items():
            parts = (f"{key.removesuffix('_us')} {value:+.1f} µs" for key, value in row.items() if key != "share")
            print(f"{name:24} {row['share']:+.2f} of a step  ({'  '.join(parts)})")
        print(f"check of an answer with 6 citations of {len(OBSERVATION):,} characters each: {check_us / 1e3:.1f} ms")
        steps = f"{skills_steps:.0f} steps of ReAct (limit {MOST_SKILLS_STEPS:.0f})"
        print(f"{SKILLS} skills read and listed: {skills:.1f} ms, {steps}")
    sys.exit(skills_steps > MOST_SKILLS_STEPS or any(row["share"] > MOST_SHARE for row in figures.values()))
