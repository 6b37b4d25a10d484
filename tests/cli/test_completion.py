"""The shell completes commands, and the ids of runs."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from taoloop import Agent, ScriptedModel
from taoloop.cli.app import cli


def offered(*args: str, incomplete: str = "") -> dict[str, str | None]:
    items = ShellComplete(cli, {}, "tao", "_TAO_COMPLETE").get_completions(list(args), incomplete)
    return {item.value: item.help for item in items}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "runs.db"
    monkeypatch.setenv("TAOLOOP_DB", str(path))
    for run_id in ("day-1", "day-2", "night-1"):
        Agent(model=ScriptedModel(["Rome."]), journal=path).run_sync("Where\nis it?", run_id=run_id)
    return path


def test_commands_are_completed() -> None:
    assert "show" in offered(incomplete="sh")


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("args", [("show",), ("run", "--resume"), ("diff", "day-1"), ("resume",)])
def test_run_ids_are_completed_newest_first(args: tuple[str, ...]) -> None:
    assert list(offered(*args)) == ["last", "night-1", "day-2", "day-1"]
    assert offered(*args, incomplete="day") == dict.fromkeys(("day-2", "day-1"), "completed: Where is it?")


def test_the_database_of_the_command_is_asked(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAOLOOP_DB")
    assert "night-1" in offered("show", "--db", str(runs), incomplete="n")


def test_without_a_database_nothing_is_offered_or_created(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    assert offered("show", "--db", str(path)) == {}
    assert not path.exists()
    path.write_text("no database")
    assert offered("show", "--db", str(path)) == {}


@pytest.mark.parametrize("name", ["show", "replay", "undo", "verify", "export", "approve", "deny", "note", "fork"])
def test_every_command_about_a_run_completes_it(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    [run] = [each for each in command.params if each.name == "run_id"]
    assert run._custom_shell_complete is not None
