"""A run as a report that people read outside the terminal: plain parts, which a page or a text is made of."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from taoloop.cli.translation import join_sentences, translate
from taoloop.cli.ui.stdio import escape_invisible, one_line
from taoloop.core.decision import Act, Answer
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    ApprovalGiven,
    ApprovalRefused,
    Event,
    Finished,
    ModelReplied,
    Observed,
    RunStarted,
)
from taoloop.core.stored_events import ChainReport
from taoloop.core.trace import Trace
from taoloop.translation import mark

_VERDICTS = mark({"allow": "allowed", "ask": "a person decides", "deny": "denied"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One event of a run as a report shows it."""

    seq: int
    """The number of the event in the run."""
    at: str
    """When it was written, in UTC."""
    look: str
    """The colour of the event, as a class of the page."""
    title: str
    """The head line."""
    facts: list[tuple[str, str]]
    """Short facts beside the head line: name and text."""
    texts: list[tuple[str, str, str]]
    """Texts: name, text, and form, which is `text`, `code` or `folded` (code that is shown on demand)."""
    link: str
    """The hash of the event, in hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run for people to read: what it is, its outcome, whether it is intact, and its events."""

    run_id: str
    """The run."""
    language: str
    """The language of the report: that of the run."""
    title: str
    """The heading of the report."""
    task: str
    """The task of the run."""
    answer: str
    """The answer, or why there is none; empty while the run is going on."""
    whole: bool
    """Whether the run is as it was written."""
    verdict: str
    """The same, in words."""
    facts: list[tuple[str, str]]
    """What the summary lists: name and text."""
    parts: list[Part]
    """The events in order."""

    def fact(self, name: str, text: str) -> str:
        """A short fact on one line."""
        if not name:
            return text
        return f"{name}{self.text(': ')}{text}"

    def text(self, text: str) -> str:
        """A heading in the language of the report."""
        return translate(text, self.language)


def report_of(trace: Trace, chain: ChainReport, links: list[str]) -> Report:
    """The report of a run. `links` are the hashes of its events, in order."""
    language = "zh" if trace.agent.language == "zh" else "en"

    def say(text: str, /, **values: object) -> str:
        return translate(text, language, **values)

    flaw = chain.first
    verdict = (
        say("As it was written: the hash chain of {n} events is whole.", n=chain.events)
        if flaw is None
        else say("NOT as it was written: {flaw}.", flaw=flaw.text)
    )
    finished = trace.finished
    parts = [_part(event, link, say) for event, link in zip(trace.events, links, strict=True)]
    return Report(
        run_id=trace.run_id,
        language=language,
        title=say("Run report"),
        task=trace.task,
        answer="" if finished is None else finished.answer or finished.reason,
        whole=chain.whole,
        verdict=verdict,
        facts=[(name, text) for name, text in _facts(trace, chain, say) if text],
        parts=parts,
    )


Say = Callable[..., str]


def _facts(trace: Trace, chain: ChainReport, say: Say) -> Iterator[tuple[str, str]]:
    agent, started = trace.agent, trace.started
    yield say("Status"), trace.status
    yield say("Agent"), f"{agent.name} · {agent.strategy} · {agent.dialect}"
    yield say("Model"), agent.model
    yield say("Started"), _time(trace.events[0].at)
    yield say("Last event"), _time(trace.events[-1].at)
    yield say("Steps"), str(trace.step_count)
    yield say("Tool calls"), str(trace.tool_calls)
    yield say("Tokens"), f"{trace.usage.total_tokens:,}"
    yield say("Cost"), say("unknown") if trace.unpriced_calls else f"{trace.cost_usd:.6g} USD"
    yield say("Part of run"), (started.parent or "") if started else ""
    yield say("Continues run"), (started.after or "") if started else ""
    yield say("Head of the chain"), chain.head


def _part(event: Event, link: str, say: Say) -> Part:
    look, title, facts, texts = _shape(event, say)
    return Part(
        seq=event.seq,
        at=_time(event.at),
        look=look,
        title=title,
        facts=[(name, text) for name, text in facts if text],
        texts=[(name, text, form) for name, text, form in texts if text],
        link=link,
    )


_Shape = tuple[str, str, list[tuple[str, str]], list[tuple[str, str, str]]]


def _shape(event: Event, say: Say) -> _Shape:
    match event.fact:
        case RunStarted() as fact:
            return "quiet", say("Task"), [], [("", fact.task, "text")]
        case ModelReplied() as fact:
            return _reply(fact, say)
        case ActionRequested() as fact:
            facts = [(say("Verdict"), say(_VERDICTS[fact.verdict])), (say("Tier"), fact.tier or "")]
            facts.append((say("Reasons"), say("; ").join(fact.reasons)))
            look = {"allow": "action", "ask": "ask", "deny": "bad"}[fact.verdict]
            title = f"{say('Action')} · {fact.tool} · {fact.call_id}"
            return look, title, facts, [(say("Arguments"), _data(fact.args), "code")]
        case ApprovalGiven() as fact:
            texts = [(say("Note"), fact.note, "text")]
            if fact.args is not None:
                texts.append((say("Arguments instead of the model's"), _data(fact.args), "code"))
            return "good", f"{say('Allowed by a person')} · {fact.call_id}", [(say("By"), fact.by)], texts
        case ApprovalRefused() as fact:
            note = [(say("Note"), fact.note, "text")]
            return "bad", f"{say('Refused by a person')} · {fact.call_id}", [(say("By"), fact.by)], note
        case ActionStarted() as fact:
            return "quiet", f"{say('Started')} · {fact.call_id} · {say('attempt {n}', n=fact.attempt)}", [], []
        case Observed() as fact:
            return _observation(fact, say)
        case Finished() as fact:
            texts = [(say("Answer"), fact.answer or "", "text"), (say("Reason"), fact.reason, "text")]
            look = "good" if fact.status == "completed" else "bad"
            return look, f"{say('End')} · {fact.status}", [], texts
        case fact:
            fields = {name: value for name, value in asdict(fact).items() if value not in (None, "", (), [], {})}
            return "quiet", fact.kind, [], [("", _data(fields), "code")]


def _reply(fact: ModelReplied, say: Say) -> _Shape:
    facts = [(say("Model"), fact.model), (say("Tokens"), f"{fact.usage.input_tokens} + {fact.usage.output_tokens}")]
    facts.append(("", f"{fact.latency_s:.2f} s"))
    if fact.cost_usd is not None:
        facts.append((say("Cost"), f"{fact.cost_usd:.6g} USD"))
    texts: list[tuple[str, str, str]] = []
    match fact.decision:
        case Act(reason=reason):
            texts.append((say("Thought"), reason, "text"))
        case Answer(text=text, reason=reason):
            texts += [(say("Thought"), reason, "text"), (say("Answer"), text, "text")]
        case _:
            pass
    calls = "".join(f"\n→ {call.name} {call.arguments}" for call in fact.tool_calls)
    texts.append((say("Reply as it came"), f"{fact.text}{calls}".strip(), "folded"))
    purpose = "" if fact.purpose == "decide" else f" · {fact.purpose}"
    return "thought", f"{say('Step {n}', n=fact.step)}{purpose}", facts, texts


def _observation(fact: Observed, say: Say) -> _Shape:
    facts = [("", f"{fact.latency_s:.2f} s"), (say("In run"), fact.child or "")]
    if fact.artifact is not None:
        facts.append(
            (say("Complete output stored as"), f"{fact.artifact} ({fact.size_chars:,} · sha256 {fact.output_digest})")
        )
    texts = [("", fact.output, "code"), (say("Printed"), fact.printed, "code")]
    if fact.error is not None:
        texts.insert(0, (fact.error.code, join_sentences(fact.error.message, fact.error.hint), "text"))
    title = say("Observed") if fact.ok else say("Failed")
    return "good" if fact.ok else "bad", f"{title} · {fact.call_id}", facts, texts


def _data(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&@]|:(?=//))")


def markdown(report: Report) -> str:
    """The whole text."""
    lines = [f"# {report.title}", "", f"`{report.run_id}`", "", f"**{_escaped(report.verdict)}**", ""]
    lines += [f"## {report.text('Task')}", "", *_fenced_text(report.task), ""]
    if report.answer:
        lines += [f"## {report.text('Answer')}", "", *_fenced_text(report.answer), ""]
    lines += [f"- {_escaped(report.fact(name, text))}" for name, text in report.facts]
    lines += ["", f"## {report.text('What happened')}", ""]
    for part in report.parts[1:]:
        lines += _markdown_part(report, part)
    return "\n".join(lines)


def _markdown_part(report: Report, part: Part) -> list[str]:
    lines = [f"### {part.seq} {_escaped(part.title)}", "", _escaped(part.at), ""]
    lines += [f"- {_escaped(report.fact(name, text))}" for name, text in part.facts]
    for name, text, _ in part.texts:
        lines += ["", *([_escaped(name), ""] if name else []), *_fenced_text(text)]
    return [*lines, "", f"`{part.link}`", ""]


def _fenced_text(text: str) -> list[str]:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", escape_invisible(text.replace("\r\n", "\n").expandtabs(4)), fence]


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text))


def page(report: Report) -> str:
    """The whole page. Untrusted text is escaped, and what would not show as itself is written out."""
    style = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    policy = f"default-src 'none'; style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    language = "zh-CN" if report.language == "zh" else "en"
    title = f"{report.title} · {report.run_id}"
    rows = "".join(f"<tr><th>{_inert(name)}</th><td>{_inert(text)}</td></tr>" for name, text in report.facts)
    hashes = "".join(f"<tr><th>{part.seq}</th><td class=hash>{_inert(part.link)}</td></tr>" for part in report.parts)
    answer = f"<h2>{report.text('Answer')}</h2><p class=big>{_inert(report.answer)}</p>" if report.answer else ""
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="viewport" content="width=device-width">\n'
        f"<title>{_inert(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<h1>{report.title}</h1>\n<p class=id>{_inert(report.run_id)}</p>\n"
        f'<p class="verdict{"" if report.whole else " bad"}">{_inert(report.verdict)}</p>\n'
        f"<h2>{report.text('Task')}</h2><p class=big>{_inert(report.task)}</p>\n{answer}\n"
        f"<h2>{report.text('Summary')}</h2>\n<table>{rows}</table>\n"
        f"<h2>{report.text('What happened')}</h2>\n{''.join(_article(report, part) for part in report.parts[1:])}"
        f"<h2>{report.text('Hashes of the events')}</h2>\n<details><summary>{len(report.parts)}</summary>"
        f"<table>{hashes}</table></details>\n</body>\n</html>\n"
    )


def _article(report: Report, part: Part) -> str:
    facts = "".join(f"<span>{_inert(report.fact(name, text))}</span>" for name, text in part.facts)
    body = "".join(_html_text(*text) for text in part.texts)
    return (
        f'<article class="{part.look}"><header><span class=seq>{part.seq}</span><h3>{_inert(part.title)}</h3>'
        f"<span class=when>{_inert(part.at)}</span></header>"
        f"{f'<p class=facts>{facts}</p>' if facts else ''}{body}</article>\n"
    )


def _html_text(name: str, text: str, form: str) -> str:
    if form == "folded":
        return f"<details><summary>{_inert(name)}</summary><pre>{_inert(text)}</pre></details>"
    head = f"<p class=name>{_inert(name)}</p>" if name else ""
    return f"{head}<pre>{_inert(text)}</pre>" if form == "code" else f"{head}<p class=text>{_inert(text)}</p>"


def _inert(text: str) -> str:
    return html.escape(escape_invisible(text.replace("\r\n", "\n").expandtabs(4)), quote=True)


def _digest(style: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}"
