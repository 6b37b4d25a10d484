"""Untrusted text on its way to a terminal: never a control code, never longer than there is room for."""

from __future__ import annotations

import re
import unicodedata

_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erasing
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS and the like: titles, links, the clipboard
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]",
    re.DOTALL,
)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"  # what changes the direction or the lines
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def strip_control_codes(text: str) -> str:
    """`text` without escape sequences, control characters and marks that reorder what is shown."""
    if text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return _CONTROLS.sub("", _SEQUENCES.sub("", text))


def one_line(text: str) -> str:
    """`clean` on one line."""
    return " ".join(strip_control_codes(text).split())


def escape_invisible(text: str) -> str:
    r"""`text` with every character that would not show as itself written out (`\x1b`), but for newlines."""
    if text.isprintable():
        return text
    return "".join(
        char if char == "\n" or unicodedata.category(char) not in _HIDDEN else _written(char) for char in text
    )


def truncate(text: str, max_chars: int, max_lines: int) -> tuple[str, int]:
    """The beginning of `text` within both bounds, and how many characters were left out."""
    shortened = "\n".join(text.split("\n", max_lines)[:max_lines])[:max_chars]
    return shortened, len(text) - len(shortened)


def _written(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
