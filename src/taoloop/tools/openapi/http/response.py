"""What came back, as an observation: status, error class and body, in the server's own digits.

A 2xx becomes `{"status": 200, "body": …}`: JSON as the server wrote it, text as a text, anything else in base64, which
the observation cuts and the artifact keeps. Every other status is an error with its class, and its body all the same.
"""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable
from http import HTTPStatus

import pydantic_core

from taoloop.core.preview import preview
from taoloop.errors import ToolError
from taoloop.tools.egress import EgressResponse
from taoloop.tools.openapi.document.operation import Operation
from taoloop.tools.openapi.http.json_numbers import to_json
from taoloop.tools.openapi.http.request import PreparedRequest
from taoloop.tools.tool import ToolOutput

SHOWN_OF_ERROR = 1_400
"""Characters of the body of an error that stand in its text."""

_TOLD_HEADERS = ("location", "link", "etag", "last-modified", "content-range", "x-total-count", "retry-after")
_LONGEST_HEADER = 500
_CLASSES = {
    400: "bad_request",
    401: "unauthorized",
    402: "payment_required",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict",
    410: "gone",
    412: "precondition_failed",
    413: "too_large",
    415: "unsupported_media_type",
    422: "unprocessable",
    423: "locked",
    425: "too_early",
    429: "rate_limited",
    501: "not_implemented",
    502: "bad_gateway",
    503: "unavailable",
    504: "gateway_timeout",
}
_ADVICE = {
    401: "The API does not accept the operator's key; only the operator can change that.",
    403: "The operator's key may not do this; only the operator can change that.",
    404: "Check the ids and names in the arguments.",
    409: "Read the present state first.",
    429: "The API takes no more calls for now; wait, or ask for less.",
}
_MAY_HAVE_HAPPENED = "It may have happened all the same: find out before you try again."

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""

_NOT_DONE = frozenset({425, 429, 503})  # of these, those that say that nothing was done


def error_code(status: int | str) -> str:
    """The class of an error by its status: `not_found` for 404, `server_error` for 500, `4XX` and `default` too."""
    text = str(status)
    if text.isdigit() and int(text) in _CLASSES:
        return _CLASSES[int(text)]
    return {"3": "redirected", "4": "client_error", "5": "server_error"}.get(text[:1], "http_error")


def success_output(answered: EgressResponse, clean: Callable[[str], str]) -> ToolOutput:
    """The output of a call that went well: `status`, telling headers and the body. `clean` takes secrets out."""
    kind, charset = media_type(answered.headers.get("content-type", ""))
    parts = [f'{{"status":{answered.status}']
    if told := {name: answered.headers[name][:_LONGEST_HEADER] for name in _TOLD_HEADERS if name in answered.headers}:
        parts.append(f'"headers":{to_json(told)}')
    if answered.body:
        parts += _body(answered, kind, charset)
    text = ",".join(parts) + "}"
    cleaned = clean(text)
    return ToolOutput(text=cleaned, form="json" if cleaned == text or _is_valid_json(cleaned) else "text")


def error_output(
    operation: Operation,
    request: PreparedRequest,
    answered: EgressResponse,
    clean: Callable[[str], str],
    *,
    is_repeatable: bool,
) -> ToolError:
    """The error of a call that did not go well. `is_repeatable`: the same call again has no second effect."""
    status = answered.status
    kind, charset = media_type(answered.headers.get("content-type", ""))
    told = _shown_body(answered, kind, charset)
    documented = _documented(operation, status)
    hints = [f"The API's document says: {documented}" if documented else "", _ADVICE.get(status, "")]
    if "retry-after" in answered.headers:
        hints.append(f"It asks to wait: {answered.headers['retry-after'][:80]}.")
    if status in RETRIED - _NOT_DONE and not is_repeatable:
        hints.append(_MAY_HAVE_HAPPENED)
    if "location" in answered.headers and status < 400:
        place = answered.headers["location"].partition("?")[0][:_LONGEST_HEADER]
        hints.append(f"It leads to {place}; redirects of such a call are not followed.")
    return ToolError(
        clean(f"{operation.method} {request.shown} gave HTTP {status}{_phrase(status)}{f': {told}' if told else '.'}"),
        code=error_code(status),
        retryable=status in RETRIED and (is_repeatable or status in _NOT_DONE),
        hint=clean(" ".join(one for one in hints if one)),
    )


def media_type(content_type: str) -> tuple[str, str]:
    """The media type in lower case and the charset of a `Content-Type`; each may be empty."""
    kind, *marks = content_type.split(";")
    charset = next((m.partition("=")[2] for m in marks if m.strip().lower().startswith("charset=")), "")
    return kind.strip().lower(), charset.strip().strip("\"'").lower()


def is_json(kind: str) -> bool:
    """Whether a media type is one of JSON."""
    return kind.partition("/")[2].rpartition("+")[2] == "json" or kind == "text/json"


def is_text(kind: str) -> bool:
    """Whether a media type is one of text."""
    last = kind.partition("/")[2].rpartition("+")[2]
    return kind.startswith("text/") or last in (
        "xml",
        "yaml",
        "x-yaml",
        "javascript",
        "x-www-form-urlencoded",
        "x-ndjson",
    )


def decode(body: bytes, charset: str) -> str:
    """The text of a body: by its mark, by the charset that was said, as UTF-8. What cannot be read is replaced."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if body.startswith(mark):
            return body.decode(name, "replace")
    try:
        known = codecs.lookup(charset or "utf-8")
    except LookupError:
        return body.decode("utf-8", "replace")
    return body.decode(known.name if known._is_text_encoding else "utf-8", "replace")


def _body(answered: EgressResponse, kind: str, charset: str) -> list[str]:
    """The members of the observation that tell the body."""
    cut = (
        ['"cut":true', '"note":"The reply was too large; this is its beginning. Ask for less."']
        if answered.is_cut
        else []
    )
    if is_json(kind) or (not kind or is_text(kind)):
        text = decode(answered.body, charset)
        if not answered.is_cut and (is_json(kind) or text.lstrip()[:1] in ("{", "[")) and _is_valid_json(text):
            return [f'"body":{text.strip()}']
        if is_json(kind) and not answered.is_cut:
            cut = ['"note":"The reply says that it is JSON, and is not."']
        if kind or not _looks_binary(answered.body):
            return [*([f'"type":{to_json(kind)}'] if kind else []), *cut, f'"body":{to_json(text)}']
    encoded = base64.b64encode(answered.body).decode()
    said = to_json(kind or "application/octet-stream")
    return [f'"type":{said}', f'"bytes":{len(answered.body)}', *cut, f'"base64":"{encoded}"']


def _shown_body(answered: EgressResponse, kind: str, charset: str) -> str:
    """As much of the body of an error as its text holds, on one line."""
    if not answered.body:
        return ""
    if kind and not is_json(kind) and not is_text(kind):
        return f"({len(answered.body):,} bytes of {kind})"
    text = decode(answered.body, charset).strip()
    if _is_valid_json(text):
        return preview(text, "json", SHOWN_OF_ERROR).text
    return preview(" ".join(text.split()), "text", SHOWN_OF_ERROR).text


def _is_valid_json(text: str) -> bool:
    try:
        pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        return "recursion" in str(error)  # deep, and as far as anybody can tell JSON: the preview flattens it
    return True


def _looks_binary(body: bytes) -> bool:
    return b"\0" in body[:1_000]


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def _documented(operation: Operation, status: int) -> str:
    """What the document says of a status, in one line."""
    by_status = {reply.status.upper(): reply.description for reply in operation.replies}
    for key in (str(status), f"{status // 100}XX", "DEFAULT"):
        if text := " ".join(by_status.get(key, "").split()):
            return text[:200]
    return ""
