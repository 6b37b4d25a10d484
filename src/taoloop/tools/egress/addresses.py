"""IP addresses and host names: which addresses are public, private or metadata services."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns all addresses of a host for a port, as texts; raises OSError if there are none."""


def _parse_networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(item) for item in text.split())


# `is_global` of the standard library is not enough: Python 3.11 calls some of these global.
_NON_PUBLIC = _parse_networks(
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 "
    "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 "
    "2001::/23 2001:db8::/32 2002::/16 3fff::/20"
)
_GLOBAL_UNICAST_6 = IPv6Network(
    "2000::/3"
)  # all public addresses of IPv6; NAT64, mapped, local and multicast addresses are outside
_PRIVATE = _parse_networks("10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 172.16.0.0/12 192.168.0.0/16 ::1/128 fc00::/7")
_METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"))
)
_SIXTOFOUR, _TEREDO = IPv6Network("2002::/16"), IPv6Network("2001::/32")
_EMBEDDED_IN_LAST_32 = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")


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
    if address.version == 6 and address not in _GLOBAL_UNICAST_6:
        return False
    return not any(address in network for network in _NON_PUBLIC if network.version == address.version)


def is_private(address: Address) -> bool:
    """Whether an address belongs to this machine or to a private range, and is not a metadata service."""
    if address in _METADATA:
        return False
    return any(address in network for network in _PRIVATE if network.version == address.version)


def is_metadata(address: Address) -> bool:
    """Whether an address is the metadata service of a cloud."""
    return address in _METADATA


def embedded_addresses(address: Address) -> tuple[Address, ...]:
    """An address, and the IPv4 address that it embeds, if any."""
    if isinstance(address, IPv4Address):
        return (address,)
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
    return plain if _NAME.fullmatch(plain) else None


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """All addresses of a host, from the resolver of this machine.

    Raises:
        OSError: it has none, or they cannot be resolved.
    """
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in entries))
