"""What MCP servers changed about their tools since somebody approved them: shown, and approved again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from taoloop.cli import exit_codes as exits
from taoloop.cli.ui.approval_prompt import confirm
from taoloop.cli.ui.stdio import print_stderr
from taoloop.cli.ui.terminal_text import escape_invisible, one_line
from taoloop.errors import ConfigError, TaoError
from taoloop.runtime.tool_source import ToolSource


def approve(stream: TextIO, sources: Iterable[ToolSource], names: Sequence[str], *, yes: bool) -> int:
    """Show what is waiting, ask, and approve it as it was shown; `names` are the servers that are meant, none: all.

    Raises:
        ConfigError: there is no server, or none of a name.
        MissingExtra: the MCP SDK is not installed.
    """
    from taoloop.tools.mcp import McpServer  # noqa: PLC0415  # only where somebody asks for it

    servers = {source.settings.name: source.settings for source in sources if isinstance(source.settings, McpServer)}
    if unknown := [name for name in names if name not in servers]:
        raise ConfigError(f"There is no MCP server called {unknown[0]!r}.", hint=f"There are: {', '.join(servers)}.")
    if not servers:
        raise ConfigError("There is no MCP server here.", hint="Name a tool file that has one: tao tools FILE.yaml")
    codes = [_approve_server(stream, server, yes=yes) for name, server in servers.items() if not names or name in names]
    return max(codes)


def _approve_server(stream: TextIO, server: object, *, yes: bool) -> int:
    from taoloop.tools.mcp import McpServer, approve_changes, pending_changes  # noqa: PLC0415  # likewise

    assert isinstance(server, McpServer)  # noqa: S101  # `approve` has seen to it
    try:
        changes = pending_changes(server)
    except TaoError as error:
        print_stderr(one_line(f"{server.name}: {error.message} {error.hint}"))
        return exits.FOUND
    stream.writelines(escape_invisible(f"{server.name}: {change}") + "\n" for change in changes)
    stream.flush()
    if not changes:
        print_stderr(f"{server.name}: all its tools are as they were approved.")
        return exits.OK
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            print_stderr(f"{server.name}: nothing was approved. Read the lines above, and add --yes to approve them.")
            return exits.OF_STATUS["waiting"]
        if not confirm(f"Approve {'this' if len(changes) == 1 else 'these'}?"):
            return exits.OF_STATUS["waiting"]
    approve_changes(server, changes)
    print_stderr(f"{server.name}: approved: {', '.join(one_line(change.tool) for change in changes)}.")
    return exits.OK
