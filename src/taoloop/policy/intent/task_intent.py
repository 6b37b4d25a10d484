"""Which tools a task asks for, judged by its words and those of the card alone.

A tool is pinned if the task asks for its act (send, pay, delete …, in English or Chinese) on the kind of thing that the
tool acts on, or names the tool itself. What is quoted, forbidden, past, or done by somebody else is not a request. That
limits what a hijacked run can do without a question, and nothing else: a pin by itself allows no call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile, takewhile

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.core.words import name_words
from taoloop.policy.intent.requests import (
    Request,
    chinese_requests,
    hands_over,
    mentions_outright,
    refers_to_own_list,
    requests_of,
)
from taoloop.policy.intent.vocabulary import (
    ACTS,
    AMBIGUOUS_VERBS,
    CARRIERS,
    CHINESE_KINDS,
    KIND_OF,
    LIGHT_VERBS,
    NOUN_ACTS,
    TALK_VERBS,
    USUAL_CHINESE_KINDS,
    USUAL_KINDS,
    VAGUE_ACTS,
    VAGUE_CHINESE_ACTS,
    VERBS,
    stem,
    words_of,
)
from taoloop.policy.value_match import normalise_text

_ENGLISH_WORD = lazy_pattern(r"[a-z]+(?:'[a-z]+)?")
_FUNCTION_WORDS = words_of("a an the to of for in on by with and or from my all get is new")
_CREATING_VERBS = frozenset({"create", "make", "new", "setup"})
_PUTTING_VERBS = frozenset({"add", "put", "write", "append", "insert", "save", "store", "set", "note", "register"})
_MONEY = frozenset({"money"})
_PRIVATE_NOUNS = frozenset({"direct", "private", "dm"})
_VERB_SYNONYMS = {"new": "create", "archive": "shelve"}


class TaskIntent:
    """The words of a task, with which cards are compared."""

    def __init__(self) -> None:
        self._unread: list[str] = []
        self._texts: list[str] = []
        self._requests: list[Request] = []

    def add(self, text: str) -> None:
        """Add one more text of the task."""
        self._unread.append(text)

    @property
    def refers_to_own_list(self) -> bool:
        """Whether the task is to do what its author wrote elsewhere."""
        self._read()
        return any(refers_to_own_list(text) for text in self._texts)

    @property
    def has_requests(self) -> bool:
        """Whether the task asks for anything that has an effect."""
        self._read()
        return bool(self._requests)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the task."""
        self._read()
        return tuple(self._texts)

    @property
    def hands_over(self) -> bool:
        """Whether another text is to say what is to be done."""
        return any(map(hands_over, self.texts))

    @property
    def acts(self) -> frozenset[str]:
        """The words of the acts that it asks for."""
        self._read()
        return frozenset(request.act for request in self._requests)

    @property
    def says_anything(self) -> bool:
        """Whether there is a word in it."""
        return any(map(str.isalnum, "".join(self.texts)))

    def speaks_of(self, card: ToolCard) -> bool:
        """Whether it has a word for the act of this tool, in whatever sense: "why did you refund it", "do not"."""
        tool = _tool_act(card.name, card.purpose if card.described_by == "operator" else "")
        text = normalise_text(" ".join(self.texts))
        chinese = text.replace("了", "").replace("过", "")
        return any(stem(word) in tool.acts for word in _ENGLISH_WORD.findall(text)) or any(
            act in chinese for act in tool.chinese_acts
        )

    def _read(self) -> None:
        for text in self._unread:
            self._texts.append(text)
            self._requests += requests_of(text)
            self._requests += chinese_requests(text)
        self._unread.clear()

    def calls_for(self, card: ToolCard) -> bool:
        """Whether the task asks for this tool."""
        self._read()
        tool = _tool_act(card.name, card.purpose if card.described_by == "operator" else "")
        name = normalise_text(card.name)
        if not tool.is_plain_verb and any(
            name in normalise_text(text) and mentions_outright(text, name) for text in self._texts
        ):
            return True
        if any(tool.agrees(request) for request in self._requests):
            return True
        return tool.is_unknown and any(mentions_outright(text, word) for word in tool.acts for text in self._texts)


def last_request(messages: Sequence[str]) -> str:
    """The last of a person's messages that asks for anything that has an effect; empty if none does."""
    for text in reversed(messages):
        intent = TaskIntent()
        intent.add(text)
        if intent.has_requests:
            return text
    return ""


@dataclass(frozen=True, slots=True)
class _ToolAct:
    """What the name of a tool, or else its purpose, says about its act.

    `acts` and `chinese_acts` are the words that ask for the act. `nouns` are the other words of the name, `kinds` what
    is known of them; `head` is what it acts on, the last noun before a preposition (add_USER_to_channel).
    """

    acts: frozenset[str]
    chinese_acts: frozenset[str]
    nouns: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    head: frozenset[str] = frozenset()
    creates: bool = False
    """Makes a new thing; a request to put something into an existing one does not ask for it."""
    is_unknown: bool = False
    """Its act is in no list: its own words name it."""
    is_plain_verb: bool = False
    """Its name is a word of everyday speech."""

    def agrees(self, request: Request) -> bool:
        """Whether a request is for this act on this kind of thing."""
        if request.act not in (self.chinese_acts if request.is_chinese else self.acts):
            return False
        if not request.destination.isdisjoint(self._other_destinations):
            return False
        if not self.nouns.isdisjoint(request.words):
            return True
        if request.is_chinese:
            usual, bare = USUAL_CHINESE_KINDS.get(request.act), request.act in VAGUE_CHINESE_ACTS
            return self._fits(request, request.direct, self.kinds, usual, bare=bare)
        usual = USUAL_KINDS.get(request.act)
        kinds = request.direct
        tool_kinds = self.head
        if not kinds and not (self.creates and request.act in _PUTTING_VERBS):
            kinds, tool_kinds = request.further, self.kinds
            kinds |= _MONEY if kinds and usual == _MONEY else frozenset()  # pay Ann 50 for lunch
        return self._fits(request, kinds, tool_kinds, usual, bare=request.act in VAGUE_ACTS)

    @property
    def _other_destinations(self) -> frozenset[str]:
        """Kinds that the tool puts nothing into: a page is no channel, and neither is a message to one person."""
        if "page" in self.head:
            return CARRIERS - self.kinds
        return frozenset() if self.nouns.isdisjoint(_PRIVATE_NOUNS) else frozenset({"channel"})

    def _fits(
        self,
        request: Request,
        kinds: frozenset[str],
        tool_kinds: frozenset[str],
        usual: frozenset[str] | None,
        *,
        bare: bool,
    ) -> bool:
        """Whether the things that the request names, or those that its act is usually done to, are the tool's."""
        carries = usual is not None and bool(usual & self.head & CARRIERS)
        if carries and (kinds - {"money"} or (request.to_user and "message" in kinds)):
            return True
        if not self.head:  # it is unknown what it acts on
            return not request.to_user and not (bare and kinds - (usual or frozenset()))
        if kinds == _MONEY and usual is not None and request.act in ("refund", "退款"):
            kinds = usual  # refund 15 EUR of an order
        if kinds:
            return not kinds.isdisjoint(tool_kinds)
        if bare or request.to_user:
            return False
        return usual is None or not usual.isdisjoint(self.head)


@lru_cache(maxsize=4096)
def _tool_act(name: str, purpose: str) -> _ToolAct:
    """The act of a tool: the verb in its name, else the first one of its purpose, with all its synonyms."""
    words = [stem(word) for word in name_words(name) if word.isalpha()]
    verbs = [word for word in words if word in VERBS or word in _VERB_SYNONYMS]
    verb = next((word for word in verbs if word not in AMBIGUOUS_VERBS), verbs[0] if verbs else "")
    if not verb:
        opening = [stem(word) for word in _ENGLISH_WORD.findall(normalise_text(purpose))[:2]]
        verb = next((word for word in opening if word in VERBS), "")
    acts, chinese_acts = {verb} if verb else set(), set[str]()
    wanted_verbs = {_VERB_SYNONYMS.get(verb, verb)}
    if not LIGHT_VERBS.isdisjoint(words):  # make_payment, place_order
        wanted_verbs |= {NOUN_ACTS[word] for word in words if word in NOUN_ACTS}
        words = [word for word in words[:-1] if word not in LIGHT_VERBS or word in VERBS] + words[-1:]  # create_issue
    for english, chinese in ACTS:
        if not wanted_verbs.isdisjoint(english):
            acts |= english
            chinese_acts |= chinese
        if not verb and any(act in name + purpose[:12] for act in chinese):
            acts |= english
            chinese_acts |= chinese
    if not acts:  # an act that is not listed: its own name
        return _ToolAct(
            acts=frozenset(word for word in words if word not in _FUNCTION_WORDS),
            chinese_acts=frozenset(),
            is_unknown=True,
        )
    nouns, head = _nouns(words, verb)
    if "page" in head:
        acts -= TALK_VERBS - {verb}
    kinds = frozenset().union(*(KIND_OF.get(word, frozenset()) for word in nouns), *_chinese_kinds(name))
    if not nouns and not kinds:
        kinds = frozenset().union(
            *(KIND_OF.get(stem(word), frozenset()) for word in _ENGLISH_WORD.findall(normalise_text(purpose))[:12]),
            *_chinese_kinds(purpose[:40]),
        )
    return _ToolAct(
        acts=frozenset(acts),
        chinese_acts=frozenset(chinese_acts),
        nouns=frozenset(nouns),
        kinds=kinds,
        head=head or kinds,
        creates=verb in _CREATING_VERBS,
        is_plain_verb=len(words) == 1 and normalise_text(name).isascii() and words[0] in VERBS,
    )


def _nouns(words: list[str], verb: str) -> tuple[list[str], frozenset[str]]:
    """The words of a name other than its verb, and the kinds of the last one before a preposition."""
    rest = list(words)
    if verb in rest:
        rest.remove(verb)
    nouns = [word for word in rest if word not in _FUNCTION_WORDS]
    from_first_noun = dropwhile(_FUNCTION_WORDS.__contains__, rest)
    before = list(takewhile(lambda word: word not in _FUNCTION_WORDS, from_first_noun))
    return nouns, KIND_OF.get(before[-1], frozenset()) if before else frozenset()


def _chinese_kinds(text: str) -> Iterator[frozenset[str]]:
    return (kinds for noun, kinds in CHINESE_KINDS.items() if noun in text)
