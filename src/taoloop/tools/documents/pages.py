"""The tools of the ReAct paper, `search` and `lookup`, over a folder of pages or a dump of them.

The paper gives its model a deliberately weak interface to Wikipedia (Yao et al., 2023, section 3.1): `search[entity]`
shows the first five sentences of the page of that entity, or five similar titles; `lookup[string]` shows the next
sentence of that page with the string, like Ctrl+F; `finish[answer]` ends the task. The last is no tool here: it is the
final answer, which every dialect has, and the dialect `text` reads `finish[answer]` as one.

Which page is open, and how far a string was looked up, follow from the calls of the run alone. So they survive a crash,
are the same in a replay, and runs that share the tools do not meet.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.events import ApprovalRefused
from taoloop.core.ranking.bm25 import Bm25Index, RankedField
from taoloop.core.ranking.query import query_words
from taoloop.core.search import suggest_names
from taoloop.core.text import chinese_texts
from taoloop.core.views.steps import CallView
from taoloop.errors import ConfigError, ToolSourceError
from taoloop.tools.function import tool
from taoloop.tools.settings_check import Count, check_fields, check_path
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import RunContext, Tool  # `tool` reads the annotations
from taoloop.tools.toolbox import LoadProblem, LoadResult
from taoloop.tools.workspace.confined_dir import ConfinedDirectory, walk

FIRST_SENTENCES = 5
"""How many sentences of a page `search` shows, as in the paper."""

_SIMILAR = 5  # titles, as in the paper
_MAX_PAGE_BYTES = 4_000_000
_MAX_TITLE_CHARS = 300
_SUFFIXES = (".txt", ".md")
_DUMPS = (".jsonl", ".ndjson")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)]*\s+(?=[^\sa-z])|(?<=[。！？])|\s*\n\s*")

__all__ = ["PageFolder", "page_tools", "paper_tools"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFolder:
    """Where pages are: a folder of `.txt` and `.md` files, whose names are the titles (`_` for a space), or a dump.

    A dump is a file of JSON lines (`.jsonl`), each `{"title": …, "text": …}`; a text may be a list of paragraphs or of
    sentences, as in the dumps that HotpotQA distributes. Titles are read when the tools are loaded, about 200 bytes of
    memory each, and pages when they are needed.

    Raises:
        ConfigError: a field is not valid; the error names it.
    """

    path: str | Path
    """The folder or the file. Symbolic links in a folder are not followed."""

    max_pages: Count = 1_000_000
    """Pages beyond this number are left out, and reported when loading."""

    def __post_init__(self) -> None:
        """Reject settings of a wrong type."""
        check_path("PageFolder", "path", self.path)
        check_fields(self, "PageFolder")


def paper_tools(path: str | Path) -> tuple[Tool, ...]:
    """`search` and `lookup` over a folder of pages or a dump (`PageFolder`).

    Raises:
        ToolSourceError: it cannot be read, or has no page.
    """
    return page_tools(PageFolder(path=path)).tools


def page_tools(folder: PageFolder) -> LoadResult:
    """`search` and `lookup` over pages; a page that cannot be used is a problem of the result.

    Raises:
        ToolSourceError: the folder or the dump cannot be read, or has no page.
    """
    root = Path(folder.path).expanduser().absolute()
    problems: list[LoadProblem] = []
    try:
        shelf: _Shelf = _Dump(root) if root.suffix.lower() in _DUMPS else _Folder(root)
        pages = _Pages(shelf, folder.max_pages, problems)
    except (OSError, ConfigError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        reason = cause.strerror if isinstance(cause, OSError) else str(error).rstrip(".")
        hint = "Name a folder of .txt and .md files, or a dump of JSON lines (.jsonl)."
        raise ToolSourceError(f"it cannot be read: {reason}.", source=str(root), hint=hint) from error
    if not pages.positions:
        hint = "Name a folder of .txt and .md files, or a dump of JSON lines (.jsonl)."
        raise ToolSourceError("there is no page in it.", source=str(root), hint=hint)
    return LoadResult(tools=_tools(pages), problems=tuple(problems))


class _Place(NamedTuple):
    """Where a page is."""

    title: str
    """Its title."""
    at: Any
    """The parts of its path, or the position of its line."""


class _Folder:
    """Pages as files."""

    def __init__(self, root: Path) -> None:
        self._directory = ConfinedDirectory(root)
        self._directory.open_folder(())

    def positions(self, _problems: list[LoadProblem]) -> Iterable[_Place]:
        """All pages, in the order of their names."""
        files = [entry for entry in walk(self._directory, (), deep=True) if entry.kind == "file"]
        for parts in sorted(entry.parts for entry in files):
            name = PurePath(parts[-1])
            if name.suffix.lower() in _SUFFIXES and not any(part.startswith(".") for part in parts):
                yield _Place(name.stem.replace("_", " "), parts)

    def read(self, at: Any) -> str:
        """The text of a page."""
        with self._directory.regular_file(at) as (fd, _), os.fdopen(os.dup(fd), "rb") as file:
            return file.read(_MAX_PAGE_BYTES).decode("utf-8-sig", "replace")


class _Dump:
    """Pages as lines of JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def positions(self, problems: list[LoadProblem]) -> Iterable[_Place]:
        """All pages, in their order."""
        position = 0
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    title, _ = _page_of(line)
                    if title:
                        yield _Place(title, position)
                    else:
                        text = 'this line is no page: {"title": …, "text": …} is expected.'
                        problems.append(LoadProblem(source=str(self._path), place=f"line {number}", message=text))
                position += len(line)

    def read(self, at: Any) -> str:
        """The text of a page."""
        with self._path.open("rb") as file:
            file.seek(at)
            return _page_of(file.readline(_MAX_PAGE_BYTES))[1]


_Shelf = _Folder | _Dump


def _page_of(line: bytes) -> tuple[str, str]:
    """Title and text of a line of a dump; an empty title for one that is no page."""
    try:
        page = json.loads(line)
    except (ValueError, RecursionError):
        return "", ""
    title, text = (page.get("title"), page.get("text")) if isinstance(page, dict) else (None, None)
    if not isinstance(title, str) or not isinstance(text, str | list):
        return "", ""
    return " ".join(title.split()), text if isinstance(text, str) else "\n".join(_strings(text))


def _strings(value: list[Any]) -> Iterable[str]:
    for item in value:
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            yield "".join(part for part in item if isinstance(part, str))  # the sentences of a paragraph


class _Pages:
    """The pages of one source by their titles."""

    def __init__(self, shelf: _Shelf, max_pages: int, problems: list[LoadProblem]) -> None:
        self._shelf = shelf
        self.positions: dict[str, _Place] = {}
        for place in shelf.positions(problems):
            if len(self.positions) >= max_pages:
                text = f"it has more than {max_pages} pages; the others are left out."
                problems.append(LoadProblem(source="pages", place="max_pages", message=text))
                break
            if len(place.title) <= _MAX_TITLE_CHARS:
                self.positions.setdefault(_key(place.title), place)

    @cached_property
    def _titles(self) -> Bm25Index:
        return Bm25Index([RankedField(1.0)], ([place.title] for place in self.positions.values()))

    def sentences(self, entity: str) -> tuple[str, tuple[str, ...]] | None:
        """Title and sentences of the page of an entity; None if there is no such page."""
        place = self.positions.get(_key(entity))
        if place is None:
            return None
        try:
            text = self._shelf.read(place.at)
        except OSError as error:
            raise TEXTS.error("page_unreadable", "page_unreadable", title=place.title, reason=error.strerror) from error
        return place.title, tuple(filter(None, (part.strip() for part in _SENTENCE_END.split(text))))

    def similar(self, entity: str) -> tuple[str, ...]:
        """Titles like an entity, the nearest first."""
        positions = list(self.positions.values())
        ranked = [positions[number].title for number, _ in self._titles.rank(query_words(entity), _SIMILAR)]
        near = suggest_names(entity, (place.title for place in positions), at_most=_SIMILAR)
        return tuple(dict.fromkeys((*ranked, *near)))[:_SIMILAR]


def _key(title: str) -> str:
    return " ".join(title.replace("_", " ").split()).casefold()


def _tools(pages: _Pages) -> tuple[Tool, Tool]:
    unreadable = ErrorCard(code="page_unreadable", advice="Search another page.")

    @tool(
        name="search",
        tier="read",
        use_when="A fact about an entity with a page of its own is needed.",
        avoid_when="The page is open already and a certain detail of it is needed (lookup).",
        errors=(unreadable,),
        examples=(ExampleCard(args={"entity": "Front Row (software)"}),),
        egress=False,
        chinese=chinese_texts("tools"),
    )
    def search(entity: Annotated[str, Field(min_length=1, max_length=_MAX_TITLE_CHARS)]) -> str:
        """Open the page of an entity and read its first five sentences, or get up to five similar titles.

        Args:
            entity: The exact title of the page.
        """
        page = pages.sentences(entity)
        if page is not None:
            return " ".join(page[1][:FIRST_SENTENCES])
        similar = ", ".join(pages.similar(entity))
        return TEXTS.run_text("no_page", entity=entity, similar=similar or "–")

    @tool(
        name="lookup",
        tier="read",
        use_when="The open page is the right one and a certain detail of it is needed.",
        avoid_when="No page is open yet (search); it does not look into other pages.",
        errors=(ErrorCard(code="no_open_page", advice="Open a page with search first."), unreadable),
        examples=(ExampleCard(args={"string": "controlled by"}),),
        parallel=False,  # what it shows depends on the calls before it
        egress=False,
        chinese=chinese_texts("tools"),
    )
    def lookup(string: Annotated[str, Field(min_length=1, max_length=200)], *, context: RunContext) -> str:
        """Read the next sentence with a text in the page that search opened last; again: the one after it.

        Args:
            string: A text, in any case, that stands in the sentence.
            context: Given by the runtime.
        """
        entity, before = _open_page(context.calls(), context.call_id, string)
        page = pages.sentences(entity) if entity else None
        if page is None:
            raise TEXTS.error("no_open_page", "no_open_page")
        matches = [sentence for sentence in page[1] if string.casefold() in sentence.casefold()]
        if before >= len(matches):
            return TEXTS.run_text("no_more_results", count=len(matches), string=string, title=page[0])
        return TEXTS.run_text("result_of", number=before + 1, count=len(matches), sentence=matches[before])

    return search, lookup


def _open_page(calls: Iterable[CallView], call_id: str, string: str) -> tuple[str, int]:
    """The entity that was searched last before a call, and how often in a row the string was looked up since."""
    entity, before = "", 0
    for call in calls:
        requested = call.requested
        if requested.call_id == call_id:
            break
        args = call.args
        if not isinstance(args, dict) or requested.verdict == "deny" or isinstance(call.approval, ApprovalRefused):
            continue
        if requested.tool == "search":
            entity, before = str(args.get("entity", "")), 0
        elif requested.tool == "lookup":
            before = before + 1 if str(args.get("string", "")).casefold() == string.casefold() else 0
    return entity, before
