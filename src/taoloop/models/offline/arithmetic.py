"""Reads a clause as arithmetic: signs, and words of both languages, over numbers, earlier results and sub-questions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from taoloop.models.offline.extract import MARK, Skeleton


@dataclass(frozen=True, slots=True)
class Num:
    """A number of the task, as plain decimal text. `percent`: it was given as a percentage; 25% is 0.25."""

    text: str
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Prev:
    """An earlier result: 1 is the last one."""

    back: int = 1


@dataclass(frozen=True, slots=True)
class Sub:
    """A part of the clause that a tool must answer first."""

    text: str


@dataclass(frozen=True, slots=True)
class Op:
    """`sign` is one of + - * / % **."""

    sign: str
    left: Node
    right: Node


Node = Num | Prev | Sub | Op

_LEXEMES: tuple[tuple[str, str], ...] = (
    (
        "skip",
        (
            r"(?:what\s+is|what's|what\s+are|what\s+does|how\s+much\s+is|calculate|compute|evaluate"
            r"|work\s+out|tell\s+me|give\s+me|find\s+me|please|the\s+value\s+of|the\s+result\s+of|equals?"
            r"|make)\b|the\s+result\s*(?==)|请问|请|帮我|计算一下|计算出?|算一下|算出|算算|求出?(?!和)"
            r"|等于多少|等于几|得多少|是多少|是几|等于|多少|结果是|的值|的结果|把|将|吗|呢|[?？=。.!！]"
        ),
    ),
    (
        "word",
        r"阶乘|乘客|乘坐|乘机|加密|加班|加入|加州|加急|加载|加油|添加|增加|参加|更加|减肥|减免|除了|除非|删除|解除|清除|排除|移除",
    ),
    (
        "ref",
        (
            r"(?:it|that|this|the\s+(?:previous\s+|last\s+)?(?:result|answer|sum|product|total|number|value"
            r"|count))\b(?!\s+of)|(?:上一步的?|前面的?|刚才的?|这个|该|所得)?(?:结果|得数|答案|数值)|它(?!们)"
            r"|这个数|该数"
        ),
    ),
    (
        "them",
        (
            r"(?:them|both(?:\s+(?:results|numbers|values))?|the\s+two(?:\s+(?:results|numbers|values))?)\b"
            r"|它们|两者|两个(?:数|结果|值)|二者"
        ),
    ),
    ("nary", r"(?:the\s+)?(?:sum|total|product|difference|quotient|average|mean)\s+(?:of|between)\b"),
    ("half", r"(?:a\s+)?half\s+(?:of\s+)?"),
    ("double", r"(?:double|twice)\b"),
    ("triple", r"triple\b"),
    ("halve", r"halve\b"),
    ("root", r"(?:the\s+)?(?:square\s+root\s+of|sqrt(?:\s+of)?)\b|根号"),
    ("square", r"(?:the\s+)?square\s+(?!(?:k|c|m)?m\b|kilo|met|mile|f[eo][eo]t|inch|yard|centi|root)(?:of\b)?"),
    ("cube", r"(?:the\s+)?cube\s+(?:of\b)?"),
    ("verb+", r"(?:add|sum)(?:\s+up)?\b"),
    ("verb-", r"(?:subtract|deduct)\b"),
    ("verb*", r"multiply\b"),
    ("verb/", r"divide\b"),
    ("post**0.5", r"的?(?:算术)?平方根"),
    ("post**2", r"squared\b|的?平方(?!根|米|公里|千米)|²"),
    ("post**3", r"cubed\b|的?立方(?!米|根)|³"),
    ("post/2", r"的?一半"),
    ("post*2", r"翻倍|加倍|的?两倍"),
    ("nth", r"次方|次幂"),
    ("post+", r"相加|(?:的|之)(?:总和|和(?![的之]))|求和"),
    ("post*", r"相乘|(?:的|之)乘?积"),
    ("post-", r"相减|(?:的|之)差"),
    ("post/", r"相除|(?:的|之)商"),
    ("postmean", r"(?:的|之)?平均(?:值|数)?"),
    ("op**", r"\*\*|\^|(?:raised\s+)?to\s+the\s+power(?:\s+of)?\b"),
    ("op+", r"\+|plus\b|increased\s+by\b|加上|加"),
    ("op-", r"minus\b|decreased\s+by\b|减去|减|−"),
    ("op*", r"\*|×|(?<!how many )times\b|multiplied\s+by\b|乘以|乘上|乘"),
    ("op/", r"÷|divided\s+by\b|除以"),
    ("op%", r"mod(?:ulo)?\b"),
    ("than+", r"(?:more|greater|higher|larger|bigger)\s+than\b"),
    ("than-", r"(?:less|fewer|smaller|lower)\s+than\b|off\b"),
    ("bi", rf"比(?=\s?{MARK})"),
    ("bi+", rf"(?:(?<=[\ue000-\uf8ff])|(?<=[\ue000-\uf8ff]\s))(?:多|大|高)出?(?=\s?{MARK})"),
    ("bi-", rf"(?:(?<=[\ue000-\uf8ff])|(?<=[\ue000-\uf8ff]\s))(?:少|小|低)(?=\s?{MARK})"),
    ("by", r"by\b"),
    ("to", r"to\b"),
    ("from", r"from\b"),
    ("pull", r"(?:中|里)(?=减)|用|从"),
    ("and", r"and\b|with\b|[,，、&]|和|与|跟"),
    ("of", r"of\b"),
    ("the", r"the\b"),
    ("open", r"[(（]"),
    ("close", r"[)）]"),
    ("dash", r"[-–]"),
    ("slash", r"/"),
    ("x", r"x\b"),
    ("percent", r"%"),
    ("num", MARK),
    ("space", r"\s+"),
    ("word", r"[A-Za-z][\w'-]*|."),
)
_LEXER = re.compile(
    "|".join(f"(?P<k{i}>{pattern})" for i, (_, pattern) in enumerate(_LEXEMES)), re.IGNORECASE | re.DOTALL
)
_WORDLIKE = re.compile(r"[A-Za-z]")
MOST_CHARS = 1_500
_DEEPEST = 60


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A word of arithmetic and its place in the clause; `number` where it is one."""

    kind: str
    start: int
    end: int
    number: Num | None = None


def lexemes(clause: str, skeleton: Skeleton) -> list[Lexeme]:
    """The clause as words of arithmetic; whatever is none is a `word`."""
    found: list[Lexeme] = []
    for match in _LEXER.finditer(clause[:MOST_CHARS]):
        kind = _LEXEMES[int((match.lastgroup or "k0")[1:])][0]
        start, end = match.span()
        inside = start > 0 and _WORDLIKE.match(clause[start - 1]) and _WORDLIKE.match(clause[start])
        number = None
        if kind == "num":
            atom = skeleton.atom(match.group())
            if atom.kind == "number":
                number = Num(hundredth(atom.value) if atom.percent else atom.value, atom.percent)
            else:
                kind = "word"
        elif inside:
            kind = "word"
        if kind != "space":
            found.append(Lexeme(kind, start, end, number))
    return [_settled(lexeme, i, found) for i, lexeme in enumerate(found)]


def _settled(lexeme: Lexeme, place: int, found: list[Lexeme]) -> Lexeme:
    """Signs that are signs only between numbers: - / x %."""
    signs = {"dash": "op-", "slash": "op/", "x": "op*", "percent": "op%"}
    if lexeme.kind not in signs:
        return lexeme
    before = found[place - 1].kind if place else ""
    after = found[place + 1].kind if place + 1 < len(found) else ""
    left = before in ("num", "close", "ref")
    if lexeme.kind == "dash" and after in ("num", "open") and not left:
        return Lexeme("neg", lexeme.start, lexeme.end)
    fits = left and after in ("num", "open", "ref", "dash")
    return Lexeme(signs[lexeme.kind] if fits else "word", lexeme.start, lexeme.end)


def hundredth(text: str) -> str:
    """A decimal number divided by 100, by moving its point."""
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, decimals = digits.partition(".")
    whole = whole.rjust(3, "0")
    moved = f"{whole[:-2]}.{whole[-2:]}{decimals}".rstrip("0").rstrip(".")
    return sign + (moved.lstrip("0") if not moved.startswith("0.") and moved.strip("0") else moved)


def leaves(node: Node) -> Iterator[Num | Prev | Sub]:
    """The operands of a tree, left to right."""
    if isinstance(node, Op):
        yield from leaves(node.left)
        yield from leaves(node.right)
    else:
        yield node


_RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "**": 4}


def render(node: Node, *, power: str = "**") -> str:
    """A tree of numbers as an expression, with no bracket too many.

    Raises:
        ValueError: an operand is not a number yet.
    """
    return _render(node, 0, power)


def _render(node: Node, rank: int, power: str) -> str:
    if isinstance(node, Num):
        return f"({node.text})" if node.text.startswith("-") and rank > 1 else node.text
    if not isinstance(node, Op):
        raise ValueError("an operand is not known yet")
    own = _RANK[node.sign]
    left = _render(node.left, own + (node.sign == "**"), power)
    right = _render(node.right, own + (node.sign not in ("+", "**")), power)
    sign = power if node.sign == "**" else node.sign
    text = f"{left}{sign}{right}" if node.sign == "**" else f"{left} {sign} {right}"
    return f"({text})" if own < rank else text
