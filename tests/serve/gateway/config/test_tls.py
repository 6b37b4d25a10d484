"""TLS in the server: files are checked before they are used, and a renewed certificate needs no restart."""

from __future__ import annotations

import http.client
import shutil
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from click.testing import CliRunner
from tests.serve.gateway.auth.certificates import write_certificate
from tests.serve.gateway.conftest import Running, agent, config_of, gateway, until, upstream

from taoloop.cli.app import cli
from taoloop.errors import AgentFileError, ConfigError
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.serve.gateway.config.tls import TlsFiles, certificate_problem, require_valid_certificate, server_context


def trusting(files: TlsFiles, own: TlsFiles | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=files.cert)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if own is not None:
        context.load_cert_chain(own.cert, own.key)
    return context


def status_of(running: Running, context: ssl.SSLContext) -> int:
    connection = http.client.HTTPSConnection("localhost", urlsplit(running.url).port, context=context, timeout=20)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    finally:
        connection.close()


def is_trusted(running: Running, files: TlsFiles) -> bool:
    try:
        return status_of(running, trusting(files)) == 200
    except ssl.SSLCertVerificationError:
        return False


def test_a_renewed_certificate_is_used_without_a_restart_and_half_of_one_is_not(tmp_path: Path) -> None:
    files = write_certificate(tmp_path)
    old = TlsFiles(cert=tmp_path / "old.pem", key=files.key)
    shutil.copy(files.cert, old.cert)
    with upstream("x") as server:
        config = config_of(agent(server), tls=files, files={})
        with gateway(config) as running:
            assert running.url.startswith("https://")
            assert is_trusted(running, old)
            renewed = write_certificate(tmp_path, "renewed")
            shutil.copy(renewed.cert, files.cert)
            running.reload()
            until(lambda: any("not used" in text for text in running.said))
            assert is_trusted(running, old)  # the key is still the old one
            shutil.copy(renewed.key, files.key)
            running.reload()
            until(lambda: any("is in use" in text for text in running.said))
            assert is_trusted(running, renewed)
            assert not is_trusted(running, old)


def test_with_client_ca_a_client_needs_a_certificate_of_it(tmp_path: Path) -> None:
    files, client, stranger = (write_certificate(tmp_path, name) for name in ("server", "client", "stranger"))
    with upstream("x") as server:
        config = config_of(agent(server), tls=replace(files, client_ca=client.cert))
        with gateway(config) as running:
            assert status_of(running, trusting(files, client)) == 200
            for own in (None, stranger):
                with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
                    status_of(running, trusting(files, own))


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda files, _: files.cert.unlink(), "server.pem cannot be read"),
        (lambda files, _: files.key.unlink(), "server.key cannot be read"),
        (lambda files, _: files.cert.write_text("no"), "are not a certificate"),
        (lambda files, other: shutil.copy(other.key, files.key), "is not the private key"),
    ],
)
def test_files_that_cannot_be_used_are_named(
    tmp_path: Path, spoil: Callable[[TlsFiles, TlsFiles], object], problem: str
) -> None:
    files, other = write_certificate(tmp_path), write_certificate(tmp_path, "other")
    spoil(files, other)
    with pytest.raises(ConfigError, match=problem):
        server_context(files)


@pytest.mark.parametrize(("days", "starts", "problem"), [(-1, -5, "has expired"), (9, 3, "not valid yet"), (9, -1, "")])
def test_a_certificate_out_of_its_time_is_found(tmp_path: Path, days: float, starts: float, problem: str) -> None:
    files = write_certificate(tmp_path, days=days, starts=starts)
    found = certificate_problem(files)
    assert (problem in found) if problem else not found
    if problem:
        with pytest.raises(ConfigError, match=problem):
            require_valid_certificate(files)


def written(folder: Path, **fields: object) -> Path:
    path = folder / "gate.yaml"
    path.write_text(yaml.safe_dump({"agents": {"a": {"model": "offline"}}, **fields}))
    return path


def test_the_check_fails_for_an_expired_certificate_which_a_running_server_only_reports(tmp_path: Path) -> None:
    write_certificate(tmp_path, days=-1)
    path = written(tmp_path, tls={"cert": "server.pem", "key": "server.key"})
    config = load_config(path, env={})
    assert any("has expired" in warning for warning in config.warnings)  # a reload must still block a key
    assert {tmp_path / "server.pem", tmp_path / "server.key"} <= set(config.files)
    result = CliRunner().invoke(cli, ["serve", str(path), "--check"], standalone_mode=False)
    assert isinstance(result.exception, ConfigError)
    assert "has expired" in str(result.exception)


def test_the_fields_of_tls_are_checked_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, tls={"cert": "absent.pem", "key": "absent.key"})
    with pytest.raises(AgentFileError, match=r"absent\.pem cannot be read"):
        load_config(path, env={})
    path = written(tmp_path, tls={"cert": "absent.pem"})
    with pytest.raises(AgentFileError, match="key"):
        load_config(path, env={})
