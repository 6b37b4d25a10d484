"""Conversations, memory, structured answers and agents as tools on the command line."""

import json

from tests.shell import Shell, call


def run_id(tao: Shell) -> str:
    return tao("runs", "--limit", "1", code=0).out.split()[0]


def test_a_task_goes_on_after_the_last_run(tao: Shell) -> None:
    model = tao.script("I see, Ann.")
    tao("run", "I am Ann.", "--model", model, code=0)
    first = run_id(tao)
    ended = tao("run", "Who am I?", "--after", "last", "--json", code=0)
    started = ended.events[0]
    assert started["after"] == first
    assert [message["content"] for message in started["history"]] == ["I am Ann.", "I see, Ann."]
    assert started["agent"]["model"] == model
    shown = tao("show", "last", code=0)
    assert f"continues run {first}" in shown.out


def test_a_run_without_an_answer_cannot_be_followed(tao: Shell) -> None:
    tao("run", "x", "--model", tao.script(), code=9)
    ended = tao("run", "y", "--after", "last", "--model", "offline", code=2)
    assert "has no answer" in ended.one_line
    assert "--after" in tao("run", "--resume", "last", "--after", "last", code=2).err


def test_notes_are_kept_from_run_to_run(tao: Shell) -> None:
    model = tao.script(call("remember", text="小明住在上海。"), "好的。")
    tao("run", "记住：小明住在上海。", "--model", model, "--memory", "notes.db", code=0)
    model = tao.script(call("recall", query="小明住哪里"), "上海。")
    ended = tao("run", "小明住哪里？", "--model", model, "--memory", "notes.db", code=0)
    assert "小明住在上海。" in ended.out


def test_an_answer_fits_the_schema_of_a_file(tao: Shell) -> None:
    tao.write("price.json", json.dumps({"type": "object", "required": ["price"]}))
    model = tao.script("about 3", '{"price": 3}')
    ended = tao("run", "x", "--model", model, "--dialect", "native", "--output-schema", "price.json", code=0)
    assert "bad_answer" in ended.out
    assert 'Answer: {"price": 3}' in ended.out
    tao.write("bad.json", json.dumps({"type": "nothing"}))
    ended = tao("run", "x", "--model", model, "--output-schema", "bad.json", code=2)
    assert "bad.json:1: The output schema is not valid JSON Schema" in ended.one_line
    ended = tao("run", "x", "--model", model, "--output-schema", "none.json", code=2)
    assert "none.json: there is no such file" in ended.one_line
    assert "--agent" not in ended.one_line


def test_an_agent_of_another_file_is_a_tool_and_its_run_is_linked(tao: Shell) -> None:
    tao.script(call("calculator", expression="6*7"), "42", name="inner.yaml.txt")
    tao.write("inner.yaml", "model: scripted:inner.yaml.txt\ntools: [calculator]\n")
    tao.script(call("reckoner", task="6 times 7"), "It is 42.")
    tools = [{"agent": "inner.yaml", "name": "reckoner", "purpose": "Reckon."}]
    tao.write("outer.json", json.dumps({"model": "scripted:script.yaml", "tools": tools}))
    ended = tao("run", "6 times 7?", "--agent", "outer.json", code=0)
    inner, outer = (line.split()[0] for line in tao("runs", code=0).out.splitlines())
    assert inner == f"{outer}.1"
    assert f"by run {inner}: tao show {inner}" in ended.out
    assert f"by run {inner}" in tao("show", outer, code=0).out
    assert f"part of run {outer}" in tao("show", inner, code=0).out
    tao("show", outer[:-3], code=0)
    tao("replay", inner, code=0)
    assert tao("show", "last", "--json", code=0).events[0]["run_id"] == outer


def test_a_run_that_is_resumed_finds_its_notes(tao: Shell) -> None:
    model = tao.script(call("remember", text="Tea is out."), "More?", call("recall", query="tea"), "Tea is out.")
    tao("run", "x", "--model", model, "--memory", "notes.db", "--max-steps", "1", code=3)
    assert '"text":"Tea is out."' in tao("run", "--resume", "last", "--max-steps", "3", code=0).out


def test_a_run_that_waits_with_an_inner_one_says_how_to_go_on(tao: Shell) -> None:
    tao.script(call("write_file", path="a.txt", content="hi"), "written", name="inner.txt")
    tao.write("inner.yaml", "model: scripted:inner.txt\nworkspace: files\ntools: [write_file]\n")
    tao.script(call("writer", task="Write hi."), "Done.")
    tools = [{"agent": "inner.yaml", "name": "writer", "purpose": "Write."}]
    tao.write("outer.json", json.dumps({"model": "scripted:script.yaml", "tools": tools}))
    waiting = tao("run", "x", "--agent", "outer.json", code=8)
    assert "write_file (call_1, write) in run" in waiting.out
    answer, go_on = waiting.out.splitlines()[-2:]
    [asked] = json.loads(tao(*answer.removeprefix("Decide: tao ").split(), "--json", code=0).out)
    tao("approve", asked["run_id"], asked["call_id"], code=0)
    assert "Answer: Done." in tao(*go_on.removeprefix("Resume: tao ").split(), code=0).out
    assert (tao.folder / "files" / "a.txt").read_text() == "hi"
