"""Which request of a text a value belongs to. Pure.

"Read b.txt and delete a.txt" names two files, and asks to delete one. `ClauseIndex` splits what people wrote before
each request: a target belongs to a request for its tool, or to a text that asks for nothing, unless the request refers
back ("read b.txt and delete it") to what was last named. Within a clause that names an output ("to", "into", "写入",
"send Bob the ..."), what follows "of" or "from", or is whose thing it is ("Ann's mail"), is an input and no target.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.policy.intent.mentions import CHINESE_MASK, mask, plain_form
from taoloop.policy.intent.requests import BREAKS, CHINESE_ACT, CHINESE_CLAUSE_END, QUOTED
from taoloop.policy.intent.task_intent import TaskIntent
from taoloop.policy.intent.vocabulary import (
    AMBIGUOUS_VERBS,
    LIGHT_VERBS,
    TALK_VERBS,
    VERBS,
    stem_and_ending,
    words_of,
)
from taoloop.policy.value_match import TrustedText

Plain = str | int | float
"""A value that a text can name."""

DETERMINERS = words_of("the a an my our your his its their this these those new file folder document")
READING_VERBS = words_of(
    "read open check see review summarise summarize analyse analyze compare parse load study use take extract translate"
    " count compute calculate convert copy export merge duplicate download inspect scan look view examine skim"
    " browse find"
    " search fetch get list glance"
)
_WORD = lazy_pattern(
    r"[a-z0-9_.+%-]{1,100}@[\w.-]{0,200}\w|https?://[^\s<>\"]*\w|\u25a1+|[a-z]+'[a-z]+|[\u3400-\u9fff]"
    r"|[^\W\u3400-\u9fff]+(?:[./\\_-][^\W\u3400-\u9fff]+)*|[.;!?](?=\s|\Z)|\n|[,:(]",
    re.IGNORECASE,
)
_STOPS = frozenset(".;!?\n")
_BEFORE_REQUEST = words_of(", : ( and or then please also just now first after before by when while once you to")
_BEFORE_GERUND = words_of("after before by when while and or on")
_SOURCE = lazy_pattern(
    r"\b(?:based on|according to|using|with the help of"
    r"|(?:with|from) the (?:data|contents?|text|numbers|results?|information|values|figures) (?:of|from|in))\b",
    re.IGNORECASE,
)
_READING = lazy_pattern(
    r"\s*(?:(?:please|then|first|now|also|just|after|(?:can|could|would|will) you|i(?:'d like| want| need) you to)\s+)*"
    r"(?:have |take )?(?:a )?([a-z]+)\b",
    re.IGNORECASE,
)
_QUESTION = lazy_pattern(
    r"\?|\b(?:what|which|whether|how|why|who)\b|\b(?:tell|show|give) (?:me|us)\b|[吗呢]|什么|多少|哪|几", re.IGNORECASE
)
_PERSON = lazy_pattern(
    r"\b(?:him|her|he|she)\b|[他她](?!们)|\b(?:to|at|with) (?:it|this|that|them|both|all)\b", re.IGNORECASE
)
_PLURAL = lazy_pattern(
    r"\b(?:them|they|their|these|those|both|all|each|the two|the (?:files|documents|folders|mails|messages"
    r"|events|meetings"
    r"|pages|notes|orders|ones))\b|[它他她]们|[这那](?:些|两)|两[个份封条位笔]",
    re.IGNORECASE,
)
_SINGULAR = lazy_pattern(
    r"\b(?:it|its|this|that|there|same|following)\b|[它该此其]|[这那](?:个|份|封|条|位|笔)", re.IGNORECASE
)
_BACK_AS_THING = lazy_pattern(
    r"\bthe (?:file|document|folder|e?-?mail|message|event|meeting|page|note|order|one)\b", re.IGNORECASE
)
_ATTRIBUTE = lazy_pattern(r"\b(?:from|of|by|with|about|for|in)\s+(?:the\s+|my\s+|our\s+)?\Z", re.IGNORECASE)
_CHINESE_READING = lazy_pattern(
    r"看一?[下看]|(?<![查好])看(?=[\s\w\u25a1])|[阅]?读取?|查看|打开|检查|查[一询]?下?|汇总|统计|总结|概括|翻译"
    r"|分析|参[考照]|对比|比较"
)
_CHINESE_SOURCE = lazy_pattern(r"根据|依据|基于|按照?|参[考照]|利用|使用")
_CHINESE_CUT = lazy_pattern(rf"(?:{CHINESE_CLAUSE_END.pattern}|后(?!台|端))\s*|(?=[把将给向])")
_CHINESE = lazy_pattern("[\u3400-\u9fff]")
_CHANGING_ACTS = words_of(
    "update change modify edit adjust correct fix replace append insert add increase decrease"
    " 更新 修改 更改 改成 改为 改一下 调整 编辑 更正 替换 追加 插入 添加 加到 加进 补充"
)
_CHANGE = lazy_pattern(
    r"\b(?:(?:overwrit|rewrit|revis)(?:e|es|ing)|extend|improve|reformat|refactor|tidy|sav(?:e|ing) over)\b"
    r"|覆盖|重写|改写|完善|修[正订]|整理",
    re.IGNORECASE,
)
_PATH = lazy_pattern(r"\w[./\\]\w|\A[./~]")
_OUTPUT_WORDS = words_of("to into onto as")
_MARKER = lazy_pattern(
    r"\b(?:based on|according to|to|into|onto|as|of|from|in|using|within|inside|with|for|about|by|at|on|between|before"
    r"|after|that|which|who|where|saying|containing|then)\b",
    re.IGNORECASE,
)
_INPUT_WORDS = words_of("of from in using within inside")
_PUTTING_VERBS = words_of("save store put write record note log insert keep create make append add")
_COPYING_VERBS = words_of("copy duplicate export save store write put append add insert merge")
_NO_OUTPUTS = words_of(
    "it them him her me us you that this there here so soon well follows possible if usual be monday tuesday wednesday"
    " thursday friday saturday sunday noon today tomorrow tonight next"
)
_PLACES_WITHIN = words_of("end beginning start top bottom front back")
_RECIPIENT = lazy_pattern(
    rf"\W*(?i:(?:please |and |then )*(?:{'|'.join(sorted(TALK_VERBS))}"
    r"|give|show|pay|hand|lend|offer|transfer|wire|grant)) "
    r"(?P<name>(?![a-z]+\s)[^\s,']+(?:(?: |, | and )(?![a-z]+\s)[^\s,']+){0,6}?) "
    r"(?=(?i:the|a|an|my|our|your|his|its|their|this|these)\s)"
)
_OWNER = lazy_pattern(
    r"(?P<name>(?:[^\W\d_a-z][\w.-]*\s){0,3}(?!(?i:it|that|he|she|let|what|who|there|here)')[\w.@-]{1,100})'s\b"
)
_CHINESE_OUTPUT = lazy_pattern(
    r"(?:写[入到进]|保存[到为]|存[到入为]|另存为|导出[到为]|[复拷][制贝]到|[追添]加到|加[到入]|放[到入]|移动?到"
    r"|发送?到|[汇转移挪搬传调][^，,。到]{0,20}到|给(?!我))"
    rf"(?P<name>.{{1,200}}?)(?=[，,。]|{CHINESE_ACT.pattern}|[发写转打付读]|\Z)"
)
_CHINESE_INPUT = lazy_pattern(
    r"(?:从|根据|依据|参考)(?P<object>(?:(?![汇转移挪搬传调][^，,。到]{0,20}到)[^，,的里中把将]){1,200})|(?:把|将|用|由|[发转读看给]|\A"
    r"|[，,])(?P<owner>[^，,的把将]{1,200}?)[里中]?的"
)


class ClauseIndex:
    """What people wrote, clause by clause. A text is read when the first value is looked up, and then once."""

    def __init__(self) -> None:
        self._unread: list[str] = []
        self._texts: list[str] = []
        self._clauses: list[_Clause] = []

    def add(self, text: str) -> None:
        """Add one more text of a person."""
        self._unread.append(text)

    def is_for_another(self, card: ToolCard, value: Plain, *, beside: bool = False) -> bool:
        """Whether a value is named only where something else is asked for than this tool.

        `beside`: another target is named for the tool, so this one may be a means ("using my card, pay Ann").
        """
        naming = [clause for clause in self._all if clause.names(value)]
        if not naming or any(clause.is_statement or (beside and clause.is_source) for clause in naming):
            return False
        own = self._clauses_for(card)
        if not own or not set(own).isdisjoint(naming):
            return False
        return not any(
            clause.refers_back(value, is_final=card.tier != "write", beside=beside)
            and self._is_antecedent(clause, value)
            for clause in own
        )

    def is_only_input(self, value: Plain, *, is_ref: bool = False) -> bool:
        """Whether a value is named only as what something is taken from. `is_ref`: and another id as where it goes."""
        naming = [clause for clause in self._all if clause.names(value)]
        return bool(naming) and all(clause.has_as_input(value, is_ref=is_ref) for clause in naming)

    def is_output(self, value: Plain) -> bool:
        """Whether a value is named as where something goes."""
        return any(clause.is_output(value) for clause in self._all)

    def is_input(self, value: Plain) -> bool:
        """Whether a value is named as what something is taken from."""
        return any(clause.is_input(value) for clause in self._all)

    @property
    def _all(self) -> list[_Clause]:
        """The clauses, those of new texts too."""
        for text in self._unread:
            self._texts.append(text)
            self._clauses += map(_Clause, _split(text))
        self._unread.clear()
        return self._clauses

    def _is_antecedent(self, clause: _Clause, value: Plain) -> bool:
        """Whether a value is what a clause refers back to: what was last named before it, of what fits."""
        for earlier in reversed(self._clauses[: self._clauses.index(clause)]):
            if earlier.names(value) and (clause.is_to_person or not earlier.has_as_attribute(str(value))):
                return clause.is_plural or not earlier.names_another(value, after=True)
            if earlier.names_another(value) and not clause.is_plural:
                return False
        return False

    def is_name(self, word: Plain) -> bool:
        """Whether a word that may stand for a kind of things is used as a name: in quotes, or with a capital."""
        name = re.escape(str(word).strip())
        capital = rf"|(?<=[\w,;(] ){name}(?!\w)" if str(word)[:1].isupper() else ""
        pattern = rf"(?i:[\"'`\u2018\u201c\u300a\u300c]{name}[\"'`\u2019\u201d\u300b\u300d]){capital}"
        return any(re.search(pattern, text) for text in (*self._texts, *self._unread))

    def names_for_change(self, value: Plain) -> bool:
        """Whether a clause asks for what this value names to be changed, or refers back to it in doing so."""
        is_named = False
        for clause in self._all:
            is_named = is_named or clause.names(value)
            if clause.asks_for_change and (
                clause.names(value) or (is_named and clause.refers_back(value, is_final=True, beside=False))
            ):
                return True
        return False

    def names_for(self, card: ToolCard, value: Plain) -> bool:
        """Whether a request for this tool names a value."""
        return any(clause.names(value) for clause in self._clauses_for(card))

    def _clauses_for(self, card: ToolCard) -> list[_Clause]:
        """The requests for a tool."""
        own = [clause for clause in self._all if clause.intent.calls_for(card)]
        own = own or [clause for clause in self._all if clause.intent.has_requests]  # "send it": nobody can tell what
        return [clause for clause in own if not clause.is_reading] or own


class _Clause:
    """A part of a text with one request, or with none."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._values = TrustedText((text,))

    @cached_property
    def intent(self) -> TaskIntent:
        """What it asks for."""
        intent = TaskIntent()
        intent.add(self._text)
        return intent

    @cached_property
    def is_source(self) -> bool:
        """Whether it names the means or the basis of a request."""
        text = self._text
        return _SOURCE.match(text) is not None or _CHINESE_SOURCE.match(text) is not None or _first_verb(text) == "use"

    @cached_property
    def is_reading(self) -> bool:
        """Whether something is to be read, or is asked."""
        if self.is_source or _first_verb(self._text) in READING_VERBS:
            return True
        return _CHINESE_READING.search(self._text) is not None

    @cached_property
    def asks_for_change(self) -> bool:
        """Whether it asks for what exists to be changed."""
        return not self.intent.acts.isdisjoint(_CHANGING_ACTS) or _CHANGE.search(self._text) is not None

    @cached_property
    def is_statement(self) -> bool:
        """Whether it asks for nothing: it says how things are, or for whom something is."""
        return not self.is_reading and not self.intent.has_requests and not _QUESTION.search(self._text)

    def names(self, value: Plain) -> bool:
        """Whether a value is in it."""
        return self._values.has(value)

    @cached_property
    def _parts(self) -> Mapping[str, TrustedText]:
        """What it names as `input`, `output` and `other`; if it names no output, all of it is `other`."""
        spans = sorted(_parts_of(self._bare))
        parts = {kind: TrustedText() for kind in ("input", "output", "other")}
        if not any(kind == "output" for _, _, kind in spans):
            spans = []
        position = 0
        for start, end, kind in (*spans, (len(self._text), len(self._text), "other")):
            if position < start:
                parts["other"].add(self._text[position:start])
            if position <= start < end:
                parts[kind].add(self._text[start:end])
            position = max(position, end)
        return parts

    def is_output(self, value: Plain) -> bool:
        """Whether it names a value as where something goes."""
        return self._parts["output"].has(value)

    def is_input(self, value: Plain) -> bool:
        """Whether it names a value as what something is taken from, wherever that goes."""
        spans = (span for *span, kind in _parts_of(self._bare) if kind == "input")
        return any(TrustedText((self._text[start:end],)).has(value) for start, end in spans)

    def has_as_input(self, value: Plain, *, is_ref: bool) -> bool:
        """Whether it names a value only as what something is taken from, and something else as where it goes.

        `is_ref`: with another id among these.
        """
        parts = self._parts
        if not parts["input"].has(value) or parts["output"].has(value) or parts["other"].has(value):
            return False
        if not is_ref or not any(map(str.isdigit, str(value))):
            return True
        rest = "".join(self._text[start:end] for start, end, _ in _parts_of(self._bare)).replace(str(value), "")
        return any(map(str.isdigit, rest))

    @cached_property
    def is_plural(self) -> bool:
        """Whether it refers to more than one thing."""
        return _PLURAL.search(self._bare) is not None

    @cached_property
    def is_to_person(self) -> bool:
        """Whether it refers to a person, or to the sender of something."""
        return _PERSON.search(self._bare) is not None

    @cached_property
    def _bare(self) -> str:
        return QUOTED.sub(mask, self._text)

    def has_as_attribute(self, value: str) -> bool:
        """Whether it names a person or the like only to say which thing it is about: Ann's mail, the mail from Ann."""
        if _is_path(value) or any(map(str.isdigit, value)):
            return False
        text, name = self._text.casefold(), value.casefold()
        starts = [match.start() for match in re.finditer(re.escape(name), text)]
        return bool(starts) and all(
            text.startswith(("'s ", "的"), start + len(name)) or _ATTRIBUTE.search(text[max(0, start - 20) : start])
            for start in starts
        )

    def names_another(self, value: Plain, *, after: bool = False) -> bool:
        """Whether it names something that may be meant in place of a value; `after`: behind it."""
        name, text = str(value).casefold(), self._text
        position = text.casefold().rfind(name)
        if after and position >= 0:
            text = text[position + len(name) :]
        if _CHINESE.match(name):
            return not after and _CHINESE.search(text) is not None
        words = [match.group() for match in _WORD.finditer(text)]
        return any(
            self._is_rival(words, index, str(value)) for index in range(len(words)) if words[index].casefold() != name
        )

    def refers_back(self, value: Plain, *, is_final: bool, beside: bool) -> bool:
        """Whether its object may be a value that another clause names.

        It is, if it is a pronoun. A name in the place of the value excludes that. `is_final`: what it asks for cannot
        be undone, so that its object must refer to something, and not only be left out.
        """
        if self.is_plural or self.is_to_person or _SINGULAR.search(self._bare):
            outputs = [self._text[start:end] for start, end, kind in _parts_of(self._bare) if kind == "output"]
            return beside or not _is_path(str(value)) or not any(map(_is_path, outputs))  # write it to out.txt
        words = [match.group() for match in _WORD.finditer(self._text)]
        if any(self._is_rival(words, index, str(value)) for index in range(len(words))):
            return False
        return not is_final or _BACK_AS_THING.search(self._bare) is not None or len(words) <= 2

    def _is_rival(self, words: list[str], index: int, value: str) -> bool:
        """Whether a word is a name that may be meant in place of a value."""
        word, before = words[index], words[index - 1].lower()
        if not any(map(str.isalnum, word)) or word.lower() in DETERMINERS:
            return False
        if _is_path(value):
            return _is_path(word)
        if index == 0:  # the verb
            return False
        if any(map(str.isdigit, value)) and "@" not in value:  # an id
            return any(map(str.isdigit, word))
        if word.isdigit():
            return False
        is_plain = word.islower() and word.isalpha() and word.isascii()
        is_bare_object = index == 1 or (before in _OUTPUT_WORDS)
        return not is_plain or is_bare_object


def _parts_of(text: str) -> Iterator[tuple[int, int, str]]:
    """Where a clause names what something is taken from (`input`), and where it goes (`output`)."""
    markers = [(match.start(), match.end(), match.group().lower()) for match in _MARKER.finditer(text)]
    recipient = _RECIPIENT.match(text)
    outputs = [] if recipient is None else [recipient.span("name")]
    kind, has_name = "other", False
    for index, (_, start, marker) in enumerate(markers):
        end = markers[index + 1][0] if index + 1 < len(markers) else len(text)
        words = _WORD.findall(text[start : start + 200])
        if marker in _OUTPUT_WORDS:
            kind = _output_kind(words)
        elif marker in _INPUT_WORDS and kind in ("output", "within") and not has_name:
            if kind == "output":  # to the mail from Ann
                outputs[-1] = outputs[-1][0], end
        elif marker in _INPUT_WORDS:
            is_place = marker == "in" and _first_verb(text) in _PUTTING_VERBS and index + 1 == len(markers)
            kind = "output" if is_place else "input"
        else:
            kind = "input" if " " in marker else "other"
        has_name = any(map(_is_name, _WORD.findall(text[start:end])))
        if kind == "output" and (not outputs or outputs[-1][1] < end):
            outputs.append((start, end))
        elif kind == "input":
            yield start, end, kind
    outputs += [match.span("name") for match in _CHINESE_OUTPUT.finditer(text)]
    yield from ((start, end, "output") for start, end in outputs)
    if _first_verb(text) in _COPYING_VERBS and any(_is_path_in(text[start:end]) for start, end in outputs):
        end = min([start for start, _, _ in markers] or [len(text)])
        if _is_path_in(text[:end]):  # save a.txt to b.txt
            yield 0, end, "input"
    for match in (*_OWNER.finditer(text), *_CHINESE_INPUT.finditer(text)):
        group = match.lastgroup or "name"
        start = max(
            [match.start(group), *(end for _, end in outputs if end <= match.end(group) and match.re is not _OWNER)]
        )
        if not any(first <= start < last for first, last in outputs):
            yield start, match.end(group), "input"


def _output_kind(words: list[str]) -> str:
    """Whether something concrete follows "to": a thing, not an act, a pronoun or a place within a thing."""
    first = next((index for index, word in enumerate(words) if word.lower() not in DETERMINERS), len(words))
    word = words[first].lower() if first < len(words) else ""
    if word in _PLACES_WITHIN or (first and not any(map(_is_name, words[first : first + 4]))):
        return "within"
    stem, ending = stem_and_ending(word)
    is_verb = (
        not first and not _is_name(words[0] if words else "") and not ending and (stem in VERBS or stem in LIGHT_VERBS)
    )
    return "other" if not word or word in _NO_OUTPUTS or is_verb else "output"


def _is_name(word: str) -> bool:
    """Whether a word is a name or a value, not a word of everyday speech."""
    return any(map(str.isalnum, word.replace("\u25a1", "a"))) and not (
        word.islower() and word.isalpha() and word.isascii()
    )


def _is_path(word: str) -> bool:
    return "@" not in word and "://" not in word and _PATH.search(word) is not None


def _is_path_in(text: str) -> bool:
    return any(_is_path(word) for word in _WORD.findall(text))


def _first_verb(text: str) -> str:
    """The stem of the word that a clause begins with."""
    match = _READING.match(text)
    if match is None:
        return ""
    word = match[1].lower()
    base = word.removesuffix("ing")
    return next((form for form in (word, base, base + "e") if form in READING_VERBS), word)


def _split(text: str) -> Iterator[str]:
    """The clauses of a text."""
    plain = plain_form(text)
    masked = QUOTED.sub(mask, plain)
    if not any(map(str.isalnum, masked)):
        masked = plain
    cuts = sorted({0, len(plain), *_english_cuts(masked), *_chinese_cuts(masked)})
    yield from (plain[start:end] for start, end in pairwise(cuts) if plain[start:end].strip())


def _english_cuts(text: str) -> Iterator[int]:
    """Where a clause begins: after a sentence, at a request, and at what names a source."""
    words = [(match.group().lower(), match.start()) for match in _WORD.finditer(text)]
    yield from (match.start() for match in _SOURCE.finditer(text))
    reading = False
    for index, (word, start) in enumerate(words):
        before = words[index - 1][0] if index else "."
        following = words[index + 1][0] if index + 1 < len(words) else ""
        begins = before in _STOPS or word in BREAKS
        stem, ending = stem_and_ending(word)
        is_noun = stem in AMBIGUOUS_VERBS and any(map(str.isdigit, following))  # cancel the chair, order S-6
        is_reading = _first_verb(word) in READING_VERBS
        is_verb = not is_noun and (stem in VERBS or stem in LIGHT_VERBS or is_reading)
        if is_verb and before in _BEFORE_REQUEST:
            begins = begins or (ending == "" if before not in _BEFORE_GERUND else ending in ("", "ing"))
        if reading and before in ("and", "then", ",") and word.isalpha() and word not in DETERMINERS:
            begins = begins or following in DETERMINERS or _PATH.search(following) is not None
        if begins:
            yield start
            reading = is_verb and is_reading


def _chinese_cuts(text: str) -> Iterator[int]:
    """The same in Chinese: between two verbs, at the last boundary between them."""
    if not _CHINESE.search(text):
        return
    masked = CHINESE_MASK.sub(mask, text)
    reading = [(match.start(), match.end(), True) for match in _CHINESE_READING.finditer(masked)]
    reading += [(match.start(), match.end(), True) for match in _CHINESE_SOURCE.finditer(masked)]
    acts = [(match.start(), match.end(), False) for match in CHINESE_ACT.finditer(masked)]
    verbs = sorted(reading + acts)
    for (_, end, is_reading), (start, _, _) in pairwise(verbs):
        boundaries = [match.end() for match in _CHINESE_CUT.finditer(masked, end, start)]
        if boundaries:
            yield boundaries[-1]
        elif is_reading and start > end:
            yield start
