"""What went wrong with a server, as the error that a caller and a model can use."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import partial
from http import HTTPStatus

import anyio
import httpx2
from mcp import MCPError
from mcp.client.auth import OAuthFlowError
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, METHOD_NOT_FOUND, REQUEST_TIMEOUT
from pydantic import ValidationError

from taoloop.errors import EgressFailed, InvalidOutput, McpFailed, McpLost, TaoError, ToolError, ToolTimeout
from taoloop.tools.egress.transport import root_reason
from taoloop.tools.mcp.settings import McpServer
from taoloop.tools.mcp.texts import TEXTS

_SHOWN_CHARS = 500
_NO_SESSION = re.compile(r"session (was )?(terminated|not found)|(unknown|no such|no valid) session", re.IGNORECASE)
_ENDED = re.compile(r"connection closed|SSE stream (ended|failed)", re.IGNORECASE)
_UNREADABLE = re.compile(r"Failed to parse (JSON|SSE)|Unexpected content type|server answered a request with 202")
_NO_WORD = "Server returned an error response"  # what the SDK says of an HTTP status without an answer of the protocol
_WANTS_INPUT = re.compile(r"^(MCP error -?\d+: )?(Elicitation|Sampling|List roots) not supported")
_STATUS_WHO = re.compile(r"HTTP (?:status|状态) 40[13]\b")
_BROKEN_STREAM = (anyio.ClosedResourceError, anyio.BrokenResourceError)


def server_error(
    server: McpServer,
    name: str,
    code: str = "server_away",
    *,
    error_type: type[ToolError] = McpFailed,
    retryable: bool = False,
    hint: str | None = None,
    **values: object,
) -> ToolError:
    """The error with the text `name` about a server; the arguments are those of `ToolTexts.error`."""
    return TEXTS.error(
        name, code, error_type=error_type, retryable=retryable, hint=hint, server=server.display_name, **values
    )


def not_reached(server: McpServer, error: BaseException, reason: str, words: str = "") -> TaoError:
    """The error of a server that could not be started or connected to, or whose connection broke.

    `reason`: why it ended, if it did; `words`: what it wrote to its standard error, if it did not.
    """
    errors = list(leaf_errors(error))
    address = TEXTS.run_text("address", url=server.url.partition("?")[0]) if server.url else ""
    report = partial(server_error, server, "away", retryable=True, address=address)
    for leaf in errors:
        if isinstance(leaf, TaoError):
            return leaf if isinstance(leaf, McpFailed) else report(reason=leaf.message.rstrip(".。"), hint=leaf.hint)
    if flow := next((leaf for leaf in errors if isinstance(leaf, OAuthFlowError)), None):
        return report(reason=describe(flow), hint=TEXTS.run_text("oauth_hint"))
    if not reason and any(_is_timeout(leaf) for leaf in errors):
        reason = TEXTS.run_text("no_start", seconds=server.start_timeout_s, words=words)
    reason = reason or describe(error)
    hint = "command_hint"
    if server.url:
        hint = "token_hint" if _STATUS_WHO.search(reason) else "address_hint"
    return report(reason=reason, hint=TEXTS.run_text(hint))


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
    report = partial(server_error, server, what=what)
    if _is_timeout(cause):
        return report("late", "", error_type=ToolTimeout, seconds=timeout_s)
    if _is_closed(cause) or _is_of_old_session(cause) or (code is None and _is_broken(cause)):
        return report("lost", "", error_type=McpLost, reason=reason or describe(cause))
    if code is None:
        return report("no_result", "", error_type=InvalidOutput, reason=describe(cause))
    if text := _unreadable(str(cause), status):
        return report("unreadable", "", error_type=McpLost, reason=text)
    if _WANTS_INPUT.search(str(cause)):
        return report("needs_input", "needs_input", reason=describe(cause))
    is_status = str(cause) == _NO_WORD
    status_text = TEXTS.run_text("status", status=status) if is_status else TEXTS.run_text("code", code=code)
    hint = TEXTS.run_text("no_method_hint") if code == METHOD_NOT_FOUND else ""
    return report("refused", "server_refused", hint=hint, reason=describe(cause), status=status_text)


def leaf_errors(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaf_errors(inner)
    else:
        yield error


def is_unsent(error: BaseException) -> bool:
    """Whether it is certain that a request was not carried out: it never left, or met a session that is over."""
    return all(
        isinstance(leaf, (*_BROKEN_STREAM, httpx2.ConnectError, httpx2.ConnectTimeout))
        or (isinstance(leaf, EgressFailed) and not leaf.was_sent)
        or _is_of_old_session(leaf)
        for leaf in leaf_errors(error)
    )


def breaks_connection(error: BaseException) -> bool:
    """Whether a connection is of no more use after this error."""
    return any(_is_closed(leaf) or _is_broken(leaf) or _is_of_old_session(leaf) for leaf in leaf_errors(error))


def describe(error: BaseException) -> str:
    """An error, or each of a group, in one line without a full stop."""
    return "; ".join(dict.fromkeys(_describe_leaf(leaf) for leaf in leaf_errors(error)))


def _describe_leaf(error: BaseException) -> str:
    if isinstance(error, ValidationError):
        return _cut(validation_problem(error))
    if isinstance(error, TaoError):
        return _cut(error.message).rstrip(".")
    text = root_reason(error) if isinstance(error, httpx2.ConnectError) else str(error)
    if "validation error" in text:  # the SDK shows all that its models say
        text = text.partition(": ")[0]
    return _cut(text).rstrip(".") or type(error).__name__


def validation_problem(error: ValidationError, ignored: Collection[str | int] = ()) -> str:
    """The first finding of pydantic with its place, of which the `ignored` parts are left out."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    path = ".".join(str(part) for part in first["loc"] if part not in ignored)
    return f"{path}: {first['msg']}" if path else first["msg"]


def _is_of_old_session(error: BaseException) -> bool:
    """What is said for a server that was started anew and knows no such session, by the SDK or by the server."""
    codes = (INVALID_REQUEST, CONNECTION_CLOSED, REQUEST_TIMEOUT)  # the SDK's own errors, and those of servers
    return _code(error) in codes and _NO_SESSION.search(str(error)) is not None


def _is_closed(error: BaseException) -> bool:
    return _code(error) == CONNECTION_CLOSED and _ENDED.match(str(error)) is not None


def _is_timeout(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or (_code(error) == REQUEST_TIMEOUT and "timed out" in str(error).lower())


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
    return error.code if isinstance(error, MCPError) else None


def _is_broken(error: BaseException) -> bool:
    broken = (*_BROKEN_STREAM, anyio.EndOfStream, httpx2.HTTPError, OSError)
    return isinstance(error, broken) and not isinstance(error, TimeoutError)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]} …"
