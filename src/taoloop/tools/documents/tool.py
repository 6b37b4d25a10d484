"""The tools `search_documents` and `read_passage` on one folder."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.errors import ConfigError, ToolError, ToolSourceError
from taoloop.tools.documents.citations import indexed_passage, no_passage
from taoloop.tools.documents.index import BUSY_S, Index, IndexedPassage, passages
from taoloop.tools.documents.index_update import update
from taoloop.tools.documents.search import Search
from taoloop.tools.documents.settings import DocumentFolder, writable
from taoloop.tools.function import tool
from taoloop.tools.load_result import LoadProblem, LoadResult
from taoloop.tools.tool import Tool

MOST_FOUND = 20
MOST_AROUND = 5
_PREVIEW_CHARS = 30_000
_WAIT_S = 2.0  # for a look through the folder before a search; longer ones go on beside it
_UNUSABLE = ErrorCard(code="documents_unusable", retryable=True, advice="Tell the user what the error says.")
_EXAMPLE_ID = "4k7m2pq9x0ab"


class Passage(TypedDict):
    """One passage as the model sees it: what to cite it as, where it stands, and its text."""

    cite: str
    file: str
    page: NotRequired[int]
    line: NotRequired[int]
    heading: NotRequired[str]
    text: str


class FoundPassage(Passage):
    """A passage that a search found; `score` compares it with the others of the same search."""

    score: float


class Documents:
    """A folder that is searched: looked through again where the last look is too long ago."""

    def __init__(
        self, settings: DocumentFolder, clock: Callable[[], float] = time.monotonic, *, busy_s: float = BUSY_S
    ) -> None:
        self.settings, self.index = settings, Index(settings, busy_s)
        self._search = Search(self.index, settings.embedder)
        self._clock, self._looked = clock, clock()
        self._lock = threading.Lock()

    def look(self) -> tuple[LoadProblem, ...]:
        """Look through the folder; gives what is wrong with its documents.

        Raises:
            ToolError: the index cannot be used.
            ConfigError: the folder cannot be opened.
        """
        with self._lock:
            problems = update(self.index, self._clock).problems
        self._looked = self._clock()
        return problems

    def find(self, query: str, limit: int) -> list[FoundPassage]:
        """The most fitting passages."""
        is_old = self.settings.refresh_s and self._clock() - self._looked > self.settings.refresh_s
        if is_old or not self.index.path.exists():
            self._looked = self._clock()
            looking = threading.Thread(target=self._look_again, name="taoloop-documents", daemon=True)
            looking.start()
            looking.join(_WAIT_S)
        hits = self._search.find(query, limit)
        return [FoundPassage(**_shown(hit.passage), score=hit.score) for hit in hits if self._takes(hit.passage)]

    def _takes(self, passage: IndexedPassage) -> bool:
        """Whether the settings permit its file: others, or an earlier version, may have filled the same index."""
        return self.settings.takes(tuple(passage.file.split("/")))

    def _look_again(self) -> None:
        if self._lock.locked():
            return  # it is being done
        with suppress(ToolError, ConfigError):  # what the index has is better than nothing
            self.look()

    def read(self, citation: str, around: int) -> list[Passage]:
        """A passage and its neighbours in the same document, in the order of the document."""
        wanted = indexed_passage(self.index, citation)
        with self.index.open() as database:
            found = passages(
                database,
                "WHERE file.path = ? AND passage.ordinal BETWEEN ? AND ? ORDER BY passage.ordinal",
                (wanted.file, wanted.ordinal - around, wanted.ordinal + around),
            )
        if not self._takes(wanted):
            raise no_passage(citation)
        return [_shown(one) for one in found]


def document_tools(folder: DocumentFolder) -> LoadResult:
    """`search_documents` and `read_passage` on a folder; its index is brought up to date first.

    A document that cannot be read is a problem of the result; the others are found all the same.

    Raises:
        ToolSourceError: the folder, or the file of its index, cannot be used.
    """
    return load(Documents(folder))


def load(documents: Documents) -> LoadResult:
    """The same, for documents that are made already."""
    root = documents.settings.folder
    source = writable(str(root))
    try:
        what = "" if root.is_dir() else "this is no folder" if root.exists() else "there is no such folder"
    except OSError as error:  # a name that no system takes, or a folder above that denies access
        what = f"this folder cannot be looked for: {error.strerror}"
    if what:
        raise ToolSourceError(f"{what}.", source=source, hint="Name the folder that holds the documents.")
    try:
        problems = documents.look()
    except ToolError as error:
        if not error.retryable:
            raise ToolSourceError(error.message, source=source, hint=error.hint) from error
        problems = (LoadProblem(source=source, place="", message=error.message, hint=error.hint),)
    except ConfigError as error:
        cause = error.__cause__
        why = cause.strerror if isinstance(cause, OSError) else error.message.rstrip(".")
        raise ToolSourceError(
            f"the folder cannot be opened: {why}.", source=source, hint="Permit reading it."
        ) from error
    return LoadResult(tools=_tools(documents), problems=problems)


def _tools(documents: Documents) -> tuple[Tool, Tool]:
    prefix = f"{documents.settings.name}_" if documents.settings.name else ""
    about = documents.settings.about.strip().rstrip(".")
    search_name, read_name = f"{prefix}search_documents", f"{prefix}read_passage"

    @tool(
        name=search_name,
        purpose=(
            f"Find passages in {f'documents about {about}' if about else 'the documents'}, the most fitting first; an "
            "empty list: nothing fits. Where the answer rests on a passage, cite it there as it says in `cite`."
        ),
        tier="read",
        use_when="The task asks about something that the documents may say, or an answer needs a source.",
        avoid_when=f"A passage is known already and more of its surroundings is wanted ({read_name}).",
        errors=(_UNUSABLE,),
        examples=(ExampleCard(args={"query": "notice period for cancelling", "limit": 3}),),
        max_preview_chars=_PREVIEW_CHARS,
        egress=False,
    )
    def search_documents(
        query: Annotated[str, Field(min_length=1, max_length=2_000)],
        limit: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 5,
    ) -> list[FoundPassage]:
        """Find passages.

        Args:
            query: What to look for, in the words and the language that the documents would use.
            limit: How many passages at most, 1 to 20.
        """
        return documents.find(query, limit)

    @tool(
        name=read_name,
        tier="read",
        use_when="A passage that was found breaks off, or what stands before or after it matters.",
        avoid_when=f"No passage is known yet ({search_name}).",
        errors=(
            ErrorCard(code="no_passage", advice=f"Search again with {search_name}."),
            _UNUSABLE,
        ),
        examples=(ExampleCard(args={"id": f"doc:{_EXAMPLE_ID}", "around": 1}),),
        max_preview_chars=_PREVIEW_CHARS,
        egress=False,
        roles={"id": "ref:passage"},
    )
    def read_passage(
        id: Annotated[str, Field(min_length=1, max_length=100)],  # noqa: A002  # the name that the model sees
        around: Annotated[int, Field(ge=0, le=MOST_AROUND)] = 1,
    ) -> list[Passage]:
        """Read a passage with its neighbours in the same document, in the order of the document.

        Args:
            id: The passage, as a search gave it in `cite`.
            around: How many passages before and after it, 0 to 5.
        """
        return documents.read(id, around)

    return search_documents, read_passage


def _shown(stored_passage: IndexedPassage) -> Passage:
    one = stored_passage
    shown = Passage(cite=f"[doc:{one.id}]", file=one.file, text=one.text)
    if one.page:
        shown["page"] = one.page
    if one.line:
        shown["line"] = one.line
    if one.heading:
        shown["heading"] = " > ".join(one.heading)
    return shown
