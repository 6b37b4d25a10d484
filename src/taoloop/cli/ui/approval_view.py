"""How a question about calls looks to a person: what it does to whom first, and where each value came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from taoloop.cli.ui.event_view import RowWriter
from taoloop.cli.ui.stdio import escape_invisible
from taoloop.core.events import Source
from taoloop.core.views.transcript import input_text
from taoloop.policy.texts import translate_reasons
from taoloop.runtime.approvals.request import ApprovalRequest
from taoloop.translation import mark

_STYLES = {"FOREIGN": "bold red", "UNKNOWN": "red", "LINKS": "red", "WRITTEN": "yellow"}
_TITLE = mark("May this call run?|May these {n} calls run?")
_DOUBT_TITLE = mark("Did this call happen?")
_BADGES = mark(
    {
        "YOURS": "YOURS: in the task",
        "LOOKED UP": "LOOKED UP: from a trusted tool",
        "WRITTEN": "WRITTEN by the model",
        "LINKS": "LINKS: contains links that no trusted text has",
        "UNKNOWN": "UNKNOWN: appears nowhere in this run",
        "FOREIGN": "FOREIGN: only in untrusted output",
    }
)
_RANKS = {"target": 0, "value": 2, "content": 3, "minor": 4}
_REFERENCE = 1


def show_question(pen: RowWriter, request: ApprovalRequest, *, inner: bool = False) -> None:
    """The calls whole, and why it is asked. Nothing in them can hide or pass for a line of ours."""
    calls = (request, *request.batch)
    pen.gap()
    title = pen.text(_DOUBT_TITLE if request.doubt else _TITLE, n=len(calls))
    pen.row("Approval", title, style="bold yellow", body="bold")
    for call in calls:
        show_call(pen, call, inner=inner)
    if request.doubt:
        pen.row("Note", _on_one_line(printable(pen, request.doubt)))
        return
    pen.row(
        "Why",
        pen.text("; ").join(_on_one_line(printable(pen, reason)) for reason in reasons_of(pen, request)),
    )
    if request.expires_at is not None:
        pen.line(
            "   " + pen.text("Until {time}, then it is refused.", time=format_local_time(request.expires_at)),
            "dim",
        )


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
) -> None:
    """One call: the tool, then its arguments, those that say what it acts on first, each with its origin."""
    tier = f" [{request.card.tier}]" if request.card is not None and request.card.tier else ""
    run_suffix = " · " + pen.text("run {run_id}", run_id=request.run_id) if inner else ""
    pen.row("Tool", f"{_on_one_line(printable(pen, request.tool))}{tier} ({request.call_id}){run_suffix}")
    args = request.args if edited is None else edited
    for name in sorted(args, key=lambda name: _rank(request, name)):
        changed = edited is not None and (name not in request.args or request.args[name] != args[name])
        sources = [source for source in request.sources if _root(source.arg) == name]
        _argument(pen, name, args[name], None if changed else sources)


def _argument(pen: RowWriter, name: str, value: Any, sources: Iterable[Source] | None) -> None:
    """The value whole, and below it where it came from; None for what the person put there."""
    head = _on_one_line(printable(pen, name))
    text = printable(pen, value if isinstance(value, str) and "\n" in value else input_text([value])[1:-1])
    if "\n" in text or cell_len(f"   {head} = {text}") > pen.console.width:
        pen.line(f"   {head} =")
        _block(pen, text)
    else:
        pen.line(f"   {head} = {text}")
    if sources is None:
        pen.line("      " + pen.text("EDITED by you"), "green")
        return
    for source in sources:
        where = "" if source.arg == name else _on_one_line(printable(pen, source.arg)) + pen.text(": ")
        origin = ""
        if source.snippet and source.call_id:
            snippet = _on_one_line(printable(pen, source.snippet))
            origin = pen.text(" ({call_id}: “{snippet}”)", call_id=source.call_id, snippet=snippet)
        for line in _folded(pen, where + pen.text(_BADGES[source.badge]) + origin, 6):
            pen.line(f"      {line}", _STYLES.get(source.badge, "dim"))


def printable(pen: RowWriter, text: str) -> str:
    """`visible`, with what the terminal's encoding lacks written out too: a person must see what they allow."""
    encoding = pen.console.encoding
    return escape_invisible(text).encode(encoding, "backslashreplace").decode(encoding)


def format_local_time(at: float) -> str:
    """A time of the journal in the person's own zone."""
    try:
        return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):  # beyond what calendars know
        return f"{at:g}"


def _block(pen: RowWriter, text: str) -> None:
    """The text between bars, also where a line of it is folded, so that none of it passes for a line of ours."""
    for line in text.split("\n"):
        for part in Text(line).wrap(pen.console, max(10, pen.console.width - 5), overflow="fold"):
            pen.line(f"   │ {part.plain}")


def _folded(pen: RowWriter, text: str, indent: int) -> list[str]:
    """A line of a terminal as several, so that no part of it begins where our own lines do."""
    if not pen.console.is_terminal:
        return [text]
    width = max(10, pen.console.width - indent)
    return [part.plain.rstrip() for part in Text(text).wrap(pen.console, width, overflow="fold")]


def _rank(request: ApprovalRequest, name: str) -> int:
    role = "target" if request.card is None else request.card.role(name)
    return _RANKS.get(role, _REFERENCE)


def _root(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _on_one_line(text: str) -> str:
    return text.replace("\n", "\\n")
