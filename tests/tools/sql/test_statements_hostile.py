"""No statement changes anything through the query tool: statements made of what changes things, in any order."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples
from tests.tools.sql.conftest import Tools, make_shop

from taoloop.errors import ToolError
from taoloop.tools.sql import Database, sql_tools

NAMES = st.sampled_from(
    ["users", "main.users", '"users"', "orders", "log", "notes", "notes_data", "sqlite_master", "temp.t"]
)
VALUES = st.sampled_from(["1", "NULL", "'x'", "x'00'", "random()", "(SELECT max(id) FROM users)", "1/0", "zeroblob(9)"])
FILES = st.sampled_from(["'copy.db'", "':memory:'", "'file:copy.db?mode=rwc'", "''", "char(99)"])
PRAGMAS = st.sampled_from(
    ["query_only=0", "writable_schema=1", "journal_mode=WAL", "user_version=7", "application_id=1", "auto_vacuum=1",
     "wal_checkpoint(TRUNCATE)", "incremental_vacuum", "optimize", "encoding='UTF-16'", "page_size=512",
     "trusted_schema=1", "locking_mode=EXCLUSIVE", "temp_store_directory='.'"]
)  # fmt: skip
READS = st.builds("SELECT {} FROM {}".format, VALUES, NAMES)
CHANGES = st.one_of(
    st.builds("INSERT INTO {} VALUES ({}, {})".format, NAMES, VALUES, VALUES),
    st.builds("REPLACE INTO {} SELECT * FROM users".format, NAMES),
    st.builds("UPDATE OR IGNORE {} SET name = {}".format, NAMES, VALUES),
    st.builds("DELETE FROM {} RETURNING *".format, NAMES),
    st.builds("INSERT INTO notes (notes) VALUES ('{}')".format, st.sampled_from(["rebuild", "optimize", "delete-all"])),
    st.builds("DROP TABLE IF EXISTS {}".format, NAMES),
    st.builds("ALTER TABLE {} RENAME TO gone".format, NAMES),
    st.builds("CREATE {} TABLE t AS {}".format, st.sampled_from(["", "TEMP"]), READS),
    st.builds("CREATE TRIGGER g AFTER INSERT ON {} BEGIN DELETE FROM log; END".format, NAMES),
    st.builds("CREATE VIRTUAL TABLE v USING {}".format, st.sampled_from(["fts5(a)", "rtree(a, b, c)", "dbstat"])),
    st.builds("PRAGMA {}".format, PRAGMAS),
    st.builds("SELECT * FROM pragma_{}".format, st.sampled_from(["user_version", "wal_checkpoint", "journal_mode"])),
    st.builds("ATTACH {} AS other".format, FILES),
    st.builds("VACUUM INTO {}".format, FILES),
    st.sampled_from(
        ["VACUUM", "REINDEX", "ANALYZE", "BEGIN EXCLUSIVE", "COMMIT", "ROLLBACK", "SAVEPOINT s", "RELEASE s"]
    ),
    st.builds("SELECT {}({}, {})".format, st.sampled_from(["load_extension", "writefile", "edit"]), FILES, VALUES),
)
ONE = st.one_of(
    READS,
    CHANGES,
    st.builds("EXPLAIN {}".format, CHANGES),
    st.builds("WITH x AS ({}) {}".format, READS, CHANGES),
    st.builds("WITH x AS ({}) SELECT * FROM x".format, CHANGES),
    st.builds("SELECT * FROM ({}) UNION ALL {}".format, READS, READS),
)
GLUE = st.sampled_from([";", "; ", ";\n--\n", " /* */ ", " -- \n", ";\x00", "';", '";', "\ufeff", ""])
NASTY = st.builds("".join, st.lists(st.one_of(ONE, GLUE, st.builds("{}{}".format, GLUE, ONE)), min_size=1, max_size=4))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = make_shop(tmp_path_factory.mktemp("nasty") / "shop.db", users=5)
    yield path
    with contextlib.closing(sqlite3.connect(path)) as made:
        assert made.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@examples(250)
@given(statement=NASTY)
def test_no_statement_changes_a_byte_or_makes_a_file(path: Path, statement: str) -> None:
    tools = Tools(sql_tools(Database(name="shop", url=f"sqlite:///{path}", timeout_s=0.5)))
    before, here = hashlib.sha256(path.read_bytes()).digest(), set(Path.cwd().iterdir())
    with contextlib.suppress(ToolError):
        tools.query(statement)
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert list(path.parent.iterdir()) == [path]
    assert set(Path.cwd().iterdir()) == here
