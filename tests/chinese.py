"""The Chinese texts of a catalogue, and what a Chinese run may not show to its model."""

from __future__ import annotations

import re

from taoloop.core.text import TextCatalog, chinese_texts

_ENGLISH_SENTENCE = re.compile(r"(?:[A-Za-z]+ ){3,}[A-Za-z]+")
_CODE = re.compile(r"sort names\.txt \| uniq -c|[\w()+*/.-]+ [|*/+-] [\w()+*/. -]+|x \*\* 0\.5|apt install bubblewrap")


def english_in(text: str) -> str:
    """The first four English words in a row that are not code; empty if there are none."""
    match = _ENGLISH_SENTENCE.search(_CODE.sub("", text))
    return match[0] if match else ""


def chinese_of(catalog: TextCatalog) -> dict[str, str]:
    """The Chinese texts of a catalogue by name; a KeyError where there is none."""
    return {name: chinese_texts(catalog.package)[text] for name, text in catalog.english.items()}
