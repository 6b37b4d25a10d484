"""A server of MariaDB or MySQL of a test's own, as the user nobody, and how to reach it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.tools.sql.conftest import Tools, as_nobody

from taoloop.errors import ToolError
from taoloop.tools.sql import Database, sql_tools

PASSWORD = "pass%40word"


@contextmanager
def served(program: str, install: Sequence[str], name: str, setup: str) -> Iterator[int]:
    """The port of a new server of `program`, whose folder `install` makes; `setup` has its first statements."""
    home = Path("/tmp") / f"taoloop-{name}-{os.getpid()}"  # noqa: S108  # nobody cannot enter the folders of pytest
    home.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(home, "nobody")
    data = f"--datadir={home / 'data'}"
    first, *others = install
    done = subprocess.run(
        [first, "--no-defaults", data, *others], capture_output=True, check=False, cwd="/", **as_nobody()
    )
    if done.returncode:
        shutil.rmtree(home)
        pytest.skip(f"{first} does not work here: {done.stderr.decode()[:200]}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    running = subprocess.Popen(
        [program, "--no-defaults", data, f"--socket={home / 'sock'}", f"--port={port}", "--bind-address=127.0.0.1",
         "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0", "--secure-file-priv="],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", **as_nobody(),
    )  # fmt: skip
    try:
        assert running.stderr is not None
        for line in running.stderr:
            if b"ready for connections" in line and b"X Plugin" not in line:
                break
        with boss(port) as connection, connection.cursor() as cursor:
            for statement in setup.split("\n--\n"):
                cursor.execute(statement)
        yield port
    finally:
        running.terminate()
        running.communicate(timeout=60)
        shutil.rmtree(home)


def boss(port: int) -> Any:
    import pymysql  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: PLC0415  # it may not be there

    return pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True)


def asked(port: int, query: str) -> Any:
    with boss(port) as connection, connection.cursor() as cursor:
        cursor.execute("USE shop")
        cursor.execute(query)
        return cursor.fetchall()


def opened(port: int, user: str = "reader", password: str = PASSWORD, **settings: Any) -> Tools:
    url = f"mysql://{user}:{password}@127.0.0.1:{port}/shop"
    return Tools(sql_tools(Database(**{"name": "shop", "url": url, **settings})))


def assert_busy_while_held(port: int, writer: Tools) -> None:
    """A row that somebody else's transaction holds is told as busy, to be tried again."""
    with boss(port) as other, other.cursor() as cursor:
        other.begin()
        cursor.execute("UPDATE shop.users SET name = 'held' WHERE id = 5")
        with pytest.raises(ToolError) as caught:
            writer.execute("DELETE FROM users WHERE id = 5")
        other.rollback()
    assert (caught.value.code, caught.value.retryable) == ("database_busy", True)
