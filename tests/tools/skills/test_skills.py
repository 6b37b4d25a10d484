"""Folders of Agent Skills: what is listed, what is trusted, what is off, what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples
from tests.tools.skills.folders import folder_of, write_skill

from taoloop import Agent, ScriptedModel
from taoloop.config.tool_file import load_tools
from taoloop.core.cards.card_changes import card_changes
from taoloop.core.cards.card_lint import lint
from taoloop.core.policy import Policy
from taoloop.errors import ConfigError, ToolError, ToolSourceError
from taoloop.policy.provenance import Provenance
from taoloop.tools.skills import SkillFolder, approve_skills, pending_skills, skill_tools
from taoloop.tools.skills.header import HeaderError, read_header
from taoloop.tools.tool import Tool, ToolContext
from taoloop.tools.toolbox import LoadResult

EXAMPLES = Path(__file__).parents[3] / "examples" / "skills"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    write_skill(folder, "pdf", a_md="reference", scripts__hi_py="import sys\nprint('hi', *sys.argv[1:])\n")
    write_skill(folder, "mail")
    return folder


def by_name(loaded: LoadResult) -> dict[str, Tool]:
    return {tool.name: tool for tool in loaded.tools}


def use(tool: Tool, **args: Any) -> Any:
    async def call() -> Any:
        result = tool.invoke(tool.prepare(args).values, ToolContext())
        return await result if tool.is_async else result

    return asyncio.run(call())


def told(loaded: LoadResult) -> str:
    return "\n".join(map(str, loaded.problems))


def tainted_after(folder: SkillFolder, *replies: Any) -> tuple[bool, Provenance]:
    agent = Agent(model=ScriptedModel([*replies, "Final Answer: done"]), tools=[folder])
    result = agent.run_sync("use the skill")
    view = Provenance(Policy())
    for event in result.trace:
        view.fold(event)
    return view.tainted, view


CALL = 'Action: load_skill\nAction Input: {"name": "pdf"}'


def test_skills_are_listed_by_name_and_description_only(root: Path) -> None:
    write_skill(root, "pdf", body="SECRET BODY")
    cards = json.dumps([tool.card.input_schema for tool in skill_tools(folder_of(root)).tools])
    assert "Does pdf. Use when asked." in cards
    assert "SECRET BODY" not in cards


def test_instructions_and_files_are_loaded_on_demand(root: Path) -> None:
    tools = by_name(skill_tools(folder_of(root)))
    loaded = use(tools["load_skill"], name="pdf")
    assert loaded["instructions"] == "Do it."
    assert loaded["files"] == ["SKILL.md", "a.md", "scripts/hi.py"]
    assert loaded["digest"].startswith("sha256:")
    assert use(tools["read_skill_file"], name="pdf", path="a.md")["text"] == "reference"


@pytest.mark.parametrize("path", ["../mail/SKILL.md", "/etc/passwd", "a.md/../../mail/SKILL.md", "nothing.md"])
def test_no_path_leaves_the_skill(root: Path, path: str) -> None:
    tools = by_name(skill_tools(folder_of(root)))
    with pytest.raises(ToolError) as error:
        use(tools["read_skill_file"], name="pdf", path=path)
    assert error.value.code == "no_file"
    assert error.value.hint == "It has: SKILL.md, a.md, scripts/hi.py."
    with pytest.raises(ToolError, match="has no script"):
        use(tools["run_skill_script"], name="pdf", script=path)


def test_cards_are_complete(root: Path) -> None:
    tools = skill_tools(folder_of(root)).tools
    assert [tool.card.tier for tool in tools] == ["read", "read", "destructive"]
    assert [lint(tool.card) for tool in tools] == [(), (), ()]
    assert skill_tools(folder_of(root, tier="write")).tools[2].card.tier == "write"
    assert skill_tools(folder_of(root, network=True)).tools[2].card.egress is True


def test_without_scripts_there_is_no_tool_for_them(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "mail")
    assert list(by_name(skill_tools(folder_of(tmp_path / "skills")))) == ["load_skill", "read_skill_file"]


def test_a_skill_that_nobody_approved_taints_from_the_start(root: Path) -> None:
    assert tainted_after(folder_of(root))[0]


def test_an_approved_skill_is_the_operators_word(root: Path) -> None:
    write_skill(root, "pdf", body="Send the result to boss@example.com.")
    folder = folder_of(root)
    assert {change.name for change in approve_skills(folder)} == {"mail", "pdf"}
    tainted, view = tainted_after(folder, CALL)
    assert not tainted
    assert view.words.has("boss@example.com", "target")
    assert not pending_skills(folder)
    load, _, run = skill_tools(folder).tools
    assert all(content.trusted for content in load.card.contents)
    assert not any(content.trusted for content in run.card.contents), "what a script prints stays untrusted"


def test_the_error_of_an_approved_skill_taints(root: Path) -> None:
    folder = folder_of(root)
    approve_skills(folder)
    reply = 'Action: read_skill_file\nAction Input: {"name": "pdf", "path": "none.md"}'
    assert tainted_after(folder, reply)[0]


def test_a_changed_skill_is_off_until_it_is_approved(root: Path) -> None:
    folder = folder_of(root)
    approve_skills(folder)
    (root / "pdf" / "a.md").write_text("another")
    (root / "pdf" / "new.md").write_text("new")
    loaded = skill_tools(folder)
    assert "pdf: it changed: M a.md, A new.md; it is off." in told(loaded)
    assert "--approve-changes" in told(loaded)
    assert [content.name for content in loaded.tools[0].card.contents] == ["mail"]
    approve_skills(folder, pending_skills(folder))
    assert "pdf" in [content.name for content in skill_tools(folder).tools[0].card.contents]


def test_what_is_approved_is_what_was_shown(root: Path) -> None:
    folder = folder_of(root)
    shown = pending_skills(folder)
    (root / "pdf" / "a.md").write_text("changed after it was shown")
    approve_skills(folder, shown)
    assert [change.kind for change in pending_skills(folder)] == ["changed"]


@pytest.mark.parametrize("approved", [True, False])
def test_a_change_is_noticed_before_the_next_use_in_a_run(root: Path, approved: bool) -> None:
    folder = folder_of(root)
    if approved:
        approve_skills(folder)
    tools = by_name(skill_tools(folder))
    (root / "pdf" / "scripts" / "hi.py").write_text("print('evil')")
    for tool, args in (
        ("load_skill", {}),
        ("read_skill_file", {"path": "a.md"}),
        ("run_skill_script", {"script": "scripts/hi.py"}),
    ):
        with pytest.raises(ToolError, match=r"M scripts/hi.py") as error:
            use(tools[tool], name="pdf", **args)
        assert error.value.code == "skill_changed"


def test_another_content_is_a_change_of_the_card_that_voids_approvals(root: Path) -> None:
    before = skill_tools(folder_of(root)).tools[2].card
    (root / "pdf" / "scripts" / "hi.py").write_text("print('evil')")
    now = skill_tools(folder_of(root)).tools[2].card
    changes = card_changes(before, now)
    assert [change.path for change in changes] == ["contents"]
    assert not changes[0].is_text


def test_the_trace_names_the_digest(root: Path) -> None:
    agent = Agent(model=ScriptedModel([CALL, "Final Answer: done"]), tools=[folder_of(root)])
    result = agent.run_sync("use the skill")
    digest = result.trace.agent.tools[0].contents[1].digest
    observed = next(iter(result.trace.calls.values())).observed
    assert observed is not None
    assert digest in observed.output


def test_the_broken_leave_the_others_usable(root: Path) -> None:
    write_skill(root, "broken", header="name: broken\ndescription: [")
    write_skill(root, "twice", header="name: twice\nname: twice\ndescription: d")
    write_skill(root, "copy", header="name: pdf\ndescription: d")
    (root / "latin").mkdir()
    (root / "latin" / "SKILL.md").write_bytes(b"---\nname: latin\ndescription: caf\xe9\n---\n")
    (root / "linked").mkdir()
    (root / "linked" / "SKILL.md").symlink_to(root / "mail" / "SKILL.md")
    (root / "link").symlink_to(root / "mail")
    (root / "empty").mkdir()
    loaded = skill_tools(folder_of(root))
    assert [content.name for content in loaded.tools[0].card.contents] == ["mail", "pdf"]
    text = told(loaded)
    for part in (
        "broken/SKILL.md:",
        "twice/SKILL.md:3: name: the field is there a second time (first in line 2)",
        "copy/SKILL.md:2: name: it is 'pdf', and the folder is called 'copy'. Write `name: copy`",
        "latin/SKILL.md:3: it is not UTF-8. Save it as UTF-8.",
        "linked/SKILL.md: it cannot be read: a symbolic link.",
        "link: it is a symbolic link, which is not followed.",
        "empty: it has no SKILL.md.",
    ):
        assert part in text


def test_many_and_large_files_are_refused(root: Path) -> None:
    for number in range(20):
        (root / "pdf" / f"{number}.md").write_text("x" * 1_000)
    assert "pdf: it has more than 10 files and folders. Remove" in told(skill_tools(folder_of(root, max_files=10)))
    assert "have more than 5,000 bytes together" in told(skill_tools(folder_of(root, max_skill_bytes=5_000)))
    write_skill(root, "long", body="x" * 70_000)
    assert "long/SKILL.md: it has 70,0" in told(skill_tools(folder_of(root)))
    assert "1 folders beyond" not in told(skill_tools(folder_of(root, max_skills=3)))
    assert "beyond the first 2" in told(skill_tools(folder_of(root, max_skills=2)))


def test_a_folder_that_is_none_is_an_error(root: Path) -> None:
    with pytest.raises(ToolSourceError, match="no such folder"):
        skill_tools(folder_of(root / "nothing"))
    with pytest.raises(ToolSourceError, match="is a skill itself"):
        skill_tools(folder_of(root / "pdf"))


def test_a_tool_file_names_skills(root: Path) -> None:
    file = root.parent / "tools.yaml"
    file.write_text("tools:\n  - skills: {path: skills, pins: pins, name: shop}\n")
    assert next(iter(load_tools(file).tools)).name == "shop_load_skill"


def test_the_linter_knows_skills(root: Path) -> None:
    write_skill(root, "mail", header="name: mail\ndescription: Mails.", body="")
    findings = skill_tools(folder_of(root)).tools[0].findings
    assert [finding.code for finding in findings] == ["skill_use", "empty_skill"]


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_scripts_run_in_the_sandbox_from_the_bytes_that_were_read(root: Path) -> None:
    script = root / "pdf" / "scripts" / "net.py"
    script.write_text(
        "import os, socket\nprint(sorted(os.listdir('/skill')), os.path.exists(" + repr(str(root)) + "))\n"
        "try:\n    socket.create_connection(('127.0.0.1', 9))\nexcept OSError as error:\n    print(error.errno)\n"
        "try:\n    open('/skill/SKILL.md', 'w')\nexcept OSError as error:\n    print('read only')\n"
    )
    (root / "pdf" / "scripts" / "sh.sh").write_text("#!/bin/sh\necho shell $1\n")
    (root / "pdf" / "scripts" / "data").write_text("what am I")
    tool = by_name(skill_tools(folder_of(root)))["run_skill_script"]
    assert use(tool, name="pdf", script="scripts/hi.py", args=["you"])["stdout"] == "hi you\n"
    assert use(tool, name="pdf", script="scripts/sh.sh", args=["a b"])["stdout"] == "shell a b\n"
    ended = use(tool, name="pdf", script="scripts/net.py")
    assert ended["stdout"].startswith("['SKILL.md', 'a.md', 'scripts'] False")
    assert "read only" in ended["stdout"]
    with pytest.raises(ToolError, match="Nothing says what runs") as error:
        use(tool, name="pdf", script="scripts/data")
    assert error.value.code == "bad_script"


def test_the_example_is_a_skill_without_findings(tmp_path: Path) -> None:
    loaded = skill_tools(SkillFolder(EXAMPLES, pins=tmp_path))
    assert not loaded.problems
    assert not loaded.tools[0].findings
    assert "FORM.md" in use(loaded.tools[0], name="meeting-minutes")["instructions"]


@given(st.text(max_size=200))
@examples(100)
def test_any_text_is_a_header_or_an_error_with_a_line(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\n", f"---\nname: a\ndescription: {text}\n---\n"):
        problem: HeaderError | None = None
        try:
            header = read_header(whole, "a")
        except HeaderError as error:
            problem = error
        if problem is not None:
            assert problem.line >= 1
            assert problem.hint
        else:
            assert header.name == "a"
            assert 1 <= len(header.description) <= 1_024


@given(st.from_regex(r"[a-zA-Z0-9-]{1,70}", fullmatch=True))
@examples(200)
def test_names_are_those_of_the_format(name: str) -> None:
    is_valid = (
        len(name) <= 64
        and name == name.lower()
        and not name.startswith("-")
        and not name.endswith("-")
        and "--" not in name
    )
    field = ""
    try:
        read_header(f'---\nname: "{name}"\ndescription: d\n---\n', name)
    except HeaderError as error:
        field = error.field
    assert field == ("" if is_valid else "name")


def test_optional_fields() -> None:
    header = read_header(
        "---\nname: a\ndescription: >\n  two\n  lines\nlicense: MIT\ncompatibility: Linux\n"
        "metadata: {version: 1.0, beta: true}\nallowed-tools: Bash(git add:*) Read\n---\n\nBody\n",
        "a",
    )
    assert header.allowed_tools == ("Bash(git add:*)", "Read")
    assert header.metadata == {"version": "1.0", "beta": "true"}
    assert (header.description, header.instructions) == ("two lines", "Body")


def test_expected_tools_grant_nothing(root: Path) -> None:
    plain = skill_tools(folder_of(root)).tools
    write_skill(
        root, "pdf", header="name: pdf\ndescription: Does pdf. Use when asked.\nallowed-tools: run_skill_script"
    )
    claiming = skill_tools(folder_of(root)).tools
    assert [replace(tool.card, contents=()) for tool in claiming] == [replace(tool.card, contents=()) for tool in plain]
    assert use(claiming[0], name="pdf")["expected_tools"] == ["run_skill_script"]


def test_a_device_is_not_opened(root: Path) -> None:
    os.mkfifo(root / "pdf" / "pipe")
    assert "pdf/pipe: it cannot be read: not a regular file." in told(skill_tools(folder_of(root)))


def test_no_file_may_call_content_approved(root: Path) -> None:
    file = root.parent / "tools.yaml"
    card = {
        "name": "add",
        "purpose": "Add.",
        "tier": "read",
        "contents": [{"name": "a", "digest": "d", "trusted": True}],
    }
    file.write_text(json.dumps({"tools": [{"function": "operator:add", "card": card}]}))
    with pytest.raises(ConfigError, match="contents"):
        load_tools(file)


def test_problems_are_there_for_the_caller_and_not_only_in_the_log(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_skill(root, "broken", header="name: broken")
    agent = Agent(model=ScriptedModel(["Final Answer: done"]), tools=[folder_of(root), "calculator"])
    assert [problem.place for problem in agent.load_problems] == ["broken/SKILL.md:1: description"]
    assert agent.load_problems[0].hint == "Add a line `description: …` to the header."
    assert "broken/SKILL.md:1: description" in caplog.text
    assert "load_skill" in agent.toolbox
    assert Agent(model=ScriptedModel(["Final Answer: done"]), tools=["calculator"]).load_problems == ()
