"""The tools `search_documents` and `read_passage` of one folder, and the way from a citation back to its file."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.errors import ConfigError, ToolError, ToolSourceError
from taoloop.tools.documents.index import BUSY_TIMEOUT_S, Index, IndexedPassage, find_passages
from taoloop.tools.documents.index_update import update_index
from taoloop.tools.documents.readers import ID_LENGTH, ParsedPassage, kind_of, read_document
from taoloop.tools.documents.search import PassageSearch, SearchHit
from taoloop.tools.documents.settings import DocumentFolder, printable_path
from taoloop.tools.function import tool
from taoloop.tools.isolated_parser import IsolatedParser, UnreadableFileError
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadProblem, LoadResult
from taoloop.tools.workspace.confined_dir import ConfinedDirectory

_CITATION = re.compile(rf"\s*[\[【(（]?\s*(?:doc\s*[:：]\s*)?([0-9a-z]{{{ID_LENGTH}}})\s*[\]】)）]?\s*", re.IGNORECASE)

MAX_FOUND = 20
MAX_NEIGHBOURS = 5
_PREVIEW_CHARS = 30_000
_WAIT_S = 2.0  # for an update of the index before a search; a longer one continues in the background
_UNUSABLE_ERROR = ErrorCard(code="documents_unusable", retryable=True, advice="Tell the user what the error says.")
_EXAMPLE_ID = "4k7m2pq9x0ab"


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedPassage(ParsedPassage):
    """A cited passage, and where it is.

    For text and Markdown, `path.read_bytes().decode(encoding, "replace")[start:end]` is `text`.
    """

    path: Path
    """The absolute path of its file."""
    file: str
    """The path of its file in the folder."""
    encoding: str
    """The encoding of the file; empty for a PDF, an office file or a book."""

    def __str__(self) -> str:
        """File and position, as editors accept it: `guide.md:12`, `report.pdf, page 3`, `q1.xlsx, sheet A, row 7`."""
        kind = kind_of(self.file)
        if kind == "pdf":
            return f"{self.path}, page {self.page}"
        if kind in ("pptx", "xlsx"):
            return f"{self.path}, {self.heading[0]}"
        return f"{self.path}:{self.line}" if self.line else str(self.path)


def locate(folder: DocumentFolder, citation: str) -> CitedPassage:
    """Read the cited passage (`[doc:ID]`, `doc:ID` or `ID`) from its file.

    Raises:
        ToolError: `no_passage`: no passage has that id. `document_changed`: the file no longer contains it.
            `document_unreadable`: the file cannot be read. `documents_unusable`: the index cannot be used.
        ConfigError: the folder cannot be opened.
    """
    index = Index(folder)
    indexed = indexed_passage(index, citation)
    parts = tuple(indexed.file.split("/"))
    directory = ConfinedDirectory(folder.folder)
    try:
        with directory.regular_file(parts) as (fd, _), os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(folder.max_file_bytes)
        with IsolatedParser(folder.max_file_s, folder.max_memory_bytes) as parser:
            document = read_document(indexed.file, data, folder, parser)
    except FileNotFoundError:
        raise TEXTS.error("file_gone", "document_changed", file=indexed.file) from None
    except (OSError, UnreadableFileError) as error:
        reason = error.message if isinstance(error, UnreadableFileError) else str(error.strerror or error)
        raise TEXTS.error("file_unreadable", "document_unreadable", file=indexed.file, reason=reason) from error
    finally:
        directory.close()
    for passage in document.passages:
        if passage.id == indexed.id:
            path = folder.folder / indexed.file
            return CitedPassage(path=path, file=indexed.file, encoding=document.encoding, **asdict(passage))
    raise TEXTS.error("file_changed", "document_changed", file=indexed.file)


def indexed_passage(index: Index, citation: str) -> IndexedPassage:
    """The passage that a citation names, from the index.

    Raises:
        ToolError: `no_passage`: no passage has that id. `documents_unusable`: the index cannot be used.
    """
    match = _CITATION.fullmatch(citation)
    if match is not None:
        with index.open() as database:
            matches = find_passages(database, "WHERE passage.id = ?", (match[1].lower(),))
        if matches:
            return matches[0]
    raise TEXTS.error("no_passage", "no_passage", citation=citation[:60])


class Passage(TypedDict):
    """One passage as the model sees it: how to cite it, where it is, and its text."""

    cite: str
    """The citation, such as `[doc:4k7m2pq9x0ab]`."""
    file: str
    """The path of its file in the folder."""
    page: NotRequired[int]
    """The page of a PDF or the slide of a presentation, from 1."""
    line: NotRequired[int]
    """The line of the file, from 1; missing if it is unknown."""
    heading: NotRequired[str]
    """The headings above it, the outermost first."""
    text: str
    """Its text."""


class FoundPassage(Passage):
    """A passage from a search."""

    score: float
    """How well it matches; only comparable within one search."""
    similar: NotRequired[list[str]]
    """The citations of further passages that say nearly the same."""


class DocumentSearch:
    """Search in one folder, whose index is updated when the last update is too old."""

    def __init__(
        self, settings: DocumentFolder, clock: Callable[[], float] = time.monotonic, *, busy_s: float = BUSY_TIMEOUT_S
    ) -> None:
        self.settings, self.index = settings, Index(settings, busy_s)
        self._search = PassageSearch(self.index, settings.embedder)
        self._clock, self._refreshed_at = clock, clock()
        self._lock = threading.Lock()

    def refresh(self) -> tuple[LoadProblem, ...]:
        """Update the index, and return the problems of the documents.

        Raises:
            ToolError: the index cannot be used.
            ConfigError: the folder cannot be opened.
        """
        with self._lock:
            problems = update_index(self.index, self._clock).problems
        self._refreshed_at = self._clock()
        return problems

    def find(self, query: str, limit: int) -> list[FoundPassage]:
        """The best matching passages."""
        is_outdated = self.settings.refresh_s and self._clock() - self._refreshed_at > self.settings.refresh_s
        if is_outdated or not self.index.path.exists():
            self._refreshed_at = self._clock()
            refresh_thread = threading.Thread(target=self._refresh_quietly, name="taoloop-documents", daemon=True)
            refresh_thread.start()
            refresh_thread.join(_WAIT_S)
        hits = self._search.search(query, limit)
        return [self._found(hit) for hit in hits if self._includes(hit.passage)]

    def _found(self, hit: SearchHit) -> FoundPassage:
        found: FoundPassage = {**_passage_output(hit.passage), "score": hit.score}  # type: ignore[typeddict-item]  # similar
        if similar := [_cite(passage) for passage in hit.similar if self._includes(passage)]:
            found["similar"] = similar
        return found

    def _includes(self, passage: IndexedPassage) -> bool:
        """Whether the settings select its file: the same index may have been filled with other settings."""
        return self.settings.includes(tuple(passage.file.split("/")))

    def _refresh_quietly(self) -> None:
        if self._lock.locked():
            return  # another thread is updating the index
        with suppress(ToolError, ConfigError):  # an outdated index is better than none
            self.refresh()

    def read(self, citation: str, around: int) -> list[Passage]:
        """A passage and its neighbours, in the order of the document."""
        cited = indexed_passage(self.index, citation)
        with self.index.open() as database:
            neighbours = find_passages(
                database,
                "WHERE file.path = ? AND passage.ordinal BETWEEN ? AND ? ORDER BY passage.ordinal",
                (cited.file, cited.ordinal - around, cited.ordinal + around),
            )
        if not self._includes(cited):
            raise TEXTS.error("no_passage", "no_passage", citation=citation[:60])
        return [_passage_output(passage) for passage in neighbours]


def document_tools(folder: DocumentFolder) -> LoadResult:
    """`search_documents` and `read_passage` for a folder, whose index is updated first.

    A document that cannot be read is reported as a problem of the result.

    Raises:
        ToolSourceError: the folder, or the file of its index, cannot be used.
    """
    return load_document_tools(DocumentSearch(folder))


def load_document_tools(documents: DocumentSearch) -> LoadResult:
    """`document_tools` for an existing search."""
    root = documents.settings.folder
    source = printable_path(str(root))
    try:
        problem = "" if root.is_dir() else "this is not a folder" if root.exists() else "there is no such folder"
    except OSError as error:  # an invalid name, or a parent folder that denies access
        problem = f"this folder cannot be accessed: {error.strerror}"
    if problem:
        raise ToolSourceError(f"{problem}.", source=source, hint="Name the folder that contains the documents.")
    try:
        problems = documents.refresh()
    except ToolError as error:
        if not error.retryable:
            raise ToolSourceError(error.message, source=source, hint=error.hint) from error
        problems = (LoadProblem(source=source, place="", message=error.message, hint=error.hint),)
    except ConfigError as error:
        cause = error.__cause__
        reason = cause.strerror if isinstance(cause, OSError) else error.message.rstrip(".")
        raise ToolSourceError(
            f"the folder cannot be opened: {reason}.", source=source, hint="Grant read permission."
        ) from error
    return LoadResult(tools=_tools(documents), problems=problems)


def _tools(documents: DocumentSearch) -> tuple[Tool, Tool]:
    prefix = f"{documents.settings.name}_" if documents.settings.name else ""
    about = documents.settings.about.strip().rstrip(".")
    search_name, read_name = f"{prefix}search_documents", f"{prefix}read_passage"

    @tool(
        name=search_name,
        purpose=(
            f"Find passages in {f'documents about {about}' if about else 'the documents'}, the best match first; an "
            "empty list means no match. Where the answer relies on a passage, cite it as given in `cite`."
        ),
        tier="read",
        use_when="The task is about something that the documents may answer, or the answer needs a source.",
        avoid_when=f"A passage is already known and its context is needed ({read_name}).",
        errors=(_UNUSABLE_ERROR,),
        examples=(ExampleCard(args={"query": "notice period for cancelling", "limit": 3}),),
        max_preview_chars=_PREVIEW_CHARS,
        egress=False,
    )
    def search_documents(
        query: Annotated[str, Field(min_length=1, max_length=2_000)],
        limit: Annotated[int, Field(ge=1, le=MAX_FOUND)] = 5,
    ) -> list[FoundPassage]:
        """Find passages.

        Args:
            query: What to search for, in the words and the language of the documents.
            limit: Maximum number of passages, 1 to 20.
        """
        return documents.find(query, limit)

    @tool(
        name=read_name,
        tier="read",
        use_when="A passage breaks off, or the text before or after it matters.",
        avoid_when=f"No passage is known yet ({search_name}).",
        errors=(
            ErrorCard(code="no_passage", advice=f"Search again with {search_name}."),
            _UNUSABLE_ERROR,
        ),
        examples=(ExampleCard(args={"id": f"doc:{_EXAMPLE_ID}", "around": 1}),),
        max_preview_chars=_PREVIEW_CHARS,
        egress=False,
        roles={"id": "ref:passage"},
    )
    def read_passage(
        id: Annotated[str, Field(min_length=1, max_length=100)],  # noqa: A002  # the name that the model sees
        around: Annotated[int, Field(ge=0, le=MAX_NEIGHBOURS)] = 1,
    ) -> list[Passage]:
        """Read a passage and its neighbours, in the order of the document.

        Args:
            id: The passage, as in `cite` of a search result.
            around: Number of passages before and after it, 0 to 5.
        """
        return documents.read(id, around)

    return search_documents, read_passage


def _cite(passage: IndexedPassage) -> str:
    return f"[doc:{passage.id}]"


def _passage_output(passage: IndexedPassage) -> Passage:
    output = Passage(cite=_cite(passage), file=passage.file, text=passage.text)
    if passage.page:
        output["page"] = passage.page
    if passage.line:
        output["line"] = passage.line
    if passage.heading:
        output["heading"] = " > ".join(passage.heading)
    return output
