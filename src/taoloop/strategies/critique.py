"""What a critique of a draft says, and which of its findings count: those that cite what there is. Pure.

A model that reflects makes things up as any model does, so no finding counts by its words alone. Each must cite an
observation of the run, or words of the task that stand there exactly, and whatever it quotes must stand in what it
cites, in the task or in the draft. What a sound citation is made to say is not understood here: the revision checks it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from taoloop.core.decision import NO_EVIDENCE, citation_marks, cited_ids, excerpt
from taoloop.core.events import ActionRequested, Observed
from taoloop.core.text import lazy_pattern
from taoloop.core.texts import TEXTS
from taoloop.core.views.transcript import input_text, observation_text
from taoloop.dialects.parsing.cleanup import strip_thinking
from taoloop.dialects.texts import ReplyParseError

MAX_FINDINGS = 10
"""How many findings of a critique count; the gravest come first."""

MAX_FINDING_CHARS = 600
"""How long a finding may be; the rest of it is left out."""

_BULLET = lazy_pattern(r"[ \t]*(?:[-*•·–—][ \t]+|\(?[0-9]{1,2}[.)、．）][ \t]*)(?=\S)")
_NOTHING = lazy_pattern(
    r"\W*(?:(?:final answer|最终答案|答案)\W*)?(?:none|(?:no|without) (?:findings?|problems?|issues?)(?: found)?"
    r"|nothing to correct|无|没有(?:意见|问题|发现)?(?:问题)?)\W*"
)
_TASK = lazy_pattern(r"[\[【][ \t]?(?:task|任务)[ \t]?(?:[:：]([^\]】\n]{1,400}))?[\]】]")
_QUOTED = lazy_pattern(r'"([^"\n]{4,400})"|“([^”\n]{4,400})”|「([^」\n]{2,400})」')
_EDGES = " \t\"'“”‘’「」.。,，;；:：!！?？"
_MIN_CITED = 2  # characters of the task that can be cited
_ELISION = lazy_pattern(r"[\[(（]?(?:…+|\.{3,})[\])）]?")

DropCode = Literal["uncited", "unknown", "misquoted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedFinding:
    """What is wrong with a draft, by something that exists."""

    text: str
    """The finding with its citations, as the critique has it."""
    cites: tuple[str, ...]
    """The calls whose observations it cites; empty if it cites the task alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedFinding:
    """A finding that does not count."""

    text: str
    """The finding."""
    code: DropCode
    """`uncited`: it cites nothing. `unknown`: it cites an observation that this run does not have. `misquoted`: what it
    quotes stands neither in what it cites, nor in the task, nor in the draft."""
    detail: str = ""
    """The citation or the quotation in question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Critique:
    """A critique as far as it counts."""

    findings: tuple[CitedFinding, ...] = ()
    """What counts, in its order."""
    dropped: tuple[DroppedFinding, ...] = ()
    """What does not count."""
    left_out: int = 0
    """How many more findings it has than may count; they were not looked at, or are the least grave ones."""
    is_empty: bool = False
    """It neither has findings nor says that there are none."""

    @property
    def cites_nothing(self) -> bool:
        """Whether nothing of it counts, although it does not say that there is nothing to correct."""
        return not self.findings and (bool(self.dropped) or self.is_empty)


@dataclass(slots=True)
class CritiqueSources:
    """What a critique may cite and quote."""

    observations: dict[str, tuple[ActionRequested | None, Observed]] = field(default_factory=dict)
    """The observations so far with their calls, by the ids of the calls."""
    said: list[str] = field(default_factory=list)
    """The task, the instructions, and what people said before and since."""
    draft: str = ""
    """The draft."""
    _texts: dict[str, str] = field(default_factory=dict)

    def fault_of(self, finding: str) -> DroppedFinding | CitedFinding:
        """The finding with what it cites, or why it does not count."""
        cited = [name for name in cited_ids(finding, observations=True) if name != NO_EVIDENCE]
        marks = list(_TASK.finditer(finding))
        if not cited and not marks:
            return DroppedFinding(text=finding, code="uncited")
        sources = {name: self._calls_with(name) for name in cited}
        if unknown := next((name for name, calls in sources.items() if not calls), None):
            return DroppedFinding(text=finding, code="unknown", detail=unknown)
        names = list(dict.fromkeys(name for calls in sources.values() for name in calls))
        words = [mark[1].strip(_EDGES) for mark in marks if mark[1]]
        if wrong := next((text for text in words if not self._is_said(text)), None):
            return DroppedFinding(text=finding, code="misquoted", detail=wrong)
        rest = _TASK.sub(" ", finding)
        quotes = [text for match in _QUOTED.finditer(rest) if (text := "".join(filter(None, match.groups())).strip())]
        if not names and not any(map(_plain, words)) and not any(map(self._is_said, quotes)):
            return DroppedFinding(text=finding, code="uncited")
        if wrong := next((text for text in quotes if not self._has(text, names)), None):
            return DroppedFinding(text=finding, code="misquoted", detail=wrong)
        return CitedFinding(text=finding, cites=tuple(names))

    def _calls_with(self, cited: str) -> list[str]:
        """The calls whose observations are cited by `obs:CALL_ID`, or have the passage `doc:ID`."""
        if cited.startswith("doc:"):
            return [name for name, (_, observed) in self.observations.items() if cited in observed.output]
        name = cited.removeprefix("obs:")
        return [name] if name in self.observations else []

    def _is_said(self, quote: str) -> bool:
        plain = _plain(quote)
        return len(plain) >= _MIN_CITED and any(_has_words(_plain(text), plain) for text in self.said)

    def _has(self, quote: str, names: list[str]) -> bool:
        parts = [_plain(part).strip(_EDGES) for part in _ELISION.split(quote)]
        texts = (*map(self._text_of, names), self.draft, *self.said)
        return any(all(part in plain for part in parts) for plain in map(_plain, texts))

    def _text_of(self, name: str) -> str:
        """An observation with its call, as a critic may quote them; read only where something is quoted."""
        if (text := self._texts.get(name)) is None:
            requested, observed = self.observations[name]
            call = "" if requested is None else f"{requested.tool} {input_text(requested.args)}\n"
            text = self._texts[name] = f"{call}{observation_text(observed)}{_unescaped(observed)}"
        return text


def _has_words(text: str, words: str) -> bool:
    """Whether words stand in a text, and no other ASCII word only begins or ends with them."""
    begin, end = (r"(?<![a-z0-9])" if words[0].isascii() else "", r"(?![a-z0-9])" if words[-1].isascii() else "")
    return re.search(f"{begin}{re.escape(words)}{end}", text) is not None


def read_critique(text: str, sources: CritiqueSources) -> Critique:
    """The findings in the reply of a critic, and those among them that do not count."""
    findings: list[CitedFinding] = []
    dropped: list[DroppedFinding] = []
    items = list(_items(text))
    if not items:
        return Critique(is_empty=not _says_nothing(text))
    for item in items[: 2 * MAX_FINDINGS]:
        match sources.fault_of(item):
            case CitedFinding() as finding:
                findings.append(finding)
            case DroppedFinding() as drop:
                dropped.append(drop)
    left_out = len(items) - len(dropped) - min(len(findings), MAX_FINDINGS)
    return Critique(findings=tuple(findings[:MAX_FINDINGS]), dropped=tuple(dropped), left_out=left_out)


def dropped_texts(language: str, critique: Critique) -> str:
    """Why findings of a critique do not count, one line for each."""
    return "\n".join(
        f"- {TEXTS.text(language, f'critique_{drop.code}', text=excerpt(drop.text), detail=drop.detail)}"
        for drop in critique.dropped
    )


def _unescaped(observed: Observed) -> str:
    """The text of an output that is a JSON string, which a critic may quote without its escapes."""
    if observed.form != "json" or "\\" not in observed.output:
        return ""
    try:
        value = json.loads(observed.output)
    except (ValueError, RecursionError):
        return ""
    return f"\n{value}" if isinstance(value, str) else ""


def _items(text: str) -> Iterator[str]:
    """The findings as they are listed, each on one line; without a list every line is one."""
    lines = [line for line in _visible(text).splitlines() if line.strip() and not line.strip().startswith("```")]
    is_list = any(_BULLET.match(line) for line in lines)
    items: list[str] = []
    for line in lines:
        bullet = _BULLET.match(line)
        if bullet or not is_list:
            items.append(line[bullet.end() if bullet else 0 :].strip())
        elif items:
            items[-1] += f" {line.strip()}"
    return (_cut(item) for item in items if not _NOTHING.fullmatch(_plain(item)))


def _cut(item: str) -> str:
    """A finding of a bearable length, with the citations at its end."""
    if len(item) <= MAX_FINDING_CHARS:
        return item
    rest = item[MAX_FINDING_CHARS:]
    marks = " ".join(rest[mark.start : mark.end] for mark in citation_marks(rest))
    return f"{item[:MAX_FINDING_CHARS]}… {marks[:MAX_FINDING_CHARS]}".rstrip()


def _says_nothing(text: str) -> bool:
    return _NOTHING.fullmatch(_plain(_visible(text)).strip("`*- ")) is not None


def _visible(text: str) -> str:
    try:
        return strip_thinking(text)
    except ReplyParseError:  # the thinking never ended: there is nothing behind it
        return ""


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
