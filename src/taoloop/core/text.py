"""Small helpers on text: patterns, its length in tokens, its language, and texts for people in English and Chinese."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from bisect import bisect_right
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

E = TypeVar("E", bound=Exception)

Language = Literal["en", "zh"]
"""The languages of prompts and of texts for people: English and Simplified Chinese."""


class _Pattern:
    """A lazy pattern once it was used: its attributes are those of the compiled pattern."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self._flags = pattern, flags


class _LazyPattern(_Pattern):
    """A regular expression that is compiled when one of its methods is first used."""

    def __getattr__(self, name: str) -> Any:
        """The method of the compiled pattern; later uses no longer come here, which would cost as much as a search."""
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        self.__dict__ |= {own: getattr(compiled, own) for own in dir(compiled) if not own.startswith("__")}
        self.__class__ = _Pattern  # type: ignore[assignment]  # of the same layout, and without `__getattr__`
        return getattr(compiled, name)


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, but at the first use: an import of taoloop would else spend most of its time on patterns.

    `benchmarks/weight.py` measures the import.
    """
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


MESSAGE_TOKENS = 4
"""What a chat template adds around one message, about."""


def estimate_tokens(text: str) -> int:
    """About 4 ASCII characters, or 3 bytes of any other script (one Chinese character), to a token."""
    if text.isascii():
        return math.ceil(len(text) / 4)
    plain = len(text.encode("ascii", "ignore"))
    other = len(text.encode("utf-8", "surrogatepass")) - plain
    return math.ceil(plain / 4 + other / 3)


def truncate_to_tokens(text: str, most: int) -> str:
    """The beginning of a text, at most this many tokens long; all of it if it is short enough."""
    if estimate_tokens(text) <= most:
        return text
    return text[: bisect_right(range(1, len(text)), most, key=lambda length: estimate_tokens(text[:length]))]


_SURROGATES = lazy_pattern("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """`text` without lone surrogates, which cannot be written as UTF-8: each becomes U+FFFD."""
    if text.isascii() or not _SURROGATES.search(text):
        return text
    return _SURROGATES.sub("\ufffd", text)


_HAN = lazy_pattern("[\u3400-\u9fff]")
_OTHER_EAST_ASIAN = lazy_pattern("[\u3040-\u30ff\uac00-\ud7af]")  # kana and hangul: Japanese and Korean use Han, too
_LATIN_WORD = lazy_pattern(r"(?<![\w./:-])[A-Za-z]{2,}(?![\w./:-]*\w)")  # no file name, address or identifier
_CHINESE_FUNCTION_WORD = lazy_pattern("[的了在是把用和请吗呢几哪谁将给从被让对先再]|什么|多少|怎么")
_ENGLISH_FUNCTION_WORD = lazy_pattern(
    r"\b(?:the|an?|to|of|in|on|is|are|was|and|or|what|which|who|how|when|where|for|with|about|from|please|my|does|do)\b",
    re.IGNORECASE,
)


def language_of(text: str) -> Language:
    """Chinese if `text` is written in Chinese, else English.

    A Han character alone does not make a text Chinese: Japanese has them beside kana, and an English sentence may name
    a person or quote a word. In a mixed text the function words decide, and then how much there is of each script.
    """
    han = len(_HAN.findall(text))
    if not han or _OTHER_EAST_ASIAN.search(text):
        return "en"
    words = len(_LATIN_WORD.findall(text))
    if _ENGLISH_FUNCTION_WORD.search(text):
        return "zh" if han >= 3 * words else "en"
    return "zh" if han >= 2 * words or _CHINESE_FUNCTION_WORD.search(text) else "en"


def printable_json(value: object) -> str:
    """A value as JSON on one line; in ASCII if it holds a character that is invisible or changes the direction."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if text.isprintable() else json.dumps(value, default=str)


def blank_unprintable(text: str) -> str:
    """The text with a blank in place of every character that is not printable, such as the end of a line."""
    return "".join(char if char.isprintable() else " " for char in text)


def join_sentences(*sentences: str) -> str:
    """The sentences that are not empty as one text: with a space between them, but none after Chinese punctuation."""
    text = ""
    for sentence in filter(None, sentences):
        text += sentence if not text or text.endswith(("。", "！", "？", "：", "；")) else f" {sentence}"
    return text


RUN_LANGUAGE: ContextVar[str] = ContextVar("taoloop_run_language", default="en")
"""The language of the run that the current code works for. The runner sets it, so tools and their threads have it:
`TEXTS.run_text("no_such_file", path=...)`. Outside a run it is English."""


@cache
def chinese_texts(package: str) -> Mapping[str, str]:
    """The translations of a package, by their English texts: its `zh.json`.

    Args:
        package: The folder of the package in `taoloop`, such as `config`.
    """
    from pkgutil import get_data  # noqa: PLC0415  # 5 ms that only texts in Chinese need

    texts: dict[str, str] = json.loads(get_data("taoloop", f"{package}/zh.json") or b"{}")
    return texts


class TextCatalog:
    """The texts of one package in every language, by name: `TEXTS.text("zh", "waiting", detail=...)`.

    The English texts are in the code; `zh.json` has the Chinese text for each of them. It is read when a Chinese text
    is first needed. `tests/test_translation.py` checks that no translation is missing or left over.

    Args:
        package: The folder of the package in `taoloop`, such as `tools`.
        english: The English texts by name. Values are filled in as by `str.format`.
    """

    def __init__(self, package: str, english: Mapping[str, str]) -> None:
        self.package, self.english = package, english

    def __contains__(self, name: object) -> bool:
        """Whether there is a text of this name."""
        return name in self.english

    def text(self, language: str, name: str, /, **values: object) -> str:
        """The text called `name` with its values filled in; in English where the language is not known."""
        text = self.english[name]
        if language == "zh":
            text = chinese_texts(self.package).get(text, text)
        return text.format(**values)

    def run_text(self, name: str, /, **values: object) -> str:
        """The text called `name` in the language of the current run."""
        return self.text(RUN_LANGUAGE.get(), name, **values)

    def run_error(
        self, kind: Callable[..., E], name: str, values: Mapping[str, object] | None = None, /, **attributes: object
    ) -> E:
        """An error whose message is the text called `name`, in the language of the current run.

        Its hint is the text `NAME_hint`, if there is one and `attributes` have no `hint`.
        """
        if f"{name}_hint" in self:
            attributes.setdefault("hint", self.run_text(f"{name}_hint", **(values or {})))
        return kind(self.run_text(name, **(values or {})), **attributes)


def is_number(value: object, *, infinite: bool = False) -> TypeGuard[float]:
    """Whether a value is a number and no truth value. `infinite`: it may be infinite, or NaN."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and (infinite or math.isfinite(cast("float", value)))


def escape_invisible(text: str) -> str:
    r"""`text` with every character that would not show as itself written out (`\x1b`), but for newlines."""
    if text.isprintable():
        return text
    return "".join(
        char if char == "\n" or unicodedata.category(char) not in _HIDDEN else _written(char) for char in text
    )


def _written(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))

_FIELD_TEXTS = TextCatalog(
    "core",
    {
        "agent": "An agent's {name} is {value!r}.",
        "limit": "The limit {name} is {value!r}.",
        "setting": "{owner}: {name} is {value!r}.",
        "policy": "The policy has {name} = {value!r}.",
        "rule": "The rule has {name} = {value!r}.",
        "named rule": "The rule {owner!r} has {name} = {value!r}.",
        "must be": "It must be {expected}.",
    },
)


def field_error(kind: Callable[..., E], text: str, expected: str, /, **values: object) -> E:
    """The error that a field has a value that it cannot have, in the language of the current run.

    Args:
        kind: The class of the error.
        text: Which text names the field: `agent`, `limit`, `setting`, `policy`, `rule` or `named rule`.
        expected: What the value must be, in English.
        values: What the text is filled in with: `name` and `value`, and for some `owner`.
    """
    language = RUN_LANGUAGE.get()
    must_be = chinese_texts("core").get(expected, expected) if language == "zh" else expected
    return kind(
        _FIELD_TEXTS.text(language, text, **values), hint=_FIELD_TEXTS.text(language, "must be", expected=must_be)
    )
