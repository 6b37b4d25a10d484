"""The command line in Chinese: every text has a translation, and the locale or `TAOLOOP_LANG` chooses it."""

from __future__ import annotations

import ast
import json
import shlex
import string
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from rich.cells import cell_len
from tests.shell import Shell

import taoloop.cli
from taoloop.cli import translation
from taoloop.cli.app import Commands, cli
from taoloop.cli.help_format import help_texts

FOLDER = Path(taoloop.cli.__file__).parent
CATALOG: dict[str, str] = json.loads((FOLDER / "zh.json").read_text(encoding="utf-8"))
MARKERS = {"translate", "mark", "text", "row", "report", "say"}
"""Calls whose first argument is a text in English."""


def texts_in(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)) if text.strip():
            yield text
        case ast.Dict(values=values) | ast.Tuple(elts=values):
            for value in values:
                yield from texts_in(value)
        case ast.IfExp(body=body, orelse=orelse):
            yield from texts_in(body)
            yield from texts_in(orelse)


def texts_of_code(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in MARKERS:
                yield from texts_in(node.args[0])


def texts_of_help() -> Iterator[str]:
    context = click.Context(cli)
    yield from help_texts(cli.help or "")
    for name, (_, summary) in Commands.summaries.items():
        yield summary
        command = cli.get_command(context, name)
        assert command is not None
        yield from help_texts(command.help or "")
        yield from (param.help for param in command.params if isinstance(param, click.Option) and param.help)


def texts_of_click() -> set[str]:
    """What click says itself, as its sources mark it for gettext."""
    found = set()
    for path in Path(click.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("_", "ngettext"):
                found |= {text for argument in node.args for text in texts_in(argument)}
    return found | {"[OPTIONS]", "COMMAND [ARGS]...", "required"}


def texts_of_the_command_line() -> set[str]:
    return {text for path in FOLDER.rglob("*.py") for text in texts_of_code(path)} | set(texts_of_help())


def examples() -> Iterator[str]:
    """The lines of help that are shown as they are, unless the catalogue has another task for them."""
    context = click.Context(cli)
    commands = [cli, *filter(None, (cli.get_command(context, name) for name in Commands.summaries))]
    for command in commands:
        yield from (line.strip() for line in (command.help or "").splitlines())


def fields(text: str) -> set[str]:
    return {f"{name}:{spec}" for _, name, spec, _ in string.Formatter().parse(text) if name}


def test_every_text_has_a_chinese_one() -> None:
    assert sorted(texts_of_the_command_line() - CATALOG.keys()) == []


def test_every_chinese_text_is_used() -> None:
    used = texts_of_the_command_line() | texts_of_click() | set(examples())
    assert sorted(CATALOG.keys() - used) == []


def test_a_chinese_text_has_the_values_of_the_english_one() -> None:
    """Help is not filled in, and may show braces."""
    for english in CATALOG.keys() - set(examples()) - set(texts_of_help()):
        variants = [fields(variant) for variant in english.split("|")]
        assert fields(CATALOG[english]) <= set.union(*variants), english
        assert fields(CATALOG[english]) >= set.intersection(*variants) - {"n:"}, english


def test_what_click_says_about_a_mistake_is_translated(tao: Shell) -> None:
    chinese = {"TAOLOOP_LANG": "zh"}
    assert tao("show", code=2, **chinese).one_line == "tao: 缺少参数 'RUN_ID'。参见 `tao show --help`。"
    assert "没有选项" in tao("runs", "--colour", code=2, **chinese).one_line
    assert "不在范围" in tao("runs", "--limit", "0", code=2, **chinese).one_line
    assert "不在可选值" in tao("runs", "--status", "done", code=2, **chinese).one_line
    assert "没有命令 'shwo'。是不是想用 'show'？" in tao("shwo", code=2, **chinese).one_line


@pytest.mark.parametrize(
    ("env", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_MESSAGES": "zh_TW", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "C", "TAOLOOP_LANG": "zh"}, "zh"),
        ({"LC_ALL": "zh_CN.UTF-8", "TAOLOOP_LANG": "en"}, "en"),
        ({"LANG": "fr_FR.UTF-8"}, "en"),
    ],
)
def test_the_language_is_that_of_the_variable_or_of_the_locale(
    env: dict[str, str], language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TAOLOOP_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert translation.interface_language() == language


def test_help_errors_and_lists_are_chinese(tao: Shell) -> None:
    chinese = {"TAOLOOP_LANG": "zh"}
    tao("run", "What is 2 + 3?", code=0)
    assert tao("--help", code=0, **chinese).out.startswith("用法：tao [选项] 命令 [参数]...\n")
    page = tao("run", "--help", code=0, **chinese).out
    assert "选项：" in page
    assert "显示本帮助并退出。" in page
    assert tao("show", "20990101", code=2, **chinese).one_line.endswith(
        "没有运行 '20990101'。`tao runs` 列出现有的运行。"
    )
    rows = tao("runs", code=0, **chinese)
    assert rows.err.split() == ["运行", "开始时间", "状态", "事件", "任务"]
    assert "个事件" in rows.out


def test_a_run_in_english_is_shown_in_the_language_of_the_interface(tao: Shell) -> None:
    tao("run", "What is 2 + 3?", code=0)
    assert "任务：What is 2 + 3?" in tao("show", "last", code=0, TAOLOOP_LANG="zh").out
    assert "Task: What is 2 + 3?" in tao("show", "last", code=0).out


def test_a_run_in_chinese_is_shown_in_chinese_in_any_case(tao: Shell) -> None:
    assert "任务：2 加 3 等于多少?" in tao("run", "2 加 3 等于多少?", code=0, TAOLOOP_LANG="en").out


def test_what_programs_read_is_the_same_in_both_languages(tao: Shell) -> None:
    tao("run", "What is 2 + 3?", code=0)
    for args in (["show", "last"], ["runs"], ["models"], ["costs"], ["approvals"], ["verify", "last"], ["tools"]):
        assert tao(*args, "--json", TAOLOOP_LANG="zh").out == tao(*args, "--json").out
    assert "Python 3" not in tao("doctor", "--json", TAOLOOP_LANG="zh").err
    records = [json.loads(line) for line in tao("doctor", "--json", TAOLOOP_LANG="zh").out.splitlines()]
    assert all(record["text"].isascii() and record["hint"].isascii() for record in records)


def test_a_stream_without_chinese_characters_gets_english(tao: Shell) -> None:
    page = tao.process("--help", code=0, TAOLOOP_LANG="zh", PYTHONUTF8="0", PYTHONIOENCODING="ascii").out
    assert page.startswith("Usage: tao")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_columns_of_help_are_aligned(tao: Shell, language: str) -> None:
    page = tao("run", "--help", code=0, TAOLOOP_LANG=language, COLUMNS="80").out
    assert max(map(cell_len, page.splitlines())) <= 98  # examples are not wrapped
    options = page[page.index("  --agent AGENT") :].splitlines()
    starts = {len(line) - len(line.lstrip()) for line in options}
    assert starts == {2, 34}


def offline_examples(language: str) -> list[str]:
    """The tasks in help that need neither a provider nor files of the reader."""
    texts = {line: line for line in examples() if line.startswith('tao run "')}
    if language == "zh":
        texts = {line: CATALOG.get(line, line) for line in texts}
    others = ("--model", "--agent", "--tools")
    return [text for line, text in texts.items() if not any(option in line for option in others)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tasks_in_help_run_offline(tao: Shell, language: str) -> None:
    (tao.folder / "notes").mkdir()
    tao.write("notes/notes.md", "Buy milk.")
    lines = offline_examples(language)
    assert len(lines) >= 4
    for line in lines:
        command = line.partition("   ")[0].replace("~", str(tao.folder))
        assert tao(*shlex.split(command)[1:], code=0, TAOLOOP_LANG=language).out, line
