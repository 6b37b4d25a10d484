"""A run as a report that people read outside the terminal: plain parts, which a page or a text is made of."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from taoloop.cli.translation import join_on_one_line, translate
from taoloop.cli.ui.stdio import one_line
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
from taoloop.core.text import escape_invisible
from taoloop.core.texts import task_with_images
from taoloop.core.trace import Trace
from taoloop.translation import mark

_VERDICTS = mark({"allow": "allowed", "ask": "a person decides", "deny": "denied"})


class Part(NamedTuple):
    """How a report shows an event. Facts and texts that are empty are left out."""

    look: str
    """The colour of the event, as a class of the page."""
    title: str
    """The head line."""
    facts: list[tuple[str, str]]
    """Short facts beside the head line: name and text."""
    texts: list[tuple[str, str, str]]
    """Texts: name, text, and form, which is `text`, `code` or `folded` (code that is shown on demand)."""


class Report:
    """A run for people to read: what it is, its outcome, whether it is intact, and its events.

    `links` are the hashes of the events, in order.
    """

    def __init__(self, trace: Trace, chain: ChainReport, links: list[str]) -> None:
        self.run_id, self.whole = trace.run_id, chain.whole
        self.task = trace.task if trace.started is None else task_with_images(trace.started)
        self.language = "zh" if trace.agent.language == "zh" else "en"
        self.answer = "" if trace.finished is None else trace.finished.answer or trace.finished.reason
        if chain.first is None:
            self.verdict = self.text("As it was written: the hash chain of {n} events is whole.", n=chain.events)
        else:
            self.verdict = self.text("NOT as it was written: {flaw}.", flaw=chain.first.text)
        self.facts = list(_facts(trace, chain, self.text))
        self.events = [(event, link, _part(event, self.text)) for event, link in zip(trace.events, links, strict=True)]

    def fact_texts(self, facts: list[tuple[str, str]]) -> Iterator[str]:
        """Short facts, each on one line."""
        for name, text in facts:
            if text:
                yield f"{name}{self.text(': ')}{text}" if name else text

    def text(self, text: str, /, **values: object) -> str:
        """A text in the language of the report: that of the run."""
        return translate(text, self.language, **values)


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


def _part(event: Event, say: Say) -> Part:
    match event.fact:
        case RunStarted() as fact:
            return Part("quiet", say("Task"), [], [("", task_with_images(fact), "text")])
        case ModelReplied() as fact:
            return _reply(fact, say)
        case ActionRequested() as fact:
            facts = [(say("Verdict"), say(_VERDICTS[fact.verdict])), (say("Tier"), fact.tier or "")]
            facts.append((say("Reasons"), say("; ").join(fact.reasons)))
            look = {"allow": "action", "ask": "ask", "deny": "bad"}[fact.verdict]
            title = f"{say('Action')} · {fact.tool} · {fact.call_id}"
            return Part(look, title, facts, [(say("Arguments"), _data(fact.args), "code")])
        case ApprovalGiven() as fact:
            texts = [(say("Note"), fact.note, "text")]
            if fact.args is not None:
                texts.append((say("Arguments instead of the model's"), _data(fact.args), "code"))
            return Part("good", f"{say('Allowed by a person')} · {fact.call_id}", [(say("By"), fact.by)], texts)
        case ApprovalRefused() as fact:
            note = [(say("Note"), fact.note, "text")]
            return Part("bad", f"{say('Refused by a person')} · {fact.call_id}", [(say("By"), fact.by)], note)
        case ActionStarted() as fact:
            return Part("quiet", f"{say('Started')} · {fact.call_id} · {say('attempt {n}', n=fact.attempt)}", [], [])
        case Observed() as fact:
            return _observation(fact, say)
        case Finished() as fact:
            texts = [(say("Answer"), fact.answer or "", "text"), (say("Reason"), fact.reason, "text")]
            look = "good" if fact.status == "completed" else "bad"
            return Part(look, f"{say('End')} · {fact.status}", [], texts)
        case fact:
            fields = {name: value for name, value in asdict(fact).items() if value not in (None, "", (), [], {})}
            return Part("quiet", fact.kind, [], [("", _data(fields), "code")])


def _reply(fact: ModelReplied, say: Say) -> Part:
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
    calls = "".join(f"\n→ {call.name} {call.arguments}" for call in fact.tool_calls)
    texts.append((say("Reply as it came"), f"{fact.text}{calls}".strip(), "folded"))
    purpose = "" if fact.purpose == "decide" else f" · {fact.purpose}"
    return Part("thought", f"{say('Step {n}', n=fact.step)}{purpose}", facts, texts)


def _observation(fact: Observed, say: Say) -> Part:
    facts = [("", f"{fact.latency_s:.2f} s"), (say("In run"), fact.child or "")]
    if fact.artifact is not None:
        facts.append(
            (say("Complete output stored as"), f"{fact.artifact} ({fact.size_chars:,} · sha256 {fact.output_digest})")
        )
    texts = [("", fact.output, "code"), (say("Printed"), fact.printed, "code")]
    if fact.error is not None:
        texts.insert(0, (fact.error.code, join_on_one_line(fact.error.message, fact.error.hint), "text"))
    title = say("Observed") if fact.ok else say("Failed")
    return Part("good" if fact.ok else "bad", f"{title} · {fact.call_id}", facts, texts)


def _data(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&@]|:(?=//))")


def markdown(report: Report) -> str:
    """The whole text."""
    lines = [f"# {report.text('Run report')}", "", f"`{report.run_id}`", "", f"**{_escaped(report.verdict)}**", ""]
    lines += [f"## {report.text('Task')}", "", *_fenced_text(report.task), ""]
    if report.answer:
        lines += [f"## {report.text('Answer')}", "", *_fenced_text(report.answer), ""]
    lines += [f"- {_escaped(text)}" for text in report.fact_texts(report.facts)]
    lines += ["", f"## {report.text('What happened')}", ""]
    for event, link, part in report.events[1:]:
        lines += [f"### {event.seq} {_escaped(part.title)}", "", _time(event.at), ""]
        lines += [f"- {_escaped(text)}" for text in report.fact_texts(part.facts)]
        for name, text, _ in part.texts:
            if text:
                lines += ["", *([_escaped(name), ""] if name else []), *_fenced_text(text)]
        lines += ["", f"`{link}`", ""]
    return "\n".join(lines)


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
    heading = report.text("Run report")
    rows = "".join(f"<tr><th>{_inert(name)}</th><td>{_inert(text)}</td></tr>" for name, text in report.facts if text)
    hashes = "".join(f"<tr><th>{event.seq}</th><td class=hash>{link}</td></tr>" for event, link, _ in report.events)
    articles = "".join(_article(report, event, part) for event, _, part in report.events[1:])
    answer = f"<h2>{report.text('Answer')}</h2><p class=big>{_inert(report.answer)}</p>" if report.answer else ""
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="viewport" content="width=device-width">\n'
        f"<title>{heading} · {_inert(report.run_id)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<h1>{heading}</h1>\n<p class=id>{_inert(report.run_id)}</p>\n"
        f'<p class="verdict{"" if report.whole else " bad"}">{_inert(report.verdict)}</p>\n'
        f"<h2>{report.text('Task')}</h2><p class=big>{_inert(report.task)}</p>\n{answer}\n"
        f"<h2>{report.text('Summary')}</h2>\n<table>{rows}</table>\n"
        f"<h2>{report.text('What happened')}</h2>\n{articles}"
        f"<h2>{report.text('Hashes of the events')}</h2>\n<details><summary>{len(report.events)}</summary>"
        f"<table>{hashes}</table></details>\n</body>\n</html>\n"
    )


def _article(report: Report, event: Event, part: Part) -> str:
    facts = "".join(f"<span>{_inert(text)}</span>" for text in report.fact_texts(part.facts))
    body = "".join(_html_text(name, text, form) for name, text, form in part.texts if text)
    return (
        f'<article class="{part.look}"><header><span class=seq>{event.seq}</span><h3>{_inert(part.title)}</h3>'
        f"<span class=when>{_time(event.at)}</span></header>"
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
