"""The tools `run_python` and `run_command`: programs of the model, in a sandbox and nowhere else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.text import chinese_texts
from taoloop.tools.function import tool
from taoloop.tools.sandbox.confinement import SandboxLimits
from taoloop.tools.sandbox.process import ProcessResult
from taoloop.tools.sandbox.sandbox import Sandbox, require_sandbox
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import Tool
from taoloop.tools.workspace.workspace import Workspace

COMMAND_TOOLS = ("run_python", "run_command")

_MORE_S = 30.0  # beyond the program's own time: the start, and the end of what does not want to end
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


def sandbox_tools(
    workspace: Workspace | Path | str | None = None,
    *,
    network: bool = False,
    limits: SandboxLimits | None = None,
    python: Path | str | None = None,
    readable: Sequence[Path | str] = (),
) -> dict[str, Tool]:
    """`run_python` and `run_command` by name, on a machine that has a sandbox.

    Programs may change `workspace` and nothing else; without one each has an empty folder that is gone afterwards.
    `network` gives them the machine's own network, its local services included, and the cards say so: only you can
    give it, never the model. `python` is the interpreter, `readable` are further folders that may be read.

    Raises:
        ConfigError: this machine has no sandbox, or a folder cannot be used. Says what to install.
    """
    require_sandbox()
    root = workspace.open().root if isinstance(workspace, Workspace) else workspace
    return command_tools(Sandbox(root, network=network, limits=limits, python=python, readable=readable))


def command_tools(sandbox: Sandbox) -> dict[str, Tool]:
    """The two tools on a sandbox, by name; where the machine has none, every call is refused (`no_sandbox`)."""
    return {tool.name: tool for tool in (_python_tool(sandbox), _command_tool(sandbox))}


def _python_tool(sandbox: Sandbox) -> Tool:
    async def run_python(code: str) -> ProgramResult:
        """Run it; the card says the rest.

        Args:
            code: The whole program, such as print(sum(range(10))). Print what you want to see.
        """
        return _program_result(await sandbox.run_python(code), sandbox.limits)

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


def _command_tool(sandbox: Sandbox) -> Tool:
    async def run_command(command: str) -> ProgramResult:
        """Run it; the card says the rest.

        Args:
            command: A script of the POSIX shell, such as sort names.txt | uniq -c. It may have several lines.
        """
        return _program_result(await sandbox.run_command(command), sandbox.limits)

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


def _program_tool(sandbox: Sandbox, function: Callable[[str], Awaitable[ProgramResult]], **fields: Any) -> Tool:
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
        reversible=False,
        repeatable=not sandbox.network,  # tests run again after each change
        chinese={**chinese_texts("tools"), purpose: _purpose(function.__name__, sandbox, "zh")},
        **fields,
    )(function)
    return program_tool.with_card(roles=dict.fromkeys(program_tool.card.parameters, "target"))


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


def _program_result(ended: ProcessResult, limits: SandboxLimits) -> ProgramResult:
    result: ProgramResult = {"exit_code": ended.exit_code, "stdout": ended.stdout, "stderr": ended.stderr}
    if ended.cut:
        result["cut"] = list(ended.cut)
    if ended.limit is not None:
        result["limit"] = TEXTS.run_text(f"limit_{ended.limit}", limits=limits)
    return result
