"""`tao verify`: good runs, edited ones, exports, and heads that were noted."""
# ruff: noqa: S608 - the statements of the edits are fixed texts

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from tests.shell import Shell, call


def stored(tao: Shell, *options: str) -> str:
    """A run with one call: its id."""
    model = tao.script(call("calculator", expression="6*7"), "42, 就是它")
    run_id: str = tao("run", "what is 6*7?", "--model", model, "--json", *options).events[0]["run_id"]
    return run_id


def edit(tao: Shell, statement: str) -> None:
    with closing(sqlite3.connect(tao.folder / "runs.db")) as connection:
        connection.execute(statement)
        connection.commit()


def verdict(tao: Shell, *args: str, code: int) -> dict[str, Any]:
    found: dict[str, Any] = tao("verify", *args, "--json", code=code).events[0]
    return found


def test_a_good_run_is_as_it_was_written(tao: Shell) -> None:
    run_id = stored(tao)
    said = tao("verify", run_id[:-2], "--db", str(tao.folder / "runs.db"), code=0)
    assert "verdict as it was written" in said.out
    assert said.err == ""
    found = verdict(tao, run_id, code=0)
    assert found["whole"] is True
    assert found["head"] in said.out
    assert found["first_bad_seq"] is None


def test_an_edited_run_is_told_with_the_event(tao: Shell) -> None:
    run_id = stored(tao)
    edit(tao, "UPDATE event SET body = replace(body, '42', '43') WHERE seq = 3")
    said = tao("verify", run_id, code=12)
    assert "NOT as it was written" in said.out
    assert "event 3 (observed)" in said.one_line
    assert str(tao.folder / "runs.db") in said.one_line
    found = verdict(tao, run_id, code=12)
    assert (found["whole"], found["first_bad_seq"], found["flaws"][0]["what"]) == (False, 3, "changed")
    assert "43" in tao("show", run_id, code=0).out  # it can still be looked at


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM event WHERE seq = 2",
        "DELETE FROM event WHERE seq > 2",
        "DELETE FROM event",
        "DELETE FROM run",
        "UPDATE run SET status = 'waiting'",
        "UPDATE event SET body = 'no json' WHERE seq = 1",
    ],
)
def test_whatever_was_done_the_verdict_is_safe(tao: Shell, statement: str) -> None:
    run_id = stored(tao)
    edit(tao, statement)
    assert tao("verify", run_id, code=12).one_line


def test_a_tampered_run_is_not_resumed(tao: Shell) -> None:
    run_id = stored(tao, "--max-steps", "1", "--no-closing-turn")
    edit(tao, "UPDATE event SET body = replace(body, '42', '43') WHERE seq = 3")
    said = tao("run", "--resume", run_id, "--max-steps", "5", code=12)
    assert "event 3 (observed)" in said.err
    assert "tao verify" in said.err


def test_a_noted_head_finds_a_chain_that_was_written_anew(tao: Shell) -> None:
    run_id = stored(tao, "--max-steps", "1", "--no-closing-turn")
    head = verdict(tao, run_id, code=0)["head"]
    tao("run", "--resume", run_id, "--max-steps", "5")
    assert verdict(tao, run_id, "--head", head, code=0)["head"] != head  # it grew, and holds the old head
    verdict(tao, run_id, "--head", head[:10], code=0)
    other = stored(tao)
    assert verdict(tao, other, "--head", head, code=12)["flaws"][0]["what"] == "head"
    assert "not a hash" in tao("verify", run_id, "--head", "xyz", code=2).one_line


def test_an_export_is_checked_without_the_database(tao: Shell) -> None:
    run_id = stored(tao)
    head = verdict(tao, run_id, code=0)["head"]
    tao("export", run_id, "-o", "run.jsonl", code=0)
    (tao.folder / "runs.db").unlink()
    assert verdict(tao, "--file", "run.jsonl", "--head", head, code=0)["events"] == 6
    lines = (tao.folder / "run.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[-1])["hash"] == head

    tao.write("anew.jsonl", "\n".join(json.dumps(json.loads(line)) for line in lines))  # as jq would
    verdict(tao, "--file", "anew.jsonl", code=0)
    tao.write("edited.jsonl", "\n".join(lines).replace("42, 就是它", "43"))
    assert verdict(tao, "--file", "edited.jsonl", code=12)["first_bad_seq"] == 4
    tao.write("gap.jsonl", "\n".join(lines[:2] + lines[3:]))
    assert verdict(tao, "--file", "gap.jsonl", code=12)["first_bad_seq"] == 2
    tao.write("cut.jsonl", "\n".join(lines[:-1]))
    verdict(tao, "--file", "cut.jsonl", "--head", head, code=12)


def test_what_cannot_be_checked_is_told(tao: Shell) -> None:
    stored(tao)
    assert "Name a run" in tao("verify", code=2).one_line
    assert "no run 'nobody'" in tao("verify", "nobody", code=2).one_line
    assert "nowhere.jsonl" in tao("verify", "--file", "nowhere.jsonl", code=11).one_line
    tao.write("other.jsonl", '{"a": 1}\n')
    assert "line 1" in tao("verify", "--file", "other.jsonl", code=11).one_line
    tao.write("empty.jsonl", "\n")
    assert "no event" in tao("verify", "--file", "empty.jsonl", code=11).one_line


def test_a_removed_run_shows_in_the_check_of_all(tao: Shell) -> None:
    older, newer = stored(tao), stored(tao)
    good = verdict(tao, "--all", code=0)
    assert (good["whole"], good["runs"], good["logged"], good["bad_runs"]) == (True, 2, 2, [])
    assert good["head"] in tao("verify", "--all", "--head", good["head"][:8], code=0).out
    edit(tao, f"DELETE FROM event WHERE run_id = '{older}'")
    edit(tao, f"DELETE FROM run WHERE id = '{older}'")
    bad = verdict(tao, "--all", code=12)
    assert [flaw["what"] for flaw in bad["flaws"]] == ["run_missing"]
    assert older in tao("verify", "--all", code=12).one_line
    edit(tao, f"UPDATE event SET body = replace(body, '42', '43') WHERE run_id = '{newer}' AND seq = 3")
    assert [run["run_id"] for run in verdict(tao, "--all", code=12)["bad_runs"]] == [newer]


def test_a_noted_head_of_the_log_finds_that_the_newest_runs_were_cut_off_with_every_trace(tao: Shell) -> None:
    stored(tao)
    newest = stored(tao)
    head = verdict(tao, "--all", code=0)["head"]
    edit(tao, f"DELETE FROM event WHERE run_id = '{newest}'")
    edit(tao, f"DELETE FROM run WHERE id = '{newest}'")
    edit(tao, "DELETE FROM run_log WHERE number = 2")
    edit(tao, "UPDATE sqlite_sequence SET seq = 1")
    assert verdict(tao, "--all", code=0)["runs"] == 1  # the page on audits says so
    assert [flaw["what"] for flaw in verdict(tao, "--all", "--head", head, code=12)["flaws"]] == ["head"]
    assert "Name a run" in tao("verify", "--all", newest, code=2).one_line


def test_a_run_whose_id_is_no_text_any_more_is_reported_and_does_not_end_the_check(tao: Shell) -> None:
    stored(tao)
    edit(tao, "UPDATE run SET id = CAST(id AS BLOB)")
    edit(tao, "UPDATE event SET run_id = CAST(run_id AS BLOB)")
    bad = verdict(tao, "--all", code=12)
    assert [run["flaws"][0]["what"] for run in bad["bad_runs"]] == ["run_missing"]
