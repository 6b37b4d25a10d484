"""The settings of a folder of documents: which files are read, where its index is, and the limits of reading."""

from __future__ import annotations

import codecs
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, Strict

from taoloop.errors import ConfigError
from taoloop.tools.embedding import Embedder, check_embedder
from taoloop.tools.settings_check import Bytes, Count, Seconds, check_fields, check_path, invalid_field
from taoloop.tools.workspace.confined_dir import Parts, is_reserved
from taoloop.tools.workspace.workspace import fits

_Pattern = Annotated[str, Field(pattern=r"^[^*\x00]*(\*[^*\x00]*){0,10}$", min_length=1, max_length=200)]
Patterns = Annotated[tuple[_Pattern, ...], Strict(strict=False)]
"""Patterns of files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFolder:
    """A folder whose text, Markdown, CSV, HTML, PDF and office files are searched by tools.

    Raises:
        ConfigError: a field is not valid; the error names it.
    """

    path: str | Path
    """The folder. Symbolic links in it are not followed, and nothing outside is read."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,32}$")] = ""
    """Prefix of the tool names (`NAME_search_documents`), to distinguish several folders."""

    about: str = ""
    """What the documents are about, in a few words; it tells the model when to search here."""

    index: str | Path | None = None
    """The SQLite file of the index; None: a file for this folder in the user's cache folder."""

    include: Patterns = ()
    """Patterns such as `*.md` or `guides/**`; a file is read if one of them matches. Empty: every file."""

    exclude: Patterns = ()
    """Patterns of files that are not read."""

    encoding: str = ""
    """The encoding of text files that are not Unicode, such as `gb18030`; empty: detected from their bytes."""

    refresh_s: Annotated[float, Field(ge=0, le=10**9)] = 30.0
    """A search checks for changed files first if the last check is older, in seconds; 0: only when loading."""

    passage_chars: Annotated[int, Field(ge=100, le=10_000)] = 1_000
    """The length of passages in characters; none is more than a fifth longer."""

    max_file_bytes: Bytes = 32_000_000
    """Larger files are skipped."""

    max_files: Count = 20_000
    """Files beyond this number are skipped."""

    max_pages: Count = 2_000
    """Pages of a PDF and slides beyond this number are skipped."""

    max_file_s: Seconds = 30.0
    """Time limit for parsing one PDF, HTML or office file, in seconds."""

    max_index_s: Seconds = 600.0
    """Time limit for one update of the index, in seconds; the next update continues with the rest."""

    max_memory_bytes: Bytes = 1_000_000_000
    """Memory limit for parsing PDF, HTML and office files, in bytes."""

    embedder: Embedder | None = None
    """An embedding model for search by meaning (`module:attribute` in a file); None: search by words only."""

    def __post_init__(self) -> None:
        """Check the settings."""
        check_path("DocumentFolder", "path", self.path)
        if self.index is not None:
            check_path("DocumentFolder", "index", self.index)
        check_embedder("DocumentFolder", self.embedder)
        check_fields(self, "DocumentFolder")
        if self.encoding:
            try:
                codecs.lookup(self.encoding)
                b" ".decode(self.encoding)  # some codecs do not decode to text
            except (LookupError, ValueError):
                raise _invalid("encoding", self.encoding, "the name of an encoding, such as gb18030") from None

    @property
    def folder(self) -> Path:
        """The absolute path of the folder, with `~` expanded."""
        return Path(self.path).expanduser().resolve()

    @property
    def index_file(self) -> Path:
        """The path of the index."""
        if self.index is not None:
            return Path(self.index).expanduser().absolute()
        import platformdirs  # noqa: PLC0415  # only if the settings name no file

        model = "" if self.embedder is None else self.embedder.name
        identity = "\0".join((str(self.folder), self.reading_settings, *self.include, "", *self.exclude, "", model))
        digest = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return platformdirs.user_cache_path("taoloop", appauthor=False) / "documents" / f"{digest}.db"

    @property
    def reading_settings(self) -> str:
        """The settings that determine how a file becomes passages, as a text that is stored in the index."""
        return f"{self.passage_chars} {self.encoding.lower()} {self.max_pages}"

    def includes(self, parts: Parts) -> bool:
        """Whether `include` and `exclude` select a file, and it is not hidden."""
        if any(part.startswith(".") or is_reserved(part) for part in parts):
            return False
        if self.include and not any(fits(pattern, parts) for pattern in self.include):
            return False
        return not any(fits(pattern, parts) for pattern in self.exclude)


def printable_path(path: str) -> str:
    """A path as text that can be printed and stored, even if it is not UTF-8."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _invalid(field: str, value: object, expected: str) -> ConfigError:
    return invalid_field("DocumentFolder", field, value, expected)
