"""Variables of a `.env` file, which a program asks for."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from taoloop import Agent
from taoloop.errors import EnvFileError, MissingKey
from taoloop.models.env_file import load_environment, load_environment_of_script
from taoloop.runtime.bound_agent import bind

KEY = "OPENAI_API_KEY=sk-from-the-file-0123456789\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path


def test_a_library_reads_the_file_only_on_request(folder: Path) -> None:
    """S3-6."""
    (folder / ".env").write_text(KEY)
    with pytest.raises(MissingKey, match="load_env=True"):
        Agent(model="openai:tiny").run_sync("x")
    assert bind(Agent(model="openai:tiny", load_env=True)).model.spec == "openai:tiny"


def test_the_key_of_the_file_is_redacted_and_not_in_the_environment_of_the_process(folder: Path) -> None:
    (folder / ".env").write_text(KEY)
    agent = Agent(model=["My key is sk-from-the-file-0123456789."], load_env=True)
    assert "sk-from-the-file" not in str(agent.run_sync("x").answer)
    assert "sk-from-the-file" not in str(dict(__import__("os").environ))


def test_the_file_beside_the_script_counts_where_the_folder_has_none(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path_factory.mktemp("program") / "main.py"
    (script.parent / ".env").write_text("COLOUR=green\n")
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__=str(script)))
    assert load_environment_of_script(report=pytest.fail)["COLOUR"] == "green"
    (folder / ".env").write_text("COLOUR=red\n")
    assert load_environment_of_script(report=pytest.fail)["COLOUR"] == "red"


def test_variables_of_the_process_take_precedence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".env").write_text("COLOUR=red\n")
    monkeypatch.setenv("COLOUR", "blue")
    assert load_environment(report=pytest.fail)["COLOUR"] == "blue"


def test_a_bad_line_is_reported_and_the_others_count(folder: Path) -> None:
    (folder / ".env").write_text("what is this\nCOLOUR=red\n")
    lines: list[str] = []
    assert load_environment(report=lines.append)["COLOUR"] == "red"
    assert [".env:1:" in line for line in lines] == [True]


def test_a_file_that_cannot_be_read_is_an_error(folder: Path) -> None:
    (folder / ".env").mkdir()
    with pytest.raises(EnvFileError, match="a folder, not a file"):
        bind(Agent(model="offline", load_env=True)).model  # noqa: B018  # made when it is first used
