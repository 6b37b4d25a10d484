"""What a database says when it does not do a statement, as an error of a tool: what happened, and what to do next."""

from __future__ import annotations

import re
import sqlite3
from typing import Any
from urllib.parse import quote, quote_plus

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from taoloop.core.cards.tool_card import ErrorCard
from taoloop.errors import TaoError, ToolError
from taoloop.tools.sql.statement_timeout import StatementTimeout

_MAX_CHARS = 1_000
_ADVICE = {
    "database_unavailable": (True, "Try again later, or say that the database cannot be reached."),
    "database_busy": (True, "Try again."),
    "database_unusable": (False, "Say what the message says; no statement will do better."),
    "statement_timeout": (False, "Ask for less: fewer rows, a narrower condition, no cross join."),
    "statement_failed": (False, "Correct the statement as the message says; describe_table shows the columns."),
    "not_allowed": (False, "Do without it: the connection does not permit this, whatever the statement says."),
    "several_statements": (False, "Send one statement per call, without a second one after a semicolon."),
    "bad_params": (False, "Write :name in the statement for each value of params."),
    "value_too_large": (False, "Select a part of the value, with substr or length."),
    "no_rows": (False, "Send a statement that gives rows, such as SELECT."),
    "too_many_rows": (False, "Nothing was changed; narrow the condition."),
    "structure_change": (False, "Nothing was changed; change rows only."),
}
_SQLITE = {
    "SQLITE_BUSY": "database_busy",
    "SQLITE_LOCKED": "database_busy",
    "SQLITE_INTERRUPT": "statement_timeout",
    "SQLITE_AUTH": "not_allowed",
    "SQLITE_READONLY": "not_allowed",
    "SQLITE_CANTOPEN": "database_unavailable",
    "SQLITE_IOERR": "database_unavailable",
    "SQLITE_NOTADB": "database_unusable",
    "SQLITE_CORRUPT": "database_unusable",
    "SQLITE_TOOBIG": "value_too_large",
}
_SQLSTATES = {  # PostgreSQL
    "57014": "statement_timeout",
    "55P03": "database_busy",
    "40P01": "database_busy",
    "40001": "database_busy",
    "25006": "not_allowed",
    "42501": "not_allowed",
    "53300": "database_unavailable",
    "57P03": "database_unavailable",
    "28P01": "database_unusable",
    "28000": "database_unusable",
    "3D000": "database_unusable",
}
_MYSQL = {
    1205: "database_busy",
    1213: "database_busy",
    1792: "not_allowed",
    1142: "not_allowed",
    1227: "not_allowed",
    1290: "not_allowed",
    1143: "not_allowed",
    1370: "not_allowed",
    1399: "not_allowed",
    3024: "statement_timeout",
    1969: "statement_timeout",
    1045: "database_unusable",
    1698: "database_unusable",
    1044: "database_unusable",
    1049: "database_unusable",
    1040: "database_unavailable",
    1203: "database_unavailable",
    1053: "database_unavailable",
    1927: "database_unavailable",
    2003: "database_unavailable",
    2006: "database_unavailable",
    2013: "database_unavailable",
}
_SEVERAL = ("one statement at a time", "cannot insert multiple commands")
_REFUSED = re.compile(
    r"password authentication failed|no password supplied|role .* does not exist|database .* does not"
)

TROUBLES = tuple(_ADVICE)
"""The codes of the errors that these tools report."""


def error_cards(*codes: str) -> tuple[ErrorCard, ...]:
    """The entries of a card for these codes."""
    return tuple(ErrorCard(code=code, retryable=_ADVICE[code][0], advice=_ADVICE[code][1]) for code in codes)


def describe_error(code: str, message: str) -> ToolError:
    """An error with one of the codes of these tools, and what they advise."""
    retryable, advice = _ADVICE[code]
    return ToolError(message, code=code, retryable=retryable, hint=advice)


def fault_of(error: Exception, url: URL, stop: StatementTimeout | None = None, *, connecting: bool = False) -> TaoError:
    """What a driver raised as an error of a tool; no password and no statement is in its text.

    `stop` tells whether the time was over; `connecting`: no statement had been sent.
    """
    if isinstance(error, TaoError):
        return error
    code = _code(error, stop, connecting=connecting)
    if code == "statement_timeout" and stop is not None:
        return describe_error(
            code, f"The statement was stopped: it took more than {stop.timeout_s:g} s, or the call ended."
        )
    text = without_password(_error_text(error), url)
    if code == "database_unavailable":
        return describe_error(code, f"The database does not answer: {text}")
    if code == "several_statements":
        return describe_error(code, "That is more than one statement; none was carried out.")
    return describe_error(code, text)


def may_have_committed(error: DBAPIError) -> bool:
    """Whether a commit that ended so may have been carried out all the same: the server was not heard any more."""
    driver = error.orig
    if isinstance(driver, sqlite3.Error):
        return False  # the file is as it was: SQLite says so itself
    number = driver.args[0] if driver is not None and driver.args else None
    if isinstance(number, int):
        return 2_000 <= number < 3_000 or number == 0  # MySQL: an error of the client, not of the server
    return error.connection_invalidated or getattr(driver, "sqlstate", None) is None


def _code(error: Exception, stop: StatementTimeout | None, *, connecting: bool) -> str:
    driver = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    known = _known(driver)
    is_ended = known in (None, "database_unavailable") and stop is not None and stop.is_cancelled
    if known == "statement_timeout" or is_ended:
        return "statement_timeout"
    if known == "database_unusable" and not connecting and not isinstance(driver, sqlite3.Error):
        return "not_allowed"  # MySQL says the same of a statement
    if known is not None:
        return known
    text = str(driver)
    if "number of bindings" in text:
        return "bad_params"
    if any(part in text for part in _SEVERAL):
        return "several_statements"
    if isinstance(error, PoolTimeout) or (isinstance(error, DBAPIError) and error.connection_invalidated):
        return "database_unavailable"
    if connecting:
        return "database_unusable" if _REFUSED.search(text) else "database_unavailable"
    return "statement_failed"


def _known(driver: BaseException) -> str | None:
    """The code for what a driver says by a number or name of its own."""
    name = getattr(driver, "sqlite_errorname", None)
    if isinstance(name, str):
        if str(driver).startswith("not authorized"):  # a function that the authorizer denied
            return "not_allowed"
        return _SQLITE.get("_".join(name.split("_")[:2]))
    number = driver.args[0] if driver.args else None
    if isinstance(number, int) and "mysql" in type(driver).__module__.lower():
        return _MYSQL.get(number)
    state = getattr(driver, "sqlstate", None)
    if isinstance(state, str):
        return _SQLSTATES.get(state) or ("database_unavailable" if state.startswith(("08", "57P")) else None)
    return None


def _error_text(error: Exception) -> str:
    driver: Any = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    diag = getattr(driver, "diag", None)
    parts = [getattr(diag, name, None) for name in ("message_primary", "message_detail", "message_hint")]
    text = ". ".join(str(part).rstrip(".") for part in parts if part)
    if not text and len(driver.args) > 1 and isinstance(driver.args[0], int):
        text = str(driver.args[1])
    if not text:
        text = str(driver) if not isinstance(error, SQLAlchemyError) or driver is not error else str(error.args[0])
    text = " ".join(text.split()) or type(driver).__name__
    return text[:_MAX_CHARS].rstrip(".") + "."


def without_password(text: str, url: URL) -> str:
    """`text` with the password of the URL, as it is or escaped, taken out."""
    secrets = [url.password] if url.password else []
    for value in url.query.values():
        secrets += [value] if isinstance(value, str) else list(value)
    for secret in secrets:
        if len(secret) < 4 and secret != url.password:
            continue  # a short option such as sslmode=off is no secret, and would be found in ordinary words
        for form in {secret, quote(secret, safe=""), quote_plus(secret)}:
            text = text.replace(form, "***")
    return text


def display_url(url: URL) -> str:
    """Where a database is, without what may be secret."""
    return url.set(query={}).render_as_string(hide_password=True)
