"""Finds the one tool that a question or an order is for: its card must use every word that means something.

Words of a tool's name count most, then those of its purpose, then those of its parameters. Where two tools fit equally
well, or a word stays unexplained, no tool fits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from taoloop.core.cards.tool_card import ToolCard
from taoloop.models.offline.arguments import Filling, ToolParameter, fill, read_parameters
from taoloop.models.offline.task_values import Token, extract_concepts, stem, tokenize

#: Words that ask for anything: a card need not use them.
_FRAME = {"@look", "@calc"}
_NOISE = {"stop", "ask", "from", "to", "by", "polite", "first", "take"}
#: What a tool for the time knows too.
_TIMES = {"@hour", "@minute", "@date"}
_OF_NAME, _OF_PURPOSE, _OF_PARAMETERS, _UNUSED = 2.0, 1.0, 0.3, 0.5
_MOST_CARD_CHARS = 4_000


class NoMatch(Exception):
    """No tool fits. `reason` says why: a text of `answers`; `tool` and `missing` name what lacked arguments."""

    def __init__(self, reason: str, tool: str = "", missing: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason, self.tool, self.missing = reason, tool, tuple(missing)


@dataclass(frozen=True)
class Profile:
    """A tool as the planner sees it."""

    card: ToolCard
    """Its card."""

    @cached_property
    def parameters(self) -> tuple[ToolParameter, ...]:
        """Its parameters."""
        return read_parameters(self.card)

    @cached_property
    def name_words(self) -> frozenset[str]:
        """The concepts in its name."""
        return extract_concepts(self.card.name)

    @cached_property
    def purpose_words(self) -> tuple[str, ...]:
        """The concepts in its purpose, in their order."""
        return _read_concepts(self.card.purpose)

    @cached_property
    def subject(self) -> frozenset[str]:
        """What it is about in the first place: a question must name some of it."""
        head = [concept for concept in self.purpose_words if concept not in _FRAME][:2]
        return self.name_words.union(head, _TIMES if "@time" in self.name_words else ()) - _FRAME

    @cached_property
    def other_words(self) -> frozenset[str]:
        """The concepts of its parameters and of when to use it."""
        texts = [self.card.use_when, *(str(each.schema.get("description", "")) for each in self.parameters)]
        return frozenset().union(*map(_read_concepts, texts), *(each.words for each in self.parameters))

    def weigh(self, token: Token) -> float:
        """How much a word speaks for this tool; 0 if the card does not use it."""
        concept, text = token.concept, token.text
        if concept in self.name_words:
            return _OF_NAME
        is_part = len(text) > 1 and not text.isascii() and text in self.card.purpose
        if is_part or concept in self.subject or concept in self.purpose_words:
            return _OF_PURPOSE
        return _OF_PARAMETERS if concept in self.other_words else 0


@dataclass(frozen=True, kw_only=True)
class ToolMatch:
    """The call that answers a question or obeys an order."""

    profile: Profile
    """The tool."""
    filling: Filling
    """Its arguments."""
    points: float
    """How well it fits, for comparing tools."""
    concepts: frozenset[str]
    """The concepts of the question."""

    @property
    def part(self) -> str:
        """The part of a time that is asked for, `@hour` or `@minute`; empty where it is an argument's name."""
        names = frozenset().union(*(each.words for each in self.profile.parameters))
        parts = self.concepts & {"@hour", "@minute"} - names
        return min(parts) if len(parts) == 1 else ""


def match_tool(question: Sequence[Token], profiles: Sequence[Profile], *, may_act: bool = False) -> ToolMatch:
    """The tool for the words of one clause. `may_act`: the clause may order a change.

    Raises:
        NoMatch: none fits, or more than one.
    """
    asks = any(token.kind == "ask" or token.concept == "@look" for token in question)
    words = [token.kind for token in question if not (token.kind in _NOISE or token.concept in _FRAME)]
    if asks and words == ["path"]:
        question = [*question, Token("word", "", "@read", 0, 0)]  # "What is in notes.md?"
    matches = [match for profile in profiles if (match := _match_profile(question, profile)) is not None]
    orders = [match for match in matches if may_act and is_order(question, match.profile)]
    allowed = [match for match in matches if match.profile.card.reads_only or match in orders]
    best = sorted((match for match in allowed if not match.filling.missing), key=lambda match: -match.points)
    if len(best) > 1 and best[0].points == best[1].points:
        raise NoMatch("several")
    if best:
        return best[0]
    if allowed:
        nearest = max(allowed, key=lambda match: match.points)
        raise NoMatch("missing", nearest.profile.card.name, nearest.filling.missing)
    raise NoMatch("no_order" if matches else "no_tool")


def is_order(question: Sequence[Token], profile: Profile) -> bool:
    """Whether a clause plainly orders what a tool does: its verb comes first, and nothing in it asks or reports."""
    words = [token for token in question if token.kind not in ("polite", "first")]
    if not words or any(token.kind == "ask" for token in words):
        return False
    if any(following.kind == "path" and token.value == "of" for token, following in pairwise(words)):
        return False  # the copy of a.txt is not a.txt
    verbs = {token.concept for token in tokenize(profile.card.purpose.lower())[:1]} - {""}
    if words[0].kind == "take":  # 把 a.txt 删除
        return any(token.concept in verbs for token in words)
    return words[0].concept in verbs and stem(words[0].text.lower()) == words[0].text.lower()


def _match_profile(question: Sequence[Token], profile: Profile) -> ToolMatch | None:
    """How a tool fits; None where a word or a value is left over, or nothing speaks for it."""
    filling = fill(question, profile.parameters)
    if filling is None:
        return None
    may_change, points, is_on_subject = not profile.card.reads_only, float(filling.points), False
    filled = [each for each in profile.parameters if each.name in filling.args]
    names, roles = frozenset().union(*(each.words for each in filled)), {each.role for each in filled}
    noise = _NOISE if may_change else _NOISE | {"comma", "and"}
    for token in question:
        if token in filling.tokens:
            is_on_subject |= token.kind in ("key", "url") and token.kind in roles
            continue
        weight = profile.weigh(token) if token.concept else 0
        is_noise = token.kind in noise or token.concept in _FRAME
        if not (weight or is_noise) or (may_change and weight == _OF_PARAMETERS and token.concept not in names):
            return None
        is_on_subject |= token.concept in profile.subject or (weight >= _OF_PURPOSE and not token.text.isascii())
        points += weight
    concepts = frozenset(token.concept for token in question if token not in filling.tokens) - {""}
    optional = (each for each in profile.parameters if not each.required and each.name not in filling.args)
    if not is_on_subject or any(concepts & each.words for each in optional) or _is_reversed(question, profile, filling):
        return None
    points -= _UNUSED * len(profile.name_words - _FRAME - concepts)
    return ToolMatch(profile=profile, filling=filling, points=points, concepts=concepts)


def _is_reversed(question: Sequence[Token], profile: Profile, filling: Filling) -> bool:
    """Whether a number has the unit of the result instead of its own, as for a tool that knows the other direction."""
    numbers = {token for token in filling.tokens if token.kind == "number"}
    units = [following.concept for token, following in pairwise(question) if token in numbers]
    concepts = {token.concept for token in question} - {""}
    filled = (each for each in profile.parameters if each.is_number and each.name in filling.args)
    own = frozenset().union(*(each.words for each in filled))
    if units and concepts & own:
        return not set(units) <= own
    order = profile.purpose_words[1:]
    common = concepts & set(order)
    return any(order.index(unit) > order.index(concept) for unit in common & set(units) for concept in common)


@lru_cache(maxsize=2_048)
def _read_concepts(text: str) -> tuple[str, ...]:
    """The concepts of a text in their order, without the parts that say what is not so ("does not know prices")."""
    concepts: list[str] = []
    for part in re.split(r"[.;,:()。；，：（）]", text[:_MOST_CARD_CHARS]):
        tokens = tokenize(part.lower())
        if all(token.kind != "not" for token in tokens):
            concepts += [token.concept for token in tokens if token.concept]
    return tuple(concepts)
