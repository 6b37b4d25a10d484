"""The certificate with which the server answers: its files, what is wrong with them, and how it is renewed.

The standard library does not read a certificate by itself. What a client would find is found by a handshake in memory
with one that trusts nothing but this certificate.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from taoloop.errors import ConfigError

_EXPIRED, _NOT_YET_VALID = 10, 9
"""OpenSSL's codes of a certificate outside of its time (`X509_V_ERR_CERT_HAS_EXPIRED`, `…_NOT_YET_VALID`)."""

_ROUNDS = 10
"""A handshake needs two or three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The files of `tls`, in PEM."""

    cert: Path
    """The certificate of the server, followed by those of its issuers."""

    key: Path
    """Its private key, without a passphrase."""

    client_ca: Path | None = None
    """The issuers of clients' certificates: a client without one of theirs gets no connection. None: none is needed."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files."""
        return (self.cert, self.key) if self.client_ca is None else (self.cert, self.key, self.client_ca)


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """The TLS context of a server with these files, for TLS 1.2 and later.

    Raises:
        ConfigError: a file is missing or is not what it should be, or certificate and key do not match.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, files)
    if files.client_ca is not None:
        try:
            context.load_verify_locations(files.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise _unusable("client_ca", files.client_ca, error) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def load_certificate(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Use the certificate in these files for every handshake from now on; connections that are open stay as they are.

    Raises:
        ConfigError: a file is missing or is not what it should be, or the two do not match.
    """
    for name, path in (("cert", files.cert), ("key", files.key)):
        try:
            path.read_bytes()
        except OSError as error:
            raise _unusable(name, path, error) from error
    try:
        context.load_cert_chain(files.cert, files.key, password=_no_passphrase)
    except ConfigError:
        raise
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(
                f"{files.key} is not the private key of the certificate {files.cert}.",
                hint="Name the two files that were made together.",
            ) from error
        message = f"{files.cert} and {files.key} are not a certificate and its private key in PEM ({error.reason})."
        raise ConfigError(message, hint="The certificate of the server comes first in its file.") from error


def certificate_problem(files: TlsFiles) -> str:
    """What is wrong with the time or the purpose of the certificate, as a sentence; empty: clients can accept it.

    Raises:
        ConfigError: as `server_context`.
    """
    server = server_context(TlsFiles(cert=files.cert, key=files.key))
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # trusts the certificate itself, whoever issued it
    client.load_verify_locations(files.cert)
    try:
        _shake_hands(server, client)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code == _EXPIRED:
            return f"The certificate {files.cert} has expired: clients refuse it."
        if error.verify_code == _NOT_YET_VALID:
            return f"The certificate {files.cert} is not valid yet: clients refuse it."
        return f"Clients refuse the certificate {files.cert}: {error.verify_message}."
    return ""


def require_valid_certificate(files: TlsFiles | None) -> None:
    """Refuse a certificate that clients would refuse.

    Raises:
        ConfigError: it has expired, is not valid yet, or is not for servers.
    """
    if files is not None and (problem := certificate_problem(files)):
        raise ConfigError(problem, hint="Renew it; a running server uses the new one by itself.")


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_side=False),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(_ROUNDS):
        for side in tuple(sides):
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                pass
        if not sides:
            return


def _no_passphrase() -> str:
    raise ConfigError(
        "the private key has a passphrase, and nobody could type it.", hint="Store it without, readable by the server."
    )


def _unusable(name: str, path: Path, error: OSError) -> ConfigError:
    reason = error.strerror or str(error)
    return ConfigError(
        f"`{name}`: {path} cannot be read ({reason}).", hint="Name a file in PEM that the server may read."
    )
