from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taoloop.core.cards.card_lint import lint
from taoloop.errors import ConfigError, ToolDefinitionError, ToolError, UnknownName
from taoloop.tools.builtin.catalog import builtin_tools
from taoloop.tools.builtin.files import FILE_TOOLS
from taoloop.tools.tool import ToolContext
from taoloop.tools.toolbox import Toolbox

BUILT_IN = {
    "calculator",
    "time_now",
    "lookup",
    "read_file",
    "write_file",
    "edit_file",
    "restore_file",
    "list_files",
    "search_files",
    "read_observation",
    "remember",
    "recall",
    "run_python",
    "run_command",
    "restore_workspace",
    "ask_user",
    "update_todos",
}


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def test_functions_become_tools_in_order() -> None:
    box = Toolbox([add, builtin_tools()["calculator"]])
    assert box.names == ("add", "calculator")
    assert [card.name for card in box.cards] == ["add", "calculator"]
    assert box.get("add")(1, 2) == 3
    assert "add" in box
    assert len(box) == 2


def test_a_name_is_given_once() -> None:
    with pytest.raises(ToolDefinitionError, match="Two tools are called 'add'"):
        Toolbox([add, add])


def test_what_is_no_tool_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="'str'"):
        Toolbox(["add"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ("calculator", "not as the text 'calculator'", "[my_function]"),
        (add, "not as one function", "[…]"),
        (builtin_tools()["calculator"], "not as one Tool", "[…]"),
        (dict, "not as one type", "[…]"),
        (builtin_tools(), "not by name", ".values()"),
        (None, "not as one NoneType", "[my_function]"),
    ],
)
def test_what_is_no_list_of_tools_is_told(given: Any, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Toolbox(given)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_one_text_is_no_allow_list() -> None:
    with pytest.raises(ConfigError, match="not the text 'calculator'"):
        Toolbox(builtin_tools().values()).allow("calculator")


def test_the_allow_list_keeps_the_order_and_knows_the_names() -> None:
    """S3-50."""
    box = Toolbox(builtin_tools().values())
    assert box.allow(["lookup", "calculator", "lookup"]).names == ("calculator", "lookup")
    with pytest.raises(UnknownName, match="no tool called 'calc'") as caught:
        box.allow(["calc"])
    assert "calculator" in caught.value.known


def test_the_built_in_tools_are_complete_and_made_lazily(tmp_path: Path) -> None:
    assert set(builtin_tools(tmp_path / "new")) == BUILT_IN
    assert not (tmp_path / "new").exists()


def test_without_a_workspace_the_file_tools_say_so() -> None:
    tools = builtin_tools()
    for name, args in (
        ("read_file", {"path": "a"}),
        ("list_files", {}),
        ("lookup", {"key": "a", "table": "b.json"}),
    ):
        with pytest.raises(ToolError) as caught:
            tools[name].invoke(tools[name].prepare(args).values, ToolContext())
        assert caught.value.code == "no_workspace"


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_the_built_in_cards_are_whole(name: str) -> None:
    """S1-50 to S1-53, S2-19 to S2-25, S2-27: lint-clean, no field is empty, and each structured result has a schema."""
    for tools in (builtin_tools(), builtin_tools(table={"a": 1})):
        card = tools[name].card
        assert lint(card) == ()
        assert all((card.use_when, card.avoid_when, card.errors, card.tier, card.examples))
        assert name not in FILE_TOOLS or card.output_schema
        for example in card.examples:
            tools[name].prepare(dict(example.args))
