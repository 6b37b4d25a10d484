"""From a citation back to the file: the passage as it stands there now, and where."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from taoloop.errors import ToolError
from taoloop.tools.documents.index import Index, IndexedPassage, passages
from taoloop.tools.documents.isolated_parser import ForeignError, IsolatedParser
from taoloop.tools.documents.readers import ID_LENGTH, read_document
from taoloop.tools.documents.settings import DocumentFolder
from taoloop.tools.workspace.confined_dir import ConfinedDirectory

_CITATION = re.compile(rf"\s*[\[【(（]?\s*(?:doc\s*[:：]\s*)?([0-9a-z]{{{ID_LENGTH}}})\s*[\]】)）]?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedPassage:
    """Where a passage stands. `line` and `page` count from 1, 0 where there is none; `heading` the outermost first.

    For text and Markdown, `path.read_bytes().decode(encoding, "replace")[start:end]` is `text`. For HTML and PDF,
    `start` and `end` count in the text that is extracted, of the page for a PDF, whose `encoding` is empty.
    """

    path: Path
    file: str
    line: int
    page: int
    heading: tuple[str, ...]
    start: int
    end: int
    encoding: str
    text: str

    def __str__(self) -> str:
        """File and place, as editors take it: `guide.md:12`, `report.pdf, page 3`."""
        if self.page:
            return f"{self.path}, page {self.page}"
        return f"{self.path}:{self.line}" if self.line else str(self.path)


def locate(folder: DocumentFolder, citation: str) -> CitedPassage:
    """Read the cited passage (`[doc:ID]`, `doc:ID` or `ID`) from its file.

    Raises:
        ToolError: `no_passage`: nothing has that id. `document_changed`: the file has it no more.
            `document_unreadable`: the file cannot be read. `documents_unusable`: the index cannot.
        ConfigError: the folder cannot be opened.
    """
    index = Index(folder)
    known = indexed_passage(index, citation)
    parts = tuple(known.file.split("/"))
    beneath = ConfinedDirectory(folder.folder)
    try:
        with beneath.regular_file(parts) as (fd, _), os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(folder.max_file_bytes)
        with IsolatedParser(folder.max_file_s, folder.max_memory_bytes) as foreign:
            document = read_document(known.file, data, folder, foreign)
    except FileNotFoundError:
        raise _changed(known, "the file is gone") from None
    except OSError as error:
        raise _unreadable(known, str(error.strerror or error)) from error
    except ForeignError as error:
        raise _unreadable(known, error.message) from error
    finally:
        beneath.close()
    for one in document.passages:
        if one.id == known.id:
            return CitedPassage(
                path=folder.folder / known.file,
                file=known.file,
                line=one.line,
                page=one.page,
                heading=one.heading,
                start=one.start,
                end=one.end,
                encoding=document.encoding,
                text=one.text,
            )
    raise _changed(known, "the file has changed and holds this passage no more")


def indexed_passage(index: Index, citation: str) -> IndexedPassage:
    """The passage that a citation names, as the index has it.

    Raises:
        ToolError: `no_passage`, or the index cannot be used.
    """
    named = _CITATION.fullmatch(citation)
    if named is not None:
        with index.open() as database:
            found = passages(database, "WHERE passage.id = ?", (named[1].lower(),))
        if found:
            return found[0]
    raise no_passage(citation)


def no_passage(citation: str) -> ToolError:
    """The error for an id that no passage has."""
    return ToolError(
        f"No passage has the id {citation[:60]!r}.",
        code="no_passage",
        hint="Use an id that a search gave; the document may have changed since.",
    )


def _changed(known: IndexedPassage, why: str) -> ToolError:
    return ToolError(f"{known.file}: {why}.", code="document_changed", hint="Search again.")


def _unreadable(known: IndexedPassage, why: str) -> ToolError:
    return ToolError(f"{known.file}: it cannot be read: {why}.", code="document_unreadable", hint="Look at the file.")
