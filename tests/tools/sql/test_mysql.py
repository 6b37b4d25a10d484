"""A real server of MySQL: what holds a statement there, and what its errors become.

The program is `TAOLOOP_MYSQLD`, or the `mysqld` of PATH where that is not MariaDB.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.tools.sql.conftest import Tools
from tests.tools.sql.mysql_server import PASSWORD, asked, assert_busy_while_held, opened, served

from taoloop.errors import ToolError

pytest.importorskip("pymysql")

AT_WORK = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT sleep(30)%'"
SETUP = """
SET GLOBAL log_bin_trust_function_creators = ON
--
CREATE DATABASE shop
--
USE shop
--
CREATE TABLE users (id bigint PRIMARY KEY, name varchar(80) NOT NULL UNIQUE) COMMENT 'people who buy'
--
CREATE TABLE orders (id int PRIMARY KEY, user_id bigint, total decimal(30, 4), at datetime(6), raw blob,
    big bigint unsigned, span time, facts json, FOREIGN KEY (user_id) REFERENCES users (id))
--
CREATE TABLE log (user_id bigint)
--
CREATE TABLE plain (a int) ENGINE=MyISAM
--
INSERT INTO users WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
    SELECT i, concat('user ', i) FROM n
--
INSERT INTO orders VALUES (1, 1, 12345678901234567890.1234, '2026-01-02 03:04:05.678', x'00ff', 18446744073709551615,
    '100:00:00', '{"a": 1.5}')
--
CREATE PROCEDURE sneaks() BEGIN COMMIT; SET SESSION TRANSACTION READ WRITE; INSERT INTO log VALUES (7); COMMIT; END
--
CREATE PROCEDURE goes_on() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
    COMMIT; ROLLBACK; START TRANSACTION READ WRITE; INSERT INTO plain VALUES (7); CREATE TABLE made (a int); END
--
CREATE PROCEDURE deletes() BEGIN SELECT 1; DELETE FROM users WHERE id > 100; END
--
CREATE FUNCTION writes() RETURNS int BEGIN INSERT INTO log VALUES (1); RETURN 1; END
--
CREATE TRIGGER also AFTER UPDATE ON users FOR EACH ROW INSERT INTO log VALUES (NEW.id), (NEW.id)
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
SET DEFAULT ROLE filing TO filer
--
CREATE ROLE inner_one
--
GRANT filing TO inner_one
--
CREATE USER waiter IDENTIFIED BY 'pass@word'
--
GRANT SELECT ON shop.* TO waiter
--
GRANT inner_one TO waiter
--
CREATE USER tuner IDENTIFIED BY 'pass@word'
--
GRANT SELECT ON shop.* TO tuner
--
CREATE USER late IDENTIFIED BY 'pass@word'
--
GRANT SYSTEM_VARIABLES_ADMIN, TRANSACTION_GTID_TAG ON *.* TO tuner
--
CREATE USER maker IDENTIFIED BY 'pass@word'
--
GRANT CREATE USER, PROCESS, CREATE TABLESPACE, CREATE ROLE, DROP ROLE ON *.* TO maker WITH GRANT OPTION
--
GRANT ALL ON shop.* TO maker
"""


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    """The port of a new server, with `SETUP` in its database `shop`."""
    program = os.environ.get("TAOLOOP_MYSQLD") or shutil.which("mysqld")
    said = subprocess.run([program, "--version"], capture_output=True, check=False).stdout if program else b""
    if program is None or b"mysqld" not in said or b"MariaDB" in said:
        pytest.skip("MySQL is not on this machine")
    with served(program, (program, "--initialize-insecure"), "my", SETUP) as port:
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
        " (SELECT count(*) FROM information_schema.tables),"
        " (SELECT count(*) FROM information_schema.column_statistics),"
        " (SELECT count(*) FROM information_schema.events), (SELECT group_concat(user) FROM mysql.user),"
        " (SELECT group_concat(concat(grantee, privilege_type)) FROM information_schema.schema_privileges),"
        " (SELECT group_concat(authentication_string) FROM mysql.user) FROM users",
    )


def test_values_tables_and_pages(tools: Tools) -> None:
    assert not tools.loaded.problems
    text = tools.by_name["shop.query"].card.input_schema["properties"]["statement"]["description"]
    assert "users(id BIGINT PRIMARY KEY, name VARCHAR(80)) -- people who buy" in text
    assert "user_id BIGINT -> users.id" in text
    assert tools.query("SELECT * FROM orders")["rows"] == [
        [1, 1, "12345678901234567890.1234", "2026-01-02T03:04:05.678000", {"bytes": 2, "base64": "AP8="},
         18446744073709551615, "P4DT14400S", '{"a": 1.5}']
    ]  # fmt: skip
    rows = tools.rows_of_all_pages("SELECT id FROM users WHERE name LIKE 'user%' ORDER BY id", limit=300)
    assert rows == [[number] for number in range(1, 1001)]


def test_rows_that_are_not_asked_for_are_not_read(server: int) -> None:
    crossed = "SELECT a.id FROM users a, users b, users c"
    assert len(opened(server, timeout_s=30).query(crossed)["rows"]) == 50


def test_values_are_bound_and_stay_values(tools: Tools) -> None:
    value = "x', (SELECT max(name) FROM users) -- "
    statement = "SELECT :v, 'it\\'s :v', \"\\\" :v\", 100 % 7 # it's :v\n FROM users -- it's\n WHERE id IN :ids"
    assert tools.query(statement, params={"v": value, "ids": [1]})["rows"] == [[value, "it's :v", '" :v', 2]]
    assert tools.code("query", statement="SELECT 'it\\'s :v'", params={"v": value}) == "bad_params"


NASTY = [
    "INSERT INTO log VALUES (1)",
    "INSERT INTO plain VALUES (1)",
    "REPLACE INTO plain VALUES (1)",
    "SELECT writes()",
    "CALL sneaks()",
    "CALL goes_on()",
    "CALL deletes()",
    "SELECT * FROM users FOR UPDATE",
    "COMMIT",
    "COMMIT AND CHAIN",
    "ROLLBACK AND CHAIN",
    "START TRANSACTION READ WRITE",
    "SET autocommit=1",
    "SET SESSION TRANSACTION READ WRITE",
    "SET @@session.transaction_read_only=0",
    "SET PERSIST max_connections=200",
    "COMMIT; INSERT INTO log VALUES (1)",
    "SELECT /*+ SET_VAR(sql_mode='') */ writes()",
    "WITH q AS (SELECT 1 AS a) DELETE FROM plain WHERE 1",
    "EXPLAIN ANALYZE INSERT INTO plain VALUES (1)",
    "/*! INSERT INTO plain VALUES (1) */",
    "CREATE TABLE t (a int)",
    "CREATE TEMPORARY TABLE t (a int)",
    "CREATE TABLE t AS SELECT 1",
    "DROP TABLE log",
    "TRUNCATE log",
    "RENAME TABLE log TO gone",
    "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO INSERT INTO log VALUES (1)",
    "SET PASSWORD = 'x'",
    "ALTER USER CURRENT_USER() IDENTIFIED BY 'x'",
    "LOCK TABLES users WRITE",
    "OPTIMIZE TABLE log",
    "ANALYZE TABLE users UPDATE HISTOGRAM ON name WITH 4 BUCKETS",
    "FLUSH TABLES",
    "SELECT 1 INTO OUTFILE '/tmp/taoloop-out'",
    "SELECT 1 INTO DUMPFILE '/tmp/taoloop-out'",
    "SELECT load_file('/etc/passwd') IS NOT NULL AS a FROM users WHERE id = 1 INTO @a",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE log",
    "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE log",
    "XA ROLLBACK 'x'",
    "GRANT ALL ON shop.* TO reader",
    "CREATE USER new IDENTIFIED BY 'x'",
    "DROP USER writer",
    "SET DEFAULT ROLE filing TO filer",
    "CREATE ROLE new",
    "INSTALL PLUGIN p SONAME 'p.so'",
    "CREATE FUNCTION new RETURNS STRING SONAME 'p.so'",
    "HANDLER users OPEN",
    "IMPORT TABLE FROM '/tmp/x.sdi'",
    "LOCK INSTANCE FOR BACKUP",
    "RESTART",
    "CHECK TABLE users",
    "REPAIR TABLE plain",
    "ALTER TABLE users COMMENT 'x'",
    "CREATE VIEW v AS SELECT 1",
    "SELECT name FROM users PROCEDURE analyse()",
]


@pytest.mark.parametrize("user", ["reader", "writer", "maker"])
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
        "SELECT /*+ MAX_EXECUTION_TIME(0) */ sleep(30)",
        "SELECT benchmark(1000000000000, sha2('a', 512))",
        "SELECT repeat('x', 1000000) FROM users a, users b",
        "DO sleep(30)",
    ],
)
def test_a_statement_that_takes_too_long_is_stopped(server: int, statement: str) -> None:
    assert opened(server, timeout_s=0.4).code("query", statement=statement, offset=9_999) == "statement_timeout"


def test_a_cancelled_call_ends_its_statement_in_the_server(server: int, tools: Tools) -> None:
    tools.cancel_at_work("SELECT sleep(30)", lambda: asked(server, AT_WORK))
    assert not asked(server, AT_WORK)


@pytest.mark.parametrize(
    ("user", "power"),
    [("root", "FILE"), ("filer", "FILE"), ("waiter", "FILE"), ("tuner", "privilege SYSTEM_VARIABLES_ADMIN on")],
)
def test_a_role_with_power_over_the_server_is_refused(server: int, user: str, power: str) -> None:
    password = "" if user == "root" else PASSWORD
    refused = opened(server, user, password, write=True)
    assert not refused.by_name
    assert refused.loaded.problems[0].message.startswith("The role")
    assert user == "root" or power in str(refused.loaded.problems[0])
    assert opened(server, user, password, read_only_role=True).query("SELECT 1")["rows"] == [[1]]


def test_a_wrong_password_is_a_problem_that_does_not_show_it(server: int) -> None:
    wrong = opened(server, password="hush%40hush")
    assert not wrong.by_name
    assert "hush" not in str(wrong.loaded.problems)


WITHOUT_CRYPTOGRAPHY = """
import sys
sys.modules["cryptography"] = None
from taoloop.tools.sql import Database, sql_tools
print(*sql_tools(Database(name="shop", url=sys.argv[1])).problems)
"""


def test_a_package_that_the_login_needs_is_named(server: int) -> None:
    url = f"mysql://late:{PASSWORD}@127.0.0.1:{server}/shop?ssl_disabled=true"
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CRYPTOGRAPHY, url], capture_output=True, text=True, check=True, cwd="/"
    )
    assert "cryptography" in done.stdout
    assert "Install it: pip install 'pymysql[rsa]'." in done.stdout


def test_changes_are_kept_and_counted(server: int, writer: Tools) -> None:
    assert writer.by_name["shop.execute"].card.tier == "destructive"
    done = writer.execute("UPDATE users SET name = :name WHERE id = 7", params={"name": "Li 100%"})
    assert done == {"rows_changed": 1}  # what the trigger did is not counted
    assert asked(server, "SELECT name FROM users WHERE id = 7") == (("Li 100%",),)
    assert writer.execute("INSERT INTO log VALUES (70), (71)") == {"rows_changed": 2}


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE users SET name = concat(name, '!')", "too_many_rows"),
        ("CALL sneaks()", "not_allowed"),
        ("COMMIT", "not_allowed"),
        ("CREATE TABLE t (a int)", "not_allowed"),
        ("DROP TABLE users", "not_allowed"),
        ("TRUNCATE log", "not_allowed"),
        ("DELETE FROM log; COMMIT", "statement_failed"),
        ("INSERT INTO log VALUES ('x')", "statement_failed"),
        ("INSERT INTO log SELECT 1 FROM (SELECT sleep(30)) q", "statement_timeout"),
    ],
)
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
