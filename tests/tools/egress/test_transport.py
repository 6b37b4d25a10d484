"""Addresses as texts: read in one way, the same way as the policy reads them."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st
from tests.sizes import examples

from taoloop.errors import EgressRefused
from taoloop.policy.value_match import host_of
from taoloop.tools.egress.rules import parse_address
from taoloop.tools.egress.transport import host_and_port, parse_url

TRICKY = st.text(alphabet="aB1.:/@?#%\\[]-_ \t\n\u200b\u3002。．ß２例xn--&;,\u00ad", max_size=16)


@given(st.text(max_size=60) | TRICKY.map(lambda rest: f"http://{rest}"))
@examples(300)
def test_any_text_is_an_address_or_is_said_to_be_none(text: str) -> None:
    try:
        url = parse_url(text)
    except EgressRefused:
        return
    assert url.scheme in ("http", "https")
    assert url.raw_host
    assert not url.userinfo
    assert not url.fragment
    assert parse_url(str(url)) == url
    assert host_and_port(url)


@given(TRICKY, TRICKY)
@examples(500)
@example("good.test", "@evil.test/")
@example("good.test\\", "@evil.test/")
@example("evil.test/?", "://good.test/")
@example("good.test.", "/")
@example("GOOD.test:80", "/x")
@example("例子。测试", "/")
def test_a_request_goes_to_the_host_that_the_policy_judged(host: str, rest: str) -> None:
    text = f"https://{host}{rest}"
    try:
        url = parse_url(text)
    except EgressRefused:
        return
    judged = host_of(text)
    if not judged:  # no address for the policy, or a disputed one: no pattern of allowed hosts fits it
        return
    sent = url.raw_host.decode("ascii")
    bare = judged.strip("[]")
    assert sent == bare or parse_address(sent) == parse_address(bare) is not None


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("  HTTP://Example.COM:80/a/%2e%2e/%2F?q=%20#part ", "http://example.com/a/%2e%2e/%2F?q=%20"),
        ("https://example.com.", "https://example.com"),
        ("https://例子。测试/路", "https://xn--fsqu00a.xn--0zwm56d/%E8%B7%AF"),
        ("https://[2606:4700::1]:443/", "https://[2606:4700::1]/"),
    ],
)
def test_an_address_is_read_in_one_form(text: str, read: str) -> None:
    assert str(parse_url(text)) == read
