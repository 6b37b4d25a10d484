"""What went wrong with a server, as the error that a caller and a model can use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from taoloop.errors import (
    EgressFailed,
    InvalidOutput,
    McpFailed,
    McpLost,
    MissingExtra,
    TaoError,
    ToolError,
    ToolTimeout,
)
from taoloop.tools.mcp.texts import TEXTS

if TYPE_CHECKING:
    from taoloop.tools.mcp.settings import McpServer

_CLOSED, _TIMED_OUT = -32000, -32001  # codes that the SDK gives to errors of its own, and servers to errors of theirs
_NOT_SUPPORTED, _INVALID_REQUEST = -32601, -32600
_SHOWN_CHARS = 500
_NO_SESSION = re.compile(r"session (was )?(terminated|not found)|(unknown|no such|no valid) session", re.IGNORECASE)
_ENDED = re.compile(r"connection closed|SSE stream (ended|failed)", re.IGNORECASE)
_UNREADABLE = re.compile(r"Failed to parse (JSON|SSE)|Unexpected content type|server answered a request with 202")
_NO_WORD = "Server returned an error response"  # what the SDK says of an HTTP status without an answer of the protocol
_WANTS_INPUT = re.compile(r"^(MCP error -?\d+: )?(Elicitation|Sampling|List roots) not supported")
_STATUS_WHO = re.compile(r"HTTP (?:status|状态) 40[13]\b")


def require_sdk(server: McpServer) -> None:
    """Say so if the SDK is not installed.

    Raises:
        MissingExtra: it is not.
    """
    try:
        import mcp  # noqa: F401, PLC0415  # optional
    except ImportError as error:
        raise MissingExtra(
            f"{server.display_name} needs the MCP SDK, which is not installed: pip install 'taoloop[mcp]'."
        ) from error


def not_reached(server: McpServer, error: BaseException, reason: str, words: str = "") -> TaoError:
    """The error of a server that could not be started or connected to, or whose connection broke.

    `reason`: why it ended, if it did; `words`: what it wrote to its standard error, if it did not.
    """
    errors = list(leaf_errors(error))
    for leaf in errors:
        if isinstance(leaf, TaoError):
            return leaf if isinstance(leaf, McpFailed) else _away(server, f"{leaf.message}", leaf.hint)
    reasons = "; ".join(dict.fromkeys(describe(leaf) for leaf in errors))
    if any(_is_timeout(leaf) for leaf in errors):
        reasons = TEXTS.run_text("no_start", seconds=server.start_timeout_s, words=words)
    reasons = reason or reasons
    hint = "command_hint"
    if server.url:
        hint = "token_hint" if _STATUS_WHO.search(reasons) else "address_hint"
    return _away(server, TEXTS.run_text("sentence", text=reasons), TEXTS.run_text(hint))


def not_answered(
    server: McpServer, error: BaseException, what: str, reason: str, timeout_s: float, status: int = 0
) -> TaoError:
    """The error of a request that was sent and brought no result. `what` names it (`the tool 'x'`).

    `status`: that of HTTP, if it is known; 0 if not.
    """
    cause = next(leaf_errors(error))
    if isinstance(cause, TaoError):
        return cause
    code = _code(cause)
    values: dict[str, Any] = {"server": server.display_name, "what": what}
    if _is_timeout(cause):
        return TEXTS.error("late", error_type=ToolTimeout, retryable=False, seconds=timeout_s, **values)
    if _is_closed(cause) or _is_of_old_session(cause) or (code is None and _is_broken(cause)):
        return TEXTS.error("lost", error_type=McpLost, reason=reason or describe(cause), **values)
    if code is not None and (text := _unreadable(str(cause), status)):
        return TEXTS.error("unreadable", error_type=McpLost, reason=text, **values)
    values["reason"] = describe(cause)
    if code is not None and _WANTS_INPUT.search(str(cause)):
        return TEXTS.error("needs_input", "needs_input", error_type=McpFailed, retryable=False, **values)
    if code is not None:
        is_status, hint = str(cause) == _NO_WORD, TEXTS.run_text("no_method_hint") if code == _NOT_SUPPORTED else ""
        values["status"] = TEXTS.run_text("status", status=status) if is_status else TEXTS.run_text("code", code=code)
        return TEXTS.error("refused", "server_refused", error_type=McpFailed, retryable=False, hint=hint, **values)
    return TEXTS.error("no_result", error_type=InvalidOutput, **values)


def leaf_errors(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaf_errors(inner)
    else:
        yield error


def is_unsent(error: BaseException) -> bool:
    """Whether it is certain that a request was not carried out: it never left, or met a session that is over."""
    import anyio  # noqa: PLC0415  # comes with the SDK
    import httpx2  # noqa: PLC0415  # likewise

    closed = anyio.ClosedResourceError | anyio.BrokenResourceError | httpx2.ConnectError | httpx2.ConnectTimeout
    return all(
        isinstance(leaf, closed) or (isinstance(leaf, EgressFailed) and not leaf.was_sent) or _is_of_old_session(leaf)
        for leaf in leaf_errors(error)
    )


def breaks_connection(error: BaseException) -> bool:
    """Whether a connection is of no more use after this error."""
    return any(_is_closed(leaf) or _is_broken(leaf) or _is_of_old_session(leaf) for leaf in leaf_errors(error))


def _is_of_old_session(error: BaseException) -> bool:
    """What is said for a server that was started anew and knows no such session, by the SDK or by the server."""
    return _code(error) in (_INVALID_REQUEST, _CLOSED, _TIMED_OUT) and _NO_SESSION.search(str(error)) is not None


def _is_closed(error: BaseException) -> bool:
    return _code(error) == _CLOSED and _ENDED.match(str(error)) is not None


def _is_timeout(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or (_code(error) == _TIMED_OUT and "timed out" in str(error).lower())


def _unreadable(text: str, status: int) -> str:
    """What came in the place of an answer over HTTP and leaves open whether the request was carried out; else empty.

    That is so with a bad gateway, and with a result that nobody can read; a status below 500 is a refusal.
    """
    if _UNREADABLE.match(text):
        return _cut(text.partition(": ")[0] if "validation error" in text else text).rstrip(".")
    if text == _NO_WORD and not HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return TEXTS.run_text("status", status=status) if status else TEXTS.run_text("an_error")
    return ""


def _code(error: BaseException) -> int | None:
    code = getattr(getattr(error, "error", None), "code", None)
    return code if isinstance(code, int) else None


def _is_broken(error: BaseException) -> bool:
    import anyio  # noqa: PLC0415  # comes with the SDK
    import httpx2  # noqa: PLC0415  # likewise

    broken = anyio.ClosedResourceError | anyio.BrokenResourceError | anyio.EndOfStream | httpx2.HTTPError | OSError
    return isinstance(error, broken) and not isinstance(error, TimeoutError)


def _away(server: McpServer, reason: str, hint: str) -> ToolError:
    address = TEXTS.run_text("address", url=server.url.partition("?")[0]) if server.url else ""
    values: dict[str, Any] = {"server": server.display_name, "address": address, "reason": reason}
    return TEXTS.error("away", "server_away", error_type=McpFailed, retryable=True, hint=hint, **values)


def describe(error: BaseException) -> str:
    import pydantic  # noqa: PLC0415  # heavy

    if isinstance(error, pydantic.ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return _cut(f"{where}: {first['msg']}" if where else first["msg"])
    if isinstance(error, TaoError):
        return _cut(error.message).rstrip(".")
    text = str(error)
    if "validation error" in text:  # the SDK shows all that its models say
        text = text.partition(": ")[0]
    return _cut(text).rstrip(".") or type(error).__name__


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]} …"
