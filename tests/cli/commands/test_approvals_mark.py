"""`tao mark`: what a person says of the outcome of a run, and where it is read."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tests.shell import Shell

AGENT = "model: scripted:script.yaml\ntools: []\ndialect: text\n"


def test_a_run_is_marked_and_the_mark_is_shown(tao: Shell) -> None:
    tao.write("agent.yaml", AGENT)
    tao.script("Thought: a\nFinal Answer: 4")
    run_id = tao("run", "How many?", "--agent", "agent.yaml", "--json").events[0]["run_id"]
    assert f"run {run_id} is marked right" in tao("mark", run_id, "right").out
    [event] = tao("mark", run_id, "wrong", "--by", "ann", "--note", "There are 5.", "--json").events
    assert (event["kind"], event["verdict"], event["by"], event["authenticated"]) == ("marked", "wrong", "ann", "")
    shown = tao("show", run_id).out
    assert "right, says" in shown
    assert "wrong, says ann (claimed): There are 5." in shown
    assert "wrong, says ann (claimed): There are 5." in tao("show", run_id, "--events").out
    assert "'right', 'wrong'" in tao("mark", run_id, "perhaps", code=2).err
    assert tao("verify", run_id).code == 0


def test_a_mark_that_is_removed_from_the_database_shows(tao: Shell) -> None:
    tao.write("agent.yaml", AGENT)
    tao.script("Thought: a\nFinal Answer: 4")
    run_id = tao("run", "How many?", "--agent", "agent.yaml", "--db", "runs.db", "--json").events[0]["run_id"]
    tao("mark", run_id, "wrong", "--db", "runs.db")
    with closing(sqlite3.connect(tao.folder / "runs.db")) as connection:
        connection.execute("DELETE FROM event WHERE kind = 'marked'")
        connection.commit()
    assert tao("verify", run_id, "--db", "runs.db", code=12).code == 12
