"""The report of a run as Markdown: every text in a fence that it cannot close, or escaped."""

from __future__ import annotations

import re

from taoloop.cli.report.model import Part, Report
from taoloop.cli.ui.terminal_text import escape_invisible, one_line

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&@]|:(?=//))")


def markdown(report: Report) -> str:
    """The whole text."""
    lines = [f"# {report.title}", "", f"`{report.run_id}`", "", f"**{_escaped(report.verdict)}**", ""]
    lines += [f"## {report.word('task')}", "", *_fence(report.task), ""]
    if report.answer:
        lines += [f"## {report.word('answer')}", "", *_fence(report.answer), ""]
    lines += [f"- {_escaped(report.fact(name, text))}" for name, text in report.facts]
    lines += ["", f"## {report.word('what')}", ""]
    for part in report.parts[1:]:
        lines += _part(report, part)
    return "\n".join(lines)


def _part(report: Report, part: Part) -> list[str]:
    lines = [f"### {part.seq} {_escaped(part.title)}", "", _escaped(part.at), ""]
    lines += [f"- {_escaped(report.fact(name, text))}" for name, text in part.facts]
    for name, text, _ in part.texts:
        lines += ["", *([_escaped(name), ""] if name else []), *_fence(text)]
    return [*lines, "", f"`{part.link}`", ""]


def _fence(text: str) -> list[str]:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", escape_invisible(text.replace("\r\n", "\n").expandtabs(4)), fence]


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text))
