"""Server-sent events: from pieces of bytes, cut anywhere, to the data of each event."""

from __future__ import annotations

from collections.abc import Iterator

_BOM = b"\xef\xbb\xbf"  # some servers begin with one


class SseDecoder:
    """Reads the `data` of events as their bytes arrive. Lines end in LF or CRLF, as every provider writes them.

    Only `data` is read: the APIs spoken here repeat in it what their `event` lines say. Comments and empty events (both
    are keep-alives) and other fields are passed over, and so is an event that was cut by the end of the stream.
    Standard: https://html.spec.whatwg.org/multipage/server-sent-events.html
    """

    __slots__ = ("_begun", "_data", "pending")

    def __init__(self) -> None:
        self._begun: list[bytes] = []  # a line of which the end has not come yet
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
