"""Handles: what a planning model writes for values it never sees (`$obs3.items[0].email`), and filling them in. Pure.

The idea is the dual model of Willison ("The Dual LLM pattern for building AI assistants that can resist prompt
injection", 2023), made exact by Debenedetti et al. ("Defeating Prompt Injections by Design", 2025: CaMeL): the model
that decides reads no untrusted text, it only says which value goes where.

`$obs3` is what came back for `call_3`. A path leads into JSON: `.name`, `["any name"]`, `[0]`, and `[*]` for each item
of a list. A text that consists of one handle means the value itself, with its type; within a longer text a value is
written as text, and braces (`${obs3.name}`) mark the end of the handle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from taoloop.core.text import lazy_pattern

MAX_FILLED_CHARS = 1_000_000
"""How long all texts of one call or answer may become together by what is filled in."""

_FULL_PATH = r"(?:\.[^\W\d][\w-]*|\[(?:\d{1,6}|\*)\]|\[\"(?:[^\"\\\n]|\\.)*\"\])*+"
_BARE_PATH = r"(?:\.[A-Za-z_][A-Za-z0-9_]*+|\[(?:\d{1,6}|\*)\])*+"
_WHOLE_HANDLE = lazy_pattern(rf"\$obs(\d{{1,6}})({_FULL_PATH})|\$\{{obs(\d{{1,6}})({_FULL_PATH})\}}")
_HANDLE_IN_TEXT = lazy_pattern(
    rf"\$\{{obs(\d{{1,6}})({_FULL_PATH})\}}"
    rf"|\$obs(\d{{1,6}}+)({_BARE_PATH})(?![\[A-Za-z0-9_]|\.[^\W\d])"
    r"|(\$\{?obs\d[^\s}]{0,60}\}?)"  # neither of the two, but meant as a handle
)
_HANDLE_START = lazy_pattern(r"\$\{?obs(\d{1,6})")
_STEP = lazy_pattern(r"\.([^\W\d][\w-]*)|\[(\d{1,6}|\*)\]|\[(\"(?:[^\"\\\n]|\\.)*\")\]")

Find = Callable[[int], Any]
"""Returns the whole value of an observation by its number; raises LookupError if there is none."""


class BadHandleError(ValueError):
    """A handle names nothing. `handle` is as the model wrote it; it never contains a value of an observation."""

    def __init__(self, handle: str) -> None:
        self.handle = handle
        super().__init__(handle)


class TooLongError(ValueError):
    """The text to be filled in is longer than `MAX_FILLED_CHARS`."""


def handle_of(call_id: str) -> str:
    """The handle of what came back for a call: `$obs3` for `call_3`."""
    return f"$obs{call_id.removeprefix('call_')}"


def contains_handle(value: Any) -> bool:
    """Whether any text of a value contains a handle, or what was meant as one."""
    return any(_HANDLE_START.search(text) is not None for text in _texts(value))


def is_handle(text: str) -> bool:
    """Whether a text is one handle and nothing else."""
    return _WHOLE_HANDLE.fullmatch(text.strip()) is not None


def numbers_in(value: Any) -> set[int]:
    """The numbers of the observations that the handles in a value refer to."""
    return {int(number) for text in _texts(value) for number in _HANDLE_START.findall(text)}


def value_of(handle: str, find: Find) -> Any:
    """The value that one handle refers to.

    Raises:
        BadHandleError: it is none, or names nothing.
    """
    match = _WHOLE_HANDLE.fullmatch(handle.strip())
    if match is None:
        raise BadHandleError(handle[:80])
    return _resolve_match(match, find)


def substitute_handles(value: Any, find: Find) -> Any:
    """`value` with every handle replaced by the value that it refers to, once: filled-in text is not searched again.

    The value itself if it contains no handle. Names of fields are left as they are.

    Raises:
        BadHandleError: a handle names nothing.
        TooLongError: it would become too long.
    """
    return _fill(value, find, [MAX_FILLED_CHARS]) if contains_handle(value) else value


def mask_handles(text: str, mask: str) -> str:
    """`text` with every handle replaced by `mask`: for readers who cannot use the observations of this run."""
    return _HANDLE_IN_TEXT.sub(lambda _: mask, text) if _HANDLE_START.search(text) else text


def inline_text(value: Any) -> str:
    """A value as part of a longer text: a list of plain values with commas, other structures as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and not any(isinstance(item, list | dict) for item in value):
        return ", ".join(map(inline_text, value))
    return json.dumps(value, ensure_ascii=False)


def _fill(value: Any, find: Find, room: list[int]) -> Any:
    if isinstance(value, str):
        return _fill_text(value, find, room)
    if isinstance(value, Mapping):
        return {name: _fill(part, find, room) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(part, find, room) for part in value]
    return value


def _fill_text(text: str, find: Find, room: list[int]) -> Any:
    if _HANDLE_START.search(text) is None:
        return text
    if (match := _WHOLE_HANDLE.fullmatch(text.strip())) is not None:
        value = _resolve_match(match, find)
        _use_room(room, inline_text(value))
        return value

    def replace_match(match: re.Match[str]) -> str:
        filled = inline_text(_resolve_match(match, find))
        _use_room(room, filled)
        return filled

    return _HANDLE_IN_TEXT.sub(replace_match, text)


def _use_room(room: list[int], filled: str) -> None:
    room[0] -= len(filled)
    if room[0] < 0:
        raise TooLongError


def _resolve_match(match: re.Match[str], find: Find) -> Any:
    handle = match.group().strip()
    number, path = match[1] or match[3], match[2] or match[4] or ""
    try:
        if number is None:
            raise LookupError
        value = find(int(number))
        if path and isinstance(value, str):
            value = json.loads(value)  # many tools give JSON as a text
        return _follow(value, _steps(path))
    except (LookupError, ValueError, RecursionError):
        raise BadHandleError(handle[:80]) from None


def _steps(path: str) -> list[str | int | None]:
    """The steps of a path: names, positions, and None for each item."""
    steps: list[str | int | None] = []
    for step in _STEP.finditer(path):
        name, position, quoted = step.groups()
        if position is not None:
            steps.append(None if position == "*" else int(position))
        else:
            steps.append(name if quoted is None else str(json.loads(quoted)))
    return steps


def _follow(value: Any, steps: list[str | int | None]) -> Any:
    for index, step in enumerate(steps):
        if isinstance(step, str):
            if not isinstance(value, Mapping):
                raise LookupError
            value = value[step]
            continue
        if not isinstance(value, list):
            raise LookupError
        if step is None:
            return [_follow(item, steps[index + 1 :]) for item in value]
        value = value[step]
    return value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
