"""The answer of a run in pieces, while the model writes it; what was held back follows when the run has ended."""

from __future__ import annotations

from collections.abc import Sequence

from taoloop.core.events import Event, ModelReplied
from taoloop.core.message import Delta
from taoloop.dialects.streaming.answer_stream import AnswerStream, StopCutter, unsent_suffix

_BREAK = "\n\n"


class AnswerPieces:
    """Takes what a run says of itself and gives the pieces of the answer that can be sent.

    `holds`: nothing goes out before the run has ended, because the answer is judged or rewritten first.

    What was sent cannot be taken back: where text turns out to have been no part of the answer (words before a tool
    call, a reply that began anew), it stands before the answer, with an empty line between. Stop texts cut
    each of them by itself: one that stood before the answer does not end it.
    """

    def __init__(self, *, dialect: str, tools_offered: bool, holds: bool, stops: Sequence[str] = ()) -> None:
        self._dialect, self._tools_offered, self._holds = dialect, tools_offered, holds
        self._stops, self._cutter = stops, StopCutter(stops)
        self._stream = self._fresh()
        self._given = ""  # of the reply that is being written
        self._rejected = ""  # of the reply before it, where that could not be read; it may be the answer all the same
        self._before = ""  # what is still to be sent of a text that is no part of the answer, and an empty line

    @property
    def is_cut(self) -> bool:
        """Whether a stop text of the client ended the answer."""
        return self._cutter.hit

    @property
    def has_sent(self) -> bool:
        """Whether anything went out."""
        return bool(self._given or self._before)

    def on_delta(self, delta: Delta) -> str:
        """Take a piece of a reply; gives what can be sent of it."""
        if self._holds or delta.kind == "progress":
            return ""
        text = self._stream.feed(delta)
        if delta.kind == "restart" and self._given:
            self._turn()
        return self._sent(text)

    def on_event(self, event: Event) -> None:
        """Take an event: a reply that is whole is followed by another one, or by the end."""
        if isinstance(event.fact, ModelReplied):
            decision = event.fact.decision
            is_answer = decision is not None and not hasattr(decision, "calls")
            if self._given and not is_answer:
                self._rejected = self._given if decision is None and not self._cutter.hit else ""
                self._turn()
            self._stream = self._fresh()

    def finish(self, answer: str) -> str:
        """What is still to be sent, now that the whole answer is known."""
        held = ""
        if self._rejected and not self._given and answer.startswith(self._rejected):  # a reply that was cut
            self._given, held, self._before = self._rejected, self._before.removesuffix(_BREAK), ""
        more, fits = unsent_suffix(answer, self._given)
        if not fits and self.has_sent:
            self._turn()
        return held + self._sent(more) + self._cutter.flush()

    def _sent(self, text: str) -> str:
        if not text:
            return ""
        self._given += text
        before, self._before = self._before, ""
        return before + self._cutter.feed(text)

    def _turn(self) -> None:
        self._given, self._before = "", self._before.removesuffix(_BREAK) + self._cutter.flush() + _BREAK
        self._cutter = StopCutter(self._stops)

    def _fresh(self) -> AnswerStream:
        return AnswerStream(self._dialect, tools_offered=self._tools_offered, has_schema=self._holds)
