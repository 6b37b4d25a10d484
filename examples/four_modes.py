"""The four modes of the ReAct paper on one question with the same tools, side by side.

Standard answers at once, Reason-only thinks without tools, Act-only acts without thinking, ReAct does both. The
models are scripted after the paper's point: a wrong premise stays wrong in Reason-only, where nothing from outside
can correct it; Act-only finds the page and cannot put it together with the question; ReAct corrects its path from an
observation. Each mode gets a verdict.

Source: Yao et al., "ReAct: Synergizing Reasoning and Acting in Language Models" (ICLR 2023), figure 1.
Run: python examples/four_modes.py
"""

from __future__ import annotations

from taoloop import Agent, Result, ScriptedModel, ToolError, tool

QUESTION = "Aside from the Apple Remote, what other device can control the program it was made for?"

RIGHT = "the keyboard function keys"

PAGES = {
    "Apple Remote": "The Apple Remote was made to control the Front Row media center program.",
    "Front Row (software)": "Front Row is controlled by an Apple Remote or the keyboard function keys.",
}

SCRIPTS = {
    "standard": ["Final Answer: iPod"],
    "reason_only": [
        """Thought: The Apple Remote was made for Apple TV, and Apple TV can be controlled by an iPhone.
Final Answer: iPhone""",
    ],
    "act_only": [
        "Action: search: Apple Remote",
        "Action: search: Front Row (software)",
        "Final Answer: yes",
    ],
    "react": [
        "Thought: I believe that it was made for Apple TV; I check that.\nAction: search: Apple Remote",
        """Thought: It was made for Front Row, not for Apple TV. What else controls Front Row?
Action: search: Front Row (software)""",
        "Thought: The keyboard function keys do.\nFinal Answer: the keyboard function keys",
    ],
}


@tool(tier="read", use_when="A fact about a thing with its own page is needed.")
def search(title: str) -> str:
    """Read the first paragraph of the page with this exact title; it cannot search inside pages."""
    if title not in PAGES:
        raise ToolError(f"There is no page {title!r}.", code="not_found", hint=f"Similar: {', '.join(PAGES)}.")
    return PAGES[title]


def run(mode: str) -> Result:
    """One mode on the question; every mode is given the same tool."""
    return Agent(model=ScriptedModel(SCRIPTS[mode]), tools=[search], strategy=mode, dialect="text").run_sync(QUESTION)


if __name__ == "__main__":
    for name in SCRIPTS:
        result = run(name)
        trace, verdict = result.trace, "right" if result.answer == RIGHT else "wrong"
        print(f"{name:12} {verdict}  steps: {len(trace.steps)}  calls: {trace.tool_calls}  {result.answer}")
