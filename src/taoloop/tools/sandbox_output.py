"""The output of a program, read without bound and kept within one."""

from __future__ import annotations


class Kept:
    """The beginning and the end of a stream of bytes, at most `limit` of them; `total` counts all."""

    __slots__ = ("_end", "_head", "_tail", "total")

    def __init__(self, limit: int) -> None:
        self._head, self._tail = limit - limit // 2, limit // 2
        self._end = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take what came next."""
        self.total += len(data)
        self._end += data
        if len(self._end) > self._head + 2 * self._tail + 65_536:  # cut now and then, not at each piece
            del self._end[self._head : len(self._end) - self._tail]

    @property
    def is_cut(self) -> bool:
        """True if not everything was kept."""
        return self.total > self._head + self._tail

    def text(self) -> str:
        """What was kept, with a line between that says how much is missing; bytes that are no UTF-8 become U+FFFD."""
        if not self.is_cut:
            return self._end.decode(errors="replace")
        head, tail = bytes(self._end[: self._head]), bytes(self._end[len(self._end) - self._tail :])
        missing = self.total - len(head) - len(tail)
        parts = (head.decode(errors="replace"), f"[… {missing:,} bytes left out …]", tail.decode(errors="replace"))
        return "\n".join(parts)
