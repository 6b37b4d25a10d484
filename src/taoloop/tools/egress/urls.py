"""Parsing of URLs and checks of headers, the same for all parts of egress.

Imported at the first request; it needs httpx2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import httpx2

from taoloop.errors import EgressFailed, EgressRefused
from taoloop.tools.egress.addresses import normalise_host
from taoloop.tools.egress.rules import DEFAULT_PORTS
from taoloop.tools.egress.texts import TEXTS

_NAME = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(rb"(?:[^\x00\s]+(?:[ \t]+[^\x00\s]+)*)?")


def parse_url(text: str) -> httpx2.URL:
    """An http(s) URL as requests use it: without fragment, its host as it is looked up.

    Raises:
        EgressRefused: it is not valid, contains a user, or can be interpreted differently by different programs.
    """
    try:
        url = httpx2.URL(refuse_backslash(text).strip())
        if url.scheme not in DEFAULT_PORTS:
            scheme = url.scheme[:20]
            raise ValueError(TEXTS.run_text("not_http" if scheme else "no_scheme", scheme=scheme))
        host, _ = normalise_host(url.raw_host.decode("ascii")), port_of(url)
        if host is None:
            raise ValueError(TEXTS.run_text("not_a_host" if url.host else "no_host", host=url.host[:60]))
        if url.userinfo:
            raise userinfo_error()
        return url.copy_with(host=host, fragment=None) if host != url.host or url.fragment else url
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        text = TEXTS.run_text("bad_url", reason=str(error)[:200])
        raise EgressRefused(text, code="bad_url", hint=TEXTS.run_text("bad_url_hint")) from error


def host_and_port(url: httpx2.URL) -> str:
    """Host and port of a URL, for messages: without the path, which may contain secrets."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{host}:{url.port or DEFAULT_PORTS.get(url.scheme, 0)}"


def port_of(url: httpx2.URL) -> int:
    """The port of a URL, or the default port of its scheme.

    Raises:
        ValueError: it is not valid.
    """
    port = url.port if url.port is not None else DEFAULT_PORTS.get(url.scheme, 0)
    if not 0 < port < 65536 and url.scheme in DEFAULT_PORTS:
        raise ValueError(TEXTS.run_text("not_a_port", port=port))
    return port


def refuse_backslash(text: str) -> str:
    """The text of a URL.

    Raises:
        ValueError: it contains a backslash, so programs may see different hosts in it.
    """
    if "\\" in text:
        raise ValueError(TEXTS.run_text("backslash"))
    return text


def require_sendable(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse headers that HTTP cannot carry, before a library reports them with their values, which may be secret.

    Raises:
        EgressFailed: names the header.
    """
    for name, value in headers:
        if not _NAME.fullmatch(name):
            raise unsendable_request(TEXTS.run_text("not_a_header", name=name.decode("latin-1")[:60]))
        if not _VALUE.fullmatch(value):
            raise unsendable_request(TEXTS.run_text("header_whitespace", name=name.decode("ascii")[:60]))


def unsendable_request(reason: str) -> EgressFailed:
    """The error for a request that HTTP cannot carry."""
    return EgressFailed(
        TEXTS.run_text("unsendable", reason=reason),
        code="http_broken",
        hint=TEXTS.run_text("unsendable_hint"),
        was_sent=False,
    )


def userinfo_error() -> EgressRefused:
    """The error for a URL with a user, which obscures the host and exposes the password."""
    text = TEXTS.run_text("bad_url", reason=TEXTS.run_text("userinfo"))
    return EgressRefused(text, code="bad_url", hint=TEXTS.run_text("userinfo_hint"))


def root_reason(error: BaseException) -> str:
    """The message of the innermost cause that has one."""
    reason = ""
    inner: BaseException | None = error
    while inner is not None:
        reason = (getattr(inner, "strerror", None) or str(inner) or reason)[:200]
        inner = inner.__cause__
    return reason.rstrip(".") or type(error).__name__
