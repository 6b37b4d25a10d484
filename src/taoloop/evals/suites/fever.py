"""FEVER claims as text-davinci-002 answered them with ReAct prompts (Yao et al. 2023), played from the record.

The model's own words go through the `text` dialect as `Thought i: …` and `Action i: …`, and the tools answer what the
record says that they answered; they refuse any call that is not the recorded one. So the figures of the paper come out
only if every reply is read exactly as its authors read it.

The record of the paper has no gold evidence, and its model cites nothing: there is nothing to measure citations over.
A file whose records have the field `evidence` (texts that a cited observation must contain) gives them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taoloop.errors import ToolError
from taoloop.evals.suites.data_files import read_records
from taoloop.evals.worlds import current_world
from taoloop.tools.function import tool
from taoloop.tools.tool import RunContext, Tool

CUT_CHARS = 300
"""A thought as long as this filled the 100 tokens that a reply could have; its action came with a second call."""

LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
"""The labels of a claim."""


def _recorded_tool(name: str, purpose: str, argument: str) -> Tool:
    def recorded(argument: str, *, call: RunContext) -> str:
        return _observation(name, argument, call)

    recorded.__doc__ = f"{purpose}\n\nArgs:\n    argument: {argument}\n    call: The call."
    return tool(name=name, tier="read", inline=True)(recorded)


search = _recorded_tool("Search", "Search the page of an entity.", "The entity.")
lookup = _recorded_tool("Lookup", "Look up the next sentence with a string in the page.", "The string.")
finish = _recorded_tool("Finish", "End the episode with a label.", "SUPPORTS, REFUTES or NOT ENOUGH INFO.")


def _observation(name: str, argument: str, call: RunContext) -> str:
    """The recorded observation of a call, if the record has this call at this place.

    Raises:
        ToolError: it has another one.
    """
    steps = [step for step in current_world().state["steps"] if step["tool"]]
    names = {step["tool"] for step in steps} | {"Search"}
    earlier = 0
    for view in call.calls():
        if view.requested.call_id == call.call_id:
            break
        earlier += view.requested.tool in names
    step = steps[earlier] if earlier < len(steps) else None
    if step is None or (step["tool"], step["argument"]) != (name, argument):
        raise ToolError(f"{name}[{argument}] is not what was recorded: {step}.")
    return str(step["observation"])


def fever_cases() -> Iterator[dict[str, Any]]:
    """A case for each claim: the script `davinci` is the record, and the oracle is right.

    The oracle makes the first search; where the record has evidence, all recorded calls up to the last that has some,
    and cites these.
    """
    for record in read_records("fever_davinci002_sample.jsonl", "*fever*.jsonl"):
        steps = [_step(step) for step in record["steps"]]
        evidence = record.get("evidence", [])
        yield {
            "id": str(record["id"]),
            "task": record["claim"],
            "world": {"steps": steps},
            "expect": {"em": [record["gold"]]},
            "wrong_answer": next(label for label in LABELS if label != record["gold"]),
            "evidence": evidence,
            "script": list(_oracle_replies(steps, record["gold"], evidence)),
            "scripts": {"davinci": list(_replies(record["steps"], record["answer"]))},
        }


def _oracle_replies(steps: Sequence[Mapping[str, str]], gold: str, evidence: Any) -> Iterator[dict[str, str]]:
    """The recorded calls that lead to the evidence, and the right label with what has it cited."""
    calls = [step for step in steps if step["tool"] in ("Search", "Lookup")]
    texts = [text.casefold() for text in evidence if isinstance(text, str)] if isinstance(evidence, list) else []
    cited = [n for n, step in enumerate(calls, 1) if any(text in step["observation"].casefold() for text in texts)]
    for step in calls[: max(cited, default=1)]:
        yield {"text": f"Thought: I look it up.\nAction: {step['tool']}[{step['argument']}]"}
    citation = f" [{', '.join(f'obs:call_{number}' for number in cited)}]" if cited else ""
    yield {"text": f"Final Answer: {gold}{citation}"}


def _step(step: Mapping[str, str]) -> dict[str, str]:
    """A step of the world: its tool and argument (without quotes around it), both empty for a malformed action."""
    match = re.fullmatch(r"""(\w+)\[("?)(.*)\2\]""", step["action"].strip(), re.DOTALL)
    tool_name, argument = (match[1], match[3]) if match else ("", "")
    return {"tool": tool_name, "argument": argument, "observation": step["observation"]}


def _replies(steps: Sequence[Mapping[str, str]], answer: str) -> Iterator[dict[str, str]]:
    """What the model wrote, as it stood in the paper's prompt; then the answer that the environment took from it."""
    for number, step in enumerate(steps, 1):
        thought, action = f"Thought {number}: {step['thought']}", f"Action {number}: {step['action']}"
        if len(step["thought"]) >= CUT_CHARS:
            yield {"text": thought, "finish_reason": "length"}
            yield {"text": f"\n{action}"}
        else:
            yield {"text": f"{thought}\n{action}"}
    if answer:
        yield {"text": f"Final Answer: {answer}"}
