"""A tool of one operation: judges arguments, builds the request, sends it under the egress rules, tells the answer."""

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
from taoloop.tools.egress.addresses import read_address
from taoloop.tools.json_schema import compile_schema, findings, listed
from taoloop.tools.openapi.document.operation import Operation
from taoloop.tools.openapi.http.credentials import Alternative, chosen_alternative, oauth_schemes, secrets_of
from taoloop.tools.openapi.http.oauth_tokens import OAuthTokens
from taoloop.tools.openapi.http.request import PreparedRequest, build_request, server_of
from taoloop.tools.openapi.http.response import error_output, success_output
from taoloop.tools.openapi.http.retry import Clock, may_repeat, pause_s
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.tool import Checker, Tool, ToolContext, ToolOutput, expected_form, require_name

MAX_REPLY_BYTES = 4_000_000
"""How much of one reply is read, counted after decompression."""

_CONTEXT = "the context of the call"  # no argument has this name
_ACCEPT = "application/json, text/*;q=0.8, */*;q=0.5"


class HttpSender(Protocol):
    """What sends requests: `EgressClient`, or a double of it."""

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
        """Send one request and give the answer whatever its status."""
        ...


class ApiClient:
    """One API as its tools share it: what the operator said of it, its connections, its tokens, its secrets.

    `sender` gives what sends requests to a server (its address without a slash at the end); by default a client under
    the egress rules of the source. `clock` is for tests.
    """

    def __init__(
        self, source: OpenapiSource, *, sender: Callable[[str], HttpSender] | None = None, clock: Clock | None = None
    ) -> None:
        self.source, self.clock = source, clock or Clock()
        self.secrets = secrets_of(source)
        self.tokens = OAuthTokens(self._post, self.clock)
        self._redactor = Redactor(self.secrets, patterns=False)
        self._sender = sender or self._client
        self._senders: dict[str, HttpSender] = {}

    def sender_for(self, base: str) -> HttpSender:
        """What sends requests to one server."""
        parts = urlsplit(base)
        place = f"{parts.scheme}://{parts.netloc}"
        if place not in self._senders:
            self._senders[place] = self._sender(base)
        return self._senders[place]

    def clean(self, text: str) -> str:
        """`text` without this API's own secrets, in whatever form an answer gives them back."""
        text = self._redactor.text(text)
        for token in self.tokens.values:
            text = text.replace(token, "[redacted:token]")
        return text

    def _client(self, base: str) -> HttpSender:
        return EgressClient(rules_for(self.source, base), timeout_s=self.source.timeout_s, max_bytes=MAX_REPLY_BYTES)

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> EgressResponse:
        return await self.sender_for(url).send("POST", url, headers=headers, body=body, follow=False)


def rules_for(source: OpenapiSource, base: str) -> EgressRules:
    """Where requests to one server of an API may go.

    The operator's own address may be a private one; one that a document names must be public, unless the operator's
    rules allow it.
    """
    own = [source.base_url] if source.base_url else []
    own += [given["token_url"] for given in source.auth.values() if isinstance(given, Mapping) and "token_url" in given]
    rules = source.egress
    if rules is None:
        parts = urlsplit(base)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        is_named = read_address(host) is None  # an address would be opened, be it a private one
        ports = tuple(sorted({80, 443, port}))
        rules = EgressRules(allow=(host,) if is_named else (), only_allowed=is_named, ports=ports)
    for url in own:
        rules = rules.opened_for(url)
    return rules


def make_tool(
    operation: Operation, source: OpenapiSource, card: ToolCard, api: ApiClient | None = None, *, is_valid: bool = False
) -> Tool:
    """The tool that calls one operation. Tools of the same API share one `api`.

    `is_valid`: the card's schema is known to be valid; its judge is made at the first call.

    Raises:
        ToolDefinitionError: the card's schema is no valid one, or the tool has no usable name.
    """
    require_name(card.name)
    api = api or ApiClient(source)
    return Tool(
        card=card,
        handler=OperationCaller(operation, card, api),
        check=_later(card) if is_valid else _checker(card),
        context_parameter=_CONTEXT,
        is_async=True,
        secrets=api.secrets,
    )


@dataclass(frozen=True, slots=True)
class OperationCaller:
    """The code behind the tool of one operation."""

    operation: Operation
    card: ToolCard
    api: ApiClient

    async def __call__(self, **values: Any) -> ToolOutput:
        """Send the request of one call; give status and body.

        Raises:
            InvalidArguments: a value cannot be sent.
            ToolError: the API answered with an error, or not at all; `max_retries_exceeded` after the last attempt.
            ToolTimeout: no answer came, and nobody knows whether what was sent had an effect.
            EgressRefused: the request may not go there.
            MissingKey: a secret is not configured.
        """
        context: ToolContext = values.pop(_CONTEXT, None) or ToolContext()
        literals = context.literals(values)
        alternative = chosen_alternative(self.operation, self.api.source)
        tokens = await self._tokens(alternative)
        request = self._request(values, tokens, literals, context)
        answered = await self._answered(request)
        if answered.status == 401 and self.api.tokens.drop(tokens.values()):
            request = self._request(values, await self._tokens(alternative), literals, context)
            answered = await self._answered(request)
        if 200 <= answered.status < 300:
            return success_output(answered, self.api.clean)
        raise error_output(self.operation, request, answered, self.api.clean, is_repeatable=self._is_repeatable)

    @property
    def _is_repeatable(self) -> bool:
        """Whether a second request has no second effect: it reads, or carries the key of the call."""
        return self.card.reads_only or self.card.idempotent

    def _request(
        self, values: Mapping[str, Any], tokens: Mapping[str, str], literals: Mapping[str, str], context: ToolContext
    ) -> PreparedRequest:
        key = ""
        if self.card.idempotent and not self.card.reads_only:
            key = context.idempotency_key
            key = key if key != ToolContext().idempotency_key else str(uuid.uuid4())  # by hand each call is a new one
        return build_request(
            self.operation, values, self.api.source, tokens=tokens, literals=literals, idempotency_key=key
        )

    async def _tokens(self, alternative: Alternative) -> dict[str, str]:
        source, made = self.api.source, {}
        for scheme in oauth_schemes(self.operation, alternative, source):
            given = source.auth[scheme.name]
            assert not isinstance(given, str)  # noqa: S101  # `oauth_schemes` leaves those out
            base = server_of(self.operation, source)
            made[scheme.name] = await self.api.tokens.get(scheme, alternative[scheme.name], given, base)
        return made

    async def _answered(self, request: PreparedRequest) -> EgressResponse:
        """The answer to a request that is sent until it is one that counts, or the attempts or the time are used up."""
        clock, source = self.api.clock, self.api.source
        sender = self.api.sender_for(server_of(self.operation, source))
        ends = clock.tick() + request.timeout_s
        headers = {"Accept": _ACCEPT, **request.headers}
        host = next((value for name, value in source.headers.items() if name.lower() == "host"), "")
        for attempt in range(1, source.retries + 2):
            answered: EgressResponse | None = None
            failed: EgressFailed | None = None
            try:
                answered = await sender.send(
                    request.method,
                    request.url,
                    headers=headers,
                    body=request.body,
                    timeout_s=max(ends - clock.tick(), 0.001),
                    max_bytes=MAX_REPLY_BYTES,
                    follow=self.card.reads_only,
                    host=host,
                )
            except EgressFailed as error:
                failed = error
            if answered is not None and not self._again(answered.status, was_sent=True):
                return answered
            if failed is not None and not (failed.retryable and self._again(None, was_sent=failed.was_sent)):
                raise self._told(failed, request)
            asked = answered.headers.get("retry-after", "") if answered is not None else ""
            wait_s = pause_s(attempt, asked, clock.now())
            if attempt > source.retries or wait_s is None or clock.tick() + wait_s >= ends:
                raise self._given_up(request, attempt, answered, failed)
            await clock.sleep(wait_s)
        raise AssertionError("unreachable")  # the last attempt returns or raises

    def _again(self, status: int | None, *, was_sent: bool) -> bool:
        return may_repeat(status, was_sent=was_sent, is_repeatable=self._is_repeatable)

    def _told(self, failed: EgressFailed, request: PreparedRequest) -> ToolError:
        """A failure that ends the call: where something may have been changed, nobody knows whether it was."""
        text = self.api.clean(f"{request.method} {request.shown}: {failed.message}")
        if failed.was_sent and not self.card.reads_only and failed.code in ("http_timeout", "http_broken"):
            return ToolTimeout(
                f"{text} Its effect may or may not have happened.",
                code=failed.code,
                retryable=self.card.idempotent,
                hint="Find out whether it happened before you try again.",
            )
        return ToolError(text, code=failed.code, retryable=failed.retryable, hint=failed.hint)

    def _given_up(
        self, request: PreparedRequest, attempts: int, answered: EgressResponse | None, failed: EgressFailed | None
    ) -> ToolError:
        if failed is not None:
            last = self._told(failed, request)
        else:
            assert answered is not None  # noqa: S101  # one of both is why
            last = error_output(self.operation, request, answered, self.api.clean, is_repeatable=self._is_repeatable)
        if attempts == 1 or isinstance(last, ToolTimeout):
            return last
        return ToolError(
            f"Max retries exceeded after {attempts} attempts. The last one: {last.code}: {last.message}",
            code="max_retries_exceeded",
            retryable=last.retryable,
            hint=last.hint,
        )


def _later(card: ToolCard) -> Checker:
    """A judge that is made at its first use: an API may have hundreds of tools, and a run calls few."""
    made: list[Checker] = []

    def check(raw: bytes) -> Mapping[str, Any]:
        if not made:
            made.append(_checker(card))
        return made[0](raw)

    return check


def _checker(card: ToolCard) -> Checker:
    """A judge of arguments that says of each refusal what kind it is."""
    validator = compile_schema(card.input_schema, f"The input schema of {card.name!r}", ToolDefinitionError)
    known, required = frozenset(card.parameters), card.required

    def check(raw: bytes) -> Mapping[str, Any]:
        args: dict[str, Any] = pydantic_core.from_json(raw)
        missing = [f"{name!r} is missing" for name in required if name not in args]
        unknown = [f"{name!r} is not a known argument" for name in args if name not in known]
        wrong = [] if missing or unknown else findings(validator, args)
        if missing or unknown or wrong:
            raise InvalidArguments(
                f"The arguments of {card.name!r} do not fit: {listed(missing or unknown or wrong)}.",
                code="missing_argument" if missing else "unknown_argument" if unknown else "invalid_argument",
                hint=f"Expected: {expected_form(card)}",
            )
        return args

    return check
