"""`tao run --evidence`: modes, exit code, numbered sources in the answer and in `tao show`, agent files, resuming."""

from __future__ import annotations

import pytest
from tests.shell import Shell, call

LOOK = call("calculator", expression="6*7")
GOOD, BAD = "It is 42 [obs:call_1].", "It is 43 [obs:call_1]."


def test_an_answer_with_evidence_shows_its_sources_as_numbers(tao: Shell) -> None:
    ended = tao("run", "what is 6*7?", "--model", tao.script(LOOK, BAD, GOOD), "--evidence", "require", code=0)
    assert "Sent back" in ended.out + ended.err
    assert "It is 42 [1]." in ended.out + ended.err
    run_id = tao("runs", "--json", code=0).events[0]["run_id"]
    shown = tao("show", run_id, code=0).out
    assert "Answer: It is 42 [1]." in shown
    assert '[1] call_1 · calculator {"expression": "6*7"}' in shown
    assert "Sent back: obs:call_1 does not contain 43" in shown
    assert "all the same" in tao("replay", run_id, code=0).out
    for form in ("--events", "--raw"):
        assert "43" in tao("show", run_id, form, code=0).out


def test_an_answer_without_evidence_ends_with_16_and_can_be_resumed(tao: Shell) -> None:
    ended = tao(
        "run", "what is 6*7?", "--model", tao.script(LOOK, BAD, BAD, GOOD), "--evidence", "require", "--json", code=16
    )
    end = ended.events[-1]
    assert (end["status"], end["answer"]) == ("unsupported", BAD)
    assert [gap["code"] for gap in end["evidence"]] == ["not_contained"]
    shown = tao("show", end["run_id"], code=0).out
    assert "Unsupported: The answer was sent back once" in shown
    assert f"tao run --resume {end['run_id']}" in shown


def test_a_citation_of_no_call_is_shown_as_such(tao: Shell) -> None:
    made_up = "It is 42 [obs:call_7]."
    ended = tao("run", "what is 6*7?", "--model", tao.script(LOOK, made_up), "--evidence", "warn", code=0)
    assert "[1] call_7 · no such call" in ended.out + ended.err


def test_a_warning_ends_with_0(tao: Shell) -> None:
    ended = tao("run", "what is 6*7?", "--model", tao.script(LOOK, BAD), "--evidence", "warn", code=0)
    assert "obs:call_1 does not contain 43" in ended.out + ended.err


def test_off_is_the_default_and_shows_the_text_as_it_is(tao: Shell) -> None:
    for options in ((), ("--evidence", "off")):
        ended = tao("run", "what is 6*7?", "--model", tao.script(LOOK, BAD), *options, code=0)
        assert BAD in ended.out + ended.err
        assert "does not contain" not in ended.out + ended.err


def test_the_offline_model_cites_what_it_observed(tao: Shell) -> None:
    ended = tao("run", "What is 17 times 23?", "--model", "offline", "--evidence", "require", "--json", code=0)
    assert ended.events[-1]["citations"] == ["obs:call_1"]


def test_another_mode_is_refused(tao: Shell) -> None:
    assert "'off', 'warn', 'require'" in tao("run", "x", "--evidence", "always", code=2).err


@pytest.mark.parametrize(("line", "code"), [("evidence: require", 16), ("evidence: warn", 0), ("", 0)])
def test_an_agent_file_asks_for_evidence(tao: Shell, line: str, code: int) -> None:
    script = tao.script(LOOK, BAD, BAD) if code else tao.script(LOOK, BAD)
    (tao.folder / "agent.yaml").write_text(f"name: x\nmodel: {script}\ntools: [calculator]\n{line}\n")
    tao("run", "what is 6*7?", "--agent", "agent.yaml", code=code)


def test_a_wrong_mode_in_an_agent_file_names_its_line(tao: Shell) -> None:
    (tao.folder / "agent.yaml").write_text("name: x\nmodel: offline\nevidence: always\n")
    assert "agent.yaml:3" in tao("run", "x", "--agent", "agent.yaml", code=2).err


def test_the_mode_of_a_run_is_part_of_it(tao: Shell) -> None:
    script = tao.script(LOOK, BAD, BAD, GOOD)
    first = tao("run", "what is 6*7?", "--model", script, "--evidence", "require", "--json", code=16)
    run_id = first.events[0]["run_id"]
    assert "--evidence" in tao("run", "--resume", run_id, "--evidence", "off", code=2).err
    assert tao("run", "--resume", run_id, "--model", script, "--json", code=0).events[-1]["status"] == "completed"
