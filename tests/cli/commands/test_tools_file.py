"""Tool files on the command line: `tao tools FILE`, `--tools FILE`, and going on with such a run."""

import json
from pathlib import Path

import pytest
from tests.shell import Shell, call

CODE = '''
from taoloop import tool

@tool(tier="write", egress=False, roles={"text": "content"}, reversible=False)
def note(text: str) -> str:
    """Write one note, at most a line."""
    return "noted " + text
'''
FILE = """
tools:
- notecode:note
- calculator
- fetch: {name: look}
"""


@pytest.fixture
def shell(tao: Shell) -> Shell:
    tao.write("notecode.py", CODE)
    tao.write("tools.yaml", FILE)
    return tao


def test_a_file_shows_one_card_per_line(shell: Shell) -> None:
    cards = shell("tools", "tools.yaml", "--json", code=0).events
    assert [card["name"] for card in cards] == ["note", "calculator", "look"]
    assert [card["tier"] for card in cards] == ["write", "read", "read"]
    for card in cards:
        assert card["description"] == card["purpose"] != ""
        assert card["input_schema"]["type"] == "object"
    text = shell("tools", "tools.yaml", "note", code=0).out
    assert text.startswith("note  [write]\n")
    assert "calculator" not in text


def test_the_cards_of_a_file_are_linted(shell: Shell) -> None:
    assert "note: input_schema.text" in shell("tools", "tools.yaml", "note", "--lint", code=1).out


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hello", "a tool file is a mapping of fields, but this is a text"),
        ("tools:\n- hamer\n", "tools.yaml:2: tools[0]: There is no tool called 'hamer'"),
        ("tools:\n- fetch: {user_agent: '${NOT_SET}'}\n", "tools.yaml:2: tools[0].fetch.user_agent: the environment"),
        ("tools: [\n", "it is not YAML"),
        ("tools: [calculator, calculator]\n", "Two tools are called 'calculator'"),
    ],
)
def test_a_file_that_is_none_is_one_line_and_exit_code_2(shell: Shell, content: str, text: str) -> None:
    shell.write("tools.yaml", content)
    done = shell("tools", "tools.yaml", code=2)
    assert text in done.one_line
    assert done.out == ""


def test_a_source_that_fails_is_told_and_the_rest_is_shown(shell: Shell) -> None:
    shell.write("tools.yaml", "tools:\n- calculator\n- sql: {name: shop, url: 'nosuch://h/x'}\n")
    done = shell("tools", "tools.yaml", "--json", code=0)
    assert [card["name"] for card in done.events] == ["calculator"]
    assert done.one_line.startswith("tao: tools.yaml:3: tools[1].sql: ")
    script = shell.script("Nothing to do.")
    done = shell("run", "Do nothing", "--tools", "tools.yaml", "--model", script, code=0)
    assert done.one_line.startswith("tao: tools.yaml:3: tools[1].sql: ")


def test_a_file_of_which_nothing_is_left_is_exit_code_2(shell: Shell) -> None:
    shell.write("tools.yaml", "tools:\n- sql: {name: shop, url: 'nosuch://h/x'}\n")
    for args in (["tools", "tools.yaml"], ["run", "x", "--tools", "tools.yaml"]):
        done = shell(*args, code=2)
        assert done.out == ""
        assert done.err.splitlines()[-1].startswith("tao: There is no tool left.")
        assert len(done.err.splitlines()) == 2


def test_a_file_that_names_no_tool_shows_none_and_says_so(shell: Shell) -> None:
    shell.write("tools.yaml", "tools: []\n")
    assert "the file names none" in shell("tools", "tools.yaml", code=2).one_line


def test_further_lines_of_a_text_stand_below_it(shell: Shell) -> None:
    text = {"type": "string", "description": "one\ntwo"}
    schema = {"type": "object", "required": ["text"], "properties": {"text": text}}
    card = {"name": "lines", "purpose": "Give lines.\nNo more.", "input_schema": schema}
    shell.write("tools.json", json.dumps({"tools": [{"function": "notecode:note", "card": card}]}))
    out = shell("tools", "tools.json", code=0).out
    assert "\n  Give lines.\n  No more.\n" in out
    assert "\n    text: one\n      two\n" in out


def test_files_stand_beside_names_and_each_other(shell: Shell) -> None:
    shell.write("more.yaml", "tools: [time_now]\n")
    script = shell.script("Nothing to do.")
    tools = ["--tools", "tools.yaml,lookup", "--tools", "more.yaml"]
    started = shell("run", "Do nothing", *tools, "--model", script, "--json", code=0).events[0]
    names = {card["name"] for card in started["agent"]["tools"]}
    assert names == {"note", "calculator", "look", "lookup", "time_now", "read_observation"}
    assert started["agent"]["tools_from"] == [str(shell.folder / name) for name in ("tools.yaml", "more.yaml")]


def test_two_files_with_a_tool_of_one_name_are_told_apart_by_their_places(shell: Shell) -> None:
    shell.write("more.yaml", "tools:\n- fetch: {name: look}\n")
    done = shell("run", "x", "--tools", "tools.yaml,more.yaml", "--model", "offline", code=2)
    assert "that of tools.yaml:5: tools[2].fetch, and that of more.yaml:2: tools[0].fetch" in done.one_line


def test_a_run_with_a_file_goes_on_without_naming_it_again(shell: Shell) -> None:
    script = shell.script(call("note", text="a"), "Noted.")
    started = shell("run", "Note a", "--tools", "tools.yaml", "--model", script, "--json", code=8).events[0]
    run_id = started["run_id"]
    shell("approve", run_id, "call_1", code=0)
    done = shell("resume", run_id, "--model", script, "--json", code=0)
    assert done.events[-1]["answer"] == "Noted."


def test_variables_of_a_tool_file_may_stand_in_a_file_env(shell: Shell) -> None:
    shell.write("tools.yaml", "tools:\n- fetch: {name: look, user_agent: '${WHO}'}\n")
    shell.write("agent.yaml", json.dumps({"tools": [{"file": "tools.yaml"}]}))
    shell.write(".env", "WHO=somebody\n")
    assert shell("tools", "tools.yaml", "--json", code=0).events[0]["name"] == "look"
    assert shell("tools", "--agent", "agent.yaml", "look", "--json", code=0).events[0]["name"] == "look"
    script = shell.script("Nothing to do.")
    shell("run", "Do nothing", "--agent", "agent.yaml", "--model", script, code=0)


def test_a_run_with_tools_of_a_module_goes_on_without_naming_them_again(tao: Shell) -> None:
    tao.write(
        "mail.py",
        "from taoloop import tool\n\n\n@tool(tier='write', egress=True)\ndef send(to: str) -> str:\n"
        "    \"Send a mail.\"\n    return f'sent to {to}'\n",
    )
    script = tao.script(call("send", to="ann"), call("calculator", expression="1+1"), "done")
    named = "mail:send,calculator"
    started = tao("run", "x", "--model", script, "--tools", named, "--profile", "strict", "--json", code=8).events[0]
    run_id = started["run_id"]
    assert started["agent"]["tools_from"] == ["mail:send"]
    db = str(tao.folder / "runs.db")
    [waiting] = json.loads(tao("approvals", "--db", db, "--json", code=0).out)
    assert (waiting["run_id"], waiting["call_id"], waiting["tool"]) == (run_id, "call_1", "send")
    tao("approve", run_id, "call_1", "--db", db, "--by", "li", code=0)
    done = tao("resume", run_id, "--db", db, "--json", code=0).events
    assert [event["output"] for event in done if event["kind"] == "observed"] == ["sent to ann", "result=2"]
    tao("verify", run_id, "--db", db, code=0)
    (tao.folder / "mail.py").unlink()
    tao.script(call("send", to="ann"), "done")
    tao.write("mail2.py", "")
    assert "mail" in tao("fork", run_id, "--at", "1", "--no-run", code=2).one_line


def test_a_file_of_the_plugin_of_higress_is_shown_and_linted(shell: Shell) -> None:
    config = (Path(__file__).parents[2] / "data" / "higress" / "configs" / "04_orders_post.yaml").read_text("utf-8")
    shell.write("higress.yaml", config)
    cards = shell("tools", "higress.yaml", "--json", code=0).events
    assert [(card["name"], card["tier"]) for card in cards] == [
        ("search_orders", "read"),
        ("get_order", "read"),
        ("create_refund", "destructive"),
    ]
    linted = shell("tools", "higress.yaml", "create_refund", "--lint", code=1)
    assert "create_refund: compensation: " in linted.out
    assert "search_orders" not in linted.out
    shell.write(
        "wrong.yaml", config.replace("in: header\n        name: Bearer", "in: header\n        name: Authorization")
    )
    assert "the header is always `Authorization`" in shell("tools", "wrong.yaml", code=0).err
