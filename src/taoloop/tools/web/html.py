"""The text of a page, or of plain text in any encoding. Runs as a program of its own, for what it reads is hostile.

A page of 30 KB can make any conforming HTML parser take 1 GB, or minutes (elements that are opened once and repeated in
every paragraph). So this runs with bounds, and nothing but it dies. It imports no other part of taoloop: it is started
by its path. Standard input: one line of JSON, then the body; standard output: JSON.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any
from urllib.parse import urljoin

_HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0*\.?0+\s*(?:[;%!]|$)"
    r"|font-size\s*:\s*0*\.?0+\s*(?:[a-z%;!]|$)",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_LONGEST_LINK = 2_000
_ELEMENT = 1  # the type of a node that is an element


def read_page(body: bytes, *, charset: str, url: str, links: bool, max_chars: int) -> dict[str, Any]:
    """Title and text of a page, without what its own marks hide; links are written out whole after their words."""
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415  # only in the program of its own
    from resiliparse.parse.html import HTMLTree  # noqa: PLC0415  # likewise

    tree: Any = HTMLTree.parse(read_text(body, charset=charset, is_html=True))
    _prepare(tree, url, links=links)
    text = extract_plain_text(tree, main_content=False, list_bullets=True, links=links)
    return {"title": (tree.title or "").strip()[:500], "text": text[:max_chars], "is_cut": len(text) > max_chars}


def _prepare(tree: Any, url: str, *, links: bool) -> None:
    """Take out what is hidden, and make links whole addresses; those that lead nowhere else become plain elements.

    By one walk over all nodes: to go through what a selector found costs the library the square of its number.
    """
    hidden, linked = [], []
    for node in tree.document:
        if node.type != _ELEMENT:
            continue
        if _is_hidden(node):
            hidden.append(node)
        elif links and node.tag == "a":
            linked.append(node)
    named = tree.document.query_selector("base[href]")
    base = (_joined(url, named.getattr("href")) if named is not None else None) or url
    for node in linked:
        link = node.getattr("href") if node.hasattr("href") else ""
        whole = _joined(base, link)
        if link and whole is not None and whole.partition("#")[0] != url.partition("#")[0]:
            node.setattr("href", whole)
        else:
            _replace(tree, node)
    for node in reversed(hidden):  # the inner ones first: what is taken out must not be touched again
        node.decompose()


def _is_hidden(node: Any) -> bool:
    """Whether an element hides what it holds. A whole page does so only until its script has run."""
    if node.tag in ("html", "body"):
        return False
    style = node.getattr("style") if node.hasattr("style") else ""
    return node.hasattr("hidden") or bool(style and _HIDING.search(_COMMENT.sub("", style)))


def _replace(tree: Any, node: Any) -> None:
    """Put a plain element with the same children in the place of a link: a link without an address is shown as `()`."""
    plain = tree.create_element("span")
    while (child := node.first_child) is not None:
        plain.append_child(child)
    node.parent.replace_child(plain, node)


def _joined(base: str, link: str) -> str | None:
    try:
        whole = urljoin(base, (link or "").strip()) if len(link or "") <= _LONGEST_LINK else ""
    except ValueError:
        return None
    return whole if len(whole) <= _LONGEST_LINK and whole.startswith(("http://", "https://", "mailto:")) else None


def read_text(body: bytes, *, charset: str, is_html: bool) -> str:
    """The characters of a body: by its mark, the charset of its headers, its own word, or as it looks."""
    from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5  # noqa: PLC0415  # as above

    for mark, name in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    said = map_encoding_to_html5(charset, fallback_utf8=False) if charset else None
    if said is None and not is_html:
        try:
            return body.decode()
        except UnicodeDecodeError:
            pass  # then it is guessed
    guessed = said or detect_encoding(body, from_html_meta=is_html) or "utf-8"
    if not said and is_html and guessed.startswith("utf-16") and b"\0" not in body[:1_000]:
        guessed = "utf-8"  # a page that can say in ASCII that it is UTF-16 is not
    try:
        return body.decode(guessed, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def _bound(megabytes: int, seconds: int) -> None:
    try:
        import resource  # noqa: PLC0415  # not on every system; the caller bounds the time there
    except ImportError:
        return
    for what, bound in (
        (resource.RLIMIT_AS, megabytes << 20),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        resource.setrlimit(what, (bound if hard == resource.RLIM_INFINITY else min(bound, hard), hard))


def main() -> None:
    """Read what standard input describes."""
    asked = json.loads(sys.stdin.buffer.readline())
    _bound(asked["megabytes"], asked["seconds"])
    sys.path[:0] = asked["libraries"]
    body = sys.stdin.buffer.read()
    if asked["is_html"]:
        given = {name: asked[name] for name in ("charset", "url", "links", "max_chars")}
        answer = read_page(body, **given)
    else:
        answer = {"title": "", "text": read_text(body, charset=asked["charset"], is_html=False), "is_cut": False}
    sys.stdout.buffer.write(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
