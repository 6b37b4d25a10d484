"""Redaction where a run touches the world: the redactor of an agent, real arguments, artifacts and log records."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from taoloop.core.cards.tool_search import CALL_TOOL
from taoloop.core.decision import Act
from taoloop.core.events import ActionRequested, ApprovalGiven, Fact, ModelReplied
from taoloop.core.redaction.redactor import Redactor, secrets_of
from taoloop.core.views.steps import CallView
from taoloop.tools.tool import Tool

_PLAIN = frozenset(vars(logging.makeLogRecord({})))


def redactor_for(
    env: Mapping[str, str] | None, secrets: Mapping[str, str] | Sequence[str], tools: Iterable[Tool] = ()
) -> Redactor:
    """The redactor of an agent: it knows the secrets of the environment and the tools, `secrets`, and typical forms.

    From here on the log of taoloop is redacted too.
    """
    known = _environment_secrets() if env is None else secrets_of(env)
    own = secrets if isinstance(secrets, Mapping) else {f"secret_{n}": value for n, value in enumerate(secrets, 1)}
    return _redactor(tuple({**known, **_tool_secrets(tools), **own}.items()))


def _tool_secrets(tools: Iterable[Tool]) -> dict[str, str]:
    """The secrets that tools send, each under a name of its own: those of two APIs may have the same name."""
    secrets: dict[str, str] = {}
    for tool in tools:
        for name, value in tool.secrets.items():
            if value not in secrets.values():
                secrets[name if name not in secrets else f"{name}_{len(secrets)}"] = value
    return secrets


def _environment_secrets() -> dict[str, str]:
    """The secrets of this process's environment, searched again only after a change."""
    global _environment  # noqa: PLW0603  # a cache of one
    now = getattr(os.environ, "_data", None)  # as the system gives it; to decode it all costs as much as half a step
    if now is None or _environment is None or _environment[0] != now:
        _environment = dict(now or {}), secrets_of(os.environ)
    return _environment[1]


_environment: tuple[dict[Any, Any], dict[str, str]] | None = None


@lru_cache(maxsize=64)
def _redactor(secrets: tuple[tuple[str, str], ...]) -> Redactor:
    """One redactor for all agents with the same secrets."""
    redactor = Redactor(dict(secrets))
    guard_logs(redactor)
    return redactor


class RealArguments:
    """The arguments that a model or a person really gave, for calls whose record was redacted.

    They live as long as the process that received them and are never stored. A run that is resumed has only the record:
    such a call cannot be made any more (`contains_redaction`).
    """

    def __init__(self) -> None:
        self._pairs: dict[int, tuple[Any, Any]] = {}  # by identity: the arguments in the trace, and the real ones
        self.is_empty = True  # as in most runs: no argument contains a secret

    def keep(self, real: Fact, redacted: Fact) -> None:
        """Remember the real arguments of a fact that was redacted."""
        match real, redacted:
            case ModelReplied(decision=Act(calls=before)), ModelReplied(decision=Act(calls=after)):
                for call, stored in zip(before, after, strict=True):
                    self._pair(stored.args, call.args)
                    is_wrapped = call.tool == CALL_TOOL.name and isinstance(call.args, Mapping)
                    if is_wrapped and isinstance(stored.args, Mapping):  # the call in its arguments is made instead
                        self._pair(stored.args.get("args"), call.args.get("args"))
            case ((ActionRequested() | ApprovalGiven()), (ActionRequested() | ApprovalGiven())):
                self._pair(redacted.args, real.args)
            case _:
                pass

    def of(self, args: Any) -> Any:
        """The real arguments behind those of the trace; the same object where nothing was redacted."""
        _, real = self._pairs.get(id(args), (None, args))
        return real

    def of_call(self, call: CallView) -> Any:
        """The real arguments of a call: the model's, or those of a person who edited them."""
        edited = call.approval.args if isinstance(call.approval, ApprovalGiven) else None
        return self.of(call.requested.args if edited is None else edited)

    def _pair(self, redacted: Any, real: Any) -> None:
        if redacted is not real:
            self._pairs[id(redacted)] = (redacted, real)
            self.is_empty = False


class LogRedaction(logging.Filter):
    """A filter for the logger `taoloop` (or a handler): message, arguments, traceback and extras without secrets.

    Several agents with secrets of their own share it: `add` each of their redactors.
    """

    def __init__(self) -> None:
        super().__init__()
        self._redactors: tuple[Redactor, ...] = ()

    def add(self, redactor: Redactor) -> None:
        """Redact with this redactor too; adding it twice is harmless."""
        if redactor and redactor not in self._redactors:
            self._redactors = (*self._redactors, redactor)

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the record in place; it always passes."""
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001  # arguments that do not fit: logging would print them in its own message
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
    """Redact the log of taoloop with `redactor` too."""
    LOGS.add(redactor)
    logger = logging.getLogger("taoloop")
    if LOGS not in logger.filters:
        logger.addFilter(LOGS)
