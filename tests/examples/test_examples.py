"""The reference demos, run as a user runs them: real loop, real tools, scripted models."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from tests.models.provider_answers import whole
from tests.shell import run_in_process

from taoloop import Agent, Limits, MemoryJournal, Result
from taoloop.core.events import Finished, ModelReplied, Observed
from taoloop.core.views.transcript import step_summaries
from taoloop.testing import HttpDouble

Loader = Callable[[str], ModuleType]

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Loader:
    """Imports an example by its name."""
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def loader(name: str) -> ModuleType:
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    return loader


@pytest.fixture
def huala(load: Loader) -> ModuleType:
    return load("huala")


def test_the_huala_trace_is_exactly_eight_entries(huala: ModuleType) -> None:
    """S0-5, S0-6, S0-7, S0-8, S0-26."""
    result: Result = huala.run()
    shown = [(e.number, e.kind, e.tool, e.ok) for e in result.entries]
    assert shown == [
        (0, "Thought", None, None),
        (1, "Action", "lookup", None),
        (2, "Observation", "lookup", True),
        (3, "Thought", None, None),
        (4, "Action", "add", None),
        (5, "Observation", "add", True),
        (6, "Thought", None, None),
        (7, "Final", None, None),
    ]
    contents = [entry.content for entry in result.entries]
    assert (contents[2], contents[5], contents[7]) == ("8", "10", "10")
    assert result.entries[1].args == {"key": "huala.post_count"}
    assert contents[4] == '{"numbers": "8,2"}'
    assert contents[2] in contents[4], "the second action uses the first observation"
    assert result.status == "completed"


@pytest.mark.parametrize(
    ("action", "tool", "text"),
    [
        ("lookup: nobody.post_count", "lookup", "nobody.post_count"),  # S0-10
        ("add: 8", "add", "8,2"),  # S0-11
        ("add: eight,two", "add", "8,2"),  # S0-11
        ("teleport: home", "teleport", "teleport"),  # S0-17
        (f"lookup: {'k' * 1100}", "lookup", "1,024"),  # S0-18
        ("lookup:", "parser", "lookup:"),  # S0-15
        ("lookup", "parser", "lookup"),  # S0-15
    ],
)
def test_a_bad_action_is_an_observation_that_says_what_is_wrong(
    huala: ModuleType, action: str, tool: str, text: str
) -> None:
    result = huala.run([f"Thought: t\nAction: {action}", "Thought: t\nFinal: It failed."])
    failed = [entry for entry in result.entries if entry.kind == "Observation"]
    assert [(entry.tool, entry.ok) for entry in failed] == [(tool, False)]
    assert text in failed[0].content
    assert result.answer == "It failed."


def test_a_failed_call_ends_the_demo_with_a_final_that_reports_it(huala: ModuleType) -> None:
    """S0-27: and no number is invented."""
    result = huala.run(name="nobody")
    assert [entry.kind for entry in result.entries] == ["Thought", "Action", "Observation", "Thought", "Final"]
    assert result.entries[2].ok is False
    assert result.answer == "The task cannot be done: There is no key 'nobody.post_count'."


def test_the_demo_has_reads_without_effects_and_says_that_its_model_is_a_script(huala: ModuleType) -> None:
    """S0-19, S0-44."""
    cards = [huala.lookup.card, huala.add.card]
    assert [(card.tier, card.egress) for card in cards] == [("read", None)] * 2
    assert (huala.run().trace.agent.model, huala.run().trace.agent.limits.max_steps) == ("function:decide", 8)
    assert "with a scripted model" in (huala.__doc__ or "")


def test_a_provider_in_place_of_the_script_gives_the_same_trace(huala: ModuleType) -> None:
    """S0-3: the agent differs by its model alone."""
    script = [
        "Thought: I need the post count of huala first.\nAction: lookup: huala.post_count",
        "Thought: It is 8; now I add 2.\nAction: add: 8,2",
        "Thought: The sum is known.\nFinal: 10",
    ]
    answers = [whole(200, {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}) for text in script]
    with HttpDouble(answers) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        agent = Agent(model="openai:m", env=env, tools=[huala.lookup, huala.add], dialect="text", max_steps=8)
        result = agent.run_sync("Look up the post count of huala, then add 2.")
    assert result.entries == huala.run().entries == huala.run(script).entries


@pytest.mark.parametrize("reply", ["I think it is ten.", "", "   \n  ", "Thought: only thinking"])
def test_a_reply_without_a_step_is_an_observation_of_the_parser(huala: ModuleType, reply: str) -> None:
    """S0-13, S0-14, S0-16, S4-56 (trap: a reply that could not be parsed is missing from the printed trace)."""
    result = huala.run([reply, "Final: 10"])
    first = result.entries[0]
    assert (first.kind, first.tool, first.ok) == ("Observation", "parser", False)
    raw = [event.fact.text for event in result.trace.events if isinstance(event.fact, ModelReplied)]
    assert raw[0] == reply


def test_a_stray_line_is_quoted(huala: ModuleType) -> None:
    """S0-13; beside a labelled decision such a line is prose, which decides nothing."""
    result = huala.run(["Hm, let me see.", "Final: 10"])
    assert "Hm, let me see." in result.entries[0].content
    result = huala.run(["Hm, let me see.\nAction: lookup: huala.post_count", "Final: 8"])
    assert [entry.kind for entry in result.entries] == ["Action", "Observation", "Final"]


def test_three_parse_failures_end_the_run_and_say_so(huala: ModuleType) -> None:
    """S0-20, S0-21."""
    result = huala.run(["?", "?", "?"])
    assert (result.status, result.entries[-1].kind) == ("unreadable", "Final")
    assert "could not be parsed" in result.entries[-1].content


def test_unreadable_replies_and_failed_calls_end_the_run_together(huala: ModuleType) -> None:
    """S0-20."""
    result = huala.run(["?", "Action: lookup: nobody", "?", "Final: 10"])
    assert (result.status, result.trace.total_errors) == ("too_many_errors", 3)


def test_errors_far_apart_do_not_end_the_run(huala: ModuleType) -> None:
    """S0-45 (trap: the printed error counter is never reset)."""
    good, bad = "Action: lookup: huala.post_count", "Action: lookup: nobody"
    script = [bad, good, bad, "Action: add: 1,1", bad, "Final: 10"]
    assert huala.run(script).status == "completed"


def test_a_run_without_a_final_gets_one_that_names_the_step_limit(huala: ModuleType) -> None:
    """S0-19, S0-22, S3-4, S3-37."""
    script = [f"Action: add: {n},1" for n in range(8)]
    result = huala.run(script, Limits(max_steps=8))
    finals = [entry for entry in result.entries if entry.kind == "Final"]
    assert len(finals) == 1
    assert "step limit of 8" in finals[0].content
    assert "not done" in finals[0].content
    assert len(result.trace.steps) == 8


def test_nothing_after_a_final_is_executed_and_no_action_beside_one(huala: ModuleType) -> None:
    """S0-23, S0-47, S4-22 (trap: a Final next to an action whose Observation the model never saw is accepted)."""
    both = "Action: lookup: huala.post_count\nFinal: 10"
    result = huala.run([both, "Final: 8"])
    assert [entry.tool for entry in result.entries] == ["parser", None]
    after = huala.run(["Final: 8\nObservation: 9\nAction: lookup: huala.post_count"])
    assert [entry.kind for entry in after.entries] == ["Final"]


def test_an_observation_that_the_model_wrote_never_becomes_a_result(huala: ModuleType) -> None:
    """S0-24: an answer that rests on it is refused; without one the action before it is run, and nothing behind it."""
    invented = "Action: lookup: huala.post_count\nObservation: 99\nFinal: 101"
    result = huala.run([invented, "Final: unknown"])
    assert not [event for event in result.trace.events if isinstance(event.fact, Observed)]
    assert (result.entries[0].tool, result.trace.total_errors) == ("parser", 1)
    result = huala.run(["Action: lookup: huala.post_count\nObservation: 99\nAction: add: 99,2", "Final: 8"])
    assert [entry.content for entry in result.entries] == ['{"key": "huala.post_count"}', "8", "8"]


def test_long_thoughts_and_answers_are_accepted(huala: ModuleType) -> None:
    """S0-48 (trap: a Thought or a Final of more than one line is rejected)."""
    script = ["Thought: one\ntwo\n\nthree\nAction: lookup: huala.post_count", "Final: first\n\n- second\n- third"]
    result = huala.run(script)
    assert result.entries[0].content == "one\ntwo\n\nthree"
    assert result.answer == "first\n\n- second\n- third"


def test_the_unusable_part_of_a_reply_is_named(huala: ModuleType) -> None:
    """S0-49 (trap: the printed parser throws valid steps away and does not say why)."""
    result = huala.run(["Thought: fine\nAction: lookup: huala.post_count\nand so on", "Final: 8"])
    assert "and so on" in result.entries[0].content


def test_the_weather_comes_from_a_real_service(load: Loader) -> None:
    """S1-41."""
    weather = load("weather")
    result = weather.run()
    assert result.trace.task == "What is the weather in Beijing today?"
    assert (result.entries[1].tool, result.entries[1].args) == ("get_weather", {"city": "Beijing"})
    assert result.entries[2].content == '{"sky":"sunny","celsius":21}'
    assert "sunny" in (result.answer or "")


def test_a_service_error_is_an_observation(load: Loader) -> None:
    weather = load("weather")
    script = [
        '{"thought": "t", "action": "get_weather", "action_input": {"city": "Atlantis"}}',
        '{"thought": "t", "action": "final", "action_input": "unknown"}',
    ]
    result = weather.run(script)
    assert (result.entries[2].ok, result.answer) == (False, "unknown")
    assert "404" in result.entries[2].content


def test_the_handbook_stores_summaries_of_its_decisions(load: Loader) -> None:
    """S2-3, S2-4, S2-9, S2-10, S2-12, S4-27."""
    result = load("handbook").run()
    rows = step_summaries(result.trace)
    assert [[*row] for row in rows] == [["step", "action", "args", "reason_summary", "observation_summary"]] * 3
    assert [(row["step"], row["action"]) for row in rows] == [(1, "order_status"), (2, "track_parcel"), (3, "final")]
    assert rows[1]["observation_summary"].startswith("unknown_tool")
    assert result.status == "completed"


def test_the_final_decision_and_its_reason_are_in_the_trace(load: Loader) -> None:
    """S2-46 (trap: the printed loop puts neither into the trace)."""
    last = load("handbook").run().trace.events[-1].fact
    assert isinstance(last, Finished)
    assert (last.answer, last.reason) == ("Order A-17 was shipped two days ago.", "The order system has answered.")


def test_the_hour_is_added_in_four_steps(load: Loader) -> None:
    """S3-38, S3-13, S3-15, S3-36."""
    result = load("hour").run()
    actions = [(entry.tool, entry.args) for entry in result.entries if entry.kind == "Action"]
    assert actions == [
        ("calculator", {"expression": "3.5**2"}),
        ("time_now", {"zone": "Asia/Shanghai"}),
        ("calculator", {"expression": "12.25+9"}),
    ]
    observed = [entry.content for entry in result.entries if entry.kind == "Observation"]
    assert observed == ["result=12.25", "2026-03-02T09:30:00+08:00", "result=21.25"]
    assert [entry.kind for entry in result.entries].count("Final") == 1
    assert (result.entries[-1].kind, result.answer, result.trace.agent.limits.max_steps) == ("Final", "21.25", 5)
    assert 'Action: calculator\nAction Input: {"expression": "3.5**2"}\nObservation: result=12.25' in result.text


def test_the_offline_model_finds_the_same_number(load: Loader) -> None:
    result = load("hour").run("offline")
    assert (result.status, result.trace.tool_calls) == ("completed", 3)
    assert "21.25" in (result.answer or "")


def test_the_game_is_written_edited_and_read_back(load: Loader, tmp_path: Path) -> None:
    """S4-32, S4-33, S4-34: an edit that could mean two lines changes nothing; the next one shows what it changed."""
    game = load("html_game")
    result = game.run(tmp_path)
    assert result.status == "completed"
    page = game.PAGE.replace(game.TITLE, game.BETTER_TITLE)
    assert (tmp_path / "index.html").read_text(encoding="utf-8") == page
    _, refused, edited, content = (call.observed for call in result.trace.calls.values())
    assert refused.error.code == "several_matches"
    assert f"-{game.TITLE}\n+{game.BETTER_TITLE}\n" in json.loads(edited.output)["diff"]
    assert json.loads(content.output) == {"ok": True, "content": page}


def test_the_edit_of_the_game_can_be_undone_and_the_whole_game_too(load: Loader, tmp_path: Path) -> None:
    """S4-55: with what the demo prints."""
    game, folder, out = load("html_game"), tmp_path / "work" / "game", StringIO()
    with redirect_stdout(out):
        game.main(folder)
    *_, line = out.getvalue().splitlines()
    args = line.partition(": tao ")[2].split()
    assert args[-2:] == ["--to", "1"]
    env = {"TAOLOOP_DB": str(tmp_path / "other.db")}
    assert run_in_process([*args, "--yes"], tmp_path / "work", env).code == 0
    assert (folder / "index.html").read_text(encoding="utf-8") == game.PAGE
    assert run_in_process([*args[:-2], "--yes"], tmp_path / "work", env).code == 0
    assert not (folder / "index.html").exists()


def test_the_game_is_not_written_without_permission(load: Loader, tmp_path: Path) -> None:
    """S0-37, S4-55 (trap: write_file overwrites without approval)."""
    result = load("html_game").run(tmp_path, allowed=False)
    assert result.status == "waiting"
    assert not (tmp_path / "index.html").exists()


def test_the_four_modes_run_on_one_question_with_the_same_tools(load: Loader) -> None:
    """S4-4 to S4-8, S4-53."""
    modes = load("four_modes")
    results = {name: modes.run(name) for name in modes.SCRIPTS}
    assert {result.trace.task for result in results.values()} == {modes.QUESTION}
    assert all(result.trace.agent.tools == results["react"].trace.agent.tools for result in results.values())
    calls = {name: result.trace.tool_calls for name, result in results.items()}
    assert calls == {
        "standard": 0,
        "reason_only": 0,
        "act_only": 3,
        "react": 3,
        "cot_sc": 0,
        "cot_sc_then_react": 3,
        "react_then_cot_sc": 4,
        "reflect": 2,
    }
    thoughts = {name: sum(e.kind == "Thought" for e in results[name].entries) for name in list(results)[:4]}
    assert thoughts == {"standard": 0, "reason_only": 1, "act_only": 0, "react": 4}
    right = {name for name, result in results.items() if modes.is_right(result)}
    assert right == {"react", "cot_sc_then_react", "react_then_cot_sc", "reflect"}
    for name, used in (("plan_execute", (5, 3)), ("graph", (3, 3))):
        journal = MemoryJournal()
        assert modes.is_right(modes.run(name, journal))
        assert asyncio.run(modes.used(journal)) == used


def test_a_wrong_premise_is_corrected_by_an_observation_only(load: Loader) -> None:
    """S4-9, S4-47, S4-48."""
    modes = load("four_modes")
    assert modes.run("reason_only").answer == "iPhone"
    assert modes.run("act_only").answer == "yes"
    assert modes.run("cot_sc").answer == "an iPhone"
    react = modes.run("react")
    assert "Front Row" in react.entries[2].content
    assert "not Apple TV" in react.entries[3].content
    assert react.entries[5].content.startswith("Could not find 'Front Row'. Similar: Front Row")
    assert "has no page" in react.entries[6].content
    assert react.answer == modes.RIGHT


def test_a_refund_follows_its_graph_and_is_paid_once(load: Loader, capsys: pytest.CaptureFixture[str]) -> None:
    """S2-44, S4-44, S4-45."""
    example = load("refund_graph")
    example.main()
    assert example.PAID == [("B-4", 20.0), ("A-17", 120.0)]
    assert "A-17: waiting" in capsys.readouterr().out
