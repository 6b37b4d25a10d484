"""A reply put together from the pieces of a stream, told to a listener as they come."""

from __future__ import annotations

from collections.abc import Callable

from pydantic_core import from_json

from taoloop.core.message import Delta, ModelReply, ToolCallText, Usage
from taoloop.errors import ModelReplyUnreadable
from taoloop.models.base import DeltaFanout
from taoloop.models.http.lenient_json import joined
from taoloop.models.http.transport import MAX_REPLY_BYTES
from taoloop.models.openai.names import ToolNameMap

_CALL_CHARS = 256
"""What a call counts for beside its arguments."""


class Assembly:
    """Grows with every piece; `reply` is what has come so far.

    Calls are numbered from 0 in the order in which they begin, whatever numbers the provider gives them. A call is
    told as done when `end_call` or `end_calls` says so, or the next one begins and its own arguments are complete:
    providers may write several calls at once.
    """

    def __init__(self, spec: str, names: ToolNameMap, on_delta: Callable[[Delta], None] | None) -> None:
        self._spec, self._names, self._listening = spec, names, DeltaFanout(on_delta)
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[_Call] = []
        self._size = 0

    def text(self, piece: str) -> None:
        """The reply's text goes on."""
        self._grow(len(piece))
        self._text.append(piece)
        self._listening(Delta(kind="text", text=piece))

    def thinking(self, piece: str) -> None:
        """The separate thinking goes on."""
        self._grow(len(piece))
        self._thinking.append(piece)
        self._listening(Delta(kind="thinking", text=piece))

    def begin_call(self, name: str, call_id: str | None) -> int:
        """A tool call begins; gives its number."""
        if self._calls and _is_complete(self._calls[-1]):
            self.end_call(len(self._calls) - 1)
        self._grow(_CALL_CHARS)
        self._calls.append(_Call(self._names.ours(name), call_id))
        number = len(self._calls) - 1
        self._tell(number, "")
        return number

    def name(self, number: int, name: str) -> None:
        """The name of a call that began without one."""
        call = self._calls[number]
        call.name = call.name or self._names.ours(name)

    def arguments(self, number: int, piece: str) -> None:
        """The arguments of a call go on."""
        self._grow(len(piece))
        self._calls[number].pieces.append(piece)
        self._tell(number, piece)

    def arguments_of(self, number: int) -> str:
        """The arguments of a call so far."""
        return "".join(self._calls[number].pieces)

    def end_call(self, number: int) -> None:
        """The arguments of a call are complete."""
        if not self._calls[number].done:
            self._calls[number].done = True
            self._tell(number, "", done=True)

    def end_calls(self) -> None:
        """The arguments of all calls are complete."""
        for number in range(len(self._calls)):
            self.end_call(number)

    def bound(self, pending: int) -> None:
        """Refuse an event that is larger than a whole reply may be; so much of it has come."""
        if pending > MAX_REPLY_BYTES:
            raise self._too_large()

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
        self._listening(Delta(kind="call", text=piece, index=number, name=self._calls[number].name, done=done))

    def _grow(self, chars: int) -> None:
        self._size += chars
        if self._size > MAX_REPLY_BYTES:
            raise self._too_large()

    def _too_large(self) -> ModelReplyUnreadable:
        return ModelReplyUnreadable(
            f"{self._spec} sent more than {MAX_REPLY_BYTES // 1024**2} MiB; the rest was not read.",
            hint="Bound the reply with max_output_tokens.",
            retryable=False,
        )


class _Call:
    __slots__ = ("done", "id", "name", "pieces")

    def __init__(self, name: str, call_id: str | None) -> None:
        self.name, self.id, self.done = name, call_id, False
        self.pieces: list[str] = []


def _is_complete(call: _Call) -> bool:
    try:
        from_json("".join(call.pieces))
    except ValueError:
        return False
    return True
