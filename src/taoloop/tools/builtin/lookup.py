"""`lookup`: values by key in a table, given as a mapping or as a JSON or YAML file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.search import suggest_names
from taoloop.core.text import chinese_texts
from taoloop.errors import ConfigError, ToolError
from taoloop.tools.function import tool
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import Tool
from taoloop.tools.workspace.workspace import Workspace

_MAX_TABLE_BYTES = 16 * 1024 * 1024
_MAX_DEPTH = 100
_LONGEST_KEY = 300
_MOST_SUGGESTED = 2_000  # keys that are compared with a missing one
_NOTHING = object()
_MISSING_KEY = ErrorCard(
    code="missing_key", advice="Use one of the near keys that the hint names, or say it is unknown."
)
_EXAMPLE = {"key": "huala.post_count"}


def lookup_tool(table: Mapping[str, Any] | str | Path) -> Tool:
    """The tool `lookup(key)` on one table: a mapping, or the path of a JSON or YAML file, which is read now.

    Raises:
        ConfigError: the file cannot be read or is malformed; names path and line.
    """
    content = table if isinstance(table, Mapping) else _load_file(Path(table))

    @tool(
        name="lookup",
        tier="read",
        use_when="The value of a known key is needed from the table.",
        avoid_when="The key is unknown or the task asks for a search by meaning; it does not change values.",
        errors=(_MISSING_KEY,),
        examples=(ExampleCard(args=_EXAMPLE, output=8),),
        chinese=chinese_texts("tools"),
    )
    def lookup(key: str) -> Any:
        """Look up the value of one key in the table; only exact keys are found.

        Args:
            key: The key as written in the table; dots walk into nested values and lists, such as a.b.0.
        """
        return find_key(content, key)

    return lookup


def workspace_lookup_tool(workspace: Workspace) -> Tool:
    """The tool `lookup(key, table)`, where `table` is a JSON or YAML file of the workspace."""

    @tool(
        name="lookup",
        tier="read",
        use_when="The value of a known key is needed from a JSON or YAML file of the workspace.",
        avoid_when="The whole file is needed (read_file), or a text is to be found in it (search_files).",
        errors=(
            _MISSING_KEY,
            ErrorCard(code="bad_table", advice="The file is not JSON or YAML; read it with read_file."),
            ErrorCard(code="not_found", advice="List the files with list_files."),
        ),
        examples=(ExampleCard(args={**_EXAMPLE, "table": "blog.json"}, output=8),),
        chinese=chinese_texts("tools"),
    )
    def lookup(key: str, table: str) -> Any:
        """Look up the value of one key in a JSON or YAML file of the workspace; only exact keys are found.

        Args:
            key: The key as written in the file; dots walk into nested values and lists, such as a.b.0.
            table: The path of the .json, .yaml or .yml file, relative to the workspace.
        """
        text = workspace.read_text(table)
        try:
            return find_key(_parse(text, table), key)
        except _TableError as error:
            raise ToolError(str(error), code="bad_table", hint=TEXTS.run_text("table_hint")) from None

    return lookup


def find_key(table: Any, key: str) -> Any:
    """The value of `key`: an exact key wins, then the dots walk into nested mappings and lists.

    Raises:
        ToolError: `missing_key`; names the key and up to five near ones.
    """
    if len(key) <= _LONGEST_KEY:
        for form in dict.fromkeys((key, key.strip(), re.sub(r"\[(\d+)\]", r".\1", key.strip()))):
            value = _walk(table, form.split("."))
            if value is not _NOTHING:
                return value
    is_long, near = len(key) > _LONGEST_KEY, _near(table, key)
    key_text = TEXTS.run_text("long_key", start=key[:40], size=len(key)) if is_long else repr(key)
    hint = TEXTS.run_text("near_keys", names=", ".join(near)) if near else TEXTS.run_text("no_near_key")
    raise TEXTS.error("missing_key", "missing_key", hint=hint, key=key_text)


def _walk(value: Any, parts: list[str]) -> Any:
    if not parts:
        return value
    if isinstance(value, Mapping):
        by_text = value if all(isinstance(key, str) for key in value) else {_key_text(k): v for k, v in value.items()}
        for length in range(len(parts), 0, -1):
            name = ".".join(parts[:length])
            if name in by_text and (inner := _walk(by_text[name], parts[length:])) is not _NOTHING:
                return inner
    elif _is_list(value) and re.fullmatch(r"[0-9]{1,9}", parts[0]) and int(parts[0]) < len(value):
        return _walk(value[int(parts[0])], parts[1:])
    return _NOTHING


def _near(table: Any, key: str) -> tuple[str, ...]:
    keys = list(islice(_keys(table), _MOST_SUGGESTED))
    near = suggest_names(key, keys)
    if not near and "." in key:
        near = suggest_names(key.rpartition(".")[2], keys)
    return near or (tuple(keys[:5]) if len(keys) <= 5 else ())


def _keys(table: Any) -> Iterator[str]:
    """The dotted keys, those of the top first."""
    level: list[tuple[str, Any]] = [("", table)]
    while level:
        deeper: list[tuple[str, Any]] = []
        for prefix, value in level:
            if isinstance(value, Mapping):
                for name, inner in value.items():
                    yield prefix + _key_text(name)
                    deeper.append((f"{prefix}{_key_text(name)}.", inner))
            elif _is_list(value):
                deeper += [(f"{prefix}{index}.", inner) for index, inner in enumerate(value[:100])]
        level = deeper[:_MOST_SUGGESTED]


def _key_text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


class _TableError(Exception):
    """A table's text is malformed; `line` counts from 1, 0 when unknown."""

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(problem)
        self.line = line


def _load_file(path: Path) -> Any:
    try:
        if path.stat().st_size > _MAX_TABLE_BYTES:
            raise ConfigError(f"{path}: the table is larger than {_MAX_TABLE_BYTES:,} bytes.")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"{path}: the table cannot be read: {error.strerror or error}.",
            hint="Give the path of a JSON or YAML file.",
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: the table is not UTF-8 text.") from error
    try:
        return _parse(text, str(path))
    except _TableError as error:
        where = f"{path}:{error.line}" if error.line else str(path)
        raise ConfigError(f"{where}: {error}", hint="The table must be a JSON or YAML mapping.") from error


def _parse(text: str, name: str) -> Any:
    try:
        content = json.loads(text) if name.lower().endswith(".json") else _parse_yaml(text)
    except json.JSONDecodeError as error:
        problem = TEXTS.run_text("table_line", line=error.lineno, problem=error.msg)
        raise _TableError(problem, error.lineno) from None
    except RecursionError:
        raise _TableError(TEXTS.run_text("table_deep")) from None
    except ValueError as error:
        raise _TableError(f"{error}.") from None
    if not isinstance(content, Mapping) and not _is_list(content):
        raise _TableError(TEXTS.run_text("table_scalar"), 1)
    return content


def _parse_yaml(text: str) -> Any:
    import yaml  # noqa: PLC0415  # heavy, and only a table in YAML needs it

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        events: Any = yaml.parse(text, Loader=loader)
        for event in events:  # before anything is built: aliases multiply, depth overflows
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > _MAX_DEPTH:
                problem = TEXTS.run_text("table_deep" if depth > _MAX_DEPTH else "table_alias")
                raise _TableError(problem, event.start_mark.line + 1)
        return yaml.load(text, Loader=loader)  # noqa: S506  # a safe loader, the C one where there is one
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 0
        problem = getattr(error, "problem", None) or "not YAML"
        raise _TableError(TEXTS.run_text("table_line", line=line, problem=problem), line) from None
