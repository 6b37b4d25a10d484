"""Folders of Agent Skills (`SKILL.md`) as tools: listed by description, loaded on demand, trusted once approved."""

from __future__ import annotations

from taoloop.tools.skills.approval import SkillChange, approve_skills, pending_skills
from taoloop.tools.skills.load import skill_tools
from taoloop.tools.skills.settings import SkillFolder

__all__ = ["SkillChange", "SkillFolder", "approve_skills", "pending_skills", "skill_tools"]
