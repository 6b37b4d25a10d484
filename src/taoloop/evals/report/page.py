"""The report of `tao eval --html`: one page that loads nothing and runs nothing, light or dark as the device is."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from taoloop.evals.report.markup import inert, tag
from taoloop.evals.report.sections import ReportSections, Section
from taoloop.evals.results import Results, translate, write_whole

PARTS_STYLE = "parts.css"
"""The file with the look of the parts, for whoever shows them in a page of their own."""


def write_page(results: Results, path: Path, language: str = "en") -> None:
    """Write the page to a file, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    write_whole(path, page(results, language))


def page(results: Results, language: str = "en") -> str:
    """The whole page in `en` or `zh`."""
    title = translate("Evaluation: {suite}", language, suite=results.suite)
    style = style_text("page.css") + style_text(PARTS_STYLE)
    policy = f"default-src 'none'; style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    sections = ReportSections(results, language, _run_text).sections()
    links = (tag("a", inert(section.title), href=f"#{section.id}") for section in sections if section.title)
    facts = (tag("span", inert(fact)) for fact in facts_of(results, language))
    body = (
        tag("h1", inert(title)),
        tag("p", *facts, kind="meta"),
        tag("nav", *links),
        tag("main", *map(_section, sections)),
        _footer(results, language),
    )
    return (
        f'<!doctype html>\n<html lang="{"zh-CN" if language == "zh" else "en"}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{inert(title)}</title>\n<style>{style}</style>\n</head>\n{tag('body', *body)}\n</html>\n"
    )


def facts_of(results: Results, language: str | None = None) -> Iterator[str]:
    """What the results are of, each in a few words."""
    cases = len({trial.case_id for trial in results.trials})
    yield f"{datetime.fromtimestamp(results.created_at, UTC):%Y-%m-%d %H:%M} UTC"
    if cases:
        yield translate("{number} case|{number} cases", language, n=cases, number=f"{cases:,}")
        yield translate(
            "{number} trial|{number} trials", language, n=len(results.trials), number=f"{len(results.trials):,}"
        )
    n = len(results.configurations)
    yield translate("{n} configuration|{n} configurations", language, n=n)
    yield f"taoloop {results.version}"
    yield translate("suite {digest}", language, digest=results.digest[:12])


def style_text(name: str) -> str:
    """A style sheet of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _section(section: Section) -> str:
    heading = [tag("h2", inert(section.title))] if section.title else []
    return tag("section", *heading, section.body, id=section.id)


def _footer(results: Results, language: str) -> str:
    if not results.database:
        return ""
    text = translate("Each run opens with {show} and in {panel}.", language, show="\0", panel="\1")
    commands = (f"tao show RUN --db {results.database}", f"tao panel --db {results.database}")
    for number, command in enumerate(commands):
        text = text.replace(chr(number), tag("code", inert(command)))
    return tag("footer", tag("p", text))


def _run_text(run_id: str) -> str:
    return tag("code", inert(run_id))


def _digest(style: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}"
