"""`tao call`: one tool by hand."""

import json
import signal
import sqlite3
from contextlib import closing

import pytest
from tests.shell import Shell, until_true

CODE = '''
import asyncio

from taoloop import ToolContext, ToolError, tool

@tool(tier="write", egress=False, roles={"text": "content"}, reversible=False)
def note(text: str, *, context: ToolContext) -> str:
    """Write one note, at most a line."""
    with open("notes.txt", "a") as file:
        file.write(text + "\\n")
    return "noted " + text

def undeclared(x: int) -> str:
    """Do something, at most once."""
    return "done"

async def wait() -> str:
    """Wait, for at most a minute."""
    open("begun", "w").close()
    await asyncio.sleep(60)
    return "over"

linger = tool(tier="write", egress=False, reversible=False, name="linger")(wait)
wait = tool(tier="read")(wait)

@tool(tier="read")
def fail(x: int) -> str:
    """Fail always, never works."""
    raise ToolError("no luck", code="unlucky", hint="Try tomorrow.")

@tool(tier="read")
def lines(n: int) -> str:
    """Give at most n lines."""
    return "\\n".join(f"line {i}" for i in range(n))

@tool(tier="read")
def total(amount: float) -> dict[str, float]:
    """Give the amount alone, without a currency."""
    return {"amount": amount}

@tool(tier="read")
def tell(key: str) -> str:
    """Say the key, never more."""
    return f"the key is {key}, or hunter2hunter2"
'''
FILE = """
tools:
- callcode:note
- callcode:undeclared
- callcode:fail
- callcode:lines
- callcode:total
- callcode:tell
- fetch: {name: look, user_agent: "${AGENT:-taoloop}"}
- documents: {path: ., name: notes, index: index.db, about: "${ABOUT:-notes}", include: ["*.md"]}
"""


@pytest.fixture
def shell(tao: Shell) -> Shell:
    tao.write("callcode.py", CODE)
    tao.write("tools.yaml", FILE)
    return tao


def test_the_output_goes_to_standard_output_and_the_call_is_a_run(shell: Shell) -> None:
    done = shell("call", "total", "--tools", "tools.yaml", "--args", '{"amount": 2.50}', code=0)
    assert json.loads(done.out) == {"amount": 2.5}
    assert done.err == ""
    (line,) = shell("runs", code=0).out.splitlines()
    assert "completed" in line
    assert 'Call total with {"amount": 2.50}' in line


def test_a_built_in_tool_and_a_function_need_no_file(shell: Shell) -> None:
    assert "42" in shell("call", "calculator", "--args", '{"expression": "6 * 7"}', code=0).out
    assert shell("call", "callcode:lines", "--args", "-", code=0, stdin='{"n": 2}').out == "line 0\nline 1\n"


def test_only_the_source_of_the_tool_is_loaded(shell: Shell) -> None:
    """Not the server before it, whose tools have other names."""
    shell.write("notes.md", "# Tea\n\nThe tea is in the storeroom.\n")
    shell.write(
        "two.yaml",
        """
tools:
- mcp: {name: other, command: sh, args: ["-c", "touch started"]}
- documents: {path: ., index: two.db, include: ["*.md"]}
""",
    )
    done = shell("call", "search_documents", "--tools", "two.yaml", "--args", '{"query": "storeroom"}', code=0)
    assert json.loads(done.out)[0]["file"] == "notes.md"
    assert not (shell.folder / "started").exists()
    assert done.err == ""


def test_the_whole_of_a_long_output_is_printed(shell: Shell) -> None:
    out = shell("call", "lines", "--tools", "tools.yaml", "--args", '{"n": 3000}', code=0).out
    assert out.splitlines() == [f"line {number}" for number in range(3000)]


@pytest.mark.parametrize(
    ("name", "args", "text"),
    [
        ("lines", '{"n": "x"}', "valid integer"),
        ("lines", "{", "--args is not JSON: it stops in the middle"),
        ("lines", "[1]", "--args is '[1]'. Give a JSON object"),
        ("liens", "{}", "Did you mean 'lines'?"),
    ],
)
def test_what_does_not_fit_is_told_in_a_line_and_nothing_is_called(
    shell: Shell, name: str, args: str, text: str
) -> None:
    done = shell("call", name, "--tools", "tools.yaml", "--args", args, code=2)
    assert text in done.one_line
    assert done.out == ""


def test_a_tool_that_no_file_was_named_for_is_told_how(shell: Shell) -> None:
    assert shell("call", "lines", code=2).one_line.endswith("For a tool of a file add --tools FILE.yaml.")


@pytest.mark.parametrize(("name", "told"), [("linger", True), ("wait", False)])
def test_of_a_change_that_is_stopped_under_way_nobody_knows(shell: Shell, name: str, told: bool) -> None:
    process = shell.start("call", f"callcode:{name}", "--args", "{}", "--db", "runs.db")
    until_true(process, "the call", (shell.folder / "begun").exists)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert ("it may have happened or not. Check before you repeat it" in err) is told
    if told:
        run_id = err.partition("tao show ")[2].split()[0]
        assert name in shell("show", run_id, "--db", "runs.db", code=0).out


def test_a_tool_that_fails_is_told_in_a_line(shell: Shell) -> None:
    done = shell("call", "fail", "--tools", "tools.yaml", "--args", '{"x": 1}', code=1)
    assert done.one_line == "tao: fail failed: unlucky: no luck Try tomorrow."
    record = shell("call", "fail", "--tools", "tools.yaml", "--args", '{"x": 1}', "--json", code=1).events[0]
    assert (record["ok"], record["error"]["code"], record["tier"]) == (False, "unlucky", "read")


@pytest.mark.parametrize(("name", "args"), [("note", '{"text": "a"}'), ("undeclared", '{"x": 1}')])
@pytest.mark.parametrize("yes", [(), ("--yes",)])
def test_in_a_script_the_command_is_the_word_of_its_author(
    shell: Shell, name: str, args: str, yes: tuple[str, ...]
) -> None:
    record = shell("call", name, "--tools", "tools.yaml", "--args", args, *yes, "--json", code=0).events[0]
    assert record["ok"] is True
    shown = shell("show", record["run_id"], code=0).out
    assert name in shown


def test_the_policy_of_an_agent_holds_for_a_call_by_hand_too(shell: Shell) -> None:
    agent = {"tools": ["callcode:note"], "policy": {"rules": [{"verdict": "deny", "tool": "note", "name": "no notes"}]}}
    shell.write("agent.yaml", json.dumps(agent))
    done = shell("call", "note", "--agent", "agent.yaml", "--args", '{"text": "a"}', "--yes", code=1)
    assert "no notes" in done.one_line
    assert not (shell.folder / "notes.txt").exists()


def test_secrets_of_the_file_are_in_no_output_and_no_database(shell: Shell) -> None:
    done = shell("call", "tell", "--tools", "tools.yaml", "--args", '{"key": "x"}', code=0, ABOUT="hunter2hunter2")
    assert "the key is x" in done.out
    assert "hunter2" not in done.out
    with closing(sqlite3.connect(shell.folder / "runs.db")) as database, database:
        assert "hunter2" not in "".join(database.iterdump())
    database.close()
