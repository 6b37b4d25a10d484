"""A run as a conversation that people read: one entry for each event, in the order of the trace.

An entry depends on its event and, for names of tools, on the requests before it. So a page is made from any slice of a
run without the rest of it but its start, and an entry that was shown never moves or changes while the run goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from taoloop.core.agent_spec import Limits
from taoloop.core.attachments.files import AttachmentInfo
from taoloop.core.decision import UNSUPPORTED, Act, Answer, Voted
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    ApprovalGiven,
    ApprovalRefused,
    Compacted,
    Compensated,
    DoubtSettled,
    Event,
    Fact,
    Finished,
    InDoubt,
    JudgedAgain,
    LimitReached,
    ModelErred,
    ModelReplied,
    Noted,
    Observed,
    Paused,
    Pinned,
    ReadDropped,
    ReplyRejected,
    Resumed,
    RunStarted,
    Source,
)
from taoloop.core.human_input import HookActed, InputAnswered, Marked
from taoloop.core.message import STEP_PURPOSES, Usage
from taoloop.core.text import join_sentences
from taoloop.core.texts import gap_text, label_of, preapproval_note, task_with_attachments
from taoloop.core.trace import attachments_of
from taoloop.core.views.entry_texts import ENTRY_TEXTS
from taoloop.core.views.handoff import read_outcome
from taoloop.core.views.loaded_contents import LoadedContents
from taoloop.core.views.steps import CRITIQUE, DROPPED_LESSON, EVALUATION, LESSON, PROBE, REVISION, TIMEOUT
from taoloop.core.views.todos import TODO_CARD, read_todos, todo_lines

Tone = Literal["quiet", "thought", "action", "ask", "good", "bad"]
"""What an entry is to its reader: beside the point, the model's thinking, an action, a question to people, or how
something turned out."""


class Detail(NamedTuple):
    """A short fact beside the head line."""

    name: str
    """What it is; empty where the text speaks for itself."""
    text: str
    """The fact."""


class EntryText(NamedTuple):
    """A text of an entry, whole however long it is."""

    name: str
    """What it is; empty where the head line says so."""
    text: str
    """The text, which is untrusted."""
    form: Literal["text", "code", "folded"] = "text"
    """Prose, code, or code that is shown on demand."""


class RunLink(NamedTuple):
    """Another run that an entry leads to."""

    name: str
    """What it is to this run."""
    run_id: str
    """Its id."""
    step: int | None = None
    """The step of it that is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventEntry:
    """How one event reads. Details and texts that are empty are left out."""

    seq: int
    """The event, and the name of the entry in links."""
    at: float
    """When it happened, in seconds since the epoch (UTC)."""
    kind: str
    """The kind of the event, as stored."""
    tone: Tone
    """What it is to its reader."""
    title: str
    """The head line."""
    details: tuple[Detail, ...] = ()
    """Short facts beside the head line."""
    texts: tuple[EntryText, ...] = ()
    """Texts below it."""
    links: tuple[RunLink, ...] = ()
    """Other runs that it names."""
    step: int | None = None
    """The step that it begins; None for anything else."""
    call_id: str | None = None
    """The call that it is about."""
    artifact: str | None = None
    """The name of the whole output, where a text shows its beginning."""
    attachments: tuple[AttachmentInfo, ...] = ()
    """The images and files that came with it."""
    citations: tuple[str, ...] = ()
    """The passages of observations that an answer cites, as `doc:ID`."""


def event_entries(events: Iterable[Event], language: str, *, earlier: Iterable[Event] = ()) -> list[EventEntry]:
    """The entries of a slice of a run, in order; `earlier` are events before it, for its calls and cards."""
    writer = _EntryWriter(language)
    for event in earlier:
        writer.note(event)
    return [writer.entry(event) for event in events]


class _EntryWriter:
    def __init__(self, language: str) -> None:
        self._language = language
        self._tools: dict[str, str] = {}
        self._loaded = LoadedContents()

    def note(self, event: Event) -> None:
        if isinstance(event.fact, ActionRequested):
            self._tools[event.fact.call_id] = event.fact.tool
        self._loaded.fold(event)

    def entry(self, event: Event) -> EventEntry:
        self.note(event)
        fields = _WRITERS[type(event.fact)](self, event.fact)
        for name in ("details", "texts"):
            fields[name] = tuple(part for part in fields.get(name, ()) if part.text)
        return EventEntry(seq=event.seq, at=event.at, kind=event.kind, **fields)

    def _say(self, name: str, /, **values: object) -> str:
        return ENTRY_TEXTS.text(self._language, name, **values)

    def _detail(self, name: str, text: str | None) -> Detail:
        return Detail(self._say(name), text or "")

    def _tier(self, tier: str | None) -> str:
        return self._say(tier) if tier in _TIERS else tier or ""

    def _text(self, name: str, text: str, form: Literal["text", "code", "folded"] = "text") -> EntryText:
        return EntryText(self._say(name), text, form)

    def _call(self, call_id: str) -> str:
        tool = self._tools.get(call_id)
        return call_id if tool is None else f"{tool} · {call_id}"

    def _names(self, call_ids: Iterable[str]) -> str:
        return ", ".join(self._call(call_id) for call_id in call_ids)

    def _title(self, name: str, *parts: str) -> str:
        return " · ".join(text for text in (self._say(name), *parts) if text)

    def _who(self, by: str, authenticated: str) -> str:
        return by if authenticated or by in ("user", "operator") else self._say("by_claimed", by=by)

    def _spent(self, usage: Usage | None, cost_usd: float | None, seconds: float) -> list[Detail]:
        used = "" if usage is None else f"{usage.input_tokens} + {usage.output_tokens}"
        usd = "" if cost_usd is None else self._say("usd", usd=f"{cost_usd:.6g}")
        took = self._say("milliseconds", ms=1_000 * seconds) if seconds < _FEW_S else self._say("seconds", s=seconds)
        return [self._detail("tokens", used), Detail("", took if seconds else ""), self._detail("cost", usd)]

    # One method for each kind of event

    def started(self, fact: RunStarted) -> dict[str, Any]:
        agent = fact.agent
        links = [
            RunLink(self._say(name), run_id, step)
            for name, run_id, step in (
                ("parent", fact.parent, None),
                ("after", fact.after, None),
                ("forked_from", fact.forked_from, fact.forked_at),
                ("undoes", fact.undoes.run_id if fact.undoes is not None else None, None),
            )
            if run_id is not None
        ]
        details = [
            self._detail("agent", agent.name),
            self._detail("model", agent.model),
            self._detail("handed_over_by", " → ".join(fact.handed_over_by)),
            self._detail("earlier_turns", str(len(fact.history)) if fact.history else ""),
            self._detail("labels", ", ".join(f"{name}={value}" for name, value in fact.labels.items())),
        ]
        text = EntryText("", task_with_attachments(fact))
        parts = {"details": details, "texts": [text], "links": links, "attachments": (*fact.images, *fact.files)}
        return {"tone": "quiet", "title": self._say("task"), **parts}

    def replied(self, fact: ModelReplied) -> dict[str, Any]:
        texts: list[EntryText] = []
        match fact.decision:
            case Act(reason=reason):
                texts.append(self._text("thought", reason))
            case Answer(text=text, reason=reason):
                texts += [self._text("thought", reason), self._text("answer", text)]
        calls = "".join(f"\n→ {call.name} {call.arguments}" for call in fact.tool_calls)
        texts.append(self._text("thinking", fact.thinking, "folded"))
        whole = f"{fact.text}{calls}".strip()
        texts.append(EntryText("", whole) if fact.purpose == "lesson" else self._text("reply", whole, "folded"))
        purpose = "" if fact.purpose == "decide" else self._say(f"purpose_{fact.purpose}")
        return {
            "tone": "thought",
            "title": " · ".join(text for text in (self._say("step", n=fact.step), purpose) if text),
            "details": [self._detail("model", fact.model), *self._spent(fact.usage, fact.cost_usd, fact.latency_s)],
            "texts": texts,
            "step": fact.step if fact.purpose in STEP_PURPOSES else None,
        }

    def voted(self, fact: Voted) -> dict[str, Any]:
        lines = "\n".join(f"{vote.count}/{fact.samples}  {' '.join(vote.answer.split())}" for vote in fact.votes)
        count = f"{fact.winner.count if fact.winner is not None else 0}/{fact.samples}"
        return {
            "tone": "good" if fact.accepted else "quiet",
            "title": self._title("voted" if fact.accepted else "voted_without", count),
            "texts": [EntryText("", lines)],
        }

    def model_erred(self, fact: ModelErred) -> dict[str, Any]:
        return {"tone": "bad", "title": self._title("model_erred", fact.code), "texts": [EntryText("", fact.message)]}

    def read_dropped(self, fact: ReadDropped) -> dict[str, Any]:
        return {
            "tone": "quiet",
            "title": self._title("read_dropped", fact.tool),
            "details": [self._detail("why", self._say(fact.reason))],
            "texts": [self._text("arguments", _data(fact.args), "folded")],
        }

    def rejected(self, fact: ReplyRejected) -> dict[str, Any]:
        excerpt = self._text("excerpt", fact.excerpt, "code")
        is_held_back = fact.code == UNSUPPORTED
        title = self._title("held_back") if is_held_back else self._title("reply_rejected", fact.code)
        return {"tone": "bad", "title": title, "texts": [EntryText("", fact.message), excerpt]}

    def pinned(self, fact: Pinned) -> dict[str, Any]:
        calls = "\n".join(f"{call.tool} {_line(call.args)}" for call in fact.calls)
        return {
            "tone": "quiet",
            "title": self._title("pinned", ", ".join(fact.tools)),
            "details": [self._detail("by", fact.by)],
            "texts": [self._text("calls", calls, "code")],
        }

    def requested(self, fact: ActionRequested) -> dict[str, Any]:
        fields = self._judged(fact, self._title("action", fact.tool, fact.call_id))
        if fact.tool == TODO_CARD.name and (todos := read_todos(fact.args)):
            fields["texts"][0] = EntryText("", todo_lines(todos), "code")
        if fact.written is not None:
            fields["texts"].append(self._text("written", _data(fact.written), "folded"))
        return fields

    def judged_again(self, fact: JudgedAgain) -> dict[str, Any]:
        return self._judged(fact, self._title("judged_again", self._call(fact.call_id)))

    def _judged(self, fact: ActionRequested | JudgedAgain, title: str) -> dict[str, Any]:
        details = [
            self._detail("verdict", self._say(fact.verdict)),
            self._detail("tier", self._tier(fact.tier)),
            self._detail("reasons", self._say("separator").join(fact.reasons)),
            self._detail("rule", fact.rule),
            self._detail("overwrites", fact.replaces),
        ]
        sources = "\n".join(self._source(source) for source in fact.sources)
        texts = [self._text("arguments", _data(fact.args), "code"), self._text("sources", sources)]
        tones: dict[str, Tone] = {"allow": "action", "ask": "ask", "deny": "bad"}
        fields: dict[str, Any] = {"tone": tones[fact.verdict], "title": title, "call_id": fact.call_id}
        return {**fields, "details": details, "texts": texts}

    def _source(self, source: Source) -> str:
        values = {"arg": source.arg, "role": source.role, "origin": self._say(source.badge)}
        if source.call_id is None:
            line = self._say("source", **values)
        else:
            line = self._say("source_of_call", call_id=source.call_id, **values)
        return f"{line}: {source.snippet}" if source.snippet else line

    def approved(self, fact: ApprovalGiven) -> dict[str, Any]:
        notes = {preapproval_note(language, tier) for language in ("en", "zh") for tier in _TIERS}
        name = "preapproved" if fact.by == "operator" and fact.note in notes else "approved"
        scope = "" if fact.scope == "call" else self._say(f"scope_{fact.scope}")
        texts = [self._text("note", fact.note)]
        if fact.args is not None:
            texts.append(self._text("edited", _data(fact.args), "code"))
        return {
            "tone": "good",
            "title": self._title(name, self._call(fact.call_id)),
            "details": [self._detail("by", self._who(fact.by, fact.authenticated)), self._detail("scope", scope)],
            "texts": texts,
            "call_id": fact.call_id,
        }

    def refused(self, fact: ApprovalRefused) -> dict[str, Any]:
        name = "refused_late" if fact.by == TIMEOUT else "refused"
        by = "" if fact.by == TIMEOUT else self._who(fact.by, fact.authenticated)
        return {
            "tone": "bad",
            "title": self._title(name, self._call(fact.call_id)),
            "details": [self._detail("by", by)],
            "texts": [self._text("note", fact.note)],
            "call_id": fact.call_id,
        }

    def action_started(self, fact: ActionStarted) -> dict[str, Any]:
        title = self._title("started", self._call(fact.call_id), self._say("attempt", n=fact.attempt))
        return {"tone": "quiet", "title": title, "texts": [EntryText("", fact.after)], "call_id": fact.call_id}

    def question(self, fact: InputAnswered) -> dict[str, Any]:
        content = _data(fact.content) if fact.content else ""
        return {
            "tone": "good" if fact.action == "accept" else "ask",
            "title": self._title("question", self._call(fact.call_id)),
            "details": [
                self._detail("asker", fact.asker),
                self._detail("answered", fact.action),
                self._detail("by", self._who(fact.by, fact.authenticated)),
            ],
            "texts": [
                EntryText("", join_sentences(fact.message, fact.url)),
                self._text("content", content, "code"),
                self._text("note", fact.note),
            ],
            "call_id": fact.call_id,
        }

    def hook(self, fact: HookActed) -> dict[str, Any]:
        about = self._call(fact.call_id) if fact.call_id else ""
        change = "" if fact.change is None else _data(fact.change)
        return {
            "tone": "quiet" if fact.outcome == "changed" else "bad",
            "title": self._title(f"hook_{fact.outcome}", fact.hook, self._say(fact.moment), about),
            "texts": [EntryText("", fact.reason), self._text("content", change, "code")],
            "call_id": fact.call_id or None,
        }

    def in_doubt(self, fact: InDoubt) -> dict[str, Any]:
        why = self._say(fact.reason) if fact.reason in ("timeout", "no_outcome") else fact.reason
        title = self._title("in_doubt", self._call(fact.call_id))
        return {"tone": "ask", "title": title, "details": [self._detail("why", why)], "call_id": fact.call_id}

    def settled(self, fact: DoubtSettled) -> dict[str, Any]:
        by = self._say("probe") if fact.by == PROBE else fact.by
        return {
            "tone": "ask" if fact.happened is None else "good",
            "title": self._title(f"settled_{str(fact.happened).lower()}", self._call(fact.call_id)),
            "details": [self._detail("by", by)],
            "texts": [self._text("note", fact.note)],
            "call_id": fact.call_id,
        }

    def observed(self, fact: Observed) -> dict[str, Any]:
        details = self._spent(fact.usage, fact.cost_usd, fact.latency_s)
        if fact.artifact is not None:
            name = self._say("artifact_of", ref=fact.artifact, size=fact.size_chars, digest=fact.output_digest)
            details.append(self._detail("artifact", name))
        loaded = self._loaded.by_call.get(fact.call_id)
        if loaded is not None and loaded.content.digest in fact.output:  # its card may have changed before this part
            name = "content_approved" if loaded.content.trusted else "content_foreign"
            text = self._say(name, name=loaded.content.name, digest=loaded.content.digest)
            details.append(self._detail("loaded", text))
        texts = [EntryText("", fact.output, "code"), self._text("printed", fact.printed, "code")]
        if fact.error is not None:
            texts.insert(0, EntryText(fact.error.code, join_sentences(fact.error.message, fact.error.hint)))
        if fact.child is not None and fact.ok and (outcome := read_outcome(fact.output)) is not None:
            texts[0] = self._text("answer", outcome.answer or outcome.reason)
            details.append(self._detail("taken_over_by", f"{outcome.agent} · {outcome.status}"))
        attached = "\n".join(label_of(self._language, info) for info in attachments_of(fact))
        return {
            "tone": "good" if fact.ok else "bad",
            "title": self._title("observed" if fact.ok else "failed", self._call(fact.call_id)),
            "details": details,
            "texts": [*texts, self._text("attachments", attached)],
            "attachments": attachments_of(fact),
            "links": (RunLink(self._say("in_run"), fact.child),) if fact.child else (),
            "call_id": fact.call_id,
            "artifact": fact.artifact,
        }

    def limit_reached(self, fact: LimitReached) -> dict[str, Any]:
        used = self._say("used_of", used=fact.used, allowed=fact.allowed)
        title = self._title("limit_reached", fact.limit)
        return {"tone": "bad", "title": title, "details": [self._detail("used", used)]}

    def compensated(self, fact: Compensated) -> dict[str, Any]:
        return {
            "tone": "good" if fact.ok else "bad",
            "title": self._title("undone" if fact.ok else "not_undone", self._call(fact.call_id)),
            "details": [self._detail("by_call", fact.by_call_id)],
            "texts": [self._text("why", fact.note)],
            "call_id": fact.call_id,
        }

    def compacted(self, fact: Compacted) -> dict[str, Any]:
        size = self._say("size_change", before=fact.tokens_before, after=fact.tokens_after)
        return {
            "tone": "quiet",
            "title": self._say("summarised" if fact.summary else "previewed"),
            "details": [self._detail("covers", str(fact.through_step)), self._detail("size", size)],
            "texts": [self._text("summary", fact.summary, "folded")],
        }

    def paused(self, fact: Paused) -> dict[str, Any]:
        details = [
            self._detail("calls", self._names(fact.waiting_for)),
            self._detail("tier", ", ".join(map(self._tier, fact.tiers))),
        ]
        return {
            "tone": "ask",
            "title": self._say("waiting"),
            "details": details,
            "texts": [EntryText("", fact.reason)],
        }

    def resumed(self, fact: Resumed) -> dict[str, Any]:
        tools = ", ".join(card.name for card in (*fact.cards, *fact.texts))
        limits = "" if fact.limits is None else _limits(fact.limits)
        policy = "" if fact.new_policy is None else fact.new_policy.profile
        return {
            "tone": "quiet",
            "title": self._title("resumed", fact.reason),
            "details": [
                self._detail("limits", limits),
                self._detail("preapproved", ", ".join(fact.approved_tiers or ())),
                self._detail("model", fact.model),
                self._detail("changed_tools", tools),
                self._detail("new_policy", policy),
                Detail("", self._say("fixed_policy") if fact.policy else ""),
            ],
        }

    def noted(self, fact: Noted) -> dict[str, Any]:
        by = "" if fact.by == "guard" else fact.by
        names = {CRITIQUE: "critique", REVISION: "revision", EVALUATION: "evaluation", DROPPED_LESSON: "dropped_lesson"}
        name = names.get(fact.about, "guard_note" if fact.by == "guard" else "note")
        about, links = "" if fact.about in names else fact.about, list[RunLink]()
        if fact.by == "guard" and about.startswith(LESSON):
            name, about, run_id = "lesson", "", about.removeprefix(LESSON)
            links = [RunLink(self._say("from_run"), run_id)]
        return {
            "tone": "thought" if name == "critique" else "quiet",
            "title": self._say(name),
            "details": [self._detail("by", by), self._detail("about", about)],
            "texts": [EntryText("", fact.text)],
            "links": tuple(links),
        }

    def marked(self, fact: Marked) -> dict[str, Any]:
        return {
            "tone": "good" if fact.verdict == "right" else "bad",
            "title": self._title(f"marked_{fact.verdict}"),
            "details": [self._detail("by", self._who(fact.by, fact.authenticated))],
            "texts": [self._text("note", fact.note)],
        }

    def finished(self, fact: Finished) -> dict[str, Any]:
        return {
            "tone": "good" if fact.status == "completed" else "bad",
            "title": self._title("end", fact.status),
            "details": [
                self._detail("abandoned_by", fact.abandoned_by),
                self._detail("denied_calls", self._names(fact.denied)),
                self._detail("unasked_calls", self._names(fact.unasked)),
            ],
            "texts": [
                self._text("answer", fact.answer or ""),
                self._text("reason", fact.reason),
                self._text("evidence", "\n".join(gap_text(self._language, gap) for gap in fact.evidence)),
            ],
            "citations": fact.citations,
        }


_SHORT_CHARS = 72
_FEW_S = 0.1

_TIERS = ("read", "draft", "write", "destructive")

_WRITERS: Mapping[type[Fact], Callable[[_EntryWriter, Any], dict[str, Any]]] = {
    RunStarted: _EntryWriter.started,
    ModelReplied: _EntryWriter.replied,
    ModelErred: _EntryWriter.model_erred,
    ReadDropped: _EntryWriter.read_dropped,
    ReplyRejected: _EntryWriter.rejected,
    Pinned: _EntryWriter.pinned,
    ActionRequested: _EntryWriter.requested,
    JudgedAgain: _EntryWriter.judged_again,
    ApprovalGiven: _EntryWriter.approved,
    ApprovalRefused: _EntryWriter.refused,
    ActionStarted: _EntryWriter.action_started,
    HookActed: _EntryWriter.hook,
    InputAnswered: _EntryWriter.question,
    InDoubt: _EntryWriter.in_doubt,
    DoubtSettled: _EntryWriter.settled,
    Observed: _EntryWriter.observed,
    Voted: _EntryWriter.voted,
    LimitReached: _EntryWriter.limit_reached,
    Compensated: _EntryWriter.compensated,
    Compacted: _EntryWriter.compacted,
    Paused: _EntryWriter.paused,
    Resumed: _EntryWriter.resumed,
    Noted: _EntryWriter.noted,
    Marked: _EntryWriter.marked,
    Finished: _EntryWriter.finished,
}


def _data(value: Any) -> str:
    """A value as JSON: on one line if it is short, else indented."""
    line = _line(value)
    if isinstance(value, str) or len(line) <= _SHORT_CHARS:
        return line
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _line(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _limits(limits: Limits) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in asdict(limits).items() if value is not None)
