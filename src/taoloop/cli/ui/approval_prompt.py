"""Asking the person at the terminal whether calls may run."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.cells import cell_len
from rich.text import Text

from taoloop.cli.options import authentication_of, current_user
from taoloop.cli.translation import translate
from taoloop.cli.ui.event_view import RowWriter, format_local_time
from taoloop.cli.ui.input_prompt import ask_input
from taoloop.cli.ui.live_view import LiveView
from taoloop.core.cards.decimals import decimal_literals
from taoloop.core.events import Source
from taoloop.core.text import escape_invisible
from taoloop.core.value_origins import is_stated
from taoloop.core.views.plans import TaskPlan, read_plan, step_notes, step_title, value_text
from taoloop.core.views.transcript import input_text
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.errors import InvalidArguments
from taoloop.policy.targets import first_name, leaves
from taoloop.policy.texts import translate_reasons
from taoloop.runtime.approvals.inbox import validate_edited_args
from taoloop.runtime.approvals.request import EXPLICIT_YES_WORDS, NO_WORDS, YES_WORDS, ApprovalAnswer, ApprovalRequest
from taoloop.translation import mark, translate_error

_KEYS: Mapping[str, Collection[str]] = {
    "yes": YES_WORDS,
    "no": NO_WORDS,
    "always": ("a", "always", "一律"),
    "values": ("v", "values", "信任"),
    "edit": ("e", "edit", "修改"),
    "one": ("o", "one", "逐个"),
    "later": ("q", "quit", "later", "以后", "稍后"),
    "happened": ("h", "happened", "已生效"),
    "repeat": ("r", "repeat", "再执行"),
    "leave": ("l", "leave", "不作定论"),
}
"""What a person may type for each answer, besides its letter."""

_OFFERS = mark(
    {
        "yes": "[y] yes",
        "yes_all": "[y] yes, all {n}",
        "one": "[o] one by one",
        "no": "[n] no",
        "always": "[a] always, as described",
        "values": "[v] yes, and trust these values in this run",
        "edit": "[e] edit",
        "later": "[q] later: ",
        "happened": "[h] it happened",
        "repeat": "[r] it did not: run it again",
        "leave": "[l] leave it unknown; the model reads that",
    }
)
_IN_FULL = mark("This is hard to undo, and nobody named what it acts on. Type yes in full to allow it.")
_EDIT = mark("The arguments as JSON on one line, or @FILE, or @ for your editor (Enter alone: leave them): ")
_TYPE_A_LETTER = mark("Type one of these letters, then Enter: ")


class TerminalApprover:
    """Answers the policy's questions by asking at the terminal."""

    def __init__(self, view: LiveView) -> None:
        self._view = view
        self._by = current_user(None)
        self._authenticated = authentication_of(self._by)
        self._singly: set[tuple[str, str]] = set()  # calls that the person wants to decide one by one

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """The answer, or None where the person wants to decide later."""
        if (request.run_id, request.call_id) in self._singly:
            request = replace(request, batch=())
        with self._view.waiting_for_person():
            try:
                if request.question is not None:
                    return await self._ask_input(request)
                return await (self._ask_what_happened(request) if request.doubt else self._ask(request))
            except asyncio.CancelledError:
                if request.expires_at is not None and time.time() >= request.expires_at - 1:
                    self._prompt("\n" + self._view.pen.text("Nobody answered in time: refused.") + "\n")
                raise

    async def _ask_input(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """What the person fills in for a running call; None where they close the question."""
        discard_typeahead()

        async def read_line(prompt: str) -> str | None:
            self._prompt(prompt)
            return await _read_line()

        action, content = await ask_input(self._view.pen, request, read_line)
        if action == "cancel":
            return None
        is_question = request.question is not None and request.question.from_model
        note = await self._read_text("Why not? The model reads this: ") if is_question and action == "decline" else ""
        return ApprovalAnswer(
            approved=action == "accept",
            by=self._by,
            authenticated=self._authenticated,
            args=content,
            note=note,
        )

    async def _ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        pen = self._show(request)
        args: Mapping[str, Any] | None = None
        digits: Mapping[str, str] | None = None
        on_offer = _on_offer(request)
        self._prompt(self._keys(request, on_offer))
        while True:
            match answer := await _read_answer(on_offer, in_full=request.grave):
                case "later":
                    return None
                case "no":
                    note = await self._read_text("Why not? The model reads this: ")
                    return ApprovalAnswer(
                        approved=False,
                        by=self._by,
                        authenticated=self._authenticated,
                        note=note,
                        batch=bool(request.batch),
                    )
                case "edit":
                    args, digits = await self._edited(request) or (args, digits)
                    show_call(pen, request, edited=args)
                    on_offer = tuple(key for key in on_offer if key != "always")
                    self._prompt(self._keys(request, on_offer))
                case "one":
                    self._singly |= {(approval.run_id, approval.call_id) for approval in (request, *request.batch)}
                    return await self._ask(replace(request, batch=()))
                case "values" if request.grave and not await self._in_full():
                    self._prompt(self._keys(request, on_offer))
                case "yes" | "always" | "values":
                    scope = {"always": "rule", "values": "values"}.get(answer, "call")
                    return ApprovalAnswer(
                        approved=True,
                        by=self._by,
                        authenticated=self._authenticated,
                        args=args,
                        digits=digits,
                        scope=scope,  # type: ignore[arg-type]  # one of the three
                        batch=bool(request.batch),
                    )
                case _:
                    repeated = pen.text(_IN_FULL if request.grave else _TYPE_A_LETTER)
                    self._prompt(repeated + (" " if request.grave else ""))

    def _show(self, request: ApprovalRequest) -> RowWriter:
        """Show the question; what was typed before it is no answer."""
        show_question(self._view.pen, request, inner=request.run_id != self._view.run_id)
        discard_typeahead()
        return self._view.pen

    async def _ask_what_happened(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """The other question: of a call without an outcome, whether it happened. No letter of the first is taken."""
        pen = self._show(request)
        on_offer = ("happened", "repeat", "leave", "later")
        self._prompt(self._menu([pen.text(_OFFERS[key]) for key in on_offer]))
        while (answer := await _read_answer(on_offer, in_full=False)) != "later":
            if answer:
                note = ""
                if answer == "happened":
                    note = await self._read_text("What was the result? The model reads this: ")
                return ApprovalAnswer(
                    approved=answer == "happened",
                    by=self._by,
                    authenticated=self._authenticated,
                    note=note,
                    settle=answer,  # type: ignore[arg-type]  # one of the three
                )
            self._prompt(pen.text(_TYPE_A_LETTER))
        return None

    async def _in_full(self) -> bool:
        """Whether the person types the whole word too, where one letter must not be enough."""
        return (await self._read_text(_IN_FULL, " ")).lower() in EXPLICIT_YES_WORDS

    def _keys(self, request: ApprovalRequest, on_offer: tuple[str, ...]) -> str:
        """What the person can type. A high-risk call shows no letter that approves it."""
        pen, calls = self._view.pen, 1 + len(request.batch)
        keys = ["yes_all" if key == "yes" and calls > 1 else key for key in on_offer]
        parts = [pen.text(_OFFERS[key], n=calls) for key in keys if not (request.grave and key == "yes")]
        head = pen.text(_IN_FULL) + "\n" if request.grave else ""
        return head + self._menu(parts)

    def _menu(self, parts: Sequence[str]) -> str:
        """The answers on offer side by side; no line is longer than the terminal is wide."""
        width, lines = self._view.pen.console.width, [parts[0]]
        for part in parts[1:]:
            if cell_len(f"{lines[-1]}   {part}") < width:
                lines[-1] += f"   {part}"
            else:
                lines.append(part)
        return "\n".join(lines)

    async def _edited(self, request: ApprovalRequest) -> tuple[Mapping[str, Any], Mapping[str, str]] | None:
        """Arguments that fit the tool, with their decimals as typed; None where the person left them as they are."""
        pen = self._view.pen
        while True:
            line = await self._read_text(_EDIT)
            if not line:
                return None
            try:
                if line.startswith("@"):  # a terminal takes no line of more than 4,096 characters
                    line = await _written_text(line[1:].strip(), request.args)
                edited = loads(line)
                if request.card is None:
                    return (dict(edited), decimal_literals(edited, (line,))) if isinstance(edited, Mapping) else None
                args = validate_edited_args(request.card, edited, tools=request.tools)
                return args, decimal_literals(edited, (line,))
            except NotJsonError as error:
                pen.line(f"JSON: {error.text.render(pen.language)}", "red")
            except (OSError, UnicodeError, click.ClickException) as error:
                why = error.format_message() if isinstance(error, click.ClickException) else str(error)
                pen.line(pen.text("Not read: {why}", why=why), "red")
            except InvalidArguments as error:
                pen.line(translate_error(str(error), pen.language), "red")

    async def _read_text(self, question: str, gap: str = "") -> str:
        """What the person types to a question; empty at the end of input."""
        self._prompt(self._view.pen.text(question) + gap)
        return (await _read_line() or "").strip()

    def _prompt(self, text: str) -> None:
        stream = self._view.pen.console.file
        stream.write(text)
        stream.flush()


def _on_offer(request: ApprovalRequest) -> tuple[str, ...]:
    if request.grave:
        return ("yes", "no", "values", "edit", "later")
    always = ("always",) if request.has_always else ()
    if request.batch:
        return ("yes", "one", "no", *always, "values", "later")
    return ("yes", "no", *always, "values", "edit", "later")


async def _read_answer(on_offer: tuple[str, ...], *, in_full: bool) -> str:
    """The answer that the next line gives: `later` at the end of input, empty if it is none of those on offer."""
    line = await _read_line()
    if line is None:
        return "later"
    typed = line.strip().lower()
    if in_full and typed in YES_WORDS - EXPLICIT_YES_WORDS:
        return ""
    return next((key for key in on_offer if typed in _KEYS[key]), "")


def discard_typeahead() -> None:
    """Drop what was typed before the question stood there: it cannot be its answer."""
    try:
        import termios  # noqa: PLC0415  # not on every system
    except ImportError:
        return
    with suppress(termios.error, OSError):
        termios.tcflush(0, termios.TCIFLUSH)


def confirm(question: str, language: str | None = None) -> bool:
    """Whether the person at the terminal says yes; Enter alone is a no. Ctrl-C and the end of input leave the line."""
    discard_typeahead()
    try:
        while True:
            answer = click.prompt(question, default="", show_default=False, prompt_suffix=" [y/N]: ", err=True)
            typed = answer.strip().lower()
            if typed in YES_WORDS or typed in NO_WORDS or not typed:
                return typed in YES_WORDS
            click.echo(translate("Type y or n, then Enter.", language), err=True)
    except click.Abort:
        click.echo(err=True)
        raise


async def _written_text(path: str, args: Mapping[str, Any]) -> str:
    """What is in a file; without a path what the person makes of the arguments in `$VISUAL` or `$EDITOR`."""
    if path:
        return await asyncio.to_thread(_read_file, path)
    before = json.dumps(args, ensure_ascii=False, indent=2, default=str)
    return await asyncio.to_thread(click.edit, before, extension=".json", require_save=False) or before


def _read_file(path: str) -> str:
    return Path(path).expanduser().read_text("utf-8-sig")


async def _read_line() -> str | None:
    """A line that the person types, None at the end of input. A cancellation ends the waiting at once."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(0, ready.set)
    except NotImplementedError:  # the default loop of Windows
        return await asyncio.to_thread(sys.stdin.readline) or None
    try:
        await ready.wait()
        return os.read(0, 65536).decode("utf-8", "replace") or None
    finally:
        loop.remove_reader(0)


_STYLES = {"FOREIGN": "bold red", "UNKNOWN": "red", "LINKS": "red", "WRITTEN": "yellow"}
SCREEN_ROWS = 20  # of a question; above that, tool, targets and risk are repeated at its end
HIGH_RISK = mark("High-risk: hard to undo, and nobody named what it acts on. Look twice.")
_TITLE = mark("May this call run?|May these {n} calls run?")
_PLAN_TITLE = mark("May this plan run, with exactly the calls that it lists?")
_DOUBT_TITLE = mark("Did this call happen?")
_BADGES = mark(
    {
        "YOURS": "YOURS: in the task",
        "LOOKED UP": "LOOKED UP: from a trusted tool",
        "WRITTEN": "WRITTEN by the model",
        "LINKS": "LINKS: contains links that no trusted text has",
        "UNKNOWN": "UNKNOWN: appears nowhere in this run, or only as a bare number, or is excluded",
        "FOREIGN": "FOREIGN: only in untrusted output",
    }
)
_RANKS = {"target": 0, "value": 2, "content": 3, "minor": 4}
_REFERENCE = 1


def show_question(pen: RowWriter, request: ApprovalRequest, *, inner: bool = False) -> None:
    """The calls whole, and why it is asked. Nothing in them can hide or pass for a line of ours."""
    calls = (request, *request.batch)
    pen.gap()
    kind = _PLAN_TITLE if request.plan is not None else _DOUBT_TITLE if request.doubt else _TITLE
    title = pen.text(kind, n=len(calls))
    pen.row("Approval", title, style="bold yellow", body="bold")
    rows = sum([show_call(pen, call, inner=inner) for call in calls])
    if request.doubt:
        pen.row("Note", _on_one_line(printable(pen, request.doubt)))
        return
    pen.row("Why", pen.text("; ").join(_on_one_line(printable(pen, reason)) for reason in reasons_of(pen, request)))
    if request.expires_at is not None:
        pen.line(
            "   " + pen.text("Until {time}, then it is refused.", time=format_local_time(request.expires_at)), "dim"
        )
    show_always(pen, request)
    if rows > SCREEN_ROWS:
        show_summary(pen, calls)
    elif any(call.high_risk for call in calls):
        pen.line("   " + pen.text(HIGH_RISK), "bold red")


def show_summary(pen: RowWriter, calls: Iterable[ApprovalRequest]) -> None:
    """Tool, targets and risk of each call once more, below a text that pushed them off the screen."""
    for call in calls:
        pen.row("In short", _on_one_line(printable(pen, call.summary(pen.language))), style="bold yellow", body="bold")
        if call.high_risk:
            pen.line("   " + pen.text(HIGH_RISK), "bold red")


def show_always(pen: RowWriter, request: ApprovalRequest) -> None:
    """What `always` would allow, before it is chosen."""
    if text := request.always_text(pen.language):
        pen.row("Always", _on_one_line(printable(pen, text)))


def reasons_of(pen: RowWriter, request: ApprovalRequest) -> tuple[str, ...]:
    """Why it is asked, in the language of the terminal: a run in Chinese may be asked about where only ASCII shows."""
    tier = request.card.tier if request.card is not None else None
    return translate_reasons(
        pen.language,
        request.reasons,
        request.reason_codes,
        tool=request.tool,
        tier=tier,
        rule=request.rule,
        sources=request.sources,
    )


def show_call(
    pen: RowWriter, request: ApprovalRequest, *, inner: bool = False, edited: Mapping[str, Any] | None = None
) -> int:
    """One call: the tool, then its arguments, those that say what it acts on first, each with its origin.

    Gives the number of rows that its arguments took.
    """
    is_plan = request.plan is not None  # whose calls have a tier each
    tier = f" [{request.card.tier}]" if request.card is not None and request.card.tier and not is_plan else ""
    run_suffix = " · " + pen.text("run {run_id}", run_id=request.run_id) if inner else ""
    pen.row("Tool", f"{_on_one_line(printable(pen, request.tool))}{tier} ({request.call_id}){run_suffix}")
    if undo := request.undo_text(pen.language):
        pen.row("Undo", _on_one_line(printable(pen, undo)))
    args, rows = request.args if edited is None else edited, 0
    if is_plan and (plan := read_plan(args)) is not None:
        return _show_plan(pen, request if edited is None else _edited_plan(request, args), plan)
    for name in sorted(args, key=lambda name: _rank(request, name)):
        changed = edited is not None and (name not in request.args or request.args[name] != args[name])
        sources = [source for source in request.sources if first_name(source.arg) == name]
        rows += _argument(pen, name, args[name], None if changed else sources)
    return rows


def _edited_plan(request: ApprovalRequest, args: Mapping[str, Any]) -> ApprovalRequest:
    """The question about a plan that the person has edited: what they wrote is theirs."""
    before = dict(leaves(request.args))
    known = {source.arg: source for source in request.sources}
    sources = (
        known[path] if path in known and before.get(path) == value else Source(arg=path, role="value", badge="YOURS")
        for path, value in leaves(args)
    )
    return replace(request, args=args, sources=tuple(sources))


def _show_plan(pen: RowWriter, request: ApprovalRequest, plan: TaskPlan) -> int:
    """The steps of a plan, with the calls that each lists and the origins of their values. Gives the rows it took."""
    rows = 0
    for step in plan.steps:
        for line in fold_line(pen, _on_one_line(printable(pen, step_title(pen.language, step))), 3):
            pen.line(f"   {line}", "bold")
            rows += 1
        for call in request.planned(step):
            tier = f" [{call.card.tier}]" if call.card is not None and call.card.tier else ""
            pen.line(f"     {_on_one_line(printable(pen, call.tool))}{tier}", "cyan")
            for name in sorted(call.args, key=lambda name: _rank(call, name)):  # used at once
                sources = [source for source in call.sources if first_name(source.arg) == name]
                rows += _argument(pen, name, call.args[name], sources, indent=7)
            rows += 1
        for line in step_notes(pen.language, step):
            pen.line(f"     {_on_one_line(printable(pen, line))}", "dim")
            rows += 1
    return rows


def _argument(pen: RowWriter, name: str, value: Any, sources: Iterable[Source] | None, indent: int = 3) -> int:
    """The value whole, and below it where it came from; None for what the person put there. Gives the rows it took."""
    head = _on_one_line(printable(pen, name))
    written = value_text(pen.language, value) if is_stated(value) else input_text([value])[1:-1]
    text, margin = printable(pen, value if isinstance(value, str) and "\n" in value else written), " " * indent
    if "\n" in text or cell_len(f"{margin}{head} = {text}") > pen.console.width:
        pen.line(f"{margin}{head} =")
        rows = 1 + _block(pen, text)
    else:
        pen.line(f"{margin}{head} = {text}")
        rows = 1
    if sources is None:
        pen.line(f"   {margin}" + pen.text("EDITED by you"), "green")
        return rows + 1
    for source in sources:
        where = "" if source.arg == name else _on_one_line(printable(pen, source.arg)) + pen.text(": ")
        origin = ""
        if source.snippet and source.call_id:
            snippet = _on_one_line(printable(pen, source.snippet))
            origin = pen.text(" ({call_id}: “{snippet}”)", call_id=source.call_id, snippet=snippet)
        for line in fold_line(pen, where + pen.text(_BADGES[source.badge]) + origin, indent + 3):
            pen.line(f"   {margin}{line}", _STYLES.get(source.badge, "dim"))
            rows += 1
    return rows


def printable(pen: RowWriter, text: str) -> str:
    """`visible`, with what the terminal's encoding lacks written out too: a person must see what they allow."""
    encoding = pen.console.encoding
    return escape_invisible(text).encode(encoding, "backslashreplace").decode(encoding)


def _block(pen: RowWriter, text: str) -> int:
    """The text between bars, also where a line of it is folded, so that none of it passes for a line of ours.

    Gives the number of rows.
    """
    width = max(10, pen.console.width - 5)
    parts = [part for line in text.split("\n") for part in Text(line).wrap(pen.console, width, overflow="fold")]
    for part in parts:
        pen.line(f"   │ {part.plain}")
    return len(parts)


def fold_line(pen: RowWriter, text: str, indent: int) -> list[str]:
    """A line of a terminal as several, so that no part of it begins where our own lines do."""
    if not pen.console.is_terminal:
        return [text]
    width = max(10, pen.console.width - indent)
    return [part.plain.rstrip() for part in Text(text).wrap(pen.console, width, overflow="fold")]


def _rank(request: ApprovalRequest, name: str) -> int:
    role = "target" if request.card is None else request.card.role(name)
    return _RANKS.get(role, _REFERENCE)


def _on_one_line(text: str) -> str:
    return text.replace("\n", "\\n")
