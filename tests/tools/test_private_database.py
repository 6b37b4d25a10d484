"""Files of tools are known by their kind, readable by their owner only, and never taken for another's."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from taoloop.tools.private_database import DatabaseKind, open_database, transaction

KIND = DatabaseKind(application_id=77, version=2, tables="CREATE TABLE word (text TEXT); CREATE TABLE other (n INT)")


class RefusedError(Exception):
    pass


def words_of(path: Path, kind: DatabaseKind = KIND) -> list[str]:
    with open_database(path, kind, 1.0, RefusedError) as database:
        return [text for (text,) in database.execute("SELECT text FROM word")]


def test_a_new_file_has_its_tables_and_is_the_owners_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "words.db"
    with open_database(path, KIND, 1.0, RefusedError) as database, transaction(database):
        database.execute("INSERT INTO word VALUES ('tea')")
    assert words_of(path) == ["tea"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_error_takes_back_what_a_transaction_wrote(tmp_path: Path) -> None:
    def fail() -> None:
        with open_database(path, KIND, 1.0, RefusedError) as database, transaction(database):
            database.execute("INSERT INTO word VALUES ('tea')")
            raise ZeroDivisionError

    path = tmp_path / "words.db"
    with pytest.raises(ZeroDivisionError):
        fail()
    assert words_of(path) == []


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.db"
    words_of(path, KIND._replace(version=3))
    with pytest.raises(RefusedError, match="newer"):
        words_of(path)


@pytest.mark.parametrize("statement", ["CREATE TABLE mine (x)", "PRAGMA user_version = 1", "PRAGMA application_id = 1"])
def test_a_file_of_another_kind_is_refused_and_not_changed(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "words.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)
    before = path.read_bytes()
    with pytest.raises(RefusedError, match="other"):
        words_of(path)
    assert path.read_bytes() == before
