"""What a database says when it does not do a statement, as an error of a tool: what happened, and what to do next."""

from __future__ import annotations

import re
import sqlite3
from typing import Any
from urllib.parse import quote, quote_plus

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, TimeoutError as PoolTimeout

from taoloop.core.cards.tool_card import ErrorCard
from taoloop.errors import TaoError, ToolError
from taoloop.tools.sql.texts import TEXTS
from taoloop.tools.texts import CardTexts

_MAX_CHARS = 1_000
_PASSING = frozenset({"database_unavailable", "database_busy"})  # the same call may succeed later
_SQLITE = {  # the codes of drivers by what they mean
    "database_busy": ("SQLITE_BUSY", "SQLITE_LOCKED"),
    "statement_timeout": ("SQLITE_INTERRUPT",),
    "not_allowed": ("SQLITE_AUTH", "SQLITE_READONLY"),
    "database_unavailable": ("SQLITE_CANTOPEN", "SQLITE_IOERR"),
    "database_unusable": ("SQLITE_NOTADB", "SQLITE_CORRUPT"),
    "value_too_large": ("SQLITE_TOOBIG",),
}
_POSTGRESQL = {
    "statement_timeout": ("57014",),
    "database_busy": ("55P03", "40P01", "40001"),
    "not_allowed": ("25006", "42501"),
    "database_unavailable": ("53300", "57P03"),
    "database_unusable": ("28P01", "28000", "3D000"),
}
_MYSQL = {
    "database_busy": (1205, 1213),
    "not_allowed": (1792, 1142, 1227, 1290, 1143, 1370, 1399),
    "statement_timeout": (3024, 1969),
    "database_unusable": (1045, 1698, 1044, 1049),
    "database_unavailable": (1040, 1203, 1053, 1927, 2003, 2006, 2013),
}
_CODES: dict[str | int, str] = {
    driver_code: code
    for table in (_SQLITE, _POSTGRESQL, _MYSQL)
    for code, driver_codes in table.items()
    for driver_code in driver_codes
}
_SEVERAL = ("one statement at a time", "cannot insert multiple commands")
_REFUSED = re.compile(
    r"password authentication failed|no password supplied|role .* does not exist|database .* does not"
)


def error_cards(text: CardTexts, *codes: str) -> tuple[ErrorCard, ...]:
    """The entries of a card for these codes."""
    return tuple(ErrorCard(code=code, retryable=code in _PASSING, advice=text(f"{code}_advice")) for code in codes)


def is_database_error(error: TaoError) -> bool:
    """Whether an error has one of the codes of these tools."""
    return f"{error.code}_advice" in TEXTS


def database_error(code: str, name: str, /, **values: Any) -> ToolError:
    """An error with one of the codes of these tools, the text `name`, and what they advise."""
    advice = TEXTS.run_text(f"{code}_advice")
    return TEXTS.error(name, code, retryable=code in _PASSING, hint=advice, **values)


def fault_of(
    error: Exception,
    url: URL,
    timeout_s: float | None = None,
    *,
    is_cancelled: bool = False,
    connecting: bool = False,
) -> TaoError:
    """What a driver raised as an error of a tool; no password and no statement is in its text.

    Args:
        error: What was raised.
        url: The database.
        timeout_s: The time limit of the statement, if it has one.
        is_cancelled: The time was over, or nobody waited any more.
        connecting: No statement had been sent.
    """
    if isinstance(error, TaoError):
        return error
    code = _code(error, is_cancelled=is_cancelled, connecting=connecting)
    if code == "statement_timeout" and timeout_s is not None:
        return database_error(code, "stopped", seconds=timeout_s)
    text = without_password(_error_text(error), url)
    if code == "database_unavailable":
        return database_error(code, "no_answer", text=text)
    return database_error(code, "several" if code == "several_statements" else "said", text=text)


def may_have_committed(error: DBAPIError) -> bool:
    """Whether a commit that ended so may have been carried out all the same: the server was not heard any more."""
    driver = error.orig
    if isinstance(driver, sqlite3.Error):
        return False  # the file is as it was: SQLite says so itself
    number = driver.args[0] if driver is not None and driver.args else None
    if isinstance(number, int):
        return 2_000 <= number < 3_000 or number == 0  # MySQL: an error of the client, not of the server
    return error.connection_invalidated or getattr(driver, "sqlstate", None) is None


def _code(error: Exception, *, is_cancelled: bool, connecting: bool) -> str:
    driver = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    known = _known(driver)
    if known == "statement_timeout" or (is_cancelled and known in (None, "database_unavailable")):
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
        return _CODES.get("_".join(name.split("_")[:2]))
    number = driver.args[0] if driver.args else None
    if isinstance(number, int) and "mysql" in type(driver).__module__.lower():
        return _CODES.get(number)
    state = getattr(driver, "sqlstate", None)
    if isinstance(state, str):
        return _CODES.get(state) or ("database_unavailable" if state.startswith(("08", "57P")) else None)
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
