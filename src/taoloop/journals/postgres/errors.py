"""What PostgreSQL, its driver and the network say, in words that name the database and the way out."""

from __future__ import annotations

import copy

import asyncpg

from taoloop.errors import IllegalEvent, JournalError, JournalFull, JournalLocked, JournalUnreachable, TaoError
from taoloop.journals.base import translate
from taoloop.journals.postgres.schema import standby
from taoloop.translation import mark

_GONE = frozenset({"57P01", "57P02", "57P03", "57P05"})  # shut down, crashed, starting, idle for too long
_BUSY = frozenset({"40001", "40P01", "55P03", "57014"})
_MISSING = frozenset({"3F000", "42P01", "42703"})  # schema, table, column
_FULL = frozenset({"53100", "53200"})


def code_of(error: BaseException) -> str:
    """The SQLSTATE of an error; empty where it has none."""
    return str(getattr(error, "sqlstate", None) or "")


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone, or could not be made: the outcome of what ran over it is not known."""
    if isinstance(error, asyncpg.PostgresError):
        return code_of(error) in _GONE or code_of(error).startswith("08")
    if isinstance(error, asyncpg.InterfaceError):
        return "closed" in str(error) or "closing" in str(error) or "released" in str(error)
    return isinstance(error, OSError | TimeoutError | asyncpg.InternalClientError)


def is_busy(error: BaseException) -> bool:
    """Whether two transactions were in each other's way, or one waited for too long: nothing of it was written."""
    return code_of(error) in _BUSY


def explain(error: Exception, location: str) -> Exception:
    """The error to raise in place of `error`, a new object at every call. Errors of ours and bugs stay as they are."""
    match error:
        case TaoError():
            return copy.copy(error)  # several tasks may raise it
        case asyncpg.PostgresError():
            return _explain_server(error, location)
        case asyncpg.DataError():
            text = mark("{path}: an event or artifact cannot be stored: {error}.")
            return IllegalEvent(translate(text, path=location, error=error))
        case ValueError() if not isinstance(error, asyncpg.InterfaceError):  # not JSON, or text that is not Unicode
            text = mark("{path}: an event or artifact cannot be stored: {error}.")
            return IllegalEvent(translate(text, path=location, error=error))
        case _ if is_lost(error):
            return unreachable(location, error)
        case asyncpg.InterfaceError():
            message = translate("{path}: the journal cannot be read or written ({error}).", path=location, error=error)
            return JournalError(message, hint=translate("Check the address and its parameters."))
        case _:
            return error


def unreachable(location: str, error: Exception) -> JournalUnreachable:
    """There is no connection."""
    text = mark("{path}: the PostgreSQL server cannot be reached ({error}).")
    hint = mark("Check that it runs, its address and the network; everything committed before is intact.")
    message = translate(text, path=location, error=str(error) or type(error).__name__)
    return JournalUnreachable(message, hint=translate(hint))


def _explain_server(error: asyncpg.PostgresError, location: str) -> TaoError:
    code, text = code_of(error), str(error).partition("\n")[0]
    if code in _FULL:
        message = translate("{path}: there is no space left to write to ({error}).", path=location, error=text)
        return JournalFull(
            message, hint=translate("Free some space and resume the run; everything committed before is intact.")
        )
    if code == "25006":
        return standby(location)
    if code in _GONE or code.startswith(("08", "53")):
        return unreachable(location, error)
    if code in _BUSY:
        message = translate("{path}: the database is busy ({error}); nothing was written.", path=location, error=text)
        return JournalLocked(message, hint=translate("Try again; see what holds it in pg_stat_activity."))
    if code == "23505":
        template = mark("{path}: what was to be added is there already ({error}).")
        return IllegalEvent(translate(template, path=location, error=text))
    if code.startswith("22"):
        template = mark("{path}: an event or artifact cannot be stored: {error}.")
        return IllegalEvent(translate(template, path=location, error=text))
    message, hint = _refusal(code, text, location)
    return JournalError(message, hint=hint)


def _refusal(code: str, text: str, location: str) -> tuple[str, str]:
    """What the server refuses, and what to do."""
    if code.startswith("28"):
        message = mark("{path}: the server refuses the login ({error}).")
        hint = mark("Check user and password (PGPASSWORD or a passfile), and pg_hba.conf of the server.")
    elif code == "3D000":
        message = mark("{path}: there is no such database ({error}).")
        hint = mark("Create it with `createdb`, or name another one.")
    elif code == "42501":
        message = mark("{path}: the role lacks a right ({error}).")
        hint = mark("Have the owner run `tao db migrate --db URL`, and grant the rights that docs/postgres.md lists.")
    elif code in _MISSING:
        message = mark("{path}: the tables of the journal are not there, or of another version ({error}).")
        hint = mark("`tao db migrate --db URL` makes them.")
    else:
        message = mark("{path}: the journal cannot be read or written ({error}).")
        hint = mark("See the log of the server; everything committed before is intact.")
    return translate(message, path=location, error=text), translate(hint)
