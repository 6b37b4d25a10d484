"""Origins of web pages: as an operator writes them, as browsers send them, and which may start runs. Pure.

Also the error for requests under a name that is not the server's, which such pages send to read its answers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from yarl import URL

from taoloop.errors import ConfigError
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.hosts import host_name

ANY = "*"
"""Allows every page of every site."""

_WRITTEN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[^\s/?#@:*\[\]]+)(:\d+)?", re.IGNORECASE)
_MAX_CHARS = 300


def origin_of(text: str) -> str:
    """An origin as browsers send it: in lower case, without the default port, other scripts in Punycode.

    Raises:
        ConfigError: it is not an origin; says what to write instead.
    """
    if text == ANY:
        return text
    if len(text) <= _MAX_CHARS and _WRITTEN.fullmatch(text):
        try:
            return str(URL(text).origin())
        except ValueError:  # an invalid port or host
            pass
    raise ConfigError(f"{text[:_MAX_CHARS]!r} is not the origin of a page.", hint=_origin_hint(text))


def is_foreign(headers: Mapping[str, str], allowed: Collection[str]) -> bool:
    """Whether a browser sends this request for a page of another origin that is not allowed.

    Such a page cannot read the answer, but its request would take effect all the same. Programs, extensions and pages
    of the server's own origin are no foreign pages: browsers distinguish them by `Sec-Fetch-Site` and `Origin`. Pages
    of the same site are foreign: whatever else serves pages on this machine, at another port, is of the same site.
    Without TLS browsers omit the first header, except for this machine under its usual names; then only a page of
    exactly this address is not foreign.
    """
    origin = headers.get("Origin", "")
    is_page = origin == "null" or origin.startswith(("https://", "http://"))
    if not is_page or origin in allowed or ANY in allowed:
        return False
    site = headers.get("Sec-Fetch-Site")
    if site is None:
        return origin.partition("://")[2] != headers.get("Host", "").lower()
    return site not in ("same-origin", "none")


def origin_refused(headers: Mapping[str, str]) -> ApiError:
    """The error for such a page, which developers see in the browser's console."""
    origin = headers.get("Origin", "an unknown origin")[:_MAX_CHARS]
    try:
        way = f"Start it with `--allow-origin {origin_of(origin)}`, or name that under `server.allow_origins`."
    except ConfigError as error:
        way = error.hint
    message = f"Pages of {origin} may not call this server. {way}"
    return ApiError(status=403, message=message, code="origin_not_allowed")


def host_refused(headers: Mapping[str, str]) -> ApiError:
    """The error for a request under a name that the server is not known by."""
    host = headers.get("Host", "")[:_MAX_CHARS]
    try:
        way = f"Start it with `--allow-host {host_name(host)}`, or name that under `server.allow_hosts`."
    except ConfigError:
        way = "Call it by a name of this machine, such as localhost, or by one of `server.allow_hosts`."
    message = f"Without keys this server is not served under the name {host!r} (header `Host`). {way}"
    return ApiError(status=421, message=message, code="host_not_allowed")


def _origin_hint(text: str) -> str:
    if text == "null":
        return "Pages of files and sandboxes have none: serve the page over HTTP, or allow '*', which is every page."
    if "*" in text:
        return "Patterns are not supported: name each origin, or '*' alone for every page."
    if "://" not in text:
        return "Write the scheme too: https://chat.example, or http://localhost:3000."
    if longer := re.match(rf"({_WRITTEN.pattern})[/?#]", text, re.IGNORECASE):
        return f"Leave out what comes after the host: {longer[1][:_MAX_CHARS]}."
    return "Write scheme, host and, where it is not the default, the port: https://chat.example."
