from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taoloop.errors import ConfigError
from taoloop.tools.mcp import McpSandbox, McpServer


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "", "command": "x"}, "An MCP server has name = "),
        ({"name": "a.b", "command": "x"}, "An MCP server has name = "),
        ({"name": "a" * 33, "command": "x"}, "An MCP server has name = "),
        ({"name": "a"}, "command: "),
        ({"name": "a", "command": "x", "url": "http://x"}, "command: "),
        ({"name": "a", "command": "x", "protocol": "2024"}, "An MCP server has protocol = "),
        ({"name": "a", "command": "x", "tiers": {"t": "safe"}}, "An MCP server has tiers = "),
        ({"name": "a", "command": "x", "timeout_s": 0}, "An MCP server has timeout_s = "),
        ({"name": "a", "command": "x", "max_message_bytes": True}, "An MCP server has max_message_bytes = "),
        ({"name": "a", "url": "http://x", "args": ("a",)}, "args: "),
        ({"name": "a", "url": "http://x", "env": {"A": "b"}}, "env: "),
        ({"name": "a", "url": "http://x", "folder": Path("x")}, "folder: "),
        ({"name": "a", "url": "http://x", "sandbox": McpSandbox()}, "sandbox: "),
        ({"name": "a", "command": "x", "headers": {"A": "b"}}, "headers: "),
        ({"name": "a", "url": "http://x", "headers": {"A": "b\r\nC: d"}}, "headers: "),
        ({"name": "a", "command": "x", "env": {"A=B": "c"}}, "env: "),
        ({"name": "a", "command": "x", "args": ("a\0b",)}, "args: "),
    ],
)
def test_settings_that_name_no_server_are_refused_by_field(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        McpServer(**settings)


def test_secrets_are_in_no_representation() -> None:
    shown = repr(McpServer(name="a", command="x", env={"KEY": "secret"}))
    assert "secret" not in shown
    assert "secret" not in McpServer(name="a", command="x", env={"KEY": "secret"}).key


def test_settings_that_one_connection_serves_have_the_same_key() -> None:
    one = McpServer(name="a", command="x", args=("1",))
    assert one.key == McpServer(name="a", command="x", args=("1",), tiers={"t": "read"}, timeout_s=1).key
    assert one.key != McpServer(name="a", command="x", args=("2",)).key
    assert one.key != McpServer(name="a", command="x", args=("1",), env={"A": "b"}).key
