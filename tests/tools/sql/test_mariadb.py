"""A real server of MariaDB: what holds a statement there, and what its errors become."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from tests.tools.sql.arrival import codes_and_growth
from tests.tools.sql.conftest import Tools
from tests.tools.sql.mysql_server import PASSWORD, asked, assert_busy_while_held, boss, opened, served

from taoloop.errors import ToolError

pytest.importorskip("pymysql")

AT_WORK = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT sleep(30)%'"
SETUP = """
CREATE DATABASE shop
--
USE shop
--
CREATE TABLE users (id bigint PRIMARY KEY, name varchar(80) NOT NULL UNIQUE) COMMENT 'people who buy'
--
CREATE TABLE orders (id int PRIMARY KEY, user_id bigint REFERENCES users (id), total decimal(30, 4), at datetime(6),
    raw blob, big bigint unsigned, span time, facts json)
--
CREATE TABLE log (user_id bigint)
--
CREATE TABLE plain (a int) ENGINE=MyISAM
--
CREATE SEQUENCE numbers
--
INSERT INTO users SELECT seq, concat('user ', seq) FROM seq_1_to_1000
--
INSERT INTO orders VALUES (1, 1, 12345678901234567890.1234, '2026-01-02 03:04:05.678', x'00ff', 18446744073709551615,
    '100:00:00', '{"a": 1.10}')
--
CREATE PROCEDURE sneaks() BEGIN COMMIT; SET SESSION TRANSACTION READ WRITE; INSERT INTO log VALUES (7); COMMIT; END
--
CREATE FUNCTION writes() RETURNS int BEGIN INSERT INTO log VALUES (1); RETURN 1; END
--
CREATE TRIGGER also AFTER UPDATE ON users FOR EACH ROW INSERT INTO log SELECT seq FROM seq_1_to_20
--
CREATE USER reader IDENTIFIED BY 'pass@word'
--
GRANT SELECT, EXECUTE ON shop.* TO reader
--
CREATE USER writer IDENTIFIED BY 'pass@word'
--
GRANT ALL ON shop.* TO writer
--
CREATE USER filer IDENTIFIED BY 'pass@word'
--
GRANT SELECT ON shop.* TO filer
--
CREATE ROLE filing
--
GRANT FILE ON *.* TO filing
--
GRANT filing TO filer
--
SET DEFAULT ROLE filing FOR filer
--
CREATE USER waiter IDENTIFIED BY 'pass@word'
--
GRANT SELECT ON shop.* TO waiter
--
CREATE ROLE inner_one
--
GRANT filing TO inner_one
--
GRANT inner_one TO waiter
--
CREATE ROLE `per %``cent`
--
GRANT SELECT ON shop.* TO `per %``cent`
--
CREATE USER holder IDENTIFIED BY 'pass@word'
--
GRANT `per %``cent` TO holder
--
SET DEFAULT ROLE `per %``cent` FOR holder
"""


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    """The port of a new server, with `SETUP` in its database `shop`."""
    install, program = shutil.which("mariadb-install-db"), shutil.which("mariadbd")
    if install is None or program is None:
        pytest.skip("MariaDB is not on this machine")
    first = (install, "--auth-root-authentication-method=normal", "--skip-test-db")
    with served(program, first, "maria", SETUP) as port:
        yield port


@pytest.fixture
def tools(server: int) -> Tools:
    return opened(server)


@pytest.fixture
def writer(server: int) -> Tools:
    return opened(server, "writer", write=True)


def state(port: int) -> Any:
    return asked(
        port,
        "SELECT count(*), max(name), (SELECT count(*) FROM log), (SELECT count(*) FROM plain),"
        " (SELECT next_not_cached_value FROM numbers), (SELECT count(*) FROM information_schema.tables),"
        " (SELECT group_concat(authentication_string) FROM mysql.user) FROM users",
    )


def test_values_tables_and_pages(tools: Tools) -> None:
    assert not tools.loaded.problems
    text = tools.by_name["shop.query"].card.input_schema["properties"]["statement"]["description"]
    assert "users(id BIGINT(20) PRIMARY KEY, name VARCHAR(80)) -- people who buy" in text
    assert tools.query("SELECT * FROM orders")["rows"] == [
        [1, 1, "12345678901234567890.1234", "2026-01-02T03:04:05.678000", {"bytes": 2, "base64": "AP8="},
         18446744073709551615, "P4DT14400S", '{"a": 1.10}']
    ]  # fmt: skip
    rows = tools.rows_of_all_pages("SELECT id FROM users WHERE name LIKE 'user%' ORDER BY id", limit=300)
    assert rows == [[number] for number in range(1, 1001)]


def test_rows_that_are_not_asked_for_are_not_read(server: int) -> None:
    tools = opened(server, timeout_s=30)  # all of them take a minute
    assert len(tools.query("SELECT * FROM seq_1_to_100000000")["rows"]) == 50


def test_a_result_is_bounded_while_it_arrives(server: int) -> None:
    codes, growth_mb = codes_and_growth(
        f"mysql://reader:{PASSWORD}@127.0.0.1:{server}/shop",
        f"SELECT {', '.join(['repeat(char(120), 8000000)'] * 6)}",
        "SELECT repeat('x', if(seq < 30, 9, 15000000)) FROM seq_1_to_33",
    )
    assert codes == ["value_too_large"] * 2
    assert growth_mb < 100


def test_names_in_backticks_enumerations_and_samples(server: int) -> None:
    with boss(server) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE odd")
        cursor.execute("CREATE TABLE odd.`order items` (`key` int, state enum('open', 'paid'), userId int)")
        cursor.execute("INSERT INTO odd.`order items` VALUES (1, 'open', 7), (2, 'open', NULL)")
        cursor.execute("GRANT SELECT ON odd.* TO reader")
    tools = opened(server, schemas=("odd",), samples=True)
    text = tools.by_name["shop.query"].card.input_schema["properties"]["statement"]["description"]
    assert "odd.`order items`(`key` INTEGER(11), state ENUM('open','paid'), userId INTEGER(11))" in text
    key, state, user = tools("describe_table", table="odd.`order items`", samples=True)["columns"]
    assert (key["name"], key["samples"], user["samples"]) == ("`key`", [1, 2], [7])
    assert (state["values"], state["samples"]) == (["open", "paid"], ["open"])


def test_the_hash_of_a_password_is_not_shown(tools: Tools) -> None:
    (account, *_) = (row[0] for row in tools.query("SHOW GRANTS")["rows"])
    assert account.startswith("GRANT ")
    assert "IDENTIFIED BY PASSWORD '***'" in account
    assert tools.query("SELECT 'AS ''x''' a, 'IDENTIFIED VIA p USING ''it'' OR q AS 0xFF' b")["rows"] == [
        ["AS 'x'", "IDENTIFIED VIA p USING '***' OR q AS '***'"]
    ]


def test_values_are_bound_and_stay_values(tools: Tools) -> None:
    value = "x', (SELECT max(name) FROM users) -- "
    statement = "SELECT :v, 'it\\'s :v', \"\\\" :v\", 100 % 7 # it's :v\n FROM users -- it's\n WHERE id IN :ids"
    assert tools.query(statement, params={"v": value, "ids": [1]})["rows"] == [[value, "it's :v", '" :v', 2]]
    assert tools.code("query", statement="SELECT 'it\\'s :v'", params={"v": value}) == "bad_params"


NASTY = [
    "INSERT INTO log VALUES (1)",
    "INSERT INTO plain VALUES (1)",
    "SELECT writes()",
    "CALL sneaks()",
    "SELECT nextval(numbers)",
    "DO setval(numbers, 100)",
    "SELECT * FROM users FOR UPDATE",
    "COMMIT",
    "COMMIT AND CHAIN",
    "START TRANSACTION READ WRITE",
    "SET autocommit=1",
    "COMMIT; INSERT INTO log VALUES (1)",
    "BEGIN NOT ATOMIC COMMIT; START TRANSACTION READ WRITE; INSERT INTO log VALUES (2); COMMIT; END",
    "BEGIN NOT ATOMIC ROLLBACK; SET SESSION TRANSACTION READ WRITE; INSERT INTO plain VALUES (3); END",
    "BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; COMMIT; INSERT INTO plain VALUES (3); END",
    "IF 1 THEN COMMIT; START TRANSACTION READ WRITE; INSERT INTO log VALUES (4); COMMIT; END IF",
    "EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC COMMIT; START TRANSACTION READ WRITE; INSERT INTO log VALUES (2); END'",
    "SET STATEMENT tx_read_only=0 FOR INSERT INTO log VALUES (1)",
    "ANALYZE FORMAT=JSON INSERT INTO log VALUES (1)",
    "CREATE TABLE t (a int)",
    "CREATE TEMPORARY TABLE t (a int)",
    "DROP TABLE log",
    "TRUNCATE log",
    "RENAME TABLE log TO gone",
    "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO INSERT INTO log VALUES (1)",
    "SET PASSWORD = PASSWORD('x')",
    "ALTER USER CURRENT_USER() IDENTIFIED BY 'x'",
    "LOCK TABLES users WRITE",
    "OPTIMIZE TABLE log",
    "SELECT 1 INTO OUTFILE '/tmp/taoloop-out'",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE log",
    "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE log",
    "XA ROLLBACK 'x'",
]


@pytest.mark.parametrize("user", ["reader", "writer"])
def test_no_statement_changes_anything_through_the_query_tool(server: int, user: str) -> None:
    tools = opened(server, user)
    before = state(server)
    for statement in NASTY:
        try:
            tools.query(statement)
        except ToolError as error:
            assert error.code in ("not_allowed", "statement_failed", "no_rows"), statement  # noqa: PT017  # one of many
        assert state(server) == before, statement


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT sleep(30)",
        "SET STATEMENT max_statement_time=0 FOR SELECT sleep(30)",
        "SELECT benchmark(1000000000000, sha2('a', 512))",
        "SELECT repeat('x', 10000000) FROM seq_1_to_10000",
    ],
)
def test_a_statement_that_takes_too_long_is_stopped(server: int, statement: str) -> None:
    assert opened(server, timeout_s=0.4).code("query", statement=statement, offset=9_999) == "statement_timeout"


def test_a_cancelled_call_ends_its_statement_in_the_server(server: int, tools: Tools) -> None:
    tools.cancel_at_work("SELECT sleep(30)", lambda: asked(server, AT_WORK))
    assert not asked(server, AT_WORK)


@pytest.mark.parametrize(("user", "power"), [("root", "ALL PRIVILEGES"), ("filer", "FILE"), ("waiter", "FILE")])
def test_a_role_with_power_over_the_server_is_refused(server: int, user: str, power: str) -> None:
    password = "" if user == "root" else PASSWORD
    refused = opened(server, user, password, write=True)
    assert not refused.by_name
    assert power in str(refused.loaded.problems[0])
    assert opened(server, user, password, read_only_role=True).query("SELECT 1")["rows"] == [[1]]


def test_a_role_that_only_reads_may_be_taken_and_stays_taken(server: int) -> None:
    holder = opened(server, "holder")
    assert not holder.loaded.problems
    assert holder.query("SELECT current_role(), count(*) FROM users")["rows"] == [["per %`cent", 1000]]


def test_the_password_is_in_no_problem(server: int) -> None:
    wrong = opened(server, password="hush%40hush")
    assert not wrong.by_name
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    away = opened(port, password="hush%40hush")
    assert away.by_name
    assert "hush" not in str([*wrong.loaded.problems, *away.loaded.problems])
    assert away.code("query", statement="SELECT 1") == "database_unavailable"


def test_changes_are_kept_and_counted_with_those_of_triggers(server: int, writer: Tools) -> None:
    assert writer.by_name["shop.execute"].card.tier == "destructive"
    done = writer.execute("UPDATE users SET name = :name WHERE id = 7", params={"name": "Li 100%"})
    assert done == {"rows_changed": 1, "rows_changed_in_all": 21}
    assert asked(server, "SELECT name FROM users WHERE id = 7") == (("Li 100%",),)
    done = writer.execute("INSERT INTO log VALUES (70), (71) RETURNING user_id")
    assert done == {"rows_changed": 2, "columns": ["user_id"], "rows": [[70], [71]]}


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE users SET name = concat(name, '!') WHERE id < 10", "too_many_rows"),
        ("BEGIN NOT ATOMIC DELETE FROM users WHERE id > 100; SET @a = 1; END", "too_many_rows"),
        ("BEGIN NOT ATOMIC SELECT 1; DELETE FROM users WHERE id > 100; END", "too_many_rows"),
        ("BEGIN NOT ATOMIC SELECT 1; DELETE FROM users WHERE id < 9; SIGNAL SQLSTATE '45000'; END", "statement_failed"),
        ("BEGIN NOT ATOMIC DELETE FROM users WHERE id = 100; COMMIT; END", "not_allowed"),
        ("CALL sneaks()", "not_allowed"),
        ("COMMIT", "not_allowed"),
        ("CREATE TABLE t (a int)", "not_allowed"),
        ("DROP TABLE users", "not_allowed"),
        ("TRUNCATE log", "not_allowed"),
        ("DELETE FROM log; COMMIT", "statement_failed"),
        ("INSERT INTO log VALUES ('x')", "statement_failed"),
        ("INSERT INTO log SELECT 1 FROM (SELECT sleep(30)) q", "statement_timeout"),
    ],
)  # fmt: skip
def test_what_goes_too_far_is_rolled_back(server: int, statement: str, code: str) -> None:
    before = state(server)
    assert opened(server, "writer", write=True, timeout_s=1).code("execute", statement=statement) == code
    assert state(server) == before


def test_the_structure_can_be_changed_where_it_is_permitted(server: int) -> None:
    tools = opened(server, "writer", write=True, structure=True)
    tools.execute("CREATE TABLE made (a int)")
    tools.execute("INSERT INTO made VALUES (1)")
    assert asked(server, "SELECT a FROM made") == ((1,),)
    tools.execute("DROP TABLE made")


def test_what_somebody_else_holds_is_busy(server: int, writer: Tools) -> None:
    assert_busy_while_held(server, writer)
