"""From an operation and arguments to the HTTP request that goes out. Pure: nothing is sent here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from taoloop.errors import InvalidArguments, ToolDefinitionError
from taoloop.tools.openapi.document.operation import Operation, Parameter
from taoloop.tools.openapi.http.credentials import chosen_alternative, credentials
from taoloop.tools.openapi.http.json_numbers import with_literals
from taoloop.tools.openapi.http.parameter_styles import (
    cookie_pairs,
    header_safe,
    header_text,
    path_text,
    query_pairs,
    refuse_path_value,
    refused,
)
from taoloop.tools.openapi.http.request_body import resolved, write_body
from taoloop.tools.openapi.names import is_header_name
from taoloop.tools.openapi.schema.flattening import plain_object
from taoloop.tools.openapi.settings import OpenapiSource

_HOLE = re.compile(r"\{([^{}/]*)\}")
_IN_PATH = "/:@!$&'()*+,;=~%?"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRequest:
    """A request as it goes out. `url` is finished: every value in it is escaped. `timeout_s` is its time limit.

    `shown` is the URL as it may be told: without the query, and without values from secrets.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    timeout_s: float
    shown: str = ""

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

    `tokens` are those of OAuth2 by the name of their scheme, `literals` the decimals as they were written by JSON
    pointer. An `idempotency_key` is sent as the header `Idempotency-Key`.

    Raises:
        InvalidArguments: `missing_argument`, `unknown_argument`, or `invalid_argument` for a value that cannot be sent.
        MissingKey: the API asks for a secret that is not configured.
        ToolDefinitionError: nobody said where the API lives.
    """
    given = _given(operation, with_literals(args, literals) if literals else args, source)
    secret = credentials(operation, chosen_alternative(operation, source), source, tokens or {})
    parts = _Parts()
    for parameter in operation.parameters:
        if parameter.arg in given and given[parameter.arg] is not None:
            parts.take(parameter, given[parameter.arg], is_secret=parameter.name in source.secrets)
    base = server_of(operation, source)
    path = _path(operation.path, parts.path)
    body = write_body(operation.body, given) if operation.body is not None else None
    headers = _Headers({name: header_safe(f"headers.{name}", value) for name, value in source.headers.items()})
    headers.put(parts.headers)
    if body is not None:
        headers.put({"Content-Type": header_safe("body", body.content_type)})
    if idempotency_key:
        headers.put({"Idempotency-Key": header_safe("idempotency_key", idempotency_key)})
    headers.put(secret.headers)
    headers.add_cookies([*parts.cookies, *secret.cookies])
    query = "&".join([*parts.query, *secret.query])
    url = f"{base}{path}"
    return PreparedRequest(
        method=operation.method,
        url=f"{url}{'&' if '?' in url else '?'}{query}" if query else url,
        headers=headers.all,
        body=None if body is None else body.data,
        timeout_s=source.timeout_s,
        shown=f"{base}{_path(operation.path, {**parts.path, **parts.secret_path})}".partition("?")[0],
    )


def server_of(operation: Operation, source: OpenapiSource) -> str:
    """Where the API lives, without a slash at the end.

    Raises:
        ToolDefinitionError: neither the document nor the configuration says so.
    """
    base = source.base_url or (operation.servers[0] if operation.servers else "")
    parts = urlsplit(base)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        problem = f"its server is {base!r}, which is no http(s) address" if base else "its document names no server"
        raise ToolDefinitionError(
            f"{operation.name!r} cannot be called: {problem}.",
            hint="Set `base_url` for this API. Nothing was sent.",
        )
    return base.partition("?")[0].partition("#")[0].rstrip("/")


class _Headers:
    """Headers by name, each once: a later one takes the place of an earlier one, whatever its case."""

    def __init__(self, first: Mapping[str, str]) -> None:
        self.all = dict(first)

    def put(self, more: Mapping[str, str]) -> None:
        for name, value in more.items():
            for same in [one for one in self.all if one.lower() == name.lower()]:
                del self.all[same]
            self.all[name] = value

    def add_cookies(self, pairs: Sequence[str]) -> None:
        if pairs:
            had = [value for name, value in self.all.items() if name.lower() == "cookie"]
            self.put({"Cookie": "; ".join([*had, *pairs])})


class _Parts:
    """What the parameters come to, by place."""

    def __init__(self) -> None:
        self.path: dict[str, str] = {}
        self.secret_path: dict[str, str] = {}
        self.query: list[str] = []
        self.headers: dict[str, str] = {}
        self.cookies: list[str] = []

    def take(self, parameter: Parameter, value: Any, *, is_secret: bool) -> None:
        if parameter.place == "path":
            self.path[parameter.name] = path_text(parameter, value)
            if is_secret:
                self.secret_path[parameter.name] = "[secret]"
        elif parameter.place == "query":
            self.query += query_pairs(parameter, value)
        elif parameter.place == "cookie":
            self.cookies += cookie_pairs(parameter, value)
        else:
            if not is_header_name(parameter.name):
                raise refused(parameter.arg, f"{parameter.name!r} cannot be the name of a header")
            self.headers[parameter.name] = header_text(parameter, value)


def _given(operation: Operation, args: Mapping[str, Any], source: OpenapiSource) -> dict[str, Any]:
    """The arguments with secrets and defaults filled in, every required one there and no unknown one."""
    body = operation.body
    known = {one.arg: one.name for one in operation.parameters}
    if body is not None:
        known |= {body.whole: ""} if body.whole else dict(body.args)
    for name in args:
        if name not in known or known[name] in source.secrets:
            raise InvalidArguments(
                f"{operation.name!r} has no argument {name!r}.",
                code="unknown_argument",
                hint=f"Its arguments are: {', '.join(a for a, wire in known.items() if wire not in source.secrets)}.",
            )
    given = dict(args)
    given |= {arg: source.secrets[wire] for arg, wire in known.items() if wire in source.secrets}
    if source.fill_defaults:
        given = {**_defaults(operation), **given}
    for arg in _required(operation, source, given):
        if given.get(arg) is None and not (body is not None and arg in given and arg in (body.whole, *body.args)):
            raise InvalidArguments(
                f"{operation.name!r} needs the argument {arg!r}; nothing was sent.",
                code="missing_argument",
                hint=f"Call it again with {arg!r}.",
            )
    return given


def _is_filled(parameter: Parameter, operation: Operation, source: OpenapiSource) -> bool:
    """Whether a header of the operator or a security scheme stands for a parameter, which has no argument then."""
    if parameter.place == "header" and parameter.name.lower() in {name.lower() for name in source.headers}:
        return True
    schemes = (one for one in operation.schemes.values() if one.kind == "api_key")
    return any((one.place, one.key) == (parameter.place, parameter.name) for one in schemes)


def _required(operation: Operation, source: OpenapiSource, given: Mapping[str, Any]) -> list[str]:
    needed = (one for one in operation.parameters if one.required or one.place == "path")
    names = [one.arg for one in needed if not _is_filled(one, operation, source)]
    body = operation.body
    if body is None:
        return names
    if body.whole:
        return [*names, body.whole] if body.required else names
    if body.required or any(arg in given and name not in source.secrets for arg, name in body.args.items()):
        flat = plain_object(body.schema)
        wanted = flat.required if flat is not None else resolved(body.schema, body.schema).get("required", ())
        names += [arg for arg, name in body.args.items() if name in wanted]
    return names


def _defaults(operation: Operation) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for one in operation.parameters:
        rule = resolved(one.schema, one.schema)
        if rule.get("default") is not None:
            made[one.arg] = rule["default"]
    if operation.body is not None:
        flat = plain_object(operation.body.schema)
        properties = flat.properties if flat is not None else {}
        for arg, name in operation.body.args.items():
            rule = resolved(properties.get(name, {}), operation.body.schema)
            if rule.get("default") is not None:
                made[arg] = rule["default"]
    return made


def _path(template: str, values: Mapping[str, str]) -> str:
    """The path with its holes filled; what stands there leads nowhere else."""
    pieces: list[str] = []
    end = 0
    for hole in _HOLE.finditer(template):
        pieces.append(quote(template[end : hole.start()], safe=_IN_PATH))
        name = hole.group(1)
        if name not in values:
            raise InvalidArguments(
                f"The path {template!r} has a place for {name!r}, which is no parameter of the operation.",
                code="missing_argument",
            )
        pieces.append(values[name])
        end = hole.end()
    pieces.append(quote(template[end:], safe=_IN_PATH))
    path = "".join(pieces)
    if values:
        for step in path.partition("?")[0].split("/"):
            if step in (".", ".."):
                refuse_path_value("path", step)
    return path if path.startswith("/") else f"/{path}"
