"""`tao mcp` as hosts start it: a process that speaks the protocol on standard output, and nothing else."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import IO, Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server.stdio import stdio_server
from tests.shell import ENTRY, Shell, launch, until_line, until_true

Here = Callable[..., str]

TOOLS = '''
import os, pathlib, subprocess, sys, time
from taoloop import Agent, tool

@tool(tier="read")
def noisy(name: str) -> str:
    """Make noise."""
    print("printed")
    os.write(1, b"written\\\\n")
    subprocess.run(["sh", "-c", "echo child; cat"], check=True)
    sys.stdout.flush()
    return f"noise of {name}"

@tool(tier="write", egress=False)
def put(name: str) -> str:
    """Put a line into a file."""
    with open("effects.txt", "a") as file:
        file.write(name + "\\\\n")
    return "put"

@tool(tier="write", egress=False)
def hold(name: str) -> str:
    """Hold on until a file is there."""
    pathlib.Path("begun").touch()
    while not pathlib.Path(name).exists():
        time.sleep(0.01)
    return "held"

def plain(name: str) -> str:
    """A function that is no tool yet."""
    return name

helper = Agent(name="helper", model=["All is well."])
'''.replace("\\\\", "\\")


@pytest.fixture
def here(tao: Shell) -> Here:
    """Run a command and give what it printed, its error if it has a code. Not for a served command."""

    def run(*args: str, code: int = 0) -> str:
        ended = tao(*args, code=code)
        return ended.err if code else ended.out

    return run


def statuses(here: Here) -> list[tuple[str, str]]:
    """The runs of the database, the newest first: id and status."""
    return [(row["run_id"], row["status"]) for row in map(json.loads, here("runs", "--json").splitlines())]


@asynccontextmanager
async def host(
    tao: Shell, *args: str, era: str = "auto", answer: Any = None, is_fresh: bool = False, **env: str
) -> AsyncIterator[Client]:
    """A client of `tao mcp`; `is_fresh`: the SDK starts the program, as hosts do."""

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        found: types.ElicitResult = answer
        return found

    with (tao.folder / "stderr.txt").open("w") as log:
        if is_fresh:
            server = StdioServerParameters(
                command=ENTRY[0], args=[*ENTRY[1:], "mcp", *args], env=tao.env | env, cwd=str(tao.folder)
            )
            transport = stdio_client(server, errlog=log)
        else:
            transport = forked_server(tao, *args, log=log, **env)
        callback = None if answer is None else elicit
        async with Client(transport, mode=era, elicitation_callback=callback, cache=None) as one:
            yield one


@asynccontextmanager
async def forked_server(tao: Shell, *args: str, log: IO[str], **env: str) -> AsyncIterator[Any]:
    """The streams to a server in a forked process, which ends as hosts end it: its standard input is closed."""
    pipe = subprocess.PIPE
    process = launch(("mcp", *args), tao.folder, tao.env | env, stdin=pipe, stdout=pipe, stderr=log.fileno())
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        async with stdio_server(anyio.wrap_file(process.stdout), anyio.wrap_file(process.stdin)) as streams:
            try:
                yield streams
            finally:
                process.stdin.close()


def said(result: types.CallToolResult) -> str:
    first = result.content[0]
    assert isinstance(first, types.TextContent)
    return first.text


def test_built_in_tools_are_served_and_every_call_is_in_the_list_of_runs(tao: Shell, here: Here) -> None:
    async def run(era: str) -> None:
        async with host(tao, era=era, is_fresh=True) as client:
            assert [one.name for one in (await client.list_tools()).tools] == ["calculator", "time_now"]
            assert said(await client.call_tool("calculator", {"expression": "6*7"})) == "result=42"

    async def both() -> None:
        await asyncio.gather(run("auto"), run("legacy"))  # two servers on one database

    asyncio.run(both())
    (run_id, status), other = statuses(here)
    assert status == other[1] == "completed"
    assert "calculator" in here("show", run_id)
    assert here("replay", run_id)
    here("verify", run_id)


def test_whatever_tools_write_never_reaches_the_protocol(tao: Shell) -> None:
    tao.write("mytools.py", TOOLS)

    async def run() -> None:
        async with host(tao, "mytools:noisy") as client:
            for name in ("Ada", "Eve"):
                assert said(await client.call_tool("noisy", {"name": name})) == f"noise of {name}"

    asyncio.run(run())
    assert "child" in (tao.folder / "stderr.txt").read_text()


def test_a_write_is_refused_or_asked_about(tao: Shell) -> None:
    tao.write("mytools.py", TOOLS)

    yes = types.ElicitResult(action="accept", content={"allow": True})

    async def run() -> None:
        async with host(tao, "mytools:put") as silent, host(tao, "mytools:put", answer=yes) as asking:
            assert "--approve write" in said(await silent.call_tool("put", {"name": "a"}))
            assert said(await asking.call_tool("put", {"name": "b"})) == "put"

    asyncio.run(run())
    assert (tao.folder / "effects.txt").read_text() == "b\n"


def test_a_policy_file_is_kept(tao: Shell) -> None:
    tao.write("mytools.py", TOOLS)
    tao.write("policy.yaml", "rules:\n  - {verdict: deny, tool: put, args: {name: secret}}\n")

    async def run() -> None:
        async with host(tao, "mytools:put", "--policy", "policy.yaml", "--approve", "write") as client:
            assert (await client.call_tool("put", {"name": "secret"})).is_error
            assert said(await client.call_tool("put", {"name": "open"})) == "put"

    asyncio.run(run())
    assert (tao.folder / "effects.txt").read_text() == "open\n"


def test_agents_tool_files_functions_and_names_are_served_together(tao: Shell) -> None:
    tao.write("mytools.py", TOOLS)
    tao.write("agent.yaml", f"name: scribe\nmodel: {tao.script('It is written.')}\ntools: [calculator]\n")
    tao.write("tools.yaml", "tools:\n  - time_now\n  - mytools:put\n")

    async def run() -> None:
        sources = ("agent.yaml", "mytools:helper", "tools.yaml", "mytools:plain", "calculator")
        async with host(tao, *sources, "--purpose", "Write things down.") as client:
            tools = {one.name: one for one in (await client.list_tools()).tools}
            assert set(tools) == {"scribe", "helper", "time_now", "put", "plain", "calculator"}
            assert str(tools["scribe"].description).startswith("Write things down.")
            assert said(await client.call_tool("scribe", {"task": "Write."})) == "It is written."
            assert said(await client.call_tool("helper", {"task": "How is it?"})) == "All is well."

    asyncio.run(run())


def test_a_host_that_leaves_ends_the_server_in_good_order(tao: Shell) -> None:
    ended = tao("mcp", stdin="")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def lines_of(process: subprocess.Popen[str], *messages: dict[str, Any]) -> None:
    assert process.stdin is not None
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    process.stdin.flush()


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
GREETING = ({"id": 1, "method": "initialize", "params": HELLO}, {"method": "notifications/initialized"})
HOLDING = {"id": 2, "method": "tools/call", "params": {"name": "hold", "arguments": {"name": "never"}}}


def serving(tao: Shell, *args: str) -> subprocess.Popen[str]:
    return tao.start("mcp", *args, stdin=subprocess.PIPE)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_server_and_what_was_under_way_is_written_down(
    tao: Shell, here: Here, number: signal.Signals, code: int
) -> None:
    tao.write("mytools.py", TOOLS)
    with serving(tao, "mytools:hold", "--approve", "write") as process:
        lines_of(process, *GREETING, HOLDING)
        until_true(process, "the call", (tao.folder / "begun").exists)
        process.send_signal(number)
        assert process.wait(timeout=20) == code
    ((run_id, status),) = statuses(here)
    assert status == "stopped"
    shown = [json.loads(line) for line in here("show", run_id, "--json").splitlines()]
    assert [event["kind"] for event in shown][-2:] == ["action_started", "finished"]


def test_a_call_whose_server_was_killed_is_told_and_recovered_like_any_run(tao: Shell, here: Here) -> None:
    tao.write("mytools.py", TOOLS)
    with serving(tao, "mytools:hold", "--approve", "write") as process:
        lines_of(process, *GREETING, HOLDING)
        until_true(process, "the call", (tao.folder / "begun").exists)
        process.kill()
    assert "1 run lost its process" in tao("mcp", code=0).one_line  # and nothing is repeated
    recovered = json.loads(here("recover", "--json"))
    assert recovered["status"] == "waiting"  # it was begun, and nobody knows what came of it
    here("settle", recovered["run_id"], "call_1", "--happened")
    here("resume", recovered["run_id"])
    assert statuses(here) == [(recovered["run_id"], "completed")]


@pytest.mark.parametrize("leaves", [True, False])
def test_a_question_that_is_open_when_the_server_ends_is_a_no(tao: Shell, here: Here, leaves: bool) -> None:
    tao.write("mytools.py", TOOLS)
    asking = GREETING[0] | {"params": HELLO | {"capabilities": {"elicitation": {}}}}
    with serving(tao, "mytools:put") as process:
        putting = [
            {"id": n, "method": "tools/call", "params": {"name": "put", "arguments": {"name": "x"}}} for n in (2, 3)
        ]
        lines_of(process, asking, GREETING[1], *putting)
        assert process.stdin is not None
        for _ in putting:
            until_line(process, process.stdout, "elicitation/create")
        if leaves:
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == (0 if leaves else 143)
    assert [status for _, status in statuses(here)] == ["too_many_errors"] * 2
    assert not (tao.folder / "effects.txt").exists()


def test_over_http_a_token_lets_in(tao: Shell) -> None:
    token = "a-token-of-more-than-sixteen"
    with tao.start("mcp", "--http", "127.0.0.1:0", TAOLOOP_MCP_TOKEN=token) as process:
        try:
            url = until_line(process, process.stderr, "http").rpartition(" ")[2].strip()
            assert httpx2.post(url, json={}, trust_env=False).status_code == 401
            let_in = httpx2.post(url, json={}, headers={"authorization": f"Bearer {token}"}, trust_env=False)
            assert let_in.status_code in (400, 406)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 143


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("nothing",), "nothing"),
        (("missing.yaml",), "missing.yaml"),
        (("mytools:nothing",), "mytools"),
        (("--http", "0.0.0.0:8000"), "TAOLOOP_MCP_TOKEN"),
        (("--http", "nowhere"), "127.0.0.1:8000"),
        (("--allow-host", "x"), "--http"),
        (("--http", "127.0.0.1:0", "--allow-host", "http://x/"), "not a host name"),
        (("--agent", "missing.yaml"), "missing.yaml"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_before_anything_is_served(
    tao: Shell, here: Here, args: tuple[str, ...], told: str
) -> None:
    tao.write("mytools.py", TOOLS)
    (line,) = here("mcp", *args, code=2).splitlines()
    assert told in line
    assert not (tao.folder / "runs.db").exists()


def test_a_question_is_seen_by_the_operator_and_closed_when_the_server_ends(tao: Shell, here: Here) -> None:
    tao.write("mytools.py", TOOLS)

    async def run() -> None:
        yes = types.ElicitResult(action="accept", content={"allow": True})
        async with host(tao, "mytools:put", answer=yes) as client:
            first = await client.session.call_tool("put", {"name": "a"}, allow_input_required=True)
            assert isinstance(first, types.InputRequiredResult)
            assert '"put"' in tao.process("approvals", "--json", code=0).out

    asyncio.run(run())
    assert json.loads(here("approvals", "--json")) == []
    assert not (tao.folder / "effects.txt").exists()
