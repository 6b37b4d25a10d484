"""Where calls go instead: names of services, and hosts, that the operator sends to other addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from taoloop.errors import ConfigError
from taoloop.models.providers import PROVIDERS


class HostOverrides:
    """Base URLs by the name of a service, a domain or a host; remembers which of them were of use.

    `bare` are those that were written as `HOST:PORT`: only the connection goes there, and the header `Host` stays, as
    with the option of curl.
    """

    def __init__(self, bases: Mapping[str, str], bare: Iterable[str] = ()) -> None:
        self._bases = {name.lower(): base for name, base in bases.items()}
        self._bare = {name.lower() for name in bare}
        self._used: set[str] = set()

    @classmethod
    def of(cls, *mappings: Mapping[str, str]) -> HostOverrides:
        """The services at these places, `HOST:PORT` or base URLs by name; later ones go first.

        Raises:
            ConfigError: a place is neither.
        """
        addresses = {name.lower(): address for mapping in mappings for name, address in mapping.items()}
        bases = {name: base_url(name, address) for name, address in addresses.items()}
        return cls(bases, [name for name, address in addresses.items() if "://" not in address])

    def host_header(self, address: str, *names: str) -> dict[str, str]:
        """The header `Host` for what was at `address` and is at the place of the first of `names` that has one."""
        name = next((name.lower() for name in names if name.lower() in self._bases), "")
        return {"Host": urlsplit(address).netloc.rpartition("@")[2]} if name in self._bare else {}

    def base_of(self, *names: str) -> str:
        """The base URL that holds for the first of `names` that has one; empty where none has."""
        for name in names:
            if base := self._bases.get(name.lower(), ""):
                self._used.add(name.lower())
                return base
        return ""

    def unused(self) -> tuple[str, ...]:
        """The names that nothing in the configuration has."""
        return tuple(name for name in self._bases if name not in self._used)

    def redirect(self, address: str) -> str:
        """`address` at the place that holds for its host, with its own path and query; as it is where none does."""
        try:
            parts = urlsplit(address)
            host = parts.hostname or ""
        except ValueError:  # what is no address is told elsewhere
            return address
        base = self.base_of(host) if host else ""
        return base + parts.path + (f"?{parts.query}" if parts.query else "") if base else address

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """`env` with the addresses of models' providers moved: what differs stands in their variables."""
        changed = {}
        for provider in PROVIDERS.values():
            address = env.get(provider.base_url_var, "").strip() or provider.base_url
            if (moved := self.redirect(address)) != address:
                changed[provider.base_url_var] = moved
        return {**env, **changed}

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._bases)


def read_resolve(pairs: Iterable[str]) -> dict[str, str]:
    """`NAME=HOST:PORT` of a command line, by name.

    Raises:
        ConfigError: one is of another form.
    """
    addresses = {}
    for pair in pairs:
        name, separator, address = pair.partition("=")
        if not separator or not name.strip():
            raise ConfigError(f"--resolve {pair!r}: it names no service.", hint="Write NAME=HOST:PORT.")
        addresses[name.strip()] = base_url(name.strip(), address.strip())
    return addresses


def base_url(name: str, address: str) -> str:
    """The base URL for a place that is written as `HOST:PORT`, or as a URL already.

    Raises:
        ConfigError: it is neither.
    """
    url = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_plain = not parts.query and not parts.fragment and not any(char.isspace() for char in url)
        has_port = "://" in address or parts.port is not None
    except ValueError:  # a port that is none, brackets that do not close
        is_usable = is_plain = has_port = False
    if not (is_usable and is_plain and has_port):
        raise ConfigError(
            f"The service {name!r} cannot be at {address!r}.",
            hint="Write HOST:PORT, or an http(s) URL without a query.",
        )
    return url.rstrip("/")
