"""The fenced blocks of a Markdown page, and what is said about them after the opening fence.

```python               runs, after the blocks before it, in one namespace
```python tools.py      is also written to that file, so that it can be imported
```yaml agent.yaml      is written to that file; an agent file is loaded too
```sh                   its `tao` lines are parsed
```sh run               they are run as well, and so are its `python examples/…` lines
```text output          what the block above prints, exactly
```text output like     the same, whatever digits stand in it

Blocks with `start`, `ask` and `part` belong to pages with servers: `test_gateway_pages.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(
    sorted(
        path.relative_to(ROOT).as_posix()
        for path in (
            *ROOT.glob("README*.md"),
            ROOT / "ARCHITECTURE.md",
            ROOT / "CONTRIBUTING.md",
            *ROOT.glob("docs/*.md"),
        )
    )
)


@dataclass(frozen=True)
class Block:
    """One block: its language, the words after it, the text, and the line on which the text begins."""

    page: str
    language: str
    words: tuple[str, ...]
    text: str
    line: int

    @property
    def file(self) -> str:
        """The file that the block is written to, or an empty text."""
        return next((word for word in self.words if "." in word), "")


def blocks(page: str) -> list[Block]:
    """All blocks of a page in order."""
    found: list[Block] = []
    opened: tuple[int, list[str]] | None = None
    body: list[str] = []
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("```"):
            body.append(line)
        elif opened is None:
            opened, body = (number, line[3:].split()), []
        else:
            start, words = opened
            language = words[0] if words else ""
            found.append(Block(page, language, tuple(words[1:]), "\n".join(body) + "\n", start + 1))
            opened = None
    assert opened is None, f"{page}: the fence of line {opened} is never closed"
    return found


def without_digits(text: str) -> str:
    """The text with every id, number and time as one `0`."""
    return re.sub(r"\d[\w.:+]*(?:-[\w.:+]+)*", "0", text)


def same(shown: str, printed: str, *, like: bool) -> bool:
    """True if what is shown is what was printed, apart from spaces at the ends of lines."""
    texts = ["\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (shown, printed)]
    return without_digits(texts[0]) == without_digits(texts[1]) if like else texts[0] == texts[1]
