"""Tiny images, and a model that sees them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply, ToolCallText


def png(width: int = 3, height: int = 2, *, text: str = "") -> bytes:
    """A whole PNG; `text` is in a chunk of its own, as programs write who made it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    about = chunk(b"tEXt", b"Author\0" + text.encode()) if text else b""
    rows = zlib.compress((b"\0" + b"\xff\0\0" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + header + about + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def gif(width: int, height: int) -> bytes:
    """A GIF of one colour."""
    size = struct.pack("<HH", width, height)
    block = b"\x02\x16\x8c\x2d\x99\x87\x2a\x1c\xdc\x33\xa0\x02\x75\xec\x95\xfa\xa8\xde\x60\x8c\x04\x91\x4c\x01"
    return b"GIF89a" + size + b"\x80\0\0\xff\0\0\0\0\0," + bytes(4) + size + b"\0" + block + b"\0;"


def jpeg(width: int, height: int) -> bytes:
    """The frame of a JPEG, with a fill byte and a thumbnail's segment before its size."""
    thumbnail = b"\xff\xe1\x00\x08\xff\xc0\x00\x00\xff\xd9"
    size = b"\xff\xff\xc2\x00\x11\x08" + struct.pack(">HH", height, width) + b"\x03" + 9 * b"\0"
    return b"\xff\xd8" + thumbnail + size + b"\xff\xda\0\2picture\xff\xd9"


def webp(kind: bytes, width: int, height: int) -> bytes:
    """The headers of a WebP of one of its three forms."""
    bodies = {
        b"VP8X": b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
        b"VP8L": b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14),
        b"VP8 ": b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height),
    }
    data = bodies[kind].ljust(14, b"\0")
    body = kind + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
"""The frame of a PDF."""


class SeeingModel:
    """Gives its replies in order: a text is an answer, a name calls that tool. Keeps what it was asked."""

    def __init__(self, *replies: str | tuple[str, str], sees: bool = True, dialect: str = "native") -> None:
        self.spec, self.dialect, self.sees_images, self.reads_pdf = "seeing", dialect, sees, sees
        self.requests: list[ModelRequest] = []
        self._replies: Sequence[str | tuple[str, str]] = replies

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = self._replies[min(len(self.requests), len(self._replies) - 1)]
        self.requests.append(request)
        if isinstance(reply, str):
            return ModelReply(text=reply)
        return ModelReply(tool_calls=(ToolCallText(name=reply[0], arguments=reply[1], id=f"c{len(self.requests)}"),))

    @property
    def shown(self) -> list[str]:
        """The names of the images in the last request, in the order of the messages."""
        return [image.ref for message in self.requests[-1].messages for image in message.images]

    def check_used(self, replies: int) -> None: ...

    async def close(self) -> None: ...


def texts(request: ModelRequest) -> str:
    """The texts of a request without the system message."""
    return "\n".join(message.content for message in request.messages[1:])


Body = dict[str, Any]
