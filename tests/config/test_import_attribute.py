"""What `module:attribute` names, and where the code of a user went wrong."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from taoloop.config.import_attribute import load_attribute
from taoloop.errors import AgentFileError

FILES = {
    "agentcode": "agent = 7\n",
    "explodes": "x = 1\nraise ValueError('at import')\n",
    "unfinished": "def f(:\n",
    "needy": "import not_installed_anywhere\n",
    "wrongtier": "from taoloop import tool\n\n@tool(tier='wrong')\ndef f(x: str) -> str:\n    'Do it.'\n    return x\n",
    "nojson": "import json\nx = json.loads('{')\n",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A current folder with modules of its own, forgotten afterwards."""
    for name, code in FILES.items():
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name in FILES:
        sys.modules.pop(name, None)


def test_an_attribute_of_a_module_in_the_folder_is_found(tmp_path: Path) -> None:
    assert load_attribute("agentcode:agent", tmp_path) == 7
    assert load_attribute("agentcode:agent.real", tmp_path) == 7


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("agent code:x", "not of the form module:attribute"),
        ("nowhere:x", "there is no module 'nowhere'"),
        ("agentcode.py:agent", "Write agentcode:agent."),
        ("src/bots/agentcode.py:agent", "Write src.bots.agentcode:agent."),
        ("agentcode:missing", "has no attribute 'missing'"),
        ("explodes:x", "explodes.py:2: loading 'explodes:x' raised ValueError"),
        ("unfinished:x", "unfinished.py:1: loading 'unfinished:x' raised SyntaxError"),
        ("needy:x", "needy.py:1: loading 'needy:x' raised ModuleNotFoundError"),
        ("wrongtier:f", "wrongtier.py:3: The tool 'f' has tier = 'wrong'. Tiers are: read, draft, write, destructive."),
        ("nojson:x", "nojson.py:2: loading 'nojson:x' raised JSONDecodeError"),
    ],
)
def test_a_source_that_cannot_be_loaded_is_reported(tmp_path: Path, source: str, text: str) -> None:
    with pytest.raises(AgentFileError) as caught:
        load_attribute(source, tmp_path)
    assert text in str(caught.value)


def test_a_module_of_taoloop_puts_no_folder_on_the_import_path(tmp_path: Path) -> None:
    """Its files, such as a `shop.py`, would hide the user's modules of the same name."""
    path = list(sys.path)
    load_attribute("taoloop.errors:TaoError", tmp_path)
    assert sys.path == path


def test_a_module_of_another_folder_is_not_taken_for_that_of_this_folder(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "agentcode.py").write_text("agent = 8\n")
    assert load_attribute("agentcode:agent", tmp_path) == 7
    with pytest.raises(AgentFileError, match=r"'agentcode' was loaded from .*agentcode.py before, and .*other"):
        load_attribute("agentcode:agent", other)
