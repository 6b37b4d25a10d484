"""The PostgreSQL engine passes the contract of engines, over a real server."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from taoloop.testing import EngineContract
from taoloop.testing.postgres_server import PostgresServer


class TestPostgresEngine(EngineContract):
    engine = "postgres"
    lease_s = 3.0  # a worker that was killed keeps its runs for so long

    @pytest.fixture(autouse=True)
    def _with_server(self, server: PostgresServer) -> None:
        self.server = server

    def database(self, _folder: Path) -> str:
        return self.server.url(schema=f"test_{secrets.token_hex(6)}")
