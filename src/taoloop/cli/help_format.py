"""Help pages and usage errors in the language of the command line, with columns that wide characters do not break."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from gettext import gettext, ngettext
from inspect import cleandoc

import click

from taoloop.cli.translation import translate

_PIECE = re.compile(r"[（“《【]*(?:[!-~]+|\S)[…，。；：、！？）”》】]*\s*")
"""What stays on one line: an ASCII word or one other character, with the punctuation that belongs to it."""

_COMMENT = re.compile(r"(\s*\S.*?\s{3,})(\S.*)")
"""An example, and what is said of it after at least three spaces."""


class HelpFormatter(click.HelpFormatter):
    """Writes help in the language of the command line. A paragraph with an indented line keeps its lines."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """The line of usage; click's words in it are translated, the names of arguments stay."""
        for word in ("COMMAND [ARGS]...", "[OPTIONS]"):
            args = args.replace(word, translate(word))
        super().write_usage(prog, args, translate("Usage: ") if prefix is None else prefix)

    def write_heading(self, heading: str) -> None:
        """The title of a section."""
        self.write(f"{'':>{self.current_indent}}{translate(heading)}{translate(':')}\n")

    def write_text(self, text: str) -> None:
        """Paragraphs, wrapped; examples as they are."""
        indent = " " * self.current_indent
        width = self.width - self.current_indent
        paragraphs = [
            _translated_examples(paragraph) if has_examples(paragraph) else _wrap(translate(_joined(paragraph)), width)
            for paragraph in text.split("\n\n")
        ]
        self.write("\n\n".join("\n".join(f"{indent}{line}" for line in lines) for lines in paragraphs) + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Terms in one column, what they mean in another. click puts defaults after the text, in brackets."""
        rows = list(rows)
        column = min(max(len(term) for term, _ in rows), col_max) + col_spacing
        margin = " " * self.current_indent
        for term, meaning in rows:
            text, bracket, rest = meaning.partition("  [")
            lines = _wrap(translate(text) + bracket + rest, max(self.width - column - 2, 10)) or [""]
            first, *others = lines if len(term) <= column - col_spacing else ["", *lines]
            self.write(f"{margin}{term:<{column}}{first}".rstrip() + "\n")
            self.write("".join(f"{margin}{'':<{column}}{line}\n" for line in others))


def help_texts(text: str) -> Iterator[str]:
    """The parts of a help text that are translated one by one: paragraphs, and comments of examples."""
    for paragraph in cleandoc(text).split("\n\n"):
        if not has_examples(paragraph):
            yield _joined(paragraph)
            continue
        for line in paragraph.splitlines():
            if match := _COMMENT.fullmatch(line):
                yield match[2]
            elif not line.startswith("  "):
                yield line


def has_examples(paragraph: str) -> bool:
    """Whether a paragraph of a help text consists of examples, whose lines stay as they are."""
    return any(line.startswith("  ") for line in paragraph.splitlines())


def translate_click() -> None:
    """Let click's own words ("Usage:", "No such option") pass through `translate`, too.

    click asks gettext, which looks for compiled catalogues of the locale alone and does not know `TAOLOOP_LANG`.
    """
    names = [name for name in sys.modules if name.startswith("click.") and name != "click.decorators"]
    for module in map(sys.modules.__getitem__, names):  # decorators: commands keep its texts, so they stay English
        if vars(module).get("_") is gettext:
            vars(module)["_"] = translate
        if vars(module).get("ngettext") is ngettext:
            vars(module)["ngettext"] = lambda one, many, n: translate(one if n == 1 else many)


def _joined(paragraph: str) -> str:
    return " ".join(paragraph.split())


def _translated_examples(paragraph: str) -> list[str]:
    return [_translated_example(line) for line in paragraph.splitlines()]


def _translated_example(line: str) -> str:
    example = line.strip()
    if (translation := translate(example)) != example:  # also an example that has a task in the other language
        return line.replace(example, translation)
    match = _COMMENT.fullmatch(line)
    return match[1] + translate(match[2]) if match else line


def _cells(text: str) -> int:
    """The columns that a text takes. As `rich.cells.cell_len`, without loading rich for a help page."""
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def _wrap(text: str, width: int) -> list[str]:
    lines = [""]
    for piece in _PIECE.findall(text):
        if lines[-1] and _cells(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines if line.strip()]
