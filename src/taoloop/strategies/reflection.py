"""Reflection on top of ReAct, as a pure function of the trace: draft, critique, revision, until a rule stops it.

The draft is the answer of ReAct. The same model reviews it with a prompt of its own (`model_replied` with the purpose
`critique`; Self-Refine: Madaan et al., 2023); only findings that cite what there is count (`critique.py`). With these
ReAct decides again, with its tools, its policy and its limits, and its next answer is the next draft. How a critique
was judged is a fact (`noted`), so a crash at any point costs at most the reply in progress.

Where an attempt ends without success, the model writes a lesson (purpose `lesson`), which later attempts at the same
task read (Reflexion: Shinn et al., 2023; `taoloop.runtime.lessons`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import Answer, cited_ids
from taoloop.core.effects import Effect, Finish, Record
from taoloop.core.events import (
    ActionRequested,
    ApprovalGiven,
    Event,
    Fact,
    Finished,
    LimitReached,
    ModelErred,
    ModelReplied,
    Noted,
    Observed,
    ReplyRejected,
    Resumed,
    RunStarted,
)
from taoloop.core.text import field_error, join_sentences
from taoloop.core.texts import TEXTS, end_message
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CRITIQUE, EVALUATION, REVISION, UNDONE
from taoloop.dialects.review_prompts import critique_prompt, lesson_prompt, revision_text
from taoloop.errors import ConfigError
from taoloop.strategies.ballot import normalise_answer
from taoloop.strategies.critique import (
    MAX_FINDINGS,
    CitedFinding,
    Critique,
    CritiqueSources,
    dropped_texts,
    read_critique,
)
from taoloop.strategies.evidence_gate import with_evidence
from taoloop.strategies.react import LoopStrategy
from taoloop.strategies.settings import write_name
from taoloop.strategies.termination import exceeded_limit, exceeded_step_limit

DEFAULT_ROUNDS = 2
"""Self-Refine goes up to 4; most of its gain comes with the first two (section 4 of the paper), and each round costs a
critique and a revision."""

MAX_LESSONS = 10

LESSON_STATUSES = frozenset({"max_steps_exceeded", "unreadable", "too_many_errors", "repeated_action", "unsupported"})
"""Ends of an attempt from which a lesson is drawn. Where a budget is spent, no further reply is bought."""

_REACT = LoopStrategy(name="react", acts=True, reasons=True)
_GUARD = "guard"
_SHOWN_CHARS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflect:
    """Draft with ReAct, review the draft, revise it, until nothing is left to correct or a rule stops it.

    It stops when a critique has no finding that counts, after `rounds` revisions, when a revision does not change the
    draft or goes back to an earlier one, and at the limits of the agent. Findings that are still open then are in the
    reason of the run. A critique that cites nothing is refused once with the reason; then it counts as none.

    Raises:
        ConfigError: a setting has no possible value.
    """

    rounds: int = DEFAULT_ROUNDS
    """How many revisions at most, 1 to 10; 2 by default. Each draft is reviewed, the last one too."""

    lessons: int = 0
    """How many lessons of earlier attempts at the same task are read, 0 to 10, the newest first; and whether one is
    written where this attempt fails. 0, the default: neither."""

    kind: ClassVar[str] = "reflect"
    """The name without settings."""

    rules: ClassVar[tuple[str, ...]] = ("react", "reflect")
    """Whose rules and texts are in the prompts."""

    revises: ClassVar[bool] = True
    """An answer of the model may not be the last one."""

    def __post_init__(self) -> None:
        """Reject settings that are out of range."""
        for name, least, most in (("rounds", 1, 10), ("lessons", 0, MAX_LESSONS)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                expected = f"a whole number from {least} to {most}"
                raise field_error(ConfigError, "setting", expected, owner=self.kind, name=name, value=value)

    @property
    def name(self) -> str:
        """The name with all settings, as a trace stores it."""
        return write_name(self.kind, self)

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect."""
        effect = _REACT.next(agent, trace)
        if not isinstance(effect, Finish):
            return effect
        reflection = trace.view("reflection", Reflection)
        if reflection.evaluation is not None:
            reason = end_message(agent.language, "reflect_evaluated", reason=reflection.evaluation)
            effect = Finish(fact=replace(effect.fact, reason=reason))
        elif trace.taken_over is not None:
            pass  # the answer is another agent's, which has reviewed it if it reflects
        elif trace.phase == "answered" and effect.fact.status == "completed":
            return self._review(agent, trace, reflection, effect.fact)
        elif effect.fact.answer is None and reflection.is_revising:
            effect = Finish(fact=_with_draft(trace, effect.fact, reflection))
        fails = reflection.evaluation is not None or effect.fact.status in LESSON_STATUSES
        if self.lessons and fails and not reflection.has_lesson and not _has_spent_budget(trace):
            prompt = lesson_prompt(trace, effect.fact.reason)
            return _REACT.ask(agent, trace, "lesson", trace.step_count, prompt)
        return effect

    def _review(self, agent: AgentSpec, trace: Trace, reflection: Reflection, finish: Finished) -> Effect:
        """What follows a draft: its critique, the judgement on that, a revision, or the end."""
        critique, language = reflection.critique, agent.language
        if reflection.erred is not None:
            return _end(finish, end_message(language, "reflect_failed", detail=reflection.erred.message))
        if critique is None:
            if (repeated := reflection.repeated) is not None:
                return _end(finish, _open_text(trace, repeated, reflection))
            if (reached := exceeded_limit(trace, repeats=False)) is not None:
                return _end(finish, _limit_text(trace, reached, reflection))
            return self._ask(agent, trace, reflection)
        if not reflection.is_judged:
            return Record(facts=(Noted(by=_GUARD, about=CRITIQUE, text=_judgement(trace, reflection)),))
        if critique.cites_nothing:
            if len(reflection.refused) > 1:
                return _end(finish, end_message(language, "reflect_void"))
            if (reached := exceeded_limit(trace, repeats=False)) is not None:
                return _end(finish, _limit_text(trace, reached, reflection))
            return self._ask(agent, trace, reflection)
        if not critique.findings:
            name = "reflect_revised" if reflection.revisions else "reflect_clean"
            return _end(finish, end_message(language, name, count=reflection.revisions))
        if reflection.revisions >= self.rounds:
            return _end(finish, _open_text(trace, "reflect_rounds", reflection))
        if (reached := exceeded_limit(trace, repeats=False) or exceeded_step_limit(trace)) is not None:
            return _end(finish, _limit_text(trace, reached, reflection))
        text = revision_text(trace, [finding.text for finding in critique.findings])
        return Record(facts=(Noted(by=_GUARD, about=REVISION, text=text),))

    @staticmethod
    def _ask(agent: AgentSpec, trace: Trace, reflection: Reflection) -> Effect:
        draft = reflection.draft or ""
        reason = _judgement(trace, reflection) if reflection.refused else ""
        prompt = critique_prompt(trace, draft, MAX_FINDINGS, [(text, reason) for text in reflection.refused])
        return _REACT.ask(agent, trace, "critique", trace.step_count, prompt)


@dataclass(slots=True)
class Reflection:
    """How far the reflection of a run has come. A view of the trace; nothing in it depends on later events."""

    draft: str | None = None
    """The draft: the newest answer."""
    critique: Critique | None = None
    """What its last critique says, as far as that counts."""
    is_judged: bool = False
    """Whether the judgement on that critique is recorded."""
    refused: list[str] = field(default_factory=list)
    """The critiques of this draft that cite nothing."""
    erred: ModelErred | None = None
    """The critique of this draft failed."""
    is_revising: bool = False
    """The model decides again after it, and has no new answer yet."""
    revisions: int = 0
    """How often the model has decided again."""
    open_findings: tuple[CitedFinding, ...] = ()
    """The findings of the last critique, of an earlier draft too."""
    evaluation: str | None = None
    """Why the answer is wrong, as somebody said after the run."""
    has_lesson: bool = False
    """Whether the model was asked for the lesson of this attempt."""
    _has_ended: bool = False
    _drafts: list[tuple[int, str]] = field(default_factory=list)  # steps with their answers, in their plain form
    _sources: CritiqueSources = field(default_factory=CritiqueSources)
    _requests: dict[str, ActionRequested] = field(default_factory=dict)

    @property
    def repeated(self) -> str | None:
        """Whether the draft is the one before it (`reflect_same`) or an earlier one (`reflect_again`)."""
        if len(self._drafts) < 2:
            return None
        form = self._drafts[-1][1]
        earlier = [text for _, text in self._drafts[:-1]]
        return "reflect_same" if form == earlier[-1] else "reflect_again" if form in earlier else None

    def fold(self, event: Event) -> None:
        """Take the next event."""
        fact = event.fact
        if (take := _TAKERS.get(type(fact))) is not None:
            take(self, fact)

    def _start(self, fact: RunStarted) -> None:
        self._sources.said += [
            fact.task,
            fact.agent.instructions,
            *(message.content for message in fact.history if message.role == "user"),
        ]

    def _take_reply(self, reply: ModelReplied) -> None:
        if isinstance(reply.decision, Answer) and reply.purpose != "close":
            self._begin_draft(reply.step, reply.decision.text)
        elif reply.purpose == "critique":
            self._take_critique(reply.text)
        elif reply.purpose == "lesson":
            self.has_lesson = True

    def _reject(self, rejected: ReplyRejected) -> None:
        if self._drafts and self._drafts[-1][0] == rejected.step:
            self._drafts.pop()  # an answer that was sent back is no draft

    def _take_error(self, erred: ModelErred) -> None:
        if erred.purpose == "critique":
            self.erred = erred
        elif erred.purpose == "lesson":
            self.has_lesson = True

    def _request(self, requested: ActionRequested) -> None:
        self._requests[requested.call_id] = requested

    def _approve(self, approval: ApprovalGiven) -> None:
        if approval.args is not None and (requested := self._requests.get(approval.call_id)) is not None:
            self._requests[approval.call_id] = replace(requested, args=approval.args)

    def _observe(self, observed: Observed) -> None:
        self._sources.observations[observed.call_id] = self._requests.get(observed.call_id), observed

    def _reach(self, reached: LimitReached) -> None:
        if reached.status == "budget_exceeded":
            self.has_lesson = True  # the time is up, perhaps while the lesson was being written

    def _finish(self, _: Finished) -> None:
        self._has_ended = True

    def _resume(self, _: Resumed) -> None:
        if self._has_ended:  # else a process died, and the run is where it was
            self.evaluation, self.has_lesson, self._has_ended = None, False, False
        self.erred = None

    def _begin_draft(self, step: int, text: str) -> None:
        self.draft, self._sources.draft, self.is_revising = text, text, False
        self._drafts.append((step, normalise_answer(text)))
        self.critique, self.is_judged, self.refused, self.erred = None, False, [], None

    def _take_critique(self, text: str) -> None:
        self.critique, self.is_judged = read_critique(text, self._sources), False
        if self.critique.cites_nothing:
            self.refused.append(text)
        self.open_findings = self.critique.findings

    def _take_note(self, note: Noted) -> None:
        if note.by == _GUARD and note.about == CRITIQUE:
            self.is_judged = True
        elif note.by == _GUARD and note.about == REVISION:
            self.revisions, self.is_revising = self.revisions + 1, True
        elif note.about == UNDONE:
            self.is_revising = False  # what the draft rests on is gone
        elif note.about == EVALUATION:
            self.evaluation = note.text
        elif note.by != _GUARD:
            self._sources.said.append(note.text)


_TAKERS: dict[type[Fact], Callable[[Reflection, Any], None]] = {
    RunStarted: Reflection._start,
    ModelReplied: Reflection._take_reply,
    ReplyRejected: Reflection._reject,
    ModelErred: Reflection._take_error,
    Noted: Reflection._take_note,
    ActionRequested: Reflection._request,
    ApprovalGiven: Reflection._approve,
    Observed: Reflection._observe,
    LimitReached: Reflection._reach,
    Finished: Reflection._finish,
    Resumed: Reflection._resume,
}


def _end(finish: Finished, reason: str) -> Finish:
    return Finish(fact=replace(finish, reason=reason))


def _has_spent_budget(trace: Trace) -> bool:
    reached = exceeded_limit(trace, repeats=False)
    return reached is not None and reached.status == "budget_exceeded"


def _judgement(trace: Trace, reflection: Reflection) -> str:
    """How the last critique was judged: for people, and for the critic itself if it is refused."""
    critique, language = reflection.critique, trace.agent.language
    assert critique is not None  # noqa: S101  # the caller has one
    dropped = dropped_texts(language, critique)
    if critique.cites_nothing:
        name = "critique_refused" if len(reflection.refused) < 2 else "critique_void"
        example = next(reversed(trace.calls), "call_1")
        text = TEXTS.text(language, name, example=example)
        return f"{text}\n{dropped}" if dropped else text
    if not critique.findings:
        return TEXTS.text(language, "critique_none")
    text = TEXTS.text(language, "critique_counts", count=len(critique.findings))
    lines = "\n".join(f"- {finding.text}" for finding in critique.findings)
    rest = f"\n{TEXTS.text(language, 'critique_dropped', count=len(critique.dropped))}\n{dropped}" if dropped else ""
    if critique.left_out:
        values = {"allowed": MAX_FINDINGS, "count": critique.left_out}
        rest += f"\n{TEXTS.text(language, 'critique_left_out', **values)}"
    return f"{text}\n{lines}{rest}"


def _open_text(trace: Trace, name: str, reflection: Reflection) -> str:
    """Why the reflection stopped with open findings, and what they say."""
    findings = " ".join(finding.text for finding in reflection.open_findings)
    shown = findings if len(findings) <= _SHOWN_CHARS else f"{findings[:_SHOWN_CHARS]}…"
    values = {"revisions": reflection.revisions, "count": len(reflection.open_findings), "findings": shown}
    return end_message(trace.agent.language, name, **values)


def _limit_text(trace: Trace, reached: LimitReached, reflection: Reflection) -> str:
    """That a limit stopped the reflection before its time."""
    language = trace.agent.language
    texts = [end_message(language, "reflect_limit", limit=reached.limit)]
    if reflection.critique is None or reflection.critique.cites_nothing:
        texts.append(end_message(language, "reflect_unreviewed"))
    if reflection.open_findings:
        name = "reflect_before" if reflection.critique is None else "reflect_open"
        texts.append(_open_text(trace, name, reflection))
    return join_sentences(*texts)


def _with_draft(trace: Trace, finish: Finished, reflection: Reflection) -> Finished:
    """The end of a run that a limit stopped in the middle of a revision: its last draft is its answer."""
    reason = f"{finish.reason} {_open_text(trace, 'reflect_kept', reflection)}"
    citations = cited_ids(reflection.draft or "")
    finish = replace(finish, answer=reflection.draft, reason=reason, citations=citations)
    return with_evidence(trace, finish, with_tools=True)
