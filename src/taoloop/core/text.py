"""Small helpers on text."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taoloop.core.message import Message


MESSAGE_TOKENS = 4
"""What a chat template adds around one message, about."""


def estimate_tokens(text: str) -> int:
    """About 4 ASCII characters, or 3 bytes of any other script (one Chinese character), to a token."""
    if text.isascii():
        return math.ceil(len(text) / 4)
    plain = len(text.encode("ascii", "ignore"))
    other = len(text.encode("utf-8", "surrogatepass")) - plain
    return math.ceil(plain / 4 + other / 3)


def truncate_to_tokens(text: str, most: int) -> str:
    """The beginning of a text, as long as it is at most so many tokens; all of it if it is."""
    if estimate_tokens(text) <= most:
        return text
    return text[: bisect_right(range(1, len(text)), most, key=lambda length: estimate_tokens(text[:length]))]


def message_tokens(message: Message) -> int:
    """One message with the calls in it."""
    calls = sum(
        estimate_tokens(call.name) + estimate_tokens(call.arguments) + MESSAGE_TOKENS for call in message.tool_calls
    )
    return MESSAGE_TOKENS + estimate_tokens(message.content) + calls


_SURROGATES = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """`text` without lone surrogates, which cannot be written as UTF-8: each becomes U+FFFD."""
    if text.isascii() or not _SURROGATES.search(text):
        return text
    return _SURROGATES.sub("\ufffd", text)
