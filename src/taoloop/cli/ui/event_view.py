"""How the events of a run look to a person: on a terminal with colours and columns, elsewhere as plain lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from taoloop.cli.options import LIMIT_OPTIONS, db_argument
from taoloop.cli.translation import translate
from taoloop.cli.ui.stdio import one_line, strip_control_codes, truncate
from taoloop.core import events as facts
from taoloop.core.cards.card_changes import card_changes
from taoloop.core.decision import UNSUPPORTED, Answer, Voted, number_citations
from taoloop.core.events import Event
from taoloop.core.human_input import HookActed, InputAnswered, Marked
from taoloop.core.stored_events import event_line
from taoloop.core.texts import gap_text, preapproval_note, task_with_attachments
from taoloop.core.trace import Trace
from taoloop.core.views.plans import MAKE_PLAN, plan_lines, read_plan
from taoloop.core.views.steps import CRITIQUE, DROPPED_LESSON, LESSON, REVISION, TIMED_OUT, TIMEOUT
from taoloop.core.views.todos import TODO_CARD, read_todos, todo_lines, todo_list
from taoloop.core.views.transcript import draft_events, input_text, observation_text, votes_text
from taoloop.translation import mark, translate_error

_OPEN = "bold yellow"
STATUS_STYLES = {"completed": "green", "running": "cyan", "waiting": _OPEN, "blocked": _OPEN, "model_failed": "red"}
STATUS_STYLES |= {"unsupported": _OPEN}
"""How a status looks in lists."""

_PREVIEW_CELLS, _PREVIEW_LINES = 480, 8
_LEAST_CELLS = 20  # for a text beside other columns; where there is less room it goes below them
_LABEL_CELLS = {"zh": 9, "en": 11}

DECIDE = mark("Decide: {command}")
RESUME = mark("Resume: {command}")
"""How the commands are announced that answer what a run is waiting for, and that resume it."""

_SUMMARISED = mark("steps 1 to {n} are now a summary (about {before:,} → {after:,} tokens)")
_PREVIEWED = mark("observations up to step {n} are now previews (about {before:,} → {after:,} tokens)")
_SENT_BACK = mark("the findings that count are sent back; the draft is revised")
_LESSON_OF = mark("of run {run_id}\n{text}")
_NO_RESULT_IN_TIME = mark("{call_id}: no result in time")
_PROCESS_STOPPED = mark("{call_id}: the process stopped while it ran")
_SETTLED = mark(
    {
        "True": "{call_id} happened",
        "False": "{call_id} did not happen: it is run again",
        "None": "{call_id}: nobody can tell",
    }
)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Pass it on: rich would end the process here, and a run with it that nobody has stopped."""
        raise  # noqa: PLE0704  # called where it is handled


def console_for(stream: TextIO) -> Console:
    """A console on `stream`: colours only on a terminal, and never with NO_COLOR. Raises BrokenPipeError."""
    plain: dict[str, Any] = {"force_terminal": False, "color_system": None, "soft_wrap": True}
    options = {} if stream.isatty() else plain
    return _Console(file=stream, highlight=False, markup=False, emoji=False, **options)


def write_rows(console: Console, rows: Sequence[tuple[str, ...]], styles: Sequence[str]) -> None:
    """Rows in columns, one style per row. The last column is folded on a terminal and left whole elsewhere.

    On a terminal too narrow for columns it goes below the others.
    """
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    if console.is_terminal and console.width < sum(width + 2 for width in widths) + _LEAST_CELLS:
        for row, style in zip(rows, styles, strict=True):
            console.print(Text("  ".join(one_line(cell) for cell in row[:-1]), style))
            console.print(Padding(Text(one_line(row[-1]), style, overflow="fold"), (0, 0, 0, 2)))
        return
    if console.is_terminal:
        table = Table.grid(padding=(0, 2))
        for _ in rows[0][:-1]:
            table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for row, style in zip(rows, styles, strict=True):
            table.add_row(*(Text(one_line(cell), style) for cell in row))
        console.print(table)
        return
    for row in rows:
        cells = [set_cell_size(one_line(cell), width) for cell, width in zip(row[:-1], widths, strict=True)]
        console.print(Text("  ".join([*cells, one_line(row[-1])])), soft_wrap=True)


def write_events(stream: TextIO, run_id: str, events: Iterable[Event]) -> None:
    """Events for programs: one JSON object per line, at once."""
    stream.writelines(event_line(run_id, event) + "\n" for event in events)
    stream.flush()


@dataclass(slots=True)
class RowWriter:
    """Writes labelled rows. Texts are cleaned here, so nothing untrusted reaches the terminal as it came."""

    console: Console
    """Where the rows go."""
    language: str = "en"
    """The language of the labels."""

    def text(self, text: str, /, **values: object) -> str:
        """The text in the language of the writer."""
        return translate(text, self.language, **values)

    def row(self, label: str, text: str, *, style: str = "", body: str = "", mark: str = "") -> None:
        """A label (in English) and a text beside it; `mark` precedes the label: the number of the step."""
        label = self.text(label)
        content = strip_control_codes(text).rstrip("\n")
        if not self.console.is_terminal:
            head = f"{mark} {label}" if mark else f"  {label}"
            first, *more = content.split("\n")
            lines = [head + self.text(": ") + first, *(f"    {line}".rstrip() for line in more)]
            self.console.print(Text("\n".join(lines)), soft_wrap=True)
            return
        name_cell = Text(f"{mark:>2} ", "dim") + Text(label, style)
        width = 3 + max(_LABEL_CELLS.get(self.language, 10), cell_len(label) + 1)
        if self.console.width < width + _LEAST_CELLS:
            self.console.print(name_cell)
            self.console.print(Padding(Text(content, body, overflow="fold"), (0, 0, 0, 2)))
            return
        table = Table.grid(padding=0)
        table.add_column(width=width, no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row(name_cell, Text(content, body))
        self.console.print(table)

    def line(self, text: str, style: str = "") -> None:
        """A line without a label."""
        self.console.print(Text(strip_control_codes(text), style), soft_wrap=not self.console.is_terminal)

    def gap(self) -> None:
        """An empty line, on a terminal only."""
        if self.console.is_terminal:
            self.console.print()


@dataclass(slots=True)
class EventWriter:
    """Writes the events of one run as they come."""

    pen: RowWriter
    """What writes the rows."""
    trace: Trace
    """The run; it has an event before the event is written."""
    raw: bool = False
    """Show the raw output of the model."""
    whole: bool = False
    """Cut nothing."""

    def write(self, event: Event) -> None:
        """Show one event, which the trace has already."""
        pen = self.pen
        match event.fact:
            case facts.RunStarted() as fact:
                self._started(fact)
            case facts.Resumed(reason=reason):
                pen.row("Resumed", f"{self.trace.run_id}: {reason}" if reason else self.trace.run_id, style="bold")
                write_changes(pen, self.trace, event)
                pen.row("Task", self.trace.task, style="bold", body="bold")
            case facts.ModelReplied() as fact:
                self._replied(fact, event.seq)
            case facts.ReplyRejected() as fact:
                write_rejection(pen, fact)
            case facts.ActionRequested() as fact:
                self._requested(fact)
            case facts.Observed() as fact:
                self._observed(fact)
            case facts.ApprovalGiven() | facts.ApprovalRefused() as fact:
                write_approval(pen, self.trace, fact)
            case facts.Paused(reason=reason):
                pen.gap()
                pen.row("Waiting", reason, style="bold yellow")
            case facts.Finished() as fact:
                pen.gap()
                write_end(pen, fact, self.trace)
                write_review(pen, self.trace, fact)
                write_open_todos(pen, self.trace)
            case _:
                self._write_rare(event)

    def _write_rare(self, event: Event) -> None:
        pen = self.pen
        match event.fact:
            case facts.ModelErred(code=code, message=message):
                text = translate_error(message, pen.language)
                pen.row("Note", f"{code}: {text}", style="yellow", body="dim")
            case Voted() as fact:
                pen.row("Vote", votes_text(fact), style="bold")
            case facts.Compacted() as fact:
                change = _SUMMARISED if fact.summary else _PREVIEWED
                sizes = {"before": fact.tokens_before, "after": fact.tokens_after}
                text = pen.text(change, n=fact.through_step, **sizes)
                summary = f"\n{fact.summary}" if fact.summary and (self.raw or self.whole) else ""
                pen.row("Context", text + summary, style="yellow", body="dim")
            case facts.ReadDropped(tool=tool, args=args, reason=reason):
                text = f"{tool} {self._cut(input_text(args))} ({reason})"
                pen.row("Dropped", text, style="dim", body="dim")
            case facts.JudgedAgain(call_id=call_id, verdict=verdict, reasons=reasons):
                pen.row("Judged again", f"{call_id}: {verdict} ({pen.text('; ').join(reasons)})", style="yellow")
            case facts.InDoubt(call_id=call_id, reason=reason):
                cause = _NO_RESULT_IN_TIME if reason == TIMED_OUT else _PROCESS_STOPPED
                pen.row("In doubt", pen.text(cause, call_id=call_id), style="yellow", body="yellow")
            case InputAnswered() as fact:
                write_input_answered(pen, fact)
            case facts.DoubtSettled() as fact:
                write_doubt_settled(pen, fact)
            case facts.Noted() | Marked() | HookActed() as fact:
                self._noted(fact)
            case facts.Compensated(ok=True) as fact:
                write_undone(pen, self.trace, fact)
            case facts.LimitReached(limit=limit, allowed=allowed, used=used):
                text = pen.text("{limit}: {used:g} of {allowed:g}", limit=limit, used=used, allowed=allowed)
                pen.row("Limit", text, style="yellow", body="yellow")

    def _started(self, fact: facts.RunStarted) -> None:
        agent = fact.agent
        offline = self.pen.text("offline: the embedded planner, not a language model")
        model = offline if agent.model == "offline" else agent.model
        self.pen.line(f"{model} · {agent.strategy} · {agent.dialect} · {agent.language}", "dim")
        write_links(self.pen, fact)
        self.pen.row("Task", task_with_attachments(fact), style="bold", body="bold")

    def _noted(self, fact: facts.Noted | Marked | HookActed) -> None:
        pen = self.pen
        if isinstance(fact, HookActed):
            write_hook(pen, fact)
        elif isinstance(fact, Marked):
            write_marked(pen, fact)
        elif fact.about == DROPPED_LESSON:
            write_dropped_lesson(pen, fact)
        elif fact.by != "guard":
            pen.row("Note", fact.text, style="yellow", body="dim")
        elif fact.about == CRITIQUE:
            pen.row("Critique", fact.text, style="magenta")
        elif fact.about == REVISION and not (self.raw or self.whole):
            pen.row("Note", pen.text(_SENT_BACK), style="yellow", body="dim")
        elif fact.about.startswith(LESSON):
            run_id = fact.about.removeprefix(LESSON)
            pen.row("Lesson", pen.text(_LESSON_OF, run_id=run_id, text=fact.text), style="magenta", body="dim")
        else:
            pen.row("Note", fact.text, style="yellow", body="dim")

    def _write_draft(self, seq: int) -> None:
        """The draft that a critique is about, once."""
        for event in reversed(self.trace.events[:seq]):
            if isinstance(event.fact, facts.ModelReplied):
                if isinstance(event.fact.decision, Answer):
                    self.pen.row("Draft", event.fact.decision.text, style="magenta")
                return

    def _replied(self, fact: facts.ModelReplied, seq: int) -> None:
        if fact.purpose == "critique":
            self._write_draft(seq)
        if self.raw:
            calls = "".join(f"\n→ {call.name} {call.arguments}" for call in fact.tool_calls)
            self.pen.row(
                "Model",
                f"{fact.text}{calls}" or self.pen.text("(empty)"),
                style="magenta",
                body="dim",
                mark=str(fact.step),
            )
        if fact.decision is not None and fact.decision.reason:
            self.pen.row("Thought", fact.decision.reason, style="blue", mark="" if self.raw else str(fact.step))
        if fact.purpose == "sample" and isinstance(fact.decision, Answer):
            has_mark = self.raw or bool(fact.decision.reason)
            self.pen.row("Sample", fact.decision.text, style="magenta", mark="" if has_mark else str(fact.step))
        if fact.purpose == "lesson" and not self.raw:
            self.pen.row("Lesson", fact.text, style="magenta")

    def _requested(self, fact: facts.ActionRequested) -> None:
        step = self.trace.steps[-1] if self.trace.steps else None
        has_mark = self.raw or (step is not None and step.decision is not None and bool(step.decision.reason))
        text = fact.tool + (todo_text(fact.tool, fact.args) or f" {self._cut(input_text(fact.args))}")
        if (plan := read_plan(fact.args) if fact.tool == MAKE_PLAN else None) is not None:
            text = "\n".join((fact.tool, *plan_lines(self.pen.language, plan)))
        self.pen.row("Action", text, style="cyan", body="cyan", mark="" if has_mark else str(fact.step))
        if fact.verdict == "deny" and fact.reasons:
            self.pen.row("Denied", self.pen.text("; ").join(fact.reasons), style="yellow")

    def _observed(self, fact: facts.Observed) -> None:
        if text := handoff_text(self.pen, self.trace, fact.call_id):
            self.pen.row("Handed over", text, style="green")
            return
        call = self.trace.calls.get(fact.call_id)
        step = self.trace.steps[-1] if self.trace.steps else None
        has_siblings = call is not None and step is not None and len(step.calls) > 1
        name = f"{call.requested.tool} → " if has_siblings and call is not None else ""
        text = name + self._cut(observation_text(fact))
        if fact.artifact is not None:
            text += "\n" + self.pen.text(
                "… {n:,} characters in all, stored as {ref}", n=fact.size_chars, ref=fact.artifact
            )
        if fact.child is not None:
            text += "\n" + self.pen.text("by run {run_id}: tao show {run_id}", run_id=fact.child)
        if fact.ok:
            self.pen.row("Observed", text, style="green")
        else:
            self.pen.row("Error", text, style="red", body="red")
        if fact.printed:
            self.pen.row("Printed", self._cut(fact.printed), style="dim", body="dim")

    def _cut(self, text: str) -> str:
        if self.whole:
            return text
        head = text[:_PREVIEW_CELLS]  # wide characters take two cells, so fewer of them fit
        preview, omitted = truncate(text, _PREVIEW_CELLS * len(head) // max(cell_len(head), 1), _PREVIEW_LINES)
        if not omitted:
            return text
        more = self.pen.text("… {n:,} more characters: tao show {run_id}", n=omitted, run_id=self.trace.run_id)
        return f"{preview}\n{more}"


def write_links(pen: RowWriter, fact: facts.RunStarted) -> None:
    """What was declared of its deps; the run that it is part of, continues, and was forked from."""
    if fact.deps:
        pen.row("Deps", input_text(fact.deps), style="dim", body="dim")
    if fact.parent is not None:
        pen.line(pen.text("part of run {run_id}", run_id=fact.parent), "dim")
    if fact.handed_over_by:
        pen.line(pen.text("handed over by {agents}", agents=" → ".join(fact.handed_over_by)), "dim")
    if fact.after is not None:
        pen.line(pen.text("continues run {run_id}", run_id=fact.after), "dim")
    if fact.forked_from is not None:
        pen.line(
            pen.text("forked from run {run_id} at step {step}", run_id=fact.forked_from, step=fact.forked_at), "dim"
        )


NEW_POLICY = mark("the run has a new policy from here on (profile {profile})")


def write_changes(pen: RowWriter, trace: Trace, event: Event) -> None:
    """What was another when a run was resumed: tools field by field, model, policy."""
    fact = event.fact
    if not isinstance(fact, facts.Resumed):
        return
    cards = (*fact.cards, *fact.texts)
    before = Trace(trace.run_id, trace.events[: event.seq]) if cards else None
    for card in cards if before is not None else ():
        old = before.card(card.name) if before is not None else None
        for change in card_changes(old, card) if old is not None else ():
            pen.row("Changed", f"{card.name}: {change}", style="yellow")
    if fact.model:
        pen.row("Changed", pen.text("the model is now {model}", model=fact.model), style="yellow")
    if fact.policy:
        text = mark("the agent's policy is another one now; the run keeps the one that it began with")
        pen.row("Changed", pen.text(text), style="yellow")
    if fact.new_policy is not None:
        pen.row("Changed", pen.text(NEW_POLICY, profile=fact.new_policy.profile), style="yellow")


def write_approval(pen: RowWriter, trace: Trace, fact: facts.ApprovalGiven | facts.ApprovalRefused) -> None:
    """Who allowed or refused a call, and what they said."""
    tier = trace.calls[fact.call_id].requested.tier
    if fact.by == "operator" and fact.note in (preapproval_note("en", tier), preapproval_note("zh", tier)):
        approver = pen.text("by the operator, in advance (tier {tier})", tier=tier)
    else:
        who = pen.text("by user") if fact.by == "user" else pen.text("by {by}", by=fact.by)
        if not fact.authenticated and fact.by not in ("user", TIMEOUT):
            who = pen.text("by {by} (claimed)", by=fact.by)
        approver = who + pen.text(": ") + fact.note if fact.note else who
    if isinstance(fact, facts.ApprovalGiven):
        pen.row("Allowed", approver, style="green")
    else:
        pen.row("Refused", approver, style="yellow")


def write_input_answered(pen: RowWriter, fact: InputAnswered) -> None:
    """What came of a question of a running call."""
    content = f" {input_text(fact.content)}" if fact.content else ""
    reason = ", ".join(text for text in (fact.by, fact.note) if text)
    text = f"{fact.asker}: {fact.message} → {fact.action}{content}" + (f" ({reason})" if reason else "")
    pen.row("Question", " ".join(text.split()), style="green" if fact.action == "accept" else "yellow")


def write_hook(pen: RowWriter, fact: HookActed) -> None:
    """What a hook of the program changed or refused."""
    change = "" if fact.change is None else f" {input_text(fact.change)}"
    about = " ".join(filter(None, (fact.hook, fact.moment, fact.call_id)))
    text = f"{about}: {fact.outcome}{change}" + (f" ({fact.reason})" if fact.reason else "")
    pen.row("Hook", " ".join(text.split()), style="dim" if fact.outcome == "changed" else "yellow")


def write_doubt_settled(pen: RowWriter, fact: facts.DoubtSettled) -> None:
    """Who said of a call without an outcome whether it happened."""
    text = pen.text(_SETTLED[str(fact.happened)], call_id=fact.call_id)
    pen.row("In doubt", f"{text} ({fact.by}{': ' if fact.note else ''}{fact.note})", style="yellow", body="yellow")


def write_undone(pen: RowWriter, trace: Trace, fact: facts.Compensated) -> None:
    """A call whose effect an undo took back, and the call that did it."""
    call_id = fact.call_id
    tool = trace.calls[call_id].requested.tool if call_id in trace.calls else ""
    text = pen.text("{tool} ({call_id}), by {by}", tool=tool, call_id=call_id, by=fact.by_call_id)
    pen.row("Undone", text, style="yellow", body="yellow")


def write_marked(pen: RowWriter, fact: Marked) -> None:
    """What a person says of the outcome of a run."""
    name = fact.by if fact.authenticated or fact.by == "user" else pen.text("{by} (claimed)", by=fact.by)
    text = pen.text(_MARKED[fact.verdict], by=name)
    is_right = fact.verdict == "right"
    pen.row("Mark", f"{text}{pen.text(': ') + fact.note if fact.note else ''}", style="green" if is_right else "red")


_MARKED = mark({"right": "right, says {by}", "wrong": "wrong, says {by}"})


def write_unknown_calls(pen: RowWriter, trace: Trace) -> None:
    """The calls of a run that has ended of which nobody knows whether they happened."""
    for call in trace.pending.values() if trace.finished is not None else ():
        if call.doubt is not None and (call.settled is None or call.settled.happened is None):
            name = f"{call.requested.tool} ({call.requested.call_id})"
            pen.row("In doubt", pen.text("{call}: outcome unknown", call=name), style="yellow", body="yellow")


def write_rejection(pen: RowWriter, fact: facts.ReplyRejected) -> None:
    """A reply that was not accepted: unreadable, or an answer without evidence."""
    if fact.code == UNSUPPORTED:
        pen.row("Sent back", fact.message, style="yellow", body="yellow")
    else:
        pen.row("Unreadable", f"{fact.code}: {fact.message}", style="yellow", body="yellow")


def write_end(pen: RowWriter, fact: facts.Finished, trace: Trace) -> None:
    """The answer of a run with its sources, or why there is none."""
    if fact.answer is not None:
        pen.row("Answer", answer_for_people(fact.answer, trace), style="bold green")
    if fact.answer is None or fact.status != "completed":
        reason = translate_error(fact.reason, pen.language)
        label = _END_LABELS.get(fact.status, mark("Limit"))
        pen.row(mark("No answer") if fact.answer is None else label, reason, style="bold yellow")
    if fact.unasked:
        text = mark(
            "{calls}: nothing in the task seems to ask for it. If it did, the task is not done: name act and target."
        )
        pen.row("Denied", pen.text(text, calls=", ".join(fact.unasked)), style="bold yellow")
    write_sources(pen, fact, trace)


_END_LABELS = {"blocked": mark("Blocked"), "unsupported": mark("Unsupported")}


def answer_for_people(answer: str, trace: Trace) -> str:
    """An answer with the observations that it cites as numbers, where the agent asks for evidence."""
    return answer if trace.agent.evidence == "off" else number_citations(answer)[0]


def write_sources(pen: RowWriter, fact: facts.Finished, trace: Trace) -> None:
    """What an answer cites: observations by their numbers, then passages; and what they do not bear out."""
    cited = number_citations(fact.answer or "")[1] if trace.agent.evidence != "off" else ()
    for number, name in enumerate(cited, 1):
        call = trace.calls.get(name.removeprefix("obs:"))
        what = f"{call.requested.tool} {one_line(input_text(call.args))[:80]}" if call else pen.text("no such call")
        pen.line(f"   [{number}] {name.removeprefix('obs:')} · {what}", "dim")
    for citation in fact.citations:
        if not citation.startswith("obs:"):
            pen.line(f"   [{citation}]", "dim")
    if fact.status != UNSUPPORTED:  # there the reason names them
        for gap in fact.evidence:
            pen.row(mark("Evidence"), gap_text(pen.language, gap), style="bold yellow", body="yellow")


def handoff_text(pen: RowWriter, trace: Trace, call_id: str | None) -> str:
    """Which agent took the conversation over with a call, and in which run; empty for any other call."""
    call = trace.calls.get(call_id or "")
    observed = None if call is None else call.observed
    card = None if call is None else trace.card(call.requested.tool)
    if card is None or observed is None or not card.hands_over_to or observed.child is None or not observed.ok:
        return ""
    text = mark("{agent} took over in run {run_id}: tao show {run_id}")
    return pen.text(text, agent=card.hands_over_to, run_id=observed.child)


def write_dropped_lesson(pen: RowWriter, note: facts.Noted) -> None:
    """That the lesson of a run no longer counts."""
    pen.row("Lesson", pen.text(mark("dropped by {by}: no later run reads it"), by=note.by), style="yellow", body="dim")


def write_review(pen: RowWriter, trace: Trace, fact: facts.Finished) -> None:
    """What became of the review of an answer, such as findings that are still open."""
    if fact.status == "completed" and fact.answer is not None and draft_events(trace):
        pen.line(f"   {fact.reason}", "dim")


def todo_text(tool: str, args: Any) -> str:
    """The todo list that a call writes, a line for each item, below the name of the tool; empty for another call."""
    todos = read_todos(args) if tool == TODO_CARD.name else None
    return f"\n{todo_lines(todos)}" if todos else ""


def write_open_todos(pen: RowWriter, trace: Trace) -> None:
    """The items of the todo list for which something is still to be done."""
    if todos := todo_list(trace).open:
        pen.row("Open items", todo_lines(todos), style="bold yellow", body="yellow")


def summary(trace: Trace, pen: RowWriter) -> str:
    """The status of the run and what it used, in one line."""
    parts = [
        trace.status,
        pen.text("{n} step|{n} steps", n=trace.step_count),
        pen.text("{n} tool call|{n} tool calls", n=trace.tool_calls),
    ]
    if trace.usage.total_tokens:
        parts.append(pen.text("{n:,} tokens", n=trace.usage.total_tokens))
        unknown = bool(trace.unpriced_calls)
        parts.append(pen.text("cost unknown") if unknown else pen.text("{usd} USD", usd=f"{trace.cost_usd:.6g}"))
    parts += [pen.text("{s:.1f} s", s=trace.wall_s), pen.text("run {run_id}", run_id=trace.run_id)]
    return " · ".join(parts)


def format_local_time(at: float) -> str:
    """A time of the journal in the person's own zone."""
    try:
        return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):  # beyond what calendars know
        return f"{at:g}"


def resume_line(trace: Trace, db: str | None) -> str | None:
    """The command that resumes the run; None if it is completed or was abandoned."""
    if trace.is_over:
        return None
    if trace.started is not None and (undoes := trace.started.undoes) is not None:
        step = f" --to {undoes.to_step}" if undoes.to_step else ""
        return f"tao undo {undoes.run_id}{step}{db_argument(db)}"
    parts = ["tao run --resume", trace.run_id]
    if trace.finished is not None and trace.finished.status == "blocked":
        parts += ["--profile supervised"] if trace.agent.policy.profile == "headless" else []
    if trace.finished is not None and (option := LIMIT_OPTIONS.get(trace.finished.limit or "")):
        allowed = getattr(trace.limits, trace.finished.limit or "") or 1
        parts.append(f"{option} {2 * allowed:g}")
    return " ".join(parts) + db_argument(db)


def next_commands(trace: Trace, db: str | None) -> list[tuple[str, str]]:
    """How to decide what a run waits for, and how to resume it: how each command is announced, and the command."""
    commands = [(DECIDE, f"tao approvals {trace.run_id}{db_argument(db)}")] if trace.paused is not None else []
    resume = resume_line(trace, db)
    return commands if resume is None else [*commands, (RESUME, resume)]
