"""Which names a server goes by."""

from __future__ import annotations

import pytest

from taoloop.errors import ConfigError
from taoloop.serve.hosts import AllowedHosts, host_name, is_loopback

LOOPBACK = (
    *("localhost", "LocalHost:8080", "localhost.", "localhost.:80", "127.0.0.1", "127.8.9.10:1"),
    *("[::1]", "[::1]:8080", "[0:0:0:0:0:0:0:1]:443"),
)
FOREIGN = (
    *("evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "evil-localhost"),
    *("", "10.0.0.1", "0.0.0.1", "[::]", "[::2]:80", "::1", "[localhost]", "[127.0.0.1]x", "localhost:", "localhost:x"),
    *("localhost:99999", "localhost@evil.example", "localhost/evil", "localhost evil.example", "a\nlocalhost", "127.1"),
)


@pytest.mark.parametrize("host", LOOPBACK)
def test_the_usual_names_of_this_machine_are_served_with_any_port(host: str) -> None:
    assert AllowedHosts().accepts(host)
    assert not AllowedHosts(loopback=False).accepts(host)


@pytest.mark.parametrize("host", [*FOREIGN, None])
def test_no_other_name_is(host: str | None) -> None:
    assert not AllowedHosts(("chat.example",)).accepts(host)


def test_a_name_that_is_allowed_is_served_with_any_port_or_with_its_own() -> None:
    hosts = AllowedHosts(map(host_name, ("Chat.example", "api.example:8443", "web.example:443", "bücher.example")))
    for host in ("chat.example", "CHAT.example:99", "api.example:8443", "web.example", "xn--bcher-kva.example."):
        assert hosts.accepts(host)
    for host in ("api.example", "api.example:8080", "x.chat.example"):
        assert not hosts.accepts(host)


@pytest.mark.parametrize(
    "text", ["", "*", "*.example", "http://chat.example", "a b", "x:*", "x:99999", "é" * 80, "[x]"]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a host name"):
        host_name(text)


def test_loopback_is_the_machine_itself() -> None:
    assert is_loopback("localhost")
    assert is_loopback("127.0.0.2")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.1")
    assert not is_loopback("chat.example")
