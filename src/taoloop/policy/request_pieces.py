"""What the arguments of a read that sends data out are: addresses, the rest of one, and text for a service. Pure.

A tool may take its destination in any argument: `ping(server=…)`, `dns_lookup(name=…)`. So the name of a parameter says
that its value is an address, or that it is text or a name of something else (`query`, `path`, `symbol`); for all other
parameters the value says it by its form. A tool may also take one address in pieces (`host`, `path`, `params`): what
counts then is the address that they make together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.core.words import name_words
from taoloop.policy.foreseen_arguments import unforeseen_names
from taoloop.policy.targets import leaves
from taoloop.policy.value_match import host_of, is_written_address, links_in, strip_invisible


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


_DESTINATIONS: Final = _words(
    "server servers ip ips ipv hosts hostnames domains websites fqdn nameserver nameservers resolver proxy subdomain"
    " netloc socket"
)
"""Besides those of `ToolCard.is_address`, which also decides whether an undeclared read sends data out."""
_TEXTS: Final = _words(
    "query queries q search text texts question questions prompt message messages keyword keywords term terms phrase"
    " topic content note notes description instruction instructions sentence title subject"
)
_OTHER_NAMES: Final = _words(
    "file files filename path paths package packages library libraries module modules version versions symbol symbols"
    " ticker tickers stock code codes company brand product author authors city place location person repo repository"
    " branch language email mail model format"
)
"""What is often written like a host: `README.md`, `0700.HK`, `vue.js`, `St.Gallen`."""
_NETWORK_TOOLS: Final = _words(
    "dns nslookup dig whois ping traceroute tracert resolve resolver http https curl wget telnet ssh ftp sftp"
    " tcp udp tls ssl"
)
"""Tools that may go where any of their arguments says."""
_SEARCH_TOOLS: Final = _words("search find research retrieve")
_FILTERS: Final = _words("site sites website websites domain domains")
"""What narrows a search, at the service that the operator chose. A server or a proxy is where it goes."""
_SERVICES: Final = _words("engine engines endpoint backend instance provider base mirror gateway api target")
"""What may name the service itself."""

_SCHEMES: Final = _words("scheme protocol")
_PORTS: Final = _words("port")
_PATHS: Final = _words("path paths route resource slug uripath pathname")
_QUERIES: Final = _words("params param parameters query querystring qs q args search")
_FRAGMENTS: Final = _words("fragment anchor hash")
_BODIES: Final = _words(
    "body data payload json form header headers cookie cookies auth authorization username password credentials token"
    " bearer agent"
)
_LOCAL: Final = _words("save output local folder directory")
_SETTINGS: Final = _words(
    "note notes prompt prompts instruction instructions question goal task reason purpose description format formats"
    " type encoding charset language languages lang locale method verb mode depth style view"
    " size sort level quality unit units selector selectors"
)
"""What a tool is told about its work, and does not send to the page that it reads."""
_DEFAULTS: Final = frozenset({"", "/", "80", "443", "http", "https", "http://", "https://"})
_IPV6 = lazy_pattern(r"(?=.*::|[^:]*(?::[^:]*){7}\Z)[0-9a-f:.]+(?:%\w+)?", re.IGNORECASE)
_NUMERIC_IP = lazy_pattern(r"0x[0-9a-f]{1,8}|\d{8,11}|(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){2,3}", re.IGNORECASE)
"""What programs take for an IPv4 address besides four numbers."""
_PIECE = lazy_pattern(r"\s*(?:[/?#&;]|[^\s=]+=)")  # /a, ?a, a=b
_HOST_TAIL = lazy_pattern(r"\s*(?:[@:\\]|\.\w)|[^/?#]*@(?![\w.-]+\Z)")  # another host where both are merely joined
_BARE_HOST = lazy_pattern(r"(?:[a-z0-9+.-]+:/*)?[^/?#]*", re.IGNORECASE)


def takes_destination(card: ToolCard, name: str) -> bool:
    """Whether an argument takes a destination on the network, whatever its value looks like."""
    return card.is_address(name) or not _DESTINATIONS.isdisjoint(name_words(name))


def addresses_in(card: ToolCard, name: str, value: Any) -> Iterator[str]:
    """The texts in an argument that name, or may name, a destination."""
    words, is_search = frozenset(name_words(name)), is_search_tool(card)
    is_destination = card.is_address(name) or (
        takes_destination(card, name) and (not is_search or _FILTERS.isdisjoint(words))
    )
    for path, part in [*leaves(value), *(("", key) for key in unforeseen_names(card, {name: value}))]:
        if isinstance(part, int) and not isinstance(part, bool) and is_destination and not isinstance(value, Mapping):
            yield str(part)  # 16909060 is 1.2.3.4
        if not isinstance(part, str) or not part.strip():
            continue
        if is_destination or is_written_address(part):
            yield part
        elif (not is_search or not _SERVICES.isdisjoint(words)) and _may_name_host(card, name, path):
            yield from [part] if _is_host(card, strip_invisible(part).strip()) else sorted(links_in(part))


def is_search_tool(card: ToolCard) -> bool:
    """Whether a tool searches at a service that the operator chose: a domain among its arguments is a filter."""
    if _is_network_tool(card) or _SEARCH_TOOLS.isdisjoint(name_words(card.name)):
        return False
    return any(not _TEXTS.isdisjoint(name_words(name)) for name in card.parameters)


def _is_network_tool(card: ToolCard) -> bool:
    return not _NETWORK_TOOLS.isdisjoint(name_words(card.name))


def _may_name_host(card: ToolCard, name: str, path: str) -> bool:
    """Whether what is written like a host in an argument is one, as far as its name and that of the tool say."""
    if _is_network_tool(card):
        return True
    return card.role(name) != "content" and (_TEXTS | _OTHER_NAMES).isdisjoint(name_words(f"{name} {path}"))


def _is_host(card: ToolCard, text: str) -> bool:
    if host_of(text) is not None or _IPV6.fullmatch(text):
        return True
    if not _is_network_tool(card):
        return False
    return _NUMERIC_IP.fullmatch(text) is not None or host_of(text.rpartition("@")[2]) is not None


class RequestPieces:
    """What is sent beside the addresses of a call: the rest of an address, and everything else.

    `arguments` are those that name no address. Settings of the tool are left out: choices of its schema, numbers,
    and what it is told about its work.
    """

    def __init__(self, card: ToolCard, arguments: Mapping[str, Any]) -> None:
        self._pieces: dict[str, list[Any]] = {"scheme": [], "port": [], "path": [], "query": [], "fragment": []}
        self.others: dict[str, list[Any]] = {}
        """What is no piece of an address, by argument."""
        self.has_body = False
        """Whether a body, headers or an object that no schema describes are sent."""
        for name, value in arguments.items():
            if value not in (None, "", [], {}) and not isinstance(value, bool):
                self._add(card, name, value)

    def _add(self, card: ToolCard, name: str, value: Any) -> None:
        words = frozenset(name_words(name))
        if not _LOCAL.isdisjoint(words):
            return
        kinds = {"scheme": _SCHEMES, "port": _PORTS, "path": _PATHS, "query": _QUERIES, "fragment": _FRAGMENTS}
        kind = next((kind for kind, names in kinds.items() if not names.isdisjoint(words)), None)
        if not _BODIES.isdisjoint(words):
            self.has_body = True
        elif kind is not None:
            if str(value).strip().lower() not in _DEFAULTS:
                self._pieces[kind].append(value)
        elif any(True for _ in unforeseen_names(card, {name: value})):
            self.has_body = True
        else:
            is_setting = card.role(name) == "content" or not _SETTINGS.isdisjoint(words)
            for _, part in leaves(value):
                if not isinstance(part, str) or not part.strip() or part in _choices(card, name):
                    continue
                if _PIECE.match(part):
                    self._pieces["query"].append(part)
                elif not is_setting:
                    self.others.setdefault(name, []).append(part)

    @property
    def are_empty(self) -> bool:
        """Whether no address is put together and nothing goes with it but `others`."""
        return not self.has_body and not any(self._pieces.values())

    def may_change_host(self, address: str) -> bool:
        """Whether a part may end or go on with the host of an address before it: `@evil.example`, `.evil.example`."""
        if not _BARE_HOST.fullmatch(address.strip()):
            return False
        pieces = [*self._pieces.values(), *self.others.values()]
        texts = (str(part) for piece in pieces for _, part in leaves(piece))
        return any(_HOST_TAIL.match(text) or host_of(text) is not None for text in texts)

    def joined_to(self, address: str) -> Iterator[str]:
        """The addresses that the pieces may make with this one; none if that cannot be known."""
        if any(len(pieces) > 1 for pieces in self._pieces.values()):
            return
        scheme, port, path, query, fragment = ((pieces or [None])[0] for pieces in self._pieces.values())
        if any(isinstance(piece, Mapping | list) for piece in (scheme, port, path, fragment)):
            return
        begin = address.strip()
        if port is not None:
            begin = f"{begin.rstrip('/')}:{port}"
        if scheme is not None and "://" not in begin:
            begin = f"{str(scheme).removesuffix('://')}://{begin}"
        if path is not None:
            begin = f"{begin.rstrip('/')}/{str(path).lstrip('/')}"
        end = "" if fragment is None else f"#{str(fragment).removeprefix('#')}"
        for text in _query_forms(query):
            separator = "" if not text else "&" if "?" in begin else "?"
            yield f"{begin}{separator}{text}{end}"


def _query_forms(query: Any) -> Iterator[str]:
    if isinstance(query, Mapping):
        plain = "&".join(f"{name}={value}" for name, value in query.items())
        yield from (plain, plain.replace(" ", "+"), plain.replace(" ", "%20"))
    elif not isinstance(query, list):
        yield "" if query is None else str(query).lstrip("?&")


def _choices(card: ToolCard, name: str) -> list[Any]:
    """The values that the schema of an argument offers."""
    rule = card.parameters.get(name)
    rules = [rule, rule.get("items")] if isinstance(rule, Mapping) else []
    rules += list(rule.get("anyOf", ())) if isinstance(rule, Mapping) else []
    return [choice for part in rules if isinstance(part, Mapping) for choice in part.get("enum", ())]
