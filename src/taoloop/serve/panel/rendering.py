"""From templates to pages: the environment of Jinja, the filters for times, amounts and untrusted text, static files.

Everything that a run contains is untrusted. Templates escape it (`autoescape`), and the filter `untrusted` also writes
out what would not show as itself: control characters, and marks that reorder what is shown. No template contains a
script or a style, so the policy of the pages (`security_headers`) can forbid both but for files of the panel.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import isclose
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from taoloop.core.decision import split_at_citations
from taoloop.core.text import escape_invisible
from taoloop.evals.report.page import PARTS_STYLE, style_text
from taoloop.translation import Translator, mark

translate = Translator("serve/panel")

LANGUAGES: Final = {"en": "English", "zh": "中文"}
"""The languages of the panel, each in its own."""

THEMES: Final = ("auto", "light", "dark")
"""How the pages look; `auto` follows the device."""

STATUS_NAMES: Final = mark(
    {
        "running": "running",
        "waiting": "waiting",
        "completed": "completed",
        "blocked": "blocked",
        "max_steps_exceeded": "out of steps",
        "budget_exceeded": "out of budget",
        "unreadable": "unreadable",
        "too_many_errors": "too many errors",
        "repeated_action": "repeated itself",
        "stopped": "stopped",
        "model_failed": "model failed",
        "unsupported": "without evidence",
    }
)
"""What people read for the status of a run."""

TIER_NAMES: Final = mark({"read": "read", "draft": "draft", "write": "write", "destructive": "destructive"})
"""What people read for the tier of a tool."""

REPORT_STYLE: Final = "report.css"
"""The file with the look of the parts of reports on evaluations, which are made elsewhere."""

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file that pages load."""

    body: bytes
    """The content."""

    content_type: str
    """Its media type."""

    version: str
    """Changes with the content, so that browsers may keep the file for ever."""


_TYPES = {"js": "text/javascript", "css": "text/css", "txt": "text/plain", "svg": "image/svg+xml"}


@cache
def static_file(name: str) -> StaticFile | None:
    """The file of this name in `static`, or `REPORT_STYLE`; None: there is none."""
    if name == REPORT_STYLE:
        body = style_text(PARTS_STYLE).encode()
    else:
        folder = files(__package__).joinpath("static")
        if name not in {item.name for item in folder.iterdir() if item.is_file()}:
            return None
        body = folder.joinpath(name).read_bytes()
    content_type = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
    return StaticFile(body, content_type, sha256(body).hexdigest()[:12])


def new_nonce() -> str:
    """What allows the scripts and styles of one response; a text in a page cannot know it."""
    return secrets.token_urlsafe(16)


def security_headers(nonce: str) -> dict[str, str]:
    """The headers of every response: only files of the panel may run, nothing is loaded from elsewhere or framed.

    Scripts may not turn texts into markup, but for htmx, which checks the nonce first (Trusted Types). Source:
    Content Security Policy Level 3 and Trusted Types, both W3C.
    """
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types htmx"
    )
    return {
        "Cache-Control": "no-store",
        "Content-Security-Policy": policy,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }


def render(template: str, language: str, values: Mapping[str, Any]) -> str:
    """The text of a template with these values."""
    return _environment(language).get_template(template).render(values)


@cache
def _environment(language: str) -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )

    def say(text: str, **values: object) -> str:
        return translate(text, language, **values)

    environment.globals |= {"_": say, "language": language, "languages": LANGUAGES, "themes": THEMES}
    environment.filters |= {
        "untrusted": untrusted,
        "when": when,
        "duration": lambda seconds: duration(seconds, language),
        "usd": lambda amount: usd(amount, language),
        "count": count,
        "cut": cut,
        "citations": split_at_citations,
        "as_json": as_json,
        "status": lambda status: translate(STATUS_NAMES.get(status, status), language),
        "tier": lambda tier: translate(TIER_NAMES.get(tier, tier), language),
        "kind": lambda kind: translate(kind, language),
    }
    return environment


def untrusted(text: object) -> Markup:
    """A text of a run: escaped, and with every character that would not show as itself written out."""
    return escape(escape_invisible(str(text).replace("\r\n", "\n").expandtabs(4)))


def when(at: float) -> Markup:
    """A time: in UTC, which the script of the page turns into the time zone of the browser."""
    text = datetime.fromtimestamp(at, UTC).isoformat(" ", "milliseconds")  # `2026-01-31 12:00:00.000+00:00`: no markup
    return Markup(f'<time datetime="{text[:10]}T{text[11:]}">{text[:19]} UTC</time>')  # noqa: S704  # as said


def duration(seconds: float, language: str = "en") -> str:
    """A duration in its two largest units: `3 d 4 h`, `1 min 5 s`, `0.25 s`."""
    second, millisecond = ("秒", "毫秒") if language == "zh" else ("s", "ms")
    if seconds < 1:
        return f"{seconds:.2f} {second}" if seconds >= 0.01 else f"{seconds * 1000:.1f} {millisecond}"
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} {second}"
    units = ((_DAY_S, "d", "天"), (_HOUR_S, "h", "小时"), (_MINUTE_S, "min", "分"), (1, "s", "秒"))
    whole, parts = round(seconds), list[str]()
    for size, name, chinese in units:
        amount, whole = divmod(whole, size)
        if amount or parts:
            parts.append(f"{amount} {chinese if language == 'zh' else name}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


def usd(amount: float | None, language: str = "en") -> str:
    """An amount of money; None: unknown, which is not zero."""
    if amount is None:
        return translate("unknown", language)
    is_in_cents = amount >= 1 or isclose(amount, round(amount, 2), abs_tol=1e-9)
    return f"${amount:,.2f}" if is_in_cents else f"${amount:.4g}"


class Cut(NamedTuple):
    """The beginning of a text."""

    text: str
    """What is shown."""
    omitted: int
    """How many characters of it are not."""


def cut(text: str, most_chars: int = 3_000, most_lines: int = 40) -> Cut:
    """The beginning of a text: a page stays small whatever a tool returned."""
    lines = text[:most_chars].split("\n", most_lines)
    beginning = "\n".join(lines[:most_lines])
    return Cut(beginning, len(text) - len(beginning))


def count(number: int) -> str:
    """A number with thousands set apart."""
    return f"{number:,}"


def as_json(value: object) -> str:
    """A value as indented JSON, not escaped to ASCII; a bare text stays as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)
