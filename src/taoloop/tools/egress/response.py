"""The response to a request, and what its headers say about the body."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressResponse:
    """A response whose body was read completely, or up to the size limit."""

    status: int
    """The HTTP status."""
    headers: Mapping[str, str]
    """Header values by name in lower case."""
    body: bytes
    """The decompressed body."""
    url: str
    """The URL that sent it, after redirects."""
    is_cut: bool = False
    """Whether the body was larger than the size limit; `body` is its beginning then."""
    hops: int = 0
    """How many redirects were followed."""

    @property
    def media_type(self) -> str:
        """The media type in lower case without parameters; empty if the headers name none."""
        return media_type_of(self.headers)

    @property
    def charset(self) -> str:
        """The charset in lower case; empty if the headers name none."""
        match = _CHARSET.search(self.headers.get("content-type", ""))
        return match[1].lower() if match else ""

    @property
    def text(self) -> str:
        """The body as text: by its byte order mark, else its charset, else UTF-8. Undecodable bytes are replaced."""
        for bom, name in _BYTE_ORDER_MARKS:
            if self.body.startswith(bom):
                return self.body.decode(name, "replace")
        try:
            codec = codecs.lookup(self.charset or "utf-8")
        except LookupError:
            return self.body.decode("utf-8", "replace")
        return self.body.decode(codec.name if codec._is_text_encoding else "utf-8", "replace")


def media_type_of(headers: Mapping[str, str]) -> str:
    """The media type that headers name, in lower case without parameters; empty if none."""
    value = headers.get("content-type", "")
    return value.partition(";")[0].partition(",")[0].strip().lower()  # a repeated header is joined by commas
