"""What the planner says: thoughts, answers made of observations alone, and refusals, in the language of the task.

A number is taken out of an observation only where there is no doubt which; a failed call gives none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taoloop.core.events import Observed
from taoloop.core.text import TextCatalog, join_sentences
from taoloop.models.offline.arithmetic import parse_number
from taoloop.models.offline.task_values import extract_concepts

_TEXTS = TextCatalog(
    "models/offline",
    {
        "act": 'For "{text}" the tool {tool} fits.',
        "again": "{tool} spells this value otherwise; I try that.",
        "done": "All parts of the task are answered by observations.",
        "plan": "The task is planned whole; its parts: {n}.",
        "result": "The result is {value}.",
        "basis": "Based on: {calls}.",
        "cut": "Only the first part of the output of {tool} was seen.",
        "unfinished": 'Not finished: "{text}" was still open.',
        "cannot": "I cannot do this task: {why} The tools are: {names}.",
        "stopped": "I cannot finish this task: {why}",
        "known": "Known so far: {calls}.",
        "no_tool": 'no tool explains every word of "{text}"; put names and texts in quotes.',
        "no_order": '"{text}" would change something, and it is not a plain order with all values.',
        "several": 'more than one tool fits "{text}".',
        "missing": '"{text}" needs a value for {names} of {tool}.',
        "no_sum": 'no tool computes "{text}".',
        "twice": "it asks for the same call twice.",
        "failed": "{call} failed: {message}",
        "no_value": '"{text}" gave no value that could be used.',
        "no_tools": "I cannot answer without tools, and this run has none.",
        "demo": "This is a demo planner, not a language model: it calls tools with the values of the task, and "
        "calculates.",
        "hint": "For any other task choose a model, such as `--model openai:gpt-4o-mini`; `tao models` lists them.",
    },
)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ](\d\d):(\d\d)")
_PARTS = {"@hour": 1, "@minute": 2}
_RESULTS = {"", "body", "result", "value", "answer", "total", "count", "amount"}
_MOST_SHOWN, _MOST_LINE, _MOST_LEAVES = 1_200, 100, 300


@dataclass(frozen=True, kw_only=True)
class ObservedResult:
    """What a call that succeeded gave."""

    tool: str
    """The tool."""
    args: Mapping[str, Any]
    """Its arguments."""
    observed: Observed
    """The observation."""
    is_lost: bool = False
    """Whether all that is known is that the call happened."""
    concepts: frozenset[str] = frozenset()
    """What the question was about."""
    part: str = ""
    """The part of a time that was asked for: `@hour`, `@minute`, or an empty text."""

    @property
    def is_whole(self) -> bool:
        """Whether the whole output is known."""
        return not self.is_lost and self.observed.artifact is None

    @property
    def call(self) -> str:
        """The call in one line."""
        return format_call(self.tool, self.args)

    @property
    def preview(self) -> str:
        """The output for a person."""
        text = self.observed.output.strip()
        return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} …"

    def extract_number(self) -> str | None:
        """The digits of the one number that was asked for; None where there is none, or more than one."""
        text = self.observed.output.strip()
        if not self.is_whole:
            return None
        if self.part:
            match = _TIME.search(text)
            return str(int(match[_PARTS[self.part]])) if match and len(_TIME.findall(text)) == 1 else None
        if (digits := parse_number(text.removeprefix("result="))) is not None:
            return digits
        leaves = ((name, value) for name, value in _iter_leaves(_parse_json(text)) if self.args.get(name) != value)
        numbers = [(name, value) for name, value in leaves if type(value) in (int, float)]
        named_values = [value for name, value in numbers if extract_concepts(name) & self.concepts]
        values = named_values or [value for name, value in numbers if name in _RESULTS]
        return parse_number(json.dumps(values[0])) if len(values) == 1 else None

    def extract_text(self) -> str | None:
        """The output as text for another tool: of a record its one text; None where not all of it is known."""
        output = self.observed.output
        fields = [value for name, value in _iter_leaves(_parse_json(output)) if name in ("content", "text")]
        texts = [str(value) for value in fields] or [output.removeprefix("result=")]
        return texts[0] if self.is_whole and len(texts) == 1 else None


class Speech:
    """Says things in one language."""

    def __init__(self, *, chinese: bool) -> None:
        self._language, self._stop = ("zh", "。") if chinese else ("en", ".")

    def say(self, name: str, **values: object) -> str:
        """The sentence called `name`."""
        shown = {key: shorten(str(value), 600) for key, value in values.items()}
        return _TEXTS.text(self._language, name, **shown)

    def compose_answer(
        self, results: Sequence[ObservedResult], facts: Sequence[ObservedResult], *, is_cited: bool = False
    ) -> str:
        """The results that no later step used, with the calls that they come from; `is_cited`: as citations too."""
        several = "; ".join(map(_label_result, results)) + self._stop
        parts = [self._describe(results[0]) if len(results) == 1 else several]
        if is_cited:
            parts += [f"[{', '.join(dict.fromkeys(f'obs:{result.observed.call_id}' for result in results))}]"]
        parts += [self.say("basis", calls=_list_calls(facts)) if len(facts) > 1 else f"({facts[0].call})"]
        parts += [self.say("cut", tool=fact.tool) for fact in facts if fact.observed.artifact is not None]
        return join_sentences(*parts)

    def compose_known(self, facts: Sequence[ObservedResult]) -> str:
        """What the calls gave so far."""
        return self.say("known", calls=_list_calls(facts)) if facts else ""

    def _describe(self, result: ObservedResult) -> str:
        number = _find_plain_number(result)
        return result.preview if number is None else self.say("result", value=number)


def format_call(tool: str, args: Mapping[str, Any]) -> str:
    """A call in one short line."""
    values = (f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in args.items())
    return f"{tool}({shorten(', '.join(values), 120)})"


def shorten(text: str, most: int = _MOST_LINE) -> str:
    """A text in one line, cut."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _list_calls(facts: Sequence[ObservedResult]) -> str:
    return "; ".join(f"{fact.call} → {shorten(_strip_full_stop(fact), 80)}" for fact in facts)


def _label_result(result: ObservedResult) -> str:
    label = shorten(", ".join(str(value) for value in result.args.values() if isinstance(value, str | int | float)))
    return f"{label or result.tool}: {_find_plain_number(result) or _strip_full_stop(result)}"


def _find_plain_number(result: ObservedResult) -> str | None:
    """The digits of a result that is nothing but a number, or the part of a time that was asked for."""
    plain = parse_number(result.observed.output.strip().removeprefix("result=")) is not None
    return result.extract_number() if plain or result.part else None


def _strip_full_stop(fact: ObservedResult) -> str:
    """The output as a part of a longer sentence: what is said of a lost one has a full stop of its own."""
    return fact.preview.rstrip(".。") if fact.is_lost else fact.preview


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _iter_leaves(content: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The scalars of a JSON value, each with the name of its field."""
    if isinstance(content, dict):
        for key, value in list(content.items())[:_MOST_LEAVES]:
            yield from _iter_leaves(value, str(key))
    elif isinstance(content, list):
        for value in content[:_MOST_LEAVES]:
            yield from _iter_leaves(value, name)
    else:
        yield name, content
