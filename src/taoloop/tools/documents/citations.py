"""From a citation back to the file: the cited passage as it is there now, and where."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from taoloop.errors import ToolError
from taoloop.tools.documents.index import Index, IndexedPassage, find_passages
from taoloop.tools.documents.readers import ID_LENGTH, read_document
from taoloop.tools.documents.settings import DocumentFolder
from taoloop.tools.documents.texts import TEXTS
from taoloop.tools.parsers.isolated_parser import IsolatedParser, UnreadableFileError
from taoloop.tools.workspace.confined_dir import ConfinedDirectory

_CITATION = re.compile(rf"\s*[\[【(（]?\s*(?:doc\s*[:：]\s*)?([0-9a-z]{{{ID_LENGTH}}})\s*[\]】)）]?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedPassage:
    """A cited passage, and where it is."""

    path: Path
    """The absolute path of its file."""
    file: str
    """The path of its file in the folder."""
    line: int
    """The line of the file, from 1; 0 if there is none, or it is unknown."""
    page: int
    """The page of a PDF, from 1; otherwise 0."""
    heading: tuple[str, ...]
    """The headings above it, the outermost first."""
    start: int
    """Where it begins.

    For text and Markdown, `path.read_bytes().decode(encoding, "replace")[start:end]` is `text`. For HTML and PDF it
    counts in the extracted text; for PDF in that of the page.
    """
    end: int
    """Where it ends, in the same characters."""
    encoding: str
    """The encoding of the file; empty for a PDF."""
    text: str
    """Its text."""

    def __str__(self) -> str:
        """File and position, as editors accept it: `guide.md:12`, `report.pdf, page 3`."""
        if self.page:
            return f"{self.path}, page {self.page}"
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
        raise _changed_error(indexed, "file_gone") from None
    except OSError as error:
        raise _unreadable_error(indexed, str(error.strerror or error)) from error
    except UnreadableFileError as error:
        raise _unreadable_error(indexed, error.message) from error
    finally:
        directory.close()
    for passage in document.passages:
        if passage.id == indexed.id:
            return CitedPassage(
                path=folder.folder / indexed.file,
                file=indexed.file,
                line=passage.line,
                page=passage.page,
                heading=passage.heading,
                start=passage.start,
                end=passage.end,
                encoding=document.encoding,
                text=passage.text,
            )
    raise _changed_error(indexed, "file_changed")


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
    raise no_passage_error(citation)


def no_passage_error(citation: str) -> ToolError:
    """The error for a citation without a passage."""
    text = TEXTS.run_text("no_passage", citation=citation[:60])
    return ToolError(text, code="no_passage", hint=TEXTS.run_text("no_passage_hint"))


def _changed_error(indexed: IndexedPassage, problem: str) -> ToolError:
    text = TEXTS.run_text(problem, file=indexed.file)
    return ToolError(text, code="document_changed", hint=TEXTS.run_text("file_changed_hint"))


def _unreadable_error(indexed: IndexedPassage, reason: str) -> ToolError:
    text = TEXTS.run_text("file_unreadable", file=indexed.file, reason=reason)
    return ToolError(text, code="document_unreadable", hint=TEXTS.run_text("file_unreadable_hint"))
