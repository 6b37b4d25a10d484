"""FEVER claims as text-davinci-002 answered them with ReAct prompts (Yao et al. 2023), played from the record.

The model's own words go through the `text` dialect as `Thought i: …` and `Action i: …`, and the tools answer what the
record says that they answered; they refuse any call that is not the recorded one. So the figures of the paper come out
only if every reply is read exactly as its authors read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taoloop.errors import ToolError
from taoloop.evals.suites.data_files import read_records
from taoloop.evals.worlds import current_world
from taoloop.tools.function import tool
from taoloop.tools.tool import RunContext

CUT_CHARS = 300
"""A thought as long as this filled the 100 tokens that a reply could have; its action came with a second call."""

LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
"""The labels of a claim."""


@tool(name="Search", tier="read", inline=True)
def search(argument: str, *, call: RunContext) -> str:
    """Search the page of an entity.

    Args:
        argument: The entity.
        call: The call.
    """
    return _recorded("Search", argument, call)


@tool(name="Lookup", tier="read", inline=True)
def lookup(argument: str, *, call: RunContext) -> str:
    """Look up the next sentence with a string in the page.

    Args:
        argument: The string.
        call: The call.
    """
    return _recorded("Lookup", argument, call)


@tool(name="Finish", tier="read", inline=True)
def finish(argument: str, *, call: RunContext) -> str:
    """End the episode with a label.

    Args:
        argument: SUPPORTS, REFUTES or NOT ENOUGH INFO.
        call: The call.
    """
    return _recorded("Finish", argument, call)


def _recorded(name: str, argument: str, call: RunContext) -> str:
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
    """A case for each claim: the script `davinci` is the record, the oracle makes its first search and is right."""
    for record in read_records("fever_davinci002_sample.jsonl", "*fever*.jsonl"):
        steps = [_step(step) for step in record["steps"]]
        first = next((step for step in steps if step["tool"] == "Search"), None)
        look_up = [] if first is None else [f"Thought: I look it up.\nAction: Search[{first['argument']}]"]
        yield {
            "id": str(record["id"]),
            "task": record["claim"],
            "world": {"steps": steps},
            "expect": {"em": [record["gold"]]},
            "wrong_answer": next(label for label in LABELS if label != record["gold"]),
            "script": [*({"text": text} for text in look_up), record["gold"]],
            "scripts": {"davinci": list(_replies(record["steps"], record["answer"]))},
        }


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
