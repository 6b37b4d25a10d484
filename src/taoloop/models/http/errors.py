"""What a provider's refusal means: from status, headers and body to the error that says what to do next.

`UnsupportedParameters` remembers what a model does not accept, so that the same request can be made without it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic_core import from_json

from taoloop.errors import (
    ModelAuthError,
    ModelContentRefused,
    ModelContextOverflow,
    ModelError,
    ModelNotFound,
    ModelRateLimited,
    ModelRequestRefused,
    ModelUnavailable,
)
from taoloop.models.providers import Endpoint, shown_address

_MAX_DETAIL_CHARS = 500  # characters of a provider's own words in a message
_KEY = re.compile(r"\b(?:sk|pk|rk|gsk|key|xai)-[\w*.\-]{6,}")

_OVERFLOW = re.compile(
    r"context[ _]length|context[ _]window|context size|context limit|exceed_context|prompt is too long"
    r"|input is too long|input length|longer than the maximum model length|maximum number of tokens allowed"
    r"|input token count|reduce the length of|prompt contains too many tokens|request_too_large",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient[ _]?(?:quota|balance|funds|credit)|credit balance|exceeded your current quota|billing|arrearage"
    r"|out of credit|payment required",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model[ _]not[ _](?:found|exist|supported)|does not exist|no such model|unknown model|invalid model"
    r"|not_found_error|DeploymentNotFound|model .{0,80}not found",
    re.IGNORECASE,
)
_CONTENT = re.compile(
    r"content_filter|content[ _]policy|content management policy|data_inspection_failed|ResponsibleAI|moderation"
    r"|Content Exists Risk|cyber_policy",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(r"invalid[ _]api[ _-]?key|incorrect api key|authentication_error|expired", re.IGNORECASE)

_HTTP_STATUS = re.compile(r"[45][0-9]{2}")
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "insufficient_quota": 429,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status that belongs to a type or code of error; in a stream nothing else tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderError:
    """What a provider answered instead of a reply."""

    status: int
    """The HTTP status, or the one that the error's type stands for."""

    message: str
    """The provider's own words."""

    code: str = ""
    """Its code of the error."""

    kind: str = ""
    """Its type of error."""

    param: str = ""
    """The parameter that it blames."""

    retry_after_s: float | None = None
    """How many seconds to wait, where it says so."""

    location: str = ""
    """Where a redirection points to."""

    @property
    def words(self) -> str:
        """Everything that the provider said, to look for known signs in."""
        return f"{self.code} {self.kind} {self.message}"


def parse_provider_error(status: int, body: bytes, headers: Mapping[str, str]) -> ProviderError:
    """The refusal in an answer of any form: the forms of OpenAI and Anthropic, of other servers, HTML, nothing."""
    try:
        error = read_error(from_json(body), status)
    except ValueError:
        text = body[:2000].decode("utf-8", "replace").strip()
        title = re.search(r"<title>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        summary = title[1].strip() if title else text if not text.startswith("<") else ""
        error = ProviderError(status=status, message=summary)
    location = headers.get("location", "") if 300 <= status < 400 else ""
    return replace(error, retry_after_s=retry_after(headers), location=location)


def read_error(value: Any, status: int) -> ProviderError:
    """The refusal in a JSON value. In an answer of status 200, as in a stream, the value tells the true status."""
    error = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(error, dict):
        error = {"message": error}
    code, kind = error.get("code"), str(error.get("type") or "")
    code = "" if code is None else str(code)
    if _HTTP_STATUS.fullmatch(code):
        status = int(code)
    elif status == 200:
        status = next((_STATUS[word] for word in (kind, code) if word in _STATUS), 500)
    message = error.get("message") or error.get("detail") or error.get("msg") or error.get("error")
    return ProviderError(
        status=status, message=str(message or ""), code=code, kind=kind, param=str(error.get("param") or "")
    )


def make_error(refusal: ProviderError, endpoint: Endpoint) -> ModelError:
    """The error to raise. It names the variable of a key that is not accepted, and never shows a key."""
    spec = f"{endpoint.provider}:{endpoint.model}"
    message = clean_message(refusal.message, endpoint)
    if message:
        message = f"{spec} answered HTTP {refusal.status}: {message}"
    else:
        message = f"{spec} answered HTTP {refusal.status} without a message."
    if not message.endswith((".", "!", "?", "…", "。")):
        message += "."
    kind, hint, retryable = _kind(refusal, endpoint)
    return kind(message, hint=hint, retryable=retryable, retry_after_s=refusal.retry_after_s)


def clean_message(text: str, endpoint: Endpoint) -> str:
    """A provider's own words, on one line, shortened, without the key or anything that looks like one."""
    if len(endpoint.api_key) > 4:
        text = text.replace(endpoint.api_key, "[key]")
    text = " ".join(_KEY.sub("[key]", text).split())
    return text if len(text) <= _MAX_DETAIL_CHARS else text[:_MAX_DETAIL_CHARS] + "…"


def _kind(refusal: ProviderError, endpoint: Endpoint) -> tuple[type[ModelError], str, bool | None]:
    """The class of the error, what to do, and whether this one differs from its class in being retryable."""
    status, words = refusal.status, refusal.words
    if status in (402, 429) or _QUOTA.search(words):
        if status == 402 or _QUOTA.search(words):
            return ModelRateLimited, "Quota or credit is used up: see the account with the provider.", False
        return ModelRateLimited, "Wait, or make fewer calls at once.", None
    if status == 407:
        return ModelRequestRefused, "The proxy wants a user: HTTP_PROXY=http://USER:PASSWORD@HOST:PORT.", None
    if status in (401, 403) or (400 <= status < 500 and _BAD_KEY.search(words)):
        return ModelAuthError, _key_hint(endpoint), None
    if status >= 500 or status in (408, 409, 425):  # also where the provider ran out of time: ours is not over
        return ModelUnavailable, "The provider is out of order; try again later.", None
    if 300 <= status < 400:
        where = f" It points to {shown_address(refusal.location)}." if "://" in refusal.location else ""
        return ModelRequestRefused, f"The address has moved; no key is sent on.{where} Correct the address.", None
    if status in (400, 413, 422) and (status == 413 or _OVERFLOW.search(words)):
        return ModelContextOverflow, "The prompt is longer than the model takes.", None
    if status == 404 or _NO_MODEL.search(words):
        where = shown_address(endpoint.address)
        return ModelNotFound, f"Check the name {endpoint.model!r} and the address {where}.", None
    if _CONTENT.search(words):
        return ModelContentRefused, "The provider's filter stopped it.", None
    return ModelRequestRefused, "", None


def _key_hint(endpoint: Endpoint) -> str:
    variable = endpoint.key_var or endpoint.kind.key_var
    if endpoint.api_key == "none":
        return f"It wants a key: set {variable}."
    return f"Check the key in {variable}: it may be wrong, expired, or not allowed to use this model."


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the answer says: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date.

    A date is held against the provider's own `date`, where it sends one, so that no clock needs to be right.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _parse_seconds(headers.get(name, ""))
        if seconds is not None:
            return seconds * unit
    header = headers.get("retry-after", "")
    try:
        then = parsedate_to_datetime(header).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    try:
        now = parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        now = time.time()
    return max(0.0, then - now)


def _parse_seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


_DROPPABLE = ("temperature", "top_p", "stop", "stop_sequences", "max_tokens", "stream_options")
_SCHEMAS = ("response_format", "output_config", "text")  # `text` of the Responses API
_WORDS = ("stop", "text")  # bare, they are words of prose
_PATTERNS = {
    name: re.compile(rf"[\"'`]{name}[\"'`]" if name in _WORDS else rf"\b{name}\b") for name in (*_DROPPABLE, *_SCHEMAS)
}
_UNSUPPORTED = re.compile(
    r"unsupported|not[ _]support|not allowed|not permitted|unknown|unrecogni[sz]ed|unexpected|deprecated", re.IGNORECASE
)
_NOT_BOTH = re.compile(r"temperature.{1,20}top_p.{1,30}cannot both", re.IGNORECASE)
_STREAMS_ONLY = re.compile(  # Qwen's thinking models: "This model only support stream mode, please enable the stream …"
    r"only supports? (?:the )?stream|stream mode|for non-streaming calls", re.IGNORECASE
)
_SCHEMA = re.compile(r"response_format|output_config|json_?schema|schema|grammar|structured output", re.IGNORECASE)


class UnsupportedParameters:
    """What one model does not take.

    `schemas` are those that it refused while it takes others; `whole_replies` is True for a model that only streams.
    `indispensable` parameters are sent whatever is said of them: a refusal that names one teaches nothing.
    """

    def __init__(self, indispensable: frozenset[str] = frozenset()) -> None:
        self._indispensable = indispensable
        self.whole_replies = False
        self.parameters: frozenset[str] = frozenset()
        self.schemas: frozenset[str] = frozenset()

    def learn(self, refusal: ProviderError, body: Mapping[str, Any], schema: str | None) -> bool:
        """Whether the refusal taught something, so that the same request can be made without it.

        Each lesson leaves out something that `body` has, so asking again comes to an end.
        """
        if refusal.status not in (400, 422):
            return False
        if "stream" not in body and _STREAMS_ONLY.search(refusal.message):
            self.whole_replies = True
            return True
        refused = (_parameters(refusal) & body.keys()) - self._indispensable
        if refused:
            self.parameters |= refused
            return True
        if schema is not None and body.keys() & set(_SCHEMAS) and _blames_schema(refusal):
            self.schemas |= {schema}
            return True
        return False


def _parameters(refusal: ProviderError) -> frozenset[str]:
    """The parameters that a refusal names as unsupported; none for a refusal of another kind."""
    if _NOT_BOTH.search(refusal.message):
        return frozenset({"top_p"})
    if not _UNSUPPORTED.search(f"{refusal.code} {refusal.message}"):
        return frozenset()
    if refusal.param:
        return frozenset(name for name in _PATTERNS if refusal.param == name)
    return frozenset(name for name, pattern in _PATTERNS.items() if pattern.search(refusal.message))


def _blames_schema(refusal: ProviderError) -> bool:
    if refusal.param:
        return refusal.param.startswith(_SCHEMAS) or "schema" in refusal.param
    return bool(_SCHEMA.search(f"{refusal.code} {refusal.message}"))
