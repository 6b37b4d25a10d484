"""Build the documentation site in both languages, with search, an API reference from docstrings, and llms.txt.

Run: scripts/docs [TARGET]. The pages are docs/*.md (English) and docs/*.zh.md (Chinese); the Chinese site shows the
English page where there is no Chinese one. The site is written to build/site by default. Only the diagrams of the page
on the architecture need a network: the theme loads Mermaid from unpkg.com. Without it they are shown as their source.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
REPOSITORY = "https://github.com/taoloop/taoloop"
SITE = "https://taoloop.github.io/taoloop/"

SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Start", "入门", ("index", "guide", "examples", "recipes", "coming-from", "providers")),
    (
        "Build",
        "构建",
        (
            *("tools", "tool-file", "openapi", "openapi-calls", "graphql", "mcp", "sql", "documents", "fetch"),
            *("web-search", "patterns", "graph", "skills", "testing", "evaluation", "stored-runs"),
        ),
    ),
    ("Trust", "信任", ("security", "unattended", "approvals", "evidence", "recovery", "undo", "audit", "handles")),
    (
        "Serve",
        "服务",
        (
            *("panel", "gateway", "gateway-api", "gateway-protocols", "gateway-config", "gateway-operation"),
            *("fleet", "fleet-temporal", "postgres"),
        ),
    ),
    ("Reference", "参考", ("cli", "errors", "benchmarks", "api", "modules", "architecture", "changelog")),
)
"""The sections of the navigation, by reader: English title, Chinese title, pages in order."""


def build(target: Path) -> None:
    """Build both sites: English in `target`, Chinese in `target/zh`.

    Raises:
        subprocess.CalledProcessError: the site builder found a broken page or link.
    """
    staging = ROOT / "build" / "docs"
    shutil.rmtree(staging, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    for language in ("en", "zh"):
        folder = staging / language
        write_pages(folder / "docs", language)
        config = folder / "zensical.toml"
        config.write_text(config_text(language), encoding="utf-8")
        subprocess.run(  # noqa: S603  # our own command line
            [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", config],
            cwd=folder,
            check=True,
        )
        shutil.copytree(folder / "site", target if language == "en" else target / "zh", dirs_exist_ok=True)
    (target / "llms.txt").write_text(llms_index(staging / "en" / "docs"), encoding="utf-8")
    (target / "llms-full.txt").write_text(llms_full(staging / "en" / "docs"), encoding="utf-8")


def write_pages(folder: Path, language: str) -> None:
    """Stage the pages of one language under the names that the navigation has."""
    folder.mkdir(parents=True)
    for _, _, pages in SECTIONS:
        for page in pages:
            (folder / f"{page}.md").write_text(page_text(page, language), encoding="utf-8")
    for schema in DOCS.glob("*.schema.json"):
        shutil.copy(schema, folder)
    for image in (*DOCS.glob("*.svg"), *DOCS.glob("*.png")):
        shutil.copy(image, folder)


def page_text(page: str, language: str) -> str:
    """The text of a page with its links as the site needs them."""
    suffix = ".zh.md" if language == "zh" else ".md"
    match page:
        case "index":
            text = (ROOT / f"README{suffix}").read_text(encoding="utf-8").replace("docs/", "")
        case "architecture" | "changelog":
            path = ROOT / f"{page.upper()}{suffix}"
            text = (path if path.exists() else path.with_name(f"{page.upper()}.md")).read_text(encoding="utf-8")
            text = text.replace("](docs/", "](")
        case "modules":
            text = _load_script("make_modules").page()
        case "api":
            api = _load_script("make_api")
            blocks = [_api_block(module, api.lazy_names(module)) for module in api.public_modules()]
            text = "\n\n".join(["# API", *blocks]) + "\n"
        case _:
            path = DOCS / f"{page}{suffix}"
            text = (path if path.exists() else DOCS / f"{page}.md").read_text(encoding="utf-8")
    return language_link(site_links(plain_fences(text)), page, language)


def language_link(text: str, page: str, language: str) -> str:
    """The link to the page in the other language, which is on the other site."""
    target = ("../" if language == "zh" else "zh/") + ("" if page == "index" else f"{page}/")
    return re.sub(r"\[(中文|English)\]\([^)]*\)", rf"[\1]({target})", text, count=1)


def _api_block(module: str, lazy_names: list[str]) -> str:
    """The instruction to show the public names of a module; those that it imports at their first use are listed."""
    return f"::: {module}" + (f"\n    options:\n      members: {json.dumps(lazy_names)}" if lazy_names else "")


def plain_fences(text: str) -> str:
    """Fences with their language alone: what follows it is for the tests of the pages. A file name becomes a title."""
    text = re.sub(r"^(\s*`{3,})(\w+) (?:[\w ]* )?([\w-]+\.\w+)$", r'\1\2 title="\3"', text, flags=re.MULTILINE)
    return re.sub(r"^(\s*`{3,}\w+) (?!title=).*$", r"\1", text, flags=re.MULTILINE)


def site_links(text: str) -> str:
    """Links between the pages of the site; what is not on it is linked in the repository."""
    text = re.sub(r"\]\((?:\.\./)?README(?:\.zh)?\.md(#[^)]*)?\)", r"](index.md\1)", text)
    text = re.sub(
        r"\]\((?:\.\./)?(ARCHITECTURE|CHANGELOG)(?:\.zh)?\.md", lambda match: f"]({match[1].lower()}.md", text
    )
    text = re.sub(r"\]\(([\w-]+)\.zh\.md", r"](\1.md", text)
    text = re.sub(r"\]\((?:\.\./)((?!http)[\w./-]+)\)", rf"]({REPOSITORY}/blob/main/\1)", text)
    return re.sub(
        r"\]\(((?:CONTRIBUTING|SECURITY)\.md|LICENSE|NOTICE|(?:examples|benchmarks|scripts)/[^)]*)\)",
        rf"]({REPOSITORY}/blob/main/\1)",
        text,
    )


def _load_script(name: str) -> Any:
    """A script of this folder as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"docs/{name}.py cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def config_text(language: str) -> str:
    """The configuration of the site builder, as TOML (every value of it is also valid JSON)."""
    chinese = language == "zh"
    nav = [{(zh if chinese else en): [f"{page}.md" for page in pages]} for en, zh, pages in SECTIONS]
    theme: dict[str, Any] = {
        "language": language,
        "font": False,  # else each page loads fonts from Google
        "features": [
            "navigation.tabs",
            "navigation.indexes",
            "navigation.top",
            "search.highlight",
            "content.code.copy",
        ],
    }
    alternate = [
        {"name": "English", "link": SITE, "lang": "en"},
        {"name": "简体中文", "link": f"{SITE}zh/", "lang": "zh"},
    ]
    lines = [
        "[project]",
        'site_name = "taoloop"',
        f"site_url = {json.dumps(SITE + ('zh/' if chinese else ''))}",
        f"repo_url = {json.dumps(REPOSITORY)}",
        f"nav = [{', '.join(_inline(item) for item in nav)}]",
        "[project.theme]",
        *(f"{key} = {json.dumps(value)}" for key, value in theme.items()),
        "[project.extra]",
        f"alternate = [{', '.join(_inline(item) for item in alternate)}]",
        "[project.markdown_extensions.tables]",
        "[project.markdown_extensions.toc]",
        "permalink = true",
        'slugify = {object = "pymdownx.slugs.slugify", kwds = {case = "lower"}}',  # keeps Chinese headings
        "[project.markdown_extensions.pymdownx.highlight]",
        "[project.markdown_extensions.pymdownx.superfences]",
        'custom_fences = [{name = "mermaid", class = "mermaid", format = "pymdownx.superfences.fence_code_format"}]',
        "[project.plugins.mkdocstrings.handlers.python]",
        f"paths = {json.dumps([str(ROOT / 'src')])}",
        "[project.plugins.mkdocstrings.handlers.python.options]",
        'docstring_style = "google"',
        "show_source = false",
        "show_root_heading = true",
        "show_root_full_path = true",
    ]
    return "\n".join(lines) + "\n"


def _inline(table: dict[str, Any]) -> str:
    return (
        "{"
        + ", ".join(f"{json.dumps(key, ensure_ascii=False)} = {json.dumps(value)}" for key, value in table.items())
        + "}"
    )


def llms_index(folder: Path) -> str:
    """The index that https://llmstxt.org describes: a line for each page, by section."""
    parts = [
        "# taoloop\n\n> A ReAct agent runtime whose every action can be checked, recorded, stopped and replaced.\n"
    ]
    for title, _, pages in SECTIONS:
        rows = "".join(f"- [{_title(folder / f'{page}.md')}]({SITE}{page}/)\n" for page in pages)
        parts.append(f"## {title}\n\n{rows}")
    return "\n".join(parts)


def llms_full(folder: Path) -> str:
    """All pages in one text, without those that are generated from the code."""
    generated = {"api", "modules"}
    pages = [page for _, _, names in SECTIONS for page in names if page not in generated]
    return "\n\n".join((folder / f"{page}.md").read_text(encoding="utf-8") for page in pages)


def _title(path: Path) -> str:
    match = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else path.stem


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build" / "site")
