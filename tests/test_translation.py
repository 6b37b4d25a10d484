"""Every text for people has a Chinese one: in the `zh.json` of its package, under the English text in the code."""

from __future__ import annotations

import ast
import errno
import os
import re
import string
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import cleandoc
from itertools import count
from pathlib import Path
from types import CodeType

import click
import jinja2
import pytest
from jinja2 import nodes

import taoloop
from taoloop import errors
from taoloop.cli.app import COMMENT, Commands, cli, has_examples
from taoloop.core.text import TextCatalog, chinese_texts
from taoloop.errors import ToolSourceError, UnknownName
from taoloop.evals.suites.catalog import shipped_suites
from taoloop.serve.panel.access import ROLES
from taoloop.translation import Translator, error_texts, translate_error

FOLDER = Path(taoloop.__file__).parent
PACKAGES = ("cli", "config", "evals", "journals", "models", "serve/panel")
MARKERS = {
    "cli": {"translate", "mark", "text", "row", "report", "say", "_read_text"},
    "evals": {"translate", "mark", "say", "_say"},
    "serve/panel": {"translate", "mark", "say"},
}
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


@cache
def calls_and_texts(path: Path) -> tuple[list[ast.Call], list[ast.Constant | ast.JoinedStr]]:
    """The calls in a source and its texts, with values in them or without: each source is read once."""
    calls: list[ast.Call] = []
    texts: list[ast.Constant | ast.JoinedStr] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call():
                calls.append(node)
            case ast.JoinedStr() | ast.Constant(value=str()):
                texts.append(node)
    return calls, texts


@cache
def constants_of(path: Path) -> frozenset[str]:
    """The texts of a source that have no values in them, out of its compiled form: there are a million nodes in all."""
    texts: set[str] = set()
    values: list[object] = [compile(path.read_bytes(), str(path), "exec")]
    while values:
        match values.pop():
            case str() as text:
                texts.add(text)
            case CodeType(co_consts=inner) | (tuple() | frozenset() as inner):
                values.extend(inner)
    return frozenset(texts)


def arguments_of(folder: Path, functions: set[str], position: int = 0) -> Iterator[str]:
    """The texts that are an argument of calls of these functions."""
    for path in folder.rglob("*.py"):
        for call in calls_and_texts(path)[0]:
            if len(call.args) > position:
                name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                if name in functions:
                    yield from texts_in(call.args[position])


def help_texts(text: str) -> Iterator[str]:
    """The parts of a help text that are translated one by one: paragraphs, and comments of examples."""
    for paragraph in cleandoc(text).split("\n\n"):
        if not has_examples(paragraph):
            yield " ".join(paragraph.split())
            continue
        for line in paragraph.splitlines():
            if match := COMMENT.fullmatch(line):
                yield match[2]
            elif not line.startswith("  "):
                yield line


def commands() -> Iterator[click.Command]:
    """Every command, with those inside groups."""
    context = click.Context(cli)
    for name in Commands.summaries:
        command = cli.get_command(context, name)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from command.commands.values()


def texts_of_help() -> Iterator[str]:
    yield from help_texts(cli.help or "")
    yield from (summary for _, summary in Commands.summaries.values())
    for command in commands():
        yield from help_texts(command.help or "")
        yield from (param.help for param in command.params if isinstance(param, click.Option) and param.help)


def texts_of_click() -> Iterator[str]:
    """What click says itself, as its sources mark it for gettext."""
    yield from ("[OPTIONS]", "COMMAND [ARGS]...", "required")
    for position in (0, 1):
        yield from arguments_of(Path(click.__file__).parent, {"_", "ngettext"}, position)


def examples() -> Iterator[str]:
    """The lines of help that are shown as they are, unless the catalogue has another task for them."""
    for command in (cli, *commands()):
        yield from (line.strip() for line in (command.help or "").splitlines())


def texts_of_templates(folder: Path) -> Iterator[str]:
    """What the templates of the panel say: the texts in calls of `_`."""
    environment = jinja2.Environment(autoescape=True)
    for path in folder.glob("*.html"):
        for call in environment.parse(path.read_text("utf-8")).find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name == "_" and isinstance(call.args[0], nodes.Const):
                yield call.args[0].value


@cache
def texts_of(package: str) -> frozenset[str]:
    """Every text of a package that must have a translation."""
    texts = set(arguments_of(FOLDER / package, MARKERS.get(package, {"translate", "mark"})))
    for position in (1, 2):  # after the place in a file: what is wrong, and what to do
        texts |= set(arguments_of(FOLDER / package, {"problem"}, position))
    if package == "cli":
        texts |= set(texts_of_help())
    if package == "evals":
        texts |= {suite.description for suite in shipped_suites("en")}
    if package == "serve/panel":
        texts |= set(texts_of_templates(FOLDER / package / "templates")) | set(ROLES)
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
    constants = {text for path in FOLDER.rglob("*.py") for text in constants_of(path)}
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
    assert error_texts(error) == ("There is no tool called 'hammer'.", "Known: saw, drill. Buy one.")


ERRORS = {
    *errors.__all__,
    "ContentError",
    "LoadProblem",
    "HeaderError",
    "UnusablePartError",
    "YamlError",
    "YamlSizeError",
    "PointerError",
} - {
    "ApiError",
    "IllegalEvent",
}
"""Whose texts have a translation in the `zh.json` of the whole package. A bug needs none."""

UNTRANSLATED = (
    "testing",
    "serve/gateway/client_tools.py",
    "serve/gateway/quotas.py",
    "serve/gateway/run_service.py",
    "serve/gateway/shared/managed_keys.py",
)
"""Modules whose errors no command and no run shows."""


def numbered(text: str, holes: str) -> str:
    """The text with `{0}`, `{1}` … in place of what fits the regular expression `holes`."""
    numbers = count()
    return re.sub(holes, lambda _: f"{{{next(numbers)}}}", text)


def pattern_of(node: ast.AST) -> str:
    """A text in the code with numbers for its values, without a place before a colon and a sentence before its own."""
    match node:
        case ast.JoinedStr(values=values):
            parts = [str(part.value) if isinstance(part, ast.Constant) else None for part in values]
        case ast.Constant(value=str(text)):
            parts = [text]
        case _:
            return ""
    text = "".join("\0" if part is None else part.replace("{", "{{").replace("}", "}}") for part in parts)
    while (place := re.match(r"[^\sA-Z{}]+: |\0 (?=[A-Z][a-z])", text)) and re.search(
        "[A-Za-z]{2,}", text[place.end() :]
    ):
        text = text[place.end() :]
    return numbered(text, "\0")


def texts_of_errors(node: ast.AST) -> Iterator[str]:
    """What a call of an error is given as message and hint."""
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            yield from texts_of_errors(body)
            yield from texts_of_errors(orelse)
        case ast.Constant() | ast.JoinedStr():
            if re.search("[A-Za-z]{2,}.* ", re.sub(r"^\S+: |{\d}", "", pattern := pattern_of(node))):
                yield pattern


def test_every_error_has_a_chinese_text() -> None:
    """Errors are raised in English; `translate_error` finds the Chinese text of their patterns."""
    missing = set()
    for path in FOLDER.rglob("*.py"):
        if path.relative_to(FOLDER).as_posix().startswith(UNTRANSLATED):
            continue
        for call in calls_and_texts(path)[0]:
            if getattr(call.func, "id", "") in ERRORS:
                arguments = [*call.args, *(word.value for word in call.keywords if word.arg in ("message", "hint"))]
                missing |= {text for argument in arguments for text in texts_of_errors(argument)}
    elsewhere = set().union(*(chinese_texts(package) for package in PACKAGES))  # a translator marks it there
    assert sorted(missing - chinese_texts("").keys() - elsewhere) == []


def test_every_chinese_text_of_an_error_is_used() -> None:
    paths = list(FOLDER.rglob("*.py"))
    used = {pattern_of(node) for path in paths for node in calls_and_texts(path)[1]}
    used |= {numbered(text, r"{[^{}]*}|%[.\d]*[dfrs]") for path in paths for text in constants_of(path)}
    system = {os.strerror(code) for code in errno.errorcode}
    assert sorted(chinese_texts("").keys() - used - system) == []


def test_a_chinese_text_of_an_error_has_the_values_of_the_english_one() -> None:
    catalog = chinese_texts("")
    assert [english for english in catalog if not fields(catalog[english]) <= fields(english)] == []


def test_no_sentence_of_an_error_is_too_short_to_be_recognised() -> None:
    """A pattern of few letters counts only within another one: as a sentence it would stay in English."""
    sentences = [english for english in chinese_texts("") if english[0].isupper() and english.endswith(".")]
    texts = {english: numbered(english, r"{\d}").format(*["x"] * 9) for english in sentences}
    assert [english for english, text in texts.items() if translate_error(text, "zh") == text] == []


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("openai:m answered HTTP 401: Incorrect key. Wait.", "openai:m 返回 HTTP 401：Incorrect key. Wait."),
        ("openai:m answered HTTP 503 without a message.", "openai:m 返回 HTTP 503，没有附带说明。"),
        ("Known: a, b.", "可用的有：a, b。"),
        ("a.yaml:3: the table is not UTF-8 text.", "a.yaml:3: 表不是 UTF-8 文本。"),
        (
            "The workspace 'w' cannot be opened: No such file or directory.",
            "无法打开工作区 'w'：没有这个文件或文件夹。",
        ),
        ("openai:m gave no reply within 5 s. Check the address.", "openai:m 没有在 5 秒内回复。请检查地址。"),
        ("After 3 attempts: openai:m gave no reply within 5 s.", "尝试 3 次后：openai:m 没有在 5 秒内回复。"),
        (
            "The provider is out of order; try again later. The provider asks for a wait of 3 s, and 1 s are left.",
            "模型提供商暂时不可用，请稍后重试。模型提供商要求等待 3 秒，而只剩 1 秒。",
        ),
        ("It is empty. Something else. Give another.", "内容为空。Something else. 请另给一个。"),
        ("It is not a PDF.", "不是 PDF。"),
        ("无法加载：Two tools are called 'a'.", "无法加载：有两个名为 'a' 的工具。"),
        ("a text: of another library", "a text: of another library"),
        ("", ""),
    ],
)
def test_a_text_of_an_error_is_translated_sentence_by_sentence(english: str, chinese: str) -> None:
    assert translate_error(english, "zh") == chinese
    assert translate_error(english) == english


def test_the_hint_of_an_error_is_translated_apart_from_its_message() -> None:
    error = ToolSourceError("It is a folder.", source="d", hint="Give the path of the document in it.")
    assert error_texts(error, "zh") == ("d: 它是文件夹。", "请给出其中文档的路径。")


@pytest.mark.parametrize(
    "text",
    [
        *(".", "...", "Upstream busy: ...", "Please wait. ... then retry", "No such file: ."),
        *("line too long", "The key is revoked", "it failed after two steps", "server said: nothing"),
        "The upstream replied with an HTML page of 502 Bad Gateway",
        "x" * 100_000,
    ],
)
def test_a_foreign_text_stays_as_it_is(text: str) -> None:
    assert translate_error(text, "zh") == text
