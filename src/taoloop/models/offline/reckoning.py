"""Which of the tools can do arithmetic, and how: an expression as text, or one operation on numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from taoloop.models.offline.arithmetic import Node, Num, Op, render
from taoloop.models.offline.match import Profile
from taoloop.models.offline.schema import Param
from taoloop.models.offline.values import as_number

_CONCEPTS = {"+": "@add", "-": "@subtract", "*": "@multiply", "/": "@divide", "**": "@power"}
_WORDS = {
    "+": ("+", "add", "plus", "sum", "加"), "-": ("-", "subtract", "minus", "sub", "减"), "*": ("*", "multiply",
    "times", "mul", "乘"),
    "/": ("/", "divide", "div", "除"), "**": ("**", "^", "power", "pow", "乘方"), "%": ("%", "mod", "modulo"),
}  # fmt: skip
_LARGEST_POWER = 8


@dataclass(frozen=True, slots=True)
class Reckoner:
    """The arithmetic that a set of tools can do."""

    profiles: Sequence[Profile]

    def expression_tool(self) -> Profile | None:
        """The tool that takes a whole expression."""
        return next((each for each in self.profiles if _expression(each) is not None), None)

    def call(self, tree: Node) -> tuple[Profile, dict[str, Any]] | None:
        """One call for a tree of numbers: an own tool for one operation, else an expression."""
        if isinstance(tree, Op) and isinstance(tree.left, Num) and isinstance(tree.right, Num):
            for each in self.profiles:
                if (args := _single(each, tree, tree.left, tree.right)) is not None:
                    return each, args
        if isinstance(tree, Op) and tree.sign in "+*" and (chain := _chain(tree, tree.sign)):
            for each in self.profiles:
                if _operation(each, tree) == "list" and (args := _listed(each, chain)) is not None:
                    return each, args
        tool = self.expression_tool()
        if tool is None or (_has_remainder(tree) and not _knows_remainders(tool)):
            return None
        param = _expression(tool)
        texts = f"{tool.card.purpose} {param.text if param else ''}"
        power = "^" if "^" in texts and "**" not in texts else "**"
        return (tool, {param.name: render(tree, power=power)}) if param else None

    def can(self, tree: Op) -> bool:
        """True if the tools can do every operation of the tree."""
        tool = self.expression_tool()
        if tool is not None and (not _has_remainder(tree) or _knows_remainders(tool)):
            return True
        simple = self.rewritten(tree)
        parts = (part for part in (simple.left, simple.right) if isinstance(part, Op))
        return any(_operation(each, simple) for each in self.profiles) and all(self.can(part) for part in parts)

    def rewritten(self, tree: Op) -> Op:
        """A small power as a product where no tool raises to a power."""
        right = tree.right
        if tree.sign != "**" or not isinstance(right, Num) or any(_operation(each, tree) for each in self.profiles):
            return tree
        if right.text.isdigit() and 2 <= int(right.text) <= _LARGEST_POWER:
            product = Op("*", tree.left, tree.left)
            for _ in range(int(right.text) - 2):
                product = Op("*", product, tree.left)
            return product
        return tree


_REMAINDERS = re.compile(r"%|//|\bmod(?:ulo|ulus)?\b|\bremainders?\b|余数|取余|求余", re.IGNORECASE)


def _has_remainder(tree: Node) -> bool:
    return isinstance(tree, Op) and (tree.sign == "%" or _has_remainder(tree.left) or _has_remainder(tree.right))


def _knows_remainders(each: Profile) -> bool:
    """True if the card of a tool for expressions speaks of remainders: one that lists other signs takes none."""
    param = _expression(each)
    return _REMAINDERS.search(f"{each.card.purpose} {each.card.use_when} {param.text if param else ''}") is not None


def _expression(each: Profile) -> Param | None:
    needed = [param for param in each.params if param.required] or list(each.params)[:1]
    if len(needed) != 1 or not needed[0].takes_text or each.changes:
        return None
    param = needed[0]
    if param.role == "expression":
        return param
    calculates = "@calc" in each.name or ("@calc" in each.strong and param.role in ("any", "query", "text"))
    return param if calculates and param.role in ("any", "query", "text", "name") else None


def _operation(each: Profile, tree: Op) -> str:
    """How a tool does an operation: "two" numbers, a "list", "one" number, by "choice"; empty if it does not."""
    needed = [param for param in each.params if param.required]
    numbers = [param for param in needed if param.role == "number"]
    if each.changes:
        return ""
    if len(numbers) == 2 and len(needed) == 3 and _choice(needed, tree.sign) is not None:
        return "choice"
    concept = _CONCEPTS.get(tree.sign, "mod")
    own = [c for c in _CONCEPTS.values() if c in each.name] or [c for c in _CONCEPTS.values() if c in each.strong]
    if tree.sign == "**" and isinstance(tree.right, Num) and len(needed) == len(numbers) == 1:
        wanted = {"0.5": "@root", "2": "@power"}.get(tree.right.text)
        return "one" if wanted in each.name and ("@root" in each.name) == (wanted == "@root") else ""
    if concept not in own or len(own) > 1:
        return ""
    if len(numbers) == len(needed) == 2:
        return "two"
    lists = [param for param in needed if param.role == "list" and param.item and param.item.role == "number"]
    return "list" if len(lists) == len(needed) == 1 else ""


def _choice(needed: Sequence[Param], sign: str) -> Any:
    for param in needed:
        for choice in param.choices:
            if str(choice).lower() in _WORDS[sign]:
                return choice
    return None


def _chain(tree: Node, sign: str) -> list[Num]:
    """The numbers that one sign joins; none if there is anything else in the tree."""
    if isinstance(tree, Num):
        return [tree]
    if not isinstance(tree, Op) or tree.sign != sign:
        return []
    left, right = _chain(tree.left, sign), _chain(tree.right, sign)
    return left + right if left and right else []


def _listed(each: Profile, numbers: Sequence[Num]) -> dict[str, Any] | None:
    param = next(param for param in each.params if param.required)
    values = [as_number(number.text, param.item) for number in numbers] if param.item else [None]
    return None if None in values else {param.name: values}


def _single(each: Profile, tree: Op, left: Num, right: Num) -> dict[str, Any] | None:
    form = _operation(each, tree)
    if not form:
        return None
    needed = [param for param in each.params if param.required]
    if form == "list":
        return _listed(each, (left, right))
    numbers = [param for param in needed if param.role == "number"]
    args: dict[str, Any] = {}
    for param, number in zip(numbers, (left, right), strict=False):
        value = as_number(number.text, param)
        if value is None:
            return None
        args[param.name] = value
    if form == "choice":
        args |= {param.name: _choice([param], tree.sign) for param in needed if param.choices}
    return args
