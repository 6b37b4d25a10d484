r"""Whether a value appears in a text that a person wrote: by typed equality, never by resemblance.

An address equals an address, a number a number, a date a date; any other text must appear as a whole phrase. Texts are
compared in their compatibility form (Unicode NFKC), ignoring case; a value with invisible characters equals nothing.
Chinese, Japanese and Korean have no spaces, so a phrase needs two characters there, and an address or a number may
directly follow them. Every pattern here takes time proportional to the text, whoever wrote it.

An amount (the role `amount`, see `targets.value_role`) is endorsed by a quantity alone (`quantities`). A target is
endorsed by a name as a whole: "Ann" is not who "Pay Ann Lee" pays, and no part of an IBAN names an account.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import cached_property
from itertools import islice
from typing import Any

from taoloop.core.text import lazy_pattern
from taoloop.core.words import name_words
from taoloop.policy.intent.requests import QUOTED
from taoloop.policy.intent.vocabulary import CHINESE_ACTS, CHINESE_KINDS, CHINESE_NAMES, words_of
from taoloop.policy.quantities import (
    CJK_RUN,
    DATE_TIME,
    account_number_of,
    account_numbers,
    amount_of,
    amounts,
    code_spans,
    dates,
    decimal_of,
    iban_of,
    ibans,
    number_of,
    numbers,
    plain_text,
    quantities,
    times,
)

MAIL = lazy_pattern(r"(?<![\w.+%-])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
URL = lazy_pattern(
    r"(?:https?://|www\.)[^\s<>\"'，。；、）》」]+"
    r"|(?<![\w@./\\-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,10}(?:/[^\s<>\"'，。；、）》」]*)?",
    re.IGNORECASE,
)
_SCRIPT = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # written without spaces
_CJK = lazy_pattern(f"[{_SCRIPT}]")
_TRAILING_PUNCTUATION = ".,;:!?)]}'\"»”’"
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and any are as at be been but by can do does for from get has have he her him his i if in into is it its"
        " me my no not of off on or our out she so some that the their them then they this to up us was we were what"
        " when which who will with would you your 的 了 是 在 和 我 你 他 把 给",
    )
)
_MAX_VALUE_CHARS = 20_000
_MAX_AMOUNT_CHARS = 120
_INDEX_THRESHOLD = 32  # texts that are searched as they are; more are indexed by their words
_JOINING_CHARS = ".-@/_\\"
_CONTROL = lazy_pattern(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_INVISIBLE_CATEGORIES = frozenset({"Cf", "Cc", "Co", "Cn", "Cs"})


def normalise_text(text: str) -> str:
    """The form in which texts are compared: NFKC, case folded, each run of white space one space."""
    return " ".join(unicodedata.normalize("NFKC", text).split()).casefold()


def has_invisible(text: str) -> bool:
    """Whether a text has invisible characters, or ones that cannot be compared. Line breaks are visible."""
    if text.isascii():
        return _CONTROL.search(text) is not None
    return any(unicodedata.category(char) in _INVISIBLE_CATEGORIES and char not in "\t\n\r" for char in text)


def strip_invisible(text: str) -> str:
    """The text without its invisible characters."""
    return "".join(char for char in text if char in "\t\n\r" or unicodedata.category(char) not in _INVISIBLE_CATEGORIES)


_CHINESE_COMMA = lazy_pattern(r"(?<=\d{4})，(?=\d)|(?<=\d)，(?=\d)(?!\d{3}(?!\d))")
"""A comma between two numbers ("订单1003，15.5元"), which in normal form would look like one inside a number."""


class _Text:
    """A text in its compatibility form, with what is derived from it on demand."""

    def __init__(self, text: str) -> None:
        self.raw = _CHINESE_COMMA.sub("， ", text)
        self.whole = unicodedata.normalize("NFKC", self.raw)

    @cached_property
    def folded(self) -> str:
        """The text in the form in which phrases are compared."""
        return normalise_text(self.whole)

    @cached_property
    def spaced(self) -> str:
        """The same in upper and lower case, if every character is where it is in `folded`."""
        spaced = " ".join(self.whole.split())
        return spaced if len(spaced) == len(self.folded) else self.folded

    @cached_property
    def codes(self) -> list[tuple[int, int]]:
        """Where `spaced` has addresses, IBANs and accounts."""
        links = (match for pattern in (MAIL, URL) for match in pattern.finditer(self.spaced))
        return [(match.start(), match.start() + len(trim_punctuation(match.group()))) for match in links] + list(
            code_spans(self.spaced)
        )

    @cached_property
    def quotes(self) -> list[tuple[int, int]]:
        """What is quoted in `spaced`; nothing if all of it is."""
        quotes = [(match.start() + 1, match.end() - 1) for match in QUOTED.finditer(self.spaced)]
        rest = QUOTED.sub("", self.spaced)
        return quotes if any(map(str.isalnum, rest)) else []

    @cached_property
    def numeric(self) -> str:
        """The text in which its numbers are found."""
        text = plain_text(self.raw)
        masked = CJK_RUN.sub(lambda match: " " * len(match.group()), text)
        for pattern in (MAIL, URL):
            masked = pattern.sub(lambda match: "\u25a1" * len(match.group()), masked)
        return "".join(mask if mask == "\u25a1" else char for char, mask in zip(text, masked, strict=True))

    @cached_property
    def marked(self) -> str:
        """The parts of the text that are not mere words."""
        return _nonword_pieces(self.whole)


_NUMBERED = (
    r"(?<![a-z])(?:(?:{names})(?:[ _-]?(?:number|no\.?|nr\.?|id|编?号|号码)(?![a-z]))?[ :#]{{0,3}}"
    r"|(?:{plurals})(?: (?:numbers|nos\.?|ids))?[ :#]{{0,3}}(?:\d{{1,20}}(?:, and |, | and | or |、|和|及"
    r"|与|或)#?){{0,20}})"
    r"{number}(?!\d|[.,:/-]\d|[a-z_%€$£¥元块]| (?:eur|usd|gbp|cny|rmb|euros?|dollars?|pounds?|percent|k?g"
    r"|km|times|[ap]m)\b)"
    r"(?! (?!(?:was|has|its|this|does|always|unless)\b)[a-z]{{3,}}s\b)"  # "order 5 pizzas" names no order
    r"|(?<![\da-z.,:/-]){number} ?号(?:的)?(?:{names})"
)


class TrustedText:
    """The content of trusted texts, ready to be compared with values.

    A kind of value is extracted from a text only when something of that kind is compared, and then once.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[_Text] = []
        # of each kind, and in how many texts it was looked for
        self._values_by_kind: dict[str, tuple[set[Any], int]] = {}
        self._word_texts: dict[str, list[int]] = {}  # of each word, the texts that have it
        self._indexed_count = 0  # how many of the texts are in there
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add one more trusted text."""
        self._texts.append(_Text(text))

    @property
    def links(self) -> set[str]:
        """Whatever a program may make a link of, and the addresses of web pages as they are read."""
        return self._values("link") | self._values("url")

    def _values(self, kind: str) -> set[Any]:
        values, count = self._values_by_kind.get(kind) or (set(), 0)
        if count < len(self._texts):
            for text in self._texts[count:]:
                values.update(_EXTRACTORS[kind](text))
            self._values_by_kind[kind] = values, len(self._texts)
        return values

    def has(self, value: Any, role: str = "value") -> bool:
        """Whether `value` appears here; for a list or an object, whether all of it does. An empty value always does."""
        base = role.partition(":")[0]
        if base == "amount" and (not value or not isinstance(value, Mapping | list | tuple)):
            return value is None or self._has_amount(value)
        if value is None or value in ("", [], {}):
            return True
        if isinstance(value, bool):
            return base in ("minor", "value")
        if isinstance(value, int | float):
            if base == "ref":
                return self._has_numbered(str(value), role.partition(":")[2])
            return decimal_of(value) in self._values("number") or str(value) in self._values("account")
        if isinstance(value, str):
            return self._has_text(value, role)
        parts = value.values() if isinstance(value, Mapping) else value
        return isinstance(value, Mapping | list | tuple) and all(self.has(part, role) for part in parts)

    def _has_amount(self, value: Any) -> bool:
        """Whether a number, or a text that is one, stands here as a quantity."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return decimal_of(value) in self._values("quantity")
        if not isinstance(value, str) or has_invisible(value) or len(value) > _MAX_AMOUNT_CHARS:
            return False
        text = plain_text(value).strip()
        number, amount = number_of(text), amount_of(text)
        return number in self._values("quantity") if amount is None else amount in self._values("amount")

    def has_address(self, value: Any) -> bool:
        """Whether the address of a web page appears here, exactly."""
        return (
            isinstance(value, str)
            and not has_invisible(value)
            and _url(unicodedata.normalize("NFKC", value).strip()) in self._values("url")
        )

    def _has_text(self, value: str, role: str) -> bool:
        if len(value) > _MAX_VALUE_CHARS or has_invisible(value):
            return False
        text = unicodedata.normalize("NFKC", value).strip()
        if MAIL.fullmatch(text):
            return text.lower() in self._values("mail")
        if URL.fullmatch(text) and ("/" in text or text.lower().startswith("www.")):
            return _url(text) in self._values("url")
        if (iban := iban_of(text)) is not None and iban in self._values("iban"):
            return True
        is_target = role == "target" or role.startswith("ref:")
        if role.startswith("ref:"):  # a number in the task may be anything, and names a thing only behind its kind
            if not any(char.isalpha() for char in text):
                return self._has_numbered(text, role.partition(":")[2])
            return self.has_phrase(text, is_target=True)
        if match := DATE_TIME.fullmatch(text):
            return self._has_date_time(match)
        account = account_number_of(text)
        if account is not None and (account in self._values("account") or self.has_phrase(account)):
            return True
        if (number := number_of(text)) is not None:
            return number in self._values("number")
        if (amount := amount_of(text)) is not None and amount in self._values("amount"):
            return True
        if not is_target and URL.fullmatch(text) and _url(text) in self._values("url"):
            return True
        return self.has_phrase(text, is_target=is_target)

    def _has_numbered(self, number: str, kind: str) -> bool:
        """Whether a number stands here behind its kind: "order 1003", "orders 1002 and 1003", "订单1003"."""
        words = name_words(kind)
        if not number.isdigit() or not words:
            return False
        noun, chinese = re.escape(words[-1]), CHINESE_NAMES.get(words[-1])
        names, plurals = ("|".join(filter(None, (name, chinese))) for name in (noun, f"{noun}e?s"))
        pattern = _NUMBERED.format(names=names, plurals=plurals, number=number)
        return any(re.search(pattern, text.folded) for text in self._texts_with(number))

    def _has_date_time(self, match: re.Match[str]) -> bool:
        day = date_of(match[1])
        if day is None or not ({(day.year, day.month, day.day), (None, day.month, day.day)} & self._values("date")):
            return False
        if match[2] is None or (match[2], match[3]) == ("00", "00"):  # a day, and no time of it
            return True
        return (int(match[2]), int(match[3])) in self._values("time")

    def has_phrase(self, value: str, *, is_target: bool = False) -> bool:
        """Whether a text appears here as it is, from the start of a word to the end of one, and as no part of a code.

        `is_target`: nor as a part of a longer name, or of what is quoted.
        """
        phrase = normalise_text(value).strip(" \"'“”‘’`")
        if len(phrase) < 2 or phrase in STOP_WORDS or not any(char.isalnum() for char in phrase):
            return False
        return any(_has_phrase(phrase, text, is_target=is_target) for text in self._texts_with(phrase))

    def _texts_with(self, phrase: str) -> Iterable[_Text]:
        """The texts that may contain a phrase: of many, those that contain its rarest word."""
        if len(self._texts) <= _INDEX_THRESHOLD:
            return self._texts
        for index in range(self._indexed_count, len(self._texts)):
            text = self._texts[index].folded
            for word in set((_ASCII_WORD if text.isascii() else _WORD).findall(text)):
                self._word_texts.setdefault(word, []).append(index)
        self._indexed_count = len(self._texts)
        words = (match.group() for match in islice(_WORD.finditer(phrase), _INDEX_THRESHOLD))
        rarest = min((self._word_texts.get(word, ()) for word in words), key=len)
        return (self._texts[index] for index in rarest)


def _has_phrase(phrase: str, text: _Text, *, is_target: bool) -> bool:
    folded = text.folded
    start = folded.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        if _is_border(folded, start - 1, -1, phrase[0]) and _is_border(folded, end, 1, phrase[-1]):
            spans = text.codes + text.quotes if is_target else text.codes
            is_part = any(first <= start and end <= last and end - start < last - first for first, last in spans)
            if not is_part and not (is_target and _is_part_of_name(text.spaced, start, end)):
                return True
        start = folded.find(phrase, start + 1)
    return False


_NAME_BEFORE = lazy_pattern(r"(?P<start>\A|[.!?:;,(\"'“]|\n)?\s?(?P<word>[^\W\d_][\w'.-]*) \Z")
_NAME_AFTER = lazy_pattern(r" (?:(?:v[ao]n|de[rlns]?|d[aiu]|la|bin|ibn|al|el|ter|&) ){0,2}(?P<word>[^\W\d_][\w'-]*)")
_NO_NAMES = STOP_WORDS | words_of(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august"
    " september october november december mr mr. mrs mrs. ms ms. dr dr. prof prof. sir madam eur usd gbp cny chf jpy"
    " today tomorrow tonight next last re after before about how if whether please also then"
)
_CHINESE_RELATIONS = (
    "助理|助手|老板|经理|主管|上司|秘书|妻子|太太|老婆|丈夫|老公|爱人|母亲|妈妈?|父亲|爸爸?|父母|家人|哥哥?"
    "|弟弟?|姐姐?|妹妹?|儿子|女儿|孩子|朋友|同事"
    "|团队|律师|医生|会计|房东|邻居|公司|代理人?|银行"
)
_RELATION = lazy_pattern(
    r"'s (?:[a-z]+ )?(?:assistant|boss|manager|supervisor|secretary|deputy|wife|husband|partner|spouse|mother"
    r"|father|mom|dad"
    r"|parents?|brother|sister|son|daughter|child(?:ren)?|kids?|friends?|colleagues?|coworkers?|team|lawyer"
    r"|attorney|doctor"
    r"|accountant|landlord|landlady|neighbou?r|agent|company|employer|successor|replacement|bank)\b"
    rf"|的(?:[\u4e00-\u9fff]{{0,2}})(?:{_CHINESE_RELATIONS})"
)
"""Somebody who is not who is named: Ann's boss."""
_CHINESE_BEFORE = lazy_pattern(
    rf"(?:{'|'.join(map(re.escape, (*CHINESE_ACTS, *CHINESE_KINDS)))}|{_CHINESE_RELATIONS}"
    rf"|[给把将向跟和与及对从由请叫让在到为是的被用找约问帮替代于往除要想也"
    r"再先并或了过有以付转汇打发寄送还借看读查开改加进上下里中我你他她老小名])\Z"
)
_CHINESE_AFTER = lazy_pattern(
    rf"{'|'.join(map(re.escape, (*CHINESE_ACTS, *CHINESE_KINDS)))}"
    rf"|[的和与及跟给把将对在到为是说讲也都了里中上下去来要不于从向并或请一二"
    r"两三四五六七八九十几每这那他她它我你吧呢吗啊后前时可能会知以让问付转汇打发寄送还改加放看读写参出需没未已]"
    r"|明[天早晚]|今[天早晚]|周|本周|开会|吃饭|作为|因|关于|先|再|马上|立即|尽快|总共|合计|共"
)


def _is_part_of_name(text: str, start: int, end: int) -> bool:
    """Whether what stands here is only a part of a name, or names somebody else: Ann in Ann Lee or in Ann's boss.

    In Chinese a name is whole if a word that is known to be none stands before and after it.
    """
    if _RELATION.match(text, end):
        return True
    before, after = text[max(0, start - 40) : start], text[end : end + 40]
    if _CJK.match(text, start) and before and _CJK.match(before[-1]) and not _CHINESE_BEFORE.search(before):
        return True
    if _CJK.match(text[end - 1]) and _CJK.match(after) and not _CHINESE_AFTER.match(after):
        return True
    words = text[start:end].split()
    preceding, following = _NAME_BEFORE.search(before), _NAME_AFTER.match(after)
    is_preceded = preceding is not None and preceding["start"] is None and _joins(words[0], preceding["word"])
    return is_preceded or (following is not None and _joins(words[-1], following["word"]))


def _joins(word: str, neighbour: str) -> bool:
    """Whether two neighbours may be one name: both begin with a capital; not a name and a code such as PDF or EUR."""
    if not (word[:1].isupper() and neighbour[:1].isupper()) or neighbour.lower().removesuffix("'s") in _NO_NAMES:
        return False
    return len(neighbour) == 1 or not neighbour.isupper() or word.isupper()


def _is_border(text: str, index: int, step: int, inner: str) -> bool:
    """Whether a phrase may begin or end at the character at this index: no word, file name or path continues there."""
    outer = text[index] if 0 <= index < len(text) else ""
    if not outer or _CJK.match(outer) or _CJK.match(inner):
        return True
    if _is_word_char(inner) and _is_word_char(outer):
        return False
    if outer not in _JOINING_CHARS:
        return _is_word_char(inner) or inner not in _JOINING_CHARS or not _is_word_char(outer)
    if not _is_word_char(inner) and inner not in _JOINING_CHARS:
        return True
    if step < 0 and outer in "./\\":  # .env is not env, and /tmp not tmp
        return False
    while 0 <= index < len(text) and text[index] in _JOINING_CHARS:
        index += step  # a dot or a hyphen may continue: a.b, file.txt, 1.5
    return not (0 <= index < len(text)) or not _is_word_char(text[index])


def _is_word_char(char: str) -> bool:
    return char.isalnum() or char == "_" or (not char.isascii() and unicodedata.category(char).startswith("M"))


def atoms(text: str) -> list[str]:
    """The words of a text, and its addresses as a whole: what an index of untrusted text is made of."""
    folded = normalise_text(text)
    word = _ASCII_WORD if folded.isascii() else _WORD_OR_PAIR
    words, begin = list[str](), 0
    while (at := folded.find("@", begin)) >= 0:  # only what contains an @, up to the next spaces, is more than words
        start = folded.rfind(" ", begin, at) + 1 or begin
        end = folded.find(" ", at)
        end = len(folded) if end < 0 else end
        words += word.findall(folded, begin, start)
        words += _ATOM.findall(folded, start, end)
        begin = end
    return words + word.findall(folded, begin)


_ASCII_WORD = lazy_pattern(r"\w+")
_WORD = lazy_pattern(rf"[^\W{_SCRIPT}]+|[{_SCRIPT}]")
_WORD_OR_PAIR = lazy_pattern(rf"[^\W{_SCRIPT}]+|[{_SCRIPT}]{{1,2}}")
_ATOM = lazy_pattern(rf"(?<![\w.+%-])[\w.+%-]+@[\w.-]+\w|{_WORD_OR_PAIR.pattern}")
_AUTHORITY = lazy_pattern(r"[a-zA-Z][a-zA-Z0-9+.-]*://([^/?#]*)")
_PARTIAL_SCHEME = lazy_pattern(r"(?:h(?:tt|xx)ps?|ftp|wss?):", re.IGNORECASE)
_NO_SCHEME = lazy_pattern(r"[/\\]{2}|[^\s/@]+@[^\s/?#]+[/?#]")  # //host, \\host, or a user before a host with a path
_DEFANGED = lazy_pattern(r"[\[({](\.|:|dot)[\])}]", re.IGNORECASE)  # evil[.]com
_TOP = (
    rf"(?:xn--[a-z0-9-]+|[a-z]{{2,24}}|(?:(?![{_SCRIPT}])[^\W\d_]){{2,24}}|中[国國]|公司|网络|香港|台[湾灣])(?![\w-])"
)
_IP = r"(?:\d{1,3}\.){3}\d{1,3}(?![\w.]\d)|\[[0-9a-f]*:[0-9a-f:.]+\]"
_BARE_HOST = lazy_pattern(rf"((?:(?:[\w-]+\.)+{_TOP}|{_IP})\.?)(?::\d*)?(?:[/?#]\S*)?", re.IGNORECASE)
_LABEL = rf"(?:(?![{_SCRIPT}])[\w-])+"
_LINK = lazy_pattern(
    rf"(?:(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{{0,20}}:[/\\]{{2}}|{_PARTIAL_SCHEME.pattern}(?=\S)|www\.|(?<![\w:/\\@.-])(?:"
    rf"[/\\]{{2}}(?=[^\s/]*[.@\[])|\\\\(?=[\w-]{{2,}}\\\w)|{_LABEL}(?::[^\s/@]*)?@{_LABEL}(?:\.{_LABEL})*[/?#])"
    rf"|(?<![\w@./\\-])(?:{_LABEL}(?:\.{_LABEL})*\.{_TOP}|{_IP}))[^\s<>\"'，。；、）》」]*",
    re.IGNORECASE,
)
_HOST = lazy_pattern(r"((?:[\w-]+\.)*[\w-]+|\[[0-9a-fA-F:.]+\])\.?(?::\d*)?")


def host_of(value: str) -> str | None:
    """The host of an address, in lower case and its ASCII form; None for a text that is no address.

    Empty for an address that programs understand differently: with a user name, a backslash, an escape or a break in
    the host, half a scheme, or none before `//`.
    """
    text = _address_form(value)
    if " " in text:
        return None  # a text
    if match := _AUTHORITY.match(text):
        authority = _HOST.fullmatch(match[1])
        return ascii_host(authority[1]) if authority else ""
    if _PARTIAL_SCHEME.match(text) or _NO_SCHEME.match(text):
        return ""
    bare = _BARE_HOST.fullmatch(text)
    return None if bare is None else ascii_host(bare[1])


def is_written_address(value: str) -> bool:
    """Whether a text is written as the address of a page: with a scheme, or as a host with a path or a query."""
    text = _address_form(strip_invisible(value)).casefold()
    if _AUTHORITY.match(text) or _PARTIAL_SCHEME.match(text) or _NO_SCHEME.match(text):
        return True
    bare = _BARE_HOST.match(text)
    is_certain = bare is not None and (text.startswith("www.") or re.match(_IP, text) is not None)
    return is_certain or (bare is not None and text[bare.end(1) : bare.end(1) + 1] in ("/", "?", "#", ":"))


def _address_form(text: str) -> str:
    """A text as an address: its dots, and those that were made harmless (`evil[.]com`), as they are looked up."""
    return _refang(unicodedata.normalize("NFKC", text).replace("\u3002", ".").strip())


def _refang(text: str) -> str:
    return _DEFANGED.sub(lambda match: "." if match[1].lower() == "dot" else match[1], text)


def ascii_host(host: str) -> str:
    """The name of a host, or a pattern of names, in the form that is looked up; empty if that is disputed."""
    lower = host.lower().removesuffix(".")
    if lower.isascii():
        return lower
    if lower.casefold() != lower:  # ß is ss for one program and a letter for the next
        return ""
    try:
        return ".".join(
            label if label.isascii() else label.encode("idna").decode("ascii") for label in lower.split(".")
        )
    except UnicodeError:
        return ""


def links_in(text: str) -> set[str]:
    """Whatever in a text a program may make a link of."""
    plain = _refang(unicodedata.normalize("NFKC", text))
    return {_url(trim_punctuation(link)) for link in _find_all(_LINK, plain)}


def date_of(text: str) -> date | None:
    """A date as `YYYY-MM-DD`; None for any other text."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def value_key(value: Any) -> tuple[str, Any]:
    """What two plain values have in common that are the same by typed equality: kind and content."""
    if isinstance(value, bool) or value is None:
        return "constant", value
    if isinstance(value, int | float):
        number = decimal_of(value)
        return ("text", repr(value)) if number is None else ("number", number)
    text = str(value)
    if has_invisible(text):
        return "text", text
    plain = unicodedata.normalize("NFKC", text).strip()
    if MAIL.fullmatch(plain):
        return "mail", plain.lower()
    iban = iban_of(plain) if plain == plain.upper() else None
    return ("text", plain) if iban is None else ("iban", iban)


def trim_punctuation(text: str) -> str:
    """An address without what may be punctuation of the text around it."""
    return text.rstrip(_TRAILING_PUNCTUATION)


def _url(text: str) -> str:
    """An address as it is: without `https://` and one slash at its end, its host in lower case.

    Nothing else is left out: `a.txt/..` is not `a.txt`.
    """
    scheme, separator, rest = text.partition("://")
    rest = rest if separator else scheme
    host, slash, path = rest.partition("/")
    bare = f"{host.lower()}{slash}{path}".removesuffix("/")
    return f"{scheme.lower()}://{bare}" if separator and scheme.lower() != "https" else bare


def _url_forms(text: str) -> set[str]:
    """The addresses that an address in a text stands for: without `https` it may mean either scheme."""
    url = _url(trim_punctuation(text))
    if text.lower().startswith("https://"):
        return {url}
    bare = url.removeprefix("http://")
    return {bare, f"http://{bare}"}


def _find_all(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """What a pattern finds in a text, and in the text without its Chinese: no space separates an address from that."""
    for variant in dict.fromkeys((text, CJK_RUN.sub(" ", text))):
        yield from (match.group() for match in pattern.finditer(variant))


def _nonword_pieces(text: str) -> str:
    """The parts of a text between its white space that are not mere words or codes, each on a line.

    Every address or number without a space in it, with whatever directly precedes and follows it, is among them.
    """
    return "\n".join(piece for piece in text.split() if not (piece.isidentifier() and piece.isascii()))


_EXTRACTORS: dict[str, Callable[[_Text], Iterable[Any]]] = {
    "mail": lambda text: (mail.lower().rstrip(".") for mail in _find_all(MAIL, text.marked)),
    "url": lambda text: (url for address in _find_all(URL, text.marked) for url in _url_forms(address)),
    "link": lambda text: links_in(text.whole),
    "iban": lambda text: ibans(text.whole),
    "amount": lambda text: amounts(text.numeric),
    "account": lambda text: account_numbers(text.whole),
    "number": lambda text: numbers(text.numeric),
    "quantity": lambda text: quantities(text.numeric),
    "date": lambda text: dates(text.whole),
    "time": lambda text: times(text.whole),
}
