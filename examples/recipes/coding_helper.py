"""A coding helper: it repairs a function in a folder and runs the tests; everything it did can be taken back.

Run:  python examples/recipes/coding_helper.py [FOLDER] [--model openai:gpt-4o-mini]
Undo: python examples/recipes/coding_helper.py FOLDER --undo RUN_ID     (or: tao undo RUN_ID --db FOLDER.db)
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from taoloop import Agent, RunContext, ToolError, UndoResult, tool
from taoloop.models import Reply

BROKEN = '''"""Prices in a shop."""


def with_tax(net: float, percent: float) -> float:
    """The price with tax."""
    return net * percent / 100
'''
TESTS = """import unittest

import prices


class PricesTest(unittest.TestCase):
    def test_tax_is_added(self) -> None:
        self.assertEqual(prices.with_tax(200, 25), 250)
"""
TASK = "The tests of this folder fail. Repair prices.py, and run the tests until they pass."
SCRIPT: list[Reply] = [
    {"tool_calls": [{"name": "run_tests", "args": {}}]},
    {"tool_calls": [{"name": "read_file", "args": {"path": "prices.py"}}]},
    {
        "text": "The tax is computed, but not added to the price.",
        "tool_calls": [
            {
                "name": "edit_file",
                "args": {"path": "prices.py", "old": "net * percent / 100", "new": "net * (100 + percent) / 100"},
            }
        ],
    },
    {"tool_calls": [{"name": "run_tests", "args": {}}]},
    "with_tax gave the tax alone. It adds the tax to the price now, and the test passes.",
]


@tool(tier="read", timeout_s=120)
def run_tests(ctx: RunContext[Path]) -> str:
    """Run the tests of the folder; gives the end of their report."""
    # runs the code of the folder with your permissions; `run_command` has a sandbox for what you do not trust
    command = [sys.executable, "-B", "-m", "unittest", "-q"]
    report = subprocess.run(command, cwd=ctx.deps, capture_output=True, text=True, timeout=100, check=False)  # noqa: S603
    if report.returncode:
        raise ToolError("The tests fail.", code="tests_failed", hint=report.stderr[-1_500:])
    return "All tests pass."


def coding_helper(folder: Path, *, model: str | None = None) -> Agent[Path]:
    """The agent for one folder; its runs are in a file beside it."""
    return Agent(
        name="helper",
        model=model or SCRIPT,
        tools=["list_files", "read_file", "edit_file", run_tests],
        instructions="Change as little as possible.",
        workspace=folder,
        deps_type=Path,
        make_deps=lambda _: folder,
        approved_tiers=("write",),  # edits need no question here, because they can be undone
        journal=folder.with_suffix(".db"),
        max_steps=20,
    )


async def undo(folder: Path, run_id: str, *, by: str) -> UndoResult:
    """Take back what a run did to the files. A file that somebody has changed since is left alone."""
    return await coding_helper(folder).undo(run_id, agreed_by=by)


def make_broken_project(folder: Path) -> Path:
    """A folder with a mistake in it, for the demonstration."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prices.py").write_text(BROKEN, encoding="utf-8")
    (folder / "test_prices.py").write_text(TESTS, encoding="utf-8")
    return folder


def main() -> None:
    """Repair the folder of the command line, or undo a repair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="default: a new folder with a mistake")
    parser.add_argument("--task", default=TASK)
    parser.add_argument("--undo", metavar="RUN_ID", help="take back what this run did")
    parser.add_argument("--model", help="a real model, such as openai:gpt-4o-mini; default: a script")
    options = parser.parse_args()
    folder = options.folder or make_broken_project(Path(tempfile.mkdtemp(prefix="taoloop-")) / "project")
    if options.undo:
        undone = asyncio.run(undo(folder, options.undo, by="you"))
        print(f"{len(undone.undone)} calls are undone, {len(undone.left)} are left.")
        return
    result = coding_helper(folder, model=options.model).run_sync(options.task, verbose=True)
    print(f"\nUndo it: python {sys.argv[0]} {folder} --undo {result.run_id}")


if __name__ == "__main__":
    main()
