"""Egress rules: where requests of tools may go, by scheme, port, host name and resolved addresses."""

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
    embedded_addresses,
    is_metadata,
    is_private,
    is_public,
    normalise_host,
    parse_address,
)
from taoloop.tools.egress.texts import TEXTS

DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST_AND_PORT = re.compile(r"(?P<target>\[[^\]]*\](?:/[0-9]+)?|[^:\[\]]*):(?P<port>[0-9]{1,5})")


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
        if self.host.startswith("*"):
            return host.endswith(self.host[1:])
        return host == self.host

    def has_address(self, address: Address, port: int) -> bool:
        """Whether it matches an address."""
        network = self.network
        return network is not None and network.version == address.version and address in network and self.has_port(port)


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
    schemes: tuple[str, ...] = ("http", "https")
    """The allowed schemes."""
    ports: tuple[int, ...] = (80, 443)
    """The ports that are allowed for every host."""

    def __post_init__(self) -> None:
        """Check the rules.

        Raises:
            ConfigError: an entry is not valid; the error names it and its field.
        """
        for name in ("allow", "deny"):
            for entry in _require_tuple(name, getattr(self, name), str, "texts such as api.example.com"):
                parse_pattern(entry, name)
        for scheme in _require_tuple("schemes", self.schemes, str, "http and https"):
            if scheme not in DEFAULT_PORTS:
                raise ConfigError(f"schemes: {scheme!r} cannot be used.", hint="Schemes are: http, https.")
        for port in _require_tuple("ports", self.ports, int, "numbers from 1 to 65535"):
            if not 0 < port < 65536 or isinstance(port, bool):
                raise ConfigError(f"ports: {port!r} is not a port.", hint="Ports are numbers from 1 to 65535.")
        if not isinstance(self.only_allowed, bool):
            raise ConfigError(f"only_allowed: {self.only_allowed!r} is not true or false.")

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
                f"{_without_password(url)!r} is not a usable URL.", hint="Write it like https://api.example.com/v1."
            )
        target = _format_target(host, port)
        parse_pattern(target, "address")
        return self if target in self.allow else replace(self, allow=(*self.allow, target))

    def check_target(self, scheme: str, host: str, port: int) -> str:
        """The host as it is looked up, if its name and port are allowed; its addresses are checked later.

        Raises:
            EgressRefused: it is not allowed.
        """
        name = normalise_host(host)
        if name is None:
            text, hint = TEXTS.run_text("bad_host", host=host[:100]), TEXTS.run_text("bad_host_hint")
            raise EgressRefused(text, code="bad_url", hint=hint)
        if scheme not in self.schemes:
            text = TEXTS.run_text("scheme_refused", scheme=scheme[:20])
            hint = TEXTS.run_text("scheme_refused_hint", schemes=", ".join(self.schemes))
            raise EgressRefused(text, code="bad_url", hint=hint)
        target = _format_target(name, port)
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
        target = _format_target(name, port)
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
        if is_public(address) or opening:
            return
        if is_private(address):
            if not any(pattern.is_single_target for pattern in matching):
                raise _refusal(target, TEXTS.run_text("address_not_public", address_is=address_is), target)
        elif is_metadata(address):  # it hands out the keys of the machine, so its entry is not suggested
            raise _refusal(target, TEXTS.run_text("address_metadata", address_is=address_is))
        else:  # link-local: its name and port do not allow such an address
            suggestion = str(address) if port in self.ports else _format_target(str(address), port)
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
    host_text = target.replace("[", "").replace("]", "")
    try:
        network = None if "%" in host_text else ip_network(host_text)
    except ValueError:
        network = None  # it must be a name
    if network is not None:
        return TargetPattern(text=text, network=network, port=_check_port(port, text, list_name))
    wildcard, name = ("*", host_text[1:]) if host_text.startswith("*") else ("", host_text)
    if name.startswith(".") and wildcard:
        wildcard, name = "*.", name[1:]
    host = normalise_host(ascii_host(name)) if name else ""
    is_invalid = (
        host is None
        or "*" in name
        or (not host and wildcard != "*")
        or (wildcard == "*" and bool(name))
        or target != host_text
    )
    if is_invalid or "/" in text or parse_address(host or "") is not None:
        raise ConfigError(
            f"{list_name}: {_without_password(text)!r} is not a valid target.",
            hint="Write a host (api.example.com), *.example.com, an address or a range (10.0.0.0/8), optionally "
            "with :PORT; without scheme and path.",
        )
    return TargetPattern(text=text, host=wildcard + (host or ""), port=_check_port(port, text, list_name))


def _check_port(port: int | None, text: str, list_name: str) -> int | None:
    if port is not None and not 0 < port < 65536:
        raise ConfigError(
            f"{list_name}: {_without_password(text)!r} has no usable port.", hint="Ports are numbers from 1 to 65535."
        )
    return port


def _may_match(pattern: TargetPattern, name: str, port: int) -> bool:
    """Whether a pattern may match a host, by its name only: for a range it depends on the addresses of the host."""
    if pattern.network is None:
        return pattern.has_name(name, port)
    address = parse_address(name)
    return pattern.has_port(port) if address is None else pattern.has_address(address, port)


def _format_target(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _refusal(target: str, reason: str, suggestion: str = "", *, denied_by: str = "") -> EgressRefused:
    """The error: `suggestion` is an entry of `allow` that would help, `denied_by` the entry of `deny` against it."""
    if denied_by:
        hint = TEXTS.run_text("refused_hint_deny", entry=denied_by)
    elif suggestion:
        hint = TEXTS.run_text("refused_hint_allow", entry=suggestion)
    else:
        hint = TEXTS.run_text("refused_hint")
    return EgressRefused(TEXTS.run_text("refused", target=target, reason=reason), hint=hint)


def _without_password(text: str) -> str:
    """The beginning of an entry, without a possible password."""
    return re.sub(r"(//|^)[^/@]*@", r"\1…@", text)[:100]


def _require_tuple(name: str, value: object, kind: type, what: str) -> tuple[Any, ...]:
    if not isinstance(value, tuple) or not all(isinstance(item, kind) for item in value):
        raise ConfigError(f"{name}: {repr(value)[:100]} is not a list of {what}.")
    return value
