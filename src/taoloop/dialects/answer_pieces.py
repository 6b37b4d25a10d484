"""The answer of a run in pieces, as it can be sent while the model writes it: `AnswerStream` over all replies."""

from __future__ import annotations

from collections.abc import Sequence

from taoloop.core.events import Event, ModelReplied
from taoloop.core.message import Delta
from taoloop.dialects.answer_stream import AnswerStream, unsent_suffix
from taoloop.dialects.pending_text import StopCutter

_BREAK = "\n\n"


class AnswerPieces:
    """Takes the events of a run and gives the pieces of the answer that can be sent.

    What was sent cannot be taken back: where text turns out not to be part of the answer (words before a tool call, a
    reply that started over), it comes before the answer, separated by an empty line. Stop sequences cut each of them
    by itself: one that comes before the answer does not end it.

    Args:
        dialect: The name of the dialect of the run.
        tool_names: The tools that the model may call.
        is_held_back: The answer is checked or rewritten first, so nothing is given before the run ends.
        stops: Texts at which the answer ends.
    """

    def __init__(
        self, dialect: str, tool_names: Sequence[str], *, is_held_back: bool = False, stops: Sequence[str] = ()
    ) -> None:
        self._dialect, self._tool_names, self._is_held_back = dialect, tool_names, is_held_back
        self._stops, self._cutter = stops, StopCutter(stops)
        self._stream = self._new_stream()
        self._current = ""  # what was sent of the reply that is being written
        self._rejected = ""  # what was sent of an unreadable reply, which may be the answer all the same
        self._before = ""  # what is still to be sent of text before the answer, and an empty line

    @property
    def is_cut(self) -> bool:
        """Whether a stop sequence of the client ended the answer."""
        return self._cutter.hit

    @property
    def has_sent(self) -> bool:
        """Whether anything went out."""
        return bool(self._current or self._before)

    def on_delta(self, delta: Delta) -> str:
        """Take a piece of a reply; returns what can be sent of it."""
        if self._is_held_back or delta.kind == "progress":
            return ""
        text = self._stream.feed(delta)
        if delta.kind == "restart" and self._current:
            self._start_new_text()
        return self._emit(text)

    def on_event(self, event: Event) -> None:
        """Take an event: after a complete reply comes another one, or the end."""
        if isinstance(event.fact, ModelReplied):
            decision = event.fact.decision
            is_answer = decision is not None and not hasattr(decision, "calls")
            if self._current and not is_answer:
                self._rejected = self._current if decision is None and not self._cutter.hit else ""
                self._start_new_text()
            self._stream = self._new_stream()

    def finish(self, answer: str) -> str:
        """The rest of the answer, now that all of it is known."""
        pending = ""
        if self._rejected and not self._current and answer.startswith(self._rejected):  # it was cut off
            self._current, pending, self._before = self._rejected, self._before.removesuffix(_BREAK), ""
        more, fits = unsent_suffix(answer, self._current)
        if not fits and self.has_sent:
            self._start_new_text()
        return pending + self._emit(more) + self._cutter.flush()

    def _emit(self, text: str) -> str:
        if not text:
            return ""
        self._current += text
        before, self._before = self._before, ""
        return before + self._cutter.feed(text)

    def _start_new_text(self) -> None:
        self._current, self._before = "", self._before.removesuffix(_BREAK) + self._cutter.flush() + _BREAK
        self._cutter = StopCutter(self._stops)

    def _new_stream(self) -> AnswerStream:
        names = self._tool_names
        return AnswerStream(self._dialect, tools_offered=bool(names), has_schema=self._is_held_back, tool_names=names)
