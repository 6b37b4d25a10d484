"""Where a read sends data: the addresses that people and the operator named, and links that the run has read. Pure.

An address can carry whatever its author knew. What the task, the operator and the allowed hosts name carries nothing
that they did not decide; an address that the model wrote may carry the task, before anything was read as well as
after. A link that is in a page or a search result, exactly as it is there, carries only what its author knew: what is
left is the choice between the links, which the policy bounds (`followed_hosts`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import ActionRequested, Event, Observed, RunStarted
from taoloop.core.policy import Policy
from taoloop.core.text import lazy_pattern
from taoloop.core.trace import Trace
from taoloop.policy.foreseen_arguments import unforeseen_names
from taoloop.policy.provenance import Provenance
from taoloop.policy.request_pieces import RequestPieces, addresses_in, is_search_tool, takes_destination
from taoloop.policy.targets import first_name, leaves
from taoloop.policy.value_match import URL, ascii_host, has_invisible, host_of, is_written_address, trim_punctuation

FOLLOWED: Final = "read_out_offered"
"""The rule of a verdict on a read that follows links of the run."""
DEFAULT_FOLLOWED_HOSTS = 5
"""The bound under `supervised` if the policy states none."""
LINKS_PER_HOST = 2
"""How many links a run may follow for each host that it may follow links to."""

_LINK = lazy_pattern(r"https?://[^\s<>\"'`\\|，。；、）》」\u3000]+(?=[\s<>\"'`|，。；、）》」\u3000]|\\[nrt\"]|\Z)")


def names_known_addresses(provenance: Provenance, policy: Policy, card: ToolCard, args: Any) -> bool:
    """Whether the task or the operator names every address in a read, or its host is allowed.

    What makes up an address together counts as one (`request_pieces`), and what else is sent there must be in the
    trusted texts, unless its host is allowed. All else goes to a service that the operator configured: enough before
    untrusted text was read.
    """
    sent = dict(_sent_arguments(card, args))
    found = {name: list(addresses_in(card, name, value)) for name, value in sent.items()}
    addresses = [address for texts in found.values() for address in texts]
    parts = RequestPieces(card, {name: _rest_of(card, name, value, found[name]) for name, value in sent.items()})
    if all(_has_allowed_host(policy, address) for address in addresses):
        return not any(map(parts.may_change_host, addresses))
    for address in addresses:
        if not _has_allowed_host(policy, address) and not any(map(provenance.has_address, parts.joined_to(address))):
            return False
    return not parts.has_body and all(
        provenance.is_trusted_value(value, card.role(name)) for name, values in parts.others.items() for value in values
    )


def _rest_of(card: ToolCard, name: str, value: Any, addresses: list[str]) -> Any:
    """What an argument sends besides addresses; of one that takes an address, nothing."""
    if not addresses:
        return value
    if takes_destination(card, name) or value in addresses:
        return None
    return [part for part in value if part not in addresses] if isinstance(value, list) else value


def goes_to_known_hosts(provenance: Provenance, policy: Policy, card: ToolCard, args: Any) -> bool:
    """Whether the task names every destination of a read, or its host is allowed; and everything else that is sent."""
    return not list(_unknown_parts(provenance, policy, card, args))


def follows_links(trace: Trace, provenance: Provenance, policy: Policy, card: ToolCard, args: Any) -> bool:
    """Whether a read goes only to known addresses and to links that the run has read, within the policy's bound."""
    bound = host_bound(policy)
    if bound == 0 or card.tier != "read":
        return False
    beside = {name: value for name, value in _sent_arguments(card, args) if not card.is_address(name)}
    if not RequestPieces(card, beside).are_empty:
        return False
    links = list(_unknown_parts(provenance, policy, card, args))
    followed = trace.view("links", OfferedLinks)
    return (
        bool(links) and all(link is not None for link in links) and followed.may_follow([*filter(None, links)], bound)
    )


def host_bound(policy: Policy) -> int:
    """To how many hosts a run may follow links without a question."""
    if policy.followed_hosts is not None:
        return policy.followed_hosts
    return DEFAULT_FOLLOWED_HOSTS if policy.profile == "supervised" else 0


def _sent_arguments(card: ToolCard, args: Any) -> Iterator[tuple[str, Any]]:
    for name, value in args.items() if isinstance(args, Mapping) else ():
        if card.role(name) != "minor" or name not in card.parameters:
            yield name, value


def _unknown_parts(provenance: Provenance, policy: Policy, card: ToolCard, args: Any) -> Iterator[str | None]:
    """What nobody named of all that a read sends: an address as it is written; None for anything else."""
    for name, value in _sent_arguments(card, args):
        if any(not provenance.words.has_phrase(key) for key in unforeseen_names(card, {name: value})):
            yield None
        for _, part in leaves(value):
            if not _is_known_destination(provenance, policy, card, name, part):
                yield part if isinstance(part, str) and card.is_address(name) else None


def _is_known_destination(provenance: Provenance, policy: Policy, card: ToolCard, name: str, value: Any) -> bool:
    if value is None or value == "" or provenance.has_address(value):
        return True
    takes_address = card.is_address(name)
    if provenance.authority != "full" and isinstance(value, str) and is_written_address(value):
        takes_address = True  # wherever it is: its user names no address
    if not takes_address and provenance.is_trusted_value(value, card.role(name)):
        return True
    sends = isinstance(card.egress, tuple) and name in card.egress
    return (takes_address or sends) and isinstance(value, str) and _has_allowed_host(policy, value)


def _has_allowed_host(policy: Policy, address: str) -> bool:
    host = host_of(address) if URL.fullmatch(address) else None
    return bool(host) and any(fnmatchcase(host or "", ascii_host(pattern)) for pattern in policy.allowed_hosts)


class OfferedLinks:
    """The links in what reads of a run brought back from outside, and those that it followed. A view of the trace.

    Only pages and search results count: the outputs of reads whose card says that they send data out. Whatever else a
    run reads, such as the answer of another agent, a database or a calculation, may have been put together by the
    model, and a link with it. For the same reason a link does not count whose host is in a text that the model sent.
    """

    def __init__(self) -> None:
        self._cards: dict[str, ToolCard] = {}
        self._is_nested = False
        self._open: dict[str, ActionRequested] = {}
        self._unread: list[str] = []
        self._links: set[str] = set()
        self._sent: list[str] = []  # what the model wrote in the arguments of such reads
        self._followed_hosts: set[str] = set()
        self._followed = 0

    def fold(self, event: Event) -> None:
        """Take in the next event."""
        match event.fact:
            case RunStarted() as fact:
                self._cards = {card.name: card for card in fact.agent.tools}
                self._is_nested = fact.parent is not None
            case ActionRequested() as fact if fact.verdict != "deny":
                card = self._cards.get(fact.tool)
                if card is not None and card.tier == "read" and card.sends_out(fact.args):
                    self._open[fact.call_id] = fact
                if fact.rule == FOLLOWED and fact.verdict == "allow":
                    addresses = [part for _, part in leaves(fact.args) if isinstance(part, str)]
                    self._count([address for address in addresses if _LINK.fullmatch(address)])
            case Observed() as fact:
                requested = self._open.pop(fact.call_id, None)
                if requested is not None and fact.child is None and fact.error is None:
                    self._unread.append(fact.output)
                    self._sent += _written_texts(self._cards[requested.tool], requested.args)
            case _:
                pass

    def _count(self, addresses: list[str]) -> None:
        self._followed += len(addresses)
        self._followed_hosts.update(host_of(address) or "" for address in addresses)

    def may_follow(self, addresses: list[str], bound: int) -> bool:
        """Whether these are links of the run, and with them it follows no more hosts and links than it may.

        A nested run follows none: each would have a bound of its own.
        """
        hosts = {host_of(address) or "" for address in addresses}
        if self._is_nested or "" in hosts or not all(map(self._is_offered, addresses)):
            return False
        return len(self._followed_hosts | hosts) <= bound and self._followed + len(addresses) <= LINKS_PER_HOST * bound

    def _is_offered(self, address: str) -> bool:
        while self._unread:
            for text in _texts_of(self._unread.pop()):
                for match in _LINK.finditer(text):
                    self._links.update(_forms_of(match.group()))
        host = host_of(address) or ""
        return address in self._links and not has_invisible(address) and not any(host in text for text in self._sent)


def _written_texts(card: ToolCard, args: Any) -> Iterator[str]:
    """What a call sends besides the host that it goes to. What a search looks for is no such host."""
    for path, part in leaves(args):
        if isinstance(part, str):
            text = part.casefold()
            is_destination = not is_search_tool(card) or card.is_address(first_name(path))
            host = host_of(part) if is_destination else None
            yield text.replace(host, "", 1) if host else text


def _texts_of(output: str) -> Iterator[str]:
    """The texts in an output: those of its JSON, else all of it."""
    try:
        document = json.loads(output)
    except (ValueError, RecursionError):
        yield output
        return
    yield from (part for _, part in leaves(document) if isinstance(part, str))


def _forms_of(link: str) -> Iterator[str]:
    """A link as it is written; without what may be punctuation after it; and without its fragment, never sent."""
    for length in range(len(link), len(trim_punctuation(link)) - 1, -1):
        yield link[:length]
        yield re.split("#", link[:length], maxsplit=1)[0]
