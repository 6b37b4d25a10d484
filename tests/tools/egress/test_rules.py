"""The rules themselves: what is allowed, what is denied, and that denying wins."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from taoloop.errors import ConfigError, EgressRefused
from taoloop.tools.egress import EgressRules
from taoloop.tools.egress.rules import embedded_addresses, is_private, is_public, normalise_host, parse_address

PUBLIC, PRIVATE, METADATA = "93.184.216.34", "10.0.0.5", "169.254.169.254"


def passes(rules: EgressRules, host: str, port: int, *addresses: str, scheme: str = "https") -> bool:
    try:
        return bool(rules.check_addresses(rules.check_target(scheme, host, port), port, addresses or (PUBLIC,)))
    except EgressRefused:
        return False


def test_without_more_public_hosts_on_usual_ports_may_be_reached() -> None:
    rules = EgressRules()
    assert passes(rules, "example.com", 443)
    assert passes(rules, "Example.COM.", 80, scheme="http")
    assert not passes(rules, "example.com", 22)
    assert not passes(rules, "example.com", 443, scheme="ftp")
    assert not passes(rules, "example.com", 443, PRIVATE)


def test_a_host_is_refused_if_any_of_its_addresses_is_not_public() -> None:
    assert not passes(EgressRules(), "example.com", 443, PUBLIC, PRIVATE)
    assert not passes(EgressRules(), "example.com", 443, PRIVATE, PUBLIC)
    with pytest.raises(EgressRefused, match="no address"):
        EgressRules().check_addresses("example.com", 443, ())
    with pytest.raises(EgressRefused, match="which is not an address"):
        EgressRules().check_addresses("example.com", 443, ("fe80::1%eth0",))


@pytest.mark.parametrize(
    ("deny", "host", "addresses", "denied"),
    [
        ("example.com", "EXAMPLE.com.", (), True),
        ("example.com", "www.example.com", (), False),
        ("*.example.com", "www.example.com", (), True),
        ("*.example.com", "a.b.example.com", (), True),
        ("*.example.com", "example.com", (), False),
        ("*.example.com", "badexample.com", (), False),
        ("*", "example.com", (), True),
        ("例子.测试", "xn--fsqu00a.xn--0zwm56d", (), True),
        ("example.com:443", "example.com", (), True),
        ("example.com:80", "example.com", (), False),
        ("93.184.0.0/16", "example.com", (), True),
        ("93.184.216.34", "93.184.216.34", (), True),
        ("93.184.0.0/16:80", "example.com", (), False),
        ("2606:4700::/32", "example.com", (PUBLIC, "2606:4700::1"), True),
    ],
)
def test_what_is_denied_is_refused_by_name_and_by_address(
    deny: str, host: str, addresses: tuple[str, ...], denied: bool
) -> None:
    assert passes(EgressRules(deny=(deny,)), host, 443, *addresses) is not denied


def test_denying_wins_over_allowing() -> None:
    rules = EgressRules(allow=("intern.example:8080", "10.0.0.0/8", "::/0"), deny=("10.0.0.5", "bad.example"))
    assert not passes(rules, "intern.example", 8080, PRIVATE)
    assert passes(rules, "intern.example", 8080, "10.0.0.6")
    assert not passes(rules, "bad.example", 443)
    assert not passes(rules, "x.example", 443, "::ffff:10.0.0.5"), "a denied address in another dress"


def test_a_host_with_its_port_opens_private_addresses_and_that_port() -> None:
    rules = EgressRules(allow=("intern.example:8080",))
    assert passes(rules, "intern.example", 8080, PRIVATE)
    assert passes(rules, "intern.example", 8080, "::1")
    assert passes(rules, "intern.example", 8080, PUBLIC)
    assert not passes(rules, "intern.example", 8081, PRIVATE)
    assert not passes(rules, "intern.example", 443, PRIVATE)
    assert not passes(rules, "other.example", 8080, PRIVATE)
    for address in (METADATA, "fd00:ec2::254", "fe80::1", "224.0.0.1", "::", "::ffff:10.0.0.5"):
        assert not passes(rules, "intern.example", 8080, address), address


def test_a_name_alone_or_a_wildcard_opens_no_private_address() -> None:
    rules = EgressRules(allow=("intern.example", "*.example:8080", "*.example"))
    assert not passes(rules, "intern.example", 443, PRIVATE)
    assert not passes(rules, "intern.example", 8080, PRIVATE)
    assert passes(rules, "intern.example", 8080, PUBLIC)


def test_a_range_opens_its_addresses_on_usual_ports_and_with_a_port_on_that_one() -> None:
    assert passes(EgressRules(allow=("10.0.0.0/8",)), "10.1.2.3", 443, "10.1.2.3")
    assert passes(EgressRules(allow=("10.0.0.0/8",)), "x.example", 443, "10.1.2.3")
    assert not passes(EgressRules(allow=("10.0.0.0/8",)), "x.example", 8080, "10.1.2.3")
    assert passes(EgressRules(allow=("10.0.0.0/8:8080",)), "x.example", 8080, "10.1.2.3")
    assert passes(EgressRules(allow=("[::1]:8080",)), "::1", 8080, "::1")
    assert passes(EgressRules(allow=("[fd00::]/8:8080",)), "x.example", 8080, "fd00::1")
    assert passes(EgressRules(allow=(METADATA,)), METADATA, 80, METADATA), "named by its address, it is meant"
    assert passes(EgressRules(ports=(8080,)), "x.example", 8080)


def test_only_what_is_allowed_may_be_reached_where_that_is_said() -> None:
    rules = EgressRules(allow=("api.example.com", "*.cdn.example", "93.0.0.0/8"), only_allowed=True)
    assert passes(rules, "api.example.com", 443, "8.8.8.8")
    assert passes(rules, "a.cdn.example", 443, "8.8.8.8")
    assert passes(rules, "other.example", 443, "93.1.1.1")
    assert not passes(rules, "other.example", 443, "8.8.8.8")
    assert not passes(rules, "other.example", 443, "93.1.1.1", "8.8.8.8")
    assert not passes(rules, "8.8.8.8", 443, "8.8.8.8")
    with pytest.raises(EgressRefused, match="it is not on the allow list"):
        EgressRules(only_allowed=True).check_target("https", "other.example", 443)  # nothing is looked up


def test_what_the_operator_wrote_is_opened_and_nothing_else() -> None:
    rules = EgressRules(deny=("bad.example",)).allowing("http://localhost:8080/v1/")
    assert passes(rules, "localhost", 8080, "127.0.0.1", scheme="http")
    assert not passes(rules, "localhost", 8081, "127.0.0.1", scheme="http")
    assert not passes(rules, "bad.example", 443)
    assert passes(EgressRules().allowing("https://10.0.0.5"), "10.0.0.5", 443, PRIVATE)
    assert passes(EgressRules().allowing("http://[::1]:9/x"), "::1", 9, "::1", scheme="http")
    assert not passes(EgressRules(deny=("localhost",)).allowing("http://localhost:8080"), "localhost", 8080, "::1")


@pytest.mark.parametrize(
    "url", ["", "localhost:8080", "ftp://x", "http://", "http://u:p@x.example/", "http://x:99999", "http://[x"]
)
def test_an_operators_address_that_is_none_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        EgressRules().allowing(url)
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("allow", (entry,))
        for entry in ("", "http://x.example", "x.example/path", "x.example:0", "x:99999", "a*b", "*x", "*.")
    ]
    + [("deny", (entry,)) for entry in ("10.0.0.0/33", "10.0.0.1/8", "a b", "[x]", "fe80::1%eth0", "faß.de")]
    + [
        ("deny", "x.example"),
        ("deny", (1,)),
        ("ports", (0,)),
        ("ports", (True,)),
        ("ports", ("80",)),
        ("schemes", ("ftp",)),
    ]
    + [("only_allowed", "yes"), ("allow", ["x.example"])],
)
def test_rules_that_cannot_be_kept_name_the_field(field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=field):
        EgressRules(**{field: value})


@given(
    st.text(max_size=40) | st.sampled_from(["api.test", "a.example"]),
    st.integers(-5, 70_000) | st.just(80),
    st.lists(st.ip_addresses().map(str) | st.just(PUBLIC), max_size=3),
)
@example("api.test", 80, [PUBLIC])
def test_any_host_and_addresses_are_judged_without_another_error(host: str, port: int, addresses: list[str]) -> None:
    rules = EgressRules(deny=("*.example", "10.0.0.0/8"))
    try:
        name = rules.check_target("http", host, port)
        rules.check_addresses(name, port, addresses)
    except EgressRefused:
        return
    assert port in (80, 443)
    assert addresses
    assert not host.endswith(".example")


@given(st.text(max_size=40))
def test_any_entry_is_a_place_or_is_refused(text: str) -> None:
    with suppress(ConfigError):
        assert EgressRules(allow=(text,), deny=(text,)).allow == (text,)


CHANGE = re.compile(r"can (add|remove) '([^']+)' (?:to `allow`|from `deny`) in the egress rules")
HOSTS = ["api.example", "www.api.example", "10.0.0.5", "169.254.1.1", "::1", "fe80::1", "8.8.8.8"]
ADDRESSES = [PUBLIC, PRIVATE, "169.254.1.1", "::1", "fe80::1", "224.0.0.1", "::ffff:10.0.0.5", "64:ff9b::a00:5"]


def hint_of(rules: EgressRules, host: str, port: int, addresses: list[str]) -> str:
    try:
        rules.check_addresses(rules.check_target("https", host, port), port, addresses)
    except EgressRefused as error:
        return error.hint
    return ""


@given(
    host=st.sampled_from(HOSTS),
    port=st.sampled_from([80, 443, 8080]),
    addresses=st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=3),
    deny=st.lists(st.sampled_from(["*.example", "*", "10.0.0.0/8", "api.example:80", "::/0"]), max_size=3, unique=True),
    only_allowed=st.booleans(),
)
def test_the_hint_names_the_very_entry_that_would_change_it(
    host: str, port: int, addresses: list[str], deny: list[str], only_allowed: bool
) -> None:
    rules = EgressRules(deny=tuple(deny), only_allowed=only_allowed)
    found = [host] if re.fullmatch(r"[0-9.]+|.*:.*", host) else addresses
    for _ in range(12):
        if not (hint := hint_of(rules, host, port, found)):
            return
        change = CHANGE.search(hint)
        assert change, hint
        if change[1] == "add":
            assert change[2] not in rules.allow
            rules = replace(rules, allow=(*rules.allow, change[2]))
        else:
            rules = replace(rules, deny=tuple(one for one in rules.deny if one != change[2]))
    raise AssertionError("the hints do not lead there")


@pytest.mark.parametrize("address", [METADATA, "168.63.129.16", "fd00:ec2::254"])
def test_nobody_is_told_to_open_the_metadata_service(address: str) -> None:
    hint = hint_of(EgressRules(), "x.example", 80, [address])
    assert hint == "Use another address."
    assert not hint_of(EgressRules(allow=(address,)), "x.example", 80, [address])


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
        ("::FFFF:7f00:1", str(ip_address("::ffff:7f00:1"))),  # with a dotted end since Python 3.13
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


@pytest.mark.parametrize(
    "fields",
    [
        {"allow": "https://u:s3cr3tpw@h/x"},
        {"allow": ("HTTPS://u:s3cr3tpw/x@h",)},
        {"allow": ("https://u:s3cr3t@pw@h/x",)},
        {"allow": ("https://h/?key=s3cr3tpw",)},
        {"deny": [{"x": "https://u:s3cr3tpw@h"}]},
        {"schemes": ("https://u:s3cr3tpw@h",)},
        {"ports": ("u:s3cr3tpw@h",)},
    ],
)
def test_no_error_of_the_rules_shows_a_password(fields: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        EgressRules(**fields)
    assert "s3cr3t" not in str(caught.value)
    assert "…" in str(caught.value)
