"""`NAME.query`: pages of rows, exact values, limits, and nothing but reading."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path

import pytest
from tests.tools.sql.conftest import Open, Tools

from taoloop.errors import InvalidArguments, ToolError


def test_rows_come_with_their_columns(tools: Tools) -> None:
    assert tools.query("SELECT id, name FROM users ORDER BY id LIMIT 2") == {
        "columns": ["id", "name"],
        "rows": [[1, "user 1"], [2, "user 2"]],
        "next_offset": None,
    }


def test_a_page_says_where_to_go_on_and_the_pages_are_the_whole(tools: Tools) -> None:  # S2-28
    found: list[int] = []
    offset: int | None = 0
    pages = 0
    while offset is not None:
        page = tools.query("SELECT id FROM users ORDER BY id", limit=30, offset=offset)
        found += [row[0] for row in page["rows"]]
        offset, pages = page["next_offset"], pages + 1
    assert (found, pages) == (list(range(1, 101)), 4)


def test_a_full_last_page_has_no_next(tools: Tools) -> None:
    assert tools.query("SELECT id FROM users ORDER BY id", limit=50, offset=50)["next_offset"] is None


def test_an_offset_beyond_the_end_gives_no_rows(tools: Tools) -> None:
    page = tools.query("SELECT id FROM users", offset=1_000)
    assert (page["rows"], page["next_offset"]) == ([], None)


def test_a_limit_above_the_operators_is_refused(opened: Open) -> None:
    tools = opened(max_rows=10, page_rows=5)
    assert len(tools.query("SELECT id FROM users")["rows"]) == 5
    with pytest.raises(InvalidArguments):
        tools.query("SELECT id FROM users", limit=11)


def test_rows_beyond_the_characters_of_an_answer_come_on_the_next_page(opened: Open) -> None:
    tools = opened(max_result_chars=100)
    page = tools.query("SELECT name FROM users ORDER BY id")
    assert 0 < len(page["rows"]) < 20
    after = tools.query("SELECT name FROM users ORDER BY id", offset=page["next_offset"])
    assert after["rows"][0] == [f"user {page['next_offset'] + 1}"]


def test_one_row_is_given_however_wide_it_is(opened: Open) -> None:
    tools = opened(max_result_chars=1_000)
    wide = ", ".join(f"replace(hex(zeroblob(1000)), '0', 'x') AS c{number}" for number in range(20))
    page = tools.query(f"SELECT {wide} UNION ALL SELECT {wide}")
    assert (len(page["rows"]), page["next_offset"]) == (1, 1)
    assert page["rows"][0][0]["chars"] == 2_000


def test_values_are_bound_and_never_part_of_the_text(tools: Tools) -> None:
    evil = "x' OR 1=1; DROP TABLE users --"
    assert tools.query("SELECT :name", params={"name": evil})["rows"] == [[evil]]
    assert tools.query("SELECT id FROM users WHERE name = :name", params={"name": evil})["rows"] == []


@pytest.mark.parametrize(
    ("statement", "params"),
    [("SELECT :a", {"b": 1}), ("SELECT ':a'", {"a": 1}), ("SELECT :a", {}), ("SELECT :a", {"a": 2**80}),
     ("SELECT :a", {"a": [1]})],
)  # fmt: skip
def test_values_that_do_not_fit_are_said(tools: Tools, statement: str, params: dict[str, object]) -> None:
    assert tools.code("query", statement=statement, params=params) in ("bad_params", "statement_failed")


def test_a_name_in_quotes_is_no_place_for_a_value(tools: Tools) -> None:
    found = tools.query("SELECT ':a', :a -- :a", params={"a": 5})["rows"]
    assert found == [[":a", 5]]


def test_full_text_search_and_json_work_through_the_authorizer(tools: Tools) -> None:
    assert tools.query("SELECT text FROM notes WHERE notes MATCH 'hello' ORDER BY rank")["rows"] == [["hello world"]]
    assert tools.query("SELECT value FROM json_each('[1, 2]')")["rows"] == [[1], [2]]


def test_a_statement_that_never_ends_is_stopped(opened: Open) -> None:
    tools = opened(timeout_s=0.2)
    endless = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r"
    assert tools.code("query", statement=endless) == "statement_timeout"


def test_rows_that_never_end_are_stopped_while_they_are_left_out(opened: Open) -> None:
    tools = opened(timeout_s=0.2)
    endless = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT i FROM r"
    assert tools.code("query", statement=endless, offset=10**12) == "statement_timeout"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("INSERT INTO log VALUES (1)", "not_allowed"),
        ("DELETE FROM users RETURNING id", "not_allowed"),
        ("WITH x AS (SELECT 1) UPDATE users SET name = 'x'", "not_allowed"),
        ("DROP TABLE users", "not_allowed"),
        ("CREATE TEMP TABLE t (a)", "not_allowed"),
        ("PRAGMA query_only = 0", "not_allowed"),
        ("PRAGMA table_info(users)", "not_allowed"),
        ("SELECT * FROM pragma_database_list", "not_allowed"),
        ("ATTACH 'other.db' AS other", "not_allowed"),
        ("VACUUM INTO 'copy.db'", "not_allowed"),
        ("SELECT load_extension('x')", "not_allowed"),
        ("BEGIN IMMEDIATE", "not_allowed"),
        ("SELECT 1; DROP TABLE users", "several_statements"),
        ("SELECT 1; COMMIT; DROP TABLE users", "several_statements"),
        ("/* SELECT */ DELETE FROM users", "not_allowed"),
        ("SELECT * FROM users FOR UPDATE", "statement_failed"),
        ("SELECT * FROM nowhere", "statement_failed"),
        ("SELECT zeroblob(100000000)", "value_too_large"),
        ("-- nothing", "no_rows"),
    ],
)
def test_what_does_not_read_is_refused_by_the_database(
    tools: Tools, shop: Path, statement: str, code: str
) -> None:  # S3-41
    before = shop.read_bytes()
    assert tools.code("query", statement=statement) == code
    assert shop.read_bytes() == before
    assert [one.name for one in shop.parent.iterdir()] == [shop.name]


def test_the_message_is_the_databases_own(tools: Tools) -> None:
    with pytest.raises(ToolError, match=r"no such column: nme"):
        tools.query("SELECT nme FROM users")


def test_hidden_tables_cannot_be_read_in_any_way(opened: Open) -> None:
    tools = opened(hidden=("secret*", "notes"))
    for statement in (
        "SELECT word FROM secrets",
        "SELECT count(*) FROM secrets",
        'SELECT "word" FROM main."SECRETS"',
        "WITH users AS (SELECT word FROM secrets) SELECT * FROM users",
        "SELECT * FROM users WHERE EXISTS (SELECT 1 FROM secrets WHERE word LIKE 's%')",
        "SELECT c0 FROM notes_content",
    ):
        assert tools.code("query", statement=statement) == "not_allowed", statement
    assert tools.query("SELECT count(*) FROM users")["rows"] == [[100]]
    assert "secrets" not in tools("describe_table")["tables"]
    assert tools.code("describe_table", table="secrets") == "no_such_table"


def test_only_the_named_tables_can_be_read(opened: Open) -> None:
    tools = opened(tables=("users",))
    assert tools("describe_table") == {"tables": ["users"]}
    assert tools.code("query", statement="SELECT * FROM orders") == "not_allowed"
    assert tools.code("query", statement="SELECT sql FROM sqlite_master") == "not_allowed"
    assert tools.query("WITH o AS (SELECT 1 AS a) SELECT a FROM o JOIN users LIMIT 1")["rows"] == [[1]]


def test_a_locked_file_is_busy_and_may_be_tried_again(shop: Path, opened: Open) -> None:
    tools = opened(timeout_s=0.1)
    with contextlib.closing(sqlite3.connect(shop, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ToolError) as caught:
            tools.query("SELECT 1 FROM users")
    assert (caught.value.code, caught.value.retryable) == ("database_busy", True)


def test_a_file_that_went_away_is_unavailable_until_it_is_back(shop: Path, tools: Tools) -> None:
    away = shop.with_suffix(".away")
    shop.rename(away)
    with pytest.raises(ToolError) as caught:
        tools.query("SELECT 1")
    assert (caught.value.code, caught.value.retryable) == ("database_unavailable", True)
    assert str(shop.parent) not in str(caught.value)
    assert not shop.exists()
    away.rename(shop)
    assert tools.query("SELECT 1")["rows"] == [[1]]


def test_a_pipe_in_place_of_the_file_is_not_waited_for(shop: Path, tools: Tools) -> None:
    shop.unlink()
    os.mkfifo(shop)
    assert tools.code("query", statement="SELECT 1") == "database_unavailable"


def test_text_that_is_no_utf8_is_given_as_bytes(tools: Tools) -> None:
    assert tools.query("SELECT CAST(x'ff41' AS TEXT)")["rows"] == [[{"bytes": 2, "base64": "/0E="}]]


def test_calls_in_many_threads_do_not_disturb_each_other(tools: Tools) -> None:
    found: list[int] = []

    def ask(number: int) -> None:
        found.append(tools.query("SELECT id FROM users WHERE id = :id", params={"id": number})["rows"][0][0])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(1, 21)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 21))
