"""What the model sees of a schema: names as a statement writes them, enumerations, and sample values on request."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from tests.tools.sql.conftest import Open, Tools

from taoloop.core.cards.card_lint import lint
from taoloop.tools.sql import Database, sql_tools
from taoloop.tools.sql.engines import Server, StatementTimeout
from taoloop.tools.sql.mysql import Mysql
from taoloop.tools.sql.schema import write_name
from taoloop.tools.sql.sqlite import Sqlite
from taoloop.tools.sql.statements import fetch_rows

POSTGRESQL = postgresql.psycopg.dialect()  # type: ignore[no-untyped-call]  # of SQLAlchemy
ODD = '''
    CREATE TABLE "order" (id INTEGER PRIMARY KEY, "unit price" REAL, userId INT,
        state TEXT CHECK (state IN ('open', 'paid')));
    CREATE TABLE "order items" ("order" INTEGER REFERENCES "order" (id), "100%" TEXT, PRIMARY KEY ("order", "100%"));
    CREATE TABLE "say ""hi""" (a);
    CREATE TABLE 订单 (编号 INTEGER);
    INSERT INTO "order" VALUES (1, 2.5, 7, 'open'), (2, 2.5, NULL, 'paid'), (3, 4, 8, 'open'), (4, 5, 9, NULL);
'''


@pytest.fixture
def odd(tmp_path: Path) -> str:
    path = tmp_path / "odd.db"
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.executescript(ODD)
    return f"sqlite:///{path}"


def opened(url: str, **settings: Any) -> Tools:
    return Tools(sql_tools(Database(**{"name": "shop", "url": url, **settings})))


def test_names_that_need_quotes_have_them_wherever_the_model_sees_them(odd: str) -> None:
    tools = opened(odd)
    card = tools.by_name["shop.query"].card
    text = card.input_schema["properties"]["statement"]["description"]
    assert '"order"(id INTEGER PRIMARY KEY, "unit price" REAL, userId INTEGER, state TEXT)' in text
    assert '"order items"("order" INTEGER -> "order".id, "100%" TEXT, PRIMARY KEY ("order", "100%"))' in text
    listed = tools("describe_table")["tables"]
    assert listed == ['"order"', '"order items"', '"say ""hi"""', '"订单"']
    for name in listed:
        assert tools.query(f"SELECT count(*) FROM {name}")["rows"]  # noqa: S608  # quoted by what is tested
    assert tools.query(card.examples[0].args["statement"])["rows"]


@pytest.mark.parametrize("name", ['"order items"', "order items"])
def test_a_table_is_described_by_its_name_with_and_without_quotes(odd: str, name: str) -> None:
    described = opened(odd)("describe_table", table=name)
    assert described["table"] == '"order items"'
    assert [column["name"] for column in described["columns"]] == ['"order"', '"100%"']
    assert described["columns"][0]["references"] == '"order".id'
    assert described["primary_key"] == ['"order"', '"100%"']


@pytest.mark.parametrize(
    ("dialect", "names", "written"),
    [
        (POSTGRESQL, ("Shop", "userId"), '"Shop"."userId"'),
        (POSTGRESQL, ("user", "100%"), '"user"."100%"'),
        (POSTGRESQL, ("shop", "users"), "shop.users"),
        (mysql.dialect(), ("Order", "a`b", "userId", "two words"), "`Order`.`a``b`.userId.`two words`"),
        (sqlite.dialect(), ("Select", "userId", "1st", 'a"b'), '"Select".userId."1st"."a""b"'),
    ],
)
def test_each_database_has_its_own_quotes(dialect: Any, names: tuple[str, ...], written: str) -> None:
    assert write_name(dialect, *names) == written


def test_the_values_that_a_column_permits_are_described(odd: str) -> None:
    assert opened(odd)("describe_table", table="order")["checks"] == ["state IN ('open', 'paid')"]


def test_sample_values_come_on_request_where_the_operator_permits_them(odd: str) -> None:
    tools = opened(odd, samples=True)
    card = tools.by_name["shop.describe_table"].card
    assert not lint(card)
    assert "never its rows" not in card.purpose
    assert "samples" not in str(tools("describe_table", table="order")["columns"])
    described = tools("describe_table", table="order", samples=True)
    assert {column["name"]: column["samples"] for column in described["columns"]} == {
        "id": [1, 2, 3],
        '"unit price"': [2.5, 4.0, 5.0],
        "userId": [7, 8, 9],
        "state": ["open", "paid"],
    }
    assert "samples" not in opened(odd).by_name["shop.describe_table"].card.input_schema["properties"]


def test_sample_values_are_short_rows_of_the_tier_of_reading_and_of_what_is_shown(shop: Path, opened: Open) -> None:
    with contextlib.closing(sqlite3.connect(shop)) as made:
        made.execute("INSERT INTO secrets VALUES (?)", ("x" * 500,))
        made.execute("CREATE VIEW peeks AS SELECT word FROM secrets")
        made.commit()
    tools = opened(samples=True, read_tier="write")
    assert tools.by_name["shop.describe_table"].card.tier == "write"
    (column,) = tools("describe_table", table="secrets", samples=True)["columns"]
    assert column["samples"] == ["sesame", {"text_start": "x" * 60, "chars": 500}]
    hiding = opened(samples=True, hidden=("secrets",))
    assert hiding.code("describe_table", table="secrets", samples=True) == "no_such_table"
    assert hiding.code("describe_table", table="peeks", samples=True) == "not_allowed"
    assert hiding("describe_table", table="peeks")["kind"] == "view"


def test_rows_of_a_file_are_read_one_by_one_and_those_of_a_server_in_batches_while_they_are_small(odd: str) -> None:
    class Result:
        """Endless rows that are large from the twentieth on."""

        def __init__(self) -> None:
            self.sizes: list[int] = []

        def fetchmany(self, size: int) -> list[tuple[str]]:
            self.sizes.append(size)
            return [("x" * (1_000_000 if sum(self.sizes) > 20 else 1),)] * size

    url = sa.make_url(odd)
    database = Database(name="shop", url=odd)
    for server, sizes in (
        (Sqlite(database, url), [1, 1, 1]),
        (Server(database, url, sa.create_engine(url)), [1, 4, 16]),
    ):
        result: Any = Result()
        assert len(list(fetch_rows(server, result, 60, StatementTimeout(10)))) == 60
        assert result.sizes[:3] == sizes
        assert result.sizes[3:] == [1] * (60 - sum(sizes))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GRANT USAGE ON *.* TO `a` IDENTIFIED BY PASSWORD '*0D'",
         "GRANT USAGE ON *.* TO `a` IDENTIFIED BY PASSWORD '***'"),
        ("CREATE USER `a` IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$q''\\'s' REQUIRE NONE",
         "CREATE USER `a` IDENTIFIED WITH 'caching_sha2_password' AS '***' REQUIRE NONE"),
        ("… IDENTIFIED VIA ed25519 USING 'abc' OR unix_socket", "… IDENTIFIED VIA ed25519 USING '***' OR unix_socket"),
        ("GRANT SELECT ON `AS`.* TO `b`", "GRANT SELECT ON `AS`.* TO `b`"),
        (b"IDENTIFIED BY 'x'", b"IDENTIFIED BY 'x'"),
    ],
)  # fmt: skip
def test_the_hash_of_an_account_is_hidden(text: Any, shown: Any) -> None:
    assert Mysql.censored(None, text) == shown  # type: ignore[arg-type]  # it needs nothing of the server
