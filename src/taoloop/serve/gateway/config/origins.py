"""Origins of web pages: as an operator writes them, as browsers send them, and which may set agents to work. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from yarl import URL

from taoloop.errors import ConfigError
from taoloop.serve.gateway.errors import DENIED, ApiError, ApiErrorRaised

ANY = "*"
"""Every page of every site."""

_WRITTEN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[^\s/?#@:*\[\]]+)(:\d+)?", re.IGNORECASE)
_MAX_CHARS = 300


def origins_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Each of them as browsers send it, once.

    Raises:
        ConfigError: one is no origin; says what it should be.
    """
    return tuple(dict.fromkeys(map(origin_of, texts)))


def origin_of(text: str) -> str:
    """An origin as browsers send it: in small letters, without the usual port, other scripts in Punycode.

    Raises:
        ConfigError: it is none; says what it should be.
    """
    if text == ANY:
        return text
    if len(text) <= _MAX_CHARS and _WRITTEN.fullmatch(text):
        try:
            return str(URL(text).origin())
        except ValueError:  # a port or a host that cannot be
            pass
    raise ConfigError(f"{text[:_MAX_CHARS]!r} is no origin of a page.", hint=_origin_hint(text))


def is_foreign(headers: Mapping[str, str], allowed: Collection[str]) -> bool:
    """Whether a browser sends this for a page of another site that is not allowed.

    Such a page cannot read the answer; but what it asks for would be done all the same. Programs, extensions and pages
    of the same site are not meant: a browser tells them apart (`Sec-Fetch-Site`, `Origin`). Without TLS it leaves the
    first out, except towards this machine by its usual names; a site's own name may lead here too, so then only a page
    of this very address is none of another site.
    """
    origin = headers.get("Origin", "")
    is_page = origin == "null" or origin.startswith(("https://", "http://"))
    if not is_page or origin in allowed or ANY in allowed:
        return False
    site = headers.get("Sec-Fetch-Site")
    if site is None:
        return origin.partition("://")[2] != headers.get("Host", "").lower()
    return site == "cross-site"


def origin_refused(headers: Mapping[str, str]) -> ApiErrorRaised:
    """What such a page is told, and with it who looks into the browser's console."""
    origin = headers.get("Origin", "an unknown origin")[:_MAX_CHARS]
    try:
        way = f"Start it with `--allow-origin {origin_of(origin)}`, or name that under `server.allow_origins`."
    except ConfigError as error:
        way = error.hint
    message = f"Pages of {origin} may not call this server. {way}"
    return ApiErrorRaised(ApiError(status=403, message=message, kind=DENIED, code="origin_not_allowed"))


def _origin_hint(text: str) -> str:
    if text == "null":
        return "Pages of files and sandboxes have none: serve the page over HTTP, or allow '*', which is every page."
    if "*" in text:
        return "Patterns are not understood: name each origin, or '*' alone for every page."
    if "://" not in text:
        return "Write the scheme too: https://chat.example, or http://localhost:3000."
    if longer := re.match(rf"({_WRITTEN.pattern})[/?#]", text, re.IGNORECASE):
        return f"Leave out what stands behind the host: {longer[1][:_MAX_CHARS]}."
    return "Write scheme, host and, where it is not the usual one, the port: https://chat.example."
