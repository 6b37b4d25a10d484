"""Egress rules: where requests of tools may go, by scheme, port, host name and resolved addresses."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field

from taoloop.errors import ConfigError, EgressRefused
from taoloop.policy.value_match import ascii_host
from taoloop.tools.egress.texts import TEXTS
from taoloop.tools.settings_check import check_fields, without_credentials

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns all addresses of a host for a port, as texts; raises OSError if there are none."""

_GLOBAL_UNICAST_6 = IPv6Network("2000::/3")
"""All public addresses of IPv6; NAT64, mapped, local and multicast addresses are outside."""

_METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"))
)
_SIXTOFOUR, _TEREDO = IPv6Network("2002::/16"), IPv6Network("2001::/32")
_EMBEDDED_IN_LAST_32 = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
_HOST_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST_AND_PORT = re.compile(r"(?P<target>\[[^\]]*\](?:/[0-9]+)?|[^:\[\]]*):(?P<port>[0-9]{1,5})")


def _parse_networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(item) for item in text.split())


# `is_global` of the standard library is not enough: Python 3.11 calls some of these global.
_NON_PUBLIC = _parse_networks(
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 "
    "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 "
    "2001::/23 2001:db8::/32 2002::/16 3fff::/20"
)
_PRIVATE = _parse_networks("10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 172.16.0.0/12 192.168.0.0/16 ::1/128 fc00::/7")


def parse_address(text: str) -> Address | None:
    """The address in a text; None for any other text and for an address with a zone (`fe80::1%eth0`)."""
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Whether an address itself belongs to the public internet.

    False for private, loopback, link-local, shared, reserved, documentation and multicast addresses, for those that
    embed an IPv4 address (mapped, NAT64, 6to4, Teredo), and for the metadata services of clouds.
    """
    if address in _METADATA or not address.is_global or address.is_multicast:
        return False
    return (address.version == 4 or address in _GLOBAL_UNICAST_6) and not any(address in net for net in _NON_PUBLIC)


def is_private(address: Address) -> bool:
    """Whether an address belongs to this machine or to a private range, and is not a metadata service."""
    return address not in _METADATA and any(address in network for network in _PRIVATE)


def embedded_addresses(address: Address) -> tuple[Address, ...]:
    """An address, and the IPv4 address that it embeds, if any."""
    number = int(address)
    if address in _SIXTOFOUR:
        return (address, IPv4Address(number >> 80 & 0xFFFFFFFF))
    if address in _TEREDO:
        return (address, IPv4Address(~number & 0xFFFFFFFF))
    if any(address in network for network in _EMBEDDED_IN_LAST_32):
        return (address, IPv4Address(number & 0xFFFFFFFF))
    return (address,)


def normalise_host(host: str) -> str | None:
    """A host in ASCII as it is looked up: in lower case, without a trailing dot. None if it is not a host."""
    lower = host.lower()
    plain = lower.removesuffix(".")
    address = parse_address(plain)
    if address is not None:
        return str(address)
    return plain if _HOST_NAME.fullmatch(plain) else None


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """All addresses of a host, from the resolver of this machine.

    Raises:
        OSError: it has none, or they cannot be resolved.
    """
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in entries))


@dataclass(frozen=True, slots=True)
class TargetPattern:
    """One entry of `allow` or `deny`: a host, all hosts below a name, or a range of addresses."""

    text: str
    """The entry as it was written."""
    host: str = ""
    """The host, or `*.example.com` for all hosts below a name; empty for a range."""
    network: Network | None = None
    """The range of addresses; None: it has a host."""
    port: int | None = None
    """The only port that it matches; None: any port."""

    @property
    def is_single_target(self) -> bool:
        """Whether it is a single host with a port, so that it was written for exactly this target."""
        return self.network is None and self.port is not None and not self.host.startswith("*")

    def has_port(self, port: int) -> bool:
        """Whether it matches a port."""
        return self.port is None or self.port == port

    def has_name(self, host: str, port: int) -> bool:
        """Whether it matches a host by name."""
        if self.network is not None or not self.has_port(port):
            return False
        return host.endswith(self.host[1:]) if self.host.startswith("*") else host == self.host

    def has_address(self, address: Address, port: int) -> bool:
        """Whether it matches an address."""
        return self.network is not None and address in self.network and self.has_port(port)


@dataclass(frozen=True, kw_only=True)
class EgressRules:
    """Where requests may go.

    By default: with http and https, to ports 80 and 443, of hosts all of whose addresses are public.
    """

    allow: tuple[str, ...] = ()
    """Additional targets; with `only_allowed` the only ones.

    Each is a host (`api.example.com`), all hosts below a name (`*.example.com`), an address or a range (`10.0.0.0/8`),
    optionally with a port (`localhost:8080`, `[::1]:8080`). A port allows that port. A range allows its addresses; a
    single host with a port allows its private addresses. Link-local addresses and metadata services are only allowed
    by their addresses.
    """
    deny: tuple[str, ...] = ()
    """Targets, in the same form, that are always refused. A range covers the addresses to which a name resolves."""
    only_allowed: bool = False
    """Whether only the targets in `allow` may be reached."""
    schemes: tuple[Annotated[str, Field(pattern=r"^https?$")], ...] = ("http", "https")
    """The allowed schemes."""
    ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = (80, 443)
    """The ports that are allowed for every host."""

    def __post_init__(self) -> None:
        """Check the rules.

        Raises:
            ConfigError: an entry is not valid; the error names it and its field.
        """
        check_fields(self, "EgressRules")
        _ = self._allowed, self._denied

    def allowing(self, url: str) -> EgressRules:
        """These rules, extended to allow the host and port of a URL that the operator configured.

        Raises:
            ConfigError: it is not an http(s) URL, or contains a user.
        """
        try:
            parts = urlsplit(url.strip())
            host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
        except (ValueError, KeyError):
            host, port = "", 0
        if not host or "@" in parts.netloc:
            raise ConfigError(
                f"{without_credentials(url)[:100]!r} is not a usable URL.",
                hint="Write it like https://api.example.com/v1.",
            )
        target = format_target(host, port)
        parse_pattern(target, "address")
        return self if target in self.allow else replace(self, allow=(*self.allow, target))

    def check_target(self, scheme: str, host: str, port: int) -> str:
        """The host as it is looked up, if its name and port are allowed; its addresses are checked later.

        Raises:
            EgressRefused: it is not allowed.
        """
        name = normalise_host(host)
        if name is None:
            reason = TEXTS.run_text("not_a_host", host=host[:100])
            raise TEXTS.error("bad_url", "bad_url", error_type=EgressRefused, reason=reason)
        if scheme not in self.schemes:
            values: dict[str, Any] = {"scheme": scheme[:20], "schemes": ", ".join(self.schemes)}
            raise TEXTS.error("scheme_refused", "bad_url", error_type=EgressRefused, **values)
        target = format_target(name, port)
        if denied_by := next((pattern for pattern in self._denied if pattern.has_name(name, port)), None):
            raise _refusal(target, TEXTS.run_text("denied"), denied_by=denied_by.text)
        open_ports = [pattern for pattern in self._allowed if pattern.port == port]
        if port not in self.ports and not any(_may_match(pattern, name, port) for pattern in open_ports):
            raise _refusal(target, self._port_reason(port), target)
        if self.only_allowed and not any(_may_match(pattern, name, port) for pattern in self._allowed):
            raise _refusal(target, TEXTS.run_text("not_allowed"), target)
        return name

    def check_addresses(self, name: str, port: int, addresses: Sequence[str]) -> tuple[str, ...]:
        """The addresses of a host, if every one of them is allowed.

        Raises:
            EgressRefused: one of them is not allowed, or there are none.
        """
        target = format_target(name, port)
        if not addresses:
            raise _refusal(target, TEXTS.run_text("no_address"))
        matching = [pattern for pattern in self._allowed if pattern.has_name(name, port)]
        for text in addresses:
            address = parse_address(text)
            if address is None:
                raise _refusal(target, TEXTS.run_text("not_an_address", address=text[:60]))
            self._check_address(target, name, port, address, matching)
        return tuple(addresses)

    def _check_address(
        self, target: str, name: str, port: int, address: Address, matching: list[TargetPattern]
    ) -> None:
        address_is = TEXTS.run_text("is_address" if name == str(address) else "resolves_to", address=address)
        forms = embedded_addresses(address)
        if denied_by := next(
            (pattern for pattern in self._denied if any(pattern.has_address(form, port) for form in forms)), None
        ):
            raise _refusal(target, TEXTS.run_text("address_denied", address_is=address_is), denied_by=denied_by.text)
        opening = [pattern for pattern in self._allowed if pattern.has_address(address, port)]
        if self.only_allowed and not matching and not opening:
            raise _refusal(target, TEXTS.run_text("address_not_allowed", address_is=address_is), target)
        if port not in self.ports and not any(pattern.port == port for pattern in (*matching, *opening)):
            raise _refusal(target, self._port_reason(port), target)
        is_local = is_private(address)
        if is_public(address) or opening or (is_local and any(pattern.is_single_target for pattern in matching)):
            return
        if address in _METADATA:  # it hands out the keys of the machine, so its entry is not suggested
            raise _refusal(target, TEXTS.run_text("address_metadata", address_is=address_is))
        suggestion = target
        if not is_local:  # link-local: its name and port do not allow such an address
            suggestion = str(address) if port in self.ports else format_target(str(address), port)
        raise _refusal(target, TEXTS.run_text("address_not_public", address_is=address_is), suggestion)

    def _port_reason(self, port: int) -> str:
        ports = ", ".join(map(str, self.ports)) or TEXTS.run_text("no_ports")
        return TEXTS.run_text("port_refused", port=port, ports=ports)

    @cached_property
    def _allowed(self) -> tuple[TargetPattern, ...]:
        return tuple(parse_pattern(entry, "allow") for entry in self.allow)

    @cached_property
    def _denied(self) -> tuple[TargetPattern, ...]:
        return tuple(parse_pattern(entry, "deny") for entry in self.deny)


@lru_cache(maxsize=4096)
def parse_pattern(text: str, list_name: str) -> TargetPattern:
    """Parse an entry of the list `list_name`.

    Raises:
        ConfigError: it is not valid.
    """
    target, port = text.strip(), None
    if match := _HOST_AND_PORT.fullmatch(target):
        target, port = match["target"], int(match["port"])
        if not 0 < port < 65536:
            problem = f"{list_name}: {without_credentials(text)[:100]!r} has no usable port."
            raise ConfigError(problem, hint="Ports are numbers from 1 to 65535.")
    host_text = target.replace("[", "").replace("]", "")
    try:
        network = None if "%" in host_text else ip_network(host_text)
    except ValueError:
        network = None  # it must be a name
    if network is not None:
        return TargetPattern(text=text, network=network, port=port)
    wildcard = "*." if host_text.startswith("*.") else ""
    host = "*" if host_text == "*" else normalise_host(ascii_host(host_text.removeprefix(wildcard)))
    if host is None or target != host_text or "/" in text or parse_address(host) is not None:
        raise ConfigError(
            f"{list_name}: {without_credentials(text)[:100]!r} is not a valid target.",
            hint="Write a host (api.example.com), *.example.com, an address or a range (10.0.0.0/8), optionally "
            "with :PORT; without scheme and path.",
        )
    return TargetPattern(text=text, host=wildcard + host, port=port)


def _may_match(pattern: TargetPattern, name: str, port: int) -> bool:
    """Whether a pattern may match a host, by its name only: for a range it depends on the addresses of the host."""
    if pattern.network is None:
        return pattern.has_name(name, port)
    address = parse_address(name)
    return pattern.has_port(port) if address is None else pattern.has_address(address, port)


def format_target(host: str, port: int) -> str:
    """Host and port as they are in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _refusal(target: str, reason: str, suggestion: str = "", *, denied_by: str = "") -> EgressRefused:
    """The error: `suggestion` is an entry of `allow` that would help, `denied_by` the entry of `deny` against it."""
    name = "refused_hint_deny" if denied_by else "refused_hint_allow" if suggestion else "refused_hint"
    hint = TEXTS.run_text(name, entry=denied_by or suggestion)
    return TEXTS.run_error(EgressRefused, "refused", {"target": target, "reason": reason}, hint=hint)
