"""The words by which texts are found: for FTS5, with Chinese, Japanese and Korean as pairs of characters.

FTS5's own tokenizer takes a run of Chinese characters for one word. So a text is indexed by words of ours: words
between spaces as they are (stemmed by FTS5), and of each run of CJK characters every single one and every pair.
"""

from __future__ import annotations

import re
import unicodedata

from taoloop.core.words import CJK, cjk_pairs

TOKENIZER = "porter unicode61 remove_diacritics 2"
"""What FTS5 does with these words: without accents and English endings."""

_MOST_WORDS = 200  # of a query: enough for any question, and a bound for the search

_MARKS = "\u0300-\u036f"  # accents that belong to no character of their own, which FTS5 takes off
_UNSEEN = re.compile("[\u00ad\u2060\ufeff]")  # soft hyphens and their like, which may stand in the middle of a word
_PIECE = re.compile(rf"(?P<cjk>[{CJK}]+)|(?P<word>(?:[^\W{CJK}_]|[{_MARKS}])+)")


def index_terms(text: str) -> list[str]:
    """The words by which a text is found: words as they are; of CJK every character and every pair of neighbours."""
    words: list[str] = []
    for piece in _PIECE.finditer(_folded(text)):
        if run := piece["cjk"]:
            words += [*run, *cjk_pairs(run)]
        else:
            words.append(piece["word"])
    return words


def query_terms(text: str) -> list[str]:
    """The words to look for, each once: like `index_words`, but single CJK characters only where they stand alone."""
    words: dict[str, None] = {}
    for piece in _PIECE.finditer(_folded(text)):
        run = piece["cjk"]
        words |= dict.fromkeys([piece["word"]] if not run else cjk_pairs(run) or [run])
    return list(words)[:_MOST_WORDS]


def _folded(text: str) -> str:
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).casefold()
