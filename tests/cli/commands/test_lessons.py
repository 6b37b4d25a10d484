"""`tao lessons`: listing, dropping and drawing lessons; and what `tao run` and `tao show` make of them."""

from __future__ import annotations

from tests.shell import Shell

AGENT = 'model: scripted:script.yaml\ntools: []\nstrategy: "reflect:lessons=1"\ndialect: text\n'


def test_a_lesson_is_drawn_listed_read_and_dropped(tao: Shell) -> None:
    tao.write("agent.yaml", AGENT)
    tao.script("Thought: a\nFinal Answer: 4", "NONE")
    first = tao("run", "How many?", "--agent", "agent.yaml", "--json").events[0]["run_id"]
    assert "no lessons" in tao("lessons").out
    tao.script("Thought: a\nFinal Answer: 4", "NONE", "Count again.")
    judged = tao("lessons", first, "--wrong", "There are 5.")
    assert "Count again." in judged.out
    assert tao("lessons", "--json").events == [
        {"run_id": first, "agent": "agent", "task": "How many?", "status": "completed", "text": "Count again."}
    ]
    assert "The answer was judged wrong: There are 5." in tao("show", first).out
    tao.script("Thought: a\nFinal Answer: 5", "NONE")
    second = tao("run", "How many?", "--agent", "agent.yaml").out
    assert f"Lesson: of run {first}" in second
    assert "Count again." in second
    tao("lessons", first, "--drop", "--by", "ann")
    for view in ([], ["--events"]):
        assert "Lesson: dropped by ann: no later run reads it" in tao("show", first, *view).out
    assert "Lesson" not in tao("run", "How many?", "--agent", "agent.yaml").out
    assert "has no lesson" in tao("run", "How many?", "--lessons-from", first, code=2).err


def test_a_run_is_to_be_named(tao: Shell) -> None:
    assert "Name the run." in tao("lessons", "--drop", code=2).err
    assert "either --drop or --wrong" in tao("lessons", "r", "--drop", "--wrong", "x", code=2).err
