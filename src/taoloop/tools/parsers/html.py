"""The visible text of HTML pages, and of text in any encoding, with resiliparse.

A page of 30 KB can make any conforming HTML parser take 1 GB of memory, or minutes, with elements that are opened once
and repeated in every paragraph. These functions only run in a child process with limits (`isolated_parser.py`).
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin

_HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0*\.?0+\s*(?:[;%!]|$)"
    r"|font-size\s*:\s*0*\.?0+\s*(?:[a-z%;!]|$)",
    re.IGNORECASE,
)
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MAX_LINK_CHARS = 2_000
_ELEMENT_NODE = 1  # the type of a node that is an element


def read_page(body: bytes, *, charset: str, url: str, links: bool, max_chars: int) -> dict[str, Any]:
    """`title` and `text` of a page without its hidden elements, and whether the text `is_cut`.

    `links`: absolute URLs follow the text of links; `url` is the base of relative ones.
    """
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415  # only in the child process
    from resiliparse.parse.html import HTMLTree  # noqa: PLC0415  # as above

    tree: Any = HTMLTree.parse(read_text(body, charset=charset, is_html=True))
    _prepare_tree(tree, url, links=links)
    text = extract_plain_text(tree, main_content=False, list_bullets=True, links=links)
    return {"title": (tree.title or "").strip()[:500], "text": text[:max_chars], "is_cut": len(text) > max_chars}


def _prepare_tree(tree: Any, url: str, *, links: bool) -> None:
    """Remove hidden elements, and make links absolute; links that do not leave the page become plain elements.

    It walks over all nodes once: iterating over the matches of a selector takes the library quadratic time.
    """
    hidden_elements, link_elements = [], []
    for node in tree.document:
        if node.type != _ELEMENT_NODE:
            continue
        if _is_hidden(node):
            hidden_elements.append(node)
        elif links and node.tag == "a":
            link_elements.append(node)
    base_element = tree.document.query_selector("base[href]")
    base = (_absolute_url(url, base_element.getattr("href")) if base_element is not None else None) or url
    for node in link_elements:
        href = node.getattr("href") if node.hasattr("href") else ""
        absolute = _absolute_url(base, href)
        if href and absolute is not None and absolute.partition("#")[0] != url.partition("#")[0]:
            node.setattr("href", absolute)
        else:
            _replace_by_span(tree, node)
    for node in reversed(hidden_elements):  # inner elements first: removed ones must not be touched again
        node.decompose()


def _is_hidden(node: Any) -> bool:
    """Whether an element hides its content. A hidden `html` or `body` counts as visible: a script shows it later."""
    if node.tag in ("html", "body"):
        return False
    style = node.getattr("style") if node.hasattr("style") else ""
    return node.hasattr("hidden") or bool(style and _HIDING_STYLE.search(_CSS_COMMENT.sub("", style)))


def _replace_by_span(tree: Any, node: Any) -> None:
    """Replace a link by a plain element with the same children: a link without URL would be shown as `()`."""
    span = tree.create_element("span")
    while (child := node.first_child) is not None:
        span.append_child(child)
    node.parent.replace_child(span, node)


def _absolute_url(base: str, href: str) -> str | None:
    try:
        absolute = urljoin(base, (href or "").strip()) if len(href or "") <= _MAX_LINK_CHARS else ""
    except ValueError:
        return None
    return (
        absolute
        if len(absolute) <= _MAX_LINK_CHARS and absolute.startswith(("http://", "https://", "mailto:"))
        else None
    )


def read_text(body: bytes, *, charset: str, is_html: bool) -> str:
    """The text of a body: by its byte order mark, the charset of its headers, its own declaration, or its bytes."""
    from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5  # noqa: PLC0415  # as above

    for bom, name in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if body.startswith(bom):
            return body[len(bom) :].decode(name, "replace")
    declared = map_encoding_to_html5(charset, fallback_utf8=False) if charset else None
    if declared is None and not is_html:
        try:
            return body.decode()
        except UnicodeDecodeError:
            pass  # detected below
    encoding = declared or detect_encoding(body, from_html_meta=is_html) or "utf-8"
    if not declared and is_html and encoding.startswith("utf-16") and b"\0" not in body[:1_000]:
        encoding = "utf-8"  # a page that declares UTF-16 in ASCII is not UTF-16
    try:
        return body.decode(encoding, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")
