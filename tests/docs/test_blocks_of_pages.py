"""What the pages show is true: their blocks run, and print what is shown."""

from __future__ import annotations

import ast
import contextlib
import io
import logging
import os
import runpy
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from tests.docs.fenced import PAGES, ROOT, Block, blocks, same
from tests.shell import run_in_process

from taoloop.cli.app import cli
from taoloop.config.agent_file import load_agent, load_policy
from taoloop.config.tool_file import load_tools
from taoloop.models.providers import variables
from taoloop.runtime.observation import telemetry

TAO = ("tao", "scripts/try")
RUNNING = tuple(page for page in PAGES if any(block.language == "python" or block.words for block in blocks(page)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to run a page in: no configuration from outside, and its own database."""
    for name in {"TAOLOOP_MODEL", "AI_MOCK", *variables()}:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TAOLOOP_DB", str(tmp_path / "tao.db"))
    monkeypatch.setenv("PYTHONUTF8", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    known, root = set(sys.modules), logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield tmp_path
    telemetry._process_telemetry = None  # what a page does to its process ends with it
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def quick_pages() -> Iterator[Any]:
    """A page in Chinese that has the code of the English one proves nothing more: it runs at night."""
    for page in RUNNING:
        english = page.replace(".zh.md", ".md")
        is_repeated = english != page and code_of(english) == code_of(page)
        yield pytest.param(page, marks=pytest.mark.nightly) if is_repeated else page


def code_of(page: str) -> list[Any]:
    """What the blocks of a page do and show, without comments."""
    return [(block.language, block.words, code_of_block(block)) for block in blocks(page)]


def code_of_block(block: Block) -> Any:
    match block.language:
        case "python":
            return ast.dump(ast.parse(block.text))
        case "sh":
            return [shlex.split(line, comments=True) for line in block.text.replace("\\\n", " ").splitlines()]
        case _:
            return block.text


@pytest.mark.parametrize("page", list(quick_pages()))
def test_the_blocks_of_a_page_run_and_print_what_is_shown(page: str, folder: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "page"}
    printed = ""
    for block in blocks(page):
        where = f"{page}:{block.line}"
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
        match block.language, block.words:
            case "python", _:
                printed = run_python(block, namespace, where)
            case "yaml", ("policy.yaml",):
                load_policy(folder / block.file)
            case "yaml", ("tools.yaml",):
                load_tools(folder / block.file).close()
            case "yaml", _ if block.text.lstrip().startswith(("name:", "model:", "tools:")):
                load_agent(str(folder / (block.file or "block.yaml"))) if block.file else load_text(block, folder)
            case "sql", _:
                run_sql(block, folder)
            case "sh", ("run", *_):
                printed = run_shell(block, folder, where)
            case "text", ("output", *more):
                assert same(block.text, printed, like="like" in more), f"{where} shows\n{block.text}\nnot\n{printed}"


@pytest.mark.parametrize("page", PAGES)
def test_the_tao_commands_of_a_page_exist_with_their_options(page: str) -> None:
    for block in blocks(page):
        if block.language != "sh":
            continue
        for args in commands(block):
            context = cli.make_context("tao", list(args))
            name = args[0] if args and not args[0].startswith("-") else ""
            if not name:
                continue
            command = cli.get_command(context, name)
            assert command is not None, f"{page}:{block.line}: there is no `tao {name}`"
            try:
                command.make_context(name, list(args[1:]), parent=context)
            except click.ClickException as error:
                pytest.fail(f"{page}:{block.line}: tao {shlex.join(args)}: {error.format_message()}")


def run_python(block: Block, namespace: dict[str, Any], where: str) -> str:
    """Run a block; a traceback shows the lines of the page."""
    code = compile("\n" * (block.line - 1) + block.text, where.rpartition(":")[0], "exec", dont_inherit=True)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, namespace)  # noqa: S102  # that is the test
    return out.getvalue()


def run_sql(block: Block, folder: Path) -> None:
    """Run the queries of a block on the page's database; SQLite refuses what does not exist there."""
    with contextlib.closing(sqlite3.connect(folder / "tao.db")) as database:
        for query in block.text.split(";"):
            database.execute(query).fetchall()


def load_text(block: Block, folder: Path) -> None:
    """Load an agent file that the page gives no name."""
    path = folder / "unnamed.yaml"
    path.write_text(block.text, encoding="utf-8")
    load_agent(str(path))


def run_example(args: list[str], where: str) -> str:
    """Run a program of `examples/`; what it prints on standard output."""
    script = ROOT / args[0]
    assert script.is_relative_to(ROOT / "examples"), f"{where}: {args[0]} is not among the examples"
    out, earlier = io.StringIO(), sys.argv
    sys.argv = args
    try:
        with contextlib.redirect_stdout(out):
            runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.argv = earlier
    return out.getvalue()


def commands(block: Block) -> Iterator[list[str]]:
    """The arguments of every `tao` call in a block, without what the shell adds to it."""
    return (args for program, *args in command_lines(block) if program in TAO)


def command_lines(block: Block) -> Iterator[list[str]]:
    """Every `tao` or `python` call in a block, without what the shell adds to it."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and "=" in words[0] and words[0].partition("=")[0].isupper():
            words = words[1:]
        if words and words[0] in (*TAO, "python"):
            end = next((number for number, word in enumerate(words) if word in ("|", ">", "&&", ";")), len(words))
            yield words[:end]


def run_shell(block: Block, folder: Path, where: str) -> str:
    """Run the lines of a block, `RUN_ID` standing for the newest run; what they print on standard output."""
    printed = ""
    for program, *args in command_lines(block):
        if program == "python":
            printed += run_example(args, where)
        if program not in TAO:
            continue
        given = [newest_run(args, folder) if arg == "RUN_ID" else arg for arg in args]
        ended = run_in_process(given, folder, dict(os.environ))
        assert "unexpected" not in ended.err, f"{where}: {ended.err}"
        assert ended.code != 2, f"{where}: {ended.err}"
        printed += ended.out
    return printed


def newest_run(args: list[str], folder: Path) -> str:
    """The id of the newest run in the database that the command names, or in the page's own."""
    db = args[args.index("--db") : args.index("--db") + 2] if "--db" in args else []
    return run_in_process(["runs", "--limit", "1", *db], folder, dict(os.environ)).out.split()[0]
