"""The published schema of a tool file says what the reader takes, and the page of tool files is true."""

from collections import defaultdict
from pathlib import Path

import pytest
from tests.docs.fenced import ROOT, blocks
from tests.docs.published import Published

from taoloop.config.settings_reader import fields_of
from taoloop.config.tool_entries import SOURCE_KINDS, TOOL_FILE_FIELDS
from taoloop.config.tool_file import read_tools
from taoloop.errors import AgentFileError

PUBLISHED = Published("tool-file.schema.json", "make_tool_schema.py")
PAGE = "docs/tool-file.md"


def test_the_published_schema_is_current() -> None:
    """After a change of a settings class: python docs/make_tool_schema.py."""
    PUBLISHED.require_current()


def test_every_field_of_every_source_is_in_it_with_what_it_means() -> None:
    found = PUBLISHED.schema
    assert set(found["properties"]) == set(TOOL_FILE_FIELDS)
    for form in SOURCE_KINDS.values():
        made = found["$defs"][form.settings]
        assert set(made["properties"]) == set(fields_of(form.settings_class()))
        for name, field in made["properties"].items():
            assert field.get("description"), f"{form.settings}.{name}"


@pytest.mark.parametrize(
    "content",
    [
        "tools: [{fetch: {timeout: 3}}]",
        "tools: [{documents: {name: a}}]",
        "tools: [{sql: {name: a, url: b, max_rows: many}}]",
        "tools: [{mcp: {name: a, protocol: none}}]",
        "tools: [{fetch: {}, mcp: {}}]",
        "tools: calculator",
        "egress: {}",
        "tool: []",
    ],
)
def test_what_the_reader_refuses_the_schema_refuses(content: str, tmp_path: Path) -> None:
    assert not PUBLISHED.fits(content)
    (tmp_path / "tools.yaml").write_text(content)
    with pytest.raises(AgentFileError):
        read_tools(tmp_path / "tools.yaml")


def snippets() -> list[str]:
    """The lists of tools that the page shows without running them, and its whole file."""
    shown = [block.text for block in blocks(PAGE) if block.language == "yaml"]
    listed = ["tools:\n" + text for text in shown if text.startswith("- ")]
    return listed + [text for text in shown if text.startswith("tools:")]


@pytest.mark.parametrize("content", snippets())
def test_what_the_page_shows_is_read_and_fits_the_schema(content: str, tmp_path: Path) -> None:
    assert PUBLISHED.fits(content)
    lines = [line for line in content.splitlines() if "shoptools:" not in line]
    (tmp_path / "tools.yaml").write_text("\n".join(lines))
    env: dict[str, str] = defaultdict(lambda: "some-value", SHOP_PASSWORD="some-value", WIKI_TOKEN="some-value")
    assert read_tools(tmp_path / "tools.yaml", env=env)


def test_the_page_names_every_form_and_every_field_of_a_file() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    for name in TOOL_FILE_FIELDS:
        assert f"`{name}`" in text
    for name in SOURCE_KINDS:
        assert f"{{{name}: " in text
