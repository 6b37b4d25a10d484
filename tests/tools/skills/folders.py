"""Folders of skills for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taoloop.tools.skills import SkillFolder

HI = "import sys\nprint('hi', *sys.argv[1:])\n"


def write_skill(root: Path, name: str, *, body: str = "Do it.", header: str = "", **files: str) -> Path:
    """A skill; in the names of files `__` is a slash and `_py` an ending."""
    folder = root / name
    (folder / "scripts").mkdir(parents=True, exist_ok=True)
    text = header or f"name: {name}\ndescription: Does {name}. Use when asked."
    (folder / "SKILL.md").write_text(f"---\n{text}\n---\n{body}\n", encoding="utf-8")
    for file, content in files.items():
        (folder / file.replace("__", "/").replace("_py", ".py").replace("_md", ".md")).write_text(content)
    return folder


def needing(name: str, tools: str) -> str:
    """The header of a skill that names the tools that it needs."""
    return f"name: {name}\ndescription: Does {name}. Use when asked.\nallowed-tools: {tools}"


def folder_of(root: Path, **more: Any) -> SkillFolder:
    """The settings of a folder whose approvals are kept beside it."""
    return SkillFolder(root, pins=root.parent / "pins", **more)
