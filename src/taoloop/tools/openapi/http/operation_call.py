"""The tool of one operation: it checks arguments, sends a request under the egress rules and returns the response."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import pydantic_core

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import EgressFailed, InvalidArguments, ToolDefinitionError, ToolError, ToolTimeout
from taoloop.tools.egress import EgressClient, EgressResponse, EgressRules
from taoloop.tools.egress.addresses import parse_address
from taoloop.tools.json_schema import compile_schema, findings, listed
from taoloop.tools.openapi.document.operation import Operation
from taoloop.tools.openapi.http.credentials import Alternative, choose_alternative, oauth_schemes, secrets_of
from taoloop.tools.openapi.http.oauth_tokens import OAuthTokens
from taoloop.tools.openapi.http.request import PreparedRequest, build_request, server_of
from taoloop.tools.openapi.http.response import error_output, success_output
from taoloop.tools.openapi.http.retry import LastAttempt, RetryClock, send_with_retries
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.openapi.texts import TEXTS
from taoloop.tools.tool import Checker, Tool, ToolContext, ToolOutput, expected_form, require_name

MAX_REPLY_BYTES = 4_000_000
"""The maximum size of a response, after decompression."""

_CONTEXT = "the context of the call"  # no argument has this name
_ACCEPT = "application/json, text/*;q=0.8, */*;q=0.5"


class HttpSender(Protocol):
    """Sends requests: `EgressClient`, or a test double."""

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float | None = None,
        max_bytes: int | None = None,
        follow: bool = False,
        host: str = "",
    ) -> EgressResponse:
        """Send one request and return the response, whatever its status."""
        ...


class ApiClient:
    """One API, shared by its tools: its settings, connections, tokens and secrets.

    `sender` creates the sender for a server (its URL without a trailing slash); by default a client under the egress
    rules of the source. Tests pass a `clock`.
    """

    def __init__(
        self,
        source: OpenapiSource,
        *,
        sender: Callable[[str], HttpSender] | None = None,
        clock: RetryClock | None = None,
    ) -> None:
        self.source, self.clock = source, clock or RetryClock()
        self.secrets = secrets_of(source)
        self.tokens = OAuthTokens(self._post, self.clock)
        self._redactor = Redactor(self.secrets, patterns=False)
        self._sender = sender or self._client
        self._senders: dict[str, HttpSender] = {}

    def sender_for(self, base: str) -> HttpSender:
        """The sender for one server."""
        parts = urlsplit(base)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._senders:
            self._senders[origin] = self._sender(base)
        return self._senders[origin]

    def clean(self, text: str) -> str:
        """`text` without the secrets of this API, in whatever encoding a response repeats them."""
        text = self._redactor.text(text)
        for token in self.tokens.values:
            text = text.replace(token, "[redacted:token]")
        return text

    def _client(self, base: str) -> HttpSender:
        return EgressClient(
            egress_rules_for(self.source, base), timeout_s=self.source.timeout_s, max_bytes=MAX_REPLY_BYTES
        )

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> EgressResponse:
        return await self.sender_for(url).send("POST", url, headers=headers, body=body, follow=False)


def egress_rules_for(source: OpenapiSource, base: str) -> EgressRules:
    """The egress rules for requests to one server of an API.

    A URL from the operator's settings may be private. A URL from the document must be public, unless the operator's
    rules allow it.
    """
    operator_urls = [source.base_url] if source.base_url else []
    operator_urls += [
        secret["token_url"] for secret in source.auth.values() if isinstance(secret, Mapping) and "token_url" in secret
    ]
    rules = source.egress
    if rules is None:
        parts = urlsplit(base)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        is_named = parse_address(host) is None  # allowing an IP address would also allow a private one
        ports = tuple(sorted({80, 443, port}))
        rules = EgressRules(allow=(host,) if is_named else (), only_allowed=is_named, ports=ports)
    for url in operator_urls:
        rules = rules.allowing(url)
    return rules


def make_tool(
    operation: Operation, source: OpenapiSource, card: ToolCard, api: ApiClient | None = None, *, is_valid: bool = False
) -> Tool:
    """The tool that calls one operation. Tools of the same API share one `api`.

    `is_valid`: the schema of the card is known to be valid, and is compiled at the first call.

    Raises:
        ToolDefinitionError: the schema of the card is not valid, or its name is not usable.
    """
    require_name(card.name)
    api = api or ApiClient(source)
    return Tool(
        card=card,
        handler=OperationCaller(operation, card, api),
        check=_lazy_checker(card) if is_valid else _strict_checker(card),
        context_parameter=_CONTEXT,
        is_async=True,
        secrets=api.secrets,
    )


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
        context: ToolContext = values.pop(_CONTEXT, None) or ToolContext()
        literals = context.literals(values)
        alternative = choose_alternative(self.operation, self.api.source)
        tokens = await self._tokens(alternative)
        request = self._request(values, tokens, literals, context)
        response = await self._send(request)
        if response.status == 401 and self.api.tokens.drop(tokens.values()):
            request = self._request(values, await self._tokens(alternative), literals, context)
            response = await self._send(request)
        if 200 <= response.status < 300:
            return success_output(response, self.api.clean)
        raise error_output(self.operation, request, response, self.api.clean, is_repeatable=self._is_repeatable)

    @property
    def _is_repeatable(self) -> bool:
        """Whether a repetition has no further effect: the call only reads, or carries an idempotency key."""
        return self.card.reads_only or self.card.idempotent

    def _request(
        self, values: Mapping[str, Any], tokens: Mapping[str, str], literals: Mapping[str, str], context: ToolContext
    ) -> PreparedRequest:
        key = ""
        if self.card.idempotent and not self.card.reads_only:
            key = context.idempotency_key
            key = (
                key if key != ToolContext().idempotency_key else str(uuid.uuid4())
            )  # outside a run each call is a new one
        return build_request(
            self.operation, values, self.api.source, tokens=tokens, literals=literals, idempotency_key=key
        )

    async def _tokens(self, alternative: Alternative) -> dict[str, str]:
        source, tokens = self.api.source, {}
        for scheme in oauth_schemes(self.operation, alternative, source):
            client = source.auth[scheme.name]
            assert not isinstance(client, str)  # noqa: S101  # `oauth_schemes` leaves those out
            base = server_of(self.operation, source)
            tokens[scheme.name] = await self.api.tokens.get(scheme, alternative[scheme.name], client, base)
        return tokens

    async def _send(self, request: PreparedRequest) -> EgressResponse:
        """The response to a request, after as many attempts as the operator allows."""
        source = self.api.source
        sender = self.api.sender_for(server_of(self.operation, source))
        headers = {"Accept": _ACCEPT, **request.headers}
        host = next((value for name, value in source.headers.items() if name.lower() == "host"), "")

        async def send(timeout_s: float) -> EgressResponse:
            return await sender.send(
                request.method,
                request.url,
                headers=headers,
                body=request.body,
                timeout_s=timeout_s,
                max_bytes=MAX_REPLY_BYTES,
                follow=self.card.reads_only,
                host=host,
            )

        last = await send_with_retries(
            send,
            retries=source.retries,
            timeout_s=request.timeout_s,
            is_repeatable=self._is_repeatable,
            clock=self.api.clock,
        )
        if last.response is not None and not last.is_exhausted:
            return last.response
        raise self._final_error(request, last)

    def _call_error(self, failure: EgressFailed, request: PreparedRequest) -> ToolError:
        """The error for a request without a response; for a write it is unknown whether it took effect."""
        text = self.api.clean(f"{request.method} {request.safe_url}: {failure.message}")
        if failure.was_sent and not self.card.reads_only and failure.code in ("http_timeout", "http_broken"):
            return ToolTimeout(
                TEXTS.run_text("no_response", text=text),
                code=failure.code,
                retryable=self.card.idempotent,
                hint=TEXTS.run_text("no_response_hint"),
            )
        return ToolError(text, code=failure.code, retryable=failure.retryable, hint=failure.hint)

    def _final_error(self, request: PreparedRequest, last: LastAttempt) -> ToolError:
        if last.failure is not None:
            error = self._call_error(last.failure, request)
        else:
            assert last.response is not None  # noqa: S101  # one of the two is there
            error = error_output(
                self.operation, request, last.response, self.api.clean, is_repeatable=self._is_repeatable
            )
        if not last.is_exhausted or last.attempts == 1 or isinstance(error, ToolTimeout):
            return error
        return ToolError(
            TEXTS.run_text("exhausted", attempts=last.attempts, code=error.code, message=error.message),
            code="max_retries_exceeded",
            retryable=error.retryable,
            hint=error.hint,
        )


def _lazy_checker(card: ToolCard) -> Checker:
    """A checker that is compiled at its first use: an API may have hundreds of tools, and a run calls few."""
    cached: list[Checker] = []

    def check(raw: bytes) -> Mapping[str, Any]:
        if not cached:
            cached.append(_strict_checker(card))
        return cached[0](raw)

    return check


def _strict_checker(card: ToolCard) -> Checker:
    """A checker of arguments whose errors have a code for each kind of mistake."""
    validator = compile_schema(card.input_schema, f"The input schema of {card.name!r}", ToolDefinitionError)
    known, required = frozenset(card.parameters), card.required

    def check(raw: bytes) -> Mapping[str, Any]:
        args: dict[str, Any] = pydantic_core.from_json(raw)
        missing = [TEXTS.run_text("missing", name=name) for name in required if name not in args]
        unknown = [TEXTS.run_text("unknown", name=name) for name in args if name not in known]
        wrong = [] if missing or unknown else findings(validator, args)
        if missing or unknown or wrong:
            raise InvalidArguments(
                TEXTS.run_text("arguments", tool=card.name, problems=listed(missing or unknown or wrong)),
                code="missing_argument" if missing else "unknown_argument" if unknown else "invalid_argument",
                hint=TEXTS.run_text("expected", form=expected_form(card)),
            )
        return args

    return check
