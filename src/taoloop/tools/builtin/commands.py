"""The tools `run_python` and `run_command`: programs of the model, in a sandbox and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.text import chinese_texts
from taoloop.errors import ToolError
from taoloop.tools.function import tool
from taoloop.tools.sandbox.confinement import SandboxLimits
from taoloop.tools.sandbox.process import ProcessResult
from taoloop.tools.sandbox.sandbox import Sandbox, require_sandbox
from taoloop.tools.sandbox.session import SessionState
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import RunContext, Tool
from taoloop.tools.workspace.snapshots import FileState, Snapshots
from taoloop.tools.workspace.workspace import Workspace

COMMAND_TOOLS = ("run_python", "run_command")

_MAX_PATHS = 50

_MORE_S = 30.0  # beyond the program's own time: the start, and the end of what does not want to end
_RESTORED_BY = {"backup": "output.backup"}
_ERRORS = (
    ErrorCard(code="no_sandbox", advice="Nothing was run. Tell the user; do without programs."),
    ErrorCard(code="sandbox_failed", advice="Tell the user what it says; do without programs."),
    ErrorCard(code="bad_script", advice="Send one whole program as text."),
)


class ProgramResult(TypedDict):
    """What a program gave back."""

    exit_code: int | None
    """Its exit code; null where a limit ended it."""
    stdout: str
    """What it printed."""
    stderr: str
    """What it wrote to its standard error."""
    cut: NotRequired[list[Literal["stdout", "stderr"]]]
    """The streams of which the middle is missing."""
    limit: NotRequired[str]
    """The limit that ended it."""
    session: NotRequired[SessionState]
    """Whether the session was there before; `started`: it has no variables of earlier calls."""
    session_ended: NotRequired[bool]
    """True if the session ended with the call: its variables are gone."""
    changed: NotRequired[list[str]]
    """The files and folders of the workspace that it changed, made or removed, at most 50."""
    changed_more: NotRequired[int]
    """How many more there are."""
    backup: NotRequired[str]
    """The name of what was kept of the workspace, for `restore_workspace`."""
    not_kept: NotRequired[list[str]]
    """Changed files that cannot be restored: too large, or databases."""
    no_backup: NotRequired[str]
    """Why nothing was kept, so that the call cannot be undone."""


class Restored(TypedDict):
    """What `restore_workspace` gives."""

    ok: Literal[True]
    """True."""
    restored: list[str]
    """The files and folders that are as before again, at most 50."""
    backup: str
    """The name of what was kept, for another `restore_workspace`."""


def sandbox_tools(
    workspace: Workspace | Path | str | None = None,
    *,
    network: bool = False,
    limits: SandboxLimits | None = None,
    python: Path | str | None = None,
    readable: Sequence[Path | str] = (),
) -> dict[str, Tool]:
    """`run_python` and `run_command` by name, on a machine that has a sandbox, and `restore_workspace` for `undo`.

    The model may be offered all three: the last takes back a program of its own. Programs may change `workspace` and
    nothing else; without one each has an empty folder that is gone afterwards. `network` gives them the machine's own
    network, its local services included, and the cards say so: only you can give it, never the model. `python` is the
    interpreter, `readable` are further folders that may be read.

    Raises:
        ConfigError: this machine has no sandbox, or a folder cannot be used. Says what to install.
    """
    require_sandbox()
    root = workspace.open().root if isinstance(workspace, Workspace) else workspace
    return command_tools(Sandbox(root, network=network, limits=limits, python=python, readable=readable))


def command_tools(sandbox: Sandbox) -> dict[str, Tool]:
    """The tools on a sandbox, by name; where the machine has none, every program is refused (`no_sandbox`).

    `restore_workspace`, which undoes what programs did to the files, is among them.
    """
    snapshots = None if sandbox.workspace is None else Snapshots(sandbox.workspace)
    tools = (_python_tool(sandbox, snapshots), _command_tool(sandbox, snapshots), _restore_tool(snapshots))
    return {tool.name: tool for tool in tools}


def _python_tool(sandbox: Sandbox, snapshots: Snapshots | None) -> Tool:
    async def run_python(code: str, session: str = "", *, context: RunContext) -> ProgramResult:
        """Run it; the card says the rest.

        Args:
            code: The program, such as print(sum(range(10))). Print what you want to see.
            session: A name such as main; calls with the same name share variables. Left out: a fresh interpreter.
            context: Given by the runtime.
        """

        async def run() -> ProgramResult:
            if not session:
                return program_result(await sandbox.run_python(code), sandbox.limits)
            ended = await sandbox.run_in_session(code, run_id=context.run_id, name=session)
            result = program_result(ended.result, sandbox.limits)
            result["session"] = ended.state
            if ended.has_ended:
                result["session_ended"] = True
            return result

        return await _with_backup(snapshots, context.idempotency_key, run)

    return _program_tool(
        sandbox,
        run_python,
        use_when="Data must be computed or files worked on in a way that needs loops, libraries or a program.",
        avoid_when="Plain arithmetic is enough (calculator), or one file is to be read or written (the file tools).",
        examples=(
            ExampleCard(
                args={"code": "print(sum(n * n for n in range(4)))"},
                output={"exit_code": 0, "stdout": "14\n", "stderr": ""},
            ),
        ),
    )


def _command_tool(sandbox: Sandbox, snapshots: Snapshots | None) -> Tool:
    async def run_command(command: str, *, context: RunContext) -> ProgramResult:
        """Run it; the card says the rest.

        Args:
            command: A script of the POSIX shell, such as sort names.txt | uniq -c. It may have several lines.
            context: Given by the runtime.
        """

        async def run() -> ProgramResult:
            return program_result(await sandbox.run_command(command), sandbox.limits)

        return await _with_backup(snapshots, context.idempotency_key, run)

    return _program_tool(
        sandbox,
        run_command,
        use_when="A program of the machine does the work: sort, grep, awk, tar, diff, a compiler, a test.",
        avoid_when="A tool for it exists, such as search_files, or it must stay running after the call.",
        examples=(
            ExampleCard(
                args={"command": "printf 'b\\na\\n' | sort"},
                output={"exit_code": 0, "stdout": "a\nb\n", "stderr": ""},
            ),
        ),
    )


def _restore_tool(snapshots: Snapshots | None) -> Tool:
    @tool(
        name="restore_workspace",
        tier="write",
        use_when="What a run_python or run_command did to the files must be undone, and its backup is known.",
        avoid_when="Files were changed again since; undo the later changes first.",
        errors=(
            ErrorCard(code="no_workspace", advice="Tell the user that there are no files to restore."),
            ErrorCard(code="no_backup", advice="Use the backup that run_python or run_command named."),
            ErrorCard(code="changed_since", advice="Undo the later changes first, or restore the files by hand."),
            ErrorCard(code="not_kept", advice="Tell the user which files cannot be restored."),
            ErrorCard(code="restore_failed", advice="Try again: what is restored already stays so."),
            ErrorCard(code="snapshot_failed", advice="Nothing was changed. Tell the user."),
            ErrorCard(code="io_error", advice="Nothing was changed. Tell the user."),
        ),
        examples=(ExampleCard(args={"backup": "key-041c8edacaa26469"}),),
        idempotent=True,
        egress=False,
        roles={"backup": "ref:backup"},
        compensation="restore_workspace",
        compensation_args=_RESTORED_BY,
        chinese=chinese_texts("tools"),
    )
    def restore_workspace(backup: str, *, context: RunContext) -> Restored:
        """Undo what one program did to the files of the workspace, only if they were not changed since.

        Args:
            backup: The name of the backup, as run_python or run_command gave it.
            context: Given by the runtime.
        """
        if snapshots is None:
            raise TEXTS.error("no_workspace", "no_workspace")
        restored = snapshots.restore(backup, context.idempotency_key)
        return {"ok": True, "restored": restored.paths[:_MAX_PATHS], "backup": restored.backup}

    return restore_workspace


async def _with_backup(
    snapshots: Snapshots | None, key: str, run: Callable[[], Awaitable[ProgramResult]]
) -> ProgramResult:
    """The result of a program, with what it changed in the workspace and the name of the backup.

    A workspace that cannot be kept does not keep the program from running; the result says that there is no backup.
    """
    if snapshots is None:
        return await run()
    problem = ""
    before: Mapping[str, FileState] = {}
    try:
        before = await asyncio.to_thread(snapshots.take)
    except ToolError as error:
        problem = error.message
    result = await run()
    if not problem:
        try:
            changes = await asyncio.to_thread(snapshots.record, before, key)
        except ToolError as error:
            problem = error.message
        else:
            result["backup"] = changes.backup
            if changes.paths:
                result["changed"] = changes.paths[:_MAX_PATHS]
            if len(changes.paths) > _MAX_PATHS:
                result["changed_more"] = len(changes.paths) - _MAX_PATHS
            if changes.unkept:
                result["not_kept"] = changes.unkept[:_MAX_PATHS]
    if problem:
        result["no_backup"] = problem
    return result


def _program_tool(sandbox: Sandbox, function: Callable[..., Awaitable[ProgramResult]], **fields: Any) -> Tool:
    """The tool with these fields of its card, and with what both tools have in common.

    That is tier, errors and time, and that all of a program is what the call is aimed at.
    """
    purpose = _purpose(function.__name__, sandbox, "en")
    program_tool = tool(
        purpose=purpose,
        tier="write",
        errors=_ERRORS,
        timeout_s=sandbox.limits.wall_s + _MORE_S,
        egress=sandbox.network,
        **_undoing(sandbox),
        repeatable=not sandbox.network,  # tests run again after each change
        chinese={**chinese_texts("tools"), purpose: _purpose(function.__name__, sandbox, "zh")},
        **fields,
    )(function)
    return program_tool.with_card(
        roles={name: "minor" if name == "session" else "target" for name in program_tool.card.parameters}
    )


def _undoing(sandbox: Sandbox) -> dict[str, Any]:
    """The fields of the card that say how a call is undone: what a program sent over a network never is."""
    if sandbox.network or sandbox.workspace is None:
        return {"reversible": False}
    return {"compensation": "restore_workspace", "compensation_args": _RESTORED_BY}


def _purpose(name: str, sandbox: Sandbox, language: str) -> str:
    """What the tool does and what a program may do there, for the model and for the person who approves a call."""
    return TEXTS.text(
        language,
        "sandbox_card",
        does=TEXTS.text(language, name),
        network=TEXTS.text(language, "network" if sandbox.network else "no_network"),
        folder=TEXTS.text(language, "empty_folder" if sandbox.workspace is None else "workspace_folder"),
        limits=sandbox.limits,
        megabytes=sandbox.limits.memory_bytes // 1024**2,
    )


def program_result(ended: ProcessResult, limits: SandboxLimits) -> ProgramResult:
    """What a tool returns of a program that ended so."""
    result: ProgramResult = {"exit_code": ended.exit_code, "stdout": ended.stdout, "stderr": ended.stderr}
    if ended.cut:
        result["cut"] = list(ended.cut)
    if ended.limit is not None:
        result["limit"] = TEXTS.run_text(f"limit_{ended.limit}", limits=limits)
    return result
