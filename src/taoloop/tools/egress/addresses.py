"""Addresses: which of them are public, and which belong to a network of one's own."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives all addresses of a host, as texts, for a port; raises OSError where it has none."""


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(one) for one in text.split())


# `is_global` of the standard library is not enough: Python 3.11 calls some of these global.
_NEVER_PUBLIC = _networks(
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 "
    "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 "
    "2001::/23 2001:db8::/32 2002::/16 3fff::/20"
)
_UNICAST_6 = IPv6Network("2000::/3")  # all that is public in IPv6; NAT64, mapped, local and multicast lie outside
_OWN = _networks("10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 172.16.0.0/12 192.168.0.0/16 ::1/128 fc00::/7")
_METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"))
)
_SIXTOFOUR, _TEREDO = IPv6Network("2002::/16"), IPv6Network("2001::/32")
_IN_LAST_32 = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")


def read_address(text: str) -> Address | None:
    """The address that a text is, None for any other text and for one with a zone (`fe80::1%eth0`)."""
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Whether an address is one of the public internet, by itself and not by one that is written into it.

    False for private, loopback, link-local, shared, reserved, documentation and multicast addresses, for those that
    carry an IPv4 address (mapped, NAT64, 6to4, Teredo), and for the metadata services of clouds.
    """
    if address in _METADATA or not address.is_global or address.is_multicast:
        return False
    if address.version == 6 and address not in _UNICAST_6:
        return False
    return not any(address in network for network in _NEVER_PUBLIC if network.version == address.version)


def is_own(address: Address) -> bool:
    """Whether an address belongs to a network of one's own: this machine, or a private range. No metadata service."""
    if address in _METADATA:
        return False
    return any(address in network for network in _OWN if network.version == address.version)


def is_metadata(address: Address) -> bool:
    """Whether an address is that of a cloud's metadata service."""
    return address in _METADATA


def forms_of(address: Address) -> tuple[Address, ...]:
    """An address, and the IPv4 address that is written into it, if there is one."""
    if isinstance(address, IPv4Address):
        return (address,)
    number = int(address)
    if address in _SIXTOFOUR:
        return (address, IPv4Address(number >> 80 & 0xFFFFFFFF))
    if address in _TEREDO:
        return (address, IPv4Address(~number & 0xFFFFFFFF))
    if any(address in network for network in _IN_LAST_32):
        return (address, IPv4Address(number & 0xFFFFFFFF))
    return (address,)


def read_host(host: str) -> str | None:
    """A host in ASCII as it is looked up: lower case, no dot at its end. None where it is none."""
    lower = host.lower()
    plain = lower.removesuffix(".")
    address = read_address(plain)
    if address is not None:
        return str(address)
    return plain if _NAME.fullmatch(plain) else None


async def resolve(host: str, port: int) -> Sequence[str]:
    """All addresses of a host by the machine's own resolver.

    Raises:
        OSError: it has none, or they cannot be found out.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
