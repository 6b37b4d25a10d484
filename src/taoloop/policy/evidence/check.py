"""Which statements of an answer the observations of its run do not bear out.

Checked is what a sentence attributes to the observations that it cites (`claims.py`): each must exist in this run, have
succeeded and contain something of the sentence, and each value of the sentence must be in one of them, or follow from
the other numbers of the sentence by one operation (`computed.py`). A value that the user or the call's arguments have
already needs no source if another one of the sentence has it. For calls above `read` the arguments are part of what
happened. An answer that cites nothing is a gap as a whole where its run had tools. Beside sentences that cite, one that
does not, and a field of an answer by an output schema, need no citation, but their numbers, dates, identifiers and
addresses are looked for in all observations. A model can still say something false in words, without a value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import Literal

from taoloop.core.cards.tool_search import PAGING_TOOL
from taoloop.core.decision import NO_EVIDENCE, EvidenceGap, GapCode, cited_ids
from taoloop.core.trace import Trace
from taoloop.core.views.loaded_contents import loaded_contents
from taoloop.core.views.steps import CallView
from taoloop.core.views.todos import TODO_CARD
from taoloop.policy.evidence.claims import Claim, ClaimedValue, claims_in, is_label_number, is_precise, number_value
from taoloop.policy.evidence.computed import is_computed
from taoloop.policy.evidence.source_text import SourceText

MAX_GAPS = 20
"""How many gaps are named."""

_SENTENCE_CHARS, _VALUE_CHARS = 160, 120


def evidence_gaps(trace: Trace, answer: str, *, with_tools: bool = True) -> tuple[EvidenceGap, ...]:
    """What an answer says and the observations of its run do not bear out, at most 20 gaps; empty: nothing.

    `with_tools` False: the run had no tools, so an answer need not cite anything.
    """
    return tuple(islice(_Evidence(trace, with_tools=with_tools).gaps(answer), MAX_GAPS))


class _Evidence:
    def __init__(self, trace: Trace, *, with_tools: bool) -> None:
        self._trace = trace
        self._with_tools = with_tools and any(card.name != PAGING_TOOL for card in trace.agent.tools)
        self._succeeded = [call for call in trace.calls.values() if _succeeded(call)]
        self._observed = [call for call in self._succeeded if not self._is_own_text(call)]
        self._sources: dict[str, SourceText] = {}

    def gaps(self, answer: str) -> Iterator[EvidenceGap]:
        is_data = self._trace.agent.output_schema is not None
        texts = _texts_of(answer, is_json=is_data)
        claims = [claim for text in texts for claim in claims_in(text)]
        cited = dict.fromkeys(name for text in texts for name in cited_ids(text, observations=True))
        sources = [name for name in cited if name != NO_EVIDENCE]
        if self._with_tools and not is_data and not cited:
            yield EvidenceGap(code="no_citation")
            return
        if self._with_tools and not sources and NO_EVIDENCE in cited:
            if self._observed:
                names = ", ".join(f"obs:{call.requested.call_id}" for call in self._observed[:MAX_GAPS])
                yield EvidenceGap(code="used_tools", citation=names)
                return
            if not is_data:
                for claim in claims:
                    yield from self._unsourced(claim)
                return
        for name in sources:
            if (code := self._fault(name)) is not None:
                yield EvidenceGap(code=code, citation=name[:80])
        for claim in claims:
            yield from self._claim(claim)
        if self._with_tools:
            yield from self._beside(_fields_of(answer), "not_observed") if is_data else self._beside(claims, "uncited")

    def _beside(self, beside: Iterable[Claim], code: GapCode) -> Iterator[EvidenceGap]:
        """Fields of an answer by a schema, and sentences that cite nothing beside others that do.

        What they say in words is free. Their numbers, dates, identifiers and addresses must be in any observation of
        the run, in the task, or follow from others of the answer.
        """
        claims = list(beside)
        sources = [*(self._source(f"obs:{call.requested.call_id}") for call in self._observed), self._failures]
        everything = Claim("", (), tuple(value for claim in claims for value in claim.values))
        for claim in claims:
            for value in () if claim.citations else claim.values:
                if not is_precise(value) or (code == "uncited" and is_label_number(value)):
                    continue
                if self._task_texts.contains(value) or any(source.verdict(value) is not False for source in sources):
                    continue
                if value.kind == "number" and self._is_computed(value, everything, [*sources, self._task_texts]):
                    continue
                yield _gap(code, "", claim, value)

    def _unsourced(self, claim: Claim) -> Iterator[EvidenceGap]:
        for value in claim.values:
            if value.kind != "name" and not self._task_texts.contains(value) and not self._failures.contains(value):
                yield _gap("unsourced", NO_EVIDENCE, claim, value)

    def _fault(self, name: str) -> Literal["unknown", "failed", "no_outcome"] | None:
        """What is wrong with a citation in itself."""
        if name.startswith("doc:"):
            return None if any(name in _output(call) for call in self._succeeded) else "unknown"
        call = self._trace.calls.get(name.removeprefix("obs:"))
        if call is None:
            return "unknown"
        if call.observed is None:
            return "no_outcome"
        return None if _succeeded(call) else "failed"

    def _claim(self, claim: Claim) -> Iterator[EvidenceGap]:
        if NO_EVIDENCE in claim.citations and len(claim.citations) == 1:
            if self._with_tools:
                yield from self._unsourced(claim)
            return
        names = [name for name in claim.citations if name != NO_EVIDENCE and self._fault(name) is None]
        sources = [self._source(name) for name in names]
        if not sources or not claim.values:
            return
        verdicts = [_best(source.verdict(value) for source in sources) for value in claim.values]
        arguments = self._arguments(names)
        missing = False
        for value, verdict in zip(claim.values, verdicts, strict=True):
            if verdict is not False:  # contained, or it cannot be compared
                continue
            is_in_task = self._task_texts.contains(value)
            if is_in_task and value.kind == "name":
                continue
            if True in verdicts and (is_in_task or arguments.contains(value)):
                continue
            if value.kind == "number" and self._is_computed(value, claim, [*sources, self._task_texts, arguments]):
                continue
            missing = True
            yield _gap("not_contained", ", ".join(names), claim, value)
        if missing or len(names) == 1:
            return
        for name, source in zip(names, sources, strict=True):
            own = self._arguments([name])
            if not any(source.verdict(value) is not False or own.contains(value) for value in claim.values):
                yield _gap("irrelevant", name, claim)

    def _is_computed(self, value: ClaimedValue, claim: Claim, sources: list[SourceText]) -> bool:
        """Whether a number follows from the others of its sentence that have a source."""
        others = [other for other in claim.values if other is not value and other.kind in ("number", "count")]
        operands = [
            number
            for other in others
            if (number := next((number for source in sources for number in source.numbers_of(other)), None)) is not None
        ]
        return any(
            is_computed(number, operands) or is_computed(-number, operands)
            for reading in value.readings
            if len(reading) == 1
            for number in reading
        )

    @cached_property
    def _task_texts(self) -> SourceText:
        """What people said: the task, the conversation before it, the operator's instructions and approved skills."""
        trace = self._trace
        history = trace.started.history if trace.started is not None else ()
        skills = (_output(call) for call in self._succeeded if self._is_approved_content(call))
        return SourceText([trace.task, trace.agent.instructions, *(message.content for message in history), *skills])

    @cached_property
    def _failures(self) -> SourceText:
        """What failed calls said: a report of a failure may repeat it, and it is evidence for nothing else."""
        failed = (call.observed for call in self._trace.calls.values() if not _succeeded(call))
        return SourceText(seen.error.message for seen in failed if seen is not None and seen.error is not None)

    def _is_own_text(self, call: CallView) -> bool:
        """Whether a call only returned what the model or the operator wrote, which shows nothing of the world."""
        return call.requested.tool == TODO_CARD.name or self._is_approved_content(call)

    def _is_approved_content(self, call: CallView) -> bool:
        loaded = loaded_contents(self._trace).by_call.get(call.requested.call_id)
        return loaded is not None and loaded.content.trusted

    def _source(self, name: str) -> SourceText:
        if (source := self._sources.get(name)) is None:
            source = self._sources[name] = SourceText(self._texts_for(name))
        return source

    def _texts_for(self, name: str) -> Iterator[str]:
        """What the model read of what is cited: the observation, and the further pages of one that was cut."""
        for call in self._cited_calls(name):
            yield _output(call)
            if (call.requested.tier or "destructive") != "read":
                yield _arguments_of(call)
            observed = call.observed
            if observed is not None and observed.artifact is not None:
                yield from (_output(page) for page in self._succeeded if _is_page(page, observed.artifact))

    def _arguments(self, names: Iterable[str]) -> SourceText:
        calls = (call for name in names for call in self._cited_calls(name))
        return SourceText(_arguments_of(call) for call in calls)

    def _cited_calls(self, name: str) -> list[CallView]:
        if name.startswith("doc:"):
            return [call for call in self._succeeded if name in _output(call)]
        call = self._trace.calls.get(name.removeprefix("obs:"))
        return [] if call is None else [call]


def _succeeded(call: CallView) -> bool:
    return call.observed is not None and call.observed.ok and call.observed.error is None


def _output(call: CallView) -> str:
    return call.observed.output if call.observed is not None else ""


def _arguments_of(call: CallView) -> str:
    try:
        return f"{call.requested.tool} {json.dumps(call.args, ensure_ascii=False, default=str)}"
    except (TypeError, ValueError, RecursionError):  # keys that JSON does not know, or values within themselves
        return f"{call.requested.tool} {call.args!r}"


def _is_page(call: CallView, artifact: str) -> bool:
    return call.requested.tool == PAGING_TOOL and isinstance(call.args, dict) and artifact in call.args.values()


def _best(verdicts: Iterable[bool | None]) -> bool | None:
    """Of what several sources say of a value: contained in one, else not comparable with one, else in none."""
    values = list(verdicts)
    return True if True in values else None if None in values else False


def _gap(code: GapCode, citation: str, claim: Claim, value: ClaimedValue | None = None) -> EvidenceGap:
    return EvidenceGap(
        code=code,
        citation=citation[:200],
        value="" if value is None else _cut(value.text, _VALUE_CHARS),
        sentence=_cut(claim.text, _SENTENCE_CHARS),
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _fields_of(answer: str) -> Iterator[Claim]:
    """The values of an answer that is JSON, each with its path."""
    try:
        pending = [("", json.loads(answer, parse_float=Decimal))]
    except (ValueError, ArithmeticError, RecursionError):
        return
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            pending += [(f"{path}.{name}".lstrip("."), item) for name, item in reversed(list(value.items()))]
        elif isinstance(value, list):
            pending += [(f"{path}[{index}]", item) for index, item in reversed(list(enumerate(value)))]
        elif isinstance(value, str):
            values = tuple(item for claim in claims_in(value) if not claim.citations for item in claim.values)
            yield Claim(f"{path}: {value}", (), values)
        elif isinstance(value, (int, Decimal)) and not isinstance(value, bool):
            yield Claim(f"{path}: {value}", (), (number_value(value, path.rpartition(".")[2]),))


def _texts_of(answer: str, *, is_json: bool) -> list[str]:
    """The texts of an answer: itself, or the strings of one that is JSON."""
    if not is_json:
        return [answer]
    try:
        pending = [json.loads(answer)]
    except (ValueError, RecursionError):
        return [answer]
    texts: list[str] = []
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            pending += reversed(list(value.values()))
        elif isinstance(value, list):
            pending += reversed(value)
    return texts
