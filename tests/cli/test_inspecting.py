"""`tao tools`, `tao models`, `tao doctor` and the start of the program."""

import shutil
import subprocess
import sys

import pytest
from tests.shell import Shell

import taoloop

POOR = '''
from taoloop import tool

@tool
def do(x: str) -> str:
    """Run."""
    return x
'''

POOR_SENDING = '''
@tool(tier="destructive", egress=["to", "copy"], roles={"to": "target"}, reversible=False)
def send(to: str, copy: str = "") -> str:
    """Send a greeting, only to people."""
    return to
'''


def test_the_builtin_tools_have_nothing_to_improve(tao: Shell) -> None:
    out = tao("tools", "--lint", code=0).out
    assert "calculator: nothing to improve" in out
    assert "calculator  [read]" in tao("tools", code=0).out


def test_the_tools_of_an_agent_are_shown_and_linted(tao: Shell) -> None:
    tao.write("poor.py", POOR)
    tao.write("agent.yaml", 'tools: ["poor:do"]\n')
    out = tao("tools", "--agent", "agent.yaml", "do", "--lint", code=1).out
    assert "[no_tier]" in out
    card = tao("tools", "poor:do", "--json", "--lint", code=1).events[0]
    assert card["name"] == "do"
    assert {finding["code"] for finding in card["findings"]} >= {"no_tier"}


def test_a_card_says_what_a_call_does_to_the_world(tao: Shell) -> None:
    out = tao("tools", "write_file", code=0).out
    assert "write_file  [write]" in out
    assert "roles:      path target, content content" in out
    assert "egress:     no" in out
    assert "undone by:  restore_file" in out
    tao.write("poor.py", POOR + POOR_SENDING)
    open_card = tao("tools", "poor:do", code=0).out
    assert "do  [no tier: counts as destructive]" in open_card
    assert "egress:     not declared: counts as yes" in open_card
    assert "undone by:  not declared" in open_card
    sending = tao("tools", "poor:send", code=0).out
    assert "egress:     if to or copy is given" in sending
    assert "undone by:  nothing" in sending
    card = tao("tools", "poor:send", "--json", code=0).events[0]
    assert (card["egress"], card["roles"]["to"], card["reversible"]) == (["to", "copy"], "target", False)
    codes = [finding["code"] for finding in tao("tools", "poor:send", "--json", "--lint", code=1).events[0]["findings"]]
    assert codes.count("no_role") == 1
    tao.write("asked.py", POOR.replace("@tool", '@tool(tier="read", approval="required")'))
    assert "approval:   needed before each call" in tao("tools", "asked:do", code=0).out
    assert tao("tools", "asked:do", "--json", code=0).events[0]["approval"] == "required"


def test_models_say_what_is_missing_and_why_the_default_is_what_it_is(tao: Shell) -> None:
    out = tao("models", code=0).out
    assert "set DEEPSEEK_API_KEY" in out
    assert "default: offline (nothing else is configured)" in out
    env = {"DEEPSEEK_API_KEY": "sk-never-shown", "DEEPSEEK_BASE_URL": "https://user:pass@proxy.example/v1?k=1"}
    shown = tao("models", code=0, **env).out
    assert "default: deepseek:deepseek-chat (DEEPSEEK_API_KEY is set)" in shown
    assert "https://proxy.example/v1" in shown
    assert not any(secret in shown for secret in ("sk-never", "user", "pass@", "k=1"))
    states = tao("models", "--json", code=0, **env).events
    assert [state["spec"] for state in states if state["default"]] == ["deepseek:deepseek-chat"]


def test_doctor_finds_everything_in_order(tao: Shell) -> None:
    checks = {check["name"]: check for check in tao("doctor", "--json", code=0).events}
    assert {check["state"] for check in checks.values()} <= {"ok", "warn"}
    assert {"python", "packages", ".env", "time zones", "sqlite", "terminal", "sandbox", "database", "model"} <= set(
        checks
    )


def test_doctor_says_why_there_is_no_sandbox_and_what_to_install(tao: Shell) -> None:
    checks = {check["name"]: check for check in tao("doctor", "--json", code=0, PATH="/nowhere").events}
    assert checks["sandbox"]["state"] == "warn"
    assert "no run_python, no run_command" in checks["sandbox"]["text"]
    assert "bubblewrap" in checks["sandbox"]["hint"]


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_doctor_starts_a_sandbox(tao: Shell) -> None:
    checks = {check["name"]: check for check in tao("doctor", "--json", code=0).events}
    assert checks["sandbox"]["state"] == "ok"
    assert "a start takes" in checks["sandbox"]["text"]


def test_doctor_names_a_place_that_cannot_be_written(tao: Shell) -> None:
    ended = tao("doctor", "--db", "/proc/none/runs.db", code=1)
    assert "fail  writable" in ended.out


@pytest.mark.parametrize(
    "args", [["-h"], ["--help"], ["run", "-h"], ["runs", "--help"], ["show", "-h"], ["replay", "-h"]]
)
def test_every_help_page_has_examples(tao: Shell, args: list[str]) -> None:
    assert "  tao " in tao(*args, code=0).out


def test_the_version_is_told(tao: Shell) -> None:
    assert tao("--version", code=0).out == f"tao {taoloop.__version__}\n"


def test_help_loads_neither_rich_nor_the_runtime() -> None:
    code = (
        "import sys; from taoloop.cli.app import execute; execute(['--version']);"
        "heavy = ('rich', 'asyncio', 'pydantic', 'yaml', 'sqlite3', 'taoloop.runtime.agent');"
        "print([name for name in heavy if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"
