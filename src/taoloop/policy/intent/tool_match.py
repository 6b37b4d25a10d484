"""Which tools a task calls for, judged by its words and those of the card alone.

A tool is pinned if the task asks for its act (send, pay, delete …, in English or Chinese) on the kind of thing that the
tool acts on, or names the tool itself. What is quoted, forbidden, past, or somebody else's doing is no request. That
bounds what a hijacked run can do unasked, and nothing else: a pin by itself allows no call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from taoloop.core.cards.tool_card import ToolCard
from taoloop.policy.intent.requests import Request, chinese_requests, requests_of, said_outright
from taoloop.policy.intent.vocabulary import (
    ACTS,
    AMBIGUOUS,
    BARE,
    BARE_SIGNS,
    CARRIERS,
    KIND_OF,
    LIGHT,
    NOMINAL,
    SIGN_KINDS,
    USUAL,
    USUAL_SIGNS,
    VERBS,
    stem,
)
from taoloop.policy.value_match import normalise_text

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SPOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?")
_SMALL = frozenset(
    [
        "a",
        "an",
        "the",
        "to",
        "of",
        "for",
        "in",
        "on",
        "by",
        "with",
        "and",
        "or",
        "from",
        "my",
        "all",
        "get",
        "is",
        "new",
    ]
)
_MAKES = frozenset({"create", "make", "new", "setup"})
_PUTS = frozenset({"add", "put", "write", "append", "insert", "save", "store", "set", "note", "register"})
_CREATING = {"new": "create"}


class TaskIntent:
    """The words of a task, against which cards are held."""

    def __init__(self) -> None:
        self._unread: list[str] = []
        self._texts: list[str] = []
        self._requests: list[Request] = []

    def add(self, text: str) -> None:
        """Take in one more text of the task."""
        self._unread.append(text)

    def holds(self, card: ToolCard) -> bool:
        """Whether the task calls for this tool."""
        for text in self._unread:
            self._texts.append(text)
            self._requests += requests_of(text)
            self._requests += chinese_requests(text)
        self._unread.clear()
        tool = _tool(card.name, card.purpose)
        name = normalise_text(card.name)
        if not tool.is_plain_verb and any(
            name in normalise_text(text) and said_outright(text, name) for text in self._texts
        ):
            return True
        if any(tool.agrees(one) for one in self._requests):
            return True
        return tool.is_unknown and any(said_outright(text, word) for word in tool.acts for text in self._texts)


@dataclass(frozen=True, slots=True)
class _Tool:
    """What the name of a tool, or else its purpose, says of its act.

    `acts` and `signs` are the words that ask for the act. `nouns` are the other words of the name, `kinds` what is
    known of them; `head` is what it acts on, the last noun before a preposition (add_USER_to_channel).
    """

    acts: frozenset[str]
    signs: frozenset[str]
    nouns: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    head: frozenset[str] = frozenset()
    makes: bool = False
    """Makes a new thing: what is put into a thing that is there is no call for it."""
    is_unknown: bool = False
    """Its act is in no list: its own words name it."""
    is_plain_verb: bool = False
    """Its name is a word of everyday speech."""

    def agrees(self, asked: Request) -> bool:
        """Whether a request is for this act on this kind of thing."""
        if asked.act not in (self.signs if asked.is_chinese else self.acts):
            return False
        if not self.nouns.isdisjoint(asked.words):
            return True
        if asked.is_chinese:
            return self._agrees_in_chinese(asked)
        found = asked.direct
        if not found and not (self.makes and asked.act in _PUTS):
            found = asked.further
            known = self.kinds
        else:
            known = self.head
        return self._fits(asked, found, known, USUAL.get(asked.act), bare=asked.act in BARE)

    def _agrees_in_chinese(self, asked: Request) -> bool:
        usual = USUAL_SIGNS.get(asked.act)
        return self._fits(asked, asked.direct, self.kinds, usual, bare=asked.act in BARE_SIGNS)

    def _fits(
        self, asked: Request, found: frozenset[str], known: frozenset[str], usual: frozenset[str] | None, *, bare: bool
    ) -> bool:
        """Whether the things that the request names, or those that its act is usually done to, are the tool's."""
        carries = usual is not None and bool(usual & self.head & CARRIERS)
        if carries and (found - {"money"} or (asked.to_user and "message" in found)):
            return True
        if not self.head:  # nobody knows what it acts on
            return not asked.to_user and not (bare and found)
        if found:
            return not found.isdisjoint(known)
        if bare or asked.to_user:
            return False
        return usual is None or not usual.isdisjoint(self.head)


@lru_cache(maxsize=4096)
def _tool(name: str, purpose: str) -> _Tool:
    """The act of a tool: the verb in its name, else the first one of its purpose, with all that means the same."""
    words = [stem(word.lower()) for word in _WORD.findall(name)]
    listed = [word for word in words if word in VERBS or word in _CREATING]
    verb = next((word for word in listed if word not in AMBIGUOUS), listed[0] if listed else "")
    if not verb:
        opening = [stem(word) for word in _SPOKEN.findall(normalise_text(purpose))[:2]]
        verb = next((word for word in opening if word in VERBS), "")
    acts, signs = {verb} if verb else set(), set[str]()
    named = {_CREATING.get(verb, verb)}
    if not LIGHT.isdisjoint(words):  # make_payment, place_order
        named |= {NOMINAL[word] for word in words if word in NOMINAL}
        words = [word for word in words if word not in LIGHT or word in VERBS]
    for english, chinese in ACTS:
        if not named.isdisjoint(english):
            acts |= english
            signs |= chinese
        if not verb and any(sign in name + purpose[:12] for sign in chinese):
            acts |= english
            signs |= chinese
    if not acts:  # an act that nobody listed: its own name
        return _Tool(acts=frozenset(word for word in words if word not in _SMALL), signs=frozenset(), is_unknown=True)
    nouns, head = _nouns(words, verb)
    kinds = frozenset().union(*(KIND_OF.get(word, frozenset()) for word in nouns), *_chinese_kinds(name))
    if not nouns and not kinds:
        kinds = frozenset().union(
            *(KIND_OF.get(stem(word), frozenset()) for word in _SPOKEN.findall(normalise_text(purpose))[:12]),
            *_chinese_kinds(purpose[:40]),
        )
    return _Tool(
        acts=frozenset(acts),
        signs=frozenset(signs),
        nouns=frozenset(nouns),
        kinds=kinds,
        head=head or kinds,
        makes=verb in _MAKES,
        is_plain_verb=len(words) == 1 and normalise_text(name).isascii() and words[0] in VERBS,
    )


def _nouns(words: list[str], verb: str) -> tuple[list[str], frozenset[str]]:
    """The words of a name beside its verb, and the kinds of the last one before a preposition."""
    rest = list(words)
    if verb in rest:
        rest.remove(verb)
    nouns = [word for word in rest if word not in _SMALL]
    before: list[str] = []
    for word in rest:
        if word in _SMALL and before:
            break
        if word not in _SMALL:
            before.append(word)
    return nouns, KIND_OF.get(before[-1], frozenset()) if before else frozenset()


def _chinese_kinds(text: str) -> Iterator[frozenset[str]]:
    return (kinds for sign, kinds in SIGN_KINDS.items() if sign in text)
