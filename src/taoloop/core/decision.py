"""What is decided: actions, an answer or a problem, as a dialect reads them; votes; steps of plans; undos."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

from taoloop.core.fast_stdlib import fast_constructor, json_writer
from taoloop.core.text import lazy_pattern

UNSUPPORTED: Literal["unsupported"] = "unsupported"
"""The code of the rejection of an answer without evidence, and the status of a run that ends with one."""

NO_EVIDENCE = "obs:none"
"""What an answer cites that says of itself that it rests on no observation."""

GapCode = Literal[
    "no_citation",
    "unknown",
    "failed",
    "no_outcome",
    "not_contained",
    "not_observed",
    "uncited",
    "irrelevant",
    "unsourced",
    "used_tools",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceGap:
    """One statement of an answer that the observations of its run do not bear out."""

    code: GapCode
    """`no_citation`: the answer cites nothing. `unknown`: the run has no such call, or no observation has the passage.
    `failed`: the cited call failed. `no_outcome`: it has no observation. `not_contained`: no observation that the
    sentence cites has the value. `not_observed`: no observation has the value, in an answer by a schema. `uncited`: no
    observation has it, in a sentence that cites nothing. `irrelevant`: the cited one has none of the sentence's values.
    `unsourced`: the answer says that it rests on no observation, and has a value that is not in the task either.
    `used_tools`: it says so, and a call of the run succeeded."""
    citation: str = ""
    """What is cited, such as `obs:call_2`; several are separated by a comma and a space."""
    value: str = ""
    """The quotation, number or name, as the answer has it."""
    sentence: str = ""
    """The sentence, shortened."""


class CitationMark(NamedTuple):
    """One place of a text at which it cites something."""

    start: int
    """Where it begins."""
    end: int
    """Where it ends."""
    ids: tuple[str, ...]
    """What is cited there: `obs:CALL_ID`, `doc:PASSAGE` or `obs:none`."""


_CITATION = lazy_pattern(r"(?<![0-9A-Za-z_])doc:([0-9a-z]{12})(?![0-9A-Za-z_])")
_CITED_ID = r"[A-Za-z0-9_-]{1,64}"
_MARK = lazy_pattern(
    rf"[\[【][ \t]?(?:obs|doc)[:：][ \t]?{_CITED_ID}"
    rf"(?:[ \t]?[,，;；、][ \t]?(?:(?:obs|doc)[:：][ \t]?)?{_CITED_ID})*[ \t]?[\]】]"
    r"|(?<![0-9A-Za-z_])(?:obs:call_[0-9]{1,9}|doc:[0-9a-z]{12})(?![0-9A-Za-z_])"
)
_MARKED_ID = lazy_pattern(rf"(?:(obs|doc)[:：][ \t]?)?({_CITED_ID})")


def cited_ids(text: str, *, observations: bool = False) -> tuple[str, ...]:
    """The passages that a text cites as `[doc:ID]`, each once, in the order of their first mention, as `doc:ID`.

    `observations`: and the observations that it cites as `[obs:CALL_ID]`, as `obs:CALL_ID`.
    """
    if observations:
        return tuple(dict.fromkeys(cited for mark in citation_marks(text) for cited in mark.ids))
    return tuple(dict.fromkeys(f"doc:{match[1]}" for match in _CITATION.finditer(text)))


def citation_marks(text: str) -> list[CitationMark]:
    """Where a text cites observations or passages: `[obs:call_1]`, or several as `[obs:call_1, call_2]`."""
    marks = []
    for match in _MARK.finditer(text) if "obs" in text or "doc" in text else ():
        kind, ids = "obs", []
        for marked in _MARKED_ID.finditer(match[0]):
            kind = marked[1] or kind
            ids.append(f"{kind}:{marked[2]}")
        marks.append(CitationMark(match.start(), match.end(), tuple(ids)))
    return marks


def split_at_citations(text: str) -> list[tuple[str, str | None]]:
    """The text in pieces, each with what it cites (`doc:ID`, `obs:CALL_ID`); None for what is between citations.

    Observations are shown by their numbers, as in `number_citations`, and `[obs:none]` is left out.
    """
    pieces: list[tuple[str, str | None]] = []
    end, numbers = 0, _source_numbers(text)
    for mark in citation_marks(text):
        pieces.append((text[end : mark.start], None))
        end = mark.end
        ids = [cited for cited in mark.ids if cited != NO_EVIDENCE]
        if not ids:
            continue
        is_bracketed = text[mark.start] in "[【"
        for index, cited in enumerate(ids):
            before = ("[" if is_bracketed else "") if index == 0 else ", "
            pieces += [(before, None), (str(numbers[cited]) if cited in numbers else cited, cited)]
        pieces.append(("]" if is_bracketed else "", None))
    return [piece for piece in (*pieces, (text[end:], None)) if piece[0]]


def number_citations(text: str) -> tuple[str, tuple[str, ...]]:
    """The text for people, with `[1]` for `[obs:call_3]`, and the observations in the order of these numbers.

    A statement that nothing is cited (`[obs:none]`) is left out.
    """
    numbers = _source_numbers(text)
    if not numbers and NO_EVIDENCE not in text:
        return text, ()
    pieces, end = [], 0
    for mark in citation_marks(text):
        labels = [str(numbers.get(cited, cited)) for cited in mark.ids if cited != NO_EVIDENCE]
        pieces += [text[end : mark.start], f"[{', '.join(labels)}]" if labels else ""]
        end = mark.end
    return "".join((*pieces, text[end:])).strip(), tuple(numbers)


def without_citations(text: str) -> str:
    """The text without the observations that it cites, for another run, which has other calls by these names."""
    pieces, end = [], 0
    for mark in citation_marks(text):
        kept = [cited for cited in mark.ids if not cited.startswith("obs:")]
        pieces += [text[end : mark.start].rstrip(" \t") if not kept else text[end : mark.start]]
        pieces += [f"[{', '.join(kept)}]"] if kept else []
        end = mark.end
    return "".join((*pieces, text[end:])).strip()


def _source_numbers(text: str) -> dict[str, int]:
    cited = (name for name in cited_ids(text, observations=True) if name.startswith("obs:") and name != NO_EVIDENCE)
    return {name: number for number, name in enumerate(cited, 1)}


EXCERPT_CHARS = 200

_canonical = json_writer(json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str))


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One action as the model asked for it."""

    tool: str
    """The name of the tool, as the model wrote it."""
    args: Any
    """Whatever JSON value the model gave; the executor judges it."""
    ref: str | None = None
    """The provider's own id of the call, if it gave one."""


new_call = fast_constructor(Call)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """One entry of the plan of an undo: a call that takes back what an earlier one did."""

    run_id: str
    """The run that made the earlier call."""
    call_id: str
    """The earlier call."""
    call: Call
    """What is called to take it back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """The plan of a run that undoes another one."""

    run_id: str
    """The run whose effects are taken back, with the runs inside it."""
    to_step: int
    """Everything after this step is taken back."""
    plan: tuple[Undo, ...]
    """What is called, in this order."""


PLAN_MODEL = "plan_execute"
"""The `model` of the replies that carry out a plan."""

GRAPH_MODEL = "graph"
"""The `model` of the replies that run the nodes of a graph."""

NO_MODELS = frozenset((PLAN_MODEL, GRAPH_MODEL))
"""The `model` of replies that no model wrote: they are decisions of the executor, and count as no model call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """One call that a step of a plan lists."""

    tool: str
    """The name of the tool."""
    args: Mapping[str, Any]
    """The arguments: values, or stated origins of values that are not known yet (`value_origins.stated_origin`)."""
    is_granted: bool = False
    """Whether a person approved the plan with this call in it: then it may run once without a further question."""
    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """What the executor found at the origins in other steps, by `StatedOrigin.key`, when the step began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One step of a plan (`taoloop.strategies.plan_execute`), which is carried out as a run of its own."""

    number: int
    """Its number, which no other step of the run has."""
    goal: str
    """What it must achieve."""
    depends_on: tuple[int, ...] = ()
    """The steps whose results it needs."""
    calls: tuple[PlannedCall, ...] = ()
    """Exactly what it calls, in this order; empty: the model decides within the step."""
    expect: str = ""
    """What must hold afterwards, or else the plan is made again: for a step with calls a condition over their outputs,
    for any other in words. Empty: that it does not fail."""
    earlier: tuple[Call, ...] = ()
    """In the run of a step, calls of the steps before it: those with an effect, which are not to be repeated, and all
    where a rule or a limit counts the calls of the whole run."""


def call_digest(tool: str, args: Any) -> str:
    """A name for exactly this call: SHA-256 over tool and arguments, independent of the order of keys."""
    text = _canonical([tool, args])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """The model wants to act."""

    calls: tuple[Call, ...]
    """At least one call."""
    reason: str = ""
    """The visible thought; may be empty."""
    unknown_keys: tuple[str, ...] = ()
    """Keys that the reply has beside the decision and that mean nothing to the runtime, such as `confidence`. A call
    above the tier `read` is refused with one."""


new_act = fast_constructor(Act)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The model is done."""

    text: str
    """The answer to the task."""
    reason: str = ""
    """The visible thought; may be empty."""
    citations: tuple[str, ...] = ()
    """The passages that the answer cites, as `doc:ID`, and the observations, as `obs:CALL_ID`."""
    unknown_keys: tuple[str, ...] = ()
    """Keys that the reply has beside the answer and that mean nothing to the runtime."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The reply cannot be read as one decision."""

    code: str
    """Stable: `empty`, `no_decision`, `bad_json`, `truncated`, `invented_observation`, `two_decisions`, `bad_action`,
    `bad_final`, `stray_text`, `bad_answer`."""
    message: str
    """Why, in words that the model can act on."""
    excerpt: str = ""
    """The unusable part, at most 200 characters."""


Decision = Act | Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One answer and the samples that gave it."""

    answer: str
    """The answer as its first sample wrote it; the others differ at most in their notation."""
    samples: tuple[int, ...]
    """The steps of the samples, in order."""

    @property
    def count(self) -> int:
        """How many samples gave the answer."""
        return len(self.samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Voted:
    """The samples of a run were counted (self-consistency); a fact of the trace, which follows from the samples."""

    kind: ClassVar[Literal["voted"]] = "voted"
    votes: tuple[Vote, ...]
    """The answers, the most frequent first, among equals the one that came first. Empty: no sample was readable."""
    samples: int
    """How many samples were counted; those that were unreadable have no vote."""
    accepted: bool
    """Whether the first of the votes is the answer of the run; otherwise the run goes on without it, or ends."""

    @property
    def winner(self) -> Vote | None:
        """The most frequent answer; None if no sample was readable."""
        return self.votes[0] if self.votes else None


AnswerCheck = Callable[[Answer], Answer | Problem]
"""Judges the answer of a run with an output schema: the answer as canonical JSON, or what is wrong with it."""


def excerpt(text: str) -> str:
    """The first 200 characters of `text`, with an ellipsis if it was cut."""
    return text if len(text) <= EXCERPT_CHARS else text[: EXCERPT_CHARS - 1] + "…"
