"""Scores tool cards against a clause: shared concepts, and values that the tool's arguments can take."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from taoloop.core.cards.tool_card import ToolCard
from taoloop.models.offline.extract import Atom, Kind
from taoloop.models.offline.lexicon import CHANGES
from taoloop.models.offline.schema import Param, Role, params
from taoloop.models.offline.words import concepts, name_concepts, name_words

_GENERIC_WORDS = (
    "tool data valu value inform information info result given number name item object get set current "
    "provid support function perform specif retriev detail input output json array integer float"
)
_GENERIC = frozenset(_GENERIC_WORDS.split())
_TAKERS: Mapping[Kind, tuple[frozenset[Role], float, float]] = {
    "path": (frozenset({"path"}), 2.0, 1.5),
    "email": (frozenset({"email"}), 2.0, 1.0),
    "url": (frozenset({"url"}), 2.0, 1.5),
    "currency": (frozenset({"currency"}), 1.5, 1.0),
    "key": (frozenset({"key"}), 1.8, 0.5),
    "id": (frozenset({"id", "key"}), 1.0, 0.3),
    "zone": (frozenset({"zone"}), 1.5, 1.0),
    "place": (frozenset({"place", "zone"}), 1.0, 0.8),
    "date": (frozenset({"date"}), 0.8, 0.3),
    "number": (frozenset({"number"}), 0.3, 0.0),
    "quoted": (frozenset({"query", "text", "name", "any"}), 0.4, 0.0),
}
_OPEN: frozenset[Role] = frozenset({"any", "object", "query", "text", "name", "choice", "list", "id"})
_ACTS = frozenset({"@write", "@append", "@delete", "@send", "@move", "@copy", "@buy", "@pay"})
_WRONG_ACT = 2.5
_HINTS = 2  # so many concepts of the arguments' descriptions stand for one of the tool's own
_COUNTABLE = 1.5  # what is listed can be counted
THRESHOLD = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A card made ready for matching: each concept with the weight of the best place where it stands."""

    card: ToolCard
    params: tuple[Param, ...]
    name: tuple[str, ...]
    strong: Mapping[str, float]
    weak: frozenset[str]
    avoid: frozenset[str]
    changes: frozenset[str]

    @property
    def acts(self) -> bool:
        """True if a call changes the world, by its tier or, where that is not declared, by its verb."""
        return bool(self.changes) or self.card.tier in ("write", "destructive")

    def covers(self, wanted: Iterable[frozenset[str]]) -> bool:
        """True if each verb, given by the concepts that can stand for it, is on the card."""
        return all(verb & self.about for verb in wanted)

    @property
    def about(self) -> frozenset[str]:
        """All that the card speaks of."""
        return self.weak | self.strong.keys()

    def allows(self, about: Iterable[str], *, orders: bool, refused: frozenset[str] = frozenset()) -> bool:
        """True unless the tool changes the world and the task does not clearly order that."""
        if not self.acts:
            return True
        asked = set(about) - refused
        if self.changes and asked & self.changes:
            return orders
        if self.changes:
            verb = set(self.name[:1]) | set(concepts(" ".join(self.card.purpose.split()[:2])))
            return orders and bool(asked & verb) and len(asked & self.strong.keys()) > 1
        return orders and (bool(asked & set(self.name[:2])) or len(asked & self.strong.keys()) > 1)


def profile(card: ToolCard) -> Profile:
    """What a card is about."""
    own = params(card)
    name, purpose, use = name_concepts(card.name), concepts(_can(card.purpose)), concepts(card.use_when)
    strong: dict[str, float] = dict.fromkeys(use, 1.5)
    strong |= dict.fromkeys(purpose, 2.0)
    strong |= dict.fromkeys(name, 3.0)
    weak = {concept for param in own for concept in param.about}
    weak |= {concept for param in own for choice in param.choices[:30] for concept in concepts(str(choice)[:60])}
    for example in tuple(card.examples)[:5]:
        weak |= set(concepts(f"{example.note} {example.args}"[:300]))
    changing = card.tier in ("write", "destructive")
    acts = set(_verbs_of(card.name)) & CHANGES if changing or card.tier is None else set()
    if not acts and (changing or card.tier is None):
        acts = set(purpose if changing else concepts(" ".join(card.purpose.split()[:1]))) & CHANGES
    return Profile(
        card=card,
        params=own,
        name=name,
        strong={concept: weight for concept, weight in strong.items() if concept not in _GENERIC},
        weak=frozenset(weak),
        avoid=frozenset(concepts(card.avoid_when)) - set(name) - set(purpose) - set(use),
        changes=frozenset(acts),
    )


def _verbs_of(name: str) -> tuple[str, ...]:
    """The concepts of a name without its nouns of action: `mortgage_payment` pays nothing, `payment_send` sends."""
    words = name_words(name)
    kept = [word for place, word in enumerate(words) if not place or not word.rstrip("s").endswith(("ment", "tion"))]
    return concepts(" ".join(kept))


_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。!?！？；])\s*|;\s+|\n+")
_IN_UNITS = re.compile(r"[,，;；(（]?\s*单位\s*(?:[:：]|为|是)\s*[^,，。;；)）\s]+[)）]?")
_LIMIT = re.compile(
    r"\b(?:cannot|can't|can not|does not|doesn't|do not|don't|never|not for|unable|won't|will not)\b"
    r"|不能|不会|不支持|无法|不可|不包括|不适用|不用于|请勿|不要",
    re.IGNORECASE,
)


def _can(purpose: str) -> str:
    """What a purpose says that the tool does, without the sentences on what it does not do."""
    said = [part for part in _SENTENCE.split(_IN_UNITS.sub("", purpose)) if part]
    able = [part for part in said if not _LIMIT.search(part)]
    return " ".join(able or said)


def rarity(profiles: Sequence[Profile]) -> dict[str, float]:
    """How telling each concept is among these cards: 1 for one card only, down to 0.4 if all have it."""
    shared = Counter(concept for each in profiles for concept in each.strong)
    most = math.log(len(profiles) + 1)
    return {c: 0.4 + 0.6 * math.log((len(profiles) + 1) / n) / most for c, n in shared.items()} if profiles else {}


def score(each: Profile, about: Iterable[str], atoms: Sequence[Atom], telling: Mapping[str, float]) -> float:
    """How well a card fits a clause; below THRESHOLD it does not. Words count first, then values that fit."""
    wanted = set(about)
    evidence = sum(weight * telling.get(c, 1.0) for c, weight in each.strong.items() if c in wanted)
    total = evidence + 0.7 * len(each.weak & wanted - set(each.strong)) - 1.5 * len(each.avoid & wanted)
    if wanted & _ACTS and not wanted & _ACTS & (set(each.strong) | each.weak):
        total -= _WRONG_ACT
    if "@count" in wanted and "@list" in each.strong and "@count" not in each.strong:
        total += _COUNTABLE
    counted = set(each.name) - {"@count"} - _GENERIC if "@count" in each.name else set()
    if counted and not counted & wanted:
        total -= _COUNTABLE  # it counts something else
    roles = {param.role for param in each.params} | {param.item.role for param in each.params if param.item}
    fitting = 0.0
    for kind in {atom.kind for atom in atoms}:
        if kind not in _TAKERS:
            continue
        takers, bonus, malus = _TAKERS[kind]
        if roles & takers:
            fitting += bonus
        elif not roles & _OPEN:
            fitting -= malus
    hinted = len(each.weak & wanted - _GENERIC)
    if evidence <= 0 and fitting < 1.5 and hinted < _HINTS:
        return 0.0
    return total + fitting
