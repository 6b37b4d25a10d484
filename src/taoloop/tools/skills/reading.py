"""Reading a folder of skills: each that can be used, and a problem for each that cannot."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from taoloop.core.text import escape_invisible
from taoloop.errors import ConfigError, ToolSourceError
from taoloop.tools.skills.content import ContentError, SkillContent, hidden_character, read_content
from taoloop.tools.skills.header import HeaderError, SkillHeader, read_header
from taoloop.tools.skills.settings import SkillFolder
from taoloop.tools.toolbox import LoadProblem
from taoloop.tools.workspace.confined_dir import ConfinedDirectory, readable_path

SKILL_FILE = "SKILL.md"
MAX_TEXT_BYTES = 64_000
"""The largest file of a skill that a model reads; the format recommends less than 5,000 tokens for instructions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill that can be used."""

    header: SkillHeader
    """What it says of itself, and its instructions."""
    content: SkillContent
    """Its files."""

    @property
    def scripts(self) -> tuple[str, ...]:
        """The paths of its scripts."""
        return tuple(path for path in self.content.files if path.startswith("scripts/"))


def open_top(settings: SkillFolder) -> ConfinedDirectory:
    """The folder of the skills.

    Raises:
        ToolSourceError: it cannot be opened.
    """
    source = readable_path(str(settings.folder))
    hint = "Name the folder that holds one folder for each skill."
    try:
        is_folder = settings.folder.is_dir()
        top = ConfinedDirectory(settings.folder) if is_folder else None
    except (ConfigError, OSError) as error:
        raise ToolSourceError(f"this folder cannot be opened: {error}", source=source, hint=hint) from error
    if top is None:
        what = "this is not a folder" if settings.folder.exists() else "there is no such folder"
        raise ToolSourceError(f"{what}.", source=source, hint=hint)
    return top


def read_skills(settings: SkillFolder) -> tuple[tuple[Skill, ...], tuple[LoadProblem, ...]]:
    """The skills of a folder in the order of their names, and what is wrong with the others.

    Raises:
        ToolSourceError: the folder cannot be read, or is a skill itself.
    """
    source = readable_path(str(settings.folder))
    skills: list[Skill] = []
    problems: list[LoadProblem] = []
    with closing(open_top(settings)) as top:
        names = sorted(_folders(top, source, problems))
        if SKILL_FILE in os.listdir(top.fd):  # noqa: PTH208  # a descriptor
            hint = f"Name the folder above: {readable_path(str(settings.folder.parent))}."
            raise ToolSourceError("this folder is a skill itself.", source=source, hint=hint)
        for name in names[: settings.max_skills]:
            place = readable_path(name)
            try:
                skills.append(read_skill(top, name, settings))
            except ContentError as error:
                place = f"{place}/{error.place}".rstrip("/")
                problems.append(_problem(source, place, error.message, error.hint))
            except HeaderError as error:
                place = f"{place}/{SKILL_FILE}:{error.line}" + (f": {error.field}" if error.field else "")
                problems.append(_problem(source, place, error.message, error.hint))
    if (more := len(names) - settings.max_skills) > 0:
        message = f"it has {more:,} folders beyond the first {settings.max_skills:,}, which are left out"
        problems.append(_problem(source, "", message, "Remove what is not needed, or raise `max_skills`."))
    return tuple(skills), tuple(problems)


def read_skill(top: ConfinedDirectory, name: str, settings: SkillFolder) -> Skill:
    """The skill in the folder `name`.

    Raises:
        ContentError: its files cannot be used.
        HeaderError: the header of its `SKILL.md` cannot be used.
    """
    content = read_content(top, name, settings, lambda path: path == SKILL_FILE)
    data = content.kept.get(SKILL_FILE)
    if data is None:
        other = next((path for path in content.files if path.lower() == SKILL_FILE.lower()), "")
        add = f"Add it, or move the folder {readable_path(name)} elsewhere."
        hint = f"Rename {other} to {SKILL_FILE}." if other else add
        raise ContentError(f"it has no {SKILL_FILE}", hint=hint)
    if len(data) > MAX_TEXT_BYTES:
        message = f"it has {len(data):,} bytes, more than {MAX_TEXT_BYTES:,}"
        raise ContentError(message, place=SKILL_FILE, hint="Move parts of it into files below references/.")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ContentError("it is not UTF-8", place=f"{SKILL_FILE}:{line}", hint="Save it as UTF-8.") from None
    if (hidden := hidden_character(text.removeprefix("\ufeff"))) is not None:
        message = f"it has the invisible character {hidden[1]}, which only a model reads"
        hint = "Remove it, and save the file as UTF-8."
        raise ContentError(message, place=f"{SKILL_FILE}:{hidden[0]}", hint=hint)
    return Skill(header=read_header(text, name), content=SkillContent(files=content.files))


def _folders(top: ConfinedDirectory, source: str, problems: list[LoadProblem]) -> Iterator[str]:
    """The names of the folders, without hidden ones. A link is a problem; files beside the folders are nobody's."""
    with os.scandir(top.fd) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                hint = "Copy the folder itself here, or name the folder where it is as another source."
                place = readable_path(entry.name)
                problems.append(_problem(source, place, "it is a symbolic link, which is not followed", hint))
            elif entry.is_dir(follow_symlinks=False):
                yield entry.name


def _problem(source: str, place: str, message: str, hint: str) -> LoadProblem:
    return LoadProblem(source=source, place=escape_invisible(place), message=f"{escape_invisible(message)}.", hint=hint)
