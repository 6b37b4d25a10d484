"""`tao run` as a person and as a program use it: a scripted model, real tools."""

import json

import pytest
from tests.shell import WAIT_S, Shell, call

TOOLS = '''
import os, subprocess, time
from typing import Any
from taoloop import Agent, tool

@tool(tier="read")
def noisy(chars: int) -> str:
    """Print much, from Python, from C and from a child."""
    os.write(1, b"raw bytes\\n")
    subprocess.run(["echo", "a child"])
    print("x" * chars)
    return "quiet again"

@tool(tier="write")
def book(place: str) -> str:
    """Book a table at a place."""
    with open("booked.txt", "a") as file:
        file.write(place + "\\n")
    return "booked " + place

@tool(tier="read")
def broken(how: str) -> Any:
    """Fail in one of several ways."""
    if how == "raise":
        raise RuntimeError("the backend said no")
    if how == "hang":
        time.sleep(600)
    return object()

broken = broken.with_card(timeout_s=0.2)
print("imported")
'''


def with_tools(tao: Shell, *replies: object, **fields: object) -> list[str]:
    """Arguments for a run of the tools above."""
    tao.write("mytools.py", TOOLS)
    tao.script(*replies)
    agent = {"model": "scripted:script.yaml", "tools": ["mytools:noisy", "mytools:book", "mytools:broken"], **fields}
    tao.write("agent.json", json.dumps(agent))
    return ["run", "the task", "--agent", "agent.json"]


def test_a_task_is_answered_with_every_step_shown(tao: Shell) -> None:
    model = tao.script(call("calculator", expression="3.5**2"), "It is 12.25.")
    ended = tao("run", "square 3.5", "--model", model, code=0)
    assert "Thought: I use calculator." in ended.out
    assert 'Action: calculator {"expression": "3.5**2"}' in ended.out
    assert "Observed: result=12.25" in ended.out
    assert "Answer: It is 12.25." in ended.out
    assert "\x1b" not in ended.out
    assert ended.err == ""


def test_a_chinese_task_is_shown_in_chinese(tao: Shell) -> None:
    model = tao.script(call("calculator", expression="1+1"), "等于 2。")
    ended = tao("run", "-", "--model", model, stdin="一加一等于几?\n", code=0)
    assert "任务：一加一等于几?" in ended.out
    assert "答案：等于 2。" in ended.out


def test_a_task_on_standard_input_is_utf_8_or_refused(tao: Shell) -> None:
    run = ["run", "-", "--model", tao.script("y"), "--json"]
    for data, task in ((b"\xef\xbb\xbfsay y\r\n", "say y"), ("说 y".encode(), "说 y"), (b"\xff\x00\x81", None)):
        (tao.folder / "input").write_bytes(data)
        for locale in ({"PYTHONUTF8": "1"}, {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}):
            with (tao.folder / "input").open("rb") as file:
                process = tao.start(*run, stdin=file.fileno(), **locale)
                out, err = process.communicate(timeout=WAIT_S)
            if task is None:
                assert process.returncode == 2
                assert "standard input is not text" in err
            else:
                assert json.loads(out.splitlines()[0])["task"] == task


def test_without_any_configuration_the_embedded_model_answers_and_says_what_it_is(tao: Shell) -> None:
    ended = tao("run", "What is 3.5 squared?", code=0)
    assert "12.25" in ended.out
    assert "not a language model" in ended.one_line
    assert "tao models" in ended.one_line
    assert "不是语言模型" in tao("run", "3.5 的平方是多少?", code=0).one_line
    assert tao("run", "What is 3.5 squared?", "--model", "offline", code=0).err == ""


@pytest.mark.parametrize(
    ("task", "says"), [("Tell me a joke.", "I cannot do this task"), ("给我讲个笑话", "我做不了这个任务")]
)
def test_what_the_embedded_model_cannot_do_does_not_end_as_completed(tao: Shell, task: str, says: str) -> None:
    ended = tao("run", task, "--model", "offline", code=9)
    assert f"No answer: {says}" in ended.out or f"没有答案：{says}" in ended.out, "in its own words"
    assert "--model openai:" in ended.out
    assert "model_failed" in ended.out


def test_ai_mock_takes_the_place_of_a_provider_and_says_so_once(tao: Shell) -> None:
    mock = {"AI_MOCK": "1"}
    tao.write("agent.yaml", "model: deepseek:deepseek-chat\ntools: [calculator]\n")
    task = ("run", "What is 3.5 squared?")
    told = tao(*task, "--agent", "agent.yaml", code=0, **mock)
    assert told.one_line == "tao: AI_MOCK is set: the offline planner answers in place of deepseek:deepseek-chat."
    assert "12.25" in told.out
    for env in ({}, {"OPENAI_API_KEY": "k"}, {"TAOLOOP_MODEL": "openai:m"}, {"AI_PROVIDER": "deepseek"}):
        assert tao(*task, code=0, **mock, **env).one_line.startswith("tao: AI_MOCK is set: the offline planner")
    assert "DEEPSEEK_API_KEY" in tao(*task, "--model", "deepseek:deepseek-chat", code=2, **mock).one_line


def test_ai_mock_leaves_a_script_and_a_named_offline_model_alone(tao: Shell) -> None:
    script = tao.script("scripted!")
    tao.write("agent.yaml", f"model: {script}\n")
    for args, env in ((["--agent", "agent.yaml"], {}), (["--model", script], {}), ([], {"TAOLOOP_MODEL": script})):
        ended = tao("run", "x", *args, code=0, AI_MOCK="1", **env)
        assert "scripted!" in ended.out
        assert ended.err == ""
    assert tao("run", "What is 2+2?", "--model", "offline", code=0, AI_MOCK="1").err == ""
    assert tao("run", "What is 2+2?", code=0, TAOLOOP_MODEL="offline").err == ""


def test_ai_mock_serves_a_run_that_a_provider_began(tao: Shell) -> None:
    tao.write("agent.yaml", "model: openai:m\ntools: [calculator]\n")
    env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    run_id = tao("run", "What is 2+2?", "--agent", "agent.yaml", "--json", code=9, **env).events[0]["run_id"]
    resumed = tao("run", "--resume", run_id, "--json", code=0, AI_MOCK="1")
    assert "in place of openai:m" in resumed.one_line
    assert "4" in resumed.events[-1]["answer"]


def test_an_option_wins_over_max_steps_of_an_agent_in_python(tao: Shell) -> None:
    tao.write(
        "mine.py", "from taoloop import Agent\nagent = Agent(model='offline', tools=['calculator'], max_steps=2)\n"
    )
    given = ("run", "What is 2+2?", "--agent", "mine:agent", "--json")
    assert tao(*given, code=0).events[0]["agent"]["limits"]["max_steps"] == 2
    assert tao(*given, "--max-steps", "5", code=0).events[0]["agent"]["limits"]["max_steps"] == 5


def test_a_text_of_several_lines_is_indented(tao: Shell) -> None:
    out = tao("run", "one\ntwo", "--model", tao.script("first\n\nAnswer: second"), code=0).out
    assert "  Task: one\n    two\n" in out
    assert "  Answer: first\n\n    Answer: second\n" in out


def test_where_chinese_cannot_be_shown_the_remarks_are_english_and_nothing_is_escaped(tao: Shell) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    told = tao.process("run", "3.5 的平方是多少?", code=0, **ascii_only)
    assert told.one_line.startswith("tao: No model is configured")
    assert "答案：" in told.out, "a pipe gets UTF-8"
    assert tao.process("show", "没有", code=2, **ascii_only).one_line.startswith("tao: ")
    assert "\\u" not in tao.process("show", "没有…", code=2, **ascii_only).one_line
    assert tao.process("--help", code=0, **ascii_only).err == ""


def test_json_prints_events_and_the_last_is_finished(tao: Shell) -> None:
    model = tao.script(call("calculator", expression="1+1"), "2")
    events = tao("run", "add", "--model", model, "--json", code=0).events
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert {"run_id", "seq", "at", "kind"} <= set.intersection(*(set(event) for event in events))
    assert (events[-1]["kind"], events[-1]["status"], events[-1]["answer"]) == ("finished", "completed", "2")


def test_nothing_that_a_tool_prints_reaches_the_events(tao: Shell) -> None:
    """50 MB from print, bytes on descriptor 1, a child's output, and a print at import."""
    ended = tao(*with_tools(tao, call("noisy", chars=50_000_000), "done"), "--json", code=0)
    observed = next(event for event in ended.events if event["kind"] == "observed")
    assert observed["output"] == "quiet again"
    assert len(observed["printed"]) < 3_000
    assert sorted(ended.err.splitlines()) == ["a child", "imported", "raw bytes"]


def test_a_tool_that_raises_hangs_or_returns_nonsense_is_observed(tao: Shell) -> None:
    calls = [call("broken", how=how) for how in ("raise", "hang", "nonsense")]
    args = with_tools(tao, *calls, "I give up.", limits={"max_consecutive_errors": 9})
    events = tao.process(*args, "--json", code=0).events  # the thread that hangs ends with its process
    errors = [event["error"] for event in events if event["kind"] == "observed"]
    assert [error["code"] for error in errors] == ["exception", "timeout", "invalid_output"]
    assert "the backend said no" in errors[0]["message"]


def test_a_write_waits_where_nobody_can_be_asked_and_goes_on_when_it_is_approved(tao: Shell) -> None:
    ended = tao(*with_tools(tao, call("book", place="小南国"), "Booked."), "--json", code=8)
    assert ended.events[-1]["kind"] == "paused"
    assert not (tao.folder / "booked.txt").exists()
    run_id = ended.events[0]["run_id"]
    assert ended.events[-1]["status"] == "waiting"
    assert f"tao: Decide: tao approvals {run_id}\ntao: Resume: tao run --resume {run_id}\n" in ended.err
    resumed = tao("run", "--resume", run_id[:-3], "--approve", "write", code=0)
    assert f"  Resumed: {run_id}\n  Task: the task\n" in resumed.out
    assert "Allowed: by the operator, in advance (tier write)" in resumed.out
    assert (tao.folder / "booked.txt").read_text(encoding="utf-8") == "小南国\n"


def test_approved_ahead_of_time_nothing_is_asked(tao: Shell) -> None:
    tao(*with_tools(tao, call("book", place="x"), "Booked."), "--approve", "destructive", code=0)
    assert (tao.folder / "booked.txt").read_text(encoding="utf-8") == "x\n"


def test_a_limit_has_its_exit_code_and_a_larger_one_goes_on(tao: Shell) -> None:
    model = tao.script(*(call("calculator", expression=f"{n}+1") for n in range(3)), "3")
    ended = tao("run", "count", "--model", model, "--max-steps", "2", "--no-closing-turn", "--json", code=3)
    run_id = ended.events[-1]["run_id"]
    assert f"tao run --resume {run_id} --max-steps 4" in ended.err
    assert "has used up its max_steps of 2" in tao("run", "--resume", run_id, code=2).one_line
    assert "Answer: 3" in tao("run", "--resume", run_id, "--max-steps", "4", code=0).out
    assert "is completed" in tao("run", "--resume", run_id, code=2).one_line


def test_every_limit_can_be_given(tao: Shell) -> None:
    limits = ("--max-tool-calls", "7", "--max-tokens", "99", "--max-cost", "0.5", "--max-time", "60")
    first = tao("run", "say", "--model", tao.script("yes"), *limits, "--json", code=0).events[0]
    given = {
        name: first["agent"]["limits"][name] for name in ("max_tool_calls", "max_tokens", "max_cost_usd", "max_wall_s")
    }
    assert given == {"max_tool_calls": 7, "max_tokens": 99, "max_cost_usd": 0.5, "max_wall_s": 60}


def test_a_workspace_brings_the_file_tools_and_survives_a_resume(tao: Shell) -> None:
    tao.write("notes.md", "the code is 4711\n")
    model = tao.script(call("read_file", path="notes.md"), call("read_file", path="notes.md"), "4711")
    started = tao("run", "read", "--model", model, "--workspace", ".", "--max-steps", "1", "--json").events
    names = [card["name"] for card in started[0]["agent"]["tools"]]
    assert names == [
        "calculator",
        "time_now",
        "read_file",
        "list_files",
        "search_files",
        "write_file",
        "edit_file",
        "read_observation",
    ]
    tao.script("4711", name="script.yaml")
    tao.script(call("read_file", path="notes.md"), "x", call("read_file", path="notes.md"), "4711")
    resumed = tao("run", "--resume", started[0]["run_id"], "--max-steps", "9", "--json", code=0).events
    assert any("4711" in event["output"] for event in resumed if event["kind"] == "observed")


def test_options_win_over_the_agent_file(tao: Shell) -> None:
    tao.write("agent.yaml", "model: offline\nlanguage: zh\nlimits: {max_steps: 3}\ntools: [lookup]\n")
    model = tao.script("Final Answer: yes")
    options = ("--lang", "en", "--tools", "calculator", "--strategy", "standard", "--dialect", "text")
    agent = tao("run", "好", "--agent", "agent.yaml", "--model", model, *options, "--json", code=0).events[0]["agent"]
    assert (agent["language"], agent["strategy"], agent["dialect"]) == ("en", "standard", "text")
    assert [card["name"] for card in agent["tools"]] == ["calculator", "read_observation"]
    assert agent["limits"]["max_steps"] == 3


def test_the_form_of_the_replies_is_an_option(tao: Shell) -> None:
    """S4-20: one object with the keys thought, action, args and final."""
    model = tao.script('{"thought": "t", "final": "It is tea."}')
    events = tao("run", "x", "--model", model, "--dialect", "json_final", "--json", code=0).events
    assert events[0]["agent"]["dialect"] == "json_final"
    assert events[-1]["answer"] == "It is tea."


def test_replies_left_over_and_replies_missing_have_their_codes(tao: Shell) -> None:
    assert "has 2" in tao("run", "x", "--model", tao.script("a", "b"), code=10).one_line
    failed = tao("run", "x", "--model", tao.script(call("calculator", expression="1")), "--json", code=9)
    assert failed.events[-1]["status"] == "model_failed"


def test_verbose_shows_the_output_of_the_model_as_it_came(tao: Shell) -> None:
    model = tao.script("Thought: easy\nFinal Answer: yes")
    out = tao("run", "x", "--model", model, "--dialect", "text", "-v", code=0).out
    assert "1 Model: Thought: easy\n    Final Answer: yes" in out


def test_text_of_model_and_tools_cannot_steer_the_terminal_or_the_markup(tao: Shell) -> None:
    model = tao.script("\x1b]0;owned\x07\x1b[2J[bold]plain[/bold] \u202egnp")
    out = tao("run", "x", "--model", model, code=0).out
    assert "Answer: [bold]plain[/bold] gnp" in out
