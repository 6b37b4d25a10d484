"""The four modes of the ReAct paper on one question with the same tools; beside them CoT-SC, combinations, reflection.

Standard answers at once, Reason-only thinks without tools, Act-only acts without thinking, ReAct does both. The
replies are scripted after the paper's figure: Reason-only hallucinates, and nothing from outside can correct it;
Act-only finds the page and cannot put it together with the question; ReAct corrects its path by observations. CoT-SC
hallucinates by majority. Where the samples do not agree, CoT-SC → ReAct looks it up; where ReAct gets nowhere within
its steps, ReAct → CoT-SC falls back on what the model knows. Reflection corrects a hasty draft by what was observed.

Source: Yao et al., "ReAct: Synergizing Reasoning and Acting in Language Models" (ICLR 2023), figure 1, section 3.2.
Run: python examples/four_modes.py
"""

from __future__ import annotations

from pathlib import Path

from taoloop import Agent, Result, ScriptedModel
from taoloop.strategies import normalise_answer
from taoloop.tools.documents import paper_tools

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


def run(mode: str) -> Result:
    """One mode on the question; every mode is given the same tools and four steps."""
    agent = Agent(model=ScriptedModel(SCRIPTS[mode]), tools=TOOLS, strategy=mode, dialect="text", max_steps=4)
    return agent.run_sync(QUESTION)


def is_right(result: Result) -> bool:
    """Whether a run has the right answer, whatever its notation."""
    return normalise_answer(result.answer or "") == RIGHT


if __name__ == "__main__":
    print(f"Question: {QUESTION}\nRight:    {RIGHT}\n")
    for name in SCRIPTS:
        result = run(name)
        trace, verdict = result.trace, "right" if is_right(result) else "wrong"
        used = f"replies: {trace.model_calls}  calls: {trace.tool_calls}"
        print(f"{name:18} {verdict}  {used}  {result.answer}")
