"""The live view of a run: events as they come and, in between, what is running and for how long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from taoloop.cli.translation import translate, view_language
from taoloop.cli.ui.event_view import EventWriter, RowWriter, console_for, write_events
from taoloop.cli.ui.stdio import one_line, strip_control_codes
from taoloop.core.events import Event
from taoloop.core.message import Delta
from taoloop.core.trace import Trace
from taoloop.core.views.todos import TodoList
from taoloop.models.base import DeltaListener

_TAIL_CHARS, _TAIL_LINES = 2_000, 6  # of a reply while it is being written
_QUIET_S = 0.3  # what is done sooner than this shows no spinner, so that quick steps do not flicker


class JsonView:
    """One JSON object per line and event."""

    hears: DeltaListener | None = None

    def __init__(self, stream: TextIO, trace: Trace) -> None:
        self._stream, self._trace = stream, trace

    def show(self, event: Event) -> None:
        """Write the event at once."""
        write_events(self._stream, self._trace.run_id, [event])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class LiveView:
    """Rows for people; on a terminal a spinner below them while a model or a tool is running."""

    def __init__(self, stream: TextIO, trace: Trace, *, language: str, raw: bool = False) -> None:
        self._trace = trace
        self._console = console_for(stream)
        language = view_language(language, stream)
        self.pen = RowWriter(self._console, language)
        self._writer = EventWriter(self.pen, trace, raw=raw)
        self._busy = _Busy(language, trace, ascii_only=not self._console.encoding.lower().startswith("utf"))
        self._live: Live | None = None

    @property
    def hears(self) -> DeltaListener | None:
        """The reply as it comes is shown on a terminal only, and makes way for the event."""
        return self._busy.hear if self._is_drawn else None

    @property
    def run_id(self) -> str:
        """The run that is shown; a question may come from one inside it."""
        return self._trace.run_id

    @property
    def _is_drawn(self) -> bool:
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def show(self, event: Event) -> None:
        """Write the event and turn the spinner to what comes next."""
        self._writer.write(event)
        self._busy.turn()
        self._console.file.flush()

    @contextmanager
    def waiting_for_person(self) -> Iterator[None]:
        """Hold the spinner still while a person types."""
        self._stop()
        try:
            yield
        finally:
            self._busy.turn()
            self._start()

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _start(self) -> None:
        if self._is_drawn:
            self._live = Live(
                self._busy, console=self._console, refresh_per_second=10, transient=True, redirect_stdout=False
            )
            self._live.start()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


class _Busy:
    """What the run is waiting for, as something that rich can draw."""

    def __init__(self, language: str, trace: Trace, *, ascii_only: bool) -> None:
        self._language, self._trace = language, trace
        self._spinner = Spinner("line" if ascii_only else "dots", style="cyan")
        self._since = time.monotonic()
        self._text = ""
        self._call = (0, "")
        self._todos, self._folded = TodoList(), 0

    def turn(self) -> None:
        """Something happened: the seconds start again, and the event contains what the model had written."""
        self._since = time.monotonic()
        self._text = ""
        for event in self._trace.events[self._folded :]:
            self._todos.fold(event)
        self._folded = len(self._trace.events)

    def hear(self, delta: Delta) -> None:
        """Take a piece of the reply; what is drawn next shows its end."""
        if delta.kind == "restart":
            self._text = ""
        elif delta.kind == "text":
            self._text = (self._text + delta.text)[-_TAIL_CHARS:]
        elif delta.kind == "progress":
            self._text = f"{self._text}\n{delta.name}: {delta.text}"[-_TAIL_CHARS:]
        elif delta.kind == "call" and not delta.done:
            name = f"\n{delta.name} " if self._call != (delta.index, delta.name) or not self._text else ""
            self._call = delta.index, delta.name
            self._text = (self._text + name + delta.text)[-_TAIL_CHARS:]

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> RenderResult:
        passed = time.monotonic() - self._since
        doing = self._doing()
        if passed < _QUIET_S or not doing:
            return
        if tail := [line for line in strip_control_codes(self._text).splitlines() if line.strip()][-_TAIL_LINES:]:
            yield Text("\n".join(tail), "dim", no_wrap=True, overflow="ellipsis")
        if (todo := self._todos.current) is not None:
            done = sum(not item.is_open for item in self._todos.todos)
            yield Text(one_line(f"{todo} ({done}/{len(self._todos.todos)})"), "cyan", no_wrap=True, overflow="ellipsis")
        seconds = " " + translate("{n} s", self._language, n=int(passed)) if passed >= 1 else ""
        self._spinner.update(text=Text(one_line(doing) + seconds, "dim"))
        yield self._spinner.render(console.get_time())

    def _doing(self) -> str:
        """From the trace: running tools by name, else the model; nothing once the run has stopped."""
        trace = self._trace
        if trace.status != "running" or not trace.events:
            return ""
        pending = list(trace.pending.values())  # at once: this is drawn in a thread of its own
        running = [call.requested.tool for call in pending if not call.needs_person]
        if running:
            return f"{', '.join(dict.fromkeys(running))}…"
        return "" if trace.pending else translate("thinking…", self._language)
