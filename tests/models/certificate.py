"""A certificate for 127.0.0.1 that nobody trusts, with its key, made anew for each test: the curve P-256, and DER."""

from __future__ import annotations

import base64
import hashlib
import secrets
from pathlib import Path

_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_EC_KEY, _P256 = bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex("06082a8648ce3d030107")
_ECDSA_SHA256 = bytes.fromhex("300a06082a8648ce3d040302")
_NAME = bytes.fromhex("3014311230100603550403") + b"\x0c\x09localhost"
_VALID = b"\x17\x0d000101000000Z", b"\x18\x0f21000101000000Z"  # UTCTime 2000, GeneralizedTime 2100

_Point = tuple[int, int]


def make_certificate(path: Path) -> Path:
    """Write a key and its certificate to `path`, in PEM."""
    key = secrets.randbelow(_ORDER - 1) + 1
    x, y = _times(key, _BASE)
    point = b"\x04" + x.to_bytes(32, "big") + y.to_bytes(32, "big")
    public = _tag(0x30, _tag(0x30, _EC_KEY, _P256), _tag(3, b"\0", point))
    known_by = hashlib.sha256(point).digest()[:20]
    extensions = _tag(
        0x30,
        _extension("551d0e", _tag(4, known_by)),  # the key's identifier, and that of its issuer: the same
        _extension("551d23", _tag(0x30, _tag(0x80, known_by))),
        _extension("551d13", _tag(0x30, b"\x01\x01\xff"), b"\x01\x01\xff"),  # an authority (critical)
        _extension("551d11", _tag(0x30, _tag(0x87, bytes([127, 0, 0, 1])))),
    )
    serial, version = _integer(1), _tag(0xA0, _integer(2))
    names = (_ECDSA_SHA256, _NAME, _tag(0x30, *_VALID), _NAME)
    said = _tag(0x30, version, serial, *names, public, _tag(0xA3, extensions))
    signed = _tag(0x30, said, _ECDSA_SHA256, _tag(3, b"\0", _signature(key, said)))
    private = _tag(0x30, _integer(1), _tag(4, key.to_bytes(32, "big")), _tag(0xA0, _P256))
    path.write_text(_pem("EC PRIVATE KEY", private) + _pem("CERTIFICATE", signed))
    return path


def _signature(key: int, data: bytes) -> bytes:
    digest, once = int.from_bytes(hashlib.sha256(data).digest(), "big"), secrets.randbelow(_ORDER - 1) + 1
    r = _times(once, _BASE)[0] % _ORDER
    return _tag(0x30, _integer(r), _integer(pow(once, -1, _ORDER) * (digest + r * key) % _ORDER))


def _times(factor: int, point: _Point) -> _Point:
    found: _Point | None = None
    while factor:
        if factor & 1:
            found = point if found is None else _plus(found, point)
        point, factor = _plus(point, point), factor >> 1
    assert found is not None
    return found


def _plus(one: _Point, other: _Point) -> _Point:
    (x1, y1), (x2, y2) = one, other
    rise, run = (3 * x1 * x1 - 3, 2 * y1) if one == other else (y2 - y1, x2 - x1)
    slope = rise * pow(run, -1, _P) % _P
    x = (slope * slope - x1 - x2) % _P
    return x, (slope * (x1 - x) - y1) % _P


def _tag(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    size = len(body)
    length = bytes([size]) if size < 128 else bytes([0x82]) + size.to_bytes(2, "big")
    return bytes([tag]) + length + body


def _integer(value: int) -> bytes:
    return _tag(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _extension(name: str, value: bytes, critical: bytes = b"") -> bytes:
    return _tag(0x30, _tag(6, bytes.fromhex(name)), critical, _tag(4, value))


def _pem(kind: str, der: bytes) -> str:
    return f"-----BEGIN {kind}-----\n{base64.encodebytes(der).decode()}-----END {kind}-----\n"
