"""Optional weight stays optional: importing taoloop loads no client, no server, no driver, no SDK."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "openai",
    "anthropic",
    "aiohttp",
    "genai_prices",
    "httpx",
    "httpx2",
    "http.client",
    "http.server",
    "sqlite3",
    "yaml",
    "click",
    "rich",
    "jsonschema_rs",
)


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has after running `code`."""
    script = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_main_names_load_nothing_heavy() -> None:
    assert loaded_by("from taoloop import Agent, tool") & set(HEAVY) == set()


def test_importing_does_nothing_but_import() -> None:
    """No thread, no file, no environment is touched."""
    code = "import threading, taoloop.runtime.agent\nassert threading.active_count() == 1"
    assert "taoloop.runtime.agent" in loaded_by(code)


def test_an_in_memory_run_loads_no_database_and_no_client() -> None:
    code = (
        "from taoloop import Agent, ScriptedModel, tool\n"
        "@tool(tier='read')\ndef add(a: int, b: int) -> int:\n    'Add.'\n    return a + b\n"
        "script = [{'tool_calls': [{'name': 'add', 'args': {'a': 1, 'b': 2}}]}, '3']\n"
        "assert Agent(model=ScriptedModel(script), tools=[add]).run_sync('add').answer == '3'"
    )
    assert loaded_by(code) & (set(HEAVY) - {"http.client"}) == set()
