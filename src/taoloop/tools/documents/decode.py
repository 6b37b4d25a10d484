"""Bytes of a text file as text, whatever their encoding: Unicode, what the operator names, or what they look like.

The name of the encoding is kept with the document: `data.decode(encoding, "replace")` gives the same text again, so
that offsets lead back to the file.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_CHARS = 20_000
_USUAL_SHARE = 0.8  # of the characters that are not ASCII
_BROKEN_SHARE = 0.05  # of them: so many may be broken in a text that is UTF-8 all the same
_FOREIGN_SHARE = 0.5  # of the characters: no Western text has so many that are not ASCII
_FOREIGN_BYTES = 20  # fewer say nothing
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CHARSET = re.compile(rb"<meta[^>]{0,300}charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "cp936": "gb18030", "iso-8859-1": "cp1252", "latin-1": "cp1252"}
_WIDER |= {"hz": "gb18030", "iso8859-1": "cp1252", "ascii": "cp1252", "big5": "cp950"}

_BIG5_USUAL = re.compile(rb"[\xa4-\xc6][\x40-\xfe]|\xa1[\x40-\xbf]")
_GB_USUAL = re.compile(rb"[\xb0-\xd7][\xa1-\xfe]|[\xa1-\xa3][\xa1-\xfe]")


class Decoded(NamedTuple):
    """A text, the encoding that it was read by, and how many of its characters were broken."""

    text: str
    encoding: str
    broken: int


class NotTextError(ValueError):
    """The bytes are no text, or in an encoding that cannot be told; says what to do."""


def decode(data: bytes, named: str = "") -> Decoded:
    """The text of a file; `named` is the encoding of what is not Unicode, empty to tell it from the bytes.

    Raises:
        NotTextError: it is no text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _by(data, encoding)
    try:
        return _checked(Decoded(data.decode(), "utf-8", 0))
    except UnicodeDecodeError:
        pass
    if named:
        return _by(data, named)
    loose = _by(data, "utf-8", binary=True)
    strange = sum(not char.isascii() for char in loose.text)
    if loose.broken <= strange * _BROKEN_SHARE:
        return _checked(loose)
    return _by(data, _looks_like(data))


def decode_html(data: bytes, named: str = "") -> Decoded:
    """The source of a page: a byte order mark counts first, then what the page itself says.

    Raises:
        NotTextError: it is no text.
    """
    if not any(data.startswith(mark) for mark, _ in _MARKS) and (found := _CHARSET.search(data[:4_096])):
        said = found[1].decode("ascii").lower()
        try:
            known = codecs.lookup(_WIDER.get(said, said)).name
            data.decode(known)
        except (LookupError, ValueError):
            return decode(data, named)
        if not known.startswith("utf-16"):  # what could be read to find the word is no UTF-16
            return _by(data, known)
    return decode(data, named)


def _by(data: bytes, encoding: str, *, binary: bool = False) -> Decoded:
    try:
        text = data.decode(encoding, "replace")
    except (LookupError, ValueError) as error:  # a codec that gives no text, such as hex
        raise NotTextError(f"it cannot be read as {encoding}: {error}") from error
    decoded = Decoded(text, encoding, text.count("\ufffd"))
    return decoded if binary else _checked(decoded)


def _checked(decoded: Decoded) -> Decoded:
    if "\0" in decoded.text or len(_BINARY.findall(decoded.text[:_SAMPLE_CHARS])) > len(decoded.text) * 0.01:
        raise NotTextError("it holds control characters: it is no text")
    return decoded


def _looks_like(data: bytes) -> str:
    """GB18030 or Big5 if nearly all is as in usual Chinese; else what Western programs wrote before Unicode.

    Raises:
        NotTextError: it is neither: Russian, Japanese, or Chinese with rare characters.
    """
    sample = data[: 4 * _SAMPLE_CHARS]
    high = sum(byte > 0x7F for byte in sample) or 1
    shares = {
        "gb18030": sum(len(pair) for pair in _pairs(sample, _GB_USUAL)) / high,
        "cp950": sum(1 + (pair[1] > 0x7F) for pair in _pairs(sample, _BIG5_USUAL)) / high,
    }
    best = max(shares, key=lambda name: (shares[name], name))
    if shares[best] >= _USUAL_SHARE and _by(data, best, binary=True).broken <= len(data) // 1_000:
        return best
    if high >= _FOREIGN_BYTES and high > len(b"".join(sample.split())) * _FOREIGN_SHARE:
        raise NotTextError("its encoding cannot be told")
    return "cp1252"


def _pairs(sample: bytes, usual: re.Pattern[bytes]) -> list[bytes]:
    """The double bytes that stand for usual characters, read from the first high byte on."""
    found, place = [], 0
    while place < len(sample):
        if sample[place] <= 0x7F:
            place += 1
            continue
        pair = sample[place : place + 2]
        if usual.fullmatch(pair):
            found.append(pair)
        place += 2
    return found
