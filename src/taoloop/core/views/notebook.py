"""A transcript as a notebook shows it: a small table, with every text escaped and cut."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

MOST_ROWS = 40
"""How many entries are shown: the first ones, and the last."""

MOST_CHARS = 600
"""How much of each text is shown."""

_TEXT = 'style="text-align:left;white-space:pre-wrap;overflow-wrap:anywhere"'


def transcript_html(heading: str, rows: Sequence[tuple[str, str]]) -> str:
    """A heading and a table of names and texts as HTML, at most about 100,000 characters; nothing in it is a script."""
    shown = [_row(name, text) for name, text in rows]
    half = MOST_ROWS // 2
    if omitted := max(0, len(rows) - MOST_ROWS):
        shown[half:-half] = [_row("…", f"{omitted} more (result.entries)")]
    return f"<div>{escape(_cut(heading))}<table>{''.join(shown)}</table></div>"


def _row(name: str, text: str) -> str:
    return f"<tr><th {_TEXT}>{escape(name)}</th><td {_TEXT}>{escape(_cut(text))}</td></tr>"


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}…"
