"""A run as a report that people read outside the terminal and the panel: a page, or a text, of the same entries."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from taoloop.core.events import Event
from taoloop.core.stored_events import ChainedEvent, ChainReport, chained_events
from taoloop.core.text import escape_invisible
from taoloop.core.texts import task_with_attachments
from taoloop.core.trace import Trace
from taoloop.core.views.event_entries import Detail, EntryText, EventEntry, event_entries
from taoloop.core.views.trace_export import to_line
from taoloop.errors import IllegalEvent, JournalCorrupt
from taoloop.journals.base import Journal
from taoloop.runtime.texts import TEXTS
from taoloop.translation import translate_error

FORMATS: Final = {"jsonl": "application/x-ndjson", "html": "text/html", "md": "text/markdown"}
"""The formats of an export, and the media type of each."""


class ChainedRun(NamedTuple):
    """A run as it is stored."""

    chain: ChainReport
    """Whether it is as it was written."""
    rows: list[ChainedEvent]
    """Its events with their hashes."""


async def stored_run(journal: Journal, run_id: str) -> ChainedRun:
    """A run with the hashes of its events; those of a journal that keeps none are computed.

    Raises:
        RunNotFound: there is no such run.
    """
    chain = await journal.verify(run_id)
    if (linked := getattr(journal, "linked", None)) is not None:
        return ChainedRun(chain, await linked(run_id))
    return ChainedRun(chain, list(chained_events(run_id, await journal.load(run_id))))


def export(run: ChainedRun, form: str) -> str:
    """The run as a text of one of `FORMATS`: JSON lines with every hash, or a page or a text for people.

    Raises:
        JournalCorrupt: an event cannot be read, so that there is nothing to show people; JSON lines have what is there.
    """
    run_id = run.chain.run_id
    if form == "jsonl":
        return "".join(f"{to_line(run_id, row)}\n" for row in run.rows)
    try:
        trace = Trace(run_id, (Event(row.seq, row.at, row.decode()) for row in run.rows))
        report = Report(trace, run.chain, [row.link.hex() for row in run.rows])
    except (JournalCorrupt, IllegalEvent, IndexError) as error:
        why = run.chain.first.text if run.chain.first is not None else translate_error(" ".join(str(error).split()))
        raise TEXTS.run_error(JournalCorrupt, "report_unreadable", {"run_id": run_id, "reason": why}) from error
    return page(report) if form == "html" else markdown(report)


class Report:
    """A run for people to read: what it is, its outcome, whether it is intact, and its entries.

    `links` are the hashes of the events, in order.
    """

    def __init__(self, trace: Trace, chain: ChainReport, links: Sequence[str]) -> None:
        self.run_id, self.whole = trace.run_id, chain.whole
        self.language = "zh" if trace.agent.language == "zh" else "en"
        self.task = trace.task if trace.started is None else task_with_attachments(trace.started)
        self.answer = "" if trace.finished is None else trace.finished.answer or trace.finished.reason
        if chain.first is None:
            self.verdict = self.text("whole", n=chain.events)
        else:
            self.verdict = self.text("changed", flaw=chain.first.text)
        self.facts = list(self._facts(trace, chain))
        self.entries = event_entries(trace.events, self.language)
        self.links = links

    def text(self, name: str, /, **values: object) -> str:
        """A text in the language of the report: that of the run."""
        return TEXTS.text(self.language, f"report_{name}", **values)

    def detail_texts(self, entry: EventEntry) -> Iterator[str]:
        """The short facts of an entry and the runs that it names, each on one line."""
        for detail in (*entry.details, *(Detail(link.name, link.run_id) for link in entry.links)):
            yield f"{detail.name}{self.text('colon')}{detail.text}" if detail.name else detail.text

    def _facts(self, trace: Trace, chain: ChainReport) -> Iterator[tuple[str, str]]:
        agent, started = trace.agent, trace.started
        yield self.text("status"), trace.status
        yield self.text("agent"), f"{agent.name} · {agent.strategy} · {agent.dialect}"
        yield self.text("model"), agent.model
        yield self.text("started"), _time(trace.events[0].at)
        yield self.text("updated"), _time(trace.events[-1].at)
        yield self.text("steps"), str(trace.step_count)
        yield self.text("calls"), str(trace.tool_calls)
        yield self.text("tokens"), f"{trace.usage.total_tokens:,}"
        yield self.text("cost"), self.text("unknown") if trace.unpriced_calls else f"{trace.cost_usd:.6g} USD"
        yield self.text("parent"), (started.parent or "") if started else ""
        yield self.text("after"), (started.after or "") if started else ""
        yield self.text("head"), chain.head


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&@]|:(?=//))")


def markdown(report: Report) -> str:
    """The whole text."""
    lines = [f"# {report.text('title')}", "", f"`{report.run_id}`", "", f"**{_escaped(report.verdict)}**", ""]
    lines += [f"## {report.text('task')}", "", *_fenced_text(report.task), ""]
    if report.answer:
        lines += [f"## {report.text('answer')}", "", *_fenced_text(report.answer), ""]
    colon = report.text("colon")
    lines += [f"- {_escaped(f'{name}{colon}{text}')}" for name, text in report.facts if text]
    lines += ["", f"## {report.text('events')}", ""]
    for entry, link in list(zip(report.entries, report.links, strict=True))[1:]:
        lines += [f"### {entry.seq} {_escaped(entry.title)}", "", _time(entry.at), ""]
        lines += [f"- {_escaped(text)}" for text in report.detail_texts(entry)]
        for part in entry.texts:
            lines += ["", *([_escaped(part.name), ""] if part.name else []), *_fenced_text(part.text)]
        lines += ["", f"`{link}`", ""]
    return "\n".join(lines)


def _fenced_text(text: str) -> list[str]:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", escape_invisible(text.replace("\r\n", "\n").expandtabs(4)), fence]


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(escape_invisible(text).split()))


def page(report: Report) -> str:
    """The whole page. Untrusted text is escaped, and what would not show as itself is written out."""
    style = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    policy = f"default-src 'none'; style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    language = "zh-CN" if report.language == "zh" else "en"
    heading = report.text("title")
    rows = "".join(f"<tr><th>{_inert(name)}</th><td>{_inert(text)}</td></tr>" for name, text in report.facts if text)
    hashes = "".join(
        f"<tr><th>{entry.seq}</th><td class=hash>{link}</td></tr>"
        for entry, link in zip(report.entries, report.links, strict=True)
    )
    articles = "".join(_article(report, entry) for entry in report.entries[1:])
    answer = f"<h2>{report.text('answer')}</h2><p class=big>{_inert(report.answer)}</p>" if report.answer else ""
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="viewport" content="width=device-width">\n'
        f"<title>{heading} · {_inert(report.run_id)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<h1>{heading}</h1>\n<p class=id>{_inert(report.run_id)}</p>\n"
        f'<p class="verdict{"" if report.whole else " bad"}">{_inert(report.verdict)}</p>\n'
        f"<h2>{report.text('task')}</h2><p class=big>{_inert(report.task)}</p>\n{answer}\n"
        f"<h2>{report.text('summary')}</h2>\n<table>{rows}</table>\n"
        f"<h2>{report.text('events')}</h2>\n{articles}"
        f"<h2>{report.text('hashes')}</h2>\n<details><summary>{len(report.entries)}</summary>"
        f"<table>{hashes}</table></details>\n</body>\n</html>\n"
    )


def _article(report: Report, entry: EventEntry) -> str:
    details = "".join(f"<span>{_inert(text)}</span>" for text in report.detail_texts(entry))
    body = "".join(map(_html_text, entry.texts))
    return (
        f'<article class="{entry.tone}"><header><span class=seq>{entry.seq}</span><h3>{_inert(entry.title)}</h3>'
        f"<span class=when>{_time(entry.at)}</span></header>"
        f"{f'<p class=facts>{details}</p>' if details else ''}{body}</article>\n"
    )


def _html_text(part: EntryText) -> str:
    name, text = _inert(part.name), _inert(part.text)
    if part.form == "folded":
        return f"<details><summary>{name}</summary><pre>{text}</pre></details>"
    head = f"<p class=name>{name}</p>" if name else ""
    return f"{head}<pre>{text}</pre>" if part.form == "code" else f"{head}<p class=text>{text}</p>"


def _inert(text: str) -> str:
    return html.escape(escape_invisible(text.replace("\r\n", "\n").expandtabs(4)), quote=True)


def _digest(style: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}"
