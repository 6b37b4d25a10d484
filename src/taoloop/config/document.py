"""A YAML or JSON file as plain data, with the line of every part."""

from __future__ import annotations

import json
import re
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
from taoloop.translation import Translator, error_language, error_texts, mark

translate = Translator("config")
"""Texts about files, in the language of the command line or of the run."""

_AGENT_FILE = mark("an agent file")
_MAX_BYTES = 1024 * 1024
_SHOWN_CHARS = 60
_LONG_NUMBER = 10**_SHOWN_CHARS

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

    def problem(self, field_path: FieldPath, text: str, hint: str = "", /, **values: object) -> AgentFileError:
        """The same with texts that are translated and filled in with `values`."""
        return self.error(field_path, translate(text, **values), hint=translate(hint, **values))

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
        hint = mark("Did you mean {near!r}? Known: {names}.") if near else mark("Known: {names}.")
        values = {"near": near[0] if near else "", "names": ", ".join(known)}
        return self.problem(field_path, "there is no such field.", hint, **values)


def kind_name(value: object) -> str:
    """What kind of thing a value of YAML or JSON is, in plain words."""
    match value:
        case None:
            return translate("nothing")
        case bool():
            return "true" if value else "false"
        case int() if abs(value) >= _LONG_NUMBER:
            return translate("a number of more than {n} digits", n=_SHOWN_CHARS)
        case int() | float():
            return translate("a number")
        case str():
            return translate("a text")
        case list():
            return translate("a list")
        case dict():
            return translate("a mapping")
        case _:
            return translate("a {kind}", kind=type(value).__name__)


def describe_value(value: Any) -> str:
    """A value of a document in an error message: the value if it is short, else its kind."""
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) >= _LONG_NUMBER):
        return kind_name(value)
    text = repr(value)
    return kind_name(value) if len(text) > _SHOWN_CHARS else text


def locate_error(document: ConfigDocument, field_path: FieldPath, error: ConfigError) -> AgentFileError:
    """An error with the line of `field_path`, unless it has a line of this document already."""
    if not isinstance(error, AgentFileError):
        message, hint = error_texts(error)
        return document.error(field_path, message, hint=hint)
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


def read_document(path: Path, what: str = _AGENT_FILE, begins: str = "tools: [calculator]") -> ConfigDocument:
    """The mapping in a file that should be `what` (a text that has a translation), and could begin with `begins`.

    Raises:
        AgentFileError: it is missing, cannot be read, is not YAML or JSON, has a key twice, or is no mapping.
    """
    if (noted := _tracked.get()) is not None:
        noted.setdefault(path, file_stamp(path))
    return parse_document(_text(path, what), path, what, begins)


def parse_document(
    text: str, path: Path, what: str = _AGENT_FILE, begins: str = "tools: [calculator]"
) -> ConfigDocument:
    """The mapping in a text that is not read from a file; errors call it `path`. Otherwise as `read_document`.

    Raises:
        AgentFileError: it is not YAML or JSON, has a key twice, is no mapping, or too large.
    """
    if len(text) > _MAX_BYTES:
        raise _file_error(path, mark("it is larger than 1 MB: too large for {what}."), what=translate(what))
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
        actual = translate("empty") if data is None else kind_name(data)
        values = {"what": translate(what), "actual": actual, "example": begins}
        text = mark("{what} is a mapping of fields, but this is {actual}.")
        hint = mark("Begin with, for example, `{example}`.")
        raise _file_error(path, text, hint, line=document.lines[()], **values)
    return ConfigDocument(path, data, document.lines)


def _file_error(path: Path, text: str, hint: str = "", /, line: int = 0, **values: object) -> AgentFileError:
    """An error about a file, with texts that are translated and filled in with `values`."""
    return AgentFileError(translate(text, **values), path=str(path), line=line, hint=translate(hint, **values))


def _text(path: Path, what: str) -> str:
    name = translate(what)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise _file_error(path, mark("it is larger than 1 MB: too large for {what}."), what=name)
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise _file_error(path, mark("there is no such file."), mark("Check the path.")) from error
    except UnicodeDecodeError as error:
        text = mark("it is not UTF-8 text (byte {byte}).")
        raise _file_error(path, text, mark("Save it as UTF-8."), byte=error.start) from error
    except IsADirectoryError as error:
        raise _file_error(path, mark("it is a folder."), mark("Name {what} in it."), what=name) from error
    except (OSError, ValueError) as error:
        reason, hint = getattr(error, "strerror", None) or error, mark("Check its permissions.")
        raise _file_error(path, mark("it cannot be read: {reason}."), hint, reason=reason) from error


def _json(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem = _parser_problem(error.msg)
        raise _file_error(path, mark("it is not JSON: {problem}."), line=error.lineno, problem=problem) from error
    except RecursionError as error:
        raise _file_error(path, mark("it is nested too deeply.")) from error
    except ValueError as error:
        raise _file_error(path, mark("it has a number of too many digits.")) from error


def _not_yaml(path: Path, error: YamlError) -> AgentFileError:
    match error:
        case DuplicateKeyError():
            location = SourceLocation(path=path, line=error.line, field=field_name(error.path))
            text = translate("the field appears a second time (first in line {line}).", line=error.first_line)
            return location.error(text, hint=translate("Remove one of the two."))
        case YamlSizeError():
            return _file_error(path, mark("it has too many parts, or is nested too deeply."), line=error.line)
    hint = mark("Check the indentation, and quote texts that hold `: ` or begin with a special character.")
    problem = _parser_problem(error.problem)
    return _file_error(path, mark("it is not YAML: {problem}."), hint, line=error.line, problem=problem)


_PARSER_PROBLEMS = mark(
    (
        "mapping values are not allowed here",
        "block sequence entries are not allowed here",
        "could not find expected ':'",
        "found unexpected end of stream",
        "expected <block end>, but found {0}",
        "expected ',' or '{0}', but got {1}",
        "expected the node content, but found {0}",
        "found character {0} that cannot start any token",
        "found undefined alias {0}",
        "special characters are not allowed",
        "there is a second document in it",
        "the alias {0} refers to nothing that ends before it",
        "a list or a mapping cannot be a key",
        "the tag {0} is not supported",
        "the value does not fit its tag {0}",
        "Expecting value",
        "Expecting property name enclosed in double quotes",
        "Expecting '{0}' delimiter",
        "Illegal trailing comma before end of object",
        "Illegal trailing comma before end of array",
        "Extra data",
        "Unterminated string starting at",
        "Invalid control character at",
        "Invalid \\escape",
    )
)
"""What the parsers of YAML and JSON complain about most; anything else is shown in their words."""


def _parser_problem(problem: str) -> str:
    """What a parser says, in its own words where there is no translation."""
    if error_language() == "zh":
        for text in _PARSER_PROBLEMS:
            pattern = re.sub(r"\\\{\d\\\}", "(.+)", re.escape(text))
            if match := re.fullmatch(f"(?:.*: )?{pattern}", problem):  # before it is the part of the document
                return translate(text).format(*match.groups())
    return problem
