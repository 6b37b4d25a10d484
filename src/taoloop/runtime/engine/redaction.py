"""Redaction where a run touches the world: real arguments, log records, artifacts, and replies on their way."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from taoloop.core.cards.tool_search import CALL_TOOL
from taoloop.core.decision import Act
from taoloop.core.events import ActionRequested, ApprovalGiven, Fact, ModelReplied
from taoloop.core.message import Delta
from taoloop.core.redaction.encodings import secrets_of
from taoloop.core.redaction.redactor import MAX_WORD_CHARS, Redactor
from taoloop.core.views.steps import CallView
from taoloop.journals.base import Artifact
from taoloop.tools.tool import Tool

_LOG = logging.getLogger("taoloop")
_PLAIN = frozenset(vars(logging.makeLogRecord({})))
_HELD = 16_384  # characters of a private key that is being written, at most
_LONG = 512  # characters held; what is longer is not looked at again with each piece
_CONTEXT = 200  # characters before a word that may announce it as a secret


def redactor_for(
    env: Mapping[str, str] | None, given: Mapping[str, str] | Sequence[str], tools: Iterable[Tool] = ()
) -> Redactor:
    """The redactor of an agent: what the environment and its tools hold, what was given, what looks like a secret.

    From here on the log of taoloop is redacted too.
    """
    known = _own_secrets() if env is None else secrets_of(env)
    own = given if isinstance(given, Mapping) else {f"secret_{n}": value for n, value in enumerate(given, 1)}
    return _redactor(tuple({**known, **_of_tools(tools), **own}.items()))


def _of_tools(tools: Iterable[Tool]) -> dict[str, str]:
    """The secrets that tools send, each under a name of its own: those of two APIs may be called the same."""
    found: dict[str, str] = {}
    for tool in tools:
        for name, value in tool.secrets.items():
            if value not in found.values():
                found[name if name not in found else f"{name}_{len(found)}"] = value
    return found


def _own_secrets() -> dict[str, str]:
    """The secrets of this process's environment, looked for again only once it has changed."""
    global _environment  # noqa: PLW0603  # a cache of one
    now = getattr(os.environ, "_data", None)  # as the system gives it; to decode it all costs as much as half a step
    if now is None or _environment is None or _environment[0] != now:
        _environment = dict(now or {}), secrets_of(os.environ)
    return _environment[1]


_environment: tuple[dict[Any, Any], dict[str, str]] | None = None


@lru_cache(maxsize=64)
def _redactor(secrets: tuple[tuple[str, str], ...]) -> Redactor:
    """One for all agents that hold the same secrets."""
    redactor = Redactor(dict(secrets))
    guard_logs(redactor)
    return redactor


def redact_artifact(redactor: Redactor, artifact: Artifact) -> Artifact:
    """The artifact without secrets. Its digest in the event must be that of what comes back."""
    body = redactor.text(artifact.body)
    return artifact if body is artifact.body else replace(artifact, body=body)


class RealArguments:
    """The arguments that a model or a person really gave, for calls whose record was redacted.

    They live as long as the process that got them and are kept nowhere. A run that is resumed has only the record:
    such a call cannot be made any more (`core.redact.holds_label`).
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, Any]] = {}  # by identity: what the trace has, and what was meant
        self.is_empty = True  # as in most runs: no secret in any argument

    def keep(self, real: Fact, shown: Fact) -> None:
        """Remember what stands behind the arguments of a fact that was redacted."""
        match real, shown:
            case ModelReplied(decision=Act(calls=before)), ModelReplied(decision=Act(calls=after)):
                for one, other in zip(before, after, strict=True):
                    self._pair(other.args, one.args)
                    if one.tool == CALL_TOOL.name and isinstance(one.args, Mapping) and isinstance(other.args, Mapping):
                        self._pair(other.args.get("args"), one.args.get("args"))  # it stands for the call in it
            case ActionRequested(args=before_args), ActionRequested(args=after_args):
                self._pair(after_args, before_args)
            case ApprovalGiven(args=before_args), ApprovalGiven(args=after_args):
                self._pair(after_args, before_args)
            case _:
                pass

    def of(self, args: Any) -> Any:
        """The real arguments behind those of the trace; the same object where nothing was redacted."""
        _, real = self._kept.get(id(args), (None, args))
        return real

    def of_call(self, call: CallView) -> Any:
        """The real arguments of a call: the model's, or those that a person put in their place."""
        edited = call.approval.args if isinstance(call.approval, ApprovalGiven) else None
        return self.of(call.requested.args if edited is None else edited)

    def _pair(self, shown: Any, real: Any) -> None:
        if shown is not real:
            self._kept[id(shown)] = (shown, real)
            self.is_empty = False


class LogRedaction(logging.Filter):
    """A filter for the logger `taoloop` (or a handler): message, arguments, traceback and extras without secrets.

    Several agents with secrets of their own share it: `add` each of their redactors.
    """

    def __init__(self) -> None:
        super().__init__()
        self._redactors: tuple[Redactor, ...] = ()

    def add(self, redactor: Redactor) -> None:
        """Redact with this one too. Again is harmless."""
        if redactor and redactor not in self._redactors:
            self._redactors = (*self._redactors, redactor)

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record in place; it is always let through."""
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001  # arguments that do not fit: logging itself would say so, with the arguments
            message = f"{record.msg} (with arguments that do not fit)"
        record.msg, record.args = self._text(message), None
        if record.exc_info:
            text = record.exc_text or "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            record.exc_text, record.exc_info = self._text(text), None
        if record.stack_info:
            record.stack_info = self._text(record.stack_info)
        for name, value in list(vars(record).items()):
            if name not in _PLAIN and isinstance(value, str | dict | list | tuple):
                setattr(record, name, self._value(value))
        return True

    def _text(self, text: str) -> str:
        for redactor in self._redactors:
            text = redactor.text(text)
        return text

    def _value(self, value: object) -> object:
        for redactor in self._redactors:
            value = redactor.value(value)
        return value


LOGS = LogRedaction()
"""The filter of this process; it is on the logger `taoloop` from the first `guard_logs` on."""


def guard_logs(redactor: Redactor) -> None:
    """Let nothing that `redactor` knows into the log of taoloop."""
    LOGS.add(redactor)
    logger = logging.getLogger("taoloop")
    if LOGS not in logger.filters:
        logger.addFilter(LOGS)


class RedactedStream:
    """The text of a reply that comes in pieces, without secrets: a piece is held back while it may become one.

    Held are the word that is being written (unless no secret begins like that), what a name announced and is not at
    its end yet, the rest of a line that holds a secret, and a private key to its end. Chinese needs no blank to end a
    word. What is looked at again is bounded, however long a line is, and a long part of it only after it has grown by
    a quarter.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._line = ""  # what is held, with some of what was given out before it
        self._given = 0  # how much of it was given out; this part is clean
        self._edge = 0  # where its last whole word ends
        self._holds = False  # the line holds a secret
        self._look_at = 0  # how much must be held before the line is looked at again

    def feed(self, piece: str) -> str:
        """What may be shown now."""
        self._line += piece
        if (border := _last_border(piece)) is not None:
            self._edge = len(self._line) - len(piece) + border
        out = ""
        if "\n" in piece and not self._in_key():
            out += self._give(self._line.rindex("\n") + 1)
            self._holds = False
        held = len(self._line) - self._given
        if held < self._look_at:
            return out
        if not self._holds:
            self._holds = "-----" in self._line or self._redactor.text(self._line) != self._line
        if held > (_HELD if self._holds else MAX_WORD_CHARS) and self._edge <= self._given:
            self._edge = len(self._line) - _CONTEXT  # one endless word, longer than any token
        if held > _HELD:
            out += self._give(self._edge)
            self._holds = False
        elif not self._holds and not self._redactor.may_begin(self._word()):
            self._edge = len(self._line)
        edge = self._given if self._holds else min(self._edge, self._redactor.partial_secret_at(self._line))
        held = len(self._line) - self._given
        self._look_at = 0 if held < _LONG else min(held + held // 4, _HELD + 1)  # else long lines take square time
        if edge > self._given:
            self._look_at = 0
            out += self._line[self._given : edge]
            dropped = max(0, edge - _CONTEXT)
            self._line, self._edge = self._line[dropped:], self._edge - dropped
            self._given = edge - dropped
        return out

    def _word(self) -> str:
        """The word that is being written, from its first letter on."""
        border = _last_border(self._line[-MAX_WORD_CHARS:])
        return self._line[-MAX_WORD_CHARS:][border or 0 :]

    def end(self) -> str:
        """What was held back; the next piece begins a new reply."""
        out, self._holds = self._give(len(self._line)), False
        return out

    def _give(self, end: int) -> str:
        """What was not given out yet of the line up to `end`, without secrets; the line then begins there."""
        text, given = self._line[:end], self._line[: self._given]
        self._line, self._given, self._edge = self._line[end:], 0, max(0, self._edge - end)
        self._look_at = 0
        clean = self._redactor.text(text)
        return clean[len(given) :] if clean.startswith(given) else self._redactor.text(text[len(given) :])

    def _in_key(self) -> bool:
        begun = self._line.rfind("-----BEGIN")
        return 0 <= len(self._line) - begun < _HELD and begun >= 0 and self._line.find("-----END", begun) < 0


def _last_border(piece: str) -> int | None:
    """Where the last whole word ends: behind a blank, or behind a sign that is in no vendor's secret."""
    for at in range(len(piece) - 1, -1, -1):
        if piece[at].isspace() or piece[at] > "\x7f":
            return at + 1
    return None


class RedactedDeltas:
    """Stands before a listener to the pieces of one reply; `end` gives it what was held back to the last."""

    def __init__(self, redactor: Redactor, listener: Callable[[Delta], None]) -> None:
        self._redactor, self._listener = redactor, listener
        self._streams: dict[tuple[str, int, str], RedactedStream] = {}
        self._failed = False

    def __call__(self, delta: Delta) -> None:
        """Take one piece and hand on what may be shown of it. What the listener raises is the caller's."""
        if delta.kind == "restart":
            self._streams.clear()
            self._tell(delta)
            return
        place = (delta.kind, delta.index, delta.name)
        stream = self._streams.setdefault(place, RedactedStream(self._redactor))
        text = stream.feed(delta.text)
        if delta.done:
            text += stream.end()
        if text or delta.done or not delta.text:
            self._tell(replace(delta, text=text))

    def end(self) -> None:
        """The reply is whole, or given up."""
        streams, self._streams = self._streams, {}
        for (kind, index, name), stream in streams.items():
            if self._failed or not (rest := stream.end()):
                continue
            try:
                self._tell(Delta(kind=cast("Any", kind), text=rest, index=index, name=name))
            except Exception:  # noqa: BLE001  # who listens must not end what happens
                _LOG.exception("a listener to the pieces of a reply failed at its end")

    def _tell(self, delta: Delta) -> None:
        self._failed = True  # unless it comes back
        self._listener(delta)
        self._failed = False
