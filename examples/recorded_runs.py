"""Recorded runs of a real model, played through the text dialect and the loop.

The model's own words are read by the `text` dialect, as `Thought i: …` and `Action i: …`; the tools answer what the
record says that they answered, and refuse any call that is not the recorded one. So the figures below hold only if
every reply is read exactly as its authors read it.

Run: python examples/recorded_runs.py RUNS.jsonl

One JSON object per line: `id`, the task (`claim`, `question` or `task`), `gold`, `answer` and `steps`, a list of
`thought`, `action` and `observation`. Source of the part in the tests: `FEVER.ipynb` of github.com/ysymyth/ReAct
(MIT), 500 runs of text-davinci-002, whose README gives the exact match of 0.540.
"""

from __future__ import annotations

import json
import re
import string
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taoloop import Agent, Limits, Result, Tool, ToolError, tool
from taoloop.journals import ActionRequested, ModelReplied, Observed, ReplyRejected
from taoloop.models import ModelReply

MAX_STEPS = 7
"""The paper's limit for one question (its appendix C)."""

CUT_CHARS = 300
"""A thought as long as this filled the 100 tokens that a reply could have; its action came with a second call."""

Run = Mapping[str, Any]


@dataclass
class Figures:
    """What came out of the runs. `actions` counts the calls by tool, malformed ones aside."""

    runs: int = 0
    steps: int = 0
    matched: int = 0
    malformed: int = 0
    second_calls: int = 0
    repeated: int = 0
    actions: Counter[str] = field(default_factory=Counter)

    @property
    def exact_match(self) -> float:
        """The share of the runs whose answer is the gold answer."""
        return self.matched / self.runs if self.runs else 0.0

    def add(self, record: Run, result: Result) -> None:
        """Count one run, from its trace alone."""
        facts = [event.fact for event in result.trace]
        self.runs += 1
        self.matched += normal(result.answer or "") == normal(str(record["gold"]))
        self.second_calls += sum(isinstance(fact, ReplyRejected) and fact.code == "truncated" for fact in facts)
        self.malformed += sum(isinstance(fact, ReplyRejected) and fact.code != "truncated" for fact in facts)
        unknown = {fact.call_id for fact in facts if isinstance(fact, Observed) and not fact.ok}
        self.malformed += len(unknown)
        calls = [fact for fact in facts if isinstance(fact, ActionRequested) and fact.call_id not in unknown]
        self.actions.update(call.tool for call in calls)
        self.steps += len(calls) + len(unknown)
        self.steps += sum(isinstance(fact, ReplyRejected) and fact.code != "truncated" for fact in facts)
        written = Counter(
            fact.text.rpartition("\nAction")[2].partition(": ")[2]
            for fact in facts
            if isinstance(fact, ModelReplied) and "\nAction" in fact.text
        )
        self.repeated += sum(count - 1 for count in written.values())

    def __str__(self) -> str:
        """One line per figure."""
        actions = ", ".join(f"{count:,} {name}" for name, count in self.actions.most_common())
        return (
            f"{self.runs:,} runs, {self.steps:,} environment steps, exact match {self.exact_match:.3f}\n"
            f"{actions}\n"
            f"{self.malformed} malformed actions, {self.second_calls} replies that needed a second call, "
            f"{self.repeated} repeated actions"
        )


def replies(steps: Sequence[Run], answer: str) -> Iterator[ModelReply]:
    """What the model wrote, as it stood in the paper's prompt; then the answer that the environment took from it."""
    for number, step in enumerate(steps, 1):
        thought, action = f"Thought {number}: {step['thought']}", f"Action {number}: {step['action']}"
        if len(step["thought"]) >= CUT_CHARS:
            yield ModelReply(text=thought, finish_reason="length")
            yield ModelReply(text=f"\n{action}")
        else:
            yield ModelReply(text=f"{thought}\n{action}")
    if answer:
        yield ModelReply(text=f"Final Answer: {answer}")


def world(steps: Sequence[Run]) -> list[Tool]:
    """The recorded environment: one tool per name in the record, each with one text."""
    recorded = iter([step for step in steps if parsed(step["action"])])

    def answered(name: str, argument: str) -> str:
        step = next(recorded, None)
        if step is None or parsed(step["action"]) != (name, argument):
            raise ToolError(f"{name}[{argument}] is not what was recorded: {step}.", code="not_recorded")
        return str(step["observation"])

    def made(name: str) -> Tool:
        @tool(name=name, purpose=f"{name} in the recorded environment.", tier="read", inline=True)
        def act(argument: str) -> str:
            return answered(name, argument)

        return act

    names = {found[0] for step in steps if (found := parsed(step["action"]))}
    return [made(name) for name in sorted(names | {"Search"})]


def parsed(action: str) -> tuple[str, str] | None:
    """The tool and its input (without quotes around the whole), where the record holds one whole action."""
    found = re.fullmatch(r"""(\w+)\[("?)(.*)\2\]""", action.strip(), re.DOTALL)
    return (found[1], found[3]) if found else None


def play(record: Run) -> Result:
    """One recorded run through the loop. Each reply is a step, as in the paper, so there are no repair turns."""
    steps = record["steps"]
    script = list(replies(steps, record["answer"]))
    second_calls = sum(len(step["thought"]) >= CUT_CHARS for step in steps)
    finishes = 1 if record["answer"] else 0
    agent = Agent(
        model=script,
        tools=world(steps),
        dialect="text",
        limits=Limits(
            max_steps=MAX_STEPS + second_calls + finishes,
            max_consecutive_errors=None,
            repeat_tell=None,
            repeat_stop=None,
        ),
        repair_turns=0,
        closing_turn=False,
    )
    return agent.run_sync(next(str(record[key]) for key in ("claim", "question", "task") if key in record))


def normal(answer: str) -> str:
    """An answer as exact match compares it: without case, punctuation, articles and spare blanks (SQuAD's rule)."""
    bare = "".join(sign for sign in answer.lower() if sign not in string.punctuation)
    return " ".join(word for word in bare.split() if word not in ("a", "an", "the"))


def figures(records: Iterable[Run]) -> Figures:
    """All runs, counted."""
    total = Figures()
    for record in records:
        total.add(record, play(record))
    return total


def read(path: Path) -> list[Run]:
    """The runs in a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python examples/recorded_runs.py RUNS.jsonl")
    try:
        print(figures(read(Path(sys.argv[1]))))
    except OSError as error:
        sys.exit(
            f"{sys.argv[1]}: {error.strerror}. Give a file of recorded runs; the head of this program says its form."
        )
