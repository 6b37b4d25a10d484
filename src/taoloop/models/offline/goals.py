"""What a task asks for, in order: each goal is a question for a tool, or arithmetic over such questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from taoloop.models.offline.arithmetic import Node, Num, Op, Sub
from taoloop.models.offline.clauses import asks, clauses
from taoloop.models.offline.extract import MARK, Skeleton
from taoloop.models.offline.fill import Filled, Filler
from taoloop.models.offline.lexicon import CHANGES
from taoloop.models.offline.match import THRESHOLD, Profile, rarity, score
from taoloop.models.offline.moods import verbs
from taoloop.models.offline.parsing import parse
from taoloop.models.offline.reckoning import Reckoner
from taoloop.models.offline.results import Finding
from taoloop.models.offline.units import goes
from taoloop.models.offline.words import concepts, name_concepts

_NEGATED = re.compile(r"^(?:please\s+)?(?:don't|do not|never)\b|^(?:请)?(?:不要|别|勿|不用)", re.IGNORECASE)
_REFUSED = re.compile(
    r"(?:\bdon't|\bdo not|\bnever|\bwithout|不要|别|勿)\s*([A-Za-z]+(?:\s[A-Za-z]+)?|[\u4e00-\u9fff]{1,4})",
    re.IGNORECASE,
)
_NOUNS = frozenset({"@unit", "@length", "@weight", "@calc", "@count"})
_BY_MAIL = re.compile(r"(?:please\s+)?(?:e-?mail|message|text)\s", re.IGNORECASE)
_LABEL = re.compile(r"([A-Za-z]+|[\u4e00-\u9fff]{2,6})\s*$")
_LABELS_ANY = frozenset({"@search", "@lookup", "@read", "@list", "@count", "@calc", "@id"}) | CHANGES
_NEAR_BEST = 0.55
_EACH_TAKEN = 0.4
_NAMED = 0.8


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing to find out or do: `tree` is set where it is arithmetic, `orders` where it may change the world."""

    text: str
    tree: Op | None = None
    orders: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A tool for a clause with its arguments as far as they are known."""

    profile: Profile
    filled: Filled
    points: float
    reading: str = ""

    @property
    def ready(self) -> bool:
        """True if it can be called, if need be after the file at the mark `reading` was read."""
        return not self.filled.open or bool(self.reading)


@dataclass(slots=True)
class Chooser:
    """Chooses tools for clauses of one task."""

    skeleton: Skeleton
    profiles: Sequence[Profile]
    telling: dict[str, float] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Weigh the concepts of the cards, and note which acts the task forbids."""
        self.telling = rarity(self.profiles)
        forbidden = " ".join(match[1] for match in _REFUSED.finditer(self.skeleton.text))
        self.refused = frozenset(concepts(forbidden)) & CHANGES

    def ranked(self, clause: str, *, orders: bool = False) -> list[tuple[float, Profile]]:
        """The tools that fit a clause, best first; one that changes the world only where the clause orders it."""
        about, atoms = concepts(clause), self.skeleton.within(clause)
        if any(atom.kind == "currency" for atom in atoms):
            about = (*about, "@currency")
        for atom in atoms:
            if atom.kind == "id" and atom.value.isalnum():
                about = (*about, *concepts(atom.value))
        if _BY_MAIL.match(clause):
            about = (*about, "@send")
        if "@send" in about and {atom.kind for atom in atoms} <= {"number", "currency"} and atoms:
            about = (*about, "@pay")
        demanded = verbs(clause)
        possible = [
            each
            for each in self.profiles
            if each.allows(about, orders=orders, refused=self.refused)
            and each.covers(demanded)
            and goes(each.card, clause, self.skeleton)
        ]
        found = [(score(each, about, atoms, self.telling), each) for each in possible]
        fitting = [(points, each) for points, each in found if points >= THRESHOLD]
        if not fitting and asks(clause) and not demanded:
            fitting = [(THRESHOLD, each) for each in possible if _answers_anything(each)]
        return sorted(fitting, key=lambda pair: -pair[0])

    def choose(self, clause: str, findings: Sequence[Finding] = (), *, orders: bool = False) -> Choice | None:
        """The best tool whose required arguments have values, else the best one with what it lacks; None if none."""
        ranked = self.ranked(clause, orders=orders)
        best: Choice | None = None
        for points, each in ranked[:8]:
            if points < _NEAR_BEST * ranked[0][0]:
                break
            filled = self.fill(clause, each, findings)
            if any(param.role == "handle" for param in filled.open):
                continue  # nothing was seen that it could work on
            if self._mislabelled(clause, each, filled):
                continue
            worth = points + _EACH_TAKEN * len(filled.taken) + _NAMED * self._named(clause, filled)
            choice = Choice(each, filled, worth, self._file_with_text(clause, filled))
            if best is None or (best.ready, best.points) < (choice.ready, worth):
                best = choice
        return best

    def _named(self, clause: str, filled: Filled) -> int:
        """How many values stand behind the noun of the argument that took them: "ticket 7" for `ticket_id`."""
        count = 0
        for name, mark in filled.taken.items():
            label = _LABEL.search(clause[: clause.find(mark)]) if mark in clause else None
            count += label is not None and bool(_nouns(name) & set(concepts(label[1])))
        return count

    def _mislabelled(self, clause: str, each: Profile, filled: Filled) -> bool:
        """True if a value stands behind a word for something that the tool knows nothing of: "invoice INV-7"."""
        for mark in filled.taken.values():
            if mark not in clause or self.skeleton.atom(mark).kind not in ("id", "key"):
                continue
            label = _LABEL.search(clause[: clause.find(mark)])
            about = set(concepts(label[1])) - _LABELS_ANY if label else set()
            elsewhere = each.acts or any(about & set(other.strong) for other in self.profiles)
            if about and elsewhere and not about & each.about:
                return True
        return False

    def fill(self, clause: str, each: Profile, findings: Sequence[Finding]) -> Filled:
        """The arguments of one tool for a clause."""
        return Filler(clause, self.skeleton, each, self.skeleton.text, findings).fill()

    def leader(self, clause: str, choice: Choice) -> Choice | None:
        """The tool that finds out what a choice lacks: it knows of it, and takes a value that the choice leaves."""
        lacked = {concept for param in choice.filled.open for concept in _nouns(param.name)}
        left = set(re.findall(MARK, clause)) - choice.filled.used
        found: list[tuple[float, Choice]] = []
        for each in self.profiles:
            if each is choice.profile or each.acts or not lacked & each.about:
                continue
            filled = self.fill(clause, each, ())
            if not filled.open and set(filled.taken.values()) & left:
                points = score(each, concepts(clause), self.skeleton.within(clause), self.telling)
                found.append((points, Choice(each, filled, points)))
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def followers(self, clause: str, choice: Choice) -> list[Choice]:
        """Tools for what a clause asks beyond the chosen one, best first; they lack what that one may tell."""
        beyond = self.beyond(clause, choice)
        found = []
        for points, each in self.ranked(clause):
            if each is choice.profile or each.acts or not beyond & each.strong.keys():
                continue
            filled = self.fill(clause, each, ())
            lacked = {concept for param in filled.open for concept in _nouns(param.name)}
            if filled.open and lacked and lacked <= choice.profile.about:
                found.append(Choice(each, filled, points))
        return found

    def beyond(self, clause: str, choice: Choice) -> set[str]:
        """What a clause speaks of and the chosen tool knows nothing about."""
        return set(concepts(clause)) - choice.profile.about - _LABELS_ANY

    def lister(self) -> Profile | None:
        """The tool that lists files and needs no more to be told."""
        listing = (each for each in self.profiles if {"@list", "@file"} <= set(each.name) and not each.acts)
        return next((each for each in listing if not any(param.required for param in each.params)), None)

    def reader(self, mark: str) -> Choice | None:
        """The tool that reads the file at a mark."""
        choice = self.choose(f"read the file {mark}")
        return choice if choice is not None and list(choice.filled.taken.values()) == [mark] else None

    def _file_with_text(self, clause: str, filled: Filled) -> str:
        """The mark of a file whose content is the text that a call still lacks."""
        if [param.role for param in filled.open] != ["text"]:
            return ""
        marks = [
            m
            for m in re.findall(MARK, clause)
            if self.skeleton.atom(m).kind == "path" and m not in filled.taken.values()
        ]
        return marks[0] if len(marks) == 1 and self.reader(marks[0]) is not None else ""

    def answers(self, clause: str) -> bool:
        """True if some tool can be called for the clause with what the task says."""
        choice = self.choose(clause)
        return choice is not None and choice.ready


def goals(chooser: Chooser) -> list[Goal]:
    """The goals of a task; none if all is forbidden. Clauses that ask for nothing lend a neighbour their values."""
    skeleton, reckoner = chooser.skeleton, Reckoner(chooser.profiles)
    found: list[Goal] = []
    waiting, negated = "", False
    for clause, orders in clauses(skeleton.text):
        if _NEGATED.match(clause):
            negated = True
            continue
        tree = arithmetic(clause, chooser)
        if tree is not None and (reckoner.can(tree) or not chooser.answers(clause)):
            found.append(Goal(clause, tree))
            continue
        if chooser.ranked(clause, orders=orders) or asks(clause):
            found.append(Goal(f"{waiting} {clause}".strip(), orders=orders))
            waiting = ""
        elif found and found[-1].tree is None:
            found[-1] = replace(found[-1], text=f"{found[-1].text}, {clause}")
        else:
            waiting = f"{waiting} {clause}".strip()
    return found or ([] if negated and not waiting else [Goal(waiting or skeleton.text.strip())])


def arithmetic(clause: str, chooser: Chooser) -> Op | None:
    """The arithmetic of a clause, if it is any and tools answer what stands in it."""
    tree = parse(clause, chooser.skeleton)
    settled = _settled(tree, chooser) if tree is not None else None
    return settled if isinstance(settled, Op) else None


def _settled(tree: Node, chooser: Chooser) -> Node | None:
    """The tree with each sub-question judged: a tool answers it, or it is a number with a noun; None if neither."""
    if isinstance(tree, Op):
        left, right = _settled(tree.left, chooser), _settled(tree.right, chooser)
        return None if left is None or right is None else Op(tree.sign, left, right)
    if isinstance(tree, Sub):
        atoms = chooser.skeleton.within(tree.text)
        alone = len(atoms) == 1 and atoms[0].kind == "number"
        named = any(concept[0] == "@" and concept not in _NOUNS for concept in concepts(tree.text))
        return Num(atoms[0].value) if alone and not named else tree if chooser.answers(tree.text) else None
    return tree


_IDLE_NOUNS = frozenset({"@id", "@key", "nam", "name", "code", "no", "number", "@count", "@lookup"})


def _nouns(name: str) -> frozenset[str]:
    """What an argument is about by its name, apart from words for any key: `customer_id` is about a customer."""
    return frozenset(name_concepts(name)) - _IDLE_NOUNS


def _answers_anything(each: Profile) -> bool:
    needed = [param for param in each.params if param.required]
    return "@web" in each.strong and not each.changes and len(needed) == 1 and needed[0].role == "query"
