"""JSON as providers send it: strict UTF-8, but with halves of characters where a server cut a text between them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from pydantic_core import from_json

_HALF = re.compile("[\ud800-\udfff]")


def parsed(data: bytes) -> Any:
    """The value in a JSON text, a byte order mark before it or not; may hold lone surrogates.

    Raises:
        ValueError: it is no JSON, not UTF-8, or nested too deeply to be meant.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return from_json(data)
    except ValueError:
        if rb"\u" not in data:
            raise
        try:
            return json.loads(data)  # slower, and takes halves of surrogate pairs
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def joined(pieces: Iterable[str]) -> str:
    """The pieces as one text. Halves of a character that meet become that character."""
    text = "".join(pieces)
    if text.isascii() or not _HALF.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
