"""The language of the command line. The English texts are in the code; `zh.json` has the Chinese text for each of them.

Help, errors and overviews follow `TAOLOOP_LANG` or the locale. What shows a run is Chinese for a run in Chinese, too.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TextIO, TypeVar

from taoloop.core.text import Language

LANGUAGE_VARIABLE = "TAOLOOP_LANG"
_VARIABLES = (LANGUAGE_VARIABLE, "LC_ALL", "LC_MESSAGES", "LANG")
_CATALOG = Path(__file__).with_name("zh.json")

Texts = TypeVar("Texts", str, Mapping[str, str], tuple[str, ...])


_FOR_PROGRAMS = ContextVar("taoloop_cli_for_programs", default=False)


@contextmanager
def stable_texts(as_json: bool) -> Iterator[None]:
    """Texts in English meanwhile, if they are for programs: machine output does not follow the locale."""
    token = _FOR_PROGRAMS.set(as_json)
    try:
        yield
    finally:
        _FOR_PROGRAMS.reset(token)


def interface_language() -> Language:
    """The language of help, errors and overviews: Chinese where the first variable that is set begins with `zh`.

    English otherwise, and where a standard stream cannot show Chinese.
    """
    if _FOR_PROGRAMS.get():
        return "en"
    setting = next((value for name in _VARIABLES if (value := os.environ.get(name, "").strip())), "")
    is_chinese = setting.lower().startswith("zh") and all(map(_shows_chinese, (sys.stdout, sys.stderr)))
    return "zh" if is_chinese else "en"


def view_language(run_language: str, stream: TextIO) -> Language:
    """The language that shows a run on `stream`: Chinese if the run's or the interface's is, and it can be shown."""
    is_chinese = "zh" in (run_language, interface_language()) and _shows_chinese(stream)
    return "zh" if is_chinese else "en"


def translate(text: str, language: str | None = None, /, **values: object) -> str:
    """The text in `language` (None: that of the interface), with its values filled in as by `str.format`.

    A text `one|many` is a singular and a plural; the value `n` chooses. A text without a translation is
    given as it is; the tests see to it that the command line has none.
    """
    if (language or interface_language()) == "zh":
        text = _chinese_texts().get(text, text)
    if "n" in values:
        singular, _, plural = text.partition("|")
        text = plural if plural and values["n"] != 1 else singular
    return text.format(**values) if values else text


def mark(texts: Texts) -> Texts:
    """The texts as they are. It marks them for the tests: `translate` gets them later, from a variable."""
    return texts


def join_sentences(*sentences: str) -> str:
    """Sentences on one line: with a space between them, but for none after Chinese punctuation."""
    return re.sub(r"(?<=[。！？：；]) ", "", " ".join(" ".join(sentences).split()))


@cache
def _chinese_texts() -> dict[str, str]:
    texts: dict[str, str] = json.loads(_CATALOG.read_text(encoding="utf-8"))
    return texts


def stream_encoding(stream: TextIO) -> str:
    """The encoding of a stream, also while rich wraps it to keep a live view in order."""
    encoding: str | None = getattr(stream, "rich_proxied_file", stream).encoding
    return encoding or "utf-8"


def _shows_chinese(stream: TextIO) -> bool:
    try:
        "任务".encode(stream_encoding(stream))
    except UnicodeEncodeError:
        return False
    return True
