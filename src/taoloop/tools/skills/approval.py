"""Which skills a person approved, and what of a folder is not as it was approved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from taoloop.tools.pins.pin_file import PinFile, pins_folder
from taoloop.tools.skills.reading import Skill, read_skills
from taoloop.tools.skills.settings import SkillFolder

_SHOWN_FILES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillChange:
    """A skill that is not as it was approved, or was never approved."""

    skill: Skill
    """The skill as it is now, which is what to approve."""
    approved: Mapping[str, str] | None
    """The SHA-256 of its approved files by path; None for a skill that nobody approved yet."""

    @property
    def name(self) -> str:
        """The name of the skill."""
        return self.skill.header.name

    @property
    def kind(self) -> Literal["changed", "new"]:
        """What happened to it."""
        return "new" if self.approved is None else "changed"

    def __str__(self) -> str:
        """What differs, in one line."""
        if self.approved is None:
            files = _listed(list(self.skill.content.files))
            return f"{self.name} is new: {self.skill.header.description!r}; {files}; {self.skill.content.digest}"
        return f"{self.name} changed: {file_changes(self.approved, self.skill.content.files)}"


def file_changes(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The files that differ between two contents of a skill, in one line, as git marks them: A, D and M."""
    changes = {path: "A" for path in now if path not in before}
    changes |= {path: "D" for path in before if path not in now}
    changes |= {path: "M" for path in now if path in before and before[path] != now[path]}
    return _listed([f"{change} {path}" for path, change in sorted(changes.items())])


def approvals(settings: SkillFolder) -> PinFile:
    """The file of what was approved of a folder."""
    folder = pins_folder("skill-pins") if settings.pins is None else Path(settings.pins).expanduser()
    path = folder / f"{settings.identity}.json"
    return PinFile(path, source=str(settings.folder), owner="folder", label=str(settings.folder), kind="skills")


def compare(settings: SkillFolder, skills: Iterable[Skill]) -> dict[str, SkillChange]:
    """The skills that are not as they were approved, by name; the others are.

    Raises:
        ToolSourceError: the file of approvals cannot be read. Nothing counts as approved then.
    """
    known = approvals(settings).known() or {}
    changes = {}
    for skill in skills:
        files = known.get(skill.header.name, {}).get("files")
        approved = {str(path): str(digest) for path, digest in files.items()} if isinstance(files, dict) else None
        if approved != skill.content.files:
            changes[skill.header.name] = SkillChange(skill=skill, approved=approved)
    return changes


def pending_skills(settings: SkillFolder) -> tuple[SkillChange, ...]:
    """The skills of a folder that are not as they were approved, new ones too, in the order of their names.

    Raises:
        ToolSourceError: the folder, or the file of approvals, cannot be read.
    """
    return tuple(compare(settings, read_skills(settings)[0]).values())


def approve_skills(settings: SkillFolder, changes: Iterable[SkillChange] | None = None) -> tuple[SkillChange, ...]:
    """Approve skills exactly as they were shown; None: all that are there now. Gives those that were approved.

    Their texts then count as the operator's own instructions.

    Raises:
        ToolSourceError: the folder cannot be read, or the file of approvals cannot be read or written.
    """
    accepted = tuple(pending_skills(settings) if changes is None else changes)
    if accepted:
        file = approvals(settings)
        file.keep({**(file.known() or {}), **{change.name: _record(change.skill) for change in accepted}})
    return accepted


def _record(skill: Skill) -> dict[str, object]:
    return {"digest": skill.content.digest, "files": dict(skill.content.files)}


def _listed(texts: list[str]) -> str:
    more = len(texts) - _SHOWN_FILES
    return ", ".join(islice(texts, _SHOWN_FILES)) + (f" and {more:,} more" if more > 0 else "")
