"""The log of the gateway: a line for each request and each message of the server, as text or JSON, without secrets."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Literal, TextIO

from taoloop.core.redaction.redactor import Redactor
from taoloop.core.text import blank_unprintable, printable_json
from taoloop.runtime.engine.clock import Clock, SystemClock
from taoloop.runtime.engine.redaction import LOGS, redactor_for

LogFormat = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error", "critical"]
Field = str | int | float | bool | None

LOGGERS = ("taoloop", "aiohttp", "asyncio")
"""Loggers whose records become lines of this log while the gateway serves."""

_QUIET_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Routes that monitors request every few seconds; only their failures are logged."""

_FAILED, _REFUSED = 500, 400
_SPLITTING = re.compile('[ "=]')
_MAX_VALUE_CHARS = 2_000  # characters of one value; a traceback may be longer
_MAX_TRACEBACK_CHARS = 20_000


@dataclass(slots=True, kw_only=True)
class RequestRecord:
    """What is known of one request when it is over; filled in on its way. No text of a person or a model is in it."""

    request_id: str
    """The client's `x-request-id`, or one made for the request."""

    method: str
    """The HTTP method."""

    route: str
    """The pattern of the path, never the path itself."""

    status: int = 0
    """The HTTP status; 499 where the client left before there was an answer."""

    seconds: float = 0.0
    """From the first byte of the request to the last one of the answer."""

    first_seconds: float | None = None
    """From the first byte of the request to the first piece of a streamed answer."""

    key: str = ""
    """The name of the client's key; empty where it has none, or an unknown one."""

    agent: str = ""
    """The agent that the request was for."""

    run_id: str = ""
    """The run that the request started or continued."""

    run_status: str | None = None
    """The status of the run at the end."""

    steps: int | None = None
    """The steps of the run."""

    tokens: int | None = None
    """The tokens of the run, input and output."""

    cost_usd: float | None = None
    """What the run cost, as far as it is known."""

    error: str = ""
    """The code of the error that the client was sent."""

    client_left: bool = False
    """Whether the client left before the end."""


_RECORD_FIELDS = tuple(name for name in RequestRecord.__slots__ if name != "client_left")
_record_values = attrgetter(*_RECORD_FIELDS)


class RequestLog:
    """Writes lines. No body, header, task or answer is ever in one.

    Every text is redacted, and none can start a line of its own. A line that cannot be written is lost: requests do not
    wait for it.

    Args:
        form: `text` for people, `json` for programs: one object per line, with `time` (UTC), `level` and `event`.
        redactor: Removes secrets.
        stream: Where lines go; by default standard error, as it is at the time of writing.
    """

    def __init__(
        self, form: LogFormat, redactor: Redactor, *, stream: TextIO | None = None, clock: Clock | None = None
    ) -> None:
        self._form, self._redactor, self._stream = form, redactor, stream
        self._clock = clock or SystemClock()

    def add_secrets(self, secrets: Mapping[str, str]) -> None:
        """Redact these from now on, too: those of a changed configuration. Thread-safe."""
        self._redactor = self._redactor.merged_with(redactor_for({}, secrets))

    def request(self, record: RequestRecord) -> None:
        """The line of a request that is over."""
        if record.route in _QUIET_ROUTES and record.status < _REFUSED:
            return
        level: Level = "info" if record.status < _REFUSED else "error" if record.status >= _FAILED else "warning"
        fields: dict[str, Field] = dict(zip(_RECORD_FIELDS, _record_values(record), strict=True))
        first_seconds = None if record.first_seconds is None else round(record.first_seconds, 4)
        fields |= {"seconds": round(record.seconds, 4), "first_seconds": first_seconds}
        self.write("request", level, **fields, left=record.client_left or None)

    def message(self, text: str, level: Level = "warning") -> None:
        """A message about the server: a reload, its shutdown, a problem."""
        self.write("server", level, message=text)

    def write(self, event: str, level: Level = "info", **fields: Field) -> None:
        """One line. Fields with None or "" are omitted."""
        at = datetime.fromtimestamp(self._clock.now(), UTC).isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"
        clean: dict[str, Field] = {name: value for name, value in fields.items() if value not in (None, "")}
        text = "\n".join([value for value in clean.values() if isinstance(value, str)])
        if len(text) > _MAX_VALUE_CHARS or self._redactor.may_hold(text):  # seldom: the values are not looked at singly
            clean = {name: self._clean_value(name, value) for name, value in clean.items()}
        if self._form == "json":
            whole = printable_json({"time": at, "level": level, "event": event, **clean})
        else:
            whole = f"{at} {level:<7} {event} {_as_text(clean)}"
        stream = self._stream if self._stream is not None else sys.stderr
        with suppress(OSError, ValueError):  # its reader has left, or it is closed
            stream.write(whole.encode(errors="replace").decode() + "\n")
            stream.flush()

    @contextmanager
    def capture_loggers(self) -> Iterator[None]:
        """Meanwhile warnings and errors of `LOGGERS` become lines of this log, and go nowhere else."""
        handler = _Handler(self)
        handler.addFilter(LOGS)  # knows the secrets of every agent of this process
        loggers = [logging.getLogger(name) for name in LOGGERS]
        propagated = [logger.propagate for logger in loggers]
        for logger in loggers:
            logger.propagate = False
            logger.addHandler(handler)
        try:
            yield
        finally:
            for logger, was_propagated in zip(loggers, propagated, strict=True):
                logger.removeHandler(handler)
                logger.propagate = was_propagated

    def _clean_value(self, name: str, value: Field) -> Field:
        if not isinstance(value, str):
            return value
        most = _MAX_TRACEBACK_CHARS if name == "traceback" else _MAX_VALUE_CHARS
        text = self._redactor.text(value)
        return text if len(text) <= most else f"{text[:most]}…"


class _Handler(logging.Handler):
    """Writes records of the standard library as lines."""

    def __init__(self, log: RequestLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of a record; the filter has rendered its message and its traceback."""
        level: Level = "error" if record.levelno >= logging.ERROR else "warning"
        trace = record.exc_text or ""
        self._log.write("log", level, logger=record.name, message=record.getMessage(), traceback=trace)


def _as_text(fields: Mapping[str, Field]) -> str:
    """Pairs of `name=value`; a message as it is. Characters that could break the line are escaped."""
    parts = []
    for name, value in fields.items():
        text = str(value)
        if name == "message":
            parts.append(blank_unprintable(text))
        elif not isinstance(value, str) or (text and text.isprintable() and not _SPLITTING.search(text)):
            parts.append(f"{name}={text}")
        else:
            parts.append(f"{name}={printable_json(text)}")
    return " ".join(parts)
