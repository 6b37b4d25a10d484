"""The encodings in which a known secret may appear: as it is, escaped, percent-encoded, in base64, in hex."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator, Mapping

from taoloop.core.text import lazy_pattern

MIN_SECRET_CHARS = 8
"""Characters. A shorter value is not searched for: it would be found in ordinary text."""

_MIN_CORE_CHARS = 10  # characters of base64; fewer are no proof
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_DECIMAL = lazy_pattern(r"-?[0-9]+\.[0-9]+")
_NAMES = lazy_pattern(
    r"(?:^|_)(?:API_?KEY|TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|CREDENTIALS?)$"
    r"|PASSWORD",
    re.IGNORECASE,
)


def secrets_of(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment whose names say that they are secret: `*_API_KEY`, `*_TOKEN`, `*PASSWORD*` …"""
    return {name: value for name, value in environ.items() if len(value) >= MIN_SECRET_CHARS and _NAMES.search(name)}


def encoded_forms(value: str) -> list[str]:
    """Every form of `value` that is searched for, the longest first, each once."""
    forms = {value, *_escaped_forms(value), *_percent_forms(value), *_binary_forms(value.encode("utf-8", "replace"))}
    return sorted((form for form in forms if len(form) >= MIN_SECRET_CHARS), key=len, reverse=True)


def _escaped_forms(value: str) -> Iterator[str]:
    for ascii_only in (False, True):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]  # JSON inside JSON
        yield once.replace("/", "\\/")
    yield repr(value)[1:-1]
    yield html.escape(value)
    yield html.escape(value, quote=False)
    if _DECIMAL.fullmatch(value):
        yield value.rstrip("0")  # as a number, which keeps no zeros at its end


def _percent_forms(value: str) -> Iterator[str]:
    raw = value.encode("utf-8", "replace")
    whole = "".join(chr(byte) if chr(byte) in _UNRESERVED else f"%{byte:02X}" for byte in raw)
    for form in (whole, whole.replace("%2F", "/"), whole.replace("%20", "+")):
        yield form
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form)


def _binary_forms(raw: bytes) -> Iterator[str]:
    yield raw.hex()
    yield raw.hex().upper()
    for lead in range(3):  # the bytes before it shift the groups of three bytes
        text = base64.b64encode(b"\0" * lead + raw).decode()
        core = text[
            -(-8 * lead // 6) : 8 * (lead + len(raw)) // 6
        ]  # only characters that no neighbouring byte contributes to
        if len(core) >= _MIN_CORE_CHARS:
            yield core
            yield core.replace("+", "-").replace("/", "_")
