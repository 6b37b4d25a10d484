"""Turns the words of arithmetic in one clause into a tree, by recursive descent."""

from __future__ import annotations

import re
from functools import reduce

from taoloop.models.offline.arithmetic import MOST_CHARS, Lexeme, Node, Num, Op, Prev, Sub, leaves, lexemes
from taoloop.models.offline.extract import MARK, Skeleton
from taoloop.models.offline.words import concepts

_LOOSE = frozenset({"num", "word", "the", "of", "to", "from", "by", "and", "percent"})
_POWERS = {"square": "2", "cube": "3", "root": "0.5"}
_NARY = {
    "sum": "+",
    "total": "+",
    "product": "*",
    "difference": "-",
    "quotient": "/",
    "average": "mean",
    "mean": "mean",
}
_ASKS_WHETHER = re.compile(r"\s*(?:is|are|was|were|does|do|did)\b", re.IGNORECASE)
_REMAINDER = re.compile(r"\bremainder\b|余数|余几|余多少|的余", re.IGNORECASE)
_DEEPEST = 40


class _Unreadable(Exception):
    """The clause is no arithmetic."""


def parse(clause: str, skeleton: Skeleton) -> Op | None:
    """The tree of a clause, or None if it is no arithmetic. At least one operand is a number, or all have signs."""
    if len(clause) > MOST_CHARS:
        return None
    words = [word for word in lexemes(clause, skeleton) if word.kind not in ("skip", "pull")]
    for attempt in (_Parser(clause, words).listed, _Parser(clause, words).whole):
        try:
            tree = attempt()
        except _Unreadable:
            continue
        if isinstance(tree, Op):
            rest = tree.sign == "/" and _REMAINDER.search(clause) is not None
            return Op("%", tree.left, tree.right) if rest else tree
    return None


class _Parser:
    def __init__(self, clause: str, words: list[Lexeme]) -> None:
        self.clause, self.words, self.place, self.depth = clause, words, 0, 0

    def kind(self, ahead: int = 0) -> str:
        place = self.place + ahead
        return self.words[place].kind if place < len(self.words) else ""

    def take(self) -> Lexeme:
        self.place += 1
        return self.words[self.place - 1]

    def listed(self) -> Node:
        """`A and B` before a word that joins them: "3 和 4 的和"."""
        last = len(self.words) - 1
        while last >= 0 and self.words[last].kind == "word" and not self.text(last, last).strip("，。 的"):
            last -= 1
        if last < 0 or self.words[last].kind not in ("post+", "post*", "post-", "post/", "postmean"):
            raise _Unreadable
        sign = self.words[last].kind[4:]
        self.words = self.words[:last]
        if not self.words or self.kind() in ("them", "ref"):
            return _joined(sign, [Prev(2), Prev(1)])
        items = self.items(frozenset({"and"}))
        if len(items) < 2 or self.kind():
            raise _Unreadable
        return _joined(sign, items)

    def whole(self) -> Node:
        """A whole clause, with an imperative or an operand left out."""
        for place, word in enumerate(self.words):
            if word.kind.startswith("verb") and (not place or self.idle(0, place - 1)):
                self.place = place
                tree = self.imperative()
                break
            if word.kind in ("num", "ref", "bi") or word.kind.startswith("op"):
                self.place = place if place and self.idle(0, place - 1) else 0
                tree = self.sum(frozenset())
                break
        else:
            tree = self.sum(frozenset())
        while self.kind() == "word" and self.idle(self.place, self.place):
            self.take()
        if self.kind():
            raise _Unreadable
        return tree

    def imperative(self) -> Node:
        sign = self.take().kind[4:]
        if self.kind() in ("them", ""):
            self.place += 1
            return _joined(sign, [Prev(2), Prev(1)])
        if self.kind() == "by" or (sign == "-" and self.kind() == "from"):
            self.take()
            return Op(sign, Prev(), self.sum(frozenset()))
        link = {"+": "to", "-": "from", "*": "by", "/": "by"}[sign]
        items = self.items(frozenset({link, "and", "by"}))
        if self.kind() in (link, "by"):
            self.take()
            target = self.sum(frozenset())
            items = [target, *items] if sign in "+-" else [*items, target]
        elif len(items) == 1:
            items = [Prev(), *items]
        if not any(isinstance(leaf, Num | Prev) for item in items for leaf in leaves(item)):
            raise _Unreadable
        return _joined(sign, items)

    def items(self, stops: frozenset[str]) -> list[Node]:
        found = [self.sum(stops)]
        while self.kind() == "and":
            while self.kind() == "and":
                self.take()
            found.append(self.sum(stops))
        return found

    def sum(self, stops: frozenset[str]) -> Node:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Unreadable
        tree = Prev() if self.kind() in ("op+", "op-") else self.product(stops)
        while self.kind() in ("op+", "op-"):
            sign = self.take().kind[2:]
            right = self.product(stops)
            if isinstance(right, Num) and right.percent:
                right = Op("*", tree, right)
            tree = Op(sign, tree, right)
        if self.kind() in ("than+", "than-") and not _ASKS_WHETHER.match(self.clause):
            tree = _changed(self.take().kind[-1], self.product(stops), tree)
        self.depth -= 1
        return tree

    def product(self, stops: frozenset[str]) -> Node:
        tree = Prev() if self.kind() in ("op*", "op/", "op%") else self.power(stops)
        while self.kind() in ("op*", "op/", "op%"):
            tree = Op(self.take().kind[2:], tree, self.power(stops))
        return tree

    def power(self, stops: frozenset[str]) -> Node:
        tree = Prev() if self.kind() == "op**" or self.kind().startswith("post") else self.operand(stops)
        while self.kind().startswith("post") and self.kind() != "postmean":
            kind = self.take().kind[4:]
            sign, number = (kind[:2], kind[2:]) if kind.startswith("**") else (kind[:1], kind[1:])
            if not number:
                raise _Unreadable
            tree = Op(sign, tree, Num(number))
        if self.kind() == "op**":
            self.take()
            self.depth += 1
            if self.depth > _DEEPEST:
                raise _Unreadable
            tree = Op("**", tree, self.power(stops))
            self.depth -= 1
        return tree

    def operand(self, stops: frozenset[str]) -> Node:
        kind = self.kind()
        if kind == "neg":
            self.take()
            inner = self.operand(stops)
            return Num(f"-{inner.text}") if isinstance(inner, Num) else Op("-", Num("0"), inner)
        if kind == "open":
            self.take()
            tree = self.sum(frozenset())
            if self.kind() != "close":
                raise _Unreadable
            self.take()
            return tree
        if kind == "nary":
            word = self.take()
            name = self.clause[word.start : word.end].split()[-2].lower()
            if self.kind() == "them":
                self.take()
                return _joined(_NARY[name], [Prev(2), Prev(1)])
            items = self.items(frozenset({"and"}))
            return _joined(_NARY[name], items)
        if kind in ("half", "halve", "double", "triple", *_POWERS):
            self.take()
            self.place += self.kind() == "of"
            inner = self.operand(stops) if self.kind() else Prev()
            if kind in _POWERS:
                return Op("**", inner, Num(_POWERS[kind]))
            sign, number = {"double": ("*", "2"), "triple": ("*", "3")}.get(kind, ("/", "2"))
            return Op(sign, inner, Num(number))
        if kind == "bi":
            self.take()
            base = self.product(stops)
            if self.kind() not in ("bi+", "bi-"):
                raise _Unreadable
            return _changed(self.take().kind[-1], base, self.product(stops))
        if kind == "ref":
            self.take()
            return self.part_of(Prev())
        return self.run(stops)

    def part_of(self, whole: Node) -> Node:
        """`结果的 25%`."""
        ahead = self.kind() == "word" and self.text(self.place, self.place) == "的"
        number = self.words[self.place + ahead].number if self.kind(ahead) == "num" else None
        if number is not None and number.percent:
            self.place += 1 + ahead
            return Op("*", whole, number)
        return whole

    def run(self, stops: frozenset[str]) -> Node:
        """A stretch without signs: one number, or words that a tool must answer."""
        first = self.place
        number = self.words[first].number if self.kind() == "num" else None
        if number is not None and number.percent and self.kind(1) == "of":
            self.place += 2
            return Op("*", number, self.operand(stops))
        while self.kind() in _LOOSE - stops:
            self.place += 1
        found = self.words[first : self.place]
        numbers = [word.number for word in found if word.number is not None]
        if not found:
            raise _Unreadable
        rest = "".join(self.clause[word.start : word.end] + " " for word in found if word.kind != "num")
        idle = not set(concepts(rest)) - {"@calc"} and not _has_mark(rest)
        if len(numbers) == 2 and idle and self.kind() == "nth":
            self.take()
            return Op("**", numbers[0], numbers[1])
        if len(numbers) == 2 and idle and numbers[1].percent:
            return Op("*", numbers[0], numbers[1])
        if len(numbers) == 1 and idle:
            return numbers[0]
        if self.kind() == "nth" or (idle and len(numbers) != 1):
            raise _Unreadable
        return Sub(self.text(first, self.place - 1))

    def idle(self, first: int, last: int) -> bool:
        """True if a stretch says nothing by itself."""
        text = self.text(first, last)
        return not set(concepts(text)) - {"@calc"} and not _has_mark(text)

    def text(self, first: int, last: int) -> str:
        return self.clause[self.words[first].start : self.words[last].end]


def _changed(sign: str, base: Node, by: Node) -> Node:
    """`10% more than 50`, `5 less than 20`."""
    if not isinstance(base, Num | Prev) or not isinstance(by, Num):
        raise _Unreadable
    return Op(sign, base, Op("*", base, by) if by.percent else by)


def _has_mark(text: str) -> bool:
    return re.search(MARK, text) is not None


def _joined(sign: str, items: list[Node]) -> Node:
    if len(items) < 2:
        raise _Unreadable
    if sign == "mean":
        return Op("/", reduce(lambda left, right: Op("+", left, right), items), Num(str(len(items))))
    return reduce(lambda left, right: Op(sign, left, right), items)
