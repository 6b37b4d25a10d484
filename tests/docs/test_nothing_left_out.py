"""The pages name what the code has: events, modules, errors, tools, limits, statuses, lint codes, commands."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import TypeGuard

import pytest
from tests.docs.fenced import PAGES, ROOT, blocks

from taoloop import Limits, ToolCard, errors
from taoloop.cli.exit_codes import OF_STATUS, TABLE
from taoloop.config.agent_file import AgentFields
from taoloop.config.settings_reader import fields_of
from taoloop.core.events import FACTS
from taoloop.errors import TaoError
from taoloop.models.providers import PROVIDERS
from taoloop.tools.builtin.catalog import builtin_tools

SOURCE = ROOT / "src" / "taoloop"
READMES = ("README.md", "README.zh.md")
GUIDES = ("docs/guide.md", "docs/guide.zh.md")
PROVIDER_PAGES = ("docs/providers.md", "docs/providers.zh.md")
ERROR_PAGES = ("docs/errors.md", "docs/errors.zh.md")
TOOL_PAGES = ("docs/tools.md", "docs/tools.zh.md")
TESTING = ("docs/testing.md", "docs/testing.zh.md")
TRUST = [
    (f"docs/{name}.md", f"docs/{name}.zh.md")
    for name in ("approvals", "unattended", "recovery", "undo", "audit", "handles", "patterns")
]
WORLD = [
    (f"docs/{name}.md", f"docs/{name}.zh.md")
    for name in (
        "examples",
        "fetch",
        "web-search",
        "documents",
        "sql",
        "tool-file",
        "gateway",
        "gateway-api",
        "gateway-config",
        "gateway-operation",
    )
]
BOTH = [READMES, GUIDES, TESTING, PROVIDER_PAGES, ERROR_PAGES, TOOL_PAGES, *TRUST, *WORLD]


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def rows(page: str) -> dict[str, str]:
    """The rows of all tables of a page by what stands in backquotes at their beginning."""
    found: dict[str, str] = {}
    for line in text(page).splitlines():
        if match := re.match(r"\| (`[^|]+) \|", line):
            found |= dict.fromkeys(re.findall(r"`([^`]+)`", match[1]), line)
    return found


def error_classes() -> list[type[TaoError]]:
    return [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, TaoError)]


def test_every_event_stands_in_the_architecture_with_its_fields() -> None:
    table = rows("ARCHITECTURE.md")
    for fact in FACTS:
        for field in fields(fact):
            assert f"`{field.name}`" in table[fact.kind], f"{fact.kind}.{field.name}"
        named = re.findall(r"`([^`]+)`", table[fact.kind].split("|")[2])
        assert named == [field.name for field in fields(fact)]


def test_every_module_is_in_the_list_of_modules() -> None:
    spec = importlib.util.spec_from_file_location("make_modules", ROOT / "docs" / "make_modules.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    listed = set(re.findall(r"^\| `(\w+)` \|", module.page(), re.MULTILINE))
    assert listed == {path.stem for path in SOURCE.rglob("*.py")} - {"__init__"}


def undocumented_fields(node: ast.ClassDef) -> list[str]:
    """The public fields of a class that no docstring follows."""
    after = [*node.body[1:], None]
    return [
        f"{node.name}.{statement.target.id}"
        for statement, following in zip(node.body, after, strict=True)
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and not statement.target.id.startswith("_")
        and "ClassVar" not in ast.unparse(statement.annotation)
        and not (isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant))
    ]


RECORD_KINDS = ("dataclass", "NamedTuple", "TypedDict")


def is_public_record(node: ast.AST) -> TypeGuard[ast.ClassDef]:
    """A public dataclass, named tuple or typed dictionary: a class whose fields are read by others."""
    if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
        return False
    kinds = [*map(ast.unparse, node.decorator_list), *map(ast.unparse, node.bases)]
    return any(kind.startswith(RECORD_KINDS) for kind in kinds)


def test_every_field_of_a_public_dataclass_is_documented_at_the_field() -> None:
    sources = (path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    trees = (ast.parse(source) for source in sources if any(kind in source for kind in RECORD_KINDS))
    records = [node for tree in trees for node in ast.walk(tree) if is_public_record(node)]
    assert len(records) > 200
    assert [field for record in records for field in undocumented_fields(record)] == []


@pytest.mark.parametrize(("page", "retryable"), [(ERROR_PAGES[0], ("no", "yes")), (ERROR_PAGES[1], ("否", "是"))])
@pytest.mark.parametrize("error", error_classes())
def test_every_error_is_documented(error: type[TaoError], page: str, retryable: tuple[str, str]) -> None:
    row = rows(page)[error.__name__]
    assert f"| `{error.code}` | {retryable[error.retryable]} |" in row


@pytest.mark.parametrize("page", ERROR_PAGES)
def test_every_error_class_in_the_page_exists(page: str) -> None:
    listed = {name for name in rows(page) if name[0].isupper()}
    assert listed == {error.__name__ for error in error_classes()}


def test_both_pages_of_errors_have_the_same_codes() -> None:
    assert list(rows(ERROR_PAGES[0])) == list(rows(ERROR_PAGES[1]))


@pytest.mark.parametrize("page", TOOL_PAGES)
def test_every_built_in_tool_is_documented_with_its_tier(page: str) -> None:
    for name, tool in builtin_tools(None).items():
        assert f"| {tool.card.tier} |" in rows(page)[name]


@pytest.mark.parametrize("page", TOOL_PAGES)
def test_every_field_of_a_card_is_documented(page: str) -> None:
    assert {field.name for field in fields(ToolCard)} <= set(rows(page))


@pytest.mark.parametrize("page", TOOL_PAGES)
def test_every_lint_code_is_documented(page: str) -> None:
    codes = set(re.findall(r'code="(\w+)"', (SOURCE / "core" / "cards" / "card_lint.py").read_text(encoding="utf-8")))
    assert codes <= set(rows(page))


@pytest.mark.parametrize("page", GUIDES)
def test_every_limit_is_documented_with_its_default(page: str) -> None:
    table = rows(page)
    for field in fields(Limits):
        assert field.default is None or str(field.default) in table[field.name], field.name
        assert field.name in table


@pytest.mark.parametrize("page", GUIDES)
def test_every_field_of_an_agent_file_is_documented(page: str) -> None:
    known = fields_of(AgentFields)
    assert [name for name in known if f"`{name}`" not in text(page)] == []


@pytest.mark.parametrize("page", GUIDES)
def test_every_status_is_documented_with_its_exit_code(page: str) -> None:
    for status, code in OF_STATUS.items():
        assert f"| {code} |" in rows(page)[status]


@pytest.mark.parametrize("page", PROVIDER_PAGES)
def test_every_provider_is_documented_with_its_variables(page: str) -> None:
    for provider in PROVIDERS.values():
        row = next(line for line in text(page).splitlines() if line.startswith(f"| `{provider.name}`"))
        key = (provider.key_var,) if provider.needs_key else ()
        for name in (*key, provider.base_url_var, provider.model_var, provider.default_model):
            assert f"`{name}`" in row or not name
        assert all(f"`{name}`" in text(page) for name in provider.more_vars)


def test_the_pages_of_the_command_line_are_current() -> None:
    """After a change: python docs/make_cli.py."""
    path = ROOT / "docs" / "make_cli.py"
    spec = importlib.util.spec_from_file_location("make_cli", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for language, name in module.PAGES.items():
        assert text(f"docs/{name}") == module.page(language), "run: python docs/make_cli.py"
        assert all(f"| {code} |" in text(f"docs/{name}") for code in TABLE)


@pytest.mark.parametrize(("english", "chinese"), BOTH)
def test_both_languages_have_the_same_headings_and_kinds_of_blocks(english: str, chinese: str) -> None:
    levels = [[len(mark) for mark in re.findall(r"^(#+) ", prose(page), re.MULTILINE)] for page in (english, chinese)]
    assert levels[0] == levels[1]
    kinds = [[(block.language, block.words) for block in blocks(page)] for page in (english, chinese)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("pages", [GUIDES, TESTING, PROVIDER_PAGES, TOOL_PAGES])
def test_both_languages_of_a_guide_have_the_same_blocks(pages: tuple[str, str]) -> None:
    english, chinese = ([block.text for block in blocks(page)] for page in pages)
    assert english == chinese


@pytest.mark.parametrize("pages", TRUST)
def test_both_languages_have_the_same_code_but_for_its_comments(pages: tuple[str, str]) -> None:
    code = [[ast.dump(ast.parse(one.text)) for one in blocks(page) if one.language == "python"] for page in pages]
    assert code[0] == code[1]
    shown = [[one.text for one in blocks(page) if one.language not in ("python", "sh")] for page in pages]
    assert shown[0] == shown[1]


def test_the_readme_says_what_react_does_not_do() -> None:
    """S4-35."""
    assert "ReAct does not make a model more capable." in text("README.md")
    assert "ReAct 不会让模型变强。" in text("README.zh.md")


def test_every_example_is_on_the_page_of_examples_with_its_command() -> None:
    for page in ("docs/examples.md", "docs/examples.zh.md"):
        for example in (ROOT / "examples").glob("*.py"):
            assert f"python examples/{example.name}" in text(page), page


def test_both_pages_of_examples_name_the_same_decisions() -> None:
    tables = [text(page).rpartition("\n## ")[2].splitlines() for page in ("docs/examples.md", "docs/examples.zh.md")]
    english, chinese = ([line.count("|") for line in lines if line.startswith("|")] for lines in tables)
    assert english == chinese
    assert len(english) > 15


def test_no_message_of_a_sequence_diagram_has_a_semicolon_which_would_end_the_statement() -> None:
    diagrams = [block.text for block in blocks("ARCHITECTURE.md") if block.language == "mermaid"]
    sequences = [text for text in diagrams if text.startswith("sequenceDiagram")]
    assert sequences
    assert [line for text in sequences for line in text.splitlines() if ";" in line] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.is_file(), f"{page}: {target}"
        assert not anchor or anchor in anchors(path), f"{page}: {target}"


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md"])
def test_a_page_speaks_of_the_project_alone(page: str) -> None:
    found = re.search(r"\b[A-Z]\d-\d+\b|/(?:work|tmp|root)\b|\bshared/|pypi", text(page))
    assert found is None, found


def prose(page: str) -> str:
    """The page without its blocks."""
    return re.sub(r"^```.*?^```$", "", text(page), flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The names that headings can be linked by."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
