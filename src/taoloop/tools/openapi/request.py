"""Build the HTTP request for an operation and its arguments, with its body. Pure: nothing is sent here.

A body is JSON, a form, multipart, text or bytes. A model passes a file as text: the text itself is sent, in UTF-8, or
the bytes of a `data:` URL.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from taoloop.errors import InvalidArguments, ToolDefinitionError, ToolError
from taoloop.tools.openapi.credentials import RequestParts, carries_secret, choose_alternative, credentials
from taoloop.tools.openapi.names import FlatObject, flatten_object, is_header_name
from taoloop.tools.openapi.operation import Body, DeepLists, Encoding, Operation, Parameter
from taoloop.tools.openapi.settings import OpenapiSource, is_http_url
from taoloop.tools.openapi.texts import TEXTS
from taoloop.tools.openapi.value_encoding import (
    apply_literals,
    check_header,
    check_path_value,
    cookie_pairs,
    deep_pairs,
    header_text,
    join_items,
    path_text,
    query_pairs,
    styled_pairs,
    text_of,
    to_json,
    unsendable_argument,
)
from taoloop.tools.texts import TEXTS as TOOL_TEXTS

_PLACEHOLDER = re.compile(r"\{([^{}/]*)\}")
_CHARSET = re.compile(r";\s*charset\s*=\s*(?:\"[^\"]*\"|[^;]*)", re.IGNORECASE)
_PATH_SAFE = "/:@!$&'()*+,;=~%?"


class EncodedBody(NamedTuple):
    """An encoded request body."""

    data: bytes
    """The bytes to send."""
    content_type: str
    """The value of `Content-Type`."""


def encode_body(body: Body, args: Mapping[str, Any], deep_lists: DeepLists = "indices") -> EncodedBody | None:
    """The body for the arguments of a call; None if there is none and none is required.

    `deep_lists`: how a form encodes lists in the style `deepObject`.

    Raises:
        InvalidArguments: a value cannot be sent in this media type.
    """
    if body.whole_arg:
        if args.get(body.whole_arg) is None and (body.whole_arg not in args or body.kind != "json"):
            return None
        value = args[body.whole_arg]
    else:
        value = {name: args[arg] for arg, name in body.args.items() if arg in args}
        if not value and not body.required:
            return None
    if body.kind == "form":
        return _encode_form(body, value, deep_lists)
    return _ENCODERS[body.kind](body, value)


def _encode_json(body: Body, value: Any) -> EncodedBody:
    return EncodedBody(to_json(value).encode(), body.media_type)


def _encode_form(body: Body, value: Any, deep_lists: DeepLists) -> EncodedBody:
    if isinstance(value, str):  # the schema of the whole body is a text: it is encoded already
        return EncodedBody(value.encode(), body.media_type)
    pairs: list[str] = []
    for name, inner in _form_fields(body, value):
        encoding = body.encodings.get(name)
        if encoding is None:
            pairs += styled_pairs(name, to_json(inner) if isinstance(inner, Mapping) else inner, "form", True)
        elif "json" in encoding.content_type:
            pairs += styled_pairs(name, to_json(inner), "form", True)
        elif encoding.style == "deepObject":
            pairs += deep_pairs(name, inner, deep_lists)
        else:
            pairs += styled_pairs(name, inner, encoding.style, encoding.explode)
    return EncodedBody("&".join(pairs).encode(), body.media_type)


def _encode_multipart(body: Body, value: Any) -> EncodedBody:
    parts: list[tuple[str, bytes]] = []
    members = _members(body.schema)
    for name, inner in _form_fields(body, value):
        rule = resolve_schema(members.properties.get(name, {}), body.schema)
        encoding = body.encodings.get(name, Encoding())
        if isinstance(inner, list) and "json" not in encoding.content_type:
            items = resolve_schema(rule.get("items", {}), body.schema)
            field_value = inner if encoding.explode else [join_items(inner, encoding.style)]
            parts += [_encode_part(name, item, items, encoding) for item in field_value]
        else:
            parts.append(_encode_part(name, inner, rule, encoding))
    boundary = hashlib.sha256(b"".join(head.encode() + data for head, data in parts)).hexdigest()[:32]
    joined = b"".join(b"--%b\r\n%b\r\n\r\n%b\r\n" % (boundary.encode(), head.encode(), data) for head, data in parts)
    media_type = body.media_type.partition(";")[0] if "*" not in body.media_type else "multipart/form-data"
    return EncodedBody(joined + f"--{boundary}--\r\n".encode(), f"{media_type}; boundary={boundary}")


def _encode_part(name: str, value: Any, rule: Mapping[str, Any], encoding: Encoding) -> tuple[str, bytes]:
    disposition = f'form-data; name="{_quote_parameter(name)}"'
    content_type = encoding.content_type.partition(",")[0].strip()
    is_file = _is_file(rule) or (isinstance(value, str) and content_type not in ("", "text/plain", "application/json"))
    if is_file and isinstance(value, str):
        data, data_type = decode_file(name, value)
        disposition += f'; filename="{_quote_parameter(name)}"'
        kind = data_type or content_type or "application/octet-stream"
    elif isinstance(value, Mapping | list) or "json" in content_type:
        data, kind = to_json(value).encode(), content_type or "application/json"
    else:
        data, kind = text_of(value).encode(), content_type
    lines = [f"Content-Disposition: {disposition}"]
    if kind and "*" not in kind:
        lines.append(f"Content-Type: {check_header(name, kind)}")
    return "\r\n".join(lines), data


def _encode_text(body: Body, value: Any) -> EncodedBody:
    media_type = body.media_type if "*" not in body.media_type else "text/plain"
    has_charset = media_type.lower().startswith("text/") or "xml" in media_type.lower()
    if _CHARSET.search(media_type):  # the bytes are UTF-8, whatever the document declares
        media_type = _CHARSET.sub("; charset=utf-8", media_type)
    elif has_charset:
        media_type = f"{media_type}; charset=utf-8"
    return EncodedBody(text_of(value).encode(), media_type)


def _encode_binary(body: Body, value: Any) -> EncodedBody:
    data, data_type = decode_file(body.whole_arg, text_of(value))
    return EncodedBody(data, body.media_type if "*" not in body.media_type else data_type or "application/octet-stream")


_ENCODERS = {
    "json": _encode_json,
    "multipart": _encode_multipart,
    "text": _encode_text,
    "binary": _encode_binary,
}


def decode_file(arg: str, text: str) -> tuple[bytes, str]:
    """The bytes of a file argument, and its media type (may be empty).

    Raises:
        InvalidArguments: it begins like a `data:` URL but is not valid.
    """
    if not text.startswith("data:") or "," not in text[:200]:
        return text.encode(), ""
    head, _, payload = text.removeprefix("data:").partition(",")
    media_type, *attributes = head.split(";")
    media_type = check_header(arg, media_type)
    if "base64" not in [attribute.strip().lower() for attribute in attributes]:
        return unquote_to_bytes(payload), media_type
    try:
        return base64.b64decode("".join(payload.split()), validate=True), media_type
    except (binascii.Error, ValueError):
        raise unsendable_argument(arg, "data_url") from None


def _form_fields(body: Body, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise unsendable_argument(body.whole_arg or "body", "form_object")
    return [(str(name), inner) for name, inner in value.items() if inner is not None]


def _members(schema: Mapping[str, Any]) -> FlatObject:
    """The members of the schema of a body, even if it is not only an object."""
    flat = flatten_object(schema)
    if flat is None:
        rule = resolve_schema(schema, schema)
        flat = FlatObject(rule.get("properties", {}), tuple(rule.get("required", ())))
    return flat


def resolve_schema(rule: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with its references into the `$defs` of `root` resolved; empty if one leads nowhere."""
    for _ in range(16):
        if not isinstance(rule, Mapping) or "$ref" not in rule:
            break
        rule = root.get("$defs", {}).get(str(rule["$ref"]).removeprefix("#/$defs/"))
    return rule if isinstance(rule, Mapping) else {}


def _is_file(rule: Mapping[str, Any]) -> bool:
    return rule.get("format") == "binary" or "contentMediaType" in rule or rule.get("type") == "file"


def _quote_parameter(name: str) -> str:
    """A name for use between quotes in a header, escaped as browsers do it."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


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
    """The URL for messages: without the query, and without values from secrets; only its path where the settings hide
    the server."""


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
    variables, parts = _encode_parameters(operation, values, source)
    safe_variables = {name: "[secret]" if name in source.secrets else text for name, text in variables.items()}
    base = server_of(operation, source)
    url = base + _fill_path(operation.path, variables)
    body = encode_body(operation.body, values, source.deep_lists) if operation.body is not None else None
    headers = {name: check_header(f"headers.{name}", value, is_secret=True) for name, value in source.headers.items()}
    client_headers = {}
    if body is not None:
        client_headers["Content-Type"] = check_header("body", body.content_type)
    if idempotency_key:
        client_headers["Idempotency-Key"] = check_header("idempotency_key", idempotency_key)
    query = "&".join([*parts.query, *secrets.query])
    cookies = [*parts.cookies, *secrets.cookies]
    return PreparedRequest(
        method=operation.method,
        url=f"{url}{'&' if '?' in url else '?'}{query}" if query else url,
        headers=_merge_headers([headers, parts.headers, client_headers, secrets.headers], cookies),
        body=None if body is None else body.data,
        timeout_s=source.timeout_s,
        safe_url=(("" if source.hide_server else base) + _fill_path(operation.path, safe_variables)).partition("?")[0],
    )


def server_of(operation: Operation, source: OpenapiSource) -> str:
    """The base URL of the API, without a trailing slash.

    Raises:
        ToolDefinitionError: neither the document nor the settings name one.
    """
    base = next(iter(operation.servers), "")
    if not base.startswith(source.base_url):  # else it is `base_url`, which a path of the document may complete
        base = source.base_url
    if not is_http_url(base):
        raise TEXTS.run_error(ToolDefinitionError, "no_server", {"tool": operation.name})
    return base.partition("?")[0].partition("#")[0].rstrip("/")


def _merge_headers(layers: Iterable[Mapping[str, str]], cookies: Sequence[str]) -> dict[str, str]:
    """Headers with unique names: a later one replaces an earlier one, regardless of case. Cookies are added."""
    merged = {name.lower(): (name, value) for layer in layers for name, value in layer.items()}
    if cookies:
        _, existing = merged.pop("cookie", ("Cookie", ""))
        merged["cookie"] = "Cookie", "; ".join([existing, *cookies] if existing else cookies)
    return dict(merged.values())


def _encode_parameters(
    operation: Operation, values: Mapping[str, Any], source: OpenapiSource
) -> tuple[dict[str, str], RequestParts]:
    """The variables of the path, and the other parts of the request, for the parameters that have a value."""
    variables, parts = dict[str, str](), RequestParts()
    for parameter in operation.parameters:
        value = values.get(parameter.arg)
        if value is None:
            continue
        if parameter.location == "path":
            variables[parameter.name] = path_text(parameter, value)
        elif parameter.location == "query":
            parts.query += query_pairs(parameter, value, source.deep_lists)
        elif parameter.location == "cookie":
            parts.cookies += cookie_pairs(parameter, value)
        elif is_header_name(parameter.name):
            parts.headers[parameter.name] = header_text(parameter, value, is_secret=parameter.name in source.secrets)
        else:
            raise unsendable_argument(parameter.arg, "header_name", name=parameter.name)
    return variables, parts


def _complete_arguments(operation: Operation, args: Mapping[str, Any], source: OpenapiSource) -> dict[str, Any]:
    """The arguments with secrets and defaults filled in.

    Raises:
        InvalidArguments: one is missing or unknown.
    """
    body = operation.body
    known = {parameter.arg: parameter.name for parameter in operation.parameters}
    if body is not None:
        known |= {body.whole_arg: ""} if body.whole_arg else dict(body.args)
    names = [arg for arg, wire_name in known.items() if wire_name not in source.secrets]
    if unknown := [name for name in args if name not in names]:
        raise _argument_error("unknown", operation, unknown[0], names)
    values = dict(args)
    values |= {arg: source.secrets[wire] for arg, wire in known.items() if wire in source.secrets}
    if source.fill_defaults:
        values = {**_schema_defaults(operation), **values}
    body_args = () if body is None else (body.whole_arg, *body.args)
    for arg in _required_arguments(operation, source, values):
        if values.get(arg) is None and not (arg in values and arg in body_args):
            raise _argument_error("missing", operation, arg, names)
    return values


def _argument_error(
    problem: Literal["unknown", "missing"], operation: Operation, name: str, names: Sequence[str]
) -> ToolError:
    values: dict[str, Any] = {"tool": operation.name, "problems": TOOL_TEXTS.run_text(problem, name=name)}
    expected = TOOL_TEXTS.run_text("expected", form=", ".join(names))
    return TOOL_TEXTS.error("arguments", f"{problem}_argument", error_type=InvalidArguments, hint=expected, **values)


def is_operator_supplied(parameter: Parameter, operation: Operation, source: OpenapiSource) -> bool:
    """Whether the settings supply a parameter, as a secret, a header or by a security scheme: it has no argument."""
    headers = {name.lower() for name in source.headers}
    is_header = parameter.location == "header"
    return (
        parameter.name in source.secrets
        or (is_header and parameter.name.lower() in headers)
        or any(carries_secret(parameter, scheme, source) for scheme in operation.schemes.values())
    )


def _required_arguments(operation: Operation, source: OpenapiSource, values: Mapping[str, Any]) -> list[str]:
    needed = (parameter for parameter in operation.parameters if parameter.required or parameter.location == "path")
    names = [parameter.arg for parameter in needed if not is_operator_supplied(parameter, operation, source)]
    body = operation.body
    if body is None:
        return names
    if body.whole_arg:
        return [*names, body.whole_arg] if body.required else names
    if body.required or any(arg in values and name not in source.secrets for arg, name in body.args.items()):
        required = _members(body.schema).required
        names += [arg for arg, name in body.args.items() if name in required]
    return names


def _schema_defaults(operation: Operation) -> dict[str, Any]:
    rules = [(parameter.arg, resolve_schema(parameter.schema, parameter.schema)) for parameter in operation.parameters]
    if (body := operation.body) is not None:
        properties = _members(body.schema).properties
        rules += [(arg, resolve_schema(properties.get(name, {}), body.schema)) for arg, name in body.args.items()]
    return {arg: rule["default"] for arg, rule in rules if rule.get("default") is not None}


def _fill_path(template: str, values: Mapping[str, str]) -> str:
    """The path with its placeholders filled in; no value can turn it into another path."""
    pieces = _PLACEHOLDER.split(template)  # names are between the other pieces
    for index, piece in enumerate(pieces):
        if index % 2 and piece not in values:
            raise TEXTS.error(
                "path_variable", "missing_argument", error_type=InvalidArguments, path=template, name=piece
            )
        pieces[index] = values[piece] if index % 2 else quote(piece, safe=_PATH_SAFE)
    path = "".join(pieces)
    if values:
        for step in path.partition("?")[0].split("/"):
            if step in (".", ".."):
                check_path_value("path", step)
    return path if path.startswith("/") else f"/{path}"
