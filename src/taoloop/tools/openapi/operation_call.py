"""The tool of one operation: it checks arguments, sends a request under the egress rules and returns the response."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import urlsplit

import pydantic_core

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.images import Image, is_image
from taoloop.core.preview import preview
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.text import RUN_LANGUAGE
from taoloop.core.texts import image_label
from taoloop.errors import EgressFailed, EgressRefused, ImageError, ToolError, ToolTimeout
from taoloop.tools.egress import EgressClient, EgressResponse, EgressRules
from taoloop.tools.egress.rules import parse_address
from taoloop.tools.json_schema import compile_schema, findings, listed
from taoloop.tools.openapi.credentials import Alternative, OAuthTokens, choose_alternative, oauth_clients, secrets_of
from taoloop.tools.openapi.document import as_mapping
from taoloop.tools.openapi.names import restore_names
from taoloop.tools.openapi.operation import Operation, PlannedTool
from taoloop.tools.openapi.request import PreparedRequest, build_request, server_of
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.openapi.texts import TEXTS
from taoloop.tools.openapi.user_logins import ApiLogins
from taoloop.tools.openapi.value_encoding import to_json
from taoloop.tools.texts import TEXTS as TOOL_TEXTS
from taoloop.tools.tool import Checker, RunContext, Tool, ToolOutput, misfit_arguments, require_name

MAX_ERROR_BODY_CHARS = 1_400
"""How many characters of the response body an error message includes."""

_LOG = logging.getLogger("taoloop.openapi")

_SHOWN_HEADERS = ("location", "link", "etag", "last-modified", "content-range", "x-total-count", "retry-after")
_MAX_HEADER_CHARS = 500
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_STANDARD_CODES = (400, 401, 402, 403, 404, 405, 408, 409, 410, 412, 415, 423, 425, 501, 502, 504)
_CODES = {status: HTTPStatus(status).name.lower() for status in _STANDARD_CODES}
_CODES |= {413: "too_large", 422: "unprocessable", 429: "rate_limited", 503: "unavailable"}
_TEXT_SUBTYPES = frozenset(("xml", "yaml", "x-yaml", "javascript", "x-www-form-urlencoded", "x-ndjson"))
RETRYABLE_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""

_HIDDEN_FAILURES = {
    **dict.fromkeys(("name_not_found", "connection_failed", "tls_failed"), "api_unreachable"),
    "http_timeout": "api_timeout",
}
"""What a model reads of a failure, by its code, where the server is hidden."""

TextFilter = Callable[[str], str]
"""Removes secrets from a text."""

_METHOD_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete"}
_NOT_PROCESSED = frozenset({425, 429, 503})  # of these, the ones that mean that the request was not processed


def error_code(status: int | str) -> str:
    """The error code for a status (or `4XX`, `default`): `not_found` for 404, `server_error` for 500."""
    text = str(status)
    if text.isdigit() and int(text) in _CODES:
        return _CODES[int(text)]
    return {"3": "redirected", "4": "client_error", "5": "server_error"}.get(text[:1], "http_error")


def success_output(response: EgressResponse, clean: TextFilter, *, hide_server: bool = False) -> ToolOutput:
    """The output of a successful call: status, informative headers and body."""
    parts = [f'{{"status":{response.status}']
    informative = [name for name in _SHOWN_HEADERS if name in response.headers]
    if headers := {name: response.headers[name][:_MAX_HEADER_CHARS] for name in informative}:
        if hide_server and "location" in headers:
            headers["location"] = _path_of(headers["location"])
        parts.append(f'"headers":{to_json(headers)}')
    image = _image_in(response)
    if image is not None:
        members = {"type": image.media_type, "image": image_label(RUN_LANGUAGE.get(), image.info)}
        parts.append(to_json(members)[1:-1])
    elif response.body:
        parts.append(_body_members(response))
    text = ",".join(parts) + "}"
    cleaned = clean(text)
    form: Literal["json", "text"] = "json" if cleaned == text or _is_valid_json(cleaned) else "text"
    return ToolOutput(text=cleaned, form=form, images=() if image is None else (image,))


def _image_in(response: EgressResponse) -> Image | None:
    """The body as an image, by its bytes; None if it is none, or not whole."""
    if response.is_cut or not is_image(response.body):
        return None
    try:
        return Image(response.body)
    except ImageError:  # broken or too large: shown as any binary body
        return None


def error_output(
    operation: Operation,
    request: PreparedRequest,
    response: EgressResponse,
    clean: TextFilter,
    *,
    is_repeatable: bool,
    hide_server: bool = False,
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
        location = _path_of(location) if hide_server else location
        hints.append(TEXTS.run_text("redirected", location=location))
    text = TEXTS.run_text(
        "failed_with_body" if body_text else "failed",
        request=f"{operation.method} {request.safe_url}",
        status=f"{status} {_PHRASES.get(status, '')}".rstrip(),
        body=body_text,
    )
    return ToolError(
        clean(text),
        code=error_code(status),
        retryable=status in RETRYABLE_STATUSES and (is_repeatable or status in _NOT_PROCESSED),
        hint=clean(" ".join(hints)),
    )


def _path_of(location: str) -> str:
    """The path and query of a `Location`, without the server."""
    try:
        parts = urlsplit(location)
    except ValueError:  # unclosed brackets: nothing of it is shown
        return ""
    return parts.path + (f"?{parts.query}" if parts.query else "")


def is_json(kind: str) -> bool:
    """Whether a media type is JSON."""
    return kind.partition("/")[2].rpartition("+")[2] == "json" or kind == "text/json"


def is_text(kind: str) -> bool:
    """Whether a media type is text."""
    return kind.startswith("text/") or kind.partition("/")[2].rpartition("+")[2] in _TEXT_SUBTYPES


def _body_members(response: EgressResponse) -> str:
    """The members of the observation that represent the body, as JSON without the braces around them."""
    kind, is_cut = response.media_type, response.is_cut
    notes: dict[str, Any] = {"cut": True, "note": TEXTS.run_text("cut")} if is_cut else {}
    if not kind or is_json(kind) or is_text(kind):
        text = response.text
        if not is_cut and (is_json(kind) or text.lstrip()[:1] in ("{", "[")) and _is_valid_json(text):
            return f'"body":{text.strip()}'
        if is_json(kind) and not is_cut:
            notes = {"note": TEXTS.run_text("not_json")}
        if kind or b"\0" not in response.body[:1_000]:
            return to_json({**({"type": kind} if kind else {}), **notes, "body": text})[1:-1]
    members = {"type": kind or "application/octet-stream", "bytes": len(response.body), **notes}
    return to_json({**members, "base64": base64.b64encode(response.body).decode()})[1:-1]


def _error_body_text(response: EgressResponse) -> str:
    """The beginning of the body of an error, on one line."""
    kind = response.media_type
    if not response.body:
        return ""
    if kind and not is_json(kind) and not is_text(kind):
        return TEXTS.run_text("body_bytes", size=len(response.body), media_type=kind)
    text = response.text.strip()
    form, line = ("json", text) if _is_valid_json(text) else ("text", " ".join(text.split()))
    return preview(line, form, MAX_ERROR_BODY_CHARS)


def _is_valid_json(text: str) -> bool:
    try:
        pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        return "recursion" in str(error)  # nested too deeply to check, and probably JSON: the preview flattens it
    return True


def _documented_meaning(operation: Operation, status: int) -> str:
    """The description of a status in the document, in one line."""
    by_status = {reply.status.upper(): reply.description for reply in operation.responses}
    for key in (str(status), f"{status // 100}XX", "DEFAULT"):
        if text := " ".join(by_status.get(key, "").split()):
            return text[:200]
    return ""


MAX_PAUSE_S = 30.0
"""If a server asks for a longer pause, the call ends instead."""

MAX_REPLY_BYTES = 4_000_000
"""The maximum size of a response, after decompression."""

_USED_TOKENS: ContextVar[tuple[str, ...]] = ContextVar("_USED_TOKENS", default=())
"""The tokens of people that the current call sends."""

CONTEXT = "the context of the call"
"""The parameter of a handler that takes the context; no argument has this name."""

_ACCEPT = "application/json, text/*;q=0.8, */*;q=0.5"


@dataclass(frozen=True, slots=True)
class RetryClock:
    """The time functions that retries and tokens use; tests replace them."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits for a number of seconds."""
    now: Callable[[], float] = time.time
    """The time of day in seconds since the epoch, to which `Retry-After` dates are compared."""
    tick: Callable[[], float] = time.monotonic
    """Seconds that only increase, for time limits."""


def may_repeat(status: int | None, *, was_sent: bool, is_repeatable: bool) -> bool:
    """Whether a request may be sent again. `status` None: there was no response.

    `was_sent` False: the connection failed before anything was sent. `is_repeatable`: a repetition has no further
    effect.
    """
    if not was_sent:
        return True
    return is_repeatable and (status is None or status in RETRYABLE_STATUSES)


def pause_s(attempt: int, retry_after: str, now: float) -> float | None:
    """Seconds before the next attempt: 1, 2, 3 … after the attempts 1, 2, 3 …, or what the server asked for.

    None: the server asked for more than `MAX_PAUSE_S`.
    """
    requested = retry_after_s(retry_after, now)
    seconds = float(attempt) if requested is None else max(requested, 0.0)
    return seconds if seconds <= MAX_PAUSE_S else None


def retry_after_s(retry_after: str, now: float) -> float | None:
    """The seconds that a `Retry-After` header asks for; None if it is empty or unreadable."""
    text = retry_after.strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        return parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None


class ApiClient:
    """One API, shared by its tools: its settings, connections, tokens and secrets.

    Tests pass a `clock`.
    """

    def __init__(self, source: OpenapiSource, *, clock: RetryClock | None = None) -> None:
        self.source, self.clock = source, clock or RetryClock()
        self.secrets = secrets_of(source)
        self.tokens = OAuthTokens(self._post, self.clock.tick)
        self.logins = ApiLogins(source, self._post)
        self._redactor = Redactor(self.secrets, patterns=False)
        self._clients: dict[str, EgressClient] = {}

    def client_for(self, base: str) -> EgressClient:
        """The HTTP client for one server, under the egress rules of the source."""
        if base not in self._clients:
            rules = self._rules_for(base)
            self._clients[base] = EgressClient(rules, timeout_s=self.source.timeout_s, max_bytes=MAX_REPLY_BYTES)
        return self._clients[base]

    def clean(self, text: str) -> str:
        """`text` without the secrets of this API, in whatever encoding a response repeats them."""
        text = self._redactor.text(text)
        for token in (*self.tokens.values, *_USED_TOKENS.get()):
            text = text.replace(token, "[redacted:token]")
        return text

    def _rules_for(self, base: str) -> EgressRules:
        """The egress rules for requests to one server of the API.

        A URL from the operator's settings may be private. A URL from the document must be public, unless the operator's
        rules allow it.
        """
        rules = self.source.egress
        if rules is None:
            parts = urlsplit(base)
            host = parts.hostname or ""
            port = parts.port or (443 if parts.scheme == "https" else 80)
            is_named = parse_address(host) is None  # allowing an IP address would also allow a private one
            ports = tuple(sorted({80, 443, port}))
            rules = EgressRules(allow=(host,) if is_named else (), only_allowed=is_named, ports=ports)
        token_urls = [as_mapping(secret).get("token_url", "") for secret in self.source.auth.values()]
        for url in filter(None, (self.source.base_url, *token_urls)):
            rules = rules.allowing(url)
        return rules

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> EgressResponse:
        return await self.client_for(url).send("POST", url, headers=headers, body=body, follow=False)


def make_tool(planned: PlannedTool, api: ApiClient) -> Tool:
    """The tool that calls one operation of an API.

    Raises:
        ToolDefinitionError: the name of the card is not usable.
    """
    card, whole_schema = planned.card, planned.whole_schema
    require_name(card.name)
    whole_card = card if whole_schema is None else replace(card, input_schema=whole_schema)
    return Tool(
        card=card,
        whole_schema=whole_schema,
        keywords=_keywords(planned.operation),
        embedder=api.source.embedder,
        handler=OperationCaller(planned.operation, whole_card, api),
        check=argument_checker(whole_card, planned.original_names),
        context_parameter=CONTEXT,
        is_async=True,
        secrets=api.secrets,
        login=api.logins.first_of(planned.operation),
    )


def _keywords(operation: Operation) -> str:
    """What its method does, the words of its path and its tags."""
    is_list = operation.method == "GET" and not operation.path.endswith("}")
    verb = "list" if is_list else _METHOD_VERBS.get(operation.method, "")
    return " ".join((verb, operation.path, *operation.tags))


@dataclass(frozen=True, slots=True)
class OperationCaller:
    """The handler of the tool of one operation."""

    operation: Operation
    """The operation that it calls."""
    card: ToolCard
    """The card whose schema checks the arguments."""
    api: ApiClient
    """The API of the operation."""

    async def __call__(self, **values: Any) -> ToolOutput:
        """Send the request of one call; return status and body.

        Raises:
            InvalidArguments: a value cannot be sent.
            ToolError: the API returned an error or did not respond; `max_retries_exceeded` after the last attempt.
            ToolTimeout: there was no response, and it is unknown whether the request took effect.
            EgressRefused: the egress rules do not allow the request.
            MissingKey: a secret is not configured.
        """
        context: RunContext = values.pop(CONTEXT, None) or RunContext()
        literals = context.literals(values)
        alternative = choose_alternative(self.operation, self.api.source)
        tokens = await self._tokens(alternative, context.user)
        request = self._request(values, tokens, literals, context)
        response = await self._send(request)
        if self._is_unauthorized(response) and self.api.tokens.drop(tokens.values()):
            tokens = await self._tokens(alternative, context.user, rejected=tokens)
            request = self._request(values, tokens, literals, context)
            response = await self._send(request)
            if self._is_unauthorized(response) and (logins := self.api.logins.of(alternative)):
                raise next(iter(logins.values())).rejected()
        if 200 <= response.status < 300:
            return self._output(response)
        raise self._status_error(request, response)

    def _is_unauthorized(self, response: EgressResponse) -> bool:
        """Whether the API did not accept the token, and so did nothing."""
        return response.status == 401

    def _output(self, response: EgressResponse) -> ToolOutput:
        """The output for a response whose status says that the call succeeded."""
        return success_output(response, self.api.clean, hide_server=self.api.source.hide_server)

    @property
    def _is_repeatable(self) -> bool:
        """Whether a repetition has no further effect: the call only reads, or carries an idempotency key."""
        return self.card.reads_only or self.card.idempotent

    def _request(
        self, values: Mapping[str, Any], tokens: Mapping[str, str], literals: Mapping[str, str], context: RunContext
    ) -> PreparedRequest:
        key = ""
        if self.card.idempotent and not self.card.reads_only:
            key = context.idempotency_key
            if key == RunContext().idempotency_key:  # outside a run each call is a new one
                key = str(uuid.uuid4())
        return build_request(
            self.operation, values, self.api.source, tokens=tokens, literals=literals, idempotency_key=key
        )

    async def _tokens(
        self, alternative: Alternative, user: str, *, rejected: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, str]:
        """The tokens of a call for `user`, by scheme; others than those that the API has `rejected`."""
        tokens, source = {}, self.api.source
        for name, login in self.api.logins.of(alternative).items():
            tokens[name] = await login.token(user, rejected=rejected.get(name, ""))
        _USED_TOKENS.set(tuple(tokens.values()))
        for scheme, client in oauth_clients(self.operation, alternative, source):
            base = server_of(self.operation, source)
            tokens[scheme.name] = await self.api.tokens.get(scheme, alternative[scheme.name], client, base)
        return tokens

    async def _send(self, request: PreparedRequest) -> EgressResponse:
        """The response to a request that is final, after as many attempts as the operator allows."""
        source, clock = self.api.source, self.api.clock
        deadline = clock.tick() + request.timeout_s
        attempt = 0
        while True:
            attempt += 1
            retry_after, is_final = "", False
            try:
                response = await self._send_once(request, max(deadline - clock.tick(), 0.001))
            except EgressFailed as failure:
                can_repeat = may_repeat(None, was_sent=failure.was_sent, is_repeatable=self._is_repeatable)
                error, is_final = self._call_error(failure, request), not (failure.retryable and can_repeat)
            except EgressRefused as refusal:
                if source.hide_server:
                    self._log(request, refusal.message)
                    raise self._refusal(request, refusal) from refusal
                raise
            else:
                if not may_repeat(response.status, was_sent=True, is_repeatable=self._is_repeatable):
                    return response
                error, retry_after = self._status_error(request, response), response.headers.get("retry-after", "")
            wait_s = pause_s(attempt, retry_after, clock.now())
            if is_final or wait_s is None or attempt > source.retries or clock.tick() + wait_s >= deadline:
                if is_final or attempt == 1 or isinstance(error, ToolTimeout):
                    raise error
                last: dict[str, Any] = {"code": error.code, "message": error.message, "hint": error.hint}
                raise TEXTS.error(
                    "exhausted", "max_retries_exceeded", retryable=error.retryable, attempts=attempt, **last
                )
            await clock.sleep(wait_s)

    async def _send_once(self, request: PreparedRequest, timeout_s: float) -> EgressResponse:
        source = self.api.source
        return await self.api.client_for(server_of(self.operation, source)).send(
            request.method,
            request.url,
            headers={"Accept": _ACCEPT, **request.headers},
            body=request.body,
            timeout_s=timeout_s,
            follow=self.card.reads_only,
            host=next((value for name, value in source.headers.items() if name.lower() == "host"), ""),
        )

    def _status_error(self, request: PreparedRequest, response: EgressResponse) -> ToolError:
        is_hidden = self.api.source.hide_server
        if is_hidden:
            self._log(request, f"HTTP {response.status}")
        return error_output(
            self.operation,
            request,
            response,
            self.api.clean,
            is_repeatable=self._is_repeatable,
            hide_server=is_hidden,
        )

    def _log(self, request: PreparedRequest, problem: str) -> None:
        """Log what the model is not shown of a failed call, with the address; never a body, a query or a secret."""
        url = server_of(self.operation, self.api.source) + request.safe_url
        _LOG.warning("%s: %s %s: %s", self.card.name, request.method, self.api.clean(url), self.api.clean(problem))

    def _refusal(self, request: PreparedRequest, refusal: EgressRefused) -> ToolError:
        text, hint = f"{request.method} {request.safe_url}", TEXTS.run_text("api_hint")
        return TEXTS.error(
            "api_refused", refusal.code, error_type=EgressRefused, hint=hint, request=self.api.clean(text)
        )

    def _call_error(self, failure: EgressFailed, request: PreparedRequest) -> ToolError:
        """The error for a request without a response; for a write it is unknown whether it took effect."""
        problem, hint = failure.message, failure.hint
        if self.api.source.hide_server:
            self._log(request, problem)
            problem = TEXTS.run_text(_HIDDEN_FAILURES.get(failure.code, "api_failed"))
            hint = TEXTS.run_text("api_hint")
        text = self.api.clean(f"{request.method} {request.safe_url}: {problem}")
        if failure.was_sent and not self.card.reads_only and failure.code in ("http_timeout", "http_broken"):
            is_retryable = self.card.idempotent
            return TEXTS.error("no_response", failure.code, error_type=ToolTimeout, retryable=is_retryable, text=text)
        return ToolError(text, code=failure.code, retryable=failure.retryable, hint=hint)


def argument_checker(card: ToolCard, original_names: Mapping[str, str]) -> Checker:
    """A checker of arguments whose errors have a code for each kind of mistake.

    Its schema is compiled at the first call: an API may have hundreds of tools, and a run calls few.
    """
    validator = cache(lambda: compile_schema(card.input_schema, f"The input schema of {card.name!r}"))

    def check(raw: bytes) -> Mapping[str, Any]:
        args: dict[str, Any] = pydantic_core.from_json(raw)
        missing = [TOOL_TEXTS.run_text("missing", name=name) for name in card.required if name not in args]
        unknown = [TOOL_TEXTS.run_text("unknown", name=name) for name in args if name not in card.parameters]
        problems = missing or unknown or findings(validator(), args)
        if problems:
            code = "missing_argument" if missing else "unknown_argument" if unknown else "invalid_argument"
            raise misfit_arguments(card, listed(problems), code)
        return restore_names(args, original_names) if original_names else args

    return check
