"""The language of the command line. The English texts are in the code; `zh.json` has the Chinese text for each of them.

Help, errors and overviews follow `TAOLOOP_LANG` or the locale. What shows a run is Chinese for a run in Chinese, too.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from taoloop.core.text import Language
from taoloop.translation import INTERFACE_LANGUAGE, Translator, set_interface_language, translate_error

LANGUAGE_VARIABLE = "TAOLOOP_LANG"
_VARIABLES = (LANGUAGE_VARIABLE, "LC_ALL", "LC_MESSAGES", "LANG")
_translate = Translator("cli")


@contextmanager
def stable_texts(as_json: bool) -> Iterator[None]:
    """Texts in English meanwhile, if they are for programs: machine output does not follow the locale."""
    language = interface_language()
    set_interface_language("en" if as_json else language)
    try:
        yield
    finally:
        set_interface_language(language)


def interface_language() -> Language:
    """The language of help, errors and overviews: the one that was chosen for the command.

    Before that, it is Chinese where the first variable that is set begins with `zh`, and English otherwise and where
    a standard stream cannot show Chinese.
    """
    if chosen := INTERFACE_LANGUAGE.get():
        return "zh" if chosen == "zh" else "en"
    setting = next((value for name in _VARIABLES if (value := os.environ.get(name, "").strip())), "")
    is_chinese = setting.lower().startswith("zh") and all(map(_shows_chinese, (sys.stdout, sys.stderr)))
    return "zh" if is_chinese else "en"


def view_language(run_language: str, stream: TextIO) -> Language:
    """The language that shows a run on `stream`: Chinese if the run's or the interface's is, and it can be shown."""
    is_chinese = "zh" in (run_language, interface_language()) and _shows_chinese(stream)
    return "zh" if is_chinese else "en"


def translate(text: str, language: str | None = None, /, **values: object) -> str:
    """The text in `language` (None: that of the interface), with its values filled in: see `Translator`."""
    return _translate(text, language or interface_language(), **values)


def join_on_one_line(*sentences: str) -> str:
    """Sentences on one line: with a space between them, but for none after Chinese punctuation."""
    return re.sub(r"(?<=[。！？：；）]) ", "", " ".join(" ".join(sentences).split()))


def translate_warnings() -> None:
    """Let warnings that nothing else takes, which Python writes to standard error, be in the language of a command."""
    import logging  # noqa: PLC0415  # 3 ms that a command in English does not need

    class Formatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return translate_error(super().format(record))

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Formatter())


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
