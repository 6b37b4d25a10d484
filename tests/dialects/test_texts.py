"""The catalogue: both languages fill in the same values, and Chinese texts have Chinese punctuation."""

from __future__ import annotations

import re
from string import Formatter

from tests.chinese import chinese_of

from taoloop.dialects.texts import TEXTS

ENGLISH, CHINESE = TEXTS.english, chinese_of(TEXTS)


def values_of(text: str) -> set[str]:
    return {field for _, field, _, _ in Formatter().parse(text) if field}


def test_a_chinese_text_fills_in_no_value_that_the_english_one_lacks() -> None:
    more = {name: values_of(text) - values_of(ENGLISH[name]) for name, text in CHINESE.items()}
    assert {name: values for name, values in more.items() if values} == {}


def test_only_the_words_of_the_json_library_are_left_out_in_chinese() -> None:
    shorter = {name: values_of(text) - values_of(CHINESE[name]) for name, text in ENGLISH.items()}
    assert {name: values for name, values in shorter.items() if values} == {"json_syntax": {"error"}}


def test_chinese_texts_have_full_width_punctuation() -> None:
    templates = {name: re.sub(r"\{[^}]*\}", "", text) for name, text in CHINESE.items()}
    assert {name: text for name, text in templates.items() if re.search(r"[,;:!?()]", text)} == {}
