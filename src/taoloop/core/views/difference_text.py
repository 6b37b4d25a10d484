"""In which words and lines the command line and the panel show a difference of two runs. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from difflib import unified_diff
from typing import Any

from taoloop.core.text import TextCatalog
from taoloop.core.views.run_diff import Difference

_NAMES = TextCatalog(
    "core",
    {
        "history": "conversation before the task",
        "tool": "card of the tool {name}",
        "prompt": "prompt text {name}",
        "answer of a person to": "answer of a person to {name}",
        "arguments of": "arguments of {name}",
        "call": "call {name}",
        "verdict on": "verdict on {name}",
        "observation of": "observation of {name}",
        "output_schema": "schema of the answer",
        "approved_tiers": "tiers approved in advance",
        "closing_turn": "closing turn",
        "repair_turns": "turns to repair an unreadable reply",
        "model_settings": "settings of the model calls",
        "temperature": "temperature",
        "top_p": "nucleus sampling (top_p)",
        "max_output_tokens": "longest reply in tokens",
        "context_tokens": "context window in tokens",
        "model_timeout_s": "time for one reply in seconds",
        "early_reads": "early reads",
        "keep_thinking": "storing the model's thinking",
        "takes_cut_answers": "acceptance of cut answers",
        "evidence": "evidence for answers",
        "task": "task",
        "unreadable replies": "unreadable replies",
        "thought": "thought",
        "answer": "answer",
        "decision": "decision",
        "step": "step",
        "end": "end",
        "instructions": "instructions",
        "language": "language",
        "dialect": "dialect",
        "strategy": "strategy",
        "model": "model",
        "limits": "limits",
        "policy": "policy",
    },
)
"""What may differ, by the first words of `Difference.what`, which `tao diff --json` shows."""

_TEXTS = TextCatalog(
    "core",
    {
        "end": "They first differ in how they end",
        "only": "They first differ in step {step}: only {run} has it",
        "step": "They first differ in step {step}: {part}",
        "steps": "They first differ in step {step} (in {run} step {other}): {part}",
        "prompt": "They first differ before step 1: {part}",
        "hidden": "the complete output, beyond what is shown",
        "nothing": "(nothing)",
        "cut": "[the rest is not shown: {count:,} characters]",
        "answer": "answer",
        "unreadable": "unreadable",
    },
)

_LONG_CHARS, _CONTEXT_LINES = 72, 2
_ALONE_CHARS = 400  # of a side that is compared with nothing


def difference_name(what: str, language: str) -> str:
    """The name of what differs (`Difference.what`) in words."""
    code = next((code for code in _NAMES.english if f"{what} ".startswith(f"{code} ")), None)
    return what if code is None else _NAMES.text(language, code, name=what.removeprefix(code).strip()).strip()


def difference_headline(difference: Difference, runs: Sequence[str], language: str) -> str:
    """Where two runs first differ, in a sentence without its full stop. `runs` are their names, the first one's first.

    It speaks of two runs, whichever they are.
    """
    part = difference_name(difference.what, language)
    step, other, run = difference.step, difference.other_step, runs[difference.run]
    if difference.part == "end":
        return _TEXTS.text(language, "end")
    if difference.part == "step":
        has_it = (other, run) if step is None else (step, runs[0])
        return _TEXTS.text(language, "only", step=has_it[0], run=has_it[1])
    if not step:
        return _TEXTS.text(language, "prompt", part=part)
    return _TEXTS.text(language, "step" if step == other else "steps", step=step, other=other, run=run, part=part)


def decision_text(text: str | None, language: str) -> str:
    """What a step decided (`StepCell.text`), with the words translated that are no tool's."""
    word, space, rest = (text or "–").partition(" ")
    is_ours = word in ("answer", "unreadable")
    return (_TEXTS.text(language, word) if is_ours else word) + space + rest


def difference_lines(
    difference: Difference, runs: Sequence[str], language: str, *, max_chars: int | None = None
) -> list[str]:
    """Both sides of a difference: short ones in a line each, long ones as a unified diff.

    A line begins with `-` (the first run), `+` (the other one), `@` (a place), or a space. `max_chars` is how much of
    each side is compared; what is left out is mentioned.
    """
    first, other = runs[0], runs[difference.run]
    left, right = value_text(difference.a, language), value_text(difference.b, language)
    if left == right:
        return [f" {_TEXTS.text(language, 'hidden')}"]
    longest = _LONG_CHARS if None not in (difference.a, difference.b) else _ALONE_CHARS
    if max(len(left), len(right)) <= longest and "\n" not in left + right:
        return [f"- {first}: {left}", f"+ {other}: {right}"]
    ours, theirs = _lines(difference.a, left), _lines(difference.b, right)
    if max_chars is not None:
        ours, theirs = _cut(ours, max_chars, language), _cut(theirs, max_chars, language)
    return list(unified_diff(ours, theirs, first, other, lineterm="", n=_CONTEXT_LINES))


def value_text(value: Any, language: str) -> str:
    """A side of a difference on one line, unless it is a text of several."""
    if value is None:
        return _TEXTS.text(language, "nothing")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_data)


def _lines(value: Any, text: str) -> list[str]:
    """A value in the lines that a unified diff compares."""
    if value is None or isinstance(value, str):
        return text.splitlines() or [""]
    return json.dumps(value, ensure_ascii=False, default=_data, indent=2).splitlines()


def _cut(lines: list[str], max_chars: int, language: str) -> list[str]:
    """The lines up to a number of characters, and how many are missing."""
    room = max_chars
    for index, line in enumerate(lines):
        if len(line) > room:
            missing = len(line) - room + sum(map(len, lines[index + 1 :]))
            return [*lines[:index], line[:room], _TEXTS.text(language, "cut", count=missing)]
        room -= len(line)
    return lines


def _data(value: Any) -> Any:
    """What JSON does not know: a dataclass as its fields, anything else as a text."""
    if not is_dataclass(value) or isinstance(value, type):
        return str(value)
    return {name: item for name, item in asdict(value).items() if item is not None}
