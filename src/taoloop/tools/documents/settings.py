"""The settings of a folder of documents: which files are read, where its index is, and the limits of reading."""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from taoloop.errors import ConfigError
from taoloop.tools.workspace.confined_dir import Parts, is_reserved
from taoloop.tools.workspace.workspace import fits

_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
_COUNT_FIELDS = ("passage_chars", "max_file_bytes", "max_files", "max_pages", "max_memory_bytes")
_SECONDS_FIELDS = ("refresh_s", "max_file_s", "max_index_s")
_MAX_NUMBER = 10**9  # seconds; and of bytes a thousand times as many: more than any system's calls take


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors: your own model, local or behind an API. It may block.

    `name` identifies the model: vectors of another model are computed again. All vectors have the same length.
    """

    @property
    def name(self) -> str:
        """The model, with its version."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector per text, in the same order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFolder:
    """A folder whose text, Markdown, HTML and PDF files are searched by tools.

    Raises:
        ConfigError: a field is not valid; the error names it.
    """

    path: str | Path
    """The folder. Symbolic links in it are not followed, and nothing outside is read."""

    name: str = ""
    """Prefix of the tool names (`NAME_search_documents`), to distinguish several folders."""

    about: str = ""
    """What the documents are about, in a few words; it tells the model when to search here."""

    index: str | Path | None = None
    """The SQLite file of the index; None: a file for this folder in the user's cache folder."""

    include: tuple[str, ...] = ()
    """Patterns such as `*.md` or `guides/**`; a file is read if one of them matches. Empty: every file."""

    exclude: tuple[str, ...] = ()
    """Patterns of files that are not read."""

    encoding: str = ""
    """The encoding of text files that are not Unicode, such as `gb18030`; empty: detected from their bytes."""

    refresh_s: float = 30.0
    """A search checks for changed files first if the last check is older, in seconds; 0: only when loading."""

    passage_chars: int = 1_000
    """The length of passages in characters; none is more than a fifth longer."""

    max_file_bytes: int = 32_000_000
    """Larger files are skipped."""

    max_files: int = 20_000
    """Files beyond this number are skipped."""

    max_pages: int = 2_000
    """Pages of a PDF beyond this number are skipped."""

    max_file_s: float = 30.0
    """Time limit for parsing one PDF or HTML file, in seconds."""

    max_index_s: float = 600.0
    """Time limit for one update of the index, in seconds; the next update continues with the rest."""

    max_memory_bytes: int = 1_000_000_000
    """Memory limit for parsing PDF and HTML files, in bytes."""

    embedder: Embedder | None = None
    """An embedding model for search by meaning (`module:attribute` in a file); None: search by words only."""

    def __post_init__(self) -> None:
        """Check the settings."""
        for field in ("path", "index"):
            if field == "path" or self.index is not None:
                _check_path(field, getattr(self, field))
        if self.name and not _NAME.fullmatch(self.name):
            raise _invalid("name", self.name, "1 to 32 ASCII letters, digits, '_' or '-'")
        for field in ("include", "exclude"):
            patterns = getattr(self, field)
            if not isinstance(patterns, list | tuple) or not all(map(_is_pattern, patterns)):
                raise _invalid(field, patterns, "a list of patterns such as *.md or guides/**")
            object.__setattr__(self, field, tuple(patterns))
        if self.encoding:
            try:
                codecs.lookup(self.encoding)
                b" ".decode(self.encoding)  # some codecs do not decode to text
            except (LookupError, ValueError):
                raise _invalid("encoding", self.encoding, "the name of an encoding, such as gb18030") from None
        self._check_numbers()
        if self.embedder is not None and not _is_embedder(self.embedder):
            raise _invalid("embedder", self.embedder, "an object, not a class, with a text `name` and a method `embed`")

    def _check_numbers(self) -> None:
        for field in _COUNT_FIELDS:
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _MAX_NUMBER * 1_000:
                raise _invalid(field, value, "a whole number above 0")
        for field in _SECONDS_FIELDS:
            value = getattr(self, field)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not (0 < value <= _MAX_NUMBER or (field == "refresh_s" and value == 0)):
                raise _invalid(field, value, "a number of seconds above 0")
        if not 100 <= self.passage_chars <= 10_000:
            raise _invalid("passage_chars", self.passage_chars, "100 to 10,000")

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


def _is_embedder(value: object) -> bool:
    name = getattr(value, "name", None)
    if isinstance(value, type) or not isinstance(name, str) or not callable(getattr(value, "embed", None)):
        return False
    return bool(name) and name == printable_path(name)


def _check_path(field: str, value: object) -> None:
    if not isinstance(value, str | Path) or not str(value).strip() or "\0" in str(value):
        raise _invalid(field, value, "a path")
    try:
        Path(value).expanduser().resolve()
    except (OSError, RuntimeError) as error:  # no such user, or a loop of links
        raise _invalid(field, value, f"a path that can be resolved ({error})") from error


def _is_pattern(pattern: object) -> bool:
    return isinstance(pattern, str) and 0 < len(pattern) <= 200 and pattern.count("*") <= 10 and "\0" not in pattern


def _invalid(field: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"DocumentFolder.{field} is {str(value)[:60]!r}.", hint=f"Expected: {expected}.")
