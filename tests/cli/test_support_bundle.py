"""`tao doctor --bundle`: an archive for a bug report, listed before it is written, with no secret in it."""

from __future__ import annotations

import base64
import json
import zipfile
from pathlib import Path

from tests.shell import Shell

from taoloop import Agent, ScriptedModel, tool

KEY = "kq7-Zt4pWm9xR2vL8nB5"
"""Secret by the name of its variable alone: it looks like nothing."""
VENDOR = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
"""Secret by its look."""
PASSWORD = "korrekt-pferd-9"


def contents(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def record_run(tao: Shell) -> None:
    """A run that was not redacted, as an older version or `redact=False` leaves it."""

    @tool(tier="read")
    def look() -> str:
        """Look."""
        return f"key {KEY}, {VENDOR}, {base64.b64encode(KEY.encode()).decode()}"

    script = ScriptedModel([{"tool_calls": [{"name": "look", "args": {}}]}, f"It is {KEY}."])
    agent = Agent(model=script, tools=[look], journal=tao.folder / "runs.db", redact=False)
    agent.run_sync(f"Use {KEY}", run_id="r1")


def test_planted_secrets_of_variables_files_and_the_trace_are_in_no_file(tao: Shell) -> None:
    record_run(tao)
    tao.write(".env", f"SHOP_API_KEY={KEY}\n")
    tao.write("agent.yaml", f"model: offline\ninstructions: Use {KEY}\npassword: {PASSWORD}\n# {VENDOR}\n")
    env = {
        "OPENAI_API_KEY": VENDOR,
        "OPENAI_BASE_URL": f"https://ann:{PASSWORD}@proxy.example/v1?key={KEY}",
        "DEEPSEEK_API_KEY": "short",
        "UNRELATED": "my diary",
    }
    command = ("doctor", "--bundle", "bug.zip", "--run", "last", "--db", "runs.db", "--include", "agent.yaml")
    ended = tao(*command, code=0, **env)
    files = contents(tao.folder / "bug.zip")
    everything = "\n".join([ended.out, ended.err, *files, *files.values()])
    for secret in (KEY, KEY[::-1], VENDOR, PASSWORD, base64.b64encode(KEY.encode()).decode(), "my diary", "short"):
        assert secret not in everything, secret
    variables = json.loads(files["environment.json"])
    assert (variables["OPENAI_API_KEY"], variables["DEEPSEEK_API_KEY"]) == ("[set]", "[set]")
    assert variables["OPENAI_BASE_URL"] == "https://proxy.example/v1"
    kinds = [json.loads(line)["kind"] for line in files["run.jsonl"].splitlines()]
    assert (kinds[0], kinds[-1]) == ("run_started", "finished")
    assert "[redacted:SHOP_API_KEY]" in files["files/1-agent.yaml"]


def test_what_is_inside_is_listed(tao: Shell) -> None:
    ended = tao("doctor", "--bundle", "bug.zip", code=0)
    files = contents(tao.folder / "bug.zip")
    assert [line.split()[0] for line in ended.out.splitlines()] == list(files)
    assert list(files) == ["README.txt", "versions.json", "environment.json", "doctor.jsonl"]
    assert json.loads(files["versions.json"])["packages"]["click"]
    assert {json.loads(line)["state"] for line in files["doctor.jsonl"].splitlines()} <= {"ok", "warn", "fail"}
    assert "Read it before you send it" in ended.err
    assert (tao.folder / "bug.zip").stat().st_mode & 0o077 == 0
    records = tao("doctor", "--bundle", "again.zip", "--json", code=0).events
    assert [record["name"] for record in records] == list(files)


def test_nothing_is_overwritten_and_a_failure_leaves_no_archive(tao: Shell) -> None:
    tao.write("bug.zip", "mine")
    assert "bug.zip exists, and nothing is overwritten." in tao("doctor", "--bundle", "bug.zip", code=2).one_line
    assert (tao.folder / "bug.zip").read_text() == "mine"
    assert "cannot be read" in tao("doctor", "--bundle", "new.zip", "--include", "none.log", code=2).one_line
    assert "cannot be written" in tao("doctor", "--bundle", "none/new.zip", code=2).one_line
    tao("doctor", "--bundle", "new.zip", "--run", "none", code=11)
    assert not (tao.folder / "new.zip").exists()
    assert "--bundle" in tao("doctor", "--run", "last", code=2).one_line


def test_of_a_long_log_the_last_whole_lines_are_taken(tao: Shell) -> None:
    tao.write("run.log", "".join(f"line {number} {'x' * 100}\n" for number in range(5_000)))
    tao("doctor", "--bundle", "bug.zip", "--include", "run.log", code=0)
    lines = contents(tao.folder / "bug.zip")["files/1-run.log"].splitlines()
    assert lines[-1].startswith("line 4999 ")
    assert lines[0].startswith("line ")
    assert 2_000 < len(lines) < 2_500
