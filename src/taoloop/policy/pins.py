"""Which tools a task calls for, judged by its words and those of the card alone.

A tool is pinned if the task names its act (send, pay, delete …, in English or Chinese) or the tool itself. That bounds
what a hijacked run can do unasked, and nothing else: a pin by itself allows no call.
"""

from __future__ import annotations

import re
from functools import lru_cache

from taoloop.core.cards import ToolCard
from taoloop.policy.values import plain

_ACTS = (
    (
        "send email mail message write reply respond answer forward tell inform notify",
        "发送|发给|发邮件|发信|寄|回复|答复|转发|通知|告诉|发一封|发个",
    ),
    (
        "post publish tweet share upload",
        "发布|发表|分享|上传|贴",
    ),
    (
        "invite add participant member attend",
        "邀请|添加|加入|拉进",
    ),
    (
        "create make add new schedule plan set open register append note write put",
        "创建|新建|添加|新增|安排|建立|设置|登记|记录|写",
    ),
    (
        "write save store append edit put insert draft",
        "写|保存|存|追加|编辑|插入|草拟|起草",
    ),
    (
        "update change modify edit adjust correct rename replace set move reschedule increase decrease fix",
        "更新|修改|更改|改|调整|编辑|重命名|改名|移动|改期|改为",
    ),
    (
        "move rename",
        "移动|重命名|改名|挪",
    ),
    (
        "delete remove erase drop clear cancel kick purge",
        "删除|移除|删|清空|清除|取消|踢",
    ),
    (
        "cancel delete abort call-off",
        "取消|撤销",
    ),
    (
        "reschedule move postpone shift",
        "改期|推迟|延期|提前|改到",
    ),
    (
        "pay transfer send refund wire buy purchase settle reimburse return",
        "支付|付款|付|转账|汇款|退款|购买|买|报销|打款|缴",
    ),
    (
        "schedule pay set standing recurring transfer",
        "定期|安排|预约|自动",
    ),
    (
        "book reserve order rent",
        "预订|预定|订|下单|租",
    ),
    (
        "buy order purchase",
        "购买|下单|买|订购",
    ),
    (
        "share give access grant permission",
        "分享|共享|授权",
    ),
    (
        "submit file hand",
        "提交|递交|上报",
    ),
    (
        "run execute start launch deploy restart",
        "运行|执行|启动|部署|重启",
    ),
    (
        "approve accept confirm",
        "批准|同意|确认",
    ),
    (
        "close end stop terminate disable",
        "关闭|结束|停止|禁用",
    ),
    (
        "remember note keep",
        "记住|记下",
    ),
)
_GROUPS = [(frozenset(english.split()), frozenset(chinese.split("|"))) for english, chinese in _ACTS]
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SPOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?")
_CHANGED = {"sent": "send", "paid": "pay", "wrote": "write", "written": "write", "bought": "buy", "made": "make"}
_SMALL = frozenset(
    ["a", "an", "the", "to", "of", "for", "in", "on", "by", "with", "and", "or", "from", "my", "all", "get", "is"]
)


class Pins:
    """The words of a task, against which cards are held."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._words: set[str] = set()

    def add(self, text: str) -> None:
        """Take in one more text of the task."""
        text = plain(text)
        self._texts.append(text)
        self._words |= {stem(word) for word in _SPOKEN.findall(text)}

    def holds(self, card: ToolCard) -> bool:
        """Whether the task calls for this tool."""
        name = plain(card.name)
        if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for text in self._texts):
            return True
        acts, chinese = _acts_of(card.name, card.purpose)
        return not self._words.isdisjoint(acts) or any(word in text for word in chinese for text in self._texts)


@lru_cache(maxsize=4096)
def _acts_of(name: str, purpose: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words by which a task may call for this act: those of the verb in the name, else of the purpose's first."""
    words = [stem(word.lower()) for word in _WORD.findall(name)]
    verbs = [word for word in words if any(word in english for english, _ in _GROUPS)]
    if not verbs:
        opening = [stem(word) for word in _SPOKEN.findall(plain(purpose))[:2]]
        verbs = [word for word in opening if any(word in english for english, _ in _GROUPS)]
    english: set[str] = set(verbs[:1])  # a name may have more words that are acts elsewhere: delete_email
    chinese: set[str] = set()
    for group, signs in _GROUPS:
        if verbs[:1] and verbs[0] in group:
            english |= group
            chinese |= signs
        if not verbs and any(sign in name + purpose[:12] for sign in signs):
            english |= group
            chinese |= signs
    if not english:  # an act that nobody listed: its own name
        english = {word for word in words if word not in _SMALL}
    return frozenset(english), frozenset(chinese)


def stem(word: str) -> str:
    """The word without the ending of a plural, a past or a gerund; good enough to compare verbs."""
    word = _CHANGED.get(word.removesuffix("'s"), word.removesuffix("'s"))
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            short = word[: -len(ending)]
            if ending in ("ing", "ed") and len(short) > 3 and short[-1] == short[-2] and short[-1] not in "lse":
                short = short[:-1]
            single = short[:-1] if short[-2:-1] == short[-1:] else short  # cancelled
            for whole in (short, short + "e", short[:-1] + "y" if short.endswith("i") else short, single):
                if any(whole in english for english, _ in _GROUPS):
                    return whole
            return short
    return word
