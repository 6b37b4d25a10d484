"""Files as data with line numbers, and what is reported of a file that is not YAML or JSON, or no mapping."""

import json
from pathlib import Path

import pytest

from taoloop.config.document import ConfigDocument, describe_value, read_document
from taoloop.errors import AgentFileError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(content: str, name: str = "agent.yaml") -> ConfigDocument:
    Path(name).write_text(content, encoding="utf-8")
    return read_document(Path(name))


def refused(content: str, name: str = "agent.yaml") -> AgentFileError:
    with pytest.raises(AgentFileError) as caught:
        read(content, name)
    return caught.value


@pytest.mark.parametrize(
    ("content", "line", "field", "text"),
    [
        ("name: a\nname: b\n", 2, "name", "a second time (first in line 1)"),
        ("limits:\n  max_steps: 1\n  max_steps: 2\n", 3, "limits.max_steps", "a second time"),
        ("name: a\n  b: c\n", 2, "", "it is not YAML"),
        ("name: 'open\n", 2, "", "it is not YAML"),
        ("- a\n- b\n", 1, "", "a mapping of fields, but this is a list"),
        ("", 1, "", "but this is empty"),
        ("just words\n", 1, "", "a mapping of fields, but this is a text"),
        ("7\n", 1, "", "a mapping of fields, but this is a number"),
        ("name: \x07\n", 0, "", "it is not YAML"),
        ("&a [*a]\n", 1, "", "it is not YAML: the alias *a refers to nothing"),
        ("name: " + "[" * 61, 1, "", "too many parts, or is nested too deeply"),
    ],
)
def test_a_malformed_file_is_reported_with_line_and_field(content: str, line: int, field: str, text: str) -> None:
    error = refused(content)
    assert text in str(error)
    assert (error.line, error.field) == (line, field)
    assert str(error).startswith("agent.yaml")


@pytest.mark.parametrize(
    ("content", "line", "text"),
    [
        ('{\n"name": }', 2, "it is not JSON: Expecting value"),
        ('{"a": 1,\n"a": 2}', 2, "a second time"),
        ("[" * 100_000, 0, "nested too deeply"),
        ('{"a": 1' + "0" * 5_000 + "}", 0, "a number of too many digits"),
    ],
)
def test_malformed_json_is_reported(content: str, line: int, text: str) -> None:
    error = refused(content, "agent.json")
    assert (error.line, text in str(error)) == (line, True)


def test_json_may_have_tabs_and_is_read_as_json() -> None:
    document = read('{\n\t"name": "j\\/x \\ud83d\\ude00",\n\t"tools": ["calculator"]\n}', "agent.json")
    assert document.data == {"name": "j/x 😀", "tools": ["calculator"]}
    assert document.lines["tools", 0] == 3


def test_a_file_that_is_no_text_or_a_folder_is_reported() -> None:
    Path("bytes.yaml").write_bytes(b"name: \xff")
    with pytest.raises(AgentFileError, match="not UTF-8 text"):
        read_document(Path("bytes.yaml"))
    Path("folder.yaml").mkdir()
    with pytest.raises(AgentFileError, match="it is a folder"):
        read_document(Path("folder.yaml"))
    Path("large.json").write_text(json.dumps({"name": "x" * 2_000_000}))
    with pytest.raises(AgentFileError, match="larger than 1 MB"):
        read_document(Path("large.json"))
    with pytest.raises(AgentFileError, match="there is no such file"):
        read_document(Path("none.yaml"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (10**400, "a number of more than 60 digits"),
        ("x" * 99, "a text"),
        (True, "true"),
        (None, "nothing"),
        ([1] * 99, "a list"),
    ],
)
def test_a_value_is_shown_if_it_is_short(value: object, text: str) -> None:
    assert describe_value(value) == text
