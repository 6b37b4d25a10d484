"""Names that every provider takes, for operations and for arguments: unique, and the same each time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection

LONGEST = 64
RESERVED = frozenset({"read_observation", "ask_about", "find_tool", "call_tool", "describe_tool"})
"""Names of tools that the runtime itself adds."""

_TOOL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_NOT_IN_ARGUMENTS = re.compile(r"[^A-Za-z0-9_.-]+")
_TEMPLATE = re.compile(r"\{([^{}/]*)\}")
_WORDS = re.compile(r"[A-Za-z0-9_]+")
_SIGNS = {"<": "_lt", ">": "_gt", "=": "_eq", "!": "_not", "[]": "", "$": "", "@": "", "*": "_all"}


def tool_name(operation_id: str, method: str, path: str, *, prefix: str, taken: Collection[str]) -> str:
    """The name of the tool for an operation, none of those `taken`.

    The operation id where it has one that says something in ASCII letters; else method and path. Where two would be
    the same, or one is too long, a few digits of a digest over method and path tell them apart.
    """
    said = _of_id(operation_id)
    base = said or _of_path(method, path)
    name = f"{prefix}_{base}" if prefix else base
    lost = not _WORDS.search(base) or (not said and base == method.lower())  # all of it was in another script
    if not lost and len(name) <= LONGEST and name not in taken and name not in RESERVED:
        return name
    mark = hashlib.sha256(f"{method.upper()} {path}".encode("utf-8", "surrogatepass")).hexdigest()
    for length in range(6, len(mark)):
        marked = f"{name[: LONGEST - length - 1].rstrip('_-')}_{mark[:length]}"
        if marked not in taken:
            return marked
    raise AssertionError("two operations of one document have the same method and path")


def argument_name(name: str, place: str, taken: Collection[str]) -> str:
    """The name of an argument for a parameter or property, none of those `taken`; `place` goes before one that is."""
    base = name
    if not _ARGUMENT.fullmatch(name):
        for sign, word in _SIGNS.items():
            base = base.replace(sign, word)
        base = _NOT_IN_ARGUMENTS.sub("_", base).rstrip("_")[:LONGEST] or place
    candidate, number = base, 1
    while candidate in taken:
        start = f"{place}_{base}" if number == 1 and base != place else f"{base}_{max(number, 2)}"
        candidate, number = start[-LONGEST:], number + 1
    return candidate


def own_name_told(name: str, arg: str) -> str:
    """A word on what an API calls an argument, where its name here lost letters of another script; else nothing."""
    lost = arg != name and any(char.isalnum() and not char.isascii() for char in name)
    return f"The API calls it {name}." if lost else ""


def is_argument_name(name: str) -> bool:
    """Whether providers take it for a property of a tool's arguments."""
    return bool(_ARGUMENT.fullmatch(name))


def is_header_name(name: str) -> bool:
    """Whether HTTP has headers of this name."""
    return bool(_HEADER.fullmatch(name))


def is_tool_name(name: str) -> bool:
    """Whether every provider takes it for a tool."""
    return bool(_TOOL.fullmatch(name))


def _of_id(operation_id: str) -> str:
    """The id with what is refused as underscores; empty where that would lose letters of another script."""
    if any(char.isalnum() and not char.isascii() for char in operation_id):
        return ""
    return _NOT_IN_NAMES.sub("_", operation_id.strip()).strip("_") if _WORDS.search(operation_id) else ""


def _of_path(method: str, path: str) -> str:
    """`get_pets_by_petId` for `GET /pets/{petId}`."""
    parts = [method.lower()]
    for step in path.split("/"):
        inside = _TEMPLATE.findall(step)
        outside = _NOT_IN_NAMES.sub("_", _TEMPLATE.sub(" ", step)).strip("_-")
        parts += [outside] if outside else []
        parts += [f"by_{_NOT_IN_NAMES.sub('_', one).strip('_')}" for one in inside if _WORDS.search(one)]
    if len(parts) == 1 and not path.strip("/"):
        return f"{parts[0]}_root"
    return "_".join(parts)
