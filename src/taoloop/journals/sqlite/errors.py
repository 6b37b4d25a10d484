"""What SQLite and the file system say, in words that name the file and the way out."""

from __future__ import annotations

import copy
import errno
import shutil
import sqlite3
from pathlib import Path

from taoloop.errors import IllegalEvent, JournalCorrupt, JournalError, JournalFull, JournalLocked, RunNotFound, TaoError
from taoloop.journals.base import translate
from taoloop.journals.refusals import run_missing
from taoloop.journals.retention import PrunedRun, decode_record, pruned_error
from taoloop.journals.sqlite import schema
from taoloop.translation import mark

_UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_CORRUPT = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NEARLY_NOTHING = 1024 * 1024  # bytes; SQLite calls some writes on a full disk just an I/O error


def explain(error: Exception, path: Path) -> Exception:
    """The error to raise in place of `error`, a new object at every call. Errors of ours and bugs stay as they are."""
    match error:
        case TaoError():
            return copy.copy(error)  # several tasks may raise it
        case sqlite3.Error():
            return _explain_sqlite(error, path)
        case OSError():
            return full(path, error) if error.errno in _NO_SPACE else unwritable(path, error)
        case ValueError():  # not JSON, or text that is not Unicode
            text = mark("{path}: an event or artifact cannot be stored: {error}.")
            return IllegalEvent(translate(text, path=path, error=error))
        case _:
            return error


def primary_code(error: Exception) -> int:
    """The code of a SQLite error without its extension, -1 when it has none."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else -1


def full(path: Path, error: Exception) -> JournalFull:
    """No space is left for the file."""
    return JournalFull(
        translate("{path}: there is no space left to write to ({error}).", path=path, error=error),
        hint=translate("Free some space and resume the run; everything committed before is intact."),
    )


def unwritable(path: Path, error: Exception) -> JournalError:
    """The file or its folder cannot be created, opened or written."""
    return JournalError(
        translate("{path}: the journal cannot be opened or written ({error}).", path=path, error=error),
        hint=translate(
            "Check the permissions of the file and its folder, or choose another path with --db or TAOLOOP_DB."
        ),
    )


def corrupt(path: Path, reason: str, *, hint: str | None = None) -> JournalCorrupt:
    """The file is something else, or damaged."""
    usual = mark("Choose another path with --db or TAOLOOP_DB, or restore the file from a backup.")
    return JournalCorrupt(translate("{path}: {reason}.", path=path, reason=reason), hint=hint or translate(usual))


def gone(path: Path) -> JournalError:
    """The file is no longer the one that was opened."""
    return JournalError(
        translate("{path}: the database was removed or replaced while it was in use; nothing was written.", path=path),
        hint=translate("Put the file back and resume the run, or begin a new one."),
    )


def removed(path: Path) -> JournalError:
    """The file that was read is not there any more; it is not made anew by reading."""
    return JournalError(
        translate("{path}: the database was removed while it was in use.", path=path),
        hint=translate("Put the file back, or restore a backup; it is read again as soon as it is there."),
    )


def not_found(path: Path, run_id: str, connection: sqlite3.Connection) -> RunNotFound:
    """The file has no such run, or no longer."""
    if (record := pruned_run(connection, run_id)) is not None:
        return pruned_error(str(path), record)
    return run_missing(path, run_id)


def pruned_run(connection: sqlite3.Connection, run_id: str) -> PrunedRun | None:
    """What is kept of a run that retention removed; None if it did not, or if the record is not one any more."""
    if schema.version(connection) < schema.PRUNED:
        return None
    row = connection.execute("SELECT pruned FROM run_log WHERE run_id = ? AND pruned IS NOT NULL", (run_id,)).fetchone()
    try:
        return None if row is None else decode_record(row[0])
    except (ValueError, TypeError):  # somebody edited it, which `tao verify --all` shows
        return None


def locked(path: Path, timeout_s: float | None = None) -> JournalLocked:
    """Another process holds the lock."""
    text = mark("{path}: another process holds the database; nothing was written.")
    if timeout_s is not None:
        text = mark("{path}: another process holds the database for over {timeout_s:g} s; nothing was written.")
    hint = mark("Close the program that has it open (perhaps a database browser), then try again.")
    return JournalLocked(translate(text, path=path, timeout_s=timeout_s), hint=translate(hint))


def _explain_sqlite(error: sqlite3.Error, path: Path) -> TaoError:
    code = primary_code(error)
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _disk_is_full(path)):
        return full(path, error)
    if code in _BUSY:
        return locked(path)
    if code in _CORRUPT:
        return corrupt(path, translate("not a journal, or damaged ({error})", error=error))
    if code in _UNWRITABLE:
        return unwritable(path, error)
    if code == sqlite3.SQLITE_CONSTRAINT:
        text = mark("{path}: what was to be added is there already ({error}).")
        return IllegalEvent(translate(text, path=path, error=error))
    hint = mark("Check the disk, its quota and its permissions; everything committed before is intact.")
    message = translate("{path}: the journal cannot be read or written ({error}).", path=path, error=error)
    return JournalError(message, hint=translate(hint))


def _disk_is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _NEARLY_NOTHING
    except OSError:  # the folder itself is gone: not a matter of space
        return False
