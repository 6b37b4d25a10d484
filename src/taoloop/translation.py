"""Chinese texts for people: the English texts are in the code of a package, its `zh.json` translates each of them.

The command line, the files of the configuration, the journals and the models have such a file: most of their texts
are errors, which are read best where they are raised. `tests/test_translation.py` checks that no translation is
missing, and that none is left over. Texts that a run stores have a `TextCatalog` of their package instead; those of the
tools and of the runtime take their Chinese from such a file, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TypeVar

from taoloop.core.text import RUN_LANGUAGE, chinese_texts
from taoloop.errors import UnknownName

Texts = TypeVar("Texts", str, Mapping[str, str], tuple[str, ...])

INTERFACE_LANGUAGE: ContextVar[str] = ContextVar("taoloop_interface_language", default="")
"""The language in which a command reports errors, also those of runs in another language. Empty in a program: there
they have the language of the run."""

_KINDS = {
    "model": "模型",
    "provider": "模型提供商",
    "tool": "工具",
    "dialect": "输出方言",
    "strategy": "推理策略",
    "prompt language": "提示词语言",
}


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


def unknown_name_texts(error: UnknownName) -> tuple[str, str]:
    """Message and hint of an error in the language of errors: it has no catalogue where it is defined."""
    if error_language() != "zh":
        return error.message, error.hint
    known = f"Known: {', '.join(error.known)}."
    listed = f"可用的有：{'、'.join(error.known)}。" if error.known else ""
    hint = error.hint.removeprefix(known).strip() if error.known else error.hint
    return f"没有名为 {error.name!r} 的{_KINDS.get(error.what, error.what)}。", f"{listed} {hint}".strip()
