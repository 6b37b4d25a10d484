"""The requests in a text: which acts it asks for, and on what. Quoted, forbidden and past acts are not requests.

This is no grammar, but covers what a grammar would be needed for most: where a request can begin, who is to act, how
far a "not" reaches, and what follows the verb. In doubt an act counts: a pin allows nothing by itself. The time is
proportional to the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from taoloop.core.text import lazy_pattern
from taoloop.policy.intent.vocabulary import (
    AMBIGUOUS_VERBS,
    CHINESE_ACTS,
    CHINESE_KINDS,
    CHINESE_PHRASES,
    KIND_OF,
    LIGHT_VERBS,
    NOUN_ACTS,
    PHRASE_VERBS,
    VERBS,
    stem_and_ending,
    words_of,
)


@dataclass(frozen=True, slots=True)
class Request:
    """One act that a text asks for."""

    act: str
    """The verb, as a stem, or the Chinese word."""
    direct: frozenset[str] = frozenset()
    """The kinds of things that are its object."""
    further: frozenset[str] = frozenset()
    """The first kind after a preposition."""
    destination: frozenset[str] = frozenset()
    """The kinds of what it is to be put into or sent to."""
    words: frozenset[str] = frozenset()
    """The stems of everything that follows the verb."""
    to_user: bool = False
    """The author of the text is to be told or given something."""
    is_chinese: bool = False
    """Whether it was found in Chinese."""


QUOTED = lazy_pattern(
    r"\"[^\"\n]{0,2000}\"|\u201c[^\u201d\n]{0,2000}\u201d|\u300c[^\u300d\n]{0,2000}\u300d|\u300e[^\u300f\n]{0,2000}\u300f"
    r"|\u300a[^\u300b\n]{0,200}\u300b|`[^`\n]{0,2000}`|(?<![\w'])'[^'\n]{1,2000}'(?!\w)"
)
_CITED = lazy_pattern(  # what a text is to be worked on, or somebody said, after a colon; to the end of the line
    r"\b(?:(?:translat|paraphras|rephras|summari[sz]|classif|categori[sz]|explain|spell-?check|proof-?read)\w*"
    r"|correct|rewrite|reply|respond|said|says?|wrote|writes?|asks|asked|saying|reads)\b[^.:;!?\n]{0,60}:[^\n]*"
    r"|(?:翻译|译成|校对|润色|改写|总结|概括|分类|归类|解释|纠正|回复|回答|[说写]道|[他她它]说)"
    r"[^。.:;!?\n]{0,30}:[^\n]*"
)
_ONLY_ASKED_ABOUT = lazy_pattern(  # in a sentence on an act that is to wait for a further word, or on what it does
    r"\b(?:ask|check with|confirm with|consult) me (?:first|before)\b|\bwhat is meant by\b"
    r"|先(?:来)?(?:问|征求|告诉|请示|[跟和与]我确认)一?下?(?:我|$|[,。;!?\n])|什么意思|后果是|有什么(?:后果|影响|风险)|会怎么?样|需要什么"
)
_SENTENCE = lazy_pattern(r"[^。.;!?\n]+")
_QUOTE_MARK = " \u25a1 "  # where something was quoted
_LETTER = r"[^\W\u3400-\u9fff]"  # of a word in an alphabet: Chinese around it goes on without a space
_ADDRESS = lazy_pattern(  # without the end of the sentence around it
    rf"(?:{_LETTER}|[.+%-]){{1,100}}@(?:{_LETTER}|[.-]){{0,200}}{_LETTER}|(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?)]"
)
_IDENTIFIER = lazy_pattern(r"\w{0,100}_\w{1,100}")  # the name of a tool, not a sentence
_FILE = lazy_pattern(
    rf"(?:{_LETTER}|-){{0,100}}\.(?:docx?|xlsx?|pptx?|pdf|txt|md|csv|json|ya?ml|html?|png|jpe?g|zip|py|log)(?!{_LETTER})"
)
_MONEY = lazy_pattern(r"(?:[$€£¥]\s?\d|\d\s?[$€£¥])|(?<![\w.])\d{1,12}\.\d\d(?![\w.]\d|\d)")
_THINGS_IN_PLACE = ((_ADDRESS, _QUOTE_MARK), (_FILE, " file "), (_IDENTIFIER, _QUOTE_MARK), (_MONEY, " money "))
"""What is no word of a sentence, and what replaces it."""

_TOKEN = lazy_pattern(r"[a-z]+(?:'[a-z]+)?|[.,;:!?\n()\u25a1，。；：！？、]|\d[\d.,:]*\d|\d|[\u3400-\u9fff]")

_SENTENCE_ENDS = frozenset(".;:!?\n，。；：！？")
_CLAUSE_STOPS = _SENTENCE_ENDS | {"then"}
BREAKS = frozenset({"but", "then", "so", "instead", "however", "otherwise", "just"})
NEGATIONS = words_of(
    "not never no don't dont doesn't cannot can't won't mustn't shouldn't needn't couldn't wouldn't nothing nobody "
    "none without avoid refrain nor neither forbid forbidden rather"
)
AFTER_NEGATION = words_of("forget hesitate fail only longer problem later less you we")
"""After a negation these turn it into a request (do not forget to send) or into something else."""
CLAUSE_STARTS = words_of(
    "to please and then or also you us me him not never don't just kindly now first finally must should will shall "
    "let's go again can could would pls next afterwards instead either they'll she'll he'll help"
)
_DETERMINERS = words_of("the a an my your our his her their its this that these those any some every each")
_OTHER_SUBJECTS = words_of("i we he she they who it someone somebody everyone everybody people one")
_WISH_VERBS = words_of("want need like love wish please ask must should have hope let wanna prefer willing")
_BE_FORMS = words_of("am is are was were been i'm we're they're he's she's it's you're being")
_PASSIVE_MARKERS = words_of("be get want need have like should must to being getting")
_STATEMENT_WORDS = words_of("did does didn't doesn't says said")  # what did Bob send; she says I should pay
_REMINDER_WORDS = frozenset({"about", "remind"})
_PREPOSITIONS = words_of(
    "about from to for in of with on at by that which who where named called titled based into via under if as "
    "starting containing so when"
)
_DESTINATION_PREPOSITIONS = words_of("to in into on onto")
_ABOUT_ACTS = [
    [word]
    for word in words_of(
        "status statuses history policy policies rules rule log logs progress fee fees request requests"
    )
]
_PRONOUNS = words_of("it them these those this that")
_FIRST_PERSON = frozenset({"me", "us"})
_USER_DIRECTED = words_of("tell inform notify give show answer send write forward share grant reply respond")
_SPEECH_ONLY = words_of("tell inform notify give show answer grant share")
_REACH_WORDS = 12  # words
_SUBJECT_REACH_WORDS = 6
_REACH_CHARS = 100
_SENTENCE_END = lazy_pattern(r"[.;!?\n。；！？]")


def without_quotes(text: str) -> str:
    """The text in the form in which it is read, with a placeholder for everything that is quoted."""
    text = _folded(text)
    bare = QUOTED.sub(_QUOTE_MARK, text)
    bare = bare if re.search(r"\w", bare) else text  # all of it in quotes: then it is the task
    if ":" in bare:
        bare = _CITED.sub(lambda match: match[0].partition(":")[0] + ":" + _QUOTE_MARK, bare)
    if _ONLY_ASKED_ABOUT.search(bare):
        bare = _SENTENCE.sub(lambda match: _QUOTE_MARK if _ONLY_ASKED_ABOUT.search(match[0]) else match[0], bare)
    return bare


def quoted_parts(text: str) -> list[str]:
    """What a text quotes or cites, in the form in which it is read."""
    text = _folded(text)
    cited = [match[0].partition(":")[2] for match in _CITED.finditer(QUOTED.sub(_QUOTE_MARK, text))]
    return [match.group() for match in QUOTED.finditer(text)] + cited


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u2018", "'").casefold()


def requests_of(text: str) -> list[Request]:
    """The requests in the English of a text."""
    bare_text = without_quotes(text)
    if not re.search(r"[a-z]", bare_text):
        return []
    for pattern, word in (*_THINGS_IN_PLACE, *PHRASE_VERBS):
        bare_text = pattern.sub(word, bare_text)
    return _RequestReader(_TOKEN.findall(bare_text)).requests()


@dataclass(slots=True)
class _RequestReader:
    """One text while it is read."""

    tokens: list[str]
    stems: list[tuple[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self.stems = [stem_and_ending(token) for token in self.tokens]

    def requests(self) -> list[Request]:
        requests: list[Request] = []
        sentence = 0
        for index, (word, _) in enumerate(self.stems):
            if self.tokens[index] in _SENTENCE_ENDS:
                sentence = index + 1
            if (word not in LIGHT_VERBS and word not in VERBS) or not self._is_requested(index, sentence):
                continue
            if word in LIGHT_VERBS and (noun := self._nominal_after(index)) is not None:
                requests.append(self._request_at(noun, NOUN_ACTS[self.stems[noun][0]], sentence))
            if word in VERBS:
                requests.append(self._request_at(index, word, sentence))
        return [request for request in requests if not (request.to_user and request.act in _SPEECH_ONLY)]

    def _nominal_after(self, verb_index: int) -> int | None:
        """The noun of an act that follows a light verb; none after the `do` of a question."""
        if self.tokens[verb_index + 1 : verb_index + 2] in ([word] for word in _OTHER_SUBJECTS):
            return None
        for index in range(verb_index + 1, min(verb_index + 6, len(self.tokens))):
            if self.tokens[index] in _SENTENCE_ENDS | _PREPOSITIONS | NEGATIONS:
                return None
            if self.stems[index][0] in NOUN_ACTS and self.stems[index][1] in ("", "s"):
                return index
        return None

    def _is_requested(self, index: int, sentence: int) -> bool:
        """Whether the text asks for the verb at this position."""
        (word, ending), before = self.stems[index], self.tokens[max(sentence, index - _REACH_WORDS) : index]
        if ending == "s" or _is_forbidden_in_chinese("".join(raw_word for raw_word in before if raw_word >= "\u3400")):
            return False
        if is_forbidden(before, is_gerund=ending == "ing") or (ending and before[-1:] == ["\u25a1"]):
            return False
        last = before[-1] if before else ""
        if word in AMBIGUOUS_VERBS | NOUN_ACTS.keys() and self.tokens[index + 1 : index + 2] in _ABOUT_ACTS:
            return False  # the refund status of an order
        if ending == "ed":
            is_other = last in _BE_FORMS or last in ("already", "just") or _PASSIVE_MARKERS.isdisjoint(before[-7:])
        elif ending == "ing":
            is_other = last in _REMINDER_WORDS or last in _DETERMINERS or not _BE_FORMS.isdisjoint(before[-3:])
        else:
            is_noun = word in AMBIGUOUS_VERBS and bool(before) and not self._can_begin_request(before)
            is_other = last in _DETERMINERS or is_noun
        if is_other or "remind" in before[-5:]:
            return False
        return ending == "ed" or not _is_done_by_another(before[-_SUBJECT_REACH_WORDS:])

    def _can_begin_request(self, before: Sequence[str]) -> bool:
        last = before[-1]
        return last in CLAUSE_STARTS or last in ",\u25a1()、" or last.endswith("ly") or last.isdigit()

    def _request_at(self, verb_index: int, act: str, sentence: int) -> Request:
        """The request of a verb: what follows it, and what precedes it if it is passive."""
        if act == "remind":  # whatever it is about: a reminder is wanted
            return Request(act, frozenset({"event"}))
        direct, further, words = set[str](), set[str](), set[str]()
        to_user = (
            verb_index + 1 < len(self.tokens) and self.tokens[verb_index + 1] in _FIRST_PERSON and act in _USER_DIRECTED
        )
        after_preposition = False
        for index in range(verb_index + 1, min(verb_index + 1 + 2 * _REACH_WORDS, len(self.tokens))):
            raw_word, (word, ending) = self.tokens[index], self.stems[index]
            if raw_word in _CLAUSE_STOPS and (raw_word != "then" or index > verb_index + 1):
                break
            if index > verb_index + 1 and word in VERBS and not ending and self._begins_another(index):
                break
            if raw_word in _PREPOSITIONS and (raw_word not in _PRONOUNS or index > verb_index + 1):
                if direct or further:
                    break
                after_preposition = True
            elif raw_word in _PRONOUNS and not after_preposition and self._is_lone_pronoun(index):
                direct |= self._kinds(sentence, verb_index) or self._kinds(0, verb_index)  # what it may refer to
            words.add(word)
            if kinds := KIND_OF.get(word):
                if after_preposition:
                    further |= kinds
                    break
                direct |= kinds
        if self.stems[verb_index][1] == "ed":
            direct |= self._kinds(sentence, verb_index)
            words |= {self.stems[index][0] for index in range(sentence, verb_index)}
        return Request(
            act,
            frozenset(direct),
            frozenset(further),
            self._destination(verb_index, sentence),
            frozenset(words),
            to_user=to_user,
        )

    def _destination(self, verb_index: int, sentence: int) -> frozenset[str]:
        """The kinds of what follows the last "to", "in" or "on" of the clause, or of what "there" refers to."""
        destination, is_open = set[str](), False
        for index in range(verb_index + 1, min(verb_index + 1 + 2 * _REACH_WORDS, len(self.tokens))):
            raw_word, (word, ending) = self.tokens[index], self.stems[index]
            if raw_word in _CLAUSE_STOPS or (word in VERBS and not ending and self._begins_another(index)):
                break
            if raw_word == "there":
                destination |= self._kinds(sentence, verb_index)
            elif raw_word in _DESTINATION_PREPOSITIONS:
                destination, is_open = set(), True
            elif raw_word in _PREPOSITIONS:
                is_open = False
            elif is_open:
                destination |= KIND_OF.get(word, frozenset())
        return frozenset(destination)

    def _begins_another(self, index: int) -> bool:
        return self.tokens[index - 1] in ("and", "or", "then", ",", "to", "please")

    def _is_lone_pronoun(self, index: int) -> bool:
        """Whether a word such as `that` is a pronoun by itself."""
        raw_word = self.tokens[index]
        following = self.tokens[index + 1] if index + 1 < len(self.tokens) else "."
        return raw_word in ("it", "them") or following in _SENTENCE_ENDS | _PREPOSITIONS | {"and", ","}

    def _kinds(self, start: int, end: int) -> set[str]:
        start = max(start, end - 4 * _REACH_WORDS)
        return {kind for index in range(start, end) for kind in KIND_OF.get(self.stems[index][0], ())}


def is_forbidden(before: Sequence[str], *, is_gerund: bool = False) -> bool:
    """Whether the words before an act, in the same sentence, forbid it."""
    words = list(before)
    if is_gerund and words[-1:] == ["stop"]:
        return True
    for index in range(len(words) - 1, -1, -1):
        word = words[index]
        if word in BREAKS:
            return words[index : index + 1] == ["instead"] and words[index + 1 : index + 2] == ["of"]
        if word == "," and not continues_list(words[:index]):
            return False
        if word in NEGATIONS and (word != "rather" or words[index + 1 : index + 2] == ["than"]):
            return AFTER_NEGATION.isdisjoint(words[index + 1 : index + 3])
    return False


def continues_list(words_before: Sequence[str]) -> bool:
    """Whether a comma continues a list of verbs: do not delete, move or rename; not after "is not available"."""
    if len(words_before) >= 3 and words_before[-2] in NEGATIONS and words_before[-3] in _BE_FORMS:
        return False
    joins = len(words_before) >= 2 and (words_before[-2] in NEGATIONS or words_before[-2] in (",", "or", "and"))
    return joins and words_before[-1] not in _SENTENCE_ENDS


def _is_done_by_another(before: Sequence[str]) -> bool:
    """Whether somebody else does it, the author does it, or asks how: I will book, they send, how do I pay."""
    for index in range(len(before) - 1, -1, -1):
        word = before[index]
        if word in BREAKS or word in (",", "and"):
            return False
        if word in _STATEMENT_WORDS:
            return True
        if word.split("'")[0] in _OTHER_SUBJECTS:
            after = before[index + 1 :]
            is_wish = not _WISH_VERBS.isdisjoint(after) or word in ("i'd", "we'd") or "you" in after
            return not is_wish or not _STATEMENT_WORDS.isdisjoint(before[max(0, index - 1) : index])
    return False


def mentions_outright(text: str, name: str) -> bool:
    """Whether a text contains this word, or the name of a tool, and does not forbid it there."""
    folded_text = unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold()
    pattern = rf"(?<!\w){re.escape(name)}(?!\w)" if name.isascii() else re.escape(name)
    if name.isalpha() and name.isascii():
        pattern = rf"(?<!\w){re.escape(name)}[a-z]{{0,4}}(?!\w)"
    return any(not _forbids_at(folded_text, match.start()) for match in re.finditer(pattern, folded_text))


def _forbids_at(folded_text: str, position: int) -> bool:
    """Whether what precedes this position in its sentence forbids what follows."""
    before = _SENTENCE_END.split(folded_text[max(0, position - _REACH_CHARS) : position])[-1]
    return is_forbidden(_TOKEN.findall(before)[-_REACH_WORDS:]) or _is_forbidden_in_chinese(before)


_OWN_LIST = lazy_pattern(
    r"\b(?:do(?! not)|complete|perform|carry out|handle|process|finish|take care of|work through|deal with)\b"
    r"[^.;!?\n]{0,40}?(?:\bmy (?:[a-z]+ ){0,2}?(?:to-?dos?|tasks?|lists?|notes?|errands?|plan)\b"
    r"|\b(?:tasks?|things|to-?dos?|errands?|items) (?:that )?i (?:have|wrote|noted|put|listed)\b)"
)
_CHINESE_OWN_LIST = lazy_pattern(
    r"(?:完成|处理|执行|做完?|办完?|搞定|按照?|照着?)[^，。；！？\n]{0,20}?我(?:自己)?(?:的|写的|列的|记的|记下的)"
    r"[^，。；！？\n]{0,6}?(?:待办|任务|事项|清单|计划|笔记)"
    r"|[把将]我(?:自己)?(?:的|写的|列的|记的)[^，。；！？\n]{0,6}?(?:待办|任务|事项|清单|计划)[^，。；！？\n]{0,12}?"
    r"(?:完成|处理|执行|做|办|搞定)"
)


_HANDED_OVER = lazy_pattern(
    r"\b(?:do(?! not)|follow|complete|perform|carry out|execute|handle|process|finish|take care of|work through"
    r"|deal with|act on|implement)\b[^.;!?\n]{0,60}?\b(?:instructions?|steps|to-?dos?|tasks?|action items|errands?"
    r"|requests?|(?:what(?:ever)?|as|everything) (?:[a-z]+ ){1,4}?(?:says?|asks?|wants?|tells?|describes?|needs?))\b"
    r"|\bas (?:instructed|described|requested|asked) (?:in|by)\b"
    r"|(?:按照?|依照|遵照|根据|执行|完成|处理|照着?|做)[^，。；！？\n]{0,20}?(?:指示|指令|步骤|要求|待办|任务|事项|说的|写的|所说|所写)"
)


def hands_over(text: str) -> bool:
    """Whether a text leaves it to another text what is to be done: "follow the instructions in that file"."""
    folded_text = without_quotes(text)
    return any(not _forbids_at(folded_text, match.start()) for match in _HANDED_OVER.finditer(folded_text))


def refers_to_own_list(text: str) -> bool:
    """Whether a text asks to do what its author wrote elsewhere: the tasks on their list, not those in a mail."""
    folded_text = without_quotes(text)
    matches = (*_OWN_LIST.finditer(folded_text), *_CHINESE_OWN_LIST.finditer(folded_text))
    return any(not _forbids_at(folded_text, match.start()) for match in matches)


_CONFIRMATION = lazy_pattern(
    r"(?:(?:yes|yeah|yep|yup|ok|okay|sure|correct|right|exactly|absolutely|definitely|of course|perfect|great|i confirm"
    r"|confirmed|(?:please )?(?:confirm|proceed|go ahead|do (?:it|so|that))|(?:sounds|looks) (?:good|right|fine)"
    r"|that(?:'s| is) (?:right|correct|fine|ok|okay))\b(?! (?:if|when|once|unless))"
    r"|(?:是的?|对的?|好[的吧]?|行|可以|没错|没问题|确认|同意|嗯嗯?|请?继续)(?=$|[\s,.!，。！请就]))"
)


def is_confirmation(text: str) -> bool:
    """Whether a message says yes to what was said before, with no question, condition or refusal in it."""
    plain = without_quotes(text).strip()
    match = _CONFIRMATION.match(plain)
    if match is None or any(char in plain for char in "?？"):
        return False
    rest = plain[match.end() :]
    refuses = not (NEGATIONS | BREAKS | {"if", "unless"}).isdisjoint(_TOKEN.findall(rest))
    return not refuses and CHINESE_NEGATION.search(NO_CHINESE_NEGATION.sub("", rest)) is None


# Chinese

CHINESE_CLAUSE_END = lazy_pattern(
    r"[，。；！？!?;\n,.]|然后|接着|而是|但是|不过|再(?=[\u3400-\u9fff])|并且|并(?=[\u3400-\u9fff])"
    r"|(?<=[\u3400-\u9fff])就(?=[\u3400-\u9fff])"
)
CHINESE_NEGATION = lazy_pattern(
    r"不要|不得|不准|不许|不能|不可|不必|不用|不想|不需要|不应|不再|切勿|请勿|勿|禁止|严禁|避免|无需|无须|不"
    r"|(?<![特分级个区类性识离])别(?![人的名处样致针])|没有|没(?!问题)|从未|从不|拒绝"
)
NO_CHINESE_NEGATION = lazy_pattern(
    r"(.{1,2})不\1|不仅|不但|不只|不光|不过|不错|对不起|不好意思|不管|不论|差不多|不同|不久|不足|不少|不多|不断|(?:不要|别|勿|不能|切勿)(?:忘|漏|忘记|漏掉|耽误)"
)
CHINESE_ACT = lazy_pattern("|".join(sorted(map(re.escape, CHINESE_ACTS), key=len, reverse=True)))
_CHINESE_THING = lazy_pattern("|".join(sorted(map(re.escape, CHINESE_KINDS), key=len, reverse=True)))
_CHINESE_PAST_BEFORE = lazy_pattern(
    r"(?:已经?|刚刚?|曾经?|曾|昨天|上周|上个月|之前|(?:我|他|她|他们|她们|我们|谁|对方)(?:已经?|刚刚?|昨天)?)$"
)
_CHINESE_WISH = lazy_pattern(r"[要想让请帮替需应能]")
_CHINESE_PAST_QUESTION = lazy_pattern(r"[了过](?:吗|么|没)")
_RELATIVE_CLAUSE = lazy_pattern(r"(?:给我们?)?(?:了|过)?的")
_CHINESE_PAST_AFTER = lazy_pattern(r"(?:给我们?)?(?:了|过)")
_CHINESE_REMINDER = lazy_pattern(
    r"提醒(?:一下)?(?:我|大家|他|她)|(?:告诉|通知|告知)(?!我)"
)  # what follows is what it is about
_CHINESE_REMINDED = lazy_pattern(r"(?:一下|我|大家|他|她|所有人)")
_CHINESE_INQUIRY = lazy_pattern(r"(?:查(?!找|收)[一询看下]*|看[一看下]*|了解|核[实对]|跟踪|追踪)[^到就后]*$")
_NOMINAL_END = lazy_pattern(r"(?:的?(?:情况|结果|信息|详情|情形|内容|事|问题))?[吧呀啊]?\s*$")
_CHINESE_PAST_TIME = lazy_pattern(
    r"(?:昨[天晚日]|前[天几晚]|上(?:个?[周月]|次|星期|礼拜)|去年|刚[才刚]?|已经?|早就|曾经?|之前|今早)[^请帮要让需]*$"
)
_CHINESE_PAST_END = lazy_pattern(r"[了过](?:[吧呀啊]|\s|$)|^[了过]")
_CHINESE_HOW = lazy_pattern(
    r"(?:怎么|如何|怎样|哪些|哪个|谁|为什么|多久|何时|什么时候|[他她们件信][里中]?说)[^帮请]{0,8}$"
)
_NOUN_SUFFIX = lazy_pattern(
    r"(?:要?多久|到哪|到账|进度|政策|规则|记录|历史|明细|方式|状态|流程|单|金额|金(?!额)|率|会(?![议面])|书|费|员|人(?!民)|情况|度(?![假过])|日(?![程历志记常]))"
)
_ALWAYS_VERBS = words_of("删除 移除 删 清空 清除 取消 撤销 创建 新建 更新 修改 更改 编辑 提交 查看")
_SPEECH_ONLY_CHINESE = words_of("告诉 告知 通知 回复 答复")
_USER_DIRECTED_CHINESE = _SPEECH_ONLY_CHINESE | words_of("发送 发给 发到 寄 转发 分享 共享")
_MAX_THINGS = 50  # of one clause
_CHINESE_PRONOUN = lazy_pattern(r"它|这些|那些|这个|那个|此")


def chinese_requests(text: str) -> list[Request]:
    """The requests in the Chinese of a text."""
    if not re.search(r"[\u3400-\u9fff]", text):
        return []
    bare_text = _FILE.sub(" 文件 ", _ADDRESS.sub(_QUOTE_MARK, without_quotes(text)))
    for pattern, words in CHINESE_PHRASES:
        bare_text = pattern.sub(words, bare_text)
    requests: list[Request] = []
    start, earlier = 0, frozenset[str]()
    for end in (*CHINESE_CLAUSE_END.finditer(bare_text), None):
        clause = bare_text[start : end.start() if end is not None else len(bare_text)]
        nouns = islice(_CHINESE_THING.finditer(clause), _MAX_THINGS)
        things = [(noun.start(), CHINESE_KINDS[noun.group()]) for noun in nouns]
        for match in CHINESE_ACT.finditer(clause):
            if _is_asked_in_chinese(clause, match):
                known = _union(kinds for position, kinds in things if not match.start() <= position < match.end())
                known = known or (earlier if _CHINESE_PRONOUN.search(clause) else frozenset())
                known = frozenset({"event"}) if match.group() == "提醒" else known
                to_user = match.group() in _USER_DIRECTED_CHINESE and clause.startswith("我", match.end())
                if not (to_user and match.group() in _SPEECH_ONLY_CHINESE):
                    requests.append(Request(match.group(), direct=known, to_user=to_user, is_chinese=True))
        earlier = _union(kinds for _, kinds in things) or earlier
        start = end.end() if end is not None else len(bare_text)
    return requests


def _union(many: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*many)


def _is_asked_in_chinese(clause: str, match: re.Match[str]) -> bool:
    """Whether a clause asks for the act at this position."""
    before = clause[max(0, match.start() - _REACH_CHARS) : match.start()]
    after = clause[match.end() : match.end() + _REACH_CHARS]
    if _is_forbidden_in_chinese(before) or _CHINESE_REMINDER.search(before) or _CHINESE_HOW.search(before):
        return False
    if match.group() == "提醒" and not _CHINESE_REMINDED.match(after):
        return False
    if _RELATIVE_CLAUSE.match(after):  # the files that were deleted
        return False
    if match.group() not in _ALWAYS_VERBS and _NOUN_SUFFIX.match(after):  # the list of payments
        return False
    if _CHINESE_INQUIRY.search(before) and _NOMINAL_END.match(after):  # look up the refund of order 7
        return False
    if _CHINESE_PAST_TIME.search(before) and _CHINESE_PAST_END.search(after):  # I paid Ann yesterday
        return False
    if _CHINESE_WISH.search(before):
        return True
    is_past = _CHINESE_PAST_BEFORE.search(before)
    return not _CHINESE_PAST_QUESTION.search(after) and not (
        is_past and (_CHINESE_PAST_AFTER.match(after) or not re.search(r"[我]$", before))
    )


def _is_forbidden_in_chinese(before: str) -> bool:
    """Whether the last clause before an act forbids it."""
    clause = CHINESE_CLAUSE_END.split(before)[-1]
    return CHINESE_NEGATION.search(NO_CHINESE_NEGATION.sub("", clause)) is not None
