"""The names by which clients reach a server: which values of the header `Host` are served. Pure.

A page can make any name resolve to this machine (DNS rebinding), and its browser then takes the answers for those of
its own site. The header still holds the page's name.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache

from taoloop.errors import ConfigError

_FORM = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(?::(\d{1,5}))?")
_DEFAULT_PORTS = ("80", "443")
"""The ports that clients leave out of the header."""


@lru_cache(maxsize=128)
def parse_ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An IP address, with or without the brackets of IPv6; None: it is none."""
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether this is the machine itself: `localhost`, 127.0.0.0/8 or ::1."""
    if host == "localhost":
        return True
    address = parse_ip(host)
    return address is not None and address.is_loopback


def host_name(text: str) -> str:
    """A host name with or without a port, as clients send it: in lower case, other scripts in Punycode.

    Raises:
        ConfigError: it is none; says what to write instead.
    """
    try:
        name, port = _split(text)
        name = name if name.isascii() else name.encode("idna").decode()
    except ValueError:  # no host name, or one that is too long for Punycode
        message = f"{text!r} is not a host name."
        hint = "Write the name alone, as in chat.example.com, or with a port."
        raise ConfigError(message, hint=hint) from None
    return f"{name}:{port}" if port else name


class AllowedHosts:
    """Which values of the header `Host` a server answers.

    Args:
        names: Host names of clients (`host_name`). One without a port is served with every port.
        loopback: Whether the usual names of this machine are served too.
    """

    def __init__(self, names: Iterable[str] = (), *, loopback: bool = True) -> None:
        self._names = {_split(name) for name in names}
        self._loopback = loopback

    def accepts(self, host: str | None) -> bool:
        """Whether a request with this header is served; None: it has none."""
        try:
            name, port = _split(host or "")
        except ValueError:
            return False
        if self._loopback and is_loopback(name):
            return True
        ports = (port,) if port else _DEFAULT_PORTS
        return (name, "") in self._names or any((name, port) in self._names for port in ports)


@lru_cache(maxsize=128)  # nearly every request of a client names the same host
def _split(host: str) -> tuple[str, str]:
    """Name and port in the form that is compared; a port that is not there is empty.

    Raises:
        ValueError: it has another form.
    """
    match = _FORM.fullmatch(host)
    if match is None or int(match[2] or 0) > 65_535:
        raise ValueError(host)
    name = match[1].lower()
    address = parse_ip(name)
    if address is None:
        if name.startswith("["):
            raise ValueError(host)
        return name.removesuffix("."), match[2] or ""
    return (f"[{address}]" if address.version == 6 else str(address)), match[2] or ""
