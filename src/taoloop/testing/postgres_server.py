"""A throw-away PostgreSQL server for tests: from the binaries of this machine, on a Unix socket, gone at the end.

    @pytest.fixture(scope="session")
    def server():
        with postgres_server() as server:
            yield server

It keeps nothing: without fsync it is quick, and a crash of the machine may damage it.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from taoloop.errors import ConfigError

__all__ = ["PostgresServer", "postgres_binaries", "postgres_server"]

_START_S: Final = 60.0
_USERS: Final = ("postgres", "nobody")
"""Who runs the server where the tests run as root, which PostgreSQL refuses."""

_SETTINGS: Final = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "on",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "max_wal_size": "256MB",
}


def postgres_binaries() -> Path | None:
    """The folder with `initdb` and `postgres`: that of PATH, else the newest in /usr/lib/postgresql; None: neither."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: _number(folder.parent.name))
    if (initdb := shutil.which("initdb")) is not None:
        folders.append(Path(initdb).resolve().parent)
    usable = [folder for folder in folders if (folder / "initdb").is_file() and (folder / "postgres").is_file()]
    return usable[-1] if usable else None


class PostgresServer:
    """A running server. Its superuser is `postgres`, without a password, over the socket alone."""

    def __init__(self, folder: Path, binaries: Path, user: str | None, settings: Sequence[str]) -> None:
        self.folder, self._binaries, self._user, self._settings = folder, binaries, user, settings
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres", *, user: str = "postgres", **parameters: str) -> str:
        """The address of a database."""
        more = "".join(f"&{name}={quote(value)}" for name, value in parameters.items())
        return f"postgresql://{quote(user)}@/{quote(database)}?host={quote(str(self.folder), safe='/')}{more}"

    def new_database(self) -> str:
        """The address of a new, empty database."""
        name = f"test_{secrets.token_hex(6)}"
        self.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def execute(self, statement: str, database: str = "postgres") -> str:
        """Run a statement as superuser with `psql`; returns what it prints, without names of columns."""
        arguments = [str(self._binaries / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url(database)]
        done = subprocess.run([*arguments, "-c", statement], capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise ConfigError(f"psql: {done.stderr.strip()}")
        return done.stdout.strip()

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            ConfigError: it does not; the message has the end of its log.
        """
        log = (self.folder / "log").open("ab")
        arguments = [str(self._binaries / "postgres"), "-D", str(self.folder / "data"), *self._settings]
        with log:
            self._process = subprocess.Popen(arguments, stdout=log, stderr=log, user=self._user)  # noqa: S603
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            ready = [str(self._binaries / "pg_isready"), "-q", "-h", str(self.folder)]
            if subprocess.run(ready, check=False).returncode == 0:  # noqa: S603
                return
            time.sleep(0.02)
        text = (self.folder / "log").read_text(encoding="utf-8", errors="replace")[-2_000:]
        raise ConfigError(f"The PostgreSQL server of the tests did not start: {text}")

    def stop(self, *, at_once: bool = False) -> None:
        """Stop it: transactions in progress are undone; `at_once` as a crash does. Twice is harmless."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT if at_once else signal.SIGINT)
            self._process.wait(_START_S)
        self._process = None


@contextmanager
def postgres_server(**settings: str) -> Iterator[PostgresServer]:
    """A new server with these settings of `postgresql.conf`, as long as the block runs.

    Raises:
        ConfigError: there are no binaries, or it does not start.
    """
    binaries = postgres_binaries()
    if binaries is None:
        raise ConfigError("PostgreSQL is not installed here.", hint="Install it; `initdb` and `postgres` are needed.")
    user = _other_user() if hasattr(os, "geteuid") and os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="tao-pg-", dir="/tmp"))  # a socket's path is short
    try:
        if user is not None:
            shutil.chown(folder, user)
        command = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", "postgres", "-E", "UTF8"]
        command += ["--locale=C", "--no-sync", "--auth=trust"]
        made = subprocess.run(command, capture_output=True, text=True, check=False, user=user)  # noqa: S603
        if made.returncode:
            raise ConfigError(f"initdb: {made.stderr.strip()[-2_000:]}")
        values = {**_SETTINGS, "unix_socket_directories": str(folder), **settings}
        server = PostgresServer(folder, binaries, user, [f"--{name}={value}" for name, value in values.items()])
        try:
            server.start()
            yield server
        finally:
            server.stop(at_once=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _other_user() -> str:
    for name in _USERS:
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise ConfigError("PostgreSQL does not run as root, and there is no user `postgres` or `nobody` here.")


def _number(text: str) -> float:
    return float(text) if text.replace(".", "", 1).isdecimal() else 0.0
