"""One PostgreSQL server for all tests of its engine, and a PostgreSQL schema of its own for each."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from taoloop.testing.postgres_server import PostgresServer, postgres_binaries, postgres_server


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    if postgres_binaries() is None:
        pytest.skip("PostgreSQL is not installed here: no `initdb` and `postgres`")
    with postgres_server() as running:
        yield running


@pytest.fixture
def url(server: PostgresServer) -> str:
    """The address of a new, empty journal."""
    return server.url(schema=f"test_{secrets.token_hex(6)}")
