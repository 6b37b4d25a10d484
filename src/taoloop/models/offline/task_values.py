"""Splits a task into tokens: values (numbers, quotes, paths, zones, keys …), words with their concepts, and signs.

The planner answers only what it understands in full: every token must be a value that goes into a call, a word that the
card of the called tool uses too, part of the arithmetic, or a word without a meaning of its own. So the lists of words
below may stay short: a word that is missing leads to a refusal, never to a wrong call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from taoloop.core.words import stem as stem_plural

_WORDS = """
@time: time clock 时间 几点 几点钟 | @hour: hour 小时 小时数 | @minute: minute 分钟 分钟数 | @date: date 日期
@zone: zone timezone time_zone 时区 | @city: city town 城市 | @weather: weather 天气 | @temperature: temperature 气温
@stock: stock inventory 库存 | @price: price cost 价格 | @order: order 订购 下单 | @piece: piece item
@product: product goods 商品 | @count: count how_many number_of 几个 多少个 几件 数一数 数出 统计 | @word: word 词 单词
@text: text 文字 文本 | @file: file document 文件 文档 | @folder: folder directory 目录 文件夹
@read: read open display content contents 读取 打开 内容 | @write: write save store 写入 写到 保存 存入
@delete: delete remove erase 删除 删掉 | @list: list 列出 | @search: search 搜索 | @send: send 发送
@email: email mail e-mail 邮件 | @convert: convert 换算 转换 | @translate: translate 翻译 | @distance: distance 距离
@look: look_up lookup find get show tell give say check fetch query see 查询 查找 查 查一下 查看 看看 获取 告诉 显示
@look: 给出 | @calc: calculate calculator compute evaluate work_out 计算 计算器 算 算一下
op+: plus 加 加上 | op-: minus 减 减去 | op*: times multiplied_by 乘 乘以 | op/: divided_by 除以 | op**: to_the_power_of
verb+: add | verb-: subtract | verb*: multiply | verb/: divide | verb**: square
post**2: squared 平方 | post**3: cubed 立方 | post**: 次方 | pre**2: square_of | pre**3: cube_of
pre**0.5: square_root_of | pre/2: half_of | pre*2: twice double
all+: sum_of total_of 之和 相加 | all*: product_of 之积 相乘 乘积
ref: it its that this result answer 它 结果 | then: then and_then afterwards finally 然后 再 接着 最后 随后 并 并且
and: and 和 与 以及 | polite: please can_you could_you will_you would_you 请 请问 请帮我 帮我 请你
first: first 首先 先 | from: from 从 | to: to into 到 至 | by: by with | take: 将 把
stop: a an the of in at for on my me us 's now current currently present today right_now final value_of
stop: 的 在 里 里面 中 内 上 现在 当前 目前 今天 一下 这 有 给我 我 最终 最终的 得到 件 个 份 台
ask: is are what what's whats how how_much is_it 是 多少 是多少 等于 等于多少 等于几 什么 是什么 有什么 怎么样 如何 了
not: not no don't doesn't never without except unless 不 不要 别 没 没有 除了
never: if whether or but than else instead more less most all every each another other until before after yesterday
never: tomorrow 如果 是否 比 还是 或 或者 但 每 所有 全部 其他
"""
_PLACES = """
Asia/Shanghai: Shanghai 上海 Beijing 北京 Shenzhen 深圳 Guangzhou 广州 Hangzhou 杭州 | Asia/Tokyo: Tokyo 东京
Asia/Singapore: Singapore 新加坡 | Europe/London: London 伦敦 | Europe/Paris: Paris 巴黎 | Europe/Berlin: Berlin 柏林
America/New_York: New_York 纽约 | America/Los_Angeles: Los_Angeles 洛杉矶 | Australia/Sydney: Sydney 悉尼
"""
_EXTENSIONS = "txt|md|json|jsonl|csv|yaml|yml|html|py|js|ts|css|log|xml|pdf|toml|ini|cfg|docx|xlsx|png|jpg|sh|sql|zip"
_ZONE = r"(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc)/[A-Za-z0-9_/+-]+"
_MY_ZONE = rf"(?:\bmy (?:own |local )?time ?zone|我(?:所在|自己)?的?(?:当地)?时区)\s*[(（]\s*{_ZONE}\s*[)）]"
_QUOTES = (r'"[^"\n]+"', r"“[^”\n]+”", r"「[^」\n]+」", r"`[^`\n]+`", r"(?<!\w)'[^'\n]+'(?!\w)")
_HAN = "\u3400-\u9fff"
_LONGEST_WORD = 5  # of Chinese
#: The planner reads no longer task.
MOST_CHARS = 2_000
#: The kinds of tokens that can become an argument; `ref` is a word such as "it", for an earlier result.
VALUES = {"number", "quoted", "path", "zone", "key", "url", "email", "date", "id", "place", "name", "ref"}


@dataclass(frozen=True, slots=True)
class Token:
    """One value, word or sign of a task."""

    kind: str
    """One of `VALUES`; `word`; `sign`, `comma`, `end` of a sentence, `other`; or what the word does: see `_WORDS`."""
    text: str
    """As in the task."""
    value: str
    """What is passed on: a quoted text without its quotes, the concept or the stem of a word."""
    start: int
    """The position in the task."""
    end: int
    """The position after it."""

    @property
    def concept(self) -> str:
        """What a card must use too, of a word of the task; empty for all that is no word with a meaning."""
        if self.kind == "name":
            return stem(self.text.lower())
        if self.kind == "word":
            return self.value
        return self.kind if re.match("op|verb|post|pre|all", self.kind) else ""


def tokenize(task: str) -> list[Token]:
    """The tokens of a task in order."""
    tokens: list[Token] = []
    for match in _token_pattern().finditer(task):
        kind, text, start = match.lastgroup or "other", match[0], match.start()
        if kind == "han":
            tokens += _split_chinese(text, start)
        elif kind in ("word", "phrase"):
            begins = not tokens or tokens[-1].kind in ("end", "then", "first", "comma")
            word = _make_word(text, start, may_be_name=not begins)
            if tokens and (word.kind, tokens[-1].kind, tokens[-1].end) == ("name", "name", start - 1):
                first = tokens.pop()
                word = replace(word, text=f"{first.text} {text}", value=f"{first.text} {text}", start=first.start)
            tokens.append(word)
        else:
            tokens.append(Token(kind, text, _clean_value(kind, text), start, match.end()))
    return tokens


def is_chinese(text: str) -> bool:
    """True for a text with Chinese characters; Japanese and Korean, which may have them too, do not count."""
    return re.search(f"[{_HAN}]", text) is not None and re.search("[\u3040-\u30ff\uac00-\ud7af]", text) is None


def find_zone(city: str) -> str:
    """The IANA time zone of a place that `tokenize` found."""
    return _zones_by_place()[city]


@lru_cache(maxsize=2_048)
def extract_concepts(text: str) -> frozenset[str]:
    """What a text of a card, or the name of a tool or parameter, is about."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", text).lower()
    return frozenset(token.concept for token in tokenize(words)) - {""}


def read_table(table: str) -> dict[str, str]:
    """The words of a table, each with the text before the colon of its row; `_` in a word is a space."""
    parts = (part.strip().partition(": ") for line in table.split("\n") for part in line.split(" | "))
    return {word.replace("_", " "): name for name, _, words in parts for word in words.split()}


def stem(word: str) -> str:
    """An English word without its ending: `pieces`, `orders` and `counting` become `piece`, `order` and `count`."""
    singular = stem_plural(word)
    endings = (ending for ending in ("ing", "ed") if singular.endswith(ending) and len(singular) >= len(ending) + 3)
    return singular.removesuffix(next(endings, ""))


def _make_word(text: str, start: int, *, may_be_name: bool = False) -> Token:
    lower = " ".join(text.lower().replace("’", "'").split())
    known = _known_words().get(lower)
    stemmed = _known_words().get(stem(lower), ("", ""))
    kind, value = known or (stemmed if stemmed[0] == "word" else ("word", stem(lower)))
    if text in _zones_by_place():
        kind, value = "place", text
    elif may_be_name and known is None and text[0].isupper() and lower != "i":
        kind, value = "name", text
    return Token(kind, text, value, start, start + len(text))


def _split_chinese(run: str, start: int) -> list[Token]:
    """The words of a run of Chinese characters, the longest first; what no list knows stays in one piece."""
    tokens: list[Token] = []
    index = unknown = 0
    while index <= len(run):
        heads = (run[index : index + size] for size in range(_LONGEST_WORD, 0, -1))
        word = next((head for head in heads if head in _known_words() or head in _zones_by_place()), "")
        if unknown < index and (word or index == len(run)):
            tokens.append(_make_word(run[unknown:index], start + unknown))
        if word:
            tokens.append(_make_word(word, start + index))
            unknown = index + len(word)
        index += len(word) or 1
    return tokens


def _clean_value(kind: str, text: str) -> str:
    if kind == "quoted":
        return text[1:-1]
    if kind == "zone":
        return re.sub(r"^.*[(（]\s*|\s*[)）]$", "", text)
    return text.replace(",", "") if kind == "number" else text


@cache
def _known_words() -> dict[str, tuple[str, str]]:
    """Kind and value of each known word."""
    return {word: ("word", name) if name.startswith("@") else (name, word) for word, name in read_table(_WORDS).items()}


@cache
def _zones_by_place() -> dict[str, str]:
    return read_table(_PLACES)


@cache
def _token_pattern() -> re.Pattern[str]:
    phrases = "|".join(word.replace(" ", r"\s+") for word in _known_words() if " " in word)
    place_names = "|".join(name for name in _zones_by_place() if name.isascii())
    before, after = r"(?<![A-Za-z0-9_.-])", r"(?![A-Za-z0-9_]|\.[A-Za-z0-9])"
    kinds = {
        "quoted": "|".join(_QUOTES),
        "url": r"https?://[^\s，。；]+[A-Za-z0-9_/]",
        "email": r"[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9]+)+",
        "zone": rf"{_MY_ZONE}|{before}{_ZONE}{after}",
        "path": rf"{before}(?:~?/|(?:\.\.?/)+)?(?:[A-Za-z0-9_-]+/)*[A-Za-z0-9_.-]+\.(?:{_EXTENSIONS})(?![A-Za-z0-9_])",
        "date": rf"{before}\d{{4}}-\d\d-\d\d{after}",
        "key": rf"{before}[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+",
        "id": rf"{before}[A-Za-z]+(?:-[A-Za-z]+)*[_-]?\d[A-Za-z0-9_-]*{after}",
        "number": rf"(?<![A-Za-z0-9_.])(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?{after}",
        "phrase": rf"(?i:(?<![A-Za-z])(?:{phrases})(?![A-Za-z-]))",
        "place": rf"(?<![A-Za-z])(?:{place_names})(?![A-Za-z])",
        "word": r"[A-Za-z]+(?:['’](?!s\b)[A-Za-z]+|-[A-Za-z]+)*|['’]s\b",
        "han": f"(?:(?!{_MY_ZONE})[{_HAN}])+",
        "sign": r"\*\*|[-+*/×÷^()（）%=]",
        "comma": "[,，、]",
        "end": r"(?:[.;?]|(?<![\d)])!)+(?=\s|$)|[。；？！]+",  # 5! is no end
        "other": r"\S",
    }
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items()))
