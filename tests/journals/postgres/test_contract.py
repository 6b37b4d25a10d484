"""The PostgreSQL journal passes the contract of all journals, and that of all that can be queried."""

from __future__ import annotations

import pytest

from taoloop.journals.base import Journal
from taoloop.journals.postgres.journal import PostgresJournal
from taoloop.testing.journal_query_contract import JournalQueryContract


class TestPostgresJournal(JournalQueryContract):
    url: str

    @pytest.fixture(autouse=True)
    def _new_database(self, url: str) -> None:
        self.url = url

    async def make_journal(self) -> Journal:
        return PostgresJournal(self.url, reconnect_s=0)
