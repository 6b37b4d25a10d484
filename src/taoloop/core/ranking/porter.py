"""The stemmer of Porter (1980) with the results of SQLite's: `recorded` and `recording` are `record`. Pure."""

from __future__ import annotations

from functools import lru_cache
from string import ascii_lowercase

_MAX_CHARS = 40  # a longer "word" is an identifier or data

_STEP_2 = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble")),
    *(("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate")),
    *(("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous")),
    *(("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"), ("logi", "log")),
)
_STEP_3 = (
    *(("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")),
)
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion", "ou", "ism"),
    *("ate", "iti", "ous", "ive", "ize"),
)
_STEP_2_SUFFIXES, _STEP_3_SUFFIXES = (tuple(suffix for suffix, _ in step) for step in (_STEP_2, _STEP_3))
_SHAPES = str.maketrans({letter: "v" if letter in "aeiou" else "c" for letter in ascii_lowercase})


@lru_cache(maxsize=50_000)
def porter_stem(word: str) -> str:
    """The stem of an English word in lower case; anything else is returned as it is."""
    if not 3 <= len(word) <= _MAX_CHARS or not (word.isascii() and word.isalpha()):
        return word
    word = _without_inflection(_without_plural(word))
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replace_suffix(word, _STEP_2, _STEP_2_SUFFIXES)
    word = _replace_suffix(word, _STEP_3, _STEP_3_SUFFIXES)
    word = _without_suffix(word)
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_inflection(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    ending = next((ending for ending in ("ed", "ing") if word.endswith(ending)), "")
    root = word.removesuffix(ending)
    if not ending or not _has_vowel(root):
        return word
    if root.endswith(("at", "bl", "iz")):
        return root + "e"
    if len(root) > 1 and root[-1] == root[-2] and root[-1] not in "aeioulsz":
        return root[:-1]
    return root + "e" if _measure(root) == 1 and _ends_short(root) else root


def _replace_suffix(word: str, replacements: tuple[tuple[str, str], ...], suffixes: tuple[str, ...]) -> str:
    for suffix, replacement in replacements if word.endswith(suffixes) else ():
        if word.endswith(suffix):
            root = word[: -len(suffix)]
            return root + replacement if _measure(root) > 0 else word
    return word


def _without_suffix(word: str) -> str:
    for suffix in _STEP_4 if word.endswith(_STEP_4) else ():
        if word.endswith(suffix):
            root = word[: -len(suffix)] + (suffix[0] if suffix in ("sion", "tion") else "")
            return root if _measure(root) > 1 else word
    return word


def _shape(word: str) -> str:
    """The word with `v` for each vowel and `c` for each consonant; `y` behind a consonant is a vowel."""
    if "y" not in word:
        return word.translate(_SHAPES)
    shape = ""
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if is_vowel else "c"
    return shape


def _measure(word: str) -> int:
    """How many times consonants follow vowels."""
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _ends_short(word: str) -> bool:
    """Whether it ends with consonant, vowel, consonant, the last one not w, x or y."""
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"
