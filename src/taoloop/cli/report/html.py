"""The report of a run as one page of HTML: no script, nothing from elsewhere, every text inert."""

from __future__ import annotations

import base64
import hashlib
import html

from taoloop.cli.report.model import Part, Report
from taoloop.cli.ui.terminal_text import escape_invisible

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --dim: #667079; --line: #dfe3e8; --back: #fff; --code: #f5f7f9;
  --thought: #3b6fd4; --action: #0f8297; --good: #23854b; --bad: #c23b32; --ask: #b07500; --quiet: #aab2ba; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --dim: #99a3ad; --line: #343a41; --back: #16191d;
  --code: #1f2429; --thought: #7aa5f7; --action: #4cc0d5; --good: #55c283; --bad: #f07a70; --ask: #e0aa45;
  --quiet: #5b646d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; color: var(--ink); background: var(--back);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", "PingFang SC", "Microsoft YaHei",
  "Noto Sans CJK SC", sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2.25rem 0 .75rem; }
.id { color: var(--dim); margin: .1rem 0 1.25rem; }
.id, .seq, .hash, pre, code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.id, .hash { font-size: .8rem; overflow-wrap: anywhere; }
.verdict { padding: .6rem .9rem; border: 1px solid var(--good); border-left-width: 5px; border-radius: 4px; }
.verdict.bad { border-color: var(--bad); font-weight: 600; }
.big { font-size: 1.05rem; white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-top: 1px solid var(--line); }
th { width: 11rem; font-weight: 500; color: var(--dim); } td { overflow-wrap: anywhere; }
article { border-left: 3px solid var(--quiet); padding: .1rem 0 .1rem 1rem; margin: 0 0 1.1rem; }
article.thought { border-color: var(--thought); } article.action { border-color: var(--action); }
article.good { border-color: var(--good); } article.bad { border-color: var(--bad); }
article.ask { border-color: var(--ask); }
article header { display: flex; flex-wrap: wrap; gap: .1rem .75rem; align-items: baseline; }
article h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; } article.quiet h3 { font-weight: 500; }
.seq { color: var(--dim); font-size: .8rem; } .when { color: var(--dim); font-size: .8rem; margin-left: auto; }
.facts { color: var(--dim); font-size: .85rem; margin: .1rem 0 .3rem; overflow-wrap: anywhere; }
.facts span + span::before { content: " · "; }
.name { color: var(--dim); font-size: .8rem; margin: .4rem 0 .1rem; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }
pre { background: var(--code); border-radius: 4px; padding: .6rem .8rem; margin: .2rem 0; white-space: pre-wrap;
  overflow-wrap: anywhere; font-size: .85rem; line-height: 1.45; }
summary { color: var(--dim); font-size: .85rem; cursor: pointer; }
.hash { color: var(--dim); }
@media print { body { max-width: none; padding: 0; } article { break-inside: avoid-page; } }
"""


def page(report: Report) -> str:
    """The whole page. Untrusted text is escaped, and what would not show as itself is written out."""
    policy = f"default-src 'none'; style-src '{_digest(_STYLE)}'; base-uri 'none'; form-action 'none'"
    language = "zh-CN" if report.language == "zh" else "en"
    title = f"{report.title} · {report.run_id}"
    rows = "".join(f"<tr><th>{_inert(name)}</th><td>{_inert(text)}</td></tr>" for name, text in report.facts)
    hashes = "".join(f"<tr><th>{part.seq}</th><td class=hash>{_inert(part.link)}</td></tr>" for part in report.parts)
    answer = f"<h2>{report.word('answer')}</h2><p class=big>{_inert(report.answer)}</p>" if report.answer else ""
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="viewport" content="width=device-width">\n'
        f"<title>{_inert(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{report.title}</h1>\n<p class=id>{_inert(report.run_id)}</p>\n"
        f'<p class="verdict{"" if report.whole else " bad"}">{_inert(report.verdict)}</p>\n'
        f"<h2>{report.word('task')}</h2><p class=big>{_inert(report.task)}</p>\n{answer}\n"
        f"<h2>{report.word('summary')}</h2>\n<table>{rows}</table>\n"
        f"<h2>{report.word('what')}</h2>\n{''.join(_article(report, part) for part in report.parts[1:])}"
        f"<h2>{report.word('hashes')}</h2>\n<details><summary>{len(report.parts)}</summary>"
        f"<table>{hashes}</table></details>\n</body>\n</html>\n"
    )


def _article(report: Report, part: Part) -> str:
    facts = "".join(f"<span>{_inert(report.fact(name, text))}</span>" for name, text in part.facts)
    body = "".join(_text(*text) for text in part.texts)
    return (
        f'<article class="{part.look}"><header><span class=seq>{part.seq}</span><h3>{_inert(part.title)}</h3>'
        f"<span class=when>{_inert(part.at)}</span></header>"
        f"{f'<p class=facts>{facts}</p>' if facts else ''}{body}</article>\n"
    )


def _text(name: str, text: str, form: str) -> str:
    if form == "folded":
        return f"<details><summary>{_inert(name)}</summary><pre>{_inert(text)}</pre></details>"
    head = f"<p class=name>{_inert(name)}</p>" if name else ""
    return f"{head}<pre>{_inert(text)}</pre>" if form == "code" else f"{head}<p class=text>{_inert(text)}</p>"


def _inert(text: str) -> str:
    return html.escape(escape_invisible(text.replace("\r\n", "\n").expandtabs(4)), quote=True)


def _digest(style: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}"
