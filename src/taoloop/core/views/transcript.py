"""The result of a run, and the run as text: the entries of a transcript for people, summaries of its steps for a model.

Everything here is made from the trace alone, so no model has to write a summary, and none can omit a step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal

from typing_extensions import TypeVar

from taoloop.core.attachments.files import File
from taoloop.core.cards.questions import is_question
from taoloop.core.decision import UNSUPPORTED, Act, Answer, EvidenceGap, Voted, excerpt
from taoloop.core.events import (
    ActionRequested,
    ApprovalGiven,
    ApprovalRefused,
    Compacted,
    Event,
    Finished,
    ModelReplied,
    Noted,
    Observed,
    ReplyRejected,
    Status,
)
from taoloop.core.handles import render_opaque
from taoloop.core.images import Image
from taoloop.core.message import SIDE_PURPOSES, Usage
from taoloop.core.text import estimate_tokens, join_sentences, truncate_to_tokens
from taoloop.core.texts import TEXTS
from taoloop.core.trace import Trace
from taoloop.core.views.deadlines import wake_time
from taoloop.core.views.loaded_contents import loaded_contents
from taoloop.core.views.steps import CRITIQUE, LESSON, CallView, Step
from taoloop.core.views.todos import Todo, todo_list
from taoloop.errors import IllegalEvent

Output_co = TypeVar("Output_co", default=Any, covariant=True)
"""The value that an answer is."""

PARSER = "parser"
"""The pseudo-tool that reports unreadable replies."""

GATE = "evidence"
"""The pseudo-tool that reports answers which were sent back for want of evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the transcript."""

    number: int
    """Counts from 0."""
    kind: Literal["Thought", "Action", "Observation", "Sample", "Vote", "Draft", "Critique", "Lesson", "Final"]
    """What the entry is. A `Sample` is an answer that is voted on, a `Draft` one that was reviewed; a `Lesson` was read
    from another run, which it names, or is written for the next one."""
    content: str
    """The thought, the action's input as the model sees it, the output, an answer, the votes by their number, or what
    counts of a critique."""
    tool: str | None = None
    """The tool of an action or observation."""
    args: Any = None
    """The input of an action, as data."""
    ok: bool | None = None
    """Whether an observation is a success."""
    child: str | None = None
    """The run that an observation comes from, where the tool is an agent."""
    call_id: str | None = None
    """The call of an action or observation."""

    @property
    def title(self) -> str:
        """What it is, and of which tool; a failure is named."""
        return " ".join(filter(None, (self.kind, self.tool, "(failed)" if self.ok is False else "")))

    def __str__(self) -> str:
        """One line of the printed transcript (more where the content has more)."""
        match self.kind:
            case "Action":
                return f"{self.number} Action {self.tool} {self.content}"
            case "Observation":
                return f"{self.number} Observation {self.tool} ok={str(self.ok).lower()} {self.content}"
            case _:
                return f"{self.number} {self.kind} {self.content}"


def transcript(trace: Trace) -> list[Entry]:
    """All entries in order, numbered from 0. A finished run has exactly one Final, at the end."""
    drafts = draft_events(trace)
    entries = [fields for event in trace.events for fields in _entry_fields(trace, event, event.seq in drafts)]
    if trace.finished is not None:  # ends before a resume are no ends any more
        entries = [fields for fields in entries[:-1] if fields["kind"] != "Final"] + entries[-1:]
    return [Entry(number=number, **fields) for number, fields in enumerate(entries)]


def transcript_text(trace: Trace) -> str:
    """The trajectory in a uniform form: Thought, Action, Action Input (JSON, not ASCII-escaped), Observation."""
    lines: list[str] = []
    for entry in transcript(trace):
        match entry.kind:
            case "Action":
                lines += [f"Action: {entry.tool}", f"Action Input: {entry.content}"]
            case "Final":
                lines.append(f"Final Answer: {entry.content}")
            case _:
                lines.append(f"{entry.kind}: {entry.content}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[Output_co]):
    """How a run ended, or that it waits for a person."""

    run_id: str
    """The id of the run."""

    status: Status
    """How it ended, or `waiting`."""

    answer: str | None
    """The model's answer, as JSON if the agent has an output type; None if there is none."""

    reason: str
    """Why the run ended or waits, in words for people."""

    trace: Trace
    """Everything that happened."""

    output: Output_co | None = None
    """The answer as a value of the agent's output type; plain JSON if that is a schema. None: there is no answer,
    or the agent has no output type."""

    images: tuple[Image, ...] = ()
    """The images that tools returned, each once, in their order."""
    files: tuple[File, ...] = ()
    """The files that tools returned, in the same way."""

    def __repr__(self) -> str:
        """Id, status, and the beginning of the answer or the reason, in one line."""
        text = self.reason if self.answer is None else self.answer
        return f"<Result {self.run_id}: {self.status}, {excerpt(text)!r}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the transcript, escaped and cut."""
        from taoloop.core.views.notebook import transcript_html  # noqa: PLC0415  # in notebooks alone

        reason = f". {self.reason}" if self.answer is None else ""
        heading = f"{self.run_id}: {self.status}, {self.usage.total_tokens:,} tokens{reason}"
        return transcript_html(heading, [(entry.title, entry.content) for entry in self.entries])

    @classmethod
    def of(cls, trace: Trace) -> Result:
        """The result of a run that is finished or waits."""
        end = trace.finished or trace.paused
        if end is None:
            raise IllegalEvent(f"Run {trace.run_id} is still running.")
        answer = None if trace.finished is None else trace.finished.answer
        return cls(run_id=trace.run_id, status=end.status, answer=answer, reason=end.reason, trace=trace)

    @property
    def denied(self) -> tuple[ActionRequested, ...]:
        """The calls for which the run is `blocked`: denied, because nobody could be asked. Empty for any other run."""
        finished = self.trace.finished
        call_ids = () if finished is None else finished.denied
        return tuple(self.trace.calls[call_id].requested for call_id in call_ids)

    @property
    def evidence(self) -> tuple[EvidenceGap, ...]:
        """What the answer says and the observations do not bear out; empty unless the agent asks for evidence."""
        finished = self.trace.finished
        return () if finished is None else finished.evidence

    @property
    def todos(self) -> tuple[Todo, ...]:
        """The todo list that the model kept (`track_todos`), as it was last; empty if there is none."""
        return todo_list(self.trace).todos

    @property
    def open_todos(self) -> tuple[Todo, ...]:
        """The items of the list that are neither done nor dropped. They do not block an answer."""
        return todo_list(self.trace).open

    @property
    def usage(self) -> Usage:
        """The tokens of all model calls."""
        return self.trace.usage

    @property
    def cost_usd(self) -> float | None:
        """The cost of all model calls; None if the price of any of them is unknown."""
        return None if self.trace.unpriced_calls else self.trace.cost_usd

    @property
    def wake_at(self) -> float | None:
        """When a waiting run goes on although nobody answers, in seconds since the epoch; None: it waits for answers.

        Workers resume it then by themselves; without them it is resumed by hand, and what is overdue is refused.
        """
        return wake_time(self.trace)

    @property
    def entries(self) -> list[Entry]:
        """The run as Thought, Action, Observation and Final entries, numbered from 0."""
        return transcript(self.trace)

    @property
    def text(self) -> str:
        """The whole trajectory as text."""
        return transcript_text(self.trace)


def event_text(event: Event) -> str:
    """An event as it is printed while the run goes on, with a line break at the end; empty for most kinds of events."""
    match event.fact:
        case ModelReplied(purpose="close"):
            return "[last turn]\n"
        case Noted(by="guard", about=about, text=text) if about == CRITIQUE:
            return f"[critique] {text}\n"
        case ModelReplied(purpose=purpose) if purpose in SIDE_PURPOSES:
            return ""
        case Compacted(through_step=step):
            return f"[the prompt is shorter now, up to step {step}]\n"
        case ModelReplied(purpose="sample", step=step, decision=Answer(text=text, reason=reason)):
            return f"[step {step}] Thought: {reason}\n  Sample: {text}\n"
        case Voted() as fact:
            return f"[vote] {votes_text(fact)}\n"
        case ModelReplied(step=step, decision=decision):
            thought = decision.reason if decision else "(unreadable)"
            return f"[step {step}] Thought: {thought}\n" if thought else f"[step {step}]\n"
        case ActionRequested(tool=tool, args=args):
            return f"  Action: {tool}\n  Action Input: {input_text(args)}\n"
        case Observed() as fact:
            return f"  Observation: {observation_text(fact)}\n"
        case ReplyRejected(message=message):
            return f"  Not readable: {message}\n"
        case Finished(status=status, answer=answer, reason=reason):
            return f"[{status}] {reason if answer is None else answer}\n"
        case _:
            return ""


def step_summaries(trace: Trace) -> list[dict[str, Any]]:
    """The auditable record of each step, from 1: what was done and why, in short, without the model's full text."""
    rows: list[dict[str, Any]] = []
    drafts = {getattr(trace.events[seq].fact, "step", 0) for seq in draft_events(trace)} - {trace.step_count}
    for step in trace.steps:
        decision = step.decision
        if not isinstance(decision, Act):
            problem = step.rejected[-1].message if decision is None and step.rejected else ""
            name = "sample" if step.replies[-1].purpose == "sample" else "draft" if step.number in drafts else "final"
            if name != "final" and decision is not None:
                problem = decision.text
            rows.append(
                {
                    "step": step.number,
                    "action": None if decision is None else name,
                    "args": None,
                    "reason_summary": excerpt(decision.reason if decision else ""),
                    "observation_summary": excerpt(problem),
                }
            )
            continue
        rows += [
            {
                "step": step.number,
                "action": call.requested.tool,
                "args": call.requested.args,
                "reason_summary": excerpt(decision.reason),
                "observation_summary": excerpt(observation_text(call.observed)) if call.observed else "",
                **_approval_fields(call),
                **_question_fields(call),
            }
            for call in step.calls
        ]
    return rows


def _question_fields(call: CallView) -> dict[str, Any]:
    """What the call asked a person while it ran, and what came of it; empty if it asked nothing."""
    rows = [
        {"asker": fact.asker, "message": fact.message, "action": fact.action}
        | {name: value for name in ("url", "content", "by", "note") if (value := getattr(fact, name))}
        for fact in call.answers
    ]
    return {"questions": rows} if rows else {}


def _approval_fields(call: CallView) -> dict[str, Any]:
    """The answer of a person, or of the operator in advance, to a call; empty if nobody was asked."""
    approval = call.approval
    if approval is None:
        return {}
    return {"approval": {"allowed": isinstance(approval, ApprovalGiven), "by": approval.by, "note": approval.note}}


def observation_text(observed: Observed) -> str:
    """The output; for a failure its code, message and hint in one line."""
    if observed.error is None:
        return observed.output
    error = observed.error
    return join_sentences(f"{error.code}: {error.message}", error.hint)


def votes_text(voted: Voted) -> str:
    """The votes in one line, the most frequent answer first: `3/5: Paris; 1/5: Lyon`."""
    votes = (f"{vote.count}/{voted.samples}: {' '.join(vote.answer.split())}" for vote in voted.votes)
    return "; ".join(votes) or f"0/{voted.samples}"


def outcome_word(observed: Observed) -> str:
    """How a call ended, for a model: a call in doubt is never called a failure."""
    if observed.ok:
        return "ok"
    return "in doubt" if observed.error is not None and observed.error.code == "in_doubt" else "failed"


def input_text(args: Any) -> str:
    """An action's arguments as JSON, not escaped to ASCII; a bare text stays as it is."""
    return args if isinstance(args, str) else json.dumps(args, ensure_ascii=False, default=str)


def draft_events(trace: Trace) -> set[int]:
    """The events with the replies whose answers were reviewed before the run ended."""
    drafts, newest = set[int](), -1
    for event in trace.events:
        match event.fact:
            case ModelReplied(purpose="critique"):
                drafts.add(newest)
            case ModelReplied(decision=Answer()):
                newest = event.seq
    return drafts


def _reply_fields(reply: ModelReplied, is_draft: bool) -> Iterator[dict[str, Any]]:
    decision = reply.decision
    if decision is not None and decision.reason:
        yield {"kind": "Thought", "content": decision.reason}
    if reply.purpose == "sample" and isinstance(decision, Answer):
        yield {"kind": "Sample", "content": decision.text}
    if is_draft and isinstance(decision, Answer):
        yield {"kind": "Draft", "content": decision.text}
    if reply.purpose == "lesson":
        yield {"kind": "Lesson", "content": reply.text}


def _entry_fields(trace: Trace, event: Event, is_draft: bool) -> Iterator[dict[str, Any]]:
    match event.fact:
        case ModelReplied() as fact:
            yield from _reply_fields(fact, is_draft)
        case Noted(by="guard", about=about, text=text) if about == CRITIQUE:
            yield {"kind": "Critique", "content": text}
        case Noted(by="guard", about=about, text=text) if about.startswith(LESSON):
            yield {"kind": "Lesson", "content": f"{about.removeprefix(LESSON)}: {text}"}
        case Voted() as fact:
            yield {"kind": "Vote", "content": votes_text(fact)}
        case ReplyRejected() as fact:
            tool = GATE if fact.code == UNSUPPORTED else PARSER
            yield {"kind": "Observation", "content": fact.message, "tool": tool, "ok": False}
        case ActionRequested() as fact:
            is_asked = is_question(trace.card(fact.tool))  # whose answer stands where the arguments were
            args = fact.args if is_asked else trace.calls[fact.call_id].args
            fields = {"content": input_text(args), "tool": fact.tool, "args": args, "call_id": fact.call_id}
            yield {"kind": "Action", **fields}
        case Observed() as fact:
            tool = trace.calls[fact.call_id].requested.tool
            content = observation_text(fact)
            fields = {"content": content, "tool": tool, "ok": fact.ok, "child": fact.child, "call_id": fact.call_id}
            yield {"kind": "Observation", **fields}
        case Finished() as fact:
            yield {"kind": "Final", "content": fact.reason if fact.answer is None else fact.answer}
        case _:
            return


_REASON_TOKENS, _INPUT_TOKENS, _OUTPUT_TOKENS = 30, 30, 40  # tokens of a line at most


def summarise_steps(trace: Trace, after: int, through: int, max_tokens: int) -> str:
    """The steps above `after` up to `through`, one line for each call; the newest that fit, in their order."""
    return _newest_that_fit(
        (line for step in reversed(trace.steps[after:through]) for line in reversed(_lines(trace, step))), max_tokens
    )


def summarise_effects(trace: Trace, through: int, max_tokens: int) -> str:
    """The calls up to the step `through` that do more than read, one line for each; the newest that fit."""
    calls = (call for step in reversed(trace.steps[:through]) for call in reversed(step.calls))
    return _newest_that_fit((_call_line(trace, call) for call in calls if _is_effect(trace, call)), max_tokens)


def summarise_contents(trace: Trace, through: int, max_tokens: int) -> str:
    """What calls up to the step `through` have loaded, such as skills, with its digest; the newest that fit.

    A summary holds no instructions that a model could follow word by word, so each line says how to have the text back.
    """
    language = trace.agent.language
    return _newest_that_fit(
        (
            TEXTS.text(
                language,
                "content_summarised",
                call_id=loaded.call_id,
                tool=loaded.tool,
                name=loaded.content.name,
                digest=loaded.content.digest,
            )
            for loaded in loaded_contents(trace).only_before(through)
        ),
        max_tokens,
    )


def _is_effect(trace: Trace, call: CallView) -> bool:
    card = trace.card(call.requested.tool)
    return call.requested.verdict != "deny" and card is not None and not card.reads_only


def _lines(trace: Trace, step: Step) -> list[str]:
    """A step: its reason, and its calls with what came of them; nothing for a sample, which no prompt shows."""
    if step.replies[-1].purpose == "sample":
        return []
    decision = step.decision
    head = f"[{step.number}] {_shorten(decision.reason if decision else '', _REASON_TOKENS)}".rstrip()
    return [head, *(f"  {_call_line(trace, call)}" for call in step.calls)]


def _call_line(trace: Trace, call: CallView) -> str:
    requested, observed = call.requested, call.observed
    hides = trace.agent.policy.observations == "handles"
    args = call.args if not hides else requested.args if requested.written is None else requested.written
    line = f"{requested.call_id} {requested.tool} {_shorten(input_text(args), _INPUT_TOKENS)}"
    if observed is None:
        return line
    output = observation_text(observed)
    if hides:
        agent, card = trace.agent, trace.card(requested.tool)
        refusal = call.approval.note if isinstance(call.approval, ApprovalRefused) else None
        output = render_opaque(requested, observed, card, agent.policy, agent.language, refusal)
    return f"{line} → {outcome_word(observed)}: {_shorten(output, _OUTPUT_TOKENS)}"


def _shorten(text: str, max_tokens: int) -> str:
    line = " ".join(text[: 16 * max_tokens].split())
    short = truncate_to_tokens(line, max_tokens)
    return short if short == line else f"{short}…"


def _newest_that_fit(lines: Iterator[str], max_tokens: int) -> str:
    """The newest of the lines (which come newest first) that fit, in order; a mark shows where lines are missing.

    There is at least the beginning of the newest.
    """
    selected: list[str] = []
    room = max_tokens
    for line in lines:
        room -= estimate_tokens(line) + 1  # and its end
        if room < 0:
            selected.append("…" if selected else f"{truncate_to_tokens(line, max_tokens)}…")
            break
        selected.append(line)
    return "\n".join(reversed(selected))
