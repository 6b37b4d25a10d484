"""How answers are compared as texts, as numbers and as data. Pure.

EM and F1 are those of HotpotQA (Yang et al. 2018, `hotpot_evaluate_v1.py`), by which ReAct (Yao et al. 2023) is scored,
too: case, punctuation, articles and spaces do not count. Chinese is scored as in CMRC 2018 (Cui et al. 2019): its
punctuation does not count either, and each Chinese character is a word.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from taoloop.core.decision import citation_marks
from taoloop.core.text import lazy_pattern

_ARTICLES = lazy_pattern(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)
_CHINESE_PUNCTUATION = _PUNCTUATION | frozenset("，。、：；？！…—～·“”‘’「」『』《》〈〉【】（）［］｛｝％＂＇．")
_CHINESE_CHARACTER = lazy_pattern("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})
_NUMBER = lazy_pattern(r"(?<![\w.])[-+−]?(?:\d{1,3}(?:[,，]\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])")
_BASIS = lazy_pattern(r"\s*\(\w+\(.*\)\)\s*\Z", re.DOTALL)
"""What the offline model rests an answer on: `(calculator(expression="17 * 23"))`."""
_PATH = lazy_pattern(r"""\.(?P<name>[^.\[\]]+)|\[(?P<index>-?\d+)\]|\[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]""")
_FENCE = lazy_pattern(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)


def plain_answer(answer: str) -> str:
    """An answer without its citations, and with single spaces."""
    pieces, end = [], 0
    for citation in citation_marks(answer):
        pieces.append(answer[end : citation.start])
        end = citation.end
    text = "".join((*pieces, answer[end:]))
    return " ".join(_BASIS.sub("", text).split())


def normalise_for_scoring(text: str) -> str:
    """Lower case, without punctuation, then without the articles a, an and the, and with single spaces.

    Around each Chinese character is a space. A text without any is normalised as the papers do it.
    """
    punctuation = _CHINESE_PUNCTUATION if _CHINESE_CHARACTER.search(text) else _PUNCTUATION
    unpunctuated = "".join(char for char in text.lower() if char not in punctuation)
    unpunctuated = _CHINESE_CHARACTER.sub(r" \g<0> ", unpunctuated)
    return " ".join(_ARTICLES.sub(" ", unpunctuated).split())


def exact_match(answer: str, expected: str) -> bool:
    """EM: whether both are the same once they are normalised."""
    return normalise_for_scoring(answer) == normalise_for_scoring(expected)


def f1_score(answer: str, expected: str) -> float:
    """F1 of the words that both have, counted as often as in both: 2 x precision x recall / (precision + recall).

    A yes, no or `noanswer` is never half right.
    """
    normal_answer, normal_expected = normalise_for_scoring(answer), normalise_for_scoring(expected)
    if normal_answer != normal_expected and _CLOSED_ANSWERS & {normal_answer, normal_expected}:
        return 0.0
    words, expected_words = normal_answer.split(), normal_expected.split()
    same = sum((Counter(words) & Counter(expected_words)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(words), same / len(expected_words)
    return 2 * precision * recall / (precision + recall)


def last_number(answer: str) -> float | None:
    """The last number of an answer, which is what it comes to; None if it has none. Commas of thousands do not count.

    As math benchmarks take it (GSM8K, Cobbe et al. 2021).
    """
    matches = _NUMBER.findall(answer)
    return float(matches[-1].replace(",", "").replace("，", "").replace("−", "-")) if matches else None


def json_in(answer: str) -> Any:
    """The JSON value that an answer is, or that it has in a fenced block.

    Raises:
        ValueError: it has none.
    """
    try:
        return json.loads(answer)
    except ValueError:
        if (match := _FENCE.search(answer)) is None:
            raise
        return json.loads(match[1])


def path_steps(path: str) -> tuple[str | int, ...] | None:
    """The steps of a JSON path: `$.orders[0].id` or `$["order id"]`; None if it is none that is supported here."""
    if not path.startswith("$"):
        return None
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        match = _PATH.match(path, position)
        if match is None:
            return None
        position = match.end()
        steps.append(int(match["index"]) if match["index"] else match["name"] or match["key"])
    return tuple(steps)


def value_at(value: Any, steps: tuple[str | int, ...]) -> Any:
    """What is at a path of JSON data.

    Raises:
        LookupError: nothing is there.
    """
    for step in steps:
        is_found = isinstance(value, list) if isinstance(step, int) else isinstance(value, dict)
        if not is_found:
            raise LookupError(step)
        value = value[step]
    return value


def state_differences(expected: Any, actual: Any, path: str = "") -> Iterator[tuple[str, Any] | tuple[str]]:
    """Where a state is not as expected: the path and what is there, or the path alone where nothing is.

    Mappings may have more than is expected, anything else must be equal.
    """
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping):
            yield path or ".", actual
            return
        for name, part in expected.items():
            inner = f"{path}.{name}" if path else str(name)
            if name in actual:
                yield from state_differences(part, actual[name], inner)
            else:
                yield (inner,)
    elif isinstance(expected, bool) or isinstance(actual, bool):
        if expected is not actual:
            yield path or ".", actual
    elif expected != actual:
        yield path or ".", actual
