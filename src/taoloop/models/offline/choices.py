"""Values that come from a closed or well-known list: enums, booleans, units, languages, keys that a card names."""

from __future__ import annotations

import re
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.models.offline import units
from taoloop.models.offline.extract import MARK, Skeleton
from taoloop.models.offline.schema import Param
from taoloop.models.offline.words import concepts, is_chinese, name_words

_UP = (
    "ascending|increasing|smallest first|lowest first|cheapest first|low to high|lowest to highest|smallest to largest"
    "|升序|从小到大|从低到高|递增|正序"
)
_DOWN = (
    "descending|decreasing|reverse order|largest first|biggest first|highest first|high to low|highest to lowest"
    "|largest to smallest|降序|倒序|从大到小|从高到低|递减"
)
_MEANINGS = {
    "celsius": "摄氏|centigrade|℃|°c", "fahrenheit": "华氏|℉|°f", "kelvin": "开尔文", "c": "celsius|摄氏|℃",
    "f": "fahrenheit|华氏|℉",
    "metric": "公制|celsius|摄氏|kilometers?|kilometres?", "imperial": "英制|fahrenheit|华氏|miles?",
    "asc": _UP, "ascending": _UP, "increasing": _UP, "desc": _DOWN, "descending": _DOWN, "decreasing": _DOWN,
    "low": "低", "medium": "中等|普通", "high": "高|urgent|紧急",
    "en": "english|英文|英语",
    "zh": "chinese|中文|汉语", "fr": "french|法语|法文", "de": "german|德语|德文", "ja": "japanese|日语|日文",
    "es": "spanish|西班牙语",
    "english": "英文|英语", "chinese": "中文|汉语", "french": "法语|法文", "german": "德语|德文",
    "japanese": "日语|日文",
    "spanish": "西班牙语", "km": "kilometers?|kilometres?|公里|千米", "mi": "miles?|英里",
    "kg": "kilograms?|kilos?|公斤|千克",
    "lb": "pounds?|磅", "m": "meters?|metres?|米", "miles": "英里|mile", "kilometers": "公里|千米|km|kilometres?",
    "add": "plus|sum|加",
    "subtract": "minus|减", "multiply": "times|product|乘", "divide": "divided|除以", "open": "打开|开着",
    "closed": "关闭|已关闭",
    "red": "红", "green": "绿", "blue": "蓝", "small": "小号|小", "large": "大号|大", "today": "今天",
    "tomorrow": "明天", "week": "周|星期",
    "day": "天|日", "month": "月", "year": "年", "hour": "小时", "male": "男", "female": "女", "on": "开|enable",
    "off": "关|disable",
}  # fmt: skip
_LANGUAGES = {
    "English": ("en", "英文|英语"), "Chinese": ("zh", "中文|汉语|mandarin"), "French": ("fr", "法语|法文"),
    "German": ("de", "德语|德文"),
    "Spanish": ("es", "西班牙语|西班牙文"), "Japanese": ("ja", "日语|日文"), "Korean": ("ko", "韩语|韩文"),
    "Russian": ("ru", "俄语|俄文"),
    "Italian": ("it", "意大利语"), "Portuguese": ("pt", "葡萄牙语"), "Arabic": ("ar", "阿拉伯语"), "Dutch": ("nl",
    "荷兰语"),
}  # fmt: skip
_MEASURES = {
    "day": "天|日", "hour": "小时", "minute": "分钟", "second": "秒", "people": "人|位|persons?|guests?",
    "person": "人|位",
    "limit": "条|本|篇|最多", "count": "条|个|次|times", "weight": "体重|重量", "height": "身高|高度", "page": "页",
    "year": "年",
    "month": "个月", "week": "周", "guest": "人|位|people", "age": "岁|年龄", "side": "面", "size": "大小",
    "percent": "%",
}  # fmt: skip
_NOT = re.compile(r"\b(?:no|not|without|don't|do not|disable|false|off)\b|不|无|别|否|关闭", re.IGNORECASE)
_YES = re.compile(r"\b(?:true|yes|with|enable|include|on)\b|是|要|启用|开启|包含|包括", re.IGNORECASE)


def choose(param: Param, clause: str, skeleton: Skeleton) -> tuple[Any, str]:
    """The choice that the clause names, and the mark where it stands; (None, "") if it names none, or several alike."""
    text = skeleton.restore(clause).lower()
    best: tuple[int, Any] = (0, None)
    for choice in param.choices:
        if isinstance(choice, bool) or not isinstance(choice, str | int | float):
            continue
        word = str(choice).lower()
        forms = {word, word.replace("_", " "), word.replace("-", " "), *_MEANINGS.get(word, "").split("|")} - {""}
        for form in forms:
            place = _find(form, text, plain=form in (word, word.replace("_", " ")))
            if place >= 0 and len(form) > best[0]:
                best = (len(form), choice)
    for mark in re.findall(MARK, clause):
        atom = skeleton.atom(mark)
        same = [c for c in param.choices if str(c).casefold() in (atom.value.casefold(), atom.source.casefold())]
        sided = _on_side(param, clause, mark)
        if same and sided:
            return same[0], mark
    return (best[1] if best[1] is not None else _by_meaning(param, text)), ""


def _by_meaning(param: Param, text: str) -> Any:
    """The one choice that means what the clause says in another language or form: "数学" for `math`."""
    said = {concept for concept in concepts(text) if concept[0] == "@"}
    meant = [choice for choice in param.choices if isinstance(choice, str) and said & set(concepts(choice))]
    return meant[0] if len(meant) == 1 else None


def _on_side(param: Param, clause: str, mark: str) -> bool:
    before = clause[: clause.find(mark)].rstrip()
    to = re.search(r"(?:\bto|\binto|\bin|到|成|为|换|兑)$", before, re.IGNORECASE) is not None
    return not param.side or (param.side == "to") == to


def _find(form: str, text: str, *, plain: bool) -> int:
    if plain:
        form = re.escape(form)
    edge = "" if is_chinese(form) else r"(?<![a-z])"
    match = re.search(rf"{edge}(?:{form})" + ("" if is_chinese(form) else r"(?![a-z])"), text)
    return match.start() if match else -1


def boolean(param: Param, text: str) -> bool | None:
    """True or false where the clause speaks of the argument, or says yes or no for a required one."""
    about = set(concepts(param.name.replace("_", " ")))
    lowered = text.lower()
    if explicit := re.search(
        rf"\b{re.escape(param.name.lower())}\b\s*(?:=|:|is|为|是)?\s*(true|false|yes|no)\b", lowered
    ):
        return explicit[1] in ("true", "yes")
    words = set(name_words(param.name))
    if words & _SWITCHES and (found := _SWITCHED.search(lowered)):
        return found["on"] is not None
    for names, along, against in ((_DOWNWARDS, _DOWN, _UP), (_UPWARDS, _UP, _DOWN)):
        if words & names and (found := re.search(f"({along})|({against})", lowered)):
            return found[1] is not None
    if about and about & set(concepts(text)) and (_YES.search(text) or _NOT.search(text)):
        return not _NOT.search(text)
    if not param.required and about and words <= set(re.findall(r"[a-z]+", lowered)) and not _NOT.search(lowered):
        return True
    if param.required and (match := re.search(r"\b(true|false|yes|no)\b", lowered)):
        return match[1] in ("true", "yes")
    return None


_SWITCHES = frozenset({"on", "enabled", "enable", "active", "power", "open", "state", "开关"})
_SWITCHED = re.compile(
    r"(?P<off>\b(?:turn|switch|power)\b.*?\boff\b|\boff\b|disable|deactivate|shut|\bclose\b|关闭|关掉|关上|关|停用)"
    r"|(?P<on>\b(?:turn|switch|power)\b.*?\bon\b|enable|activate|\bopen\b|\bon\b|打开|开启|开|启用)"
)
_DOWNWARDS = frozenset({"descending", "desc", "reverse", "reversed", "decreasing", "降序", "倒序"})
_UPWARDS = frozenset({"ascending", "asc", "increasing", "升序"})


def measure(word: str) -> str:
    """A pattern of the words that stand beside a number for an argument: `days` is also day and 天."""
    form = word.rstrip("s")
    return rf"{re.escape(form)}s?" + (f"|{_MEASURES[form]}" if form in _MEASURES else "")


def unit(param: Param, clause: str, skeleton: Skeleton) -> str | None:
    """A unit of measure: the one behind the number, or behind "to" for the argument that is the target."""
    own, target = units.named(clause, skeleton)
    return (target if param.side == "to" else own or ("" if param.side else target)) or None


def language(param: Param, text: str) -> str | None:
    """A language: its code where the card asks for codes, else its English name. The one after "to" is the target."""
    found: list[tuple[int, str]] = []
    for name, (code, others) in _LANGUAGES.items():
        for match in re.finditer(rf"\b{name}\b|{others}", text, re.IGNORECASE):
            wants_code = re.search(r"\bcode|ISO|代码", param.text) is not None
            found.append((match.start(), code if wants_code else name))
    if not found:
        return None
    found.sort()
    if len(found) == 1 and param.side == "from" and not re.search(r"from|从", text):
        return None
    return found[-1][1] if param.side != "from" else found[0][1]


_KEYLIKE = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+")


def listed(param: Param, card: ToolCard) -> list[str]:
    """The keys that a card names in its descriptions and examples."""
    texts = [param.text, card.purpose, card.use_when]
    texts += [
        str(example.args.get(param.name, "")) for example in tuple(card.examples)[:20] if hasattr(example.args, "get")
    ]
    return list(dict.fromkeys(key for text in texts for key in _KEYLIKE.findall(text[:4_000])))


def closest(wanted: str, known: list[str], clause: str) -> str | None:
    """The known key that means the same as `wanted`, judged by its words; None if none is near."""
    asked = set(concepts(f"{re.sub(r'[._]', ' ', wanted)} {clause}"))
    best, most = None, 0.0
    for key in known[:200]:
        about = set(concepts(re.sub(r"[._-]", " ", key)))
        shared = len(about & asked)
        owner = set(concepts(re.sub(r"[_-]", " ", key.split(".")[0])))
        points = shared / (len(about) or 1) + 0.3 * similarity(wanted, key)
        if shared and owner <= asked and points > most:
            best, most = key, points
    return best if most >= (0.75 if wanted else 1.0) else None


def similarity(one: str, other: str) -> float:
    """How alike two short texts are, from 0 to 1, by their pairs of characters."""
    pairs = [{text[i : i + 2] for i in range(min(len(text), 200) - 1)} for text in (one.casefold(), other.casefold())]
    union = len(pairs[0] | pairs[1])
    return len(pairs[0] & pairs[1]) / union if union else float(one.casefold() == other.casefold())
