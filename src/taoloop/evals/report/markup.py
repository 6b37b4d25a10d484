"""HTML and SVG from elements: text is escaped, and an attribute that is None is left out."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from taoloop.core.text import escape_invisible

_EMPTY_ELEMENTS = frozenset(("rect", "line", "circle"))


def inert(text: object) -> str:
    """A text as HTML: no markup, and what would not show as itself is written out."""
    return escape(escape_invisible(str(text).replace("\r\n", "\n").expandtabs(4)), quote=True)


def tag(name: str, *content: str, kind: str | None = None, **attributes: object) -> str:
    """An element.

    Args:
        name: The name of the element.
        content: HTML, as `tag` and `inert` make it.
        kind: The class.
        attributes: Its attributes; an underscore in a name becomes a hyphen, and None leaves the attribute out.
    """
    pairs = {"class": kind, **attributes}
    text = "".join(
        f' {attribute.replace("_", "-")}="{inert(value)}"' for attribute, value in pairs.items() if value is not None
    )
    if name in _EMPTY_ELEMENTS and not content:
        return f"<{name}{text}/>"
    return f"<{name}{text}>{''.join(content)}</{name}>"


def head(text: str, kind: str | None = None) -> str:
    """The head of a column; `text` is HTML."""
    return tag("th", text, kind=kind, scope="col")


def row_head(text: str) -> str:
    """The head of a row; `text` is HTML."""
    return tag("th", text, scope="row")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], *, kind: str, label: str) -> str:
    """A table that scrolls in itself where the window is narrower; `label` is its name for screen readers."""
    body = tag("tbody", *(tag("tr", *cells) for cells in rows))
    cells = "".join(heads)
    parts = [tag("thead", tag("tr", cells)), body] if cells else [body]
    return tag("div", tag("table", *parts, kind=kind), kind="scroll", tabindex=0, role="region", aria_label=label)


def disclosure(summary: str, content: str) -> str:
    """A part that opens when its summary is clicked; both are HTML."""
    return tag("details", tag("summary", summary), content)
