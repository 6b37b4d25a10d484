"""Where calls go instead: names of services, and hosts, that the operator sends to other addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from taoloop.errors import ConfigError
from taoloop.models.providers import PROVIDERS


class Services:
    """Base URLs by the name of a service, a domain or a host; remembers which of them were of use."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): base for name, base in given.items()}
        self._used: set[str] = set()

    def base_of(self, *names: str) -> str:
        """The base URL that holds for the first of `names` that has one; empty where none has."""
        for name in names:
            if found := self._given.get(name.lower(), ""):
                self._used.add(name.lower())
                return found
        return ""

    def unused(self) -> tuple[str, ...]:
        """The names that nothing in the configuration has."""
        return tuple(name for name in self._given if name not in self._used)

    def moved(self, address: str) -> str:
        """`address` at the place that holds for its host, with its own path; as it is where none does."""
        try:
            host = urlsplit(address).hostname or ""
        except ValueError:  # what is no address is told elsewhere
            return address
        base = self.base_of(host) if host else ""
        return base + urlsplit(address).path if base else address

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """`env` with the addresses of models' providers moved: what differs stands in their variables."""
        changed = {}
        for provider in PROVIDERS.values():
            address = env.get(provider.base_url_var, "").strip() or provider.base_url
            if (moved := self.moved(address)) != address:
                changed[provider.base_url_var] = moved
        return {**env, **changed}

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._given)


def read_resolve(pairs: Iterable[str]) -> dict[str, str]:
    """`NAME=HOST:PORT` of a command line, by name.

    Raises:
        ConfigError: one is of another form.
    """
    found = {}
    for pair in pairs:
        name, sign, place = pair.partition("=")
        if not sign or not name.strip():
            raise ConfigError(f"--resolve {pair!r}: it names no service.", hint="Write NAME=HOST:PORT.")
        found[name.strip()] = base_url(name.strip(), place.strip())
    return found


def base_url(name: str, place: str) -> str:
    """The base URL for a place that is written as `HOST:PORT`, or as a URL already.

    Raises:
        ConfigError: it is neither.
    """
    address = place if "://" in place else f"http://{place}"
    try:
        parts = urlsplit(address)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_plain = not parts.query and not parts.fragment and not any(sign.isspace() for sign in address)
        has_port = "://" in place or parts.port is not None
    except ValueError:  # a port that is none, brackets that do not close
        is_usable = is_plain = has_port = False
    if not (is_usable and is_plain and has_port):
        raise ConfigError(
            f"The service {name!r} cannot be at {place!r}.", hint="Write HOST:PORT, or an http(s) URL without a query."
        )
    return address.rstrip("/")
