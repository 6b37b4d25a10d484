"""Servers that die, hang, flood and lie: a clear message that names the server, and the rest goes on."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from taoloop.errors import InvalidOutput, McpFailed, McpLost, ToolTimeout
from taoloop.tools.mcp import McpServer, close_all, close_server, mcp_tools
from taoloop.tools.mcp.connection import ReconnectBackoff

from .calling import Make, only, told, use

OTHER = {"name": "other", "inputSchema": {"type": "object"}}


def test_a_server_that_dies_in_a_call_is_named_with_its_last_words_and_started_again(fake: Make) -> None:
    loaded = mcp_tools(fake({"call": {"echo": "die"}, "tools": [{**OTHER, "name": "echo"}, OTHER]}))
    with pytest.raises(McpLost, match=r"'fake' went away.*'echo'.*exit code 3.*out of memory"):
        use(only(loaded, "fake.echo"))
    assert use(only(loaded, "fake.other")) == "None"


def test_a_lost_call_that_only_reads_is_sent_again_and_one_that_may_write_is_not(fake: Make, tmp_path: Path) -> None:
    plan = {"call": "die once", "mark": str(tmp_path / "mark")}
    reading = mcp_tools(fake(plan, tiers={"echo": "read"}))
    assert use(only(reading, "fake.echo"), text="back") == "back"
    (tmp_path / "mark").unlink()
    close_all()
    with pytest.raises(McpLost):
        use(only(mcp_tools(fake(plan)), "fake.echo"), text="back")


def test_a_server_that_hangs_in_a_call_times_out_and_the_next_call_is_served(fake: Make) -> None:
    loaded = mcp_tools(fake({"call": {"echo": "hang"}, "tools": [{**OTHER, "name": "echo"}, OTHER]}, timeout_s=0.2))
    with pytest.raises(ToolTimeout, match=r"'fake' gave no answer to the tool 'echo' within 0.2 s"):
        use(only(loaded, "fake.echo"))
    assert use(only(loaded, "fake.other")) == "None"


def test_a_server_that_leaves_call_after_call_without_an_answer_is_started_anew(fake: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    echo = only(mcp_tools(fake({"call": "hang", "log": str(log)}, timeout_s=0.1)), "fake.echo")
    for _ in range(4):
        with pytest.raises(ToolTimeout):
            use(echo, text="x")
    assert log.read_text().count("started") == 2


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("endless line", "a line of more than 100,000 bytes"),
        ("endless garbage", "more than 1,000 lines that are no messages"),
        ("flood", "more than 20,000 messages that nobody asked for"),
    ],
)
def test_a_server_that_says_too_much_is_given_up(fake: Make, how: str, reason: str) -> None:
    loaded = mcp_tools(fake({"call": how}, max_message_bytes=100_000))
    with pytest.raises(McpLost, match=rf"'fake' went away.*{reason}"):
        use(only(loaded, "fake.echo"), text="x")


@pytest.mark.parametrize("how", ["garbage", "some notices"])
def test_a_little_noise_harms_nothing(fake: Make, how: str) -> None:
    assert use(only(mcp_tools(fake({"call": how})), "fake.echo"), text="x") == "x"


def test_a_server_that_hangs_at_the_start_is_a_problem_that_names_it(fake: Make) -> None:
    loaded = mcp_tools(fake({"start": "hang"}, start_timeout_s=0.3))
    assert not loaded.tools
    assert "'fake': cannot be reached: it gave no answer within 0.3 s" in told(loaded)


def test_a_server_that_ends_at_the_start_is_a_problem_with_its_last_words(fake: Make) -> None:
    loaded = mcp_tools(fake({"start": "die"}))
    assert not loaded.tools
    assert "exit code 1, and its last words were: no configuration found" in told(loaded)


def test_a_command_that_does_not_exist_is_a_problem(tmp_path: Path) -> None:
    loaded = mcp_tools(McpServer(name="gone", command="no-such-program-here", pins=tmp_path))
    assert "MCP server 'gone': cannot be started: there is no program 'no-such-program-here'" in told(loaded)


def test_a_folder_that_does_not_exist_is_a_problem(fake: Make, tmp_path: Path) -> None:
    assert "is no folder" in told(mcp_tools(fake(folder=tmp_path / "gone")))


def test_a_server_that_failed_is_tried_again_after_a_pause_that_grows(fake: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = McpServer(name="gone", command="no-such-program-here", pins=tmp_path)
    began = asyncio.new_event_loop()
    try:
        start = began.time()
        mcp_tools(server)
        mcp_tools(server)
        assert began.time() - start >= 0.2
    finally:
        began.close()
    assert not log.exists()


def test_a_server_that_fails_again_and_again_is_not_waited_for() -> None:
    pauses, server = ReconnectBackoff(), McpServer(name="gone", command="x")
    for _ in range(8):
        pauses.ended(0.0)
    with pytest.raises(McpFailed, match=r"'gone' failed 8 times in a row; the next try is in 2\d s") as caught:
        asyncio.run(pauses.wait(server))
    assert caught.value.retryable
    pauses.ended(31.0)
    asyncio.run(pauses.wait(server))


def test_one_bad_tool_does_not_spoil_the_others(fake: Make) -> None:
    tools = [
        {"name": "no schema"},
        {"name": "odd", "inputSchema": "text"},
        {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}},
        {"name": "remote", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/x"}}}},
        "text",
        OTHER,
    ]
    loaded = mcp_tools(fake({"tools": tools}))
    assert [tool.name for tool in loaded.tools] == ["fake.other"]
    text = told(loaded)
    assert all(f"{name!r}" in text for name in ("no schema", "odd", "fake.broken", "fake.remote"))
    assert "tools[4] without a name: it is no object" in text


@pytest.mark.parametrize("how", ["endless", "endless pages"])
def test_a_list_without_end_is_cut(fake: Make, how: str) -> None:
    loaded = mcp_tools(fake({"list": how}))
    assert "its list does not end, or is too long" in told(loaded)
    assert len(loaded.tools) == (1 if how == "endless" else 0)


@pytest.mark.parametrize("how", ["nonsense", "hang"])
def test_a_list_that_is_none_is_a_problem(fake: Make, how: str) -> None:
    loaded = mcp_tools(fake({"list": how}, start_timeout_s=0.5))
    assert not loaded.tools
    assert "'fake'" in told(loaded)


def test_a_list_with_a_name_twice_counts_the_first(fake: Make) -> None:
    loaded = mcp_tools(fake({"tools": [OTHER, {**OTHER, "description": "Another."}]}))
    assert [tool.card.purpose for tool in loaded.tools] == ["other"]
    assert "the name 'other' stands twice" in told(loaded)


def test_a_very_long_list_of_tools_is_cut(fake: Make, tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([{**OTHER, "name": f"t{n}"} for n in range(2_500)]))
    assert len(mcp_tools(fake({"tools": str(path)})).tools) == 2_000


def test_a_tool_with_an_endless_description_is_left_out(fake: Make, tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([{**OTHER, "name": "long", "description": "x" * 210_000}, OTHER]))
    loaded = mcp_tools(fake({"tools": str(path)}))
    assert [tool.name for tool in loaded.tools] == ["fake.other"]
    assert "'long' is left out" in told(loaded)


LYING = {
    "name": "lie",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
}


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"content": [], "structuredContent": {"a": 1}}, "does not fit what it declares"),
        ({"content": [{"type": "text", "text": "x"}]}, "it has no structured content"),
        ({"content": [{"type": "hologram"}]}, "with what is no result"),
        ({"content": "x"}, "with what is no result"),
        ({}, "with what is no result"),
    ],
)
def test_a_result_that_is_not_what_was_declared_says_that_the_call_was_carried_out(
    fake: Make, result: object, reason: str
) -> None:
    loaded = mcp_tools(fake({"tools": [LYING], "call": "result", "result": result}))
    with pytest.raises(InvalidOutput, match=reason) as caught:
        use(only(loaded, "fake.lie"))
    assert "carried out" in caught.value.hint


def test_a_pattern_of_a_server_cannot_hold_up_the_connection(fake: Make) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    plan = {
        "tools": [{**LYING, "outputSchema": schema}],
        "call": "result",
        "result": {"content": [], "structuredContent": {"a": "a" * 40 + "!"}},
    }
    with pytest.raises(InvalidOutput):
        use(only(mcp_tools(fake(plan)), "fake.lie"))


def test_an_error_of_the_protocol_is_told_with_its_code(fake: Make) -> None:
    with pytest.raises(McpFailed, match=r"'fake' refuses the tool 'echo'.*no such thing.*-32602") as caught:
        use(only(mcp_tools(fake({"call": "error"})), "fake.echo"), text="x")
    assert caught.value.code == "server_refused"


@pytest.mark.parametrize("code", [-32000, -32001])
def test_a_code_that_the_sdk_uses_too_is_no_end_of_the_connection(fake: Make, log: Path, code: int) -> None:
    plan = {"call": "error", "error": {"code": code, "message": "quota used up"}, "log": str(log)}
    echo = only(mcp_tools(fake(plan)), "fake.echo")
    for _ in range(2):
        with pytest.raises(McpFailed, match=rf"refuses the tool 'echo': quota used up \(code {code}\)"):
            use(echo, text="x")
    assert log.read_text().count("started") == 1


def test_half_an_emoji_loses_no_answer(fake: Make) -> None:
    result = {"content": [{"type": "text", "text": "cut \ud83d"}]}
    assert use(only(mcp_tools(fake({"call": "result", "result": result})), "fake.echo"), text="x") == "cut ?"


def test_a_list_of_a_million_entries_is_not_looked_at_to_its_end(fake: Make) -> None:
    loaded = mcp_tools(fake({"list": "a million"}))
    assert "the first 2,000 entries count" in told(loaded)


def test_a_list_that_comes_slowly_page_by_page_has_one_time_limit(fake: Make) -> None:
    loaded = mcp_tools(fake({"list": "slow pages"}, start_timeout_s=0.4))
    assert "gave no answer to its list of tools within 0.4 s" in told(loaded)


def test_a_list_that_does_not_come_before_a_call_leaves_nothing_in_doubt(fake: Make, tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([OTHER]))
    plan = {"tools": str(path), "call": "change", "changed": "hang"}
    other = only(mcp_tools(fake(plan, start_timeout_s=0.4)), "fake.other")
    use(other)
    with pytest.raises(McpFailed) as caught:
        use(other)
    assert caught.value.code == "server_away"


def test_an_error_of_the_tool_is_told_in_its_words(fake: Make) -> None:
    result = {"content": [{"type": "text", "text": "disk full"}], "isError": True}
    with pytest.raises(McpFailed, match="disk full") as caught:
        use(only(mcp_tools(fake({"call": "result", "result": result})), "fake.echo"), text="x")
    assert caught.value.code == "tool_failed"


def test_a_server_that_does_not_end_by_itself_is_ended(fake: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = fake({"stay": True, "log": str(log)})
    assert mcp_tools(server).tools
    pid = int(log.read_text().split()[1])
    os.kill(pid, 0)
    close_server(server)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
