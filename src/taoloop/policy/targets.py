"""The targets of a call: which arguments they are, and whether they name anything. Pure.

A target that is missing, empty or a wildcard does not narrow a call: `archive()`, `archive(folder="")` and
`archive(folder="*")` may act on everything. No task names that, so such a call is never what the task asked for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.core.value_origins import read_document
from taoloop.core.words import name_words
from taoloop.policy.intent.clauses import DETERMINERS, READING_VERBS, Plain
from taoloop.policy.intent.vocabulary import (
    CHINESE_KINDS,
    KIND_OF,
    LIGHT_VERBS,
    VERBS,
    stem_and_ending,
    words_of,
)
from taoloop.policy.value_match import STOP_WORDS

_WORDS_FOR_ALL = frozenset(
    re.findall(
        r"\w+",
        "all any every everything everyone everybody anything anyone anybody each none null nil undefined"
        " 全部 所有 所有人 全体 全员 任何 任何人 任意 每个 每个人 每人 大家 一切",
    )
)
_COMMON_WORDS = frozenset(
    (*VERBS, *LIGHT_VERBS, *READING_VERBS, *DETERMINERS, *STOP_WORDS, *_WORDS_FOR_ALL, *KIND_OF, *CHINESE_KINDS)
)
_CHINESE_DETERMINER = lazy_pattern(r"[这那该此][个封条份张笔些]?|[我你您他她]们?的|所有的?|全部的?")
_SPECIAL = lazy_pattern(r"[./\\@_:#0-9]")  # of file names, addresses and ids
_ROOTS = lazy_pattern(r"[a-z]:[/\\]*", re.IGNORECASE)  # of a drive


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The plain values within a value, each with its path (`to`, `customer.mail`, `items[0]`)."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from leaves(part, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from leaves(part, f"{path}[{index}]")
    else:
        yield path, value


def first_name(path: str) -> str:
    """The argument that a path of `leaves` begins with."""
    return path.partition(".")[0].partition("[")[0]


def is_target_role(role: str) -> bool:
    """Whether an argument of this role says whom or what a call acts on."""
    return role == "target" or role.startswith("ref:")


_AMOUNT_WORDS = words_of(
    "amount amounts sum total price cost fee quantity quantities qty count money budget salary tip fare deposit"
    " discount"
    " percent percentage"
)
_CHINESE_AMOUNTS = ("金额", "数量", "价格", "总额", "总价", "单价", "费用", "数额", "百分比", "预算")
_NAME_PARTS = words_of("first last given family middle surname forename")
_OTHER_NUMBERS = words_of(
    "id ids no nr num number numbers code ref reference order invoice ticket issue account card phone mobile"
    " tel fax zip"
    " postcode pin room seat table flight gate floor year month week day date hour minute second time index"
    " page line row"
    " column position version port latitude longitude lat lon lng"
)
_FROM_WORDS = words_of("from source src input origin original old sender")
_TO_WORDS = words_of("to target dest destination dst into output out new recipient receiver")
_CHINESE_OTHER_NUMBERS = ("号", "编码", "代码", "年", "月", "日", "时", "页")


def value_role(card: ToolCard, name: str, value: Any = None) -> str:
    """The role by which a value of an argument is compared: the declared one, or `amount` for what counts something.

    That is an argument whose name says so, or one of the role `value` that takes a number, or has one as its `value`,
    unless its name says that it is an identifier or a time. A kind is kept: `value:total` becomes `amount:total`. A
    target that is a part of a name (`first_name`) is compared as a `value`.
    """
    role = card.role(name)
    base, separator, kind = role.partition(":")
    if base not in ("value", "target"):
        return role
    words = set(name_words(name))
    if not words.isdisjoint(_NAME_PARTS):
        return "value"
    is_amount = not words.isdisjoint(_AMOUNT_WORDS) or any(word in name for word in _CHINESE_AMOUNTS)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if base == "value" and (is_number or _takes(card.parameters.get(name), "number", "integer")) and not is_amount:
        is_amount = words.isdisjoint(_OTHER_NUMBERS) and not any(word in name for word in _CHINESE_OTHER_NUMBERS)
    return f"amount{separator}{kind}" if is_amount else role


def direction_of(name: str) -> str:
    """Whether an argument is named for where something comes from (`from`) or goes (`to`); empty if for neither."""
    words = set(name_words(name))
    is_from, is_to = not words.isdisjoint(_FROM_WORDS), not words.isdisjoint(_TO_WORDS)
    return "" if is_from == is_to else "from" if is_from else "to"


def may_have_parts(card: ToolCard, name: str) -> bool:
    """Whether the schema of an argument provides for a list or an object. One without a type is for one plain value."""
    return _takes(card.parameters.get(name), "array", "object", "")


def _takes(schema: Any, *types: str) -> bool:
    """Whether a schema names one of these types; an empty text is for one that refers to others."""
    if not isinstance(schema, Mapping):
        return False
    if "" in types and not {"$ref", "items", "properties", "enum", "const"}.isdisjoint(schema):
        return True
    declared = schema.get("type", ())
    branches = (branch for key in ("anyOf", "oneOf", "allOf") for branch in schema.get(key) or ())
    return not set(types).isdisjoint((declared,) if isinstance(declared, str) else declared) or any(
        _takes(branch, *types) for branch in branches
    )


def lacks_target(card: ToolCard, args: Any) -> bool:
    """Whether a call of a tool that takes targets names none, or one that means everything.

    One that is passed as empty beside others that are not may mean everything too, unless that is its default; null is
    as if it were left out. A target that is among the card's `egress` arguments narrows nothing: without it the call
    reaches nobody, and that is fine. A required one must name something all the same.
    """
    arguments: Mapping[str, Any] = args if isinstance(args, Mapping) else {}
    names = dict.fromkeys((*card.parameters, *arguments))
    targets = [name for name in names if is_target_role(card.role(name))]
    if any(not _is_empty(arguments.get(name)) and means_everything(arguments[name]) for name in targets):
        return True
    if any(_is_empty(arguments.get(name)) for name in targets if name in card.required):
        return True
    recipients = card.egress if isinstance(card.egress, tuple) else ()
    narrowing = [name for name in targets if name not in recipients]
    empty = [name for name in narrowing if _is_empty(arguments.get(name))]
    if any(arguments.get(name) not in (None, _default(card, name)) for name in empty):
        return True
    return bool(narrowing) and len(empty) == len(narrowing)


def _default(card: ToolCard, name: str) -> Any:
    """What an argument is if it is left out."""
    rule = card.parameters.get(name)
    return rule.get("default") if isinstance(rule, Mapping) else None


def means_everything(value: Any) -> bool:
    """Whether a value names nothing in particular, however deep: it is empty, or any part of it is a wildcard."""
    if isinstance(value, str):
        text = unicodedata.normalize("NFKC", value).strip().casefold()
        # a sign alone is a wildcard or a root: * % / . ~ - ?
        return not any(map(str.isalnum, text)) or text in _WORDS_FOR_ALL or _ROOTS.fullmatch(text) is not None
    if isinstance(value, Mapping):
        parts = [part for part in value.values() if not _is_empty(part)]
        return not parts or any(map(means_everything, parts))
    if isinstance(value, list | tuple):
        return not value or any(map(means_everything, value))
    return value is None


def names_nothing(value: Plain) -> bool:
    """Whether a text has only words that any text may have: "the file", "delete it"."""
    return all(word in _COMMON_WORDS or stem_and_ending(word)[0] in _COMMON_WORDS for word in _plain_words(value))


def is_kind_word(value: Plain) -> bool:
    """Whether a text only says of which kind something is: "the order", "orders", "邮件"."""
    words = [word for word in _plain_words(value) if word in CHINESE_KINDS or stem_and_ending(word)[0] in KIND_OF]
    return bool(words) and _SPECIAL.search(str(value)) is None and names_nothing(value)


def _plain_words(value: Plain) -> list[str]:
    text = unicodedata.normalize("NFKC", str(value)).casefold()
    return re.findall(r"\w+", _CHINESE_DETERMINER.sub("", text))


def _is_empty(value: Any) -> bool:
    """Whether a value contains nothing, however deep."""
    if isinstance(value, Mapping):
        return all(map(_is_empty, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_empty, value))
    return value is None or (isinstance(value, str) and not value.strip())


def texts_within(output: str) -> Iterator[str]:
    """The texts in an output of JSON, without the signs that JSON puts for line breaks; else the output."""
    try:
        document = read_document(output)
    except (ValueError, RecursionError):
        yield output
        return
    yield from (value for _, value in leaves(document) if isinstance(value, str))
