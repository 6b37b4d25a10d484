"""The words of a text: of names in camel case, of English without its endings, of Chinese as pairs of characters. Pure.

English endings are taken off by a lexicon: only what is known (or becomes known with its `e` or `y` put back) is a
stem. Without a lexicon only a plural is taken off, because any other ending may belong to the word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

from taoloop.core.text import lazy_pattern

CJK = "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""The characters of Chinese, Japanese and Korean, which are written without spaces, as a class of expressions."""

ENDINGS = ("ing", "ed", "es", "s")
"""The English endings that are taken off, in the order in which they are tried."""

_NAME_PART = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_CAMEL_CASE = lazy_pattern(r"[A-Za-z0-9]*(?:[a-z][A-Z]|[A-Z]{2}[a-z]{2})[A-Za-z0-9]*")
_MIN_STEM_CHARS = 3
_IRREGULAR = {
    "sent": "send",
    "paid": "pay",
    "wrote": "write",
    "written": "write",
    "bought": "buy",
    "made": "make",
    "gave": "give",
    "given": "give",
    "told": "tell",
    "kept": "keep",
    "ran": "run",
}


def name_words(name: str) -> list[str]:
    """The words and numbers of an identifier or an ASCII text, in lower case: `getOrder_v2` is get, order, v, 2."""
    return [word.lower() for word in _NAME_PART.findall(name)]


def name_parts(text: str) -> list[str]:
    """The words of the names in camel case in a text: of `getOrder` get and order."""
    return [word for name in _CAMEL_CASE.findall(text) for word in name_words(name)]


def cjk_pairs(run: str) -> list[str]:
    """Every two neighbours in a run of CJK characters, in place of its words, which nothing separates."""
    return [run[index : index + 2] for index in range(len(run) - 1)]


def stem(word: str, known: Collection[str] = (), endings: tuple[str, ...] = ENDINGS) -> str:
    """The word without the ending of a plural, a past or a gerund; good enough to compare words."""
    return split_ending(word, known, endings)[0]


def split_ending(word: str, known: Collection[str] = (), endings: tuple[str, ...] = ENDINGS) -> tuple[str, str]:
    """The stem, and which ending was taken from it: `ing`, `ed` (a past), `s` or none.

    `word` is in lower case; `known` are the words that count as stems, `endings` those that may be taken off.
    """
    if not known:
        return _split_plural(word)
    word = word.removesuffix("'s")
    if "ed" in endings and (root := _IRREGULAR.get(word)) is not None:
        return root, "ed"
    if word in known:
        return word, ""
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM_CHARS:
            short = word[: -len(ending)]
            if ending in ("ing", "ed") and len(short) > 3 and short[-1] == short[-2] and short[-1] not in "lse":
                short = short[:-1]
            single = short[:-1] if short[-2:-1] == short[-1:] else short  # cancelled
            restored = short[:-1] + "y" if short.endswith("i") else short
            stems = (short, short + "e", restored, single)
            whole = next((candidate for candidate in stems if candidate in known), short)
            return whole, "s" if ending == "es" else ending
    return word, ""


def _split_plural(word: str) -> tuple[str, str]:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y", "s"
    if word.endswith("s") and not word.endswith("ss") and len(word) > _MIN_STEM_CHARS:
        return word[:-1], "s"
    return word, ""


TOKENIZER = "porter unicode61 remove_diacritics 2"
"""What FTS5 does with these words: without accents and English endings."""

_MOST_WORDS = 200  # of a query: enough for any question, and a bound for the search

_MARKS = "\u0300-\u036f"  # accents that belong to no character of their own, which FTS5 takes off
_UNSEEN = lazy_pattern("[\u00ad\u2060\ufeff]")  # soft hyphens and their like, which may be in the middle of a word
_PIECE = lazy_pattern(rf"(?P<cjk>[{CJK}]+)|(?P<word>(?:[^\W{CJK}_]|[{_MARKS}])+)")


def index_terms(text: str) -> list[str]:
    """The words by which a text is found: words as they are; of CJK every character and every pair of neighbours."""
    words: list[str] = []
    for piece in _PIECE.finditer(fold_text(text)):
        if run := piece["cjk"]:
            words += [*run, *cjk_pairs(run)]
        else:
            words.append(piece["word"])
    return words


def query_terms(text: str) -> list[str]:
    """The words to look for, each once: like `index_terms`, but single CJK characters only where they are alone."""
    words: dict[str, None] = {}
    for piece in _PIECE.finditer(fold_text(text)):
        run = piece["cjk"]
        words |= dict.fromkeys([piece["word"]] if not run else cjk_pairs(run) or [run])
    return list(words)[:_MOST_WORDS]


def fold_text(text: str) -> str:
    """A text as its words are compared: without differences of case and width, and without what nobody sees."""
    return clean_text(text).casefold()


def clean_text(text: str) -> str:
    """A text without differences of width, and without what nobody sees."""
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", text))
