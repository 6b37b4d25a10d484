"""The requests in a text: which acts somebody asks for, and what of. Quoted, forbidden and past acts are none.

No grammar, but what a grammar would need most: where a request can begin, who is to act, what a "not" reaches, and what
stands behind the verb. Where it is in doubt an act counts: a pin allows nothing by itself. Time is in proportion to the
text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from taoloop.policy.intent.vocabulary import (
    AMBIGUOUS,
    KIND_OF,
    LIGHT,
    NOMINAL,
    PHRASES,
    SIGN_KINDS,
    SIGNS,
    VERBS,
    stem_and_ending,
    words_of,
)


@dataclass(frozen=True, slots=True)
class Request:
    """One act that is asked for.

    `direct` are the kinds of things that stand as its object, `further` the first kind behind a preposition; `words`
    are the stems of all that stands there. `to_user`: whoever asks is to be told or given something.
    """

    act: str
    direct: frozenset[str] = frozenset()
    further: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    to_user: bool = False
    is_chinese: bool = False


_QUOTED = re.compile(
    r"\"[^\"\n]{0,2000}\"|\u201c[^\u201d\n]{0,2000}\u201d|\u300c[^\u300d\n]{0,2000}\u300d|\u300e[^\u300f\n]{0,2000}\u300f"
    r"|\u300a[^\u300b\n]{0,200}\u300b|`[^`\n]{0,2000}`|(?<![\w'])'[^'\n]{1,2000}'(?!\w)"
)
_HOLE = " \u25a1 "  # where something was quoted
_ADDRESS = re.compile(r"[\w.+%-]{1,100}@[\w.-]{1,200}|https?://[^\s<>\"]+|www\.[^\s<>\"]+")
_IDENTIFIER = re.compile(r"\w{0,100}_\w{1,100}")  # the name of a tool, not a sentence
_FILE = re.compile(r"[\w-]{1,100}\.(?:docx?|xlsx?|pptx?|pdf|txt|md|csv|json|ya?ml|html?|png|jpe?g|zip|py|log)\b")
_MONEY = re.compile(r"(?:[$€£¥]\s?\d|\d\s?[$€£¥])|(?<![\w.])\d{1,12}\.\d\d(?![\w.]\d|\d)")
_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|[.,;:!?\n()\u25a1，。；：！？、]|\d[\d.,:]*\d|\d|[\u3400-\u9fff]")

_HARD = frozenset(".;:!?\n，。；：！？")
_STOPS = _HARD | {"then"}
_BREAKS = frozenset({"but", "then", "so", "instead", "however", "otherwise", "just"})
_NOT = words_of(
    "not never no don't dont doesn't cannot can't won't mustn't shouldn't needn't couldn't wouldn't nothing nobody "
    "none without avoid refrain nor neither forbid forbidden rather"
)
_STILL = words_of("forget hesitate fail only longer problem later less you we")
"""After a negation these turn it into a request (do not forget to send) or into something else."""
_STARTS = words_of(
    "to please and then or also you us me him not never don't just kindly now first finally must should will shall "
    "let's go again can could would pls next afterwards instead either they'll she'll he'll help"
)
_DETERMINERS = words_of("the a an my your our his her their its this that these those any some every each")
_OTHERS = words_of("i we he she they who it someone somebody everyone everybody people one")
_WANTS = words_of("want need like love wish please ask must should have hope let wanna prefer")
_BE = words_of("am is are was were been i'm we're they're he's she's it's you're being")
_PASSIVE = words_of("be get want need have like should must to being getting")
_ABOUT = frozenset({"about", "remind"})
_PREPOSITIONS = words_of(
    "about from to for in of with on at by that which who where named called titled based into via under if as "
    "starting containing so when"
)
_PRONOUNS = words_of("it them these those this that")
_ME = frozenset({"me", "us"})
_TO_USER = words_of("tell inform notify give show answer send write forward share grant reply respond")
_ONLY_SPEAKS = words_of("tell inform notify give show answer grant share")
_REACH = 12  # words
_SUBJECT_REACH = 6
_REACH_CHARS = 100
_SENTENCE_END = re.compile(r"[.;!?\n。；！？]")


def without_quotes(text: str) -> str:
    """The text in the form in which it is read, with a hole for everything that is quoted."""
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u2018", "'").casefold()
    bare = _QUOTED.sub(_HOLE, text)
    return bare if re.search(r"\w", bare) else text  # all of it in quotes: then it is the task


def requests_of(text: str) -> list[Request]:
    """The requests in the English of a text."""
    read = without_quotes(text)
    if not re.search(r"[a-z]", read):
        return []
    read = _MONEY.sub(" money ", _IDENTIFIER.sub(_HOLE, _FILE.sub(" file ", _ADDRESS.sub(_HOLE, read))))
    for pattern, verb in PHRASES:
        read = pattern.sub(verb, read)
    return _Reading(_TOKEN.findall(read)).requests()


@dataclass(slots=True)
class _Reading:
    """One text on its way."""

    tokens: list[str]
    stems: list[tuple[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self.stems = [stem_and_ending(token) for token in self.tokens]

    def requests(self) -> list[Request]:
        found: list[Request] = []
        sentence = 0
        for at, (word, _) in enumerate(self.stems):
            if self.tokens[at] in _HARD:
                sentence = at + 1
            if word in LIGHT and self._asks(at, sentence) and (noun := self._nominal(at)) is not None:
                found.append(self._request(noun, NOMINAL[self.stems[noun][0]], sentence))
            if word in VERBS and self._asks(at, sentence):
                found.append(self._request(at, word, sentence))
        return [one for one in found if not (one.to_user and one.act in _ONLY_SPEAKS)]

    def _nominal(self, at: int) -> int | None:
        """The noun of an act that a light verb is followed by."""
        for place in range(at + 1, min(at + 6, len(self.tokens))):
            if self.tokens[place] in _HARD or self.tokens[place] in _PREPOSITIONS:
                return None
            if self.stems[place][0] in NOMINAL and self.stems[place][1] in ("", "s"):
                return place
        return None

    def _asks(self, at: int, sentence: int) -> bool:
        """Whether the verb at this place is asked for."""
        (word, ending), before = self.stems[at], self.tokens[max(sentence, at - _REACH) : at]
        if ending == "s" or _is_forbidden_in_chinese("".join(one for one in before if one >= "\u3400")):
            return False
        if is_forbidden(before, is_gerund=ending == "ing") or (ending and before[-1:] == ["\u25a1"]):
            return False
        last = before[-1] if before else ""
        if ending == "ed":
            if last in _BE or not any(one in _PASSIVE for one in before[-7:]) or last in ("already", "just"):
                return False
        elif ending == "ing":
            if any(one in _BE for one in before[-3:]) or last in _ABOUT or last in _DETERMINERS:
                return False
        elif last in _DETERMINERS or (word in AMBIGUOUS and before and not self._can_begin(before)):
            return False
        if "remind" in before[-5:]:
            return False
        return ending == "ed" or not _is_anothers(before[-_SUBJECT_REACH:])

    def _can_begin(self, before: Sequence[str]) -> bool:
        last = before[-1]
        return last in _STARTS or last in ",\u25a1()、" or last.endswith("ly") or last.isdigit()

    def _request(self, at: int, act: str, sentence: int) -> Request:
        """What stands behind the verb, and before it where it is passive."""
        direct, further, words = set[str](), set[str](), set[str]()
        to_user = at + 1 < len(self.tokens) and self.tokens[at + 1] in _ME and act in _TO_USER
        behind = False
        for place in range(at + 1, min(at + 1 + 2 * _REACH, len(self.tokens))):
            said, (word, ending) = self.tokens[place], self.stems[place]
            if said in _STOPS and (said != "then" or place > at + 1):
                break
            if place > at + 1 and word in VERBS and not ending and self._begins_another(place):
                break
            if said in _PREPOSITIONS and (said not in _PRONOUNS or place > at + 1):
                if direct or further:
                    break
                behind = True
            elif said in _PRONOUNS and not behind and self._stands_alone(place):
                direct |= self._before(sentence, at)
            words.add(word)
            if kinds := KIND_OF.get(word):
                if behind:
                    further |= kinds
                    break
                direct |= kinds
        if self.stems[at][1] == "ed":
            direct |= self._kinds(sentence, at)
            words |= {self.stems[place][0] for place in range(sentence, at)}
        return Request(act, frozenset(direct), frozenset(further), frozenset(words), to_user=to_user)

    def _begins_another(self, place: int) -> bool:
        return self.tokens[place - 1] in ("and", "or", "then", ",", "to", "please")

    def _stands_alone(self, place: int) -> bool:
        """Whether a word such as `that` stands for a thing by itself."""
        token = self.tokens[place]
        following = self.tokens[place + 1] if place + 1 < len(self.tokens) else "."
        return token in ("it", "them") or following in _HARD or following in _PREPOSITIONS or following in ("and", ",")

    def _before(self, sentence: int, at: int) -> set[str]:
        """The kinds of things that a pronoun may stand for."""
        return self._kinds(sentence, at) or self._kinds(0, at)

    def _kinds(self, start: int, end: int) -> set[str]:
        start = max(start, end - 4 * _REACH)
        return {kind for place in range(start, end) for kind in KIND_OF.get(self.stems[place][0], ())}


def is_forbidden(before: Sequence[str], *, is_gerund: bool = False) -> bool:
    """Whether the words before an act, in the same sentence, forbid it."""
    words = list(before)
    if is_gerund and words[-1:] == ["stop"]:
        return True
    for place in range(len(words) - 1, -1, -1):
        word = words[place]
        if word in _BREAKS:
            return words[place : place + 1] == ["instead"] and words[place + 1 : place + 2] == ["of"]
        if word == "," and not _is_list(words[:place]):
            return False
        if word in _NOT and (word != "rather" or words[place + 1 : place + 2] == ["than"]):
            return not any(one in _STILL for one in words[place + 1 : place + 3])
    return False


def _is_list(words: Sequence[str]) -> bool:
    """Whether a comma goes on with a list of verbs: do not delete, move or rename."""
    return len(words) >= 2 and (words[-2] in _NOT or words[-2] in (",", "or", "and")) and words[-1] not in _HARD


def _is_anothers(before: Sequence[str]) -> bool:
    """Whether somebody else does it, or whoever asks will do it, or asks how: I will book, they send, how do I pay."""
    for place in range(len(before) - 1, -1, -1):
        word = before[place]
        if word in _BREAKS or word in (",", "and"):
            return False
        if word.split("'")[0] in _OTHERS:
            after = before[place + 1 :]
            return not any(one in _WANTS for one in after) and word not in ("i'd", "we'd") and "you" not in after
    return False


def said_outright(text: str, name: str) -> bool:
    """Whether a text has this word, or the name of a tool, and does not forbid it there."""
    read = unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold()
    pattern = rf"(?<!\w){re.escape(name)}(?!\w)" if name.isascii() else re.escape(name)
    if name.isalpha() and name.isascii():
        pattern = rf"(?<!\w){re.escape(name)}[a-z]{{0,4}}(?!\w)"
    for found in re.finditer(pattern, read):
        before = _SENTENCE_END.split(read[max(0, found.start() - _REACH_CHARS) : found.start()])[-1]
        if not is_forbidden(_TOKEN.findall(before)[-_REACH:]) and not _is_forbidden_in_chinese(before):
            return True
    return False


# Chinese

_CLAUSE_END = re.compile(
    r"[，。；！？!?;\n,.]|然后|接着|而是|但是|不过|再(?=[\u3400-\u9fff])|并且|并(?=[\u3400-\u9fff])"
)
_NO = re.compile(
    r"不要|不得|不准|不许|不能|不可|不必|不用|不想|不需要|不应|不再|切勿|请勿|勿|禁止|严禁|避免|无需|无须|不"
    r"|(?<![特分级个区类性识离])别(?![人的名处样致针])|没有|没(?!问题)|从未|从不|拒绝"
)
_YES = re.compile(
    r"(.{1,2})不\1|不仅|不但|不只|不光|不过|不错|对不起|不好意思|不管|不论|差不多|不同|不久|不足|不少|不多|不断|(?:不要|别|勿|不能|切勿)(?:忘|漏|忘记|漏掉|耽误)"
)
_SIGN = re.compile("|".join(sorted(map(re.escape, SIGNS), key=len, reverse=True)))
_THING = re.compile("|".join(sorted(map(re.escape, SIGN_KINDS), key=len, reverse=True)))
_PAST_BEFORE = re.compile(
    r"(?:已经?|刚刚?|曾经?|曾|昨天|上周|上个月|之前|(?:我|他|她|他们|她们|我们|谁|对方)(?:已经?|刚刚?|昨天)?)$"
)
_WISHES = re.compile(r"[要想让请帮替需应能会]")
_MODIFIES = re.compile(r"(?:给我们?)?(?:了|过)?的")
_PAST_BEHIND = re.compile(r"(?:给我们?)?(?:了|过)")
_NAMES_A_THING = re.compile(r"(?:记录|历史|明细|方式|状态|流程|单|金额|金(?!额)|率|会(?![议面])|书|费|员|人(?!民))")
_VERBAL = words_of("删除 移除 删 清空 清除 取消 撤销 创建 新建 更新 修改 更改 编辑 提交 查看")
_ONLY_SPEAKS_SIGNS = words_of("告诉 告知 通知 回复 答复")
_TO_USER_SIGNS = _ONLY_SPEAKS_SIGNS | words_of("发送 发给 发到 寄 转发 分享 共享")
_MOST_THINGS = 50  # of one clause
_PRONOUN = re.compile(r"它|这些|那些|这个|那个|此")


def chinese_requests(text: str) -> list[Request]:
    """The requests in the Chinese of a text."""
    if not re.search(r"[\u3400-\u9fff]", text):
        return []
    read = _FILE.sub(" 文件 ", _ADDRESS.sub(_HOLE, without_quotes(text)))
    found: list[Request] = []
    start, earlier = 0, frozenset[str]()
    for end in (*_CLAUSE_END.finditer(read), None):
        clause = read[start : end.start() if end is not None else len(read)]
        things = [(one.start(), SIGN_KINDS[one.group()]) for one in _THING.finditer(clause)][:_MOST_THINGS]
        for sign in _SIGN.finditer(clause):
            if _asked_in_chinese(clause, sign):
                known = _union(kinds for at, kinds in things if not sign.start() <= at < sign.end())
                known = known or (earlier if _PRONOUN.search(clause) else frozenset())
                to_user = sign.group() in _TO_USER_SIGNS and clause.startswith("我", sign.end())
                if not (to_user and sign.group() in _ONLY_SPEAKS_SIGNS):
                    found.append(Request(sign.group(), direct=known, to_user=to_user, is_chinese=True))
        earlier = _union(kinds for _, kinds in things) or earlier
        start = end.end() if end is not None else len(read)
    return found


def _union(many: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*many)


def _asked_in_chinese(clause: str, sign: re.Match[str]) -> bool:
    """Whether the act at this place of a clause is asked for."""
    before = clause[max(0, sign.start() - _REACH_CHARS) : sign.start()]
    behind = clause[sign.end() : sign.end() + _REACH_CHARS]
    if _is_forbidden_in_chinese(before):
        return False
    if _MODIFIES.match(behind):  # the files that were deleted
        return False
    if sign.group() not in _VERBAL and _NAMES_A_THING.match(behind):  # the list of payments
        return False
    is_past = _PAST_BEFORE.search(before) and not _WISHES.search(before)
    return not (is_past and (_PAST_BEHIND.match(behind) or not re.search(r"[我]$", before)))


def _is_forbidden_in_chinese(before: str) -> bool:
    """Whether the last clause before an act forbids it."""
    clause = _CLAUSE_END.split(before)[-1]
    return _NO.search(_YES.sub("", clause)) is not None
