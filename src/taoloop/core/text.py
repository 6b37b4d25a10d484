"""Small helpers on text."""

from __future__ import annotations

import re

_SURROGATES = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """`text` without lone surrogates, which cannot be written as UTF-8: each becomes U+FFFD."""
    if text.isascii() or not _SURROGATES.search(text):
        return text
    return _SURROGATES.sub("\ufffd", text)
