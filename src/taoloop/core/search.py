"""Finding things in data and text: near names, JSON pointers, matches in a text. Pure and bounded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

_MAX_NAME_CHARS = 100  # a longer "name" is a text; comparing it with every known name would cost time for nothing
_MAX_KNOWN_NAMES = 2_000


class PointerError(LookupError):
    """A JSON pointer leads nowhere; the message says where it breaks off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMatch:
    """One place where a text was found."""

    start: int
    """The position of its first character."""
    context: str
    """The text around it, on one line."""


def suggest_names(approximate: str, known: Iterable[str], *, at_most: int = 5) -> tuple[str, ...]:
    """The known names that a misspelt name may mean, the likeliest first; at most 2,000 are compared."""
    if not approximate or len(approximate) > _MAX_NAME_CHARS:
        return ()
    known_names = {name.casefold(): name for name in reversed(tuple(islice(known, _MAX_KNOWN_NAMES)))}
    folded = approximate.casefold()
    if folded in known_names:
        return (known_names[folded],)
    import difflib  # noqa: PLC0415  # few names are misspelt

    close_names = difflib.get_close_matches(folded, list(known_names), n=at_most, cutoff=0.6)
    suggestions = dict.fromkeys(known_names[close] for close in close_names)
    if len(folded) > 1:
        suggestions.update(dict.fromkeys(name for key, name in sorted(known_names.items()) if folded in key))
    return tuple(islice(suggestions, at_most))


def resolve_json_pointer(document: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901) such as `/items/3/name`; the empty one is the whole document.

    Raises:
        PointerError: it does not begin with `/`, or something on the way does not exist.
    """
    if not pointer:
        return document
    if not pointer.startswith("/"):
        raise PointerError(f"A pointer begins with '/', such as '/items/0/name', not {pointer[:80]!r}.")
    value = document
    walked = ""
    for step in pointer[1:].split("/"):
        value = _step(value, step.replace("~1", "/").replace("~0", "~"), walked or "the top")
        walked += f"/{step}"
    return value


def _step(value: Any, name: str, where: str) -> Any:
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
        near = suggest_names(name, (str(key) for key in value)) or tuple(str(key) for key in islice(value, 5))
        raise PointerError(f"At {where} there is no {name[:80]!r}; there is {', '.join(map(repr, near)) or 'nothing'}.")
    if isinstance(value, Sequence) and not isinstance(value, str):
        if re.fullmatch(r"0|[1-9][0-9]{0,9}", name) and int(name) < len(value):
            return value[int(name)]
        raise PointerError(f"At {where} there is a list of {len(value):,} items; {name[:80]!r} is not one of them.")
    raise PointerError(f"At {where} there is a plain value; {name[:80]!r} cannot be looked up in it.")


def find_text(
    text: str, phrase: str, *, at_most: int = 10, context_chars: int = 80
) -> tuple[tuple[TextMatch, ...], int]:
    """The first matches of a plain text, in any case, with the text around each, and the number of all matches."""
    if not phrase:
        return (), 0
    matches: list[TextMatch] = []
    count = 0
    for match in re.finditer(re.escape(phrase), text, re.IGNORECASE):
        count += 1
        if len(matches) < at_most:
            start, end = max(0, match.start() - context_chars), min(len(text), match.end() + context_chars)
            before, after = "…" if start else "", "…" if end < len(text) else ""
            context = f"{before}{' '.join(text[start:end].split())}{after}"
            matches.append(TextMatch(start=match.start(), context=context))
    return tuple(matches), count
