"""The four modes of the ReAct paper on one question with the same tools, and beside them every other pattern.

Standard answers at once, Reason-only thinks without tools, Act-only acts without thinking, ReAct does both. The
replies are scripted after the paper's figure: Reason-only hallucinates, and nothing from outside can correct it;
Act-only finds the page and cannot put it together with the question; ReAct corrects its path by observations. CoT-SC
hallucinates by majority. Where the samples do not agree, CoT-SC → ReAct looks it up; where ReAct gets nowhere within
its steps, ReAct → CoT-SC falls back on what the model knows. Reflection corrects a hasty draft by what was observed.
Plan-and-Execute and a graph make the first search without asking the model, and leave the rest to ReAct.

Source: Yao et al., "ReAct: Synergizing Reasoning and Acting in Language Models" (ICLR 2023), figure 1, section 3.2.
Run: python examples/four_modes.py
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from taoloop import END, START, Agent, Graph, MemoryJournal, Node, Result, ScriptedModel, Trace, normalise_answer
from taoloop.tools import paper_tools

QUESTION = "Aside from the Apple Remote, what other device can control the program Apple Remote was originally"
QUESTION += " designed to interact with?"

RIGHT = "keyboard function keys"

TOOLS = paper_tools(Path(__file__).with_name("pages.jsonl"))


def chain(premise: str, answer: str) -> str:
    """A reply that reasons and answers."""
    return f"Thought: {premise}\nFinal Answer: {answer}"


GUESS = "The Apple Remote was designed to interact with Apple TV, which {} can control."

REACT = [
    "Thought: I search Apple Remote and find the program it was designed for.\nAction: search[Apple Remote]",
    "Thought: That is Front Row, not Apple TV. I search what else controls it.\nAction: search[Front Row]",
    "Thought: Front Row has no page; Front Row (software) may be it.\nAction: search[Front Row (software)]",
    "Thought: An Apple Remote or the keyboard function keys control it.\nAction: finish[keyboard function keys]",
]

SCRIPTS = {
    "standard": ["Final Answer: iPod"],
    "reason_only": [chain(GUESS.format("an iPhone"), "iPhone")],
    "act_only": [
        "Action: search[Apple Remote]",
        "Action: search[Front Row]",
        "Action: search[Front Row (software)]",
        "Action: finish[yes]",
    ],
    "react": REACT,
    "cot_sc": [
        chain(GUESS.format(device), device) for device in ("an iPhone", "an iPad", "iPhone", "the iPhone", "iPod")
    ],
    "cot_sc_then_react": [
        *(chain(GUESS.format(device), device) for device in ("iPhone", "iPad", "iPod", "iPod Touch", "iPhone")),
        *REACT,
    ],
    "react_then_cot_sc": [
        REACT[0],
        REACT[1],
        "Thought: I search Front Row again.\nAction: search[Front Row]",
        "Thought: Once more.\nAction: search[Front Row]",
        chain("It was designed for Front Row, a program on Macs: their keys control it.", "keyboard function keys"),
        chain(GUESS.format("an iPhone"), "iPhone"),
        chain("Front Row on a Mac can be controlled by its keyboard.", "the keyboard function keys"),
        chain("Macs had keys for Front Row.", "Keyboard function keys."),
        chain(GUESS.format("an iPod"), "iPod"),
    ],
    "reflect": [
        REACT[0],
        REACT[2],
        chain("Front Row is for Macs and Apple TV; a phone controls those.", "iPhone"),
        '- No observation names an iPhone; the page says "an Apple Remote or the keyboard function keys" [obs:call_2]',
        chain("The page names the keyboard function keys beside the Apple Remote.", "keyboard function keys"),
        "NONE",
    ],
}
"""The replies of each mode."""


PLAN = {
    "steps": [
        {
            "number": 1,
            "goal": "Find the program that the Apple Remote was designed for",
            "calls": [{"tool": "search", "args": {"entity": "Apple Remote"}}],
        },
        {"number": 2, "goal": "Find what else controls that program", "depends_on": [1]},
    ]
}

PLANNER = [
    f"Thought: The remote first, then its program.\nAction: make_plan: {json.dumps(PLAN)}",
    chain("The page of the program names them.", "keyboard function keys"),
]
"""The replies of `plan_execute` around its steps; the second step is decided by ReAct."""

MODES = (*SCRIPTS, "plan_execute", "graph")


def planned(_task: str, trace: Trace) -> str:
    """A model that plans, and that acts as in ReAct within a step."""
    is_step = trace.started is not None and trace.started.depth > 0
    return (REACT[1:] if is_step else PLANNER)[trace.model_calls]


def flow() -> Graph:
    """A graph that opens the page of a title, and leaves the rest to an agent."""
    reader = Agent(name="reader", model=ScriptedModel(REACT[1:]), tools=TOOLS, dialect="text", max_steps=4)
    fields = {name: {"type": "string", "default": ""} for name in ("question", "title", "page", "answer")}
    return Graph(
        state={"type": "object", "properties": fields},
        nodes={
            "open": Node(TOOLS[0], args={"entity": "{title}"}, writes="page"),
            "read": Node(reader, args={"task": "{question}\n{page}"}, writes="answer"),
        },
        edges={START: "open", "open": "read", "read": END},
        answer="{answer}",
    )


def run(mode: str, journal: MemoryJournal | None = None) -> Result:
    """One mode on the question; every mode is given the same tools and four steps."""
    if mode == "graph":
        return flow().agent(journal=journal).run_sync(json.dumps({"question": QUESTION, "title": "Apple Remote"}))
    model = planned if mode == "plan_execute" else ScriptedModel(SCRIPTS[mode])
    agent = Agent(model=model, tools=TOOLS, strategy=mode, dialect="text", max_steps=4, journal=journal)
    return agent.run_sync(QUESTION)


async def used(journal: MemoryJournal) -> tuple[int, int]:
    """The replies and the calls of the paper's tools in a run and the runs inside it."""
    traces = [Trace(row.run_id, await journal.load(row.run_id)) for row in await journal.runs()]
    names = {tool.name for tool in TOOLS}
    calls = sum(call.requested.tool in names for trace in traces for call in trace.calls.values())
    return sum(trace.model_calls for trace in traces), calls


def is_right(result: Result) -> bool:
    """Whether a run has the right answer, whatever its notation."""
    return normalise_answer(result.answer or "") == RIGHT


if __name__ == "__main__":
    print(f"Question: {QUESTION}\nRight:    {RIGHT}\n")
    for name in MODES:
        journal = MemoryJournal()
        result = run(name, journal)
        replies, calls = asyncio.run(used(journal))
        verdict = "right" if is_right(result) else "wrong"
        print(f"{name:18} {verdict}  replies: {replies}  calls: {calls}  {result.answer}")
