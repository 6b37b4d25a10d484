"""Words of a clause that stand for a value although they have no form of their own: topics, names, labelled texts."""

from __future__ import annotations

import re
from collections.abc import Collection

from taoloop.models.offline.extract import MARK, Skeleton
from taoloop.models.offline.lexicon import ATTRIBUTES
from taoloop.models.offline.moods import LEADING_VERBS
from taoloop.models.offline.words import Segment, concepts, segments

_MARK = re.compile(MARK)
_TOPIC = re.compile(
    r"\b(?:about|regarding|concerning|on the topic of|related to|named|called"
    r"|titled)\s+(?P<en>[^,;.?!，。；？！]{1,200})"
    r"|(?:关于|有关|名为|名叫|叫做)(?P<zh>[^,;?!，。；？！]{1,100}?)(?=的(?!.*的)|[,;?!，。；？！]|$)",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"(?<![A-Za-z])(?:in|at|for|of|from|to|near|by|between|and|with|user|is)\s+"
    r"(?P<name>(?:[A-Z][\w'’.-]*)(?:\s+(?:[A-Z][\w'’.-]*|de|la|el|of|the(?=\s[A-Z])))*)"
)
_WHERE = re.compile(_NAME.pattern.replace("in|at|for|of|from|to|near|by|between|and|with|user|is", "in|at|for|near"))
_CAPITALS = re.compile(r"(?<![A-Za-z'])[A-Z][\w-]+(?:\s[A-Z][\w-]+)*")
_OWNER = re.compile(
    r"(?P<name>[A-Z][\w-]*(?:\s[A-Z][\w-]*)*)(?=['’]s\b)"
    r"|(?:给|向|跟|替)\s*(?P<to>[A-Za-z][\w-]*|[\u4e00-\u9fff]{2,3}?)\s*(?=转|汇|发|付|寄|打|送|写|支|买|订|说|提交|申请|预|登记|安排|创建|添加|办理)"
)
_LOCAL = re.compile(
    r"(?:在|去|到|从|查询|查一下|查|看看|看|，|,"
    r"|^)?(?P<name>[\u4e00-\u9fff]{2,6}?[市县省镇区州])(?![\u4e00-\u9fff]{0,1}长)"
)
_FOLDER = re.compile(
    r"(?<![A-Za-z])(?:folder|directory|dir|目录|文件夹)\s+(?:called\s+|named\s+)?((?!of\b|in\b|is\b|and\b|for\b"
    r"|with\b|to\b)[A-Za-z_][\w-]*)"
    r"|(?!the\b|this\b|my\b|a\b|current\b|that\b|workspace\b|each\b|in\b"
    r"|of\b)(?<![A-Za-z])([A-Za-z_][\w-]*)\s*(?:folder\b|directory\b|目录|文件夹)",
    re.IGNORECASE,
)
_OF = re.compile(
    r"(?:the\s+)?(?P<field>[A-Za-z][A-Za-z ]{0,40}?)\s+(?:of|for)\s+(?:the\s+)?(?:user\s+"
    r"|author\s+)?(?P<owner>[\w.\ue000-\uf8ff-]{1,60})"
    r"(?:\s*(?:,|and|和)\s*(?P<more>(?!the\b)[A-Za-z][\w-]{0,60})(?=\s*(?:$|[,.?!;])))?"
    r"|(?P<owner2>[\w\ue000-\uf8ff-]{1,60})(?:'s|’s)\s+(?P<field2>[A-Za-z][A-Za-z ]{0,40})"
)
_OF_CHINESE = re.compile(
    r"(?P<owner>[A-Za-z0-9_-]{1,60}|[\u4e00-\u9fff]{1,8}|[\ue000-\uf8ff])\s*的\s*(?P<field>[\u4e00-\u9fff]{1,8}"
    r"|[a-z_]{2,40})"
)
_LABELS = {
    "subject": "subject|title|主题|标题|题目", "title": "titled?|called|标题|题目|名为",
    "name": "named|called|name|名字|名叫|名为|叫",
    "body": "body|message|content|text|saying|内容|正文|写着", "content": "contents?|text|saying|内容|正文|写着|写上",
    "message": "message|text|saying|内容|消息|说", "text": "text|saying|内容|文本|文字|说", "note": "note|备注|内容",
    "description": "description|描述|说明", "query": "query|关键词|关键字", "limit": "limit|top|前",
    "count": "count|top|数量",
    "label": "label|labelled|labeled|标签", "reason": "reason|because|原因|理由|因为",
    "comment": "comment|备注|评论",
    "user": "user|用户", "username": "username|user|用户名|用户",
}  # fmt: skip
_FREE_WORDS = (
    "subject title body message content text saying because labelled labeled titled called named "
    "因为 主题 标题 内容 正文 题目 名为 写着 名叫"
)
_FREE = frozenset(_FREE_WORDS.split())
QUESTION = re.compile(
    r"^(?:who|what|when|where|why|how|which|is|are|does|did)\b|[?？]\s*$|谁|什么|哪|多少|几|吗$", re.IGNORECASE
)
_ACTION = frozenset({"@lookup", "@search", "@calc", "@convert", "@translate"})
REFERENCE = re.compile(
    r"\b(?:it|its|that|this|them|those|these|result|results|answer|text|contents?|output|there|file)\b"
    r"|结果|它|其中|内容|里面|这段|上述|文中|这些|答案|译文|原文|该文件",
    re.IGNORECASE,
)


_EXISTS = re.compile(r"\s+(?:(?:are|is)\s+there|do\s+(?:we|you|i)\s+have|exists?)\s*$", re.IGNORECASE)
_FILLER_WORDS = (
    "many located lives live have has had having left still next last latest today tomorrow yesterday tonight there "
    "come comes go goes weigh weighs"
)
_OPENING_VERBS = LEADING_VERBS | {"turn", "switch", "dim", "toggle", "close", "cancel", "stop"}
_FILLERS = frozenset(_FILLER_WORDS.split())


def residue(clause: str, skeleton: Skeleton, known: Collection[str], used: Collection[str]) -> str:
    """The longest stretch of words that are neither idle nor about the tool itself: what the clause is about.

    `known` are the concepts of the tool, `used` the marks that other arguments took.
    """
    text = "".join(";" if char in used else char for char in clause)
    if topic := _TOPIC.search(text):
        return _clean(skeleton.restore(_EXISTS.sub("", topic["en"] or topic["zh"])))
    words = segments(text)
    words += [Segment(m.start(), m.end(), (), idle=False) for m in _MARK.finditer(text)]
    words.sort()
    best: tuple[int, int] = (0, 0)
    begun = -1
    end = last = 0
    for word in words:
        spent = (
            word.idle
            or (not word.start and text[: word.end].lower() in _OPENING_VERBS)
            or text[word.start : word.end].lower() in _FILLERS
            or _on_card(text[word.start : word.end], known)
            or any(concept in known or concept in _ACTION for concept in word.about)
        )
        if text[last : word.start].strip(" '’-"):
            begun = -1
        last = word.end
        if spent:
            if begun >= 0 and text[word.start : word.end].lower() not in (
                "of",
                "the",
                "and",
                "in",
                "的",
                "和",
                "与",
                "for",
            ):
                begun = -1
            continue
        if begun < 0:
            begun = word.start
        end = word.end
        if end - begun > best[1] - best[0]:
            best = (begun, end)
    return _clean(skeleton.restore(text[best[0] : best[1]]))


def _on_card(word: str, known: Collection[str]) -> bool:
    """True for a Chinese word that the lexicon does not know, but the card has."""
    return len(word) > 1 and not word.isascii() and all(word[i : i + 2] in known for i in range(len(word) - 1))


_SERIES = re.compile(
    r"[\w'-]+(?:\s*[,，、]\s*(?!(?:and|和)\b)[\w'-]+)*\s*(?:[,，、]\s*(?:and\s+|和)?|\band\s+|和|与)\s*[\w'-]+",
    re.IGNORECASE,
)


def listed(text: str) -> list[str]:
    """Bare words that stand in a series: "pear, fig and apple"."""
    match = _SERIES.search(text)
    return (
        [word for word in re.split(r"\s*[,，、]\s*(?:and\s+)?|\s+and\s+|和|与", match.group()) if word] if match else []
    )


def folder(clause: str, skeleton: Skeleton) -> str:
    """A folder named without a slash: "the src folder", "src 目录"."""
    match = _FOLDER.search(clause)
    return skeleton.restore(match[1] or match[2]) if match else ""


def names(clause: str, skeleton: Skeleton, *, only_places: bool = False) -> list[str]:
    """Names: capitalised words after a preposition, Chinese places by their ending, Latin words in Chinese text."""
    found = [] if only_places else [match["name"] or match["to"] for match in _OWNER.finditer(clause)]
    found += [match["name"].rstrip(".'’") for match in (_WHERE if only_places else _NAME).finditer(clause)]
    found = [name.removesuffix("'s").removesuffix("’s") for name in found if name]
    if found and " " in found[0] and clause.startswith(found[0]) and found[0].split()[0].lower() in LEADING_VERBS:
        found[0] = found[0].split(" ", 1)[1]
    found += [match["name"].lstrip("的把将请问") for match in _LOCAL.finditer(clause)]
    if only_places:
        return [name for name in dict.fromkeys(found) if not _english_known(name) or not name.isascii()]
    if re.search(r"[\u4e00-\u9fff]", clause):
        found += [
            w
            for w in re.findall(r"(?<![A-Za-z])[A-Za-z][A-Za-z0-9_-]+", clause)
            if concepts(w) and concepts(w)[0][0] != "@"
        ]
    else:
        runs = [match.group() for match in _CAPITALS.finditer(clause) if match.start() or " " in match.group()]
        if runs and " " in runs[0] and clause.startswith(runs[0]):
            head, rest = runs[0].split(" ", 1)
            runs[0] = rest if _english_known(head) or head.lower() in LEADING_VERBS else runs[0]
        whole = [run for run in runs if " " in run and not _english_known(run.split()[-1])]
        words = [run for run in runs if " " not in run]
        found = [*whole, *(name for name in found if not any(name in run for run in whole))]
        found += [word for word in words if word.lower() != "i" and not _english_known(word)]
    return list(dict.fromkeys(skeleton.restore(name) for name in found if name))


def _english_known(word: str) -> bool:
    about = concepts(word.lower())
    return not about or about[0].startswith("@")


def record_keys(clause: str, skeleton: Skeleton) -> list[str]:
    """Keys that "the post count of huala" can mean: `huala.post_count`."""
    found = []
    for match in _OF.finditer(clause):
        owner, name = match["owner"] or match["owner2"], match["field"] or match["field2"]
        words = [word for word in name.lower().split() if word not in _KEY_IDLE]
        owners = [one for one in (owner, match["more"]) if one] if words else []
        found += [f"{skeleton.restore(one)}.{'_'.join(words)}" for one in owners]
    for match in _OF_CHINESE.finditer(clause):
        owner = re.sub(r"^.*(?:查询|查一下|查找|查出|查|看看|获取|读取|请问|找出|找|先)", "", match["owner"])
        name = match["field"]
        field = next((ATTRIBUTES[name[:size]] for size in range(len(name), 0, -1) if name[:size] in ATTRIBUTES), name)
        if owner:
            found.append(f"{skeleton.restore(owner)}.{field}")
    return found


_KEY_IDLE_WORDS = (
    "and or the a an look up lookup find get fetch what is s whats me show tell give query value key please check of"
)
_KEY_IDLE = frozenset(_KEY_IDLE_WORDS.split())


_ELSEWHERE = re.compile(
    r"(?:to|in|into|onto|of|from|at|on|as|for)\b|到|写|存|保存|发|放|里|中|的|从|追加", re.IGNORECASE
)
"""Behind a label without a sign such words begin a place, not the text: "write its content to a.txt"."""


_RECEIVER = re.compile(
    r"\bto\s+(?P<en>(?!the\b|a\b|an\b|my\b)[A-Z][\w-]*(?:\s[A-Z][\w-]*)*)|(?:发给|寄给|转给|交给|发送给)\s*(?P<zh>[\u4e00-\u9fff]{2,4}|[A-Za-z][\w-]*)\s*$"
)


def receiver(clause: str) -> str:
    """The name behind "to" or 给: who gets something; empty if none stands there."""
    match = _RECEIVER.search(clause)
    return (match["en"] or match["zh"]) if match else ""


def labelled(clause: str, skeleton: Skeleton, name: str) -> str:
    """The text that stands behind a label: "subject: …", "主题是…", "saying …"."""
    words = _LABELS.get(name.lower(), re.escape(name.lower().replace("_", " ")))
    pattern = re.compile(
        rf"(?<![A-Za-z])(?P<label>{words})(?![A-Za-z])\s*(?P<sign>[:：=]|is\b|to\b(?={MARK})|为"
        r"|是)?\s*(?P<value>.{1,2000})",
        re.IGNORECASE | re.DOTALL,
    )
    match = pattern.search(clause)
    if match is None:
        return ""
    value = match["value"].strip()
    if value and _MARK.match(value[0]) and skeleton.atom(value[0]).kind == "quoted":
        return skeleton.atom(value[0]).value
    if match["sign"] in ("is", "是") and QUESTION.search(clause):
        return ""
    if not match["sign"] and (match["label"].lower() not in _FREE or _ELSEWHERE.match(value)):
        return ""
    stop = re.search(
        r"\s+(?:and|with)\s+(?:the\s+)?(?:a\s+)?(?:subject|body|message|content|text|title)\b|[,，;；。]|$",
        value,
        re.IGNORECASE,
    )
    return _clean(skeleton.restore(value[: stop.start()] if stop else value))


def _clean(text: str) -> str:
    return text.strip(" \t\n,.;:!?，。；：！？、'\"")
