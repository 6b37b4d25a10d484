"""Decoding text files: as Unicode, in the configured encoding, or in an encoding that is detected from the bytes.

The encoding is stored with the document: `data.decode(encoding, "replace")` gives the same text again, so offsets lead
back to the file.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, because it begins with the same bytes
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_CHARS = 20_000
_MIN_COMMON_SHARE = 0.8  # of the characters that are not ASCII
_MAX_BROKEN_SHARE = 0.05  # of them: UTF-8 text may have so many broken ones
_MAX_WESTERN_SHARE = 0.5  # of the characters: Western text has fewer that are not ASCII
_MIN_HIGH_BYTES = 20  # fewer prove nothing
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CHARSET = re.compile(rb"<meta[^>]{0,300}charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030", "cp936": "gb18030", "iso-8859-1": "cp1252", "latin-1": "cp1252"}
_SUPERSETS |= {"hz": "gb18030", "iso8859-1": "cp1252", "ascii": "cp1252", "big5": "cp950"}

_BIG5_COMMON = re.compile(rb"[\xa4-\xc6][\x40-\xfe]|\xa1[\x40-\xbf]")
_GB_COMMON = re.compile(rb"[\xb0-\xd7][\xa1-\xfe]|[\xa1-\xa3][\xa1-\xfe]")


class DecodedText(NamedTuple):
    """A decoded text."""

    text: str
    """The text; broken characters are replaced."""
    encoding: str
    """The name of the codec that decoded it."""
    broken: int
    """How many characters were broken."""


class NotTextError(ValueError):
    """The bytes are not text, or their encoding cannot be detected."""


def decode_text(data: bytes, declared_encoding: str = "") -> DecodedText:
    """The text of a file. `declared_encoding` is used if it is not Unicode; empty: it is detected.

    Raises:
        NotTextError: it is not text.
    """
    for bom, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(bom):
            return _decode_by(data, encoding)
    try:
        return _require_text(DecodedText(data.decode(), "utf-8", 0))
    except UnicodeDecodeError:
        pass
    if declared_encoding:
        return _decode_by(data, declared_encoding)
    lenient = _decode_by(data, "utf-8", binary=True)
    non_ascii = sum(not char.isascii() for char in lenient.text)
    if lenient.broken <= non_ascii * _MAX_BROKEN_SHARE:
        return _require_text(lenient)
    return _decode_by(data, _detect_encoding(data))


def decode_html(data: bytes, fallback_encoding: str = "") -> DecodedText:
    """The source of a page: decoded by its byte order mark, else by its own declaration, else as `decode_text`.

    Raises:
        NotTextError: it is not text.
    """
    if not any(data.startswith(bom) for bom, _ in _BYTE_ORDER_MARKS) and (match := _CHARSET.search(data[:4_096])):
        declared = match[1].decode("ascii").lower()
        try:
            codec_name = codecs.lookup(_SUPERSETS.get(declared, declared)).name
            data.decode(codec_name)
        except (LookupError, ValueError):
            return decode_text(data, fallback_encoding)
        if not codec_name.startswith("utf-16"):  # a declaration that is readable as ASCII is not in UTF-16
            return _decode_by(data, codec_name)
    return decode_text(data, fallback_encoding)


def _decode_by(data: bytes, encoding: str, *, binary: bool = False) -> DecodedText:
    try:
        text = data.decode(encoding, "replace")
    except (LookupError, ValueError) as error:  # a codec that does not decode to text, such as hex
        raise NotTextError(f"it cannot be read as {encoding}: {error}") from error
    decoded = DecodedText(text, encoding, text.count("\ufffd"))
    return decoded if binary else _require_text(decoded)


def _require_text(decoded: DecodedText) -> DecodedText:
    if "\0" in decoded.text or len(_BINARY.findall(decoded.text[:_SAMPLE_CHARS])) > len(decoded.text) * 0.01:
        raise NotTextError("it contains control characters, so it is not text")
    return decoded


def _detect_encoding(data: bytes) -> str:
    """GB18030 or Big5 if nearly all characters are common Chinese ones; else the usual Western encoding.

    Raises:
        NotTextError: it is neither, such as Russian, Japanese, or Chinese with rare characters.
    """
    sample = data[: 4 * _SAMPLE_CHARS]
    high_bytes = sum(byte > 0x7F for byte in sample) or 1
    shares = {
        "gb18030": sum(len(pair) for pair in _double_bytes(sample, _GB_COMMON)) / high_bytes,
        "cp950": sum(1 + (pair[1] > 0x7F) for pair in _double_bytes(sample, _BIG5_COMMON)) / high_bytes,
    }
    best = max(shares, key=lambda name: (shares[name], name))
    if shares[best] >= _MIN_COMMON_SHARE and _decode_by(data, best, binary=True).broken <= len(data) // 1_000:
        return best
    if high_bytes >= _MIN_HIGH_BYTES and high_bytes > len(b"".join(sample.split())) * _MAX_WESTERN_SHARE:
        raise NotTextError("its encoding cannot be detected")
    return "cp1252"


def _double_bytes(sample: bytes, pattern: re.Pattern[bytes]) -> list[bytes]:
    """The double bytes that encode common characters."""
    pairs, index = [], 0
    while index < len(sample):
        if sample[index] <= 0x7F:
            index += 1
            continue
        pair = sample[index : index + 2]
        if pattern.fullmatch(pair):
            pairs.append(pair)
        index += 2
    return pairs
