"""Skills on the command line: `--skills DIR`, what is listed, approved and off, in English and in Chinese."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from tests.chinese import english_in
from tests.shell import Shell
from tests.tools.skills.folders import needing, write_skill

LOAD = json.dumps(['Action: load_skill\nAction Input: {"name": "pdf"}', "Final Answer: done"])


@pytest.fixture
def shell(tao: Shell) -> Shell:
    write_skill(tao.folder / "skills", "pdf", body="Read it.", header=needing("pdf", "calculator Bash(git:*)"))
    write_skill(tao.folder / "skills", "mail")
    return tao


def listing(shell: Shell, **env: str) -> str:
    return shell("tools", "--skills", "skills", code=0, **env).out


def test_the_skills_of_a_folder_are_listed_with_their_state(shell: Shell) -> None:
    text = listing(shell)
    assert "- pdf: Does pdf. Use when asked." in text
    assert "contents:   mail [not approved: untrusted] sha256:" in text
    assert "; says it needs: calculator\n" in text
    assert "内容：" in listing(shell, TAOLOOP_LANG="zh")
    assert "mail [未批准：不可信] sha256:" in listing(shell, TAOLOOP_LANG="zh")
    card = shell("tools", "load_skill", "--skills", "skills", "--json", code=0).events[0]
    assert [content["name"] for content in card["contents"]] == ["mail", "pdf"]


def test_new_and_changed_skills_are_approved_as_they_are_shown(shell: Shell) -> None:
    """A changed skill is off until then; the approvals are kept in a file of pins beside the database."""
    approve = ("tools", "--skills", "skills", "--approve-changes")
    shown = shell(*approve, code=8)
    assert "pdf is new: 'Does pdf. Use when asked.'; SKILL.md; sha256:" in shown.out
    assert "nothing was approved" in shown.one_line
    assert "pdf 是新的：" in shell(*approve, code=8, TAOLOOP_LANG="zh").out
    assert shell(*approve, "pdf", "--yes", code=0).one_line.endswith("/skills: approved: pdf.")
    assert "pdf [approved] sha256:" in listing(shell)
    assert "mail [not approved: untrusted]" in listing(shell)
    pins = next((shell.folder / "skill-pins").glob("*.json"))
    assert json.loads(pins.read_text())["skills"]["pdf"]["files"].keys() == {"SKILL.md"}

    (shell.folder / "skills" / "pdf" / "evil.md").write_text("x")
    off = shell("tools", "--skills", "skills", code=0)
    assert "pdf: it changed: A evil.md; it is off. Look at the change, and approve it" in off.one_line
    assert "- pdf:" not in off.out
    chinese = shell("tools", "--skills", "skills", code=0, TAOLOOP_LANG="zh").one_line
    assert "pdf: 已变更：A evil.md；已停用。请查看变更" in chinese
    assert english_in(chinese.replace("tao tools FILE --approve-changes", "")) == ""
    assert "pdf changed: A evil.md" in shell(*approve, "pdf", code=8).out
    shell(*approve, "--yes", code=0)
    assert "all its skills are as they were approved." in shell(*approve, code=0).one_line
    assert "所有技能都与批准时一致" in shell(*approve, code=0, TAOLOOP_LANG="zh").one_line
    assert "no skill to approve that is called 'pfd'" in shell(*approve, "pfd", code=2).one_line


def test_pins_that_cannot_be_read_approve_nothing(shell: Shell) -> None:
    shell("tools", "--skills", "skills", "--approve-changes", "--yes", code=0)
    next((shell.folder / "skill-pins").glob("*.json")).write_text("{")
    done = shell("tools", "--skills", "skills", code=2)
    assert "its file of approved skills cannot be read" in done.err
    assert "Restore it, or delete it and approve again" in done.err
    assert "无法读取已批准内容" in shell("tools", "--skills", "skills", code=2, TAOLOOP_LANG="zh").err


def test_the_linter_speaks_both_languages(shell: Shell) -> None:
    write_skill(shell.folder / "skills", "mail", header="name: mail\ndescription: Mails.", body="")
    write_skill(shell.folder / "skills", "long", body="line\n" * 600)
    lint = ("tools", "--skills", "skills", "--lint")
    text = shell(*lint, code=1).out
    for line in (
        "mail.description: The description of the skill mail does not say when to use it. Add a sentence",
        "mail.instructions: The skill mail has no instructions. Write them below the header of SKILL.md. [empty_skill]",
        "long.instructions: The instructions of the skill long have more than 500 lines. Move details",
        "pdf.allowed-tools: The skill pdf names tools by a pattern that is none here: Bash(git:*).",
    ):
        assert line in text
    chinese = [line for line in shell(*lint, code=1, TAOLOOP_LANG="zh").out.splitlines() if "skill" in line]
    assert len(chinese) >= 4
    for line in chinese:
        assert english_in(line) == ""


def test_a_run_has_the_skills_beside_its_other_tools_and_is_resumed_with_them(shell: Shell) -> None:
    shell.write("replies.json", LOAD)
    run = shell(
        "run", "Use pdf.", "--skills", "skills", "--model", "scripted:replies.json", "--json", "--max-steps", "1"
    )
    events = run.events
    start = next(event for event in events if event["kind"] == "run_started")
    names = [card["name"] for card in start["agent"]["tools"]]
    assert names[:4] == ["calculator", "time_now", "load_skill", "read_skill_file"]
    assert start["agent"]["tools_from"] == [f"--skills={shell.folder / 'skills'}"]
    check = shell("resume", start["run_id"], "--check")
    assert "load_skill" not in check.out, "it is there, and as it was"


def test_show_names_the_text_that_was_loaded_by_its_hash(shell: Shell) -> None:
    shell.write("replies.json", LOAD)
    run = shell("run", "Use pdf.", "--skills", "skills", "--model", "scripted:replies.json", "--json", code=0)
    run_id = run.events[0]["run_id"]
    observed = next(event for event in run.events if event["kind"] == "observed")
    digest = json.loads(observed["output"])["digest"]
    for options in ((), ("--steps",), ("--events",)):
        text = "".join(shell("show", run_id, *options, code=0).out.split())
        assert f"pdf·{digest}·notapproved" in text.partition("Loaded")[2]
    assert f"pdf·{digest}·未批准" in "".join(shell("show", run_id, code=0, TAOLOOP_LANG="zh").out.split())


def test_several_folders_are_told_apart_by_a_name(shell: Shell) -> None:
    write_skill(shell.folder / "more", "pdf")
    both = shell("tools", "--skills", "skills", "--skills", "b=more", "--json", code=0)
    assert [card["name"] for card in both.events] == [
        "load_skill",
        "read_skill_file",
        "b_load_skill",
        "b_read_skill_file",
    ]
    assert "load_skill" in shell("tools", "--skills", "skills", "--skills", "more", code=2).one_line
    run = shell("run", "x", "--skills", "skills", "--skills", "more", "--model", "offline", code=2)
    assert "that of --skills: skills, and that of --skills: more" in run.one_line


@pytest.mark.parametrize(
    ("folder", "text"),
    [("none", "there is no such folder."), ("skills/pdf", "this folder is a skill itself. Name the")],
)
def test_a_folder_that_is_none_is_named(shell: Shell, folder: str, text: str) -> None:
    done = shell("tools", "--skills", folder, code=2)
    assert f"--skills: {folder}: {shell.folder / folder}: " in done.err
    assert text in done.err
    assert english_in(shell("tools", "--skills", folder, code=2, TAOLOOP_LANG="zh").err) == ""


def test_an_agent_file_names_skills(shell: Shell) -> None:
    shell.write("agent.yaml", "name: clerk\nmodel: offline\ntools:\n- skills: skills\n- calculator\n")
    cards = shell("tools", "--agent", "agent.yaml", "--json", code=0).events
    assert [card["name"] for card in cards][:2] == ["load_skill", "read_skill_file"]
    assert "pdf is new" in shell("tools", "--agent", "agent.yaml", "--approve-changes", code=8).out


def test_an_agent_in_python_with_a_folder_is_approved_too(shell: Shell) -> None:
    code = "from taoloop import Agent\nfrom taoloop.tools.skills import SkillFolder\n"
    shell.write("clerk_with_skills.py", f"{code}agent = Agent(model='offline', tools=[SkillFolder('skills')])\n")
    changes = shell("tools", "--agent", "clerk_with_skills:agent", "--approve-changes", code=8)
    assert "pdf is new" in changes.out
    write_skill(shell.folder / "skills", "broken", header="name: broken")
    run = shell("run", "What is 1+1?", "--agent", "clerk_with_skills:agent", code=9, TAOLOOP_LANG="zh")
    lines = [
        line for line in run.err.splitlines() if "broken/SKILL.md:1: description: 缺少该字段。请在头部添加" in line
    ]
    assert len(lines) == 1


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_killed_process_ends_its_script_which_is_in_doubt_and_not_run_again(shell: Shell) -> None:
    """The script says through a pipe that it runs; the end of the pipe says that it is gone."""
    code = (
        "open('ledger', 'a').write('x')\npipe = open('pipe', 'w')\nprint('runs', file=pipe, flush=True)\nwhile 1: pass"
    )
    write_skill(shell.folder / "skills", "pdf", scripts__loop_py=code)
    work = shell.folder / "work"
    work.mkdir()
    os.mkfifo(work / "pipe")
    shell.write("tools.yaml", "tools:\n- skills: {path: skills, workspace: work, tier: write, timeout_s: 30}\n")
    script = 'Action: run_skill_script\nAction Input: {"name": "pdf", "script": "scripts/loop.py"}'
    shell.write("replies.json", json.dumps([script, "Final Answer: done"]))
    shell("tools", "tools.yaml", "--approve-changes", "--yes", code=0)
    model = ("--model", "scripted:replies.json", "--profile", "autonomous")
    process = shell.start(
        "run", "Run loop.py of pdf.", "--tools", "tools.yaml", *model, "--json", TMPDIR=str(shell.folder)
    )
    with (work / "pipe").open() as pipe:
        assert pipe.readline() == "runs\n"
        process.kill()
        assert pipe.read() == ""
    out, _ = process.communicate()
    run_id = json.loads(out.splitlines()[0])["run_id"]
    resumed = shell("resume", run_id, "--json", code=0)
    assert [event["reason"] for event in resumed.events if event["kind"] == "in_doubt"] == ["no_outcome"]
    assert (work / "ledger").read_text() == "x"
