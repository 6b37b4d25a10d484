"""The tools of a folder of skills, and the problems of those that cannot be used."""

from __future__ import annotations

from taoloop.core.text import escape_invisible
from taoloop.tools.skills.approval import compare, file_changes
from taoloop.tools.skills.reading import read_skills
from taoloop.tools.skills.settings import SkillFolder
from taoloop.tools.skills.tool import SkillTools
from taoloop.tools.toolbox import LoadProblem, LoadResult
from taoloop.tools.workspace.confined_dir import readable_path

_APPROVE = "Look at the change, and approve it to have the skill back: `tao tools FILE --approve-changes`."


def skill_tools(settings: SkillFolder) -> LoadResult:
    """`load_skill`, `read_skill_file` and `run_skill_script` for the skills of a folder; none where it has none.

    A skill that cannot be used, or is not as it was approved, is left out and a problem. One that nobody approved is
    offered, and what it says is untrusted: a run that is offered one is tainted from its start, since the model reads
    its description.

    Raises:
        ToolSourceError: the folder, or the file of approvals, cannot be read.
    """
    skills, problems = read_skills(settings)
    changes = compare(settings, skills)
    offered, source = [], readable_path(str(settings.folder))
    for skill in skills:
        change = changes.get(skill.header.name)
        if change is None or change.kind == "new":
            offered.append(skill)
            continue
        changed = escape_invisible(file_changes(change.approved or {}, skill.content.files))
        message = f"it changed: {changed}; it is off."
        problems = (*problems, LoadProblem(source=source, place=change.name, message=message, hint=_APPROVE))
    trusted = frozenset(skill.header.name for skill in offered if skill.header.name not in changes)
    tools = SkillTools(settings, offered, trusted).tools() if offered else ()
    return LoadResult(tools=tools, problems=problems)
