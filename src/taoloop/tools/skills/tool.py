"""The tools `load_skill`, `read_skill_file` and `run_skill_script` of one folder.

Each call reads the whole skill again and goes on only if it is what the cards name, by its digest. So a changed file
is noticed before the next use, and a script that runs is the one that was read: it runs from a copy of those bytes.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from taoloop.core.cards.tool_card import ContentCard, ErrorCard, ToolCard
from taoloop.errors import ToolError
from taoloop.tools.builtin.commands import program_result
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.sandbox.confinement import SandboxLimits
from taoloop.tools.sandbox.sandbox import Sandbox
from taoloop.tools.skills.approval import file_changes
from taoloop.tools.skills.content import ContentError, SkillContent, hidden_character, read_content
from taoloop.tools.skills.findings import skill_findings
from taoloop.tools.skills.header import SkillHeader
from taoloop.tools.skills.reading import MAX_TEXT_BYTES, Skill, open_top
from taoloop.tools.skills.settings import SkillFolder
from taoloop.tools.skills.texts import TEXTS
from taoloop.tools.texts import CardTexts
from taoloop.tools.tool import Tool
from taoloop.tools.workspace.confined_dir import split_path

SKILL_MOUNT = "/skill"
_OWN_TOOLS = ("load_skill", "read_skill_file", "run_skill_script")
_MORE_S = 30.0  # beyond the script's own time: the start, and the end of what does not want to end
_PREVIEW_CHARS = 2 * MAX_TEXT_BYTES  # a text as JSON is longer than itself
_SHOWN_FILES = 100


class SkillTools:
    """The tools of a folder for the skills that it offers; `trusted` names those that the operator approved."""

    def __init__(self, settings: SkillFolder, skills: Sequence[Skill], trusted: frozenset[str]) -> None:
        self._settings, self._trusted = settings, trusted
        self._skills = {skill.header.name: skill for skill in skills}
        self._prefix = f"{settings.name}_" if settings.name else ""
        self._sandbox = Sandbox(
            None if settings.workspace is None else Path(settings.workspace).expanduser(),
            network=settings.network,
            limits=SandboxLimits(wall_s=settings.timeout_s),
        )

    def tools(self) -> tuple[Tool, ...]:
        """The tools; that for scripts only where a skill has some."""
        has_scripts = any(skill.scripts for skill in self._skills.values())
        return (self._load_tool(), self._read_tool(), *((self._run_tool(),) if has_scripts else ()))

    def load(self, name: str) -> dict[str, Any]:
        """The instructions of a skill.

        Raises:
            ToolError: `skill_changed`.
        """
        skill = self._skills[name]
        content = self._current(skill, lambda _: False)
        files = list(content.files)
        out: dict[str, Any] = {
            "skill": name,
            "digest": content.digest,
            "approved": name in self._trusted,
            "instructions": skill.header.instructions,
            "files": files[:_SHOWN_FILES],
        }
        if len(files) > _SHOWN_FILES:
            out["files_more"] = len(files) - _SHOWN_FILES
        if skill.header.compatibility:
            out["compatibility"] = skill.header.compatibility
        if skill.header.allowed_tools is not None:
            out["expected_tools"] = list(skill.header.allowed_tools)
        return out

    def read(self, name: str, path: str) -> dict[str, Any]:
        """A text file of a skill, and the digest of the skill that it belongs to.

        Raises:
            ToolError: `skill_changed`, `no_file`, `too_large`, `not_text` or `hidden_text`.
        """
        skill = self._skills[name]
        path = self._inner_path("no_file", skill, path, tuple(skill.content.files))
        content = self._current(skill, lambda other: other == path)
        data = content.kept.get(path)
        if data is None:
            raise self._no_file("no_file", skill, path, tuple(skill.content.files))
        if len(data) > MAX_TEXT_BYTES:
            raise TEXTS.error("file_large", "too_large", path=path, size=len(data), limit=MAX_TEXT_BYTES)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise TEXTS.error("file_not_text", "not_text", path=path)
        if (hidden := hidden_character(text.removeprefix("\ufeff"))) is not None:
            raise TEXTS.error("file_hidden", "hidden_text", path=path, line=hidden[0], character=hidden[1])
        return {"skill": name, "digest": content.digest, "path": path, "text": text}

    async def run(self, name: str, script: str, args: Sequence[str]) -> dict[str, Any]:
        """Run a script of a skill to its end.

        Raises:
            ToolError: `skill_changed`, `no_script`, `bad_script`, `no_sandbox` or `sandbox_failed`.
                Nothing was run.
        """
        skill = self._skills[name]
        path = self._inner_path("no_script", skill, script, skill.scripts)
        if path not in skill.scripts:
            raise self._no_file("no_script", skill, path, skill.scripts)
        content = await asyncio.to_thread(self._current, skill, lambda _: True)
        folder = await asyncio.to_thread(_copied, content.kept)
        try:
            ended = await self._sandbox.run_file(folder, path, args, at=SKILL_MOUNT)
        finally:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
        return {"skill": name, "digest": content.digest, **program_result(ended, self._sandbox.limits)}

    def _current(self, skill: Skill, keep: Callable[[str], bool]) -> SkillContent:
        """The content of a skill now, if it is still the one that the cards name.

        Raises:
            ToolError: `skill_changed`.
        """
        name = skill.header.name
        try:
            with closing(open_top(self._settings)) as top:
                content = read_content(top, name, self._settings, keep)
        except ContentError as error:
            place = f"{name}/{error.place}"
            raise TEXTS.error(
                "skill_unreadable", "skill_changed", name=name, place=place, reason=error.message
            ) from error
        if content.files != skill.content.files:
            changes = file_changes(skill.content.files, content.files)
            raise TEXTS.error("skill_changed", "skill_changed", name=name, changes=changes)
        return content

    def _inner_path(self, text: str, skill: Skill, path: str, files: tuple[str, ...]) -> str:
        """A path within the folder of a skill; one that leads out of it is none of its files."""
        try:
            return "/".join(split_path(path))
        except ToolError:
            raise self._no_file(text, skill, path, files) from None

    def _no_file(self, text: str, skill: Skill, path: str, files: tuple[str, ...]) -> ToolError:
        hint = TEXTS.run_text("its_files_hint", files=", ".join(files[:_SHOWN_FILES]) or TEXTS.run_text("none"))
        return TEXTS.error(text, text, hint=hint, name=skill.header.name, path=path[:200])

    def _load_tool(self) -> Tool:
        text = CardTexts(TEXTS)
        listing = "\n".join(f"- {name}: {skill.header.description}" for name, skill in self._skills.items())
        schema = self._schema({"name": text("load_name", skills=f"\n{listing}")})
        card = self._card(text, "load_skill", schema, purpose="load", trusted=self._trusted)
        tool = tool_from_card(card, self.load, chinese=text.chinese)
        return tool.with_findings(skill_findings(skill.header for skill in self._skills.values()))

    def _read_tool(self) -> Tool:
        text = CardTexts(TEXTS)
        schema = self._schema(
            {"name": text("skill_name"), "path": text("read_path")},
            path={"type": "string", "minLength": 1, "maxLength": 1_000},
        )
        errors = ("no_file", "not_text", "hidden_text")
        card = self._card(text, "read_skill_file", schema, purpose="read", trusted=self._trusted, errors=errors)
        return tool_from_card(card, self.read, chinese=text.chinese)

    def _run_tool(self) -> Tool:
        text = CardTexts(TEXTS)
        argument = {"type": "string", "maxLength": 10_000, "pattern": r"^[^\u0000]*$"}
        schema = self._schema(
            {"name": text("skill_name"), "script": text("run_script"), "args": text("run_args")},
            script={"type": "string", "minLength": 1, "maxLength": 1_000},
            args={"type": "array", "items": argument, "maxItems": 64, "default": []},
        )
        errors = ("no_script", "bad_script", "no_sandbox", "sandbox_failed")
        card = self._card(
            text,
            "run_skill_script",
            schema,
            purpose="run",
            errors=errors,
            tier=self._settings.tier,
            egress=self._settings.network,
            timeout_s=self._settings.timeout_s + _MORE_S,
            reversible=False,
            roles={"name": "ref:skill", "script": "target", "args": "target"},
        )

        async def run_skill_script(name: str, script: str, args: Sequence[str] = ()) -> dict[str, Any]:
            return await self.run(name, script, args)

        return tool_from_card(card, run_skill_script, chinese=text.chinese)

    def _schema(self, descriptions: Mapping[str, str], **rules: Mapping[str, Any]) -> dict[str, Any]:
        """The schema of arguments that are required unless they have a default; `name` is one of the skills."""
        known = {"name": {"type": "string", "enum": list(self._skills)}, **rules}
        properties = {name: {**known[name], "description": text} for name, text in descriptions.items()}
        required = [name for name, rule in properties.items() if "default" not in rule]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def _card(
        self,
        text: CardTexts,
        name: str,
        schema: Mapping[str, Any],
        *,
        purpose: str,
        trusted: frozenset[str] = frozenset(),
        errors: tuple[str, ...] = (),
        **fields: Any,
    ) -> ToolCard:
        """A card with what all of these tools have in common, and the texts that begin with `purpose`."""
        settings, load = self._settings, f"{self._prefix}load_skill"
        values: dict[str, Any] = {"load": load}
        if purpose == "run":
            network, folder = (
                "run_network" if settings.network else "run_no_network",
                "run_empty_folder" if settings.workspace is None else "run_workspace",
            )
            values["seconds"] = settings.timeout_s
            values["network"] = lambda language: TEXTS.text(language, network)
            values["folder"] = lambda language: TEXTS.text(language, folder)
        advised = [
            ErrorCard(code=code, advice=text(f"{code}_advice", load=load)) for code in ("skill_changed", *errors)
        ]
        contents = tuple(
            ContentCard(
                name=name, digest=skill.content.digest, trusted=name in trusted, tools=self._named_tools(skill.header)
            )
            for name, skill in self._skills.items()
        )
        return ToolCard(
            name=f"{self._prefix}{name}",
            purpose=text(purpose, **values),
            use_when=text(f"{purpose}_when"),
            avoid_when=text(f"{purpose}_not_when", load=load),
            input_schema=schema,
            errors=tuple(advised),
            contents=contents,
            described_by="operator" if self._trusted.issuperset(self._skills) else "third_party",
            **{"tier": "read", "egress": False, "max_preview_chars": _PREVIEW_CHARS, **fields},
        )

    def _named_tools(self, header: SkillHeader) -> tuple[str, ...] | None:
        """The tools that a skill says it needs, as they are called here; a pattern such as `Bash(git:*)` is none."""
        if header.allowed_tools is None:
            return None
        names = (name for name in header.allowed_tools if "(" not in name)
        return tuple(f"{self._prefix}{name}" if name in _OWN_TOOLS else name for name in names)


def _copied(files: Mapping[str, bytes]) -> Path:
    """A new folder with these files, each of which may be run."""
    folder = Path(tempfile.mkdtemp(prefix="taoloop-skill-"))
    for path, data in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o755)
    return folder
