"""One server for all tests of the PostgreSQL journal, and a PostgreSQL schema of its own for each."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from taoloop.journals.postgres.journal import PostgresJournal
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


@pytest.fixture
def new_journal(url: str) -> Callable[..., PostgresJournal]:
    """Makes journals that share a database."""

    def make(**settings: Any) -> PostgresJournal:
        return PostgresJournal(url, **settings)

    return make
