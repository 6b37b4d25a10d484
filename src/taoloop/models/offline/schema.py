"""What a tool's card says about its arguments, read from its JSON Schema: types, choices, and the role of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from taoloop.core.cards.tool_card import ToolCard
from taoloop.models.offline.words import concepts, name_words

Role = Literal[
    "choice", "boolean", "number", "list", "object", "email", "url", "date", "clock", "path", "zone", "place",
    "currency", "unit", "language", "key", "id", "handle", "expression", "query", "text", "name", "any",
]  # fmt: skip
Side = Literal["", "from", "to"]

_NAMES: dict[Role, str] = {
    "zone": "timezone zone tz 时区",
    "handle": "artifact observation handle cursor backup checkpoint snapshot continuation",
    "email": "email mail 邮箱",
    "url": "url uri link website href 网址",
    "date": "date day deadline birthday 日期",
    "clock": "clock time",
    "path": "path file filename filepath dir directory folder filepaths 路径 文件名 文件 目录",
    "place": "city location place town country region destination address origin 城市 地点 地名",
    "currency": "currency currencies 货币 币种",
    "unit": "unit units 单位",
    "language": "language lang locale 语言",
    "expression": "expression expr formula equation 表达式 算式 公式",
    "key": "key keys field 键 键名",
    "query": "query q search keyword keywords term terms pattern topic question needle phrase regex subject "
    "关键词 查询 主题词",
    "text": "text content contents body message data input string sentence html note description 内容 正文 文本 消息",
    "id": "id uuid guid sku isbn serial ref reference number tracking identifier 编号",
    "name": "name title user student employee customer guest reader member owner patient client driver teacher "
    "colleague username author person symbol ticker who product item word code recipient "
    "recipients receiver payee host hostname server machine 主机 姓名 名称 标题 主题 书名 收件人 收款人",
}
_FORMATS: dict[str, Role] = {
    "email": "email", "idn-email": "email", "uri": "url", "url": "url", "date": "date", "date-time": "date",
    "time": "clock",
}  # fmt: skip
_FROM_NAMES = "from source src start origin begin departure base sender 源 起点 出发"
_TO_NAMES = "to target dest destination end arrival into recipient quote 目标 终点 目的"
_FROM, _TO = frozenset(_FROM_NAMES.split()), frozenset(_TO_NAMES.split())
_RECEIVERS = frozenset({"recipient", "recipients", "receiver", "收件人"})
_EARLIER = re.compile(
    r"\b(?:cut|earlier|previous|truncated)\s+(?:long\s+)?(?:observation|output|result)|(?:之前|前面|先前|被截断)的?(?:长)?(?:输出|观察|结果)",
    re.IGNORECASE,
)
_EXAMPLES = re.compile(r"such as|e\.g\.|for example|for instance|\blike\b|例如|比如|诸如", re.IGNORECASE)
_DEEPEST = 6
_DEEPEST_OBJECT = 1  # arguments and their own fields; a schema may refer to itself, and each level multiplies
_MOST_BRANCHES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One argument of a tool."""

    name: str
    role: Role
    types: frozenset[str]
    required: bool
    side: Side = ""
    text: str = ""
    choices: tuple[Any, ...] = ()
    item: Param | None = None
    fields: tuple[Param, ...] = ()
    least: float | None = None
    most: float | None = None

    @property
    def about(self) -> tuple[str, ...]:
        """The concepts of its name and description."""
        return concepts(" ".join(name_words(self.name)) + " " + self.text)

    @property
    def own(self) -> tuple[str, ...]:
        """The concepts of its name and of its description without the examples there."""
        return concepts(" ".join(name_words(self.name)) + " " + _EXAMPLES.split(self.text)[0])

    @property
    def takes_text(self) -> bool:
        """True if a string is allowed."""
        return not self.types or "string" in self.types


def params(card: ToolCard) -> tuple[Param, ...]:
    """The arguments of a card; whatever its schema cannot mean is taken as an argument of any kind."""
    schema = card.input_schema
    return _object_fields(schema, schema, about=f"{card.name} {card.purpose}", depth=0)


def _object_fields(rule: Mapping[str, Any], root: Mapping[str, Any], *, about: str, depth: int) -> tuple[Param, ...]:
    properties, required = rule.get("properties"), rule.get("required")
    if not isinstance(properties, Mapping) or depth > _DEEPEST_OBJECT:
        return ()
    needed = {str(name) for name in required} if isinstance(required, list | tuple) else set()
    return tuple(
        _param(str(name), sub, root, required=str(name) in needed, about=about, depth=depth)
        for name, sub in list(properties.items())[:60]
    )


def _param(name: str, rule: Any, root: Mapping[str, Any], *, required: bool, about: str, depth: int) -> Param:
    branches = _branches(rule, root, 0)
    text = " ".join(str(part["description"]) for part in branches if isinstance(part.get("description"), str))[:600]
    types = frozenset(kind for part in branches for kind in _types(part))
    choices = tuple(choice for part in branches for choice in _choices(part))
    words = set(name_words(name))
    item: Param | None = None
    fields: tuple[Param, ...] = ()
    for part in branches:
        if item is None and "items" in part and depth <= _DEEPEST_OBJECT:
            item = _param(name, part["items"], root, required=True, about=about, depth=depth + 1)
        if "properties" in part and not fields:
            fields = _object_fields(part, root, about=about, depth=depth + 1)
    side: Side = "from" if words & _FROM else "to" if words & _TO else ""
    return Param(
        name=name,
        role=_role(words, types, choices, branches, f"{text} {about}" if words <= _FROM | _TO | _RECEIVERS else text),
        types=types,
        required=required,
        side=side,
        text=text,
        choices=choices,
        item=item,
        fields=fields,
        least=_bound(branches, "minimum"),
        most=_bound(branches, "maximum"),
    )


def _branches(rule: Any, root: Mapping[str, Any], depth: int) -> list[Mapping[str, Any]]:
    """The rule with its alternatives, 40 at most; references are followed within the card."""
    if not isinstance(rule, Mapping) or depth > _DEEPEST:
        return []
    found = [rule]
    reference = rule.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part) if isinstance(target, Mapping) else None
        found += _branches(target, root, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        options = rule.get(word)
        if isinstance(options, list | tuple):
            for option in options[:20]:
                if len(found) >= _MOST_BRANCHES:
                    break
                found += _branches(option, root, depth + 1)
    return found[:_MOST_BRANCHES]


def _types(part: Mapping[str, Any]) -> tuple[str, ...]:
    declared = part.get("type")
    if isinstance(declared, str):
        return (declared,)
    return tuple(str(kind) for kind in declared) if isinstance(declared, list | tuple) else ()


def _choices(part: Mapping[str, Any]) -> tuple[Any, ...]:
    if "const" in part:
        return (part["const"],)
    listed = part.get("enum")
    return tuple(listed[:200]) if isinstance(listed, list | tuple) else ()


def _bound(branches: list[Mapping[str, Any]], word: str) -> float | None:
    for part in branches:
        limit = part.get(word)
        if isinstance(limit, int | float) and not isinstance(limit, bool):
            return float(limit)
    return None


def _role(
    words: set[str], types: frozenset[str], choices: tuple[Any, ...], branches: list[Mapping[str, Any]], text: str
) -> Role:
    if choices:
        return "choice"
    plain = types - {"null"}
    structural: tuple[tuple[str, Role], ...] = (("array", "list"), ("object", "object"))
    for kind, role in structural:
        if kind in plain and "string" not in plain:
            return role
    if plain and plain <= {"integer", "number"}:
        return "number"
    if plain == {"boolean"}:
        return "boolean"
    for part in branches:
        form = part.get("format")
        if isinstance(form, str) and form in _FORMATS:
            return _FORMATS[form]
    if _EARLIER.search(text):
        return "handle"
    for role, listed in _NAMES.items():
        if words & set(listed.split()):
            return "email" if words & _RECEIVERS and "@email" in concepts(text) else role
    return _role_by_text(text)


def _role_by_text(text: str) -> Role:
    """The role of an argument whose name says nothing, by what its description is about."""
    about = set(concepts(text))
    hints: tuple[tuple[str, Role], ...] = (
        ("@zone", "zone"), ("@email", "email"), ("@currency", "currency"), ("@calc", "expression"), ("@place", "place"),
        ("@distance", "place"), ("@file", "path"), ("@page", "url"), ("@unit", "unit"), ("@language", "language"),
    )  # fmt: skip
    lowered = text.lower()
    if "expression" in lowered or "表达式" in text or "算式" in text:
        return "expression"
    return next((role for concept, role in hints if concept in about and (concept != "@calc")), "any")
