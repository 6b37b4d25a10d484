"""Asking the person at the terminal whether a call may run."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress

from rich.cells import cell_len
from rich.text import Text

from taoloop.cli.labels import label
from taoloop.cli.live import LiveView
from taoloop.cli.rendering import Pen
from taoloop.cli.text import visible
from taoloop.core.transcript import input_text
from taoloop.runtime.approval import ApprovalAnswer, ApprovalRequest

_YES = ("y", "yes", "是", "允许")
_NO = ("n", "no", "否", "拒绝")
_LATER = ("q", "quit", "later", "以后")


class Asker:
    """Answers the policy's questions by asking at the terminal."""

    def __init__(self, view: LiveView) -> None:
        self._view = view

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """The answer, or None where the person wants to decide later."""
        with self._view.waiting_for_person():
            return await self._ask(self._view, request)

    async def _ask(self, view: LiveView, request: ApprovalRequest) -> ApprovalAnswer | None:
        language = view.pen.language
        _show(view, request)
        _forget_typed()
        _prompt(view, label(language, "ask_keys"))
        while True:
            line = await _read_line()
            if line is None or (answer := line.strip().lower()) in _LATER:
                return None
            if answer in _YES:
                return ApprovalAnswer(approved=True)
            if answer in _NO:
                _prompt(view, label(language, "ask_reason"))
                return ApprovalAnswer(approved=False, note=(await _read_line() or "").strip())
            _prompt(view, label(language, "ask_again"))


def _show(view: LiveView, request: ApprovalRequest) -> None:
    """The call with its whole arguments. Nothing in them can hide or pass for a line of ours."""
    language, pen = view.pen.language, view.pen
    tier = f" [{request.card.tier}]" if request.card is not None and request.card.tier else ""
    pen.gap()
    pen.row("asking", label(language, "ask_title"), style="bold yellow", body="bold")
    inner = "" if request.run_id == view.run_id else " · " + label(language, "run", run_id=request.run_id)
    pen.row("ask_tool", f"{request.tool}{tier} ({request.call_id}){inner}")
    args = request.args
    for name, value in args.items():
        shown = _shown(pen, name).replace("\n", "\\n")
        text = _shown(pen, value if isinstance(value, str) and "\n" in value else input_text([value])[1:-1])
        if "\n" in text or cell_len(f"   {shown} = {text}") > pen.console.width:
            pen.line(f"   {shown} =")
            _block(pen, text)
        else:
            pen.line(f"   {shown} = {text}")
    pen.row("ask_why", "; ".join(_reason(pen.language, request, reason) for reason in request.reasons))


def _reason(language: str, request: ApprovalRequest, reason: str) -> str:
    """A reason of the policy in the language of the run, as far as it is known here."""
    tier = request.card.tier if request.card is not None else None
    known = label("en", "ask_tier", tool=repr(request.tool), tier=tier)
    return label(language, "ask_tier", tool=request.tool, tier=tier) if reason == known else reason


def _shown(pen: Pen, text: str) -> str:
    """`visible`, with what the terminal's encoding lacks written out too: a person must see what they allow."""
    encoding = pen.console.encoding
    return visible(text).encode(encoding, "backslashreplace").decode(encoding)


def _block(pen: Pen, text: str) -> None:
    """The text between bars, also where a line of it is folded, so that none of it passes for a line of ours."""
    for line in text.split("\n"):
        for part in Text(line).wrap(pen.console, max(10, pen.console.width - 5), overflow="fold"):
            pen.line(f"   │ {part.plain}")


def _prompt(view: LiveView, text: str) -> None:
    stream = view.pen.console.file
    stream.write(text)
    stream.flush()


def _forget_typed() -> None:
    """Drop what was typed before the question stood there: it cannot be its answer."""
    try:
        import termios  # noqa: PLC0415  # not on every system
    except ImportError:
        return
    with suppress(termios.error, OSError):
        termios.tcflush(0, termios.TCIFLUSH)


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
        return os.read(0, 4096).decode("utf-8", "replace") or None
    finally:
        loop.remove_reader(0)
