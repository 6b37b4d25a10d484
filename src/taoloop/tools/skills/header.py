"""The header of a `SKILL.md`: YAML between two lines `---`, and the Markdown text behind it.

The rules are those of https://agentskills.io/specification: `name` has 1 to 64 lowercase letters, digits and single
inner hyphens and is that of the folder; `description` has 1 to 1,024 characters, `compatibility` at most 500; `license`
is a text, `metadata` a mapping of texts, `allowed-tools` a text with blanks between, or a list. Other fields are
ignored: other programs have some of their own.

The specification calls `allowed-tools` a list of pre-approved tools, experimental, whose support varies. Here a skill
approves nothing, as it is the party that is to be held: the list only narrows what the policy allows
(`taoloop.policy.judge`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from taoloop.tools.yaml12 import DuplicateKeyError, YamlError, parse_yaml, parse_yaml_document

MAX_HEADER_BYTES = 32_000
MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1_024, 500

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_HEADER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"^([A-Za-z][\w-]*)[ \t]*:(?=\s|$)", re.MULTILINE)
_TOOL = re.compile(r"[^\s,(]+(?:\([^)]*\))?")
_UNINDENTED = re.compile(r"^[^\s#]", re.MULTILINE)


class HeaderError(ValueError):
    """A header that the format does not allow: `line` of the file (from 1), `field` (may be empty), and the way out."""

    def __init__(self, message: str, *, line: int, field: str = "", hint: str) -> None:
        super().__init__(message)
        self.message, self.line, self.field, self.hint = message, line, field, hint


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillHeader:
    """What a skill says of itself, and its instructions."""

    name: str
    """Its name, which is that of its folder."""
    description: str
    """What it does and when to use it."""
    license: str = ""
    """The licence, or the name of its file."""
    compatibility: str = ""
    """What it needs of its surroundings."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Whatever else its author noted."""
    allowed_tools: tuple[str, ...] | None = None
    """The tools that it needs, as it writes them; None: it does not say. They narrow what the policy allows once the
    skill is loaded, and grant nothing."""
    instructions: str = ""
    """The text behind the header."""


def read_header(text: str, folder: str) -> SkillHeader:
    """The header of the skill in the folder called `folder`.

    Raises:
        HeaderError: the text has no such header, or a field is against the format.
    """
    match = _HEADER.match(text)
    if match is None:
        opened = text.lstrip("\ufeff").startswith("---")
        what = "its header is not closed" if opened else "it does not begin with a header"
        hint = "Begin the file with a line `---`, the fields `name` and `description`, and another line `---`."
        raise HeaderError(what, line=1, hint=hint)
    if len(match[1].encode()) > MAX_HEADER_BYTES:
        hint = "Move the text behind the second line `---`."
        raise HeaderError(f"its header has more than {MAX_HEADER_BYTES:,} bytes", line=1, hint=hint)
    values = _values(match[1])
    _check(values, match[1], folder)
    return SkillHeader(
        name=values["name"],
        description=values["description"].strip(),
        license=str(values.get("license") or ""),
        compatibility=str(values.get("compatibility") or "").strip(),
        metadata={key: _plain(value) for key, value in (values.get("metadata") or {}).items()},
        allowed_tools=_tools(values.get("allowed-tools")),
        instructions=text[match.end() :].strip(),
    )


def _values(header: str) -> dict[str, Any]:
    """The fields, by the fast parser where it cannot hide that a field is there twice, or has a tag."""
    keys = _KEY.findall(header)
    is_plain = "!" not in header and len(keys) == len(set(keys)) == len(_UNINDENTED.findall(header))
    try:
        value = parse_yaml(header, max_depth=8, max_values=2_000) if is_plain else None
        value = parse_yaml_document(header, max_depth=8, max_values=2_000).value if value is None else value
    except DuplicateKeyError as error:
        message = f"the field is there a second time (first in line {error.first_line + 1})"
        raise HeaderError(message, line=error.line + 1, field=str(error.path[-1]), hint="Keep one of them.") from None
    except YamlError as error:
        hint = "Write plain fields; put a text with `: `, `#` or special characters in it into quotation marks."
        raise HeaderError(f"its header is not valid YAML: {error}", line=_file_line(error), hint=hint) from None
    if not isinstance(value, dict):
        raise HeaderError("its header has no fields", line=2, hint="Give it `name: …` and `description: …`.")
    return {str(key): inner for key, inner in value.items()}


def _file_line(error: YamlError) -> int:
    return error.line + 1 if error.line else 1


def _check(values: Mapping[str, Any], header: str, folder: str) -> None:
    def refuse(name: str, message: str, hint: str) -> HeaderError:
        lines = [header.count("\n", 0, match.start()) + 2 for match in _KEY.finditer(header) if match[1] == name]
        return HeaderError(message, line=lines[0] if lines else 1, field=name, hint=hint)

    for name, limit in (("name", MAX_NAME), ("description", MAX_DESCRIPTION), ("compatibility", MAX_COMPATIBILITY)):
        value = values.get(name)
        if value is None and name == "compatibility":
            continue
        if value is None:
            raise refuse(name, "it is missing", f"Add a line `{name}: …` to the header.")
        if not isinstance(value, str):
            raise refuse(name, f"a text is expected, not {value!r:.40}", "Put it into quotation marks.")
        if not value.strip():
            raise refuse(name, "it is empty", f"Give it 1 to {limit:,} characters.")
        if len(value) > limit:
            raise refuse(name, f"it has {len(value):,} characters", f"Shorten it to {limit:,}.")
    if not _NAME.fullmatch(values["name"]):
        hint = "Use lowercase letters a-z, digits, and single hyphens between them, as in `pdf-processing`."
        raise refuse("name", f"{values['name']!r} is no name of a skill", hint)
    if values["name"] != folder:
        raise refuse(
            "name",
            f"it is {values['name']!r}, and the folder is called {folder!r}",
            f"Write `name: {folder}`, or rename the folder.",
        )
    _check_optional(values, refuse)


def _check_optional(values: Mapping[str, Any], refuse: Callable[[str, str, str], HeaderError]) -> None:
    if not isinstance(values.get("license", ""), str | None):
        raise refuse("license", "a text is expected", "Name the licence, or the file with its text.")
    metadata = values.get("metadata")
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(inner, str | int | float | bool) for inner in metadata.values())
    ):
        raise refuse("metadata", "a mapping from names to texts is expected", "Write `NAME: TEXT` below it, indented.")
    tools = values.get("allowed-tools")
    if tools is not None and not (
        isinstance(tools, str) or (isinstance(tools, list) and all(isinstance(tool, str) for tool in tools))
    ):
        hint = "Write the names with blanks between them, or as a list."
        raise refuse("allowed-tools", "names of tools are expected", hint)


def _tools(value: Any) -> tuple[str, ...] | None:
    return None if value is None else tuple(_TOOL.findall(value) if isinstance(value, str) else value)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
