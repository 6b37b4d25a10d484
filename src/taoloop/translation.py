"""Chinese texts for people: the English texts are in the code of a package, its `zh.json` translates each of them.

The command line, the files of the configuration, the journals and the models have such a file: most of their texts
are errors, which are read best where they are raised. `tests/test_translation.py` checks that no translation is
missing, and that none is left over. Texts that a run stores have a `TextCatalog` of their package instead; those of the
tools and of the runtime take their Chinese from such a file, too.

The other errors are raised in English, and translated when a command or a run in Chinese reports them: the `zh.json`
beside this module has the pattern of each of their texts (`translate_error`).
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import TypeVar

from taoloop.core.text import RUN_LANGUAGE, chinese_texts, join_sentences, lazy_pattern
from taoloop.errors import TaoError, UnknownName

Texts = TypeVar("Texts", str, Mapping[str, str], tuple[str, ...])

INTERFACE_LANGUAGE: ContextVar[str] = ContextVar("taoloop_interface_language", default="")
"""The language in which a command reports errors, also those of runs in another language. Empty in a program: there
they have the language of the run."""

_SPACE = lazy_pattern("(?<=[\u3000-\u9fff]) (?=[\u3000-\u9fff])")
"""A space between two Chinese characters: the text of a pattern has it around a value."""

_MOST_CHARS = 2_000
"""A longer text is not translated: it would take long, and is not one of these."""
_FEW_CHARS = 12
"""How many characters a pattern must have around its values to be told from a foreign text."""
_MOST_SENTENCES = 8
"""How many sentences or parts of one a pattern may have, but for what comes last in it."""
_SENTENCE_END = lazy_pattern("(?<=[.:;])(?= )|(?<=[。：；])")


class Translator:
    """Fills in the texts of one package, in English or in Chinese.

    Args:
        package: The folder of the package in `taoloop`, such as `config`.
    """

    def __init__(self, package: str) -> None:
        self._package = package

    def __call__(self, text: str, language: str | None = None, /, **values: object) -> str:
        """The text in `language`, with its values filled in as by `str.format`.

        The language is by default that of the command line; in a program it is that of the current run, and outside
        of a run English. A text `one|many` is a singular and a plural; the value `n` chooses. A text without a
        translation stays as it is.
        """
        if (language or error_language()) == "zh":
            text = chinese_texts(self._package).get(text, text)
        if "n" in values:
            singular, _, plural = text.partition("|")
            text = plural if plural and values["n"] != 1 else singular
        return text.format(**values) if values else text


def error_language() -> str:
    """The language in which an error is reported now."""
    return INTERFACE_LANGUAGE.get() or RUN_LANGUAGE.get()


def set_interface_language(language: str) -> None:
    """From here on, in this context, a command reports errors and whatever belongs to no run in this language."""
    INTERFACE_LANGUAGE.set(language)
    RUN_LANGUAGE.set(language)


def mark(texts: Texts) -> Texts:
    """The texts as they are. It marks them for the tests: a translator gets them later, from a variable."""
    return texts


def error_texts(error: TaoError, language: str | None = None) -> tuple[str, str]:
    """Message and hint of an error in `language`; by default in that of errors."""
    if (language or error_language()) != "zh" or not isinstance(error, UnknownName):
        return translate_error(error.message, language), translate_error(error.hint, language)
    listed = f"可用的有：{'、'.join(error.known)}。" if error.known else ""
    hint = error.hint.removeprefix(f"Known: {', '.join(error.known)}.").strip() if error.known else error.hint
    message = f"没有名为 {error.name!r} 的{chinese_texts('core').get(error.what, error.what)}。"
    return message, join_sentences(listed, translate_error(hint, "zh"))


def translate_error(text: str, language: str | None = None) -> str:
    """A text of an error (a message, a hint, both of them, or a part) in `language`; by default that of errors.

    In Chinese it is the translation of the pattern that it fills in, with the values of the text, which may be such
    texts themselves. A text without a pattern is split after its first sentence or colon, for errors begin with the
    place that they are about. What has no pattern stays as it is, and so does a long text: it is somebody else's.
    """
    if (language or error_language()) != "zh" or len(text) > _MOST_CHARS:
        return text
    return _translate_sentences(text, is_value=False)


def _translate_sentences(text: str, *, is_value: bool) -> str:
    sentences, rest = [], text
    while rest:
        ends = [*(match.end() for match in islice(_SENTENCE_END.finditer(rest), _MOST_SENTENCES)), len(rest)]
        for end in ends:
            if chinese := _fill_in_chinese(rest[:end], is_whole=end == len(rest), is_value=is_value):
                break
        else:
            end = ends[0]
            chinese = rest[:end]
        sentences.append(chinese)
        rest = rest[end:].removeprefix(" ")
    return join_sentences(*sentences)


def _fill_in_chinese(text: str, *, is_whole: bool, is_value: bool) -> str | None:
    """The translation of the pattern that `text` fills in; a pattern that ends in a value takes all there is.

    A pattern of few letters, such as `line {0}`, fits many a foreign text. So it counts only within a text that fills
    in another one, and each of its own values must be a single word.
    """
    for parts, chinese in _error_patterns():
        if not (text.startswith(parts[0]) and text.endswith(parts[-1]) and (parts[-1] or is_whole)):
            continue  # as for nearly all patterns
        holes = ["(.*?)"] * (len(parts) - 1)
        if holes and not parts[0]:
            holes[0] = r"((?:(?![.:;] ).)*?)"  # a value that begins the text is no sentence and no place
        pattern = "".join(re.escape(part) + hole for part, hole in zip(parts, [*holes, ""], strict=True))
        is_own = parts[0].endswith(": " if holes else ".")  # a label, such as "Known: ", or the whole sentence
        is_short = sum(map(len, parts)) < _FEW_CHARS and not is_own
        if is_short and not is_value:
            continue
        if all(part in text for part in parts) and (match := re.fullmatch(pattern, text, re.DOTALL)):
            if is_short and any(" " in value for value in match.groups()):
                continue
            values = (_translate_sentences(value, is_value=True) for value in match.groups())
            return _SPACE.sub("", chinese.format(*values))
    sentence = text[:-1]
    if text.endswith(".") and sentence and not sentence.endswith("."):
        reason = _fill_in_chinese(sentence[0].lower() + sentence[1:], is_whole=is_whole, is_value=is_value)
        return reason and f"{reason}。"  # a reason, as a sentence
    return None


@cache
def _error_patterns() -> list[tuple[list[str], str]]:
    """The texts around the values of each pattern, and its translation; the longest (most specific) first."""
    patterns = []
    for english, chinese in chinese_texts("").items():
        parts = [""]
        for text, field, *_ in string.Formatter().parse(english):
            parts[-1] += text
            if field is not None:
                parts.append("")
        patterns.append((parts, chinese))
    return sorted(patterns, key=lambda pattern: -sum(map(len, pattern[0])))
