"""Files in tasks and tool results that are no images: a PDF, a text, or whatever a person is to download.

Like an image, a file is an artifact of its run, named after its content; the trace has its digest, type and size.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict, TypeGuard, cast

from taoloop.core.attachments.labelled_schema import LabelledSchema
from taoloop.core.attachments.media_types import PDF, is_text, media_type_of
from taoloop.core.images import Image, ImageInfo
from taoloop.core.text import lazy_pattern
from taoloop.errors import FileError

MAX_FILE_BYTES = 20_000_000
"""The largest file, in bytes: what one request to a model may have of files and images together."""

_BYTES_OF_A_TOKEN, _PDF_BYTES_OF_A_TOKEN = 4, 40
_NAME_CHARS, _URI_HEAD_CHARS = 120, 220
_URI_HEAD = lazy_pattern(r"data:.*;base64", re.IGNORECASE)
_UNNAMEABLE = lazy_pattern(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\"<>|?*\[\]:]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """What a trace says of a file. Its bytes are an artifact of the run, named after their content."""

    digest: str
    """The SHA-256 of its bytes, in hex."""
    media_type: str
    """By its bytes, such as `application/pdf` or `text/csv`; `application/octet-stream` where they are of no known
    type."""
    size_bytes: int
    """Its size in bytes."""
    name: str = ""
    """Its name without a folder; empty: it has none."""

    @property
    def ref(self) -> str:
        """The name of the artifact with its bytes."""
        return f"file_{self.digest[:24]}"

    @property
    def file_name(self) -> str:
        """Its name, or the name of its artifact with an ending."""
        return self.name or f"{self.ref}.{self.extension}"

    @property
    def extension(self) -> str:
        """How the name of a file with it ends, without the dot: that of its name, else `pdf`, `txt` or `bin`."""
        kind = "pdf" if self.is_pdf else "txt" if self.is_text else "bin"
        return self.name.rpartition(".")[2] if "." in self.name and self.name[-1] != "." else kind

    @property
    def is_pdf(self) -> bool:
        """Whether it is a PDF document, which some models read."""
        return self.media_type == PDF

    @property
    def is_text(self) -> bool:
        """Whether it is a text in UTF-8, which every language model reads."""
        return is_text(self.media_type)

    @property
    def tokens(self) -> int:
        """About how many tokens it takes in a prompt. For a PDF that is a rough guess: its pages are not counted."""
        if self.is_text:
            return self.size_bytes // _BYTES_OF_A_TOKEN + 1
        return self.size_bytes // _PDF_BYTES_OF_A_TOKEN + 1 if self.is_pdf else 0


class File(LabelledSchema):
    """A file: its bytes, its name, and what the bytes say of it.

    In a task it is a PDF or a text. A tool may return one of any type, alone, in a list with texts, or in data: a model
    that reads PDF gets a PDF, any other file is for people and named to the model.

    Args:
        data: The bytes, at most `MAX_FILE_BYTES` and not empty.
        name: Its name, of which only the last part is kept. Its ending must fit the bytes.

    Raises:
        FileError: it is empty or too large, or is not what its name says.
    """

    __slots__ = ("data", "info")  # no dataclass: as JSON it would be an object with bytes

    schema_label = "a file"

    def __init__(self, data: bytes, *, name: str = "") -> None:
        value: Any = data  # whatever a caller without types passes
        if not isinstance(value, bytes | bytearray | memoryview):
            raise FileError(f"{type(value).__name__} is no file.", hint="Give its bytes.")
        if not isinstance(cast("object", name), str):
            raise FileError(f"The name of a file is {name!r}.", hint="Write it as a text.")
        self.data = bytes(value)
        plain = _UNNAMEABLE.sub("_", re.split(r"[/\\]", name)[-1].strip())[-_NAME_CHARS:].lstrip(".")
        check_size(len(self.data), plain or "that was given")
        self.info = FileInfo(
            digest=hashlib.sha256(self.data).hexdigest(),
            media_type=media_type_of(self.data, plain),
            size_bytes=len(self.data),
            name=plain,
        )

    @classmethod
    def from_base64(cls, text: str, *, name: str = "") -> File:
        """The file whose bytes are in `text`, as base64 (RFC 4648, section 4).

        Raises:
            FileError: it is no base64, or as in `File`.
        """
        if len(text) > MAX_FILE_BYTES * 3 // 2:  # before it is decoded
            check_size(len(text) * 3 // 4, name)
        try:
            data = b64decode(text, validate=True)
        except ValueError:
            raise FileError("The file is not valid base64.", hint="Encode its bytes as RFC 4648 says.") from None
        return cls(data, name=name)

    @classmethod
    def from_data_uri(cls, uri: str, *, name: str = "") -> File:
        """The file in a data URI with base64 (RFC 2397); the type that the URI says is not believed.

        Raises:
            FileError: it is no such URI, or as in `from_base64`.
        """
        value: Any = uri  # whatever a caller without types passes
        head, comma, body = value.partition(",") if isinstance(value, str) else ("", "", "")
        if not comma or len(head) > _URI_HEAD_CHARS or not _URI_HEAD.fullmatch(head):
            raise FileError(
                "The file is no data URI.", hint="Write its bytes as base64: data:application/pdf;base64,…."
            )
        return cls.from_base64(body, name=name)

    @classmethod
    def stored(cls, body: str, info: FileInfo) -> File:
        """A file of a run, by its bytes as base64 and what the trace says of it; it was checked when it came."""
        file = cls.__new__(cls)
        file.data, file.info = b64decode(body), info
        return file

    @property
    def media_type(self) -> str:
        """Its type, by its bytes."""
        return self.info.media_type

    @property
    def name(self) -> str:
        """Its name; empty if it has none."""
        return self.info.name

    @property
    def text(self) -> str | None:
        """Its content, if it is a text."""
        return self.data.decode("utf-8-sig") if self.info.is_text else None

    @property
    def base64(self) -> str:
        """Its bytes as base64, as providers and journals take them."""
        return b64encode(self.data).decode()

    def __eq__(self, other: object) -> bool:
        """Whether the other one has the same bytes and name."""
        return isinstance(other, File) and self.info == other.info

    def __hash__(self) -> int:
        return hash(self.info)

    def __repr__(self) -> str:
        return f"<File {self.info.file_name}, {self.info.media_type}, {self.info.size_bytes} bytes>"


Attachment = Image | File
"""What may belong to a message beside its text."""

AttachmentInfo = ImageInfo | FileInfo
"""What a trace says of it."""


class _Infos(TypedDict):
    images: tuple[ImageInfo, ...]
    files: tuple[FileInfo, ...]


def infos_of(attachments: Iterable[Attachment]) -> _Infos:
    """What a fact or a message says of them, as its two fields."""
    infos = [attachment.info for attachment in attachments]
    return {
        "images": tuple(info for info in infos if isinstance(info, ImageInfo)),
        "files": tuple(info for info in infos if isinstance(info, FileInfo)),
    }


class Holder(Protocol):
    """A fact or a message that may have images and files."""

    @property
    def images(self) -> tuple[ImageInfo, ...]: ...
    @property
    def files(self) -> tuple[FileInfo, ...]: ...


def attached(holder: Holder) -> tuple[AttachmentInfo, ...]:
    """The images and files of a fact or a message."""
    return (*holder.images, *holder.files)


def is_remote(info: AttachmentInfo) -> TypeGuard[ImageInfo]:
    """Whether it is an image that only the model's provider fetches: no journal has its bytes."""
    return isinstance(info, ImageInfo) and bool(info.url)


def check_size(size_bytes: int, name: str) -> None:
    """Refuse what is too large to be a file of a run, or empty.

    Raises:
        FileError: says the size.
    """
    if not size_bytes:
        raise FileError(f"The file {name} is empty.", hint="Give one with content.")
    if size_bytes > MAX_FILE_BYTES:
        raise FileError(
            f"The file {name} has {size_bytes:,} bytes, and at most {MAX_FILE_BYTES:,} are taken.",
            hint="Give a part of it, or let a tool search it.",
        )
