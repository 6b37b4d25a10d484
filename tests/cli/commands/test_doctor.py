"""`tao doctor` and `tao models`: what is in order, and what is missing."""

import shutil

import pytest
from tests.shell import Shell


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
