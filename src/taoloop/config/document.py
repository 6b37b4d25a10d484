"""A YAML or JSON file as plain data that knows on which line everything stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from taoloop.core.search import suggest_names
from taoloop.errors import AgentFileError
from taoloop.runtime.tool_source import SourceLocation

_MAX_BYTES = 1024 * 1024
_MAX_DEPTH = 60
_MAX_PARTS = 50_000

FieldPath = tuple[str | int, ...]
"""Keys and indexes from the top, such as `("tools", 2, "card")`."""

Stamp = tuple[int, int] | None
"""When a file was last changed, and its size; None where there is none."""

_read: ContextVar[dict[Path, Stamp] | None] = ContextVar("_read", default=None)


def file_stamp(path: Path) -> Stamp:
    """What tells whether a file was changed since."""
    try:
        stat = path.stat()
    except (OSError, ValueError):  # a path that none can be
        return None
    return stat.st_mtime_ns, stat.st_size


@contextmanager
def track_files() -> Iterator[dict[Path, Stamp]]:
    """The files that are read as documents meanwhile, as they were before; those that cannot be read among them."""
    around, found = _read.get(), dict[Path, Stamp]()
    token = _read.set(found)
    try:
        yield found
    finally:
        _read.reset(token)
        if around is not None:
            around.update(found)


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """The content of a file and where its parts stand. Every complaint about it is made by `error`.

    `base` is where `data` stands in the file, if it is only a part of it: complaints name the whole place.
    """

    path: Path
    data: dict[str, Any]
    lines: dict[FieldPath, int] = field(repr=False)
    base: FieldPath = ()

    def under(self, place: FieldPath) -> ConfigDocument:
        """The mapping at `place` as a document of its own."""
        data: Any = self.data
        for part in place:
            data = data[part]
        size = len(place)
        lines = {inner[size:]: line for inner, line in self.lines.items() if inner[:size] == place}
        return ConfigDocument(self.path, data, lines, (*self.base, *place))

    def error(self, place: FieldPath, message: str, *, hint: str = "") -> AgentFileError:
        """An error that names the file, the line and the field at `place`."""
        return self.location(place).error(message, hint=hint)

    def location(self, place: FieldPath) -> SourceLocation:
        """The file, the field at `place`, and the line of that field or of the nearest one around it."""
        near = place
        while near not in self.lines and near:
            near = near[:-1]
        return SourceLocation(path=self.path, line=self.lines.get(near, 0), field=self.name_of(place))

    def name_of(self, place: FieldPath) -> str:
        """A place as it is written in messages."""
        return field_name((*self.base, *place))

    def unknown(self, place: FieldPath, known: tuple[str, ...]) -> AgentFileError:
        """The error for a key that nothing reads."""
        near = suggest_names(str(place[-1]), known, at_most=1)
        listed = f"Known: {', '.join(known)}."
        hint = f"Did you mean {near[0]!r}? {listed}" if near else listed
        return self.error(place, "there is no such field.", hint=hint)


def kind_name(value: object) -> str:
    """What kind of thing a value of YAML or JSON is, in plain words."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return f"a {type(value).__name__}"  # YAML has dates, too


def field_name(place: FieldPath) -> str:
    """`tools[2].card` for `("tools", 2, "card")`."""
    text = ""
    for part in place:
        name = part if isinstance(part, int) or part.isprintable() else repr(part)[1:-1]
        text += f"[{part}]" if isinstance(part, int) else f".{name}" if text else str(name)
    return text


def read_document(path: Path, what: str = "an agent file", begins: str = "tools: [calculator]") -> ConfigDocument:
    """The mapping in a file that should be `what`, and could begin with `begins`.

    Raises:
        AgentFileError: it is missing, cannot be read, is not YAML or JSON, has a key twice, or is no mapping.
    """
    if (noted := _read.get()) is not None:
        noted.setdefault(path, file_stamp(path))
    text = _text(path, what)
    is_json = path.suffix.lower() == ".json"
    if is_json:
        data = _json(path, text)
        text = text.replace("\t", " ")  # YAML forbids tabs where JSON allows them; inside texts JSON has none
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        lines: dict[FieldPath, int] = {(): 1} if node is None else _lines(path, node)
        if not is_json:
            data = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        raise _not_yaml(path, error) from error
    except (ValueError, RecursionError) as error:
        raise AgentFileError(f"it cannot be read: {error}.", path=str(path)) from error
    if not isinstance(data, dict):
        found = "empty" if data is None else kind_name(data)
        raise AgentFileError(
            f"{what} is a mapping of fields, but this is {found}.",
            path=str(path),
            line=lines[()],
            hint=f"Begin with, for example, `{begins}`.",
        )
    return ConfigDocument(path, data, lines)


def _text(path: Path, what: str) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise AgentFileError(f"it is larger than 1 MB: too large for {what}.", path=str(path))
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise AgentFileError("there is no such file.", path=str(path), hint="Check the path.") from error
    except UnicodeDecodeError as error:
        raise AgentFileError(
            f"it is not UTF-8 text (byte {error.start}).", path=str(path), hint="Save it as UTF-8."
        ) from error
    except IsADirectoryError as error:
        raise AgentFileError("it is a folder.", path=str(path), hint=f"Name {what} in it.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AgentFileError(f"it cannot be read: {reason}.", path=str(path), hint="Check its permissions.") from error


def _json(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise AgentFileError(f"it is not JSON: {error.msg}.", path=str(path), line=error.lineno) from error
    except RecursionError as error:
        raise AgentFileError("it is nested too deeply.", path=str(path)) from error


def _not_yaml(path: Path, error: yaml.YAMLError) -> AgentFileError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    context = getattr(error, "context", None)
    text = f"{context}: {problem}" if context else str(problem)
    return AgentFileError(
        f"it is not YAML: {text}.",
        path=str(path),
        line=mark.line + 1 if mark is not None else 0,
        hint="Check the indentation, and quote texts that hold `: ` or begin with a special character.",
    )


def _lines(path: Path, top: yaml.Node) -> dict[FieldPath, int]:
    """The line of every part, from 1.

    Raises:
        AgentFileError: a mapping has a key twice, or parts are nested too deeply.
    """
    lines: dict[FieldPath, int] = {(): top.start_mark.line + 1}
    todo: list[tuple[FieldPath, yaml.Node]] = [((), top)]
    while todo:
        place, node = todo.pop()
        if len(place) > _MAX_DEPTH or len(lines) > _MAX_PARTS:
            raise AgentFileError(
                "it has too many parts, or is nested too deeply.",
                path=str(path),
                line=node.start_mark.line + 1,
            )
        children: list[tuple[str | int, yaml.Node, int]] = []
        if isinstance(node, yaml.MappingNode):
            children = [(str(key.value), value, key.start_mark.line + 1) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            children = [(index, item, item.start_mark.line + 1) for index, item in enumerate(node.value)]
        for name, child, line in children:
            inner = (*place, name)
            if inner in lines:
                message = f"{field_name(inner)}: the field stands here a second time (first in line {lines[inner]})."
                raise AgentFileError(
                    message, path=str(path), line=line, field=field_name(inner), hint="Remove one of the two."
                )
            lines[inner] = line
            todo.append((inner, child))
    return lines
