"""A YAML or JSON file as plain data, with the line of every part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taoloop.core.search import suggest_names
from taoloop.errors import AgentFileError, ConfigError
from taoloop.runtime.tool_source import SourceLocation
from taoloop.tools.yaml12 import DuplicateKeyError, FieldPath, YamlError, YamlSizeError, parse_yaml_document

_MAX_BYTES = 1024 * 1024

Stamp = tuple[int, int] | None
"""When a file was last changed, and its size; None if there is no such file."""

_open_files: ContextVar[tuple[Path, ...]] = ContextVar("_open_files", default=())
_tracked: ContextVar[dict[Path, Stamp] | None] = ContextVar("_read", default=None)


def is_config_file(name: str) -> bool:
    """Whether a name, as on a command line, is that of a YAML or JSON file."""
    return Path(name).suffix.lower() in (".yaml", ".yml", ".json")


def file_stamp(path: Path) -> Stamp:
    """The stamp of a file: it differs once the file has changed."""
    try:
        stat = path.stat()
    except (OSError, ValueError):  # a path that none can be
        return None
    return stat.st_mtime_ns, stat.st_size


@contextmanager
def track_files() -> Iterator[dict[Path, Stamp]]:
    """Collect the files that are read as documents in the block, with their stamps, even those that cannot be read."""
    outer, tracked = _tracked.get(), dict[Path, Stamp]()
    token = _tracked.set(tracked)
    try:
        yield tracked
    finally:
        _tracked.reset(token)
        if outer is not None:
            outer.update(tracked)


@contextmanager
def refuse_recursion(path: Path, error: ConfigError) -> Iterator[None]:
    """Refuse, in the block, to read the file at `path` again: that raises `error`."""
    real, outer = path.resolve(), _open_files.get()
    if real in outer:
        raise error
    token = _open_files.set((*outer, real))
    try:
        yield
    finally:
        _open_files.reset(token)


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """The content of a file and the lines of its parts. Every error about it is made by `error`."""

    path: Path
    """The file."""

    data: dict[str, Any]
    """The mapping in the file."""

    lines: dict[FieldPath, int] = field(repr=False)
    """The line of every part, from 1."""

    base: FieldPath = ()
    """Where `data` is in the file, if it is only a part of it: errors name the whole place."""

    def under(self, field_path: FieldPath) -> ConfigDocument:
        """The mapping at `field_path` as a separate document."""
        data: Any = self.data
        for part in field_path:
            data = data[part]
        size = len(field_path)
        lines = {inner[size:]: line for inner, line in self.lines.items() if inner[:size] == field_path}
        return ConfigDocument(self.path, data, lines, (*self.base, *field_path))

    def error(self, field_path: FieldPath, message: str, *, hint: str = "") -> AgentFileError:
        """An error that names the file, the line and the field at `place`."""
        return self.location(field_path).error(message, hint=hint)

    def location(self, field_path: FieldPath) -> SourceLocation:
        """The file, the field at `place`, and the line of that field or of the nearest one around it."""
        near = field_path
        while near not in self.lines and near:
            near = near[:-1]
        return SourceLocation(path=self.path, line=self.lines.get(near, 0), field=self.name_of(field_path))

    def name_of(self, field_path: FieldPath) -> str:
        """A place as it is written in messages."""
        return field_name((*self.base, *field_path))

    def unknown(self, field_path: FieldPath, known: tuple[str, ...]) -> AgentFileError:
        """The error for a key that nothing reads."""
        near = suggest_names(str(field_path[-1]), known, at_most=1)
        listed = f"Known: {', '.join(known)}."
        hint = f"Did you mean {near[0]!r}? {listed}" if near else listed
        return self.error(field_path, "there is no such field.", hint=hint)


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
            return f"a {type(value).__name__}"


def describe_value(value: Any) -> str:
    """A value of a document in an error message: the value if it is short, else its kind."""
    if value is None:
        return "nothing"
    text = repr(value)
    return kind_name(value) if isinstance(value, bool) or len(text) > 60 else text


def locate_error(document: ConfigDocument, field_path: FieldPath, error: ConfigError) -> AgentFileError:
    """An error with the line of `field_path`, unless it has a line of this document already."""
    if not isinstance(error, AgentFileError):
        return document.error(field_path, error.message, hint=error.hint)
    return error if error.path == str(document.path) else document.error(field_path, str(error.args[0]))


@contextmanager
def error_location(document: ConfigDocument, field_path: FieldPath) -> Iterator[None]:
    """Give an error that knows no place the line of `field_path`."""
    try:
        yield
    except ConfigError as error:
        located = locate_error(document, field_path, error)
        if located is error:
            raise
        raise located from error


def field_name(field_path: FieldPath) -> str:
    """`tools[2].card` for `("tools", 2, "card")`."""
    text = ""
    for part in field_path:
        name = part if isinstance(part, int) or part.isprintable() else repr(part)[1:-1]
        text += f"[{part}]" if isinstance(part, int) else f".{name}" if text else str(name)
    return text


def read_document(path: Path, what: str = "an agent file", begins: str = "tools: [calculator]") -> ConfigDocument:
    """The mapping in a file that should be `what`, and could begin with `begins`.

    Raises:
        AgentFileError: it is missing, cannot be read, is not YAML or JSON, has a key twice, or is no mapping.
    """
    if (noted := _tracked.get()) is not None:
        noted.setdefault(path, file_stamp(path))
    text = _text(path, what)
    is_json = path.suffix.lower() == ".json"
    if is_json:
        data = _json(path, text)
        text = text.replace("\t", " ")  # YAML forbids tabs where JSON allows them; inside texts JSON has none
    try:
        document = parse_yaml_document(text)
    except YamlError as error:
        raise _not_yaml(path, error) from error
    if not is_json:
        data = document.value
    if not isinstance(data, dict):
        what_it_is = "empty" if data is None else kind_name(data)
        raise AgentFileError(
            f"{what} is a mapping of fields, but this is {what_it_is}.",
            path=str(path),
            line=document.lines[()],
            hint=f"Begin with, for example, `{begins}`.",
        )
    return ConfigDocument(path, data, document.lines)


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


def _not_yaml(path: Path, error: YamlError) -> AgentFileError:
    match error:
        case DuplicateKeyError():
            field = field_name(error.path)
            message = f"{field}: the field appears a second time (first in line {error.first_line})."
            return AgentFileError(message, path=str(path), line=error.line, field=field, hint="Remove one of the two.")
        case YamlSizeError():
            message = "it has too many parts, or is nested too deeply."
            return AgentFileError(message, path=str(path), line=error.line)
    return AgentFileError(
        f"it is not YAML: {error.problem}.",
        path=str(path),
        line=error.line,
        hint="Check the indentation, and quote texts that hold `: ` or begin with a special character.",
    )
