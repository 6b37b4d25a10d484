"""A list of tools is read alike in an agent file and in a tool file: each mistake has the same line, field and text."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from taoloop.config.agent_file import load_agent
from taoloop.config.tool_file import load_tools
from taoloop.errors import AgentFileError

READERS: dict[str, Callable[[str], object]] = {"agent.yaml": load_agent, "tools.yaml": load_tools}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A current folder with a module and a table, forgotten afterwards."""
    (tmp_path / "toolcode.py").write_text("def plain(city: str) -> str:\n    return city\n")
    (tmp_path / "facts.yaml").write_text("capital: Paris\n")
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield
    sys.path[:] = path
    sys.modules.pop("toolcode", None)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("content", "line", "field", "text"),
    [
        ("tools: calculator\n", 1, "tools", "a list is expected, not 'calculator'"),
        ("tools:\n- {}\n", 2, "tools[0]", "this names no tool"),
        ("tools:\n- openap: x.yaml\n", 2, "tools[0].openap", "Did you mean 'openapi'?"),
        ("tools:\n- documents: {path: a}\n  fetch: {}\n", 3, "tools[0].fetch", "begin another with `- fetch:`"),
        ("tools:\n- openapi: x.yaml\n  name: a\n", 3, "tools[0].name", "It is a setting of `openapi`"),
        ("tools:\n- sql:\n  url: sqlite:///a.db\n", 3, "tools[0].url", "indented below"),
        ("tools:\n- sql: sqlite:///a.db\n", 2, "tools[0].sql", "`{name: …, url: …}`"),
        ("tools:\n- calculater\n", 2, "tools[0]", "Did you mean 'calculator'?"),
        ("tools:\n- more.yaml\n", 2, "tools[0]", "`file: more.yaml`"),
        ("tools:\n- file:more.yaml\n", 2, "tools[0]", "Put a blank after the colon."),
        ("tools:\n- calculator\n- hammer\n", 3, "tools[1]", "no tool called 'hammer'. Built in: calculator"),
        ("tools: [3]\n", 1, "tools[0]", "a tool is expected, not 3. A tool is a built-in name"),
        ("tools:\n- lookup: {tabel: x}\n", 2, "tools[0].lookup.tabel", "Did you mean 'table'?"),
        ("tools:\n- lookup: {table: none.yaml}\n", 2, "tools[0].lookup.table", "none.yaml"),
        ("tools:\n- lookup: {}\n", 2, "tools[0].lookup", "`table` is missing"),
        ("tools:\n- card: {name: x}\n", 2, "tools[0]", "the code is not named"),
        ("tools:\n- function: toolcode:plain\n  card: {nam: x}\n", 3, "tools[0].card.nam", "Did you mean 'name'?"),
        (
            "tools:\n- function: toolcode:plain\n  card:\n    {name: x, purpose: p, roles: {town: target}}\n",
            3,
            "tools[0].card",
            "gives a role to 'town', which is not one of its arguments",
        ),
    ],
)
def test_a_wrong_entry_is_reported_alike(name: str, content: str, line: int, field: str, text: str) -> None:
    Path(name).write_text(content, encoding="utf-8")
    with pytest.raises(AgentFileError) as caught:
        READERS[name](name)
    error = caught.value
    assert (error.line, error.field) == (line, field)
    assert text in f"{error.message} {error.hint}"
    assert str(error).startswith(str(Path(name).absolute()))
