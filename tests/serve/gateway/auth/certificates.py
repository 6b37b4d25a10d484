"""Certificates and tokens for tests, signed by keys that are made here."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from taoloop.serve.gateway.config.tls import TlsFiles

RSA_KEY, OTHER_RSA_KEY = (rsa.generate_private_key(65537, 2048) for _ in range(2))


def write_certificate(folder: Path, name: str = "server", *, days: float = 10, starts: float = -5) -> TlsFiles:
    """A certificate for localhost that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=starts))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = TlsFiles(cert=folder / f"{name}.pem", key=folder / f"{name}.key")
    files.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    files.key.write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    return files


def jwks(key: Any = RSA_KEY, kid: str = "k1", **fields: Any) -> dict[str, Any]:
    """The key set of an issuer."""
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    return {"keys": [{**public, "kid": kid, "use": "sig", **fields}]}


def token(key: Any = RSA_KEY, *, kid: str | None = "k1", algorithm: str = "RS256", **claims: Any) -> str:
    """A token for `ann`; a claim that is None is left out."""
    now = datetime.now(UTC).timestamp()
    values = {"sub": "ann", "iss": "https://id.example", "aud": "tao", "exp": now + 600, **claims}
    kept = {name: value for name, value in values.items() if value is not None}
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(kept, key, algorithm=algorithm, headers=headers)
