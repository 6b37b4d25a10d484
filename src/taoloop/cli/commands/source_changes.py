"""`tao tools --approve-changes`: what MCP servers and folders of skills changed, and a person's approval of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from taoloop.cli import exit_codes as exits
from taoloop.cli.translation import join_on_one_line, translate
from taoloop.cli.ui.approval_prompt import confirm
from taoloop.cli.ui.stdio import one_line, print_stderr
from taoloop.core.text import escape_invisible
from taoloop.errors import ConfigError, TaoError
from taoloop.runtime.tool_source import ToolSource
from taoloop.translation import error_texts, mark, translate_error

if TYPE_CHECKING:
    from taoloop.tools.mcp import McpServer
    from taoloop.tools.skills import SkillChange, SkillFolder


def approve_source_changes(stream: TextIO, entries: Iterable[Any], names: Sequence[str], *, yes: bool) -> int:
    """Show what changed, ask, and approve it as it was shown, for the servers and skills called `names` (none: all).

    Raises:
        ConfigError: there is neither a server nor a skill to approve, or none of a name.
        MissingExtra: the MCP SDK is not installed.
    """
    from taoloop.tools.mcp import McpServer  # noqa: PLC0415  # only where somebody asks for it
    from taoloop.tools.skills import SkillFolder, pending_skills  # noqa: PLC0415  # as above

    settings = [entry.settings if isinstance(entry, ToolSource) else entry for entry in entries]
    servers = {server.name: server for server in settings if isinstance(server, McpServer)}
    folders = [folder for folder in settings if isinstance(folder, SkillFolder)]
    pending = [(folder, pending_skills(folder)) for folder in folders]
    known = [*servers, *(change.name for _, changes in pending for change in changes)]
    if unknown := [name for name in names if name not in known]:
        hint = translate("There are: {names}.", names=", ".join(known))
        text = mark("There is no MCP server and no skill to approve that is called {name!r}.")
        raise ConfigError(translate(text, name=unknown[0]), hint=hint)
    if not servers and not folders:
        hint = translate("Name a tool file that has one: tao tools FILE.yaml")
        raise ConfigError(translate("There is no MCP server and no folder of skills here."), hint=hint)
    codes = [_approve_server(stream, server, yes=yes) for name, server in servers.items() if not names or name in names]
    for folder, changes in pending:
        chosen = tuple(change for change in changes if not names or change.name in names)
        if chosen or not names:
            codes.append(_approve_folder(stream, folder, chosen, yes=yes))
    return max(codes)


def _approve_server(stream: TextIO, server: McpServer, *, yes: bool) -> int:
    from taoloop.tools.mcp import approve_changes, pending_changes  # noqa: PLC0415  # as above

    try:
        changes = pending_changes(server)
    except TaoError as error:
        print_stderr(one_line(join_on_one_line(f"{server.name}:", *error_texts(error))))
        return exits.FOUND
    if not changes:
        print_stderr(translate("{server}: all its tools are as they were approved.", server=server.name))
        return exits.OK
    if (code := _ask_about(stream, server.name, list(map(str, changes)), yes=yes)) != exits.OK:
        return code
    approve_changes(server, changes)
    names = ", ".join(one_line(change.tool) for change in changes)
    print_stderr(translate("{server}: approved: {tools}.", server=server.name, tools=names))
    return exits.OK


def _approve_folder(stream: TextIO, folder: SkillFolder, changes: Sequence[SkillChange], *, yes: bool) -> int:
    from taoloop.tools.skills import approve_skills  # noqa: PLC0415  # as above

    name = one_line(str(folder.folder))
    if not changes:
        print_stderr(translate("{folder}: all its skills are as they were approved.", folder=name))
        return exits.OK
    if (code := _ask_about(stream, name, list(map(str, changes)), yes=yes)) != exits.OK:
        return code
    approve_skills(folder, changes)
    names = ", ".join(change.name for change in changes)
    print_stderr(translate("{server}: approved: {tools}.", server=name, tools=names))
    return exits.OK


def _ask_about(stream: TextIO, source: str, changes: Sequence[str], *, yes: bool) -> int:
    """Show the changes of a source and ask whether they are approved; gives the exit code of a no."""
    stream.writelines(escape_invisible(f"{source}: {translate_error(change)}") + "\n" for change in changes)
    stream.flush()
    if yes:
        return exits.OK
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        text = mark("{server}: nothing was approved. Read the lines above, and add --yes to approve them.")
        print_stderr(translate(text, server=source))
        return exits.OF_STATUS["waiting"] or exits.FOUND
    is_approved = confirm(translate("Approve this?|Approve these?", n=len(changes)))
    return exits.OK if is_approved else exits.OF_STATUS["waiting"] or exits.FOUND
