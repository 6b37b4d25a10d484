"""The tools `read_file`, `write_file`, `edit_file`, `restore_file`, `list_files`, `search_files` in one workspace."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.images import Image  # pydantic reads the annotations
from taoloop.core.text import chinese_texts
from taoloop.tools.function import tool
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import RunContext, Tool  # `tool` reads the annotations
from taoloop.tools.workspace.workspace import Line, Workspace

FILE_TOOLS = ("read_file", "write_file", "edit_file", "list_files", "search_files", "restore_file")

_REFUSED = ErrorCard(code="path_refused", advice="Use a path inside the workspace, such as notes/a.txt.")
_NOT_FOUND = ErrorCard(code="not_found", advice="List the files with list_files.")
_NOT_A_FILE = ErrorCard(code="not_a_file", advice="Give the path of a regular file.")
_TOO_LARGE = ErrorCard(code="too_large", advice="Work on a part, or on several files.")
_NOT_TEXT = ErrorCard(code="not_text", advice="Only UTF-8 text is read and written.")
_DENIED = ErrorCard(code="permission_denied", advice="Use another place.")
_DISK_FULL = ErrorCard(code="disk_full", advice="Stop writing and tell the user.")
_IO_ERROR = ErrorCard(code="io_error", advice="Tell the user; try again only if the error says so.")
_PATTERN = ErrorCard(code="bad_pattern", advice="Use a pattern such as *.txt or **/*.py.")
_RESTORED_BY = {"path": "args.path", "backup": "output.backup"}


class FileContent(TypedDict):
    """What `read_file` gives."""

    ok: Literal[True]
    """It succeeded."""
    content: str | Image
    """The content of the file."""


class Written(TypedDict):
    """What `write_file` and `restore_file` give."""

    ok: Literal[True]
    """It succeeded."""
    message: str
    """What was done, as a sentence."""
    backup: str
    """The name of what was kept, for `restore_file`."""


class Edited(Written):
    """What `edit_file` gives."""

    diff: str
    """The change as a unified diff."""


class Listed(TypedDict):
    """One entry of a listing."""

    path: str
    """The path from the top of the workspace."""
    kind: Literal["file", "folder", "link", "other"]
    """What it is."""
    bytes: NotRequired[int]
    """The size of a file."""


class FolderListing(TypedDict):
    """What `list_files` gives."""

    ok: Literal[True]
    """It succeeded."""
    entries: list[Listed]
    """The matching entries."""
    left_out: int
    """How many matching entries are not shown."""
    complete: bool
    """Whether the whole folder was read."""


class Matches(TypedDict):
    """What `search_files` gives."""

    ok: Literal[True]
    """It succeeded."""
    matches: list[Line]
    """The lines with the text."""
    files_searched: int
    """How many files were searched."""
    files_skipped: int
    """How many files are no text."""
    complete: bool
    """False if a bound ended the search early."""


def file_tools(workspace: Workspace) -> dict[str, Tool]:
    """The six file tools on a workspace, by name."""
    makers = (_read_tool, _write_tool, _edit_tool, _list_tool, _search_tool, _restore_tool)
    return {file_tool.name: file_tool for file_tool in (make(workspace) for make in makers)}


def _read_tool(workspace: Workspace) -> Tool:
    @tool(
        name="read_file",
        tier="read",
        use_when="The content of a text file or an image in the workspace is needed and its path is known.",
        avoid_when="The path is unknown (list_files), or only some lines matter (search_files).",
        errors=(_REFUSED, _NOT_FOUND, _NOT_A_FILE, _TOO_LARGE, _NOT_TEXT, _DENIED, _IO_ERROR),
        examples=(ExampleCard(args={"path": "notes/a.txt"}, output={"ok": True, "content": "Hello\n"}),),
        idempotent=True,
        chinese=chinese_texts("tools"),
    )
    def read_file(path: str) -> FileContent:
        """Read one UTF-8 text file of the workspace, at most 1 MB, or look at an image; no links, nothing outside.

        Args:
            path: The file, relative to the workspace, with '/' between folders, such as notes/a.txt.
        """
        return {"ok": True, "content": workspace.read(path)}

    return read_file


def _write_tool(workspace: Workspace) -> Tool:
    @tool(
        name="write_file",
        tier="write",
        repeatable=True,  # what is in the file afterwards is the same
        use_when="A text file must be created or replaced as a whole in the workspace.",
        avoid_when="A part is to change and the present content was not read; or the file is binary.",
        errors=(_REFUSED, _NOT_A_FILE, _TOO_LARGE, _NOT_TEXT, _DENIED, _DISK_FULL, _IO_ERROR),
        examples=(ExampleCard(args={"path": "game/index.html", "content": "<!doctype html>…"}),),
        idempotent=True,
        compensation="restore_file",
        egress=False,
        roles={"path": "target", "content": "content"},
        max_input_bytes=2 * workspace.limits.write_bytes + 4_096,  # as JSON, with what it escapes
        compensation_args=_RESTORED_BY,
        replaces=workspace.present,
        chinese=chinese_texts("tools"),
    )
    def write_file(path: str, content: str, *, context: RunContext) -> Written:
        """Write one UTF-8 text file of the workspace as a whole, at most 1 MB; what it replaces is kept.

        Args:
            path: The file, relative to the workspace, such as game/index.html; missing folders are made.
            content: The whole new text of the file; it is not appended.
            context: Given by the runtime.
        """
        change, backup = workspace.write_text(path, content, context.idempotency_key)
        values = {"size": change.before_bytes, "backup": backup}
        previous = TEXTS.run_text("previous_kept" if change.existed else "no_previous", **values)
        message = TEXTS.run_text("wrote", size=len(content.encode()), path=change.path, previous=previous)
        return {"ok": True, "message": message, "backup": backup}

    return write_file


def _edit_tool(workspace: Workspace) -> Tool:
    @tool(
        name="edit_file",
        tier="write",
        use_when="A part of a text file in the workspace must change and the rest stay as it is.",
        avoid_when="The present text is not known word for word (read_file first), or the file is new (write_file).",
        errors=(
            ErrorCard(code="no_match", advice="Read the file and copy the text exactly, with its spaces and lines."),
            ErrorCard(code="several_matches", advice="Give more of the text around the part that is meant."),
            ErrorCard(code="same_text", advice="Give the text as it should become."),
            _REFUSED,
            _NOT_FOUND,
            _NOT_A_FILE,
            _TOO_LARGE,
            _NOT_TEXT,
            _DENIED,
            _DISK_FULL,
            _IO_ERROR,
        ),
        examples=(ExampleCard(args={"path": "game/index.html", "old": "<h1>Snake</h1>", "new": "<h1>Snake II</h1>"}),),
        idempotent=True,
        compensation="restore_file",
        egress=False,
        roles={"path": "target", "old": "content", "new": "content"},
        max_input_bytes=4 * workspace.limits.write_bytes + 4_096,  # as JSON, with what it escapes
        compensation_args=_RESTORED_BY,
        replaces=workspace.present,
        chinese=chinese_texts("tools"),
    )
    def edit_file(path: str, old: str, new: str, *, context: RunContext) -> Edited:
        """Replace one text in a UTF-8 file of the workspace by another; the old version of the file is kept.

        Args:
            path: The file, relative to the workspace, such as game/index.html.
            old: The text to replace, exactly as in the file; it must occur there once.
            new: What replaces it; empty: it is deleted.
            context: Given by the runtime.
        """
        change, backup, diff = workspace.edit_text(path, old, new, context.idempotency_key)
        previous = TEXTS.run_text("previous_kept", size=change.before_bytes, backup=backup)
        message = TEXTS.run_text("edited", path=change.path, previous=previous)
        return {"ok": True, "message": message, "backup": backup, "diff": diff}

    return edit_file


def _restore_tool(workspace: Workspace) -> Tool:
    @tool(
        name="restore_file",
        tier="write",
        use_when="A write_file or edit_file must be undone and the name of its backup is known.",
        avoid_when="The file was changed again since; then write what it should contain with write_file.",
        errors=(
            ErrorCard(code="no_backup", advice="Use the backup that write_file or edit_file named for this path."),
            ErrorCard(code="changed_since", advice="Read the file and write what it should contain."),
            _REFUSED,
            _DENIED,
            _DISK_FULL,
            _IO_ERROR,
        ),
        examples=(ExampleCard(args={"path": "notes/a.txt", "backup": "key-041c8edacaa26469"}),),
        idempotent=True,
        egress=False,
        roles={"path": "target", "backup": "ref:backup"},
        compensation="restore_file",
        compensation_args=_RESTORED_BY,
        chinese=chinese_texts("tools"),
    )
    def restore_file(path: str, backup: str, *, context: RunContext) -> Written:
        """Undo one write_file or edit_file, only if the file was not changed since; a new file is taken away.

        Args:
            path: The file that was written, relative to the workspace.
            backup: The name of the backup, as write_file or edit_file gave it.
            context: Given by the runtime.
        """
        change, own = workspace.restore(path, backup, context.idempotency_key)
        message = TEXTS.run_text("restored" if change.after else "removed", path=change.path)
        return {"ok": True, "message": message, "backup": own}

    return restore_file


def _list_tool(workspace: Workspace) -> Tool:
    @tool(
        name="list_files",
        tier="read",
        use_when="The names or sizes of files in the workspace are needed.",
        avoid_when="A text inside files is looked for; use search_files.",
        errors=(_REFUSED, _NOT_FOUND, _PATTERN, _DENIED, _IO_ERROR),
        examples=(
            ExampleCard(args={}, note="the top folder"),
            ExampleCard(args={"path": "src", "pattern": "**/*.py"}, note="also in the folders below"),
        ),
        idempotent=True,
        chinese=chinese_texts("tools"),
    )
    def list_files(path: str = ".", pattern: str = "*") -> FolderListing:
        """List the files and folders in one folder of the workspace, sorted, with sizes, at most 500 entries.

        Args:
            path: The folder, relative to the workspace; '.' is its top.
            pattern: Which names, such as *.txt in this folder only, or **/*.txt also in the folders below.
        """
        entries, left_out, complete = workspace.entries(path, pattern)
        listed: list[Listed] = []
        for entry in entries:
            row: Listed = {"path": entry.path, "kind": entry.kind}
            if entry.kind == "file":
                row["bytes"] = entry.size
            listed.append(row)
        return {"ok": True, "entries": listed, "left_out": left_out, "complete": complete}

    return list_files


def _search_tool(workspace: Workspace) -> Tool:
    @tool(
        name="search_files",
        tier="read",
        use_when="It is unknown which file, or which line of a file, contains a text.",
        avoid_when="The whole file is needed (read_file), or files are looked for by name (list_files).",
        errors=(
            _REFUSED,
            _NOT_FOUND,
            _PATTERN,
            ErrorCard(code="bad_text", advice="Search for one line of text."),
            _DENIED,
            _IO_ERROR,
        ),
        examples=(ExampleCard(args={"text": "TODO", "pattern": "*.py"}),),
        idempotent=True,
        chinese=chinese_texts("tools"),
    )
    def search_files(text: str, path: str = ".", pattern: str = "*") -> Matches:
        """Search the text files of the workspace for an exact text; at most 100 lines, no patterns in it.

        Args:
            text: The text as written in the files, within one line, case-sensitive.
            path: The folder (with all below it) or file to search, relative to the workspace.
            pattern: Which files, by name such as *.md, or by path such as docs/**/*.md.
        """
        result = workspace.search(text, path, pattern)
        return {
            "ok": True,
            "matches": list(result.matches),
            "files_searched": result.searched,
            "files_skipped": result.skipped,
            "complete": result.complete,
        }

    return search_files
