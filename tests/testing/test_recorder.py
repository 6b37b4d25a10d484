"""Recorded once, replayed without a network: the same replies, whatever the order, the process and the run."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, strategies as st
from tests.models.asking import Told, asking

from taoloop import Agent, ScriptedModel, tool
from taoloop.core.effects import ModelRequest
from taoloop.core.message import Delta, Message, ModelReply, ToolCallText, Usage
from taoloop.errors import ConfigError, ReplayDiverged
from taoloop.testing import Recorder, calls, forbid_real_calls
from taoloop.testing.recorder import Recording, RequestKey

ACT: dict[str, Any] = {"tool_calls": [{"name": "add", "args": {"a": 1, "b": 2}}], "usage": {"input_tokens": 7}}


@tool(tier="read")
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.fixture(params=["replies.yaml", "replies.json"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def ask(recorder: Recorder, request: ModelRequest | None = None) -> ModelReply:
    return asyncio.run(recorder.complete(request or asking()))


def not_recorded(recorder: Recorder, request: ModelRequest) -> ReplayDiverged:
    with pytest.raises(ReplayDiverged) as raised:
        ask(recorder, request)
    return raised.value


@pytest.mark.parametrize("dialect", ["native", "text"])
def test_a_run_is_replayed_without_the_model(path: Path, dialect: str) -> None:
    """Each run has its own nonce and id, and both stand in the prompt of the second turn."""
    script: list[Any] = [ACT, "3"] if dialect == "native" else [
        'Thought: I add.\nAction: add\nAction Input: {"a": 1, "b": 2}', "Final Answer: 3",
    ]  # fmt: skip
    first = Agent(model=Recorder(ScriptedModel(script), path), dialect=dialect, tools=[add]).run_sync("1 + 2")
    again = Agent(model=Recorder(None, path, mode="replay"), dialect=dialect, tools=[add]).run_sync("1 + 2")
    assert (again.status, again.answer, again.usage) == ("completed", "3", first.usage)
    assert calls(again) == [("add", {"a": 1, "b": 2})]
    assert again.trace.agent.model == first.trace.agent.model


def test_only_what_is_not_recorded_is_asked(path: Path) -> None:
    model = Told("hello", "hi")
    for _ in range(3):
        assert ask(Recorder(model, path)).text == "hello"
    assert ask(Recorder(model, path), asking("another")).text == "hi"
    assert len(model.requests) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_recording_is_for_its_owner(path: Path) -> None:
    ask(Recorder(ScriptedModel(["y"]), path))
    assert path.stat().st_mode & 0o777 == 0o600


def test_recording_anew_replaces_what_was_recorded_for_the_same_request(path: Path) -> None:
    ask(Recorder(Told("old"), path))
    ask(Recorder(Told("kept"), path), asking("another"))
    ask(Recorder(Told("new"), path, mode="record"))
    replayed = Recorder(None, path, mode="replay")
    assert (ask(replayed).text, ask(replayed, asking("another")).text) == ("new", "kept")


def test_a_request_recorded_several_times_gets_its_replies_in_order(path: Path) -> None:
    recorder = Recorder(Told("one", "two"), path, mode="record")
    assert [ask(recorder).text for _ in range(2)] == ["one", "two"]
    replayed = Recorder(None, path, mode="replay")
    assert [ask(replayed).text for _ in range(3)] == ["one", "two", "two"]


def test_each_sample_of_a_vote_is_recorded_and_replayed(path: Path) -> None:
    script = [f"Thought: t\nFinal Answer: {answer}" for answer in ("a", "b", "B")]
    for model in (ScriptedModel(script), None):  # at first it records, then it only replays
        recorder = Recorder(model, path)
        agent = Agent(model=recorder, dialect="text", strategy="cot_sc:n=3")
        assert [agent.run_sync("which?").answer for _ in range(2)] == ["b", "b"]


def test_the_order_of_requests_does_not_matter(path: Path) -> None:
    recorder = Recorder(Told("one", "two"), path)
    for text in ("first", "second"):
        ask(recorder, asking(text))
    replayed = Recorder(None, path, mode="replay")
    assert [ask(replayed, asking(text)).text for text in ("second", "first")] == ["two", "one"]


def test_an_unrecorded_request_says_what_differs(path: Path) -> None:
    system = Message(role="system", content="You are careful.\nBe brief.")
    ask(Recorder(Told("yes"), path), asking(messages=(system, Message(role="user", content="Buy tea"))))
    wanted = asking(messages=(system, Message(role="user", content="Buy coffee")), temperature=0.5)
    error = not_recorded(Recorder(None, path, mode="replay"), wanted)
    assert error.message.splitlines()[1:] == ["+temperature: 0.5", "-[user] Buy tea", "+[user] Buy coffee"]
    assert "is not recorded in" in error.message
    assert "mode='replay' never asks" in error.message


def test_a_long_difference_is_cut(path: Path) -> None:
    ask(Recorder(Told("yes"), path))
    long = Message(role="user", content="\n".join(f"line {number} {'x' * 500}" for number in range(99)))
    lines = not_recorded(Recorder(None, path, mode="replay"), asking(messages=(long,))).message.splitlines()
    assert len(lines) < 20
    assert all(len(line.replace(str(path), "")) < 300 for line in lines)
    assert lines[-1] == "… and 86 more lines"


def test_an_empty_recording_says_so(path: Path) -> None:
    assert "Nothing is recorded there." in not_recorded(Recorder(None, path, mode="replay"), asking()).message
    with pytest.raises(ConfigError, match="there is no model"):
        _ = Recorder(None, path).dialect


def test_under_the_switch_auto_only_replays(path: Path) -> None:
    model = Told("hello")
    ask(Recorder(model, path))
    with forbid_real_calls():
        assert ask(Recorder(model, path)).text == "hello"
        assert "forbidden" in not_recorded(Recorder(model, path), asking("another")).message
    assert len(model.requests) == 1


def test_what_makes_a_request_another_one(path: Path) -> None:
    """Everything that the model sees, and nothing else."""
    ask(Recorder(Told("x"), path))
    recorder = Recorder(None, path, mode="replay")
    for same in (asking(timeout_s=3.0), asking(turn=4), asking(on_delta=lambda _: None)):
        assert ask(recorder, same).text == "x"
    for other in (
        asking(temperature=0.1), asking(top_p=0.5), asking(max_output_tokens=9), asking(stop=("x",)),
        asking(purpose="close"), asking(dialect="json"), asking(native=True, tools=(add.card,)),
        asking(reply_schema={"type": "object"}),
    ):  # fmt: skip
        not_recorded(recorder, other)
    ask(Recorder(Told("x", spec="another"), path, mode="record"))
    assert len({row["key"] for row in content(path)["exchanges"]}) == 2


def test_texts_that_change_can_be_left_out_of_account(path: Path) -> None:
    ignore = [r"\d{4}-\d\d-\d\d"]
    ask(Recorder(Told("yes"), path, ignore=ignore), asking("Today is 2026-11-21."))
    replayed = Recorder(None, path, mode="replay", ignore=ignore)
    assert ask(replayed, asking("Today is 2027-01-02.")).text == "yes"


def test_secrets_are_not_written(path: Path) -> None:
    env = {"MY_API_KEY": "sk-very-secret-1", "HOME": "/home/somebody", "DB_PASSWORD": "hunter22"}
    ask(Recorder(Told("use sk-very-secret-1"), path, env=env), asking("The key is sk-very-secret-1, hunter22."))
    assert "very-secret" not in path.read_text(encoding="utf-8")
    assert "hunter22" not in path.read_text(encoding="utf-8")
    other = env | {"MY_API_KEY": "sk-another-secret"}
    reply = ask(Recorder(None, path, mode="replay", env=other), asking("The key is sk-another-secret, hunter22."))
    assert reply.text == "use ⟨MY_API_KEY⟩"


def test_what_a_prompt_shares_with_an_earlier_one_is_written_once(path: Path) -> None:
    messages = [Message(role="user", content=f"message number {n}") for n in range(20)]
    recorder = Recorder(Told("ok"), path)
    for length in range(1, 21):
        ask(recorder, asking(messages=tuple(messages[:length])))
    assert path.read_text(encoding="utf-8").count("message number 7") == 1
    replayed = Recorder(None, path, mode="replay")
    for length in range(20, 0, -1):
        assert ask(replayed, asking(messages=tuple(messages[:length]))).text == "ok"


def test_a_recording_can_be_read_and_corrected_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "replies.yaml"
    ask(Recorder(Told("one\ntwo"), path), asking("Say it\nslowly"))
    assert "    content: |-\n      Say it\n      slowly\n" in path.read_text(encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace("two", "three"), encoding="utf-8")
    assert ask(Recorder(None, path, mode="replay"), asking("Say it\nslowly")).text == "one\nthree"


def test_who_watches_hears_the_recorded_reply(path: Path) -> None:
    reply = ModelReply(text="I add.", tool_calls=(ToolCallText(name="add", arguments="{}"),))
    ask(Recorder(Told(reply), path))
    seen: list[Delta] = []
    ask(Recorder(None, path, mode="replay"), asking(on_delta=seen.append))
    assert [(delta.kind, delta.text, delta.done) for delta in seen] == [("text", "I add.", False), ("call", "{}", True)]


def test_half_a_character_does_not_spoil_the_file(path: Path) -> None:
    """Servers cut texts anywhere; no file in UTF-8 can hold what is left."""
    ask(Recorder(Told("half \ud83d"), path), asking("asked \ud83d"))
    assert ask(Recorder(None, path, mode="replay"), asking("asked \ud83d")).text.startswith("half ")


def test_a_failed_call_is_not_recorded(path: Path) -> None:
    recorder = Recorder(Told(ReplayDiverged("no"), "hello"), path)
    with pytest.raises(ReplayDiverged):
        ask(recorder)
    assert not path.exists()
    assert ask(recorder).text == "hello"


def test_a_model_named_by_its_spec_needs_no_key_to_be_replayed(path: Path) -> None:
    ask(Recorder(Told("hello", spec="openai:tiny"), path))
    replayed = Recorder("openai:tiny", path, env={})
    assert (replayed.spec, replayed.dialect, ask(replayed).text) == ("openai:tiny", "text", "hello")


def test_a_model_named_by_its_spec_is_made_when_it_is_asked(path: Path) -> None:
    agent = Agent(model=Recorder("offline", path), tools=["calculator"])
    assert agent.run_sync("What is 2 + 2?").status == "completed"
    assert path.exists()


def test_the_rest_is_left_to_the_model(path: Path) -> None:
    model = Told("hello")
    recorder = Recorder(model, path)
    recorder.check_used(2)
    asyncio.run(recorder.close())
    assert (recorder.dialect, model.checked, model.closed) == ("native", [2], 1)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("recording: 2\nexchanges: []", "version"),
        ("[1", "cannot be read: while parsing"),
        ("hello", "it is no recording"),
        ("", "it is no recording"),
        ("recording: 1", "another form .*exchanges"),
        ("recording: 1\nexchanges: [3]", "another form"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "replies.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=what) as caught:
        Recorder(None, path)
    assert "\n" not in str(caught.value)
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "arguments",
    [{"mode": "sometimes"}, {"path": "x.txt"}, {"model": None, "mode": "record"}, {"ignore": ["("]}, {"ignore": "["}],
)
def test_arguments_that_mean_nothing_are_refused(tmp_path: Path, arguments: dict[str, Any]) -> None:
    given: dict[str, Any] = {"model": Told("x"), "path": "x.yaml"} | arguments
    path = tmp_path / given.pop("path")
    with pytest.raises(ConfigError):
        Recorder(path=path, **given)


RECORDS = """
import asyncio, sys
from pathlib import Path
from taoloop.testing import Recorder
from tests.models.asking import Told, asking
path, name = sys.argv[1:]
recorder = Recorder(Told(f"reply to {name}"), Path(path))
for number in range(5):
    asyncio.run(recorder.complete(asking(f"{name} {number}")))
"""


def test_tests_in_several_processes_record_into_one_file(path: Path) -> None:
    root = Path(__file__).parents[2]
    started = [subprocess.Popen([sys.executable, "-c", RECORDS, str(path), name], cwd=root) for name in ("a", "b", "c")]
    assert [process.wait(timeout=60) for process in started] == [0, 0, 0]
    replayed = Recorder(None, path, mode="replay")
    for name in ("a", "b", "c"):
        assert [ask(replayed, asking(f"{name} {n}")).text for n in range(5)] == [f"reply to {name}"] * 5
    assert [file.name for file in path.parent.iterdir()] == [path.name]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@example("\x85", "\u2028\r\n", "\ufeff\t", False)
@example(" a \n\n  b\n", "\n", "- x: 1", False)
@given(texts, texts, texts, st.booleans())
def test_any_text_comes_back(
    tmp_path_factory: pytest.TempPathFactory, asked: str, said: str, args: str, as_json: bool
) -> None:
    path = tmp_path_factory.mktemp("recorded") / ("r.json" if as_json else "r.yaml")
    request = RequestKey(asked, {"model": "m", "dialect": "text"}, [], [{"role": "user", "content": asked}])
    call = ToolCallText(name="add", arguments=args, id="c1")
    reply = ModelReply(text=said, tool_calls=(call,), usage=Usage(output_tokens=3), cost_usd=0.5, finish_reason="stop")
    Recording(path).add(request, reply, replace=False)
    again = Recording(path)
    assert again.replies(request.key) == (reply,)
    assert again.first is not None
    assert again.first.messages[0]["content"] == asked


def content(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
