"""Splitting a text into passages at headings, paragraphs and sentences.

Nothing is rewritten: a passage is `text[start:end]`. Passages do not overlap, and together they contain every character
of the text except white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_MAX_OVERRUN = 1.2  # how much longer than requested a passage may be
_MAX_HEADING_CHARS = 200
_LINE_END = r"(?>\r\n|\r|\n)"
_BLANK = re.compile(rf"{_LINE_END}(?:[ \t]*{_LINE_END})+")
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t\r\n]|\Z)")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*[\r\n]*\Z")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`\r\n]*(?:[\r\n]|\Z))|~{3,})")  # ```such``` is code within a line
_SENTENCE = re.compile(r"[。！？；…]+[”’」』）]*|[.!?;]+[\"')\]]*(?=\s)|[\r\n]+")
_SPACE = re.compile(r"\s+")
_NEW_LINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Chunk:
    """The span of a passage: `text[start:end]`."""

    start: int
    """Where it begins."""
    end: int
    """Where it ends."""
    heading: tuple[str, ...] = ()
    """The headings above it, the outermost first."""


@dataclass(frozen=True, slots=True)
class _Section:
    """The text under one heading, as blocks that are kept whole if possible."""

    heading: tuple[str, ...]
    blocks: list[tuple[int, int]]


def split_text(text: str, chars: int, *, markdown: bool = False) -> list[Chunk]:
    """The passages of a text in their order, of about `chars` characters and at most a fifth more."""
    sections = _parse_markdown(text) if markdown else [_Section((), list(_paragraphs(text, 0, len(text))))]
    pieces: list[Chunk] = []
    for section in sections:
        for span in _merge_blocks(text, section.blocks, chars):
            start, end = _strip_span(text, *span)
            if start < end:
                pieces.append(Chunk(start, end, section.heading))
    return pieces


def line_starts(text: str) -> list[int]:
    """The offsets of the lines of a text; `bisect_right(line_starts(text), offset)` is the line of an offset."""
    return [0, *(match.end() for match in _NEW_LINE.finditer(text))]


def _merge_blocks(text: str, blocks: list[tuple[int, int]], chars: int) -> Iterator[tuple[int, int]]:
    """Merge neighbouring blocks while they are short enough, and cut those that are too long."""
    max_chars = int(chars * _MAX_OVERRUN)
    current: tuple[int, int] | None = None
    for start, end in blocks:
        if current is not None:
            length = end - current[0]
            if length <= chars or (length <= max_chars and (end - start) * 4 < chars):  # the latter: a short remainder
                current = (current[0], end)
                continue
            yield current
        current = (start, end)
        while current[1] - current[0] > max_chars:
            cut = _cut_position(text, current[0], chars)
            yield (current[0], cut)
            current = (cut, current[1])
    if current is not None:
        yield current


def _cut_position(text: str, start: int, chars: int) -> int:
    """Where to cut a long block: after the last sentence or space of its second half, else at the limit."""
    earliest, latest = start + chars // 2, start + chars
    for pattern in (_SENTENCE, _SPACE):
        last = 0
        for match in pattern.finditer(text, earliest, min(latest + 1, len(text))):
            last = match.end() if match.end() <= latest else last
        if last > earliest:
            return last
    return latest


def _strip_span(text: str, start: int, end: int) -> tuple[int, int]:
    body = text[start:end]
    start += len(body) - len(body.lstrip())
    return start, start + len(body.strip())


def _paragraphs(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The blocks between blank lines."""
    for gap in _BLANK.finditer(text, start, end):
        if gap.start() > start:
            yield start, gap.start()
        start = gap.end()
    if start < end:
        yield start, end


def _parse_markdown(text: str) -> list[_Section]:
    """The sections of a Markdown text; a heading without text joins the section below it."""
    sections: list[_Section] = []
    section, has_only_headings = _Section((), []), True
    stack: list[tuple[int, str]] = []  # level and title of the current headings
    for kind, start, end, level in _scan_markdown(text):
        if kind == "heading":
            if not has_only_headings:
                sections.append(section)
                section = _Section((), [])
            stack = [heading for heading in stack if heading[0] < level] + [(level, _heading_title(text[start:end]))]
            section = _Section(tuple(title for _, title in stack if title), section.blocks)
            section.blocks.append((start, end))
            has_only_headings = True
        elif text[start:end].strip():
            section.blocks.extend([(start, end)] if kind == "code" else _paragraphs(text, start, end))
            has_only_headings = False
    return [*sections, section]


def _scan_markdown(text: str) -> Iterator[tuple[str, int, int, int]]:
    """Headings, code blocks and prose in their order: kind, start, end, and the level of a heading."""
    prose_start = 0  # where the current prose begins
    fence, fence_start = "", 0
    is_paragraph_start = True  # after a blank line, a heading, a code block or the beginning
    previous: tuple[int, int] | None = None  # the line before, which an underline would make a heading
    for start, end in _lines(text, _front_matter(text)):
        line = text[start:end]
        fence_match = _FENCE.match(line)
        if fence:
            if fence_match and fence_match[1].startswith(fence) and not line[fence_match.end() :].strip():
                yield "code", fence_start, end, 0
                fence, prose_start, is_paragraph_start, previous = "", end, True, None
        elif fence_match:
            yield "prose", prose_start, start, 0
            fence, fence_start = fence_match[1], start
        elif heading_match := _ATX.match(line):
            yield "prose", prose_start, start, 0
            yield "heading", start, end, len(heading_match[1])
            prose_start, is_paragraph_start, previous = end, True, None
        elif previous is not None and (underline_match := _SETEXT.match(line)):
            yield "prose", prose_start, previous[0], 0
            yield "heading", previous[0], end, 1 if underline_match[1][0] == "=" else 2
            prose_start, is_paragraph_start, previous = end, True, None
        else:
            is_blank = not line.strip()
            previous = (start, end) if is_paragraph_start and not is_blank and "|" not in line else None
            is_paragraph_start = is_blank
    yield ("code", fence_start, len(text), 0) if fence else ("prose", prose_start, len(text), 0)


def _lines(text: str, start: int) -> Iterator[tuple[int, int]]:
    """The spans of the lines from `start`, which is the beginning of one."""
    return pairwise(sorted({start, len(text), *(offset for offset in line_starts(text) if offset > start)}))


def _front_matter(text: str) -> int:
    """The offset after a front matter between two `---` lines; the front matter itself is prose."""
    match = re.match(r"---[ \t]*\r?\n(?![ \t]*\r?\n)(?:(?!---)[^\n]*\n){0,200}?---[ \t]*(?:\r?\n|\Z)", text)
    return match.end() if match else 0


def _heading_title(lines: str) -> str:
    """The text of a heading, without its markup."""
    title = lines.strip().lstrip("#").strip() if _ATX.match(lines) else _NEW_LINE.split(lines, maxsplit=1)[0].strip()
    open_end = title.rstrip("#")
    if open_end != title and (not open_end or open_end[-1].isspace()):
        title = open_end
    return " ".join(title.split())[:_MAX_HEADING_CHARS]
