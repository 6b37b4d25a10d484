"""Finds the one tool that a question or an order is for: its card must use every word that means something.

Words of a tool's name count most, then those of its purpose, then those of its parameters. Where two tools fit equally
well, or a word stays unexplained, no tool fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from taoloop.core.cards import ToolCard
from taoloop.models.offline.arguments import Filling, Parameter, fill, parameters_of
from taoloop.models.offline.task_values import Token, concepts_of, stem, tokenize

_FRAME = frozenset({"@look", "@calc"})
"""Words that ask for anything: a card need not use them."""
_NOISE = frozenset("stop from to by polite first take".split())
_ASKING = frozenset("what what's whats how how is 多少 是多少 等于多少 等于几 什么 是什么 有什么 怎么样 如何".split()) | {"how much", "is it"}
_TIME_PARTS = frozenset({"@hour", "@minute"})
_LISTINGS = frozenset({"comma", "and"})


@dataclass(frozen=True, kw_only=True)
class Match:
    """The call that answers a question or obeys an order."""

    profile: Profile
    """The tool."""
    filling: Filling
    """Its arguments."""
    points: float
    """How well it fits, for comparing tools."""
    question: tuple[Token, ...]
    """The words of the question."""

    @property
    def part(self) -> str:
        """The part of a time that is asked for: `@hour`, `@minute`, or an empty text."""
        named = {token.concept for token in self.question} & _TIME_PARTS
        return named.pop() if len(named) == 1 and not self.question_names_part(named) else ""

    def question_names_part(self, named: set[str]) -> bool:
        """Whether the part is an argument's name, such as the hours of parking."""
        return any(named & parameter.words for parameter in self.profile.parameters)


class NoMatch(Exception):
    """No tool fits. `reason` says why; `profile` and `missing` name the tool that lacked arguments."""

    def __init__(
        self,
        reason: Literal["no_tool", "missing", "several", "no_order"],
        profile: Profile | None = None,
        missing: Sequence[Parameter] = (),
    ) -> None:
        super().__init__(reason)
        self.reason, self.profile, self.missing = reason, profile, tuple(missing)


@dataclass(frozen=True)
class Profile:
    """A tool as the planner sees it."""

    card: ToolCard
    """Its card."""

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters."""
        return parameters_of(self.card)

    @cached_property
    def name_words(self) -> frozenset[str]:
        """The concepts in its name."""
        return concepts_of(self.card.name)

    @cached_property
    def purpose_words(self) -> frozenset[str]:
        """The concepts in its purpose."""
        return concepts_of(self.card.purpose)

    @cached_property
    def other_words(self) -> frozenset[str]:
        """The concepts of its parameters and of when to use it."""
        texts = [self.card.use_when, *(str(each.schema.get("description", "")) for each in self.parameters)]
        return concepts_of(" ".join(texts)).union(*(each.words for each in self.parameters))

    @cached_property
    def verbs(self) -> frozenset[str]:
        """The concepts with which an order for this tool may begin."""
        opening = [token.concept for token in tokenize(self.card.purpose.lower()) if token.concept][:1]
        return self.name_words.union(opening) - _FRAME

    def weight(self, concept: str, text: str) -> float:
        """How much a word speaks for this tool; 0 if the card does not use it."""
        if concept in self.name_words:
            return 2
        if concept in self.purpose_words or (len(text) > 1 and not text.isascii() and text in self.card.purpose):
            return 1
        if concept in _TIME_PARTS and "@time" in self.name_words | self.purpose_words:
            return 1
        return 0.3 if concept in self.other_words else 0


def match_tool(
    question: Sequence[Token], profiles: Sequence[Profile], *, may_act: bool = False, is_asked: bool = False
) -> Match:
    """The tool for the words of one clause. `may_act`: the clause may order a change; `is_asked`: it ends as a question.

    Raises:
        NoMatch: none fits, or more than one.
    """
    words = [token.concept for token in question if token.concept and token.concept not in _FRAME]
    paths = [token for token in question if token.kind == "path"]
    if not words and len(paths) == 1:  # "What is in notes.md?"
        question = [*question, Token("word", "", "@read", paths[0].end, paths[0].end)]
    matches, lacking, held = [], [], False
    for profile in profiles:
        found = _match(question, profile)
        if found is None:
            continue
        if not profile.card.reads_only and not (may_act and is_order(question, profile, is_asked=is_asked)):
            held = True
        elif found.filling.missing:
            lacking.append(found)
        else:
            matches.append(found)
    matches.sort(key=lambda match: -match.points)
    if matches and (len(matches) == 1 or matches[0].points > matches[1].points):
        return matches[0]
    if matches:
        raise NoMatch("several", matches[0].profile)
    if lacking:
        nearest = max(lacking, key=lambda match: match.points)
        raise NoMatch("missing", nearest.profile, nearest.filling.missing)
    raise NoMatch("no_order" if held else "no_tool")


def is_order(question: Sequence[Token], profile: Profile, *, is_asked: bool) -> bool:
    """Whether a clause plainly orders what a tool does: its verb comes first, and nothing in it asks or hedges."""
    words = [token for token in question if token.kind not in ("polite", "first")]
    is_polite = any(token.kind == "polite" for token in question)
    if not words or (is_asked and not is_polite) or any(token.value in _ASKING for token in words):
        return False
    about = any(token.kind == "path" and words[index - 1].value == "of" for index, token in enumerate(words) if index)
    if words[0].kind == "take":  # 把 a.txt 删除
        return any(token.concept in profile.verbs for token in words)
    is_bare = not words[0].text.isascii() or stem(words[0].text.lower()) == words[0].text.lower()
    return words[0].concept in profile.verbs and is_bare and not about


def _match(question: Sequence[Token], profile: Profile) -> Match | None:
    """How a tool fits; None where a word or a value is left over, or nothing speaks for it."""
    filling = fill(question, profile.parameters)
    if filling is None:
        return None
    acts = not profile.card.reads_only
    points, evidence = float(filling.points), False
    for token in question:
        if token in filling.tokens:
            evidence |= token.kind in ("key", "url")
            continue
        weight = profile.weight(token.concept, token.text) if token.concept else 0
        if not weight and not _is_noise(token, acts=acts):
            return None
        if acts and 0 < weight < 1 and not _names_argument(token, profile, filling.args):
            return None
        evidence |= weight >= 1 and token.concept not in _FRAME
        points += weight
    if not evidence or _names_what_is_missing(question, profile, filling):
        return None
    points -= 0.5 * len(profile.name_words - _FRAME - {token.concept for token in question})
    return Match(profile=profile, filling=filling, points=points, question=tuple(question))


def _is_noise(token: Token, *, acts: bool) -> bool:
    return token.kind in _NOISE or token.concept in _FRAME or (token.kind in _LISTINGS and not acts)


def _names_argument(token: Token, profile: Profile, args: Mapping[str, Any]) -> bool:
    return any(token.concept in each.words for each in profile.parameters if each.name in args)


def _names_what_is_missing(question: Sequence[Token], profile: Profile, filling: Filling) -> bool:
    """Whether the question speaks of an optional argument without a value for it ("in my time zone")."""
    named = {token.concept for token in question if token not in filling.tokens} - {""}
    optional = (each for each in profile.parameters if not each.required and each.name not in filling.args)
    return any(named & each.words for each in optional)

