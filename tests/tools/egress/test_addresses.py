"""Which addresses are public: judged as numbers, and never by how somebody wrote them."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taoloop.tools.egress.addresses import embedded_addresses, is_private, is_public, normalise_host, parse_address

SPECIAL = """
0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255
192.0.0.8 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250
240.0.0.1 255.255.255.255 168.63.129.16 100.100.100.200
:: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::8.8.8.8
64:ff9b:1::1 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::
2002:808:808::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 4000::1 ffff::1
"""
COMMON = "1.1.1.1 8.8.8.8 93.184.216.34 172.32.0.1 100.128.0.1 2606:4700:4700::1111 2a00:1450:4001:81b::200e"


@pytest.mark.parametrize("text", SPECIAL.split())
def test_an_address_that_is_not_of_the_public_internet_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", COMMON.split())
def test_an_address_of_the_public_internet_is_public(text: str) -> None:
    assert is_public(ip_address(text))
    assert not is_private(ip_address(text))


@given(st.ip_addresses())
def test_nothing_is_public_that_the_standard_library_calls_private(address: IPv4Address | IPv6Address) -> None:
    if is_public(address):
        assert address.is_global
        kinds = (address.is_private, address.is_multicast, address.is_reserved, address.is_link_local)
        assert not any(kinds)
        assert not address.is_loopback
        assert embedded_addresses(address) == (address,)
    assert not (is_public(address) and is_private(address))


@given(st.ip_addresses(v=4))
def test_no_address_that_carries_another_one_is_public(address: IPv4Address) -> None:
    number = int(address)
    carriers = [
        IPv6Address(number),
        IPv6Address(0xFFFF << 32 | number),
        IPv6Address(int(IPv6Address("64:ff9b::")) | number),
        IPv6Address(0x2002 << 112 | number << 80),
        IPv6Address(0x20010000 << 96 | (number ^ 0xFFFFFFFF)),
    ]
    for carrier in carriers:
        assert not is_public(carrier)
        assert address in embedded_addresses(carrier)


@given(st.ip_addresses(v=6, network=IPv6Network("2000::/3")))
def test_an_ipv6_address_is_public_where_the_standard_library_and_the_registries_say_so(address: IPv6Address) -> None:
    special = [ip_network(one) for one in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]
    assert is_public(address) == (address.is_global and not any(address in network for network in special))


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("127.0.0.1", True),
        ("10.1.2.3", True),
        ("::1", True),
        ("fd12::1", True),
        ("169.254.1.1", False),
        ("fd00:ec2::254", False),
        ("100.100.100.200", False),
        ("::ffff:10.0.0.1", False),
        ("224.0.0.1", False),
    ],
)
def test_only_this_machine_and_private_ranges_are_ones_own(text: str, own: bool) -> None:
    assert is_private(ip_address(text)) is own


@pytest.mark.parametrize("text", ["fe80::1%eth0", "127.1", "0x7f.1", "0177.0.0.1", "１２７.0.0.1", "", "localhost"])
def test_what_is_no_plain_address_is_none(text: str) -> None:
    assert parse_address(text) is None


@pytest.mark.parametrize(
    ("host", "read"),
    [
        ("Example.COM.", "example.com"),
        ("a_b.example", "a_b.example"),
        ("127.0.0.1.", "127.0.0.1"),
        ("::1", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::FFFF:7f00:1", "::ffff:7f00:1"),
        ("127.1", "127.1"),
    ],
)
def test_a_host_is_read_in_one_form(host: str, read: str) -> None:
    assert normalise_host(host) == read


@pytest.mark.parametrize(
    "host", ["", ".", "a..b", "a b", "a/b", "ex%61mple.com", "a*b", "例子.测试", "x" * 64, "fe80::1%25lo", "a." * 130]
)
def test_what_is_no_host_is_none(host: str) -> None:
    assert normalise_host(host) is None
