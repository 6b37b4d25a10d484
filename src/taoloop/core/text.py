"""Small helpers on text."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """`text` without lone surrogates, which cannot be written as UTF-8: each becomes U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text
