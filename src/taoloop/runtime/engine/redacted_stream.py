"""The text of a reply, piece by piece as the model writes it, without secrets.

The problem: a person watches a reply while it is written, and a provider may cut it anywhere, so a secret can arrive in
any number of pieces (`sk-`, `4f2a…`). What was shown once cannot be taken back, and what makes a text a secret may come
before it (`password = `), inside it (a vendor's prefix) or after it (the `@` of a URL with a password). To hold
everything back until the reply ends would be safe, but then nobody sees a reply being written.

The idea: hold back only what may still become part of a secret, and release the rest. That is the word being written,
unless no secret begins like it; everything after a name, a scheme or a `://` that announces a secret, until its value
has ended (`Redactor.partial_secret_at`), on the lines below it too (`open_line_at`); the rest of a line in which a
secret was found; and a private key, from `-----BEGIN` to its end. Any other line break releases what came before it.
Chinese needs no blank between words, so any character beyond ASCII ends a word.

The invariant: the pieces that were released, joined, are the redacted text of the reply, whatever the pieces were and
wherever it was cut. `_line[:_released]` is clean and stays in the buffer only as context for what follows. Work and
memory are bounded: at most 16,384 characters are held, and a long line is examined again only after it has grown by a
quarter, so that the total time is linear.

Tested in tests/runtime/engine/test_redacted_stream.py (every way of cutting a text, and the cost of long lines) and
test_redaction.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from taoloop.core.message import Delta
from taoloop.core.redaction.redactor import MAX_WORD_CHARS, Redactor

_LOG = logging.getLogger("taoloop")
_MAX_HELD_CHARS = 16_384  # of a private key that is being written
_LONG_LINE_CHARS = 512  # held back; from here on a line is not examined with each piece
_CONTEXT_CHARS = 200  # before a word, which may announce it as a secret


class RedactedStream:
    """The text of one reply that comes in pieces: `feed` gives what may be shown now, `end` what was held back."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._line = ""  # what is held back, after some of what was released before it
        self._released = 0  # how much of it was released; this part is clean
        self._edge = 0  # where its last whole word ends
        self._has_secret = False  # the line contains a secret
        self._examine_at = 0  # how much must be held back before the line is examined again

    def feed(self, piece: str) -> str:
        """Add a piece; what may be shown now."""
        self._line += piece
        if (border := _last_border(piece)) is not None:
            self._edge = len(self._line) - len(piece) + border
        out = ""
        if "\n" in piece and not self._in_key():
            end = self._line.rindex("\n") + 1
            if end - self._released <= _MAX_HELD_CHARS:
                end = self._redactor.open_line_at(self._line[:end])  # the value of this line is below it
            if end > self._released:
                out += self._release(end)
                self._has_secret = False
        pending = len(self._line) - self._released
        if pending < self._examine_at:
            return out
        if not self._has_secret:
            self._has_secret = "-----" in self._line or self._redactor.text(self._line) != self._line
        if pending > (_MAX_HELD_CHARS if self._has_secret else MAX_WORD_CHARS) and self._edge <= self._released:
            self._edge = len(self._line) - _CONTEXT_CHARS  # one endless word, longer than any token
        if pending > _MAX_HELD_CHARS:
            out += self._release(self._edge)
            self._has_secret = False
        elif not self._has_secret and not self._redactor.may_begin(self._current_word()):
            self._edge = len(self._line)
        return out + self._release_clean()

    def end(self) -> str:
        """What was held back; the next piece begins a new reply."""
        out, self._has_secret = self._release(len(self._line)), False
        return out

    def _release_clean(self) -> str:
        """The text up to the last place that no secret can reach back over."""
        edge = self._released
        if not self._has_secret:
            edge = min(self._edge, self._redactor.partial_secret_at(self._line))
        pending = len(self._line) - self._released
        if edge <= self._released:
            growing = min(pending + pending // 4, _MAX_HELD_CHARS + 1)  # else long lines take quadratic time
            self._examine_at = 0 if pending < _LONG_LINE_CHARS else growing
            return ""
        self._examine_at = 0
        out = self._line[self._released : edge]
        dropped = max(0, edge - _CONTEXT_CHARS)
        self._line, self._edge = self._line[dropped:], self._edge - dropped
        self._released = edge - dropped
        return out

    def _release(self, end: int) -> str:
        """What was not released yet of the line up to `end`, without secrets; the line then begins there."""
        text, released = self._line[:end], self._line[: self._released]
        self._line, self._released, self._edge = self._line[end:], 0, max(0, self._edge - end)
        self._examine_at = 0
        clean = self._redactor.text(text)
        return clean[len(released) :] if clean.startswith(released) else self._redactor.text(text[len(released) :])

    def _current_word(self) -> str:
        """The word that is being written, from its first letter on."""
        border = _last_border(self._line[-MAX_WORD_CHARS:])
        return self._line[-MAX_WORD_CHARS:][border or 0 :]

    def _in_key(self) -> bool:
        start = self._line.rfind("-----BEGIN")
        return 0 <= len(self._line) - start < _MAX_HELD_CHARS and start >= 0 and self._line.find("-----END", start) < 0


def _last_border(piece: str) -> int | None:
    """Where the last whole word ends: after a blank, or after a character that is in no vendor's secret."""
    for index in range(len(piece) - 1, -1, -1):
        if piece[index].isspace() or piece[index] > "\x7f":
            return index + 1
    return None


class RedactedDeltas:
    """Between a model and a listener to the pieces of one reply; `end` passes on what was held back to the last."""

    def __init__(self, redactor: Redactor, listener: Callable[[Delta], None]) -> None:
        self._redactor, self._listener = redactor, listener
        self._streams: dict[tuple[str, int, str], RedactedStream] = {}
        self._failed = False

    def __call__(self, delta: Delta) -> None:
        """Take one piece and pass on what may be shown of it. What the listener raises is the caller's."""
        if delta.kind == "restart":
            self._streams.clear()
            self._notify(delta)
            return
        key = (delta.kind, delta.index, delta.name)
        stream = self._streams.setdefault(key, RedactedStream(self._redactor))
        text = stream.feed(delta.text)
        if delta.done:
            text += stream.end()
        if text or delta.done or not delta.text:
            self._notify(replace(delta, text=text))

    def end(self) -> None:
        """The reply is complete, or was given up."""
        streams, self._streams = self._streams, {}
        for (kind, index, name), stream in streams.items():
            if self._failed or not (rest := stream.end()):
                continue
            try:
                self._notify(Delta(kind=cast("Any", kind), text=rest, index=index, name=name))
            except Exception:  # noqa: BLE001  # a listener must not end what it listens to
                _LOG.exception("a listener to the pieces of a reply failed at its end")

    def _notify(self, delta: Delta) -> None:
        self._failed = True  # unless the listener returns
        self._listener(delta)
        self._failed = False
