"""Addresses as texts, the way all parts of egress read them, and what is read of an answer's head.

Imported at the first request; it needs httpx2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import httpx2

from taoloop.errors import EgressFailed, EgressRefused
from taoloop.tools.egress.addresses import read_host
from taoloop.tools.egress.rules import USUAL_PORTS

_NAME = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(rb"(?:[^\x00\s]+(?:[ \t]+[^\x00\s]+)*)?")


def read_url(text: str) -> httpx2.URL:
    """An address of http or https as requests use it: no fragment, its host as it is looked up.

    Raises:
        EgressRefused: it is none, has a user in it, or reads differently from program to program.
    """
    try:
        url = httpx2.URL(without_backslash(text).strip())
        if url.scheme not in USUAL_PORTS:
            raise ValueError(
                f"the scheme {url.scheme[:20]!r} is not http or https" if url.scheme else "it has no scheme"
            )
        host, _ = read_host(url.raw_host.decode("ascii")), port_of(url)
        if host is None:
            raise ValueError(f"{url.host[:60]!r} is no host" if url.host else "it has no host")
        if url.userinfo:
            raise no_user()
        return url.copy_with(host=host, fragment=None) if host != url.host or url.fragment else url
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise EgressRefused(
            f"This is no usable address: {str(error)[:200]}.",
            code="bad_url",
            hint="Give a whole address such as https://example.com/page.",
        ) from error


def place_of(url: httpx2.URL) -> str:
    """Host and port of an address, for messages: no path, for it may hold what is secret."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{host}:{url.port or USUAL_PORTS.get(url.scheme, 0)}"


def port_of(url: httpx2.URL) -> int:
    """The port of an address, written out or that of its scheme; ValueError for what is no port."""
    port = url.port if url.port is not None else USUAL_PORTS.get(url.scheme, 0)
    if not 0 < port < 65536 and url.scheme in USUAL_PORTS:
        raise ValueError(f"{port} is no port")
    return port


def without_backslash(text: str) -> str:
    """The text of an address; ValueError where a backslash makes programs see different hosts in it."""
    if "\\" in text:
        raise ValueError("it has a backslash, which programs read differently")
    return text


def media_type(headers: httpx2.Headers) -> str:
    """The media type that headers name, in lower case and without parameters; empty if none."""
    kind: str = headers.get("content-type", "")
    return kind.partition(";")[0].partition(",")[0].strip().lower()  # a header that came twice is joined by commas


def require_sendable(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse headers that HTTP cannot carry, before a library says so with their values, which may be secret.

    Raises:
        EgressFailed: names the header.
    """
    for name, value in headers:
        if not _NAME.fullmatch(name):
            raise unsendable(f"{name.decode('latin-1')[:60]!r} is no name of a header")
        if not _VALUE.fullmatch(value):
            raise unsendable(
                f"the header {name.decode('ascii')[:60]!r} begins or ends with white space or has a line break in it"
            )


def unsendable(why: str) -> EgressFailed:
    """The error for a request that HTTP cannot carry."""
    return EgressFailed(
        f"The request was not sent: {why}.",
        code="http_broken",
        hint="Whoever set this tool up has to change that.",
        was_sent=False,
    )


def no_user() -> EgressRefused:
    """The error for an address with a user in it: it hides the host from readers, and a password from nobody."""
    return EgressRefused(
        "This is no usable address: it has a user or a password in it.",
        code="bad_url",
        hint="Leave out what stands before the @.",
    )


def reason_of(error: BaseException) -> str:
    """What the system said, from the innermost cause that says something."""
    said = ""
    inner: BaseException | None = error
    while inner is not None:
        said = (getattr(inner, "strerror", None) or str(inner) or said)[:200]
        inner = inner.__cause__
    return said.rstrip(".") or type(error).__name__
