"""`NAME.execute`: only where it is configured, in a transaction, and bounded."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.tools.sql.conftest import Open, Tools

from taoloop.errors import ToolError


def rows(path: Path, query: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as made:
        return made.execute(query).fetchall()


def test_without_being_asked_for_there_is_no_tool_that_writes(tools: Tools) -> None:
    assert list(tools.by_name) == ["shop.query", "shop.describe_table"]
    assert all(tool.card.tier == "read" for tool in tools.loaded.tools)


def test_a_change_is_kept_and_counted(opened: Open, shop: Path) -> None:
    done = opened(write=True).execute("UPDATE users SET name = :new WHERE id = :id", params={"new": "Li", "id": 1})
    assert done == {"rows_changed": 1}
    assert rows(shop, "SELECT name FROM users WHERE id = 1") == [("Li",)]


def test_rows_that_a_statement_gives_back_are_given(opened: Open) -> None:
    done = opened(write=True).execute("DELETE FROM users WHERE id > 98 RETURNING id")
    assert done == {"rows_changed": 2, "columns": ["id"], "rows": [[99], [100]]}


def test_a_change_of_too_many_rows_is_rolled_back(opened: Open, shop: Path) -> None:
    tools = opened(write=True, max_rows_changed=10)
    with pytest.raises(ToolError, match="would change 100 rows") as caught:
        tools.execute("UPDATE users SET name = name || '!'")
    assert caught.value.code == "too_many_rows"
    assert tools.code("execute", statement="UPDATE users SET name = name || '!' RETURNING id") == "too_many_rows"
    assert rows(shop, "SELECT count(*) FROM users WHERE name LIKE '%!'") == [(0,)]


def test_rows_that_triggers_change_count_too(opened: Open, shop: Path) -> None:
    with contextlib.closing(sqlite3.connect(shop)) as made:
        made.execute("CREATE TRIGGER t AFTER UPDATE ON users BEGIN INSERT INTO log SELECT id FROM users LIMIT 20; END")
    tools = opened(write=True, max_rows_changed=30)
    assert tools.execute("UPDATE users SET name = 'x' WHERE id = 1") == {"rows_changed": 1, "rows_changed_in_all": 21}
    assert tools.code("execute", statement="UPDATE users SET name = id WHERE id < 3") == "too_many_rows"
    assert rows(shop, "SELECT count(*) FROM log") == [(20,)]
    done = tools.execute("UPDATE users SET name = 'y' WHERE id = 1 RETURNING id")
    assert (done["rows_changed"], done["rows_changed_in_all"], done["rows"]) == (1, 21, [[1]])


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE users",
        "CREATE TABLE t (a)",
        "ALTER TABLE users ADD COLUMN a",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT a",
        "PRAGMA foreign_keys = 0",
        "ATTACH 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
        "INSERT INTO log VALUES (1); DROP TABLE users",
        "INSERT INTO orders (user_id) VALUES (99999)",
    ],
)
def test_what_is_more_than_a_change_of_rows_changes_nothing(opened: Open, shop: Path, statement: str) -> None:
    before = shop.read_bytes()
    assert opened(write=True).code("execute", statement=statement)
    assert shop.read_bytes() == before
    assert [one.name for one in shop.parent.iterdir()] == [shop.name]


def test_the_structure_may_change_where_the_operator_says_so_and_the_tier_follows(opened: Open, shop: Path) -> None:
    assert opened(write=True).by_name["shop.execute"].card.tier == "write"
    tools = opened(write=True, structure=True)
    assert tools.by_name["shop.execute"].card.tier == "destructive"
    tools.execute("DROP TABLE log")
    assert rows(shop, "SELECT count(*) FROM sqlite_master WHERE name = 'log'") == [(0,)]
    for statement in ("ATTACH 'other.db' AS other", "PRAGMA writable_schema = 1", "COMMIT"):
        assert tools.code("execute", statement=statement) == "not_allowed"


def test_the_tiers_are_the_operators_to_choose(opened: Open) -> None:
    tools = opened(write=True, write_tier="destructive", read_tier="write")
    assert [tool.card.tier for tool in tools.loaded.tools] == ["write", "read", "destructive"]


def test_hidden_tables_cannot_be_changed(opened: Open) -> None:
    assert opened(write=True, hidden=("log",)).code("execute", statement="INSERT INTO log VALUES (1)") == "not_allowed"


def test_a_change_that_takes_too_long_is_rolled_back_and_says_so(opened: Open, shop: Path) -> None:
    endless = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) INSERT INTO log SELECT count(*) FROM r"
    assert opened(write=True, timeout_s=0.2).code("execute", statement=endless) == "statement_timeout"
    assert rows(shop, "SELECT count(*) FROM log") == [(0,)]


def test_a_call_that_is_repeated_under_its_key_changes_nothing_a_second_time(
    opened: Open, shop: Path
) -> None:  # S0-38, S1-58
    tools = opened(write=True, calls_table="tao_calls")
    assert tools.by_name["shop.execute"].card.idempotent
    first = tools.execute("INSERT INTO log VALUES (7) RETURNING user_id", key="run.1")
    assert tools.execute("INSERT INTO log VALUES (7) RETURNING user_id", key="run.1") == first
    assert rows(shop, "SELECT count(*) FROM log") == [(1,)]
    tools.execute("INSERT INTO log VALUES (7)", key="run.2")
    assert rows(shop, "SELECT call_key FROM tao_calls") == [("run.1",), ("run.2",)]


def test_a_call_that_failed_leaves_no_key_behind(opened: Open, shop: Path) -> None:
    tools = opened(write=True, calls_table="tao_calls")
    assert tools.code("execute", statement="INSERT INTO nowhere VALUES (1)", key="run.1") == "statement_failed"
    assert rows(shop, "SELECT count(*) FROM tao_calls") == [(0,)]


@pytest.mark.parametrize("statement", ["DELETE FROM tao_calls", "SELECT * FROM TAO_CALLS", "DROP TABLE tao_calls"])
def test_the_keys_are_out_of_a_statements_reach(opened: Open, statement: str) -> None:
    tools = opened(write=True, structure=True, calls_table="tao_calls")
    tools.execute("INSERT INTO log VALUES (1)", key="run.1")
    assert tools.code("execute", statement=statement, key="run.2") == "not_allowed"
    assert tools.code("query", statement="SELECT * FROM tao_calls") == "not_allowed"
    assert "tao_calls" not in tools("describe_table")["tables"]


def test_without_a_table_for_keys_a_call_is_not_idempotent(opened: Open) -> None:
    assert not opened(write=True).by_name["shop.execute"].card.idempotent
