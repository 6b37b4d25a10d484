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


def test_the_main_names_load_no_runtime() -> None:
    """Neither the events nor the word tables of policies nor the dialects: the first run loads them."""
    modules = {name for name in loaded_by("from taoloop import Agent, tool") if name.startswith("taoloop")}
    packages = {name.split(".")[1] for name in modules if "." in name}
    assert packages == {"core", "errors", "lazy_exports", "models", "moved_modules", "runtime", "tools"}
    assert len(modules) <= 30
    assert "taoloop.core.events" not in modules


def test_the_main_names_load_no_more_of_pydantic_than_its_own() -> None:
    own = loaded_by("from pydantic import BaseModel, TypeAdapter")
    extra = {name for name in loaded_by("from taoloop import Agent, tool") - own if name.startswith("pydantic.")}
    assert extra == set()


def test_the_runtime_compiles_no_pattern_at_its_import() -> None:
    """Patterns are compiled at their first use (`taoloop.core.text.lazy_pattern`)."""
    code = (
        "import re\n"
        "compiled, compile_now = [], re.compile\n"
        "def counted(pattern, flags=0):\n"
        "    compiled.append(sys._getframe(1).f_globals['__name__'])\n"
        "    return compile_now(pattern, flags)\n"
        "re.compile = counted\n"
        "import taoloop.runtime.bound_agent\n"
        "assert [name for name in compiled if name.startswith('taoloop')] == []"
    )
    assert "taoloop.policy.intent.vocabulary" in loaded_by(code)


def test_importing_does_nothing_but_import() -> None:
    """No thread, no file, no environment is touched."""
    code = "import threading, taoloop.runtime.bound_agent\nassert threading.active_count() == 1"
    assert "taoloop.runtime.runner" in loaded_by(code)


def test_an_in_memory_run_loads_no_database_and_no_client() -> None:
    code = (
        "from taoloop import Agent, ScriptedModel, tool\n"
        "@tool(tier='read')\ndef add(a: int, b: int) -> int:\n    'Add.'\n    return a + b\n"
        "script = [{'tool_calls': [{'name': 'add', 'args': {'a': 1, 'b': 2}}]}, '3']\n"
        "assert Agent(model=ScriptedModel(script), tools=[add]).run_sync('add').answer == '3'"
    )
    assert loaded_by(code) & (set(HEAVY) - {"http.client"}) == set()
