"""Images in tasks, conversations and tool results: what they are, by their bytes, and what a trace says of them.

The media type and the size in pixels are read from the bytes, never from a name or a header that somebody wrote. Only
the formats that all providers take are images here: PNG (ISO/IEC 15948), JPEG (ITU-T T.81), GIF (GIF89a) and WebP
(RFC 9649). A file that was cut is refused, because its end is missing. Nothing is decoded, so a picture that is broken
between a sound header and its end is left for the provider to refuse.
"""

from __future__ import annotations

import hashlib
import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from taoloop.core.attachments.labelled_schema import LabelledSchema
from taoloop.core.text import lazy_pattern
from taoloop.errors import ImageError

MAX_IMAGE_BYTES = 20_000_000
"""The largest image, in bytes. Providers take less: what one of them does not take is described to its model."""

MAX_REQUEST_BYTES, MAX_REQUEST_IMAGES = 20_000_000, 20
"""How much of images one request to a model has at most, in bytes and in number: the newest that fit."""

_MAX_IMAGE_TOKENS, _PIXELS_OF_A_TOKEN = 1_600, 750
_ALT_CHARS, _URL_CHARS = 2_000, 2_000
_WEB_URL = lazy_pattern(rf"https?://[!-~]{{1,{_URL_CHARS}}}", re.IGNORECASE)
_SIZES_IN_JPEG = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # the frame headers (T.81, table B.1)
_SCAN_IN_JPEG, _JPEG_END = 0xDA, b"\xff\xd9"
_PNG_END = b"\0\0\0\0IEND\xaeB`\x82"  # the last chunk: its length, type and checksum
_GIF_END = b"\0;"  # the end of the last block, and the trailer
_LONE_IN_JPEG = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a length


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageInfo:
    """What a trace says of an image. Its bytes are an artifact of the run, named after their content."""

    digest: str
    """The SHA-256 of its bytes, in hex."""
    media_type: str
    """`image/png`, `image/jpeg`, `image/gif` or `image/webp`."""
    width: int
    """Its width in pixels."""
    height: int
    """Its height in pixels."""
    size_bytes: int
    """Its size in bytes."""
    alt: str = ""
    """What it shows, in words: by who gave it, or by the agent's `describe_image`. Never a part of the task."""
    url: str = ""
    """The address at which the model's provider fetches it. Then there is no artifact, `digest` is that of the address,
    and type and size are unknown (empty, 0). Empty: its bytes are an artifact."""

    @property
    def ref(self) -> str:
        """The name of the artifact with its bytes."""
        return f"img_{self.digest[:24]}"

    @property
    def extension(self) -> str:
        """How the name of a file with it ends, without the dot: `png`, `jpeg`, `gif`, `webp`."""
        return self.media_type.partition("/")[2]

    @property
    def tokens(self) -> int:
        """About how many tokens it takes in a prompt, as Anthropic counts; other providers are of this order."""
        if self.url:
            return _MAX_IMAGE_TOKENS
        return max(1, min(_MAX_IMAGE_TOKENS, self.width * self.height // _PIXELS_OF_A_TOKEN))


class Image(LabelledSchema):
    """An image: its bytes, and what the bytes say of it.

    A tool may return one, or a list of texts and images, or data with images in it. Two images of the same bytes and
    words are equal.

    Args:
        data: The bytes of a PNG, JPEG, GIF or WebP file, at most `MAX_IMAGE_BYTES`.
        alt: What it shows, in words. A model that sees no images reads this in its place.

    Raises:
        ImageError: the bytes are none of these, not all of it, or too many.
    """

    __slots__ = ("data", "info")  # no dataclass: as JSON it would be an object with bytes

    schema_label = "an image"

    def __init__(self, data: bytes, *, alt: str = "") -> None:
        value: Any = data  # whatever a caller without types passes
        if not isinstance(value, bytes | bytearray | memoryview):
            raise ImageError(f"{type(value).__name__} is no image.", hint="Give the bytes of the file.")
        if not isinstance(cast("object", alt), str):
            raise ImageError(f"The alt of an image is {alt!r}.", hint="Write it as a text.")
        self.data = bytes(value)
        if len(self.data) > MAX_IMAGE_BYTES:
            size, limit = f"{len(self.data):,}", f"{MAX_IMAGE_BYTES:,}"
            raise ImageError(
                f"The image has {size} bytes, and at most {limit} are taken.", hint="Make it smaller first."
            )
        media_type, (width, height) = _read_header(self.data)
        self.info = ImageInfo(
            digest=hashlib.sha256(self.data).hexdigest(),
            media_type=media_type,
            width=width,
            height=height,
            size_bytes=len(self.data),
            alt=" ".join(alt.split())[:_ALT_CHARS],
        )

    @classmethod
    def from_base64(cls, text: str, *, alt: str = "") -> Image:
        """The image whose bytes are in `text`, as base64 (RFC 4648, section 4).

        Raises:
            ImageError: it is no base64, or no image.
        """
        try:
            data = b64decode(text, validate=True)
        except ValueError:
            raise ImageError("The image is not valid base64.", hint="Encode its bytes as RFC 4648 says.") from None
        return cls(data, alt=alt)

    @classmethod
    def from_url(cls, url: str, *, alt: str = "") -> Image:
        """An image of a task that the model's provider fetches; taoloop never does. It has no `data`.

        The trace has its address only: what was seen there cannot be shown or replayed from it. Tools return bytes.

        Raises:
            ImageError: it is no http(s) URL of at most 2,000 characters, or has a password in it.
        """
        value: Any = url  # whatever a caller without types passes
        host = value[: _URL_CHARS + 1].partition("://")[2].partition("/")[0] if isinstance(value, str) else ""
        if not host or not _WEB_URL.fullmatch(url) or "@" in host:
            raise ImageError(
                "The address of an image is no http(s) URL without a password.",
                hint="Write https://host/path, or give the bytes of the image.",
            )
        words = " ".join(alt.split())[:_ALT_CHARS]
        digest = hashlib.sha256(url.encode()).hexdigest()
        info = ImageInfo(digest=digest, media_type="", width=0, height=0, size_bytes=0, alt=words, url=url)
        return cls.stored("", info)

    @classmethod
    def stored(cls, body: str, info: ImageInfo) -> Image:
        """An image of a run, by its bytes as base64 and what the trace says of it; it was checked when it came."""
        image = cls.__new__(cls)
        image.data, image.info = b64decode(body), info
        return image

    @property
    def media_type(self) -> str:
        """`image/png`, `image/jpeg`, `image/gif` or `image/webp`, by its bytes."""
        return self.info.media_type

    @property
    def base64(self) -> str:
        """Its bytes as base64, as providers and journals take them."""
        return b64encode(self.data).decode()

    def __eq__(self, other: object) -> bool:
        """Whether the other one has the same bytes and words."""
        return isinstance(other, Image) and self.info == other.info

    def __hash__(self) -> int:
        return hash(self.info)

    def __repr__(self) -> str:
        info = self.info
        if info.url:
            return f"<Image at {info.url}>"
        return f"<Image {info.extension} {info.width}×{info.height}, {info.size_bytes} bytes>"


def is_image(data: bytes) -> bool:
    """Whether bytes begin as an image of a known format does."""
    return media_type_of_image(data) is not None


def _read_header(data: bytes) -> tuple[str, tuple[int, int]]:
    """The media type, and width and height in pixels."""
    media_type = media_type_of_image(data)
    if media_type is None:
        raise ImageError(
            "The bytes are no PNG, JPEG, GIF or WebP image.", hint="Convert it to one of these formats first."
        )
    try:
        size = _SIZES[media_type](data)
    except (struct.error, IndexError):
        size = (0, 0)
    if not all(size):
        raise ImageError(f"The image is broken: its header of the type {media_type} has no size.", hint="Save it anew.")
    if not _ENDS[media_type](data):
        raise ImageError(
            f"The image is cut off: the end of its file of the type {media_type} is missing.",
            hint="Transfer or save it again, whole.",
        )
    return media_type, size


def media_type_of_image(data: bytes) -> str | None:
    """The media type of an image by its first bytes; None if it is none of a known format."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def _png_size(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", data, 16)
    return (width, height) if data[12:16] == b"IHDR" else (0, 0)


def _gif_size(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """The size in the first frame header."""
    for marker, at in _jpeg_segments(data):
        if marker in _SIZES_IN_JPEG:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
    return 0, 0


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """The markers of the segments up to the first scan, each with its place; they are skipped by their lengths."""
    at = 2
    while at + 1 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in _LONE_IN_JPEG:
            at += 2
        else:
            yield marker, at
            if marker == _SCAN_IN_JPEG or at + 4 > len(data):
                break
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]


def _is_whole_jpeg(data: bytes) -> bool:
    """Whether an end follows the first scan, in which a marker cannot occur; one before is that of a thumbnail."""
    scan = next((at for marker, at in _jpeg_segments(data) if marker == _SCAN_IN_JPEG), len(data))
    return data.find(_JPEG_END, scan) >= 0


def _is_whole_webp(data: bytes) -> bool:
    return 8 + int.from_bytes(data[4:8], "little") <= len(data)


def _webp_size(data: bytes) -> tuple[int, int]:
    """The size of the canvas (extended form), else of the lossless or the lossy bitstream (RFC 9649, section 2)."""
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return 0, 0


_SIZES = {"image/png": _png_size, "image/jpeg": _jpeg_size, "image/gif": _gif_size, "image/webp": _webp_size}
_ENDS: Mapping[str, Callable[[bytes], bool]] = {
    "image/png": lambda data: _PNG_END in data,
    "image/jpeg": _is_whole_jpeg,
    "image/gif": lambda data: data.rstrip(b"\0\r\n").endswith(_GIF_END),
    "image/webp": _is_whole_webp,
}
