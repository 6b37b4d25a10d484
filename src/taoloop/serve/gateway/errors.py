"""Errors in the form of OpenAI's API: `{"error": {"message", "type", "param", "code"}}` and a status."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Literal

from taoloop.core.events import Finished
from taoloop.errors import JournalError, JournalFull, JournalLocked, ModelRequestRefused, Refused, TaoError
from taoloop.models.registry import OFFLINE

_LOG = logging.getLogger("taoloop.gateway")

_KINDS = {401: "authentication_error", 403: "permission_error", 424: "run_error", 429: "rate_limit_error"}

EffectState = Literal["done", "in_doubt"]
"""done: a run has changed something. in_doubt: one of its calls may have."""


@dataclass(eq=False, kw_only=True)
class ApiError(Exception):
    """A request to the gateway fails: the error that its client gets."""

    status: int
    """The HTTP status."""

    message: str
    """What is wrong, and what to do about it."""

    code: str | None = None
    """A stable code for programs."""

    param: str | None = None
    """The field of the request that is wrong, such as `messages[0].role`."""

    retry_after_s: float | None = None
    """When another try makes sense; None: it does not."""

    effects: EffectState | None = None
    """What the run has changed before it failed; such an error invites no retry. None: nothing."""

    run_id: str = ""
    """The run that has effects."""

    def __str__(self) -> str:
        """The message."""
        return self.message

    @property
    def kind(self) -> str:
        """The field `type` of the error, which follows from the status."""
        return _KINDS.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")

    @property
    def body(self) -> dict[str, Any]:
        """The body of the response."""
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}
        return {"error": error if self.effects is None else {**error, "run_id": self.run_id, "effects": self.effects}}

    @property
    def headers(self) -> dict[str, str]:
        """Further headers of the response. `Retry-After` has whole seconds, never 0, for 0 means at once."""
        if self.effects is not None:
            return {"x-should-retry": "false"}
        if self.retry_after_s is None:
            return {}
        return {"Retry-After": str(max(1, round(self.retry_after_s + 0.499)))}


def invalid(message: str, param: str | None = None, code: str | None = "invalid_value") -> ApiError:
    """The error for a request that no server could answer; names the field."""
    return ApiError(status=400, message=message, param=param, code=code)


def missing(param: str) -> ApiError:
    """The error for a missing field."""
    return invalid(f"Missing required parameter: `{param}`.", param, "missing_required_parameter")


def invalid_field(param: str, why: str) -> ApiError:
    """The error for a field with an invalid value."""
    message = why if f"`{param}" in why else f"Invalid value for `{param}`: {why}"
    return invalid(message, param, "invalid_value")


_FAILURES: dict[str, tuple[int, str]] = {
    "model_timeout": (504, "the model gave no reply in time"),
    "model_unavailable": (502, "the model's server is down or cannot be reached"),
    "model_rate_limited": (429, "the model's server accepts no more calls for now"),
    "model_auth": (502, "the model's server does not accept the gateway's key"),
    "model_not_found": (502, "the model's server does not know the configured model"),
    "model_request_refused": (502, "the model's server refused the request"),
    "model_context_overflow": (400, "the conversation is too long for the model"),
    "model_content_refused": (400, "the model will not answer this content"),
    "model_reply_unreadable": (502, "the model's server sent an invalid reply"),
    "unreadable": (502, "the model wrote nothing that could be read as a decision"),
}
"""Status and what happened, by the error code that ended a run. What a model's server reports about the gateway's
own key or configuration is not the client's fault, so it is a 502."""

RETRY_AFTER_S = 5.0
"""How long a client should wait where a model's server or the journal takes nothing for now."""

_EXPLAINED = ("model_context_overflow", "model_content_refused", "unreadable")
"""Errors that a client can do something about, so that it gets the reason. Others may name the server's addresses."""


def error_for_filtered_reply(run_id: str) -> ApiError:
    """The error where the model's provider cut its replies for their content, and nothing was left."""
    what = _FAILURES["model_content_refused"][1]
    return ApiError(status=400, message=f"{what[0].upper()}{what[1:]} (run {run_id}).", code="content_filter")


def error_for_failed_run(finished: Finished, run_id: str, model: str = "") -> ApiError:
    """The error for a run that its `model` (a spec) ended. The trace has the whole reason."""
    code = finished.error or ("unreadable" if finished.status == "unreadable" else "model_error")
    if (model, code) == (OFFLINE, ModelRequestRefused.code):  # a task beyond the demo planner, which has no secrets
        return ApiError(status=400, message=f"{finished.reason.rstrip('.。')} (run {run_id}).", code=code)
    status, what = _FAILURES.get(code, (502, "the model failed"))
    why = f": {finished.reason.rstrip('.')}" if code in _EXPLAINED else ""
    codes = {"model_context_overflow": "context_length_exceeded", "model_content_refused": "content_filter"}
    return ApiError(
        status=status,
        message=f"{what[0].upper()}{what[1:]}{why} (run {run_id}).",
        code=codes.get(code, "model_unreadable" if code == "unreadable" else code),
        retry_after_s=RETRY_AFTER_S if status == 429 else None,
    )


_QUOTA_CODES = {"runs": "server_busy", "requests": "rate_limit_exceeded", "tokens": "rate_limit_exceeded"}


def error_for_exceeded_quota(error: Refused) -> ApiError:
    """The error for a client that has used up its quota, or for whose run there is no place."""
    code = _QUOTA_CODES.get(error.why, "insufficient_quota")
    return ApiError(status=429, message=error.message, code=code, retry_after_s=error.retry_after_s)


def error_for_exception(error: Exception, request_id: str) -> ApiError:
    """What a client is told of an exception. Of a bug or a broken journal only where to look; the log has all of it."""
    if isinstance(error, ApiError):
        return error
    if not isinstance(error, TaoError):
        _LOG.error("request %s failed", request_id, exc_info=error)
    else:
        _LOG.error("request %s: %s: %s", request_id, type(error).__name__, error)
    if isinstance(error, (JournalLocked, JournalFull)) or type(error) is JournalError:
        message = f"The server cannot keep its runs at the moment; its log has the reason under {request_id}."
        return ApiError(status=503, message=message, code=error.code, retry_after_s=RETRY_AFTER_S)
    message = f"The server failed; its log has the reason under {request_id}."
    return ApiError(status=500, message=message, code="internal_error")
