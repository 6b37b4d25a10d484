"""`tao runs`, `tao show` and `tao replay` on stored runs."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.shell import Shell, call

from taoloop import Agent


def stored(tao: Shell, *options: str) -> tuple[str, str]:
    """A run with one call: its id, and what `tao run --json` printed."""
    model = tao.script(call("calculator", expression="6*7"), "42, 就是它")
    ended = tao("run", "what is 6*7?", "--model", model, "--json", *options)
    return ended.events[0]["run_id"], ended.out


def test_runs_are_listed_newest_first(tao: Shell) -> None:
    first, _ = stored(tao)
    second, _ = stored(tao, "--max-steps", "1", "--no-closing-turn")
    listed = tao("runs", code=0)
    lines = listed.out.splitlines()
    assert listed.err.split() == ["run", "started", "status", "events", "task"]
    assert re.search(r"completed +\d events +what is 6\*7", lines[1])
    assert [line.split()[0] for line in lines] == [second, first]
    assert "max_steps_exceeded" in lines[0]
    assert "what is 6*7?" in lines[1]
    rows = tao("runs", "--json", "--status", "completed", code=0).events
    assert [row["run_id"] for row in rows] == [first]
    assert len(tao("runs", "--limit", "1", code=0).out.splitlines()) == 1


def test_a_long_task_is_cut_in_the_list_and_whole_as_json(tao: Shell) -> None:
    task = "很长的任务 " * 9_000
    tao("run", "-", "--model", tao.script("y"), stdin=task, code=0)
    (line,) = tao("runs", code=0).out.splitlines()
    assert line.endswith("…")
    assert len(line) < 300
    assert tao("runs", "--json", code=0).events[0]["task"] == task.strip()


def test_show_prints_the_transcript_numbered_from_0(tao: Shell) -> None:
    run_id, _ = stored(tao)
    lines = tao("show", run_id[:-2], code=0).out.splitlines()
    assert "  Task: what is 6*7?" in lines
    assert lines[2:6] == [
        "0 Thought: I use calculator.",
        '1 Action: calculator {"expression": "6*7"}',
        "2 Observed: calculator result=42",
        "3 Answer: 42, 就是它",
    ]


def test_show_says_how_to_go_on(tao: Shell) -> None:
    run_id, _ = stored(tao, "--max-steps", "1", "--no-closing-turn")
    assert f"Resume: tao run --resume {run_id} --max-steps 2" in tao("show", run_id, code=0).out


def test_show_json_prints_what_the_run_printed(tao: Shell) -> None:
    run_id, printed = stored(tao)
    assert tao("show", run_id, "--json", code=0).out == printed


def test_a_shown_run_can_be_the_model_of_another(tao: Shell) -> None:
    run_id, printed = stored(tao)
    tao.write("recorded.jsonl", printed)
    assert "42, 就是它" in tao("run", "again", "--model", "replay:recorded.jsonl", code=0).out
    assert run_id


def test_show_raw_steps_and_events(tao: Shell) -> None:
    """S0-25: the numbered trace, and what the model wrote."""
    run_id, _ = stored(tao)
    assert "\n1 Action: calculator" in tao("show", run_id, code=0).out
    assert '→ calculator {"expression": "6*7"}' in tao("show", run_id, "--raw", code=0).out
    steps = tao("show", run_id, "--steps", code=0).out
    assert "1 Thought: I use calculator." in steps
    assert "  Answer: 42, 就是它\n" in steps
    rows = tao("show", run_id, "--steps", "--json", code=0).events
    assert [(row["step"], row["action"]) for row in rows] == [(1, "calculator"), (2, "final")]
    assert rows[-1]["answer"] == "42, 就是它"
    assert "Observed: result=42" in tao("show", run_id, "--events", code=0).out


def test_replay_decides_the_same_without_the_world(tao: Shell) -> None:
    run_id, printed = stored(tao)
    (tao.folder / "script.yaml").unlink()
    replayed = tao("replay", run_id, "--json", code=0)
    recorded = [json.loads(line) for line in printed.splitlines()]
    assert [{**line, "same": True} for line in recorded] == replayed.events
    assert f"replayed {len(recorded)} events: all the same" in replayed.one_line
    assert f"replayed {len(recorded)} events: all the same" in tao("replay", run_id, "--step", code=0).out


def test_a_replay_that_differs_names_the_event(tao: Shell) -> None:
    run_id, _ = stored(tao)
    with closing(sqlite3.connect(tao.folder / "runs.db")) as connection, connection:
        change = "UPDATE event SET body = replace(body, '6*7', '6*8') WHERE kind = 'action_requested'"
        connection.execute(change)
    connection.close()
    ended = tao("replay", run_id, code=1)
    assert "event 2" in ended.one_line
    assert "≠ action_requested" in ended.out
    assert [line["same"] for line in tao("replay", run_id, "--json", code=1).events[:4]] == [True, True, False, True]


def test_an_event_that_cannot_be_read_is_named(tao: Shell) -> None:
    run_id, _ = stored(tao)
    with closing(sqlite3.connect(tao.folder / "runs.db")) as connection, connection:
        connection.execute("UPDATE event SET body = '{}' WHERE seq = 2")
    connection.close()
    assert f"event 2 of run '{run_id}'" in tao("show", run_id, code=11).one_line


def test_who_allowed_or_refused_a_call_is_shown_with_why(tao: Shell) -> None:
    tao.write(
        "mail.py",
        "from taoloop import tool\n\n@tool(tier='write', egress=True)\ndef send(to: str) -> str:\n"
        "    \"Send a mail.\"\n    return 'sent'\n",
    )
    script = tao.script(call("send", to="ann"), call("send", to="eve"), "done")
    run_id = tao("run", "x", "--model", script, "--tools", "mail:send", "--json", code=8).events[0]["run_id"]
    tao("approve", run_id, "call_1", "--by", "li", "--note", "it is owed", code=0)
    tao("resume", run_id, code=8)
    tao("deny", run_id, "call_2", "--by", "wang", "--note", "who is that", code=0)
    tao("resume", run_id, code=0)
    lines = tao("show", run_id, code=0).out.splitlines()
    allowed = next(number for number, line in enumerate(lines) if "by li (claimed): it is owed" in line)
    assert '{"to": "ann"}' in lines[allowed - 1]
    refused = next(number for number, line in enumerate(lines) if "by wang (claimed): who is that" in line)
    assert '{"to": "eve"}' in lines[refused - 1]
    steps = tao("show", run_id, "--steps", code=0).out
    assert "by li: it is owed" in steps
    assert "by wang: who is that" in steps
    rows = tao("show", run_id, "--steps", "--json", code=0).events
    assert [row.get("approval", {}).get("by") for row in rows] == ["li", "wang", None]


def test_show_prints_each_sample_and_the_count(tao: Shell) -> None:
    model = tao.script(*(f"Thought: I think {answer}.\nFinal Answer: {answer}" for answer in ("a b", "c", "A B.")))
    ended = tao("run", "which?", "--model", model, "--strategy", "cot_sc:n=3", "--json", code=0)
    run_id = ended.events[0]["run_id"]
    assert ended.events[0]["agent"]["strategy"] == "cot_sc:n=3,temperature=0.7"
    (vote,) = [event for event in ended.events if event["kind"] == "voted"]
    assert vote["votes"] == [{"answer": "a b", "samples": [1, 3]}, {"answer": "c", "samples": [2]}]
    shown = tao("show", run_id, code=0).out.splitlines()
    assert shown[2:10] == [
        "0 Thought: I think a b.",
        "1 Sample: a b",
        "2 Thought: I think c.",
        "3 Sample: c",
        "4 Thought: I think A B..",
        "5 Sample: A B.",
        "6 Vote: 2/3: a b; 1/3: c",
        "7 Answer: a b",
    ]
    events = tao("show", run_id, "--events", code=0).out
    assert "  Sample: c\n" in events
    assert "  Vote: 2/3: a b; 1/3: c\n" in events
    assert "same as recorded" in tao("replay", run_id, code=0).out


def test_each_plan_of_a_run_is_shown_with_what_became_of_its_steps(tao: Shell) -> None:
    def step(number: int, expression: str, **more: object) -> dict[str, object]:
        calls = [{"tool": "calculator", "args": {"expression": expression}}]
        return {"number": number, "goal": f"Work out {expression}", "calls": calls, **more}

    first = call("make_plan", steps=[step(1, "1+1", expect="calculator == 'result=3'"), step(2, "2+2")])
    second = call("make_plan", steps=[step(2, "3+3")])
    spec = tao.script(first, second, "6")
    tao("run", "Add.", "--model", spec, "--strategy", "plan_execute", code=0)
    lines = [line.strip() for line in tao("show", "last", code=0).out.splitlines()]
    shown = [line for line in lines if line[:2] in ("1.", "2.")]
    assert shown == [
        "1. Work out 1+1 · failed",
        "2. Work out 2+2 · dropped: planned again",
        "2. Work out 3+3 · done",
    ]
    tasks = [line.rsplit("  ", 1)[-1] for line in tao("runs", code=0).out.splitlines()]
    assert tasks == ["Step 2 of a plan: Work out 3+3", "Step 1 of a plan: Work out 1+1", "Add."]


def test_a_setting_of_a_strategy_that_cannot_be_is_refused(tao: Shell) -> None:
    refused = tao("run", "which?", "--strategy", "cot_sc:n=0")
    assert refused.code == 2
    assert "cot_sc: n is 0. It must be a whole number from 2 to 100." in refused.err


def test_a_todo_list_is_shown_as_it_is_written_and_its_open_items_at_the_end(tao: Shell) -> None:
    """S4-46, S4-49: live, and afterwards."""
    todos = [{"text": "read the [31m\x1b[31mpages", "state": "done"}, {"text": "answer", "state": "open"}]
    model = tao.script(call("track_todos", todos=todos), "42")
    ended = tao("run", "Read, then answer.", "--model", model, "--tools", "track_todos", code=0)
    assert "\x1b" not in ended.out
    live = ended.out
    assert "Action: track_todos\n    [x] read the" in live
    assert "Observed: Saved: 1 open, 1 done." in live
    assert live.index("Answer: 42") < live.index("Open items: [ ] answer")
    run_id = tao("runs", "--json", code=0).events[0]["run_id"]
    shown = tao("show", run_id, code=0).out
    assert "Action: track_todos\n    [x] read the" in shown
    assert shown.count("Open items: [ ] answer") == 1
    assert tao("show", run_id, "--events", code=0).out.count("Open items: [ ] answer") == 1
    assert "未完成项" in tao("show", run_id, code=0, TAOLOOP_LANG="zh").out


def test_a_hand_off_is_shown_with_the_agent_and_the_run_that_took_over(tao: Shell) -> None:
    tao.script(call("hand_over_to_refunds", reason="money"), name="desk.script.yaml")
    tao.script("Sent back.", name="refunds.script.yaml")
    further = "agents: {refunds: {description: Sends money back., model: scripted:refunds.script.yaml}}"
    tao.write("desk.yaml", f"model: scripted:desk.script.yaml\nhandoffs: [refunds]\n{further}\n")
    live = tao("run", "My money, please.", "--agent", "desk.yaml", code=0).out
    run_id = tao("runs", "--json", code=0).events[-1]["run_id"].split(".")[0]
    line = f"Handed over: refunds took over in run {run_id}.1: tao show {run_id}.1"
    assert line in live
    shown = tao("show", run_id, code=0).out
    assert line in shown
    assert "Answer: Sent back." in shown
    inner = tao("show", f"{run_id}.1", code=0).out
    assert f"part of run {run_id}" in inner
    assert "handed over by desk" in inner
    assert "refunds 已在运行" in tao("show", run_id, code=0, TAOLOOP_LANG="zh").out


def test_show_prints_what_an_agent_declares_of_its_deps(tao: Shell, tmp_path: Path) -> None:
    path = tmp_path / "deps.db"
    agent = Agent(model=["Done."], journal=path, record_deps=lambda deps: {"owner": deps})
    run_id = agent.run_sync("Whose?", deps="ann").run_id
    assert '  Deps: {"owner": "ann"}' in tao("show", run_id, "--db", str(path), code=0).out
