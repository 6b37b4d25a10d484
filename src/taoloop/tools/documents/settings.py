"""Which folder of documents is searched, where its index lies, and the bounds of reading it."""

from __future__ import annotations

import codecs
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from taoloop.errors import ConfigError
from taoloop.tools.documents.embedding import Embedder
from taoloop.tools.workspace.confined_dir import Parts, is_reserved
from taoloop.tools.workspace.walk import fits

_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
_COUNTS = ("passage_chars", "max_file_bytes", "max_files", "max_pages", "max_memory_bytes")
_SECONDS = ("refresh_s", "max_file_s", "max_index_s")
_MOST = 10**9  # seconds; and of bytes a thousand times as many: more than any system's calls take


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFolder:
    """A folder whose text, Markdown, HTML and PDF files are searched by tools.

    Raises:
        ConfigError: a field has a value that cannot be used; names it.
    """

    path: str | Path
    """The folder. Links in it are not followed, and nothing outside is read."""

    name: str = ""
    """Put before the names of the tools (`NAME_search_documents`), to tell several folders apart."""

    about: str = ""
    """What the documents are about, in a few words: the model reads it and knows when to search here."""

    index: str | Path | None = None
    """The SQLite file of the index; None: a file in the user's cache folder, one for each folder."""

    include: tuple[str, ...] = ()
    """Patterns such as `*.md` or `guides/**`; a file is read if one of them fits. None given: every file."""

    exclude: tuple[str, ...] = ()
    """Patterns of files that are not read."""

    encoding: str = ""
    """The encoding of text files that are not Unicode, such as `gb18030` or `big5`; empty: told from their bytes."""

    refresh_s: float = 30.0
    """A search looks for changed files first if the last look is longer ago than this; 0: only at loading."""

    passage_chars: int = 1_000
    """How long passages become, in characters; none is more than a fifth longer."""

    max_file_bytes: int = 32_000_000
    """Larger files are left out."""

    max_files: int = 20_000
    """Files beyond this number are left out."""

    max_pages: int = 2_000
    """Pages of a PDF beyond this number are left out."""

    max_file_s: float = 30.0
    """How long the reading of one PDF or HTML file may take."""

    max_index_s: float = 600.0
    """How long one look through the folder may take; what is left is read by the next."""

    max_memory_bytes: int = 1_000_000_000
    """How much memory the reading of PDF and HTML files may take."""

    embedder: Embedder | None = None
    """An embedding model that finds passages by meaning too (in a file `module:attribute`); None: by words alone."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        for field in ("path", "index"):
            if field == "path" or self.index is not None:
                _check_path(field, getattr(self, field))
        if self.name and not _NAME.fullmatch(self.name):
            raise _wrong("name", self.name, "1 to 32 ASCII letters, digits, '_' or '-'")
        for field in ("include", "exclude"):
            patterns = getattr(self, field)
            if not isinstance(patterns, list | tuple) or not all(map(_is_pattern, patterns)):
                raise _wrong(field, patterns, "a list of patterns such as *.md or guides/**")
            object.__setattr__(self, field, tuple(patterns))
        if self.encoding:
            try:
                codecs.lookup(self.encoding)
                b" ".decode(self.encoding)  # some codecs give no text
            except (LookupError, ValueError):
                raise _wrong("encoding", self.encoding, "the name of an encoding, such as gb18030") from None
        self._check_numbers()
        if self.embedder is not None and not _is_embedder(self.embedder):
            raise _wrong(
                "embedder", self.embedder, "an object, not a class, with a `name` that is a text, and a method `embed`"
            )

    def _check_numbers(self) -> None:
        for field in _COUNTS:
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _MOST * 1_000:
                raise _wrong(field, value, "a whole number above 0")
        for field in _SECONDS:
            value = getattr(self, field)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not (0 < value <= _MOST or (field == "refresh_s" and value == 0)):
                raise _wrong(field, value, "a number of seconds above 0")
        if not 100 <= self.passage_chars <= 10_000:
            raise _wrong("passage_chars", self.passage_chars, "100 to 10,000")

    @property
    def folder(self) -> Path:
        """The folder, absolute; `~` is expanded."""
        return Path(self.path).expanduser().resolve()

    @property
    def index_file(self) -> Path:
        """Where the index lies."""
        if self.index is not None:
            return Path(self.index).expanduser().absolute()
        import platformdirs  # noqa: PLC0415  # only who names no file pays for it

        model = "" if self.embedder is None else self.embedder.name
        told = "\0".join((str(self.folder), self.made_by, *self.include, "", *self.exclude, "", model))
        digest = hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return platformdirs.user_cache_path("taoloop", appauthor=False) / "documents" / f"{digest}.db"

    @property
    def made_by(self) -> str:
        """What of the settings decides how a file becomes passages."""
        return f"{self.passage_chars} {self.encoding.lower()} {self.max_pages}"

    def takes(self, parts: Parts) -> bool:
        """Whether `include` and `exclude` permit a file, and it is not hidden."""
        if any(part.startswith(".") or is_reserved(part) for part in parts):
            return False
        if self.include and not any(fits(pattern, parts) for pattern in self.include):
            return False
        return not any(fits(pattern, parts) for pattern in self.exclude)


def writable(path: str) -> str:
    """A path as text that can be written and stored, also where it is not UTF-8."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _is_embedder(given: object) -> bool:
    name = getattr(given, "name", None)
    if isinstance(given, type) or not isinstance(name, str) or not callable(getattr(given, "embed", None)):
        return False
    return bool(name) and name == writable(name)


def _check_path(field: str, value: object) -> None:
    if not isinstance(value, str | Path) or not str(value).strip() or "\0" in str(value):
        raise _wrong(field, value, "a path")
    try:
        Path(value).expanduser().resolve()
    except (OSError, RuntimeError) as error:  # no such user, or a circle of links
        raise _wrong(field, value, f"a path that leads somewhere ({error})") from error


def _is_pattern(pattern: object) -> bool:
    return isinstance(pattern, str) and 0 < len(pattern) <= 200 and pattern.count("*") <= 10 and "\0" not in pattern


def _wrong(field: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"DocumentFolder.{field} is {str(value)[:60]!r}.", hint=f"Expected: {expected}.")
