"""Every text for people has a Chinese one: in the `zh.json` of its package, under the English text in the code."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import click
import pytest

import taoloop
from taoloop.cli.app import Commands, cli, help_texts
from taoloop.core.text import TextCatalog, chinese_texts
from taoloop.errors import UnknownName
from taoloop.translation import Translator, unknown_name_texts

FOLDER = Path(taoloop.__file__).parent
PACKAGES = ("cli", "config", "journals", "models")
MARKERS = {"cli": {"translate", "mark", "text", "row", "report", "say"}}
"""Calls whose first argument is a text in English, by package; in the others `translate` and `mark`."""

NOT_FILLED_IN = {
    "Name each server under `tools`, as `mcp: {name: …, command: …}`.",
    "Write $${ for the two signs themselves.",
}
"""Texts without values, in which a brace is a brace."""


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


def arguments_of(folder: Path, functions: set[str], position: int = 0) -> Iterator[str]:
    """The texts that are an argument of calls of these functions."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and len(node.args) > position:
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in functions:
                    yield from texts_in(node.args[position])


def texts_of_help() -> Iterator[str]:
    context = click.Context(cli)
    yield from help_texts(cli.help or "")
    for name, (_, summary) in Commands.summaries.items():
        yield summary
        command = cli.get_command(context, name)
        assert command is not None
        yield from help_texts(command.help or "")
        yield from (param.help for param in command.params if isinstance(param, click.Option) and param.help)


def texts_of_click() -> Iterator[str]:
    """What click says itself, as its sources mark it for gettext."""
    yield from ("[OPTIONS]", "COMMAND [ARGS]...", "required")
    for position in (0, 1):
        yield from arguments_of(Path(click.__file__).parent, {"_", "ngettext"}, position)


def examples() -> Iterator[str]:
    """The lines of help that are shown as they are, unless the catalogue has another task for them."""
    context = click.Context(cli)
    commands = [cli, *filter(None, (cli.get_command(context, name) for name in Commands.summaries))]
    for command in commands:
        yield from (line.strip() for line in (command.help or "").splitlines())


@cache
def texts_of(package: str) -> frozenset[str]:
    """Every text of a package that must have a translation."""
    texts = set(arguments_of(FOLDER / package, MARKERS.get(package, {"translate", "mark"})))
    for position in (1, 2):  # after the place in a file: what is wrong, and what to do
        texts |= set(arguments_of(FOLDER / package, {"problem"}, position))
    if package == "cli":
        texts |= set(texts_of_help())
    if package == "config":  # what a file should be is said by whoever reads it
        files = (arguments_of(FOLDER / reader, {"read_document"}, 1) for reader in ("config", "cli", "serve/gateway"))
        texts |= {text for names in files for text in names}
    return frozenset(texts)


@cache
def catalogs() -> tuple[TextCatalog, ...]:
    """Every catalogue of texts with names."""
    paths = (
        path
        for path in FOLDER.rglob("*.py")
        if "TextCatalog" in (text := path.read_text("utf-8")) or "ToolTexts" in text
    )
    modules = (import_module(".".join(path.relative_to(FOLDER.parent).with_suffix("").parts)) for path in paths)
    values = (value for module in modules for value in vars(module).values())
    return tuple({id(value): value for value in values if isinstance(value, TextCatalog)}.values())


def test_every_text_with_a_name_has_a_chinese_one() -> None:
    assert len(catalogs()) > 10
    for catalog in catalogs():
        assert sorted(set(catalog.english.values()) - chinese_texts(catalog.package).keys()) == []


@pytest.mark.parametrize("package", sorted({catalog.package for catalog in catalogs()} - {"tools"}))
def test_every_chinese_text_of_a_catalogue_is_used(package: str) -> None:
    """`tests/tools/test_texts.py` looks at those of the tools, some of which are on cards."""
    names = {text for catalog in catalogs() if catalog.package == package for text in catalog.english.values()}
    sources = (path.read_text("utf-8") for path in FOLDER.rglob("*.py"))
    constants = {
        node.value for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)
    }
    used = names | constants | {f"{kind} above 0, or None for no limit" for kind in ("a number", "a whole number")}
    assert sorted(chinese_texts(package).keys() - used) == []


def fields(text: str) -> set[str]:
    return {f"{name}:{spec}" for _, name, spec, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_text_has_a_chinese_one(package: str) -> None:
    assert sorted(texts_of(package) - chinese_texts(package).keys()) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_chinese_text_is_used(package: str) -> None:
    used = {*texts_of(package), *((*texts_of_click(), *examples()) if package == "cli" else ())}
    assert sorted(chinese_texts(package).keys() - used) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_chinese_text_has_the_values_of_the_english_one(package: str) -> None:
    """Help is not filled in, and may show braces."""
    catalog = chinese_texts(package)
    shown_as_it_is = {*examples(), *texts_of_help()} if package == "cli" else set()
    for english in catalog.keys() - shown_as_it_is - NOT_FILLED_IN:
        variants = [fields(variant) for variant in english.split("|")]
        assert fields(catalog[english]) <= set.union(*variants), english
        assert fields(catalog[english]) >= set.intersection(*variants) - {"n:"}, english


def test_a_text_is_filled_in_and_its_number_chosen() -> None:
    translate = Translator("cli")
    assert translate("{n} step|{n} steps", n=1) == "1 step"
    assert translate("{n} step|{n} steps", n=2) == "2 steps"
    assert translate("{n} step|{n} steps", "zh", n=2) == "2 步"
    assert translate("a text without a translation", "zh") == "a text without a translation"


def test_an_unknown_name_outside_of_chinese_is_as_it_was() -> None:
    error = UnknownName("tool", "hammer", ("saw", "drill"), hint="Buy one.")
    assert unknown_name_texts(error) == ("There is no tool called 'hammer'.", "Known: saw, drill. Buy one.")
