"""Tool and argument names that every provider accepts: unique, and the same in every run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection

MAX_NAME_CHARS = 64
RESERVED = frozenset({"read_observation", "ask_about", "find_tool", "call_tool", "describe_tool"})
"""The names of tools that the runtime itself adds."""

_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_NOT_IN_ARGUMENTS = re.compile(r"[^A-Za-z0-9_.-]+")
_TEMPLATE = re.compile(r"\{([^{}/]*)\}")
_WORDS = re.compile(r"[A-Za-z0-9_]+")
_SYMBOL_WORDS = {"<": "_lt", ">": "_gt", "=": "_eq", "!": "_not", "[]": "", "$": "", "@": "", "*": "_all"}


def tool_name(operation_id: str, method: str, path: str, *, prefix: str, used: Collection[str]) -> str:
    """The name of the tool for an operation, which is not among those `used`.

    It is the operation id if that is readable in ASCII, else method and path. A name that is used already, reserved or
    too long gets a few digits of a digest of method and path.
    """
    from_id = _name_from_id(operation_id)
    base = from_id or _name_from_path(method, path)
    name = f"{prefix}_{base}" if prefix else base
    is_in_other_script = not from_id and base == method.lower()
    is_unreadable = is_in_other_script or not _WORDS.search(base)
    if not is_unreadable and len(name) <= MAX_NAME_CHARS and name not in used and name not in RESERVED:
        return name
    digest = hashlib.sha256(f"{method.upper()} {path}".encode("utf-8", "surrogatepass")).hexdigest()
    for length in range(6, len(digest)):
        candidate = f"{name[: MAX_NAME_CHARS - length - 1].rstrip('_-')}_{digest[:length]}"
        if candidate not in used:
            return candidate
    raise AssertionError("two operations of one document have the same method and path")


def argument_name(name: str, fallback: str, used: Collection[str]) -> str:
    """The name of the argument for a parameter or property; `fallback` is the prefix of a name that is in use."""
    base = name
    if not _ARGUMENT.fullmatch(name):
        for symbol, word in _SYMBOL_WORDS.items():
            base = base.replace(symbol, word)
        base = _NOT_IN_ARGUMENTS.sub("_", base).rstrip("_")[:MAX_NAME_CHARS] or fallback
    candidate, number = base, 1
    while candidate in used:
        prefixed = f"{fallback}_{base}" if number == 1 and base != fallback else f"{base}_{max(number, 2)}"
        candidate, number = prefixed[-MAX_NAME_CHARS:], number + 1
    return candidate


def original_name_note(name: str, arg: str) -> str:
    """A note with the original name of an argument that lost letters of another script; otherwise empty."""
    is_lossy = arg != name and any(char.isalnum() and not char.isascii() for char in name)
    return f"The API calls it {name}." if is_lossy else ""


def is_argument_name(name: str) -> bool:
    """Whether every provider accepts it as an argument name."""
    return bool(_ARGUMENT.fullmatch(name))


def is_header_name(name: str) -> bool:
    """Whether it is a valid name of an HTTP header."""
    return bool(_HEADER.fullmatch(name))


def _name_from_id(operation_id: str) -> str:
    """The id with invalid characters as underscores; empty if that would lose letters of another script."""
    if any(char.isalnum() and not char.isascii() for char in operation_id):
        return ""
    return _NOT_IN_NAMES.sub("_", operation_id.strip()).strip("_") if _WORDS.search(operation_id) else ""


def _name_from_path(method: str, path: str) -> str:
    """`get_pets_by_petId` for `GET /pets/{petId}`."""
    parts = [method.lower()]
    for segment in path.split("/"):
        variables = _TEMPLATE.findall(segment)
        literal = _NOT_IN_NAMES.sub("_", _TEMPLATE.sub(" ", segment)).strip("_-")
        parts += [literal] if literal else []
        parts += [f"by_{_NOT_IN_NAMES.sub('_', name).strip('_')}" for name in variables if _WORDS.search(name)]
    if len(parts) == 1 and not path.strip("/"):
        return f"{parts[0]}_root"
    return "_".join(parts)
