"""Build the HTTP request for an operation and its arguments. Pure: nothing is sent here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from taoloop.errors import InvalidArguments, ToolDefinitionError
from taoloop.tools.openapi.document.operation import Operation, Parameter
from taoloop.tools.openapi.http.credentials import choose_alternative, credentials
from taoloop.tools.openapi.http.json_numbers import apply_literals
from taoloop.tools.openapi.http.parameter_styles import (
    check_header,
    check_path_value,
    cookie_pairs,
    header_text,
    path_text,
    query_pairs,
    unsendable_argument,
)
from taoloop.tools.openapi.http.request_body import encode_body, resolve_schema
from taoloop.tools.openapi.names import is_header_name
from taoloop.tools.openapi.schema.flattening import flatten_object
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.openapi.texts import TEXTS

_PLACEHOLDER = re.compile(r"\{([^{}/]*)\}")
_PATH_SAFE = "/:@!$&'()*+,;=~%?"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRequest:
    """A request that is ready to be sent."""

    method: str
    """The HTTP method in upper case."""
    url: str
    """The complete URL; every value in it is percent-encoded."""
    headers: Mapping[str, str]
    """Header values by name."""
    body: bytes | None
    """The encoded body; None: the request has none."""
    timeout_s: float
    """The time limit of the whole call in seconds."""
    safe_url: str = ""
    """The URL for messages: without the query, and without values from secrets."""

    @property
    def address(self) -> str:
        """The URL without its query."""
        return self.url.partition("?")[0]

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """The decoded names and values of the query, in order."""
        return tuple(parse_qsl(self.url.partition("?")[2], keep_blank_values=True))


def build_request(
    operation: Operation,
    args: Mapping[str, Any],
    source: OpenapiSource,
    *,
    tokens: Mapping[str, str] | None = None,
    literals: Mapping[str, str] | None = None,
    idempotency_key: str = "",
) -> PreparedRequest:
    """The request of one call.

    `tokens` are the OAuth2 access tokens by scheme name, `literals` the decimals as they were written, by JSON
    pointer. An `idempotency_key` is sent as the header `Idempotency-Key`.

    Raises:
        InvalidArguments: `missing_argument`, `unknown_argument`, or `invalid_argument` for a value that cannot be sent.
        MissingKey: the API requires a secret that is not configured.
        ToolDefinitionError: neither the document nor the settings name a server.
    """
    values = _complete_arguments(operation, apply_literals(args, literals) if literals else args, source)
    secrets = credentials(operation, choose_alternative(operation, source), source, tokens or {})
    encoded = _EncodedParameters()
    for parameter in operation.parameters:
        if parameter.arg in values and values[parameter.arg] is not None:
            encoded.take(parameter, values[parameter.arg], is_secret=parameter.name in source.secrets)
    base = server_of(operation, source)
    path = _fill_path(operation.path, encoded.path)
    body = encode_body(operation.body, values) if operation.body is not None else None
    headers = _Headers({name: check_header(f"headers.{name}", value) for name, value in source.headers.items()})
    headers.set(encoded.headers)
    if body is not None:
        headers.set({"Content-Type": check_header("body", body.content_type)})
    if idempotency_key:
        headers.set({"Idempotency-Key": check_header("idempotency_key", idempotency_key)})
    headers.set(secrets.headers)
    headers.add_cookies([*encoded.cookies, *secrets.cookies])
    query = "&".join([*encoded.query, *secrets.query])
    url = f"{base}{path}"
    return PreparedRequest(
        method=operation.method,
        url=f"{url}{'&' if '?' in url else '?'}{query}" if query else url,
        headers=headers.all,
        body=None if body is None else body.data,
        timeout_s=source.timeout_s,
        safe_url=f"{base}{_fill_path(operation.path, {**encoded.path, **encoded.secret_path})}".partition("?")[0],
    )


def server_of(operation: Operation, source: OpenapiSource) -> str:
    """The base URL of the API, without a trailing slash.

    Raises:
        ToolDefinitionError: neither the document nor the settings name one.
    """
    base = source.base_url or (operation.servers[0] if operation.servers else "")
    parts = urlsplit(base)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        text = TEXTS.run_text("bad_server" if base else "no_server", tool=operation.name, url=base)
        raise ToolDefinitionError(text, hint=TEXTS.run_text("no_server_hint"))
    return base.partition("?")[0].partition("#")[0].rstrip("/")


class _Headers:
    """Headers with unique names: a later one replaces an earlier one, regardless of case."""

    def __init__(self, first: Mapping[str, str]) -> None:
        self.all = dict(first)

    def set(self, more: Mapping[str, str]) -> None:
        for name, value in more.items():
            for same in [existing for existing in self.all if existing.lower() == name.lower()]:
                del self.all[same]
            self.all[name] = value

    def add_cookies(self, pairs: Sequence[str]) -> None:
        if pairs:
            existing = [value for name, value in self.all.items() if name.lower() == "cookie"]
            self.set({"Cookie": "; ".join([*existing, *pairs])})


class _EncodedParameters:
    """The encoded parameters by location."""

    def __init__(self) -> None:
        self.path: dict[str, str] = {}
        self.secret_path: dict[str, str] = {}
        self.query: list[str] = []
        self.headers: dict[str, str] = {}
        self.cookies: list[str] = []

    def take(self, parameter: Parameter, value: Any, *, is_secret: bool) -> None:
        if parameter.location == "path":
            self.path[parameter.name] = path_text(parameter, value)
            if is_secret:
                self.secret_path[parameter.name] = "[secret]"
        elif parameter.location == "query":
            self.query += query_pairs(parameter, value)
        elif parameter.location == "cookie":
            self.cookies += cookie_pairs(parameter, value)
        else:
            if not is_header_name(parameter.name):
                raise unsendable_argument(parameter.arg, "header_name", name=parameter.name)
            self.headers[parameter.name] = header_text(parameter, value)


def _complete_arguments(operation: Operation, args: Mapping[str, Any], source: OpenapiSource) -> dict[str, Any]:
    """The arguments with secrets and defaults filled in.

    Raises:
        InvalidArguments: one is missing or unknown.
    """
    body = operation.body
    known = {parameter.arg: parameter.name for parameter in operation.parameters}
    if body is not None:
        known |= {body.whole_arg: ""} if body.whole_arg else dict(body.args)
    for name in args:
        if name not in known or known[name] in source.secrets:
            names = ", ".join(arg for arg, wire_name in known.items() if wire_name not in source.secrets)
            raise InvalidArguments(
                TEXTS.run_text("unknown_argument", tool=operation.name, name=name),
                code="unknown_argument",
                hint=TEXTS.run_text("unknown_argument_hint", names=names),
            )
    values = dict(args)
    values |= {arg: source.secrets[wire] for arg, wire in known.items() if wire in source.secrets}
    if source.fill_defaults:
        values = {**_schema_defaults(operation), **values}
    for arg in _required_arguments(operation, source, values):
        if values.get(arg) is None and not (body is not None and arg in values and arg in (body.whole_arg, *body.args)):
            raise InvalidArguments(
                TEXTS.run_text("missing_argument", tool=operation.name, name=arg),
                code="missing_argument",
                hint=TEXTS.run_text("missing_argument_hint", name=arg),
            )
    return values


def _is_operator_supplied(parameter: Parameter, operation: Operation, source: OpenapiSource) -> bool:
    """Whether an operator header or a security scheme supplies a parameter, so that it has no argument."""
    if parameter.location == "header" and parameter.name.lower() in {name.lower() for name in source.headers}:
        return True
    schemes = (scheme for scheme in operation.schemes.values() if scheme.kind == "api_key")
    return any((scheme.location, scheme.key) == (parameter.location, parameter.name) for scheme in schemes)


def _required_arguments(operation: Operation, source: OpenapiSource, values: Mapping[str, Any]) -> list[str]:
    needed = (parameter for parameter in operation.parameters if parameter.required or parameter.location == "path")
    names = [parameter.arg for parameter in needed if not _is_operator_supplied(parameter, operation, source)]
    body = operation.body
    if body is None:
        return names
    if body.whole_arg:
        return [*names, body.whole_arg] if body.required else names
    if body.required or any(arg in values and name not in source.secrets for arg, name in body.args.items()):
        flat = flatten_object(body.schema)
        required = flat.required if flat is not None else resolve_schema(body.schema, body.schema).get("required", ())
        names += [arg for arg, name in body.args.items() if name in required]
    return names


def _schema_defaults(operation: Operation) -> dict[str, Any]:
    defaults: dict[str, Any] = {}
    for parameter in operation.parameters:
        rule = resolve_schema(parameter.schema, parameter.schema)
        if rule.get("default") is not None:
            defaults[parameter.arg] = rule["default"]
    if operation.body is not None:
        flat = flatten_object(operation.body.schema)
        properties = flat.properties if flat is not None else {}
        for arg, name in operation.body.args.items():
            rule = resolve_schema(properties.get(name, {}), operation.body.schema)
            if rule.get("default") is not None:
                defaults[arg] = rule["default"]
    return defaults


def _fill_path(template: str, values: Mapping[str, str]) -> str:
    """The path with its placeholders filled in; no value can turn it into another path."""
    pieces: list[str] = []
    end = 0
    for match in _PLACEHOLDER.finditer(template):
        pieces.append(quote(template[end : match.start()], safe=_PATH_SAFE))
        name = match.group(1)
        if name not in values:
            raise InvalidArguments(TEXTS.run_text("path_variable", path=template, name=name), code="missing_argument")
        pieces.append(values[name])
        end = match.end()
    pieces.append(quote(template[end:], safe=_PATH_SAFE))
    path = "".join(pieces)
    if values:
        for step in path.partition("?")[0].split("/"):
            if step in (".", ".."):
                check_path_value("path", step)
    return path if path.startswith("/") else f"/{path}"
