"""Scripts of skills: what they can reach in the sandbox, and what is left of one whose process was killed."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.tools.skills.folders import folder_of, write_skill

from taoloop import Agent, ScriptedModel
from taoloop.core.events import Observed
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest
from taoloop.testing import assert_effect_once, restarts
from taoloop.testing.killed_journal import Moment
from taoloop.tools.skills import approve_skills, skill_tools
from taoloop.tools.tool import ToolContext

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

ESCAPE = """
import os, pathlib, socket

def attempt(what, act):
    try:
        print(what, "worked", act())
    except OSError as error:
        print(what, "failed")

attempt("net", lambda: socket.create_connection(("127.0.0.1", {port}), timeout=5))
attempt("name", lambda: socket.getaddrinfo("example.com", 80))
attempt("secret", lambda: pathlib.Path({secret!r}).read_text())
attempt("home", lambda: os.listdir({home!r}))
attempt("passwd", lambda: open("/etc/shadow").read())
attempt("own", lambda: open("/skill/SKILL.md", "w"))
attempt("new", lambda: open("/skill/new.md", "w"))
attempt("original", lambda: open({original!r}, "a"))
attempt("chmod", lambda: os.chmod("/skill/SKILL.md", 0o777))
attempt("link", lambda: os.rename("/skill/SKILL.md", "/skill/OTHER.md"))
attempt("workspace", lambda: pathlib.Path("/workspace/out").write_text("x"))
print("env", sorted(name for name in os.environ if "SECRET" in name))
"""


def run_script(root: Path, script: str, **settings: Any) -> dict[str, Any]:
    tool = next(tool for tool in skill_tools(folder_of(root, **settings)).tools if tool.name == "run_skill_script")

    async def call() -> dict[str, Any]:
        result: dict[str, Any] = await tool.invoke(
            tool.prepare({"name": "pdf", "script": script}).values, ToolContext()
        )
        return result

    return asyncio.run(call())


def test_a_script_reaches_neither_the_network_nor_files_nor_its_own_skill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "s3cret")
    (tmp_path / "secret").write_text("s3cret")
    root = tmp_path / "skills"
    folder = write_skill(root, "pdf")
    before = (folder / "SKILL.md").read_text()

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def scenario() -> dict[str, Any]:
        server = await asyncio.start_server(accept, "127.0.0.1", 0)  # one that does answer outside of the sandbox
        async with server:
            port = server.sockets[0].getsockname()[1]
            values = {"port": port, "secret": str(tmp_path / "secret"), "home": str(Path.home())}
            script = ESCAPE.format(original=str(folder / "SKILL.md"), **values)
            (folder / "scripts" / "escape.py").write_text(script)
            return await asyncio.to_thread(run_script, root, "scripts/escape.py")

    ended = asyncio.run(scenario())
    assert ended["exit_code"] == 0, ended
    lines = ended["stdout"].splitlines()
    assert lines[:-2] == [
        f"{what} failed"
        for what in ("net", "name", "secret", "home", "passwd", "own", "new", "original", "chmod", "link")
    ]
    assert lines[-2:] == ["workspace worked 1", "env []"]
    assert (folder / "SKILL.md").read_text() == before


def test_a_script_ends_with_its_time(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "pdf", scripts__loop_py="print('begun', flush=True)\nwhile True: pass\n")
    ended = run_script(tmp_path / "skills", "scripts/loop.py", timeout_s=0.5)
    assert (ended["stdout"], ended["exit_code"]) == ("begun\n", None)
    assert ended["limit"] == "time: it was ended after 0.5 s"


def test_a_workspace_is_all_that_a_script_may_change(tmp_path: Path) -> None:
    code = "open('kept', 'w').write('x')\ntry:\n    open('../beside', 'w')\nexcept OSError:\n    print('inside')\n"
    write_skill(tmp_path / "skills", "pdf", scripts__write_py=code)
    (tmp_path / "work").mkdir()
    ended = run_script(tmp_path / "skills", "scripts/write.py", workspace=tmp_path / "work")
    assert ended["stdout"] == "inside\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["skills", "work"]
    assert (tmp_path / "work" / "kept").read_text() == "x"


def yes(_request: ApprovalRequest) -> ApprovalAnswer:
    return ApprovalAnswer(approved=True, by="ann")


LOAD = 'Action: load_skill\nAction Input: {"name": "pdf"}'
RUN = 'Action: run_skill_script\nAction Input: {"name": "pdf", "script": "scripts/add.py"}'


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_any_boundary_a_script_runs_once_or_is_in_doubt(tmp_path: Path, moment: Moment) -> None:
    write_skill(tmp_path / "skills", "pdf", scripts__add_py="open('ledger', 'a').write('x')\n")
    workspaces: list[Path] = []

    def begin() -> None:
        workspaces.append(tmp_path / f"work{len(workspaces)}")
        workspaces[-1].mkdir()

    def agent() -> Agent:
        folder = folder_of(tmp_path / "skills", workspace=workspaces[-1])
        approve_skills(folder)
        return Agent(model=ScriptedModel([LOAD, RUN, "Final Answer: done"]), tools=[folder], approve=yes)

    def ledger() -> str:
        path = workspaces[-1] / "ledger"
        return path.read_text() if path.exists() else ""

    doubts = 0
    for restart in restarts(
        agent, "Run scripts/add.py of the skill pdf.", effects=ledger, reset=begin, moments=[moment]
    ):
        assert_effect_once(restart, or_in_doubt=True)
        doubts += bool(restart.in_doubt)
        loads = [event.fact for event in restart.result.trace if isinstance(event.fact, Observed)]
        assert len({fact.call_id for fact in loads}) == len(loads)
    assert doubts > 0
    assert len(workspaces) > 5
