"""HTTP responses as observations: status, error code and body, with the digits that the server wrote.

A 2xx response becomes `{"status": 200, "body": …}`: JSON as the server wrote it, text as a string, anything else in
base64, which the observation truncates and the artifact keeps in full. Any other status becomes an error with a code
and the beginning of the body.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from http import HTTPStatus

import pydantic_core

from taoloop.core.preview import preview
from taoloop.errors import ToolError
from taoloop.tools.egress import EgressResponse
from taoloop.tools.openapi.operation import Operation
from taoloop.tools.openapi.request import PreparedRequest
from taoloop.tools.openapi.texts import TEXTS
from taoloop.tools.openapi.value_encoding import to_json
from taoloop.tools.tool import ToolOutput

MAX_ERROR_BODY_CHARS = 1_400
"""How many characters of the response body an error message includes."""

_SHOWN_HEADERS = ("location", "link", "etag", "last-modified", "content-range", "x-total-count", "retry-after")
_MAX_HEADER_CHARS = 500
_STANDARD_CODES = (400, 401, 402, 403, 404, 405, 408, 409, 410, 412, 415, 423, 425, 501, 502, 504)
_CODES = {status: HTTPStatus(status).name.lower() for status in _STANDARD_CODES}
_CODES |= {413: "too_large", 422: "unprocessable", 429: "rate_limited", 503: "unavailable"}
_TEXT_SUBTYPES = frozenset(("xml", "yaml", "x-yaml", "javascript", "x-www-form-urlencoded", "x-ndjson"))
RETRYABLE_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""

_NOT_PROCESSED = frozenset({425, 429, 503})  # of these, the ones that mean that the request was not processed


def error_code(status: int | str) -> str:
    """The error code for a status (or `4XX`, `default`): `not_found` for 404, `server_error` for 500."""
    text = str(status)
    if text.isdigit() and int(text) in _CODES:
        return _CODES[int(text)]
    return {"3": "redirected", "4": "client_error", "5": "server_error"}.get(text[:1], "http_error")


def success_output(response: EgressResponse, clean: Callable[[str], str]) -> ToolOutput:
    """The output of a successful call: status, informative headers and body. `clean` removes secrets."""
    parts = [f'{{"status":{response.status}']
    informative = [name for name in _SHOWN_HEADERS if name in response.headers]
    if headers := {name: response.headers[name][:_MAX_HEADER_CHARS] for name in informative}:
        parts.append(f'"headers":{to_json(headers)}')
    if response.body:
        parts += _body_members(response)
    text = ",".join(parts) + "}"
    cleaned = clean(text)
    return ToolOutput(text=cleaned, form="json" if cleaned == text or _is_valid_json(cleaned) else "text")


def error_output(
    operation: Operation,
    request: PreparedRequest,
    response: EgressResponse,
    clean: Callable[[str], str],
    *,
    is_repeatable: bool,
) -> ToolError:
    """The error of a failed call. `is_repeatable`: a repetition has no further effect."""
    status = response.status
    body_text = _error_body_text(response)
    documented = _documented_meaning(operation, status)
    hints = [TEXTS.run_text("documented", text=documented)] if documented else []
    if f"hint_{status}" in TEXTS:
        hints.append(TEXTS.run_text(f"hint_{status}"))
    if "retry-after" in response.headers:
        hints.append(TEXTS.run_text("retry_after", value=response.headers["retry-after"][:80]))
    if status in RETRYABLE_STATUSES - _NOT_PROCESSED and not is_repeatable:
        hints.append(TEXTS.run_text("maybe_done"))
    if "location" in response.headers and status < 400:
        location = response.headers["location"].partition("?")[0][:_MAX_HEADER_CHARS]
        hints.append(TEXTS.run_text("redirected", location=location))
    text = TEXTS.run_text(
        "failed_with_body" if body_text else "failed",
        request=f"{operation.method} {request.safe_url}",
        status=f"{status}{_phrase(status)}",
        body=body_text,
    )
    return ToolError(
        clean(text),
        code=error_code(status),
        retryable=status in RETRYABLE_STATUSES and (is_repeatable or status in _NOT_PROCESSED),
        hint=clean(" ".join(hints)),
    )


def is_json(kind: str) -> bool:
    """Whether a media type is JSON."""
    return kind.partition("/")[2].rpartition("+")[2] == "json" or kind == "text/json"


def is_text(kind: str) -> bool:
    """Whether a media type is text."""
    return kind.startswith("text/") or kind.partition("/")[2].rpartition("+")[2] in _TEXT_SUBTYPES


def _body_members(response: EgressResponse) -> list[str]:
    """The members of the observation that represent the body."""
    kind = response.media_type
    notes = ['"cut":true', f'"note":{to_json(TEXTS.run_text("cut"))}'] if response.is_cut else []
    if not kind or is_json(kind) or is_text(kind):
        text = response.text
        if not response.is_cut and (is_json(kind) or text.lstrip()[:1] in ("{", "[")) and _is_valid_json(text):
            return [f'"body":{text.strip()}']
        if is_json(kind) and not response.is_cut:
            notes = [f'"note":{to_json(TEXTS.run_text("not_json"))}']
        if kind or b"\0" not in response.body[:1_000]:
            return [*([f'"type":{to_json(kind)}'] if kind else []), *notes, f'"body":{to_json(text)}']
    encoded = base64.b64encode(response.body).decode()
    media_type_json = to_json(kind or "application/octet-stream")
    return [f'"type":{media_type_json}', f'"bytes":{len(response.body)}', *notes, f'"base64":"{encoded}"']


def _error_body_text(response: EgressResponse) -> str:
    """The beginning of the body of an error, on one line."""
    kind = response.media_type
    if not response.body:
        return ""
    if kind and not is_json(kind) and not is_text(kind):
        return TEXTS.run_text("body_bytes", size=len(response.body), media_type=kind)
    text = response.text.strip()
    form, line = ("json", text) if _is_valid_json(text) else ("text", " ".join(text.split()))
    return preview(line, form, MAX_ERROR_BODY_CHARS).text


def _is_valid_json(text: str) -> bool:
    try:
        pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        return "recursion" in str(error)  # nested too deeply to check, and probably JSON: the preview flattens it
    return True


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def _documented_meaning(operation: Operation, status: int) -> str:
    """The description of a status in the document, in one line."""
    by_status = {reply.status.upper(): reply.description for reply in operation.responses}
    for key in (str(status), f"{status // 100}XX", "DEFAULT"):
        if text := " ".join(by_status.get(key, "").split()):
            return text[:200]
    return ""
