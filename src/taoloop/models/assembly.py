"""A reply put together from the pieces of a stream, told to a listener as they come."""

from __future__ import annotations

from collections.abc import Callable

from taoloop.core.message import Delta, ModelReply, ToolCallText, Usage
from taoloop.errors import ModelReplyUnreadable
from taoloop.models.json_text import joined
from taoloop.models.listening import Listening
from taoloop.models.openai_names import WireNames
from taoloop.models.wire import MAX_REPLY_BYTES


class Assembly:
    """Grows with every piece; `reply` is what has come so far.

    Calls are numbered from 0 in the order in which they begin, whatever numbers the provider gives them. A call is
    told as done when `end_calls` says so or the next one begins.
    """

    def __init__(self, spec: str, names: WireNames, on_delta: Callable[[Delta], None] | None) -> None:
        self._spec, self._names, self._listening = spec, names, Listening(on_delta)
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[_Call] = []
        self._size = 0

    def text(self, piece: str) -> None:
        """The reply's text goes on."""
        self._grow(piece)
        self._text.append(piece)
        self._listening.tell(Delta(kind="text", text=piece))

    def thinking(self, piece: str) -> None:
        """The separate thinking goes on."""
        self._grow(piece)
        self._thinking.append(piece)
        self._listening.tell(Delta(kind="thinking", text=piece))

    def begin_call(self, name: str, call_id: str | None) -> int:
        """A tool call begins; gives its number."""
        self.end_calls()
        self._calls.append(_Call(self._names.ours(name), call_id))
        number = len(self._calls) - 1
        self._tell(number, "")
        return number

    def arguments(self, number: int, piece: str) -> None:
        """The arguments of a call go on."""
        self._grow(piece)
        self._calls[number].pieces.append(piece)
        self._tell(number, piece)

    def arguments_of(self, number: int) -> str:
        """The arguments of a call so far."""
        return "".join(self._calls[number].pieces)

    def end_calls(self) -> None:
        """The arguments of the last call are complete."""
        if self._calls and not self._calls[-1].done:
            self._calls[-1].done = True
            self._tell(len(self._calls) - 1, "", done=True)

    def reply(self, *, finish_reason: str | None, model: str, usage: Usage, cost_usd: float | None) -> ModelReply:
        """All of it."""
        return ModelReply(
            text=joined(self._text),
            tool_calls=tuple(
                ToolCallText(name=call.name, arguments=joined(call.pieces), id=call.id) for call in self._calls
            ),
            finish_reason=finish_reason,
            model=model,
            usage=usage,
            cost_usd=cost_usd,
            thinking=joined(self._thinking),
        )

    def _tell(self, number: int, piece: str, *, done: bool = False) -> None:
        self._listening.tell(Delta(kind="call", text=piece, index=number, name=self._calls[number].name, done=done))

    def _grow(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > MAX_REPLY_BYTES:
            raise ModelReplyUnreadable(
                f"{self._spec} sent more than {MAX_REPLY_BYTES // 1024**2} MiB; the rest was not read.",
                hint="Bound the reply with max_output_tokens.",
                retryable=False,
            )


class _Call:
    __slots__ = ("done", "id", "name", "pieces")

    def __init__(self, name: str, call_id: str | None) -> None:
        self.name, self.id, self.done = name, call_id, False
        self.pieces: list[str] = []
