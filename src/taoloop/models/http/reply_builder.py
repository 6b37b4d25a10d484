"""From bytes to a reply: server-sent events, JSON as providers send it, and a reply assembled from its pieces.

`ToolNameMap` translates the names of tools into those that an API accepts, and back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pydantic_core import from_json

from taoloop.core.message import Delta, ModelReply, ToolCallText, Usage
from taoloop.models.base import DeltaFanout
from taoloop.models.http.transport import MAX_REPLY_BYTES, too_large

_ACCEPTED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_ACCEPTED = re.compile(r"[^a-zA-Z0-9_-]+")
_MAX_NAME_CHARS = 64
_HALF = re.compile("[\ud800-\udfff]")
_BOM = b"\xef\xbb\xbf"  # some servers begin with one
_MAX_TOKENS = 10**12  # more than this is no count of tokens

_CALL_CHARS = 256
"""What a call adds to the size of a reply, besides its arguments."""


class ToolNameMap:
    """The names of one request: `tools` are ours; `outgoing` accepts any other name that a model has invented, too.

    A name that the API accepts stays as it is. Another gets one that no tool has, always the same for the same
    tools, so that later requests of a run begin like the earlier ones.
    """

    __slots__ = ("_ours", "_outgoing")

    def __init__(self, tools: Iterable[str]) -> None:
        names = tuple(dict.fromkeys(tools))
        self._outgoing = {name: name for name in names if _ACCEPTED.fullmatch(name)}
        self._ours = dict(self._outgoing)
        for name in names:
            self._ours.setdefault(self.outgoing(name), name)

    def outgoing(self, name: str) -> str:
        """The name that the API gets in place of `name`."""
        known = self._outgoing.get(name)
        if known is None:
            known = self._outgoing[name] = self._free(name)
        return known

    def ours(self, name: str) -> str:
        """The tool that a reply means; a name that is no tool's comes back as it is."""
        return self._ours.get(name, name)

    def _free(self, name: str) -> str:
        if _ACCEPTED.fullmatch(name):
            return name
        base = _NOT_ACCEPTED.sub("_", name)[:_MAX_NAME_CHARS] or "unnamed"
        used = set(self._outgoing.values())
        free, number = base, 2
        while free in used:
            end = f"_{number}"
            free, number = base[: _MAX_NAME_CHARS - len(end)] + end, number + 1
        return free


def parse_json(data: bytes) -> Any:
    """The value in a JSON text, a byte order mark before it or not; may hold lone surrogates.

    Raises:
        ValueError: it is no JSON, not UTF-8, or nested too deeply to be meant.
    """
    data = data.removeprefix(_BOM)
    try:
        return from_json(data)
    except ValueError:
        if rb"\u" not in data:
            raise
        try:
            return json.loads(data)  # slower, and takes halves of surrogate pairs
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def join_pieces(pieces: Iterable[str]) -> str:
    """The pieces as one text. Halves of a character that meet become that character."""
    text = "".join(pieces)
    if text.isascii() or not _HALF.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class SseDecoder:
    """Reads the `data` of events as their bytes arrive. Lines end in LF or CRLF, as every provider writes them.

    Only `data` is read: the APIs spoken here repeat in it what their `event` lines say. Comments and empty events (both
    are keep-alives) and other fields are passed over, and so is an event that was cut by the end of the stream.
    Standard: https://html.spec.whatwg.org/multipage/server-sent-events.html
    """

    __slots__ = ("_begun", "_data", "pending")

    def __init__(self) -> None:
        self._begun: list[bytes] = []  # a line whose end has not come yet
        self._data: list[bytes] = []
        self.pending = 0
        """Bytes that wait for the end of their line or event."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of every event that is complete with this piece."""
        self.pending += len(piece)
        if b"\n" not in piece:
            self._begun.append(piece)
            return
        if self._begun:
            piece = b"".join((*self._begun, piece))
        lines = piece.split(b"\n")
        rest = lines.pop()
        self._begun = [rest] if rest else []
        for raw_line in lines:
            line = raw_line.removeprefix(_BOM)
            if line.startswith(b"data:"):
                self._data.append(line[5:].strip(b" \r"))
            elif self._data and line in (b"", b"\r"):
                data, self._data = self._data, []
                if any(data):
                    yield data[0] if len(data) == 1 else b"\n".join(data)
        self.pending = len(rest) + sum(map(len, self._data))


def token_count(value: object) -> int:
    """A number of tokens; anything else that a server may put there is 0."""
    return value if type(value) is int and 0 < value < _MAX_TOKENS else 0


def text_or_empty(value: object) -> str:
    """A text; whatever else a server may put in its place is an empty one."""
    return value if isinstance(value, str) else ""


class Assembly:
    """Grows with every piece; `reply` is what has come so far.

    Calls are numbered from 0 in the order in which they begin, whatever numbers the provider gives them. A call is
    reported as done when `end_call` or `end_calls` says so, or the next one begins and its own arguments are complete:
    providers may write several calls at once.
    """

    def __init__(self, spec: str, names: ToolNameMap, on_delta: Callable[[Delta], None] | None) -> None:
        self._spec, self._names, self._listening = spec, names, DeltaFanout(on_delta)
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[_Call] = []
        self._size = 0

    def text(self, piece: str) -> None:
        """Add to the reply's text."""
        self._grow(len(piece))
        self._text.append(piece)
        self._listening(Delta(kind="text", text=piece))

    def thinking(self, piece: str) -> None:
        """Add to the separate thinking."""
        self._grow(len(piece))
        self._thinking.append(piece)
        self._listening(Delta(kind="thinking", text=piece))

    def begin_call(self, name: str, call_id: str | None) -> int:
        """Begin a tool call; returns its number."""
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
        """Add to the arguments of a call."""
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
            raise too_large(self._spec)

    def reply(self, *, finish_reason: str | None, model: str, usage: Usage, cost_usd: float | None) -> ModelReply:
        """The whole reply."""
        return ModelReply(
            text=join_pieces(self._text),
            tool_calls=tuple(
                ToolCallText(name=call.name, arguments=join_pieces(call.pieces), id=call.id) for call in self._calls
            ),
            finish_reason=finish_reason,
            model=model,
            usage=usage,
            cost_usd=cost_usd,
            thinking=join_pieces(self._thinking),
        )

    def _tell(self, number: int, piece: str, *, done: bool = False) -> None:
        self._listening(Delta(kind="call", text=piece, index=number, name=self._calls[number].name, done=done))

    def _grow(self, chars: int) -> None:
        self._size += chars
        if self._size > MAX_REPLY_BYTES:
            raise too_large(self._spec)


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
