"""What the linter says of skills: what keeps a model from using them well, or their list of tools from counting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from taoloop.core.cards.card_lint import Finding
from taoloop.tools.skills.header import SkillHeader

MAX_LINES = 500
"""The most lines of instructions, by the advice of the format."""


def skill_findings(headers: Iterable[SkillHeader]) -> tuple[Finding, ...]:
    """The findings of skills, in their order."""
    return tuple(finding for header in headers for finding in _findings(header))


def _findings(header: SkillHeader) -> Iterator[Finding]:
    name = header.name
    if len(header.instructions.splitlines()) > MAX_LINES:
        yield Finding(
            code="long_skill",
            field=f"{name}.instructions",
            message=f"The instructions of the skill {name} have more than {MAX_LINES} lines.",
            advice="Move details into files below references/.",
        )
    if "when" not in header.description.lower() and not set(header.description) & set("时当若"):
        yield Finding(
            code="skill_use",
            field=f"{name}.description",
            message=f"The description of the skill {name} does not say when to use it.",
            advice="Add a sentence such as `Use when …`.",
        )
    if not header.instructions:
        yield Finding(
            code="empty_skill",
            field=f"{name}.instructions",
            message=f"The skill {name} has no instructions.",
            advice="Write them below the header of SKILL.md.",
        )
    if patterns := [tool for tool in header.allowed_tools or () if "(" in tool]:
        yield Finding(
            code="skill_tools",
            field=f"{name}.allowed-tools",
            message=f"The skill {name} names tools by a pattern that is none here: {', '.join(patterns)}.",
            advice="Name tools of the agent; calls of others that do more than read need a person.",
        )
