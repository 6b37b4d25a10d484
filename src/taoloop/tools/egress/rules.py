"""Egress rules: where requests of tools may go, judged by scheme, port, name and resolved addresses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from taoloop.errors import ConfigError, EgressRefused
from taoloop.policy.value_match import ascii_host
from taoloop.tools.egress.addresses import (
    Address,
    Network,
    forms_of,
    is_metadata,
    is_own,
    is_public,
    read_address,
    read_host,
)

USUAL_PORTS = {"http": 80, "https": 443}

_WITH_PORT = re.compile(r"(?P<place>\[[^\]]*\](?:/[0-9]+)?|[^:\[\]]*):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One entry of a list: a host, `*.example.com` (all below it), or a range of addresses; of one port, or of any."""

    text: str
    host: str = ""
    network: Network | None = None
    port: int | None = None

    @property
    def names_one(self) -> bool:
        """Whether this is one host and one port, and so a place that somebody meant as it is."""
        return self.network is None and self.port is not None and not self.host.startswith("*")

    def has_port(self, port: int) -> bool:
        """Whether a port is the one that is named, if one is named."""
        return self.port is None or self.port == port

    def has_name(self, host: str, port: int) -> bool:
        """Whether a host, by name, falls under this."""
        if self.network is not None or not self.has_port(port):
            return False
        if self.host.startswith("*"):
            return host.endswith(self.host[1:])
        return host == self.host

    def has_address(self, address: Address, port: int) -> bool:
        """Whether an address falls under this."""
        network = self.network
        return network is not None and network.version == address.version and address in network and self.has_port(port)


@dataclass(frozen=True, kw_only=True)
class EgressRules:
    """Where requests may go.

    Without more: by http and https, to ports 80 and 443, to hosts all of whose addresses are public.

    Attributes:
        allow: Places that may be reached beside these, and with `only_allowed` the only ones: a host
            (`api.example.com`), all hosts below a name (`*.example.com`), an address or a range (`10.0.0.0/8`), each
            with a port if wanted (`localhost:8080`, `[::1]:8080`). A port opens that port. A range opens its addresses,
            and one host with its port the private addresses which that host has; link-local addresses and metadata
            services are opened by their addresses only.
        deny: Places, written likewise, that are refused whatever else is said. A range counts for the addresses that a
            name resolves to.
        only_allowed: Whether nothing but `allow` may be reached.
        schemes: The schemes that may be used.
        ports: The ports that may be used with every host.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    only_allowed: bool = False
    schemes: tuple[str, ...] = ("http", "https")
    ports: tuple[int, ...] = (80, 443)

    def __post_init__(self) -> None:
        """Refuse rules that nobody could keep.

        Raises:
            ConfigError: names the field and the entry.
        """
        for name in ("allow", "deny"):
            for entry in _tuple_of(name, getattr(self, name), str, "texts such as api.example.com"):
                read_pattern(entry, name)
        for scheme in _tuple_of("schemes", self.schemes, str, "http and https"):
            if scheme not in USUAL_PORTS:
                raise ConfigError(f"schemes: {scheme!r} cannot be used.", hint="Schemes are: http, https.")
        for port in _tuple_of("ports", self.ports, int, "numbers from 1 to 65535"):
            if not 0 < port < 65536 or isinstance(port, bool):
                raise ConfigError(f"ports: {port!r} is no port.", hint="Ports are numbers from 1 to 65535.")
        if not isinstance(self.only_allowed, bool):
            raise ConfigError(f"only_allowed: {self.only_allowed!r} is not true or false.")

    def opened_for(self, url: str) -> EgressRules:
        """These rules, and the host and port of an address that the operator himself wrote (a base URL) allowed.

        Raises:
            ConfigError: it is no address of http or https, or has a user in it.
        """
        try:
            parts = urlsplit(url.strip())
            host, port = parts.hostname or "", parts.port or USUAL_PORTS[parts.scheme]
        except (ValueError, KeyError):
            host, port = "", 0
        if not host or "@" in parts.netloc:
            raise ConfigError(
                f"{_shown(url)!r} is no usable address.", hint="Write it like https://api.example.com/v1."
            )
        place = _place(host, port)
        read_pattern(place, "address")
        return self if place in self.allow else replace(self, allow=(*self.allow, place))

    def judge_target(self, scheme: str, host: str, port: int) -> str:
        """The host as it is to be looked up, if a request may be sent to it as far as its name tells.

        Raises:
            EgressRefused: it may not.
        """
        name = read_host(host)
        if name is None:
            raise EgressRefused(
                f"{host[:100]!r} is no host.", code="bad_url", hint="Give an address such as https://example.com/page."
            )
        if scheme not in self.schemes:
            raise EgressRefused(
                f"The scheme {scheme[:20]!r} is not used here.",
                code="bad_url",
                hint=f"Use {' or '.join(self.schemes)}.",
            )
        place = _place(name, port)
        if denied := next((pattern for pattern in self._denied if pattern.has_name(name, port)), None):
            raise _refused(place, "it is on the list of what is denied", "", closed_by=denied.text)
        open_ports = [pattern for pattern in self._allowed if pattern.port == port]
        if port not in self.ports and not any(_may_be(pattern, name, port) for pattern in open_ports):
            raise _refused(place, f"port {port} is not one of those in use ({_listed(self.ports)})", place)
        if self.only_allowed and not any(_may_be(pattern, name, port) for pattern in self._allowed):
            raise _refused(place, "only hosts on the list of what is allowed may be reached", place)
        return name

    def judge_addresses(self, name: str, port: int, addresses: Sequence[str]) -> tuple[str, ...]:
        """The addresses of a host, if a request may be sent to every one of them.

        Raises:
            EgressRefused: one of them may not be reached, or there is none.
        """
        place = _place(name, port)
        if not addresses:
            raise _refused(place, "it has no address", "")
        named = [pattern for pattern in self._allowed if pattern.has_name(name, port)]
        for text in addresses:
            address = read_address(text)
            if address is None:
                raise _refused(place, f"it resolves to {text[:60]!r}, which cannot be judged", "")
            self._judge_address(place, name, port, address, named)
        return tuple(addresses)

    def _judge_address(self, place: str, name: str, port: int, address: Address, named: list[Pattern]) -> None:
        shown = f"it is {address}" if name == str(address) else f"it resolves to {address}"
        forms = forms_of(address)
        if denied := next((one for one in self._denied if any(one.has_address(form, port) for form in forms)), None):
            raise _refused(place, f"{shown}, which is on the list of what is denied", "", closed_by=denied.text)
        opened = [pattern for pattern in self._allowed if pattern.has_address(address, port)]
        if self.only_allowed and not named and not opened:
            raise _refused(place, f"{shown}, which is not on the list of what is allowed", place)
        if port not in self.ports and not any(pattern.port == port for pattern in (*named, *opened)):
            raise _refused(place, f"port {port} is not one of those in use ({_listed(self.ports)})", place)
        if is_public(address) or opened:
            return
        if is_own(address):
            if not any(pattern.names_one for pattern in named):
                raise _refused(place, f"{shown}, which is no public address", place)
        elif is_metadata(address):  # what hands out the keys of a machine is not put forward, whoever asks for it
            raise _refused(place, f"{shown}, the metadata service of a cloud", "")
        else:  # its name and port open no such address
            opens = str(address) if port in self.ports else _place(str(address), port)
            raise _refused(place, f"{shown}, which is no public address", opens)

    @cached_property
    def _allowed(self) -> tuple[Pattern, ...]:
        return tuple(read_pattern(entry, "allow") for entry in self.allow)

    @cached_property
    def _denied(self) -> tuple[Pattern, ...]:
        return tuple(read_pattern(entry, "deny") for entry in self.deny)


@lru_cache(maxsize=4096)
def read_pattern(text: str, where: str) -> Pattern:
    """An entry of a list.

    Raises:
        ConfigError: it is none; `where` names the list.
    """
    place, port = text.strip(), None
    if found := _WITH_PORT.fullmatch(place):
        place, port = found["place"], int(found["port"])
    bare = place.replace("[", "").replace("]", "")
    try:
        network = None if "%" in bare else ip_network(bare)
    except ValueError:
        network = None  # then it must be a name
    if network is not None:
        return Pattern(text=text, network=network, port=_port(port, text, where))
    wild, name = ("*", bare[1:]) if bare.startswith("*") else ("", bare)
    if name.startswith(".") and wild:
        wild, name = "*.", name[1:]
    host = read_host(ascii_host(name)) if name else ""
    bad = host is None or "*" in name or (not host and wild != "*") or (wild == "*" and bool(name)) or place != bare
    if bad or "/" in text or read_address(host or "") is not None:
        raise ConfigError(
            f"{where}: {_shown(text)!r} is no place that a request could go to.",
            hint="Write a host (api.example.com), *.example.com, an address or a range (10.0.0.0/8), with :PORT if "
            "wanted; no scheme and no path.",
        )
    return Pattern(text=text, host=wild + (host or ""), port=_port(port, text, where))


def _port(port: int | None, text: str, where: str) -> int | None:
    if port is not None and not 0 < port < 65536:
        raise ConfigError(f"{where}: {_shown(text)!r} has no usable port.", hint="Ports are numbers from 1 to 65535.")
    return port


def _may_be(pattern: Pattern, name: str, port: int) -> bool:
    """Whether a host may fall under a pattern, as far as its name tells: for a range that depends on its addresses."""
    if pattern.network is None:
        return pattern.has_name(name, port)
    address = read_address(name)
    return pattern.has_port(port) if address is None else pattern.has_address(address, port)


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _refused(place: str, why: str, opens: str, *, closed_by: str = "") -> EgressRefused:
    """The error; `opens` is the entry of `allow` that would open the place, `closed_by` that of `deny` against it."""
    change = f"add {opens!r} to `allow`" if opens else ""
    change = f"take {closed_by!r} out of `deny`" if closed_by else change
    told = f"; whoever set this tool up can {change} in its egress rules" if change else ""
    return EgressRefused(f"No request goes to {place}: {why}.", hint=f"Use another address{told}.")


def _listed(ports: tuple[int, ...]) -> str:
    return ", ".join(map(str, ports)) or "none"


def _shown(text: str) -> str:
    """The beginning of an entry, without what may be a password in it."""
    return re.sub(r"(//|^)[^/@]*@", r"\1…@", text)[:100]


def _tuple_of(name: str, value: object, kind: type, what: str) -> tuple[Any, ...]:
    if not isinstance(value, tuple) or not all(isinstance(one, kind) for one in value):
        raise ConfigError(f"{name}: {repr(value)[:100]} is not a list of {what}.")
    return value
